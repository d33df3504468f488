//! How things stood after some round, to go back to.

use super::Part;
use crate::exec::Segment;
use crate::pe::code::Code;
use crate::pe::core::Core;
use crate::sched::region::Region;
use crate::sched::rounds::hand::Hand;
use crate::sched::rounds::meeting::Mail;
use crate::sched::rounds::ways::Fifo;

/// How things stood after a round.
pub(in crate::sched::rounds) struct Kept<C: Code> {
    rounds: u64,
    /// What came of code is kept of cores that look at it again.
    cores: Vec<(C::State, Option<Segment>, Hand<C>)>,
    words: Vec<Fifo>,
}

impl<C: Code> Part<'_, C> {
    /// Keeps how things stand.
    pub(super) fn keep(&mut self, regions: &[Region<C>], rounds: u64) {
        let first = self.first.0;
        let core = |process: &super::Process<C>| {
            regions[(process.at.0 - first) as usize].cores[process.at.1 as usize].as_deref()
        };
        let segment = |process: &super::Process<C>, core: &Core<C>| {
            process.counts.then(|| core.segment.clone())
        };
        let Some(kept) = &mut self.kept else {
            let cores = self.processes.iter().flatten().filter_map(|process| {
                let core = core(process)?;
                Some((core.state.clone(), segment(process, core), process.hand.clone()))
            });
            let words = self.fifos.iter().map(|fifo| fifo.words.clone()).collect();
            self.kept = Some(Kept { rounds, cores: cores.collect(), words });
            return;
        };
        // In the memory of the one before.
        kept.rounds = rounds;
        for (process, (state, came, hand)) in self.processes.iter().flatten().zip(&mut kept.cores) {
            if let Some(core) = core(process) {
                state.clone_from(&core.state);
                (*came, *hand) = (segment(process, core), process.hand.clone());
            }
        }
        for (fifo, words) in self.fifos.iter().zip(&mut kept.words) {
            words.copy(&fifo.words);
        }
    }

    /// All is as it was kept; after how many rounds that was.
    pub(super) fn restore(&mut self, regions: &mut [Region<C>]) -> u64 {
        let Some(Kept { rounds, cores, words }) = self.kept.take() else { return 0 };
        for (process, (state, segment, hand)) in self.processes.iter_mut().flatten().zip(cores) {
            let region = (process.at.0 - self.first.0) as usize;
            let core = regions[region].cores[process.at.1 as usize].as_deref_mut();
            if let Some(core) = core {
                core.state = state;
                core.segment = segment.unwrap_or_default();
            }
            process.hand = hand;
            process.begin();
            process.in_turn.iter_mut().for_each(|(_, turns)| turns.begin());
        }
        for (fifo, words) in self.fifos.iter_mut().zip(words) {
            (fifo.words, fifo.needed) = (words, 0);
            if let Some(turns) = &mut fifo.turns {
                turns.begin();
            }
        }
        // Words of a round that is as if it had not been.
        self.out.iter_mut().for_each(Mail::clear);
        rounds
    }
}
