//! Operands of a vector instruction against a PE's state: kinds, length, settings.
//!
//! The length is that of the first source that has one, else of the second, and so on, else of
//! the destination, else 1; an operation whose descriptors all have extent 0 does nothing.
//! A register that holds a fabric descriptor brings its own asynchronous settings.

use dflow_ir::dsd::op::{OpRow, RowState};
use dflow_ir::dsd::{Dsd, DsdKind, INFINITE, late};
use dflow_ir::inst::{OnControl, Operand, Priority, Unblock, VectorInst, VectorOptions};
use dflow_ir::loc::Loc;
use dflow_ir::program::FifoId;
use dflow_ir::ty::Ty;

use super::VectorArgs;
use crate::exec::program::LoadedProgram;
use crate::exec::state::{Dsr, PeState};
use crate::exec::{CodeTrapKind, MemoryStream, Stream, VectorStart};

/// The operation with operands resolved; none if a register that is stepped through has no
/// element left.
pub(super) fn resolve(
    program: &LoadedProgram,
    state: &PeState,
    inst: &VectorInst,
    args: &VectorArgs,
    loc: Loc,
) -> Result<Option<VectorStart>, CodeTrapKind> {
    let row = inst.op.row();
    if let RowState::NotYet(why) = row.state {
        return Err(CodeTrapKind::BadVector(why));
    }
    let mut cx = Resolver {
        program,
        state,
        index: inst.options.index.and_then(|_| late::index(args.index)),
        settings: None,
        end: (None, None),
        priority: None,
        zero: None,
        apart: false,
        exhausted: false,
    };
    let dest = cx.operand(inst.dest, args.dest, row.dest, true)?;
    let mut streams = [Stream::None; 3];
    let mut lengths = [Extent::None; 3];
    for (at, &source) in inst.sources.iter().take(3).enumerate() {
        let resolved = cx.operand(source, args.sources[at], row.sources[at], false)?;
        (streams[at], lengths[at]) = resolved;
    }
    let (dest, dest_length) = dest;
    if cx.exhausted {
        return Ok(None);
    }
    let own = late::settings(inst.options, args.index).ok_or(CodeTrapKind::BadVector(NO_TASK))?;
    let mut settings = cx.settings.unwrap_or(own);
    if !settings.tells() {
        (settings.activate, settings.unblock) = cx.end;
    }
    let length = length(&[lengths[0], lengths[1], lengths[2], dest_length]);
    save_once(&dest, &mut streams);
    let fabric = has_fabric(&dest, &streams);
    if length.is_none() && !fabric && !has_fifo(&dest, &streams) {
        return Err(CodeTrapKind::BadVector(ENDLESS));
    }
    check_inputs(program, &streams)?;
    let microthread = settings.microthread.or_else(|| default_microthread(&dest, &streams));
    if settings.asynchronous && microthread.is_none() {
        return Err(CodeTrapKind::BadVector("an asynchronous operation needs a fabric operand"));
    }
    Ok(Some(VectorStart {
        op: inst.op,
        dest,
        sources: streams,
        length,
        asynchronous: settings.asynchronous,
        microthread: microthread.unwrap_or(0),
        activate: settings.activate,
        unblock: settings.unblock,
        priority: settings.priority.or(cx.priority),
        packed: fabric && !cx.apart,
        zero: cx.zero.and_then(|vector| cleared(vector, row, &streams)),
        // What the operation itself is, no register changes.
        on_control: match inst.options.on_control {
            OnControl::Count => OnControl::Count,
            OnControl::Ignore
            | OnControl::Terminate
            | OnControl::Activate(_)
            | OnControl::Unblock(_) => settings.on_control,
        },
        loc,
    }))
}

/// A register that is both destination and source of an operation, or both sources, moves on once.
fn save_once(dest: &Stream, sources: &mut [Stream]) {
    let saved = |stream: &Stream| match stream {
        Stream::Memory(memory) => memory.save,
        _ => None,
    };
    for nth in 0..sources.len() {
        let (before, rest) = sources.split_at_mut(nth);
        let Stream::Memory(memory) = &mut rest[0] else { continue };
        let others = std::iter::once(dest).chain(&*before);
        if memory.save.is_some() && others.map(saved).any(|other| other == memory.save) {
            memory.save = None;
        }
    }
}

/// Whether an operation through a register ends with its last element: one that steps has one element.
fn is_last(dsr: &Dsr, extent: Extent) -> bool {
    match extent {
        _ if !dsr.single_step => true,
        Extent::Elements(count) => u32::from(dsr.steps) + 1 >= count,
        Extent::Endless | Extent::None => false,
    }
}

