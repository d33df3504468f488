//! An image made by hand: each row sums its PEs' vectors from east to west, `rounds` times.
//! Shared by a test and the bench; uses nothing but the IR.

use dflow_ir::builder::FuncBuilder;
use dflow_ir::dsd::FabricDsd;
use dflow_ir::dsd::op::DsdOp;
use dflow_ir::image::{Image, MemoryMap, Placement, ProgramId, RouterConfig};
use dflow_ir::inst::{FlagOp, InstData, Operand, Terminator, VectorInst, VectorOptions};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, ColorConfig, Coord, Port, PortSet, Rect, RectMap, Route};
use dflow_ir::program::{
    Global, GlobalId, InitialFlag, Profile, Program, QueueBinding, SlotId, TaskBinding, TaskKind,
};
use dflow_ir::scalar::BinaryOp;
use dflow_ir::target::TargetId;
use dflow_ir::ty::Ty;

/// Address of the vector on each PE.
pub(crate) const VECTOR: u32 = 16;

/// Part of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    East,
    Middle,
    West,
}

/// The image. Element `i` of PE `(x, y)` starts as `x + i`.
pub(crate) fn image(target: TargetId, width: u16, height: u16, words: u16, rounds: u16) -> Image {
    let part = |x: u16| match x {
        0 => Part::West,
        x if x + 1 == width => Part::East,
        _ => Part::Middle,
    };
    let kinds: Vec<(Part, u16)> = (0..width).map(|x| (part(x), x % 2)).collect();
    let mut distinct: Vec<(Part, u16)> = Vec::new();
    for kind in &kinds {
        if !distinct.contains(kind) {
            distinct.push(*kind);
        }
    }
    let index = |x: u16| distinct.iter().position(|kind| *kind == kinds[usize::from(x)]).unwrap();
    let programs: Vec<Program> =
        distinct.iter().map(|&(part, parity)| program(part, parity, words, rounds)).collect();
    let data_end = VECTOR + 4 * u32::from(words);
    let map =
        MemoryMap { globals: vec![(GlobalId::from_u32(0), VECTOR)], data_end, stack: 256, code: 0 };
    let slots = (0..distinct.len()).map(|of| {
        let columns = (0..width).filter(move |&x| index(x) == of).map(u64::from);
        (0..height).flat_map(|_| columns.clone()).collect()
    });
    let placement = Placement {
        rect: Rect { x: 0, y: 0, width, height },
        programs: RectMap::from_grid(width, height, |at: Coord| {
            Some(ProgramId::from_u32(index(at.x) as u32))
        }),
        slots: slots.collect(),
        routers: distinct.iter().map(|&(part, parity)| router(part, parity)).collect(),
        router_map: RectMap::from_grid(width, height, |at: Coord| Some(index(at.x) as u32)),
    };
    Image {
        target,
        files: vec!["chain.dfl".into()],
        memory: programs.iter().map(|_| map.clone()).collect(),
        programs: programs.into_iter().collect(),
        placement,
        exports: Vec::new(),
        host: None,
        tests: Vec::new(),
        params: Vec::new(),
        memcpy: None,
        streams: Vec::new(),
    }
}

/// First task id that all targets have.
const TASK: u8 = 9;

fn colors(parity: u16) -> (Color, Color) {
    let color = |index: u16| Color::new(2 + index as u8 % 2).unwrap();
    (color(parity), color(parity + 1))
}

fn router(part: Part, parity: u16) -> RouterConfig {
    let (to_west, from_east) = colors(parity);
    let config = |rx, tx| ColorConfig {
        route: Route { rx: PortSet::one(rx), tx: PortSet::one(tx) },
        ..ColorConfig::default()
    };
    let mut colors = Vec::new();
    if part != Part::West {
        colors.push((to_west, config(Port::Ramp, Port::West), Loc::default()));
    }
    if part != Part::East {
        colors.push((from_east, config(Port::East, Port::Ramp), Loc::default()));
    }
    colors.sort_by_key(|(color, ..)| *color);
    RouterConfig { colors }
}

fn program(part: Part, parity: u16, words: u16, rounds: u16) -> Program {
    let (to_west, from_east) = colors(parity);
    let mut program = Program::empty("chain".into(), Profile::Pe);
    program.slots.push(Ty::I16);
    let size = 4 * u32::from(words);
    program.globals.push(Global {
        name: "vector".into(),
        size,
        align: 4,
        init: Vec::new(),
        relocs: Vec::new(),
        slots: Vec::new(),
        exported: true,
        loc: Loc::default(),
    });
    let func = program.funcs.push(body(part, to_west, from_east, words, rounds));
    let loc = Loc::default();
    program.tasks.push(TaskBinding { kind: TaskKind::Local, id: TASK, func, loc });
    program.initial_flags.push(InitialFlag { op: FlagOp::Activate, id: TASK, loc });
    if part != Part::East {
        program.queues.push(QueueBinding::new(true, 2, from_east, loc));
    }
    if part != Part::West {
        program.queues.push(QueueBinding::new(false, 2, to_west, loc));
    }
    program
}

