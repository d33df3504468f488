//! What stands at file scope, and declarations.

use super::{Block, ExprId, Ident, Param};
use crate::Span;

/// Something at file scope, or inside a tile block.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// From its first word to its last.
    pub span: Span,
}

/// The kinds of items.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemKind {
    /// `const`, `var` or `param`.
    Var(VarDecl),
    /// `fn` or `task`.
    Fn(FnDecl),
    /// `comptime { … }`
    Comptime(Block),
    /// `layout { … }`
    Layout(Block),
    /// `tile name { … }` (DFL)
    Tile(TileDecl),
    /// `host { … }` (DFL)
    Host(Block),
    /// `test "name" { … }` (DFL)
    Test(TestDecl),
    /// Could not be read.
    Error,
}

/// A module written in place.
#[derive(Clone, Debug, PartialEq)]
pub struct TileDecl {
    /// Its name.
    pub name: Ident,
    /// What it declares: variables, functions, tasks and comptime blocks.
    pub items: Vec<Item>,
}

/// A named test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestDecl {
    /// What it promises.
    pub name: String,
    /// Place of the name.
    pub name_span: Span,
    /// Host code.
    pub body: Block,
}

/// Whether a symbol is visible outside, or comes from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Neither word.
    None,
    /// `export`
    Export,
    /// `extern`
    Extern,
}

/// Which of the three words introduces a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VarKind {
    /// `const`
    Const,
    /// `var`
    Var,
    /// `param`
    Param,
}

/// A constant, variable or parameter of a module, or a local one.
#[derive(Clone, Debug, PartialEq)]
pub struct VarDecl {
    /// `export`, `extern` or neither.
    pub storage: Storage,
    /// Whether `comptime` stands before.
    pub comptime: bool,
    /// `const`, `var` or `param`.
    pub kind: VarKind,
    /// Its name.
    pub name: Ident,
    /// What stands behind the colon.
    pub ty: Option<ExprId>,
    /// `align(…)`
    pub align: Option<ExprId>,
    /// `linksection(…)`
    pub linksection: Option<ExprId>,
    /// `linkname(…)`
    pub linkname: Option<ExprId>,
    /// What stands behind `=`.
    pub init: Option<ExprId>,
}

/// A function or task.
#[derive(Clone, Debug, PartialEq)]
pub struct FnDecl {
    /// `export`, `extern` or neither.
    pub storage: Storage,
    /// Whether `inline` stands before.
    pub inline: bool,
    /// `task` rather than `fn`.
    pub is_task: bool,
    /// Its name.
    pub name: Ident,
    /// Its parameters.
    pub params: Vec<Param>,
    /// The type of its result.
    pub ret: ExprId,
    /// `linkname(…)`
    pub linkname: Option<ExprId>,
    /// `linksection(…)`
    pub linksection: Option<ExprId>,
    /// Its code; none if a `;` stands there.
    pub body: Option<Block>,
}
