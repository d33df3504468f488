//! What the computer does not give: memory, threads, room in files, readers, names that are text.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const TOOL: &str = env!("CARGO_BIN_EXE_dflowc");

/// A program whose host block is this.
fn host(body: &str) -> String {
    format!("layout {{ @set_rectangle(1, 1); @set_tile_code(0, 0); }}\nhost {{ {body} }}\n")
}

/// Two outputs of a hundred numbers.
fn outputs() -> String {
    host("const a = @alloc(u32, 100); @output(\"a\", a); @output(\"b\", a);")
}

struct Place(TempDir);

impl Place {
    fn new(source: &str) -> Place {
        let place = Place(tempfile::tempdir().expect("a folder"));
        std::fs::write(place.path("p.dfl"), source).expect("a file");
        place
    }

    fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.0.path().join(name.as_ref())
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        told(&Command::new(TOOL).current_dir(self.0.path()).args(args).output())
    }

    /// Likewise, where a shell has said before what the tool may have.
    fn run_limited(&self, limit: &str, args: &[&str]) -> (i32, String, String) {
        let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
        let mut shell = Command::new("sh");
        told(&shell.current_dir(self.0.path()).args(["-c", &script, TOOL]).args(args).output())
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("a folder").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn told(output: &std::io::Result<Output>) -> (i32, String, String) {
    let output = output.as_ref().expect("the tool starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// The first command of the host concerns all of them.
#[test]
fn a_launch_on_more_pes_than_fit_is_refused_before_its_first_word() {
    let place = Place::new(
        r#"const memcpy = @import_module("<memcpy/get_params>", .{ .width = 60, .height = 60 });
tile t {
  param memcpy_params;
  const sys = @import_module("<memcpy/memcpy>", memcpy_params);
  var a = @zeros([10000]f32);
  var p: [*]f32 = &a;
  fn go() void { a[0] = 1.0; sys.unblock_cmd_stream(); }
  comptime { @export_symbol(p, "a"); @export_symbol(go); }
}
layout {
  @set_rectangle(60, 60);
  for (@range(u16, 60)) |x| { for (@range(u16, 60)) |y| {
    @set_tile_code(x, y, t, .{ .memcpy_params = memcpy.get_params(x) });
  } }
  @export_name("a", [*]f32, true);
  @export_name("go", fn () void);
}
host {
  const rows: u32 = @setting("rows", u32, 60);
  if (rows == 60) @launch("go") else {
    var one = @zeros([60]f32);
    @copy_in("a", @rect(0, 0, 60, 1), &one);
    const back = @copy_out("a", @rect(0, 0, 60, 1), 1);
    @expect(back[0] == 0);
  }
}
"#,
    );
    for engine in ["exact", "flow", "step"] {
        let (code, _, said) =
            place.run(&["run", "p.dfl", "--engine", engine, "--max-memory", "50M"]);
        assert_eq!(code, 4, "{engine}: {said}");
        let wanted = "the memory limit was reached at cycle 0: the state of ";
        assert!(said.contains(wanted) && said.contains("that of all 3,600 would"), "{said}");
    }
    // A row fits.
    let (code, _, said) = place.run(&["run", "p.dfl", "--set", "rows=1", "--max-memory", "50M"]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn what_is_printed_and_kept_for_the_result_counts_as_memory() {
    let place = Place::new(&host(
        "var n: u32 = 0; while (true) { n += 1; @print(\"a line of a text {}\", .{ n }); }",
    ));
    let args = ["run", "p.dfl", "--json", "--max-memory", "10M", "--timeout", "100"];
    let (code, printed, said) = place.run(&args);
    let result: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!((code, result["status"].as_str()), (4, Some("limit")), "{said}");
    let message = result["message"].as_str().unwrap_or_default();
    assert!(message.contains("the host holds more than 10.0 MiB (--max-memory)"), "{message}");
    let lines = result["printed"].as_array().map_or(0, Vec::len);
    assert!((10_000..200_000).contains(&lines), "{lines}");
}

/// The limit is one of the program's memory and of the copies of its outputs together.
#[test]
fn copies_of_outputs_count_as_memory() {
    let place = Place::new(&host("const a = @alloc(f32, 1000000); @output(\"a\", a);"));
    let args = ["run", "p.dfl", "--output", "a=a.bin", "--max-memory"];
    let (code, _, said) = place.run(&[&args[..], &["6M"]].concat());
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("asks for 4000000 more bytes of memory, beyond its limit"), "{said}");
    assert_eq!(place.names(), ["p.dfl"]);
    let (code, _, said) = place.run(&[&args[..], &["9M"]].concat());
    assert_eq!((code, place.names()), (0, vec!["a.bin".to_owned(), "p.dfl".to_owned()]), "{said}");
}

#[test]
fn a_program_of_a_folder_whose_name_is_no_text_is_refused() {
    let place = Place::new(
        "layout { @set_rectangle(1, 1); @set_tile_code(0, 0); } test \"t\" { @expect(true); }",
    );
    assert_eq!(place.run(&["test", "."]).0, 0);
    // What no test could be in is nobody's affair.
    std::fs::write(place.path(OsStr::from_bytes(b"x\xff.txt")), "").expect("a file");
    assert_eq!(place.run(&["test", "."]).0, 0);
    std::fs::write(place.path(OsStr::from_bytes(b"x\xff.dfl")), "").expect("a file");
    let (code, printed, said) = place.run(&["test", "."]);
    assert_eq!((code, printed.as_str()), (2, ""), "{said}");
    assert_eq!(said, "dflowc: ./x\u{fffd}.dfl: its name is not UTF-8: rename it\n");
}

/// The system would end the process by a signal.
#[test]
fn a_file_that_may_not_be_so_large_is_a_message() {
    let place = Place::new(&outputs());
    for args in [
        &["run", "p.dfl", "--output", "a=a.bin", "--output", "b=b.npy"][..],
        &["build", "p.dfl", "-o", "p.dfi"],
    ] {
        let (code, _, said) = place.run_limited("-f 0", args);
        assert_eq!(code, 1, "{args:?}: {said}");
        assert!(said.contains("a file may have 0 bytes here (`ulimit -f`), it needs "), "{said}");
        assert_eq!(place.names(), ["p.dfl"]);
    }
}

#[test]
fn a_link_to_a_file_that_is_to_come_stays_a_link() {
    let place = Place::new(&outputs());
    symlink("b.npy", place.path("a.npy")).expect("a link");
    let two = ["run", "p.dfl", "--output", "a=a.npy", "--output", "b=b.npy"];
    let (code, _, said) = place.run(&two);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("two outputs would go to b.npy"), "{said}");
    let (code, _, said) = place.run(&two[..4]);
    assert_eq!((code, place.path("a.npy").is_symlink()), (0, true), "{said}");
    assert_eq!(place.names(), ["a.npy", "b.npy", "p.dfl"]);
    symlink("c.npy", place.path("c.npy")).expect("a link");
    let (code, _, said) = place.run(&["run", "p.dfl", "--output", "a=c.npy"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("cannot write c.npy: its links lead in a circle"), "{said}");
}

#[test]
fn a_computer_without_a_thread_is_no_fault_of_ours() {
    let place = Place::new(&outputs());
    // Less than the 1 GiB (1,048,576 KiB) of addresses that the stack of the compiler's thread takes, however small the
    // tool is; and several times what the largest tool (a debug build) and its libraries take to start.
    let (code, _, said) = place.run_limited("-v 700000", &["check", "p.dfl"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("error[no-thread]: no thread can be started for the compiler"), "{said}");
    assert!(!said.contains("report"), "{said}");
}

#[test]
fn help_that_cannot_be_written_is_a_fault() {
    for args in [&["help"][..], &["--version"], &["run", "--help"]] {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let (code, _, said) = told(&Command::new(TOOL).args(args).stdout(full).output());
        let wanted = "dflowc: cannot write to standard output: the disk is full\n";
        assert_eq!((code, said.as_str()), (1, wanted), "{args:?}");
        assert_eq!(told(&Command::new(TOOL).args(args).output()).0, 0);
    }
}
