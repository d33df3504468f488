//! Results go where they are asked for, and nothing else is lost; who gives up, or does not listen, is heard.

#![forbid(unsafe_code)]

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Ends only if it is told to.
const ENDLESS: &str = "layout { @set_rectangle(1, 1); @set_tile_code(0, 0); }
host { while (true) @print(\"again\", .{}); }
";
/// Gives four numbers.
const GIVES: &str = "layout { @set_rectangle(1, 1); @set_tile_code(0, 0); }
host { const v = @input(\"v\", f32); @output(\"w\", v); }
test \"one\" { @expect(true); }
";
/// Tests of which the first fails and the last one does not end.
const TESTS: &str =
    "const memcpy = @import_module(\"<memcpy/get_params>\", .{ .width = 1, .height = 1 });
tile t {
  param memcpy_params: comptime_struct;
  const sys = @import_module(\"<memcpy/memcpy>\", memcpy_params);
  var n: u16 = 0;
  fn go() void { sys.unblock_cmd_stream(); }
  fn stay() void { while (true) { n += 1; } }
  comptime { @export_symbol(go); @export_symbol(stay); }
}
layout {
  @set_rectangle(1, 1);
  @set_tile_code(0, 0, t, .{ .memcpy_params = memcpy.get_params(0) });
  @export_name(\"go\", fn()void);
  @export_name(\"stay\", fn()void);
}
host {}
test \"fails\" { @launch(\"go\"); @print(\"{}\", .{@cycles()}); @expect(false); }
test \"good\" { @launch(\"go\"); }
test \"stuck\" { @launch(\"stay\"); }
";

struct Program {
    folder: TempDir,
    source: String,
}

impl Program {
    fn new(text: &str) -> Program {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("program.dfl");
        std::fs::write(&source, text).expect("a file");
        std::fs::write(folder.path().join("in.f32"), [0; 16]).expect("a file");
        Program { source: source.to_string_lossy().into_owned(), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, command: &str, args: &[&str]) -> Command {
        let mut tool = Command::new(env!("CARGO_BIN_EXE_dflowc"));
        tool.current_dir(self.folder.path()).arg(command).arg(&self.source).args(args);
        tool
    }

    /// Exit code, standard output, and messages.
    fn says(&self, command: &str, args: &[&str]) -> (i32, String, String) {
        let output = self.command(command, args).output().expect("the tool starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }
}

#[test]
fn statistics_take_the_place_of_nothing() {
    let program = Program::new(GIVES);
    let kept = std::fs::read(&program.source).expect("a source");
    for place in ["program.dfl", "in.f32", "out.npy", "no/such/folder.json"] {
        let (stats, input) = (format!("json={place}"), "v=in.f32");
        let args = ["--input", input, "--output", "w=out.npy", "--stats", &stats];
        let (code, _, said) = program.says("run", &args);
        assert_eq!(code, 2, "{place}: {said}");
        assert!(!program.path("out.npy").exists());
    }
    assert_eq!(std::fs::read(&program.source).expect("a source"), kept);
    assert_eq!(std::fs::read(program.path("in.f32")).expect("an input"), [0; 16]);
}

#[test]
fn endings_of_outputs_are_held_against_types() {
    let program = Program::new(GIVES);
    let run = |place: &str| program.says("run", &["--input", "v=in.f32", "--output", place]);
    let (code, _, said) = run("w=out.f64");
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("the ending of the file says f64: `:f32` behind the path"), "{said}");
    assert!(!program.path("out.f64").exists());
    let (code, _, said) = run("w=out.npy:u8");
    assert_eq!(
        (code, said.contains("its elements are f32, the command line says u8")),
        (2, true),
        "{said}"
    );
    // Known without an input: nothing has run.
    let (code, _, said) = program.says("run", &["--output", "w=out:f16"]);
    assert_eq!((code, said.contains("its elements are f32")), (2, true), "{said}");
    assert_eq!(run("w=out.f32").0, 0);
    assert_eq!(run("w=out.f64:f32").0, 0);
}

/// A program whose host block is this.
fn hosted(block: &str) -> Program {
    Program::new(&format!(
        "layout {{ @set_rectangle(1, 1); @set_tile_code(0, 0); }}\nhost {{ {block} }}\n"
    ))
}

#[test]
fn numbers_without_a_sign_are_written_and_read_as_such() {
    for (ty, descr, other) in
        [("u8", "|u1", "i8"), ("u16", "<u2", "i16"), ("u32", "<u4", "i32"), ("u64", "<u8", "i64")]
    {
        let block = |reads: &str, gives: &str| {
            format!(
                "if (@has_input(\"v\")) {{ @print(\"{{}}\", .{{ @input(\"v\", {reads})[0] }}); }} const w = @alloc({gives}, 4); w[0] = 100; @output(\"w\", w);"
            )
        };
        let program = hosted(&block(ty, ty));
        let (code, _, said) = program.says("run", &["--output", "w=out.npy"]);
        assert_eq!(code, 0, "{said}");
        let bytes = std::fs::read(program.path("out.npy")).expect("an output");
        let header = String::from_utf8_lossy(&bytes[..80]).into_owned();
        assert!(header.contains(&format!("'descr': '{descr}'")), "{header}");
        let (code, printed, said) = program.says("run", &["--input", "v=out.npy"]);
        assert_eq!((code, printed.as_str()), (0, "100\n"), "{said}");
        for place in [format!("w=out.{other}"), format!("w=out:{other}")] {
            let (code, _, said) = program.says("run", &["--output", &place]);
            let told = said.contains(&format!("its elements are {ty}"));
            assert_eq!((code, told), (2, true), "{said}");
        }
        let signed = hosted(&block(other, other));
        std::fs::write(signed.path("in.npy"), &bytes).expect("an input");
        let (code, _, said) = signed.says("run", &["--input", "v=in.npy"]);
        let bits = &ty[1..];
        let wanted = format!(
            "its elements are {ty}, the program reads {other}; NumPy converts them: a.astype('int{bits}')"
        );
        assert_eq!((code, said.contains(&wanted)), (2, true), "{said}");
        // What says no type has the program's.
        std::fs::write(signed.path("in.bin"), vec![7; 8]).expect("an input");
        assert_eq!(signed.says("run", &["--input", "v=in.bin", "--output", "w=out.bin"]).0, 0);
        assert_eq!(signed.says("run", &["--output", &format!("w=out.{other}")]).0, 0);
    }
}

#[test]
fn failures_are_results_too() {
    let program = Program::new(GIVES);
    let (code, out, said) = program.says("run", &["--json", "--input", "v=none.f32"]);
    let result: Value = serde_json::from_str(&out).expect("a line of JSON");
    assert_eq!((code, result["status"].as_str()), (2, Some("usage")), "{said}");
    assert!(result["message"].as_str().is_some_and(|why| why.contains("none.f32")), "{result}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_cannot_be_written_hides_nothing() {
    let program = Program::new(
        "layout { @set_rectangle(1, 1); @set_tile_code(0, 0); }
host { @print(\"here\", .{}); @output(\"w\", @alloc(i16, 4)); }\n",
    );
    let args = ["--output", "w=/dev/full", "--json", "--stats", "json"];
    let (code, out, said) = program.says("run", &args);
    let result: Value = serde_json::from_str(&out).expect("one line of JSON");
    assert_eq!((code, result["status"].as_str()), (1, Some("failed")), "{said}");
    assert_eq!(result["message"], "cannot write /dev/full: the disk is full");
    assert_eq!(result["printed"][0], "here");
    assert_eq!(result["stats"]["sim_stop_cause"], "failed");
    assert!(result["account"].is_object(), "{result}");
    let (code, _, said) =
        program.says("run", &["--output", "w=/dev/full", "--stats", "json=s.json"]);
    assert_eq!((code, &*said), (1, "dflowc: cannot write /dev/full: the disk is full\n"));
    assert!(
        std::fs::read_to_string(program.path("s.json")).is_ok_and(|text| text.contains("failed"))
    );
}

/// What phases print is text for people; to ask for JSON there is wrong use, not text all the same.
#[test]
fn dumps_are_no_json() {
    let program = Program::new(GIVES);
    assert_eq!(program.says("dump", &["--stage", "plan"]).0, 0);
    let (code, out, said) = program.says("dump", &["--stage", "plan", "--json"]);
    assert_eq!((code, &*out), (2, ""), "{said}");
    assert!(said.contains("unexpected argument '--json'"), "{said}");
}

#[test]
fn code_that_costs_nothing_meets_the_limits() {
    let program = Program::new(&TESTS.replace("host {}", "host { @launch(\"stay\"); }"));
    let constants = ["scalar", "loop_edge", "branch_not_taken", "branch_taken"];
    let constants = constants.map(|name| format!("--timing={name}=0"));
    for (code, engine) in [("interpreter", "step"), ("jit", "exact"), ("jit", "flow")] {
        let mut args = vec!["--max-cycles", "3000", "--code", code, "--engine", engine];
        args.extend(constants.iter().map(String::as_str));
        let (code, _, said) = program.says("run", &args);
        assert_eq!((code, said.contains("limit of 3,000")), (4, true), "{args:?}: {said}");
    }
}

#[test]
fn wrong_constants_and_params_are_wrong_use() {
    let program = Program::new(GIVES);
    for args in [&["--timing", "hop=0"][..], &["--timing", "hop=2", "--timing", "hop=3"]] {
        assert_eq!(program.says("test", args).0, 2, "{args:?}");
        let (code, _, said) = program.says("run", &[args, &["--input", "v=in.f32"]].concat());
        assert_eq!(code, 2, "{args:?}: {said}");
    }
    let params = Program::new(
        "param n: u16 = 1;\nlayout { @set_rectangle(1, 1); @set_tile_code(0, 0); }\nhost {}\n",
    );
    for command in [&["run"][..], &["check"], &["build"], &["test"], &["dump", "--stage", "plan"]] {
        let says = |set: &[&str]| params.says(command[0], &[&command[1..], set].concat());
        for set in [&["--set", "n=many"][..], &["--set", "zz=7"], &["--set", "n=5", "--set", "n=6"]]
        {
            let (code, _, said) = says(set);
            assert_eq!(code, 2, "{command:?} {set:?}: {said}");
        }
    }
}

#[test]
fn a_run_without_tests_has_not_passed() {
    let program = Program::new(GIVES);
    assert_eq!(program.says("test", &["one"]).0, 0);
    let (code, _, said) = program.says("test", &["two"]);
    assert_eq!((code, said.contains("has `two` in its name")), (2, true), "{said}");
    let (code, _, said) = Program::new(ENDLESS).says("test", &[]);
    assert_eq!((code, said.contains("has no test block")), (2, true), "{said}");
}

#[test]
fn failed_tests_have_cycles() {
    let program = Program::new(TESTS);
    let (code, out, said) = program.says("test", &["--json", "--max-cycles", "5000"]);
    let result: Value = serde_json::from_str(&out).expect("a line of JSON");
    let test = |index: usize| &result["tests"][index];
    assert_eq!((code, test(0)["status"].as_str()), (1, Some("failed")), "{said}");
    let cycles = test(0)["cycles"].to_string();
    assert_eq!(test(0)["printed"][0].as_str(), Some(&*cycles), "{result}");
    assert!(cycles != "0" && test(0)["cycles"] == test(1)["cycles"], "{result}");
    assert_eq!((test(2)["status"].as_str(), &test(2)["cycles"]), (Some("limit"), &5000.into()));
}

/// A trap and a deadlock have one exit code, and are told apart.
#[test]
fn the_status_says_how_a_run_ended() {
    let ends = |body: &str| {
        let text = TESTS.replace("fn go() void { sys.unblock_cmd_stream(); }", body);
        let text = text.replace("host {}", "host { @launch(\"go\"); }");
        let program = Program::new(&text);
        let result = |command: &str| {
            let (code, out, said) = program.says(command, &["--json", "--max-cycles", "9000"]);
            let result: Value = serde_json::from_str(&out).expect("a line of JSON");
            (code, result, said)
        };
        let ((code, run, said), (_, tests, _)) = (result("run"), result("test"));
        assert_eq!(tests["tests"][0]["status"], run["status"], "{tests}");
        (code, run["status"].clone(), said)
    };
    for (body, status) in [("fn go() void {}", "deadlock"), ("fn go() void { n = 1 / n; }", "trap")]
    {
        let (code, told, said) = ends(body);
        assert_eq!((code, told.as_str()), (3, Some(status)), "{said}");
    }
}

#[test]
fn a_command_line_that_is_not_taken_is_a_result_too() {
    let program = Program::new(GIVES);
    for (command, args, message) in [
        ("run", &["--json", "--no-such"][..], "unexpected argument '--no-such' found"),
        ("check", &["--set", "n", "--json"], "invalid value 'n' for '--set <NAME=VALUE>'"),
        ("build", &["--json", "--target", "wse9"], "invalid value 'wse9' for '--target"),
        ("test", &["--json", "a", "b"], "unexpected argument 'b' found"),
    ] {
        let (code, out, said) = program.says(command, args);
        let result: Value = serde_json::from_str(&out).expect("a line of JSON");
        assert_eq!((code, result["status"].as_str()), (2, Some("usage")), "{command}: {said}");
        let told = result["message"].as_str().unwrap_or_default();
        assert!(told.starts_with(message) && !told.contains("Usage"), "{command}: {told}");
        assert!(said.starts_with(&format!("error: {message}")), "{command}: {said}");
    }
    let (code, out, _) = program.says("run", &["--no-such"]);
    assert_eq!((code, out.as_str()), (2, ""), "nobody asked for JSON");
    let (code, out, _) = program.says("run", &["--json", "--help"]);
    assert!(code == 0 && out.contains("Usage: dflowc run"), "{out}");
    let (_, out, _) = program.says("conform", &["--json", "results.json", "--no-such"]);
    assert_eq!(out, "", "there it is a file");
}

#[cfg(unix)]
#[test]
fn who_gives_up_has_the_verdicts_so_far() {
    let program = Program::new(TESTS);
    for at in [&*program.source, &*program.folder.path().to_string_lossy()] {
        // A busy computer may take long to come to the last test.
        let (code, result) = [1, 5, 25]
            .into_iter()
            .map(|seconds| interrupted(&["test", "--json", at], seconds))
            .find(|(_, result)| result.to_string().contains("good"))
            .expect("verdicts");
        let tests = &result["files"].get(0).unwrap_or(&result)["tests"];
        let words = [0, 1, 2].map(|index| tests[index]["status"].as_str().unwrap_or_default());
        assert_eq!(words, ["failed", "success", "interrupted"], "{result}");
        assert_eq!((&result["passed"], &result["failed"]), (&1.into(), &1.into()), "{result}");
        assert_eq!((code, result["status"].as_str()), (Some(130), Some("interrupted")));
    }
}

/// A command that gets Ctrl-C after so many seconds: exit code, and its line of JSON.
#[cfg(unix)]
fn interrupted(args: &[&str], seconds: u64) -> (Option<i32>, Value) {
    let mut tool = Command::new(env!("CARGO_BIN_EXE_dflowc"));
    let child = tool.args(args).stdout(Stdio::piped()).spawn().expect("a child");
    std::thread::sleep(std::time::Duration::from_secs(seconds));
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default())
}

/// A pipe that nobody reads holds the outputs up until Ctrl-C has come.
#[cfg(unix)]
#[test]
fn who_gives_up_while_outputs_are_written_has_the_statistics() {
    let program = Program::new(
        "layout { @set_rectangle(1, 1); @set_tile_code(0, 0); }
host { @output(\"w\", @alloc(i16, 4)); }\n",
    );
    let pipe = program.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()));
    let args = ["--output", "w=pipe", "--stats", "json=stats.json"];
    let mut tool = program.command("run", &args);
    let mut child = tool.stderr(Stdio::piped()).spawn().expect("a child");
    std::thread::sleep(std::time::Duration::from_secs(3));
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(child.try_wait().expect("a child").is_none(), "it waits for a reader");
    assert!(std::fs::read(&pipe).expect("a pipe").is_empty());
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert_eq!(said, "dflowc: interrupted; nothing was written but the statistics\n");
    let stats = std::fs::read_to_string(program.path("stats.json")).expect("statistics");
    assert!(stats.contains("\"sim_stop_cause\": \"interrupted\""), "{stats}");
}

/// A program that prints to nobody would go on for ever.
#[test]
fn printing_to_nobody_ends() {
    let program = Program::new(ENDLESS);
    let mut child = program.command("run", &[]).stdout(Stdio::piped()).spawn().expect("a child");
    let mut some = [0; 64];
    child.stdout.take().expect("a pipe").read_exact(&mut some).expect("lines");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn printing_to_a_full_disk_ends() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let program = Program::new(ENDLESS);
    let mut child = program.command("run", &[]).stdout(full).spawn().expect("a child");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
}

/// The exit code is that of the first fault, also where it cannot be told as JSON.
#[cfg(target_os = "linux")]
#[test]
fn results_for_a_full_disk_keep_their_exit_code() {
    let program = Program::new(GIVES);
    for (command, args, code, why) in [
        ("check", &[][..], 1, "the disk is full"),
        ("test", &[], 1, "the disk is full"),
        ("run", &["--input", "v=none.f32"], 2, "none.f32"),
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let mut tool = program.command(command, &[&["--json"], args].concat());
        let output = tool.stdout(full).stderr(Stdio::piped()).output().expect("the tool starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{command}: {said}");
        assert!(said.contains(why) && said.lines().count() == 1, "{command}: {said}");
    }
}
