//! The ways by which words go from core to core in a round, and the words that are on them.
//!
//! Invariant: a queue gets its words from one sender, in the order in which that sent them, or from several in an order
//! that switches make ([`super::switched`]).

use rustc_hash::FxHashSet;

use crate::fabric::channel::Outlet;
use crate::fabric::ring::{Ring, Slot};
use crate::fabric::router::{RAMP, Router};
use crate::pe::code::Code;
use crate::pe::core::bits;
use crate::sched::plan::Plan;
use crate::sched::region::{Region, Way};

/// A PE: region, and number in it.
pub(super) type Place = (u32, u32);

/// Routers of a way that are compared one by one; more are looked up.
const SHORT: usize = 16;

/// Words that a buffer has room for which an empty queue gives up for others.
const LONG: usize = if cfg!(test) { 4 } else { 64 };

/// So many times as much room as it needs has a buffer at most that is kept for others.
const ROOM: usize = 4;

/// "No router."
const NONE: u32 = u32::MAX;

/// The way of a color's words from a core: a tree of routers.
#[derive(Debug)]
pub(super) struct Path {
    source: Place,
    color: u8,
    /// Those that hold words, each behind the one that it has its words from.
    routers: Box<[Node]>,
    /// Cores that words come to.
    pub(super) ends: Box<[End]>,
    /// The pipes that take words there, one for each if there are any: region, and number in it.
    pipes: Box<[(u32, u32)]>,
    /// The number of the channel that they go by, if they do.
    channel: Option<u32>,
}

/// A router on a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    at: Place,
    /// By which words come in.
    port: u8,
    /// The one before it.
    before: u32,
}

/// Where words of a way come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// The core, and its input queue.
    pub(super) at: Place,
    pub(super) queue: u8,
    /// The last router.
    router: u32,
}

impl Path {
    /// The way of a color's words from a core; none where it is not the same for all of them, or leads
    /// to the host or out of the machine.
    pub(super) fn find<C: Code>(
        plan: &Plan,
        regions: &mut [Region<C>],
        source: Place,
        color: u8,
    ) -> Option<Path> {
        let pipes = pipes_of(regions, source, color);
        let (mut routers, mut ends) = (Vec::new(), Vec::new());
        let (mut open, mut seen) = (vec![(source, RAMP, NONE)], FxHashSet::default());
        while let Some((at, port, before)) = open.pop() {
            let number = routers.len() as u32;
            if !is_new(&routers, (at, port), &mut seen) {
                return None;
            }
            routers.push(Node { at, port, before });
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
                    let queue = program.queue_of(color)? as u8;
                    ends.push(End { at, queue, router: number });
                    continue;
                }
                match router.behind(plan, at.0, out as u8, color) {
                    Way::Near { pe, port } => open.push(((at.0, pe), port, number)),
                    Way::Far { region, pe, port } => open.push(((region, pe), port, number)),
                    Way::Host { .. } | Way::Outside => return None,
                }
            }
        }
        let (routers, ends) = (routers.into(), Box::<[End]>::from(ends));
        // In the order of the ends.
        let pipe_to =
            |end: &End| pipes.iter().find(|&&(at, _)| at == end.at).map(|&(_, pipe)| pipe);
        let pipes = match pipes[..] {
            [] => Box::default(),
            [(_, pipe)] => [pipe].into(),
            [..] => ends.iter().map(pipe_to).collect::<Option<_>>()?,
        };
        let channel = channel_of(regions, source, color);
        let mut path = Path { source, color, routers, ends, pipes, channel };
        path.leave_out_empty(regions);
        Some(path)
    }

    /// The end of ways that switches turn: words are in the queue alone, and none of the color in output queues.
    pub(super) fn into_queue(at: Place, queue: u8, color: u8) -> Path {
        let ends = [End { at, queue, router: NONE }].into();
        let (routers, pipes) = (Box::default(), Box::default());
        Path { source: at, color, routers, ends, pipes, channel: None }
    }

    /// Routers without words are not looked at any more.
    fn leave_out_empty<C: Code>(&mut self, regions: &mut [Region<C>]) {
        let Path { routers, ends, color, .. } = self;
        // Of each, the last one up to it that holds words, among those.
        let (mut last, mut held): (Vec<u32>, Vec<Node>) = (Vec::new(), Vec::new());
        let of = |last: &[u32], router| last.get(router as usize).copied().unwrap_or(NONE);
        for node in &**routers {
            let before = of(&last, node.before);
            let buffer = node.buffer(regions, *color);
            let holds = buffer.is_some_and(|buffer| !buffer.is_empty());
            last.push(if holds { held.len() as u32 } else { before });
            held.extend(holds.then_some(Node { before, ..*node }));
        }
        ends.iter_mut().for_each(|end| end.router = of(&last, end.router));
        *routers = held.into();
    }

    /// Number of words in routers on the way.
    pub(super) fn in_routers<C: Code>(&self, regions: &mut [Region<C>]) -> usize {
        let words = |node: &Node| node.buffer(regions, self.color).map_or(0, |buffer| buffer.len());
        self.routers.iter().map(words).sum()
    }

    /// Number of words in its channel.
    pub(super) fn in_channel<C: Code>(&self, regions: &[Region<C>]) -> usize {
        let channels = &regions[self.source.0 as usize].channels;
        self.channel.map_or(0, |id| channels[id as usize].held())
    }

    /// Number of words in its pipes.
    pub(super) fn in_pipes<C: Code>(&self, regions: &[Region<C>]) -> usize {
        let pipes =
            self.pipes.iter().map(|&(region, id)| &regions[region as usize].pipes[id as usize]);
        pipes.map(|pipe| pipe.held() as usize).sum()
    }

    /// The words on their way to one of its ends, oldest first; none if they have no order. Words that
    /// go to several ends are on the way to each.
    pub(super) fn each_word<C: Code>(
        &self,
        regions: &mut [Region<C>],
        end: usize,
        each: &mut impl FnMut(&mut u32),
    ) -> Option<()> {
        let all = |_: &Slot| true;
        let End { at, queue, mut router } = self.ends[end];
        let core = regions[at.0 as usize].cores[at.1 as usize].as_deref_mut()?;
        core.inputs.get_mut(usize::from(queue))?.ring.payloads(all, each);
        while let Some(node) = self.routers.get(router as usize) {
            #[cfg(test)]
            if self.ends.len() > 1 {
                crate::sched::reached::note(crate::sched::reached::Reached::RoundForked);
            }
            if let Some(buffer) = node.buffer(regions, self.color) {
                buffer.payloads(all, each);
            }
            router = node.before;
        }
        if let Some(id) = self.channel {
            #[cfg(test)]
            if self.in_channel(regions) != 0 {
                crate::sched::reached::note(crate::sched::reached::Reached::RoundInChannel);
            }
            regions[self.source.0 as usize].channels[id as usize].payloads(each);
        }
        if !self.pipes.is_empty() {
            let &(region, id) =
                self.pipes.get(end).filter(|_| self.ends.len() == self.pipes.len())?;
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

impl Node {
    /// Words of a color that have come in here.
    fn buffer<'a, C: Code>(
        &self,
        regions: &'a mut [Region<C>],
        color: u8,
    ) -> Option<&'a mut Ring<3>> {
        let router = regions[self.at.0 as usize].routers[self.at.1 as usize].as_deref_mut();
        router.and_then(|router| router.buffer(color, self.port))
    }
}

