//! Names on the command line against names in the program: a slip is an error, not a silence.

use dflow_ir::image::Image;
use dflow_ir::inst::InstData;
use dflow_ir::program::{HostOp, Program};
use dflow_ir::ty::ElementType;

use crate::data::{Binding, split_type};
use crate::exit::Failure;

/// What the host programs of an image ask for.
#[derive(Debug, Default)]
struct Asked {
    inputs: Vec<String>,
    outputs: Vec<String>,
    settings: Vec<String>,
    /// Each place that gives an output, with the type of its elements.
    given: Vec<(String, ElementType)>,
}

impl Asked {
    fn of(image: &Image) -> Asked {
        let mut asked = Asked::default();
        let tests = image.tests.iter().map(|(_, program)| program);
        image.host.iter().chain(tests).for_each(|program| asked.add(program));
        for names in [&mut asked.inputs, &mut asked.outputs, &mut asked.settings] {
            names.sort();
            names.dedup();
        }
        asked
    }

    fn add(&mut self, program: &Program) {
        let insts = program.funcs.values().flat_map(|func| func.insts.values());
        for inst in insts {
            let InstData::Host { op, .. } = inst else { continue };
            match op {
                HostOp::Input { name, .. } => self.inputs.push(name.clone()),
                HostOp::HasInput { name } => self.inputs.push(split_type(name).0.to_owned()),
                HostOp::Output { name, ty } => {
                    self.outputs.push(name.clone());
                    self.given.push((name.clone(), *ty));
                }
                HostOp::Setting { name, .. } | HostOp::HasSetting { name } => {
                    self.settings.push(name.clone());
                }
                HostOp::CopyIn { .. }
                | HostOp::CopyOut { .. }
                | HostOp::Launch { .. }
                | HostOp::StreamIn { .. }
                | HostOp::StreamOut { .. }
                | HostOp::StreamOutRows { .. }
                | HostOp::Wait
                | HostOp::Alloc
                | HostOp::Print { .. }
                | HostOp::Expect { .. }
                | HostOp::Cycles
                | HostOp::ClockRate
                | HostOp::AssumedShare
                | HostOp::Wavelets
                | HostOp::Math(_) => {}
            }
        }
    }
}

/// Every setting must be a param of the layout or a setting that a host block reads.
///
/// # Errors
/// Wrong use, naming what there is.
pub(crate) fn check_settings(image: &Image, settings: &[(String, String)]) -> Result<(), Failure> {
    let mut known = Asked::of(image).settings;
    known.extend(image.params.iter().map(|(name, _)| name.clone()));
    known.sort();
    known.dedup();
    for (index, (name, _)) in settings.iter().enumerate() {
        if !known.contains(name) {
            return Err(unknown("param or setting", name, &known));
        }
        if settings[..index].iter().any(|(other, _)| other == name) {
            return Err(Failure::usage(format!("`{name}` is set twice")));
        }
    }
    Ok(())
}

/// Params of the layout cannot be set any more when the image is built.
///
/// # Errors
/// Wrong use: one is set to another value.
pub(crate) fn check_fixed(image: &Image, settings: &[(String, String)]) -> Result<(), Failure> {
    let read_by_host = Asked::of(image).settings;
    for (name, value) in settings {
        let built = image.params.iter().find(|(param, _)| param == name);
        if let Some((_, built)) = built
            && built != value
            && !read_by_host.contains(name)
        {
            return Err(Failure::usage(format!(
                "the image was built with {name}={built}: give it as it stands there or not at all, or build again with --set {name}={value}"
            )));
        }
    }
    Ok(())
}

/// Every input and output must be one that the host block reads or gives, outputs of the type of their files.
///
/// # Errors
/// Wrong use, naming what there is.
pub(crate) fn check_bindings(
    image: &Image,
    inputs: &[Binding],
    outputs: &[Binding],
) -> Result<(), Failure> {
    let asked = Asked::of(image);
    for (index, input) in inputs.iter().enumerate() {
        if !asked.inputs.contains(&input.name) {
            return Err(unknown("input", &input.name, &asked.inputs));
        }
        if inputs[..index].iter().any(|other| other.name == input.name) {
            return Err(Failure::usage(format!("input `{}` is given twice", input.name)));
        }
    }
    outputs.iter().try_for_each(|output| check_output(&asked, output))
}

/// An output of another type than the file would have is known to be wrong before the run.
fn check_output(asked: &Asked, output: &Binding) -> Result<(), Failure> {
    let name = &output.name;
    let mut given = asked.given.iter().filter(|(other, _)| other == name);
    let Some(&(_, first)) = given.clone().next() else {
        return Err(unknown("output", name, &asked.outputs));
    };
    if given.any(|&(_, ty)| output.check_type(ty).is_ok()) {
        return Ok(());
    }
    let refused = output.check_type(first);
    refused.map_err(|why| Failure::usage(format!("output `{name}`: {why}")))
}

fn unknown(kind: &str, name: &str, known: &[String]) -> Failure {
    let there = match known {
        [] => "it has none".to_owned(),
        names => format!("it has {}", names.join(", ")),
    };
    Failure::usage(format!("the program has no {kind} `{name}`; {there}"))
}
