//! Names to declarations and slots, before anything is evaluated.
//!
//! Every name of a file is looked up once, here: the evaluator works with indices only. A file
//! has one scope for its own items and one per tile block; host and test blocks live in the
//! file's scope. Invariant: after this phase every [`Res`] of a name that is evaluated is set.

mod near;
pub(crate) mod order;
mod scope;

pub use near::edit_distance;
pub(crate) use near::nearest;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use dflow_syntax::ast::{
    self, Block, ExprId, FnDecl, Ident, Item, ItemKind, Storage, VarDecl, VarKind,
};
use dflow_syntax::{Diagnostic, Reported, Span, Symbol, codes};

use crate::session::Session;
use scope::Walker;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Res {
    /// Not a name, or one that nothing declares.
    None,
    /// Slot of the enclosing body.
    Local(u32),
    /// Declaration of a scope of this file.
    Decl { scope: u32, decl: u32 },
    /// A type or constant that every file knows.
    Prelude(Symbol),
}

/// A file with its names resolved.
pub(crate) struct ResolvedFile {
    /// The tree.
    pub(crate) file: ast::File,
    /// Scope 0 is the file's, the others are tile blocks in order.
    pub(crate) scopes: Vec<Scope>,
    /// Per expression.
    pub(crate) names: Vec<Res>,
    /// Per expression: first slot of a tensor access's variables.
    pub(crate) tensor_slots: Vec<u32>,
    /// Per expression: whether what it reads is to be kept, for what comes after it ([`order`]).
    pub(crate) early: Vec<bool>,
    /// Per statement: slot of a variable; slots of a loop's captures.
    pub(crate) stmt_slots: Vec<[u32; 2]>,
    /// Bodies of the file's scope that are not declarations.
    pub(crate) layout: Option<Body>,
    pub(crate) host: Option<Body>,
    pub(crate) tests: Vec<(String, Body)>,
    /// Names that nothing declares. What is never analyzed may have some.
    pub(crate) undeclared: Vec<(ExprId, Diagnostic)>,
    /// Names whose address is taken somewhere in the file.
    pub(crate) addressed: HashSet<Symbol>,
}

/// "No slot": the capture is discarded.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// Declarations of a file or tile.
#[derive(Default)]
pub(crate) struct Scope {
    /// Tile name, for tile scopes.
    pub(crate) name: Option<Ident>,
    /// In source order.
    pub(crate) decls: Vec<Decl>,
    /// By name.
    pub(crate) by_name: HashMap<Symbol, u32>,
    /// Top-level comptime blocks in order.
    pub(crate) comptime: Vec<Body>,
}

/// A declaration.
pub(crate) struct Decl {
    pub(crate) name: Ident,
    pub(crate) span: Span,
    pub(crate) kind: DeclKind,
    /// Slots that its body or initializer needs.
    pub(crate) frame: u32,
    /// Its initializer imports a module, which must happen even if nobody asks for it.
    pub(crate) imports: bool,
    /// Its initializer allocates a FIFO, perhaps in registers that are used by their numbers.
    pub(crate) allocates: bool,
}

/// The kinds of declarations.
pub(crate) enum DeclKind {
    Var(VarDecl),
    Fn(Rc<FnDecl>),
    /// A tile block: its scope.
    Tile(u32),
}

/// A block that runs as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) block: Block,
    pub(crate) frame: u32,
}

impl ResolvedFile {
    /// What a name means here.
    pub(crate) fn res(&self, expr: ExprId) -> Res {
        self.names[expr.0 as usize]
    }

    /// Whether what an expression reads is to be kept, for what comes after it.
    pub(crate) fn is_early(&self, expr: ExprId) -> bool {
        self.early[expr.0 as usize]
    }

    /// Reports every name that nothing declares, wherever it stands.
    pub(crate) fn report_undeclared(&self, cx: &mut Session<'_>) {
        cx.sink.extend(self.undeclared.iter().map(|(_, diagnostic)| diagnostic.clone()));
    }

