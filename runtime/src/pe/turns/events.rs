//! What comes to pass at the ends of channels while cores take turns.

use super::Turn;
use crate::fabric::rhythm::Beat;
use crate::pe::code::Code;
use crate::pe::core::Core;
use crate::sched::plan::Plan;
use crate::sched::region::Region;

impl<C: Code> Core<C> {
    /// Does an element that nothing can come of but a word.
    fn calm_element(&mut self, code: &C, thread: u8, word: u32) -> Option<u32> {
        let Core { at, state, threads, .. } = self;
        let done = code.plain(*at, state, &mut threads.get_mut(thread)?.code, [word, 0]);
        debug_assert!(done.is_ok());
        done.ok()?.0
    }
}

impl<C: Code> Region<C> {
    /// A microthread makes a word in a cycle.
    pub(crate) fn make_word(&mut self, code: &C, id: u32, beat: Beat, cycle: u64) {
        let source = self.channels[id as usize].route().source;
        let Some(core) = self.cores[source as usize].as_deref_mut() else { return };
        let (number, output) = (core.at.number, core.threads.ends(beat.thread).output);
        if let (Some(tape), Some(op)) = (&mut self.tape, core.threads.get(beat.thread)) {
            tape.elements(source, op, 1);
        }
        if let (Some(payload), Some(output)) = (core.calm_element(code, beat.thread, 0), output) {
            let queue = usize::from(beat.queue);
            let places = core.outputs[queue].ring.places() as u32;
            core.push(queue, places, output.slot(cycle + 1, payload, 0, false));
        }
        self.count_of(number, beat.thread, cycle, 1);
    }

    /// A microthread takes a word in a cycle.
    pub(crate) fn take_word(&mut self, plan: &Plan, code: &C, id: u32, beat: Beat, cycle: u64) {
        let dest = self.channels[id as usize].route().dest;
        let Some(core) = self.cores[dest as usize].as_deref_mut() else { return };
        debug_assert!(core.inputs[usize::from(beat.queue)].ring.first() <= cycle);
        let (word, _) = core.pop_word(beat.queue.into(), cycle, plan.timing.credit);
        if let (Some(tape), Some(op)) = (&mut self.tape, core.threads.get(beat.thread)) {
            tape.elements(dest, op, 1);
        }
        core.calm_element(code, beat.thread, word);
        let number = core.at.number;
        self.count_of(number, beat.thread, cycle, 1);
    }

    /// A word has gone up in a cycle to a core that takes turns: as foreseen, or it takes no more turns.
    pub(in crate::pe) fn hold(&mut self, id: u32, cycle: u64) {
        let channel = &mut self.channels[id as usize];
        let dest = channel.route().dest;
        let Some(rhythm) = &mut channel.rhythm else { return };
        if let Some(expected) = rhythm.expected.as_mut().filter(|it| it.next() == cycle) {
            expected.advance();
        } else {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::Held);
            self.disturbed.push(dest);
        }
    }

    /// A router is about to be visited in cycle `now`; `busy`: it holds words. Whether that has been
    /// done: a source waits for a place in a channel whose words go to a core that takes turns.
    pub(crate) fn visit_turns(
        &mut self,
        plan: &Plan,
        code: &C,
        (pe, busy): (u32, bool),
        now: u64,
    ) -> bool {
        let core = self.cores[pe as usize].as_deref();
        let Some(turns) = core.and_then(|core| core.in_turn.as_deref()) else { return false };
        if busy {
            self.leave_turns(plan, code, pe, now);
            self.woken.push(pe);
            return false;
        }
        let waits = |turn: &&Turn| !turn.sends && self.channels[turn.channel as usize].is_wanted();
        let wanted: Vec<u32> = turns.turns.iter().filter(waits).map(|turn| turn.channel).collect();
        for id in wanted {
            self.catch_up(plan, code, id, now);
            let channel = &self.channels[id as usize];
            let next = channel.rhythm.as_ref().and_then(|rhythm| rhythm.dest);
            if let Some(next) = next.filter(|_| channel.is_wanted()) {
                // A place is of use to a source two cycles after that at the earliest.
                self.wakes.router(pe, next.ramp.next() + 1);
            }
        }
        true
    }

    /// Brings a channel to where it stands now, if its words go to a core that takes turns: when the next word
    /// goes down.
    pub(crate) fn next_down(&mut self, plan: &Plan, code: &C, id: u32) -> Option<u64> {
        self.channels[id as usize].rhythm.as_ref()?.dest?;
        self.catch_up(plan, code, id, self.now);
        Some(self.channels[id as usize].rhythm.as_ref()?.dest?.ramp.next())
    }

    /// What channels to a core hold whose senders take turns is brought to where it can go down in cycle `t`.
    pub(crate) fn feed_in_turn(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) {
        let mut at = 0;
        while let Some(id) = self.landings[pe as usize].channel(at) {
            let before = (t + 2).saturating_sub(self.channels[id as usize].transit());
            self.catch_up(plan, code, id, before.min(self.now));
            at += 1;
        }
    }
}
