//! Elements of operations in rounds, and their words.

use std::ops::Range;

use super::{InTurn, NONE, Part, Process, Queue, Went};
use crate::exec::SharedStart;
use crate::pe::code::Code;
use crate::pe::core::Core;
use crate::pe::op::Ends;
use crate::sched::rounds::switched::{Turns, payload_of};
use crate::sched::rounds::tape::{Act, OPERATIONS};

/// Where words of a color go, among outputs in the order of colors.
#[inline]
fn outputs_of(outputs: &[(u8, u32)], color: u8) -> Option<Range<usize>> {
    let from = outputs.partition_point(|&(of, _)| of < color);
    let count = outputs[from..].iter().take_while(|&&(of, _)| of == color).count();
    (count != 0).then_some(from..from + count)
}

/// Where words that an operation makes go.
enum Goal<'a> {
    /// Into each of these queues (there are none where it makes no words), which are with their color.
    Queues(&'a [(u8, u32)]),
    /// Into some queues in turn.
    InTurn(&'a mut Turns<Box<[u32]>>),
    /// To routers alone: commands with this payload. What they do was found with the ways.
    Routers(u32),
}

/// Where an operation's words go; none if no way is known.
#[inline]
fn goal_of<'a>(
    (outputs, in_turn): (&'a [(u8, u32)], &'a mut [InTurn]),
    start: &SharedStart,
    ends: &Ends,
) -> Option<Goal<'a>> {
    let Some(output) = ends.output else { return Some(Goal::Queues(&[])) };
    if output.control {
        return Some(Goal::Routers(payload_of(start)));
    }
    if let Some(into) = outputs_of(outputs, output.color) {
        return Some(Goal::Queues(&outputs[into]));
    }
    let (_, turns) = in_turn.iter_mut().find(|(color, _)| *color == output.color)?;
    Some(Goal::InTurn(turns))
}

/// The words of some queues; none where there is no queue.
#[inline]
fn words_of(fifos: &[Queue], inputs: [u32; 2]) -> [&[u32]; 2] {
    inputs.map(|input| fifos.get(input as usize).map_or(&[][..], |it| it.words.words()))
}

/// The queues that an operation takes words from, and how many of its next `count` elements have them: all, or as far
/// as words are taken as they come. `missing`: queues whose words it waits for.
#[inline]
fn find_words(
    fifos: &mut [Queue],
    by_words: bool,
    (queues, missing): (&[u32], &mut u32),
    ends: &Ends,
    all: u32,
) -> Option<([u32; 2], u32)> {
    let (mut inputs, mut count) = ([NONE; 2], all);
    for (input, &queue) in inputs.iter_mut().zip(ends.inputs()) {
        *input = queues.get(usize::from(queue)).copied().unwrap_or(NONE);
        let fifo = fifos.get_mut(*input as usize)?;
        let there = fifo.words.len() as u32;
        fifo.needed = 0;
        if there < all {
            fifo.needed = if by_words { there + 1 } else { all };
            *missing += 1;
            count = if by_words { count.min(there) } else { 0 };
        }
    }
    Some((inputs, count))
}

