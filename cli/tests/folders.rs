//! `dflowc test FOLDER`: the tests of all files below it, and one verdict.

#![forbid(unsafe_code)]

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A program with these blocks, on one PE that does nothing.
fn program(blocks: &str) -> String {
    format!(
        "layout {{ @set_rectangle(1, 1); @set_tile_code(0, 0, t, .{{}}); }}\ntile t {{}}\n{blocks}\n"
    )
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    folder
}

fn test(folder: &TempDir, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dflowc"));
    let Output { status, stdout, stderr } =
        command.current_dir(folder.path()).args(["test", "."]).args(args).output().expect("starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn tests_of_all_files_are_run() {
    let good = program("host {} test \"one\" {} test \"two\" { @print(\"x\", .{}); }");
    let plain = program("host { @expect(false); }");
    let library = "fn double(x: u16) u16 { return 2 * x; }";
    let all =
        folder(&[("a.dfl", &good), ("in/b.dfl", &good), ("c.dfl", &plain), ("d.dfl", library)]);
    let (code, said, _) = test(&all, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("./a.dfl\ntest one ... ok"), "{said}");
    assert!(said.contains("./in/b.dfl\n") && !said.contains("c.dfl"), "{said}");
    assert!(said.contains("4 passed, 0 failed in 2 files ("), "{said}");
    let (_, said, _) = test(&all, &["two"]);
    assert!(said.contains("2 passed, 0 failed in 2 files ("), "{said}");
}

/// Nobody writes to the pipe: whoever opens it waits for ever.
#[cfg(unix)]
#[test]
fn pipes_are_no_programs() {
    let all = folder(&[("a.dfl", &program("host {} test \"one\" {}"))]);
    let made = Command::new("mkfifo").arg(all.path().join("b.dfl")).status();
    assert!(made.is_ok_and(|status| status.success()));
    let (code, said, _) = test(&all, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 passed, 0 failed in 1 files ("), "{said}");
}

#[test]
fn what_fails_and_what_does_not_compile_is_told() {
    let bad = program("test \"one\" { @expect(1 == 2); } test \"two\" {}");
    let broken = program("test \"three\" { nobody(); }");
    let all = folder(&[("a.dfl", &bad), ("b.dfl", &broken)]);
    let (code, said, complained) = test(&all, &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("test one ... FAILED") && said.contains("test two ... ok"), "{said}");
    assert!(said.contains("1 passed, 2 failed in 2 files ("), "{said}");
    assert!(complained.contains("nobody"), "{complained}");
    let (code, said, _) = test(&all, &["--json"]);
    assert_eq!(code, Some(1));
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("\"passed\":1") && said.contains("\"file\":\"./b.dfl\""), "{said}");
}

#[test]
fn a_folder_without_tests_is_wrong_use() {
    let empty = folder(&[("a.dfl", &program("host {}"))]);
    let (code, _, complained) = test(&empty, &[]);
    assert_eq!(code, Some(2));
    assert!(complained.contains("no file below . has a test block"), "{complained}");
    let (code, _, complained) = test(&empty, &["--set", "n=3"]);
    assert_eq!(code, Some(2));
    assert!(complained.contains("name a file"), "{complained}");
}

/// The second file imports a pipe that nobody writes to.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_takes_long_to_compile_is_given_up_at_once() {
    let good = program("host {} test \"one\" {}");
    let import = "tile t { const slow = @import_module(\"pipe.csl\"); comptime { slow.go(); } }";
    let slow = good.replace("tile t {}", import);
    let all = folder(&[("a.dfl", &good), ("b.dfl", &slow)]);
    let made = Command::new("mkfifo").arg(all.path().join("pipe.csl")).status();
    assert!(made.expect("mkfifo exists").success());
    let mut child = Command::new(env!("CARGO_BIN_EXE_dflowc"))
        .current_dir(all.path())
        .args(["test", "."])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the tool starts");
    let said = BufReader::new(child.stdout.take().expect("piped"));
    let begins = |line: Result<String, _>| line.is_ok_and(|line| line.contains("b.dfl"));
    assert!(said.lines().any(begins), "it comes to the second file");
    std::thread::sleep(Duration::from_millis(50));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill exists").success());
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline && child.try_wait().expect("it is ours").is_none() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let status = child.try_wait().expect("it is ours");
    if status.is_none() {
        child.kill().expect("it is ours");
    }
    assert_eq!(status.and_then(|status| status.code()), Some(130));
}
