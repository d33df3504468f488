//! `run`: the host block and the test blocks, in every way there is to run them; what they
//! print and how they end is the snapshot.

use std::fmt::Write as _;

use dflow_ir::image::Image;
use dflow_ir::target::TargetId;
use dflow_ir::ty::{ElementType, Ty};
use dflow_syntax::diagnostic::render;

use super::options;
use crate::collect::Case;
use crate::header::End;
use crate::matrix::{self, Given, Record};
use crate::snapshot;

/// Runs on every target; a target after the first has its own snapshot.
pub(super) fn run(case: &Case) -> Result<(), String> {
    for (index, &target) in case.header.targets.iter().enumerate() {
        let text =
            run_on(case, target).map_err(|fault| format!("on {}: {fault}", target.name()))?;
        let stage = if index == 0 { "run".into() } else { format!("run.{}", target.name()) };
        snapshot::compare(&case.file(), &stage, &text)?;
    }
    Ok(())
}

fn run_on(case: &Case, target: TargetId) -> Result<String, String> {
    let compiled = dflow_compiler::compile(&case.world(), &case.path, options(case, target));
    let Some(image) = compiled.image else {
        let lines = compiled.diagnostics.iter().map(|d| render::short(&compiled.sources, d));
        return Err(lines.collect::<Vec<_>>().join("\n"));
    };
    // What runs is what comes back from disk.
    let image = Image::decode(&image.encode()).map_err(|error| error.to_string())?;
    let given = Given::new(&case.header)?;
    let mut text = String::new();
    if let Some(host) = &image.host {
        let record = matrix::run(&image, host, &given)?;
        if record.end != case.header.end {
            let (wanted, end) = (case.header.end, record.end);
            return Err(format!("expected to end {wanted:?}, ended {end:?}: {}", record.message));
        }
        show(&mut text, &record);
    }
    for (name, program) in &image.tests {
        let record = matrix::run(&image, program, &given)?;
        if record.end != End::Ok {
            return Err(format!("test `{name}`: {}", record.message));
        }
        let _ = writeln!(text, "test {name}: ok");
        for note in &record.notes {
            let _ = writeln!(text, "  {note}");
        }
    }
    if image.host.is_none() && image.tests.is_empty() {
        return Err("there is neither a host block nor a test block".into());
    }
    Ok(text)
}

fn show(text: &mut String, record: &Record) {
    for line in &record.printed {
        let _ = writeln!(text, "{line}");
    }
    for (name, ty, bytes) in &record.outputs {
        let _ = writeln!(text, "output {name}: {}", values(*ty, bytes));
    }
    for note in &record.notes {
        let _ = writeln!(text, "{note}");
    }
    let _ = match record.end {
        End::Ok => writeln!(text, "end: ok"),
        end @ (End::Failed | End::Trap | End::Deadlock | End::Limit) => {
            writeln!(text, "end: {end:?}\n{}", record.message)
        }
    };
}

/// Type, number of elements, and the first of them in raw form.
fn values(ty: ElementType, bytes: &[u8]) -> String {
    const SHOWN: usize = 16;
    let size = ty.ty.bytes() as usize;
    let elements = bytes.chunks_exact(size).map(|element| {
        let raw = element.iter().rev().fold(0u64, |raw, &byte| raw << 8 | u64::from(byte));
        match ty.ty {
            Ty::F32 => f32::from_bits(raw as u32).to_string(),
            Ty::F64 => f64::from_bits(raw).to_string(),
            Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 | Ty::F16 | Ty::Bf16 => format!("{raw:#x}"),
        }
    });
    let count = bytes.len() / size;
    let first: Vec<_> = elements.take(SHOWN).collect();
    let more = if count > SHOWN { " …" } else { "" };
    format!("{count} x {}: {}{more}", ty.name(), first.join(" "))
}