    /// The declaration of a function.
    pub(crate) fn func(&self, scope: u32, decl: u32) -> Option<&Rc<FnDecl>> {
        match &self.scopes[scope as usize].decls[decl as usize].kind {
            DeclKind::Fn(func) => Some(func),
            DeclKind::Var(_) | DeclKind::Tile(_) => None,
        }
    }
}

/// Names that every file knows, beside the types: booleans are syntax.
pub(crate) const PRELUDE_VALUES: [&str; 5] = ["NORTH", "SOUTH", "EAST", "WEST", "RAMP"];

/// Types whose names are words of the language.
pub(crate) const RESERVED_TYPES: [&str; 20] = [
    "void",
    "bool",
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
    "f16",
    "f32",
    "f64",
    "bf16",
    "cb16",
    "comptime_int",
    "comptime_float",
    "comptime_string",
    "comptime_struct",
    "type",
];

/// The other types of the prelude: a program may give their names to something else.
pub(crate) const PRELUDE_TYPES: [&str; 24] = [
    "imported_module",
    "direction",
    "color",
    "data_task_id",
    "local_task_id",
    "control_task_id",
    "input_queue",
    "output_queue",
    "ut_id",
    "mem1d_dsd",
    "mem4d_dsd",
    "circbuf_dsd",
    "fabin_dsd",
    "fabout_dsd",
    "dsr_dest",
    "dsr_src0",
    "dsr_src1",
    "dsr_fifo_dest",
    "dsr_fifo_src1",
    "xdsr",
    "sr",
    "anyopaque",
    "range",
    "fifo",
];

/// Refuses a declaration with the name of a type.
fn check_name(cx: &mut Session<'_>, name: Ident) {
    let text = cx.names.resolve(name.name);
    if RESERVED_TYPES.contains(&text) {
        let message = format!("`{text}` is the name of a type and cannot be declared");
        cx.emit(
            Diagnostic::new(codes::RESERVED_NAME, message, name.span)
                .label("declared here")
                .help("choose another name"),
        );
    }
}

/// Resolves a parsed file.
pub(crate) fn file(cx: &mut Session<'_>, file: ast::File) -> Result<ResolvedFile, Reported> {
    let mut out = ResolvedFile {
        names: vec![Res::None; file.expr_count()],
        tensor_slots: vec![0; file.expr_count()],
        early: order::early(&file, &cx.names),
        stmt_slots: vec![[NO_SLOT; 2]; file.stmt_count()],
        scopes: vec![Scope::default()],
        layout: None,
        host: None,
        tests: Vec::new(),
        undeclared: Vec::new(),
        addressed: HashSet::new(),
        file: ast::File::new(file.id),
    };
    let before = cx.sink.error_count();
    declare(cx, &mut out, 0, &file.items);
    let mut walker = Walker::new(cx, &file, &mut out);
    walker.items(0, &file.items);
    out.file = file;
    if cx.sink.error_count() > before {
        out.report_undeclared(cx);
        cx.sink.ok()?;
    }
    Ok(out)
}

/// Enters the declarations of a scope, tile blocks with theirs.
fn declare(cx: &mut Session<'_>, out: &mut ResolvedFile, scope: u32, items: &[Item]) {
    for item in items {
        let (name, kind) = match &item.kind {
            ItemKind::Var(var) => (var.name, DeclKind::Var(var.clone())),
            ItemKind::Fn(func) => (func.name, DeclKind::Fn(Rc::new(func.clone()))),
            ItemKind::Tile(tile) => {
                let inner = out.scopes.len() as u32;
                out.scopes.push(Scope { name: Some(tile.name), ..Scope::default() });
                declare(cx, out, inner, &tile.items);
                (tile.name, DeclKind::Tile(inner))
            }
            ItemKind::Comptime(_)
            | ItemKind::Layout(_)
            | ItemKind::Host(_)
            | ItemKind::Test(_)
            | ItemKind::Error => continue,
        };
        complete(cx, &kind);
        fits(cx, &kind);
        enter(cx, out, scope, name, item.span, kind);
    }
}

