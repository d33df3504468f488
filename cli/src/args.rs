//! The command line's shape.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use dflow_ir::target::{Override, TargetId};
use dflow_runtime::config::{CodeKind, EngineKind};

use crate::data::{Binding, parse_binding};

/// Compiler and emulator for wafer-scale dataflow programs.
#[derive(Debug, Parser)]
#[command(name = "dflowc", version, about, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 well, 1 the program is wrong or a check failed, \
2 wrong use, 3 trap or deadlock, 4 a limit was reached, 130 interrupted.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile a program to an image that runs without its sources
    Build(BuildArgs),
    /// Report what is wrong with a program, and make nothing
    Check(CheckArgs),
    /// Run a program's host block on an emulated mesh
    Run(Box<RunArgs>),
    /// Run the test blocks of a program or of all below a folder, each on a fresh mesh
    Test(TestArgs),
    /// Print what a phase of the compiler made of a program, for people: `check` has diagnostics as JSON
    Dump(DumpArgs),
    /// Explain a diagnostic code, or list all codes
    Explain(ExplainArgs),
    /// Hold the model's cycles against published measurements
    Validate(ValidateArgs),
    /// Run the command scripts of a code base with our tools, and show what became of each
    Conform(Box<ConformArgs>),
}

impl Command {
    /// Whether results go out as JSON on standard output, and all of them do.
    pub(crate) fn is_json(&self) -> bool {
        let compile = match self {
            Command::Build(args) => &args.compile,
            Command::Check(args) => &args.compile,
            Command::Run(args) => &args.compile,
            Command::Test(args) => &args.compile,
            Command::Validate(args) => return args.json,
            Command::Dump(_) | Command::Explain(_) | Command::Conform(_) => return false,
        };
        compile.json
    }
}

/// `dflowc build`.
#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    /// Source file (.dfl or .csl), or the name of a program of the library
    pub(crate) file: String,
    /// Image to write [default: the source's name with .dfi, in the current folder]
    #[arg(short, long, value_name = "OUT.dfi")]
    pub(crate) output: Option<PathBuf>,
    /// How to compile.
    #[command(flatten)]
    pub(crate) compile: CompileArgs,
}

/// `dflowc check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Source file (.dfl or .csl), or the name of a program of the library
    pub(crate) file: String,
    /// How to compile.
    #[command(flatten)]
    pub(crate) compile: CompileArgs,
}

/// `dflowc run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Source file, image (.dfi), or the name of a program of the library
    pub(crate) file: String,
    /// Give the host block an input: .npy, or raw little-endian values, with a :dtype behind the path or
    /// an ending of that name (f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64)
    #[arg(long = "input", value_name = "NAME=PATH[:DTYPE]", value_parser = parse_binding)]
    pub(crate) inputs: Vec<Binding>,
    /// Keep an output of the host block: .npy, or raw little-endian values
    #[arg(long = "output", value_name = "NAME=PATH[:DTYPE]", value_parser = parse_binding)]
    pub(crate) outputs: Vec<Binding>,
    /// Tell at the end what the run took, as JSON: a line on standard output (within the result with --json),
    /// or a file
    #[arg(long, value_name = "json[=FILE]", value_parser = parse_stats)]
    pub(crate) stats: Option<StatsPlace>,
    /// Tell at the end where the time went: front end, code of tasks, vector operations, fabric and so on
    #[arg(long)]
    pub(crate) profile: bool,
    /// How to compile.
    #[command(flatten)]
    pub(crate) compile: CompileArgs,
    /// How to run.
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
}

/// Where statistics go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StatsPlace {
    /// Standard output.
    Standard,
    /// A file.
    File(PathBuf),
}

/// `dflowc test`.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Source file (.dfl), the name of a program of the library, or a folder: all files below that have tests
    pub(crate) file: String,
    /// Run only tests whose name contains this
    pub(crate) filter: Option<String>,
    /// How to compile.
    #[command(flatten)]
    pub(crate) compile: CompileArgs,
    /// How to run.
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
}

