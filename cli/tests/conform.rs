//! `dflowc conform` on program folders of our own. The Python is a shell script: what is tested is
//! finding, staging, running and judging.

#![forbid(unsafe_code)]
#![cfg(unix)]

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Answers what conform asks, and runs "host scripts" as shell scripts.
const PYTHON: &str = "#!/bin/sh
case \"$1 $2\" in
*--version*) exec \"$CSLC\" --version;;
-c*) echo /compat:/package; exit 0;;
esac
exec sh \"$@\"
";

const LAYOUT: &str = "\
param n: u16;
layout {
  @set_rectangle(1, 1);
  @set_tile_code(0, 0, \"../lib/pe.csl\", .{ .n = n });
}
";

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().expect("a folder"));
        place.program("python", PYTHON);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    /// Another process writes it: those that other tests start meanwhile would have the file open for
    /// writing too, and the system runs no such file.
    fn program(&self, name: &str, text: &str) {
        let mut shell = Command::new("sh")
            .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
            .arg(self.path(name))
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut input = shell.stdin.take().expect("its input");
        input.write_all(text.as_bytes()).expect("a program");
        drop(input);
        assert!(shell.wait().expect("an end").success());
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dflowc"));
        command
            .arg("conform")
            .args(args)
            .current_dir(self.0.path())
            .env("CSLC", env!("CARGO_BIN_EXE_cslc"))
            .env("DFLOW_PYTHON", self.path("python"));
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the tool starts")
    }

    /// Runs with these arguments; gives the exit code and the JSON.
    #[track_caller]
    fn json(&self, args: &[&str]) -> (i32, Value) {
        let mut all = vec!["code", "--json", "-"];
        all.extend(args);
        let output = self.run(&all);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}{said}"));
        (output.status.code().unwrap_or(-1), value)
    }
}

fn results(json: &Value) -> Vec<(String, String, String)> {
    let word = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let rows = json["results"].as_array().expect("results");
    rows.iter()
        .map(|row| (word(row, "program"), word(row, "verdict"), word(row, "reason")))
        .collect()
}

#[test]
fn each_verdict_has_its_cause() {
    let place = Place::new();
    let script = |name: &str, text: &str| {
        place.file(
            &format!("code/{name}/commands_wse2.sh"),
            &format!("#!/usr/bin/env bash\nset -e\n{text}\n"),
        );
    };
    script("a-pass", "cslc layout.csl --params=n:3 -o out\ncs_python run.py --name out");
    place.file("code/a-pass/layout.csl", LAYOUT);
    place.file("code/lib/pe.csl", "param n: u16;");
    place.file(
        "code/a-pass/run.py",
        "test \"$1 $2\" = '--name out'; test -f out/bin/program.dfi\n\
         echo '{\"cycles\": 40}' >> \"$DFLOW_STATS_FILE\"\necho '{\"cycles\": 2}' >> \"$DFLOW_STATS_FILE\"\n\
         case $PYTHONPATH in /compat:/package*) echo SUCCESS!;; esac",
    );
    script("b-fail", "echo 'AssertionError: 3 differ'; exit 1");
    script("c-says-so", "echo '  result: FAIL'");
    script("d-refused", "cslc layout.csl");
    place.file("code/d-refused/layout.csl", LAYOUT);
    script("e-hang", "echo 'dflow.errors.Deadlock: nothing can move'; exit 1");
    script("f-module", "echo \"ModuleNotFoundError: No module named 'pandas'\"; exit 1");
    script("g-command", "no-such-command-anywhere");
    script("h-option", "cslc --single-pe layout.csl");
    script("i-slow", "sleep 600 & sleep 600");
    let start = Instant::now();
    let (code, json) = place.json(&["--timeout", "3", "--jobs", "4"]);
    assert!(start.elapsed() < Duration::from_secs(60));
    assert_eq!(code, 1);
    let expected = [
        ("a-pass", "pass", ""),
        ("b-fail", "fail", "AssertionError: 3 differ"),
        ("c-says-so", "fail", "it printed `result: FAIL`"),
        ("d-refused", "compile-error", "error[missing-param]"),
        ("e-hang", "hang", "dflow.errors.Deadlock: nothing can move"),
        ("f-module", "environment", "the Python module pandas is missing"),
        ("g-command", "environment", "the command no-such-command-anywhere is missing"),
        ("h-option", "unsupported", "cslc: --single-pe is not supported"),
        ("i-slow", "timeout", "not done after 3 s"),
    ];
    let found = results(&json);
    assert_eq!(found.len(), expected.len());
    for ((name, verdict, reason), found) in expected.iter().zip(&found) {
        assert_eq!((*name, *verdict), (found.0.as_str(), found.1.as_str()), "{}", json["results"]);
        assert!(
            found.2.starts_with(reason) && reason.is_empty() == found.2.is_empty(),
            "{}",
            found.2
        );
    }
    assert_eq!(json["results"][0]["cycles"], 42);
    assert_eq!(json["totals"]["pass"], 1);
    assert_eq!(json["scripts"], 9);
    // Nothing is written where the programs are.
    assert!(!place.path("code/a-pass/out").exists());
}

