//! Programs for scheduler tests: tasks as lists of acts, without any IR body.

use std::collections::HashMap;
use std::sync::Mutex;

use cranelift_entity::EntityRef;
use dflow_ir::cost::Slots;
use dflow_ir::dsd::op::DsdOp;
use dflow_ir::func::Func;
use dflow_ir::image::RouterConfig;
use dflow_ir::inst::{FlagOp, InstData, OnControl, Priority, Unblock};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::Coord;
use dflow_ir::program::{FuncId, InitialFlag, Profile, Program, TaskBinding, TaskKind};
use dflow_ir::target::{Target, TargetId};
use dflow_ir::ty::Ty;

use crate::config::{Config, EngineKind, Limits};
use crate::exec::odd::Odd;
use crate::exec::{
    ActKind, Block, CodeTrapKind, ConfigRead, Entry, Passing, Registers, Segment, SharedStart,
    SlotAct, Stop, Stream, VectorStart,
};
use crate::fabric::plan::RouterPlan;
use crate::machine::HostLinkInfo;
use crate::pe::code::{Code, Element, Fifo, Pe};
use crate::pe::plan::PePlan;
use crate::sched::borders;
use crate::sched::engine::Engine;
use crate::sched::plan::{Latencies, Plan};

/// One act of a task.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Counts slots.
    Work(u32),
    /// A flag operation.
    Flag(FlagOp, u16),
    /// A vector operation.
    Vector(Box<VectorStart>),
    /// What it has read so far is this.
    Hash(u32),
    /// A part of a round is over: with the last of `of` of them the task `id` starts the next one, unless
    /// there have been `times`.
    Join {
        of: u32,
        times: u32,
        id: u8,
    },
    /// In one round it takes so many slots longer.
    Falters {
        round: u32,
        slots: u32,
    },
    /// Another act, in this round and all later ones, and in all rounds of that many.
    Since {
        round: u32,
        act: Box<Act>,
    },
    Every {
        of: u32,
        act: Box<Act>,
    },
    /// It takes longer for one in so many values.
    Depends {
        of: u32,
        slots: u32,
    },
    /// A fault of the program.
    Trap,
    /// Ends a segment without anything else.
    Yield,
    /// A fault of the emulator.
    Panic,
    /// Writes a configuration register: word address, value.
    Write(u16, u16),
    /// Reads one.
    Read(u16),
    /// Reads one in the middle of a segment; how long that takes depends on it.
    Look(u16),
}

impl Act {
    /// What it is in a round, if anything.
    fn in_round(&self, rounds: u32) -> Option<&Act> {
        match self {
            Act::Since { round, act } => (rounds >= *round).then_some(act),
            Act::Every { of, act } => rounds.is_multiple_of(*of).then_some(act),
            act => Some(act),
        }
    }
}

/// A machine under test.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) target: TargetId,
    pub(super) width: u16,
    pub(super) height: u16,
    /// A program per PE: queues, tasks and flags; the acts of each function stand in `acts`.
    pub(super) programs: Vec<Program>,
    pub(super) acts: Vec<Vec<Vec<Act>>>,
    pub(super) routers: Vec<RouterConfig>,
    /// In the order of row and column.
    pub(super) links: Vec<HostLinkInfo>,
    /// A hop and a credit take two cycles each.
    pub(super) slow: bool,
    /// Places of links beside those that a word per cycle takes.
    pub(super) spare: u32,
    /// Elements of operations have nothing to do with those of others.
    pub(super) apart: bool,
    /// What happens is recorded.
    pub(super) records: bool,
    /// Words that the host's end holds, per link.
    pub(super) rooms: Vec<Option<u64>>,
}

impl Spec {
    /// A mesh of PEs without programs.
    pub(super) fn new(target: TargetId, width: u16, height: u16) -> Spec {
        let count = usize::from(width) * usize::from(height);
        let programs =
            (0..count).map(|pe| Program::empty(format!("pe{pe}"), Profile::Pe)).collect();
        let (acts, routers) = (vec![Vec::new(); count], vec![RouterConfig::default(); count]);
        let (links, rooms) = (Vec::new(), Vec::new());
        Spec {
            target,
            width,
            height,
            programs,
            acts,
            routers,
            links,
            rooms,
            slow: false,
            spare: 0,
            apart: false,
            records: true,
        }
    }

