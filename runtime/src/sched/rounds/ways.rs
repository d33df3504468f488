//! The ways by which words go from core to core in a round, and the words that are on them.
//!
//! Invariant: a queue gets its words from one sender, in the order in which that sent them.

use std::collections::HashSet;

use crate::fabric::channel::Outlet;
use crate::fabric::ring::Slot;
use crate::fabric::router::{RAMP, Router};
use crate::pe::code::Code;
use crate::pe::core::bits;
use crate::sched::plan::Plan;
use crate::sched::region::{Region, Way};

/// A PE: region, and number in it.
pub(super) type Place = (u32, u32);

/// Routers of a way that are compared one by one; more are looked up.
const SHORT: usize = 16;

/// The way of a color's words from a core.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) source: Place,
    pub(super) color: u8,
    /// Routers with the ports by which words come in, in the order of the words if there is one end.
    routers: Vec<(Place, u8)>,
    /// Cores and input queues that words come to.
    pub(super) ends: Vec<(Place, u8)>,
    /// The pipe that takes words there: region, and number in it.
    pipe: Option<(u32, u32)>,
}

impl Path {
    /// The way of a color's words from a core; none where it is not the same for all of them, or leads
    /// to the host or out of the machine.
    pub(super) fn find<C: Code>(
        plan: &Plan,
        regions: &[Region<C>],
        source: Place,
        color: u8,
    ) -> Option<Path> {
        let pipe = pipe_of(regions, source, color);
        let mut path = Path { source, color, routers: Vec::new(), ends: Vec::new(), pipe };
        let (mut open, mut seen) = (vec![(source, RAMP)], HashSet::new());
        while let Some((at, port)) = open.pop() {
            path.enters((at, port), &mut seen)?;
            let region = &regions[at.0 as usize];
            let (x, y) = region.place(at.1);
            // Words of channels have never been in routers.
            let untouched = || Router::new(plan, x, y);
            let made = region.routers[at.1 as usize].is_none().then(untouched);
            let router = region.routers[at.1 as usize].as_deref().or(made.as_ref())?;
            for out in bits(router.hands_on(plan, color, port)?.into()) {
                if out as u8 == RAMP {
                    let core = region.cores[at.1 as usize].as_deref()?;
                    let program = &plan.programs[usize::from(core.at.program)];
                    let queue = program.queue_of(color)?;
                    path.ends.push((at, queue as u8));
                    continue;
                }
                match router.behind(plan, at.0, out as u8, color) {
                    Way::Near { pe, port } => open.push(((at.0, pe), port)),
                    Way::Far { region, pe, port } => open.push(((region, pe), port)),
                    Way::Host { .. } | Way::Outside => return None,
                }
            }
        }
        Some(path)
    }

    /// It leads through a router by a port, if it does not yet; `seen` are those of a long one.
    fn enters(&mut self, router: (Place, u8), seen: &mut HashSet<(Place, u8)>) -> Option<()> {
        let is_new = match self.routers.len() {
            ..SHORT => !self.routers.contains(&router),
            SHORT => {
                seen.extend(&self.routers);
                seen.insert(router)
            }
            _ => seen.insert(router),
        };
        self.routers.push(router);
        is_new.then_some(())
    }

    /// It has more ends than one. Words that are on such a way between cores are in no queue of an end.
    pub(super) fn forks(&self) -> bool {
        self.ends.len() > 1
    }

    /// Whether a pipe takes words there.
    pub(super) fn has_pipe(&self) -> bool {
        self.pipe.is_some()
    }

    /// Number of words in routers on the way.
    pub(super) fn in_routers<C: Code>(&self, regions: &mut [Region<C>]) -> usize {
        let mut words = 0;
        for &(at, port) in &self.routers {
            let router = regions[at.0 as usize].routers[at.1 as usize].as_deref_mut();
            let buffer = router.and_then(|router| router.buffer(self.color, port));
            words += buffer.map_or(0, |buffer| buffer.len());
        }
        words
    }

    /// Number of words in its pipe.
    pub(super) fn in_pipe<C: Code>(&self, regions: &[Region<C>]) -> usize {
        let pipe = self.pipe.map(|(region, id)| &regions[region as usize].pipes[id as usize]);
        pipe.map_or(0, |pipe| pipe.held() as usize)
    }

    /// The words on their way to one of its ends, oldest first; none if they have no order. If it forks, no words
    /// are in its routers.
    pub(super) fn each_word<C: Code>(
        &self,
        regions: &mut [Region<C>],
        end: (Place, u8),
        each: &mut impl FnMut(&mut u32),
    ) -> Option<()> {
        let all = |_: &Slot| true;
        let (at, queue) = end;
        let core = regions[at.0 as usize].cores[at.1 as usize].as_deref_mut()?;
        core.inputs.get_mut(usize::from(queue))?.ring.payloads(all, each);
        // Where there are several ends nothing is between the cores.
        let between = if self.forks() { &[][..] } else { &self.routers };
        for &(at, port) in between.iter().rev() {
            let router = regions[at.0 as usize].routers[at.1 as usize].as_deref_mut();
            let buffer = router.and_then(|router| router.buffer(self.color, port));
            if let Some(buffer) = buffer {
                buffer.payloads(all, each);
            }
        }
        if let Some((region, id)) = self.pipe {
            regions[region as usize].pipes[id as usize].payloads(each);
        }
        let core = regions[self.source.0 as usize].cores[self.source.1 as usize].as_deref_mut()?;
        let mut queues = 0;
        for (_, output) in core.outputs.iter_mut() {
            queues += u32::from(output.ring.words().any(|word| word.color == self.color));
            if queues > 1 {
                return None;
            }
            output.ring.payloads(|word| word.color == self.color, each);
        }
        Some(())
    }
}

/// The end of the pipe by which a core sends a color where its words are taken.
fn pipe_of<C: Code>(regions: &[Region<C>], source: Place, color: u8) -> Option<(u32, u32)> {
    let region = &regions[source.0 as usize];
    let core = region.cores[source.1 as usize].as_deref()?;
    let Outlet::Pipe(id) = core.outlet(color) else { return None };
    let pipe = &region.pipes[id as usize];
    if !pipe.leads_abroad() {
        return Some((source.0, id));
    }
    let into = pipe.route().region;
    #[cfg(test)]
    crate::sched::reached::note(crate::sched::reached::Reached::RoundAbroad);
    let taker = regions[into as usize].from_abroad.get(&(source.0, id));
    taker.map(|&taker| (into, taker))
}

/// Words of a queue that have not been taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    words: Vec<u32>,
    taken: usize,
}

impl Fifo {
    /// Becomes like another one.
    pub(super) fn copy(&mut self, from: &Fifo) {
        self.words.clone_from(&from.words);
        self.taken = from.taken;
    }

    /// Number of words.
    pub(super) fn len(&self) -> usize {
        self.words.len() - self.taken
    }

    /// The words.
    pub(super) fn words(&self) -> &[u32] {
        &self.words[self.taken..]
    }

    /// Takes the first words.
    pub(super) fn take(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.words.len() {
            (self.taken, _) = (0, self.words.clear());
        } else if self.taken > 1 << 12 {
            self.words.drain(..std::mem::take(&mut self.taken));
        }
    }

    /// Appends words.
    pub(super) fn extend(&mut self, words: &[u32]) {
        self.words.extend_from_slice(words);
    }
}