/// Registers that are loaded for single steps move on by one element.
pub(super) fn step_registers(state: &mut PeState, inst: &VectorInst) {
    let all = || std::iter::once(&inst.dest).chain(&inst.sources);
    for (nth, operand) in all().enumerate() {
        let Operand::Dsr(at) = *operand else { continue };
        let mut dsr = state.dsr(at);
        // One that is both destination and source is one register.
        if !dsr.single_step || all().take(nth).any(|other| other == operand) {
            continue;
        }
        dsr.steps = dsr.steps.wrapping_add(1);
        dsr.moved = dsr.moved.wrapping_add(1);
        if dsr.dsd.kind() == DsdKind::Ring && dsr.moved == dsr.dsd.wrap() {
            dsr.moved = 0;
        }
        state.store_dsr(at, dsr);
    }
}

/// Why an operation on memory alone with an endless operand has no end.
const ENDLESS: &str = "an operation on memory alone with an extent of 0x7fff never ends";

/// Why an operation with an id given at run time has no meaning.
pub(crate) const NO_TASK: &str = "an id given at run time is that of no task, color or queue";

/// Length that an operand brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// None: a scalar, a pointer, a FIFO without a length.
    None,
    /// This many elements; may be 0.
    Elements(u32),
    /// Without end.
    Endless,
}

struct Resolver<'a> {
    program: &'a LoadedProgram,
    state: &'a PeState,
    index: Option<u16>,
    settings: Option<VectorOptions>,
    /// What registers of memory start and unblock, where nothing else does.
    end: (Option<u8>, Option<Unblock>),
    /// The first priority that an operand names.
    priority: Option<Priority>,
    /// Vector source to be cleared: the first or the second.
    zero: Option<u8>,
    /// An operand keeps the elements apart: one per wavelet.
    apart: bool,
    /// A register that is stepped through has no element left.
    exhausted: bool,
}

impl Resolver<'_> {
    fn operand(
        &mut self,
        operand: Operand,
        value: u64,
        ty: Ty,
        is_dest: bool,
    ) -> Result<(Stream, Extent), CodeTrapKind> {
        let index = self.index;
        match operand {
            // Nobody expects to wait here (`InstData::suspends`).
            Operand::Memory(_) if is_fabric(Dsd(value)) => {
                Err(CodeTrapKind::BadVector("a fabric descriptor in place of one of memory"))
            }
            Operand::Memory(_) | Operand::Fabric(_) => {
                self.descriptor(Dsd(value), index, ty, is_dest, None)
            }
            Operand::Dsr(at) => {
                let dsr = self.state.dsr(at);
                if self.state.lost_xdsr(at, &dsr) {
                    let why = "the extended register of this one was loaded for another since";
                    return Err(CodeTrapKind::BadVector(why));
                }
                let save = (dsr.save_address && !dsr.single_step).then_some(at);
                let mut resolved =
                    self.descriptor(dsr.dsd, index.or(dsr.index), ty, is_dest, save)?;
                if let Stream::Memory(memory) = &mut resolved.0 {
                    memory.moved = dsr.moved;
                }
                if is_fabric(dsr.dsd) {
                    self.adopt(&dsr, is_last(&dsr, resolved.1));
                } else if self.end == (None, None) && is_last(&dsr, resolved.1) {
                    self.end = (dsr.options.activate, dsr.options.unblock);
                }
                if dsr.single_step {
                    let left = match resolved.1 {
                        Extent::Endless => true,
                        Extent::Elements(count) => u32::from(dsr.steps) < count,
                        Extent::None => false,
                    };
                    self.exhausted |= !left;
                    resolved.1 = Extent::Elements(1);
                }
                Ok(resolved)
            }
            Operand::Fifo(fifo) => {
                let data = &self.program.program().fifos[fifo];
                self.priority = self.priority.or(data.priority);
                self.apart |= data.single || data.element != 2 || data.capacity < 2;
                Ok((Stream::Fifo { fifo: fifo.as_u32() as u16 }, self.fifo(fifo, is_dest)))
            }
            Operand::Scalar(_) => Ok((Stream::Scalar(ty.mask(value) as u32), Extent::None)),
            Operand::Pointer(_) => Ok((Stream::Pointer { address: value as u16 }, Extent::None)),
        }
    }

    /// Settings of a register: the first one's count, any of them makes the operation
    /// asynchronous. What it starts and unblocks is for its `last` element.
    fn adopt(&mut self, dsr: &Dsr, last: bool) {
        let mut own = dsr.options;
        if !last {
            (own.activate, own.unblock) = (None, None);
        }
        let settings = self.settings.get_or_insert(own);
        settings.asynchronous |= own.asynchronous;
        settings.activate = settings.activate.or(own.activate);
        settings.unblock = settings.unblock.or(own.unblock);
        settings.microthread = settings.microthread.or(own.microthread);
    }

    fn fifo(&self, fifo: FifoId, is_dest: bool) -> Extent {
        let Some(state) = self.state.fifos.get(fifo.as_u32() as usize) else {
            return Extent::None;
        };
        match if is_dest { state.write_length } else { state.read_length } {
            0 => Extent::None,
            length => extent(length),
        }
    }

    fn descriptor(
        &mut self,
        dsd: Dsd,
        index: Option<u16>,
        ty: Ty,
        is_dest: bool,
        save: Option<dflow_ir::dsd::DsrRef>,
    ) -> Result<(Stream, Extent), CodeTrapKind> {
        let index = if dsd.indexed() { index } else { None };
        if is_fabric(dsd) {
            self.priority = self.priority.or(dsd.priority());
            self.apart |= !dsd.packed() || dsd.indexed() || dsd.control() || ty.bytes() != 2;
        }
        match (dsd.kind(), is_dest) {
            (DsdKind::Mem1d | DsdKind::Mem4d | DsdKind::Ring, _) => {
                let moved = dsd.base().wrapping_add(index.unwrap_or(0).wrapping_mul(2));
                let stream = MemoryStream {
                    dsd: dsd.with_base(moved),
                    element: ty.bytes() as u8,
                    moved: 0,
                    save,
                };
                Ok((Stream::Memory(stream), self.memory_extent(dsd)))
            }
            (DsdKind::FabIn, false) => {
                let (queue, color, transform) = (dsd.queue(), dsd.color(), dsd.transform());
                Ok((Stream::Input { queue, color, transform }, extent(dsd.extent())))
            }
            (DsdKind::FabOut, true) => {
                let stream = Stream::Output {
                    queue: dsd.queue(),
                    color: dsd.color(),
                    control: dsd.control(),
                    index: index.unwrap_or(0),
                    advance_switch: dsd.advance_switch(),
                    transform: dsd.transform(),
                };
                self.zero = dsd.zero();
                Ok((stream, extent(dsd.extent())))
            }
            (DsdKind::FabIn, true) => Err(CodeTrapKind::BadVector("a fabric input as destination")),
            (DsdKind::FabOut, false) => Err(CodeTrapKind::BadVector("a fabric output as source")),
            (DsdKind::Unset, _) => {
                Err(CodeTrapKind::BadVector("a descriptor or register that was never set"))
            }
        }
    }

    fn memory_extent(&self, dsd: Dsd) -> Extent {
        if dsd.kind() != DsdKind::Mem4d {
            return extent(dsd.extent());
        }
        let count = self.program.program().shapes.get(dsd.shape()).map_or(0, |s| s.count());
        Extent::Elements(u32::try_from(count).unwrap_or(u32::MAX))
    }
}

