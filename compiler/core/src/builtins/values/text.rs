//! Comptime strings.

use std::rc::Rc;

use dflow_syntax::ast::ExprId;
use dflow_syntax::{Span, codes};

use crate::builtins::Call;
use crate::builtins::args::wrong_type;
use crate::sema::value::{Data, Value};
use crate::sema::{Operand, R, Sema};

/// An argument's bytes, as they were written.
fn bytes(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<(Rc<[u8]>, Span)> {
    let (value, span) = sema.arg_value(arg, None)?;
    match &value.data {
        Data::Str(bytes) => Ok((Rc::clone(bytes), span)),
        _ => wrong_type(sema, &value, "a string", span),
    }
}

fn string(sema: &Sema<'_, '_>, bytes: &[u8]) -> Operand {
    Operand::Const(Value::new(sema.types.common.comptime_string, Data::Str(bytes.into())))
}

/// Bytes that a comptime string may have.
const MAX_STRING: usize = 1 << 20;

/// Bytes whose copying counts as a step.
const BYTES_PER_STEP: u64 = 64;

/// `@strcat(strings…)`.
pub(crate) fn strcat(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let mut joined = Vec::new();
    for &arg in call.args {
        joined.extend_from_slice(&bytes(sema, arg)?.0);
    }
    sema.charge(joined.len() as u64 / BYTES_PER_STEP, call.span)?;
    if joined.len() > MAX_STRING {
        let message =
            format!("a string of {} bytes: there may be {MAX_STRING} at most", joined.len());
        return sema.fail(codes::ARRAY_TOO_LARGE, message, call.span, "joined here");
    }
    Ok(string(sema, &joined))
}

/// `@strlen(s)`: in bytes.
pub(crate) fn strlen(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (text, _) = bytes(sema, call.args[0])?;
    Ok(Operand::Const(Value::int(sema.types.common.u32, text.len() as i128)))
}

/// `@get_array(s)`: `[len]u8`.
pub(crate) fn get_array(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (text, _) = bytes(sema, call.args[0])?;
    let u8_ty = sema.types.common.u8;
    let elements = text.iter().map(|&byte| Value::int(u8_ty, i128::from(byte))).collect();
    let ty = sema.types.array(&[text.len() as u64], u8_ty);
    Ok(Operand::Const(Value::new(ty, Data::Fields(Rc::new(elements)))))
}

/// `@get_string_from_byte(n)`.
pub(crate) fn get_string_from_byte(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let byte = sema.arg_int(call.args[0], 0, 255, "a byte")?;
    Ok(string(sema, &[byte as u8]))
}
