//! Fabric operands of `@map`: descriptors of one word each, and words of two elements.
//!
//! What a descriptor does when an operation ends is done once, with the last element of all. So a word goes through a
//! descriptor that does nothing of it, but for the last one.

use dflow_ir::dsd::FabricDsd;
use dflow_ir::scalar::{BinaryOp, Convert};
use dflow_ir::ty::Ty;
use dflow_syntax::{Span, codes};

use super::walk::{Limit, computed_limit, limit_of, word_of};
use super::{Loop, move_of};
use crate::builtins::dsd::element_bytes;
use crate::sema::address::typed;
use crate::sema::types::TypeId;
use crate::sema::value::{Data, DsdValue, Value};
use crate::sema::{Operand, R, Sema};
use crate::typed::{self, Expr, ExprKind, LocalIdx, Stmt, StmtKind, Vector};

/// A fabric descriptor and its elements.
pub(super) struct Fabric {
    /// A descriptor of one word.
    one: Expr,
    /// The one of the last word, if that does more.
    last: Option<Expr>,
    pub(super) limit: Limit,
    /// What it is; none if that is known only at run time.
    pub(super) known: Option<FabricDsd>,
    ty: TypeId,
    machine: Ty,
    /// A word, where it waits for what is done with it.
    word: LocalIdx,
    pub(super) span: Span,
}

/// Prepares a fabric descriptor with elements of a type.
pub(super) fn prepare(
    sema: &mut Sema<'_, '_>,
    operand: Operand,
    (ty, input): (TypeId, bool),
    span: Span,
) -> R<Fabric> {
    element_bytes(sema, ty, span)?;
    let machine = sema.machine_ty(ty, span)?;
    let (one, last, limit, known) = match operand {
        Operand::Const(Value { data: Data::Dsd(dsd), .. }) => match dsd.as_ref() {
            DsdValue::Fabric { desc, extent } => {
                let limit = limit_of(sema, extent, span)?;
                let (one, last) = of_one_word(sema, *desc, input, span)?;
                (one, last, limit, Some(*desc))
            }
            DsdValue::Mem1d { .. } | DsdValue::Mem4d { .. } | DsdValue::Ring { .. } => {
                return sema.undefined(span);
            }
        },
        Operand::Scalar { expr, .. } => {
            let known = descriptor_of(&expr);
            let dsd = sema.pin(expr, span);
            if known.is_none() {
                refuse_late(sema, &dsd, (machine, input), span);
            }
            let limit = computed_limit(sema, word_of(&dsd, 16, span), span);
            let (one, last) = match known {
                Some(desc) => of_one_word(sema, desc, input, span)?,
                None => {
                    let extent = typed(ExprKind::Const(1), Ty::I16, span);
                    let one = typed(ExprKind::SetExtent { dsd, extent }, Ty::I64, span);
                    (sema.pin(one, span), None)
                }
            };
            (one, last, limit, known)
        }
        Operand::Const(_) | Operand::Memory { .. } | Operand::Void => {
            return sema.undefined(span);
        }
    };
    let word = sema.new_memory(None, sema.types.common.u32, span)?;
    Ok(Fabric { one, last, limit, known, ty, machine, word, span })
}

/// What is known of a descriptor whose extent may not be.
fn descriptor_of(dsd: &Expr) -> Option<FabricDsd> {
    match &*dsd.kind {
        ExprKind::Fabric { desc, .. } => Some(*desc),
        ExprKind::SetExtent { dsd, .. } => descriptor_of(dsd),
        _ => None,
    }
}

/// A known descriptor with one word, and the one of the last word if that does more.
fn of_one_word(
    sema: &mut Sema<'_, '_>,
    desc: FabricDsd,
    input: bool,
    span: Span,
) -> R<(Expr, Option<Expr>)> {
    if desc.transform && input {
        return transforms(sema, span);
    }
    let plain = FabricDsd { advance_switch: false, zero: None, packed: false, ..desc };
    let one = single(sema, plain, span);
    let last = FabricDsd { advance_switch: true, ..plain };
    let last = desc.advance_switch.then(|| single(sema, last, span));
    Ok((one, last))
}

