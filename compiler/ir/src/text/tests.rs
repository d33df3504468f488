use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::generate;
use crate::image::Image;
use crate::program::Program;

const PLACES: PrintOptions = PrintOptions { places: true };

fn round_trip(program: &Program) -> Result<(), TestCaseError> {
    let text = print_program(program, PLACES);
    match parse_program(&text) {
        Ok(parsed) => prop_assert_eq!(&parsed, program, "{}", text),
        Err(error) => prop_assert!(false, "{error}\n{text}"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn programs_come_back(numbers in vec(any::<u32>(), 0..300)) {
        round_trip(&generate::program(&numbers))?;
        round_trip(&generate::exhibit(&numbers))?;
        round_trip(&generate::host_exhibit(&numbers))?;
    }

    #[test]
    fn images_and_placements_come_back(numbers in vec(any::<u32>(), 0..300)) {
        let image: Image = generate::image(&numbers);
        let placement = print_placement(&image.placement, PLACES);
        prop_assert_eq!(parse_placement(&placement), Ok(image.placement.clone()));
        let text = print_image(&image, PLACES);
        prop_assert_eq!(parse_image(&text), Ok(image), "{}", text);
    }

    #[test]
    fn text_without_places_differs_in_places_only(numbers in vec(any::<u32>(), 0..200)) {
        let text = print_program(&generate::exhibit(&numbers), PrintOptions::default());
        let parsed = parse_program(&text);
        prop_assert_eq!(parsed.map(|program| print_program(&program, PLACES)), Ok(text));
    }

    #[test]
    fn changed_text_is_read_or_refused(
        numbers in vec(any::<u32>(), 0..200),
        changes in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4), 1..8),
    ) {
        let mut text = print_image(&generate::image(&numbers), PLACES).into_bytes();
        for (at, from, what) in changes {
            let at = at.index(text.len());
            let byte = text[from.index(text.len())];
            match what {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                2 if text.len() > 1 => drop(text.remove(at)),
                2 => {}
                _cut => text.truncate(at.max(1)),
            }
        }
        let text = String::from_utf8_lossy(&text);
        let read = parse_image(&text);
        if let Ok(image) = read {
            let _may_be_invalid = crate::validate::check_image(&image);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z0-9 v@\"\\\\{}\\[\\](),:;=>.\n-]{0,200}") {
        let _read = parse_program(&format!("program \"\" pe {{\n{text}"));
        let _read = parse_program(&format!(
            "program \"\" pe {{\nfunc fn0 \"f\" (v0: i16) {{\nblock0:\nv0 = {text}"
        ));
    }
}

#[test]
fn a_small_program_reads_well() {
    let text = r#"program "adder" pe {
  slot slot0: i16
  global g0 "a" size=64 align=4 exported init=x0a000000 @0:3:5
  shape shape0: 4 by 8, 2 by -1
  fifo fifo0: g0 capacity=8 element=4 activate_push=9
  sig sig0: (i16, f32) -> i8
  task local 8 = fn0 @0:9:1
  queue input 2 = color5
  flag activate 8
  register dest 1 = 0x0100fffe00080000 base=g0 save_address async activate=9
  color color5 route RAMP>WEST+EAST switch [tx WEST, invalid, invalid] initial=0 pop=always ring

  func fn0 "main" () {
    locals v0..v1: i16, v2: i64, v3: f32, v4: i8
    stack ss0: size=8 align=8
  block0:
    v0 = const.i16 -3
    v3 = const.f32 0x3fc00000 ; 1.5
    v1 = address [g0+8]
    v3 = load.f32 [v1-4]
    store.f32 [v1], v3 @0:12:7
    v2 = mem1d v1, v0, v0
    v4 = vector fmacs memory v2, memory v2, src1 0, scalar v3
    vector mov32 fabric v2, memory v2 async activate=9 priority=high
    branch v4, block0, block1
  block1:
    return
  }
}
"#;
    let program = parse_program(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(print_program(&program, PLACES), text);
    crate::validate::check_program(&program, crate::target::TargetId::Wse2)
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn errors_name_the_line_and_what_was_expected() {
    let parse = |body: &str| {
        let text =
            format!("program \"p\" pe {{\nfunc fn0 \"f\" (v0: i16) {{\nblock0:\n{body}\n}}\n}}");
        parse_program(&text).map(drop).map_err(|error| error.to_string())
    };
    let fails = |body: &str, message: &str| assert_eq!(parse(body), Err(message.to_owned()));
    assert_eq!(parse("return"), Ok(()));
    fails("return v0 v0", "line 4: expected the end of the line, found `v0`");
    fails("v0 = add.i32 v0, v0", "line 4: the suffix says `i32`, but v0 is i16");
    fails("v0 = frob v0", "line 4: there is no instruction `frob` of this form");
    fails("v0 = const 0x", "line 4: expected a constant of the type, found `0x`");
    fails("v0 = load [v0", "line 4: expected `]`, found the end of the line");
    fails("assert v0, \"oh", "line 4: a string has no end");
    fails("v0 = copy v0", "line 5: expected an instruction, found `}`");
    fails("return\nblock2:", "line 5: expected block1, found block2");
    fails("v0 = copy v99999999999", "line 4: expected `v0` or the like, found `v99999999999`");
    fails("v0, v0 = copy v0", "line 4: only host operations have several results");
}

/// The reference names every word of the closed sets.
#[test]
fn the_reference_has_every_word() {
    fn check<T: names::Word>() {
        let text = include_str!("../../../../spec/ir.md");
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words: std::collections::BTreeSet<&str> = text.split(|c| !is_word(c)).collect();
        for word in T::ALL {
            assert!(words.contains(word.word()), "spec/ir.md lacks {} `{}`", T::WHAT, word.word());
        }
    }
    check::<crate::scalar::UnaryOp>();
    check::<crate::scalar::BinaryOp>();
    check::<crate::scalar::Convert>();
    check::<crate::inst::FlagOp>();
    check::<crate::inst::ClockOp>();
    check::<crate::inst::Priority>();
    check::<crate::inst::QueueState>();
    check::<crate::inst::DsrField>();
    check::<crate::program::FifoAction>();
    check::<crate::program::HostMath>();
    check::<crate::program::HostArg>();
    check::<crate::program::TaskKind>();
    check::<crate::mesh::Port>();
    check::<crate::mesh::PopMode>();
}

#[test]
fn a_type_is_of_one_kind() {
    let image = |element: &str| {
        let text = include_str!("../../../../spec/ir.md");
        let image = text.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next());
        let image = image.last().unwrap_or_default();
        let line = "export \"a\" pointer i16 signed mutable";
        assert!(image.contains(line), "{image}");
        parse_image(&image.replace(line, &line.replace("i16 signed", element)))
    };
    for element in ["i8", "i8 signed", "i8 bool"] {
        assert!(image(element).is_ok(), "{element}");
    }
    for element in ["i8 signed bool", "i8 bool signed"] {
        assert!(image(element).is_err(), "{element}");
    }
}

/// Every example block of the reference that is a whole program or image can be read.
#[test]
fn the_examples_of_the_reference_can_be_read() {
    let text = include_str!("../../../../spec/ir.md").replace("OPTIONS", "async activate=8");
    let mut blocks = text.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next());
    let program = blocks.next().map(parse_program);
    assert!(matches!(program, Some(Ok(_))), "{program:?}");
    let image = blocks.next().map(parse_image);
    assert!(matches!(image, Some(Ok(_))), "{image:?}");
}
