//! Watching a core for some cycles: whether its state is, after a period, what it was before.

use super::{CALM, CALMEST, LONGEST, OLD};
use crate::fabric::channel::{Channel, Outlet};
use crate::fabric::pattern::Pattern;
use crate::fabric::ring::{NEVER, Ring};
use crate::pe::code::Code;
use crate::pe::core::{Core, bits};
use crate::pe::main::Main;
use crate::pe::op::{Ends, Op};
use crate::sched::plan::Plan;
use crate::sched::region::Region;

/// What comes of a look at a core: it is watched on, it takes turns, or neither.
enum Look {
    On(Box<Watch>),
    Turns,
    InVain,
}

/// What a core did since a cycle.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(super) since: u64,
    /// The microthread that had the last slot before, and what its state was then.
    last: u8,
    before: Vec<u32>,
    now: Vec<u32>,
    /// Likewise of the places of channels from it; and the last cycle in which it was looked at.
    places: [Vec<(u32, Vec<u32>)>; 2],
    pub(super) cycle: u64,
    /// Slots with the microthread, words up with the queue, words down with the channel and the cycle in which
    /// they had gone up.
    pub(super) slots: Vec<(u64, u8)>,
    pub(super) ups: Vec<(u64, u8)>,
    pub(super) downs: Vec<(u64, u32, u64)>,
    /// Queues whose words waited for places, as bits.
    pub(super) blocked: u64,
}

impl Watch {
    fn new(since: u64, last: u8) -> Watch {
        Watch {
            since,
            last,
            before: Vec::new(),
            now: Vec::new(),
            places: Default::default(),
            cycle: since,
            slots: Vec::new(),
            ups: Vec::new(),
            downs: Vec::new(),
            blocked: 0,
        }
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
        let [before, now] = [&self.places[0], &self.places[1]];
        let of = |places: &[(u32, Vec<u32>)]| places.iter().position(|it| it.0 == id);
        let period = self.cycle - self.since;
        let gone: Vec<u64> = channel.gone_before(self.cycle).collect();
        let (last, same) = (*gone.first()?, before[of(before)?] == now[of(now)?]);
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
    pub(in crate::pe) fn wait(&mut self, queue: usize) {
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

    /// Its state before cycle `now` as far as what it does depends on it, with stamps from there.
    fn note_state(&self, now: u64, into: &mut Vec<u32>) {
        into.push(self.last_thread.into());
        for input in bits(self.open_inputs()) {
            // Of words that are in view it does not matter since when.
            note_ring(&self.inputs[input].ring, (now, 0), into);
        }
        for (_, output) in self.outputs.iter() {
            // The oldest goes first. Those that do not go at all are older than all that do.
            note_ring(&output.ring, (now, OLD), into);
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

/// Words that are `old` or older look alike.
fn note_ring(ring: &Ring, (now, old): (u64, u64), into: &mut Vec<u32>) {
    into.push(ring.len() as u32);
    into.extend(ring.words().map(|word| relative((word.stamp + old).max(now), now)));
    into.extend(ring.to_come(now).map(|stamp| relative(stamp, now)));
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
        let watched = core.watched.take();
        let watch = self.look_at_turns(plan, code, (pe, watched), now);
        let Some(core) = self.cores[pe as usize].as_deref_mut() else { return false };
        match watch {
            Look::On(watch) => (core.watched, core.calm_visits) = (Some(watch), u8::MAX),
            Look::Turns => (core.calm_visits, core.patience) = (0, CALM),
            Look::InVain => {
                core.calm_visits = 0;
                core.patience = core.patience.saturating_mul(2).min(CALMEST);
            }
        }
        core.takes_turns()
    }

    /// What comes of a look at a core that may be watched.
    fn look_at_turns(
        &mut self,
        plan: &Plan,
        code: &C,
        (pe, watched): (u32, Option<Box<Watch>>),
        now: u64,
    ) -> Look {
        let Some(core) = self.cores[pe as usize].as_deref() else { return Look::InVain };
        let lasts = watched.as_ref().is_none_or(|it| now - it.since <= LONGEST);
        let may = core.until == now && now != 0 && lasts && core.may_take_turns(code);
        let last = core.last_thread;
        let usual = !self.flow && self.watch.to_mesh == 0 && !plan.track && self.cuts.is_empty();
        if !may || !usual || !self.is_quiet(pe) {
            return Look::InVain;
        }
        let mut watch = watched.unwrap_or_else(|| Box::new(Watch::new(now, last)));
        self.catch_up_ends(plan, code, pe, now);
        self.descend(plan, code, pe, now - 1);
        self.descend_ahead(plan, code, pe, now - 1);
        watch.now.clear();
        if self.note_state(pe, now, &mut watch.now).is_none() {
            return Look::InVain;
        }
        watch.cycle = now;
        watch.places[usize::from(watch.since != now)] = self.note_places(pe, now);
        if watch.since == now {
            std::mem::swap(&mut watch.now, &mut watch.before);
        } else if watch.now == watch.before {
            let begun = self.begin_turns(plan, code, pe, now, &watch);
            return if begun.is_some() { Look::Turns } else { Look::InVain };
        }
        Look::On(watch)
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
            | Outlet::Gathered(_) => None,
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

    /// The state of a core and of the words on their way to it before cycle `now`.
    fn note_state(&self, pe: u32, now: u64, into: &mut Vec<u32>) -> Option<()> {
        let core = self.cores[pe as usize].as_deref()?;
        core.note_state(now, into);
        let landing = self.landings.get(pe as usize)?;
        // Others may have had words go down in this cycle already.
        into.push(u32::from(landing.is_at(now)));
        for id in landing.channels() {
            let channel = &self.channels[id as usize];
            if core.is_closed(channel.route().queue) {
                continue;
            }
            // Senders may be ahead.
            let ups = channel.ups().take_while(|&up| up < now);
            let before = into.len();
            into.extend(ups.map(|up| relative(up, now)));
            into.push((into.len() - before) as u32);
            into.push(relative(channel.linked().max(now), now));
        }
        Some(())
    }

    /// The places of channels from a core before cycle `now`, with cycles from there.
    fn note_places(&self, pe: u32, now: u64) -> Vec<(u32, Vec<u32>)> {
        let note = |id: u32| {
            let channel = &self.channels[id as usize];
            let mut noted = vec![channel.held_before(now) as u32];
            noted.push(relative(channel.gone_before(now).next().unwrap_or(0), now));
            noted.extend(channel.places_to_come(now).map(|stamp| relative(stamp, now)));
            (id, noted)
        };
        self.channels_from(pe).map(note).collect()
    }
}
