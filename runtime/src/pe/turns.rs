//! Cores that take turns: microthreads move words from memory into channels and from channels into
//! memory, each always in the same cycles of a period. Nobody looks at them.
//!
//! A core that does nothing but calm cycles is watched for some of them (`watch`). What it does in a cycle
//! follows from its own state (queues, and whose turn it is), the words that stand in channels to it, and
//! those that come. So if its state is after some cycles what it was before, but for stamps that are as
//! many cycles later, it does the same from there on, as long as words come at the same distances and
//! those that it sends find places. That is foreseen, and held against what happens:
//!
//! - A word of a sender that does not take turns goes up in the cycle in which it has to, else the core
//!   is visited again after that cycle ([`Region::hold`]); its absence is seen before it could have come down.
//! - Words that go to a core that does not take turns find places as long as there are some. When there are no
//!   more as far as is known, and before the last element of an operation, the core is looked at
//!   (`horizon`).
//! - Words that wait for places go up when these are free, as is foreseen where the other end takes turns or
//!   makes them at the same distances. A place that comes early is seen by looking there (`horizon`).
//!   Where it is not known when one comes, whoever makes it tells ([`Region::end_turns`]).
//! - Where the other end takes turns too it does what is foreseen by itself.
//!
//! What a core does is done when somebody wants to know, per channel (`fabric::rhythm`).
//!
//! Invariants: operations of a core that takes turns have nothing to do with each other (`are_apart`), and each
//! has a channel for itself; no other words come to it: all other channels to it are empty or end in full
//! queues, and its router is empty.

mod events;
mod watch;

pub(crate) use watch::Watch;

use super::code::Code;
use super::core::{Core, Sight, bits};
use super::op::{Ends, Output};
use crate::fabric::channel::Outlet;
use crate::fabric::pattern::{LONGEST, Pattern, next_of};
use crate::fabric::rhythm::{Beat, Rhythm};
use crate::fabric::ring::NEVER;
use crate::sched::plan::Plan;
use crate::sched::region::Region;

/// Calm visits in a row before a core is watched, and where that was in vain: no more than that, as cores that drift
/// against each other have little time for turns.
pub(super) const CALM: u8 = 6;
const IN_VAIN: u8 = 12;
/// Periods that are foreseen at least.
const LEAST: u64 = 3;

/// A core that takes turns.
#[derive(Debug)]
pub(crate) struct Turns {
    /// It is looked at then.
    horizon: u64,
    /// It takes no more turns from then on.
    end: u64,
    /// What its microthreads do.
    turns: Box<[Turn]>,
}

/// What a microthread does with a channel.
#[derive(Clone, Copy, Debug)]
struct Turn {
    channel: u32,
    sends: bool,
    beat: Beat,
    /// When words have to go up, if they come from elsewhere.
    expected: Option<Pattern>,
    /// When words have to go down, if those that go up wait for places.
    down: Option<Pattern>,
    /// Up to then all is as foreseen.
    sure: u64,
}

/// The only one of some, if there is one.
fn only<T>(mut of: impl Iterator<Item = T>) -> Option<T> {
    let first = of.next()?;
    of.next().is_none().then_some(first)
}

impl<C: Code> Core<C> {
    /// Whether nobody looks at what it does in its turns.
    pub(crate) fn takes_turns(&self) -> bool {
        self.in_turn.is_some()
    }
}

