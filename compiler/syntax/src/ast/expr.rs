//! Expressions, types and anonymous structs included.

use super::{Block, ExprId, Ident};
use crate::{Span, Symbol};

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// Could not be read.
    Error,
    /// An integer or character literal.
    Int(u128),
    /// A floating-point literal.
    Float(f64),
    /// A string literal, escapes resolved. Bytes: `\xHH` may break UTF-8.
    Str(Vec<u8>),
    /// `true` or `false`
    Bool(bool),
    /// An identifier.
    Name(Symbol),
    /// `@name(args)`
    Builtin {
        /// Without the `@`.
        name: Symbol,
        /// Place of `@name`.
        name_span: Span,
        /// The arguments.
        args: Vec<ExprId>,
    },
    /// `callee(args)`
    Call {
        /// What is called.
        callee: ExprId,
        /// The arguments.
        args: Vec<ExprId>,
    },
    /// `base.name`; the name may be any word, keywords included.
    Field {
        /// Of what.
        base: ExprId,
        /// Which.
        name: Ident,
    },
    /// `base.*`
    Deref(ExprId),
    /// `base[indices]`, at least one index.
    Index {
        /// What is indexed.
        base: ExprId,
        /// One per dimension.
        indices: Vec<ExprId>,
    },
    /// A prefix operator.
    Unary {
        /// Which.
        op: UnaryOp,
        /// On what.
        operand: ExprId,
    },
    /// An infix operator.
    Binary {
        /// Which.
        op: BinaryOp,
        /// Left operand.
        lhs: ExprId,
        /// Right operand.
        rhs: ExprId,
    },
    /// `comptime expr`
    Comptime(ExprId),
    /// `{ … }` or `label: { … }`
    Block {
        /// `label:`
        label: Option<Ident>,
        /// Its statements; none makes the void value.
        block: Block,
    },
    /// `if (cond) then else otherwise`. A branch that is a statement (an assignment, `return`) is wrapped in a
    /// block of that one statement.
    If {
        /// Between the parentheses.
        cond: ExprId,
        /// The branch for true.
        then: ExprId,
        /// The branch for false.
        otherwise: Option<ExprId>,
    },
    /// `switch (subject) { prongs }`
    Switch {
        /// Between the parentheses.
        subject: ExprId,
        /// In order.
        prongs: Vec<Prong>,
    },
    /// `.{ .name = value, … }`, at least one field.
    StructLiteral {
        /// In order.
        fields: Vec<FieldInit>,
    },
    /// `.{ a, b, … }`; also the empty `.{}`.
    TupleLiteral {
        /// In order.
        elems: Vec<ExprId>,
    },
    /// `Type{ .name = value, … }`; also the empty `Type{}` of a named type.
    TypedStruct {
        /// The type.
        ty: ExprId,
        /// In order.
        fields: Vec<FieldInit>,
    },
    /// `[n]T{ a, b, … }`; `ty` is an [`Expr::ArrayType`], or a name when elements stand in the braces.
    TypedArray {
        /// The type of the whole array.
        ty: ExprId,
        /// In order.
        elems: Vec<ExprId>,
    },
    /// `[dims]elem`. No dimension at all is a slice `[]elem`, which only DFL files can write.
    ArrayType {
        /// One per dimension.
        dims: Vec<ExprId>,
        /// Type of an element.
        elem: ExprId,
    },
    /// `*T`, `*const T`, `[*]T`, `[*]const T`
    PointerType {
        /// `[*]`: to the first of many.
        many: bool,
        /// `const`
        constant: bool,
        /// To what.
        pointee: ExprId,
    },
    /// `fn(params) ret` or `task(params) ret`
    FnType {
        /// `task`
        is_task: bool,
        /// Types; names are allowed and mean nothing.
        params: Vec<Param>,
        /// The type of the result.
        ret: ExprId,
    },
    /// `struct { name: type, … }` and its relatives.
    StructType {
        /// `extern` or `packed`.
        kind: StructKind,
        /// `union`
        is_union: bool,
        /// In order.
        fields: Vec<FieldDecl>,
    },
    /// `enum(backing) { name, name = value, … }`
    EnumType {
        /// Between the parentheses.
        backing: Option<ExprId>,
        /// In order.
        elems: Vec<EnumElem>,
    },
    /// `|vars|{extents} -> base[indices]`
    TensorAccess {
        /// Induction variables.
        vars: Vec<Ident>,
        /// One per variable.
        extents: Vec<ExprId>,
        /// The array.
        base: ExprId,
        /// Affine in the variables.
        indices: Vec<ExprId>,
    },
    /// `asm ( … )`; its operands are read and not kept.
    Asm,
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `!`
    Not,
    /// `~`
    BitNot,
    /// `&`
    AddressOf,
}

