//! Values as the user sees them.

use std::fmt::{Display, LowerExp};

use dflow_ir::func::{Func, Local};
use dflow_ir::program::HostArg;
use dflow_ir::ty::Ty;

/// Pieces of text with values between them. `text` reads a string of the program's memory.
pub(super) fn format(
    pieces: &[String],
    kinds: &[HostArg],
    func: &Func,
    locals: &[Local],
    raws: &[u64],
    text: impl Fn(u64, u64) -> String,
) -> String {
    let mut values = locals.iter().zip(raws);
    let mut next =
        || values.next().map_or((Ty::I64, 0), |(&local, &raw)| (func.locals[local], raw));
    let mut out = String::new();
    for (index, piece) in pieces.iter().enumerate() {
        out.push_str(piece);
        let Some(kind) = kinds.get(index) else { continue };
        let (ty, raw) = next();
        match kind {
            HostArg::Text => out.push_str(&text(raw, next().1)),
            HostArg::Signed | HostArg::Unsigned | HostArg::Float | HostArg::Bool => {
                out.push_str(&scalar(*kind, ty, raw));
            }
        }
    }
    out
}

/// A raw value. Floats: the shortest text that reads back as the same value.
fn scalar(kind: HostArg, ty: Ty, raw: u64) -> String {
    match kind {
        HostArg::Signed => signed(ty, raw).to_string(),
        HostArg::Unsigned | HostArg::Text => ty.mask(raw).to_string(),
        HostArg::Bool => (ty.mask(raw) != 0).to_string(),
        HostArg::Float => match ty {
            Ty::Bf16 => float(half::bf16::from_bits(raw as u16).to_f32()),
            Ty::F16 | Ty::I16 | Ty::I8 => float(half::f16::from_bits(raw as u16).to_f32()),
            Ty::F32 | Ty::I32 => float(f32::from_bits(raw as u32)),
            Ty::F64 | Ty::I64 => float(f64::from_bits(raw)),
        },
    }
}

/// With an exponent where most digits would be zeros: below 1e-5 and from 1e16 on.
fn float(value: impl Display + LowerExp + Into<f64> + Copy) -> String {
    let size = value.into().abs();
    if size.is_finite() && size != 0.0 && !(1e-5..1e16).contains(&size) {
        format!("{value:e}")
    } else {
        value.to_string()
    }
}

/// The value of a signed integer of a type.
pub(super) fn signed(ty: Ty, raw: u64) -> i64 {
    let shift = 64 - ty.bits();
    (raw << shift) as i64 >> shift
}

#[cfg(test)]
mod tests {
    use dflow_ir::builder::FuncBuilder;
    use dflow_ir::loc::Loc;

    use super::*;

    #[test]
    fn values_stand_between_pieces() {
        let types = [Ty::I16, Ty::I16, Ty::F32, Ty::I8, Ty::I64, Ty::I64];
        let func = FuncBuilder::new("f".to_owned(), &types, None, Loc::default()).finish();
        let locals: Vec<Local> = func.locals.keys().collect();
        let raws = [0xffff, 0xffff, u64::from(0.1f32.to_bits()), 1, 7, 3];
        let pieces = ["a ", " b ", " c ", " d ", " e ", "."].map(str::to_owned);
        let kinds =
            [HostArg::Signed, HostArg::Unsigned, HostArg::Float, HostArg::Bool, HostArg::Text];
        let text = |ptr, len| format!("<{ptr}:{len}>");
        let line = format(&pieces, &kinds, &func, &locals, &raws, text);
        assert_eq!(line, "a -1 b 65535 c 0.1 d true e <7:3>.");
    }

    #[test]
    fn floats_have_no_rows_of_zeros() {
        assert_eq!(float(0.00002f32), "0.00002");
        assert_eq!(float(0.9e-5f32), "9e-6");
        assert_eq!(float(-1.5e300), "-1.5e300");
        assert_eq!(float(1e15), "1000000000000000");
        assert_eq!([float(0.0), float(f64::INFINITY), float(f32::NAN)], ["0", "inf", "NaN"]);
    }

    #[test]
    fn missing_values_are_zero_and_do_not_panic() {
        let func = FuncBuilder::new("f".to_owned(), &[], None, Loc::default()).finish();
        let pieces = ["x".to_owned(), "y".to_owned()];
        let line = format(&pieces, &[HostArg::Signed], &func, &[], &[], |_, _| String::new());
        assert_eq!(line, "x0y");
    }
}
