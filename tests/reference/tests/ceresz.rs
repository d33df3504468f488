//! The mesh program against the plain codec: the same bytes on every mesh, on both engines.
#![forbid(unsafe_code)]

use dflow_compiler::{MemoryWorld, Options, compile};
use dflow_ir::image::Image;
use dflow_reference::ceresz::{Bound, Form, compress_as, decode, encode};
use dflow_runtime::config::{CodeKind, Config, EngineKind, Limits};
use dflow_runtime::host::{HostEnv, HostOutcome, Input, Output, run_image};

/// Inputs and settings of a run, and what it gave.
#[derive(Default)]
struct Files {
    inputs: Vec<(&'static str, Vec<u8>)>,
    settings: Vec<(&'static str, String)>,
    outputs: Vec<Output>,
    printed: Vec<String>,
}

impl Files {
    fn output(&self, name: &str) -> Vec<u32> {
        let output = self.outputs.iter().find(|output| output.name == name);
        let bytes = &output.expect("every run gives both").bytes;
        bytes.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word)).collect()
    }
}

impl HostEnv for Files {
    fn has_input(&self, name: &str) -> bool {
        self.inputs.iter().any(|(known, _)| *known == name)
    }

    fn input(&mut self, name: &str) -> Result<Input, String> {
        let input = self.inputs.iter().find(|(known, _)| *known == name);
        let (_, bytes) = input.ok_or("not given")?;
        Ok(Input { bytes: bytes.clone(), ty: None })
    }

    fn setting(&self, name: &str) -> Option<String> {
        let setting = self.settings.iter().find(|(known, _)| *known == name);
        setting.map(|(_, text)| text.clone())
    }

    fn output(&mut self, output: Output) -> Result<(), String> {
        self.outputs.push(output);
        Ok(())
    }

    fn print(&mut self, line: &str) {
        self.printed.push(line.to_owned());
    }
}

fn program(rows: u16, cols: u16) -> Image {
    program_with(&[("rows", rows), ("cols", cols)])
}

fn program_with(params: &[(&str, u16)]) -> Image {
    let params = params.iter().map(|&(name, value)| (name, value.to_string()));
    program_of(params.collect())
}

fn program_of(params: Vec<(&str, String)>) -> Image {
    let source = dflow_stdlib::PROGRAMS.iter().find(|program| program.name == "ceresz");
    let source = source.expect("ceresz comes with the tool");
    let world = MemoryWorld::new().with(source.path, source.text);
    let params = params.into_iter().map(|(name, value)| (name.into(), value)).collect();
    let options = Options { params, tests: true, ..Options::default() };
    let compiled = compile(&world, source.path, options);
    let messages: Vec<_> = compiled.diagnostics.iter().map(|d| format!("{d:?}")).collect();
    compiled.image.unwrap_or_else(|| panic!("{messages:#?}"))
}

fn run(image: &Image, files: &mut Files, config: &Config) -> u64 {
    let host = image.host.as_ref().expect("it has a host block");
    let result = run_image(image, host, config, &Limits::default(), files);
    let run = result.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(run.outcome, HostOutcome::Done, "{:?}", files.printed);
    run.cycles
}

fn bytes(field: &[f32]) -> Vec<u8> {
    field.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The versions that are written: the last byte of the magic, and what they differ in.
const FORMS: [(u8, Form); 4] = [
    (b'2', Form::PLAIN),
    (b'3', Form { bits: 8, group: 4, apart: false }),
    (b'4', Form { apart: true, ..Form::PLAIN }),
    (b'5', Form { bits: 8, group: 4, apart: true }),
];

/// Compresses and restores on the mesh; both must be what the plain codec gives.
fn agree(image: &Image, field: &[f32], setting: (&'static str, f64), config: &Config) -> u64 {
    agree_as(image, field, setting, config, FORMS[0])
}

fn agree_as(
    image: &Image,
    field: &[f32],
    setting: (&'static str, f64),
    config: &Config,
    (version, form): (u8, Form),
) -> u64 {
    let bound = match setting.0 {
        "rel" => Bound::relative(setting.1, field),
        _ => Bound::absolute(setting.1),
    };
    let mut files = Files {
        inputs: vec![("field", bytes(field))],
        settings: vec![
            (setting.0, format!("{:e}", setting.1)),
            ("packed", (form.group > 1).to_string()),
            ("apart", form.apart.to_string()),
        ],
        ..Files::default()
    };
    let cycles = run(image, &mut files, config);
    let file = files.output("compressed");
    check_header(&file, version, field.len(), &bound);
    let expected = compress_as(field, &bound, &form);
    assert!(file[FILE_HEADER..] == expected, "{} values, {setting:?}, {form:?}", field.len());
    let restored = decode(&encode(field, &bound)).expect("its own container");
    let restored: Vec<u32> = restored.iter().map(|value| value.to_bits()).collect();
    assert!(files.output("restored") == restored, "{} values, {setting:?}, {form:?}", field.len());
    cycles
}

/// Words before the stream of a file of the second version.
const FILE_HEADER: usize = 18;

/// CRC-32 of words as little-endian bytes.
fn crc(words: &[u32]) -> u32 {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    !bytes.fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| {
            if sum & 1 == 0 { sum >> 1 } else { (sum >> 1) ^ 0xedb8_8320 }
        })
    })
}

