//! Operators on comptime scalars: no spans, no scopes; over `ir::scalar` for machine types.

use dflow_ir::scalar::{self, BinaryOp as IrBinary, UnaryOp as IrUnary};
use dflow_ir::ty::Ty;
use dflow_syntax::ast::{BinaryOp, UnaryOp};
use dflow_syntax::{Code, codes};

use super::types::{Float, MAX_BITS, Type, TypeId, TypePool};
use super::value::{Arg, Node, Provenance, Scalar};

/// Why an operation has no value: code and message.
pub(crate) type Fault = (Code, String);

/// `lhs op rhs` of two values of type `ty`; comparisons give 0 or 1.
pub(crate) fn binary(
    types: &TypePool,
    op: BinaryOp,
    ty: TypeId,
    lhs: Scalar,
    rhs: Scalar,
) -> Result<Scalar, Fault> {
    match (lhs, rhs) {
        (Scalar::Int(a), Scalar::Int(b)) => {
            if op == BinaryOp::Shl
                && b >= 0
                && let Some(kept) = shift_within(types, ty, a, b)
            {
                return Ok(Scalar::Int(kept));
            }
            let result = int_binary(op, a, b)?;
            if op.is_comparison() {
                return Ok(Scalar::Int(result));
            }
            fit(types, ty, result).map(Scalar::Int)
        }
        (Scalar::Float(a), Scalar::Float(b)) => float_binary(types, op, ty, a, b),
        (Scalar::Int(_), Scalar::Float(_)) | (Scalar::Float(_), Scalar::Int(_)) => {
            Err((codes::INVALID_OPERANDS, format!("`{}` mixes integer and float", op.symbol())))
        }
    }
}

fn int_binary(op: BinaryOp, a: i128, b: i128) -> Result<i128, Fault> {
    let overflow = || (codes::COMPTIME_OVERFLOW, "the result has more than 127 bits".to_owned());
    let zero = || (codes::DIVIDE_BY_ZERO, "division by zero".to_owned());
    let flag = |truth: bool| Ok(i128::from(truth));
    match op {
        BinaryOp::Add => a.checked_add(b).ok_or_else(overflow),
        BinaryOp::Sub => a.checked_sub(b).ok_or_else(overflow),
        BinaryOp::Mul => a.checked_mul(b).ok_or_else(overflow),
        BinaryOp::Div if b == 0 => Err(zero()),
        BinaryOp::Rem if b == 0 => Err(zero()),
        BinaryOp::Div => a.checked_div(b).ok_or_else(overflow),
        BinaryOp::Rem => a.checked_rem(b).ok_or_else(overflow),
        BinaryOp::BitAnd => Ok(a & b),
        BinaryOp::BitOr => Ok(a | b),
        BinaryOp::BitXor => Ok(a ^ b),
        BinaryOp::Shl | BinaryOp::Shr if b < 0 => {
            Err((codes::VALUE_OUT_OF_RANGE, format!("shift by {b}, a negative count")))
        }
        BinaryOp::Shl => shift_left(a, b).ok_or_else(overflow),
        BinaryOp::Shr => Ok(a >> b.min(127)),
        BinaryOp::Eq => flag(a == b),
        BinaryOp::Ne => flag(a != b),
        BinaryOp::Lt => flag(a < b),
        BinaryOp::Le => flag(a <= b),
        BinaryOp::Gt => flag(a > b),
        BinaryOp::Ge => flag(a >= b),
        BinaryOp::And => flag(a != 0 && b != 0),
        BinaryOp::Or => flag(a != 0 || b != 0),
    }
}

fn shift_left(a: i128, count: i128) -> Option<i128> {
    if a == 0 {
        return Some(0);
    }
    let count = u32::try_from(count).ok().filter(|&count| count < 127)?;
    let shifted = a << count;
    (shifted >> count == a).then_some(shifted)
}

/// A shift to the left within a sized type: bits fall out at its end, as at run time.
fn shift_within(types: &TypePool, ty: TypeId, a: i128, count: i128) -> Option<i128> {
    let (low, high) = int_range(types, ty)?;
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    // A range's size is a power of two.
    let size = high - low + 1;
    let kept = a.checked_shl(count).unwrap_or(0) & (size - 1);
    Some(if kept > high { kept - size } else { kept })
}

