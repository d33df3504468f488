//! Programs of the library, run as users run them.

use dflow_compiler::{MemoryWorld, Options, compile};
use dflow_ir::image::Image;
use dflow_ir::target::TargetId;
use dflow_runtime::config::{Config, Limits};
use dflow_runtime::host::{HostEnv, HostOutcome, Input, Output, run_image};

/// What a run without inputs and settings printed.
#[derive(Default)]
struct Printed(Vec<String>);

impl HostEnv for Printed {
    fn has_input(&self, _: &str) -> bool {
        false
    }

    fn input(&mut self, _: &str) -> Result<Input, String> {
        Err("not given".to_owned())
    }

    fn setting(&self, _: &str) -> Option<String> {
        None
    }

    fn output(&mut self, _: Output) -> Result<(), String> {
        Ok(())
    }

    fn print(&mut self, line: &str) {
        self.0.push(line.to_owned());
    }
}

/// The program's image, or what is wrong with it.
pub(crate) fn program(
    name: &str,
    target: TargetId,
    params: &[(&str, &str)],
) -> Result<Image, String> {
    let source = dflow_stdlib::PROGRAMS.iter().find(|program| program.name == name);
    let source = source.expect("it comes with the tool");
    let world = MemoryWorld::new().with(source.path, source.text);
    let params = params.iter().map(|&(name, value)| (name.into(), value.to_owned())).collect();
    let options = Options { params, target, tests: true, ..Options::default() };
    let compiled = compile(&world, source.path, options);
    compiled.image.ok_or_else(|| format!("{:?}", compiled.diagnostics))
}

/// Runs the host block to its good end; gives what it printed.
pub(crate) fn run(name: &str, target: TargetId, params: &[(&str, &str)]) -> Vec<String> {
    let image = program(name, target, params).unwrap_or_else(|error| panic!("{error}"));
    let host = image.host.as_ref().expect("it has a host block");
    let mut printed = Printed::default();
    let result = run_image(&image, host, &Config::default(), &Limits::default(), &mut printed);
    let run = result.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(run.outcome, HostOutcome::Done, "{params:?}: {:?}", printed.0);
    printed.0
}
