//! Links that several pipes use: what is on each, and how that slows stretches down.
//!
//! The words of a stretch are on the links of its pipe while it lasts. Those that have no place when
//! they are sent are on them when the operation at the end of the pipe takes others: then it is that
//! one's stretch that links slow down. Words that meet on a link share its cycles, as a router
//! grants them in turn: a stretch that begins is slowed by those that are there, and slows
//! them.

use super::{Load, Slowed, WAITS};
use crate::fabric::router::RAMP;
use crate::pe::code::Code;
use crate::pe::core::{Core, bits};
use crate::pe::share::{WHOLE, fair};
use crate::sched::plan::Plan;
use crate::sched::region::Region;

/// Words that begin to pass a link beside others: how many, since when, and their rate if nothing slows them down.
#[derive(Clone, Copy, Debug)]
struct Words {
    t: u64,
    count: u64,
    rate: u64,
}

/// Words on a link that others leave a share of it: from when on, and until when.
#[derive(Clone, Copy, Debug)]
struct Late {
    user: Load,
    from: u64,
    share: Slowed,
}

impl Late {
    /// By how many cycles those at a rate are late for that.
    fn cycles(&self, rate: u64) -> u64 {
        let Slowed { until, rate: share } = self.share;
        // Where they go slowly already they leave cycles free.
        let slow = self.user.slowed.until.clamp(self.from, until) - self.from;
        let missed = |cycles: u64, rate: u64| cycles * rate.saturating_sub(share);
        let rest = until - self.from - slow;
        (missed(slow, rate.min(self.user.slowed.rate)) + missed(rest, rate)) / rate.max(1)
    }
}

impl Words {
    /// In which cycle the last of them passes a link, beside its users; these, as far as they are late for that.
    fn meet(self, users: &[Load]) -> (u64, Vec<Late>) {
        let Words { t, count, rate } = self;
        let mut demands: Vec<u64> = users.iter().map(|user| user.rate).collect();
        let used = demands.iter().sum::<u64>().max(WHOLE);
        demands.push(rate);
        let share = fair(&mut demands);
        let own = rate.min(share).max(1);
        // What users have left takes them so long beside one more.
        let slower = move |user: &Load| {
            let left = (user.until - t) * user.rate / used;
            t + left * WHOLE / user.rate.min(share).max(1)
        };
        let last = users.iter().map(slower).max().unwrap_or(t);
        // Elements that pass beside the others; the rest goes alone.
        let beside = ((last - t) * own / WHOLE).min(count - 1);
        let end = t + (beside + 1) * WHOLE / own;
        let slowed = users.iter().filter(move |user| user.rate > share);
        let late = slowed.map(move |user| {
            let share = Slowed { until: end.min(slower(user)), rate: share };
            Late { user: *user, from: t, share }
        });
        let last = t + beside * WHOLE / own + (count - 1 - beside) * WHOLE / rate;
        (last, late.collect())
    }
}

impl<C: Code> Core<C> {
    /// Who is in a stretch that sends words to a pipe.
    fn sends_to(&mut self, id: u32) -> Option<usize> {
        let mut on = bits(self.stretches());
        on.find(|&at| {
            let sends = self.streamed(at).map(|op| op.stretch);
            let sends = sends.filter(|it| it.left != 0 && it.until != WAITS);
            sends.and_then(|it| it.output).is_some_and(|words| words.pipe() == id)
        })
    }

    /// Who is in a stretch that takes words of a pipe.
    fn takes_from(&mut self, id: u32) -> Option<usize> {
        let mut on = bits(self.stretches());
        on.find(|&at| {
            let inputs = self.streamed(at).map(|op| op.stretch.inputs);
            inputs.into_iter().flatten().flatten().any(|words| words.pipe() == id)
        })
    }
}

impl<C: Code> Region<C> {
    /// Before which cycle `count` words that leave from cycle `t` on, the last one not before `bound`, cannot all
    /// have passed the busiest link of a pipe, beside the words of others; these are slowed down as well.
    pub(super) fn slowed(&mut self, id: u32, (t, count): (u64, u64), bound: u64) -> u64 {
        let pipe = &self.pipes[id as usize];
        if count < 2 || pipe.shared().is_empty() {
            return 0;
        }
        let passing = pipe.pass_at_once(count, t);
        if passing < 2 {
            return 0;
        }
        let cycles = bound.saturating_sub(t).max(count - 1);
        let rate = ((count - 1) * WHOLE / cycles).max(1);
        self.meet(id, Words { t, count: passing, rate })
    }

    /// Before which cycle an operation that takes `count` words of a pipe from cycle `t` on cannot have taken the
    /// last of them, if so many of those in the pipe had no place until then.
    pub(super) fn follow(
        &mut self,
        plan: &Plan,
        id: u32,
        (t, count): (u64, u64),
        waited: u64,
    ) -> u64 {
        let pipe = &self.pipes[id as usize];
        let Some(&link) = pipe.shared().first().filter(|_| waited > 1) else { return 0 };
        // The last of them passes a link when it can be taken, not when it leaves its operation.
        let down = pipe.transit() + plan.timing.ramp_down;
        let count = count.saturating_sub(down).max(waited.min(count));
        let mut users = self.loads[link as usize].iter();
        let on = users.find(|user| user.pipe == id && user.until > t);
        let (until, passing) = on.map_or((t, 0), |on| (on.until, (on.until - t) * on.rate / WHOLE));
        let count = count.saturating_sub(passing);
        if count < 2 {
            return 0;
        }
        self.meet(id, Words { t: until, count, rate: WHOLE }) + down
    }

