//! What goes on in a channel while its ends take turns (`pe::turns`): in which cycles.
//!
//! A core that takes turns does elements of each operation always in the same cycles of a period,
//! and its words go up and down the ramps in the same cycles of every period. So all that its end of a
//! channel does is known ahead, and it is done when somebody wants to know ([`Region::catch_up`]): event by
//! event, and in whole periods at once where both ends take turns.
//!
//! Invariants: of an end that takes turns all events before its next ones have come to pass, and none later;
//! a word that is to go up finds a place, one that is to go down or to be taken is there.

use super::pattern::{Pattern, common_period};
use super::ring::Slot;
use crate::pe::code::Code;
use crate::pe::core::Core;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::ways::Way;

/// Which ends take turns, and in which cycles they do something next.
#[derive(Debug)]
pub(crate) struct Rhythm {
    pub(crate) source: Option<Beat>,
    pub(crate) dest: Option<Beat>,
    /// When words have to go up, while the destination alone takes turns.
    pub(crate) expected: Option<Pattern>,
    /// When words have to go down, while the source alone takes turns, whose words wait for places.
    pub(crate) down: Option<Pattern>,
}

/// What an end that takes turns does next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beat {
    /// Its microthread and its queue.
    pub(crate) thread: u8,
    pub(crate) queue: u8,
    /// When words pass the ramp, and when the microthread does elements.
    pub(crate) ramp: Pattern,
    pub(crate) element: Pattern,
}

/// What comes to pass at an end; of events in one cycle in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A word goes up, or is made.
    Up,
    Made,
    /// A word goes down, or is taken.
    Down,
    Taken,
}

impl Beat {
    /// When it does something next.
    fn first(&self) -> u64 {
        self.ramp.next().min(self.element.next())
    }
}

impl Rhythm {
    /// Whether an end does something before cycle `t`.
    #[inline]
    fn is_behind(&self, t: u64) -> bool {
        let is_behind = |beat: &Option<Beat>| beat.as_ref().is_some_and(|beat| beat.first() < t);
        is_behind(&self.source) || is_behind(&self.dest)
    }

    /// Takes the first event before cycle `t`.
    fn take_next(&mut self, t: u64) -> Option<(u64, Event)> {
        let source =
            self.source.map(|it| [(it.ramp.next(), Event::Up), (it.element.next(), Event::Made)]);
        let dest =
            self.dest.map(|it| [(it.ramp.next(), Event::Down), (it.element.next(), Event::Taken)]);
        let events = source.into_iter().chain(dest).flatten();
        let next = events.min().filter(|(cycle, _)| *cycle < t)?;
        let beat = match next.1 {
            Event::Up | Event::Made => self.source.as_mut()?,
            Event::Down | Event::Taken => self.dest.as_mut()?,
        };
        match next.1 {
            Event::Up | Event::Down => beat.ramp.advance(),
            Event::Made | Event::Taken => beat.element.advance(),
        }
        Some(next)
    }

    /// A word goes down in a cycle, where the destination takes no turns; whether that is not before it has to.
    pub(crate) fn falls(&mut self, cycle: u64) -> bool {
        let Some(down) = &mut self.down else { return true };
        let fits = cycle >= down.next();
        down.put_off(cycle);
        down.advance();
        fits
    }

    /// Both ends, if both take turns.
    pub(crate) fn both(&self) -> Option<(Beat, Beat)> {
        self.source.zip(self.dest)
    }
}

impl<C: Code> Region<C> {
    /// Brings a channel to where it stands before cycle `t`, as far as its ends take turns.
    #[inline]
    pub(crate) fn catch_up(&mut self, plan: &Plan, code: &C, id: u32, t: u64) {
        let rhythm = self.channels[id as usize].rhythm.as_deref();
        if rhythm.is_some_and(|rhythm| rhythm.is_behind(t)) {
            self.catch_up_now(plan, code, id, t);
        }
    }

    /// Likewise, where something comes to pass.
    #[inline(never)]
    fn catch_up_now(&mut self, plan: &Plan, code: &C, id: u32, t: u64) {
        let Some(mut rhythm) = self.channels[id as usize].rhythm.take() else { return };
        self.skip_periods(plan, code, id, &mut rhythm, t);
        while let Some((cycle, event)) = rhythm.take_next(t) {
            match (event, rhythm.source, rhythm.dest) {
                (Event::Up, Some(beat), _) => self.rise(id, beat, cycle),
                (Event::Made, Some(beat), _) => self.make_word(code, id, beat, cycle),
                (Event::Down, _, Some(beat)) => self.fall(plan, id, beat, cycle),
                (Event::Taken, _, Some(beat)) => self.take_word(plan, code, id, beat, cycle),
                (_, _, _) => {}
            }
            self.active_until = self.active_until.max(cycle + 1);
        }
        self.channels[id as usize].rhythm = Some(rhythm);
    }

    /// A word goes up the ramp in a cycle.
    fn rise(&mut self, id: u32, beat: Beat, cycle: u64) {
        let source = self.channels[id as usize].route().source;
        let Some(mut core) = self.cores[source as usize].take() else { return };
        let word = self.leave_queue(&mut core, beat.queue.into(), cycle);
        self.ways.count(word.color, Way::Channel, 1);
        let channel = &mut self.channels[id as usize];
        debug_assert!(channel.free_from() <= cycle);
        channel.push(word, cycle);
        self.cores[source as usize] = Some(core);
    }