/// What a declaration must have even if nothing reaches it.
fn complete(cx: &mut Session<'_>, kind: &DeclKind) {
    let (code, message, span, help) = match kind {
        DeclKind::Var(var) if var.storage == Storage::Extern || var.init.is_some() => return,
        // It begins as zeros.
        DeclKind::Var(var) if var.storage == Storage::Export && var.ty.is_some() => return,
        DeclKind::Var(var) if var.kind == VarKind::Const => (
            codes::MISSING_INITIALIZER,
            "a constant needs a value",
            var.name.span,
            "write `= value`, or make it a `param` that is set from outside",
        ),
        DeclKind::Var(var) if var.kind == VarKind::Var && var.ty.is_none() => (
            codes::MISSING_TYPE,
            "a variable needs a type or a value",
            var.name.span,
            "write its type behind a colon: `: i16`",
        ),
        DeclKind::Fn(func) if func.body.is_some() => {
            let Some(param) = func.params.iter().find(|param| param.name.is_none()) else { return };
            (
                codes::INVALID_SIGNATURE,
                "a parameter has a name and a type",
                param.span,
                "write `name: type`",
            )
        }
        DeclKind::Var(_) | DeclKind::Fn(_) | DeclKind::Tile(_) => return,
    };
    cx.emit(Diagnostic::new(code, message, span).label("declared here").help(help));
}

/// What the words of a declaration do not allow together.
fn fits(cx: &mut Session<'_>, kind: &DeclKind) {
    let defined = "it is defined in another file of the program: leave this out";
    let symbol = "leave out `inline`, or the words that ask for a symbol";
    let (message, span, help) = match kind {
        DeclKind::Var(var) if var.storage == Storage::Extern && var.init.is_some() => {
            ("an `extern` declaration has no value", var.name.span, defined)
        }
        DeclKind::Var(var) if var.comptime && var.kind == VarKind::Var => (
            "a `comptime var` stands inside a function or block",
            var.name.span,
            "write `const`: values at file scope are known at compile time",
        ),
        DeclKind::Fn(func) if func.storage == Storage::Extern && func.body.is_some() => {
            ("an `extern` function has no body", func.name.span, defined)
        }
        DeclKind::Fn(func)
            if func.inline && (func.linkname.is_some() || func.storage != Storage::None) =>
        {
            ("an `inline` function has no symbol", func.name.span, symbol)
        }
        DeclKind::Var(_) | DeclKind::Fn(_) | DeclKind::Tile(_) => return,
    };
    let code = codes::INVALID_DECLARATION;
    cx.emit(Diagnostic::new(code, message, span).label("declared here").help(help));
}

fn enter(
    cx: &mut Session<'_>,
    out: &mut ResolvedFile,
    scope: u32,
    name: Ident,
    span: Span,
    kind: DeclKind,
) {
    check_name(cx, name);
    let scope = &mut out.scopes[scope as usize];
    let idx = scope.decls.len() as u32;
    if let Some(&first) = scope.by_name.get(&name.name) {
        let first = &scope.decls[first as usize];
        if !is_extern(&kind) && !is_extern(&first.kind) {
            let text = cx.names.resolve(name.name).to_owned();
            let first = first.name.span;
            cx.emit(
                Diagnostic::new(
                    codes::DUPLICATE_NAME,
                    format!("`{text}` is declared twice"),
                    name.span,
                )
                .label("second declaration")
                .secondary(first, "first declaration"),
            );
        }
    } else {
        scope.by_name.insert(name.name, idx);
    }
    scope.decls.push(Decl { name, span, kind, frame: 0, imports: false, allocates: false });
}

fn is_extern(kind: &DeclKind) -> bool {
    match kind {
        DeclKind::Var(var) => var.storage == Storage::Extern,
        DeclKind::Fn(func) => func.storage == Storage::Extern,
        DeclKind::Tile(_) => false,
    }
}
