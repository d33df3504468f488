//! The list of phases, and the texts between them. Lowering cannot fail, but it can be given up (time limit, Ctrl-C).

use cranelift_entity::PrimaryMap;
use dflow_ir::image::{Image, ProgramId};
use dflow_ir::program::Program;
use dflow_syntax::{Diagnostic, Dialect as Kind, Interner, Reported, Sink, SourceMap, codes};

use crate::dialect::Dialect;
use crate::elaborate::{self, Elaborated};
use crate::lower::LocTable;
use crate::session::{Options, Session};
use crate::world::World;
use crate::{builtins, dump as dumps, link, lower, place};

/// Stack of the compiling thread: analysis recurses as deep as trees and comptime calls go.
const STACK: usize = 1 << 30;

/// What a compilation gave.
pub struct Compiled {
    /// The image, if there was no error.
    pub image: Option<Image>,
    /// All texts read, for rendering.
    pub sources: SourceMap,
    /// What there is to say, in order.
    pub diagnostics: Vec<Diagnostic>,
    /// Which release of the SDK the program was read as, and why.
    pub dialect: Dialect,
    /// [`Options::stop`] ended it: there is no image, and what is said is not all.
    pub given_up: bool,
}

/// What to print of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The words of the root file.
    Tokens,
    /// Its tree.
    Ast,
    /// What the layout block asked for.
    Plan,
    /// Checked programs.
    Typed,
    /// Lowered programs.
    Ir,
    /// The mesh as characters, routes and memory.
    Layout,
    /// The whole image.
    Image,
}

/// Compiles a program from its top file.
pub fn compile(world: &dyn World, root: &str, options: Options) -> Compiled {
    let elaborate = |cx: &mut Session<'_>| Ok((elaborate::layout(cx, root)?, ()));
    compile_with(world, options, elaborate).1
}

/// Compiles what a function makes, which also gives something else.
pub(crate) fn compile_with<T: Send>(
    world: &dyn World,
    options: Options,
    elaborate: impl FnOnce(&mut Session<'_>) -> Result<(Elaborated, T), Reported> + Send,
) -> (Option<T>, Compiled) {
    let work = |cx: &mut Session<'_>| {
        let (elaborated, other) = elaborate(cx)?; // loads, resolves, evaluates and checks
        Ok((try_compile(cx, &elaborated)?, other))
    };
    let (made, compiled) = on_large_stack(world, options, |cx| {
        let made: Result<(Image, T), Reported> = work(cx);
        made.ok()
    });
    match made.flatten() {
        Some((image, other)) => (Some(other), Compiled { image: Some(image), ..compiled }),
        None => (None, compiled),
    }
}

fn try_compile(cx: &mut Session<'_>, elaborated: &Elaborated) -> Result<Image, Reported> {
    let lowered = lower_all(cx, elaborated)?; // cannot fail, but be given up
    let placed = place::place(cx, &elaborated.plan, &elaborated.programs, &lowered.programs)?;
    let image = link::link(cx, &elaborated.plan, placed, lowered.host, lowered.tests);
    cx.go_on()?;
    let image = validated(cx, image)?;
    cx.go_on()?;
    Ok(image)
}

/// Everything lowered.
struct Lowered {
    programs: PrimaryMap<ProgramId, Program>,
    host: Option<Program>,
    tests: Vec<(String, Program)>,
}

fn lower_all(cx: &mut Session<'_>, elaborated: &Elaborated) -> Result<Lowered, Reported> {
    let mut programs = PrimaryMap::with_capacity(elaborated.programs.len());
    for program in &elaborated.programs {
        cx.go_on()?;
        programs.push(lower::program(program, &LocTable::new(&cx.sources)));
    }
    let locs = LocTable::new(&cx.sources);
    let tests = elaborated.tests.iter();
    Ok(Lowered {
        programs,
        host: elaborated.host.as_ref().map(|host| lower::program(host, &locs)),
        tests: tests.map(|(name, test)| (name.clone(), lower::program(test, &locs))).collect(),
    })
}

/// A fault found here is the compiler's own.
fn validated(cx: &mut Session<'_>, image: Image) -> Result<Image, Reported> {
    match dflow_ir::validate::check_image(&image) {
        Ok(()) => Ok(image),
        Err(error) => {
            let message = format!("the compiler made an image that is not valid: {error}");
            Err(cx.emit(
                Diagnostic::without_place(codes::INTERNAL_ERROR, message)
                    .help("please report this with the program that shows it"),
            ))
        }
    }
}

/// The text of a stage; empty if an earlier one failed.
pub fn dump(world: &dyn World, root: &str, options: Options, stage: Stage) -> (String, Compiled) {
    dump_with(world, root, options, stage, |cx| elaborate::layout(cx, root))
}