impl UnaryOp {
    /// As written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Neg => "-",
            Self::Not => "!",
            Self::BitNot => "~",
            Self::AddressOf => "&",
        }
    }
}

macro_rules! binary_ops {
    ($($(#[$doc:meta])* $name:ident $symbol:literal $precedence:literal;)*) => {
        /// Infix operators, loosest first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum BinaryOp { $($(#[$doc])* $name),* }

        impl BinaryOp {
            /// As written.
            #[must_use]
            pub fn symbol(self) -> &'static str {
                match self { $(Self::$name => $symbol),* }
            }

            /// How tightly it binds: higher is tighter. All are left-associative but comparisons, which
            /// do not chain.
            #[must_use]
            pub fn precedence(self) -> u8 {
                match self { $(Self::$name => $precedence),* }
            }
        }
    };
}

binary_ops! {
    /// `or`
    Or "or" 1;
    /// `and`
    And "and" 2;
    /// `==`
    Eq "==" 3;
    /// `!=`
    Ne "!=" 3;
    /// `<`
    Lt "<" 3;
    /// `<=`
    Le "<=" 3;
    /// `>`
    Gt ">" 3;
    /// `>=`
    Ge ">=" 3;
    /// `&`
    BitAnd "&" 4;
    /// `^`
    BitXor "^" 4;
    /// `|`
    BitOr "|" 4;
    /// `<<`
    Shl "<<" 5;
    /// `>>`
    Shr ">>" 5;
    /// `+`
    Add "+" 6;
    /// `-`
    Sub "-" 6;
    /// `*`
    Mul "*" 7;
    /// `/`
    Div "/" 7;
    /// `%`
    Rem "%" 7;
}

impl BinaryOp {
    /// Whether it compares and gives a bool.
    #[must_use]
    pub fn is_comparison(self) -> bool {
        matches!(self, Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge)
    }
}

/// One `.name = value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldInit {
    /// The field.
    pub name: Ident,
    /// Its value.
    pub value: ExprId,
}

/// One `name: type` of a struct or union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldDecl {
    /// The field.
    pub name: Ident,
    /// Its type.
    pub ty: ExprId,
}

/// One `name` or `name = value` of an enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnumElem {
    /// The element.
    pub name: Ident,
    /// Its number, if given.
    pub value: Option<ExprId>,
}

/// How the fields of a struct or union lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructKind {
    /// As the compiler likes.
    Auto,
    /// `extern`: in order, as the ABI says.
    Extern,
    /// `packed`: bit after bit.
    Packed,
}

/// One alternative of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prong {
    /// The values; none for `else`.
    pub cases: Vec<ExprId>,
    /// The value or block. A statement is wrapped in a block of that one statement.
    pub body: ExprId,
    /// The whole prong.
    pub span: Span,
}

/// A parameter of a function or task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Whether `comptime` stands before.
    pub comptime: bool,
    /// None in function types and external declarations.
    pub name: Option<Ident>,
    /// Its type.
    pub ty: ParamTy,
    /// Whether it may be left out, and is void then (`= {}`).
    pub optional: bool,
    /// The whole parameter.
    pub span: Span,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamTy {
    /// `anytype`
    Anytype,
    /// Anything else.
    Expr(ExprId),
}
