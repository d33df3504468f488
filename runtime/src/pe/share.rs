//! How stretches and microthreads that go element by element share the slots of a core.
//!
//! What stretches use is known ahead; what the others would use depends on words and places, cycle by
//! cycle. So they are asked for what they used of the last cycles, and the slots of stretches are
//! kept from them.

use super::code::Code;
use super::core::{Core, bits};
use super::stretch::{PARTS, SOONER, Stretch, WAITS, Words};
use super::takers::is_later;
use super::threads::COUNT;
use crate::fabric::router::RAMP;
use crate::sched::region::Region;
use crate::sched::rounds::Noter;

/// All slots of a core, or all cycles of a link.
pub(crate) const WHOLE: u64 = 1 << 16;
/// Cycles over which slots of operations that go element by element are counted.
pub(super) const WINDOW: u64 = 64;

/// A fair share of the slots, with these demands.
pub(super) fn fair(demands: &mut [u64]) -> u64 {
    // Two are what there is most often.
    if let [one, other] = *demands {
        let (less, more) = (one.min(other), one.max(other));
        let rest = WHOLE - less.min(WHOLE / 2);
        return if more > rest { rest } else { WHOLE };
    }
    demands.sort_unstable();
    let (mut rest, mut count) = (WHOLE, demands.len() as u64);
    for &mut demand in demands {
        if demand * count > rest {
            break;
        }
        (rest, count) = (rest - demand, count - 1);
    }
    rest.checked_div(count).unwrap_or(WHOLE)
}

/// Microthreads that go element by element, beside stretches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    /// Slots that they took or would have taken since a cycle, and what part of all that was last
    /// time.
    wanted: u64,
    since: u64,
    rate: u64,
    /// What stretches use of the slots, and what of that has come together.
    used: u64,
    owed: u64,
}

impl Default for Steps {
    fn default() -> Steps {
        Steps { wanted: 0, since: 0, rate: WHOLE, used: 0, owed: 0 }
    }
}

impl Steps {
    /// One of them could take a slot; whether it does, and does not leave it to a stretch.
    pub(super) fn take(&mut self) -> bool {
        self.wanted += 1;
        self.owed += self.used;
        let takes = self.owed < WHOLE;
        if !takes {
            self.owed -= WHOLE;
        }
        takes
    }

    /// Whether they have been looked at for a while.
    pub(super) fn is_due(&self, t: u64) -> bool {
        t >= self.since + WINDOW
    }

    /// What each of so many asks for from cycle `t` on: all that it gets until they have been looked
    /// at, and if they take nearly all slots.
    pub(super) fn demand(&mut self, t: u64, count: u64) -> u64 {
        if count == 0 {
            *self = Steps { since: t, ..Steps::default() };
        } else if self.is_due(t) {
            self.rate = (self.wanted * WHOLE / (t - self.since)).min(WHOLE);
            (self.wanted, self.since) = (0, t);
        }
        if self.rate > WHOLE - WHOLE / 8 { WHOLE } else { self.rate / count.max(1) }
    }

    /// Whether they took slots when they were looked at last.
    pub(super) fn are_busy(&self) -> bool {
        self.rate != 0
    }

    /// Notes how they stand.
    pub(super) fn note(&self, noter: &mut Noter<'_>) {
        let Steps { wanted, since, rate, used, owed } = self;
        noter.value((rate, used, owed));
        noter.count(*since, *wanted, self.is_due(noter.now()));
    }

    /// They have gone on so far, since a cycle so much later.
    pub(super) fn put_off(&mut self, since: u64, wanted: u64) {
        self.since += since;
        self.wanted += wanted;
    }

    /// Stretches use so much of the slots.
    pub(super) fn share_with(&mut self, used: u64) {
        self.used = used.min(WHOLE);
    }

    /// An operation begins where there is none: nothing is owed to any.
    pub(super) fn begin(&mut self) {
        self.owed = 0;
    }
}