fn single(sema: &mut Sema<'_, '_>, desc: FabricDsd, span: Span) -> Expr {
    let extent = typed(ExprKind::Const(1), Ty::I16, span);
    sema.pin(typed(ExprKind::Fabric { desc, extent }, Ty::I64, span), span)
}

fn transforms<T>(sema: &mut Sema<'_, '_>, span: Span) -> R<T> {
    let message = "`@map` over a `fabin_dsd` with `.control_transform` is not supported yet: between two elements \
                   nobody holds the control wavelets";
    sema.fail(codes::NOT_SUPPORTED, message, span, "this input")
}

/// Stops at a descriptor of run time that wants what has to be known while compiling.
fn refuse_late(sema: &mut Sema<'_, '_>, dsd: &Expr, (machine, input): (Ty, bool), span: Span) {
    let none = FabricDsd::default();
    let whole = match input {
        true => FabricDsd { transform: true, ..none }.bits(),
        // Sources have the numbers 1 and 2.
        false => [Some(0), Some(1)]
            .map(|zero| FabricDsd { zero, advance_switch: true, ..none }.bits())
            .iter()
            .fold(0, |all, bits| all | bits),
    };
    let packed = FabricDsd { packed: true, ..none };
    let apart = FabricDsd { indexed: true, control: true, ..packed };
    let constant = |bits: u64| typed(ExprKind::Const(bits), Ty::I64, span);
    let masked = |bits: u64| {
        typed(ExprKind::Binary(BinaryOp::And, dsd.clone(), constant(bits)), Ty::I64, span)
    };
    let mut conds = vec![(BinaryOp::Eq, masked(whole), constant(0))];
    if machine.bytes() == 2 {
        // Those with control wavelets or an index never pack.
        conds.push((BinaryOp::Ne, masked(apart.bits()), constant(packed.bits())));
    }
    let names = match input {
        true => "`.control_transform` or, for elements of 16 bits, packing `.simd_mode`",
        false => "`.advance_switch`, `.zero` or, for elements of 16 bits, packing `.simd_mode`",
    };
    let message = format!("`@map` needs a descriptor with {names} known while compiling");
    for (op, found, than) in conds {
        let cond = typed(ExprKind::Binary(op, found, than), Ty::I8, span);
        sema.emit(StmtKind::Assert { cond, message: message.clone() }, span);
    }
}

impl Fabric {
    /// Whether two of its elements share a word where all other operands can.
    pub(super) fn packs(&self) -> bool {
        self.known.is_some_and(|desc| desc.packs(self.machine))
    }

    /// Whether something comes to pass with its last element.
    pub(super) fn has_end(&self) -> bool {
        self.last.is_some()
    }

    /// Queue number, 16 bits.
    pub(super) fn queue(&self) -> Expr {
        let span = self.span;
        match self.known {
            Some(desc) => typed(ExprKind::Const(desc.queue.into()), Ty::I16, span),
            None => {
                let low = word_of(&self.one, 0, span);
                let mask = typed(ExprKind::Const(0xff), Ty::I16, span);
                typed(ExprKind::Binary(BinaryOp::And, low, mask), Ty::I16, span)
            }
        }
    }

    fn word(&self, sema: &Sema<'_, '_>) -> Expr {
        let address = ExprKind::LocalAddress { local: self.word, offset: 0 };
        typed(address, sema.profile().pointer(), self.span)
    }

    /// Where the element stands in the word.
    fn place(&self, sema: &Sema<'_, '_>, state: &Loop) -> Expr {
        if !state.packed {
            return self.word(sema);
        }
        let (span, one) = (self.span, typed(ExprKind::Const(1), Ty::I16, self.span));
        let count = typed(ExprKind::Convert(Convert::Truncate, state.count()), Ty::I16, span);
        let half = typed(ExprKind::Binary(BinaryOp::And, count, one.clone()), Ty::I16, span);
        let bytes = typed(ExprKind::Binary(BinaryOp::Shl, half, one), Ty::I16, span);
        typed(ExprKind::Binary(BinaryOp::Add, self.word(sema), bytes), Ty::I16, span)
    }

