//! When a stretch ends: its words have come, and have had places.

use super::{Stretch, WAITS};
use crate::pe::code::Code;
use crate::pe::core::{Core, bits};
use crate::pe::visit::Visit;
use crate::sched::region::Region;

impl<C: Code> Region<C> {
    /// Words that stretches take come later, or sooner, than was known; whether any do.
    pub(super) fn look_at_words(&mut self, at: &Visit<'_, C>, core: &mut Core<C>, on: u64) -> bool {
        let mut changed = false;
        for id in bits(on) {
            let Some(op) = core.streamed(id) else { continue };
            for words in op.stretch.inputs.iter_mut().flatten() {
                if let Some(late) = self.pipes[words.pipe() as usize].late(words.end) {
                    let there = late + at.plan.timing.ramp_down;
                    changed |= std::mem::replace(&mut words.at, there) != there;
                }
            }
        }
        changed
    }

    /// Whether a stretch is over: all of its words have had a place.
    pub(super) fn is_over(&mut self, at: &Visit<'_, C>, stretch: &mut Stretch) -> bool {
        let Some(words) = stretch.output else { return stretch.over() <= at.t };
        // Places may become free sooner than was known.
        if stretch.over() > at.t && stretch.until != WAITS && !stretch.waits_for_places() {
            return false;
        }
        let until = match self.place_in(words.pipe(), words.end) {
            None => {
                self.each_pipe(words.pipe(), |pipe| pipe.want_place(words.end));
                WAITS
            }
            Some(from) if stretch.until <= at.t => from.max(stretch.until),
            Some(from) => from.max(at.t),
        };
        if until != stretch.until {
            (stretch.left, stretch.floor) = (0, if until == WAITS { 0 } else { until });
            self.put_off_end(at.t, stretch, until);
        }
        stretch.until != WAITS && stretch.over() <= at.t
    }
}
