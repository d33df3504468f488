//! Ways that switches turn within a round.
//!
//! A router whose switch takes a color by one port at a time takes its words in an order of its own, whenever they
//! come: it is a process as PEs are ([`super::network`]). So what each PE sends in a round, and in which order, says to
//! which queues each word goes, and in which order words of several senders come to a queue. That is found
//! once, by sending batches of words through the switches.
//!
//! Invariants: none of these words is on its way between rounds; all switches end as they began; words of a sender come to a
//! queue once, in the order in which it sent them.

use std::collections::VecDeque;

use dflow_ir::mesh::Color;
use dflow_ir::mesh::wavelet::Command;
use rustc_hash::FxHashMap;

use super::hand::{Hand, Work};
use super::outcome::ends_of;
use super::tape::{Act, OF_MAIN, OPERATIONS, Script};
use super::ways::Place;
use crate::exec::{Segment, SharedStart, Stop, Stream};
use crate::fabric::control;
use crate::fabric::plan::ColorPlan;
use crate::fabric::router::{RAMP, Router};
use crate::pe::bind::Bindings;
use crate::pe::code::Code;
use crate::pe::core::bits;
use crate::pe::op::{Ends, Output};
use crate::pe::plan::PePlan;
use crate::sched::plan::Plan;
use crate::sched::region::{Region, Way};

/// Words of a PE of one color, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) count: u32,
    pub(super) kind: Kind,
}

/// What words are to switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Words,
    /// The switch of the sender's router advances behind the last one.
    Turn,
    /// A control wavelet with this payload.
    Command(u32),
}

/// What a PE sends.
#[derive(Debug)]
struct Sent {
    batches: Vec<(u8, Batch)>,
    /// By color, the number of the last one.
    last: [u32; Color::COUNT],
}

/// "No batch."
const NONE: u32 = u32::MAX;

/// An operation that sends.
#[derive(Clone, Copy, Debug)]
struct Sending {
    output: Output,
    /// The payload of the control wavelets that it sends, if it sends such.
    command: Option<u32>,
    /// The number of its batch, or [`NONE`] before it has sent something.
    batch: u32,
}

/// The payload of the control wavelets that an operation sends that moves a scalar to them.
#[inline]
pub(super) fn payload_of(start: &SharedStart) -> u32 {
    if let Stream::Scalar(payload) = start.sources[0] { payload } else { 0 }
}

impl Sending {
    fn new(start: &SharedStart, ends: &Ends) -> Option<Sending> {
        let output = ends.output?;
        Some(Sending { output, command: output.control.then(|| payload_of(start)), batch: NONE })
    }
}

impl Sent {
    fn new() -> Sent {
        Sent { batches: Vec::new(), last: [NONE; Color::COUNT] }
    }

    /// An operation sends so many words more.
    fn send(&mut self, by: &mut Sending, count: u32) {
        let color = by.output.color;
        if let Some(payload) = by.command {
            let command = Batch { count: 1, kind: Kind::Command(payload) };
            (0..count).for_each(|_| self.push(color, command));
            return;
        }
        if by.batch != NONE && self.is_last(color, by.batch) {
            self.batches[by.batch as usize].1.count += count;
        } else {
            by.batch = self.batches.len() as u32;
            self.push(color, Batch { count, kind: Kind::Words });
        }
    }

    fn push(&mut self, color: u8, batch: Batch) {
        self.last[usize::from(color)] = self.batches.len() as u32;
        self.batches.push((color, batch));
    }

    /// An operation ends; none if its last word is not the last one of its color, or there is none, where that has a say
    /// in which way others go.
    fn end(&mut self, by: &Sending) -> Option<()> {
        if !by.output.advance {
            return Some(());
        }
        let is_last = by.batch != NONE && self.is_last(by.output.color, by.batch);
        is_last.then(|| self.batches[by.batch as usize].1.kind = Kind::Turn)
    }

    /// Whether a batch is the last one of its color.
    fn is_last(&self, color: u8, batch: u32) -> bool {
        self.last[usize::from(color)] == batch
    }
}

/// What is known of a PE.
pub(super) struct Known<'a> {
    pub(super) program: &'a PePlan,
    pub(super) bound: &'a Bindings,
    pub(super) script: &'a Script,
    /// What came of code.
    pub(super) outcomes: &'a [(u16, Segment)],
}

