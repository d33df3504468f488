//! Sessions and host programs against a model of the mesh.

mod model;
mod program;
mod session;

use cranelift_entity::PrimaryMap;
use dflow_ir::image::{
    ElementType, Export, ExportKind, Image, MemoryMap, Placement, ProgramId, RouterConfig,
};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::{
    Color, ColorConfig, Port, PortSet, Rect, RectMap, Route, Switch, SwitchEntry, Wavelet,
};
use dflow_ir::program::{ExportBinding, FuncId, HostLink, Profile, Program, Symbol};
use dflow_ir::target::TargetId;
use dflow_ir::ty::Ty;

use super::Session;
use crate::config::{Config, Limits};
use crate::machine::{LinkId, Machine};
use crate::outcome::RunEnd;
use crate::trap::TrapKind;
use model::{Echo, Model, STREAM_IN, STREAM_OUT};

fn color(number: u8) -> Color {
    Color::new(number).expect("a color")
}

fn rect(x: u16, y: u16, width: u16, height: u16) -> Rect {
    Rect { x, y, width, height }
}

fn export(name: &str, kind: ExportKind) -> Export {
    Export { name: name.to_owned(), kind, loc: Loc::default() }
}

fn pointer(ty: Ty, mutable: bool) -> ExportKind {
    ExportKind::Pointer { element: ElementType::number(ty, false), mutable }
}

/// An image as far as the host looks: the model's exports; column 0 of row 0 lacks `rest`.
fn image(width: u16, height: u16) -> Image {
    let element = |ty| ElementType::number(ty, false);
    let exports = vec![
        export("words", pointer(Ty::I16, true)),
        export("longs", pointer(Ty::F32, true)),
        export("go", ExportKind::Function { params: vec![element(Ty::I16), element(Ty::F32)] }),
        export("fixed", pointer(Ty::I32, false)),
        export("rest", pointer(Ty::I32, true)),
        export("bytes", pointer(Ty::I8, true)),
        export("say", ExportKind::Function { params: vec![element(Ty::I8), ElementType::bool()] }),
    ];
    let binding = |export| ExportBinding { export, symbol: Symbol::Func(FuncId::from_u32(0)) };
    let mut programs = PrimaryMap::new();
    for exports in [vec![0, 1, 2, 3, 5, 6], vec![0, 1, 2, 3, 4, 5, 6]] {
        let mut program = Program::empty(String::new(), Profile::Pe);
        program.exports = exports.into_iter().map(binding).collect();
        programs.push(program);
    }
    let id = ProgramId::from_u32;
    let mut entries = vec![(rect(0, 0, 1, 1), id(0))];
    if width > 1 {
        entries.push((rect(1, 0, width - 1, 1), id(1)));
    }
    if height > 1 {
        entries.push((rect(0, 1, width, height - 1), id(1)));
    }
    let ports = |ports: &[Port]| ports.iter().fold(PortSet::EMPTY, |set, &port| set.with(port));
    let route = |rx: &[Port], tx| Route { rx: ports(rx), tx: PortSet::one(tx) };
    let deal = Switch {
        positions: [Some(SwitchEntry::Tx(PortSet::one(Port::East))), None, None],
        ..Switch::default()
    };
    let config = |route, switch| ColorConfig { route, switch, ..ColorConfig::default() };
    let dealt = config(route(&[Port::West], Port::Ramp), Some(deal));
    let merged = config(route(&[Port::Ramp, Port::East], Port::West), None);
    let colors = vec![
        (color(STREAM_IN), dealt, Loc::default()),
        (color(STREAM_OUT), merged, Loc::default()),
    ];
    let placement = Placement {
        rect: rect(0, 0, width, height),
        routers: vec![RouterConfig { colors }],
        router_map: RectMap { entries: vec![(rect(0, 0, width, height), 0)] },
        programs: RectMap { entries },
        ..Placement::default()
    };
    Image {
        target: TargetId::Wse2,
        files: Vec::new(),
        programs,
        memory: PrimaryMap::new(),
        placement,
        exports,
        host: None,
        tests: Vec::new(),
        params: Vec::new(),
        memcpy: None,
        streams: Vec::new(),
    }
}

fn session(width: u16, height: u16, echo: Echo) -> Session<Model> {
    let mesh = Model::new(width, height, echo);
    Session::new(mesh, &image(width, height), Limits::default())
}

#[test]
fn a_router_that_the_image_says_nothing_of_has_no_routes() {
    let mut image = image(1, 1);
    image.exports.clear();
    image.placement.routers.clear();
    image.placement.router_map.entries.clear();
    for program in image.programs.values_mut() {
        program.exports.clear();
        program.host_links.push(HostLink { port: Port::West, color: color(3), to_mesh: true });
        image.memory.push(MemoryMap::default());
        image.placement.slots.push(Vec::new());
    }
    let machine = Machine::load(&image, &Config::default()).expect("the image is valid");
    let mut machine = machine.start();
    assert!(machine.send(LinkId(0), 0, [Wavelet { payload: 1, control: false }]));
    let RunEnd::Trap(trap) = machine.run(&[], &Limits::default()) else { panic!("no trap") };
    assert_eq!(trap.kind, TrapKind::NoRoute { from: Port::West });
}
