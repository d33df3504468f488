//! Elements of operations in rounds, and their words.

use std::ops::Range;

use super::{NONE, Part, Queue, Went};
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
        at: usize,
        acts: &[Act],
    ) -> (Went, usize) {
        loop {
            let (mut waits, mut any, mut last) = (false, false, 0);
            self.processes[at].missing = 0;
            while let Some(&act) = acts.get(last)
                && let Act::Elements { operation, beside, last: ends, count } = act
                && (last == 0 || beside)
            {
                last += 1;
                let before = self.processes[at].elements[usize::from(operation)];
                let left = count - before;
                let Some(done) = self.elements(core, at, (operation, ends), left) else {
                    return (Went::Apart, 0);
                };
                self.processes[at].elements[usize::from(operation)] += done;
                (waits, any) = (waits | (before + done < count), any | (done != 0));
            }
            if !waits {
                self.processes[at].elements = [0; OPERATIONS];
                return (Went::Through, last);
            }
            // One may have waited for words of another.
            if !any {
                return (Went::Waits, 0);
            }
        }
    }

    /// Does elements of an operation, if it has the words for all of them, or as far as it has; `ends`: it may end
    /// after them. How many, if nothing else comes of it.
    fn elements(
        &mut self,
        core: &mut Core<C>,
        at: usize,
        (operation, ends): (u8, bool),
        mut count: u32,
    ) -> Option<u32> {
        let process = &mut self.processes[at];
        let op = process.hand.operations[usize::from(operation)].as_mut()?;
        let (mut inputs, all) = ([NONE; 2], count);
        for (input, &queue) in inputs.iter_mut().zip(op.ends.inputs()) {
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
        let (output, made) = (op.ends.output, &mut self.made);
        made.clear();
        let (pe, state) = (core.at, &mut core.state);
        let all = ends && op.code.is_none() && op.start.length == Some(count);
        if all && self.code.all_at_once(pe, state, &op.start, words, made) {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::AtOnce);
            op.is_over = true;
        } else {
            let code = op.begun(self.code, pe, state);
            let block = self.code.block(pe, state, code, words, count, made);
            if block.trap.is_some() || block.done != count {
                return None;
            }
        }
        self.take_words(inputs, count as usize);
        if let Some(output) = output {
            self.send(at, output.color)?;
        }
        Some(count)
    }

    /// An operation ends.
    pub(super) fn finish(
        &mut self,
        core: &mut Core<C>,
        at: usize,
        operation: u8,
        whole: bool,
    ) -> Went {
        let op = self.processes[at].hand.operations[usize::from(operation)].take();
        let Some(mut op) = op else { return Went::Apart };
        let done = op.is_over || {
            let code = op.begun(self.code, core.at, &mut core.state);
            self.code.finish(core.at, &mut core.state, code, whole).is_ok()
        };
        self.over.push(op);
        if done { Went::Through } else { Went::Apart }
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
    fn send(&mut self, at: usize, color: u8) -> Option<()> {
        let mut made = std::mem::take(&mut self.made);
        let ends = outputs_of(&self.processes[at].outputs, color)?;
        let last = ends.end - 1;
        for end in ends {
            let (_, into) = self.processes[at].outputs[end];
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
            self.wake(own, Some(at));
        }
        self.made = made;
        Some(())
    }
}
