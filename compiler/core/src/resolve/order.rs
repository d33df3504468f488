//! The order in which operands are read: from left to right.
//!
//! What code reads is written down as an expression, and read where that is used; calls happen where they stand.
//! So what is read before a call and used after it has to be kept in between. Which expressions these are is seen
//! from the tree, once per file; where nothing can change in between, nothing is kept.
//!
//! Invariant: an expression is *early* if something that may change what it reads comes after it, within the same
//! statement.

use dflow_syntax::Interner;
use dflow_syntax::ast::{BinaryOp, Child, Expr, ExprId, File, Stmt};

/// Builtins that give the same for the same arguments and change nothing. One that is missing here costs a local.
pub(crate) const PLAIN_BUILTINS: [&str; 12] = [
    "as",
    "bitcast",
    "get_color",
    "get_dsd",
    "get_int",
    "has_field",
    "increment_dsd_offset",
    "is_arch",
    "is_same_type",
    "set_dsd_base_addr",
    "set_dsd_length",
    "set_dsd_stride",
];

/// Per expression of a file: whether it is early.
pub(super) fn early(file: &File, names: &Interner) -> Vec<bool> {
    let mut order = Order { file, changes: Vec::new(), early: vec![false; file.expr_count()] };
    for (_, expr) in file.exprs() {
        let changes = order.may_change(expr, names);
        order.changes.push(changes);
        // What decides which of the others is looked at is used before them.
        let decides = matches!(expr, Expr::If { .. } | Expr::Switch { .. })
            || matches!(expr, Expr::Binary { op: BinaryOp::And | BinaryOp::Or, .. });
        if !decides {
            order.mark(&operands(expr));
        }
    }
    for stmt in file.stmts() {
        if let Stmt::Assign { op: _, target, value } = stmt {
            order.mark(&[*target, *value]);
        }
    }
    order.early
}

/// The expressions in an expression, in the order in which they are looked at; not those of statements in it.
fn operands(expr: &Expr) -> Vec<ExprId> {
    let mut operands = Vec::new();
    expr.for_each_child(&mut |_, child| {
        if let Child::Expr(id) = child {
            operands.push(id);
        }
    });
    operands
}

struct Order<'f> {
    file: &'f File,
    /// Whether an expression may change what others read. Those in it come before it.
    changes: Vec<bool>,
    early: Vec<bool>,
}

impl Order<'_> {
    fn may_change(&self, expr: &Expr, names: &Interner) -> bool {
        let itself = match expr {
            Expr::Call { .. } | Expr::Block { .. } => true,
            Expr::Builtin { name, .. } => !PLAIN_BUILTINS.contains(&names.resolve(*name)),
            _ => false,
        };
        itself || operands(expr).iter().any(|id| self.changes[id.0 as usize])
    }

    /// Of expressions that are looked at one after the other, marks those before the last that may change something.
    fn mark(&mut self, operands: &[ExprId]) {
        let last = operands.iter().rposition(|id| self.changes[id.0 as usize]);
        operands[..last.unwrap_or(0)].iter().for_each(|&id| self.mark_all(id));
    }

    /// Marks an expression and all in it.
    fn mark_all(&mut self, id: ExprId) {
        let mut left = vec![id];
        while let Some(id) = left.pop() {
            if !std::mem::replace(&mut self.early[id.0 as usize], true) {
                left.extend(operands(self.file.expr(id)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PLAIN_BUILTINS;
    use crate::builtins::is_builtin;

    #[test]
    fn what_is_plain_is_a_builtin() {
        PLAIN_BUILTINS.iter().for_each(|name| assert!(is_builtin(name), "{name}"));
    }
}