impl Known<'_> {
    /// What the PE sends in a round, with colors, in order, given what it works on before; none if that is not known.
    pub(super) fn sends<C: Code>(&self, hand: &Hand<C>) -> Option<Vec<(u8, Batch)>> {
        let of = |work: &Option<Work<C::Op>>| {
            let (start, ends) = work.as_ref()?.start.of(&[])?;
            Sending::new(start, ends)
        };
        let mut operations: [Option<Sending>; OPERATIONS] = hand.operations.each_ref().map(of);
        let (mut pending, mut sent) = (of(&hand.pending), Sent::new());
        for act in &self.script.acts {
            match *act {
                Act::Code { first, count, .. } => {
                    for piece in &self.script.pieces[first as usize..][..count as usize] {
                        let (_, segment) = self.outcomes.get(piece.outcome as usize)?;
                        let Stop::Vector(start) = &segment.stop else { continue };
                        let starts =
                            Sending::new(start, &ends_of(self.program, self.bound, start)?);
                        match piece.passes {
                            Some(thread) => operations[usize::from(thread)] = starts,
                            None if start.asynchronous => pending = starts,
                            None => operations[OF_MAIN] = starts,
                        }
                    }
                }
                Act::Launch { thread } => operations[usize::from(thread)] = pending.take(),
                Act::Elements { operation, count, .. } => {
                    if let Some(by) = &mut operations[usize::from(operation)] {
                        sent.send(by, count);
                    }
                }
                Act::Finish { operation, .. } => {
                    if let Some(by) = operations[usize::from(operation)].take() {
                        sent.end(&by)?;
                    }
                }
                Act::Word { .. } => {}
            }
        }
        Some(sent.batches)
    }
}

/// Where words of a color come to.
pub(super) struct Taker {
    pub(super) at: Place,
    pub(super) queue: u8,
    /// In which order they come.
    pub(super) come: Vec<Token>,
}

/// A batch on its way: its sender's, with a number among those of the color.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) sender: u32,
    pub(super) number: u32,
    pub(super) batch: Batch,
}

/// A router on the ways of a color.
#[derive(Debug, Default)]
struct Junction {
    began: u8,
    position: u8,
    /// What has come by each port, and which ports something has come by.
    lanes: [VecDeque<Token>; 5],
    heard: u8,
    /// Ports that are heard at the same time in some position that was passed through.
    together: u8,
}

/// The switches of a color.
pub(super) struct Switches<'a, C: Code> {
    plan: &'a Plan,
    regions: &'a [Region<C>],
    color: u8,
    junctions: FxHashMap<Place, Junction>,
    /// Those that have something to take.
    open: Vec<Place>,
    takers: Vec<Taker>,
    taker_of: FxHashMap<Place, usize>,
    /// Batches that routers may hand on yet: where words go round and round it is not found out which ways they go.
    left: usize,
}

/// Batches that routers may hand on, per PE and in all; a word that crosses a wafer takes some 1,700.
const PER_PE: usize = 1 << 12;
const IN_ALL: usize = 1 << 27;

/// What a router does with a batch.
struct Step {
    /// Ports that it takes words by, the one of these, and where they go.
    rx: u8,
    port: u8,
    outs: u8,
    /// The position after it, and what is left of what the batch is.
    position: u8,
    kind: Kind,
}

impl Step {
    /// The next one, if a batch has come that the switch takes.
    fn of(row: &ColorPlan, junction: &Junction) -> Option<Step> {
        let now = junction.position;
        let (rx, mut outs) = (row.rx[usize::from(now)], row.tx[usize::from(now)]);
        let come = |port: &u8| junction.lanes[usize::from(*port)].front();
        let port = bits(rx.into()).map(|port| port as u8).find(|port| come(port).is_some())?;
        let (position, kind) = match come(&port)?.batch.kind {
            Kind::Words => (now, Kind::Words),
            Kind::Turn => (row.next(now), Kind::Words),
            Kind::Command(payload) => {
                // What tears down a color is no round.
                if control::first(payload) == Command::Teardown {
                    outs = 0;
                }
                let (position, payload) = row.obey(now, payload);
                (position, Kind::Command(payload))
            }
        };
        Some(Step { rx, port, outs, position, kind })
    }
}

