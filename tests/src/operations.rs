//! Every row of the table of vector operations, in every operand form: a program is written,
//! compiled, run in every way, and its result held against a naive loop over the row's kernel.

use std::fmt::Write as _;

use dflow_compiler::{MemoryWorld, Options};
use dflow_ir::dsd::op::{DsdOp, Form, OpRow, RowState};
use dflow_ir::ty::{ElementType, Ty};
use dflow_syntax::diagnostic::render;

use crate::header::End;
use crate::matrix::{self, Given};

/// Elements per vector: no multiple of any width.
const LENGTH: usize = 13;

/// The operations that there are to test.
pub fn all() -> impl Iterator<Item = DsdOp> {
    DsdOp::all()
}

/// Tests one operation in all its forms. One that is not there yet must be refused by name.
///
/// # Errors
/// The first form that goes wrong, and how.
pub fn check(op: DsdOp) -> Result<(), String> {
    let row = op.row();
    for &form in row.forms {
        let source = program(row, form);
        let verdict = match row.state {
            RowState::Full | RowState::Assumed(_) => check_form(row, form, &source),
            RowState::NotYet(_) => check_refused(row, &source),
        };
        verdict.map_err(|fault| format!("form {form:?}: {fault}\nof this program:\n{source}"))?;
    }
    if op.on(Ty::Bf16) != op {
        return check(op.on(Ty::Bf16)).map_err(|fault| format!("on bf16: {fault}"));
    }
    Ok(())
}

/// Options with which a row is what its builtin means.
fn options(row: &OpRow) -> Options {
    let on_bf16 = row.dest == Ty::Bf16 || row.sources.contains(&Ty::Bf16);
    Options { half: if on_bf16 { Ty::Bf16 } else { Ty::F16 }, ..Options::default() }
}

fn check_refused(row: &OpRow, source: &str) -> Result<(), String> {
    let world = MemoryWorld::new().with("operation.dfl", source);
    let compiled = dflow_compiler::compile(&world, "operation.dfl", options(row));
    let refused =
        compiled.diagnostics.iter().any(|d| d.code() == dflow_syntax::codes::NOT_SUPPORTED);
    match (refused, compiled.image) {
        (true, None) => Ok(()),
        (_, Some(_)) => Err("it is marked as not there yet, and compiles".into()),
        (false, None) => Err("it is refused, and not by `not-supported`".into()),
    }
}

fn check_form(row: &OpRow, form: Form, source: &str) -> Result<(), String> {
    let world = MemoryWorld::new().with("operation.dfl", source);
    let compiled = dflow_compiler::compile(&world, "operation.dfl", options(row));
    let Some(image) = compiled.image else {
        let lines = compiled.diagnostics.iter().map(|d| render::short(&compiled.sources, d));
        return Err(lines.collect::<Vec<_>>().join("\n"));
    };
    let host = image.host.as_ref().ok_or("the host block is gone")?;
    let operands = operands(row, form);
    let given = Given {
        strict: false,
        track: false,
        inputs: operands.iter().map(Operand::input).collect(),
        settings: Vec::new(),
        max_cycles: 1_000_000,
    };
    let record = matrix::run(&image, host, &given)?;
    if record.end != End::Ok {
        return Err(record.message);
    }
    let expected = expected(row, form, &operands);
    match record.outputs.as_slice() {
        [(_, _, bytes)] if *bytes == expected => Ok(()),
        [(_, _, bytes)] => Err(format!("expected {expected:x?}, got {bytes:x?}")),
        _ => Err("there is not one output".into()),
    }
}

/// A source operand: its name in the program, type and values.
struct Operand {
    name: String,
    letter: char,
    ty: Ty,
    values: Vec<u32>,
}

impl Operand {
    fn input(&self) -> (String, ElementType, Vec<u8>) {
        let size = self.ty.bytes() as usize;
        let bytes = self.values.iter().flat_map(|value| value.to_le_bytes()[..size].to_vec());
        (self.name.clone(), ElementType::number(self.ty, true), bytes.collect())
    }
}

/// The sources of a form in written order, with values that reach edges and ordinary places.
fn operands(row: &OpRow, form: Form) -> Vec<Operand> {
    let types = row.written_types(form);
    let letters = form.letters().chars().skip(1);
    let mut seed = 0x9e37_79b9_u32;
    letters
        .enumerate()
        .map(|(index, letter)| {
            let ty = types[index];
            let count = if letter == 's' { LENGTH } else { 1 };
            let values = (0..count).map(|at| value(ty, at + index, &mut seed)).collect();
            Operand { name: format!("s{index}"), letter, ty, values }
        })
        .collect()
}

fn value(ty: Ty, at: usize, seed: &mut u32) -> u32 {
    const HALVES: [u32; 6] = [0x3c00, 0xc100, 0x0001, 0x7bff, 0x7c00, 0x7e01];
    const SINGLES: [u32; 6] =
        [0x3f80_0000, 0xc020_0000, 0x0000_0001, 0x7f7f_ffff, 0x7f80_0000, 0x7fc0_0001];
    const WORDS: [u32; 6] = [0, 1, 0xffff, 0x8000, 0x7fff, 17];
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    let edge = at % 12;
    let raw = match ty {
        Ty::Bf16 => SINGLES.get(edge).copied().unwrap_or(0x3e00_0000 + *seed % 0x0400_0000) >> 16,
        Ty::F16 => HALVES.get(edge).copied().unwrap_or(0x3000 + *seed % 0x1c00),
        Ty::F32 => SINGLES.get(edge).copied().unwrap_or(0x3e00_0000 + *seed % 0x0400_0000),
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 | Ty::F64 => WORDS.get(edge).copied().unwrap_or(*seed),
    };
    ty.mask(u64::from(raw)) as u32
}

