//! Wrong and hostile use: one clear message, the right exit code, no panic, no half-written file.

#![forbid(unsafe_code)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

fn dflowc(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dflowc")).args(args).output().expect("the tool starts")
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn file(folder: &TempDir, name: &str, bytes: &[u8]) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("a file");
    path.to_string_lossy().into_owned()
}

/// Exit code and message; a panic fails at once.
#[track_caller]
fn verdict(args: &[&str]) -> (i32, String) {
    let output = dflowc(args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("internal error") && !said.contains("panicked"), "{args:?}: {said}");
    (output.status.code().unwrap_or(-1), said)
}

#[test]
fn missing_files_and_folders_are_wrong_use() {
    let there = folder();
    let path = there.path().to_string_lossy().into_owned();
    for command in ["check", "run", "build", "test"] {
        assert_eq!(
            verdict(&[command, "no-such-file.dfl"]),
            (2, "dflowc: no-such-file.dfl: no such file\n".into())
        );
        let why = match command {
            "test" => format!("no file below {path} has a test block"),
            _ => format!("{path} is a folder"),
        };
        assert_eq!(verdict(&[command, &path]), (2, format!("dflowc: {why}\n")));
    }
}

#[test]
fn hostile_sources_are_refused_quickly() {
    let there = folder();
    let random: Vec<u8> =
        (0..10_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let parens = format!("const a = {}1{};\n", "(".repeat(100_000), ")".repeat(100_000));
    let chain = format!("const a = 1{};\n", " + 1".repeat(100_000));
    let cases: [(&str, Vec<u8>); 4] = [
        ("empty.dfl", Vec::new()),
        ("random.dfl", random),
        ("parens.dfl", parens.into_bytes()),
        ("huge.dfl", b"const a = @zeros([1 << 40]u8);\nlayout { @set_rectangle(a[0] + 1, 1); @set_tile_code(0, 0); }\n".to_vec()),
    ];
    for (name, bytes) in cases {
        let path = file(&there, name, &bytes);
        let (code, said) = verdict(&["check", &path]);
        assert_eq!(code, 1, "{name}: {said}");
        assert!(said.contains("error"), "{name}: {said}");
        assert!(said.len() < 100_000, "{name}: {} bytes of messages", said.len());
    }
    // A long chain is legal; it must not overflow anything.
    let path = file(&there, "chain.dfl", chain.as_bytes());
    let (code, said) = verdict(&["check", &path]);
    assert_eq!(code, 1, "there is no layout: {said}");
}

#[test]
fn of_many_misspelt_names_the_first_hundred_get_a_suggestion() {
    let there = folder();
    let mut text = String::from("layout { @set_rectangle(1, 1);\nconst valve = 0;\n");
    for i in 0..150 {
        text.push_str(&format!("const value_{i} = valve_{i};\n"));
    }
    text.push_str("}\n");
    let path = file(&there, "many.dfl", text.as_bytes());
    let output = dflowc(&["check", "--json", &path]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.matches("is not declared").count(), 150);
    assert_eq!(said.matches("did you mean").count(), 100);
}

#[test]
fn an_error_is_shown_however_many_warnings_there_are() {
    let there = folder();
    let mut text = String::new();
    for i in 0..150 {
        text.push_str(&format!("const value_{i}: u16 = missing_{i};\n"));
    }
    text.push_str("layout { @set_rectangle(1, 1); }\n");
    let path = file(&there, "many.csl", text.as_bytes());
    let (code, said) = verdict(&["check", &path]);
    assert_eq!(code, 1);
    assert!(said.contains("error[tile-missing]"), "{said}");
    assert_eq!(said.matches("warning[").count(), 99);
    assert!(said.ends_with("... 51 more are not shown\n1 error and 150 warnings\n"), "{said}");
}

#[test]
fn bad_images_are_refused() {
    let there = folder();
    for (name, bytes, word) in [
        ("empty.dfi", &b""[..], "not a dflow image"),
        ("text.dfi", b"const a = 1;", "not a dflow image"),
        ("short.dfi", &[b"DFLI", &dflow_ir::image::VERSION.to_le_bytes()[..]].concat(), "damaged"),
        ("other.dfi", b"DFLI\x63\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "version 99"),
    ] {
        let path = file(&there, name, bytes);
        let (code, said) = verdict(&["run", &path]);
        assert_eq!(code, 2, "{name}: {said}");
        assert!(said.contains(word) && said.lines().count() == 1, "{name}: {said}");
    }
}

#[test]
fn images_are_not_compiled() {
    let there = folder();
    let text = "layout { @set_rectangle(1, 1); @set_tile_code(0, 0, t, .{}); } tile t {} host {}";
    let source = file(&there, "a.dfl", text.as_bytes());
    let image = there.path().join("a.dfi").to_string_lossy().into_owned();
    assert_eq!(verdict(&["build", &source, "-o", &image]).0, 0);
    for args in [&["check"][..], &["test"], &["build"], &["dump", "--stage", "plan"]] {
        let (code, said) = verdict(&[args, &[&image]].concat());
        assert_eq!(code, 2, "{args:?}: {said}");
        assert!(said.contains("a.dfi is an image") && said.lines().count() == 1, "{said}");
    }
    assert_eq!(verdict(&["run", &image]).0, 0);
}

#[test]
fn wrong_options_are_wrong_use() {
    for args in [
        &["run"][..],
        &["run", "a.dfl", "--set", "x"],
        &["run", "a.dfl", "--input", "x"],
        &["run", "a.dfl", "--engine", "warp"],
        &["run", "a.dfl", "--max-memory", "1Q"],
        &["run", "a.dfl", "--threads", "0"],
        &["run", "a.dfl", "--threads", "-1"],
        &["dump", "a.dfl"],
        &["dump", "a.dfl", "--stage", "soup"],
        &["explain", "no-such-code"],
        &["frobnicate"],
    ] {
        let (code, said) = verdict(args);
        assert_eq!(code, 2, "{args:?}");
        // A number below 0 is no option.
        assert!(!said.contains("tip:"), "{args:?}: {said}");
    }
}

#[test]
fn places_that_cannot_be_written_are_known_at_once() {
    let there = folder();
    let source = file(&there, "a.dfl", b"layout {");
    let (code, said) = verdict(&["build", &source, "-o", "/no/such/folder/a.dfi"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("its folder does not exist"), "{said}");
}

#[test]
fn nothing_is_left_behind_by_a_refused_build() {
    let there = folder();
    let source = file(&there, "a.dfl", b"layout {");
    let target = there.path().join("a.dfi");
    let (code, _) = verdict(&["build", &source, "-o", &target.to_string_lossy()]);
    assert_eq!(code, 1);
    assert_eq!(names(there.path()), [PathBuf::from("a.dfl")]);
}

fn names(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> =
        entries.flatten().map(|entry| PathBuf::from(entry.file_name())).collect();
    names.sort();
    names
}

#[test]
fn no_output_takes_the_place_of_a_source() {
    let there = folder();
    let text = b"layout { @set_rectangle(1, 1); @set_tile_code(0, 0); }\nhost { @output(\"v\", @alloc(u16, 4)); }\n";
    let source = file(&there, "program.dfl", text);
    let link = there.path().join("link.dfl");
    std::os::unix::fs::symlink(&source, &link).expect("a link");
    for place in [source.as_str(), &link.to_string_lossy()] {
        for args in [
            &["build", &source, "-o", place][..],
            &["run", &source, "--output", &format!("v={place}")],
        ] {
            let (code, said) = verdict(args);
            assert_eq!(code, 2, "{args:?}: {said}");
            assert!(said.contains("the program was read from it"), "{args:?}: {said}");
        }
    }
    assert_eq!(std::fs::read(&source).expect("still there"), text);
    let image = there.path().join("program.dfi").to_string_lossy().into_owned();
    assert_eq!(verdict(&["build", &source, "-o", &image]).0, 0);
    let (code, said) = verdict(&["run", &image, "--output", &format!("v={image}")]);
    assert_eq!((code, said.contains("the program was read from it")), (2, true), "{said}");
}

#[test]
fn a_closed_pipe_is_quiet() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dflowc"))
        .arg("explain")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tool starts");
    // Closed before a byte is read.
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the tool ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_message() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let output = Command::new(env!("CARGO_BIN_EXE_dflowc"))
        .arg("explain")
        .stdout(full)
        .output()
        .expect("the tool starts");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "dflowc: cannot write to standard output: the disk is full\n");
}

#[test]
fn a_source_may_come_from_a_pipe() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dflowc"))
        .args(["check", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tool starts");
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(b"const a = 1;\nconst b = ;\n");
    }
    let output = child.wait_with_output().expect("the tool ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/dev/stdin:2"));
}
