//! Which configuration registers the code of a program writes, as far as its addresses are known.
//!
//! An address is known if all that it can be follows from constants: through copies and arithmetic, and
//! through calls, whose arguments are looked for wherever the function is called. Control flow is not looked
//! at: a local may be all that any instruction makes of it (and holds zero if none does), so more may be named
//! than is ever written. Stores
//! through pointers are not looked at; an engine has to see for itself that a router has changed.

use std::collections::{BTreeMap, BTreeSet};

use cranelift_entity::{EntityRef, SecondaryMap};

use crate::func::Local;
use crate::inst::{InstData, Terminator};
use crate::program::{FuncId, Program, Symbol};
use crate::scalar;

/// Values that a local is known to have, at most, and how far they are followed.
const MOST: usize = 64;
const DEEPEST: u32 = 64;

/// What a local may be; none if that is not known.
type Values = Option<BTreeSet<u64>>;

/// Word addresses of the registers that `@set_config` writes while a program runs; none if it may be any.
pub fn written_registers(program: &Program) -> Option<BTreeSet<u16>> {
    let writes = program.funcs.iter().flat_map(|(id, func)| {
        func.insts.values().filter_map(move |inst| match inst {
            InstData::SetConfig { addr, .. } => Some((id, *addr)),
            _other => None,
        })
    });
    let writes: Vec<(FuncId, Local)> = writes.collect();
    if writes.is_empty() {
        return Some(BTreeSet::new());
    }
    let mut search = Search::new(program);
    let mut addresses = BTreeSet::new();
    for write in writes {
        addresses.extend(search.values_of(write, 0)?.into_iter().map(|address| address as u16));
    }
    Some(addresses)
}

/// A search for the values of locals.
struct Search<'a> {
    program: &'a Program,
    /// What makes each local.
    makers: BTreeMap<(FuncId, Local), Vec<&'a InstData>>,
    /// Who calls each function, and with which arguments; whether others may.
    callers: SecondaryMap<FuncId, Vec<(FuncId, &'a [Local])>>,
    open: SecondaryMap<FuncId, bool>,
    /// What has been found; none while it is looked for.
    found: BTreeMap<(FuncId, Local), Values>,
}

