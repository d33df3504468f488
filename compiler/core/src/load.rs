//! Import paths to trees: reads, parses and resolves each file once.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Dialect, FileId, Reported, Span, codes};

use crate::dialect::SdkVersion;
use crate::resolve::{self, ResolvedFile, nearest};
use crate::session::Session;
use crate::world::fold;

/// Index of a loaded file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SourceIdx(pub(crate) u32);

/// The files of a compilation, each read once.
#[derive(Default)]
pub(crate) struct Files {
    by_path: HashMap<String, Result<SourceIdx, Reported>>,
    files: Vec<Rc<ResolvedFile>>,
    /// What each file's import paths have led to.
    imports: HashMap<SourceIdx, HashMap<String, Result<SourceIdx, Reported>>>,
    /// Undeclared names that analysis has met.
    met: HashSet<(FileId, ExprId)>,
}

impl Files {
    /// The resolved tree of a loaded file.
    pub(crate) fn get(&self, idx: SourceIdx) -> Rc<ResolvedFile> {
        Rc::clone(&self.files[idx.0 as usize])
    }

    /// Loads the file that the compilation starts with.
    pub(crate) fn root(&mut self, cx: &mut Session<'_>, path: &str) -> Result<SourceIdx, Reported> {
        let located = cx.world.locate(path);
        self.file(cx, located.as_deref().unwrap_or(path), None)
    }

    /// Loads what an import names: `<library>` from the standard library, anything else
    /// relative to the importing file; if nothing is there, relative to the program's top file, as
    /// modules of older programs are written; then in the import folders, in order.
    pub(crate) fn import(
        &mut self,
        cx: &mut Session<'_>,
        from: SourceIdx,
        path: &str,
        span: Span,
    ) -> Result<SourceIdx, Reported> {
        if path.starts_with('<') {
            let path = library_path(cx, path, span);
            return self.file(cx, &path, Some((span, &[])));
        }
        // Asked for each PE of a layout's loop: the world is asked once.
        if let Some(&known) = self.imports.get(&from).and_then(|paths| paths.get(path)) {
            return known;
        }
        let (near, top) = (self.path(cx, from), self.path(cx, SourceIdx(0)));
        let places = places(cx, near, top, path);
        let found = found(cx, &places);
        let result = self.file(cx, &found, Some((span, &places)));
        self.imports.entry(from).or_default().insert(path.to_owned(), result);
        result
    }

    fn path<'a>(&self, cx: &'a Session<'_>, source: SourceIdx) -> &'a str {
        cx.sources.path(self.files[source.0 as usize].file.id)
    }

    /// Reports a name that nothing declares, where analysis meets it.
    pub(crate) fn report_undeclared(
        &mut self,
        cx: &mut Session<'_>,
        file: &ResolvedFile,
        name: ExprId,
    ) -> Option<Reported> {
        let (_, diagnostic) = file.undeclared.iter().find(|(known, _)| *known == name)?;
        self.met.insert((file.file.id, name));
        Some(cx.emit(diagnostic.clone()))
    }

    /// Reports the undeclared names that analysis has not met: they are no faults, unless there
    /// are others, which may have ended it.
    pub(crate) fn report_unreached(&self, cx: &mut Session<'_>) {
        let failed = cx.sink.ok().is_err();
        for file in &self.files {
            let unmet = |name: ExprId| !self.met.contains(&(file.file.id, name));
            for (_, diagnostic) in file.undeclared.iter().filter(|(name, _)| unmet(*name)) {
                cx.emit(match diagnostic.span() {
                    Some(span) if !failed => {
                        let message = diagnostic.message();
                        Diagnostic::new(codes::UNKNOWN_NAME_UNREACHED, message, span)
                            .label("in code that nothing reaches")
                    }
                    Some(_) | None => diagnostic.clone(),
                });
            }
        }
    }

    fn file(
        &mut self,
        cx: &mut Session<'_>,
        path: &str,
        named: Option<(Span, &[String])>,
    ) -> Result<SourceIdx, Reported> {
        if let Some(&known) = self.by_path.get(path) {
            return known;
        }
        let result = self.read(cx, path, named);
        self.by_path.insert(path.to_owned(), result);
        result
    }

    fn read(
        &mut self,
        cx: &mut Session<'_>,
        path: &str,
        named: Option<(Span, &[String])>,
    ) -> Result<SourceIdx, Reported> {
        cx.go_on()?;
        let (shown, id) = match library(path) {
            Some(Some((shown, text))) => {
                let id = cx.sources.add(shown, text);
                cx.libraries.insert(id, path.to_owned());
                (shown.to_owned(), id)
            }
            Some(None) => {
                return Err(not_found(cx, path, named, "the standard library has no such module"));
            }
            None => {
                let bytes = match cx.world.read(path) {
                    Ok(bytes) => bytes,
                    Err(reason) => return Err(not_found(cx, path, named, &reason)),
                };
                match cx.sources.add_bytes(path, &bytes) {
                    Ok(id) => (path.to_owned(), id),
                    Err(diagnostic) => return Err(cx.emit(*diagnostic)),
                }
            }
        };
        let dialect = if path.starts_with('<') { Dialect::Dfl } else { Dialect::of_path(&shown) };
        self.parse(cx, id, dialect)
    }

