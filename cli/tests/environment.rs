//! What the environment decides for `dflowc`.

#![forbid(unsafe_code)]

use std::process::Command;

/// An old spelling, which a later release is told of.
const PROGRAM: &str = "// dflow: sdk-version=1.4
const size: comptime_struct = .{ .width = 1 };
layout { @set_rectangle(size.width, 1); @set_tile_code(0, 0); }
";

/// Exit code and errors of `dflowc check` with this value of `DFLOW_SDK_VERSION`.
fn check(program: &str, version: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("layout.csl"), program).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dflowc"));
    command.current_dir(folder.path()).args(["check", "layout.csl"]);
    let output = command.env("DFLOW_SDK_VERSION", version).output().expect("the tool starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_release_in_the_environment_goes_before_the_comment_in_the_file() {
    assert_eq!(check(PROGRAM, ""), (Some(0), String::new()));
    let (code, said) = check(PROGRAM, "2.10");
    assert!(code == Some(0) && said.contains("`comptime_struct` is an old spelling"), "{said}");
}

#[test]
fn what_names_no_release_is_refused_and_what_never_was_one_is_warned_of() {
    let (code, said) = check(PROGRAM, "banana");
    assert!(code == Some(2) && said.contains("`banana` is no version of the SDK"), "{said}");
    let (code, said) = check(PROGRAM, "1.5");
    assert!(code == Some(0) && said.contains("there is no SDK 1.5"), "{said}");
    let (code, said) = check(
        "// dflow: sdk-version=2.9\nlayout { @set_rectangle(1, 1); @set_tile_code(0, 0); }\n",
        "",
    );
    assert!(code == Some(0) && said.contains("layout.csl:1:1"), "{said}");
}
