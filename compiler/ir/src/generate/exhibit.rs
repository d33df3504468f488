//! Programs that show every form of declaration and instruction, and images around them.

use cranelift_entity::{EntityRef, PrimaryMap};

use super::Choices;
use crate::builder::FuncBuilder;
use crate::dsd::op::DsdOp;
use crate::dsd::{Dsd, DsrFile, DsrRef, FabricDsd};
use crate::func::{Block, Func, Local, Signature};
use crate::image::{
    ElementType, Export, ExportKind, HostStream, Image, MemcpyInfo, MemoryMap, Placement,
    ProgramId, RouterConfig,
};
use crate::inst::{
    Bounded, ClockOp, DsrField, FlagOp, InstData, OnControl, Operand, Priority, QueueState,
    Terminator, Unblock, VectorInst, VectorOptions,
};
use crate::loc::Loc;
use crate::mesh::{
    Color, ColorConfig, Coord, Filter, PopMode, Port, PortSet, Rect, RectMap, Route, Switch,
    SwitchEntry,
};
use crate::program::{
    ControlTable, ExportBinding, Fifo, FifoAction, FifoId, FuncId, Global, GlobalId, HostArg,
    HostLink, HostMath, HostOp, InitialConfig, InitialDsr, InitialFlag, LocalColorConfig, Profile,
    Program, QueueBinding, Reloc, Rotation, Shape, ShapeId, SigId, SlotId, Symbol, TaskBinding,
    TaskKind,
};
use crate::target::TargetId;
use crate::ty::Ty;

/// A program for a PE with every form in it, valid and not meant to run: what [`super::program`]
/// makes, and a function that shows the rest.
pub fn exhibit(numbers: &[u32]) -> Program {
    let (first, second) = numbers.split_at(numbers.len() / 2);
    let mut program = super::program(first);
    let mut choices = Choices::new(second);
    let choices = &mut choices;
    program.name =
        choices.one(&["plain", "with \"quotes\" \\ and\nlines", "ünïcode \u{7}", ""]).to_owned();
    program.slots.push(Ty::I16);
    program.slots.push(choices.one(&Ty::ALL));
    program.signatures.push(Signature { params: vec![Ty::I16, Ty::F32], ret: Some(Ty::I8) });
    program.signatures.push(Signature { params: Vec::new(), ret: None });
    program.globals.push(pointers(choices));
    for dims in 1..=1 + choices.below(4) {
        let dims = (0..dims).map(|_| (choices.number() as u16, choices.number() as i16)).collect();
        program.shapes.push(Shape { dims });
    }
    program.fifos.push(Fifo {
        buffer: GlobalId::new(0),
        capacity: 1 + choices.below(100) as u16,
        element: choices.one(&[2, 4]),
        activate_pop: choices.yes().then_some(10),
        activate_push: choices.yes().then_some(11),
        empty: choices.one(&ACTIONS),
        full: choices.one(&ACTIONS),
        priority: priority(choices),
        single: choices.yes(),
    });
    let shown = shown(choices);
    let shown = program.funcs.push(shown);
    bindings(&mut program, shown, choices);
    program
}

/// A global with addresses and slots in its initial value.
fn pointers(choices: &mut Choices<'_>) -> Global {
    let relocs = vec![
        Reloc { offset: 0, symbol: Symbol::Global(GlobalId::new(1)) },
        Reloc { offset: 2, symbol: Symbol::Func(FuncId::new(0)) },
    ];
    Global {
        name: "pointers".to_owned(),
        size: 32,
        align: choices.one(&[2, 4, 64]),
        init: vec![1, 2, 3, 254],
        relocs,
        slots: vec![(4, SlotId::new(0)), (8, SlotId::new(1))],
        exported: choices.yes(),
        loc: choices.loc(),
    }
}

fn color(choices: &mut Choices<'_>) -> Color {
    let colors: Vec<Color> = (0..24).filter_map(Color::new).collect();
    choices.one(&colors)
}

