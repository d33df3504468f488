//! What a host program can ask for, one function per kind of request.
//!
//! Arguments are raw and untrusted: sizes may be negative, pointers may lead anywhere.

use dflow_ir::mesh::{Color, Rect};
use dflow_ir::program::HostOp;
use dflow_ir::scalar::float;
use dflow_ir::ty::{ElementKind, ElementType, Ty};

use super::env::Output;
use super::program::{Host, Target};
use super::stream::Finished;
use super::{Failure, HostError, Mesh, math};
use crate::profile::Work;
use crate::stats::Charges;

/// Raw arguments; those that are missing count as 0.
#[derive(Clone, Copy)]
struct Args<'a>(&'a [u64]);

impl Args<'_> {
    fn raw(self, index: usize) -> u64 {
        self.0.get(index).copied().unwrap_or(0)
    }

    fn size(self, index: usize) -> Result<u64, HostError> {
        let value = self.raw(index) as i64;
        u64::try_from(value).map_err(|_| HostError::Size { value })
    }
}

/// Whether a request moves data between the host and the mesh.
fn is_copy(op: &HostOp) -> bool {
    matches!(
        op,
        HostOp::CopyIn { .. }
            | HostOp::CopyOut { .. }
            | HostOp::StreamIn { .. }
            | HostOp::StreamOut { .. }
            | HostOp::StreamOutRows { .. }
            | HostOp::Wait
    )
}