    /// The first word goes down the ramp in a cycle.
    fn fall(&mut self, plan: &Plan, id: u32, beat: Beat, cycle: u64) {
        let channel = &mut self.channels[id as usize];
        let route = channel.route();
        debug_assert!(channel.arrival().is_some_and(|arrival| arrival <= cycle));
        let (mut word, wanted) = channel.pop(&plan.timing, cycle);
        self.stats.hops += u64::from(route.hops);
        if let Some(free) = wanted {
            self.tell_source(route.source, free);
        }
        word.stamp = cycle + plan.timing.ramp_down;
        if let Some(core) = self.cores[route.dest as usize].as_deref_mut() {
            core.take_in(beat.queue.into(), word);
        }
        self.delivered(route.number, beat.queue.into(), word);
    }

    /// Goes on by whole periods, before cycle `t`, if both ends take turns.
    fn skip_periods(&mut self, plan: &Plan, code: &C, id: u32, rhythm: &mut Rhythm, t: u64) {
        let Some((source, dest)) = rhythm.both() else { return };
        let patterns = [source.ramp, source.element, dest.ramp, dest.element];
        if self.events.is_some() || patterns.iter().any(|pattern| pattern.next() >= t) {
            return;
        }
        let length = common_period(&patterns);
        let last = patterns.iter().map(|pattern| pattern.after(pattern.among(length) - 1)).max();
        let Some(before) = last.and_then(|last| t.checked_sub(last + 1)) else { return };
        let periods = before / length + 1;
        let count = periods * source.ramp.among(length);
        if count < 2 {
            return;
        }
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Skipped);
        let (route, timing) = (self.channels[id as usize].route(), &plan.timing);
        let mut words = self.buffers.pop().unwrap_or_default();
        self.words_under_way(id, (source, dest), &mut words);
        self.elements(code, (route.source, source.thread), &[], count, &mut words);
        self.elements(code, (route.dest, dest.thread), &words, count, &mut Vec::new());
        let mut left = words[count as usize..].iter().copied();
        let word = Slot { color: route.color, ..Slot::default() };
        if let Some(core) = self.cores[route.dest as usize].as_deref_mut() {
            let input = &mut core.inputs[usize::from(dest.queue)];
            let stamp = |at| dest.ramp.after(at) + timing.ramp_down;
            let place = |at| dest.element.after(at) + timing.credit;
            input.ring.pass(count, word, (stamp, place), &mut left);
            input.last = Some(stamp(count - 1));
            input.taken = input.taken.wrapping_add(count as u32);
        }
        let channel = &mut self.channels[id as usize];
        channel.pass(timing, count, (source.ramp, dest.ramp), &mut left);
        if let Some(core) = self.cores[route.source as usize].as_deref_mut() {
            let ring = &mut core.outputs[usize::from(source.queue)].ring;
            let stamp = |at| source.element.after(at) + 1;
            let place = |at| source.ramp.after(at) + 1;
            ring.pass(count, word, (stamp, place), &mut left);
        }
        words.clear();
        self.buffers.push(words);
        self.stats.slots += 2 * count;
        self.stats.delivered += count;
        self.stats.hops += count * u64::from(route.hops);
        self.count_sent(id, source.queue, count);
        let over = patterns.iter().map(|pattern| pattern.after(count - 1)).max();
        self.active_until = self.active_until.max(over.map_or(0, |over| over + 1));
        for beat in rhythm.source.iter_mut().chain(&mut rhythm.dest) {
            beat.ramp.pass(periods, length);
            beat.element.pass(periods, length);
        }
    }

    /// Payloads of the words of a channel and its queues, first word first.
    fn words_under_way(&self, id: u32, (source, dest): (Beat, Beat), words: &mut Vec<u32>) {
        let channel = &self.channels[id as usize];
        let core = |pe: u32| self.cores[pe as usize].as_deref();
        let route = channel.route();
        if let Some(core) = core(route.dest) {
            let ring = &core.inputs[usize::from(dest.queue)].ring;
            words.extend(ring.words().map(|word| word.payload));
        }
        words.extend(channel.words().map(|word| word.payload));
        if let Some(core) = core(route.source) {
            let ring = &core.outputs[usize::from(source.queue)].ring;
            words.extend(ring.words().map(|word| word.payload));
        }
    }

    /// Does elements of a microthread as a block.
    fn elements(
        &mut self,
        code: &C,
        (pe, thread): (u32, u8),
        words: &[u32],
        count: u64,
        out: &mut Vec<u32>,
    ) {
        let Some(core) = self.cores[pe as usize].as_deref_mut() else { return };
        let Core { at, state, threads, .. } = core;
        let Some(op) = threads.get_mut(thread) else { return };
        let words = &words[..words.len().min(count as usize)];
        if let Some(tape) = &mut self.tape {
            tape.elements(pe, op, count as u32);
        }
        let block = code.block(*at, state, &mut op.code, [words, &[]], count as u32, out);
        debug_assert!(block.trap.is_none() && u64::from(block.done) == count);
    }
}
