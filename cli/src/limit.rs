//! Limits that ended a run, in words: which one, what sets another one, and what was going on.

use dflow_ir::image::Image;
use dflow_runtime::config::{Limit, Limits};
use dflow_runtime::doing::Doing;

use crate::memory;
use crate::report::group;

/// What sets limits, as the user calls it; nothing where nobody can.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Of the cycle.
    pub cycles: &'static str,
    /// Of the memory.
    pub memory: Option<&'static str>,
    /// Of the time.
    pub time: &'static str,
}

/// The options of the command line.
pub(crate) const OPTIONS: Settings =
    Settings { cycles: "--max-cycles", memory: Some("--max-memory"), time: "--timeout" };

/// Limits of a run, and who set them.
#[derive(Clone, Copy, Debug)]
pub struct Set<'a> {
    /// The limits.
    pub limits: &'a Limits,
    /// How they are set.
    pub by: Settings,
    /// The user said how much memory there may be; else it is nine tenths of what there is.
    pub own_memory: bool,
}

/// The time limit that ends a compilation: the run has not begun.
pub(crate) fn late_compiler(by: Settings) -> String {
    format!("the time limit was reached at cycle 0 ({}), while the program was compiled", by.time)
}

impl Set<'_> {
    /// Which limit ended a run, and what raises it: one line.
    pub fn reached(&self, image: &Image, limit: Limit, doing: &Doing) -> String {
        let cycle = group(doing.cycle);
        match limit {
            Limit::Cycles if self.limits.cycle != u64::MAX => {
                let most = group(self.limits.cycle);
                format!("the cycle limit of {most} was reached ({})", self.by.cycles)
            }
            Limit::Cycles => format!(
                "the cycle limit of {cycle} was reached, which holds where the host block waits for nothing; \
                 {} sets another one",
                self.by.cycles
            ),
            Limit::Memory => self.memory(image, doing),
            Limit::Time => {
                format!("the time limit was reached at cycle {cycle} ({})", self.by.time)
            }
            Limit::Interrupted => format!("interrupted at cycle {cycle}"),
        }
    }

    fn memory(&self, image: &Image, doing: &Doing) -> String {
        let (cycle, limit) = (group(doing.cycle), self.limits.memory);
        if memory::is_exhausted() {
            return format!(
                "the memory of this computer was used up at cycle {cycle}, by {} PEs among others",
                group(doing.touched)
            );
        }
        if doing.bytes <= limit {
            let by = self.by.memory.map(|name| format!(" ({name})")).unwrap_or_default();
            let may = memory::size(limit);
            return format!(
                "the memory limit was reached at cycle {cycle}: the host holds more than {may}{by}"
            );
        }
        let which = match self.by.memory {
            Some(name) if self.own_memory => name.to_owned(),
            Some(name) => {
                format!("nine tenths of what is available here; {name} sets another limit")
            }
            None => "nine tenths of what is available here".to_owned(),
        };
        let (need, may) = (memory::size(doing.bytes), memory::size(limit));
        let whole = whole_need(image.placement.rect.area() as u64, doing);
        format!(
            "the memory limit was reached at cycle {cycle}: the state of {} PEs takes about {need} \
             and may take {may} ({which}){whole}",
            group(doing.touched)
        )
    }
}

/// What was going on, behind what ended it: lines.
pub fn with_doing(what: &str, doing: &Doing, files: &[String]) -> String {
    let doing = doing.text(files);
    if doing.is_empty() { what.to_owned() } else { format!("{what}; at the end{doing}") }
}

/// What all PEs of a mesh would take if each took what those do that have state; nothing if all have.
fn whole_need(all: u64, doing: &Doing) -> String {
    let Some(each) = doing.bytes.checked_div(doing.touched).filter(|_| doing.touched < all) else {
        return String::new();
    };
    let need = memory::size(each.saturating_mul(all));
    format!("; that of all {} would take about {need}", group(all))
}
