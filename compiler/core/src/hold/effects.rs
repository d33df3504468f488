//! What functions may write, and what may be written through pointers.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::events::{Event, events};
use super::roots::{Flow, Root};
use crate::typed::{Expr, ExprKind, FuncIdx, GlobalIdx, LocalIdx, Program, Symbol};

/// A function, looked at once.
pub(super) struct Seen<'a> {
    pub(super) events: Vec<Event<'a>>,
    pub(super) flow: Flow<'a>,
    /// Memory locals whose address somebody got hold of.
    leaked: BTreeSet<LocalIdx>,
    /// Globals and unknown memory that its own statements write.
    writes: BTreeSet<Root>,
    calls: BTreeSet<FuncIdx>,
    calls_any: bool,
    /// Values that were passed and whose address somebody got hold of, or that something writes all the same.
    described: BTreeSet<LocalIdx>,
    /// Likewise, that an operation may use when the function has ended.
    lent: BTreeSet<LocalIdx>,
}

/// A program, looked at once.
pub(super) struct World<'a> {
    pub(super) funcs: Vec<Seen<'a>>,
    /// Globals whose address somebody got hold of.
    leaked: BTreeSet<GlobalIdx>,
    /// Functions whose address somebody got hold of.
    addressed: BTreeSet<FuncIdx>,
    /// What functions write with all that they call, as far as it was asked for.
    known: RefCell<BTreeMap<Option<FuncIdx>, BTreeSet<Root>>>,
}

impl<'a> World<'a> {
    pub(super) fn of(program: &'a Program) -> World<'a> {
        let mut world = World {
            funcs: Vec::with_capacity(program.funcs.len()),
            leaked: outside(program),
            addressed: BTreeSet::new(),
            known: RefCell::default(),
        };
        for global in &program.globals {
            global.relocs.iter().for_each(|(_, symbol)| world.leak_symbol(*symbol));
        }
        for export in &program.exports {
            world.leak_symbol(export.symbol);
        }
        for func in &program.funcs {
            let events = events(program, func);
            let flow = Flow::of(func, &events);
            let seen = world.look(events, flow);
            world.funcs.push(seen);
        }
        world.pass_on();
        world
    }

    /// What is done with a value that was passed is done with what was passed.
    fn pass_on(&mut self) {
        let mut again = true;
        while std::mem::take(&mut again) {
            // Callees mostly come behind their callers.
            for at in (0..self.funcs.len()).rev() {
                let passed = self.passed(at);
                let seen = &mut self.funcs[at];
                for (root, is_lent) in passed {
                    again |= match root {
                        Root::Global(global) => self.leaked.insert(global),
                        Root::Local(local) => seen.leaked.insert(local),
                        Root::Param(local) if is_lent => {
                            seen.lent.insert(local) | seen.described.insert(local)
                        }
                        Root::Param(local) => seen.described.insert(local),
                        Root::Held(_) | Root::Unknown => false,
                    };
                }
            }
        }
    }

    /// What a function passes as values whose address callees give away, and whether operations may use it later.
    fn passed(&self, func: usize) -> BTreeSet<(Root, bool)> {
        let seen = &self.funcs[func];
        let mut passed = BTreeSet::new();
        for event in &seen.events {
            let Event::Call(callee, args) = *event else { continue };
            let callee = &self.funcs[callee.0 as usize];
            for (local, arg) in (0..).map(LocalIdx).zip(args) {
                if callee.described.contains(&local) {
                    let is_lent = callee.lent.contains(&local);
                    passed.extend(seen.flow.roots(arg).into_iter().map(|root| (root, is_lent)));
                }
            }
        }
        passed
    }

    /// What operations may use when the function that issues them has ended. Values among it are never copied to a
    /// stack.
    pub(super) fn lent(&self, seen: &Seen<'_>) -> BTreeSet<Root> {
        let mut lent = BTreeSet::new();
        let mut lend = |expr| lent.extend(seen.flow.roots(expr));
        for event in &seen.events {
            match *event {
                Event::Lend(place) => lend(place),
                Event::Call(callee, args) => {
                    let callee = &self.funcs[callee.0 as usize].lent;
                    let args = (0..).map(LocalIdx).zip(args);
                    args.filter(|(local, _)| callee.contains(local)).for_each(|(_, arg)| lend(arg));
                }
                _ => {}
            }
        }
        lent
    }

    fn leak_symbol(&mut self, symbol: Symbol) {
        match symbol {
            Symbol::Global(global) => {
                self.leaked.insert(global);
            }
            Symbol::Func(func) => {
                self.addressed.insert(func);
            }
        }
    }

    fn look(&mut self, events: Vec<Event<'a>>, flow: Flow<'a>) -> Seen<'a> {
        let mut seen = Seen {
            events: Vec::new(),
            flow,
            leaked: BTreeSet::new(),
            writes: BTreeSet::new(),
            calls: BTreeSet::new(),
            calls_any: false,
            described: BTreeSet::new(),
            lent: BTreeSet::new(),
        };
        for event in &events {
            match *event {
                Event::Leak(leaf) => self.leak(leaf, &mut seen),
                Event::Write(place) => {
                    for root in seen.flow.roots(place) {
                        seen.described.extend(param(root));
                        seen.writes.extend(as_seen_by_callers(root));
                    }
                }
                Event::Lend(place) => {
                    let params = seen.flow.roots(place).into_iter().filter_map(param);
                    let params: Vec<LocalIdx> = params.collect();
                    seen.described.extend(&params);
                    seen.lent.extend(params);
                }
                Event::WriteGlobal(global) => {
                    seen.writes.insert(Root::Global(global));
                }
                Event::WriteAny => {
                    seen.writes.insert(Root::Unknown);
                }
                Event::Call(func, _) => {
                    seen.calls.insert(func);
                }
                Event::CallAny => seen.calls_any = true,
                Event::Reach(_)
                | Event::Hold { .. }
                | Event::Set(..)
                | Event::Loop
                | Event::EndLoop
                | Event::List
                | Event::EndList => {}
            }
        }
        seen.events = events;
        seen
    }

