//! What options said before: a layout's loops read the same configuration for hundreds of thousands
//! of PEs.
//!
//! An expression is *plain* if it is made of literals, names, operators and builtins without effect. What
//! follows from a plain expression depends on the locals that it reads and on nothing else, so it
//! is kept by their values. Invariants: only what was read without a fault is kept; nothing is kept while a
//! program is analyzed, where a value may differ between PEs and must leave a guard.

use std::rc::Rc;

use dflow_ir::mesh::ColorConfig;
use dflow_syntax::FileId;
use dflow_syntax::ast::{Expr as Ast, ExprId, UnaryOp};
use rustc_hash::FxHashMap;

use super::types::TypeId;
use super::value::{Data, ModuleId};
use super::{Cell, Sema};
use crate::resolve::order::PLAIN_BUILTINS;
use crate::resolve::{Res, ResolvedFile};

/// Most sets of values for which an expression's result is kept.
const MOST_VARIANTS: usize = 32;

/// Values of the locals that an expression reads.
pub(crate) type Reads = Box<[(TypeId, i128)]>;

/// Results by expression and by what it read.
#[derive(Debug)]
pub(crate) struct Known<T> {
    slots: FxHashMap<(FileId, ExprId), Option<Rc<[u32]>>>,
    results: FxHashMap<(ModuleId, ExprId), Vec<(Reads, T)>>,
}

impl<T> Default for Known<T> {
    fn default() -> Known<T> {
        Known { slots: FxHashMap::default(), results: FxHashMap::default() }
    }
}

impl<T: Clone> Known<T> {
    fn get(&self, module: ModuleId, id: ExprId, reads: &Reads) -> Option<T> {
        let variants = self.results.get(&(module, id))?;
        variants.iter().find(|(known, _)| known == reads).map(|(_, result)| result.clone())
    }

    fn keep(&mut self, module: ModuleId, id: ExprId, reads: Reads, result: T) {
        let variants = self.results.entry((module, id)).or_default();
        if variants.len() < MOST_VARIANTS {
            variants.push((reads, result));
        }
    }
}

impl Sema<'_, '_> {
    /// What the configuration of a color is, if it was read before; else what it reads, if it can be kept.
    pub(crate) fn known_config(&mut self, id: ExprId) -> Result<ColorConfig, Option<Reads>> {
        if self.program.is_some() {
            return Err(None);
        }
        let frame = self.frames.last().unwrap_or_else(|| unreachable!("analysis runs in a frame"));
        let (file, module) = (&frame.file, frame.module);
        let names = &self.cx.names;
        let slots = self.configs.slots.entry((file.file.id, id)).or_insert_with(|| {
            let mut slots = Vec::new();
            let plain = |name| PLAIN_BUILTINS.contains(&names.resolve(name));
            is_plain(file, id, &plain, &mut slots).then(|| slots.into())
        });
        let Some(slots) = slots else { return Err(None) };
        let reads = slots.iter().map(|&slot| match &frame.slots[slot as usize] {
            Cell::Const(value) | Cell::Var(value) => match value.data {
                Data::Int(int) => Some((value.ty, int)),
                _ => None,
            },
            _ => None,
        });
        let Some(reads) = reads.collect::<Option<Reads>>() else { return Err(None) };
        self.configs.get(module, id, &reads).ok_or(Some(reads))
    }

    /// Keeps what a configuration is.
    pub(crate) fn keep_config(&mut self, id: ExprId, reads: Reads, config: ColorConfig) {
        let module = self.frame().module;
        self.configs.keep(module, id, reads, config);
    }
}

/// Whether an expression is plain; gathers the slots of the locals that it reads.
fn is_plain(
    file: &ResolvedFile,
    id: ExprId,
    plain_builtin: &dyn Fn(dflow_syntax::Symbol) -> bool,
    slots: &mut Vec<u32>,
) -> bool {
    match file.file.expr(id) {
        Ast::Int(_) | Ast::Float(_) | Ast::Str(_) | Ast::Bool(_) => {}
        Ast::Name(_) => match file.res(id) {
            Res::Local(slot) => slots.push(slot),
            Res::Decl { .. } | Res::Prelude(_) => {}
            Res::None => return false,
        },
        Ast::Builtin { name, .. } if plain_builtin(*name) => {}
        Ast::Unary { op: UnaryOp::Neg | UnaryOp::Not | UnaryOp::BitNot, .. }
        | Ast::Field { .. }
        | Ast::Index { .. }
        | Ast::Binary { .. }
        | Ast::If { .. }
        | Ast::StructLiteral { .. }
        | Ast::TupleLiteral { .. } => {}
        Ast::Error
        | Ast::Builtin { .. }
        | Ast::Call { .. }
        | Ast::Deref(_)
        | Ast::Unary { op: UnaryOp::AddressOf, .. }
        | Ast::Comptime(_)
        | Ast::Block { .. }
        | Ast::Switch { .. }
        | Ast::TypedStruct { .. }
        | Ast::TypedArray { .. }
        | Ast::ArrayType { .. }
        | Ast::PointerType { .. }
        | Ast::FnType { .. }
        | Ast::StructType { .. }
        | Ast::EnumType { .. }
        | Ast::TensorAccess { .. }
        | Ast::Asm => return false,
    }
    let mut plain = true;
    file.file.expr(id).for_each_child(&mut |_, child| {
        plain = plain
            && match child {
                dflow_syntax::ast::Child::Expr(inner) => {
                    is_plain(file, inner, plain_builtin, slots)
                }
                dflow_syntax::ast::Child::Stmt(_) => false,
            };
    });
    plain
}