/// The value if the integer type can hold it.
pub(crate) fn fit(types: &TypePool, ty: TypeId, value: i128) -> Result<i128, Fault> {
    match int_range(types, ty) {
        Some((low, high)) if value < low || value > high => Err((
            codes::COMPTIME_OVERFLOW,
            format!("{value} does not fit: the type holds {low} to {high}"),
        )),
        _ => Ok(value),
    }
}

/// Smallest and largest value of a sized integer type.
pub(crate) fn int_range(types: &TypePool, ty: TypeId) -> Option<(i128, i128)> {
    match types.get(ty) {
        Type::Int { bits: 0, .. } => Some((0, 0)),
        Type::Int { signed: true, bits } if *bits <= MAX_BITS => {
            let half = 1i128 << (bits - 1);
            Some((-half, half - 1))
        }
        Type::Int { signed: false, bits } if *bits <= MAX_BITS => Some((0, (1i128 << bits) - 1)),
        Type::Bool => Some((0, 1)),
        _ => None,
    }
}

fn float_binary(
    types: &TypePool,
    op: BinaryOp,
    ty: TypeId,
    a: f64,
    b: f64,
) -> Result<Scalar, Fault> {
    let flag = |truth: bool| Ok(Scalar::Int(i128::from(truth)));
    let ir = match op {
        BinaryOp::Add => IrBinary::Add,
        BinaryOp::Sub => IrBinary::Sub,
        BinaryOp::Mul => IrBinary::Mul,
        BinaryOp::Div => IrBinary::Div,
        BinaryOp::Eq => return flag(a == b),
        BinaryOp::Ne => return flag(a != b),
        BinaryOp::Lt => return flag(a < b),
        BinaryOp::Le => return flag(a <= b),
        BinaryOp::Gt => return flag(a > b),
        BinaryOp::Ge => return flag(a >= b),
        BinaryOp::Rem
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::And
        | BinaryOp::Or => {
            let message = format!("`{}` does not take floats", op.symbol());
            return Err((codes::INVALID_OPERANDS, message));
        }
    };
    let untyped = matches!(types.get(ty), Type::ComptimeFloat);
    if untyped && op == BinaryOp::Div && b == 0.0 {
        return Err((codes::DIVIDE_BY_ZERO, "division by zero".to_owned()));
    }
    let machine = float_ty(types, ty);
    let raw = scalar::binary(ir, machine, to_raw(machine, a), to_raw(machine, b))
        .map_err(|error| (codes::DIVIDE_BY_ZERO, error.to_string()))?;
    let result = from_raw(machine, raw);
    if untyped && result.is_nan() {
        return Err((codes::COMPTIME_OVERFLOW, "the result is no number".to_owned()));
    }
    Ok(Scalar::Float(result))
}

/// The machine type that a float type computes in.
pub(crate) fn float_ty(types: &TypePool, ty: TypeId) -> Ty {
    match types.get(ty) {
        Type::Float(Float::F16) => Ty::F16,
        Type::Float(Float::Bf16) => Ty::Bf16,
        Type::Float(Float::F32) => Ty::F32,
        _ => Ty::F64,
    }
}

/// A float as raw bits of a machine type, rounded once; of a NaN the sign and the bits that fit.
pub(crate) fn to_raw(ty: Ty, value: f64) -> u64 {
    let nan = scalar::float::canonical_nan(ty);
    let fraction = value.to_bits() & F64_FRACTION;
    let kept = fraction >> (F64_FRACTION_BITS - fraction_bits(ty));
    if value.is_nan() && kept != 0 {
        let sign = value.to_bits() >> 63 << (ty.bits() - 1);
        return sign | nan & !fraction_mask(ty) | kept;
    }
    scalar::convert(scalar::Convert::FloatFromFloat, Ty::F64, ty, value.to_bits())
}

