//! The direct parts of a node, in the order they are written.

use super::{
    Block, EnumElem, Expr, ExprId, FieldDecl, FieldInit, Param, ParamTy, Prong, Stmt, StmtId,
    VarDecl,
};

/// A direct part of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// An expression.
    Expr(ExprId),
    /// A statement.
    Stmt(StmtId),
}

impl Expr {
    /// Calls `visit` with the role and index of each direct part. Roles are for reading: `cond`, `then`; they
    /// are empty where the position says it all.
    pub fn for_each_child(&self, visit: &mut impl FnMut(&'static str, Child)) {
        let mut each = |role, id: ExprId| visit(role, Child::Expr(id));
        match self {
            Self::Error
            | Self::Int(_)
            | Self::Float(_)
            | Self::Str(_)
            | Self::Bool(_)
            | Self::Name(_)
            | Self::Asm => {}
            Self::Builtin { name: _, name_span: _, args } => list("", args, visit),
            Self::Call { callee, args } => {
                each("callee", *callee);
                list("", args, visit);
            }
            Self::Field { base, name: _ } => each("", *base),
            Self::Deref(inner) | Self::Comptime(inner) => each("", *inner),
            Self::Index { base, indices } => {
                each("base", *base);
                list("", indices, visit);
            }
            Self::Unary { op: _, operand } => each("", *operand),
            Self::Binary { op: _, lhs, rhs } => {
                each("", *lhs);
                each("", *rhs);
            }
            Self::Block { label: _, block } => block.for_each_child(visit),
            Self::If { cond, then, otherwise } => {
                each("cond", *cond);
                each("then", *then);
                otherwise.iter().for_each(|&id| each("else", id));
            }
            Self::Switch { subject, prongs } => {
                each("subject", *subject);
                prongs.iter().for_each(|prong| prong.for_each_child(visit));
            }
            Self::StructLiteral { fields } => inits(fields, visit),
            Self::TupleLiteral { elems } => list("", elems, visit),
            Self::TypedStruct { ty, fields } => {
                each("type", *ty);
                inits(fields, visit);
            }
            Self::TypedArray { ty, elems } => {
                each("type", *ty);
                list("", elems, visit);
            }
            Self::ArrayType { dims, elem } => {
                list("dim", dims, visit);
                visit("elem", Child::Expr(*elem));
            }
            Self::PointerType { many: _, constant: _, pointee } => each("", *pointee),
            Self::FnType { is_task: _, params, ret } => {
                params.iter().for_each(|param| param.for_each_child(visit));
                visit("result", Child::Expr(*ret));
            }
            Self::StructType { kind: _, is_union: _, fields } => {
                for FieldDecl { name: _, ty } in fields {
                    each("field", *ty);
                }
            }
            Self::EnumType { backing, elems } => {
                backing.iter().for_each(|&id| each("backing", id));
                for EnumElem { name: _, value } in elems {
                    value.iter().for_each(|&id| each("value", id));
                }
            }
            Self::TensorAccess { vars: _, extents, base, indices } => {
                list("extent", extents, visit);
                visit("base", Child::Expr(*base));
                list("", indices, visit);
            }
        }
    }
}

impl Stmt {
    /// As [`Expr::for_each_child`].
    pub fn for_each_child(&self, visit: &mut impl FnMut(&'static str, Child)) {
        let mut each = |role, id: ExprId| visit(role, Child::Expr(id));
        match self {
            Self::Error | Self::Empty | Self::Continue { label: _ } => {}
            Self::Var(decl) => decl.for_each_child(visit),
            Self::Expr(id) => each("", *id),
            Self::Assign { op: _, target, value } => {
                each("", *target);
                each("", *value);
            }
            Self::Return(value) | Self::Break { label: _, value } => {
                value.iter().for_each(|&id| each("", id));
            }
            Self::For { label: _, inline: _, iter, elem: _, index: _, body } => {
                each("over", *iter);
                visit("body", Child::Stmt(*body));
            }
            Self::While { label: _, inline: _, cond, step, body } => {
                each("cond", *cond);
                step.iter().for_each(|&id| visit("step", Child::Stmt(id)));
                visit("body", Child::Stmt(*body));
            }
            Self::Comptime(block) => block.for_each_child(visit),
        }
    }
}

impl Block {
    /// Calls `visit` with each statement.
    pub fn for_each_child(&self, visit: &mut impl FnMut(&'static str, Child)) {
        self.stmts.iter().for_each(|&id| visit("", Child::Stmt(id)));
    }
}

impl VarDecl {
    /// Calls `visit` with type, attributes and value, as far as they are there.
    pub fn for_each_child(&self, visit: &mut impl FnMut(&'static str, Child)) {
        let Self {
            storage: _,
            comptime: _,
            kind: _,
            name: _,
            ty,
            align,
            linksection,
            linkname,
            init,
        } = self;
        let parts = [
            ("type", ty),
            ("align", align),
            ("linksection", linksection),
            ("linkname", linkname),
            ("value", init),
        ];
        for (role, part) in parts {
            part.iter().for_each(|&id| visit(role, Child::Expr(id)));
        }
    }
}

impl Prong {
    fn for_each_child(&self, visit: &mut impl FnMut(&'static str, Child)) {
        let Self { cases, body, span: _ } = self;
        list("case", cases, visit);
        let role = if cases.is_empty() { "else" } else { "body" };
        visit(role, Child::Expr(*body));
    }
}

impl Param {
    /// Calls `visit` with the type, unless it is `anytype`.
    pub fn for_each_child(&self, visit: &mut impl FnMut(&'static str, Child)) {
        match self.ty {
            ParamTy::Anytype => {}
            ParamTy::Expr(id) => visit("param", Child::Expr(id)),
        }
    }
}

fn list(role: &'static str, ids: &[ExprId], visit: &mut impl FnMut(&'static str, Child)) {
    ids.iter().for_each(|&id| visit(role, Child::Expr(id)));
}

fn inits(fields: &[FieldInit], visit: &mut impl FnMut(&'static str, Child)) {
    for FieldInit { name: _, value } in fields {
        visit("field", Child::Expr(*value));
    }
}
