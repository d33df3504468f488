use dflow_ir::image::ExportKind;
use dflow_ir::mesh::{Port, PortSet, Switch, SwitchEntry};
use dflow_ir::program::{HostLink, TaskKind};
use insta::assert_snapshot;

use super::*;
use crate::plan::PlanExport;
use crate::typed::{ExportBinding, QueueBinding, Symbol, TaskBinding};

pub(super) fn export(name: &str) -> PlanExport {
    PlanExport {
        name: name.to_owned(),
        kind: ExportKind::Function { params: Vec::new() },
        type_name: "fn()void".to_owned(),
        span: line(20),
    }
}

fn task(kind: TaskKind, id: u8, span: Span) -> TaskBinding {
    TaskBinding { kind, id, func: RUN, span }
}

fn queue(input: bool, queue: u8, number: u8, span: Span) -> QueueBinding {
    QueueBinding {
        input,
        queue,
        color: color(number),
        priority: None,
        control_table: 0,
        further: false,
        span,
        import: None,
    }
}

fn one(program: Program) -> Case {
    Case::filled(1, 1, program)
}

fn routed(target: TargetId, config: ColorConfig) -> Case {
    let mut case = one(program("pe.csl", 0));
    case.target = target;
    case.route(at(0, 0), 10, config, line(12));
    case
}

fn switched(positions: [Option<SwitchEntry>; 3], initial: u8) -> ColorConfig {
    let switch = Switch { positions, initial, ..Switch::default() };
    ColorConfig { switch: Some(switch), ..config(&[Port::Ramp], &[Port::Ramp]) }
}

#[test]
fn rectangles() {
    let mut missing = one(program("pe.csl", 0));
    missing.plan.rect_span = None;
    assert_snapshot!("rectangle_missing", missing.refused());
    assert_snapshot!("rectangle_too_large", Case::empty(2000, 1, Vec::new()).refused());
    assert_snapshot!("rectangle_empty", Case::empty(0, 7, Vec::new()).refused());
}

#[test]
fn pes_without_code_and_routes_without_pe() {
    let mut case = Case::empty(3, 2, vec![program("pe.csl", 0)]);
    case.tile(at(0, 0), 0, &[]);
    case.route(at(0, 0), 3, config(&[Port::Ramp], &[Port::Ramp]), line(12));
    case.plan.colors.push((9, ColorUse(0)));
    case.plan.colors.push((17, ColorUse(0)));
    assert_snapshot!(case.refused());
}

#[test]
fn a_color_routed_twice_names_both_places_once() {
    let mut own = program("pe.csl", 0);
    own.colors.push((color(4), config(&[Port::Ramp], &[Port::Ramp]), line(30)));
    let mut case = Case::filled(4, 3, own);
    for pe in case.plan.rect.coords() {
        case.route(pe, 3, config(&[Port::Ramp], &[Port::Ramp]), line(12));
        case.route(pe, 3, config(&[], &[Port::Ramp]), line(13));
    }
    case.route(at(1, 0), 4, config(&[Port::Ramp], &[Port::Ramp]), line(14));
    case.route(at(1, 0), 5, config(&[Port::Ramp], &[Port::Ramp]), line(15));
    case.route(at(1, 0), 5, config(&[Port::Ramp], &[Port::Ramp]), line(15));
    assert_snapshot!(case.refused());
}

#[test]
fn routes_out_of_the_rectangle_are_noted() {
    let mut case = Case::filled(3, 4, program("pe.csl", 0));
    for pe in case.plan.rect.coords() {
        case.route(pe, 3, config(&[Port::West], &[Port::East]), line(12));
    }
    let (image, told) = case.link();
    assert!(image.is_some());
    assert_snapshot!("route_leaves_rectangle", told);
    let link = HostLink { port: Port::East, color: color(3), to_mesh: false };
    case.programs[0].host_links.push((link, line(3)));
    assert_eq!(case.link().1, "");
}

#[test]
fn routes_that_a_router_cannot_hold() {
    let (wse2, wse3) = (TargetId::Wse2, TargetId::Wse3);
    let two_rx = config(&[Port::West, Port::East], &[Port::Ramp]);
    assert_snapshot!("two_rx", routed(wse3, two_rx.clone()).refused());
    assert!(routed(wse2, two_rx).link().0.is_some());
    let rx = |port| Some(SwitchEntry::Rx(PortSet::one(port)));
    let gap = switched([None, rx(Port::West), None], 0);
    assert_snapshot!("switch_gap", routed(wse2, gap).refused());
    let beyond = switched([rx(Port::West), None, None], 2);
    assert_snapshot!("switch_start", routed(wse2, beyond.clone()).refused());
    let empty = switched([Some(SwitchEntry::Tx(PortSet::EMPTY)), None, None], 0);
    assert_snapshot!("switch_empty", routed(wse2, empty).refused());
    let fine = switched([rx(Port::West), None, None], 1);
    assert!(routed(wse2, fine.clone()).link().0.is_some());
    assert_snapshot!("switch_color", routed(wse3, fine).refused());
    let swap = ColorConfig { swap_x: true, ..config(&[Port::Ramp], &[Port::Ramp]) };
    assert_snapshot!("swap", routed(wse3, swap).refused());
    let teardown = ColorConfig { teardown: true, ..config(&[Port::Ramp], &[Port::Ramp]) };
    assert!(routed(wse2, teardown.clone()).link().0.is_some());
    assert!(routed(wse3, teardown).link().0.is_some());
}

#[test]
fn task_ids_clash_or_are_out_of_range() {
    let mut pe = program("pe.csl", 0);
    pe.tasks = vec![
        task(TaskKind::Local, 8, line(10)),
        task(TaskKind::Data, 8, line(11)),
        task(TaskKind::Local, 31, line(12)),
        task(TaskKind::Control, 64, line(13)),
    ];
    assert_snapshot!(Case::filled(2, 1, pe).refused());
}

#[test]
fn queues_clash_or_are_out_of_range() {
    let mut pe = program("pe.csl", 0);
    pe.queues = vec![
        queue(false, 2, 3, line(10)),
        queue(true, 2, 3, line(11)),
        queue(false, 2, 4, line(12)),
        queue(true, 8, 3, line(13)),
    ];
    let mut case = one(pe);
    case.target = TargetId::Wse3;
    assert_snapshot!(case.refused());
}

#[test]
fn exports_without_a_program() {
    let mut case = one(program("pe.csl", 0));
    case.plan.exports = vec![export("run"), export("stop")];
    let symbol = Symbol::Func(RUN);
    let binding = |span| ExportBinding { export: 0, symbol, span };
    case.programs[0].exports = vec![binding(line(10)), binding(line(11))];
    assert_snapshot!(case.refused());
}

#[test]
fn an_export_of_one_program_of_two_is_fine() {
    let mut case = Case::empty(2, 1, vec![program("a.csl", 0), program("b.csl", 0)]);
    case.tile(at(0, 0), 0, &[]);
    case.tile(at(1, 0), 1, &[]);
    case.plan.exports = vec![export("run")];
    let symbol = Symbol::Func(RUN);
    case.programs[1].exports = vec![ExportBinding { export: 0, symbol, span: line(10) }];
    assert_eq!(case.image().exports.len(), 1);
}