/// `dflowc dump`.
#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// Source file (.dfl or .csl), or the name of a program of the library
    #[arg(required_unless_present_any = ["builtins", "timing"])]
    pub(crate) file: Option<String>,
    /// Which phase
    #[arg(long, value_enum, required_unless_present_any = ["builtins", "timing"])]
    pub(crate) stage: Option<StageArg>,
    /// List every builtin and vector operation and whether it is supported
    #[arg(long, conflicts_with_all = ["file", "stage"])]
    pub(crate) builtins: bool,
    /// List every constant of the targets with its unit, source and confidence
    #[arg(long, conflicts_with_all = ["file", "stage", "builtins"])]
    pub(crate) timing: bool,
    /// How to compile.
    #[command(flatten)]
    pub(crate) given: GivenArgs,
}

/// `dflowc validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Only this table, such as c1
    #[arg(long, value_name = "NAME")]
    pub(crate) table: Option<String>,
    /// Fewer rows and smaller meshes, for a test
    #[arg(long)]
    pub(crate) quick: bool,
    /// The rows as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The tables in Markdown, as in spec/timing.md
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Put the tables between the marks of this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "markdown", "quick", "table", "timing"])]
    pub(crate) write: Option<PathBuf>,
    /// Give a constant of the target another value, to see what depends on it; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_timing)]
    pub(crate) timing: Vec<Override>,
    /// Threads of the engine; results do not depend on it. Without it as many as the mesh is
    /// worth (one for each 512 PEs), up to the computer's cores and 8
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

/// `dflowc explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A code such as route-conflict; all codes are listed without one
    pub(crate) code: Option<String>,
}

/// `dflowc conform`.
#[derive(Debug, Args)]
pub(crate) struct ConformArgs {
    /// A folder with programs: folders with commands_wse2.sh, commands_wse3.sh or commands.sh
    pub(crate) folder: PathBuf,
    /// Scripts that run at the same time [default: as many as there are processors]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Seconds that a script may take
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = parse_seconds)]
    pub(crate) timeout: f64,
    /// Only scripts for this target
    #[arg(long, value_enum)]
    pub(crate) target: Option<TargetArg>,
    /// Only programs whose path contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Name of the scripts to run, in place of commands_wse2.sh and the like; repeatable
    #[arg(long = "script", value_name = "NAME")]
    pub(crate) scripts: Vec<String>,
    /// Also write the results as JSON (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Python for host scripts [default: $DFLOW_PYTHON, then python3]
    #[arg(long, value_name = "PY")]
    pub(crate) python: Option<PathBuf>,
    /// Use the virtual environment here; make it with numpy, scipy, matplotlib and our package
    #[arg(long, value_name = "DIR")]
    pub(crate) venv: Option<PathBuf>,
    /// Our package for --venv [default: the newest in target/wheels]
    #[arg(long, value_name = "FILE", requires = "venv")]
    pub(crate) wheel: Option<PathBuf>,
    /// Keep the folder in which each script ran, below this one
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Show everything that scripts print
    #[arg(long)]
    pub(crate) verbose: bool,
}

/// How to compile, and how to tell.
#[derive(Debug, Args)]
pub(crate) struct CompileArgs {
    /// For what.
    #[command(flatten)]
    pub(crate) given: GivenArgs,
    /// Diagnostics and results as JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a program is compiled for.
#[derive(Debug, Args)]
pub(crate) struct GivenArgs {
    /// Hardware generation [default: wse2]
    #[arg(long, value_enum)]
    pub(crate) target: Option<TargetArg>,
    /// Set a param of the layout, or a setting of the host block
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub(crate) settings: Vec<(String, String)>,
    /// Trap where code of a PE indexes outside of an array, as the host block always does; cycles stay the same
    #[arg(long)]
    pub(crate) check_bounds: bool,
}

/// How to run.
#[derive(Debug, Args)]
pub(crate) struct MachineArgs {
    /// Scheduler: step is the definition of time, exact gives the same cycles faster, flow
    /// approximates them, for scale
    #[arg(long, value_enum, default_value_t = EngineArg::Exact)]
    pub(crate) engine: EngineArg,
    /// Code engine
    #[arg(long, value_enum, default_value_t = CodeArg::Jit)]
    pub(crate) code: CodeArg,
    /// Threads of the exact and flow engines, at most; results do not depend on it. Without it as many as the mesh is
    /// worth (one for each 512 PEs), up to the computer's cores and 8
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// End the run at this cycle
    #[arg(long, value_name = "N")]
    pub(crate) max_cycles: Option<u64>,
    /// Make a trap of what is legal and odd: leaving the array that a descriptor was made of, a
    /// control wavelet that nothing hears
    #[arg(long)]
    pub(crate) strict: bool,
    /// Warn where a variable is read that nothing has written (slow: the interpreter runs the code)
    #[arg(long, alias = "track-uninitialised")]
    pub(crate) track_uninitialized: bool,
    /// Say at the end what became of every word, even if all is as expected
    #[arg(long)]
    pub(crate) account: bool,
    /// End the run when the mesh or the host block needs more memory than this (K, M, G: powers of 1024)
    /// [default: nine tenths of what is available]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) max_memory: Option<u64>,
    /// Give a constant of the target another value, such as hop=2 or clock_hz=1_100_000_000
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_timing)]
    pub(crate) timing: Vec<Override>,
    /// End the run after so many seconds, those of the compiler included; of tests, each
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) timeout: Option<f64>,
}

