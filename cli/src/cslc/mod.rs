//! The command `cslc`: a layout file in, a folder that host scripts run out.
//!
//! The options are rows of a table (`options.rs`), each with its line in `spec/cslc.md` and its
//! test. Compiling is the compiler's; nothing here knows the language.

mod geometry;
mod given;
mod options;
mod parse;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use dflow_compiler::{Compiled, Mark, Options, Origin, ParamsFrom, SdkVersion};
use dflow_ir::image::Image;
use dflow_syntax::Severity;

use crate::artifact::{self, Artifact, ArtifactError, Dialect, Meta};
use crate::data::check_not_read;
use crate::diagnostics::{self, count};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::patience::Patience;
use crate::source::Root;
use crate::{process, term};
use given::Given;
use parse::Request;

/// The name of the tool.
const TOOL: &str = "cslc";

/// Runs `cslc`. The first of `args` is the name of the tool. Gives the exit code; Ctrl-C and
/// panics are handled from here on, so it is for a process that does nothing else.
pub fn main(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.into_iter().skip(1).collect();
    process::run(TOOL, move || execute(&args))
}

/// The names of all options, in the order of the help.
pub fn option_names() -> impl Iterator<Item = &'static str> {
    options::ROWS.iter().map(|row| row.name)
}

fn execute(args: &[OsString]) -> Result<Exit, Failure> {
    match parse::parse(args)? {
        Request::Help => term::say(&options::help()).map(|_| Exit::Success),
        Request::Version => {
            term::say(&version())?;
            Ok(Exit::Success)
        }
        Request::Compile(given) => compile(&given),
    }
}

/// What `--version` says: programs with the same answer fit together.
pub(crate) fn version() -> String {
    format!("cslc (dflow) {}, build {}\n", env!("CARGO_PKG_VERSION"), artifact::BUILD)
}

fn compile(given: &Given) -> Result<Exit, Failure> {
    let start = Instant::now();
    let root = match given.file.as_str() {
        "" => return Err(Failure::usage("no layout file is given; `cslc -h` shows how")),
        file => Root::file(file)?,
    };
    let interrupt = Interrupt::install(TOOL)?;
    let compiled = Patience::new(&interrupt).compile(root, compile_options(given)?)?;
    diagnostics::show(&compiled.sources, &compiled.diagnostics);
    let Some(image) = &compiled.image else { return Ok(Exit::Program) };
    let warnings = count(&compiled.diagnostics, Severity::Warning);
    if given.warnings_as_errors && warnings > 0 {
        let counted = diagnostics::plural(warnings, "warning");
        return Err(Failure::program(format!("{counted}, and --warnings-as-errors is given")));
    }
    let fabric = geometry::fabric(given, image)?;
    let artifact = Artifact { meta: meta(given, &compiled), fabric, image: image.clone() };
    if given.out_routes {
        term::say(&dflow_compiler::routes(&artifact.image))?;
    }
    let json = json_path(given);
    if let Some(path) = &json {
        check_not_read(path, diagnostics::files(&compiled.sources))?;
    }
    let folder = Path::new(&given.output);
    interrupt.listen();
    artifact::write_unless(folder, &artifact, &interrupt).map_err(unwritten)?;
    if let Some(path) = &json {
        write_json(path, &artifact, &interrupt)?;
    }
    if given.verbose {
        tell(given, &artifact, &compiled.dialect.summary(), start)?;
    }
    Ok(Exit::Success)
}

fn compile_options(given: &Given) -> Result<Options, Failure> {
    Ok(Options {
        target: given.target,
        params: given.params.clone(),
        colors: given.colors.clone(),
        params_from: ParamsFrom::Params,
        import_paths: import_paths(given),
        max_inlined: given.max_inlined,
        half: given.half,
        comptime_depth: given.comptime_depth.unwrap_or(Options::default().comptime_depth),
        sections: given.sections.clone(),
        first_address: given.first_address,
        check_bounds: environment_bounds(),
        sdk_version: sdk_version(given)?,
        ..Options::default()
    })
}

/// `--import-path`, then `CSL_IMPORT_PATH`.
fn import_paths(given: &Given) -> Vec<String> {
    let all = given.import_paths.iter().cloned().chain(environment_paths());
    all.filter(|path| !path.is_empty()).collect()
}

/// `CSL_IMPORT_PATH`.
pub(crate) fn environment_paths() -> Vec<String> {
    let environment = std::env::var_os("CSL_IMPORT_PATH").unwrap_or_default();
    let paths = std::env::split_paths(&environment);
    let paths = paths.map(|path| path.to_string_lossy().into_owned());
    paths.filter(|path| !path.is_empty()).collect()
}

