//! Which code may look at configuration registers in the middle of a segment: all that loads from
//! an address of which it is not known that it is in the memory.
//!
//! Registers are beyond the memory, and most loads are of variables; code that loads nothing else
//! need not wait for the cycle it begins in (`pe::alone`).

use cranelift_entity::SecondaryMap;
use dflow_ir::func::{Func, Local};
use dflow_ir::inst::InstData;
use dflow_ir::operands::Access;
use dflow_ir::program::{FuncId, Program};

/// By function, whether it or one that it calls may look at registers.
pub(super) fn looks(program: &Program) -> SecondaryMap<FuncId, bool> {
    with_callers(program, |func| {
        let rooms = rooms(program, func);
        func.insts.values().any(|inst| loads_beyond(func, &rooms, inst))
    })
}

/// By function, whether it or one that it calls reads the clock or asks about queues.
pub(super) fn reads_times(program: &Program) -> SecondaryMap<FuncId, bool> {
    with_callers(program, |func| {
        let reads = |inst: &InstData| {
            matches!(inst, InstData::Queues { .. })
                || matches!(inst, InstData::Clock { op, .. } if op.reads())
        };
        func.insts.values().any(reads)
    })
}

/// By function, whether something holds for it or for one that it calls.
fn with_callers(program: &Program, holds: impl Fn(&Func) -> bool) -> SecondaryMap<FuncId, bool> {
    let mut known = SecondaryMap::new();
    for (id, func) in &program.funcs {
        known[id] = holds(func);
    }
    let mut changed = true;
    while changed {
        changed = false;
        for (id, func) in &program.funcs {
            let calls = |inst: &InstData| match inst {
                InstData::Call { func, .. } => known[*func],
                _ => false,
            };
            if !known[id] && func.insts.values().any(calls) {
                known[id] = true;
                changed = true;
            }
        }
    }
    known
}

/// What is known of a local: it is set once, to an address behind which there are so many bytes of
/// the same variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Room {
    /// Nothing has set it yet.
    #[default]
    Unset,
    Bytes(i64),
    Unknown,
}

fn rooms(program: &Program, func: &Func) -> SecondaryMap<Local, Room> {
    let mut rooms = SecondaryMap::new();
    for local in func.locals.keys().take(func.params as usize) {
        rooms[local] = Room::Unknown;
    }
    for inst in func.insts.values() {
        let bytes = match inst {
            InstData::GlobalAddress { global, offset, .. } => {
                Some((program.globals[*global].size, *offset))
            }
            InstData::StackAddress { slot, offset, .. } => {
                Some((func.stack_slots[*slot].size, *offset))
            }
            _ => None,
        };
        let bytes = bytes.filter(|(_, offset)| *offset >= 0);
        let room = bytes.map(|(size, offset)| i64::from(size) - i64::from(offset));
        inst.visit_locals(|local, access| {
            if access == Access::Write {
                rooms[local] = match (rooms[local], room) {
                    (Room::Unset, Some(room)) => Room::Bytes(room),
                    _ => Room::Unknown,
                };
            }
        });
    }
    rooms
}

/// Whether an instruction of a function may load from beyond the memory, or call what does.
fn loads_beyond(func: &Func, rooms: &SecondaryMap<Local, Room>, inst: &InstData) -> bool {
    match *inst {
        InstData::CallIndirect { .. } => true,
        InstData::Load { dst, addr, offset } => {
            let end = i64::from(offset) + i64::from(func.locals[dst].bytes());
            !matches!(rooms[addr], Room::Bytes(bytes) if offset >= 0 && end <= bytes)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use dflow_ir::text::parse_program;

    #[test]
    fn loads_of_variables_look_at_no_register() {
        let program = parse_program(
            "program \"p\" pe {
              global g0 \"a\" size=8 align=4
              func fn0 \"inside\" () {
                locals v0: i16, v1: i32
              block0:
                v0 = address [g0+4]
                v1 = load.i32 [v0]
                return
              }
              func fn1 \"behind\" () {
                locals v0: i16, v1: i32
              block0:
                v0 = address [g0+4]
                v1 = load.i32 [v0+2]
                return
              }
              func fn2 \"given\" (v0: i16) {
                locals v1: i16
              block0:
                v1 = load.i16 [v0]
                return
              }
              func fn3 \"set_twice\" () {
                locals v0: i16, v1: i16
              block0:
                v0 = address [g0]
                v0 = const.i16 32000
                v1 = load.i16 [v0]
                return
              }
              func fn4 \"calls\" () {
                locals v0: i16
              block0:
                call fn5()
                return
              }
              func fn5 \"calls_in_turn\" () {
                locals v0: i16
              block0:
                v0 = const.i16 32000
                call fn2(v0)
                return
              }
              func fn6 \"before\" () {
                locals v0: i16, v1: i16
              block0:
                v0 = address [g0-2]
                v1 = load.i16 [v0]
                return
              }
            }",
        )
        .unwrap();
        let looks = super::looks(&program);
        let found: Vec<bool> = program.funcs.keys().map(|id| looks[id]).collect();
        assert_eq!(found, [false, true, true, true, true, true, true]);
    }
}