/// `--target`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TargetArg {
    /// Second generation
    Wse2,
    /// Third generation
    Wse3,
}

impl From<TargetArg> for TargetId {
    fn from(arg: TargetArg) -> TargetId {
        match arg {
            TargetArg::Wse2 => TargetId::Wse2,
            TargetArg::Wse3 => TargetId::Wse3,
        }
    }
}

/// `--engine`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EngineArg {
    /// Word by word, cycle by cycle
    Step,
    /// The same results, faster
    Exact,
    /// Streams in stretches of words: the same data, cycles approximated
    Flow,
}

impl From<EngineArg> for EngineKind {
    fn from(arg: EngineArg) -> EngineKind {
        match arg {
            EngineArg::Step => EngineKind::Step,
            EngineArg::Exact => EngineKind::Exact,
            EngineArg::Flow => EngineKind::Flow,
        }
    }
}

/// `--code`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CodeArg {
    /// Plain and slow
    Interpreter,
    /// Native code
    Jit,
}

impl From<CodeArg> for CodeKind {
    fn from(arg: CodeArg) -> CodeKind {
        match arg {
            CodeArg::Interpreter => CodeKind::Interpreter,
            CodeArg::Jit => CodeKind::Jit,
        }
    }
}

/// `--stage`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum StageArg {
    /// Words of the file
    Tokens,
    /// The tree
    Ast,
    /// What the layout block asked for
    Plan,
    /// Checked programs
    Typed,
    /// Programs as the machine runs them
    Ir,
    /// The mesh as a picture, with routes and memory maps
    Layout,
    /// The whole image as text
    Image,
}

fn parse_stats(text: &str) -> Result<StatsPlace, String> {
    match text.split_once('=') {
        None if text == "json" => Ok(StatsPlace::Standard),
        Some(("json", file)) if !file.is_empty() => Ok(StatsPlace::File(file.into())),
        Some(_) | None => Err("expected json or json=FILE".into()),
    }
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("expected NAME=VALUE".into()),
    }
}

fn parse_timing(text: &str) -> Result<Override, String> {
    let (name, value) = parse_setting(text)?;
    let value = value.replace('_', "").parse().map_err(|_| "expected a whole number behind `=`")?;
    Ok((name, value))
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok(seconds),
        Ok(_) | Err(_) => Err("expected a number of seconds".into()),
    }
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'k', 'm', 'g']);
    let shift = match text.strip_prefix(digits).unwrap_or_default() {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        _ => return Err("expected a number of bytes, such as 512M".into()),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a number of bytes, such as 512M")?;
    number.checked_mul(1 << shift).ok_or_else(|| "more bytes than there are".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_have_suffixes() {
        assert_eq!(parse_bytes("512M"), Ok(512 << 20));
        assert_eq!(parse_bytes("7"), Ok(7));
        assert!(parse_bytes("7X").is_err());
        assert!(parse_bytes("7MM").is_err());
        assert!(parse_bytes("99999999999G").is_err());
    }

    #[test]
    fn statistics_go_to_standard_output_or_a_file() {
        assert_eq!(parse_stats("json"), Ok(StatsPlace::Standard));
        assert_eq!(parse_stats("json=a/b"), Ok(StatsPlace::File("a/b".into())));
        assert!(parse_stats("json=").is_err() && parse_stats("csv").is_err());
    }

    #[test]
    fn settings_have_a_name() {
        assert_eq!(parse_setting("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(parse_setting("=b").is_err());
        assert!(parse_setting("b").is_err());
    }
}
