//! What in the sources dates a program.
//!
//! Every file that a program names in a string is looked at before analysis begins, so that the dialect
//! does not change on the way. Nothing is reported here: files that cannot be read or parsed are
//! told of by those who need them.

use std::collections::{BTreeSet, VecDeque};

use dflow_syntax::ast::{Expr, ExprId, File, ItemKind, StructKind, VarKind};
use dflow_syntax::{Dialect as Kind, FileId, Interner, SourceMap, Span};

use super::{Mark, SdkVersion};
use crate::load::{find, user_library};
use crate::session::Session;

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) marks: Vec<Mark>,
    pub(super) pragma: Option<SdkVersion>,
    /// The bytes of the comment that names the version, readable or not.
    pub(super) pragma_at: Option<(u32, u32)>,
}

/// Files that are looked at, at most.
const MAX_FILES: usize = 1 << 10;

/// Comment of the top file that names the version.
const PRAGMA: &str = "// dflow: sdk-version=";

/// Looks at all files that the program names.
pub(super) fn scan(cx: &Session<'_>, root: &str) -> Found {
    let mut found = Found::default();
    let mut sources = SourceMap::new();
    let mut queue = VecDeque::from([root.to_owned()]);
    let mut known = BTreeSet::from([root.to_owned()]);
    while let Some(path) = queue.pop_front() {
        // What is no file, such as a pipe, can be read once only, and not here.
        if cx.world.locate(&path).is_none() {
            continue;
        }
        let Ok(bytes) = cx.world.read(&path) else { continue };
        let Ok(id) = sources.add_bytes(path.as_str(), &bytes) else { continue };
        if path == root {
            pragma(sources.text(id), &mut found);
        }
        let paths = scan_file(&sources, id, &path, &mut found.marks);
        for named in paths {
            let path = match named.starts_with('<') {
                true => user_library(cx, &named).unwrap_or_default(),
                false => find(cx, &path, root, &named),
            };
            if known.len() < MAX_FILES && known.insert(path.clone()) {
                queue.push_back(path);
            }
        }
    }
    found
}

fn pragma(text: &str, found: &mut Found) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        if let Some(version) = content.strip_prefix(PRAGMA) {
            found.pragma = version.trim().parse().ok();
            found.pragma_at = Some((start, start + content.len() as u32));
            return;
        }
        start += line.len() as u32;
    }
}

/// Marks of one file; gives the paths of other files that it names.
fn scan_file(sources: &SourceMap, id: FileId, path: &str, marks: &mut Vec<Mark>) -> Vec<String> {
    let mut names = Interner::new();
    let kind = Kind::of_path(path);
    let file = dflow_syntax::parse(id, sources.text(id), kind, &mut names).file;
    let mut scan = Scan { file: &file, names: &names, sources, path, marks, paths: Vec::new() };
    for (expr, _) in file.exprs() {
        scan.expr(expr, kind);
    }
    if kind == Kind::Csl {
        scan.streaming_params();
    }
    scan.paths
}

struct Scan<'a> {
    file: &'a File,
    names: &'a Interner,
    sources: &'a SourceMap,
    path: &'a str,
    marks: &'a mut Vec<Mark>,
    paths: Vec<String>,
}

/// Builtins that only one era has: name, new, hard.
const BUILTINS: &[(&str, bool, bool)] = &[
    ("bind_rotating_tasks", true, true),
    ("bind_task", false, true),
    ("concat_structs", false, true),
    ("get_color_id", false, true),
    ("get_sr", true, true),
    ("get_xdsr", true, true),
    ("load_to_dsr_xdsr", true, true),
    ("load_to_dsr_xdsr_sr", true, true),
    ("rpc", false, false),
];

/// Members of libraries and options that only 2.10 has.
const NEW_MEMBERS: &[&str] = &[
    "dirToRxBits",
    "dirToTxBits",
    "encode_input_queue",
    "encode_output_queue",
    "get_streaming_fabout_dsd",
    "queue_flush",
];

/// Libraries of one era: path, new.
const LIBRARIES: &[(&str, bool)] = &[
    ("<collectives_2d/common>", false),
    ("<data_utils>", true),
    ("<memcpy_multi/get_params>", false),
    ("<memcpy_multi/memcpy>", false),
    ("<string>", true),
    ("<types>", true),
];

