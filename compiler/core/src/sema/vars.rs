//! Comptime variables in code with run-time jumps: they exist while compiling, so whether one is
//! written may not depend on what happens at run time.
//!
//! A write under a run-time condition is refused where it stands. One behind a run-time jump is right
//! for what comes before the end of what the jump leaves; behind the end the variable has no value
//! that is known, and reading it is an error.

use dflow_syntax::{Diagnostic, Span, codes};
use rustc_hash::FxHashMap;

use super::{R, Sema};

/// What is known of the comptime variables of a body, by slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vars {
    /// How many labels and run-time branches are open where one is declared.
    born: FxHashMap<u32, Born>,
    /// Those whose value depends on whether a jump was taken.
    unsettled: FxHashMap<u32, Skipped>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Born {
    labels: usize,
    depth: u32,
}

/// A write, and the run-time jump that skips it.
#[derive(Clone, Copy, Debug)]
struct Skipped {
    write: Span,
    jump: Span,
}

/// The first run-time jump to the end of a block or round, and what has been written behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Behind {
    jump: Option<Span>,
    written: Vec<(u32, Skipped)>,
}

impl Behind {
    /// A run-time jump stands here.
    pub(crate) fn jump(&mut self, span: Span) {
        self.jump.get_or_insert(span);
    }

    fn write(&mut self, slot: u32, span: Span) {
        if let Some(jump) = self.jump {
            self.written.push((slot, Skipped { write: span, jump }));
        }
    }
}

impl Sema<'_, '_> {
    /// A variable begins here.
    pub(crate) fn var_declared(&mut self, slot: u32) {
        let frame = self.frame_mut();
        let born = Born { labels: frame.labels.len(), depth: frame.depth };
        frame.vars.born.insert(slot, born);
        frame.vars.unsettled.remove(&slot);
    }

    /// A variable, or a part of it, is written.
    pub(crate) fn var_written(&mut self, slot: u32, whole: bool, span: Span) -> R<()> {
        let frame = self.frame_mut();
        frame.looks.written();
        let born = frame.vars.born.get(&slot).copied().unwrap_or_default();
        if frame.depth > born.depth {
            return self.fail(
                codes::NOT_COMPTIME,
                "a comptime variable is assigned under a run-time condition",
                span,
                "whether this happens is known only at run time",
            );
        }
        if whole {
            frame.vars.unsettled.remove(&slot);
        }
        for label in frame.labels.iter_mut().skip(born.labels) {
            label.behind_break.write(slot, span);
            label.behind_continue.write(slot, span);
        }
        Ok(())
    }

    /// The end that jumps lead to is reached: with and without what was written behind them.
    pub(crate) fn jumps_end(&mut self, behind: Behind) {
        self.frame_mut().vars.unsettled.extend(behind.written);
    }

    /// Fails if the value of a variable depends on a jump.
    pub(crate) fn var_is_settled(&mut self, slot: u32, span: Span) -> R<()> {
        let Some(&Skipped { write, jump }) = self.frame().vars.unsettled.get(&slot) else {
            return Ok(());
        };
        let message = "a comptime variable is assigned behind a run-time jump, and used later";
        Err(self.report(
            Diagnostic::new(codes::NOT_COMPTIME, message, write)
                .label("whether this happens is known only at run time")
                .secondary(jump, "control may leave here")
                .secondary(span, "used here"),
        ))
    }
}
