//! What the grammar's actions call: makes nodes, gives them places, and refuses what the grammar cannot.
//!
//! An attempt to read an item may fail and be repeated on repaired tokens. [`Builder::mark`] and
//! [`Builder::reset`] take back everything an attempt has made, diagnostics included.

use crate::ast::*;
use crate::diagnostic::{Diagnostic, codes};
use crate::{Dialect, FileId, Interner, Span};

/// A value with its first byte and the one past its last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located<T> {
    pub(crate) node: T,
    pub(crate) l: u32,
    pub(crate) r: u32,
}

impl<T> Located<T> {
    pub(crate) fn new(node: T, l: u32, r: u32) -> Self {
        Self { node, l, r }
    }
}

/// A statement without its semicolon.
pub(crate) struct Bare {
    pub(crate) stmt: Stmt,
}

impl Bare {
    pub(crate) fn new(stmt: Stmt) -> Self {
        Self { stmt }
    }

    pub(crate) fn expr(id: ExprId) -> Self {
        Self::new(Stmt::Expr(id))
    }
}

/// Operands and the operators between them, not yet sorted by precedence.
pub(crate) struct Chain {
    pub(super) first: Located<ExprId>,
    pub(super) rest: Vec<(BinaryOp, Located<ExprId>)>,
}

impl Chain {
    pub(crate) fn new(first: Located<ExprId>) -> Self {
        Self { first, rest: Vec::new() }
    }

    pub(crate) fn push(mut self, op: BinaryOp, operand: Located<ExprId>) -> Self {
        self.rest.push((op, operand));
        self
    }
}

/// Which attribute of a declaration.
#[derive(Clone, Copy)]
pub(crate) enum AttrKind {
    Align,
    Linksection,
    Linkname,
}

/// The attributes of a declaration.
#[derive(Clone, Copy, Default)]
pub(crate) struct Attrs {
    align: Option<ExprId>,
    linksection: Option<ExprId>,
    linkname: Option<ExprId>,
}

/// What stands in the braces behind a type.
pub(crate) enum Init {
    Fields(Vec<FieldInit>),
    Elems(Vec<ExprId>),
}

/// `for (iter) |elem, index|`
pub(crate) struct ForHead {
    pub(crate) iter: ExprId,
    pub(crate) elem: Capture,
    pub(crate) index: Option<Capture>,
}

/// A loop without its body.
pub(crate) struct LoopHead {
    label: Option<Ident>,
    inline: bool,
    kind: LoopKind,
}

enum LoopKind {
    For(ForHead),
    While { cond: ExprId, step: Option<StmtId> },
}

impl LoopHead {
    pub(crate) fn new_for(label: Option<Ident>, inline: bool, head: ForHead) -> Self {
        Self { label, inline, kind: LoopKind::For(head) }
    }

    pub(crate) fn new_while(
        label: Option<Ident>,
        inline: bool,
        cond: ExprId,
        step: Option<StmtId>,
    ) -> Self {
        Self { label, inline, kind: LoopKind::While { cond, step } }
    }
}

/// How far a builder had come.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    exprs: usize,
    stmts: usize,
    diagnostics: usize,
    foreign_names: usize,
}

/// Makes the tree of one file.
pub(crate) struct Builder<'t> {
    pub(crate) tree: File,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(super) text: &'t str,
    pub(super) dialect: Dialect,
    pub(super) interner: &'t mut Interner,
    /// Height of each expression and statement, to keep the tree below [`MAX_DEPTH`].
    expr_depth: Vec<u32>,
    stmt_depth: Vec<u32>,
    too_deep: bool,
    /// Uses of names that other languages have built in.
    pub(super) foreign_names: Vec<Span>,
    /// Declarations of such names, which make them ordinary.
    declared_foreign: Vec<String>,
}

pub(super) fn is_foreign_name(text: &str) -> bool {
    matches!(text, "undefined" | "null")
}

