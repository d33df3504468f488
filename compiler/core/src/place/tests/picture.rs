use dflow_ir::mesh::{PopMode, Port, PortSet, Switch, SwitchEntry};

use super::*;
use crate::place::dump::picture;

#[test]
fn a_small_mesh_is_drawn() {
    let mut sender = program("pe.csl", 0);
    sender.globals = vec![global("a", 400, 4, line(10)), global("flag", 1, 1, line(11))];
    let last = Program { globals: vec![global("a", 400, 4, line(10))], ..program("last.csl", 0) };
    let mut case = Case::empty(4, 2, vec![sender, last]);
    for pe in case.plan.rect.coords() {
        case.tile(pe, u32::from(pe.x == 3), &[]);
        let route = match pe.x {
            0 => config(&[Port::Ramp], &[Port::East]),
            3 => config(&[Port::West], &[Port::Ramp]),
            _ => config(&[Port::West], &[Port::Ramp, Port::East]),
        };
        case.route(pe, 3, route, line(12));
    }
    let switch = Switch {
        positions: [Some(SwitchEntry::Tx(PortSet::one(Port::Ramp))), None, None],
        initial: 1,
        ring: true,
        pop: PopMode::Always,
    };
    let switched = config(&[Port::North], &[Port::South]);
    case.route(at(1, 1), 12, ColorConfig { switch: Some(switch), ..switched }, line(13));
    let (image, told) = case.link();
    insta::assert_snapshot!(picture(&image.expect("no faults")));
    insta::assert_snapshot!("a_small_mesh_is_drawn.notes", told);
}

#[test]
fn a_large_mesh_is_listed_by_rectangles() {
    let mut case = Case::filled(100, 40, program("inner", 0));
    case.programs.push(program("edge", 0));
    case.plan.slots.push(Vec::new());
    for y in 0..40 {
        case.tile(at(0, y), 1, &[]);
    }
    case.plan.rect.x = 4;
    case.plan.rect.y = 1;
    insta::assert_snapshot!(picture(&case.image()));
}

#[test]
fn many_programs_have_long_names() {
    let programs = (0..28).map(|index| program(&format!("p{index}"), 0)).collect();
    let mut case = Case::empty(14, 2, programs);
    for pe in case.plan.rect.coords() {
        case.tile(pe, case.plan.index(pe), &[]);
    }
    let text = picture(&case.image());
    insta::assert_snapshot!(text.lines().take(4).collect::<Vec<_>>().join("\n"));
}

#[test]
fn the_plan_as_text() {
    let mut case = Case::empty(3, 2, vec![program("pe.csl", 2), program("last.csl", 0)]);
    for pe in case.plan.rect.coords() {
        match pe.x {
            2 => case.tile(pe, 1, &[]),
            _ => case.tile(pe, 0, &[u64::from(pe.x), u64::from(pe.y)]),
        }
        case.route(pe, 5, config(&[Port::West], &[Port::Ramp]), line(12));
    }
    case.plan.params = vec![("width".to_owned(), "3".to_owned())];
    case.plan.exports = vec![super::faults::export("run")];
    let names: Vec<String> = case.programs.iter().map(|program| program.name.clone()).collect();
    let mut sources = SourceMap::new();
    let text: String = (1..=LINES).map(|line| format!("line {line:02}\n")).collect();
    sources.add("layout.csl", text);
    insta::assert_snapshot!(crate::dump::plan(&case.plan, &names, &sources));
}
