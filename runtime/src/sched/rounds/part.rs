//! PEs of some regions in rounds, done by one thread.
//!
//! Invariants: what code comes to is held against the tape; words for PEs of other parts go there by
//! [`Meeting::post`], in the order in which they are made. Queues of words that go on to another one hold those of one
//! sender; between rounds they are empty, and it is the first one's turn.

mod code;
mod elements;
mod keep;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::keep::Kept;
use super::hand::Hand;
use super::meeting::{Mail, Meeting, Wait};
use super::outcome::Outcome;
use super::switched::Turns;
use super::tape::{Act, OPERATIONS, Script};
use super::ways::{Fifo, Place};
use crate::exec::Segment;
use crate::jit::prefetch;
use crate::pe::code::{Code, Pe};
use crate::pe::core::Core;
use crate::sched::plan::Plan;
use crate::sched::region::Region;

/// Turns of PEs after which limits are looked at.
const CHECK: u32 = 1 << 12;

/// How things stand is kept again when rounds have taken so many times what that takes.
const WORTH: u32 = 8;

/// Queues of a PE that the host fetches ahead of its turn: those that it takes words from are the first.
const FETCHED: usize = 16;

/// "No queue of words."
pub(super) const NONE: u32 = u32::MAX;

/// Some of the PEs and their words.
pub(super) struct Part<'a, C: Code> {
    pub(super) plan: &'a Plan,
    pub(super) code: &'a C,
    /// Its number.
    pub(super) number: usize,
    /// Its first region, process and queue of words among all. Processes name queues of their own from that on.
    pub(super) first: (u32, u32, u32),
    /// Rounds that are done together: a PE that waits for none goes on, while all that it looks at is at hand.
    pub(super) together: u64,
    /// Number of its regions.
    pub(super) regions: usize,
    /// What PEs do, and what came of code.
    pub(super) scripts: Arc<[Script]>,
    pub(super) outcomes: Vec<Outcome>,
    /// Its PEs; the one that goes on is not among them.
    pub(super) processes: Vec<Option<Box<Process<C>>>>,
    pub(super) fifos: Vec<Queue>,
    /// PEs that may go on; who has had words last is the first, while all that it looks at is at hand.
    pub(super) ready: Vec<u32>,
    /// Operations take words as they come. If not, they wait for all that they need for what they do next: there
    /// is less to look at.
    pub(super) by_words: bool,
    /// What comes of code whose core does not look at it again.
    pub(super) segment: Segment,
    /// A buffer for words that cannot be made where they are taken, and long ones for queues: those that were used last
    /// are still in the host's caches.
    pub(super) made: Vec<u32>,
    pub(super) spare: Vec<Vec<u32>>,
    /// Words for other parts, by part.
    pub(super) out: Vec<Mail>,
    pub(super) kept: Option<Kept<C>>,
}

/// Words for an input queue of a PE.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) words: Fifo,
    /// So many words are waited for, if any.
    pub(super) needed: u32,
    /// Who takes them, by which path they come, and to which end of it.
    pub(super) process: u32,
    pub(super) path: u32,
    pub(super) end: u32,
    /// The queue that they go on to, with those of other senders ([`NONE`]: none); in which order they come into that.
    pub(super) joins: u32,
    pub(super) turns: Option<Box<Turns<u32>>>,
}

/// A color, and the queues that its words go into in turn, among all.
pub(super) type InTurn = (u8, Turns<Box<[u32]>>);

/// A PE, as a process.
pub(super) struct Process<C: Code> {
    pub(super) at: Place,
    pub(super) pe: Pe,
    /// Its core looks again at what came of its last code.
    pub(super) counts: bool,
    /// What it does.
    pub(super) script: u32,
    /// Rounds that are done of those that are under way.
    pub(super) done: u64,
    /// The next act, and how many of its elements are done.
    pub(super) next: usize,
    pub(super) elements: [u32; OPERATIONS],
    pub(super) hand: Hand<C>,
    /// Queues of words by input queue, and those that words of a color go into, in the order of colors: among all.
    pub(super) inputs: Vec<u32>,
    pub(super) outputs: Vec<(u8, u32)>,
    /// Queues of words that words of a color go into in turn, where they are not always the same.
    pub(super) in_turn: Vec<InTurn>,
    /// The first of its own queues of words, and the one behind the last.
    pub(super) queues: (u32, u32),
    /// The task that it ran when it was taped.
    pub(super) task: u16,
    /// Queues whose words it waits for.
    pub(super) missing: u32,
    /// It is among those that may go on, or will be in the next round.
    pub(super) is_ready: bool,
}

impl<C: Code> Process<C> {
    /// It stands before its first act.
    fn begin(&mut self) {
        (self.done, self.next, self.elements) = (0, 0, [0; OPERATIONS]);
        (self.missing, self.is_ready) = (0, true);
    }
}

/// How far a PE came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Went {
    Through,
    /// It waits for words.
    Waits,
    /// It came to something else than is on its tape.
    Apart,
}

