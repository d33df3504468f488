//! Functions: locals, labels, and the state that lowering a body needs.

use dflow_ir::builder::FuncBuilder;
use dflow_ir::func::{Block, Func, Local, Signature, StackSlot};
use dflow_ir::inst::Terminator;
use dflow_ir::program::SigId;
use dflow_ir::ty::Ty;
use dflow_syntax::Span;
use indexmap::IndexSet;

use super::LocTable;
use super::program::signature_id;
use crate::typed::{self, LabelIdx, LocalIdx, LocalKind};

/// Where a typed local lives.
#[derive(Clone, Copy)]
enum Home {
    Scalar(Local),
    Memory(StackSlot),
}

/// Where `break` and `continue` of a label go.
#[derive(Clone, Copy)]
pub(super) struct Targets {
    pub(super) after: Block,
    pub(super) next: Option<Block>,
}

/// A body being lowered.
pub(super) struct Lower<'a> {
    pub(super) builder: FuncBuilder,
    locs: &'a LocTable<'a>,
    signatures: &'a mut IndexSet<Signature>,
    homes: Vec<Home>,
    labels: Vec<Option<Targets>>,
}

/// The IR of one function.
pub(super) fn func(
    func: &typed::Func,
    locs: &LocTable<'_>,
    signatures: &mut IndexSet<Signature>,
) -> Func {
    let params: Vec<Ty> = func.locals.iter().take(func.params as usize).map(param_ty).collect();
    let builder = FuncBuilder::new(func.name.clone(), &params, func.ret, locs.loc(func.span));
    let mut lower = Lower {
        builder,
        locs,
        signatures,
        homes: Vec::with_capacity(func.locals.len()),
        labels: vec![None; func.labels as usize],
    };
    for (index, local) in func.locals.iter().enumerate() {
        let home = lower.home_for(index, params.len(), local.kind);
        lower.homes.push(home);
    }
    lower.stmts(&func.body);
    // Control falls off the end of functions without result only; elsewhere the check for a
    // missing return has shown that it cannot.
    let end = if func.ret.is_none() { Terminator::Return(None) } else { Terminator::Unreachable };
    lower.builder.terminate(end);
    lower.builder.finish()
}

fn param_ty(local: &typed::Local) -> Ty {
    match local.kind {
        LocalKind::Scalar(ty) => ty,
        LocalKind::Memory { .. } | LocalKind::Within(_) => {
            debug_assert!(false, "parameters are scalar");
            Ty::I16
        }
    }
}

impl Lower<'_> {
    fn home_for(&mut self, index: usize, n_params: usize, kind: LocalKind) -> Home {
        if index < n_params {
            return Home::Scalar(self.builder.param(index));
        }
        match kind {
            LocalKind::Scalar(ty) => Home::Scalar(self.builder.local(ty)),
            LocalKind::Memory { size, align } => {
                Home::Memory(self.builder.stack_slot(size, align.max(1)))
            }
            LocalKind::Within(place) => self.homes[place.0 as usize],
        }
    }

    /// The IR local of a scalar local.
    pub(super) fn scalar(&mut self, local: LocalIdx) -> Local {
        match self.homes[local.0 as usize] {
            Home::Scalar(home) => home,
            Home::Memory(_) => {
                debug_assert!(false, "memory locals are used by address");
                self.builder.local(Ty::I16)
            }
        }
    }

    /// The stack slot of a memory local.
    pub(super) fn stack_slot(&mut self, local: LocalIdx) -> StackSlot {
        match self.homes[local.0 as usize] {
            Home::Memory(slot) => slot,
            Home::Scalar(_) => {
                debug_assert!(false, "scalar locals have no address");
                self.builder.stack_slot(0, 1)
            }
        }
    }

    /// Announces where a label leads.
    pub(super) fn bind_label(&mut self, label: LabelIdx, targets: Targets) {
        self.labels[label.0 as usize] = Some(targets);
    }

    /// Where a label leads; none outside of it, which checking excludes.
    pub(super) fn label(&self, label: LabelIdx) -> Option<Targets> {
        self.labels.get(label.0 as usize).copied().flatten()
    }

    /// What follows was written at `span`.
    pub(super) fn at(&mut self, span: Span) {
        self.builder.at(self.locs.loc(span));
    }

    /// The id of a signature of indirect calls.
    pub(super) fn signature(&mut self, params: Vec<Ty>, ret: Option<Ty>) -> SigId {
        signature_id(self.signatures, Signature { params, ret })
    }
}
