//! Elements of operations in rounds, and their words.

use std::ops::Range;

use super::{NONE, Part, Process, Queue, Went};
use crate::pe::code::Code;
use crate::pe::core::Core;
use crate::sched::rounds::tape::{Act, OPERATIONS};

/// Where words of a color go, among outputs in the order of colors.
#[inline]
fn outputs_of(outputs: &[(u8, u32)], color: u8) -> Option<Range<usize>> {
    let from = outputs.partition_point(|&(of, _)| of < color);
    let count = outputs[from..].iter().take_while(|&&(of, _)| of == color).count();
    (count != 0).then_some(from..from + count)
}

/// The words of some queues; none where there is no queue.
#[inline]
fn words_of(fifos: &[Queue], inputs: [u32; 2]) -> [&[u32]; 2] {
    inputs.map(|input| fifos.get(input as usize).map_or(&[][..], |it| it.words.words()))
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
            let (mut waits, mut any, mut last) = (false, false, 0);
            process.missing = 0;
            while let Some(&act) = acts.get(last)
                && let Act::Elements { operation, beside, last: is_last, count } = act
                && (last == 0 || beside)
            {
                last += 1;
                let before = process.elements[usize::from(operation)];
                let left = count - before;
                if left == 0 {
                    continue;
                }
                let Some(done) = self.elements(core, process, (operation, is_last), left) else {
                    return (Went::Apart, 0);
                };
                process.elements[usize::from(operation)] += done;
                (waits, any) = (waits | (before + done < count), any | (done != 0));
            }
            if !waits {
                process.elements = [0; OPERATIONS];
                return (Went::Through, last);
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
        mut count: u32,
    ) -> Option<u32> {
        let place = &mut process.hand.operations[usize::from(operation)];
        let op = place.as_mut()?;
        let (start, ends) = op.start.of(&self.outcomes)?;
        let (mut inputs, all) = ([NONE; 2], count);
        for (input, &queue) in inputs.iter_mut().zip(ends.inputs()) {
            *input = process.inputs.get(usize::from(queue)).copied().unwrap_or(NONE);
            let fifo = self.fifos.get_mut(*input as usize)?;
            let there = fifo.words.len() as u32;
            fifo.needed = 0;
            if there < all {
                fifo.needed = if self.by_words { there + 1 } else { all };
                process.missing += 1;
                count = if self.by_words { count.min(there) } else { 0 };
            }
        }
        if count == 0 {
            return Some(0);
        }
        let words = words_of(&self.fifos, inputs);
        let (color, made) = (ends.output.map(|output| output.color), &mut self.made);
        made.clear();
        let (pe, state) = (process.pe, &mut core.state);
        let all = is_last && op.code.is_none() && start.length == Some(count);
        if all && self.code.all_at_once(pe, state, start, words, made) {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::AtOnce);
            *place = None;
        } else {
            let code = op.begun(self.code, pe, state, &self.outcomes)?;
            let block = self.code.block(pe, state, code, words, count, made);
            if block.trap.is_some() || block.done != count {
                return None;
            }
        }
        self.take_words(inputs, count as usize);
        if let Some(color) = color {
            self.send(process, color)?;
        }
        Some(count)
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
        // If not it has ended with its elements.
        let Some(op) = place else { return Went::Through };
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

    /// The words that were made go to all queues that words of a color go to.
    fn send(&mut self, process: &Process<C>, color: u8) -> Option<()> {
        let mut made = std::mem::take(&mut self.made);
        let ends = outputs_of(&process.outputs, color)?;
        let last = ends.end - 1;
        for end in ends {
            let (_, into) = process.outputs[end];
            let own = into.wrapping_sub(self.first.2) as usize;
            if own >= self.fifos.len() {
                self.out.iter_mut().find(|mail| mail.holds(into))?.add(into, &made);
                continue;
            }
            if end == last && self.fifos[own].words.take_over(&mut made) {
                #[cfg(test)]
                crate::sched::reached::note(crate::sched::reached::Reached::HandedOn);
                made = self.spare.pop().unwrap_or(made);
            } else {
                self.fifos[own].words.extend(&made, &mut self.spare);
            }
            self.wake(own);
        }
        self.made = made;
        Some(())
    }
}
