//! The tree of one file.
//!
//! - Expressions and statements live in arenas inside [`File`] and name each other by index, children before
//!   parents. Dropping a tree never recurses.
//! - Types are expressions: there is one [`Expr`] and no type node. `f32`, `color` or `void` are ordinary names.
//! - Nodes hold no place of their own: the place of an expression or statement is in a side table.
//!   Declarations, identifiers and parts that are no expression carry theirs.
//! - A tree is at most [`MAX_DEPTH`] levels deep, so that walkers may recurse.
//! - Names are not resolved and nothing is checked beyond the grammar. A part that could not be read is an
//!   `Error` node, and a diagnostic has been given for it.

pub mod dump;
pub mod expr;
pub mod item;
pub mod stmt;
pub mod walk;

pub use dump::dump;
pub use expr::{
    BinaryOp, EnumElem, Expr, FieldDecl, FieldInit, Param, ParamTy, Prong, StructKind, UnaryOp,
};
pub use item::{FnDecl, Item, ItemKind, Storage, TestDecl, TileDecl, VarDecl, VarKind};
pub use stmt::{Block, Capture, Stmt};
pub use walk::Child;

use rustc_hash::FxHashSet;

use crate::{FileId, Span, Symbol};

/// How many levels a tree has at most. Deeper nesting is refused with `nesting-too-deep`.
pub const MAX_DEPTH: u32 = 512;

/// Index of an expression in its [`File`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprId(pub u32);

/// Index of a statement in its [`File`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StmtId(pub u32);

/// An identifier as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ident {
    /// Its name.
    pub name: Symbol,
    /// Its place.
    pub span: Span,
}

/// The tree of one source file.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// The file that all places of this tree lie in.
    pub id: FileId,
    /// What stands at file scope, in order.
    pub items: Vec<Item>,
    /// Names that parts which could not be read may declare.
    pub unread: FxHashSet<Symbol>,
    exprs: Vec<Expr>,
    expr_spans: Vec<Span>,
    stmts: Vec<Stmt>,
    stmt_spans: Vec<Span>,
}

impl File {
    /// A tree with nothing in it.
    #[must_use]
    pub fn new(id: FileId) -> Self {
        Self {
            id,
            items: Vec::new(),
            unread: FxHashSet::default(),
            exprs: Vec::new(),
            expr_spans: Vec::new(),
            stmts: Vec::new(),
            stmt_spans: Vec::new(),
        }
    }

    /// The expression of an index of this file.
    #[must_use]
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.0 as usize]
    }

    /// Where the expression stands.
    #[must_use]
    pub fn expr_span(&self, id: ExprId) -> Span {
        self.expr_spans[id.0 as usize]
    }

    /// The statement of an index of this file.
    #[must_use]
    pub fn stmt(&self, id: StmtId) -> &Stmt {
        &self.stmts[id.0 as usize]
    }

    /// Where the statement stands.
    #[must_use]
    pub fn stmt_span(&self, id: StmtId) -> Span {
        self.stmt_spans[id.0 as usize]
    }

    /// How many expressions there are: side tables are this long.
    #[must_use]
    pub fn expr_count(&self) -> usize {
        self.exprs.len()
    }

    /// How many statements there are.
    #[must_use]
    pub fn stmt_count(&self) -> usize {
        self.stmts.len()
    }

    /// Every expression with its index, children before parents.
    pub fn exprs(&self) -> impl Iterator<Item = (ExprId, &Expr)> {
        (0..).map(ExprId).zip(&self.exprs)
    }

    /// Every statement.
    pub fn stmts(&self) -> impl Iterator<Item = &Stmt> {
        self.stmts.iter()
    }

    /// Adds an expression.
    pub fn add_expr(&mut self, expr: Expr, span: Span) -> ExprId {
        let id = ExprId(u32::try_from(self.exprs.len()).unwrap_or(u32::MAX));
        self.exprs.push(expr);
        self.expr_spans.push(span);
        id
    }

    /// Adds a statement.
    pub fn add_stmt(&mut self, stmt: Stmt, span: Span) -> StmtId {
        let id = StmtId(u32::try_from(self.stmts.len()).unwrap_or(u32::MAX));
        self.stmts.push(stmt);
        self.stmt_spans.push(span);
        id
    }

    /// Forgets what was added after there were so many.
    pub(crate) fn truncate(&mut self, exprs: usize, stmts: usize) {
        self.exprs.truncate(exprs);
        self.expr_spans.truncate(exprs);
        self.stmts.truncate(stmts);
        self.stmt_spans.truncate(stmts);
    }
}

impl std::ops::Index<ExprId> for File {
    type Output = Expr;
    fn index(&self, id: ExprId) -> &Expr {
        self.expr(id)
    }
}

impl std::ops::Index<StmtId> for File {
    type Output = Stmt;
    fn index(&self, id: StmtId) -> &Stmt {
        self.stmt(id)
    }
}