fn extent(raw: u16) -> Extent {
    if raw == INFINITE { Extent::Endless } else { Extent::Elements(u32::from(raw)) }
}

/// The length rule; operands in the order in which they are asked.
fn length(extents: &[Extent; 4]) -> Option<u32> {
    let mut seen = false;
    for extent in extents {
        match *extent {
            Extent::Endless => return None,
            Extent::Elements(0) => seen = true,
            Extent::Elements(elements) => return Some(elements),
            Extent::None => {}
        }
    }
    Some(if seen { 0 } else { 1 })
}

fn is_fabric(dsd: Dsd) -> bool {
    matches!(dsd.kind(), DsdKind::FabIn | DsdKind::FabOut)
}

fn has_fabric(dest: &Stream, sources: &[Stream; 3]) -> bool {
    default_microthread(dest, sources).is_some()
}

/// Whether an operand ends the operation, or has it wait, when it is empty or full.
fn has_fifo(dest: &Stream, sources: &[Stream; 3]) -> bool {
    let is_fifo = |stream: &Stream| matches!(stream, Stream::Fifo { .. });
    is_fifo(dest) || sources.iter().any(is_fifo)
}

/// As many inputs as the target has ports for; registers are only known now.
fn check_inputs(program: &LoadedProgram, sources: &[Stream; 3]) -> Result<(), CodeTrapKind> {
    let inputs = sources.iter().filter(|it| matches!(it, Stream::Input { .. })).count();
    if inputs > usize::from(program.target().fabric_inputs) {
        return Err(CodeTrapKind::BadVector("more fabric inputs than the target has ports for"));
    }
    Ok(())
}

/// The source that `.zero` means.
fn cleared(chosen: u8, row: &OpRow, sources: &[Stream; 3]) -> Option<u8> {
    let is_vector = |at: &usize| !matches!(sources[*at], Stream::None | Stream::Scalar(_));
    let vectors: Vec<usize> = (0..3).filter(is_vector).collect();
    row.cleared(chosen, &vectors).map(|at| at as u8)
}

/// The queue of the first fabric operand: destination, then sources.
fn default_microthread(dest: &Stream, sources: &[Stream; 3]) -> Option<u8> {
    let queue = |stream: &Stream| match *stream {
        Stream::Input { queue, .. } | Stream::Output { queue, .. } => Some(queue),
        Stream::None
        | Stream::Memory(_)
        | Stream::Fifo { .. }
        | Stream::Scalar(_)
        | Stream::Pointer { .. } => None,
    };
    queue(dest).or_else(|| sources.iter().find_map(queue))
}
