//! Time limits and Ctrl-C hold while a program is compiled and a machine is made, as in a run.

#![forbid(unsafe_code)]

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
#[cfg(target_os = "linux")]
use std::{io::Read as _, process::Child};

use serde_json::Value;
use tempfile::TempDir;

/// Takes as long to compile as it may.
const ENDLESS: &str = "param n: u32;
layout { @set_rectangle(1, 1); var i: u32 = 0; while (true) { i = n; } }
host {}
test \"t\" {}
";

/// What the time limit says of it.
const LATE: &str =
    "the time limit was reached at cycle 0 (--timeout), while the program was compiled";

struct Place(TempDir);

impl Place {
    fn new(source: &str) -> Place {
        let place = Place(tempfile::tempdir().expect("a folder"));
        std::fs::write(place.0.path().join("p.dfl"), source).expect("a file");
        place
    }

    /// One of our tools in this folder.
    fn tool(&self, args: &[&str]) -> Command {
        let (tool, args) = match args {
            ["cslc", args @ ..] => (env!("CARGO_BIN_EXE_cslc"), args),
            args => (env!("CARGO_BIN_EXE_dflowc"), args),
        };
        let mut command = Command::new(tool);
        command.current_dir(self.0.path()).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let begun = Instant::now();
        let output = self.tool(args).output().expect("the tool starts");
        assert!(begun.elapsed() < Duration::from_secs(20), "{args:?}");
        told(&output)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("a folder").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_timeout_holds_while_a_program_is_compiled() {
    let place = Place::new(ENDLESS);
    let args = ["p.dfl", "--set", "n=1", "--timeout", "0.3"];
    for command in ["run", "test"] {
        let (code, printed, said) = place.run(&[&[command], &args[..]].concat());
        assert_eq!((code, printed.as_str()), (4, ""), "{command}: {said}");
        assert_eq!(said, format!("dflowc: {LATE}\n"));
        let (code, printed, _) = place.run(&[&[command, "--json"], &args[..]].concat());
        let result: Value = serde_json::from_str(&printed).expect("JSON");
        assert_eq!((code, result["status"].as_str()), (4, Some("limit")), "{result}");
        assert_eq!(result["message"], LATE);
    }
}

/// Files of a folder have no params.
#[test]
fn a_file_of_a_folder_that_takes_too_long_is_a_test_that_failed() {
    let good = "layout { @set_rectangle(1, 1); @set_tile_code(0, 0); } test \"t\" {}";
    let place = Place::new(&ENDLESS.replace("param n: u32;", "const n: u32 = 1;"));
    std::fs::write(place.0.path().join("q.dfl"), good).expect("a file");
    // The limit is one of each file.
    let (code, printed, said) = place.run(&["test", ".", "--timeout", "2"]);
    assert_eq!(code, 1, "{printed}{said}");
    assert!(printed.contains("1 passed, 1 failed in 2 files"), "{printed}");
    assert!(said.contains(LATE), "{said}");
    let (_, printed, _) = place.run(&["test", ".", "--timeout", "2", "--json"]);
    let result: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(result["files"][0]["status"], "limit", "{result}");
    assert_eq!(result["files"][0]["message"], LATE);
}

/// Many programs, and many PEs that start at once.
#[test]
fn a_timeout_holds_while_a_machine_is_made() {
    let place = Place::new(
        "layout { @set_rectangle(750, 20); for (@range(u16, 750)) |x| { for (@range(u16, 20)) |y| {
    @set_tile_code(x, y, t, .{ .c = @get_color(x % 16) }); } } }
tile t { param c: color; const id = @get_local_task_id(9); var n = @zeros([64]u16);
  task main() void { for (@range(u16, 64)) |i| { n[i] += @as(u16, @get_int(c)); } }
  comptime { @bind_local_task(main, id); @activate(id); } }
host {}
",
    );
    let (code, _, said) = place.run(&["build", "p.dfl"]);
    assert_eq!(code, 0, "{said}");
    let (code, _, said) = place.run(&["run", "p.dfi", "--timeout", "0"]);
    assert_eq!(code, 4, "{said}");
    assert_eq!(said, "dflowc: the time limit was reached at cycle 0 (--timeout)\n");
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_every_compilation_with_a_line() {
    let place = Place::new(ENDLESS);
    for (args, tool) in [
        (&["check", "p.dfl", "--set", "n=1"][..], "dflowc"),
        (&["build", "p.dfl", "--set", "n=1", "-o", "p.dfi"], "dflowc"),
        (&["dump", "p.dfl", "--set", "n=1", "--stage", "ir"], "dflowc"),
        (&["run", "p.dfl", "--set", "n=1"], "dflowc"),
        (&["test", "p.dfl", "--set", "n=1"], "dflowc"),
        (&["cslc", "p.dfl", "--params=n:1", "-o", "out"], "cslc"),
    ] {
        let (code, printed, said) = interrupted(&place, args);
        assert_eq!((code, printed.as_str()), (130, ""), "{args:?}: {said}");
        assert_eq!(said, format!("{tool}: interrupted; nothing was written\n"), "{args:?}");
        assert_eq!(place.names(), ["p.dfl"], "{args:?}");
    }
    for command in ["check", "build", "run", "test"] {
        let (code, printed, said) =
            interrupted(&place, &[command, "--json", "p.dfl", "--set", "n=1"]);
        assert_eq!(code, 130, "{command}: {said}");
        let result: Value = serde_json::from_str(&printed).expect("JSON");
        assert_eq!(result["status"], "interrupted", "{command}: {result}");
    }
}