/// `DFLOW_CHECK_BOUNDS`.
pub(crate) fn environment_bounds() -> bool {
    std::env::var_os("DFLOW_CHECK_BOUNDS").is_some_and(|value| !value.is_empty() && value != "0")
}

fn meta(given: &Given, compiled: &Compiled) -> Meta {
    Meta {
        params: given.params.clone(),
        colors: given.colors.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: artifact::BUILD.to_owned(),
        target: given.target,
        dialect: dialect(compiled),
    }
}

/// The dialect as `out.json` has it.
pub(crate) fn dialect(compiled: &Compiled) -> Dialect {
    Dialect {
        version: compiled.dialect.version.to_string(),
        marks: compiled.dialect.marks.iter().map(mark).collect(),
    }
}

/// A mark as `out.json` has it: what, and where.
fn mark(mark: &Mark) -> String {
    match mark.place.as_str() {
        "" => mark.what.clone(),
        place => format!("{} ({place})", mark.what),
    }
}

/// `--sdk-version`, then `DFLOW_SDK_VERSION`.
fn sdk_version(given: &Given) -> Result<Option<(SdkVersion, Origin)>, Failure> {
    let named = match &given.sdk_version {
        Some(text) => read_version(text, Origin::Flag),
        None => environment_version(),
    };
    named.map_err(Failure::usage)
}

/// `DFLOW_SDK_VERSION`.
///
/// # Errors
/// It names no version; a sentence.
pub(crate) fn environment_version() -> Result<Option<(SdkVersion, Origin)>, String> {
    match std::env::var_os("DFLOW_SDK_VERSION") {
        Some(text) if !text.is_empty() => {
            read_version(&text.to_string_lossy(), Origin::Environment)
        }
        Some(_) | None => Ok(None),
    }
}

fn read_version(text: &str, origin: Origin) -> Result<Option<(SdkVersion, Origin)>, String> {
    match text.parse::<SdkVersion>() {
        Ok(version) => Ok(Some((version, origin))),
        Err(fault) => Err(format!("{}: {fault}", origin.name())),
    }
}

/// Where `--output-json` writes to.
fn json_path(given: &Given) -> Option<PathBuf> {
    given.output_json.as_ref().map(|path| match path.as_str() {
        "" => PathBuf::from(format!("{}.json", given.output.trim_end_matches('/'))),
        path => PathBuf::from(path),
    })
}

/// The JSON that `--output-json` asks for: what was given, and what the params of the layout are.
fn write_json(path: &Path, artifact: &Artifact, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut meta = artifact.meta.clone();
    for (name, value) in &artifact.image.params {
        let known = meta.params.iter().chain(&meta.colors).any(|(other, _)| other == name);
        if !known {
            meta.params.push((name.clone(), value.clone()));
        }
    }
    artifact::write_meta(path, &meta, interrupt).map_err(unwritten)
}

/// Why a file of the folder is not written.
fn unwritten(error: ArtifactError) -> Failure {
    match error {
        ArtifactError::Interrupted => Failure::interrupted(),
        error => Failure::usage(error.to_string()),
    }
}

/// What `--verbose` says, one fact a line.
fn tell(given: &Given, artifact: &Artifact, dialect: &str, start: Instant) -> Result<(), Failure> {
    let Artifact { meta, fabric, image } = artifact;
    let rect = image.placement.rect;
    let (n_programs, n_exports) = (image.programs.len(), image.exports.len());
    let list = |pairs: &[(String, String)]| match pairs {
        [] => "none".to_owned(),
        pairs => pairs.iter().map(|(n, v)| format!("{n}:{v}")).collect::<Vec<_>>().join(", "),
    };
    let lines = [
        format!("file      {}", given.file),
        format!("target    {}", meta.target.name()),
        format!("params    {}", list(&image.params)),
        format!("colors    {}", list(&meta.colors)),
        format!(
            "mesh      {}x{} PEs at ({},{}) of a fabric of {}x{}",
            rect.width,
            rect.height,
            fabric.offsets.0,
            fabric.offsets.1,
            fabric.dims.0,
            fabric.dims.1
        ),
        format!("programs  {n_programs}, {}", diagnostics::plural(n_exports, "export")),
        format!("memory    {}", memory(image)),
        format!("dialect   {dialect}"),
        format!("wrote     {}", given.output),
        format!("time      {}", crate::report::duration(start.elapsed().as_secs_f64())),
    ];
    term::say(&(lines.join("\n") + "\n")).map(drop)
}

/// The fullest program's memory.
fn memory(image: &Image) -> String {
    let total = dflow_ir::target::Target::get(image.target).memory;
    let used =
        image.memory.values().map(|map| map.data_end.next_multiple_of(8) + map.stack + map.code);
    format!("up to {} of {total} bytes", used.max().unwrap_or(0))
}
