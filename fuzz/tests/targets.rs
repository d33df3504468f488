//! Every target starts, runs its seeds and finds nothing in them. (It also makes cargo build the
//! targets together with the tests: the gate runs them as they are.)

#![forbid(unsafe_code)]

use std::process::Command;

fn runs(program: &str) {
    let output = Command::new(program).args(["--seconds", "0"]).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("no finding"), "{said}");
}

#[test]
fn parse() {
    runs(env!("CARGO_BIN_EXE_parse"));
}

#[test]
fn compile() {
    runs(env!("CARGO_BIN_EXE_compile"));
}

#[test]
fn image() {
    runs(env!("CARGO_BIN_EXE_image"));
}

#[test]
fn compressed() {
    runs(env!("CARGO_BIN_EXE_compressed"));
}

#[test]
fn engines() {
    runs(env!("CARGO_BIN_EXE_engines"));
}