/// The inverse of [`to_raw`] for representable values, NaNs with all their bits among them.
pub(crate) fn from_raw(ty: Ty, raw: u64) -> f64 {
    let value = scalar::convert(scalar::Convert::FloatFromFloat, ty, Ty::F64, raw);
    if !f64::from_bits(value).is_nan() {
        return f64::from_bits(value);
    }
    let sign = raw >> (ty.bits() - 1) << 63;
    let fraction = (raw & fraction_mask(ty)) << (F64_FRACTION_BITS - fraction_bits(ty));
    f64::from_bits(sign | f64::INFINITY.to_bits() | fraction)
}

const F64_FRACTION_BITS: u32 = 52;
const F64_FRACTION: u64 = (1 << F64_FRACTION_BITS) - 1;

/// Bits behind the point of a float type.
fn fraction_bits(ty: Ty) -> u32 {
    match ty {
        Ty::F16 => 10,
        Ty::Bf16 => 7,
        Ty::F32 => 23,
        Ty::F64 | Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 => F64_FRACTION_BITS,
    }
}

fn fraction_mask(ty: Ty) -> u64 {
    (1 << fraction_bits(ty)) - 1
}

/// A prefix operator on a value of type `ty`.
pub(crate) fn unary(
    types: &TypePool,
    op: UnaryOp,
    ty: TypeId,
    arg: Scalar,
) -> Result<Scalar, Fault> {
    match (op, arg) {
        (UnaryOp::Neg, Scalar::Int(value)) => match value.checked_neg() {
            Some(value) => fit(types, ty, value).map(Scalar::Int),
            None => Err((codes::COMPTIME_OVERFLOW, "the result has more than 127 bits".into())),
        },
        (UnaryOp::Neg, Scalar::Float(value)) => {
            let machine = float_ty(types, ty);
            let raw = scalar::unary(IrUnary::Neg, machine, to_raw(machine, value));
            Ok(Scalar::Float(from_raw(machine, raw)))
        }
        (UnaryOp::Not, Scalar::Int(value)) => Ok(Scalar::Int(i128::from(value == 0))),
        (UnaryOp::BitNot, Scalar::Int(value)) => match types.get(ty) {
            Type::Int { signed: false, bits } => {
                Ok(Scalar::Int(!value & ((1i128 << (*bits).min(MAX_BITS)) - 1)))
            }
            _ => Ok(Scalar::Int(!value)),
        },
        (UnaryOp::AddressOf, _) | (UnaryOp::Not | UnaryOp::BitNot, Scalar::Float(_)) => {
            Err((codes::INVALID_OPERANDS, format!("`{}` does not take this value", op.symbol())))
        }
    }
}

/// `@as` between numbers, or an implicit conversion, which must keep the value.
pub(crate) fn convert(
    types: &TypePool,
    from: TypeId,
    to: TypeId,
    implicit: bool,
    arg: Scalar,
) -> Result<Scalar, Fault> {
    let (to_int, to_float) = (int_range(types, to), types.is_float(to));
    match arg {
        Scalar::Int(value) if to_float => {
            let machine = float_ty(types, to);
            let result = from_raw(machine, scalar::float::from_integer(machine, value));
            if implicit && result as i128 != value {
                return Err(lossy(value));
            }
            Ok(Scalar::Float(result))
        }
        Scalar::Int(value) if matches!(types.get(to), Type::Bool) && !implicit => {
            Ok(Scalar::Int(i128::from(value != 0)))
        }
        Scalar::Int(value) => match to_int {
            Some((low, high)) if value < low || value > high => {
                if implicit || matches!(types.get(from), Type::ComptimeInt) {
                    return Err((
                        codes::VALUE_OUT_OF_RANGE,
                        format!("{value} does not fit: the type holds {low} to {high}"),
                    ));
                }
                Ok(Scalar::Int(wrap(types, to, value)))
            }
            _ => Ok(Scalar::Int(value)),
        },
        Scalar::Float(_) if from == to => Ok(arg),
        Scalar::Float(value) if to_float => {
            // A conversion gives the canonical NaN, as at run time.
            let value = if value.is_nan() { f64::NAN } else { value };
            let machine = float_ty(types, to);
            Ok(Scalar::Float(from_raw(machine, to_raw(machine, value))))
        }
        Scalar::Float(value) if matches!(types.get(to), Type::Bool) => {
            Ok(Scalar::Int(i128::from(value != 0.0)))
        }
        Scalar::Float(value) => {
            let truncated = value.trunc();
            if implicit {
                return Err((
                    codes::TYPE_MISMATCH,
                    format!("the float {value} is no integer: write `@as`"),
                ));
            }
            let (low, high) = to_int.unwrap_or((i128::MIN, i128::MAX));
            let value = if truncated.is_nan() { 0 } else { truncated as i128 };
            Ok(Scalar::Int(value.clamp(low, high)))
        }
    }
}