    fn parse(
        &mut self,
        cx: &mut Session<'_>,
        id: FileId,
        dialect: Dialect,
    ) -> Result<SourceIdx, Reported> {
        let text = cx.sources.shared_text(id);
        let parsed = dflow_syntax::parse(id, &text, dialect, &mut cx.names);
        let mut failed = None;
        for diagnostic in parsed.diagnostics {
            let error = diagnostic.severity() == dflow_syntax::Severity::Error;
            let reported = cx.emit(diagnostic);
            failed = if error { Some(reported) } else { failed };
        }
        let idx = SourceIdx(self.files.len() as u32);
        let resolved = resolve::file(cx, parsed.file);
        let resolved = match (resolved, failed) {
            (Ok(resolved), None) => resolved,
            (Err(reported), _) => return Err(reported),
            (Ok(resolved), Some(reported)) => {
                resolved.report_undeclared(cx);
                return Err(reported);
            }
        };
        self.files.push(Rc::new(resolved));
        Ok(idx)
    }
}

/// `Some(None)`: a library name that nothing has.
fn library(path: &str) -> Option<Option<(&'static str, &'static str)>> {
    let name = path.strip_prefix('<')?.strip_suffix('>').unwrap_or("");
    Some(dflow_stdlib::library(name))
}

/// A file that is not there: where it was looked for, and what may be meant.
fn not_found(
    cx: &mut Session<'_>,
    path: &str,
    named: Option<(Span, &[String])>,
    reason: &str,
) -> Reported {
    let shown = if path.is_empty() { "." } else { path };
    let message = format!("`{shown}` cannot be read: {reason}");
    let Some((span, places)) = named else {
        return cx.emit(Diagnostic::without_place(codes::FILE_NOT_FOUND, message));
    };
    let mut diagnostic = Diagnostic::new(codes::FILE_NOT_FOUND, message, span).label("named here");
    let libraries = dflow_stdlib::LIBRARIES.iter().map(|library| library.name);
    if let Some(name) = path.strip_prefix('<') {
        let name = name.trim_end_matches('>');
        if let Some(near) = nearest(name, libraries) {
            diagnostic = diagnostic.help(format!("did you mean `<{near}>`?"));
        }
        let folders = &cx.options.import_paths;
        diagnostic = diagnostic.help(match folders.is_empty() {
            true => "libraries of your own are looked for in the folders of `cslc --import-path`, and none is given; a file is imported by its path".to_owned(),
            false => format!("looked for in the library and in {}", folders.join(", ")),
        });
        return cx.emit(diagnostic);
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let written = cx.sources.slice(span).trim_matches('"').to_owned();
    let is_folder = matches!(&*written, "" | "." | "..") || written.ends_with('/');
    if is_folder {
        diagnostic = diagnostic.help("a file is imported, not a folder: write its whole name");
    } else if dflow_stdlib::library(&written).is_some() {
        diagnostic = diagnostic.help(format!("the library is imported as `<{written}>`"));
    } else if !name.contains('.') {
        diagnostic = diagnostic.help(format!("write the whole file name, such as `{written}.csl`"));
    }
    if places.len() > 1 {
        let places: Vec<String> = places.iter().map(|place| fold(place)).collect();
        diagnostic = diagnostic.help(format!("looked for as {}", places.join(", ")));
    } else {
        // Of a layout that a host program builds, the place is a line of that program, not of the file that counts.
        let is_elsewhere = cx.sources.path(span.file).starts_with('/') && !path.starts_with('/');
        diagnostic = diagnostic.help(match is_elsewhere {
            true => "a path is relative to the current folder",
            false => "a path is relative to the file that names it",
        });
    }
    cx.emit(diagnostic)
}

/// Today's name of a library; what the library folder does not have may be in the import folders.
fn library_path(cx: &mut Session<'_>, path: &str, span: Span) -> String {
    let name = path.trim_start_matches('<').trim_end_matches('>');
    if let Some(new) = dflow_stdlib::renamed(name) {
        let instead = format!("write `<{new}>`");
        cx.old_spelling("the name of this library", SdkVersion::new(1, 0), &instead, span);
        return format!("<{new}>");
    }
    match dflow_stdlib::library(name) {
        Some(_) => path.to_owned(),
        None => user_library(cx, path).unwrap_or_else(|| path.to_owned()),
    }
}

/// The file of a library of the user's, `<name>`, in the import folders.
pub(crate) fn user_library(cx: &Session<'_>, path: &str) -> Option<String> {
    let name = path.strip_prefix('<')?.strip_suffix('>')?;
    let folders = cx.options.import_paths.iter();
    let mut places = folders.flat_map(|at| [format!("{at}/{name}"), format!("{at}/{name}.csl")]);
    places.find_map(|place| cx.world.locate(&place))
}

/// The file that `path` means in the file `from` of the program with the top file `top`; where it
/// should be if it is nowhere.
pub(crate) fn find(cx: &Session<'_>, from: &str, top: &str, path: &str) -> String {
    found(cx, &places(cx, from, top, path))
}

/// Where a path may lead, in the order in which the places are tried.
fn places(cx: &Session<'_>, from: &str, top: &str, path: &str) -> Vec<String> {
    if path.starts_with('/') {
        return vec![path.to_owned()];
    }
    let folders = cx.options.import_paths.iter().map(|folder| format!("{folder}/{path}"));
    let near = [join(from, path), join(top, path)].into_iter();
    let mut places: Vec<String> = near.chain(folders).collect();
    places.dedup();
    places
}

/// The first place where something is; the first of all if there is nothing. Only the world may take
/// `..` out of a path: folders may be links.
fn found(cx: &Session<'_>, places: &[String]) -> String {
    let there = places.iter().find_map(|place| cx.world.locate(place));
    there.or_else(|| places.first().map(|place| fold(place))).unwrap_or_default()
}

/// `path` relative to the folder of `file`.
fn join(file: &str, path: &str) -> String {
    match file.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{path}"),
        None => path.to_owned(),
    }
}
