//! Any bytes are an image or are refused; what is an image can be loaded and run without a panic.
//!
//! Mutants of real images would all fail at the checksum: half of them are sealed again, so that
//! the decoder and the validator see them.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use dflow_compiler::{MemoryWorld, Options};
use dflow_fuzz::{Nobody, Target, limits, main as fuzz, sources};
use dflow_ir::image::Image;
use dflow_ir::sealed::seal;
use dflow_runtime::config::{CodeKind, Config, EngineKind};
use dflow_runtime::host;

/// Cycles that a mutant may run.
const CYCLES: u64 = 2_000;

fn main() -> ExitCode {
    fuzz(Target { name: "image", seeds: images(), words: &[], run })
}

/// Images of the small programs among the seeds.
fn images() -> Vec<Vec<u8>> {
    let options = || Options { comptime_steps: 300_000, tests: true, ..Options::default() };
    sources()
        .iter()
        .filter_map(|text| {
            let world = MemoryWorld::new().with("seed.dfl", text.as_slice());
            dflow_compiler::compile(&world, "seed.dfl", options()).image
        })
        .map(|image| image.encode())
        .filter(|bytes| bytes.len() < 32 * 1024)
        .collect()
}

fn run(bytes: &[u8]) -> bool {
    let mut sealed = bytes.to_vec();
    seal(&mut sealed);
    let mut accepted = false;
    for bytes in [bytes, &sealed] {
        let Ok(image) = Image::decode(bytes) else { continue };
        accepted = true;
        let config =
            Config { engine: EngineKind::Exact, code: CodeKind::Interpreter, ..Config::default() };
        let tests = image.tests.iter().map(|(_, program)| program);
        for program in image.host.iter().chain(tests).take(2) {
            let result =
                host::run_image(&image, program, &config, &limits(CYCLES), &mut Nobody::default());
            drop(result);
        }
    }
    accepted
}
