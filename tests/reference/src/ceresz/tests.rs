//! The published block vectors, round trips on awkward fields, damaged streams.

use super::*;

fn block(head: &[f32]) -> Vec<f32> {
    let mut values = head.to_vec();
    values.resize(BLOCK, 0.0);
    values
}

fn check(field: &[f32], eps: f64, words: &[u32]) {
    let bound = Bound::absolute(eps);
    assert_eq!(compress(field, &bound), words, "{field:?}");
    let restored = decompress(words, field.len(), &bound);
    holds(field, &restored.expect("its own stream"), eps);
}

fn holds(field: &[f32], restored: &[f32], eps: f64) {
    assert_eq!(field.len(), restored.len());
    for (&value, &back) in field.iter().zip(restored) {
        if value.is_finite() {
            assert!(
                (f64::from(value) - f64::from(back)).abs() <= eps,
                "{value} came back as {back}"
            );
        } else {
            assert_eq!(value.to_bits(), back.to_bits());
        }
    }
}

#[test]
fn zero_block_is_one_word() {
    check(&[0.49; BLOCK], 0.5, &[0]);
}

#[test]
fn ramp_needs_one_plane() {
    let ramp: Vec<f32> = (0..32_u8).map(f32::from).collect();
    check(&ramp, 0.5, &[1, 0, 0xffff_fffe]);
}

#[test]
fn alternating_signs() {
    let field: Vec<f32> = (0..BLOCK).map(|i| if i % 2 == 0 { 3.0 } else { -3.0 }).collect();
    check(&field, 0.5, &[3, 0xaaaa_aaaa, 1, 0xffff_ffff, 0xffff_fffe]);
}

#[test]
fn constant_block_is_no_zero_block() {
    check(&[280.0; BLOCK], 0.5, &[9, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1]);
}

#[test]
fn halves_round_up() {
    check(&block(&[0.5, -0.5, 1.5, -1.5]), 0.5, &[2, 0xa, 0x1b, 0xc]);
}

#[test]
fn short_block_repeats_its_last_value() {
    check(&[1.0, 2.0, 4.0], 0.5, &[2, 0, 3, 4]);
}

#[test]
fn not_a_number_makes_a_raw_block() {
    let mut words = vec![RAW, 0x7fc0_0000, 0x3f80_0000];
    words.resize(33, 0);
    check(&block(&[f32::NAN, 1.0]), 0.5, &words);
}

#[test]
fn blocks_follow_each_other() {
    let mut field: Vec<f32> = (0..32_u8).map(f32::from).collect();
    field.extend([0.0; BLOCK]);
    check(&field, 0.5, &[1, 0, 0xffff_fffe, 0]);
}

#[test]
fn the_papers_example() {
    check(&block(&[0.83, 0.61, -0.2, 1.6]), 0.1, &[4, 0x16, 0xa, 0, 5, 0x18]);
}

#[test]
fn just_below_a_half_is_decided_in_double() {
    // Rounds up to 1, and 1 - x rounds to 0.5 in f32 although it is more.
    let value = f32::from_bits(0x3eff_ffff);
    let words = compress(&[value; BLOCK], &Bound::absolute(0.5));
    assert_eq!(words[0], RAW);
}

#[test]
fn bound_of_zero_keeps_all_bits() {
    let bound = Bound::absolute(0.0);
    assert_eq!(compress(&[0.0; BLOCK], &bound), [0]);
    assert_eq!(compress(&[1e-40; BLOCK], &bound)[0], RAW);
    assert_eq!(compress(&[f32::INFINITY; BLOCK], &bound)[0], RAW);
    assert_eq!(Bound::relative(1e-3, &[7.0; 4]).eps, 0.0);
}

#[test]
fn range_is_over_finite_values() {
    let field = [f32::NAN, 1.0, f32::INFINITY, 3.0, f32::NEG_INFINITY];
    assert_eq!(Bound::relative(0.5, &field).eps, 1.0);
    assert_eq!(Bound::relative(0.5, &[]).eps, 0.0);
}

#[test]
fn any_bits_come_back_within_the_bound() {
    let mut seed = 1_u32;
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed
    };
    for n in [0, 1, 31, 32, 33, 1000] {
        let wild: Vec<f32> = (0..n).map(|_| f32::from_bits(next())).collect();
        let tame: Vec<f32> = (0..n).map(|_| (next() >> 8) as f32 / 65_536.0).collect();
        for field in [&wild, &tame] {
            for eps in [0.0, 1e-3, 0.5, 1e3, 1e30, 1e-42] {
                let words = encode(field, &Bound::absolute(eps));
                holds(field, &decode(&words).expect("its own container"), eps);
            }
        }
    }
}