fn bindings(program: &mut Program, shown: FuncId, choices: &mut Choices<'_>) {
    let payload = FuncBuilder::new("payload".to_owned(), &[Ty::I16, Ty::F16], None, choices.loc());
    let payload = program.funcs.push(returning(payload));
    for (kind, id, func) in [
        (TaskKind::Local, 9, shown),
        (TaskKind::Data, 3, payload),
        (TaskKind::Control, 40, payload),
    ] {
        program.tasks.push(TaskBinding { kind, id, func, loc: choices.loc() });
    }
    for input in [true, false] {
        let (queue, color) = (choices.below(2) as u8, color(choices));
        let (priority, control_table) = (priority(choices), choices.below(3) as u8);
        let loc = choices.loc();
        program.queues.push(QueueBinding { input, queue, color, priority, control_table, loc });
    }
    program.control_table = choices.yes().then(|| ControlTable {
        instructions: choices.one(&[2, 4, 8]),
        stride: 1 + choices.below(7) as u8,
    });
    program.rotations.push(Rotation {
        id: 3,
        other: 40,
        limit: 5,
        initial: choices.below(6) as u16,
    });
    for op in [FlagOp::BlockTask, FlagOp::UnblockTask, FlagOp::BlockChannel, FlagOp::UnblockChannel]
    {
        program.initial_flags.push(InitialFlag {
            op,
            id: choices.below(4) as u8,
            loc: choices.loc(),
        });
    }
    let base = choices.number() as u16;
    for (dsd, symbol) in [
        (Dsd::mem1d(base, 8, -2, choices.yes()), Some(GlobalId::new(0))),
        (Dsd::mem4d(base, ShapeId::new(0), choices.yes()), None),
        (Dsd::fabric(fabric(choices), 100), None),
        (Dsd::ring(base, 9, 4), Some(GlobalId::new(0))),
    ] {
        let options = VectorOptions { index: None, ..options(choices, None) };
        program.initial_dsrs.push(InitialDsr {
            dsr: DsrRef { file: choices.one(&DsrFile::ALL), index: choices.below(4) as u8 },
            dsd,
            symbol,
            options,
            save_address: choices.yes(),
            single_step: choices.yes(),
            xdsr: choices.yes().then_some(1),
        });
    }
    let (address, value) = (0x7e00, choices.number() as u16);
    program.initial_config.push(InitialConfig { address, value, loc: choices.loc() });
    let (color, config) = (color(choices), color_config(choices));
    program.colors.push(LocalColorConfig { color, config, loc: choices.loc() });
    let port = choices.one(&[Port::West, Port::North]);
    program.host_links.push(HostLink { port, color, to_mesh: choices.yes() });
    program.exports.push(ExportBinding { export: 0, symbol: Symbol::Global(GlobalId::new(2)) });
    program.exports.push(ExportBinding { export: 1, symbol: Symbol::Func(payload) });
}

fn returning(mut builder: FuncBuilder) -> Func {
    builder.terminate(Terminator::Return(None));
    builder.finish()
}

fn fabric(choices: &mut Choices<'_>) -> FabricDsd {
    FabricDsd {
        input: choices.yes(),
        queue: choices.below(2) as u8,
        color: choices.yes().then(|| color(choices)),
        control: choices.yes(),
        indexed: choices.yes(),
        advance_switch: choices.yes(),
        packed: choices.yes(),
        transform: choices.yes(),
        priority: priority(choices),
        zero: choices.yes().then_some(1),
    }
}

const ACTIONS: [FifoAction; 4] =
    [FifoAction::TestOrSuspend, FifoAction::Terminate, FifoAction::Suspend, FifoAction::Fault];

fn priority(choices: &mut Choices<'_>) -> Option<Priority> {
    choices.one(&[None, Some(Priority::Low), Some(Priority::Medium), Some(Priority::High)])
}

fn unblock(choices: &mut Choices<'_>) -> Unblock {
    let id = choices.below(8) as u8;
    if choices.yes() { Unblock::Task(id) } else { Unblock::Channel(id) }
}

fn options(choices: &mut Choices<'_>, index: Option<Local>) -> VectorOptions {
    VectorOptions {
        asynchronous: choices.yes(),
        activate: choices.yes().then_some(12),
        unblock: choices.yes().then(|| unblock(choices)),
        microthread: choices.yes().then_some(2),
        priority: priority(choices),
        index: if choices.yes() { index } else { None },
        on_control: match choices.below(4) {
            0 => OnControl::Ignore,
            1 => choices.one(&[OnControl::Terminate, OnControl::Count]),
            2 => OnControl::Activate(13),
            _other => OnControl::Unblock(unblock(choices)),
        },
    }
}

fn ports(choices: &mut Choices<'_>) -> PortSet {
    PortSet(choices.below(32) as u8)
}

fn route(choices: &mut Choices<'_>) -> Route {
    Route { rx: ports(choices), tx: ports(choices) }
}

