//! The table is consistent, its kernels are total, and the manual page is up to date.

#![expect(
    clippy::disallowed_methods,
    reason = "the manual is compared with the file, and written when told so"
)]

use proptest::prelude::*;

use super::*;
use crate::target::{Target, TargetId};

fn run(name: &str, sources: [u32; 3]) -> u32 {
    DsdOp::from_text(name).expect("an operation").row().apply(sources, &mut 0)
}

fn single(value: f32) -> u32 {
    value.to_bits()
}

fn half(value: f32) -> u32 {
    u32::from(half::f16::from_f32(value).to_bits())
}

#[test]
fn names_are_sorted_and_found() {
    assert!(TABLE.is_sorted_by(|a, b| a.name < b.name));
    assert_eq!(TABLE.len(), 42);
    for op in DsdOp::all() {
        assert_eq!(DsdOp::by_name(op.row().name), Some(op));
        assert_eq!(op.to_string(), op.row().name);
    }
    assert_eq!(DsdOp::by_name("fadd"), None);
    assert!(DsdOp(200).get().is_none());
}

#[test]
fn rows_are_consistent() {
    for row in TABLE {
        let arity = row.shape.arity();
        assert!(!row.forms.is_empty(), "{}", row.name);
        assert!(row.forms.iter().all(|form| form.arity() == arity), "{}", row.name);
        assert!(row.width.iter().all(|width| matches!(width, 0 | 1 | 2 | 4 | 8)), "{}", row.name);
        let types = row.source_types().iter().chain([&row.dest]);
        assert!(types.clone().all(|ty| matches!(ty.bytes(), 2 | 4)), "{}", row.name);
        assert_eq!(
            row.integer,
            types.clone().any(|ty| !ty.is_float()) && row.shape != OpShape::Scale
        );
        // The formula names as many sources as there are.
        let names = ["a", "b", "k"].iter().filter(|name| mentions(row.doc, name)).count();
        let scalars = usize::from(row.shape == OpShape::Scale);
        assert_eq!(names + scalars, arity, "{}: {}", row.name, row.doc);
    }
}

fn mentions(doc: &str, name: &str) -> bool {
    let formula = doc.split(", a single").next().unwrap_or(doc);
    formula.contains(&format!("{name}[i]"))
        || name == "k" && formula.split(' ').any(|word| word.trim_matches(',') == "k")
}

/// Slots of an operation on vectors at these word addresses (f32 words), all with stride 1.
fn slots(name: &str, id: TargetId, length: u32, words: &[u16]) -> u32 {
    let row = DsdOp::by_name(name).expect("an operation").row();
    let bytes = row.dest.bytes() as u8;
    let lie = |at: u16| Lie { address: at * 4, step: i16::from(bytes), bytes };
    let mut sources = [None; 3];
    for (source, &word) in sources.iter_mut().zip(words) {
        *source = Some(lie(word));
    }
    row.slots(Target::get(id), length, Some(lie(0)), &sources, false).all
}

#[test]
fn two_reads_of_one_bank_take_two_slots() {
    use TargetId::{Wse2, Wse3};
    for (name, words, wse2, wse3) in [
        // One element at a time: only equal banks conflict.
        ("fmacs", [0, 0], 200, 200),
        ("fmacs", [0, 1], 100, 100),
        ("fmacs", [0, 2], 100, 100),
        ("fmacs", [0, 4], 200, 200),
        ("fmuls", [0, 8], 200, 200),
        // Two at a time: only the other half of the banks is free. Four read every bank twice.
        ("fadds", [0, 0], 100, 50),
        ("fadds", [0, 1], 100, 50),
        ("fadds", [0, 2], 50, 50),
        ("fadds", [1, 3], 50, 50),
        ("faddh", [0, 2], 25, 25),
        ("faddh", [0, 0], 50, 25),
    ] {
        assert_eq!(slots(name, Wse2, 100, &words), wse2, "{name} {words:?}");
        assert_eq!(slots(name, Wse3, 100, &words), wse3, "{name} {words:?}");
    }
    for (name, wse2, wse3) in [
        ("fmovs", 50, 25),
        ("mov16", 25, 13),
        ("fmaxs", 100, 25),
        ("faddh", 25, 13),
        ("fadds", 50, 25),
    ] {
        assert_eq!(slots(name, Wse2, 100, &[1]), wse2, "{name}");
        assert_eq!(slots(name, Wse3, 100, &[1]), wse3, "{name}");
    }
}