impl<C: Code> Region<C> {
    /// In cycle `t` of a visit to a core a stretch begins or ends: the slots are to be shared anew.
    pub(super) fn unshare(&mut self, core: &mut Core<C>, t: u64) {
        core.unshared = true;
        self.unshared_from = t;
    }

    /// Shares the slots of a core anew among those in a stretch, from cycle `t` on.
    pub(super) fn share(&mut self, core: &mut Core<C>, t: u64) {
        let on = core.stretches();
        (core.unshared, core.delayed) = (false, false);
        let steppers = core.threads.steppers();
        if on.count_ones() == 1 && steppers == 0 {
            return self.share_alone(core, on.trailing_zeros() as usize, t);
        }
        let first = core.before_main();
        let (mut asked, mut uses) = ([0; COUNT + 1], [0; COUNT + 1]);
        let (mut demands, mut count) = ([0; 2 * COUNT + 1], 0);
        for id in bits(on) {
            let Some(op) = core.streamed(id) else { continue };
            op.stretch.settle(t);
            // Those of high priority have their slots whatever others do.
            let is_first = first.contains(&op.priority);
            let pace = if is_first { WHOLE } else { self.pace_of_places(&mut op.stretch, t) };
            let demand = op.stretch.demand();
            (asked[id], uses[id]) = (demand, demand.min(pace));
            if demand != 0 {
                demands[count] = uses[id];
                count += 1;
            }
        }
        let each = core.steps.demand(t, steppers);
        let all = count + steppers as usize;
        demands[count..all].fill(each);
        let fair = if all == 1 { WHOLE } else { fair(&mut demands[..all]) };
        let mut used = 0;
        for id in bits(on) {
            let Some(op) = core.streamed(id) else { continue };
            let rate = op.stretch.rate;
            let until = op.stretch.go(asked[id], fair);
            used += op.stretch.used().min(uses[id]);
            if op.stretch.rate != rate {
                self.bend(&op.stretch, t);
            }
            self.set_pace(&op.stretch, t, fair);
            self.set_end(t, &mut op.stretch, until);
        }
        core.steps.share_with(used);
    }

    /// The only stretch of a core, beside which nobody takes slots, has all that it can use.
    fn share_alone(&mut self, core: &mut Core<C>, id: usize, t: u64) {
        core.steps.demand(t, 0);
        let Some(op) = core.streamed(id) else { return };
        op.stretch.settle(t);
        let rate = op.stretch.rate;
        let until = op.stretch.go(op.stretch.demand(), WHOLE);
        let used = op.stretch.used();
        if op.stretch.rate != rate {
            self.bend(&op.stretch, t);
        }
        self.set_pace(&op.stretch, t, WHOLE);
        self.set_end(t, &mut op.stretch, until);
        core.steps.share_with(used);
    }

    /// The words that a stretch takes and sends are spaced otherwise from cycle `t` on; what it has left goes on
    /// from its mark.
    pub(super) fn bend(&mut self, stretch: &Stretch, t: u64) {
        let left = stretch.left.div_ceil(PARTS);
        for words in stretch.inputs.iter().flatten() {
            self.pipes[words.pipe() as usize].drain_rest(words.end, left, stretch.mark);
        }
        if let Some(words) = &stretch.output {
            let pipe = words.pipe();
            if !self.bend_abroad(pipe, (words.end, left), (t, stretch.mark)) {
                self.retime_each(pipe, |pipe| pipe.bend(words.end, left, t, stretch.mark));
            }
        }
    }

    /// The end of a stretch is known anew in cycle `t`.
    pub(super) fn set_end(&mut self, t: u64, stretch: &mut Stretch, until: u64) {
        let before = stretch.until;
        self.drain_until(stretch, until);
        if let Some(words) = &stretch.output
            && until != WAITS
            && until != before
        {
            let id = words.pipe();
            if stretch.left != 0 {
                self.load(id, until, stretch.rate);
            }
            let sooner = until + SOONER < before;
            let later = is_later(before, until);
            if self.retime_abroad(id, words.end, until, sooner || later) {
                return;
            }
            let mut before = 0;
            while let Some(id) = self.pipe_at(id, before) {
                let pipe = &mut self.pipes[id as usize];
                pipe.retime(words.end, until);
                self.wakes.retimed(pipe.route().dest);
                if sooner {
                    let (dest, queue) = (pipe.route().dest, pipe.route().queue);
                    let from = self.hears_from(dest, queue).max(self.now + 1);
                    self.wakes.core(dest, from.max(t + 1));
                } else if later {
                    let dest = pipe.route().dest;
                    self.look_at_shares(dest, t);
                }
                before += 1;
            }
        }
    }

