//! Statements.

use super::{BinaryOp, ExprId, Ident, StmtId, VarDecl};
use crate::Span;

/// Statements between braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// In order.
    pub stmts: Vec<StmtId>,
    /// From brace to brace.
    pub span: Span,
}

/// A name between bars: `|x|`, `|_|`, `|*x|`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    /// None for `_`.
    pub name: Option<Ident>,
    /// Whether `*` stands before it: the element itself rather than a copy.
    pub by_pointer: bool,
    /// Its place.
    pub span: Span,
}

/// A statement. Blocks, `if` and `switch` are expressions and stand here as [`Stmt::Expr`].
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// Could not be read.
    Error,
    /// `;`
    Empty,
    /// A local declaration.
    Var(VarDecl),
    /// An expression for its effect.
    Expr(ExprId),
    /// `target = value;` or `target op= value;`
    Assign {
        /// None for plain `=`.
        op: Option<BinaryOp>,
        /// What changes.
        target: ExprId,
        /// To what, or by what.
        value: ExprId,
    },
    /// `return;` or `return value;`
    Return(Option<ExprId>),
    /// `break;`, `break :label;`, `break :label value;`
    Break {
        /// Which block or loop to leave; the innermost loop if none.
        label: Option<Ident>,
        /// The value of the block that is left.
        value: Option<ExprId>,
    },
    /// `continue;` or `continue :label;`
    Continue {
        /// Which loop; the innermost if none.
        label: Option<Ident>,
    },
    /// `for (iter) |elem, index| body`
    For {
        /// `label:`
        label: Option<Ident>,
        /// Unrolled at compile time.
        inline: bool,
        /// An array or a range.
        iter: ExprId,
        /// The element.
        elem: Capture,
        /// Its number.
        index: Option<Capture>,
        /// What is repeated.
        body: StmtId,
    },
    /// `while (cond) : (step) body`
    While {
        /// `label:`
        label: Option<Ident>,
        /// Unrolled at compile time.
        inline: bool,
        /// Tested before each iteration.
        cond: ExprId,
        /// Runs after each iteration, `continue` included; an assignment or an expression.
        step: Option<StmtId>,
        /// What is repeated.
        body: StmtId,
    },
    /// `comptime { … }`
    Comptime(Block),
}
