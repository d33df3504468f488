//! The type of an expression that is not evaluated.

use std::rc::Rc;

use dflow_syntax::ast::{Expr as Ast, ExprId, StmtId};
use rustc_hash::FxHashMap;

use super::control::Wish;
use super::types::TypeId;
use super::{BodyKind, R, Sema};

/// Bodies that are looked ahead in, within one another, at most: what an inline function calls there
/// is looked at twice as often.
const MAX_PEEKING: u32 = 3;

/// Looks ahead at the operands of one expression, at most; trees are less deep.
const MAX_LOOKS: u32 = 1 << 10;

/// The types of expressions of a body that were looked ahead at, each once: kept from the outermost
/// operator that asks for one to the end of its operands.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// Operators that ask, within one another.
    open: u32,
    count: u32,
    /// A look is under way.
    ahead: bool,
    /// By expression, wanted type, and the way to where it is looked at.
    known: FxHashMap<(ExprId, Option<TypeId>, u64), TypeId>,
    state: State,
}

/// What the type of an expression depends on: analysis that comes the same way finds the same.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    /// The statements since the outermost operator, as a hash.
    way: u64,
    /// Writes of comptime variables.
    written: u32,
}

impl Looks {
    /// The operands of an operator that asks begin.
    pub(crate) fn open(&mut self) {
        self.open += 1;
    }

    pub(crate) fn close(&mut self) {
        self.open -= 1;
        if self.open == 0 {
            *self = Looks::default();
        }
    }

    /// A statement begins.
    pub(crate) fn stmt(&mut self, id: StmtId) {
        if self.open > 0 {
            let mixed = self.state.way.rotate_left(5) ^ (u64::from(id.0) + 1);
            self.state.way = mixed.wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }

    /// A comptime variable is written.
    pub(crate) fn written(&mut self) {
        self.state.written += 1;
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// A block ends as an expression: its own declarations change nothing that comes after it.
    pub(crate) fn block_ends(&mut self, before: State) {
        if self.state.written == before.written {
            self.state.way = before.way;
        }
    }
}

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
        let looks = &self.frame().looks;
        let key = (id, wanted, looks.state.way);
        if let Some(&ty) = looks.known.get(&key) {
            return Ok(Some(ty));
        }
        let (outermost, count) = (!looks.ahead, looks.count);
        if !self.is_runtime() || count == MAX_LOOKS || outermost && self.peeking == MAX_PEEKING {
            return Ok(None);
        }
        self.frame_mut().looks.count += 1;
        self.frame_mut().looks.ahead = true;
        self.peeking += u32::from(outermost);
        let ty = self.look(id, wanted);
        self.peeking -= u32::from(outermost);
        let looks = &mut self.frame_mut().looks;
        looks.ahead = !outermost;
        let ty = ty?;
        looks.known.insert(key, ty);
        Ok(Some(ty))
    }

    /// The type of an expression; what its analysis makes is forgotten.
    fn look(&mut self, id: ExprId, wanted: Option<TypeId>) -> R<TypeId> {
        let frame = self.frame();
        let (slots, vars, state) = (frame.slots.clone(), frame.vars.clone(), frame.looks.state);
        let (labels, kind) = (frame.labels.clone(), frame.kind.clone());
        let made = self.emitter().made();
        let ty = self.type_of(id, wanted);
        self.emitter().forget(made);
        let frame = self.frame_mut();
        (frame.slots, frame.vars, frame.looks.state) = (slots, vars, state);
        (frame.labels, frame.kind) = (labels, kind);
        ty
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