/// What `spec/ceresz.md` says of a file's first words, for a field that is a line.
fn check_header(file: &[u32], version: u8, values: usize, bound: &Bound) {
    let eps = bound.eps.to_bits();
    let length = file.len() - FILE_HEADER;
    let sum = crc(&file[FILE_HEADER..]);
    let mut expected = vec![u32::from_le_bytes([b'C', b'S', b'Z', version]), 18, 1, 1];
    expected.extend([values as u32, 0, 1, 0, 1, 0, 1, 0, eps as u32, (eps >> 32) as u32]);
    expected.extend([length as u32, 0, sum]);
    expected.push(crc(&expected));
    assert_eq!(file[..FILE_HEADER], expected);
}

/// A field of `n` values: smooth, with rough places, zeros, and values that no bound can hold.
fn mixed(n: usize, mut seed: u32) -> Vec<f32> {
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed >> 8
    };
    let value = |i: usize, random: u32| match i / 100 % 8 {
        0 | 1 => i as f32 * 0.01,
        2 => 0.0,
        3 => random as f32 / 65_536.0,
        4 => -(random as f32) / 16_777_216.0,
        5 if random.is_multiple_of(17) => f32::from_bits(random << 8),
        6 if random.is_multiple_of(29) => f32::INFINITY,
        7 if random.is_multiple_of(31) => f32::NAN,
        _ => 280.0 + random as f32 / 1.0e8,
    };
    (0..n).map(|i| value(i, next())).collect()
}

#[test]
fn all_meshes_give_the_stream_of_the_plain_codec() {
    for (rows, cols) in [(1, 1), (1, 3), (3, 2), (4, 4), (16, 16)] {
        let image = program(rows, cols);
        for n in [0, 1, 31, 32, 33, 97, 1000, 5000] {
            let field = mixed(n, n as u32 + 1);
            agree(&image, &field, ("abs", 0.01), &Config::default());
            agree(&image, &field, ("rel", 1e-4), &Config::default());
        }
    }
}

/// Pipelines of every length, one and several in a row, with stages of both kinds, blocks dealt by switches and by cores: random, zero and constant values, a ramp, and
/// values with an offset.
#[test]
fn all_pipelines_give_the_stream_of_the_plain_codec() {
    let ramp = (0..60).map(|i| i as f32 * 0.37);
    let offset = mixed(100, 7).into_iter().map(|value| 1.0e4 + value);
    let constants = [0.0_f32, 3.5].into_iter().flat_map(|value| [value; 40]);
    let field: Vec<f32> =
        mixed(300, 11).into_iter().chain(constants).chain(ramp).chain(offset).collect();
    for length in 1..=8_u16 {
        for (pipelines, vector, relay) in
            [(1, 0, 0), (1, 1, 1), (3, 0, 1), (3, 1, 1), (3, 0, 0), (3, 1, 0)]
        {
            let image = program_with(&[
                ("rows", 2),
                ("cols", pipelines * length),
                ("pipeline", length),
                ("planes", 4 + length),
                ("vector", vector),
                ("relay", relay),
            ]);
            let config = Config { engine: EngineKind::Exact, ..Config::default() };
            for form in [FORMS[0], FORMS[3]] {
                agree_as(&image, &field, ("abs", 0.01), &config, form);
            }
        }
    }
}

/// Offsets of any size beside differences of any size, so that first levels stand apart or not, in both kinds of stages.
#[test]
fn offsets_of_any_size() {
    let offsets = (0..30).map(|k| if k % 2 == 0 { 1.0 } else { -1.0 } * (1_u32 << k) as f32);
    let field: Vec<f32> = offsets
        .flat_map(|offset| {
            [0_u32, 1, 5, 40, 1000, 16_000, 40_000, 400_000]
                .into_iter()
                .flat_map(move |size| (0..32).map(move |i| offset + (i * 7919 % (size + 1)) as f32))
        })
        .collect();
    for vector in [0, 1] {
        let image = program_with(&[("rows", 2), ("cols", 3), ("vector", vector)]);
        for form in FORMS {
            agree_as(&image, &field, ("abs", 0.5), &Config::default(), form);
        }
    }
}

