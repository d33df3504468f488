//! Random machines again, with bodies in IR and run from images: both schedulers and both code
//! engines give the same events, counters, memory and end.

use cranelift_entity::EntityRef;
use dflow_ir::builder::FuncBuilder;
use dflow_ir::dsd::FabricDsd;
use dflow_ir::dsd::op::DsdOp;
use dflow_ir::func::{Func, Local};
use dflow_ir::image::{Image, MemoryMap, Placement, ProgramId};
use dflow_ir::inst::{InstData, Operand, Terminator, VectorInst, VectorOptions};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, Coord, Rect, RectMap};
use dflow_ir::program::{Global, GlobalId};
use dflow_ir::scalar::BinaryOp;
use dflow_ir::target::Target;
use dflow_ir::ty::Ty;

use super::generate::{Machine, Style, machine};
use super::script::{Act, Spec, control};
use crate::config::{CodeKind, Config, EngineKind, Limits};
use crate::exec::{Stream, VectorStart};
use crate::machine::LinkId;
use crate::outcome::RunEnd;

const BUFFER: u32 = 16;
const WORDS: u32 = 256;

/// The image of a machine under test.
fn image(spec: &Spec) -> Image {
    let (width, height) = (spec.width, spec.height);
    let programs = spec.programs.iter().zip(&spec.acts).enumerate().map(|(pe, (program, acts))| {
        let mut program = program.clone();
        let init = (0..WORDS).flat_map(|word| control(word + 1000 * pe as u32).to_le_bytes());
        program.globals.push(Global {
            name: "buffer".into(),
            size: 4 * WORDS,
            align: 4,
            init: init.collect(),
            relocs: Vec::new(),
            slots: Vec::new(),
            exported: true,
            loc: Loc::default(),
        });
        for (func, acts) in program.funcs.values_mut().zip(acts) {
            *func = body(spec, func, acts);
        }
        program
    });
    let programs: Vec<_> = programs.collect();
    let data_end = BUFFER + 4 * WORDS;
    let globals = vec![(GlobalId::new(0), BUFFER)];
    let map = MemoryMap { globals, data_end, stack: 256, code: 0 };
    let number = |at: Coord| u32::from(at.y) * u32::from(width) + u32::from(at.x);
    let placement = Placement {
        rect: Rect { x: 0, y: 0, width, height },
        programs: RectMap::from_grid(width, height, |at| Some(ProgramId::from_u32(number(at)))),
        slots: programs.iter().map(|_| Vec::new()).collect(),
        routers: spec.routers.clone(),
        router_map: RectMap::from_grid(width, height, |at| Some(number(at))),
    };
    Image {
        target: spec.target,
        files: vec!["random.dfl".into()],
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

fn body(spec: &Spec, old: &Func, acts: &[Act]) -> Func {
    let mut b = FuncBuilder::new(old.name.clone(), &old.signature().params, None, Loc::default());
    for act in acts {
        match act {
            Act::Work(slots) => work(&mut b, *slots),
            Act::Flag(op, id) => {
                let id = b.constant(Ty::I16, (*id).into());
                b.inst(InstData::Flag { op: *op, id });
            }
            Act::Vector(start) => vector(spec, &mut b, start),
            Act::Write(address, value) => {
                let addr = b.constant(Ty::I16, (*address).into());
                let src = b.constant(Ty::I16, (*value).into());
                b.inst(InstData::SetConfig { addr, src });
            }
            Act::Read(address) => {
                let (addr, dst) = (b.constant(Ty::I16, (*address).into()), b.local(Ty::I16));
                b.inst(InstData::GetConfig { dst, addr });
                let addr = buffer(&mut b);
                b.inst(InstData::Store { addr, offset: 996, src: dst });
            }
            Act::Look(address) => {
                let (addr, dst) = (b.constant(Ty::I16, (2 * *address).into()), b.local(Ty::I16));
                b.inst(InstData::Load { dst, addr, offset: 0 });
                let addr = buffer(&mut b);
                b.inst(InstData::Store { addr, offset: 992, src: dst });
            }
            Act::Hash(_)
            | Act::Join { .. }
            | Act::Falters { .. }
            | Act::Since { .. }
            | Act::Every { .. }
            | Act::Depends { .. } => panic!("no IR has these"),
            Act::Panic | Act::Trap => panic!("no IR panics"),
            Act::Yield => {
                let dst = b.local(Ty::I64);
                let op = dflow_ir::inst::ClockOp::Read;
                b.inst(InstData::Clock { op, dst: Some(dst) });
            }
        }
    }
    b.terminate(Terminator::Return(None));
    b.finish()
}

/// A loop of so many turns, each of which changes memory.
fn work(b: &mut FuncBuilder, turns: u32) {
    let (index, one) = (b.constant(Ty::I32, 0), b.constant(Ty::I32, 1));
    let (head, inside, after) = (b.block(), b.block(), b.block());
    b.terminate(Terminator::Jump(head));
    b.switch_to(head);
    let (end, cond) = (b.constant(Ty::I32, turns.into()), b.local(Ty::I8));
    b.inst(InstData::Binary { dst: cond, op: BinaryOp::LtU, lhs: index, rhs: end });
    b.terminate(Terminator::Branch { cond, then: inside, otherwise: after });
    b.switch_to(inside);
    let (addr, word) = (buffer(b), b.local(Ty::I32));
    b.inst(InstData::Load { dst: word, addr, offset: 1000 });
    b.inst(InstData::Binary { dst: word, op: BinaryOp::Add, lhs: word, rhs: index });
    b.inst(InstData::Store { addr, offset: 1000, src: word });
    b.inst(InstData::Binary { dst: index, op: BinaryOp::Add, lhs: index, rhs: one });
    b.terminate(Terminator::Jump(head));
    b.switch_to(after);
}

fn buffer(b: &mut FuncBuilder) -> Local {
    let dst = b.local(Ty::I16);
    b.inst(InstData::GlobalAddress { dst, global: GlobalId::new(0), offset: 0 });
    dst
}

fn vector(spec: &Spec, b: &mut FuncBuilder, start: &VectorStart) {
    let length = start.length.unwrap_or(0);
    let extent = b.constant(Ty::I16, length.into());
    let operand = |b: &mut FuncBuilder, stream: &Stream| {
        let (desc, input) = match *stream {
            Stream::Input { queue, color, .. } => ((queue, color, false, false), true),
            Stream::Output { queue, color, control, advance_switch, .. } => {
                ((queue, color, control, advance_switch), false)
            }
            _ => {
                let (base, stride) = (buffer(b), b.constant(Ty::I16, 1));
                let dst = b.local(Ty::I64);
                b.inst(InstData::MakeMem1d { dst, base, extent, stride, indexed: false });
                return Operand::Memory(dst);
            }
        };
        let (queue, color, control, advance_switch) = desc;
        let color = Color::new(color);
        let desc =
            FabricDsd { input, queue, color, control, advance_switch, ..FabricDsd::default() };
        let dst = b.local(Ty::I64);
        b.inst(InstData::MakeFabric { dst, desc, extent });
        Operand::Fabric(dst)
    };
    let dest = operand(b, &start.dest);
    let source = operand(b, &start.sources[0]);
    let choice = Target::get(spec.target).microthread_choice;
    let options = VectorOptions {
        asynchronous: start.asynchronous,
        activate: start.activate,
        unblock: start.unblock,
        microthread: (choice && start.asynchronous).then_some(start.microthread),
        priority: start.priority,
        index: None,
        on_control: start.on_control,
    };
    let op = DsdOp::by_name("mov32").unwrap();
    b.inst(InstData::Vector(Box::new(VectorInst {
        op,
        dest,
        sources: vec![source],
        options,
        result: None,
    })));
}

fn run(
    machine: &Machine,
    image: &Image,
    config: &Config,
) -> Option<impl PartialEq + std::fmt::Debug + use<>> {
    let mut mesh = crate::machine::Machine::load(image, config).ok()?.start();
    for (link, cycle, words) in &machine.host {
        assert!(mesh.send(LinkId(*link), *cycle, words.iter().copied()));
    }
    let limits = Limits { cycle: 2500, ..Limits::default() };
    let end = mesh.run(&[], &limits);
    let moved = mesh.stats().delivered;
    // After a trap memory may be seen in the middle of an operation; it is still the same.
    let spec = &machine.spec;
    let all = Rect { x: 0, y: 0, width: spec.width, height: spec.height };
    let mut memory = Vec::new();
    for at in all.coords() {
        memory.push(mesh.read_memory(at, BUFFER, 4 * WORDS));
    }
    let trapped = matches!(end, RunEnd::Trap(_));
    Some((end, mesh.stats(), mesh.events(), mesh.waiting(), memory, moved, trapped))
}

#[test]
fn machines_from_images_agree() {
    let (mut loaded, seeds) = (0, 150);
    for seed in 0..seeds {
        let machine = machine(seed, Style { words: 30, wild: 1, plain: false });
        let image = image(&machine.spec);
        let config = |engine, code, threads, region| Config {
            engine,
            code,
            threads,
            region,
            record: true,
            ..Config::default()
        };
        let Some(step) =
            run(&machine, &image, &config(EngineKind::Step, CodeKind::Interpreter, 1, 0))
        else {
            continue;
        };
        loaded += 1;
        let mut others = vec![
            config(EngineKind::Exact, CodeKind::Interpreter, 1, 0),
            config(EngineKind::Exact, CodeKind::Interpreter, 4, 1),
        ];
        if seed % 5 == 0 {
            others.push(config(EngineKind::Exact, CodeKind::Jit, 2, 2));
        }
        for other in others {
            assert!(
                run(&machine, &image, &other).as_ref() == Some(&step),
                "seed {seed}, {other:?}"
            );
        }
    }
    assert!(loaded > seeds / 2, "only {loaded} of {seeds} machines are valid");
}
