//! What all phases share: sources, the sink, interned names, options. No logic.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dflow_ir::target::TargetId;
use dflow_ir::ty::Ty;
use dflow_syntax::{Diagnostic, FileId, Interner, Reported, Sink, SourceMap, Span};

use crate::dialect::{Dialect, Mark, Origin, SdkVersion};
use crate::world::World;

/// State of one compilation.
pub(crate) struct Session<'w> {
    /// The door to files.
    pub world: &'w dyn World,
    /// Every text read.
    pub sources: SourceMap,
    /// Identifiers.
    pub names: Interner,
    /// Diagnostics.
    pub sink: Sink,
    /// What the caller chose.
    pub options: Options,
    /// Which release the program is of; chosen before analysis begins.
    pub dialect: Dialect,
    /// Files of the standard library, and how they are imported.
    pub libraries: BTreeMap<FileId, String>,
    /// Old spellings that the user has been told of.
    pub old_spellings: BTreeSet<&'static str>,
}

/// Comptime steps that each PE of the rectangle adds to the limit: a layout block of a whole
/// wafer does more honest work than any other program's, and takes some 250 a PE for ten colors.
pub(crate) const STEPS_PER_PE: u64 = 1_000;

/// Where params come from, which decides how reports name them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParamsFrom {
    /// `--set name=value`; they may be settings of the host block as well.
    #[default]
    Settings,
    /// `--params=name:value`: the layout's alone, so a name that it does not declare is told.
    Params,
    /// A host script's mapping of names to values.
    Script,
}

impl ParamsFrom {
    /// A param as the user writes it.
    pub(crate) fn written(self, name: &str, value: &str) -> String {
        match self {
            ParamsFrom::Settings => format!("--set {name}={value}"),
            ParamsFrom::Params => format!("--params {name}:{value}"),
            ParamsFrom::Script => format!("{{\"{name}\": {value}}}"),
        }
    }
}

/// What a compilation can be told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Target.
    pub target: TargetId,
    /// `--set name=value`, or `--params name:value`: params of the layout file, as text.
    pub params: Vec<(String, String)>,
    /// `--colors name:value`: params of the layout file that are colors, as text.
    pub colors: Vec<(String, String)>,
    /// How the caller was given the params above.
    pub params_from: ParamsFrom,
    /// Folders where imports are looked for that are not beside the importing file.
    pub import_paths: Vec<String>,
    /// First byte that data may have; what is below stays free.
    pub first_address: u32,
    /// Where variables with a `linksection` go: section and byte address.
    pub sections: Vec<(String, u32)>,
    /// Iterations that one `inline` loop may have in run-time code.
    pub max_inlined: Option<u32>,
    /// Steps that comptime evaluation may take, beside 1,000 for each PE of the
    /// rectangle.
    pub comptime_steps: u64,
    /// Calls that may be nested at comptime.
    pub comptime_depth: u32,
    /// The 16-bit float that machine code computes in, `F16` or `Bf16`; the other one is for
    /// comptime alone.
    pub half: Ty,
    /// Code of PEs holds indices of arrays against their lengths, as that of the host always does: one outside is a
    /// trap. Cycles are the same.
    pub check_bounds: bool,
    /// Also compile test blocks.
    pub tests: bool,
    /// Release of the SDK whose meanings hold, and who named it; marks in the sources decide otherwise.
    pub sdk_version: Option<(SdkVersion, Origin)>,
    /// Marks that are in no source file.
    pub marks: Vec<Mark>,
    /// What ends the compilation before its end.
    pub stop: Option<Stop>,
}

/// A question that is asked again and again while a program is compiled: whether nobody wants it any more.
#[derive(Clone)]
pub struct Stop(pub Arc<dyn Fn() -> bool + Send + Sync>);

impl std::fmt::Debug for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stop")
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            target: TargetId::Wse2,
            params: Vec::new(),
            colors: Vec::new(),
            params_from: ParamsFrom::Settings,
            import_paths: Vec::new(),
            first_address: 0,
            sections: Vec::new(),
            max_inlined: None,
            comptime_steps: 100_000_000,
            comptime_depth: 512,
            half: Ty::F16,
            check_bounds: false,
            tests: false,
            sdk_version: None,
            marks: Vec::new(),
            stop: None,
        }
    }
}

impl Session<'_> {
    /// Whether a file is one of the standard library.
    pub(crate) fn is_library(&self, file: FileId) -> bool {
        self.libraries.contains_key(&file)
    }

    /// Whether a place is in a library.
    pub(crate) fn in_library(&self, span: Span) -> bool {
        self.is_library(span.file)
    }

    /// A file as reports name it: a library by what imports it, any other by its path.
    pub(crate) fn file_name(&self, file: FileId) -> String {
        let path = || self.sources.path(file).to_owned();
        self.libraries.get(&file).map_or_else(path, |library| format!("`{library}`"))
    }

    /// Whether the caller still wants a program; the answer stays no.
    ///
    /// # Errors
    /// The compilation is given up.
    pub(crate) fn go_on(&mut self) -> Result<(), Reported> {
        let is_over = |stop: &Stop| (stop.0)();
        match self.sink.has_given_up() || self.options.stop.as_ref().is_some_and(is_over) {
            true => Err(self.sink.give_up()),
            false => Ok(()),
        }
    }

    /// Tells the user.
    pub(crate) fn emit(&mut self, diagnostic: Diagnostic) -> Reported {
        self.sink.emit(diagnostic)
    }
}