#[test]
fn strides_meet_the_banks() {
    let row = DsdOp::by_name("mov16").expect("an operation").row();
    let target = Target::get(TargetId::Wse2);
    let slots = |stride: i16| {
        let lie = |step| Some(Lie { address: 0, step, bytes: 2 });
        row.slots(target, 400, lie(2), &[lie(2 * stride), None, None], false).all
    };
    let expected = [(0, 100), (1, 100), (2, 100), (3, 100), (5, 100), (6, 100), (10, 100)];
    for (stride, count) in expected.into_iter().chain([(7, 200), (9, 200), (4, 200), (8, 400)]) {
        assert_eq!(slots(stride), count, "stride {stride}");
    }
}

#[test]
fn a_sum_into_a_scalar_waits_for_itself() {
    let row = DsdOp::by_name("fadds").expect("an operation").row();
    let lie = Some(Lie { address: 0, step: 4, bytes: 4 });
    let target = Target::get(TargetId::Wse3);
    assert_eq!(row.slots(target, 100, None, &[None, lie, None], true).all, 200);
    assert_eq!(row.slots(target, 0, None, &[None, lie, None], true).all, 0);
    let two = row.slots(Target::get(TargetId::Wse2), 100, None, &[None, lie, None], true);
    assert_eq!((two.all, two.assumed), (200, 200));
}

#[test]
fn meanings() {
    assert_eq!(run("add16", [0xffff, 2, 0]), 1);
    assert_eq!(run("sub16", [1, 2, 0]), 0xffff);
    assert_eq!(run("sar16", [0x8000, 99, 0]), 0xffff);
    assert_eq!(run("sll16", [1, 16, 0]), 0);
    assert_eq!(run("mov16", [0x1234_5678, 0, 0]), 0x5678);
    assert_eq!(run("mov32", [0x1234_5678, 0, 0]), 0x1234_5678);
    assert_eq!(run("clz", [1, 0, 0]), 15);
    assert_eq!(run("popcnt", [0x1_00ff, 0, 0]), 8);
    assert_eq!(run("fmacs", [single(1.0), single(2.0), single(3.0)]), single(7.0));
    assert_eq!(run("fmach", [half(1.0), half(2.0), half(3.0)]), half(7.0));
    assert_eq!(run("fmachs", [single(1.0), half(2.0), half(3.0)]), single(7.0));
    assert_eq!(run("faddhs", [single(1e6), half(0.5), 0]), single(1_000_000.5));
    assert_eq!(run("fsubs", [single(1.0), single(3.0), 0]), single(-2.0));
    assert_eq!(run("fmaxs", [single(f32::NEG_INFINITY), single(-3.0), 0]), single(-3.0));
    assert_eq!(run("fs2h", [single(65520.0), 0, 0]), 0x7c00);
    assert_eq!(run("fh2s", [half(-0.1), 0, 0]), single(half::f16::from_f32(-0.1).to_f32()));
    assert_eq!(run("fs2xp16", [single(2.5), 0, 0]), 2);
    assert_eq!(run("fs2xp16", [single(-1e9), 0, 0]), 0x8000);
    assert_eq!(run("xp162fs", [0xffff, 0, 0]), single(-1.0));
    assert_eq!(run("fscales", [single(1.5), 0xffff, 0]), single(0.75));
    assert_eq!(run("fnegs", [0x7f80_0001, 0, 0]), 0xff80_0001);
}

