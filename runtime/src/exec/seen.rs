//! For tests: which forms of instructions the interpreter has run on this thread. Tests that run
//! it and generated code side by side look here whether they have left a form out.

use std::cell::Cell;

use dflow_ir::inst::{InstData, Terminator};

thread_local! {
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

/// Lists the forms of an enumeration and gives each a number; one that is missing here does not
/// compile.
macro_rules! forms {
    ($name:ident, $names:ident, $ty:ident: $($form:ident)*) => {
        const $names: &[&str] = &[$(stringify!($form)),*];

        fn $name(of: &$ty) -> usize {
            let name = match of {
                $($ty::$form { .. } => stringify!($form),)*
            };
            $names.iter().position(|known| *known == name).unwrap_or(0)
        }
    };
}

forms! { inst_form, INSTS, InstData:
    Const Slot Copy Unary Binary Convert Load Store CopyMemory FillMemory GlobalAddress StackAddress
    FuncAddress Call CallIndirect MakeMem1d MakeMem4d MakeFabric DsdMoveBase DsdSetBase DsdSetExtent
    DsdSetStride Vector LoadDsr SetFifoLength Flag Random GetConfig SetConfig Clock Assert Bound Host MakeRing
    SetDsr SetRandom Queues
}

forms! { end_form, ENDS, Terminator: Jump Branch Switch Return Unreachable }

fn mark(bit: usize) {
    SEEN.set(SEEN.get() | 1 << bit);
}

/// An instruction runs.
pub(crate) fn inst(data: &InstData) {
    mark(inst_form(data));
}

/// A terminator runs.
pub(crate) fn end(data: &Terminator) {
    mark(INSTS.len() + end_form(data));
}

/// Forms that have not run on this thread.
pub(crate) fn missing() -> Vec<&'static str> {
    let seen = SEEN.get();
    let all = INSTS.iter().chain(ENDS).enumerate();
    all.filter(|(bit, _)| seen >> bit & 1 == 0).map(|(_, name)| *name).collect()
}
