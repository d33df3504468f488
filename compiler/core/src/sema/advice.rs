//! What to write instead: help for reports that several parts of the analysis give.

use std::rc::Rc;

use dflow_syntax::ast::{Expr as Ast, ExprId, File, Stmt, StmtId, VarKind};
use dflow_syntax::{Diagnostic, Reported, Span, Symbol, codes};

use super::place::DIRECTIONS;
use super::types::{Type, TypeId};
use super::value::{Data, FuncRef, ModuleId, Value};
use super::{Cell, R, Sema};
use crate::resolve::{Decl, DeclKind, Res, ResolvedFile, nearest};

/// Members that a report lists: a library has few, a program may have hundreds.
const LISTED: usize = 12;

impl Sema<'_, '_> {
    /// How to make what is wanted (in the words of the report) from a value of another type.
    pub(crate) fn how_to_make(&self, want: &str, value: &Value, span: Span) -> Option<String> {
        let (common, source) = (self.types.common, self.source_of(span));
        let is_int = self.types.is_int(value.ty);
        let by_queue = self.target.data_task_by_queue;
        let colored = value.ty == common.color;
        Some(match want {
            "a direction" => {
                let Data::Str(text) = &value.data else { return None };
                let text = String::from_utf8_lossy(text).to_uppercase();
                let known = DIRECTIONS.contains(&text.as_str());
                known.then(|| format!("write `{text}` without quotation marks"))?
            }
            "a local task id" if is_int => format!("write `@get_local_task_id({source})`"),
            "a local task id" if value.ty == common.data_task_id => {
                "bind a task that words start with `@bind_data_task`".to_owned()
            }
            "a local task id" if value.ty == common.control_task_id => {
                "bind a task that control wavelets start with `@bind_control_task`".to_owned()
            }
            "a data task id" if value.ty == common.local_task_id => {
                "bind a task that is activated with `@bind_local_task`".to_owned()
            }
            "a data task id" if colored && by_queue => {
                "write `@get_data_task_id(queue)`, with the input queue that carries the color"
                    .to_owned()
            }
            "a data task id" if colored || by_queue && value.ty == common.input_queue => {
                format!("write `@get_data_task_id({source})`")
            }
            "a data task id" if is_int && !by_queue => {
                format!("write `@get_data_task_id(@get_color({source}))`")
            }
            "a control task id" if is_int => format!("write `@get_control_task_id({source})`"),
            "a color" if is_int => format!("write `@get_color({source})`"),
            "a task" if value.ty == common.local_task_id => {
                "the task comes first: `@bind_local_task(task, id)`".to_owned()
            }
            _ => return None,
        })
    }

    /// Why a place that is no variable cannot be assigned to.
    pub(crate) fn not_assignable(&mut self, target: ExprId, span: Span) -> Reported {
        let file = Rc::clone(&self.frame().file);
        let root = root_of(&file.file, target);
        let Ast::Name(name) = *file.file.expr(root) else { return self.no_variable(span) };
        let text = self.spell(name);
        let (what, declared, help) = match file.res(root) {
            Res::Decl { scope, decl } => {
                let declared = &file.scopes[scope as usize].decls[decl as usize];
                let (what, help) = match &declared.kind {
                    DeclKind::Var(var) if var.kind == VarKind::Param => {
                        ("is a param: its value is fixed when the program is compiled", copy(&text))
                    }
                    DeclKind::Var(var) if var.kind == VarKind::Const => constant(),
                    DeclKind::Var(_) => return self.no_variable(span),
                    DeclKind::Fn(_) | DeclKind::Tile(_) => {
                        ("is no variable", "assign to a variable".to_owned())
                    }
                };
                (what, Some(declared.name.span), help)
            }
            Res::Local(slot) if self.is_slice_of_constant(slot) => {
                let what = "is a slice of a constant, which cannot change";
                (what, None, "make the array that is sliced a `var`".to_owned())
            }
            Res::Local(_) => match local_declaration(&file, name, span) {
                Some((true, declared)) => {
                    let help = "assign to the element itself: `array[i] = …`".to_owned();
                    ("is the loop's copy of an element", Some(declared), help)
                }
                Some((false, declared)) => {
                    let (what, help) = constant();
                    (what, Some(declared), help)
                }
                None => ("is a parameter, which cannot change", None, copy(&text)),
            },
            Res::Prelude(_) | Res::None => return self.no_variable(span),
        };
        let mut diagnostic =
            Diagnostic::new(codes::NOT_ASSIGNABLE, format!("`{text}` {what}"), span)
                .label("assigned here")
                .help(help);
        if let Some(declared) = declared {
            diagnostic = diagnostic.secondary(declared, "declared here");
        }
        self.report(diagnostic)
    }

    fn is_slice_of_constant(&mut self, slot: u32) -> bool {
        match self.frame().slots[slot as usize].clone() {
            Cell::Memory { address, .. } => self.is_constant_slice(&address),
            _ => false,
        }
    }

    /// The general form, for pointers to constants and values without a place.
    pub(crate) fn no_variable(&mut self, span: Span) -> Reported {
        self.report(
            Diagnostic::new(codes::NOT_ASSIGNABLE, "this cannot be assigned to", span)
                .label("a constant, a parameter, behind a `const` pointer, or no place")
                .help("declare it with `var`; copy a parameter into a variable"),
        )
    }

