//! Fuzzing without a nightly toolchain: mutate a corpus, catch panics, stop when the time is up.
//!
//! A target is a function from bytes to nothing. It must return in bounded time whatever the
//! bytes are; a panic or a slow input is a finding: the input is kept below `fuzz/findings/` and
//! the program ends with exit code 1. The same seed gives the same inputs.

#![forbid(unsafe_code)]

mod mutate;
mod options;
mod rng;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub use options::Options;
pub use rng::Rng;
pub use world::{Nobody, limits};

/// An input that takes longer than this is a finding.
const SLOW: Duration = Duration::from_secs(10);

/// Pieces of programs, for mutations of sources.
pub const WORDS: &[&str] = &[
    "layout {",
    "comptime {",
    "fn f() void {",
    "task t(x: u16) void {",
    "const a = ",
    "var b: [4]f32;",
    "param p: u16;",
    "if (",
    ") |i| {",
    "for (@range(u16, 4))",
    "while (true)",
    "switch (x) {",
    "else =>",
    "@get_dsd(mem1d_dsd, .{",
    ".tensor_access = |i|{4} -> a[i]",
    "tile t {",
    "host {",
    "test \"x\" {",
    "struct {",
    "enum(u8) {",
    "\"",
    "'",
    "//",
    "0x",
    "1e",
    "[*]const",
    ".*",
    "=>",
    "->",
    "...",
    "}",
    ")",
    "]",
    ";",
];

/// A fuzz target.
pub struct Target {
    /// Its name, for reports and findings.
    pub name: &'static str,
    /// What to begin with, beside the files of `fuzz/corpus/<name>`.
    pub seeds: Vec<Vec<u8>>,
    /// Words that mutations insert.
    pub words: &'static [&'static str],
    /// What must not panic; says whether the input was accepted. Without coverage feedback these
    /// are the inputs that are worth changing further: others drift into noise.
    pub run: fn(&[u8]) -> bool,
}

/// Runs a target as the command line says. Prints the seed first and a summary last.
pub fn main(target: Target) -> ExitCode {
    // As in the tool: evaluation may recurse as deep as its limits allow.
    let worker = std::thread::Builder::new().stack_size(256 << 20);
    let done = worker.spawn(move || run(&target)).map(std::thread::JoinHandle::join);
    done.ok().and_then(Result::ok).unwrap_or(ExitCode::FAILURE)
}

fn run(target: &Target) -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            say(&message);
            return ExitCode::from(2);
        }
    };
    if let Some(file) = &options.file {
        return replay(target, file);
    }
    let seed = options.seed;
    say(&format!("fuzz {}: seed {seed}, {} s", target.name, options.seconds));
    let mut corpus = target.seeds.clone();
    corpus.extend(read_corpus(&home().join("corpus").join(target.name)));
    fuzz(target, corpus, &options)
}

fn fuzz(target: &Target, mut corpus: Vec<Vec<u8>>, options: &Options) -> ExitCode {
    if corpus.is_empty() {
        corpus.push(Vec::new());
    }
    let start = Instant::now();
    let limit = Duration::from_secs(options.seconds);
    let seeds = corpus.len();
    let mut rng = Rng::new(options.seed);
    let (mut inputs, mut accepted) = (0u64, 0u64);
    // The seeds as they are come first.
    for input in corpus.clone() {
        inputs += 1;
        if let Err(reason) = check(target, &input) {
            return finding(target, &input, &reason);
        }
    }
    while start.elapsed() < limit {
        let input = mutate::mutate(&corpus, target.words, &mut rng);
        if let Some(path) = &options.keep
            && let Err(error) = std::fs::write(path, &input)
        {
            say(&format!("{}: {error}", path.display()));
            return ExitCode::from(2);
        }
        inputs += 1;
        let good = match check(target, &input) {
            Ok(good) => good,
            Err(reason) => return finding(target, &input, &reason),
        };
        accepted += u64::from(good);
        // Some of the accepted mutants are kept, so that changes pile up; the seeds stay.
        if good && rng.below(4) == 0 {
            if corpus.len() < 2 * seeds.max(64) {
                corpus.push(input);
            } else {
                let at = seeds + rng.below(corpus.len() - seeds);
                corpus[at] = input;
            }
        }
    }
    say(&format!(
        "fuzz {}: {inputs} inputs ({accepted} mutants accepted), no finding",
        target.name
    ));
    ExitCode::SUCCESS
}

fn check(target: &Target, input: &[u8]) -> Result<bool, String> {
    let start = Instant::now();
    let run = target.run;
    match catch_unwind(AssertUnwindSafe(|| run(input))) {
        Err(_) => Err("panic".into()),
        Ok(_) if start.elapsed() > SLOW => Err(format!("took {:?}", start.elapsed())),
        Ok(accepted) => Ok(accepted),
    }
}

fn finding(target: &Target, input: &[u8], reason: &str) -> ExitCode {
    let folder = home().join("findings");
    let path = folder.join(format!("{}-{:016x}", target.name, checksum(input)));
    let kept = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, input));
    let place = match kept {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("nowhere ({error})"),
    };
    say(&format!("fuzz {}: {reason}; {} bytes kept in {place}", target.name, input.len()));
    ExitCode::FAILURE
}

fn replay(target: &Target, file: &Path) -> ExitCode {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => {
            say(&format!("{}: {error}", file.display()));
            return ExitCode::from(2);
        }
    };
    match check(target, &bytes) {
        Ok(_) => {
            say("no finding");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            say(&reason);
            ExitCode::FAILURE
        }
    }
}

/// Sources of the suite and the examples: good seeds for everything that reads text.
pub fn sources() -> Vec<Vec<u8>> {
    let root = home().join("..");
    ["tests/suite", "examples", "stdlib"]
        .iter()
        .flat_map(|folder| read_corpus(&root.join(folder)))
        .collect()
}

/// Files below a folder, sorted by path; sources and anything without a known other ending.
fn read_corpus(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths = Vec::new();
    walk(folder, &mut paths);
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, paths);
        } else if !path.extension().is_some_and(|end| end == "snap" || end == "rs" || end == "toml")
        {
            paths.push(path);
        }
    }
}

fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// FNV-1a of 64 bits: names findings.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout(), "{line}");
}