fn color_config(choices: &mut Choices<'_>) -> ColorConfig {
    let mut entry = || match choices.below(3) {
        0 => Some(SwitchEntry::Rx(ports(choices))),
        1 => Some(SwitchEntry::Tx(ports(choices))),
        _both => Some(SwitchEntry::Both(route(choices))),
    };
    let (first, second) = (entry(), entry());
    let pops = [PopMode::None, PopMode::Always, PopMode::OnAdvance, PopMode::OnAdvanceOrNop];
    let switch = Switch {
        positions: [first, if choices.yes() { second } else { None }, None],
        initial: choices.below(2) as u8,
        ring: choices.yes(),
        pop: choices.one(&pops),
    };
    let (data, control, filter_control) = (choices.yes(), choices.yes(), choices.yes());
    let (initial, limit, max) =
        (choices.below(9) as u16, choices.below(9) as u16, choices.below(9) as u16);
    let limit2 = choices.yes().then_some(7);
    let filter = match choices.below(4) {
        0 => None,
        1 => Some(Filter::Range { min: initial, max }),
        2 => Some(Filter::Counter { data, control, initial, limit, max, filter_control }),
        _sparse => {
            Some(Filter::Sparse { data, control, initial, limit, limit2, max, filter_control })
        }
    };
    ColorConfig {
        route: route(choices),
        switch: choices.yes().then_some(switch),
        filter,
        teardown: choices.yes(),
        swap_x: choices.yes(),
        swap_y: choices.yes(),
    }
}

const CORE_FLAGS: [FlagOp; 14] = [
    FlagOp::RaiseTask,
    FlagOp::LowerTask,
    FlagOp::RaiseChannel,
    FlagOp::LowerChannel,
    FlagOp::MainPriority,
    FlagOp::FlushInput,
    FlagOp::FlushOutput,
    FlagOp::EndFlushInput,
    FlagOp::EndFlushOutput,
    FlagOp::TransformMask,
    FlagOp::Exceptions,
    FlagOp::BindInput,
    FlagOp::BindOutput,
    FlagOp::AnswerAhead,
];

const STATES: [QueueState; 6] = [
    QueueState::InputEmpty,
    QueueState::InputFull,
    QueueState::OutputEmpty,
    QueueState::OutputFull,
    QueueState::InputFlushed,
    QueueState::OutputFlushed,
];

/// A function that shows the instructions that [`super::program`] does not use.
fn shown(choices: &mut Choices<'_>) -> Func {
    let mut b = FuncBuilder::new("shown".to_owned(), &[], None, choices.loc());
    let (word, dsd) = (b.local(Ty::I16), b.local(Ty::I64));
    let (truth, single) = (b.local(Ty::I8), b.local(Ty::F32));
    let (slot, stack) = (SlotId::new(0), b.stack_slot(choices.below(100), 4));
    let offset = choices.number() as i16 as i32;
    let (indexed, src) = (choices.yes(), dsd);
    for data in [
        InstData::Slot { dst: word, slot },
        InstData::Copy { dst: word, src: word },
        InstData::StackAddress { dst: word, slot: stack, offset },
        InstData::GlobalAddress { dst: word, global: GlobalId::new(1), offset },
        InstData::FuncAddress { dst: word, func: FuncId::new(0) },
        InstData::Load { dst: single, addr: word, offset },
        InstData::CallIndirect {
            dst: Some(truth),
            callee: word,
            sig: SigId::new(0),
            args: vec![word, single],
        },
        InstData::CallIndirect { dst: None, callee: word, sig: SigId::new(1), args: Vec::new() },
        InstData::MakeMem1d { dst: dsd, base: word, extent: word, stride: word, indexed },
        InstData::MakeMem4d { dst: dsd, base: word, shape: ShapeId::new(0), indexed },
        InstData::MakeFabric { dst: dsd, desc: fabric(choices), extent: word },
        InstData::MakeRing { dst: dsd, base: word, extent: word, wrap: word },
        InstData::DsdMoveBase { dst: dsd, src, delta: word },
        InstData::DsdSetBase { dst: dsd, src, base: word },
        InstData::DsdSetExtent { dst: dsd, src, extent: word },
        InstData::DsdSetStride { dst: dsd, src, stride: word },
        InstData::SetFifoLength { fifo: FifoId::new(0), write_side: choices.yes(), length: word },
        InstData::Flag { op: FlagOp::Activate, id: word },
        InstData::Flag { op: FlagOp::BlockMicrothread, id: word },
        InstData::Flag { op: FlagOp::UnblockMicrothread, id: word },
        InstData::Flag { op: choices.one(&CORE_FLAGS), id: word },
        InstData::SetRandom { id: word },
        InstData::Queues { dst: word, state: choices.one(&STATES) },
        InstData::SetDsr {
            dsr: DsrRef { file: choices.one(&DsrFile::ALL), index: choices.below(4) as u8 },
            field: choices.one(&[DsrField::Base, DsrField::Extent, DsrField::Steps]),
            value: word,
        },
        InstData::Random { dst: word },
        InstData::GetConfig { dst: word, addr: word },
        InstData::SetConfig { addr: word, src: word },
        InstData::Clock {
            op: choices.one(&[ClockOp::Enable, ClockOp::Disable, ClockOp::Reset, ClockOp::Resume]),
            dst: None,
        },
        InstData::Clock { op: choices.one(&[ClockOp::Read, ClockOp::Total]), dst: Some(dsd) },
        InstData::Bound {
            index: word,
            len: word,
            what: choices.one(&[Bounded::Unsigned, Bounded::Signed, Bounded::Address]),
        },
        InstData::Assert { cond: truth, message: "x = const ; @1:2:3 \"\t".to_owned() },
        InstData::LoadDsr {
            dsr: DsrRef { file: choices.one(&DsrFile::ALL), index: choices.below(4) as u8 },
            dsd,
            options: options(choices, Some(word)),
            save_address: choices.yes(),
            single_step: choices.yes(),
            xdsr: choices.yes().then_some(2),
        },
    ] {
        b.at(choices.loc());
        b.inst(data);
    }
    vectors(&mut b, choices, word, dsd, truth);
    let (entry, end) = (Block::new(0), b.block());
    b.terminate(Terminator::Branch { cond: truth, then: end, otherwise: entry });
    b.switch_to(end);
    b.terminate(if choices.yes() { Terminator::Unreachable } else { Terminator::Return(None) });
    b.finish()
}

