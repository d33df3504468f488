//! Watching a core for some cycles: whether its state is, after a period, what it was before.

use super::{CALM, IN_VAIN, LONGEST};
use crate::fabric::channel::{Channel, Outlet};
use crate::fabric::pattern::Pattern;
use crate::fabric::ring::NEVER;
use crate::pe::code::Code;
use crate::pe::core::{Core, bits};
use crate::pe::main::Main;
use crate::pe::op::{Ends, Op};
use crate::sched::plan::Plan;
use crate::sched::region::Region;

/// What comes of a look at a core: it is watched on, it takes turns, or neither.
enum Look {
    On,
    Turns,
    InVain,
}

/// What the state of a core is before a cycle, as far as what it does depends on it; with stamps from there.
#[derive(Debug, Default)]
struct Noted {
    /// Whose turn it is, what comes to it, and how many words wait to leave.
    core: Vec<u32>,
    /// Of its output queues, with the queue; and of channels from it, with the channel.
    outputs: Vec<(u8, u32)>,
    places: Vec<(u32, u32)>,
}

/// What a core did since a cycle.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(super) since: u64,
    /// The microthread that had the last slot before, and what the state was then.
    last: u8,
    before: Noted,
    now: Noted,
    /// The last cycle in which it was looked at.
    pub(super) cycle: u64,
    /// Slots with the microthread, words up with the queue, words down with the channel and the cycle in which
    /// they had gone up.
    pub(super) slots: Vec<(u64, u8)>,
    pub(super) ups: Vec<(u64, u8)>,
    pub(super) downs: Vec<(u64, u32, u64)>,
    /// Queues whose words waited for places, as bits.
    pub(super) blocked: u64,
}

impl Noted {
    fn clear(&mut self) {
        self.core.clear();
        self.outputs.clear();
        self.places.clear();
    }
}

impl Watch {
    /// From a cycle on a core is watched.
    fn begin(&mut self, since: u64, last: u8) {
        (self.since, self.cycle, self.last, self.blocked) = (since, since, last, 0);
        self.slots.clear();
        self.ups.clear();
        self.downs.clear();
    }

    /// Whether the state is what it was. Queues of which no word went up do not matter: their heads wait for
    /// places of which they are told (`are_blocked`).
    fn is_back(&self) -> bool {
        let goes = self.ups.iter().fold(0_u64, |all, &(_, queue)| all | 1 << queue);
        let [before, now] = [&self.before, &self.now]
            .map(|noted| noted.outputs.iter().filter(|&&(queue, _)| goes >> queue & 1 != 0));
        self.before.core == self.now.core && before.eq(now)
    }

    pub(in crate::pe) fn slot(&mut self, cycle: u64, thread: u8) {
        self.slots.push((cycle, thread));
    }

    pub(in crate::pe) fn up(&mut self, cycle: u64, queue: usize) {
        self.ups.push((cycle, queue as u8));
    }

    pub(crate) fn down(&mut self, cycle: u64, channel: u32, up: u64) {
        self.downs.push((cycle, channel, up));
    }

    /// When words of a channel have to go down, whose places are waited for, if `count` of them come and go in
    /// the period of the core.
    pub(super) fn downs_of(&self, channel: &Channel, id: u32, count: usize) -> Option<Pattern> {
        let [before, now] = [&self.before, &self.now]
            .map(|noted| noted.places.iter().filter(|place| place.0 == id));
        let period = self.cycle - self.since;
        let gone: Vec<u64> = channel.gone_before(self.cycle).collect();
        let (last, same) = (*gone.first()?, before.eq(now));
        let mut downs = if gone.get(count).is_some_and(|gone| gone + period == last) {
            Pattern::new(gone[..count].iter().rev().map(|gone| gone + period), period)?
        } else {
            // More than are remembered: one as the other.
            let gap = period / count as u64;
            let even = gone.windows(2).all(|pair| pair[1] + gap == pair[0]);
            let whole = gap * count as u64 == period && gone.len() > 1;
            Pattern::new((even && whole).then_some(last + gap), gap)?
        };
        let latest = channel.last_gone();
        if latest >= self.cycle {
            // It has gone down in this cycle already.
            (downs.next() == latest).then(|| downs.advance())?;
        }
        (same && downs.next() >= self.cycle).then_some(downs)
    }

