//! Host programs, from IR text.

use std::collections::BTreeMap;

use dflow_ir::target::{Target, TargetId};
use dflow_ir::text::parse_program;
use dflow_ir::ty::{ElementType, Ty};

use super::model::{Echo, Model};
use super::session;
use crate::exec::LoadedProgram;
use crate::exec::interp::Interpreter;
use crate::host::{Failure, HostEnv, HostOutcome, Input, Output, Session, run_program};

/// A world of given inputs and settings that keeps what it is told.
#[derive(Default)]
struct World {
    inputs: BTreeMap<&'static str, Input>,
    settings: BTreeMap<&'static str, &'static str>,
    lines: Vec<String>,
    outputs: Vec<Output>,
}

impl HostEnv for World {
    fn has_input(&self, name: &str) -> bool {
        self.inputs.contains_key(name)
    }

    fn input(&mut self, name: &str) -> Result<Input, String> {
        self.inputs.get(name).cloned().ok_or_else(|| "not given".to_owned())
    }

    fn setting(&self, name: &str) -> Option<String> {
        self.settings.get(name).map(|&text| text.to_owned())
    }

    fn output(&mut self, output: Output) -> Result<(), String> {
        self.outputs.push(output);
        Ok(())
    }

    fn print(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }
}

fn run(
    world: &mut World,
    host: &mut Session<Model>,
    locals: &str,
    body: &str,
) -> Result<HostOutcome, Failure> {
    let text = format!(
        "program \"host\" host {{\nentry fn0\nfunc fn0 \"host\" () {{\nlocals {locals}\nblock0:\n\
         {body}\nreturn\n}}\n}}"
    );
    let program = parse_program(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    dflow_ir::validate::check_program(&program, TargetId::Wse2)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let program = LoadedProgram::host(program, Target::get(TargetId::Wse2));
    run_program(&program, &Interpreter, host, world)
}

const REGION: &str = "v10 = const 0\nv11 = const 0\nv12 = const 2\nv13 = const 2\n";
const LOCALS: &str = "v0..v19: i64, v20..v24: i8, v25..v26: f32, v27..v29: f64";

#[test]
fn a_program_copies_checks_prints_and_hands_over() {
    let mut world = World::default();
    let bytes: Vec<u8> = [1.5f32, -2.0, 0.1, 1e20].iter().flat_map(|x| x.to_le_bytes()).collect();
    world.inputs.insert(
        "field",
        Input { bytes: bytes.clone(), ty: Some(ElementType::number(Ty::F32, true)) },
    );
    world.settings.insert("steps", "-3");
    let body = format!(
        "{REGION}v0, v1 = host input \"field\" f32()\n\
         host copy_in 1 f32(v10, v11, v12, v13, v0, v1)\n\
         v25 = load [v0+8]\n\
         v14 = const 7\n\
         host launch 2(v14, v25)\n\
         v15 = const 1\n\
         v2, v3 = host copy_out 1 f32(v10, v11, v12, v13, v15)\n\
         v4 = host setting \"steps\" i64 signed(v14)\n\
         v5 = host setting \"other\" i64 signed(v14)\n\
         v26 = load [v2+12]\n\
         v20 = host has_input \"field\"()\n\
         v21 = eq v1, v3\n\
         host expect [\"lengths differ\"] [](v21)\n\
         host print [\"\", \" of \", \" is \", \", \", \" \", \"\"] [float, signed, float, bool, signed](v25, v4, v26, v20, v5)\n\
         host output \"back\" f32 signed(v2, v3)"
    );
    let mut host = session(2, 2, Echo::Silent);
    let end = run(&mut world, &mut host, LOCALS, &body);
    assert_eq!(end, Ok(HostOutcome::Done));
    assert_eq!(world.lines, ["0.1 of -3 is 1e20, true 7"]);
    assert_eq!(
        world.outputs,
        [Output { name: "back".to_owned(), bytes, ty: ElementType::number(Ty::F32, true) }]
    );
    let launches = &host.mesh().pes[1][1].launches;
    assert_eq!(launches, &[(2, vec![7, 0.1f32.to_bits()])]);
}

#[test]
fn a_failed_expectation_hands_nothing_over() {
    let mut world = World::default();
    let body = "v20 = const 0\nv0 = const 41\nhost output \"x\" i8(v1, v2)\n\
                host expect [\"got \", \" not 42\"] [signed](v20, v0)";
    let end = run(&mut world, &mut session(1, 1, Echo::Silent), LOCALS, body);
    let Ok(HostOutcome::Failed { message, .. }) = end else { panic!("{end:?}") };
    assert_eq!(message, "got 41 not 42");
    assert!(world.outputs.is_empty());
}

#[test]
fn streams_are_delivered_into_memory() {
    let mut world = World::default();
    let body = format!(
        "{REGION}v14 = const 16\nv0 = host alloc(v14)\nv1 = host alloc(v14)\nv2 = host alloc(v14)\n\
         v25 = const 0x11\nstore [v0], v25\nv25 = const 0x22\nstore [v0+12], v25\n\
         v15 = const 4\nv16 = const 2\n\
         host stream_in color3 f32(v10, v11, v12, v13, v0, v15)\n\
         host stream_out_rows color4 f32(v10, v11, v12, v13, v1, v16, v2)\n\
         host wait()\n\
         host output \"rows\" f32(v1, v15)\nhost output \"counts\" i64(v2, v16)"
    );
    let end = run(&mut world, &mut session(2, 2, Echo::Marked), LOCALS, &body);
    assert_eq!(end, Ok(HostOutcome::Done));
    let words: Vec<u32> = world.outputs[0]
        .bytes
        .chunks_exact(4)
        .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        .collect();
    assert_eq!(words, [0x12, 1, 1, 0x23]);
    assert_eq!(world.outputs[1].bytes, [2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn long_loops_end_at_the_limit() {
    let mut world = World::default();
    let interrupt = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let limits = crate::config::Limits { interrupt: Some(interrupt), ..Default::default() };
    let mesh = Model::new(1, 1, Echo::Silent);
    let mut host = Session::new(mesh, &super::image(1, 1), limits);
    let end = run(
        &mut world,
        &mut host,
        LOCALS,
        "jump block1\nblock1:\nbranch v20, block2, block1\nblock2:",
    );
    assert_eq!(end, Err(Failure::Limit(crate::config::Limit::Interrupted)));
}

/// Values that no sane program computes: each ends with one clear message.
#[test]
fn bad_values_are_named_and_do_not_panic() {
    let bodies = [
        "v0 = const -1\nv1 = host alloc(v0)",
        "v0 = const 0x7fffffffffffffff\nv1 = host alloc(v0)",
        "v0 = const 0x7fffffffff\nv1 = const 1\nhost output \"x\" f64(v0, v1)",
        "v0 = const 8\nv1 = const -1\nhost output \"x\" f64(v0, v1)",
        "v0, v1 = host input \"none\" f64()",
        "v0, v1 = host input \"odd\" f64()",
        "v0, v1 = host input \"typed\" f64()",
        "v0 = host setting \"text\" i64 signed(v1)",
        "v10 = const -1\nv1 = const 1\nhost copy_in 0 i16(v10, v1, v1, v1, v1, v1)",
        "v1 = const 0x10000\nhost copy_in 0 i16(v0, v0, v1, v1, v1, v1)",
        "v1 = const 1\nv2 = const -5\nv3, v4 = host copy_out 0 i16(v0, v0, v1, v1, v2)",
        "v1 = const 1\nv2 = const 0x4000000000000000\nhost stream_out_rows color4 f32(v0, v0, v1, v1, v2, v2, v2)",
        "v1 = const 1\nhost stream_in color9 f32(v0, v0, v1, v1, v0, v1)",
    ];
    let mut text = Vec::new();
    for body in bodies {
        let mut world = World::default();
        world.inputs.insert("odd", Input { bytes: vec![0; 9], ty: None });
        world.inputs.insert(
            "typed",
            Input { bytes: vec![0; 8], ty: Some(ElementType::number(Ty::F32, true)) },
        );
        world.settings.insert("text", "many");
        match run(&mut world, &mut session(1, 1, Echo::Silent), LOCALS, body) {
            Err(failure @ Failure::Host { .. }) => text.push(failure.to_string()),
            other => panic!("{body}: {other:?}"),
        }
    }
    insta::assert_snapshot!(text.join("\n"));
}