impl<'a, C: Code> Switches<'a, C> {
    pub(super) fn new(plan: &'a Plan, regions: &'a [Region<C>], color: u8) -> Switches<'a, C> {
        let (junctions, open, takers) = (FxHashMap::default(), Vec::new(), Vec::new());
        let cores: usize = regions.iter().map(|region| region.cores.len()).sum();
        Switches {
            plan,
            regions,
            color,
            junctions,
            open,
            takers,
            taker_of: FxHashMap::default(),
            left: (PER_PE * cores).min(IN_ALL),
        }
    }

    /// A PE sends a batch.
    pub(super) fn send(&mut self, at: Place, token: Token) -> Option<()> {
        self.come(at, RAMP, token)
    }

    /// Who takes the words, once all that is sent has come there; none if it is not known in which order they come.
    pub(super) fn takers(mut self) -> Option<Vec<Taker>> {
        while let Some(at) = self.open.pop() {
            while self.go(at)? {}
        }
        let is_through = |junction: &Junction| {
            junction.position == junction.began
                && junction.lanes.iter().all(VecDeque::is_empty)
                && (junction.heard & junction.together).count_ones() <= 1
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "whether all are does not depend on their order"
        )]
        let mut junctions = self.junctions.values();
        junctions.all(is_through).then_some(self.takers)
    }

    /// A batch comes to a router.
    fn come(&mut self, at: Place, port: u8, token: Token) -> Option<()> {
        if !self.junctions.contains_key(&at) {
            let position = self.with_switch(at, |switch| switch.1)?;
            self.junctions
                .insert(at, Junction { began: position, position, ..Junction::default() });
        }
        let junction = self.junctions.get_mut(&at)?;
        junction.lanes[usize::from(port)].push_back(token);
        junction.heard |= 1 << port;
        self.open.push(at);
        Some(())
    }

    /// Looks at the switch of a router.
    fn with_switch<T>(&self, at: Place, look: impl FnOnce((&ColorPlan, u8)) -> T) -> Option<T> {
        self.with_router(at, |router| router.switch(self.plan, self.color).map(look))?
    }

    /// Looks at a router, which may not have had words yet.
    fn with_router<T>(&self, at: Place, look: impl FnOnce(&Router) -> T) -> Option<T> {
        let region = &self.regions[at.0 as usize];
        let router = region.routers.get(at.1 as usize)?;
        let (x, y) = region.place(at.1);
        Some(match router.as_deref() {
            Some(router) => look(router),
            None => look(&Router::new(self.plan, x, y)),
        })
    }

    /// A router hands a batch on, if one has come that its switch takes.
    fn go(&mut self, at: Place) -> Option<bool> {
        let junction = self.junctions.get(&at)?;
        let Some(step) = self.with_switch(at, |(row, _)| Step::of(row, junction))? else {
            return Some(false);
        };
        let junction = self.junctions.get_mut(&at)?;
        self.left = self.left.checked_sub(1)?;
        let mut token = junction.lanes[usize::from(step.port)].pop_front()?;
        let hidden = matches!(token.batch.kind, Kind::Command(payload) if control::hidden(payload));
        (junction.position, token.batch.kind) = (step.position, step.kind);
        if step.rx.count_ones() > 1 {
            junction.together |= step.rx;
        }
        if step.outs == 0 {
            return None;
        }
        for out in bits(step.outs.into()) {
            if out as u8 == RAMP {
                match step.kind {
                    Kind::Command(_) => hidden.then_some(())?,
                    Kind::Words | Kind::Turn => self.take(at, token)?,
                }
                continue;
            }
            let way = |router: &Router| router.behind(self.plan, at.0, out as u8, self.color);
            match self.with_router(at, way)? {
                Way::Near { pe, port } => self.come((at.0, pe), port, token)?,
                Way::Far { region, pe, port } => self.come((region, pe), port, token)?,
                Way::Host { .. } | Way::Outside => return None,
            }
        }
        Some(true)
    }

    /// Words come to a core.
    fn take(&mut self, at: Place, token: Token) -> Option<()> {
        let taker = match self.taker_of.get(&at) {
            Some(&taker) => taker,
            None => {
                let core = self.regions[at.0 as usize].cores[at.1 as usize].as_deref()?;
                let program = &self.plan.programs[usize::from(core.at.program)];
                let queue = program.queue_of(self.color)? as u8;
                self.taker_of.insert(at, self.takers.len());
                self.takers.push(Taker { at, queue, come: Vec::new() });
                self.takers.len() - 1
            }
        };
        self.takers[taker].come.push(token);
        Some(())
    }
}

/// Numbers of words, each of something, that come round and round.
#[derive(Clone, Debug)]
pub(super) struct Turns<T> {
    all: Box<[(T, u32)]>,
    at: usize,
    /// Words of the turn that is under way.
    done: u32,
}

impl<T: PartialEq> Turns<T> {
    /// In this order; turns of the same one after the other are one turn.
    pub(super) fn new(each: impl IntoIterator<Item = (T, u32)>) -> Turns<T> {
        let mut all: Vec<(T, u32)> = Vec::new();
        for (of, count) in each.into_iter().filter(|&(_, count)| count != 0) {
            match all.last_mut() {
                Some((last, words)) if *last == of => *words += count,
                _ => all.push((of, count)),
            }
        }
        Turns { all: all.into(), at: 0, done: 0 }
    }

    /// If there is but one, whose.
    pub(super) fn only(&self) -> Option<&T> {
        if let [(of, _)] = &self.all[..] { Some(of) } else { None }
    }
}

impl<T> Turns<T> {
    /// Whose turn it is, and for how many words more.
    pub(super) fn now(&self) -> Option<(&T, u32)> {
        let (of, count) = self.all.get(self.at)?;
        Some((of, count - self.done))
    }

    /// So many words of it have come.
    pub(super) fn pass(&mut self, count: u32) {
        self.done += count;
        if self.all.get(self.at).is_some_and(|(_, all)| self.done >= *all) {
            (self.at, self.done) = ((self.at + 1) % self.all.len(), 0);
        }
    }

    /// It is the first one's turn.
    pub(super) fn begin(&mut self) {
        (self.at, self.done) = (0, 0);
    }

    /// Each of them.
    pub(super) fn each_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.all.iter_mut().map(|(of, _)| of)
    }
}
