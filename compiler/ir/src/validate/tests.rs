use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::generate;
use crate::image::{ElementKind, ElementType, ExportKind};
use crate::loc::Loc;
use crate::text::parse_program;
use crate::ty::Ty;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn generated_programs_and_images_are_valid(numbers in vec(any::<u32>(), 0..300)) {
        for target in [TargetId::Wse2, TargetId::Wse3] {
            for program in [generate::program(&numbers), generate::exhibit(&numbers), generate::host_exhibit(&numbers)] {
                prop_assert_eq!(check_program(&program, target), Ok(()));
            }
        }
        prop_assert_eq!(check_image(&generate::image(&numbers)), Ok(()));
    }
}

/// Checks a program whose declarations and body are given, on wse2.
fn check(declarations: &str, body: &str) -> Result<(), String> {
    let text = format!(
        "program \"p\" pe {{\n{declarations}\nsig sig0: () -> i16\n\
         func fn0 \"f\" (v0: i16) -> i16 {{\n\
         locals v1: i16, v2: i32, v3: i64, v4: f32, v5: i8\nblock0:\n{body}\n}}\n}}"
    );
    let program = parse_program(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    check_program(&program, TargetId::Wse2).map_err(|error| error.to_string())
}

fn in_body(body: &str, message: &str) {
    let expected = format!("program `p`: fn0 (`f`), {message}");
    assert_eq!(check("", body), Err(expected));
}

fn in_program(declarations: &str, message: &str) {
    assert_eq!(check(declarations, "return v0"), Err(format!("program `p`: {message}")));
}

#[test]
fn indices_must_point_at_something() {
    assert_eq!(check("", "return v0"), Ok(()));
    in_body("v9 = copy v0\nreturn v0", "block0, inst0: there is no v9");
    in_body("jump block7", "block0, terminator: there is no block7");
    in_body("v0 = call fn3()\nreturn v0", "block0, inst0: there is no fn3");
    assert_eq!(
        check("", "return v0\nblock1:\nreturn v0"),
        Err("program `p`: fn0 (`f`): nothing leads to block1".to_owned())
    );
    in_program("task local 8 = fn9", "local task 8: there is no fn9");
    in_program("global g0 \"g\" size=4 align=4 reloc 0 = g7", "g0: there is no g7");
}

#[test]
fn types_are_exact() {
    in_body("v0 = add v0, v2\nreturn v0", "block0, inst0: v2 is i32, i16 was expected");
    in_body("v4 = and v4, v4\nreturn v0", "block0, inst0: v4 is f32, an integer was expected");
    in_body("v0 = eq v0, v1\nreturn v0", "block0, inst0: v0 is i16, i8 was expected");
    in_body("v0 = load [v2]\nreturn v0", "block0, inst0: v2 is i32, i16 was expected");
    in_body("v2 = truncate v0\nreturn v0", "block0, inst0: no such conversion from i16 to i32");
    in_body("v5 = const 256\nreturn v0", "block0, inst0: 0x100 is not the raw form of an i8");
    in_body("branch v0, block0, block0", "block0, terminator: v0 is i16, i8 was expected");
    in_body("v0 = call fn0()\nreturn v0", "block0, inst0: 0 arguments, 1 were expected");
    in_body(
        "v2 = call_indirect v0 sig0()\nreturn v0",
        "block0, inst0: v2 is i32, i16 was expected",
    );
    in_body("return", "block0, terminator: the function has a result");
    in_body("switch v0, [3: block0, 3: block0], block0", "block0, terminator: two cases for 3");
    in_body("v0 = host wait ()\nreturn v0", "block0, inst0: not an instruction of PE programs");
    in_body("v0 = clock read\nreturn v0", "block0, inst0: v0 is i16, i64 was expected");
}

#[test]
fn vector_operations_fit_their_row() {
    let no_form = "block0, inst0: the operation has no form with these operands";
    in_body(
        "vector add16 memory v3, memory v3\nreturn v0",
        "block0, inst0: 1 arguments, 2 were expected",
    );
    in_body("vector add16 memory v3, scalar v0, scalar v0\nreturn v0", no_form);
    in_body("vector add16 pointer v0, scalar v0, memory v3\nreturn v0", no_form);
    in_body(
        "vector fadds memory v3, memory v3, scalar v0\nreturn v0",
        "block0, inst0: v0 is i16, f32 was expected",
    );
    in_body(
        "vector mov16 src1 0, memory v3\nreturn v0",
        "block0, inst0: a src1 register is no destination",
    );
    in_body(
        "vector mov16 memory v3, memory v3 activate=31\nreturn v0",
        "block0, inst0: local task id: 31, allowed is 0 to 30",
    );
}

#[test]
fn declarations_keep_to_the_target() {
    in_program("global g0 \"g\" size=60000 align=4", "g0: size: 60000, allowed is 0 to 49152");
    in_program("global g0 \"g\" size=4 align=3", "g0: alignment: 3, allowed is 4 to 4");
    in_program(
        "global g0 \"g\" size=2 align=4 init=x000000",
        "g0: the initial value is larger than the size",
    );
    in_program("queue input 9 = color1", "input queue: input queue: 9, allowed is 0 to 7");
    in_program("queue input 1 = color1\nqueue input 1 = color1", "input queue: bound twice");
    in_program("queue output 1 = color1\nqueue output 1 = color2", "output queue: bound twice");
    in_program("task local 8 = fn0", "local task 8: the function gives nothing");
    in_program("shape shape0:", "shape0: a shape has 1 to 4 dimensions");
    in_program("host_link RAMP color3 to_host", "host link of color3: the ramp leads to no host");
    in_program("entry fn0", "entry: PE programs start by tasks");
    in_program(
        "global g0 \"g\" size=8 align=4\nfifo fifo0: g0 capacity=8 element=4",
        "fifo over g0: the buffer is too small",
    );
    in_program(
        "color color3 route RAMP>EAST switch [invalid, invalid, invalid] initial=1 pop=never",
        "color3: the switch starts at a position that is not there",
    );
}

#[test]
fn placements_fit_together() {
    let fails = |change: fn(&mut Image), message: &str| {
        let mut image = generate::image(&[]);
        change(&mut image);
        assert_eq!(check_image(&image).map_err(|error| error.to_string()), Err(message.to_owned()));
    };
    fails(
        |image| image.placement.programs.entries[1].0.x = 0,
        "programs, 1x1 at (0, 0): it is out of order",
    );
    fails(
        |image| image.placement.programs.entries[1].0.x = 7,
        "programs, 1x1 at (7, 0): it leaves the program's rectangle",
    );
    fails(
        |image| image.placement.programs.entries[0].0.width = 2,
        "programs, 1x1 at (1, 0): it overlaps another",
    );
    fails(
        |image| image.placement.router_map.entries[1].1 = 5,
        "routers, 1x1 at (1, 0): its value points at nothing",
    );
    fails(
        |image| image.exports[0].loc = Loc { file: 3, line: 1, column: 1 },
        "places: a file that is not in the table",
    );
    fails(
        |image| image.memory[ProgramId::from_u32(1)].globals[1].1 = 8,
        "memory map of program1: two globals overlap",
    );
    fails(
        |image| image.memory[ProgramId::from_u32(1)].stack = 60_000,
        "memory map of program1: data and stack are larger than the memory",
    );
    fails(
        |image| drop(image.exports.remove(0)),
        "program0, export 0: bound to a symbol of another kind",
    );
    fails(
        |image| {
            let element = ElementType { ty: Ty::I16, kind: ElementKind::Bool };
            image.exports[3].kind = ExportKind::Scalar { element, mutable: true };
        },
        "export `t`: a bool is an i8",
    );
    fails(
        |image| image.placement.rect.x = 60_000,
        "the program's rectangle, 2x1 at (60000, 4): it does not fit the fabric",
    );
}