    /// Adds a function to a PE.
    pub(super) fn func(&mut self, pe: usize, name: &str, params: &[Ty], acts: Vec<Act>) -> FuncId {
        let mut builder =
            dflow_ir::builder::FuncBuilder::new(name.into(), params, None, Loc::default());
        if acts.iter().any(|act| matches!(act, Act::Look(_))) {
            let (addr, dst) = (builder.constant(Ty::I16, 0), builder.local(Ty::I16));
            builder.inst(InstData::Load { dst, addr, offset: 0 });
        }
        // Of what PEs of even numbers write nothing is known beforehand.
        for act in acts.iter().filter(|_| pe % 2 == 1) {
            if let Act::Write(address, _) = act {
                let addr = builder.constant(Ty::I16, (*address).into());
                builder.inst(InstData::SetConfig { addr, src: addr });
            }
        }
        let func: Func = builder.finish();
        self.acts[pe].push(acts);
        self.programs[pe].funcs.push(func)
    }

    /// A PE does this from the start on: its local task 9.
    pub(super) fn begins(&mut self, pe: usize, acts: Vec<Act>) {
        let func = self.func(pe, "main", &[], acts);
        let (id, loc) = (9, Loc::default());
        let program = &mut self.programs[pe];
        program.tasks.push(TaskBinding { kind: TaskKind::Local, id, func, loc });
        program.initial_flags.push(InitialFlag { op: FlagOp::Activate, id, loc });
    }

    /// The machine.
    pub(super) fn engine(&self, engine: EngineKind, threads: usize, region: u16) -> Engine<Script> {
        let config = Config { engine, threads, region, record: self.records, ..Config::default() };
        let target = Target::get(self.target);
        let mut timing = target.timing;
        if self.slow {
            (timing.hop, timing.credit) = (2, 2);
        }
        timing.router_spare = self.spare;
        let timing = Latencies::new(&timing);
        let programs = self.programs.iter();
        let programs = programs.map(|program| PePlan::new(program, target, &timing, 0).unwrap());
        let routers = self.routers.iter();
        let routers = routers.map(|router| RouterPlan::new(router, Coord::default()).unwrap());
        let (width, height) = (self.width.into(), self.height.into());
        let mut links = self.links.clone();
        links.sort_by_key(|link| (link.at.y, link.at.x, link.color, link.port));
        let mut plan = Plan {
            width,
            height,
            target: self.target,
            extent: (width, height),
            crossing: 0,
            timing,
            programs: programs.collect(),
            program_of: (0..self.programs.len() as u16).collect(),
            routers: routers.collect(),
            router_of: (0..self.routers.len() as u32).collect(),
            rooms: self.rooms.clone(),
            links,
            record: self.records,
            strict: false,
            track: false,
        };
        plan.note_written();
        borders::divide(&mut plan, &config);
        let started = Mutex::default();
        let code = Script { acts: self.acts.clone(), apart: self.apart, started };
        match Engine::new(plan, code, &config, &Limits::default()) {
            Ok(engine) => engine,
            Err(limit) => unreachable!("there is no limit: {limit}"),
        }
    }
}

/// Runs the acts.
pub(super) struct Script {
    acts: Vec<Vec<Vec<Act>>>,
    apart: bool,
    /// What PEs of even numbers have started, by where it stands: the same again each time.
    started: Mutex<HashMap<usize, SharedStart>>,
}

impl Script {
    /// What an act starts.
    fn start(&self, pe: Pe, start: &VectorStart) -> SharedStart {
        let new = || SharedStart::from(start.clone());
        if !pe.number.is_multiple_of(2) {
            return new();
        }
        let mut started = self.started.lock().unwrap();
        started.entry(std::ptr::from_ref(start).addr()).or_insert_with(new).clone()
    }
}

/// Where a task stands, and a hash of what it has read.
#[derive(Clone, Default)]
pub(super) struct State {
    func: usize,
    next: usize,
    pub(super) hash: u32,
    /// Rounds that are over, and parts of the next one.
    rounds: u32,
    parts: u32,
    /// A register is being read.
    reads: bool,
}

/// A running operation.
#[derive(Clone)]
pub(super) struct Op {
    start: SharedStart,
    left: Option<u32>,
    relays: bool,
    sends: bool,
    control: bool,
    /// A command that stands in the program, which all words are.
    command: Option<u32>,
    /// What it has read and sent, where operations are apart.
    own: u32,
}

/// Whether code goes on past an operation; if not the segment ends with it.
fn goes_past(start: SharedStart, registers: &dyn Registers, out: &mut Segment) -> bool {
    let slots = Slots { all: out.cycles, assumed: 0 };
    let passes = registers.pass(&start, Passing { slots, acts: &out.acts });
    if passes {
        out.cycles = 0;
    } else {
        out.stop = Stop::Vector(start);
    }
    passes
}