impl<M: Mesh> Host<'_, M> {
    /// Carries out a request; gives the raw results.
    pub(super) fn call(&mut self, op: &HostOp, args: &[u64]) -> Result<Vec<u64>, Failure> {
        let args = Args(args);
        let program = self.program;
        let _copies = is_copy(op).then(|| program.during(Work::Copies, Work::Host));
        match op {
            HostOp::Input { name, ty } => Ok(self.input(name, *ty)?),
            HostOp::HasInput { name } => Ok(vec![self.env.has_input(name).into()]),
            HostOp::Output { name, ty } => Ok(self.output(name, *ty, args)?),
            HostOp::Setting { name, ty } => Ok(self.setting(name, *ty, args)?),
            HostOp::HasSetting { name } => Ok(vec![self.env.setting(name).is_some().into()]),
            HostOp::CopyIn { export, ty } => self.copy_in(*export, *ty, args),
            HostOp::CopyOut { export, ty } => self.copy_out(*export, *ty, args),
            HostOp::Launch { export } => self.session.launch(*export, args.0).map(|()| Vec::new()),
            HostOp::StreamIn { color, ty } => self.stream_in(*color, *ty, args),
            HostOp::StreamOut { color, ty } => self.stream_out(*color, *ty, args),
            HostOp::StreamOutRows { color, ty } => self.stream_out_rows(*color, *ty, args),
            HostOp::Wait => self.wait(),
            HostOp::Alloc => {
                let bytes = args.size(0)?;
                Ok(vec![self.alloc(bytes)?])
            }
            HostOp::Cycles => Ok(vec![self.session.cycles()]),
            HostOp::ClockRate => {
                let rate = self.program.target().clock_hz as f64;
                Ok(vec![rate.to_bits()])
            }
            HostOp::AssumedShare => {
                let stats = self.session.mesh().stats();
                let share = Charges::new(self.program.target(), &stats).assumed_share();
                Ok(vec![share.to_bits()])
            }
            HostOp::Wavelets => Ok(vec![self.session.mesh().stats().delivered]),
            HostOp::Math(function) => {
                Ok(vec![math::apply(*function, f64::from_bits(args.raw(0))).to_bits()])
            }
            // The caller formats, since it knows the types of the arguments.
            HostOp::Print { .. } | HostOp::Expect { .. } => Ok(Vec::new()),
        }
    }

    fn input(&mut self, name: &str, ty: ElementType) -> Result<Vec<u64>, HostError> {
        let failed = |reason| HostError::Input { name: name.to_owned(), reason };
        let input = self.env.input(name).map_err(failed)?;
        if let Some(found) = input.ty.filter(|found| !found.is_same(ty)) {
            let hint = self.env.type_hint(name, ty).map(|hint| format!("; {hint}"));
            return Err(failed(other_elements(found, ty) + &hint.unwrap_or_default()));
        }
        let size = u64::from(ty.ty.bytes());
        if !(input.bytes.len() as u64).is_multiple_of(size) {
            let bytes = input.bytes.len();
            return Err(failed(format!(
                "{bytes} bytes are no whole number of {} elements",
                ty.name()
            )));
        }
        self.give(&input.bytes, size)
    }

    fn output(
        &mut self,
        name: &str,
        ty: ElementType,
        args: Args<'_>,
    ) -> Result<Vec<u64>, HostError> {
        let bytes = self.slice(args.raw(0), args.raw(1), ty.ty.bytes().into())?.to_vec();
        self.keep(bytes.len() as u64)?;
        self.outputs.push(Output { name: name.to_owned(), bytes, ty });
        Ok(Vec::new())
    }

    fn setting(
        &mut self,
        name: &str,
        ty: ElementType,
        args: Args<'_>,
    ) -> Result<Vec<u64>, HostError> {
        let Some(text) = self.env.setting(name) else { return Ok(vec![args.raw(0)]) };
        let value = parse(text.trim(), ty);
        let value = value.ok_or_else(|| HostError::Setting {
            name: name.to_owned(),
            text,
            ty: type_name(ty),
        })?;
        Ok(vec![value])
    }

    fn region(&self, args: Args<'_>) -> Result<Rect, HostError> {
        let number = |index| args.raw(index) as i64;
        self.session.symbols().region(number(0), number(1), number(2), number(3))
    }

    fn copy_in(&mut self, export: u32, ty: Ty, args: Args<'_>) -> Result<Vec<u64>, Failure> {
        let rect = self.region(args)?;
        let data = self.slice(args.raw(4), args.raw(5), ty.bytes().into())?.to_vec();
        self.session.copy_in(export, rect, ty, &data)?;
        Ok(Vec::new())
    }

    fn copy_out(&mut self, export: u32, ty: Ty, args: Args<'_>) -> Result<Vec<u64>, Failure> {
        let (rect, count) = (self.region(args)?, args.size(4)?);
        if let Some(error) = self.session.excess(export, rect, ty, count) {
            return Err(error.into());
        }
        let bytes = self.session.copy_out(export, rect, ty, count)?;
        Ok(self.give(&bytes, ty.bytes().into())?)
    }

    fn stream_in(&mut self, color: Color, ty: Ty, args: Args<'_>) -> Result<Vec<u64>, Failure> {
        let rect = self.region(args)?;
        let data = self.slice(args.raw(4), args.raw(5), ty.bytes().into())?.to_vec();
        self.session.stream_in(color, rect, ty, &data)?;
        Ok(Vec::new())
    }

    fn stream_out(&mut self, color: Color, ty: Ty, args: Args<'_>) -> Result<Vec<u64>, Failure> {
        let rect = self.region(args)?;
        let (ptr, len) = (args.raw(4), args.raw(5));
        self.slice(ptr, len, ty.bytes().into())?;
        self.keep(0)?;
        let id = self.session.stream_out(color, rect, ty, len)?;
        self.targets.push((id, Target::Rows { ptr }));
        Ok(Vec::new())
    }

    fn stream_out_rows(
        &mut self,
        color: Color,
        ty: Ty,
        args: Args<'_>,
    ) -> Result<Vec<u64>, Failure> {
        let rect = self.region(args)?;
        let (ptr, capacity, counts) = (args.raw(4), args.size(5)?, args.raw(6));
        let (rows, size) = (u64::from(rect.height), u64::from(ty.bytes()));
        self.slice(ptr, capacity.saturating_mul(rows), size)?;
        self.slice(counts, rows, 8)?;
        self.keep(0)?;
        let id = self.session.stream_out_rows(color, rect, ty, capacity)?;
        let stride = capacity * size;
        self.targets.push((id, Target::Counted { ptr, stride, counts, size }));
        Ok(Vec::new())
    }

    fn wait(&mut self) -> Result<Vec<u64>, Failure> {
        for finished in self.session.wait()? {
            let position = self.targets.iter().position(|(id, _)| *id == finished.id);
            if let Some(position) = position {
                let (_, target) = self.targets.remove(position);
                self.deliver(&finished, target);
            }
        }
        Ok(Vec::new())
    }

    fn deliver(&mut self, finished: &Finished, target: Target) {
        match target {
            Target::Rows { mut ptr } => {
                for row in &finished.rows {
                    self.write(ptr, row);
                    ptr += row.len() as u64;
                }
            }
            Target::Counted { ptr, stride, counts, size } => {
                for (index, row) in (0..).zip(&finished.rows) {
                    self.write(ptr + index * stride, row);
                    let elements = row.len() as u64 / size;
                    self.write(counts + 8 * index, &elements.to_le_bytes());
                }
            }
        }
    }
}

/// What a text of a setting is not.
fn type_name(ty: ElementType) -> String {
    match ty.kind {
        ElementKind::Bool => "bool: true, false, 1 and 0 are".to_owned(),
        ElementKind::Signed | ElementKind::Unsigned => ty.name(),
    }
}

/// Why an input of one type is not read as another, and what helps.
fn other_elements(found: ElementType, wanted: ElementType) -> String {
    let (found_name, wanted_name) = (found.name(), wanted.name());
    let kind = match wanted.ty {
        // NumPy has no bf16.
        Ty::Bf16 => None,
        Ty::F16 | Ty::F32 | Ty::F64 => found.ty.is_float().then_some("float"),
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 if found.ty.is_float() => None,
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 => {
            Some(if wanted.kind == ElementKind::Signed { "int" } else { "uint" })
        }
    };
    let bits = wanted.ty.bits();
    let help = kind.map(|kind| format!("; NumPy converts them: a.astype('{kind}{bits}')"));
    let help = help.unwrap_or_default();
    format!("its elements are {found_name}, the program reads {wanted_name}{help}")
}