    /// An address became a value. Values that are held are never written, so it does not matter who knows of them.
    fn leak(&mut self, leaf: &'a Expr, seen: &mut Seen<'a>) {
        match &*leaf.kind {
            ExprKind::Held { .. } => return,
            ExprKind::FuncAddress(func) => {
                self.addressed.insert(*func);
                return;
            }
            _ => {}
        }
        for root in seen.flow.roots(leaf) {
            match root {
                Root::Global(global) => {
                    self.leaked.insert(global);
                }
                Root::Local(local) => {
                    seen.leaked.insert(local);
                }
                Root::Param(local) => {
                    seen.described.insert(local);
                }
                Root::Held(_) | Root::Unknown => {}
            }
        }
    }

    /// What a function writes with all that it calls; without one, all whose address somebody has.
    pub(super) fn writes(&self, func: Option<FuncIdx>) -> BTreeSet<Root> {
        if let Some(known) = self.known.borrow().get(&func) {
            return known.clone();
        }
        let mut writes = BTreeSet::new();
        let mut reached = BTreeSet::new();
        let mut open: Vec<FuncIdx> = match func {
            Some(func) => vec![func],
            None => self.addressed.iter().copied().collect(),
        };
        while let Some(func) = open.pop() {
            if !reached.insert(func) {
                continue;
            }
            let seen = &self.funcs[func.0 as usize];
            writes.extend(&seen.writes);
            open.extend(&seen.calls);
            if seen.calls_any {
                open.extend(&self.addressed);
            }
        }
        self.known.borrow_mut().insert(func, writes.clone());
        writes
    }

    /// Whether others may know the address of a memory local.
    pub(super) fn is_leaked(seen: &Seen<'_>, local: LocalIdx) -> bool {
        seen.leaked.contains(&local)
    }

    /// Whether a write to one may change what is in the other, both as a function sees them.
    pub(super) fn overlap(&self, seen: &Seen<'a>, one: Root, other: Root) -> bool {
        match (one, other) {
            (Root::Held(_), _) | (_, Root::Held(_)) => false,
            (Root::Unknown, Root::Unknown) => true,
            (Root::Unknown, Root::Global(global)) | (Root::Global(global), Root::Unknown) => {
                self.leaked.contains(&global)
            }
            (Root::Unknown, Root::Local(local)) | (Root::Local(local), Root::Unknown) => {
                seen.leaked.contains(&local)
            }
            (one, other) => one == other,
        }
    }
}

/// Globals that others than the program's functions know of.
fn outside(program: &Program) -> BTreeSet<GlobalIdx> {
    let globals = (0..).map(GlobalIdx).zip(&program.globals);
    let named = globals.filter(|(_, global)| global.exported || global.section.is_some());
    let loaded = program.initial_dsrs.iter().filter_map(|dsr| dsr.symbol);
    named.map(|(idx, _)| idx).chain(loaded).collect()
}

/// What a write there is to callers.
fn as_seen_by_callers(root: Root) -> Option<Root> {
    match root {
        Root::Global(_) | Root::Unknown => Some(root),
        Root::Param(_) => Some(Root::Unknown),
        Root::Local(_) | Root::Held(_) => None,
    }
}

/// The value that was passed there.
fn param(root: Root) -> Option<LocalIdx> {
    if let Root::Param(local) = root { Some(local) } else { None }
}