/// Likewise, of what a function makes; `root` is the text of the first stages.
pub(crate) fn dump_with(
    world: &dyn World,
    root: &str,
    options: Options,
    stage: Stage,
    elaborate: impl FnOnce(&mut Session<'_>) -> Result<Elaborated, Reported> + Send,
) -> (String, Compiled) {
    let (text, compiled) = on_large_stack(world, options, |cx| match stage {
        Stage::Tokens | Stage::Ast => dump_text(cx, root, stage).unwrap_or_default(),
        _ => {
            let elaborated = elaborate(cx);
            elaborated.and_then(|it| try_dump(cx, &it, stage)).unwrap_or_default()
        }
    });
    (text.unwrap_or_default(), compiled)
}

fn try_dump(
    cx: &mut Session<'_>,
    elaborated: &Elaborated,
    stage: Stage,
) -> Result<String, Reported> {
    let Elaborated { plan, programs, host, tests } = elaborated;
    if stage == Stage::Plan {
        let names: Vec<String> = programs.iter().map(|program| program.name.clone()).collect();
        return Ok(dumps::plan(plan, &names, &cx.sources));
    }
    if stage == Stage::Typed {
        let tests = tests.iter().map(|(_, test)| test);
        let texts = programs.iter().chain(host).chain(tests).map(dumps::typed);
        return Ok(texts.collect::<Vec<_>>().join("\n"));
    }
    let lowered = lower_all(cx, elaborated)?;
    if stage == Stage::Ir {
        let tests = lowered.tests.iter().map(|(_, test)| test);
        let all = lowered.programs.values().chain(&lowered.host).chain(tests);
        let options = dflow_ir::text::PrintOptions::default();
        let texts = all.map(|program| dflow_ir::text::print_program(program, options));
        return Ok(texts.collect::<Vec<_>>().join("\n"));
    }
    let placed = place::place(cx, plan, programs, &lowered.programs)?;
    let image = link::link(cx, plan, placed, lowered.host, lowered.tests);
    let image = validated(cx, image)?;
    Ok(match stage {
        Stage::Layout => place::dump::picture(&image),
        _ => dflow_ir::text::print_image(&image, dflow_ir::text::PrintOptions::default()),
    })
}

fn dump_text(cx: &mut Session<'_>, root: &str, stage: Stage) -> Result<String, Reported> {
    let bytes = cx.world.read(root).map_err(|reason| {
        let message = format!("`{root}` cannot be read: {reason}");
        cx.emit(Diagnostic::without_place(codes::FILE_NOT_FOUND, message))
    })?;
    let id = match cx.sources.add_bytes(root, &bytes) {
        Ok(id) => id,
        Err(diagnostic) => return Err(cx.emit(*diagnostic)),
    };
    let text = cx.sources.shared_text(id);
    let parsed = dflow_syntax::parse(id, &text, Kind::of_path(root), &mut cx.names);
    cx.sink.extend(parsed.diagnostics);
    Ok(match stage {
        Stage::Tokens => dflow_syntax::lexer::dump_tokens(&text),
        _ => dflow_syntax::ast::dump(&parsed.file, &cx.names),
    })
}

/// The mesh of an image as characters: which program is where, and what each color does.
pub fn routes(image: &Image) -> String {
    place::dump::routes(image)
}

/// The builtins and their states, one line each.
pub fn builtin_table() -> String {
    builtins::manual()
}

/// Runs a compilation on a thread of its own with room for deep trees.
fn on_large_stack<T: Send>(
    world: &dyn World,
    options: Options,
    work: impl FnOnce(&mut Session<'_>) -> T + Send,
) -> (Option<T>, Compiled) {
    let run = move || {
        let mut cx = Session {
            world,
            sources: SourceMap::new(),
            names: Interner::new(),
            sink: Sink::new(),
            options,
            dialect: Dialect::default(),
            libraries: std::collections::BTreeMap::new(),
            old_spellings: std::collections::BTreeSet::new(),
        };
        let result = work(&mut cx);
        let (sources, dialect, given_up) = (cx.sources, cx.dialect, cx.sink.has_given_up());
        let diagnostics = cx.sink.into_diagnostics();
        (Some(result), Compiled { image: None, sources, diagnostics, dialect, given_up })
    };
    let failed = |diagnostic| {
        let (sources, dialect) = (SourceMap::new(), Dialect::default());
        let diagnostics = vec![diagnostic];
        (None, Compiled { image: None, sources, diagnostics, dialect, given_up: false })
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("compile".into()).stack_size(STACK);
        match thread.spawn_scoped(scope, run) {
            Ok(handle) => handle.join().unwrap_or_else(|_| failed(panicked())),
            Err(error) => failed(threadless(&error)),
        }
    })
}

/// A fault of ours.
fn panicked() -> Diagnostic {
    Diagnostic::without_place(codes::INTERNAL_ERROR, "the compiler failed: it panicked")
        .help("please report this with the program that shows it")
}

/// The computer's: it has no thread left, or no addresses for its stack.
fn threadless(error: &std::io::Error) -> Diagnostic {
    let message = format!("no thread can be started for the compiler: {error}");
    let help = "its stack takes 1 GiB of addresses: raise the limits of addresses and of processes (`ulimit -v`, `-u`)";
    Diagnostic::without_place(codes::NO_THREAD, message).help(help)
}