/// The raw value of a text, if it is one of the type.
fn parse(text: &str, element: ElementType) -> Option<u64> {
    let ElementType { ty, kind } = element;
    match ty {
        Ty::I8 if kind == ElementKind::Bool => match text {
            "true" | "1" => Some(1),
            "false" | "0" => Some(0),
            _ => None,
        },
        Ty::F16 | Ty::Bf16 | Ty::F32 | Ty::F64 => {
            let raw = match ty {
                // Not by way of a double, which would round it once more.
                Ty::F32 => text.parse::<f32>().ok()?.to_bits().into(),
                _ => float::round(ty, text.parse().ok()?),
            };
            // Infinity is a value only where its name stands.
            let is_number = text.bytes().any(|byte| byte.is_ascii_digit());
            (!is_number || float::to_f64(ty, raw).is_finite()).then_some(raw)
        }
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 => {
            let value = parse_integer(text)?;
            let bits = ty.bits();
            let (low, high) = if kind == ElementKind::Signed {
                (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
            } else {
                (0, (1i128 << bits) - 1)
            };
            (low..=high).contains(&value).then(|| ty.mask(value as u64))
        }
    }
}

/// Decimal, or hexadecimal after `0x`, with `_` between digits.
fn parse_integer(text: &str) -> Option<i128> {
    let text = text.replace('_', "");
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.as_str()),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok()?,
        None => digits.parse::<i128>().ok()?,
    };
    if value < 0 { None } else { Some(if negative { -value } else { value }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_fit_their_type_or_are_refused() {
        let parse = |text, ty, signed| super::parse(text, ElementType::number(ty, signed));
        let truth = |text| super::parse(text, ElementType::bool());
        assert_eq!(parse("12", Ty::I16, false), Some(12));
        assert_eq!(parse("-1", Ty::I16, true), Some(0xffff));
        assert_eq!(parse("-1", Ty::I16, false), None);
        assert_eq!(parse("0xff", Ty::I8, false), Some(0xff));
        assert_eq!(parse("0xff", Ty::I8, true), None);
        assert_eq!(parse("65_536", Ty::I16, false), None);
        assert_eq!(parse("--1", Ty::I64, true), None);
        assert_eq!(["true", "1", "false", "0"].map(truth), [Some(1), Some(1), Some(0), Some(0)]);
        assert_eq!(["2", "-1", "yes", ""].map(truth), [None; 4]);
        assert_eq!(parse("true", Ty::I8, false), None);
        assert_eq!(parse("1e-3", Ty::F64, true), Some(1e-3f64.to_bits()));
        assert_eq!(parse("0.1", Ty::F32, true), Some(0.1f32.to_bits().into()));
        // A little more than the middle between two halves, which a single is not.
        assert_eq!(parse("1.000488281251", Ty::F16, true), Some(0x3c01));
        assert_eq!(parse("1.00390625001", Ty::Bf16, true), Some(0x3f81));
        assert_eq!(parse("rel", Ty::F32, true), None);
        for (beyond, largest, ty) in [
            ("1e400", "1.7976931348623157e308", Ty::F64),
            ("-1e39", "-3.4028235e38", Ty::F32),
            ("65520", "65519", Ty::F16),
            ("3.4e38", "3.38e38", Ty::Bf16),
        ] {
            assert_eq!(parse(beyond, ty, true), None, "{beyond}");
            assert!(parse(largest, ty, true).is_some(), "{largest}");
            assert!(parse("-inf", ty, true).is_some_and(|raw| float::to_f64(ty, raw) < -1e300));
        }
        assert_eq!(type_name(ElementType::number(Ty::I16, false)), "u16");
    }

    #[test]
    fn inputs_of_other_types_are_converted_by_what_can() {
        let other_elements = |found, (ty, signed)| {
            super::other_elements(ElementType::number(found, true), ElementType::number(ty, signed))
        };
        assert_eq!(
            other_elements(Ty::F64, (Ty::F32, true)),
            "its elements are f64, the program reads f32; NumPy converts them: a.astype('float32')"
        );
        assert_eq!(
            other_elements(Ty::F32, (Ty::Bf16, true)),
            "its elements are f32, the program reads bf16"
        );
        assert!(!other_elements(Ty::I32, (Ty::F32, true)).contains("NumPy"));
        assert!(!other_elements(Ty::F32, (Ty::I32, true)).contains("NumPy"));
        assert_eq!(
            other_elements(Ty::I32, (Ty::I32, false)),
            "its elements are i32, the program reads u32; NumPy converts them: a.astype('uint32')"
        );
    }
}