    /// Likewise, of one whose words have all left it but for those that wait for places: they are their taker's when
    /// it makes these.
    pub(super) fn put_off_end(&mut self, t: u64, stretch: &mut Stretch, until: u64) {
        let several = |words: &Words| !self.pipes[words.pipe() as usize].others().is_empty();
        match stretch.output.as_ref().is_some_and(several) {
            true => self.set_end(t, stretch, until),
            false => self.drain_until(stretch, until),
        }
    }

    /// A stretch ends in a cycle, and has taken its words by then.
    fn drain_until(&mut self, stretch: &mut Stretch, until: u64) {
        let before = std::mem::replace(&mut stretch.until, until);
        let sooner = before != WAITS && until + SOONER < before;
        // What waits has taken its words all the same; until when is found out with its end.
        for words in stretch.inputs.iter().flatten().filter(|_| until != WAITS) {
            let pipe = &mut self.pipes[words.pipe() as usize];
            pipe.redrain(words.end, until);
            let route = pipe.route();
            if !self.tell_sender(words.pipe(), None) && sooner && route.entry == RAMP {
                // It may wait for the last of its places.
                self.wakes.core(route.source, self.now + 1);
            }
        }
    }

    /// The main thread uses all slots of some cycles from `t` on, and `count` times in all, `period` cycles
    /// later each.
    pub(super) fn delay(
        &mut self,
        core: &mut Core<C>,
        (t, period): (u64, u64),
        count: u64,
        cycles: u64,
    ) {
        let on = core.stretches();
        if on == 0 {
            return;
        }
        if core.unshared {
            // Before code of the main thread has slots.
            self.share(core, self.unshared_from.saturating_sub(1).min(t));
        }
        let first = core.before_main();
        for t in (0..count).map(|time| t + time * period) {
            let mut used = 0;
            for id in bits(on) {
                used += core.streamed(id).map_or(0, |op| op.stretch.used());
            }
            let spare = WHOLE.saturating_sub(used);
            let mut delayed = false;
            for id in bits(on) {
                let Some(op) = core.streamed(id) else { continue };
                if op.stretch.left != 0 && !first.contains(&op.priority) {
                    op.stretch.delay(t, cycles, spare);
                    self.bend(&op.stretch, t.saturating_sub(1));
                    delayed = true;
                }
            }
            if !delayed {
                // Nor are they from now on.
                return;
            }
            core.delayed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Steps, WHOLE, WINDOW, fair};

    #[test]
    fn what_one_does_not_need_goes_to_the_others() {
        assert_eq!(fair(&mut [WHOLE, WHOLE]), WHOLE / 2);
        assert_eq!(fair(&mut [WHOLE, WHOLE / 4, 0]), WHOLE * 3 / 4);
    }

    #[test]
    fn those_that_wait_for_words_ask_for_what_they_took() {
        let mut steps = Steps::default();
        assert_eq!(steps.demand(0, 2), WHOLE);
        for _ in 0..WINDOW / 2 {
            assert!(steps.take());
        }
        assert_eq!(steps.demand(WINDOW, 2), WHOLE / 4);
        assert_eq!(steps.demand(2 * WINDOW, 2), 0);
        assert!(!steps.are_busy());
    }

    #[test]
    fn stretches_keep_their_slots() {
        let mut steps = Steps::default();
        steps.share_with(WHOLE / 4);
        let taken = (0..100).filter(|_| steps.take()).count();
        assert_eq!(taken, 75);
    }
}
