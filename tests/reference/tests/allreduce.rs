//! The programs of `stdlib/allreduce` as users run them: they check their results themselves.
#![forbid(unsafe_code)]

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
fn program(name: &str, target: TargetId, params: &[(&str, &str)]) -> Result<Image, String> {
    let source = dflow_stdlib::programs().iter().find(|program| program.name == name);
    let source = source.expect("it comes with the tool");
    let world = MemoryWorld::new().with(source.path, source.text);
    let params = params.iter().map(|&(name, value)| (name.into(), value.to_owned())).collect();
    let options = Options { params, target, tests: true, ..Options::default() };
    let compiled = compile(&world, source.path, options);
    compiled.image.ok_or_else(|| format!("{:?}", compiled.diagnostics))
}

/// Runs the host block to its good end; gives what it printed.
fn run(name: &str, target: TargetId, params: &[(&str, &str)]) -> Vec<String> {
    let image = program(name, target, params).unwrap_or_else(|error| panic!("{error}"));
    let host = image.host.as_ref().expect("it has a host block");
    let mut printed = Printed::default();
    let result = run_image(&image, host, &Config::default(), &Limits::default(), &mut printed);
    let run = result.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(run.outcome, HostOutcome::Done, "{params:?}: {:?}", printed.0);
    printed.0
}

#[test]
fn every_algorithm_sums_on_both_targets() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        for algorithm in
            ["auto", "star", "chain", "tree", "two_phase", "generated", "snake", "relay"]
        {
            let params =
                [("width", "11"), ("height", "6"), ("length", "9"), ("algorithm", algorithm)];
            let printed = run("allreduce", target, &params);
            assert!(printed.iter().any(|line| line.starts_with("equal to the host's")));
        }
        let ring = [("width", "5"), ("height", "1"), ("length", "64"), ("algorithm", "ring")];
        run("allreduce", target, &ring);
    }
}

#[test]
fn it_runs_without_arguments_and_says_why() {
    let printed = run("allreduce", TargetId::Wse2, &[]);
    assert!(printed[1].contains("the cheapest by the model"), "{printed:?}");
}

#[test]
fn lines_are_near_their_lower_bound() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        let printed = run("allreduce_table", target, &[("sizes", "3"), ("lengths", "6")]);
        assert_eq!(printed.len(), 3 * 6 + 2);
    }
}

#[test]
fn all_pes_of_a_wafer_know_the_sum() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        run("allreduce_wafer", target, &[("width", "60"), ("height", "40")]);
    }
}

#[test]
fn what_does_not_fit_is_refused_with_what_does() {
    let refusal = |params: &[(&str, &str)]| {
        program("allreduce", TargetId::Wse2, params).expect_err("it is refused")
    };
    assert!(refusal(&[("length", "0")]).contains("at least one element"));
    assert!(refusal(&[("length", "20000")]).contains("a vector of up to 10240 elements"));
    assert!(refusal(&[("width", "751")]).contains("wse2 holds up to 750 x 994"));
    assert!(refusal(&[("algorithm", "best")]).contains("takes one of auto, star, chain"));
    assert!(refusal(&[("operation", "mean")]).contains("takes one of sum, min, max"));
    assert!(refusal(&[("algorithm", "ring"), ("height", "2")]).contains("made of a row"));
}