    /// The head of a queue waits for a place.
    pub(in crate::pe) fn note_wait(&mut self, queue: usize) {
        self.blocked |= 1 << queue;
    }
}

impl<C: Code> Core<C> {
    /// Whether it does nothing but calm cycles until an operation ends or something comes to it.
    fn may_take_turns(&self, code: &C) -> bool {
        let idle = match &self.main {
            Main::Idle => self.activated & !self.task_blocked == 0,
            Main::Launch(op) => !self.threads.is_free(op.microthread),
            Main::Ready { .. } | Main::Counting { .. } | Main::Vector(_) => false,
        };
        let quiet = self.due.is_empty()
            && self.bound.are_planned()
            && !self.registers.tears()
            && !self.is_flushing()
            && self.sight.controls == 0
            && code.is_calm(&self.state);
        let running = self.threads.calm().map_or(0, |all| all & !self.thread_blocked);
        idle && quiet
            && running != 0
            && bits(running)
                .all(|id| self.threads.get(id as u8).is_some_and(|op| op.is_one_way(code)))
    }

    /// Its state before cycle `now`.
    fn note_state(&self, now: u64, into: &mut Noted) {
        into.core.push(self.last_thread.into());
        for input in bits(self.open_inputs()) {
            let ring = &self.inputs[input].ring;
            // Of words that are in view it does not matter since when.
            into.core.push(ring.len() as u32);
            into.core.extend(ring.words().map(|word| relative(word.stamp.max(now), now)));
            into.core.extend(ring.to_come(now).map(|stamp| relative(stamp, now)));
        }
        for (queue, output) in self.outputs.iter() {
            let ring = &output.ring;
            into.core.push(ring.len() as u32);
            let stamps = ring.words().map(|word| word.stamp).chain(ring.to_come(now));
            into.outputs.extend(stamps.map(|stamp| (queue as u8, relative(stamp, now))));
        }
    }

    /// Whether no word comes into a queue, which is full and read by nobody.
    pub(super) fn is_closed(&self, queue: Option<u8>) -> bool {
        let Some(queue) = queue.map(usize::from) else { return false };
        self.owned_in >> queue & 1 == 0 && self.inputs[queue].ring.is_full()
    }

    /// Input queues that words have come into, as bits.
    fn open_inputs(&self) -> u64 {
        let open = self.inputs.iter().enumerate().filter(|(_, input)| input.ring.is_open());
        open.fold(0, |all, (at, _)| all | 1 << at)
    }
}

impl<O> Op<O> {
    /// Whether its elements are words from memory into a queue, or from a queue into memory, and no more.
    fn is_one_way<C: Code<Op = O>>(&self, code: &C) -> bool {
        let Ends { output, .. } = self.ends;
        let ways = self.ends.inputs().len() + usize::from(output.is_some());
        ways == 1 && self.is_plain() && code.is_plain(&self.code) && !self.commands() && !self.ended
    }
}

/// A stamp as it is seen from cycle `now`.
fn relative(stamp: u64, now: u64) -> u32 {
    if stamp == NEVER { u32::MAX } else { (stamp as u32).wrapping_sub(now as u32) }
}

impl<C: Code> Region<C> {
    /// A core that is about to be visited in cycle `now`, and was calm of late, is watched, and takes turns if
    /// that is known by now.
    pub(in crate::pe) fn take_turns(&mut self, plan: &Plan, code: &C, pe: u32, now: u64) -> bool {
        let Some(core) = self.cores[pe as usize].as_deref_mut() else { return false };
        if let Some(watch) = &core.watched
            && now < watch.since + LONGEST
            && core.last_thread != watch.last
        {
            return false;
        }
        let last = core.last_thread;
        let mut watch = core.watched.take().unwrap_or_else(|| {
            let mut watch = self.watches.pop().unwrap_or_default();
            watch.begin(now, last);
            watch
        });
        let look = self.look_at_turns(plan, code, (pe, &mut watch), now);
        let Some(core) = self.cores[pe as usize].as_deref_mut() else { return false };
        match look {
            Look::On => {
                (core.watched, core.calm_visits) = (Some(watch), u8::MAX);
                return false;
            }
            Look::Turns => (core.calm_visits, core.patience) = (0, CALM),
            Look::InVain => (core.calm_visits, core.patience) = (0, IN_VAIN),
        }
        self.watches.push(watch);
        matches!(look, Look::Turns)
    }

