//! What the state of a machine is in time: all that has a say in when things happen, seen from a
//! cycle, without values.
//!
//! Invariant: two machines with equal images do the same in the same number of cycles, as long as
//! their code comes to the same.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::tape::commands;
use crate::exec::{Stop, Stream, VectorStart};
use crate::fabric::channel::Channel;
use crate::fabric::pipe::Pipe;
use crate::fabric::ring::{NEVER, Ring};
use crate::pe::code::Code;
use crate::sched::region::Region;

/// Cycles after which it does not matter any more when something was, where nothing else is said.
const MEMORY: u64 = 256;

/// Notes what it is told, seen from a cycle.
pub(crate) struct Noter<'a> {
    cycle: u64,
    /// The region is of the `flow` engine, which has these pipes; how many have been closed.
    pub(crate) flow: bool,
    pub(crate) pipes: &'a [Pipe],
    pub(crate) closed: u32,
    hasher: FxHasher,
    counters: Vec<u64>,
    /// Counts that go on as long as nobody looks at them: since when, and how far.
    counts: Vec<Count>,
    /// Whether a machine in this state can be told without times.
    fits: bool,
}

impl Noter<'_> {
    /// Something that is not a cycle.
    pub(crate) fn value(&mut self, value: impl Hash) {
        value.hash(&mut self.hasher);
    }

    /// A cycle, however long ago.
    pub(crate) fn cycle(&mut self, cycle: u64) {
        self.value(if cycle == NEVER { NEVER } else { cycle.wrapping_sub(self.cycle) });
    }

    /// A cycle from which something is so: since when does not matter.
    pub(crate) fn from(&mut self, cycle: u64) {
        self.cycle(cycle.max(self.cycle));
    }

    /// Whether nobody remembers what was in a cycle.
    pub(crate) fn is_old(&self, cycle: u64) -> bool {
        cycle.saturating_add(MEMORY) <= self.cycle
    }

    /// A cycle, if it is to come or somebody remembers it.
    pub(crate) fn stamp(&mut self, cycle: u64) {
        if self.is_old(cycle) { self.value(MEMORY) } else { self.cycle(cycle) }
    }

    /// A cycle, if it is to come.
    pub(crate) fn ahead(&mut self, cycle: u64) {
        if cycle < self.cycle { self.value(NEVER - 1) } else { self.cycle(cycle) }
    }

    /// A count of something since a cycle, which begins anew when somebody looks at it who finds it `due`.
    pub(crate) fn count(&mut self, since: u64, count: u64, due: bool) {
        self.counts.push(Count { since, count, due });
        self.counters.extend([since, count]);
    }

    /// The cycle that all is seen from.
    pub(crate) fn now(&self) -> u64 {
        self.cycle
    }

    /// A counter that nothing depends on.
    pub(crate) fn counter(&mut self, count: u64) {
        self.counters.push(count);
    }

    /// This must hold.
    pub(crate) fn only(&mut self, fits: bool) {
        self.fits &= fits;
    }

    /// How a piece of code ends, whatever the values.
    pub(crate) fn stop(&mut self, stop: &Stop) {
        let Stop::Vector(start) = stop else { return self.value(format!("{stop:?}")) };
        let mut start = VectorStart::clone(start);
        let values = if commands(&start) { &mut [][..] } else { &mut start.sources[..] };
        for source in values {
            if let Stream::Scalar(value) = source {
                *value = 0;
            }
        }
        self.value(format!("{start:?}"));
    }

    /// Words and places of a buffer; `in_view`: of words that can be seen it does not matter since when.
    pub(crate) fn ring<const N: usize>(&mut self, ring: &Ring<N>, in_view: bool) {
        self.only(!ring.is_marked());
        self.value((ring.len(), ring.places()));
        for word in ring.words() {
            if in_view {
                self.from(word.stamp)
            } else {
                self.cycle(word.stamp)
            }
            self.value((word.color, word.advance, word.origin));
        }
        let now = self.cycle;
        ring.to_come(now).for_each(|free| self.cycle(free));
    }
}

/// The state of some regions in time, before a cycle.
#[derive(Debug)]
pub(super) struct Image {
    /// By PE, and behind those of a region what it is to look at.
    states: Vec<u64>,
    /// What has been counted.
    counts: Vec<Count>,
}

/// Something is counted since a cycle, and begins anew when it is looked at and is due.
#[derive(Clone, Copy, Debug)]
struct Count {
    since: u64,
    count: u64,
    due: bool,
}

/// Counters that nothing depends on.
pub(super) type Counters = Vec<u64>;