impl<C: Code> Part<'_, C> {
    /// Does rounds together with other parts, `most` at most and as long as `goes_on` says that the run does; how
    /// many.
    pub(super) fn play(
        &mut self,
        regions: &mut [Region<C>],
        most: u64,
        goes_on: &dyn Fn(u64) -> bool,
        meeting: &Meeting,
    ) -> u64 {
        let (mut rounds, mut keep, mut together) = (0, 0, self.together);
        let mut kept = (Instant::now(), Duration::ZERO);
        let mut bisects = false;
        while meeting.agree(rounds < most && goes_on(rounds)) {
            // What is done again for a round that differs is an eighth of all at most, or what takes no longer than
            // `WORTH` times what it takes to keep it. Once one has differed the first that does is searched for by
            // bisection, and things are kept as soon as rounds have taken as long as that takes.
            let (worth, next) = if bisects { (1, 0) } else { (WORTH, 1 + rounds / 8) };
            if rounds >= keep && meeting.agree(kept.0.elapsed() >= worth * kept.1) {
                let now = Instant::now();
                self.keep(regions, rounds);
                kept = (Instant::now(), now.elapsed());
                keep = rounds + next;
            }
            // Where a round differs soon no more are done in vain than have been done.
            let count = together.min(rounds + 1).min(most - rounds);
            if self.rounds(regions, count, &|| goes_on(rounds), meeting) {
                #[cfg(test)]
                (0..count).for_each(|_| {
                    crate::sched::reached::note(crate::sched::reached::Reached::Round)
                });
                rounds += count;
            } else {
                rounds = self.go_back(regions, rounds, goes_on, meeting);
                if count == 1 {
                    break;
                }
                (bisects, keep, kept.1) = (true, rounds, Duration::ZERO);
            }
            if bisects {
                together = (count / 2).max(1);
            }
        }
        rounds
    }

    /// One of the rounds that came last differs, or the run is to end: all is as it was after `rounds`, or, if the run
    /// is to end at once, as it was kept; after how many rounds that is.
    fn go_back(
        &mut self,
        regions: &mut [Region<C>],
        rounds: u64,
        goes_on: &dyn Fn(u64) -> bool,
        meeting: &Meeting,
    ) -> u64 {
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Apart);
        let since = self.restore(regions);
        let again = if meeting.agree(goes_on(since)) { rounds - since } else { 0 };
        self.again(regions, again, meeting);
        since + again
    }

    /// Does rounds that are known to come to what is on the tapes.
    fn again(&mut self, regions: &mut [Region<C>], mut rounds: u64, meeting: &Meeting) {
        while rounds != 0 {
            let count = self.together.min(rounds);
            let same = self.rounds(regions, count, &|| true, meeting);
            debug_assert!(same || meeting.is_left());
            rounds -= count;
            // No words of the next ones come before.
            meeting.agree(true);
        }
    }

    /// Does some rounds; whether all parts came to what is on the tapes, and none left off.
    fn rounds(
        &mut self,
        regions: &mut [Region<C>],
        count: u64,
        goes_on: &dyn Fn() -> bool,
        meeting: &Meeting,
    ) -> bool {
        let same = self.own_rounds(regions, count, goes_on, meeting);
        if !same {
            meeting.leave_round();
        }
        let same = meeting.agree(same);
        self.take_mail(meeting);
        same
    }

    /// Each PE does so many rounds, as far as it comes each time.
    fn own_rounds(
        &mut self,
        regions: &mut [Region<C>],
        count: u64,
        goes_on: &dyn Fn() -> bool,
        meeting: &Meeting,
    ) -> bool {
        let scripts = Arc::clone(&self.scripts);
        self.ready.clear();
        self.ready.extend(0..self.processes.len() as u32);
        let (mut open, mut looks) = (self.processes.len(), 0_u32);
        while open != 0 {
            looks += 1;
            if looks.is_multiple_of(CHECK) && !goes_on() {
                return false;
            }
            let Some(at) = self.ready.pop() else {
                match meeting.wait(self.number, self.by_words) {
                    Wait::Mail => self.take_mail(meeting),
                    Wait::ByWords => self.go_by_words(),
                    Wait::Leave => return false,
                }
                continue;
            };
            let Some(mut process) = self.processes[at as usize].take() else { continue };
            process.is_ready = false;
            self.fetch(regions);
            let went = self.go(regions, &mut process, count, &scripts);
            if went == Went::Through {
                process.begin();
                open -= 1;
            }
            self.processes[at as usize] = Some(process);
            if went == Went::Apart {
                return false;
            }
            meeting.post(&mut self.out);
        }
        true
    }

    /// PEs wait for each other: they are to hand on what they have, from now on.
    fn go_by_words(&mut self) {
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::ByWords);
        self.by_words = true;
        for (at, process) in (0..).zip(&mut self.processes) {
            if let Some(process) = process
                && !process.is_ready
            {
                (process.missing, process.is_ready) = (0, true);
                self.ready.push(at);
            }
        }
    }

    /// Takes words that other parts have sent.
    fn take_mail(&mut self, meeting: &Meeting) {
        let Mail { words, into, .. } = meeting.take(self.number);
        let mut words = &words[..];
        for (fifo, count) in into {
            let (new, rest) = words.split_at(count as usize);
            words = rest;
            let own = (fifo - self.first.2) as usize;
            self.fifos[own].words.extend(new, &mut self.spare);
            self.wake(own);
        }
    }

    /// Words of several senders go on into a queue, as far as those have come whose turn it is.
    fn join(&mut self, into: usize) {
        let Some(mut turns) = self.fifos[into].turns.take() else { return };
        while let Some((&lane, left)) = turns.now() {
            let mut words = std::mem::take(&mut self.fifos[lane as usize].words);
            let count = words.len().min(left as usize);
            self.fifos[into].words.extend(&words.words()[..count], &mut self.spare);
            words.take(count);
            self.fifos[lane as usize].words = words;
            if count == 0 {
                break;
            }
            turns.pass(count as u32);
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::RoundJoined);
        }
        self.fifos[into].turns = Some(turns);
    }

    /// Words have come into a queue; who waits for them goes on. Who goes on now looks again.
    fn wake(&mut self, fifo: usize) {
        let fifo = match self.fifos[fifo].joins {
            NONE => fifo,
            into => {
                self.join(into as usize);
                into as usize
            }
        };
        let Queue { words: fifo, process, needed, .. } = &mut self.fifos[fifo];
        if *needed == 0 || fifo.len() < *needed as usize {
            return;
        }
        let process = *process - self.first.1;
        let Some(reader) = &mut self.processes[process as usize] else { return };
        *needed = 0;
        reader.missing = reader.missing.saturating_sub(1);
        if (reader.missing == 0 || self.by_words) && !reader.is_ready {
            reader.is_ready = true;
            self.ready.push(process);
            self.fetch_process(process);
        }
    }

    /// Has the host fetch what the PEs that go on next look at, ahead of their turns.
    fn fetch(&self, regions: &[Region<C>]) {
        if let [.., soon, _] = self.ready[..]
            && let Some(process) = &self.processes[soon as usize]
        {
            prefetch(&**process);
        }
        let Some(&next) = self.ready.last() else { return };
        self.fetch_process(next);
        let Some(process) = &self.processes[next as usize] else { return };
        let core = regions[self.region(process.at)].cores[process.at.1 as usize].as_deref();
        if let Some(core) = core {
            prefetch(&core.state);
        }
    }

    /// Likewise, of what one PE has in the part.
    fn fetch_process(&self, process: u32) {
        let Some(process) = &self.processes[process as usize] else { return };
        let (from, to) = process.queues;
        self.fifos[from as usize..to as usize].iter().take(FETCHED).for_each(prefetch);
        process.inputs.first().into_iter().for_each(prefetch);
        process.outputs.first().into_iter().for_each(prefetch);
    }

    /// Which of the part's regions a PE is in.
    fn region(&self, at: Place) -> usize {
        (at.0 - self.first.0) as usize
    }

    /// Does what a PE can do.
    fn go(
        &mut self,
        regions: &mut [Region<C>],
        process: &mut Process<C>,
        rounds: u64,
        scripts: &[Script],
    ) -> Went {
        let (region, script) = (self.region(process.at), &scripts[process.script as usize]);
        let Some(core) = &mut regions[region].cores[process.at.1 as usize] else {
            return Went::Apart;
        };
        let into = process.outputs.iter().filter_map(|&(_, into)| self.own(into));
        into.for_each(|own| prefetch(&self.fifos[own]));
        let mut went = Went::Through;
        let mut next = process.next;
        while went == Went::Through {
            let Some(&act) = script.acts.get(next) else {
                process.done += 1;
                if process.done == rounds {
                    break;
                }
                next = 0;
                continue;
            };
            let acts;
            (went, acts) = match act {
                Act::Elements { .. } => self.all_elements(core, process, &script.acts[next..]),
                Act::Code { entry, first, count } => {
                    let pieces = &script.pieces[first as usize..][..count as usize];
                    let is_last = Some(next) == script.last_code;
                    (self.code(core, process, entry, pieces, is_last), 1)
                }
                _ => (self.act(core, process, act), 1),
            };
            if went == Went::Through {
                next += acts;
            }
        }
        process.next = next;
        went
    }

    fn act(&mut self, core: &mut Core<C>, process: &mut Process<C>, act: Act) -> Went {
        match act {
            Act::Word { queue } => {
                let fifo = process.inputs.get(usize::from(queue)).copied().unwrap_or(NONE);
                let Some(fifo) = self.fifos.get_mut(fifo as usize) else { return Went::Apart };
                fifo.needed = 0;
                let Some(&word) = fifo.words.words().first() else {
                    (fifo.needed, process.missing) = (1, 1);
                    return Went::Waits;
                };
                fifo.words.take(1);
                process.hand.word = Some(word);
                Went::Through
            }
            Act::Launch { thread } => {
                process.hand.launch(thread);
                Went::Through
            }
            Act::Code { .. } | Act::Elements { .. } => Went::Apart,
            Act::Finish { operation, whole } => self.finish(core, process, operation, whole),
        }
    }
}