/// Whether a way has not come by a port into a router yet; `seen` are those of a long one.
fn is_new(routers: &[Node], at: (Place, u8), seen: &mut FxHashSet<(Place, u8)>) -> bool {
    let place = |node: &Node| (node.at, node.port);
    match routers.len() {
        ..SHORT => !routers.iter().any(|node| place(node) == at),
        SHORT => {
            seen.extend(routers.iter().map(place));
            seen.insert(at)
        }
        _ => seen.insert(at),
    }
}

/// The channel by which a core sends a color.
fn channel_of<C: Code>(regions: &[Region<C>], source: Place, color: u8) -> Option<u32> {
    let core = regions[source.0 as usize].cores[source.1 as usize].as_deref()?;
    let Outlet::Channel(id) = core.outlet(color) else { return None };
    Some(id)
}

/// The ends of the pipes by which a core sends a color where its words are taken, with the PEs that they lead to.
fn pipes_of<C: Code>(regions: &[Region<C>], source: Place, color: u8) -> Vec<(Place, (u32, u32))> {
    let region = &regions[source.0 as usize];
    let core = region.cores[source.1 as usize].as_deref();
    let Some(Outlet::Pipe(id)) = core.map(|core| core.outlet(color)) else { return Vec::new() };
    let pipe = &region.pipes[id as usize];
    if !pipe.leads_abroad() {
        let ids = std::iter::once(&id).chain(pipe.others());
        let to = |&id: &u32| ((source.0, region.pipes[id as usize].route().dest), (source.0, id));
        return ids.map(to).collect();
    }
    let into = pipe.route().region;
    #[cfg(test)]
    crate::sched::reached::note(crate::sched::reached::Reached::RoundAbroad);
    let taker = regions[into as usize].from_abroad.get(&(source.0, id));
    let to = (into, pipe.route().dest);
    taker.map(|&taker| (to, (into, taker))).into_iter().collect()
}

/// Words of a queue that have not been taken.
///
/// Invariant: without words none have been taken of the buffer.
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

    /// Appends a word.
    pub(super) fn push(&mut self, word: u32) {
        self.words.push(word);
    }

    /// Appends words.
    pub(super) fn extend(&mut self, words: &[u32], spare: &mut Vec<Vec<u32>>) {
        let mut buffer = self.lend(words.len(), spare);
        buffer.extend_from_slice(words);
        self.give_back(buffer);
    }

    /// Its buffer, for about so many words to be appended; nobody looks at the queue until it is given back
    /// ([`Fifo::give_back`]). If it has none, the spare one that was used last, if that is not much too large.
    #[inline]
    pub(super) fn lend(&mut self, words: usize, spare: &mut Vec<Vec<u32>>) -> Vec<u32> {
        if self.words.capacity() == 0
            && let Some(buffer) = spare.pop_if(|buffer| fits(buffer, words))
        {
            return buffer;
        }
        std::mem::take(&mut self.words)
    }

    /// The buffer that was lent.
    #[inline]
    pub(super) fn give_back(&mut self, buffer: Vec<u32>) {
        self.words = buffer;
    }

    /// Its buffer for others, if it is a long one and empty, after so many words were taken at once; one that
    /// is much too large for these goes.
    pub(super) fn give_up(&mut self, count: usize) -> Option<Vec<u32>> {
        if !self.words.is_empty() || self.words.capacity() < LONG {
            return None;
        }
        debug_assert_eq!(self.taken, 0);
        Some(std::mem::take(&mut self.words)).filter(|buffer| fits(buffer, count))
    }
}

/// Whether a buffer is not much too large for so many words.
fn fits(buffer: &Vec<u32>, words: usize) -> bool {
    buffer.capacity() <= ROOM * words.max(LONG)
}
