//! Operands of a vector instruction against a PE's state: kinds, length, settings.
//!
//! The length is that of the first source that has one, else of the second, and so on, else of
//! the destination, else 1; an operation whose descriptors all have extent 0 does nothing.
//! A register that holds a fabric descriptor brings its own asynchronous settings.

use dflow_ir::dsd::op::RowState;
use dflow_ir::dsd::{Dsd, DsdKind, INFINITE};
use dflow_ir::inst::{Operand, VectorInst, VectorOptions};
use dflow_ir::loc::Loc;
use dflow_ir::program::FifoId;
use dflow_ir::ty::Ty;

use super::VectorArgs;
use crate::exec::program::LoadedProgram;
use crate::exec::state::{Dsr, PeState};
use crate::exec::{CodeTrapKind, MemoryStream, Stream, VectorStart};

/// The operation with operands resolved.
pub(super) fn resolve(
    program: &LoadedProgram,
    state: &PeState,
    inst: &VectorInst,
    args: &VectorArgs,
    loc: Loc,
) -> Result<VectorStart, CodeTrapKind> {
    let row = inst.op.row();
    if let RowState::NotYet(why) = row.state {
        return Err(CodeTrapKind::BadVector(why));
    }
    let mut cx = Resolver { program, state, inst, index: args.index as u16, settings: None };
    let dest = cx.operand(inst.dest, args.dest, row.dest, true)?;
    let mut streams = [Stream::None; 3];
    let mut lengths = [Extent::None; 3];
    for (at, &source) in inst.sources.iter().take(3).enumerate() {
        let resolved = cx.operand(source, args.sources[at], row.sources[at], false)?;
        (streams[at], lengths[at]) = resolved;
    }
    let (dest, dest_length) = dest;
    let settings = cx.settings.unwrap_or(inst.options);
    let length = length(&[lengths[0], lengths[1], lengths[2], dest_length]);
    let fabric = has_fabric(&dest, &streams);
    let microthread = settings.microthread.or_else(|| default_microthread(&dest, &streams));
    if settings.asynchronous && microthread.is_none() {
        return Err(CodeTrapKind::BadVector("an asynchronous operation needs a fabric operand"));
    }
    Ok(VectorStart {
        op: inst.op,
        dest,
        sources: streams,
        length: if fabric { length } else { Some(length.unwrap_or(u32::from(INFINITE))) },
        asynchronous: settings.asynchronous,
        microthread: microthread.unwrap_or(0),
        activate: settings.activate,
        unblock: settings.unblock,
        priority: settings.priority,
        on_control: settings.on_control,
        loc,
    })
}

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
    inst: &'a VectorInst,
    index: u16,
    settings: Option<VectorOptions>,
}

impl Resolver<'_> {
    fn operand(
        &mut self,
        operand: Operand,
        value: u64,
        ty: Ty,
        is_dest: bool,
    ) -> Result<(Stream, Extent), CodeTrapKind> {
        let index = self.inst.options.index.map(|_| self.index);
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
                let save = dsr.save_address.then_some(at);
                let resolved = self.descriptor(dsr.dsd, index.or(dsr.index), ty, is_dest, save)?;
                if is_fabric(dsr.dsd) {
                    self.adopt(&dsr);
                }
                Ok(resolved)
            }
            Operand::Fifo(fifo) => {
                Ok((Stream::Fifo { fifo: fifo.as_u32() as u16 }, self.fifo(fifo, is_dest)))
            }
            Operand::Scalar(_) => Ok((Stream::Scalar(ty.mask(value) as u32), Extent::None)),
            Operand::Pointer(_) => Ok((Stream::Pointer { address: value as u16 }, Extent::None)),
        }
    }

    /// Settings of a register: the first one's count, any of them makes the operation
    /// asynchronous.
    fn adopt(&mut self, dsr: &Dsr) {
        let settings = self.settings.get_or_insert(dsr.options);
        settings.asynchronous |= dsr.options.asynchronous;
        settings.activate = settings.activate.or(dsr.options.activate);
        settings.unblock = settings.unblock.or(dsr.options.unblock);
        settings.microthread = settings.microthread.or(dsr.options.microthread);
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
        &self,
        dsd: Dsd,
        index: Option<u16>,
        ty: Ty,
        is_dest: bool,
        save: Option<dflow_ir::dsd::DsrRef>,
    ) -> Result<(Stream, Extent), CodeTrapKind> {
        let index = if dsd.indexed() { index } else { None };
        match (dsd.kind(), is_dest) {
            (DsdKind::Mem1d | DsdKind::Mem4d, _) => {
                let moved = dsd.base().wrapping_add(index.unwrap_or(0).wrapping_mul(2));
                let stream = MemoryStream {
                    dsd: dsd.with_base(moved),
                    element: ty.bytes() as u8,
                    done: 0,
                    save,
                };
                Ok((Stream::Memory(stream), self.memory_extent(dsd)))
            }
            (DsdKind::FabIn, false) => {
                Ok((Stream::Input { queue: dsd.queue(), color: dsd.color() }, extent(dsd.extent())))
            }
            (DsdKind::FabOut, true) => {
                let stream = Stream::Output {
                    queue: dsd.queue(),
                    color: dsd.color(),
                    control: dsd.control(),
                    index: index.unwrap_or(0),
                    advance_switch: dsd.advance_switch(),
                };
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
        if dsd.kind() == DsdKind::Mem1d {
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
