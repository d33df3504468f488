//! What is legal and odd: told once per place, a trap under [`crate::config::Config::strict`].

use dflow_ir::dsd::{Dsd, DsdKind};
use dflow_ir::mesh::{Color, Port};
use dflow_ir::program::{GlobalId, Program};

use super::program::LoadedProgram;
use super::{MemoryStream, Stream, VectorStart};

/// An odd act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Odd {
    /// A vector operation walks over bytes `from..to` of a variable, some of which it does not
    /// have. The variable is the one that the descriptor's base lies in.
    LeftArray { global: GlobalId, from: i32, to: i32 },
    /// A byte of a variable is read, and nothing has written it.
    Unwritten { global: GlobalId, byte: u32 },
    /// A control wavelet ended at a core: no switch has moved for it, no task is bound to its
    /// entry point and no operation waited for it. Its queue's table of control tasks begins at `table`.
    Unheard { color: Color, entry: Option<u8>, table: u8 },
    /// A word left the rectangle where nothing is joined to the host: nobody takes it.
    LeftMesh { color: Color, port: Port },
    /// A PE has answered all launches, and answers once more.
    AnswerAhead,
}

impl Odd {
    /// The color that is concerned.
    pub(crate) fn color(self) -> Option<Color> {
        match self {
            Odd::LeftArray { .. } | Odd::Unwritten { .. } | Odd::AnswerAhead => None,
            Odd::Unheard { color, .. } | Odd::LeftMesh { color, .. } => Some(color),
        }
    }

    /// The same for all acts that are told once: without what may differ from time to time.
    pub(crate) fn kind(self) -> Odd {
        match self {
            Odd::LeftArray { global, .. } => Odd::LeftArray { global, from: 0, to: 0 },
            Odd::Unwritten { global, .. } => Odd::Unwritten { global, byte: 0 },
            Odd::Unheard { .. } | Odd::LeftMesh { .. } | Odd::AnswerAhead => self,
        }
    }
}

/// Which variable a byte address belongs to, by halfword. Empty for host programs.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    of: Vec<u16>,
    /// First byte and the byte after the last, by variable.
    extents: Vec<(i32, i32)>,
}

const NOBODY: u16 = u16::MAX;

impl Owners {
    /// The variables of a linked program; `address` says where they are.
    pub(crate) fn new(program: &Program, address: impl Fn(GlobalId) -> u32) -> Owners {
        let mut owners = Owners::default();
        for (id, global) in &program.globals {
            let (start, end) = (address(id), address(id) + global.size);
            let number = owners.extents.len() as u16;
            // What pads a variable to whole halfwords belongs to it: text is copied so.
            let end = end.next_multiple_of(2);
            owners.extents.push((start as i32, end as i32));
            let last = end.div_ceil(2) as usize;
            if owners.of.len() < last {
                owners.of.resize(last, NOBODY);
            }
            owners.of[start as usize / 2..last].fill(number);
        }
        owners
    }

    #[inline]
    pub(super) fn find(&self, address: u16) -> Option<(GlobalId, i32, i32)> {
        let number = *self.of.get(usize::from(address) / 2)?;
        let (start, end) = *self.extents.get(usize::from(number))?;
        Some((GlobalId::from_u32(number.into()), start, end))
    }
}

/// The first operand that leaves the variable which its base lies in if all elements are done. Of
/// an operation that others can see each element is looked at then: a control wavelet or a FIFO
/// may end it before.
#[inline]
pub(super) fn leaves(program: &LoadedProgram, start: &VectorStart) -> Option<Odd> {
    let length = start.length.filter(|&length| length > 0)?;
    let [first, second, third] = &start.sources;
    for stream in [&start.dest, first, second, third] {
        if let Stream::Memory(memory) = stream
            && let Some(odd) = leaves_by(program, memory, length)
        {
            return Some(odd);
        }
    }
    None
}

/// Whether an element of an operand lies outside of the variable that its base lies in.
pub(super) fn is_outside(program: &LoadedProgram, memory: &MemoryStream, address: u16) -> bool {
    let found = program.owners().find(memory.dsd.base());
    found.is_some_and(|(_, first, end)| {
        let address = i32::from(address);
        address < first || address + i32::from(memory.element) > end
    })
}

/// Whether all elements of an operand in one dimension lie in the variable that its base lies in,
/// or its base in none: then nothing is odd.
#[inline]
pub(super) fn stays(program: &LoadedProgram, dsd: Dsd, bytes: u32, length: u32) -> bool {
    let Some((_, first, end)) = program.owners().find(dsd.base()) else { return true };
    let (base, bytes) = (i64::from(dsd.base()), i64::from(bytes));
    let last = base + i64::from(dsd.stride()) * bytes * (i64::from(length) - 1);
    i64::from(first) <= base.min(last) && base.max(last) + bytes <= i64::from(end)
}

/// The same as [`leaves`] of one operand that has elements.
#[inline]
pub(super) fn leaves_by(
    program: &LoadedProgram,
    memory: &MemoryStream,
    length: u32,
) -> Option<Odd> {
    let (global, first, end) = program.owners().find(memory.dsd.base())?;
    let (low, high) = covered(program, memory, length);
    let inside = first <= low && high <= end;
    (!inside).then_some(Odd::LeftArray { global, from: low - first, to: high - first })
}

/// Bytes that `length` elements of an operand cover: the first, and the one after the last.
#[inline]
fn covered(program: &LoadedProgram, memory: &MemoryStream, length: u32) -> (i32, i32) {
    let MemoryStream { dsd, element, moved, save: _ } = *memory;
    let (base, bytes) = (i64::from(dsd.base()), i64::from(element));
    let (last, moved) = (i64::from(length) - 1, i64::from(moved));
    let (low, high) = match dsd.kind() {
        DsdKind::Ring => (0, i64::from(dsd.wrap()) - 1),
        DsdKind::Mem4d => reach(program, dsd, last + moved),
        DsdKind::Mem1d | DsdKind::FabIn | DsdKind::FabOut | DsdKind::Unset => {
            let stride = i64::from(dsd.stride());
            let (from, to) = (stride * moved, stride * (moved + last));
            (from.min(to), from.max(to))
        }
    };
    let near = |place: i64| place.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
    (near(base + low * bytes), near(base + (high + 1) * bytes))
}

/// The least and the greatest of the steps from the base, up to element `last`, of a walk in
/// several dimensions.
fn reach(program: &LoadedProgram, dsd: Dsd, last: i64) -> (i64, i64) {
    let dims = program.program().shapes.get(dsd.shape()).map_or(&[][..], |shape| &shape.dims);
    let (mut low, mut high, mut left) = (0, 0, last);
    for (at, &(extent, stride)) in dims.iter().enumerate().rev() {
        let extent = i64::from(extent.max(1));
        // The outermost dimension has no end of its own.
        let most = if at == 0 { left } else { left.min(extent - 1) };
        let way = i64::from(stride) * most;
        (low, high) = (low + way.min(0), high + way.max(0));
        left /= extent;
    }
    (low, high)
}