impl Code for Script {
    type State = State;
    type Op = Op;

    fn state(&self, pe: Pe) -> State {
        State { hash: pe.number.wrapping_mul(0x9e37_79b9), ..State::default() }
    }

    fn bytes(&self, _: Pe) -> u64 {
        0
    }

    fn run(
        &self,
        pe: Pe,
        state: &mut State,
        entry: Entry<'_>,
        registers: &dyn Registers,
        out: &mut Segment,
    ) {
        if let Entry::Start { func, args } = entry {
            (state.func, state.next) = (func.index(), 0);
            for &arg in args {
                state.hash = state.hash.wrapping_mul(31).wrapping_add(arg as u32);
            }
        } else if let Entry::Resume { value } = entry
            && std::mem::take(&mut state.reads)
        {
            state.hash = state.hash.wrapping_mul(31).wrapping_add(value as u32);
        }
        out.clear();
        let acts = &self.acts[pe.number as usize][state.func];
        while let Some(act) = acts.get(state.next) {
            state.next += 1;
            let Some(act) = act.in_round(state.rounds) else { continue };
            match act {
                Act::Since { .. } | Act::Every { .. } => {}
                Act::Depends { of, slots } => {
                    out.cycles += if state.hash.is_multiple_of(*of) { *slots } else { 0 };
                }
                Act::Trap => {
                    let kind = CodeTrapKind::DivideByZero;
                    out.stop = Stop::Trap(crate::exec::CodeTrap { kind, loc: Loc::default() });
                    return;
                }
                Act::Work(slots) => out.cycles += slots,
                Act::Hash(hash) => state.hash = *hash,
                Act::Falters { round, slots } => {
                    out.cycles += if state.rounds == *round { *slots } else { 0 };
                }
                Act::Join { of, times, id } => {
                    state.parts += 1;
                    if state.parts == *of {
                        (state.rounds, state.parts) = (state.rounds + 1, 0);
                        if state.rounds < *times {
                            let what = ActKind::Flag { op: FlagOp::Activate, id: (*id).into() };
                            let act = SlotAct { slot: out.cycles, what, loc: Loc::default() };
                            out.acts.push(act);
                        }
                    }
                    out.cycles += 1;
                }
                Act::Flag(op, id) => {
                    let what = ActKind::Flag { op: *op, id: *id };
                    out.acts.push(SlotAct { slot: out.cycles, what, loc: Loc::default() });
                    out.cycles += 1;
                }
                Act::Vector(start) => {
                    if !goes_past(self.start(pe, start), registers, out) {
                        return;
                    }
                }
                Act::Yield => {
                    out.stop = Stop::Yield;
                    return;
                }
                Act::Panic => panic!("a test panics here"),
                Act::Write(address, value) => {
                    let what = ActKind::Write { address: *address, value: *value };
                    out.acts.push(SlotAct { slot: out.cycles, what, loc: Loc::default() });
                    out.cycles += 1;
                }
                Act::Look(address) => {
                    let value = registers.read(*address).unwrap_or(0);
                    state.hash = state.hash.wrapping_mul(31).wrapping_add(value.into());
                    out.cycles += 1 + value.count_ones();
                }
                Act::Read(address) => {
                    out.cycles += 1;
                    let loc = Loc::default();
                    out.stop = Stop::Config(ConfigRead { address: *address, loc });
                    state.reads = true;
                    return;
                }
            }
        }
        out.stop = Stop::Return;
    }

    fn begin(&self, _: Pe, _: &mut State, start: SharedStart) -> Op {
        let is_input = |stream: &Stream| matches!(stream, Stream::Input { .. });
        Op {
            left: start.length,
            relays: start.sources.iter().any(is_input),
            sends: matches!(start.dest, Stream::Output { .. }),
            command: match start.sources[0] {
                Stream::Scalar(payload) if payload >> 31 != 0 => Some(payload),
                _ => None,
            },
            control: matches!(start.dest, Stream::Output { control: true, .. })
                && !start.sources.iter().any(is_input),
            own: u32::from(start.microthread) << 20,
            start,
        }
    }

    fn start(&self, op: &Op) -> SharedStart {
        op.start.clone()
    }

    fn fifo(&self, _: Pe, _: &mut State, _: &Op) -> Fifo {
        Fifo::Ready
    }