impl<'a> Search<'a> {
    fn new(program: &'a Program) -> Search<'a> {
        let mut search = Search {
            program,
            makers: BTreeMap::new(),
            callers: SecondaryMap::new(),
            open: SecondaryMap::new(),
            found: BTreeMap::new(),
        };
        for (id, func) in &program.funcs {
            for inst in func.insts.values() {
                inst.visit_locals(|local, access| {
                    if access == crate::operands::Access::Write {
                        search.makers.entry((id, local)).or_default().push(inst);
                    }
                });
                match inst {
                    InstData::Call { func, args, .. } => search.callers[*func].push((id, args)),
                    InstData::FuncAddress { func, .. } => search.open[*func] = true,
                    _other => {}
                }
            }
        }
        let relocs = program.globals.values().flat_map(|global| &global.relocs);
        let symbols = relocs.map(|reloc| reloc.symbol);
        for symbol in symbols.chain(program.exports.iter().map(|export| export.symbol)) {
            if let Symbol::Func(func) = symbol {
                search.open[func] = true;
            }
        }
        for task in &program.tasks {
            search.open[task.func] = true;
        }
        search
    }

    /// What a local of a function may be.
    fn values_of(&mut self, at: (FuncId, Local), depth: u32) -> Values {
        if let Some(found) = self.found.get(&at) {
            return found.clone();
        }
        if depth == DEEPEST {
            return None;
        }
        // What depends on itself may be anything.
        self.found.insert(at, None);
        let values = self.search(at, depth + 1);
        self.found.insert(at, values.clone());
        values
    }

    fn search(&mut self, (id, local): (FuncId, Local), depth: u32) -> Values {
        let mut all = BTreeSet::new();
        if local.index() < self.program.funcs[id].params as usize {
            if self.open[id] {
                return None;
            }
            for (caller, args) in self.callers[id].clone() {
                all.extend(self.values_of((caller, *args.get(local.index())?), depth)?);
            }
        }
        for maker in self.makers.get(&(id, local)).cloned().unwrap_or_default() {
            all.extend(self.made_by(id, maker, depth)?);
            if all.len() > MOST {
                return None;
            }
        }
        if all.is_empty() {
            all.insert(0);
        }
        (all.len() <= MOST).then_some(all)
    }

    /// What an instruction may make.
    fn made_by(&mut self, id: FuncId, inst: &InstData, depth: u32) -> Values {
        let program = self.program;
        let ty = |local: Local| program.funcs[id].locals[local];
        match inst {
            InstData::Const { bits, .. } => Some(BTreeSet::from([*bits])),
            InstData::Copy { src, .. } => self.values_of((id, *src), depth),
            InstData::Unary { op, src, .. } => {
                let values = self.values_of((id, *src), depth)?;
                Some(values.into_iter().map(|value| scalar::unary(*op, ty(*src), value)).collect())
            }
            InstData::Convert { dst, kind, src } => {
                let values = self.values_of((id, *src), depth)?;
                let convert = |value| scalar::convert(*kind, ty(*src), ty(*dst), value);
                Some(values.into_iter().map(convert).collect())
            }
            InstData::Binary { op, lhs, rhs, .. } => {
                let left = self.values_of((id, *lhs), depth)?;
                let right = self.values_of((id, *rhs), depth)?;
                let pairs = left.iter().flat_map(|&a| right.iter().map(move |&b| (a, b)));
                // A division by zero has no value.
                let value = |(a, b)| scalar::binary(*op, ty(*lhs), a, b).ok();
                Some(pairs.filter_map(value).collect())
            }
            InstData::Call { func, .. } => {
                let mut all = BTreeSet::new();
                for block in program.funcs[*func].blocks.values() {
                    if let Terminator::Return(Some(local)) = block.terminator {
                        all.extend(self.values_of((*func, local), depth)?);
                    }
                }
                Some(all)
            }
            _other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_program;

    /// What a program writes whose first function, a task with these params, does something in block 0.
    fn written(params: &str, body: &str, more: &str) -> Option<Vec<u16>> {
        let task = format!("  func fn0 \"main\" ({params}) {{\n{body}\n  }}");
        let text = format!("program \"p\" pe {{\n  task local 9 = fn0\n{task}\n{more}\n}}\n");
        let program = parse_program(&text).unwrap();
        Some(written_registers(&program)?.into_iter().collect())
    }

    const REGISTER: &str = "
  func fn1 \"set\" (v0..v1: i16) {
    locals v2: i16
  block0:
    v2 = call fn2(v0)
    set_config v2, v1
    return
  }
  func fn2 \"register\" (v0: i16) -> i16 {
    locals v1..v4: i16
  block0:
    v1 = const.i16 4
    v2 = mul.i16 v1, v0
    v3 = const.i16 32256
    v4 = add.i16 v3, v2
    return v4
  }";

    #[test]
    fn nothing_is_written_without_an_instruction_that_does() {
        assert_eq!(written("", "block0:\n return", ""), Some(vec![]));
    }

    #[test]
    fn addresses_are_known_through_calls_and_arithmetic() {
        let body = "
    locals v0..v1: i16
  block0:
    v0 = const.i16 2
    v1 = const.i16 7
    call fn1(v0, v1)
    call fn1(v1, v0)
    return";
        assert_eq!(written("", body, REGISTER), Some(vec![32256 + 8, 32256 + 28]));
    }

    #[test]
    fn what_nothing_makes_is_zero() {
        let body = "locals v0: i16\nblock0:\n set_config v0, v0\n return";
        assert_eq!(written("", body, ""), Some(vec![0]));
    }

    #[test]
    fn what_memory_or_a_word_says_may_be_anything() {
        let loaded = "
    locals v0..v1: i16
  block0:
    v0 = const.i16 2
    v1 = load.i16 [v0]
    call fn1(v1, v0)
    return";
        assert_eq!(written("", loaded, REGISTER), None);
        assert_eq!(written("v0: i16", "block0:\n call fn1(v0, v0)\n return", REGISTER), None);
    }

    #[test]
    fn what_is_counted_may_be_anything() {
        let counted = "
    locals v0..v1: i16
  block0:
    v0 = const.i16 32256
    v1 = const.i16 1
    jump block1
  block1:
    set_config v0, v1
    v0 = add.i16 v0, v1
    jump block1";
        assert_eq!(written("", counted, ""), None);
    }
}