    /// What comes of a look at a core that is watched.
    fn look_at_turns(
        &mut self,
        plan: &Plan,
        code: &C,
        (pe, watch): (u32, &mut Watch),
        now: u64,
    ) -> Look {
        let Some(core) = self.cores[pe as usize].as_deref() else { return Look::InVain };
        let lasts = now - watch.since <= LONGEST;
        let may = core.until <= now && now != 0 && lasts && core.may_take_turns(code);
        let usual = !self.flow && self.watch.to_mesh == 0 && !plan.track && self.cuts.is_empty();
        if !may || !usual || !self.is_quiet(pe) {
            return Look::InVain;
        }
        self.catch_up_ends(plan, code, pe, now);
        self.descend(plan, code, pe, now - 1);
        self.descend_ahead(plan, code, pe, now - 1);
        if watch.since == now {
            self.note(pe, now, &mut watch.before);
            return Look::On;
        }
        watch.cycle = now;
        self.note(pe, now, &mut watch.now);
        if !watch.is_back() {
            return Look::On;
        }
        match self.begin_turns(plan, code, pe, now, watch) {
            Some(()) => Look::Turns,
            None => Look::InVain,
        }
    }

    /// Whether nothing comes to a core but words of channels whose senders are not steady.
    fn is_quiet(&self, pe: u32) -> bool {
        let busy = self.routers[pe as usize].as_deref().is_some_and(|router| router.is_busy());
        !busy && self.landings.get(pe as usize).is_some_and(|landing| landing.links == 0)
    }

    /// The channels that begin at a core.
    fn channels_from(&self, pe: u32) -> impl Iterator<Item = u32> {
        let core = self.cores[pe as usize].as_deref();
        let outlets = core.into_iter().flat_map(|core| core.outlets.iter());
        outlets.filter_map(|(_, outlet)| match outlet {
            Outlet::Channel(id) => Some(*id),
            Outlet::Unknown
            | Outlet::Routers(_)
            | Outlet::Pipe(_)
            | Outlet::Closing(_)
            | Outlet::Gathered(_)
            | Outlet::Merged(_) => None,
        })
    }

    /// Brings all channels from a core and to it to where they stand before cycle `t`.
    fn catch_up_ends(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) {
        let to = self.landings.get(pe as usize).into_iter().flat_map(|landing| landing.channels());
        let from = self.channels_from(pe);
        let turning = |id: &u32| self.channels[*id as usize].rhythm.is_some();
        let ids: Vec<u32> = to.chain(from).filter(turning).collect();
        for id in ids {
            self.catch_up(plan, code, id, t);
        }
    }

    /// Words of channels from a core go down the ramp in all cycles up to `t`, so that their places are known.
    fn descend_ahead(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) {
        let dest = |id: u32| self.channels[id as usize].route().dest;
        let dests: Vec<u32> = self.channels_from(pe).map(dest).collect();
        for dest in dests.into_iter().filter(|&dest| dest != pe) {
            self.descend(plan, code, dest, t);
        }
    }

    /// The state of a core, of the words on their way to it and of the places for its own before cycle `now`.
    fn note(&self, pe: u32, now: u64, into: &mut Noted) {
        into.clear();
        let core = self.cores[pe as usize].as_deref();
        let Some((core, landing)) = core.zip(self.landings.get(pe as usize)) else { return };
        core.note_state(now, into);
        let Noted { core: noted, places, .. } = into;
        // Others may have had words go down in this cycle already.
        noted.push(u32::from(landing.is_at(now)));
        for id in landing.channels() {
            let channel = &self.channels[id as usize];
            if core.is_closed(channel.route().queue) {
                continue;
            }
            // Senders may be ahead.
            let ups = channel.ups().take_while(|&up| up < now);
            let before = noted.len();
            noted.extend(ups.map(|up| relative(up, now)));
            noted.push((noted.len() - before) as u32);
            noted.push(relative(channel.linked().max(now), now));
        }
        for id in self.channels_from(pe) {
            let channel = &self.channels[id as usize];
            let left = relative(channel.gone_before(now).next().unwrap_or(0), now);
            places.extend([(id, channel.held_before(now) as u32), (id, left)]);
            places.extend(channel.places_to_come(now).map(|stamp| (id, relative(stamp, now))));
        }
    }
}
