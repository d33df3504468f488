//! Handlers of colors in teardown, and the task that calls them.

use dflow_ir::registers::{self, BankKind};
use dflow_ir::scalar::BinaryOp;
use dflow_ir::ty::Ty;
use dflow_syntax::{Diagnostic, Span, codes};

use super::Call;
use super::args::handler;
use super::queue::color_value;
use crate::sema::address::typed;
use crate::sema::{Operand, R, Sema};
use crate::typed::{Expr, ExprKind, FuncIdx, Stmt, StmtKind};

/// `@set_teardown_handler(function, color)`.
pub(super) fn set_handler(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let func = handler(sema, call)?;
    let (value, span) = sema.arg_value(call.args[1], None)?;
    let color = color_value(sema, &value, span)?;
    let known = sema.program_mut().color_handlers.iter().find(|known| known.0 == color);
    if let Some(&(_, _, first)) = known {
        let message = format!("color {} has a teardown handler already", color.index());
        return Err(sema.report(
            Diagnostic::new(codes::INVALID_ARGUMENT, message, call.span)
                .label("second handler")
                .secondary(first, "first handler")
                .help("let one function do the work of both"),
        ));
    }
    sema.program_mut().color_handlers.push((color, func, call.span));
    Ok(sema.void_operand())
}

impl Sema<'_, '_> {
    /// Makes the task that calls the handlers of a program's colors, once all are known.
    pub(crate) fn finish_teardown(&mut self) {
        let target = self.target.id;
        let Some(program) = &mut self.program else { return };
        let handlers = std::mem::take(&mut program.color_handlers);
        let Some(&(_, _, span)) = handlers.first() else { return };
        let mut body = Vec::new();
        for (color, func, span) in handlers {
            let word = u16::from(color.index() / 16);
            let address = registers::address(target, BankKind::Teardown, word);
            let Some(address) = address else { unreachable!("every target has these two words") };
            body.push(call_if_torn(address, color.index() % 16, func, span));
        }
        self.in_teardown_task(body, span);
    }
}

/// `if (the color is among those in teardown) handler();`
fn call_if_torn(address: u16, bit: u8, func: FuncIdx, span: Span) -> Stmt {
    let address = typed(ExprKind::Const(address.into()), Ty::I16, span);
    let set = typed(ExprKind::GetConfig(address), Ty::I16, span);
    let bit = typed(ExprKind::Const(1 << bit), Ty::I16, span);
    let both = typed(ExprKind::Binary(BinaryOp::And, set, bit.clone()), Ty::I16, span);
    let cond = typed(ExprKind::Binary(BinaryOp::Eq, both, bit), Ty::I8, span);
    let call = ExprKind::Call { func, args: Vec::new() };
    let call = StmtKind::Expr(Expr { kind: Box::new(call), ty: None, span });
    let then = vec![Stmt { kind: call, span }];
    Stmt { kind: StmtKind::If { cond, then, otherwise: Vec::new() }, span }
}
