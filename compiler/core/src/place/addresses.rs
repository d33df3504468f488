//! Where the variables of a program lie: one behind the other, but for those with a section that
//! the caller gave an address.

use std::ops::Range;

use super::memory::align_up;
use crate::session::Options;
use crate::typed::{self, GlobalIdx};

/// First address of data. Not 0, so that no object has the address of a null pointer.
const FIRST: u64 = 16;

/// The addresses of a program's variables. Wide enough for any program that can be written.
pub(super) struct Addresses {
    /// Of each variable, in order of declaration.
    pub(super) starts: Vec<u64>,
    /// Behind the last.
    pub(super) end: u64,
    /// Bytes up to the end that no variable needs, because of given addresses.
    pub(super) holes: u64,
    /// A variable that is not where its section should be, and what is there.
    pub(super) clash: Option<Clash>,
}

/// Two things in one place.
pub(super) struct Clash {
    /// The variable that came later.
    pub(super) global: GlobalIdx,
    /// What is there already, if it is a variable; else what may have no variable.
    pub(super) other: Option<GlobalIdx>,
}

impl Addresses {
    /// Sections first, then everything else around them, in order of declaration.
    pub(super) fn of(program: &typed::Program, options: &Options) -> Addresses {
        let first = u64::from(options.first_address).max(FIRST);
        let mut starts = vec![None; program.globals.len()];
        let mut taken: Vec<(Range<u64>, GlobalIdx)> = Vec::new();
        let mut clash = None;
        for (section, address) in &options.sections {
            let mut end = u64::from(*address);
            let inside = |global: &typed::Global| global.section.as_ref() == Some(section);
            let globals = program.globals.iter().enumerate().filter(|(_, global)| inside(global));
            for (at, global) in globals {
                let start = align_up(end, u64::from(global.align));
                end = start + u64::from(global.size);
                let idx = GlobalIdx(at as u32);
                let other = taken.iter().find(|(range, _)| start < range.end && range.start < end);
                if clash.is_none() && (other.is_some() || start < FIRST) {
                    clash = Some(Clash { global: idx, other: other.map(|(_, other)| *other) });
                }
                starts[at] = Some(start);
                taken.push((start..end, idx));
            }
        }
        taken.sort_by_key(|(range, _)| range.start);
        let mut end = first;
        for (global, start) in program.globals.iter().zip(&mut starts) {
            if start.is_none() {
                let (align, size) = (u64::from(global.align), u64::from(global.size));
                let free = free_from(end, align, size, &taken);
                *start = Some(free);
                end = free + size;
            }
        }
        let last = taken.iter().map(|(range, _)| range.end).fold(end, u64::max);
        let bytes = |(range, _): &(Range<u64>, GlobalIdx)| range.end - range.start;
        let in_sections: u64 = taken.iter().map(bytes).sum();
        let below: u64 = taken.iter().filter(|(range, _)| range.start < end).map(bytes).sum();
        // Variables that clash are counted twice: no matter, such a program is refused.
        let holes = last.saturating_sub(end.saturating_sub(below) + in_sections);
        Addresses { starts: starts.into_iter().flatten().collect(), end: last, holes, clash }
    }
}

/// The first place from `start` on where nothing is.
fn free_from(start: u64, align: u64, size: u64, taken: &[(Range<u64>, GlobalIdx)]) -> u64 {
    taken.iter().fold(align_up(start, align), |at, (range, _)| {
        let meets = at < range.end && range.start < at + size.max(1);
        if meets { align_up(range.end, align) } else { at }
    })
}
