//! `@cycle_estimate`: what a function costs, while compiling.

use dflow_ir::program::Profile;
use dflow_syntax::Span;

use super::Call;
use super::args::wrong_type;
use crate::estimate::cost;
use crate::sema::program::ProgramCx;
use crate::sema::types::Type;
use crate::sema::value::{Data, FuncRef, Value};
use crate::sema::{Operand, R, Sema};

/// `@cycle_estimate(f)`: the static cost of a function under the timing model, in cycles.
pub(super) fn cycle_estimate(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (value, span) = sema.arg_value(call.args[0], None)?;
    let (Data::Func(func), Type::Fn { .. }) = (&value.data, sema.types.get(value.ty)) else {
        return wrong_type(sema, &value, "a function without comptime parameters", span);
    };
    let cycles = in_scratch(sema, *func, span)?;
    let ty = sema.types.common.comptime_int;
    Ok(Operand::Const(Value::int(ty, i128::from(cycles))))
}

/// Analyzes a function in a program that nobody runs, and forgets it. What the program around had decided by its
/// params stays decided by them.
fn in_scratch(sema: &mut Sema<'_, '_>, func: FuncRef, span: Span) -> R<u64> {
    let mut scratch = ProgramCx::new("estimate".to_owned(), Profile::Pe);
    let mut outer = sema.program.take();
    if let Some(outer) = &mut outer {
        scratch.provenance = std::mem::take(&mut outer.provenance);
        scratch.typed.slots = outer.typed.slots.clone();
        scratch.typed.tasks = outer.typed.tasks.clone();
        scratch.typed.queues = outer.typed.queues.clone();
    }
    let queues = sema.layout.implicit_queues.clone();
    sema.program = Some(scratch);
    let result = sema.program_func(func, span).and_then(|idx| sema.analyze_pending().map(|()| idx));
    let mut scratch = sema.program.take();
    sema.program = outer;
    sema.layout.implicit_queues = queues;
    // Whatever became of the function, what was decided stays decided.
    if let (Some(outer), Some(scratch)) = (&mut sema.program, &mut scratch) {
        outer.provenance = std::mem::take(&mut scratch.provenance);
        outer.typed.slots.clone_from(&scratch.typed.slots);
    }
    let (Some(mut scratch), idx) = (scratch, result?) else { return sema.undefined(span) };
    crate::hold::settle(&mut scratch.typed);
    Ok(cost(&scratch.typed, idx, sema.target))
}
