//! The builder's part for expressions, identifiers and literals.

use super::build::{Builder, Chain, Init, Located, is_foreign_name};
use crate::Dialect;
use crate::ast::*;
use crate::diagnostic::{Diagnostic, codes};
use crate::literal::{self, Fault, Number};

impl Builder<'_> {
    pub(crate) fn chain(&mut self, chain: Chain) -> ExprId {
        let Chain { first, rest } = chain;
        let mut operands = vec![first];
        let mut ops: Vec<BinaryOp> = Vec::new();
        for (op, operand) in rest {
            while let Some(&top) = ops.last()
                && top.precedence() >= op.precedence()
            {
                if top.is_comparison() && op.is_comparison() {
                    self.report_comparison(op, &operands, operand);
                }
                ops.pop();
                self.reduce(top, &mut operands);
            }
            ops.push(op);
            operands.push(operand);
        }
        while let Some(op) = ops.pop() {
            self.reduce(op, &mut operands);
        }
        operands[0].node
    }

    pub(crate) fn chain_with(
        &mut self,
        chain: Chain,
        op: BinaryOp,
        last: Located<ExprId>,
    ) -> ExprId {
        self.chain(chain.push(op, last))
    }

    /// Joins the last two operands. There are always two: operators stand between operands.
    fn reduce(&mut self, op: BinaryOp, operands: &mut Vec<Located<ExprId>>) {
        if let (Some(rhs), Some(lhs)) = (operands.pop(), operands.pop()) {
            let node = Expr::Binary { op, lhs: lhs.node, rhs: rhs.node };
            let id = self.expr(node, lhs.l, rhs.r);
            operands.push(Located::new(id, lhs.l, rhs.r));
        }
    }

    fn report_comparison(
        &mut self,
        op: BinaryOp,
        operands: &[Located<ExprId>],
        last: Located<ExprId>,
    ) {
        let start = operands.len().checked_sub(2).map_or(last.l, |at| operands[at].l);
        let span = self.span(start, last.r);
        let message = format!("the result of a comparison is compared with `{}`", op.symbol());
        self.report(
            Diagnostic::new(codes::CHAINED_COMPARISON, message, span)
                .help("join two comparisons with `and`, or put one of them in parentheses"),
        );
    }

    pub(crate) fn unary(
        &mut self,
        op: UnaryOp,
        operand: Located<ExprId>,
        l: u32,
        r: u32,
    ) -> Located<ExprId> {
        let id = self.expr(Expr::Unary { op, operand: operand.node }, l, r);
        Located::new(id, l, r)
    }

    pub(crate) fn comptime(&mut self, operand: Located<ExprId>, l: u32, r: u32) -> Located<ExprId> {
        let id = self.expr(Expr::Comptime(operand.node), l, r);
        Located::new(id, l, r)
    }

    pub(crate) fn if_expr(
        &mut self,
        cond: ExprId,
        then: ExprId,
        otherwise: Option<ExprId>,
        l: u32,
        r: u32,
    ) -> Located<ExprId> {
        let id = self.expr(Expr::If { cond, then, otherwise }, l, r);
        Located::new(id, l, r)
    }

    pub(crate) fn tensor_access(
        &mut self,
        vars: Vec<Ident>,
        extents: Vec<ExprId>,
        access: ExprId,
        l: u32,
        r: u32,
    ) -> Located<ExprId> {
        let span = self.span(l, r);
        let node = match self.tree.expr(access) {
            Expr::Index { base, indices } => {
                let (base, indices) = (*base, indices.clone());
                Expr::TensorAccess { vars, extents, base, indices }
            }
            _ => {
                let message = "a tensor access ends with the indices into an array";
                self.report(
                    Diagnostic::new(codes::UNEXPECTED_TOKEN, message, span)
                        .help("write `|i|{n} -> array[i]`"),
                );
                Expr::Error
            }
        };
        Located::new(self.expr(node, l, r), l, r)
    }

    pub(crate) fn name(&mut self, name: Ident, l: u32, r: u32) -> ExprId {
        if is_foreign_name(self.slice_text(l, r)) {
            self.foreign_names.push(name.span);
        }
        self.expr(Expr::Name(name.name), l, r)
    }

    pub(crate) fn builtin(&mut self, name: Ident, args: Vec<ExprId>, l: u32, r: u32) -> ExprId {
        self.expr(Expr::Builtin { name: name.name, name_span: name.span, args }, l, r)
    }

    pub(crate) fn typed(&mut self, ty: ExprId, init: Init, l: u32, r: u32) -> ExprId {
        let node = match init {
            Init::Fields(fields) => Expr::TypedStruct { ty, fields },
            Init::Elems(elems) => Expr::TypedArray { ty, elems },
        };
        self.expr(node, l, r)
    }

    pub(crate) fn slice(&mut self, elem: ExprId, l: u32, r: u32) -> ExprId {
        if self.dialect == Dialect::Csl {
            let span = self.span(l, r);
            self.report(
                Diagnostic::new(codes::ZIG_HABIT, "there are no slices", span)
                    .help("write the length, `[n]T`, or a pointer to the first element, `[*]T`"),
            );
            return self.expr(Expr::Error, l, r);
        }
        self.expr(Expr::ArrayType { dims: Vec::new(), elem }, l, r)
    }

    pub(crate) fn pointer(
        &mut self,
        many: bool,
        constant: bool,
        pointee: ExprId,
        l: u32,
        r: u32,
    ) -> ExprId {
        self.expr(Expr::PointerType { many, constant, pointee }, l, r)
    }

    // ---- Words

    pub(crate) fn ident(&mut self, l: u32, r: u32) -> Ident {
        let name = self.interner.intern(self.slice_text(l, r));
        Ident { name, span: self.span(l, r) }
    }

    pub(crate) fn builtin_name(&mut self, l: u32, r: u32) -> Ident {
        let name = self.interner.intern(self.slice_text(l, r).trim_start_matches('@'));
        Ident { name, span: self.span(l, r) }
    }

    pub(crate) fn number(&mut self, l: u32, r: u32) -> ExprId {
        let node = match literal::number(self.slice_text(l, r)) {
            Ok(Number::Int(value)) => Expr::Int(value),
            Ok(Number::Float(value)) => Expr::Float(value),
            Err(fault) => self.faulty(fault, l),
        };
        self.expr(node, l, r)
    }

    pub(crate) fn string(&mut self, l: u32, r: u32) -> ExprId {
        let bytes = self.string_bytes(l, r);
        self.expr(Expr::Str(bytes), l, r)
    }

    pub(super) fn string_bytes(&mut self, l: u32, r: u32) -> Vec<u8> {
        let (bytes, faults) = literal::string(self.slice_text(l, r));
        for fault in faults {
            self.faulty(fault, l);
        }
        bytes
    }

    pub(crate) fn character(&mut self, l: u32, r: u32) -> ExprId {
        let node = match literal::character(self.slice_text(l, r)) {
            Ok(value) => Expr::Int(value),
            Err(fault) => self.faulty(fault, l),
        };
        self.expr(node, l, r)
    }

    fn faulty(&mut self, fault: Fault, l: u32) -> Expr {
        let Fault { code, message, range } = fault;
        let at = |offset: usize| l + u32::try_from(offset).unwrap_or(0);
        let span = self.span(at(range.start), at(range.end));
        let diagnostic = Diagnostic::new(code, message, span);
        self.report(if code == codes::INVALID_ESCAPE {
            diagnostic.help("the escapes are \\n \\r \\t \\\\ \\' \\\" \\xHH \\uHHHH \\UHHHHHH")
        } else {
            diagnostic
        });
        Expr::Error
    }
}
