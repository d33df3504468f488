//! When one PE has done the same twice: the first sign that a whole machine may.

/// Task starts that are remembered.
const MEMORY: usize = 1 << 13;
/// Starts per PE after which another one is listened to, if this one has had none.
const DEAF: u64 = 64;
/// Earlier starts of the same task that are tried.
const TRIES: usize = 64;

/// Task starts of one PE, until they come again as they came before.
#[derive(Debug, Default)]
pub(crate) struct Refrain {
    pe: u32,
    /// Starts of other PEs since its last one.
    others: u64,
    /// Number of PEs.
    count: u64,
    starts: Vec<Start>,
    /// Starts in the shortest repetition that counts.
    least: usize,
    /// One with so many starts or fewer has been looked into before.
    tried: usize,
    found: Option<Found>,
}

/// A task starts so many cycles after the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    task: u16,
    after: u64,
    cycle: u64,
}

impl Start {
    fn is_like(self, other: Start) -> bool {
        (self.task, self.after) == (other.task, other.after)
    }
}

/// A repetition: how many cycles, and how many starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(super) cycles: u64,
    starts: usize,
}

impl Refrain {
    /// Listens to one of so many PEs.
    pub(super) fn new(count: usize) -> Refrain {
        Refrain { count: count as u64, ..Refrain::default() }
    }

    /// A task of a PE starts in a cycle.
    pub(crate) fn note(&mut self, pe: u32, cycle: u64, task: u16) {
        if pe != self.pe {
            self.others += 1;
            if self.others > DEAF * self.count {
                let Refrain { count, least, tried, .. } = *self;
                *self = Refrain { pe, count, least, tried, ..Refrain::default() };
            }
            return;
        }
        self.others = 0;
        let after = self.starts.last().map_or(0, |last| cycle - last.cycle);
        self.starts.push(Start { task, after, cycle });
        if self.found.is_none() {
            self.found = self.repetition();
        }
        if self.starts.len() == MEMORY {
            self.starts.drain(..MEMORY / 2);
        }
    }

    /// The shortest repetition that ends with the last start.
    fn repetition(&self) -> Option<Found> {
        let (last, before) = self.starts.split_last()?;
        let same = before.iter().rposition(|start| start.is_like(*last));
        let mut at = same?;
        for _ in 0..TRIES {
            let starts = before.len() - at;
            if starts >= self.least && self.repeats(starts) {
                let cycles = last.cycle - self.starts[at].cycle;
                return Some(Found { cycles, starts });
            }
            at = before[..at].iter().rposition(|start| start.is_like(*last))?;
        }
        None
    }

    /// Whether the last starts are like as many before them.
    fn repeats(&self, starts: usize) -> bool {
        let (last, count) = (&self.starts, self.starts.len());
        // What the very first came after is not known.
        count > 2 * starts
            && (count - starts..count).rev().all(|at| last[at].is_like(last[at - starts]))
    }

    /// What was found.
    pub(crate) fn found(&self) -> Option<Found> {
        self.found
    }

    /// What was heard so far says nothing any more.
    pub(super) fn forget(&mut self) {
        self.starts.clear();
        self.found = None;
    }

    /// What was found has been looked into, in vain. When it was the second time only longer ones count; one PE
    /// may do the same again while others are still on their way to it.
    pub(super) fn was_in_vain(&mut self, found: Found) {
        if found.starts > self.tried {
            self.tried = found.starts.max(2 * self.tried);
        } else {
            self.least = (2 * self.least).max(found.starts + 1);
        }
    }
}
