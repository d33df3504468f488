//! When one PE has done the same twice, or in several visits: the first sign that a whole machine does.

/// Task starts that are remembered.
const MEMORY: usize = 1 << 13;
/// Visits per PE with starts after which another one is listened to, if this one has had none.
const DEAF: u64 = 64;
/// Repetitions of more starts per visit than this count after so many visits: a main thread that runs ahead does
/// them in little time, and to tape them takes several times as long. [`MEMORY`] has room for six visits of a
/// thousand starts each.
const MANY: usize = 16;
const PATIENCE: usize = 5;
/// Earlier starts of the same task that are tried.
const TRIES: usize = 64;

/// Task starts of one PE, until they come again as they came before.
#[derive(Debug, Default)]
pub(crate) struct Refrain {
    pe: u32,
    /// Visits to other PEs with starts since its last one, and the last of these.
    others: u64,
    other: (u32, u64),
    /// Number of PEs.
    count: u64,
    starts: Vec<Start>,
    /// Where those begin that are like the last one without others between.
    began: usize,
    /// Starts in the shortest repetition that counts.
    least: usize,
    /// One with so many starts or fewer has been looked into before.
    tried: usize,
    found: Option<Found>,
}

/// A task starts so many cycles after the one before, in a visit to the core: a main thread that runs ahead starts
/// many in one, the first of which is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    task: u16,
    after: u64,
    cycle: u64,
    visit: u64,
    is_first: bool,
}