    /// Type of what goes through the queue at a time.
    fn travels(&self, state: &Loop) -> Ty {
        if state.packed { Ty::I32 } else { self.machine }
    }

    /// Receives the next element into memory, and reads it.
    pub(super) fn receive(&self, sema: &mut Sema<'_, '_>, state: &Loop) -> R<Operand> {
        let span = self.span;
        let vector = Vector {
            op: move_of(sema, self.travels(state), span)?,
            dest: typed::Operand::Pointer(self.word(sema)),
            sources: vec![typed::Operand::Fabric(self.one.clone())],
            options: typed::Options::default(),
        };
        let kind = StmtKind::Expr(typed(ExprKind::Vector(Box::new(vector)), Ty::I8, span));
        let receive = Stmt { kind, span };
        let kind = match state.packed {
            true => {
                let (cond, then) = (state.is_second(), Vec::new());
                StmtKind::If { cond, then, otherwise: vec![receive] }
            }
            false => receive.kind,
        };
        sema.emit(kind, span);
        let address = self.place(sema, state);
        let element = typed(ExprKind::Load { address, offset: 0 }, self.machine, span);
        Ok(Operand::Scalar { ty: self.ty, expr: element })
    }

    /// Sends an element, or keeps the first one of a word.
    pub(super) fn send(&self, sema: &mut Sema<'_, '_>, state: &Loop, value: Expr) -> R<()> {
        let span = state.span;
        if !state.packed {
            return self.put(sema, state, value);
        }
        let address = self.place(sema, state);
        sema.emit(StmtKind::Store { address, offset: 0, value }, span);
        let second = state.is_second();
        let full = match state.is_last() {
            Some(last) => typed(ExprKind::Binary(BinaryOp::Or, second, last), Ty::I8, span),
            None => second,
        };
        sema.open_list();
        let word = typed(ExprKind::Load { address: self.word(sema), offset: 0 }, Ty::I32, span);
        let result = self.put(sema, state, word);
        self.clear(sema);
        let then = sema.close_list();
        result?;
        sema.emit(StmtKind::If { cond: full, then, otherwise: Vec::new() }, span);
        Ok(())
    }

    /// Empties the word that elements are kept in.
    pub(super) fn clear(&self, sema: &mut Sema<'_, '_>) {
        let (address, value) = (self.word(sema), typed(ExprKind::Const(0), Ty::I32, self.span));
        sema.emit(StmtKind::Store { address, offset: 0, value }, self.span);
    }

    /// Puts a word into the queue.
    fn put(&self, sema: &mut Sema<'_, '_>, state: &Loop, word: Expr) -> R<()> {
        let span = state.span;
        let dsd = match (&self.last, state.is_last()) {
            (Some(last), Some(cond)) => {
                let chosen = sema.new_scalar(None, Ty::I64);
                let set =
                    |dsd: &Expr| vec![Stmt { kind: StmtKind::Set(chosen, dsd.clone()), span }];
                let (then, otherwise) = (set(last), set(&self.one));
                sema.emit(StmtKind::If { cond, then, otherwise }, span);
                typed(ExprKind::Local(chosen), Ty::I64, span)
            }
            _ => self.one.clone(),
        };
        let vector = Vector {
            op: move_of(sema, self.travels(state), span)?,
            dest: typed::Operand::Fabric(dsd),
            sources: vec![typed::Operand::Scalar(word)],
            options: typed::Options::default(),
        };
        let send = typed(ExprKind::Vector(Box::new(vector)), Ty::I8, span);
        sema.emit(StmtKind::Expr(send), span);
        Ok(())
    }
}