impl<'t> Builder<'t> {
    pub(crate) fn new(
        file: FileId,
        text: &'t str,
        dialect: Dialect,
        interner: &'t mut Interner,
    ) -> Self {
        Self {
            tree: File::new(file),
            diagnostics: Vec::new(),
            text,
            dialect,
            interner,
            expr_depth: Vec::new(),
            stmt_depth: Vec::new(),
            too_deep: false,
            foreign_names: Vec::new(),
            declared_foreign: Vec::new(),
        }
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            exprs: self.expr_depth.len(),
            stmts: self.stmt_depth.len(),
            diagnostics: self.diagnostics.len(),
            foreign_names: self.foreign_names.len(),
        }
    }

    pub(crate) fn reset(&mut self, mark: Mark) {
        self.tree.truncate(mark.exprs, mark.stmts);
        self.expr_depth.truncate(mark.exprs);
        self.stmt_depth.truncate(mark.stmts);
        self.diagnostics.truncate(mark.diagnostics);
        self.foreign_names.truncate(mark.foreign_names);
        self.too_deep = false;
    }

    /// The tree, with what could only be judged at the end of the file.
    pub(crate) fn finish(mut self) -> (File, Vec<Diagnostic>) {
        for span in std::mem::take(&mut self.foreign_names) {
            let name = &self.text[span.range()];
            if self.declared_foreign.iter().any(|declared| declared == name) {
                continue;
            }
            let help = if name == "undefined" {
                "leave the initializer out: `var x: u16;`"
            } else {
                "there are no optional values; use a flag, or a number that means none"
            };
            self.diagnostics.push(
                Diagnostic::new(codes::ZIG_HABIT, format!("there is no `{name}`"), span).help(help),
            );
        }
        (self.tree, self.diagnostics)
    }

    pub(crate) fn span(&self, l: u32, r: u32) -> Span {
        Span::new(self.tree.id, l, r)
    }

    pub(super) fn slice_text(&self, l: u32, r: u32) -> &'t str {
        &self.text[l as usize..r as usize]
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    // ---- Nodes

    pub(crate) fn expr(&mut self, node: Expr, l: u32, r: u32) -> ExprId {
        let span = self.span(l, r);
        let mut below = 0;
        node.for_each_child(&mut |_, child| below = below.max(self.depth(child)));
        let (node, depth) = if below < MAX_DEPTH {
            (node, below + 1)
        } else {
            self.report_depth(span);
            (Expr::Error, 1)
        };
        self.expr_depth.push(depth);
        self.tree.add_expr(node, span)
    }

    pub(crate) fn stmt(&mut self, stmt: Located<Stmt>) -> StmtId {
        let span = self.span(stmt.l, stmt.r);
        let mut below = 0;
        stmt.node.for_each_child(&mut |_, child| below = below.max(self.depth(child)));
        let (node, depth) = if below < MAX_DEPTH {
            (stmt.node, below + 1)
        } else {
            self.report_depth(span);
            (Stmt::Error, 1)
        };
        self.stmt_depth.push(depth);
        self.tree.add_stmt(node, span)
    }

    fn depth(&self, child: Child) -> u32 {
        match child {
            Child::Expr(id) => self.expr_depth[id.0 as usize],
            Child::Stmt(id) => self.stmt_depth[id.0 as usize],
        }
    }

    /// Once per item: an expression of a million terms passes the limit many times.
    fn report_depth(&mut self, span: Span) {
        if self.too_deep {
            return;
        }
        self.too_deep = true;
        let message = format!("this is more than {MAX_DEPTH} levels deep");
        let end = span.start
            + (self.text[span.range()].lines().next().map_or(0, str::len) as u32).min(60);
        let shown = Span { end: self.char_boundary(end), ..span };
        self.report(
            Diagnostic::new(codes::NESTING_TOO_DEEP, message, shown)
                .help("name a part of it with `const`, or use a loop"),
        );
    }

    fn char_boundary(&self, mut at: u32) -> u32 {
        while !self.text.is_char_boundary(at as usize) {
            at -= 1;
        }
        at
    }

    pub(crate) fn pushed<T>(&mut self, mut list: Vec<T>, last: T) -> Vec<T> {
        list.push(last);
        list
    }

    // ---- Items and declarations

    pub(crate) fn item(&mut self, kind: ItemKind, l: u32, r: u32) -> Item {
        Item { kind, span: self.span(l, r) }
    }

    pub(crate) fn test(&mut self, l: u32, r: u32, body: Block) -> ItemKind {
        let bytes = self.string_bytes(l, r);
        let name = String::from_utf8_lossy(&bytes).into_owned();
        ItemKind::Test(TestDecl { name, name_span: self.span(l, r), body })
    }

    #[expect(clippy::too_many_arguments, reason = "one per part of the declaration")]
    pub(crate) fn var_decl(
        &mut self,
        storage: Storage,
        comptime: bool,
        kind: VarKind,
        name: Ident,
        ty: Option<ExprId>,
        attrs: Attrs,
        init: Option<ExprId>,
    ) -> VarDecl {
        self.declare(name);
        let Attrs { align, linksection, linkname } = attrs;
        VarDecl { storage, comptime, kind, name, ty, align, linksection, linkname, init }
    }

    #[expect(clippy::too_many_arguments, reason = "one per part of the declaration")]
    pub(crate) fn fn_decl(
        &mut self,
        storage: Storage,
        inline: bool,
        is_task: bool,
        name: Ident,
        params: Vec<Param>,
        ret: ExprId,
        attrs: [Attrs; 2],
        body: Option<Block>,
    ) -> FnDecl {
        let [before, after] = attrs;
        for align in [before.align, after.align].into_iter().flatten() {
            let span = self.tree.expr_span(align);
            let message = "a function has no alignment";
            self.report(Diagnostic::new(codes::UNEXPECTED_TOKEN, message, span));
        }
        FnDecl {
            storage,
            inline,
            is_task,
            name,
            params,
            ret,
            linkname: after.linkname.or(before.linkname),
            linksection: after.linksection.or(before.linksection),
            body,
        }
    }

    pub(crate) fn attr(
        &mut self,
        mut attrs: Attrs,
        kind: AttrKind,
        value: ExprId,
        l: u32,
        r: u32,
    ) -> Attrs {
        let (slot, name) = match kind {
            AttrKind::Align => (&mut attrs.align, "align"),
            AttrKind::Linksection => (&mut attrs.linksection, "linksection"),
            AttrKind::Linkname => (&mut attrs.linkname, "linkname"),
        };
        let first = slot.replace(value);
        if let Some(first) = first {
            let message = format!("`{name}` is given twice");
            let first = self.tree.expr_span(first);
            let span = self.span(l, r);
            self.report(
                Diagnostic::new(codes::UNEXPECTED_TOKEN, message, span)
                    .secondary(first, "first here"),
            );
        }
        attrs
    }

    pub(crate) fn param(
        &mut self,
        comptime: bool,
        name: Option<Ident>,
        ty: ParamTy,
        optional: bool,
        l: u32,
        r: u32,
    ) -> Param {
        if let Some(name) = name {
            self.declare(name);
        }
        let span = self.span(l, r);
        if optional {
            self.check_optional(ty, span);
        }
        Param { comptime, name, ty, optional, span }
    }

    /// A parameter that may be left out is an `anytype` one of a `.dfl` file.
    fn check_optional(&mut self, ty: ParamTy, span: Span) {
        let message = if self.dialect == Dialect::Csl {
            "a parameter that may be left out is understood only in `.dfl` files"
        } else if ty != ParamTy::Anytype {
            "a parameter that may be left out has the type `anytype`"
        } else {
            return;
        };
        let code =
            if self.dialect == Dialect::Csl { codes::DFL_ONLY } else { codes::INVALID_SIGNATURE };
        self.report(Diagnostic::new(code, message, span).label("this parameter"));
    }

    fn declare(&mut self, name: Ident) {
        let text = &self.text[name.span.range()];
        if is_foreign_name(text) {
            self.declared_foreign.push(text.to_owned());
        }
    }

    // ---- Statements

    pub(crate) fn block(&mut self, stmts: Vec<StmtId>, l: u32, r: u32) -> Block {
        Block { stmts, span: self.span(l, r) }
    }

    pub(crate) fn local(&mut self, decl: VarDecl, l: u32, r: u32) -> Located<Stmt> {
        let span = self.span(l, r);
        let misplaced = match (decl.kind, decl.storage) {
            (VarKind::Param, _) => Some("param"),
            (VarKind::Const | VarKind::Var, Storage::Export) => Some("export"),
            (VarKind::Const | VarKind::Var, Storage::Extern) => Some("extern"),
            (VarKind::Const | VarKind::Var, Storage::None) => None,
        };
        if let Some(word) = misplaced {
            let message = format!("`{word}` stands only outside of functions and blocks");
            self.report(Diagnostic::new(codes::UNEXPECTED_TOKEN, message, span));
            return Located::new(Stmt::Error, l, r);
        }
        Located::new(Stmt::Var(decl), l, r)
    }

    pub(crate) fn assign(&mut self, target: Chain, op: Option<BinaryOp>, value: ExprId) -> Bare {
        let target = self.chain(target);
        Bare::new(Stmt::Assign { op, target, value })
    }

    pub(crate) fn assign_stmt(
        &mut self,
        target: Chain,
        op: Option<BinaryOp>,
        value: ExprId,
        l: u32,
        r: u32,
    ) -> StmtId {
        let Bare { stmt } = self.assign(target, op, value);
        self.stmt(Located::new(stmt, l, r))
    }

    pub(crate) fn block_stmt(
        &mut self,
        label: Option<Ident>,
        block: Block,
        l: u32,
        r: u32,
    ) -> Located<Stmt> {
        let id = self.expr(Expr::Block { label, block }, l, r);
        Located::new(Stmt::Expr(id), l, r)
    }

    pub(crate) fn if_stmt(
        &mut self,
        cond: ExprId,
        then: Located<Stmt>,
        otherwise: Option<Located<Stmt>>,
        l: u32,
        r: u32,
    ) -> Located<Stmt> {
        let then = self.branch(then);
        let otherwise = otherwise.map(|stmt| self.branch(stmt));
        let id = self.expr(Expr::If { cond, then, otherwise }, l, r);
        Located::new(Stmt::Expr(id), l, r)
    }

    /// A statement where an expression is needed: itself if it is one, else a block around it.
    pub(crate) fn branch(&mut self, stmt: Located<Stmt>) -> ExprId {
        let Located { l, r, .. } = stmt;
        if let Stmt::Expr(id) = stmt.node {
            return id;
        }
        let id = self.stmt(stmt);
        let block = Block { stmts: vec![id], span: self.span(l, r) };
        self.expr(Expr::Block { label: None, block }, l, r)
    }

    pub(crate) fn loop_stmt(
        &mut self,
        head: LoopHead,
        body: Located<Stmt>,
        l: u32,
        r: u32,
    ) -> Located<Stmt> {
        let body = self.stmt(body);
        let LoopHead { label, inline, kind } = head;
        let stmt = match kind {
            LoopKind::For(ForHead { iter, elem, index }) => {
                Stmt::For { label, inline, iter, elem, index, body }
            }
            LoopKind::While { cond, step } => Stmt::While { label, inline, cond, step, body },
        };
        Located::new(stmt, l, r)
    }

    pub(crate) fn capture(&mut self, by_pointer: bool, name: Ident, l: u32, r: u32) -> Capture {
        let span = self.span(l, r);
        if by_pointer && self.dialect == Dialect::Csl {
            let message = "a capture by pointer is understood only in `.dfl` files";
            self.report(
                Diagnostic::new(codes::DFL_ONLY, message, span)
                    .help("write `|_, i|` and assign to the array's element `i`"),
            );
        }
        self.declare(name);
        let discard = &self.text[name.span.range()] == "_";
        Capture { name: (!discard).then_some(name), by_pointer, span }
    }

    pub(crate) fn prong(&mut self, cases: Vec<ExprId>, body: ExprId, l: u32, r: u32) -> Prong {
        Prong { cases, body, span: self.span(l, r) }
    }
}