    /// A member that a module does not have: what may be meant, or what there is.
    pub(crate) fn unknown_member<T>(&mut self, module: ModuleId, name: Symbol, span: Span) -> R<T> {
        let own = &self.modules[module.0 as usize];
        let file = self.files.get(own.source);
        let path = self.cx.file_name(file.file.id);
        let decls = &file.scopes[own.scope as usize].decls;
        let functions = decls.iter().filter(|decl| matches!(&decl.kind, DeclKind::Fn(_)));
        let others = decls
            .iter()
            .filter(|decl| matches!(&decl.kind, DeclKind::Var(var) if var.kind != VarKind::Param));
        let members: Vec<String> =
            functions.chain(others).map(|decl| self.spell(decl.name.name)).collect();
        let text = self.spell(name);
        let mut diagnostic = Diagnostic::new(
            codes::UNKNOWN_FIELD,
            format!("the module {path} has no member `{text}`"),
            span,
        )
        .label("asked for here");
        let known = members.iter().map(String::as_str);
        if let Some(near) = nearest(&text, known) {
            diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
        } else if !members.is_empty() {
            diagnostic = diagnostic.help(format!("it has {}", listed(&members)));
        }
        Err(self.report(diagnostic))
    }

    /// A field that a struct or an enum does not have.
    pub(crate) fn near_field(&self, ty: TypeId, field: &str) -> Option<String> {
        let names: Vec<String> = match self.types.get(ty) {
            Type::Struct(info) if !info.tuple => {
                info.fields.iter().map(|&(name, _)| self.spell(name)).collect()
            }
            Type::Enum(info) => info.elems.iter().map(|&(name, _)| self.spell(name)).collect(),
            _ => return None,
        };
        match nearest(field, names.iter().map(String::as_str)) {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None if names.is_empty() => None,
            None => Some(format!("it has {}", listed(&names))),
        }
    }

    /// Declarations that need one another: the way round, from the one that was asked for first.
    pub(crate) fn on_itself<T>(&mut self, module: ModuleId, decl: u32, span: Span) -> R<T> {
        let name = self.decl_name(module, decl);
        let from = self.busy.iter().position(|&(other, at, _)| (other, at) == (module, decl));
        let round = self.busy[from.unwrap_or(self.busy.len())..].to_vec();
        let names: Vec<String> = round
            .iter()
            .map(|&(module, decl, _)| format!("`{}`", self.decl_name(module, decl)))
            .collect();
        let message = match names.len() {
            0 | 1 => format!("the value of `{name}` depends on itself"),
            _ => format!(
                "the value of `{name}` depends on itself: {} needs {}, which needs `{name}`",
                names[0],
                names[1..].join(", which needs ")
            ),
        };
        let mut diagnostic = Diagnostic::new(codes::DEPENDS_ON_ITSELF, message, span)
            .label(format!("`{name}` is needed before it is known"));
        for &(module, decl, used) in round.iter().skip(1) {
            let needed = self.decl_name(module, decl);
            diagnostic = diagnostic.secondary(used, format!("`{needed}` is needed here"));
        }
        self.behind_pointer += 1;
        let is_function = self.func_decl(FuncRef { module, decl }).is_some();
        diagnostic = if is_function && round.len() < 2 {
            diagnostic.help("give the function another name: its own hides that of the type")
        } else if self.struct_under_way(module, decl).is_some() {
            diagnostic.help(format!("a struct can hold pointers to its own kind: `*{name}`"))
        } else {
            diagnostic.help("give one of them a value that does not need the others")
        };
        self.behind_pointer -= 1;
        Err(self.report(diagnostic))
    }
}

fn copy(name: &str) -> String {
    format!("copy it into a variable: `var my_{name} = {name};`")
}

fn constant() -> (&'static str, String) {
    ("is a constant, which cannot change", "declare it with `var`".to_owned())
}

/// The expression that a field or element belongs to.
fn root_of(file: &File, mut id: ExprId) -> ExprId {
    while let Ast::Field { base, .. } | Ast::Index { base, .. } = file.expr(id) {
        id = *base;
    }
    id
}

/// The last declaration of a local name in front of a place in its function, and whether it is the
/// capture of a loop; none for a parameter.
fn local_declaration(resolved: &ResolvedFile, name: Symbol, before: Span) -> Option<(bool, Span)> {
    let decls = resolved.scopes.iter().flat_map(|scope| &scope.decls);
    let is_around =
        |decl: &&Decl| matches!(decl.kind, DeclKind::Fn(_)) && decl.span.contains(before);
    let from = decls.filter(is_around).map(|decl| decl.span.start).max().unwrap_or(0);
    let file = &resolved.file;
    let mut found = None;
    for at in 0..file.stmt_count() {
        let declared = match file.stmt(StmtId(at as u32)) {
            Stmt::Var(var) => Some((false, var.name)),
            Stmt::For { elem, index, .. } => {
                let captures = [elem.name, index.as_ref().and_then(|index| index.name)];
                let of_name = captures.into_iter().flatten().find(|known| known.name == name);
                of_name.map(|known| (true, known))
            }
            Stmt::Error
            | Stmt::Empty
            | Stmt::Expr(_)
            | Stmt::Assign { .. }
            | Stmt::Return(_)
            | Stmt::Break { .. }
            | Stmt::Continue { .. }
            | Stmt::While { .. }
            | Stmt::Comptime(_) => None,
        };
        let Some((capture, ident)) = declared.filter(|(_, ident)| ident.name == name) else {
            continue;
        };
        let nearer = found.is_none_or(|(_, span): (bool, Span)| span.start < ident.span.start);
        if (from..before.start).contains(&ident.span.start) && nearer {
            found = Some((capture, ident.span));
        }
    }
    found
}

/// The first names of a list.
fn listed(names: &[String]) -> String {
    let shown = names[..names.len().min(LISTED)].join(", ");
    match names.len() {
        0..=LISTED => shown,
        n => format!("{shown} and {} more", n - LISTED),
    }
}
