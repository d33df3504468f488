//! The microthreads of a core: their operations, and in masks what decides who may issue.
//!
//! Invariants: bit `id` of a mask speaks of microthread `id`; exactly those whose operation has
//! not ended stand in one of the classes; `held` names the places that are not empty; `wants` and
//! `ends` repeat what the operation needs, so that picking one, and feeding it, looks at no operation.

use dflow_ir::inst::Priority;

use super::core::{Sight, bits};
use super::op::{Ends, Needs, Op};

/// The microthreads.
#[derive(Debug)]
pub(crate) struct Threads<O> {
    ops: [Option<Box<Op<O>>>; COUNT],
    /// Those that are here, ended ones among them.
    held: u64,
    ends: [Ends; COUNT],
    /// Who runs, by priority.
    classes: [u64; 3],
    /// Those whose needs say all, and stand in `wants`.
    plain: u64,
    /// Those whose elements have nothing to tell.
    quick: u64,
    /// Input and output queues that each needs: a byte of bits per microthread.
    wants: [u64; 2],
    /// Those that go by stretches, and those in one.
    flowing: u64,
    busy: u64,
}

/// Most microthreads that a target may have.
pub(crate) const COUNT: usize = 8;

impl<O> Default for Threads<O> {
    fn default() -> Threads<O> {
        Threads {
            ops: [const { None }; COUNT],
            held: 0,
            ends: [Ends::default(); COUNT],
            classes: [0; 3],
            plain: 0,
            quick: 0,
            wants: [0; 2],
            flowing: 0,
            busy: 0,
        }
    }
}

impl<O> Threads<O> {
    /// Whether an operation has a microthread, be it one that has ended.
    pub(crate) fn is_free(&self, id: u8) -> bool {
        self.ops.get(usize::from(id)).is_none_or(Option::is_none)
    }

    /// Whether there is none, be it one that has ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Whether any operation may issue.
    pub(crate) fn any(&self) -> bool {
        self.classes != [0; 3]
    }

    /// How many may.
    pub(crate) fn count(&self) -> u32 {
        self.running().count_ones()
    }

    /// Whether any but this operation may.
    pub(crate) fn any_beside(&self, op: &Op<O>) -> bool {
        let own = u64::from(op.asynchronous) << op.microthread;
        self.running() & !own != 0
    }

