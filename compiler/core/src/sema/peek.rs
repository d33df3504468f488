//! The type of an expression that is not evaluated.

use std::rc::Rc;

use dflow_syntax::ast::{Expr as Ast, ExprId};

use super::control::Wish;
use super::types::TypeId;
use super::{BodyKind, R, Sema};

/// Looks ahead within one another, at most: what is nested deeper is looked at twice as often.
const MAX_PEEKING: u32 = 3;

impl Sema<'_, '_> {
    /// The type of an expression, which is analyzed and not evaluated; `wanted` is that of untyped
    /// numbers.
    pub(crate) fn type_of(&mut self, id: ExprId, wanted: Option<TypeId>) -> R<TypeId> {
        match self.frame().kind {
            BodyKind::Code { .. } | BodyKind::Inline(_) => self.type_in_code(id, wanted),
            BodyKind::Layout | BodyKind::TopLevel | BodyKind::Value => self.type_here(id, wanted),
        }
    }

    /// The type that an expression of this code will have, which is analyzed once more later: comptime
    /// variables and labels are left as they are. `None` where this would be done too often.
    pub(crate) fn type_ahead(&mut self, id: ExprId, wanted: Option<TypeId>) -> R<Option<TypeId>> {
        if self.peeking == MAX_PEEKING || !self.is_runtime() {
            return Ok(None);
        }
        let frame = self.frame();
        let (slots, vars) = (frame.slots.clone(), frame.vars.clone());
        let (labels, kind) = (frame.labels.clone(), frame.kind.clone());
        self.peeking += 1;
        let ty = self.type_of(id, wanted);
        self.peeking -= 1;
        let frame = self.frame_mut();
        (frame.slots, frame.vars) = (slots, vars);
        (frame.labels, frame.kind) = (labels, kind);
        ty.map(Some)
    }

    /// The type of an expression where it stands.
    fn type_here(&mut self, id: ExprId, wanted: Option<TypeId>) -> R<TypeId> {
        let file = Rc::clone(&self.frame().file);
        match file.file.expr(id) {
            // Places need not be readable now: a variable has a type at compile time, too.
            Ast::Name(_) | Ast::Field { .. } | Ast::Index { .. } | Ast::Deref(_) => {
                let place = self.place(id)?;
                Ok(self.place_type(&place))
            }
            _ => {
                let operand = self.wished(id, Wish { hint: None, wanted })?;
                Ok(self.operand_type(&operand))
            }
        }
    }

    /// In code: as if it ran, with the statements thrown away. Functions asked for on the way are
    /// forgotten again where nothing else can refer to them.
    fn type_in_code(&mut self, id: ExprId, wanted: Option<TypeId>) -> R<TypeId> {
        let before = self.marks();
        let comptime = std::mem::replace(&mut self.frame_mut().comptime, false);
        self.open_list();
        let result = self.type_here(id, wanted);
        self.close_list();
        self.frame_mut().comptime = comptime;
        let after = self.marks();
        if after[1..] == before[1..] {
            let known = before[0];
            let program = self.program_mut();
            program.typed.funcs.truncate(known);
            program.funcs.retain(|_, idx| (idx.0 as usize) < known);
            program.pending.retain(|(idx, _)| (idx.0 as usize) < known);
        }
        result
    }

    /// Counts of functions, and of all that may refer to functions.
    fn marks(&mut self) -> [usize; 5] {
        let program = self.program_mut();
        let typed = &program.typed;
        [
            typed.funcs.len(),
            typed.globals.len(),
            typed.tasks.len(),
            program.exports.len(),
            typed.initial_dsrs.len(),
        ]
    }
}