impl Scan<'_> {
    fn expr(&mut self, id: ExprId, kind: Kind) {
        let span = self.file.expr_span(id);
        if let Expr::Str(bytes) = self.file.expr(id) {
            self.string(bytes, span, kind);
            return;
        }
        if kind == Kind::Dfl {
            return;
        }
        match self.file.expr(id) {
            Expr::Builtin { name, args, .. } => {
                let name = self.names.resolve(*name);
                if let Some(&(_, new, hard)) = BUILTINS.iter().find(|row| row.0 == name) {
                    self.mark(new, hard, format!("`@{name}`"), span);
                }
                self.builtin(name, args, span);
            }
            Expr::Name(name) => self.name(self.names.resolve(*name), span),
            Expr::Field { name, .. } => {
                let text = self.names.resolve(name.name);
                if NEW_MEMBERS.contains(&text) {
                    self.mark(true, true, format!("`{text}`"), span);
                } else if text == "LAUNCH" {
                    self.mark(false, false, "`LAUNCH`".to_owned(), span);
                }
            }
            Expr::StructType { is_union: true, .. } => {
                self.mark(true, true, "a union".to_owned(), span);
            }
            Expr::StructType { kind: StructKind::Packed, .. } => {
                self.mark(true, true, "a packed struct".to_owned(), span);
            }
            _ => {}
        }
    }

    fn name(&mut self, name: &str, span: Span) {
        match name {
            "comptime_struct" => self.mark(false, true, "`comptime_struct`".to_owned(), span),
            "anyopaque" | "circbuf_dsd" => self.mark(true, true, format!("`{name}`"), span),
            _ if is_odd_integer(name) => self.mark(true, true, format!("`{name}`"), span),
            _ => {}
        }
    }

    fn builtin(&mut self, name: &str, args: &[ExprId], span: Span) {
        match (name, args) {
            ("get_dsd", &[ty, options]) => {
                let field = |field| self.has_field(options, field);
                let fabin = self.is_name(ty, "fabin_dsd");
                if fabin && field("extent") && !field("fabric_color") {
                    let what = "a `fabin_dsd` without `.fabric_color`";
                    self.mark(true, false, what.to_owned(), span);
                }
            }
            ("initialize_queue", &[_, config]) => match self.file.expr(config) {
                Expr::TupleLiteral { elems } if elems.is_empty() => {
                    let what = "`@initialize_queue` with `.{}`";
                    self.mark(true, true, what.to_owned(), span);
                }
                Expr::Name(_) | Expr::Builtin { .. } | Expr::Int(_) => {
                    let what = "`@initialize_queue` without a struct";
                    self.mark(false, true, what.to_owned(), span);
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn is_name(&self, id: ExprId, text: &str) -> bool {
        matches!(self.file.expr(id), Expr::Name(name) if self.names.resolve(*name) == text)
    }

    fn has_field(&self, id: ExprId, text: &str) -> bool {
        match self.file.expr(id) {
            Expr::StructLiteral { fields } => {
                fields.iter().any(|field| self.names.resolve(field.name.name) == text)
            }
            _ => false,
        }
    }

    fn string(&mut self, bytes: &[u8], span: Span, kind: Kind) {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        if let Some(&(_, new)) = LIBRARIES.iter().find(|row| row.0 == text)
            && kind == Kind::Csl
        {
            self.mark(new, true, format!("`{text}`"), span);
        }
        let ends = [".csl", ".dfl", ">"];
        let is_path = text.len() < 512 && ends.iter().any(|end| text.ends_with(end));
        if is_path {
            self.paths.push(text.to_owned());
        }
    }

    /// Params without type that are handed to the streaming library.
    fn streaming_params(&mut self) {
        let mut untyped = Vec::new();
        for item in &self.file.items {
            if let ItemKind::Var(var) = &item.kind
                && var.kind == VarKind::Param
                && var.ty.is_none()
                && var.init.is_none()
            {
                untyped.push((var.name.name, var.name.span));
            }
        }
        for (_, expr) in self.file.exprs() {
            if let Expr::Builtin { name, args, .. } = expr
                && let &[path, params] = &args[..]
                && self.names.resolve(*name) == "import_module"
                && matches!(self.file.expr(path), Expr::Str(path) if path == b"<memcpy/memcpy>")
                && let Expr::Name(given) = self.file.expr(params)
                && let Some(&(name, span)) = untyped.iter().find(|(name, _)| name == given)
            {
                let name = self.names.resolve(name);
                self.mark(true, false, format!("`param {name}` without type"), span);
            }
        }
    }

    fn mark(&mut self, new: bool, hard: bool, what: String, span: Span) {
        let line = self.sources.position(span.file, span.start).line;
        let place = format!("{}:{line}", self.path);
        let at = Some((self.path.to_owned(), span.start, span.end));
        self.marks.push(Mark { new, hard, what, place, at });
    }
}

/// An integer type whose width no machine instruction has.
fn is_odd_integer(name: &str) -> bool {
    let Some(width) = name.strip_prefix(['i', 'u']) else { return false };
    !matches!(width, "8" | "16" | "32" | "64")
        && !width.starts_with('0')
        && width.parse::<u32>().is_ok()
}