    /// The operations, ended ones among them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Op<O>> {
        bits(self.held).filter_map(|id| self.ops[id].as_deref())
    }

    /// Likewise, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Op<O>> {
        let held = self.held;
        let held = move |(id, _): &(usize, _)| held >> id & 1 != 0;
        self.ops.iter_mut().enumerate().filter(held).filter_map(|(_, op)| op.as_deref_mut())
    }

    /// Whether no operation of these classes runs.
    pub(crate) fn none_of(&self, classes: &[Priority]) -> bool {
        classes.iter().all(|&class| self.classes[class as usize] == 0)
    }

    /// Those of a class, as bits.
    pub(crate) fn class(&self, class: Priority) -> u64 {
        self.classes[class as usize] & !self.busy
    }

    /// What one needs, and whether that is all.
    pub(crate) fn needs(&self, id: u8) -> (Needs, bool) {
        let [inputs, output] = self.wants.map(|wants| wants >> (COUNT * usize::from(id)) & 0xff);
        if self.plain >> id & 1 != 0 {
            return (Needs { inputs, output }, true);
        }
        (self.get(id).map_or(Needs::default(), |op| op.needs), false)
    }

    /// Those that run, if all are of one class, none is in a stretch, and their needs are all that
    /// they wait for and elements all that they do.
    pub(crate) fn calm(&self) -> Option<u64> {
        let [high, medium, low] = self.classes;
        let all = high | medium | low;
        let one = all == high || all == medium || all == low;
        (one && self.busy == 0 && all & !(self.plain & self.quick) == 0).then_some(all)
    }

    /// Of some, the first in turn after `last` that finds its words and its place.
    #[inline]
    pub(crate) fn first_ready(&self, of: u64, words: u64, full: u64, last: u8) -> Option<u8> {
        const EACH: u64 = 0x0101_0101_0101_0101;
        const REST: u64 = 0x7f * EACH;
        let (none, full) = ((!words & 0xff) * EACH, (full & 0xff) * EACH);
        let missing = self.wants[0] & none | self.wants[1] & full;
        // The highest bit of each byte: whether something is missing. Then a bit per byte.
        let waits = ((missing & REST) + REST) | missing;
        let ready = (!waits >> 7 & EACH).wrapping_mul(0x0102_0408_1020_4080) >> 56 & of;
        let turn = u32::from(last) + 1;
        let first = ready.rotate_right(turn).trailing_zeros() + turn;
        (ready != 0).then_some((first % 64) as u8)
    }

    /// Whether one that is not blocked may find what it waits for.
    pub(crate) fn may_issue(&self, blocked: u64, sight: Sight, last: u8) -> bool {
        let Some(running) = self.calm() else { return true };
        self.first_ready(running & !blocked, sight.words, sight.full, last).is_some()
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

    /// An operation takes its microthread; `quick` as [`super::code::Code::is_plain`] says.
    pub(crate) fn launch(&mut self, op: Box<Op<O>>, quick: bool) {
        let id = usize::from(op.microthread);
        self.ends[id] = op.ends;
        let Needs { inputs, output } = op.needs;
        let fits = inputs | output < 1 << COUNT;
        self.plain = self.plain & !(1 << id) | u64::from(op.is_plain() && fits) << id;
        self.quick = self.quick & !(1 << id) | u64::from(quick) << id;
        if fits {
            let at = COUNT * id;
            for (wants, queues) in self.wants.iter_mut().zip([inputs, output]) {
                *wants = *wants & !(0xff << at) | queues << at;
            }
        }
        self.flowing = self.flowing & !(1 << id) | u64::from(op.flows) << id;
        self.note(&op);
        self.held |= 1 << id;
        self.ops[id] = Some(op);
    }

    /// Takes an operation out to work on it; [`Threads::put`] puts it back.
    pub(crate) fn take(&mut self, id: u8) -> Option<Box<Op<O>>> {
        let op = self.ops.get_mut(usize::from(id))?.take();
        self.held &= !(1 << id);
        op
    }

    /// Puts an operation back.
    pub(crate) fn put(&mut self, op: Box<Op<O>>) {
        if op.ended {
            self.note(&op);
        }
        let id = usize::from(op.microthread);
        self.busy = self.busy & !(1 << id) | u64::from(op.stretch.is_on()) << id;
        self.flowing = self.flowing & !(1 << id) | u64::from(op.flows) << id;
        self.held |= 1 << id;
        // It was taken: there is none to drop.
        std::mem::forget(self.ops[id].replace(op));
    }

    /// Lends one that has not ended, to see whether it can begin a stretch; nobody else looks until
    /// [`Threads::give_back`].
    #[inline]
    pub(super) fn lend(&mut self, id: usize) -> Option<Box<Op<O>>> {
        self.ops.get_mut(id)?.take()
    }

    /// Takes back one that was lent, which may be in a stretch now, or flow no more.
    #[inline]
    pub(super) fn give_back(&mut self, id: usize, op: Box<Op<O>>) {
        self.busy |= u64::from(op.stretch.is_on()) << id;
        self.flowing &= !(u64::from(!op.flows) << id);
        // It was lent: there is none to drop.
        std::mem::forget(self.ops[id].replace(op));
    }

    /// Those in a stretch, as bits.
    pub(crate) fn busy(&self) -> u64 {
        self.busy
    }

    /// One is in a stretch no more.
    pub(crate) fn rests(&mut self, id: u8) {
        self.busy &= !(1 << id);
    }

    /// Whether one takes each element's slot by itself.
    pub(crate) fn steps(&self, id: u8) -> bool {
        self.flowing >> id & 1 == 0
    }

    /// How many run that take each element's slot by itself.
    pub(crate) fn steppers(&self) -> u64 {
        match self.running() & !self.flowing {
            0 => 0,
            steppers => steppers.count_ones().into(),
        }
    }

    /// Those that flow and are in no stretch, as bits.
    pub(crate) fn idle(&self) -> u64 {
        self.running() & self.flowing & !self.busy
    }

    /// Those that may issue, as bits.
    fn running(&self) -> u64 {
        self.classes.iter().fold(0, |all, class| all | class)
    }

    /// Changes the priority of those that read a queue.
    pub(crate) fn set_priority(&mut self, inputs: u64, priority: Priority) {
        for at in bits(self.held) {
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
    use super::{COUNT, Threads, in_turn};

    #[test]
    fn the_first_that_is_ready_is_found_in_turn() {
        // Microthread 2 reads queue 3, microthread 5 reads queues 3 and 6 and fills queue 1,
        // microthread 7 fills queue 0.
        let wants =
            |of: [(usize, u64); 2]| of.iter().fold(0, |all, (id, set)| all | set << (COUNT * id));
        let threads: Threads<()> = Threads {
            wants: [wants([(2, 0x08), (5, 0x48)]), wants([(5, 0x02), (7, 0x01)])],
            ..Threads::default()
        };
        let first = |words, full, last| threads.first_ready(0b1010_0100, words, full, last);
        assert_eq!(first(0x08, 0, 0), Some(2));
        assert_eq!(first(0x08, 0, 2), Some(7));
        assert_eq!(first(0x48, 0, 2), Some(5));
        assert_eq!(first(0x48, 0x02, 2), Some(7));
        assert_eq!(first(0x48, 0x03, 2), Some(2));
        assert_eq!(first(0x40, 0x03, 2), None);
        assert_eq!(first(0x48, 0, 7), Some(2));
    }

    #[test]
    fn the_turn_goes_around_after_the_last() {
        let order = |last| in_turn(0b1010_0110, last).collect::<Vec<_>>();
        assert_eq!(order(2), [5, 7, 1, 2]);
        assert_eq!(order(7), [1, 2, 5, 7]);
        assert_eq!(order(0), [1, 2, 5, 7]);
        assert!(in_turn(0, 3).next().is_none());
    }
}
