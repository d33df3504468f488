//! Any bytes are a compressed field or are refused with a reason: no panic, no trap, no mesh that waits for ever.
//!
//! Mutants of real files would all fail at their checksums: each is tried as it is and with checksums that fit.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::OnceLock;

use dflow_compiler::{MemoryWorld, Options};
use dflow_fuzz::{Target, limits, main as fuzz};
use dflow_ir::image::Image;
use dflow_runtime::config::{CodeKind, Config, EngineKind, Limit};
use dflow_runtime::host::{self, Failure, HostEnv, HostOutcome, Input, Output, RunError};

/// Cycles that a mutant may run.
const CYCLES: u64 = 60_000;
/// Words of a header with checksums, and where it has the stream's and its own.
const HEADER: usize = 18;
const SUMS: (usize, usize) = (16, 17);

fn main() -> ExitCode {
    fuzz(Target { name: "compressed", seeds: seeds(), words: &[], run })
}

/// What a run is given, and what it gives.
#[derive(Default)]
struct World {
    inputs: Vec<(&'static str, Vec<u8>)>,
    settings: Vec<(&'static str, &'static str)>,
    compressed: Vec<u8>,
}

impl HostEnv for World {
    fn has_input(&self, name: &str) -> bool {
        self.inputs.iter().any(|(known, _)| *known == name)
    }

    fn input(&mut self, name: &str) -> Result<Input, String> {
        let found = self.inputs.iter().find(|(known, _)| *known == name);
        let (_, bytes) = found.ok_or("not given")?;
        Ok(Input { bytes: bytes.clone(), ty: None })
    }

    fn setting(&self, name: &str) -> Option<String> {
        let found = self.settings.iter().find(|(known, _)| *known == name);
        found.map(|&(_, value)| value.to_owned())
    }

    fn output(&mut self, output: Output) -> Result<(), String> {
        if output.name == "compressed" {
            self.compressed = output.bytes;
        }
        Ok(())
    }

    fn print(&mut self, _line: &str) {}
}

/// The program of the library, on two PEs.
fn program() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let source = dflow_stdlib::PROGRAMS.iter().find(|program| program.name == "ceresz");
        let source = source.expect("ceresz comes with the tool");
        let world = MemoryWorld::new().with(source.path, source.text);
        let params = vec![("rows".into(), "1".into()), ("cols".into(), "2".into())];
        let compiled =
            dflow_compiler::compile(&world, source.path, Options { params, ..Options::default() });
        compiled.image.expect("it compiles")
    })
}

fn try_with(world: &mut World) -> Result<HostOutcome, RunError> {
    let image = program();
    let host = image.host.as_ref().expect("it has a host block");
    let config =
        Config { engine: EngineKind::Exact, code: CodeKind::Interpreter, ..Config::default() };
    host::run_image(image, host, &config, &limits(CYCLES), world).map(|run| run.outcome)
}

/// Files of every version, with blocks of all kinds.
fn seeds() -> Vec<Vec<u8>> {
    let ramp = (0..40_u8).map(|i| 1000.0 + f32::from(i) * 0.5);
    let constants = [0.0_f32; 32].into_iter().chain([-70.0; 32]);
    let field: Vec<u8> = ramp
        .chain(constants)
        .chain([f32::NAN, 1e30, 2.0])
        .flat_map(|value: f32| value.to_le_bytes())
        .collect();
    let choices = [("false", "false"), ("true", "false"), ("false", "true"), ("true", "true")];
    let mut files: Vec<Vec<u8>> = choices
        .into_iter()
        .map(|(packed, apart)| {
            let settings = vec![("packed", packed), ("apart", apart), ("abs", "0.25")];
            let mut world =
                World { inputs: vec![("field", field.clone())], settings, ..World::default() };
            let outcome = try_with(&mut world);
            assert!(matches!(outcome, Ok(HostOutcome::Done)), "{outcome:?}");
            world.compressed
        })
        .collect();
    files.push(first_version(&files[0]));
    files
}

/// The same stream behind a header of the first version, which has no checksums.
fn first_version(file: &[u8]) -> Vec<u8> {
    let words = |from: usize, to: usize| &file[4 * from..4 * to];
    [b"CSZ1", words(4, 6), words(12, 14), &file[4 * HEADER..]].concat()
}

fn run(bytes: &[u8]) -> bool {
    let mut sealed = bytes.to_vec();
    seal(&mut sealed);
    let mut accepted = false;
    for bytes in [bytes, &sealed] {
        let mut world = World { inputs: vec![("compressed", bytes.to_vec())], ..World::default() };
        match try_with(&mut world) {
            Ok(HostOutcome::Done) => accepted = true,
            Ok(HostOutcome::Failed { .. }) => {}
            Err(error) => assert!(is_no_fault(&error), "{error}"),
        }
    }
    accepted
}

/// A field can be too long for the run's limits, and bytes no whole number of words.
fn is_no_fault(error: &RunError) -> bool {
    let RunError::Run(failure, _) = error else { return false };
    match &**failure {
        Failure::Limit(limit) => *limit != Limit::Interrupted,
        Failure::Host { error, .. } => {
            let said = error.to_string();
            said.contains("no whole number of") || said.contains("beyond its limit")
        }
        _ => false,
    }
}

/// Puts length and checksums that fit into the header of a changed file.
fn seal(bytes: &mut [u8]) {
    if bytes.len() < 4 * HEADER {
        return;
    }
    let (header, stream) = bytes.split_at_mut(4 * HEADER);
    header[56..64].copy_from_slice(&(stream.len() as u64 / 4).to_le_bytes());
    header[4 * SUMS.0..4 * SUMS.1].copy_from_slice(&crc(stream).to_le_bytes());
    let sum = crc(&header[..4 * SUMS.1]);
    header[4 * SUMS.1..].copy_from_slice(&sum.to_le_bytes());
}

/// CRC-32 (IEEE 802.3).
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| {
            if sum & 1 == 0 { sum >> 1 } else { (sum >> 1) ^ 0xedb8_8320 }
        })
    })
}