#[test]
fn damage_is_told() {
    let field: Vec<f32> = (0..100_u8).map(f32::from).collect();
    let words = encode(&field, &Bound::absolute(0.1));
    assert_eq!(decode(&[]), Err(Malformed::Magic));
    for cut in HEADER..words.len() {
        assert_eq!(decode(&words[..cut]), Err(Malformed::Truncated));
    }
    let mut longer = words.clone();
    longer.push(0);
    assert_eq!(decode(&longer), Err(Malformed::Trailing));
    let mut wrong = words;
    wrong[HEADER] = 77;
    assert_eq!(decode(&wrong), Err(Malformed::Length(77)));
}

#[test]
fn forms_take_the_words_that_the_spec_says() {
    let bound = Bound::absolute(0.5);
    let packed = Form { bits: 8, group: 4, apart: false };
    let both = Form { apart: true, ..packed };
    let mut field: Vec<f32> = (0..32_u8).map(f32::from).collect();
    field.extend([0.0; BLOCK]);
    field.extend([-280.0; BLOCK]);
    field.extend([f32::NAN; BLOCK]);
    field.extend([280.0, 282.0]);
    let nan = f32::NAN.to_bits();
    let expected = [&[0x8040_0001, 0, 0xffff_fffe, -280_i32 as u32][..], &[nan; BLOCK]].concat();
    let last = [0x42, 0, 0, 2, 280];
    assert_eq!(compress_as(&field, &bound, &both), [&expected, &last[..]].concat());
    for form in [Form::PLAIN, packed, both, Form { apart: true, ..Form::PLAIN }] {
        let words = compress_as(&field, &bound, &form);
        let restored = decompress_as(&words, field.len(), &bound, &form);
        holds(&field, &restored.expect("its own stream"), 0.5);
    }
    assert_eq!(compress_as(&[0.0; 4 * BLOCK], &bound, &packed), [0]);
    let zeros = decompress_as(&[0x41], 1, &bound, &packed);
    assert_eq!(zeros, Err(Malformed::Length(0x41)));
    let longest = decompress_as(&[0x5f; 40], 1, &bound, &both);
    assert_eq!(longest, Err(Malformed::Length(0x5f)));
}

/// The mesh's way to decide in f32 alone (spec/ceresz.md, section 4).
fn keeps_bound_in_single(back: f32, value: f32, eps: f64) -> bool {
    let high = round_down(eps);
    let rest = round_down(eps - f64::from(high));
    let miss = back - value;
    if miss < high && miss > -high {
        return true;
    }
    let part = miss - back;
    let lost = (back - (miss - part)) - (value + part);
    if miss < 0.0 { -miss == high && -lost <= rest } else { miss == high && lost <= rest }
}

fn round_down(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) > value { f32::from_bits(near.to_bits() - 1) } else { near }
}

#[test]
fn single_precision_decides_as_double() {
    let mut seed = 7_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 32) as u32
    };
    let mut edges = 0;
    for round in 0..400_000_u32 {
        // Half of the bounds are exact in f32, and a quarter powers of two.
        let eps = match round % 4 {
            0 => f64::from(1 << (next() % 24)),
            1 => f64::from(f32::from_bits(0x3a00_0000 + next() % 0x0800_0000)),
            _ => f64::from(next()) / 4_294_967_296.0 * f64::from(1 << (next() % 20)),
        };
        let bound = Bound::absolute(eps);
        let level = (next() % (2 << (next() % 16))) as i32 - 1;
        let back = restore(level, &bound);
        // Values a few units around the place where the bound ends.
        let edge = (f64::from(back) + if next() & 1 == 0 { eps } else { -eps }) as f32;
        let value = f32::from_bits(edge.to_bits().wrapping_add(next() % 7).wrapping_sub(3));
        if !value.is_finite() {
            continue;
        }
        let error = (f64::from(back) - f64::from(value)).abs();
        edges += u32::from(error == eps);
        assert_eq!(
            keeps_bound_in_single(back, value, eps),
            error <= eps,
            "{back:e} for {value:e} within {eps:e}"
        );
    }
    assert!(edges > 1000, "{edges}");
}