impl<C: Code> Region<C> {
    /// A core whose state is what it was takes turns, if all that its microthreads do is to move words.
    fn begin_turns(
        &mut self,
        plan: &Plan,
        code: &C,
        pe: u32,
        now: u64,
        watch: &Watch,
    ) -> Option<()> {
        let period = now - watch.since;
        let core = self.cores[pe as usize].as_deref()?;
        let running = core.threads.calm()? & !core.thread_blocked;
        let mut turns = Vec::with_capacity(running.count_ones() as usize);
        for id in bits(running) {
            if watch.slots.iter().any(|&(_, thread)| usize::from(thread) == id) {
                turns.push(self.turn_of(pe, id as u8, period, watch)?);
            }
        }
        // What goes by the ramps is theirs, and nothing else is on its way.
        let passed = turns.iter().map(|turn| turn.beat.ramp.among(period)).sum::<u64>() as usize;
        let all = watch.ups.len() + watch.downs.len() == passed;
        let is_one = |at: usize| turns[..at].iter().all(|it| it.channel != turns[at].channel);
        let own = (0..turns.len()).all(is_one);
        let taken = |id: u32| turns.iter().any(|turn| turn.channel == id && !turn.sends);
        let is_still = |id: u32| {
            let channel = &self.channels[id as usize];
            let closed = channel.is_empty() || core.is_closed(channel.route().queue);
            closed && channel.rhythm.is_none()
        };
        let still = self.landings[pe as usize].channels().all(|id| taken(id) || is_still(id));
        if !all || !own || turns.is_empty() || !still {
            return None;
        }
        let ops: Vec<&C::Op> =
            bits(running).filter_map(|id| Some(&core.threads.get(id as u8)?.code)).collect();
        if !code.are_apart(&ops) {
            return None;
        }
        for turn in &mut turns {
            self.agrees(turn, now)?;
        }
        self.are_blocked(plan, code, pe, &turns)?;
        for turn in &mut turns {
            turn.sure = self.sure_until(plan, code, (pe, turn), now);
        }
        let horizon = turns.iter().map(|turn| turn.sure).min()?;
        let last = turns.iter().map(|it| self.last_of(code, pe, &it.beat, now)).min();
        // Operations without end may never be looked at.
        if horizon <= now || horizon == NEVER || last < Some(now + LEAST * period) {
            return None;
        }
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Turns);
        for turn in &turns {
            self.join_rhythm(plan, turn);
        }
        self.wakes.end(pe, horizon);
        let landing = &mut self.landings[pe as usize];
        (landing.awake, landing.in_turn) = (false, true);
        self.turning += 1;
        let turns = Turns { horizon, end: NEVER, turns: turns.into() };
        self.cores[pe as usize].as_deref_mut()?.in_turn = Some(Box::new(turns));
        Some(())
    }

    /// Whether words that did not go up wait for places of which nobody knows, and are told.
    fn are_blocked(&mut self, plan: &Plan, code: &C, pe: u32, turns: &[Turn]) -> Option<()> {
        let core = self.cores[pe as usize].as_deref()?;
        let sent =
            turns.iter().filter(|turn| turn.sends).fold(0, |all, it| all | 1 << it.beat.queue);
        let mut waiting = Vec::new();
        for queue in bits(core.leaving & !sent) {
            let color = core.outputs[queue].ring.head()?.color;
            let Outlet::Channel(id) = core.outlet(color) else { return None };
            if turns.iter().any(|turn| turn.channel == id) {
                return None;
            }
            waiting.push(id);
        }
        for id in waiting {
            self.want(plan, code, id);
            if self.channels[id as usize].free_from() != NEVER {
                return None;
            }
        }
        Some(())
    }

    /// A word of a core that may take turns finds a place in a cycle, for which it waited: it is visited then.
    pub(crate) fn end_turns(&mut self, pe: u32, at: u64) {
        if let Some(turns) = self.turns_of(pe) {
            turns.end = turns.end.min(at);
        }
    }

    /// What a microthread does in a period that is over, if each of its elements is a word.
    fn turn_of(&self, pe: u32, thread: u8, period: u64, watch: &Watch) -> Option<Turn> {
        let core = self.cores[pe as usize].as_deref()?;
        let Ends { output, .. } = core.threads.ends(thread);
        let slots = watch.slots.iter().filter(|it| it.1 == thread);
        let element = Pattern::new(slots.map(|it| it.0 + period), period)?;
        let turn = match (output, core.threads.ends(thread).inputs()) {
            (Some(output), _) => self.turn_that_sends((core, output), (thread, element), watch)?,
            (None, &[queue]) => self.turn_that_takes((pe, queue), (thread, element), watch)?,
            (None, _) => return None,
        };
        (turn.beat.ramp.among(period) == element.among(period)).then_some(turn)
    }

    /// What a microthread does whose words go into a queue of its core.
    fn turn_that_sends(
        &self,
        (core, output): (&Core<C>, Output),
        (thread, element): (u8, Pattern),
        watch: &Watch,
    ) -> Option<Turn> {
        let (queue, period) = (output.queue, watch.cycle - watch.since);
        let Outlet::Channel(channel) = core.outlet(output.color) else { return None };
        let words = &core.outputs.get(queue.into())?.ring;
        let ups = watch.ups.iter().filter(|it| it.1 == queue);
        let ramp = Pattern::new(ups.map(|it| it.0 + period), period)?;
        let it = &self.channels[channel as usize];
        let route = it.route();
        let fits = route.dest != route.source
            && route.queue.is_some()
            && self.cores[route.dest as usize].is_some()
            && it.link.is_none()
            && words.words().all(|word| word.color == output.color);
        let waits = watch.blocked >> queue & 1 != 0;
        let count = ramp.among(period) as usize;
        let down = if waits { Some(watch.downs_of(it, channel, count)?) } else { None };
        let beat = Beat { thread, queue, ramp, element };
        fits.then_some(Turn { channel, sends: true, beat, expected: None, down, sure: 0 })
    }

    /// What a microthread does that takes words from a queue of its core.
    fn turn_that_takes(
        &self,
        (pe, queue): (u32, u8),
        (thread, element): (u8, Pattern),
        watch: &Watch,
    ) -> Option<Turn> {
        let (now, period) = (watch.cycle, watch.cycle - watch.since);
        let leads = |id: u32| self.channels[id as usize].route().queue == Some(queue);
        let channel = only(self.landings[pe as usize].channels().filter(|&id| leads(id)))?;
        let downs = || watch.downs.iter().filter(|it| it.1 == channel);
        let ramp = Pattern::new(downs().map(|it| it.0 + period), period)?;
        let it = &self.channels[channel as usize];
        let under_way = it.ups().take_while(|&up| up < now).count();
        let mut expected = Pattern::new(downs().map(|it| it.2), period)?;
        for _ in 0..downs().count() + under_way {
            expected.advance();
        }
        let fits = it.route().source != pe && it.link.is_none() && expected.next() >= now;
        let beat = Beat { thread, queue, ramp, element };
        let expected = Some(expected);
        fits.then_some(Turn { channel, sends: false, beat, expected, down: None, sure: 0 })
    }

    /// Whether the other end of a channel does what is foreseen of it, and has done so where it is ahead.
    fn agrees(&self, turn: &mut Turn, now: u64) -> Option<()> {
        let channel = &self.channels[turn.channel as usize];
        let rhythm = channel.rhythm.as_deref();
        if turn.sends {
            let dest = rhythm.and_then(|it| Some((it.expected, it.dest?)));
            // No words are foreseen of which a core that takes turns does not know.
            let turning = self.landings[channel.route().dest as usize].in_turn;
            if turning && dest.is_none() {
                return None;
            }
            let fits = dest.is_none_or(|(expected, dest)| {
                expected == Some(turn.beat.ramp) && turn.down.is_none_or(|down| down == dest.ramp)
            });
            return fits.then_some(());
        }
        if let Some((source, down)) = rhythm.and_then(|it| Some((it.source?, it.down))) {
            let fits = Some(source.ramp) == turn.expected
                && down.is_none_or(|down| down == turn.beat.ramp);
            return fits.then_some(());
        }
        for up in channel.ups().skip_while(|&up| up < now) {
            let expected = turn.expected.as_mut().filter(|expected| expected.next() == up)?;
            expected.advance();
        }
        Some(())
    }

    /// An end of a channel takes turns from now on.
    fn join_rhythm(&mut self, plan: &Plan, turn: &Turn) {
        let channel = &mut self.channels[turn.channel as usize];
        let new = || Box::new(Rhythm { source: None, dest: None, expected: None, down: None });
        let rhythm = channel.rhythm.get_or_insert_with(new);
        if !turn.sends {
            rhythm.dest = Some(turn.beat);
            rhythm.expected = turn.expected;
            if channel.is_wanted() {
                self.wakes.router(channel.route().dest, turn.beat.ramp.next() + 1);
            }
            return;
        }
        (rhythm.source, rhythm.down) = (Some(turn.beat), turn.down);
        // When there is a place for a word that waits is foreseen.
        channel.want_no_more();
        let dest = channel.route().dest;
        self.landings[dest as usize].fed += 1;
        self.foresee(plan, turn.channel);
    }

    /// When the first word of a channel is at the last router is known anew; its destination is visited when
    /// that is in view.
    fn foresee(&mut self, plan: &Plan, id: u32) {
        let channel = &self.channels[id as usize];
        let (dest, arrival) = (channel.route().dest, channel.arrival().unwrap_or(NEVER));
        let turning = self.cores[dest as usize].as_deref().is_some_and(Core::takes_turns);
        let landing = &mut self.landings[dest as usize];
        landing.foresee(id, arrival);
        if arrival != NEVER && !landing.awake && !turning {
            self.wakes.core(dest, (arrival + plan.timing.ramp_down).max(self.now + 1));
        }
    }

    /// Up to which cycle all is as foreseen of a microthread and its channel, where all cycles before `t` have
    /// passed.
    fn sure_until(&mut self, plan: &Plan, code: &C, (pe, turn): (u32, &Turn), t: u64) -> u64 {
        if turn.sends {
            self.catch_up(plan, code, turn.channel, t);
        }
        let channel = &self.channels[turn.channel as usize];
        let (route, rhythm) = (channel.route(), channel.rhythm.as_deref());
        let (source, dest) = rhythm.map_or((None, None), |it| (it.source, it.dest));
        let own = if turn.sends { source } else { dest }.unwrap_or(turn.beat);
        let last = self.last_of(code, pe, &own, t);
        if !turn.sends {
            // It takes turns already, or is about to.
            let held =
                rhythm.filter(|it| it.dest.is_some()).map_or(turn.expected, |it| it.expected);
            let seen = next_of(held).saturating_add(channel.transit());
            return if source.is_some() { last } else { last.min(seen) };
        }
        match dest {
            Some(dest) if channel.may_go_on((&own.ramp, &dest.ramp)) => return last,
            Some(_) => {}
            None => self.descend(plan, code, route.dest, t - 1),
        }
        let channel = &self.channels[turn.channel as usize];
        let room = own.ramp.after(channel.room(&own.ramp));
        // Where words wait for places, one that is there before its time changes all. A word that goes
        // down in cycle `t` or later makes one that is free then at the earliest.
        let waits = turn.down.is_some() && dest.is_none();
        last.min(room).min(if waits { t + channel.credit() } else { NEVER })
    }

    /// When a microthread does the last element of its operation, where all cycles before `t` have passed.
    fn last_of(&self, code: &C, pe: u32, beat: &Beat, t: u64) -> u64 {
        let core = self.cores[pe as usize].as_deref();
        let Some(op) = core.and_then(|core| core.threads.get(beat.thread)) else { return t };
        let (done, length) = code.progress(&op.code);
        let Some(length) = length else { return NEVER };
        beat.element.after(u64::from(length - done).saturating_sub(1))
    }

    /// Whether a core that takes turns goes on so in cycle `now`; else it is to be visited.
    pub(super) fn goes_on_in_turns(&mut self, plan: &Plan, code: &C, pe: u32, now: u64) -> bool {
        let Some(turns) = self.turns_of(pe) else { return false };
        let sure = now < turns.end && now < turns.horizon;
        if sure || self.look_ahead(plan, code, pe, now) > now {
            return true;
        }
        self.leave_turns(plan, code, pe, now);
        false
    }

    /// The turns of a core, if it takes some.
    fn turns_of(&mut self, pe: u32) -> Option<&mut Turns> {
        self.cores[pe as usize].as_deref_mut()?.in_turn.as_deref_mut()
    }

    /// Finds out again up to when all is as foreseen of a core, where all cycles before `t` have passed. A
    /// place may turn out by that to have come early: for cycle `t` at the earliest.
    fn look_ahead(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) -> u64 {
        let count = self.turns_of(pe).map_or(0, |turns| turns.turns.len());
        for at in 0..count {
            let turn = self.turns_of(pe).map(|turns| turns.turns[at]);
            // Those that end soon too, so that the next look is not soon.
            let Some(turn) = turn.filter(|turn| turn.sure <= t + LONGEST / 2) else { continue };
            let sure = self.sure_until(plan, code, (pe, &turn), t);
            if let Some(turns) = self.turns_of(pe) {
                turns.turns[at].sure = sure;
            }
        }
        let Some(turns) = self.turns_of(pe) else { return t };
        let horizon = turns.turns.iter().map(|turn| turn.sure).min().unwrap_or(t);
        let (end, before) = (turns.end, std::mem::replace(&mut turns.horizon, horizon));
        self.wakes.call_off(pe, before);
        if horizon > t {
            self.wakes.end(pe, horizon);
        }
        horizon.min(end)
    }

    /// A core takes no more turns from cycle `t` on, before which all have passed; the caller has it visited
    /// then.
    pub(crate) fn leave_turns(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) {
        let turns = self.cores[pe as usize].as_deref().and_then(|core| core.in_turn.as_deref());
        let Some(turns) = turns else { return };
        let channels: Vec<u32> = turns.turns.iter().map(|turn| turn.channel).collect();
        for id in channels {
            self.catch_up(plan, code, id, t);
        }
        let core = self.cores[pe as usize].as_deref_mut();
        let Some(turns) = core.and_then(|core| core.in_turn.take()) else { return };
        self.wakes.call_off(pe, turns.horizon);
        self.turning -= 1;
        let mut last = (0, 0);
        let mut others = Vec::new();
        for turn in &turns.turns {
            let channel = &mut self.channels[turn.channel as usize];
            let route = channel.route();
            let Some(rhythm) = &mut channel.rhythm else { continue };
            let end = if turn.sends { &mut rhythm.source } else { &mut rhythm.dest };
            let beat = end.take().unwrap_or(turn.beat);
            last = last.max((beat.element.previous(), beat.thread));
            if !turn.sends {
                rhythm.down = rhythm.down.map(|_| beat.ramp);
            } else {
                rhythm.expected = Some(beat.ramp);
                self.landings[route.dest as usize].fed -= 1;
            }
            let other = if turn.sends { rhythm.dest } else { rhythm.source };
            if other.is_some() {
                let other = if turn.sends { route.dest } else { route.source };
                others.push((other, turn.channel));
            } else {
                channel.rhythm = None;
            }
        }
        let Some(core) = self.cores[pe as usize].as_deref_mut() else { return };
        core.last_thread = last.1;
        core.until = t;
        core.sight = Sight::default();
        core.calm_visits = 0;
        core.busy_visits = 0;
        core.look_for_places();
        self.landings[pe as usize].in_turn = false;
        self.landings[pe as usize].passed(t);
        for turn in &turns.turns {
            self.foresee(plan, turn.channel);
            if !turn.sends && self.channels[turn.channel as usize].is_wanted() {
                self.wakes.router(pe, t.max(self.now + 1));
            }
        }
        for (other, channel) in others {
            if let Some(turns) = self.turns_of(other) {
                let turns = turns.turns.iter_mut().filter(|turn| turn.channel == channel);
                turns.for_each(|turn| turn.sure = 0);
            }
            if self.look_ahead(plan, code, other, t) <= t {
                self.looked_at(other, t);
            }
        }
    }

    /// A core is to be visited in cycle `t`, which may have begun.
    fn looked_at(&mut self, pe: u32, t: u64) {
        if t > self.now {
            self.wakes.core(pe, t);
        } else {
            self.woken.push(pe);
        }
    }
}