/// Programs of its own, compiled and run one after the other; the page that they go to stays as it is.
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_a_validation_with_a_line() {
    let place = Place::new("<!-- validation -->\n<!-- end of validation -->\n");
    let (code, printed, said) = interrupted(&place, &["validate", "--write", "p.dfl"]);
    assert_eq!((code, printed.as_str()), (130, ""), "{said}");
    assert_eq!(said, "dflowc: interrupted; nothing was written\n");
    let page = std::fs::read_to_string(place.0.path().join("p.dfl")).expect("a page");
    assert_eq!(page, "<!-- validation -->\n<!-- end of validation -->\n");
    assert_eq!(place.names(), ["p.dfl"]);
    let (code, printed, said) = interrupted(&place, &["validate", "--json"]);
    let result: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!((code, result["status"].as_str()), (130, Some("interrupted")), "{said}");
}

/// Nobody writes to it, so the compiler is not there to ask.
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_the_reading_of_a_pipe_at_once() {
    let place = Place::new("");
    let made = Command::new("mkfifo").current_dir(place.0.path()).arg("pipe.csl").status();
    assert!(made.expect("mkfifo exists").success());
    for args in [&["check", "pipe.csl"][..], &["build", "pipe.csl"], &["cslc", "pipe.csl"]] {
        let (code, _, said) = interrupted(&place, args);
        assert_eq!(code, 130, "{args:?}: {said}");
        assert!(said.ends_with(": interrupted; nothing was written\n"), "{args:?}: {said}");
        assert_eq!(place.names(), ["p.dfl", "pipe.csl"], "{args:?}");
    }
}

/// Nobody reads what it says, so it does not end by itself, and nobody is there to ask.
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_the_writing_to_a_full_pipe_at_once() {
    let lines = (0..5000).map(|n| format!("const c{n}: u32 = {n};\n"));
    let place = Place::new(&lines.collect::<String>());
    let wrong = "layout { @set_rectangle(1, 1); @set_tile_code(0, 0, t); }\ntile t {\n";
    let lines = (0..2000).map(|n| format!("comptime {{ @comptime_assert(false, \"{n}\"); }}\n"));
    let wrong = format!("{wrong}{}}}\n", lines.collect::<String>());
    std::fs::write(place.0.path().join("wrong.dfl"), wrong).expect("a file");
    for args in [
        &["dump", "p.dfl", "--stage", "tokens"][..],
        &["dump", "p.dfl", "--stage", "ast"],
        &["check", "--json", "wrong.dfl"],
    ] {
        let mut tool = place.tool(args);
        let mut child = tool.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a child");
        // With its first byte the rest is on its way, which is more than a pipe holds.
        let mut text = child.stdout.take().expect("a pipe");
        text.read_exact(&mut [0]).expect("a byte");
        let code = interrupted_once(&mut child);
        assert_eq!(code, Some(130), "{args:?}");
        let mut rest = Vec::new();
        text.read_to_end(&mut rest).expect("what the pipe holds");
        assert!(rest.len() >= 1 << 15, "{args:?}: {}", rest.len());
    }
}