#[test]
fn scripts_are_found_sorted_and_filtered() {
    let place = Place::new();
    for name in [
        "code/z/commands_wse3.sh",
        "code/z/commands_wse2.sh",
        "code/a/deep er/commands.sh",
        "code/a/commands_large.sh",
        "code/.git/commands.sh",
        "code/a/notes.sh",
    ] {
        place.file(name, "echo done");
    }
    place.file("code/a/deep er/commands.sh", "#!/bin/sh\n: cslc --arch wse3");
    let names = |args: &[&str]| {
        let (code, json) = place.json(args);
        assert_eq!(code, 0);
        let rows = json["results"].as_array().expect("results").clone();
        let name = |row: &Value| {
            let word = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}", word("program"), word("script"), word("target"))
        };
        rows.iter().map(name).collect::<Vec<_>>()
    };
    let all = [
        "a commands_large.sh wse2",
        "a/deep er commands.sh wse3",
        "z commands_wse2.sh wse2",
        "z commands_wse3.sh wse3",
    ];
    assert_eq!(names(&[]), all);
    assert_eq!(names(&["--target", "wse3"]), [all[1], all[3]]);
    assert_eq!(names(&["--filter", "deep"]), [all[1]]);
    assert_eq!(names(&["--script", "notes.sh"]), ["a notes.sh wse2"]);
    let output = place.run(&["code", "--filter", "nothing"]);
    assert_eq!(output.status.code(), Some(2));
    let output = place.run(&["code/a/deep er/none"]);
    assert_eq!(output.status.code(), Some(2));
    let output = place.run(&["code", "--json", "no/such/x"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), said.lines().count()),
        (Some(2), 1),
        "no script has run: {said}"
    );
    assert!(said.contains("cannot write no/such/x: its folder does not exist"), "{said}");
    place.file("empty/x", "");
    let output = place.run(&["empty"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no program below empty"));
}

#[test]
fn scripts_do_not_see_what_others_left() {
    let place = Place::new();
    place.file("code/p/data.txt", "1\n");
    for target in ["wse2", "wse3"] {
        let text = "test ! -e left; test \"$(cat data.txt)\" = 1; touch left; echo 2 > data.txt";
        place.file(&format!("code/p/commands_{target}.sh"), &format!("set -e\n{text}\n"));
    }
    let mut rights = std::fs::metadata(place.path("code/p/data.txt")).expect("there").permissions();
    rights.set_mode(0o444);
    std::fs::set_permissions(place.path("code/p/data.txt"), rights).expect("rights");
    let (code, json) = place.json(&["--jobs", "1", "--keep", "kept"]);
    assert_eq!(code, 0, "{json}");
    for target in ["wse2", "wse3"] {
        let kept = place.path(&format!("kept/p/commands_{target}"));
        assert_eq!(std::fs::read_to_string(kept.join("data.txt")).expect("kept"), "2\n");
    }
    assert_eq!(std::fs::read_to_string(place.path("code/p/data.txt")).expect("there"), "1\n");
}

#[test]
fn the_macro_of_the_vendors_harness_is_expanded_and_counted() {
    let place = Place::new();
    place.file(
        "code/p/commands_wse2.sh",
        "#!/usr/bin/env bash\nset -e\n%python_sdk_paint --arch=wse2\n",
    );
    place.file("code/p/run.py", "test \"$*\" = --arch=wse2\n");
    place.file("code/q/commands_wse2.sh", "true\n");
    let output = place.run(&["code"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("2 scripts: 2 pass\n* 1 of them holds a line `%python_sdk_paint`"),
        "{text}"
    );
    let (_, json) = place.json(&[]);
    assert_eq!(json["harness_macro"], 1);
}

#[test]
fn the_table_shows_how_failures_end() {
    let place = Place::new();
    place.file("code/p/commands.sh", "seq 100; exit 3\n");
    place.file("code/q/commands.sh", "echo all is well\n");
    let text = |args: &[&str]| {
        let output = place.run(args);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, table) = text(&["code"]);
    assert_eq!(code, Some(1));
    assert!(table.starts_with("--- p (wse2): fail\n    [88 lines]\n    89\n"), "{table}");
    assert!(
        table.contains("\np        wse2    fail ") && table.contains("exit code 3\n"),
        "{table}"
    );
    assert!(
        table.ends_with("2 scripts: 1 pass, 1 fail\n") && !table.contains("all is well"),
        "{table}"
    );
    let (_, table) = text(&["code", "--verbose"]);
    assert!(table.contains("    1\n    2\n") && table.contains("all is well"), "{table}");
}

#[test]
fn a_python_that_lacks_something_is_told_what_to_run() {
    let place = Place::new();
    place.file("code/p/commands.sh", "true");
    let said = |python: &Path| {
        let output = place.run(&["code", "--python", &python.to_string_lossy()]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (module, help) in [
        ("numpy", "-m pip install numpy scipy matplotlib`"),
        ("dflow", "run `cargo xtask wheel` and"),
    ] {
        let name = format!("{module}-less");
        place.program(
            &name,
            &format!(
                "#!/bin/sh\necho \"ModuleNotFoundError: No module named '{module}'\" >&2\nexit 1\n"
            ),
        );
        let text = said(&place.path(&name));
        assert!(text.contains(help) && text.contains("--venv DIR"), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    assert!(said(Path::new("/no/python")).contains("cannot be started"));
    place.program("old", "#!/bin/sh\necho cslc 0.0.1, build 7\n");
    assert!(said(&place.path("old")).contains("is of another build"));
}

#[test]
fn an_interrupt_ends_all_processes() {
    let place = Place::new();
    place.file("code/p/commands.sh", "echo $$ > \"$MARK\"\nsleep 600\n");
    let (mark, scratch) = (place.path("mark"), place.path("scratch"));
    std::fs::create_dir(&scratch).expect("a folder");
    let child = place
        .command(&["code"])
        .env("MARK", &mark)
        .env("TMPDIR", &scratch)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tool starts");
    let start = Instant::now();
    let pid = loop {
        if let Ok(text) = std::fs::read_to_string(&mark)
            && text.ends_with('\n')
        {
            break text.trim().to_owned();
        }
        assert!(start.elapsed() < Duration::from_secs(30), "the script starts");
        std::thread::sleep(Duration::from_millis(20));
    };
    let kill = |args: &[&str]| {
        Command::new("kill").args(args).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    };
    assert!(kill(&["-INT", &child.id().to_string()]));
    let output = child.wait_with_output().expect("the tool ends");
    assert_eq!(output.status.code(), Some(130));
    assert!(!kill(&["-0", &pid]), "the script is gone");
    assert_eq!(
        std::fs::read_dir(&scratch).expect("there").count(),
        0,
        "the scratch folder is gone"
    );
}
