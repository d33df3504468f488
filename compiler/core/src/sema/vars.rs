//! Comptime variables in code with run-time jumps: they exist while compiling, so whether one is
//! written may not depend on what happens at run time.
//!
//! A write under a run-time condition is refused where it stands. One behind a run-time jump is right
//! for what comes before the end of what the jump leaves; behind the end the variable has no value
//! that is known, and reading it is an error.
//!
//! They have no place in memory. One whose address is taken by code that runs while compiling is a
//! constant from there on, which the address leads to; a write behind that is refused.

use dflow_syntax::{Diagnostic, Span, codes};
use rustc_hash::FxHashMap;

use super::address::{Address, AddressBase};
use super::place::Place;
use super::value::PointerBase;
use super::{R, Sema};

/// What is known of the comptime variables of a body, by slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vars {
    /// How many labels and run-time branches are open where one is declared.
    born: FxHashMap<u32, Born>,
    /// Those whose value depends on whether a jump was taken.
    unsettled: FxHashMap<u32, Skipped>,
    /// Where the addresses of some have been taken.
    taken: FxHashMap<u32, Span>,
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
        frame.vars.taken.remove(&slot);
    }

    /// A variable, or a part of it, is written.
    pub(crate) fn var_written(&mut self, slot: u32, whole: bool, span: Span) -> R<()> {
        let frame = self.frame_mut();
        frame.looks.written();
        if let Some(&taken) = frame.vars.taken.get(&slot) {
            let help = "take the address behind the last write: it leads to a constant";
            let diagnostic = no_memory(span, "written here, behind that").help(help);
            return Err(self.report(diagnostic.secondary(taken, TAKEN)));
        }
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

    /// Memory that holds a place's value, for who keeps the address.
    pub(crate) fn lasting_memory_of(&mut self, place: Place, span: Span) -> R<(Address, bool)> {
        let Place::Slot { slot, .. } = place else { return self.memory_of(place, span) };
        if self.is_runtime() {
            return Err(self.report(no_memory(span, TAKEN)));
        }
        let (address, mutable) = self.memory_of(place, span)?;
        self.frame_mut().vars.taken.entry(slot).or_insert(span);
        if let AddressBase::Pointer(PointerBase::Constant(constant)) = address.base {
            self.program_mut().of_vars.insert(constant, span);
        }
        Ok((address, mutable))
    }

    /// Where the address was taken, if it leads to what stands for a comptime variable.
    pub(crate) fn address_of_var(&self, address: &Address) -> Option<Span> {
        let AddressBase::Pointer(PointerBase::Constant(constant)) = address.base else {
            return None;
        };
        self.program.as_ref()?.of_vars.get(&constant).copied()
    }

    /// A comptime variable is written, or may be, by way of its address.
    pub(crate) fn written_behind<T>(&mut self, taken: Span, span: Span) -> R<T> {
        let diagnostic = no_memory(span, "written through its address here");
        let help = "assign to the variable by its name; a function can return the value for it";
        let diagnostic = diagnostic.help(help);
        Err(self.report(match taken == span {
            true => diagnostic,
            false => diagnostic.secondary(taken, TAKEN),
        }))
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

const TAKEN: &str = "its address is taken here";

fn no_memory(span: Span, label: &str) -> Diagnostic {
    let message = "a comptime variable has no place in memory";
    Diagnostic::new(codes::NO_ADDRESS, message, span).label(label)
}
