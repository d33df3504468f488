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
        world
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
        };
        for event in &events {
            match *event {
                Event::Leak(leaf) => self.leak(leaf, &mut seen),
                Event::Write(place) => {
                    let roots = seen.flow.roots(place).into_iter();
                    seen.writes.extend(roots.filter(|root| visible(*root)));
                }
                Event::WriteGlobal(global) => {
                    seen.writes.insert(Root::Global(global));
                }
                Event::WriteAny => {
                    seen.writes.insert(Root::Unknown);
                }
                Event::Call(func) => {
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

/// Whether callers may see a write there.
fn visible(root: Root) -> bool {
    match root {
        Root::Global(_) | Root::Unknown => true,
        Root::Local(_) | Root::Held(_) => false,
    }
}
