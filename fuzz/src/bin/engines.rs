//! Whatever compiles gives the same on both schedulers and both code engines: text, outputs,
//! cycles and end.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use dflow_compiler::{MemoryWorld, Options};
use dflow_fuzz::{Nobody, Target, WORDS, limits, main as fuzz, sources};
use dflow_ir::image::Image;
use dflow_ir::program::Program;
use dflow_runtime::config::{CodeKind, Config, EngineKind, Limit};
use dflow_runtime::host::{self, Failure, RunError};

/// Cycles that a mutant may run: endless ones end here.
const CYCLES: u64 = 3_000;

fn main() -> ExitCode {
    fuzz(Target { name: "engines", seeds: sources(), words: WORDS, run })
}

fn run(bytes: &[u8]) -> bool {
    let world = MemoryWorld::new().with("fuzz.dfl", bytes);
    let options = Options { comptime_steps: 300_000, tests: true, ..Options::default() };
    let Some(image) = dflow_compiler::compile(&world, "fuzz.dfl", options).image else {
        return false;
    };
    let rect = image.placement.rect;
    if u32::from(rect.width) * u32::from(rect.height) > 64 {
        return false;
    }
    let tests = image.tests.iter().map(|(_, program)| program);
    for program in image.host.iter().chain(tests).take(2) {
        let reference = record(&image, program, EngineKind::Step, CodeKind::Interpreter, 1);
        let Some(reference) = reference else { continue };
        for (engine, code, threads) in
            [(EngineKind::Exact, CodeKind::Interpreter, 2), (EngineKind::Exact, CodeKind::Jit, 1)]
        {
            let Some(other) = record(&image, program, engine, code, threads) else { break };
            assert_eq!(other, reference, "{engine:?}, {code:?}, {threads} threads");
        }
    }
    true
}

/// Everything that may be compared, as text; nothing if the host's clock ended the run, which
/// may be anywhere.
fn record(
    image: &Image,
    program: &Program,
    engine: EngineKind,
    code: CodeKind,
    threads: usize,
) -> Option<String> {
    let config = Config { engine, code, threads, region: 2, ..Config::default() };
    let mut env = Nobody::default();
    let result = host::run_image(image, program, &config, &limits(CYCLES), &mut env);
    let end = match result {
        Ok(run) => format!("{run:?}"),
        Err(RunError::Run(failure, _)) if *failure == Failure::Limit(Limit::Time) => return None,
        Err(error) => error.to_string(),
    };
    Some(format!("{end}\n{env:?}"))
}
