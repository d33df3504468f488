//! The tree as indented text: one node per line, stable, without places.

use std::fmt::Write as _;

use super::{
    Block, Capture, Child, Expr, File, FnDecl, Ident, Item, ItemKind, Param, ParamTy, Stmt,
    Storage, StructKind, TestDecl, TileDecl, VarDecl, VarKind,
};
use crate::{Interner, Symbol};

/// The whole tree of a file. Recursion is as deep as the tree, that is, bounded.
#[must_use]
pub fn dump(file: &File, interner: &Interner) -> String {
    let mut printer = Printer { file, interner, out: String::new() };
    for item in &file.items {
        printer.item(item, 0);
    }
    printer.out
}

struct Printer<'a> {
    file: &'a File,
    interner: &'a Interner,
    out: String,
}

impl Printer<'_> {
    fn line(&mut self, indent: usize, role: &str, text: &str) {
        let role = if role.is_empty() { String::new() } else { format!("{role}: ") };
        let _ = writeln!(self.out, "{:width$}{role}{text}", "", width = 2 * indent);
    }

    fn name(&self, symbol: Symbol) -> &str {
        self.interner.resolve(symbol)
    }

    fn item(&mut self, item: &Item, indent: usize) {
        match &item.kind {
            ItemKind::Var(decl) => {
                let head = self.var_head(decl);
                self.line(indent, "", &head);
                decl.for_each_child(&mut |role, child| self.child(role, child, indent + 1));
            }
            ItemKind::Fn(decl) => self.function(decl, indent),
            ItemKind::Comptime(block) => self.block_item("comptime", block, indent),
            ItemKind::Layout(block) => self.block_item("layout", block, indent),
            ItemKind::Host(block) => self.block_item("host", block, indent),
            ItemKind::Test(TestDecl { name, name_span: _, body }) => {
                self.block_item(&format!("test {name:?}"), body, indent);
            }
            ItemKind::Tile(TileDecl { name, items }) => {
                let head = format!("tile {}", self.name(name.name));
                self.line(indent, "", &head);
                for item in items {
                    self.item(item, indent + 1);
                }
            }
            ItemKind::Error => self.line(indent, "", "error"),
        }
    }

    fn block_item(&mut self, head: &str, block: &Block, indent: usize) {
        self.line(indent, "", head);
        self.block(block, indent + 1);
    }

    fn block(&mut self, block: &Block, indent: usize) {
        block.for_each_child(&mut |role, child| self.child(role, child, indent));
    }

    fn function(&mut self, decl: &FnDecl, indent: usize) {
        let FnDecl { storage, inline, is_task, name, params, ret, linkname, linksection, body } =
            decl;
        let word = if *is_task { "task" } else { "fn" };
        let inline = if *inline { "inline " } else { "" };
        let params_text = self.params(params);
        let head = format!(
            "{}{inline}{word} {}({params_text})",
            storage_word(*storage),
            self.name(name.name)
        );
        self.line(indent, "", &head);
        for param in params {
            param.for_each_child(&mut |role, child| self.child(role, child, indent + 1));
        }
        self.child("result", Child::Expr(*ret), indent + 1);
        for (role, part) in [("linkname", linkname), ("linksection", linksection)] {
            part.iter().for_each(|&id| self.child(role, Child::Expr(id), indent + 1));
        }
        match body {
            Some(block) => self.block_item("body", block, indent + 1),
            None => self.line(indent + 1, "", "no body"),
        }
    }

    fn child(&mut self, role: &str, child: Child, indent: usize) {
        match child {
            Child::Expr(id) => {
                let expr = self.file.expr(id);
                let head = self.expr_head(expr);
                self.line(indent, role, &head);
                expr.for_each_child(&mut |role, child| self.child(role, child, indent + 1));
            }
            Child::Stmt(id) => {
                let stmt = self.file.stmt(id);
                if let Stmt::Expr(expr) = stmt {
                    return self.child(role, Child::Expr(*expr), indent);
                }
                let head = self.stmt_head(stmt);
                self.line(indent, role, &head);
                stmt.for_each_child(&mut |role, child| self.child(role, child, indent + 1));
            }
        }
    }

    fn expr_head(&self, expr: &Expr) -> String {
        match expr {
            Expr::Error => "error".into(),
            Expr::Int(value) => format!("int {value}"),
            Expr::Float(value) => format!("float {value:?}"),
            Expr::Str(bytes) => format!("string \"{}\"", bytes.escape_ascii()),
            Expr::Bool(value) => format!("{value}"),
            Expr::Name(name) => format!("name {}", self.name(*name)),
            Expr::Builtin { name, name_span: _, args: _ } => {
                format!("builtin @{}", self.name(*name))
            }
            Expr::Call { callee: _, args: _ } => "call".into(),
            Expr::Field { base: _, name } => format!("field .{}", self.name(name.name)),
            Expr::Deref(_) => "deref".into(),
            Expr::Index { base: _, indices: _ } => "index".into(),
            Expr::Unary { op, operand: _ } => format!("unary {}", op.symbol()),
            Expr::Binary { op, lhs: _, rhs: _ } => format!("binary {}", op.symbol()),
            Expr::Comptime(_) => "comptime".into(),
            Expr::Block { label, block: _ } => format!("block{}", self.label(*label)),
            Expr::If { cond: _, then: _, otherwise: _ } => "if".into(),
            Expr::Switch { subject: _, prongs: _ } => "switch".into(),
            Expr::StructLiteral { fields } => {
                format!("struct literal{}", self.names(fields.iter().map(|field| field.name)))
            }
            Expr::TupleLiteral { elems: _ } => "tuple literal".into(),
            Expr::TypedStruct { ty: _, fields } => {
                format!("typed struct{}", self.names(fields.iter().map(|field| field.name)))
            }
            Expr::TypedArray { ty: _, elems: _ } => "typed array".into(),
            Expr::ArrayType { dims, elem: _ } if dims.is_empty() => "slice type".into(),
            Expr::ArrayType { dims: _, elem: _ } => "array type".into(),
            Expr::PointerType { many, constant, pointee: _ } => format!(
                "pointer type{}{}",
                if *many { " to many" } else { "" },
                if *constant { " const" } else { "" }
            ),
            Expr::FnType { is_task, params, ret: _ } => {
                let word = if *is_task { "task" } else { "fn" };
                format!("{word} type ({})", self.params(params))
            }
            Expr::StructType { kind, is_union, fields } => format!(
                "{}{} type{}",
                match kind {
                    StructKind::Auto => "",
                    StructKind::Extern => "extern ",
                    StructKind::Packed => "packed ",
                },
                if *is_union { "union" } else { "struct" },
                self.names(fields.iter().map(|field| field.name))
            ),
            Expr::EnumType { backing: _, elems } => {
                // The values that are given follow as children, in order.
                let mut text = "enum type".to_owned();
                for elem in elems {
                    let given = if elem.value.is_some() { "=" } else { "" };
                    let _ = write!(text, " .{}{given}", self.name(elem.name.name));
                }
                text
            }
            Expr::TensorAccess { vars, extents: _, base: _, indices: _ } => {
                format!("tensor access{}", self.names(vars.iter().copied()))
            }
            Expr::Asm => "asm".into(),
        }
    }

    fn stmt_head(&self, stmt: &Stmt) -> String {
        match stmt {
            Stmt::Error => "error".into(),
            Stmt::Empty => "empty".into(),
            Stmt::Var(decl) => self.var_head(decl),
            Stmt::Expr(_) => "expression".into(),
            Stmt::Assign { op, target: _, value: _ } => {
                format!("assign {}=", op.map_or("", |op| op.symbol()))
            }
            Stmt::Return(_) => "return".into(),
            Stmt::Break { label, value: _ } => format!("break{}", self.label(*label)),
            Stmt::Continue { label } => format!("continue{}", self.label(*label)),
            Stmt::For { label, inline, iter: _, elem, index, body: _ } => {
                let index =
                    index.map_or_else(String::new, |index| format!(", {}", self.capture(index)));
                let word = if *inline { "inline for" } else { "for" };
                format!("{word}{} |{}{index}|", self.label(*label), self.capture(*elem))
            }
            Stmt::While { label, inline, cond: _, step: _, body: _ } => {
                let word = if *inline { "inline while" } else { "while" };
                format!("{word}{}", self.label(*label))
            }
            Stmt::Comptime(_) => "comptime".into(),
        }
    }

    fn var_head(&self, decl: &VarDecl) -> String {
        let word = match decl.kind {
            VarKind::Const => "const",
            VarKind::Var => "var",
            VarKind::Param => "param",
        };
        let comptime = if decl.comptime { "comptime " } else { "" };
        format!("{}{comptime}{word} {}", storage_word(decl.storage), self.name(decl.name.name))
    }

    fn params(&self, params: &[Param]) -> String {
        let text = |param: &Param| {
            let comptime = if param.comptime { "comptime " } else { "" };
            let name = param.name.map_or("_", |name| self.name(name.name));
            let any = match param.ty {
                ParamTy::Anytype => ": anytype",
                ParamTy::Expr(_) => "",
            };
            let optional = if param.optional { " = {}" } else { "" };
            format!("{comptime}{name}{any}{optional}")
        };
        params.iter().map(text).collect::<Vec<_>>().join(", ")
    }

    fn label(&self, label: Option<Ident>) -> String {
        label.map_or_else(String::new, |label| format!(" :{}", self.name(label.name)))
    }

    fn capture(&self, capture: Capture) -> String {
        let star = if capture.by_pointer { "*" } else { "" };
        format!("{star}{}", capture.name.map_or("_", |name| self.name(name.name)))
    }

    fn names(&self, names: impl Iterator<Item = Ident>) -> String {
        names.fold(String::new(), |mut text, name| {
            let _ = write!(text, " .{}", self.name(name.name));
            text
        })
    }
}

fn storage_word(storage: Storage) -> &'static str {
    match storage {
        Storage::None => "",
        Storage::Export => "export ",
        Storage::Extern => "extern ",
    }
}