    fn odd(&self, _: Pe, _: &mut State, _: &Op, _: bool) -> Option<Odd> {
        None
    }

    fn progress(&self, op: &Op) -> (u32, Option<u32>) {
        (0, op.left)
    }

    fn fifo_wait(&self, _: Pe, _: &State, _: &Op) -> Option<(u16, bool)> {
        None
    }

    fn is_plain(&self, _: &Self::Op) -> bool {
        true
    }

    fn are_apart(&self, _: &[&Op]) -> bool {
        self.apart
    }

    fn is_done(&self, op: &Op) -> bool {
        op.left == Some(0)
    }

    fn element(
        &self,
        _: Pe,
        state: &mut State,
        op: &mut Op,
        inputs: [u32; 2],
    ) -> Result<Element, CodeTrapKind> {
        if let Some(left) = &mut op.left {
            *left -= 1;
        }
        let hash = if self.apart { &mut op.own } else { &mut state.hash };
        if op.relays {
            *hash = hash.wrapping_mul(31).wrapping_add(inputs[0]);
        } else {
            *hash = hash.wrapping_add(1);
        }
        let output = op.sends.then(|| match (op.relays, op.control) {
            (true, _) => inputs[0].wrapping_add(1),
            (false, true) => op.command.unwrap_or_else(|| control(*hash)),
            (false, false) => *hash,
        });
        Ok(Element { output, ..Element::default() })
    }

    fn block(
        &self,
        pe: Pe,
        state: &mut State,
        op: &mut Op,
        inputs: [&[u32]; 2],
        count: u32,
        out: &mut Vec<u32>,
    ) -> Block {
        let mut block = Block::default();
        while block.done < count && !self.is_done(op) {
            let at = block.done as usize;
            let words = inputs.map(|words| words.get(at).copied().unwrap_or(0));
            match self.element(pe, state, op, words) {
                Ok(element) => out.extend(element.output),
                Err(trap) => return Block { trap: Some(trap), ..block },
            }
            block.done += 1;
        }
        block
    }

    fn all_at_once(
        &self,
        pe: Pe,
        state: &mut State,
        start: &SharedStart,
        inputs: [&[u32]; 2],
        out: &mut Vec<u32>,
    ) -> bool {
        let (mut op, Some(count)) = (self.begin(pe, state, start.clone()), start.length) else {
            return false;
        };
        // Where operations are apart their ends leave something; elsewhere some are not done so.
        if self.apart || start.microthread % 3 == 2 {
            return false;
        }
        let block = self.block(pe, state, &mut op, inputs, count, out);
        block.done == count && self.finish(pe, state, &mut op, true).is_ok()
    }

    fn finish(&self, _: Pe, state: &mut State, op: &mut Op, _: bool) -> Result<(), CodeTrapKind> {
        if self.apart {
            state.hash = state.hash.wrapping_mul(31).wrapping_add(op.own);
        }
        Ok(())
    }

    fn read(&self, _: Pe, _: &mut State, _: u32, _: u32) -> Option<Vec<u8>> {
        None
    }
}

/// A control payload made from a number: little teardown, few entry points.
pub(super) fn control(number: u32) -> u32 {
    let mixed = number.wrapping_mul(0x85eb_ca6b) >> 8;
    let entry = [31, 40, 43, 50][mixed as usize & 3];
    let last = if mixed >> 12 & 15 == 0 { 3 } else { 2 };
    let command =
        |at: u32| (mixed >> (2 + 4 * at) & 3).min(last) | (mixed >> (4 + 4 * at) & 1) << 2;
    entry << 16 | command(0) << 22 | command(1) << 25
}

/// A vector operation of `length` elements.
pub(super) fn vector(dest: Stream, source: Stream, length: u32) -> VectorStart {
    VectorStart {
        op: DsdOp(0),
        dest,
        sources: [source, Stream::None, Stream::None],
        length: Some(length),
        asynchronous: false,
        microthread: 0,
        activate: None,
        unblock: None::<Unblock>,
        priority: Some(Priority::Low),
        packed: false,
        zero: None,
        on_control: OnControl::Ignore,
        loc: Loc::default(),
    }
}

/// An output stream of data wavelets.
pub(super) fn output(queue: u8, color: u8) -> Stream {
    Stream::Output {
        queue,
        color,
        control: false,
        index: 0,
        advance_switch: false,
        transform: false,
    }
}

/// An input stream.
pub(super) fn input(queue: u8, color: u8) -> Stream {
    Stream::Input { queue, color, transform: false }
}