/// In `bf16` the product of the mixed operation may be larger or smaller than any single.
#[test]
fn the_mixed_product_of_bf16_is_exact() {
    let of = |value: f32| value.to_bits() >> 16;
    let run = |wide, b, k| run("fmachs.bf16", [wide, of(b), of(k)]);
    let huge = 2f32.powi(64);
    let infinity = f32::INFINITY;
    assert_eq!(run(single(1.0), 2.0, 3.0), single(7.0));
    assert_eq!(run(single(f32::MAX), -huge, huge), single(-(2f32.powi(104))));
    assert_eq!(run(single(0.0), 2f32.powi(-90), -(2f32.powi(-90))), single(-0.0));
    assert_eq!(run(single(-infinity), huge, huge), single(-infinity));
    assert_eq!(run(single(infinity), -infinity, 1.0), 0x7fc0_0000);
    assert_eq!(run(single(1.0), 0.0, infinity), 0x7fc0_0000);
    // Twice the least single; half of it is a tie; what cancels.
    assert_eq!(run(1, 2f32.powi(-75), 2f32.powi(-74)), 2);
    assert_eq!(run(1, 2f32.powi(-75), 2f32.powi(-75)), 2);
    assert_eq!(run(1, 2f32.powi(-75), 2f32.powi(-76)), 1);
    assert_eq!(run(1, 2f32.powi(-75), -(2f32.powi(-74))), 0);
}

#[test]
fn carries_go_from_element_to_element() {
    let row = DsdOp::by_name("addc16").expect("an operation").row();
    let mut carry = 0;
    let sum: Vec<u32> = [(0xffff, 1), (0xffff, 0), (1, 1)]
        .into_iter()
        .map(|(a, b)| row.apply([a, b, 0], &mut carry))
        .collect();
    assert_eq!((sum, carry), (vec![0, 0, 3], 0));
}

#[test]
fn only_the_mixed_sum_exchanges_operands() {
    for row in TABLE {
        for &form in row.forms {
            assert_eq!(row.swapped(form), row.name == "faddhs" && form == Form::Dks);
        }
    }
    let row = DsdOp::by_name("faddhs").expect("an operation").row();
    assert_eq!(row.written_types(Form::Dks)[..2], [Ty::F16, Ty::F32]);
    assert_eq!(row.written_types(Form::Pks)[..2], [Ty::F32, Ty::F16]);
}

proptest! {
    #[test]
    fn mixed_products_are_rounded_once(wide: u32, b: u16, k: u16) {
        let bits = |value: f32| if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() };
        let single = |half: u16| f32::from_bits(u32::from(half) << 16);
        let want = single(b).mul_add(single(k), f32::from_bits(wide));
        prop_assert_eq!(run("fmachs.bf16", [wide, b.into(), k.into()]), bits(want));
        let single = |half: u16| half::f16::from_bits(half).to_f32();
        let want = single(b).mul_add(single(k), f32::from_bits(wide));
        prop_assert_eq!(run("fmachs", [wide, b.into(), k.into()]), bits(want));
    }

    #[test]
    fn kernels_are_total(sources: [u32; 3], carry: u32) {
        for row in TABLE {
            let mut state = carry;
            let result = row.apply(sources, &mut state);
            prop_assert_eq!(u64::from(result), row.dest.mask(result.into()), "{}", row.name);
            // Bits above an element do not matter.
            let mut masked = sources;
            for (raw, ty) in masked.iter_mut().zip(row.sources) {
                *raw = ty.mask((*raw).into()) as u32;
            }
            prop_assert_eq!(result, row.apply(masked, &mut carry.clone()), "{}", row.name);
        }
    }
}

#[test]
fn the_manual_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/dsd-ops.md");
    if std::env::var_os("UPDATE_SPEC").is_some() {
        std::fs::write(path, manual()).expect("spec/dsd-ops.md can be written");
    }
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(page == manual(), "spec/dsd-ops.md is stale: UPDATE_SPEC=1 cargo test -p dflow-ir");
}