/// What looks at the flag while it works is not there to look while nobody reads what it says: neither while the
/// program prints, nor when its result is told.
#[cfg(target_os = "linux")]
#[test]
fn one_ctrl_c_ends_a_run_that_nobody_reads() {
    let place = Place::new(
        "layout { @set_rectangle(1, 1); @set_tile_code(0, 0); }
host { for (@range(u32, 9999)) |i| { @print(\"a line of a text that is long {}\", .{ i }); } }
test \"t\" { for (@range(u32, 9999)) |i| { @print(\"a line of a text that is long {}\", .{ i }); } }
",
    );
    for args in [&["run", "p.dfl"][..], &["run", "--json", "p.dfl"], &["test", "--json", "p.dfl"]] {
        let mut tool = place.tool(args);
        tool.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = tool.spawn().expect("a child");
        let mut text = child.stdout.take().expect("a pipe");
        text.read_exact(&mut [0]).expect("a byte");
        std::thread::sleep(Duration::from_millis(500));
        let code = interrupted_once(&mut child);
        let said = child.wait_with_output().expect("it has ended").stderr;
        let said = String::from_utf8_lossy(&said);
        assert_eq!(code, Some(130), "{args:?}: {said}");
        let wanted = "dflowc: interrupted; ended at once, since nobody reads what it says\n";
        assert_eq!(said, wanted, "{args:?}");
    }
}

/// Likewise if nobody reads its last line.
#[cfg(target_os = "linux")]
#[test]
fn one_ctrl_c_ends_what_complains_to_a_full_pipe() {
    let lines =
        (0..2000).map(|n| format!("comptime {{ @comptime_assert(false, \"{n:900}\"); }}\n"));
    let wrong = "layout { @set_rectangle(1, 1); @set_tile_code(0, 0, t); }\ntile t {\n";
    let place = Place::new(&format!("{wrong}{}}}\n", lines.collect::<String>()));
    for command in ["check", "run"] {
        let mut tool = place.tool(&[command, "p.dfl"]);
        let mut child = tool.stderr(Stdio::piped()).spawn().expect("a child");
        let mut text = child.stderr.take().expect("a pipe");
        text.read_exact(&mut [0]).expect("a byte");
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(interrupted_once(&mut child), Some(130), "{command}");
    }
}

/// The exit code of a child that gets Ctrl-C once, if it ends soon.
#[cfg(target_os = "linux")]
fn interrupted_once(child: &mut Child) -> Option<i32> {
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill exists").success());
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().expect("a child") {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("it still runs");
    child.wait().expect("it ends").code()
}

/// A command that gets Ctrl-C once it handles it and has worked for a moment.
#[cfg(target_os = "linux")]
fn interrupted(place: &Place, args: &[&str]) -> (i32, String, String) {
    let mut tool = place.tool(args);
    let child = tool.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a child");
    let pid = child.id().to_string();
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline && !catches_interrupts(&pid) {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(200));
    let killed = Command::new("kill").args(["-INT", &pid]).status().expect("kill exists");
    assert!(killed.success(), "{args:?}");
    let sent = Instant::now();
    let output = child.wait_with_output().expect("it ends");
    assert!(sent.elapsed() < Duration::from_secs(10), "{args:?}");
    told(&output)
}

/// By what the system says of the process.
#[cfg(target_os = "linux")]
fn catches_interrupts(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap_or(0) & 2 != 0)
}