impl Image {
    /// Notes the state before a cycle; none if it has to do with more than cycles and words.
    pub(super) fn of<C: Code>(
        code: &C,
        regions: &[Region<C>],
        cycle: u64,
    ) -> Option<(Image, Counters)> {
        let mut image = Image { states: Vec::new(), counts: Vec::new() };
        let mut counters = Counters::new();
        for region in regions {
            if !region.is_plain() {
                return None;
            }
            image.note(code, region, cycle, &mut counters)?;
        }
        Some((image, counters))
    }

    fn note<C: Code>(
        &mut self,
        code: &C,
        region: &Region<C>,
        cycle: u64,
        counters: &mut Counters,
    ) -> Option<()> {
        let first = self.states.len();
        for pe in 0..region.cores.len() {
            let noted = self.noted(region, cycle, counters, |noter| {
                if let Some(router) = &region.routers[pe] {
                    router.note(noter);
                }
                if let Some(core) = &region.cores[pe] {
                    core.note(code, noter);
                }
                if let Some(landing) = region.landings.get(pe) {
                    landing.note(noter);
                }
            })?;
            self.states.push(noted);
        }
        for channel in &region.channels {
            let mut begins = None;
            let noted =
                self.noted(region, cycle, counters, |noter| begins = channel.note(noter))?;
            // Channels have no order.
            if let Some(pe) = begins {
                let state = &mut self.states[first + pe as usize];
                *state = state.wrapping_add(noted);
            }
        }
        if region.flow {
            let noted = self.noted(region, cycle, counters, |noter| region.note_flow(noter))?;
            self.states.push(noted);
        }
        Some(())
    }

    /// What some part of a region notes.
    fn noted<C: Code>(
        &mut self,
        region: &Region<C>,
        cycle: u64,
        counters: &mut Counters,
        note: impl FnOnce(&mut Noter<'_>),
    ) -> Option<u64> {
        let mut noter = Noter {
            cycle,
            flow: region.flow,
            pipes: &region.pipes,
            closed: region.closed,
            hasher: FxHasher::default(),
            counters: std::mem::take(counters),
            counts: std::mem::take(&mut self.counts),
            fits: true,
        };
        note(&mut noter);
        (*counters, self.counts) = (noter.counters, noter.counts);
        noter.fits.then(|| mixed(noter.hasher.finish()))
    }

    /// Whether the state is what it was some cycles ago.
    pub(super) fn is_like(&self, before: &Image, cycles: u64) -> bool {
        // What was looked at in between is to be as it was; what was due all the time and was not goes on.
        let fits = |(now, before): (&Count, &Count)| {
            let unseen = now.since == before.since && before.due;
            unseen || now.since == before.since + cycles && now.count == before.count
        };
        self.states == before.states
            && self.counts.len() == before.counts.len()
            && self.counts.iter().zip(&before.counts).all(fits)
    }
}

/// A hash whose parts all count in all of it, so that several may be added up: the hasher is linear in what it is told,
/// and opposite changes of two parts would come to nothing (the finalizer of Steele, Lea and Flood's SplitMix, 2014).
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

impl<C: Code> Region<C> {
    /// Whether nothing is under way but between cores.
    fn is_plain(&self) -> bool {
        self.cuts.is_empty()
            && self.late.is_empty()
            && self.to_host.is_empty()
            && self.printed.is_empty()
            && self.watch.to_mesh == 0
            && self.trap.is_none()
            && self.is_told()
            && !self.deals()
            && !self.flights.hold_words()
            && self.next_forks == NEVER
            && self.gathers.words().next().is_none()
            && self.merges.rest(&self.timing, self.now)
    }

    /// Whether no words are in its routers or are about to enter them, and nothing is under way but between cores.
    pub(super) fn is_still(&self) -> bool {
        let mut routers = self.routers.iter().flatten();
        let mut cores = self.cores.iter().flatten();
        self.is_plain()
            && routers.all(|it| it.words() == 0)
            && cores.all(|it| it.is_still())
            && self.channels.iter().all(Channel::is_empty)
    }

    /// Whether it knows all that other regions have done.
    pub(super) fn is_told(&self) -> bool {
        self.news.is_empty() && self.taken_abroad.is_empty()
    }

    /// Notes what the `flow` engine has beside PEs.
    fn note_flow(&self, noter: &mut Noter<'_>) {
        noter.value((self.closed, self.pipes.len(), &self.unused));
        self.pipes.iter().for_each(|pipe| pipe.note(noter));
        for users in &self.loads {
            users.iter().for_each(|user| user.note(noter));
            noter.value(users.len());
        }
        self.leaps.note(noter);
        self.wakes.note(noter);
    }
}