#[test]
fn blocks_that_wait_for_one_another_arrive_in_flow() {
    let image = program_with(&[("rows", 1), ("cols", 8)]);
    let config = Config { engine: EngineKind::Flow, ..Config::default() };
    agree(&image, &mixed(1024, 5), ("abs", 0.01), &config);
}

#[test]
fn bounds_of_any_size() {
    for vector in [0, 1] {
        let image = program_with(&[("rows", 2), ("cols", 3), ("vector", vector)]);
        bounds_with(&image);
    }
}

fn bounds_with(image: &Image) {
    for eps in [0.0, 1e-42, 1e-6, 0.1, 0.5, 1.0, 1e3, 1e30] {
        agree(image, &mixed(1500, 9), ("abs", eps), &Config::default());
    }
}

#[test]
fn engines_agree_also_on_cycles() {
    let image = program(3, 4);
    let field = mixed(3000, 5);
    let mut cycles = Vec::new();
    for (engine, threads) in [(EngineKind::Step, 1), (EngineKind::Exact, 1), (EngineKind::Exact, 2)]
    {
        for code in [CodeKind::Interpreter, CodeKind::Jit] {
            let config = Config { engine, code, threads, region: 2, ..Config::default() };
            cycles.push(agree(&image, &field, ("rel", 1e-3), &config));
        }
    }
    assert!(cycles.iter().all(|&count| count == cycles[0]), "{cycles:?}");
}

#[test]
fn a_file_is_restored_on_another_mesh() {
    let field = mixed(2000, 3);
    let words = encode(&field, &Bound::relative(1e-3, &field));
    let input = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut files = Files { inputs: vec![("compressed", input)], ..Files::default() };
    run(&program(4, 2), &mut files, &Config::default());
    let restored = decode(&words).expect("its own container");
    let restored: Vec<u32> = restored.iter().map(|value| value.to_bits()).collect();
    assert!(files.output("restored") == restored);
}

#[test]
fn damaged_files_are_refused() {
    let field = mixed(2000, 3);
    let words = encode(&field, &Bound::relative(1e-3, &field));
    let image = program(4, 2);
    let damaged = |at: usize, word: u32| {
        let mut words = words.clone();
        words[at] = word;
        words
    };
    let longer = [words.as_slice(), &[0]].concat();
    for words in [
        Vec::new(),
        words[..4].to_vec(),
        words[..words.len() - 1].to_vec(),
        longer,
        damaged(0, 1),
        damaged(1, 3000),
        damaged(2, u32::MAX),
        damaged(4, u32::MAX),
        damaged(5, 77),
    ] {
        refused(&image, &words);
    }
}

/// A damaged or foreign file ends the run with a reason, whatever it holds.
fn refused(image: &Image, words: &[u32]) {
    let host = image.host.as_ref().expect("it has a host block");
    let input = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut files = Files { inputs: vec![("compressed", input)], ..Files::default() };
    let run = run_image(image, host, &Config::default(), &Limits::default(), &mut files);
    let outcome = run.unwrap_or_else(|error| panic!("{error}")).outcome;
    assert!(matches!(outcome, HostOutcome::Failed { .. }), "{:?}", words.get(..6));
}

#[test]
fn every_damaged_word_of_a_file_is_noticed() {
    let image = program(1, 2);
    let field = mixed(120, 3);
    let mut files = Files {
        inputs: vec![("field", bytes(&field))],
        settings: vec![("ny", "3".into()), ("nx", "40".into())],
        ..Files::default()
    };
    run(&image, &mut files, &Config::default());
    let file = files.output("compressed");
    assert_eq!(file[3..8], [2, 3, 0, 40, 0]);
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 1 << (at % 32);
        refused(&image, &damaged);
        refused(&image, &file[..at]);
    }
    refused(&image, &[file.as_slice(), &[0]].concat());
    refused_lies(&image, &file);
    let mut files = Files {
        inputs: vec![("compressed", file.iter().flat_map(|word| word.to_le_bytes()).collect())],
        ..Files::default()
    };
    run(&program(3, 1), &mut files, &Config::default());
    assert_eq!(files.output("restored").len(), field.len());
}

/// Headers and lengths that fit their checksums and lie all the same.
fn refused_lies(image: &Image, file: &[u32]) {
    for (at, word) in [(1, 17), (2, 2), (3, 5), (4, 6), (5, 1), (13, u32::MAX), (14, 3), (15, 1)] {
        let mut lying = file.to_vec();
        lying[at] = word;
        lying[17] = crc(&lying[..17]);
        refused(image, &lying);
    }
    for (version, length) in [(b'2', 32), (b'2', 0x41), (b'3', 0x41), (b'4', 0x5f), (b'5', 0x81)] {
        let mut lying = file.to_vec();
        lying[0] = u32::from_le_bytes([b'C', b'S', b'Z', version]);
        lying[FILE_HEADER] = length;
        lying[16] = crc(&lying[FILE_HEADER..]);
        lying[17] = crc(&lying[..17]);
        refused(image, &lying);
    }
}

