//! How fast stretches can send words for which there are no places: as fast as others are taken.
//!
//! When such a stretch ends is found out by its end (`stretch/ends.rs`). Where it shares the slots of its core it
//! matters before: those that it cannot use are for others, and what it has left is what has had no place, not what it
//! would have done with its share. So a pipe knows what part of its core's slots the operation at its end could take
//! words with, and long stretches beside others look again when that changes, or when words that they take come later. A
//! core with one stretch does not look, and so what slows its taker down slows those before it when it shares slots
//! next; other regions are not told of paces.

use super::code::Code;
use super::share::WHOLE;
use super::stretch::{PARTS, Stretch, WAITS, Words};
use crate::fabric::router::RAMP;
use crate::sched::region::Region;

/// Takers of words that share slots are told of stretches that end more than so many cycles later than they were told.
const LATER: u64 = 32;
/// Senders that share slots are told of another pace if so many words have no place yet.
const LONG: u32 = 32;
/// So many cycles after something has changed shares are looked at, so that several changes are one.
const TOGETHER: u64 = 16;
/// What is a change of a pace.
const CHANGE: u64 = WHOLE / 16;

/// Whether a stretch ends so much later than before that those beside its taker have more of the slots.
pub(super) fn is_later(before: u64, until: u64) -> bool {
    before != WAITS && until > before + LATER
}

impl<C: Code> Region<C> {
    /// What has had no place by cycle `t` a stretch has left; what part of the slots it can use.
    pub(super) fn pace_of_places(&self, stretch: &mut Stretch, t: u64) -> u64 {
        let Some(words) = stretch.output.as_ref().filter(|_| stretch.until != WAITS) else {
            return WHOLE;
        };
        let placed = self.placed_by(words.pipe(), t).unwrap_or(words.end);
        let unplaced = words.end.saturating_sub(placed);
        if unplaced == 0 {
            return WHOLE;
        }
        let pace = self.pace_of(words.pipe());
        stretch.left = stretch.left.max(unplaced * PARTS);
        pace
    }

    /// From cycle `t` on a stretch could take words with so many of the slots; if others wait for that, they look
    /// at their shares.
    pub(super) fn set_pace(&mut self, stretch: &Stretch, t: u64, share: u64) {
        let sends = stretch.output.as_ref().map(Words::pipe);
        // One that passes words on, and waits for places itself, takes as fast as its own taker does.
        let waits = sends.filter(|&pipe| self.pipes[pipe as usize].without_place() != 0);
        let pace = share.min(waits.map_or(WHOLE, |pipe| self.pace_of(pipe)));
        for words in stretch.inputs.iter().flatten() {
            let pipe = &mut self.pipes[words.pipe() as usize];
            let before = pipe.set_pace(pace);
            let waits = pipe.without_place() > LONG && pace.abs_diff(before) > CHANGE;
            // Of another region's nobody knows who sends.
            if waits && pipe.comes_from().is_none() && pipe.route().entry == RAMP {
                let source = pipe.route().source;
                self.look_at_shares(source, t);
            }
        }
    }

    /// Something that concerns a core's operations changes in cycle `t`: if several of them are in stretches, it
    /// shares its slots anew.
    pub(super) fn look_at_shares(&mut self, pe: u32, t: u64) {
        let core = self.cores[pe as usize].as_deref_mut();
        if let Some(core) = core.filter(|core| core.threads.busy().count_ones() > 1) {
            core.unshared = true;
            self.wakes.core(pe, t.max(self.now) + TOGETHER);
        }
    }
}