impl<C: Code> Part<'_, C> {
    /// Does elements of operations that have nothing to do with each other, as far as they have words: those of
    /// the first of some acts and of those beside it. How many acts these are.
    pub(super) fn all_elements(
        &mut self,
        core: &mut Core<C>,
        process: &mut Process<C>,
        acts: &[Act],
    ) -> (Went, usize) {
        loop {
            let (mut waits, mut any, mut seen) = (false, false, 0);
            process.missing = 0;
            while let Some(&act) = acts.get(seen)
                && let Act::Elements { operation, beside, last, count } = act
                && (seen == 0 || beside)
            {
                seen += 1;
                let before = process.elements[usize::from(operation)];
                let left = count - before;
                if left == 0 {
                    continue;
                }
                let Some(done) = self.elements(core, process, (operation, last), left) else {
                    return (Went::Apart, 0);
                };
                process.elements[usize::from(operation)] += done;
                (waits, any) = (waits | (before + done < count), any | (done != 0));
            }
            if !waits {
                process.elements = [0; OPERATIONS];
                return (Went::Through, seen);
            }
            // One may have waited for words of another.
            if !any {
                return (Went::Waits, 0);
            }
        }
    }

    /// Does elements of an operation, if it has the words for all of them, or as far as it has; `is_last`: it may
    /// end after them. How many, if nothing else comes of it.
    fn elements(
        &mut self,
        core: &mut Core<C>,
        process: &mut Process<C>,
        (operation, is_last): (u8, bool),
        count: u32,
    ) -> Option<u32> {
        let place = &mut process.hand.operations[usize::from(operation)];
        let op = place.as_mut()?;
        let (start, ends) = op.start.of(&self.outcomes)?;
        let queues = (&process.inputs[..], &mut process.missing);
        let (inputs, count) = find_words(&mut self.fifos, self.by_words, queues, ends, count)?;
        if count == 0 {
            return Some(0);
        }
        let goal = goal_of((&process.outputs, &mut process.in_turn), start, ends)?;
        // Words are made where they are taken, if that is not where others are taken from now.
        let last = if let Goal::Queues(into) = &goal { into.last() } else { None };
        let own = last.and_then(|&(_, into)| self.own(into));
        let own = own.filter(|own| !inputs.contains(&(*own as u32)));
        let mut made = match own {
            Some(own) => self.fifos[own].words.lend(count as usize, &mut self.spare),
            None => std::mem::take(&mut self.made),
        };
        let before = made.len();
        let words = words_of(&self.fifos, inputs);
        let (pe, state) = (process.pe, &mut core.state);
        let all = is_last && op.code.is_none() && start.length == Some(count);
        let done = if all && self.code.all_at_once(pe, state, start, words, &mut made) {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::AtOnce);
            *place = None;
            true
        } else if let Some(code) = op.begun(self.code, pe, state, &self.outcomes) {
            let block = self.code.block(pe, state, code, words, count, &mut made);
            block.trap.is_none() && block.done == count
        } else {
            false
        };
        let sent = self.deliver(goal, own, made, before);
        self.take_words(inputs, count as usize);
        (done && sent.is_some()).then_some(count)
    }

    /// Words that have been made, behind so many others in the buffer, go where they are to go; none if that is not known
    /// for these. The buffer is lent by the last queue that they go into if that is one of the part's own.
    #[inline]
    fn deliver(
        &mut self,
        goal: Goal<'_>,
        own: Option<usize>,
        made: Vec<u32>,
        before: usize,
    ) -> Option<()> {
        match goal {
            Goal::Queues(into) => self.hand_on(into, own, made, before),
            Goal::InTurn(turns) => {
                let sent = self.send_in_turn(turns, &made);
                self.put_by(made);
                sent
            }
            Goal::Routers(payload) => {
                let are_known = made.iter().all(|&word| word == payload);
                self.put_by(made);
                are_known.then_some(())
            }
        }
    }

    /// Words that have been made, behind so many others in the buffer, go into some queues; that buffer is lent by the
    /// last of these if that is one of the part's own.
    #[inline]
    fn hand_on(
        &mut self,
        into: &[(u8, u32)],
        own: Option<usize>,
        made: Vec<u32>,
        before: usize,
    ) -> Option<()> {
        let others = if own.is_some() { &into[..into.len() - 1] } else { into };
        let sent = self.send(others, &made[before..]);
        let Some(own) = own else {
            self.put_by(made);
            return sent;
        };
        #[cfg(test)]
        if before != 0 {
            crate::sched::reached::note(crate::sched::reached::Reached::MadeBehind);
        }
        self.fifos[own].words.give_back(made);
        self.wake(own);
        sent
    }

    /// Nobody needs the buffer for words any more.
    fn put_by(&mut self, mut made: Vec<u32>) {
        made.clear();
        self.made = made;
    }

    /// An operation ends.
    pub(super) fn finish(
        &mut self,
        core: &mut Core<C>,
        process: &mut Process<C>,
        operation: u8,
        whole: bool,
    ) -> Went {
        let place = &mut process.hand.operations[usize::from(operation)];
        // Without one it has ended with its elements, as a whole.
        let Some(op) = place else { return if whole { Went::Through } else { Went::Apart } };
        let (pe, state) = (process.pe, &mut core.state);
        let code = op.begun(self.code, pe, state, &self.outcomes);
        let ended = code.is_some_and(|code| self.code.finish(pe, state, code, whole).is_ok());
        *place = None;
        if ended { Went::Through } else { Went::Apart }
    }

    /// So many words are taken of some queues.
    fn take_words(&mut self, inputs: [u32; 2], count: usize) {
        for input in inputs.into_iter().filter(|&input| input != NONE) {
            let words = &mut self.fifos[input as usize].words;
            words.take(count);
            let buffer = words.give_up(count);
            // As many as there are queues serve all of them.
            self.spare.extend(buffer.filter(|_| self.spare.len() < self.fifos.len()));
        }
    }

    /// Which of the part's own a queue among all is, if it is one.
    #[inline]
    pub(super) fn own(&self, queue: u32) -> Option<usize> {
        let own = queue.wrapping_sub(self.first.2) as usize;
        (own < self.fifos.len()).then_some(own)
    }

    /// Words go into some queues.
    #[inline]
    fn send(&mut self, into: &[(u8, u32)], words: &[u32]) -> Option<()> {
        into.iter().try_for_each(|&(_, into)| self.send_to(into, words))
    }

    /// Words go into a queue.
    #[inline]
    fn send_to(&mut self, into: u32, words: &[u32]) -> Option<()> {
        let Some(own) = self.own(into) else {
            self.out.iter_mut().find(|mail| mail.holds(into))?.add(into, words);
            return Some(());
        };
        self.fifos[own].words.extend(words, &mut self.spare);
        self.wake(own);
        Some(())
    }

    /// Words go into the queues whose turn it is.
    fn send_in_turn(&mut self, turns: &mut Turns<Box<[u32]>>, mut words: &[u32]) -> Option<()> {
        while !words.is_empty() {
            let (into, left) = turns.now()?;
            let (now, rest) = words.split_at(words.len().min(left as usize));
            into.iter().try_for_each(|&into| self.send_to(into, now))?;
            turns.pass(now.len() as u32);
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::RoundInTurn);
            words = rest;
        }
        Some(())
    }
}