#[test]
fn bounds_that_are_none_are_refused() {
    let image = program(1, 1);
    let host = image.host.as_ref().expect("it has a host block");
    // The range of a constant field is 0, and its bound then, whatever its share of the range is.
    let constant = vec![7.25; 100];
    for (name, value, field) in [
        ("abs", "-1", mixed(100, 1)),
        ("abs", "nan", mixed(100, 1)),
        ("rel", "-0.5", mixed(100, 1)),
        ("rel", "-0.5", constant.clone()),
        ("rel", "inf", mixed(100, 1)),
        ("rel", "inf", constant),
        ("ny", "7", mixed(100, 1)),
    ] {
        let mut files = Files {
            inputs: vec![("field", bytes(&field))],
            settings: vec![(name, value.into())],
            ..Files::default()
        };
        let run = run_image(&image, host, &Config::default(), &Limits::default(), &mut files);
        let outcome = run.unwrap_or_else(|error| panic!("{error}")).outcome;
        assert!(matches!(outcome, HostOutcome::Failed { .. }), "{name} {value}");
    }
}

#[test]
fn two_bounds_and_two_inputs_are_refused() {
    let image = program(1, 1);
    let host = image.host.as_ref().expect("it has a host block");
    let field = || ("field", bytes(&mixed(100, 1)));
    let rel = || ("rel", "0.1".to_owned());
    for (inputs, settings, why) in [
        (vec![field()], vec![rel(), ("abs", "0.1".to_owned())], "both abs and rel"),
        (vec![field(), ("compressed", vec![0; 128])], vec![rel()], "both `field` and `compressed`"),
    ] {
        let mut files = Files { inputs, settings, ..Files::default() };
        let run = run_image(&image, host, &Config::default(), &Limits::default(), &mut files);
        let outcome = run.unwrap_or_else(|error| panic!("{error}")).outcome;
        let HostOutcome::Failed { message, .. } = outcome else { panic!("{why}") };
        assert!(message.contains(why), "{message}");
    }
}

/// Fields of f64: what comes back keeps the bound against them, or the run says that it cannot.
#[test]
fn doubles_keep_their_bound_or_are_refused() {
    let params = [("rows", "2"), ("cols", "3"), ("cast", "f32")];
    let image = program_of(params.map(|(name, value)| (name, value.to_owned())).to_vec());
    let host = image.host.as_ref().expect("it has a host block");
    let wide: Vec<f64> =
        mixed(700, 4).into_iter().map(|value| f64::from(value) * 1.000_000_1).collect();
    let tame: Vec<f64> = (0..700).map(|i| 1000.0 + (f64::from(i) / 9.0).sin()).collect();
    let try_at = |field: &[f64], eps: f64| {
        let input = field.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut files = Files {
            inputs: vec![("field", input)],
            settings: vec![("abs", format!("{eps:e}"))],
            ..Files::default()
        };
        let run = run_image(&image, host, &Config::default(), &Limits::default(), &mut files);
        let outcome = run.unwrap_or_else(|error| panic!("{error}")).outcome;
        if outcome != HostOutcome::Done {
            assert!(format!("{outcome:?}").contains("cannot be kept with cast=f32"), "{outcome:?}");
            return false;
        }
        for (value, back) in field.iter().zip(files.output("restored")) {
            let back = f64::from(f32::from_bits(back));
            assert!((value - back).abs() <= eps || !value.is_finite(), "{value} {back} {eps}");
        }
        true
    };
    // The largest error of rounding to f32 near 1000 is 2^-15.
    assert!(try_at(&tame, 1e-3) && try_at(&tame, 3.1e-5) && !try_at(&tame, 3.0e-5));
    assert!(!try_at(&wide, 0.5) && try_at(&wide[..200], 0.5));
    assert!(!try_at(&[1.0, 1e39], 1e30) && try_at(&[1.0, f64::INFINITY], 0.0));
}

#[test]
fn its_own_tests_hold() {
    let image = program(2, 3);
    assert!(image.tests.len() >= 11);
    for (name, test) in &image.tests {
        let mut files = Files::default();
        let run = run_image(&image, test, &Config::default(), &Limits::default(), &mut files);
        let outcome = run.unwrap_or_else(|error| panic!("{name}: {error}")).outcome;
        assert_eq!(outcome, HostOutcome::Done, "{name}");
    }
}