    /// Words of a pipe meet those of others on its links; in which cycle the last of them passes.
    fn meet(&mut self, id: u32, words: Words) -> u64 {
        let Words { t, count, rate } = words;
        let (mut last, mut slowed) = (0, Vec::<Late>::new());
        for &link in self.pipes[id as usize].shared() {
            let users = &mut self.loads[link as usize];
            users.retain(|user| user.pipe != id && user.until > t);
            if users.is_empty() {
                continue;
            }
            let (passed, late) = words.meet(users);
            last = last.max(passed);
            for late in late {
                let cycles = late.cycles(late.user.rate);
                match slowed.iter_mut().find(|other| other.user.pipe == late.user.pipe) {
                    Some(most) if most.cycles(most.user.rate) < cycles => *most = late,
                    Some(_) => {}
                    None => slowed.push(late),
                }
            }
        }
        for late in slowed {
            let user = late.user;
            let cycles = self.slow_down(late);
            self.load(user.pipe, user.until + cycles, user.rate);
            self.note_slowed(user.pipe, late.share);
        }
        let until = last.max(t + (count - 1) * WHOLE / rate);
        self.load(id, until, (count - 1) * WHOLE / (until - t).max(1));
        last
    }

    /// The stretch that words on a link depend on takes as much longer as these are late; how much.
    fn slow_down(&mut self, late: Late) -> u64 {
        let id = late.user.pipe;
        let cycles = late.cycles(late.user.rate);
        let route = self.pipes[id as usize].route();
        if route.entry != RAMP {
            return cycles;
        }
        if let Some(cycles) = self.slow_one(route.source, late, |core| core.sends_to(id)) {
            return cycles;
        }
        let here = route.region == self.id;
        let taker = here.then(|| self.slow_one(route.dest, late, |core| core.takes_from(id)));
        taker.flatten().unwrap_or(cycles)
    }

    /// The stretch of a core that is found stands still for some cycles; for how many, if there is one. Nothing happens
    /// to a core that is out on a visit: its own words never meet on a link.
    fn slow_one(
        &mut self,
        pe: u32,
        late: Late,
        find: impl FnOnce(&mut Core<C>) -> Option<usize>,
    ) -> Option<u64> {
        let mut core = self.cores[pe as usize].take()?;
        let found = find(&mut core);
        // What passes later was to begin now all the same.
        let t = late.from.min(self.now);
        let slowed = found.and_then(|at| core.streamed(at)).map(|op| {
            // Where it is slower than its words could be these are, too.
            let cycles = late.cycles(op.stretch.rate);
            if cycles != 0 {
                op.stretch.settle(t);
                op.stretch.mark += cycles;
                self.bend(&op.stretch, t);
            }
            cycles
        });
        if slowed.is_some_and(|cycles| cycles != 0) {
            self.share(&mut core, t);
        }
        self.cores[pe as usize] = Some(core);
        slowed
    }

    /// Words of a pipe are on its links until a cycle, at a rate.
    pub(in crate::pe) fn load(&mut self, id: u32, until: u64, rate: u64) {
        for &link in self.pipes[id as usize].shared() {
            let users = &mut self.loads[link as usize];
            let mut slowed = Slowed::default();
            users.retain(|user| {
                if user.pipe == id {
                    slowed = user.slowed;
                }
                user.pipe != id
            });
            users.push(Load { pipe: id, until, rate, slowed });
        }
    }

    /// Words of a pipe go slowly on all of its links until a cycle.
    fn note_slowed(&mut self, id: u32, slowed: Slowed) {
        for &link in self.pipes[id as usize].shared() {
            let mut users = self.loads[link as usize].iter_mut();
            if let Some(user) = users.find(|user| user.pipe == id) {
                user.slowed = match user.slowed {
                    before if before.until > slowed.until && before.rate <= slowed.rate => before,
                    _ => slowed,
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Load, Slowed, WHOLE, Words};

    #[test]
    fn words_that_meet_have_every_other_cycle() {
        let slowed = Slowed::default();
        let user = Load { pipe: 1, until: 164, rate: WHOLE, slowed };
        let few = Words { t: 100, count: 32, rate: WHOLE };
        // One after the other with the user's, from its first word on.
        let (last, late) = few.meet(&[user]);
        assert_eq!((last, late.len(), late[0].cycles(WHOLE)), (162, 1, 32));
        // The user's words are through before: the rest goes alone.
        let many = Words { count: 100, ..few };
        let (last, late) = many.meet(&[user]);
        assert_eq!((last, late[0].cycles(WHOLE)), (100 + 128 + 35, 64));
    }

    #[test]
    fn who_goes_slowly_on_one_link_leaves_cycles_on_others() {
        let slowed = Slowed { until: 132, rate: WHOLE / 2 };
        let user = Load { pipe: 1, until: 164, rate: WHOLE, slowed };
        let (last, late) = Words { t: 100, count: 16, rate: WHOLE / 2 }.meet(&[user]);
        assert_eq!((last, late[0].cycles(WHOLE)), (130, 0));
        // Half of them meet it after that.
        let (_, late) = Words { t: 116, count: 16, rate: WHOLE / 2 }.meet(&[user]);
        assert_eq!(late[0].cycles(WHOLE), 8);
    }

    #[test]
    fn who_leaves_cycles_is_not_late() {
        let slowed = Slowed::default();
        let user = Load { pipe: 1, until: 164, rate: WHOLE / 4, slowed };
        let words = Words { t: 100, count: 10, rate: WHOLE / 2 };
        let (last, late) = words.meet(&[user]);
        assert_eq!((last, late.len()), (118, 0));
    }
}