/// What a naive loop over the kernel gives, as bytes.
fn expected(row: &OpRow, form: Form, operands: &[Operand]) -> Vec<u8> {
    let element = |index: usize, at: usize| -> u32 {
        let values = operands.get(index).map(|operand| operand.values.as_slice());
        values.and_then(|values| values.get(at).or(values.first())).copied().unwrap_or(0)
    };
    let mut carry = 0;
    let mut accumulator = element(0, 0);
    let mut results = Vec::new();
    let vector =
        operands.iter().any(|operand| operand.letter == 's') || form.letters().starts_with('d');
    for at in 0..if vector { LENGTH } else { 1 } {
        let mut sources = [element(0, at), element(1, at), element(2, at)];
        if form == Form::Pks {
            sources[0] = accumulator;
        }
        if row.swapped(form) {
            sources.swap(0, 1);
        }
        let result = row.apply(sources, &mut carry);
        accumulator = result;
        results.push(result);
    }
    if form.letters().starts_with('p') {
        results.drain(..results.len() - 1);
    }
    let size = row.dest.bytes() as usize;
    results.iter().flat_map(|result| result.to_le_bytes()[..size].to_vec()).collect()
}

/// A program with one PE that does the operation once.
fn program(row: &OpRow, form: Form) -> String {
    let operands = operands(row, form);
    let dest_len = if form.letters().starts_with('d') { LENGTH } else { 1 };
    let mut tile = format!("  var d: [{dest_len}]{};\n", row.dest);
    let mut body = String::new();
    let mut arguments = Vec::new();
    let mut exports = String::from("    @export_symbol(d_ptr, \"d\");\n");
    let mut names = format!("  @export_name(\"d\", [*]{}, true);\n", row.dest);
    let mut copies = String::new();
    let _ = writeln!(tile, "  var d_ptr: [*]{} = &d;", row.dest);
    if form.letters().starts_with('d') {
        let _ = writeln!(
            body,
            "    const dd = @get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{{LENGTH}}} -> d[i] }});"
        );
        arguments.push("dd".to_owned());
    } else {
        arguments.push("&d[0]".to_owned());
    }
    for Operand { name, letter, ty, values } in &operands {
        let count = values.len();
        let _ =
            writeln!(tile, "  var {name}: [{count}]{ty};\n  var {name}_ptr: [*]{ty} = &{name};");
        let _ = writeln!(exports, "    @export_symbol({name}_ptr, \"{name}\");");
        let _ = writeln!(names, "  @export_name(\"{name}\", [*]{ty}, true);");
        let _ = writeln!(copies, "  @copy_in(\"{name}\", @all(), @input(\"{name}\", {ty}));");
        if *letter == 's' {
            let _ = writeln!(
                body,
                "    const {name}d = @get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{{count}}} -> {name}[i] }});"
            );
            arguments.push(format!("{name}d"));
        } else {
            arguments.push(format!("{name}[0]"));
        }
    }
    let call = format!("    @{}({});\n", row.name, arguments.join(", "));
    format!(
        "const memcpy = @import_module(\"<memcpy/get_params>\", .{{ .width = 1, .height = 1 }});\n\
         tile pe {{\n  param memcpy_params: comptime_struct;\n\
         \x20 const sys = @import_module(\"<memcpy/memcpy>\", memcpy_params);\n{tile}\
         \x20 fn go() void {{\n{body}{call}    sys.unblock_cmd_stream();\n  }}\n\
         \x20 comptime {{\n{exports}    @export_symbol(go);\n  }}\n}}\n\
         layout {{\n  @set_rectangle(1, 1);\n\
         \x20 @set_tile_code(0, 0, pe, .{{ .memcpy_params = memcpy.get_params(0) }});\n{names}\
         \x20 @export_name(\"go\", fn()void);\n}}\n\
         host {{\n{copies}  @launch(\"go\");\n\
         \x20 @output(\"d\", @copy_out(\"d\", @all(), {dest_len}));\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use dflow_syntax::{Dialect, Interner, SourceMap, parse};

    #[test]
    fn every_program_parses() {
        for op in all() {
            for &form in op.row().forms {
                let text = program(op.row(), form);
                let mut sources = SourceMap::new();
                let file = sources.add("operation.dfl", text.as_str());
                let parsed = parse(file, &text, Dialect::Dfl, &mut Interner::default());
                assert!(parsed.diagnostics.is_empty(), "{:?}\n{text}", parsed.diagnostics);
            }
        }
    }

    #[test]
    fn the_naive_loop_adds_up() {
        let op = DsdOp::by_name("fadds").unwrap_or_else(|| panic!("it is in the table"));
        let row = op.row();
        let operands = operands(row, Form::Dss);
        let bytes = expected(row, Form::Dss, &operands);
        let first = f32::from_bits(operands[0].values[0]) + f32::from_bits(operands[1].values[0]);
        assert_eq!(bytes[..4], first.to_le_bytes());
        assert_eq!(bytes.len(), 4 * LENGTH);
        assert_eq!(expected(row, Form::Pks, &super::operands(row, Form::Pks)).len(), 4);
    }
}