fn lossy(value: i128) -> Fault {
    (codes::VALUE_OUT_OF_RANGE, format!("{value} has no exact value of this float type"))
}

/// The low bits of a value as the type reads them.
pub(crate) fn wrap(types: &TypePool, ty: TypeId, value: i128) -> i128 {
    match types.get(ty) {
        Type::Int { signed, bits } if *bits <= MAX_BITS => {
            let mask = (1i128 << bits) - 1;
            let low = value & mask;
            let negative = *signed && low >> (bits.max(&1) - 1) & 1 != 0;
            if negative { low - (1i128 << bits) } else { low }
        }
        _ => value,
    }
}

/// A scalar's raw bits as a machine type.
pub(crate) fn raw_bits(ty: Ty, value: Scalar) -> u64 {
    match value {
        Scalar::Int(value) => ty.mask(value as u64),
        Scalar::Float(value) => to_raw(ty, value),
    }
}

/// `@bitcast` between machine types of one width.
pub(crate) fn bitcast(types: &TypePool, to: TypeId, from_ty: Ty, to_ty: Ty, arg: Scalar) -> Scalar {
    let raw = raw_bits(from_ty, arg);
    if to_ty.is_float() {
        Scalar::Float(from_raw(to_ty, raw))
    } else {
        Scalar::Int(wrap(types, to, i128::from(raw)))
    }
}

impl Provenance {
    /// Records that a node decided something.
    pub(crate) fn guard(&mut self, node: u32, value: Scalar) {
        if !self.guards.iter().any(|&(known, _)| known == node) {
            self.guards.push((node, value));
        }
    }

    /// The node's slot of the program.
    pub(crate) fn slot(&mut self, node: u32, ty: TypeId) -> u32 {
        let known = self.slots.iter().position(|&(known, slot_ty)| (known, slot_ty) == (node, ty));
        let slot = known.unwrap_or_else(|| {
            self.slots.push((node, ty));
            self.slots.len() - 1
        });
        slot as u32
    }

    /// Adds a node and gives its provenance mark.
    pub(crate) fn add(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32
    }

    /// All nodes for other leaves; `None` where a node has no value there.
    pub(crate) fn evaluate(
        &self,
        types: &TypePool,
        leaves: &[Scalar],
        machine: &dyn Fn(TypeId) -> Option<Ty>,
    ) -> Vec<Option<Scalar>> {
        let mut values: Vec<Option<Scalar>> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let get = |arg: &Arg| match arg {
                Arg::Node(node) => values[*node as usize],
                Arg::Const(scalar) => Some(*scalar),
            };
            let value = match node {
                Node::Leaf(leaf) => leaves.get(*leaf as usize).copied(),
                Node::Binary { op, ty, lhs, rhs } => match (get(lhs), get(rhs)) {
                    (Some(lhs), Some(rhs)) => binary(types, *op, *ty, lhs, rhs).ok(),
                    _ => None,
                },
                Node::Unary { op, ty, arg } => {
                    get(arg).and_then(|arg| unary(types, *op, *ty, arg).ok())
                }
                Node::Convert { from, to, implicit, arg } => {
                    get(arg).and_then(|arg| convert(types, *from, *to, *implicit, arg).ok())
                }
                Node::Bitcast { from, to, arg } => match (get(arg), machine(*from), machine(*to)) {
                    (Some(arg), Some(from), Some(to_ty)) => {
                        Some(bitcast(types, *to, from, to_ty, arg))
                    }
                    _ => None,
                },
            };
            values.push(value);
        }
        values
    }
}