/// Vector operations with every kind of vector operand.
fn vectors(b: &mut FuncBuilder, choices: &mut Choices<'_>, word: Local, dsd: Local, truth: Local) {
    let Some(op) = DsdOp::by_name("add16") else { return };
    for _ in 0..3 {
        let index = choices.below(4) as u8;
        let dest = [
            Operand::Fabric(dsd),
            Operand::Fifo(FifoId::new(0)),
            Operand::Dsr(DsrRef { file: DsrFile::Dest, index }),
        ];
        let source = [
            Operand::Memory(dsd),
            Operand::Fifo(FifoId::new(0)),
            Operand::Dsr(DsrRef { file: DsrFile::Src1, index }),
        ];
        let sources = vec![choices.one(&source), Operand::Scalar(word)];
        let (dest, options) = (choices.one(&dest), options(choices, Some(word)));
        let result = choices.yes().then_some(truth);
        b.inst(InstData::Vector(Box::new(VectorInst { op, dest, sources, options, result })));
    }
}

/// A host program with every host operation in it. Exports are those of [`image`].
pub fn host_exhibit(numbers: &[u32]) -> Program {
    let mut choices = Choices::new(numbers);
    let mut program = Program::empty("host".to_owned(), Profile::Host);
    let mut b = FuncBuilder::new("run".to_owned(), &[], None, choices.loc());
    let (i, f, t) = (b.local(Ty::I64), b.local(Ty::F64), b.local(Ty::I8));
    let (word, half) = (b.local(Ty::I16), b.local(Ty::F16));
    let name = choices.one(&["field", "a \"name\"", ""]).to_owned();
    let (ty, color) = (Ty::I16, color(&mut choices));
    let pieces = vec![
        "a ".to_owned(),
        name.clone(),
        " ; ".to_owned(),
        String::new(),
        "\n".to_owned(),
        "]".to_owned(),
    ];
    let kinds =
        vec![HostArg::Signed, HostArg::Unsigned, HostArg::Float, HostArg::Bool, HostArg::Text];
    let shown = vec![i, word, f, t, i, i];
    let asserted = [vec![t], shown.clone()].concat();
    let number = ElementType::number(ty, choices.yes());
    let math = [HostMath::Log10, HostMath::Log, HostMath::Exp, HostMath::Sin, HostMath::Cos];
    for (op, dsts, args) in [
        (HostOp::Input { name: name.clone(), ty: number }, vec![i, i], vec![]),
        (HostOp::HasInput { name: name.clone() }, vec![t], vec![]),
        (HostOp::Output { name: name.clone(), ty: number }, vec![], vec![i, i]),
        (HostOp::Setting { name: name.clone(), ty: number }, vec![word], vec![word]),
        (HostOp::Setting { name: name.clone(), ty: ElementType::bool() }, vec![t], vec![t]),
        (HostOp::HasSetting { name }, vec![t], vec![]),
        (HostOp::CopyIn { export: 0, ty }, vec![], vec![i; 6]),
        (HostOp::CopyOut { export: 0, ty }, vec![i, i], vec![i; 5]),
        (HostOp::Launch { export: 1 }, vec![], vec![word, half]),
        (HostOp::StreamIn { color, ty }, vec![], vec![i; 6]),
        (HostOp::StreamOut { color, ty }, vec![], vec![i; 6]),
        (HostOp::StreamOutRows { color, ty }, vec![], vec![i; 7]),
        (HostOp::Wait, vec![], vec![]),
        (HostOp::Alloc, vec![i], vec![i]),
        (HostOp::Print { pieces: pieces.clone(), args: kinds.clone() }, vec![], shown),
        (HostOp::Expect { pieces, args: kinds }, vec![], asserted),
        (HostOp::Cycles, vec![i], vec![]),
        (HostOp::ClockRate, vec![f], vec![]),
        (HostOp::AssumedShare, vec![f], vec![]),
        (HostOp::Wavelets, vec![i], vec![]),
        (HostOp::Math(choices.one(&math)), vec![f], vec![f]),
    ] {
        b.at(choices.loc());
        b.inst(InstData::Host { op, dsts, args });
    }
    program.entry = Some(program.funcs.push(returning(b)));
    program
}

