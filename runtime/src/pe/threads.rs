//! The microthreads of a core: their operations, and in masks what decides who may issue.
//!
//! Invariants: bit `id` of a mask speaks of microthread `id`; exactly those whose operation has
//! not ended stand in one of the classes; `needs` and `ends` repeat what the operation needs, so
//! that picking one, and feeding it, looks at no operation.

use dflow_ir::inst::Priority;

use super::core::bits;
use super::op::{Ends, Needs, Op};

/// The microthreads.
#[derive(Debug)]
pub(crate) struct Threads<O> {
    ops: [Option<Box<Op<O>>>; COUNT],
    needs: [Needs; COUNT],
    ends: [Ends; COUNT],
    /// Who runs, by priority.
    classes: [u64; 3],
    /// Those whose needs say all.
    plain: u64,
    /// Those in a chunk.
    busy: u64,
}

/// Most microthreads that a target may have.
pub(crate) const COUNT: usize = 8;

impl<O> Default for Threads<O> {
    fn default() -> Threads<O> {
        Threads {
            ops: [const { None }; COUNT],
            needs: [Needs::default(); COUNT],
            ends: [Ends::default(); COUNT],
            classes: [0; 3],
            plain: 0,
            busy: 0,
        }
    }
}

impl<O> Threads<O> {
    /// Whether an operation has a microthread, be it one that has ended.
    pub(crate) fn is_free(&self, id: u8) -> bool {
        self.ops.get(usize::from(id)).is_none_or(Option::is_none)
    }

    /// Whether any operation may issue.
    pub(crate) fn any(&self) -> bool {
        self.classes != [0; 3]
    }

    /// The operations, ended ones among them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Op<O>> {
        self.ops.iter().flatten().map(|op| &**op)
    }

    /// Those of a class, as bits.
    pub(crate) fn class(&self, class: Priority) -> u64 {
        self.classes[class as usize] & !self.busy
    }

    /// What one needs, and whether that is all.
    pub(crate) fn needs(&self, id: u8) -> (Needs, bool) {
        (self.needs[usize::from(id)], self.plain >> id & 1 != 0)
    }

    /// Where its elements come from and go.
    pub(crate) fn ends(&self, id: u8) -> Ends {
        self.ends[usize::from(id)]
    }

    /// Its operation.
    pub(crate) fn get(&self, id: u8) -> Option<&Op<O>> {
        self.ops.get(usize::from(id))?.as_deref()
    }

    /// Its operation, to do an element of it.
    pub(crate) fn get_mut(&mut self, id: u8) -> Option<&mut Op<O>> {
        self.ops.get_mut(usize::from(id))?.as_deref_mut()
    }

    /// An operation takes its microthread.
    pub(crate) fn launch(&mut self, op: Box<Op<O>>) {
        let id = usize::from(op.microthread);
        (self.needs[id], self.ends[id]) = (op.needs, op.ends);
        self.plain = self.plain & !(1 << id) | u64::from(op.is_plain()) << id;
        self.note(&op);
        self.ops[id] = Some(op);
    }

    /// Takes an operation out to work on it; [`Threads::put`] puts it back.
    pub(crate) fn take(&mut self, id: u8) -> Option<Box<Op<O>>> {
        self.ops.get_mut(usize::from(id))?.take()
    }

    /// Puts an operation back.
    pub(crate) fn put(&mut self, op: Box<Op<O>>) {
        if op.ended {
            self.note(&op);
        }
        let id = usize::from(op.microthread);
        self.busy |= u64::from(op.until != 0) << id;
        self.ops[id] = Some(op);
    }

    /// Those whose chunks are over in cycle `t`, as bits.
    pub(crate) fn end_chunks(&mut self, t: u64) -> u64 {
        let mut over = 0;
        for id in bits(self.busy) {
            if let Some(op) = self.ops[id].as_mut().filter(|op| op.until <= t) {
                op.until = 0;
                over |= 1 << id;
            }
        }
        self.busy &= !over;
        over
    }

    /// The main thread takes all slots of `cycles` cycles from `t` on: chunks end later, by what
    /// they cannot make up for in slots that nobody uses. When the last of them does.
    pub(crate) fn delay(&mut self, t: u64, cycles: u64) -> Option<u64> {
        const WHOLE: u64 = 1 << 10;
        let busy = |threads: &Threads<O>| bits(threads.busy);
        let paces = busy(self).filter_map(|id| self.ops[id].as_ref()).map(|op| op.pace.max(1));
        let used = paces.map(|pace| WHOLE / pace).sum::<u64>().min(WHOLE);
        let mut last = None;
        for id in busy(self) {
            if let Some(op) = &mut self.ops[id] {
                let spare = op.until.saturating_sub(t) * (WHOLE - used) / WHOLE;
                op.until += cycles.saturating_sub(spare);
                last = last.max(Some(op.until));
            }
        }
        last
    }

    /// Changes the priority of those that read a queue.
    pub(crate) fn set_priority(&mut self, inputs: u64, priority: Priority) {
        for at in 0..COUNT {
            let Some(mut op) = self.ops[at].take() else { continue };
            if op.needs.inputs & inputs != 0 {
                op.priority = priority;
                self.note(&op);
            }
            self.ops[at] = Some(op);
        }
    }

    /// Whether and where an operation stands among those that run.
    fn note(&mut self, op: &Op<O>) {
        let bit = 1 << op.microthread;
        for class in &mut self.classes {
            *class &= !bit;
        }
        if !op.ended {
            self.classes[op.priority as usize] |= bit;
        }
    }
}

/// The bits of a set in turn: those above `last` first.
pub(crate) fn in_turn(set: u64, last: u8) -> impl Iterator<Item = u8> {
    let turn = u32::from(last) + 1;
    let mut left = set.rotate_right(turn);
    std::iter::from_fn(move || {
        let bit = (left != 0).then(|| left.trailing_zeros())?;
        left &= left - 1;
        Some(((bit + turn) % 64) as u8)
    })
}

#[cfg(test)]
mod tests {
    use super::in_turn;

    #[test]
    fn the_turn_goes_around_after_the_last() {
        let order = |last| in_turn(0b1010_0110, last).collect::<Vec<_>>();
        assert_eq!(order(2), [5, 7, 1, 2]);
        assert_eq!(order(7), [1, 2, 5, 7]);
        assert_eq!(order(0), [1, 2, 5, 7]);
        assert!(in_turn(0, 3).next().is_none());
    }
}
