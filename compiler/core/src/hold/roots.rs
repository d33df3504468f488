//! Which variable an address is in.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use dflow_ir::scalar::BinaryOp;

use super::events::Event;
use crate::typed::{Expr, ExprKind, Func, GlobalIdx, HoldIdx, LocalIdx};

/// What an address may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Root {
    /// A global.
    Global(GlobalIdx),
    /// A memory local.
    Local(LocalIdx),
    /// A value, wherever it is read; what it was read from stands beside it.
    Held(HoldIdx),
    /// A value that was passed, wherever it is.
    Param(LocalIdx),
    /// Anything whose address somebody got hold of.
    Unknown,
}

/// What the scalar locals of a function may hold.
pub(super) struct Flow<'a> {
    func: &'a Func,
    /// Values that a local is given.
    given: BTreeMap<LocalIdx, Vec<Option<&'a Expr>>>,
    /// What locals may lead to, as far as it was asked for.
    known: RefCell<BTreeMap<LocalIdx, BTreeSet<Root>>>,
}

impl<'a> Flow<'a> {
    pub(super) fn of(func: &'a Func, events: &[Event<'a>]) -> Flow<'a> {
        let mut given: BTreeMap<LocalIdx, Vec<Option<&Expr>>> = BTreeMap::new();
        for event in events {
            if let Event::Set(local, value) = *event {
                given.entry(local).or_default().push(value);
            }
        }
        Flow { func, given, known: RefCell::default() }
    }

    /// All that an address or descriptor may be based on.
    pub(super) fn roots(&self, expr: &'a Expr) -> BTreeSet<Root> {
        let ExprKind::Local(local) = *expr.kind else { return self.look(expr) };
        if let Some(known) = self.known.borrow().get(&local) {
            return known.clone();
        }
        let roots = self.look(expr);
        self.known.borrow_mut().insert(local, roots.clone());
        roots
    }

    fn look(&self, expr: &'a Expr) -> BTreeSet<Root> {
        let (mut roots, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut open = vec![expr];
        while let Some(expr) = open.pop() {
            match &*expr.kind {
                ExprKind::GlobalAddress { global, .. } => {
                    roots.insert(Root::Global(*global));
                }
                ExprKind::LocalAddress { local, .. } => {
                    roots.insert(Root::Local(*local));
                }
                ExprKind::Held { hold, source, .. } => {
                    roots.insert(Root::Held(*hold));
                    open.push(source);
                }
                ExprKind::Local(local) => {
                    if let Some(known) = self.known.borrow().get(local) {
                        roots.extend(known);
                        continue;
                    }
                    if self.func.passing.values.contains(local) {
                        roots.insert(Root::Param(*local));
                    }
                    if seen.insert(*local) && !self.given(*local, &mut open) {
                        roots.insert(Root::Unknown);
                    }
                }
                ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub, base, _)
                | ExprKind::Mem1d { base, .. }
                | ExprKind::Mem4d { base, .. }
                | ExprKind::Ring { base, .. }
                | ExprKind::SetBase { base, .. }
                | ExprKind::MoveBase { dsd: base, .. }
                | ExprKind::SetExtent { dsd: base, .. }
                | ExprKind::SetStride { dsd: base, .. } => open.push(base),
                ExprKind::Fabric { .. } => {}
                _ => {
                    roots.insert(Root::Unknown);
                }
            }
        }
        roots
    }

    /// Adds what a local is given; false if that is not all of it. The memory of results and of values that were
    /// passed is apart from all else.
    fn given(&self, local: LocalIdx, open: &mut Vec<&'a Expr>) -> bool {
        let passing = &self.func.passing;
        let param = local.0 < self.func.params;
        let apart = passing.values.contains(&local) || (local.0 == 0 && passing.result);
        let given = self.given.get(&local).map_or(&[][..], Vec::as_slice);
        open.extend(given.iter().flatten());
        (!param || apart) && given.iter().all(Option::is_some)
    }
}