impl Start {
    fn is_like(self, other: Start) -> bool {
        (self.task, self.after, self.is_first) == (other.task, other.after, other.is_first)
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

    /// A task of a PE starts in a cycle, in the core's visit of another one.
    #[inline]
    pub(crate) fn note(&mut self, pe: u32, visit: u64, cycle: u64, task: u16) {
        if pe != self.pe {
            self.others += u64::from(self.other != (pe, visit));
            self.other = (pe, visit);
            if self.others > DEAF * self.count && self.found.is_none() {
                let Refrain { count, least, tried, .. } = *self;
                *self = Refrain { pe, count, least, tried, ..Refrain::default() };
            }
            return;
        }
        self.others = 0;
        let last = self.starts.last();
        let after = last.map_or(0, |last| cycle - last.cycle);
        let is_first = last.is_none_or(|last| last.visit != visit);
        let start = Start { task, after, cycle, visit, is_first };
        if self.starts.last().is_none_or(|last| !last.is_like(start)) {
            self.began = self.starts.len();
        }
        self.starts.push(start);
        // How far a main thread is ahead is part of a machine's state: it repeats itself from visit to visit.
        if is_first && self.found.is_none() {
            self.found = self.repetition();
        }
        if self.starts.len() == MEMORY {
            self.starts.drain(..MEMORY / 2);
            self.began = self.began.saturating_sub(MEMORY / 2);
        }
    }

    /// Tasks of a PE do, one after the other in one visit.
    pub(crate) fn note_all(
        &mut self,
        pe: u32,
        visit: u64,
        starts: impl ExactSizeIterator<Item = (u64, u16)>,
    ) {
        // One that is not listened to is so from the last one on, if it is from now on.
        let unheard = if pe == self.pe { 0 } else { starts.len().saturating_sub(1) };
        starts.skip(unheard).for_each(|(cycle, task)| self.note(pe, visit, cycle, task));
    }

    /// The shortest repetition that ends with the last start.
    fn repetition(&self) -> Option<Found> {
        let (last, least) = (*self.starts.last()?, self.least.max(1));
        // In a row of starts that are alike, repetitions are told apart by where it begins.
        if self.starts.len() - self.began > 1 {
            let long = self.starts.len() - self.began == 2 * least + 1;
            return if long { self.found_in(least) } else { None };
        }
        let mut before = &self.starts[..(self.began + 1).checked_sub(least)?];
        for _ in 0..TRIES {
            let at = before.iter().rposition(|start| start.is_like(last))?;
            if let Some(found) = self.found_in(self.began - at) {
                return Some(found);
            }
            before = &before[..at];
        }
        None
    }

    /// A repetition of so many starts, if it is one.
    fn found_in(&self, starts: usize) -> Option<Found> {
        let first = self.starts.len().checked_sub(starts + 1)?;
        let cycles = self.starts.last()?.cycle - self.starts[first].cycle;
        self.repeats(starts).then_some(Found { cycles, starts })
    }

    /// Whether the last starts are like as many before them, often enough.
    fn repeats(&self, starts: usize) -> bool {
        let (last, count) = (&self.starts, self.starts.len());
        let alike = |times: usize| {
            // What the very first came after is not known.
            let from = count.checked_sub(times * starts).filter(|from| *from > starts);
            from.is_some_and(|from| {
                (from..count).rev().all(|at| last[at].is_like(last[at - starts]))
            })
        };
        if !alike(1) {
            return false;
        }
        let visits = last[count - starts..].iter().filter(|start| start.is_first).count();
        starts <= MANY * visits || alike(PATIENCE.div_ceil(visits.max(1)))
    }

    /// What was found.
    pub(crate) fn found(&self) -> Option<Found> {
        self.found
    }

    /// Whether something was looked into in vain before.
    pub(super) fn doubts(&self) -> bool {
        self.tried != 0
    }

    /// What was heard so far says nothing any more.
    pub(super) fn forget(&mut self) {
        self.starts.clear();
        (self.began, self.found) = (0, None);
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

#[cfg(test)]
mod tests {
    use super::{DEAF, MEMORY, PATIENCE, Refrain};

    /// The starts of a repetition that is found in these tasks of one PE, which come again and again, a cycle apart
    /// but for the last one of each turn.
    fn found(least: usize, turn: &[u16], turns: usize) -> Option<usize> {
        let mut refrain = Refrain { least, ..Refrain::new(1) };
        let mut cycle = 0;
        for &task in std::iter::repeat_n(turn, turns).flatten() {
            cycle += if Some(&task) == turn.last() { 7 } else { 1 };
            refrain.note(0, cycle, cycle, task);
        }
        refrain.found().map(|found| found.starts)
    }

    #[test]
    fn the_shortest_repetition_that_counts_is_found() {
        assert_eq!(found(0, &[1, 2, 3], 4), Some(3));
        assert_eq!(found(4, &[1, 2, 3], 8), Some(6));
        // What is alike repeats itself, until that does not count.
        assert_eq!(found(0, &[1, 1, 1, 1, 1, 2], 2), Some(1));
        assert_eq!(found(5, &[1, 1, 1, 1, 1, 2], 2), None);
        assert_eq!(found(5, &[1, 1, 1, 1, 1, 2], 4), Some(6));
    }

    /// What is found where the main thread does so many starts in each visit.
    fn found_ahead(in_visit: u64, starts: u64) -> Option<usize> {
        let mut refrain = Refrain::new(1);
        (0..starts).for_each(|at| refrain.note(0, at / in_visit, 3 * at, (at % 2) as u16));
        refrain.found().map(|found| found.starts)
    }

    #[test]
    fn a_main_thread_that_runs_ahead_repeats_itself_from_visit_to_visit() {
        assert_eq!(found_ahead(1, 8), Some(2));
        assert_eq!(found_ahead(10, 31), Some(10));
        assert_eq!(found_ahead(9, 46), Some(18));
        // Many starts in a visit count later.
        let times = PATIENCE as u64 + 1;
        assert_eq!(found_ahead(100, times * 100), None);
        assert_eq!(found_ahead(100, times * 100 + 1), Some(100));
    }

    #[test]
    fn others_are_listened_to_by_visits() {
        let mut refrain = Refrain::new(2);
        (0..4).for_each(|at| refrain.note(0, 9, at, 1));
        // As many starts as there are in a visit say nothing.
        (0..1000).for_each(|at| refrain.note(1, 9, at, 1));
        assert_eq!(refrain.pe, 0);
        (10..10 + 2 * DEAF).for_each(|visit| refrain.note(1, visit, 1000 + visit, 1));
        assert_eq!(refrain.pe, 1);
    }

    #[test]
    fn what_was_found_is_kept_until_it_is_looked_into() {
        let mut refrain = Refrain::new(2);
        (0..4).for_each(|at| refrain.note(0, at, at, 1));
        assert!(refrain.found().is_some());
        (10..10 + 4 * DEAF).for_each(|visit| refrain.note(1, visit, visit, 1));
        assert!(refrain.found().is_some());
    }

    #[test]
    fn rows_of_starts_that_are_alike_are_no_obstacle() {
        let mut turn = vec![1; 256];
        turn.push(2);
        assert_eq!(found(129, &turn, 4), Some(257));
        assert_eq!(found(300, &turn, 6), Some(514));
        assert_eq!(found(1, &[1], 2 * MEMORY), Some(1));
        assert_eq!(found(200, &[1], 2 * MEMORY), Some(200));
    }
}