/// Fills the vector, then sums it `rounds` times.
fn body(
    part: Part,
    to_west: Color,
    from_east: Color,
    words: u16,
    rounds: u16,
) -> dflow_ir::func::Func {
    let loc = Loc { file: 0, line: 1, column: 1 };
    let mut b = FuncBuilder::new("sum".into(), &[], None, loc);
    b.at(loc);
    let x = b.local(Ty::I16);
    b.inst(InstData::Slot { dst: x, slot: SlotId::from_u32(0) });
    let base = b.local(Ty::I16);
    b.inst(InstData::GlobalAddress { dst: base, global: GlobalId::from_u32(0), offset: 0 });
    count(&mut b, words, |b, index| {
        let sum = b.local(Ty::I16);
        b.inst(InstData::Binary { dst: sum, op: BinaryOp::Add, lhs: x, rhs: index });
        let value = b.local(Ty::F32);
        let kind = dflow_ir::scalar::Convert::FloatFromUnsigned;
        b.inst(InstData::Convert { dst: value, kind, src: sum });
        let (two, offset, address) = (b.constant(Ty::I16, 2), b.local(Ty::I16), b.local(Ty::I16));
        b.inst(InstData::Binary { dst: offset, op: BinaryOp::Shl, lhs: index, rhs: two });
        b.inst(InstData::Binary { dst: address, op: BinaryOp::Add, lhs: base, rhs: offset });
        b.inst(InstData::Store { addr: address, offset: 0, src: value });
    });
    count(&mut b, rounds, |b, _| transfer(b, part, to_west, from_east, words, base));
    b.terminate(Terminator::Return(None));
    b.finish()
}

/// A loop of `times` turns.
fn count(
    b: &mut FuncBuilder,
    times: u16,
    body: impl FnOnce(&mut FuncBuilder, dflow_ir::func::Local),
) {
    let index = b.constant(Ty::I16, 0);
    let (head, inside, after) = (b.block(), b.block(), b.block());
    b.terminate(Terminator::Jump(head));
    b.switch_to(head);
    let (end, cond) = (b.constant(Ty::I16, times.into()), b.local(Ty::I8));
    b.inst(InstData::Binary { dst: cond, op: BinaryOp::LtU, lhs: index, rhs: end });
    b.terminate(Terminator::Branch { cond, then: inside, otherwise: after });
    b.switch_to(inside);
    body(b, index);
    let one = b.constant(Ty::I16, 1);
    b.inst(InstData::Binary { dst: index, op: BinaryOp::Add, lhs: index, rhs: one });
    b.terminate(Terminator::Jump(head));
    b.switch_to(after);
}

/// One row's turn: the easternmost sends, the others add and pass on, the last one keeps.
fn transfer(
    b: &mut FuncBuilder,
    part: Part,
    to_west: Color,
    from_east: Color,
    words: u16,
    base: dflow_ir::func::Local,
) {
    let extent = b.constant(Ty::I16, words.into());
    let stride = b.constant(Ty::I16, 1);
    let mut fabric = |input: bool, color| {
        let desc = FabricDsd { input, queue: 2, color: Some(color), ..FabricDsd::default() };
        let dst = b.local(Ty::I64);
        b.inst(InstData::MakeFabric { dst, desc, extent });
        Operand::Fabric(dst)
    };
    let (output, input) = (fabric(false, to_west), fabric(true, from_east));
    let memory = b.local(Ty::I64);
    b.inst(InstData::MakeMem1d { dst: memory, base, extent, stride, indexed: false });
    let memory = Operand::Memory(memory);
    let (name, dest, sources) = match part {
        Part::East => ("fmovs", output, vec![memory]),
        Part::Middle => ("fadds", output, vec![memory, input]),
        Part::West => ("fadds", memory, vec![memory, input]),
    };
    b.inst(InstData::Vector(Box::new(VectorInst {
        op: DsdOp::by_name(name).unwrap(),
        dest,
        sources,
        options: VectorOptions::default(),
        result: None,
    })));
}

/// Element `index` of the westernmost PE at the end.
pub(crate) fn expected(width: u16, rounds: u16, index: u16) -> f32 {
    let own = f32::from(index);
    let others: f32 = (1..width).map(|x| f32::from(x) + f32::from(index)).sum();
    own + f32::from(rounds) * others
}
