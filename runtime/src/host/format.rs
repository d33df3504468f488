//! Values as the user sees them.

use std::fmt::{Display, LowerExp};

use dflow_ir::func::{Func, Local};
use dflow_ir::program::HostArg;
use dflow_ir::scalar::float::{round, to_f64};
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
            Ty::Bf16 => float(shortest(Ty::Bf16, raw)),
            Ty::F16 | Ty::I16 | Ty::I8 => float(shortest(Ty::F16, raw)),
            Ty::F32 | Ty::I32 => float(f32::from_bits(raw as u32)),
            Ty::F64 | Ty::I64 => float(f64::from_bits(raw)),
        },
    }
}

/// The number of the fewest digits that is rounded to a value of 16 bits: as a double, which has the same digits.
fn shortest(ty: Ty, raw: u64) -> f64 {
    let raw = ty.mask(raw);
    let value = to_f64(ty, raw);
    // Five digits tell all of them apart.
    let mut near = (0..5).flat_map(|digits| candidates(value, digits));
    near.find(|&near| round(ty, near) == raw).unwrap_or(value)
}

/// The nearest number with so many digits behind the first, and the next one away from zero: below a power of two values
/// are closer to each other than above, so that the nearest may be out of reach where the other is not.
fn candidates(value: f64, digits: usize) -> impl Iterator<Item = f64> {
    let text = format!("{value:.digits$e}");
    let next = text.split_once('e').and_then(|(mantissa, exponent)| {
        let number: i64 = mantissa.replace('.', "").parse().ok()?;
        let exponent = exponent.parse::<i64>().ok()? - digits as i64;
        Some(format!("{}e{exponent}", number + number.signum()))
    });
    [Some(text), next].into_iter().flatten().filter_map(|text| text.parse().ok())
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
    fn halves_have_as_many_digits_as_tell_them_apart() {
        let half = |raw| scalar(HostArg::Float, Ty::F16, raw);
        let brain = |raw| scalar(HostArg::Float, Ty::Bf16, raw);
        assert_eq!([0x2e66, 0x3555, 0x7bff, 1].map(half), ["0.1", "0.3333", "65500", "6e-8"]);
        assert_eq!([0x8000, 0x7c00, 0xfc00, 0x7e00].map(half), ["-0", "inf", "-inf", "NaN"]);
        assert_eq!([half(0x2400), brain(0x0400)], ["0.01563", "1.51e-36"]);
        assert_eq!([0x3dcd, 0x3f80, 0x7f7f].map(brain), ["0.1", "1", "3.39e38"]);
        for ty in [Ty::F16, Ty::Bf16] {
            let finite = (0..0x1_0000).filter(|&raw| to_f64(ty, raw).is_finite());
            for raw in finite {
                let text = scalar(HostArg::Float, ty, raw);
                let back = text.parse().map(|value| round(ty, value));
                assert_eq!(back, Ok(raw), "{text}");
                let digits = text.trim_start_matches('-').split('e').next().unwrap_or_default();
                let digits = digits.replace('.', "");
                let digits = digits.trim_start_matches('0').trim_end_matches('0');
                assert!(digits.len() <= if ty == Ty::F16 { 5 } else { 4 }, "{text}");
            }
        }
    }

    #[test]
    fn missing_values_are_zero_and_do_not_panic() {
        let func = FuncBuilder::new("f".to_owned(), &[], None, Loc::default()).finish();
        let pieces = ["x".to_owned(), "y".to_owned()];
        let line = format(&pieces, &[HostArg::Signed], &func, &[], &[], |_, _| String::new());
        assert_eq!(line, "x0y");
    }
}