/// An image with two programs on a small mesh, routers, a host block and a test.
pub fn image(numbers: &[u32]) -> Image {
    let (first, second) = numbers.split_at(numbers.len() / 2);
    let mut choices = Choices::new(second);
    let programs: PrimaryMap<ProgramId, Program> =
        [exhibit(first), super::program(second)].into_iter().collect();
    let memory = programs.values().map(memory_map).collect();
    let element = ElementType::number(Ty::I16, choices.yes());
    let mutable = choices.yes();
    let half = ElementType::number(Ty::F16, true);
    let pointer = ExportKind::Pointer { element, mutable };
    let function = ExportKind::Function { params: vec![element, half] };
    let scalar = ExportKind::Scalar { element, mutable };
    let truth = ExportKind::Scalar { element: ElementType::bool(), mutable };
    let export = |name: &str, kind| Export { name: name.to_owned(), kind, loc: Loc::default() };
    Image {
        target: choices.one(&[TargetId::Wse2, TargetId::Wse3]),
        files: vec!["layout.csl".to_owned()],
        placement: placement(&programs, &mut choices),
        programs,
        memory,
        exports: vec![
            export("a", pointer),
            export("f", function),
            export("s", scalar),
            export("t", truth),
        ],
        host: choices.yes().then(|| host_exhibit(first)),
        tests: vec![("a test".to_owned(), host_exhibit(second))],
        params: vec![("width".to_owned(), "4".to_owned())],
        memcpy: choices
            .yes()
            .then(|| MemcpyInfo { h2d: vec![color(&mut choices)], d2h: Vec::new() }),
        streams: vec![HostStream {
            name: "words in".to_owned(),
            at: Coord { x: 1, y: 0 },
            port: choices.one(&[Port::North, Port::South]),
            color: color(&mut choices),
            to_mesh: choices.yes(),
            buffer: choices.below(2000),
        }],
    }
}

/// Globals one after the other.
fn memory_map(program: &Program) -> MemoryMap {
    let mut end: u32 = 0;
    let mut globals = Vec::new();
    for (id, global) in &program.globals {
        let address = end.next_multiple_of(global.align);
        globals.push((id, address));
        end = address + global.size;
    }
    MemoryMap { globals, data_end: end, stack: 1024, code: 100 }
}

fn placement(programs: &PrimaryMap<ProgramId, Program>, choices: &mut Choices<'_>) -> Placement {
    let (width, height) = (2 + choices.below(5) as u16, 1 + choices.below(5) as u16);
    let split = 1 + choices.below(u32::from(width) - 1) as u16;
    let left = Rect { x: 0, y: 0, width: split, height };
    let right = Rect { x: split, y: 0, width: width - split, height };
    let areas = [left.area(), right.area()];
    let mut values = |(program, pes): (&Program, usize)| {
        let types = program.slots.values().cycle().take(pes * program.slots.len());
        types.map(|&ty| choices.value(ty)).collect()
    };
    let slots = programs.values().zip(areas).map(&mut values).collect();
    let colors = vec![(color(choices), color_config(choices), choices.loc())];
    Placement {
        rect: Rect { x: 3, y: 4, width, height },
        programs: RectMap { entries: vec![(left, ProgramId::new(0)), (right, ProgramId::new(1))] },
        slots,
        routers: vec![RouterConfig::default(), RouterConfig { colors }],
        router_map: RectMap { entries: vec![(left, 1), (right, 0)] },
    }
}
