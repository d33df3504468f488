//! Running images: inputs, outputs, limits, interrupts. The images are made from IR text, so that
//! nothing but the command line and the runtime is tested.

#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
use std::io::Read as _;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::process::Child;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use dflow_ir::image::VERSION;
use dflow_ir::text::parse_image;
use tempfile::TempDir;

/// Copies the input `v` to the output `w`; says how many values there were.
const COPY: &str = r#"
    v0, v1 = host input "v" f32()
    v3 = const 3
    v2 = host setting "n" i64 signed(v3)
    host print ["", " values, n ", ""] [signed, signed](v1, v2)
    host output "w" f32(v0, v1)
    return
"#;

/// Never ends.
const LOOP: &str = "
    jump block1
  block1:
    jump block1
";

/// An expectation that does not hold.
const FAIL: &str = r#"
    host expect ["seven is ", ""] [signed](v4, v0)
    return
"#;

/// A division by zero.
const TRAP: &str = "
    v0 = div_s v1, v1
    return
";

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        std::fs::write(self.path(name), bytes).expect("a file");
        self.path(name)
    }

    /// An image whose host block has this body.
    fn image(&self, body: &str) -> String {
        let text = format!(
            "image wse2 {{\nparam \"size\" = \"4\"\nprogram \"idle\" pe {{\n}}\n\
             memory program0 data_end=16 stack=64 code=0 []\n\
             placement 0,0 1 by 1 {{\npes 0,0 1 by 1 = program0\nslots program0\n}}\n\
             host\nprogram \"host\" host {{\nentry fn0\nfunc fn0 \"host\" () {{\n\
             locals v0..v3: i64, v4: i8\nblock0:{body}}}\n}}\n}}\n"
        );
        let image = parse_image(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        self.file("program.dfi", &image.encode())
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("a folder");
        let mut names: Vec<_> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

fn dflowc(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dflowc")).args(args).output().expect("the tool starts")
}

#[track_caller]
fn run(args: &[&str]) -> (i32, String, String) {
    let output = dflowc(&[&["run"], args].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stderr);
    assert!(!said.contains("internal error"), "{args:?}: {said}");
    (output.status.code().unwrap_or(-1), text(&output.stdout), said)
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn raw_and_npy_files_go_in_and_out() {
    let place = Place::new();
    let image = place.image(COPY);
    let bytes = floats(&[1.0, -2.5, 3.0]);
    let raw = place.file("v.bin", &bytes);
    let (npy, back) = (place.path("w.npy"), place.path("w.bin"));
    let (code, printed, said) =
        run(&[&image, "--input", &format!("v={raw}:f32"), "--output", &format!("w={npy}")]);
    assert_eq!((code, printed.as_str()), (0, "3 values, n 3\n"), "{said}");
    assert!(said.contains("1 PEs (1 x 1, wse2)"), "{said}");
    let (code, ..) = run(&[
        &image,
        "--input",
        &format!("v={npy}"),
        "--output",
        &format!("w={back}"),
        "--set",
        "n=-7",
        "--code",
        "interpreter",
        "--engine",
        "step",
    ]);
    assert_eq!(code, 0);
    assert_eq!(std::fs::read(&back).expect("written"), bytes);
    assert_eq!(place.names(), ["program.dfi", "v.bin", "w.bin", "w.npy"]);
}

#[test]
fn json_says_it_all() {
    let place = Place::new();
    let image = place.image(COPY);
    let raw = place.file("v.bin", &floats(&[1.0]));
    let (code, printed, said) = run(&[&image, "--json", "--input", &format!("v={raw}")]);
    assert_eq!((code, said.as_str()), (0, ""));
    let value: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(value["status"], "success");
    assert_eq!(value["printed"][0], "1 values, n 3");
    assert_eq!(value["report"]["pes"], 1);
    assert_eq!(value["report"]["clock_hz"], 850_000_000);
}

#[test]
fn wrong_inputs_are_wrong_use() {
    let place = Place::new();
    let image = place.image(COPY);
    let odd = place.file("odd.bin", &[0; 7]);
    let text = place.file("text.npy", b"no such thing");
    let whole = place.file("whole.bin", &[0; 8]);
    let named = place.file("named.f64", &[0; 8]);
    let whole_ints = place.file("whole.i32", &[0; 8]);
    let odd_ints = place.file("odd.i32", &[0; 7]);
    let double = place.file("double.npy", &{
        let mut bytes = b"\x93NUMPY\x01\x00\x3c\x00".to_vec();
        bytes.extend(
            format!("{:<59}\n", "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}").bytes(),
        );
        bytes.extend([0; 8]);
        bytes
    });
    for (input, word) in [
        (format!("v={odd}"), "bytes"),
        (format!("v={odd}:f32"), "no multiple of 4 (f32)"),
        (format!("v={text}"), "no .npy file"),
        (format!("v={double}"), "f64"),
        (format!("v={double}:f32"), "holds f64, the command line says f32"),
        (format!("v={whole}:f64"), "f64"),
        (format!("v={named}"), "its elements are f64, the program reads f32; NumPy converts them"),
        (
            format!("v={named}"),
            "its type is that of its ending: `:f32` behind the path says otherwise",
        ),
        (format!("v={whole_ints}"), "its type is that of its ending: `:f32`"),
        (format!("v={odd_ints}"), "no multiple of 4 (i32, by its ending)"),
        ("v=no-such-file".to_owned(), "no such file"),
        (format!("u={whole}"), "has no input `u`; it has v"),
    ] {
        let (code, _, said) = run(&[&image, "--input", &input]);
        assert_eq!(code, 2, "{input}: {said}");
        assert!(said.contains(word) && said.lines().count() == 1, "{input}: {said}");
    }
    let (code, _, said) = run(&[&image]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("--input v=FILE"), "{said}");
}

#[test]
fn unknown_names_are_no_silence() {
    let place = Place::new();
    let image = place.image(COPY);
    let raw = place.file("v.bin", &floats(&[1.0]));
    let input = format!("v={raw}");
    for (args, word) in [
        (["--set", "m=1"], "has no param or setting `m`; it has n, size"),
        (["--set", "size=5"], "the image was built with size=4"),
        (["--output", "x=/tmp/x"], "has no output `x`; it has w"),
        (["--target", "wse3"], "the image was built for wse2"),
    ] {
        let (code, _, said) = run(&[&[image.as_str(), "--input", &input], &args[..]].concat());
        assert_eq!(code, 2, "{args:?}: {said}");
        assert!(said.contains(word), "{args:?}: {said}");
    }
    let (code, _, said) = run(&[&image, "--input", &input, "--set", "n=many"]);
    assert_eq!(code, 2);
    assert!(said.contains("`many` is no i64"), "{said}");
}

#[test]
fn a_setting_that_is_a_bool_takes_two_values() {
    let place = Place::new();
    let image = place.image(
        r#"
    v4 = host setting "on" i8 bool(v4)
    host print ["on ", ""] [bool](v4)
    return
"#,
    );
    for (value, wanted) in [("true", "on true\n"), ("1", "on true\n"), ("0", "on false\n")] {
        let (code, printed, said) = run(&[&image, "--set", &format!("on={value}")]);
        assert_eq!((code, printed.as_str()), (0, wanted), "{said}");
    }
    let (code, _, said) = run(&[&image, "--set", "on=2"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("setting `on`: `2` is no bool: true, false, 1 and 0 are"), "{said}");
}

#[test]
fn an_image_of_before_is_refused() {
    let place = Place::new();
    let image = place.image(LOOP);
    let mut bytes = std::fs::read(&image).expect("it is there");
    let old = VERSION - 1;
    bytes[4..8].copy_from_slice(&old.to_le_bytes());
    let (code, _, said) = run(&[&place.file("old.dfi", &bytes)]);
    assert_eq!(code, 2, "{said}");
    let wanted = format!(
        "the image has format version {old}, this build reads version {VERSION}: build it again"
    );
    assert!(said.contains(&wanted), "{said}");
}

#[test]
fn a_failed_run_writes_nothing() {
    let place = Place::new();
    let image = place.image(FAIL);
    let (code, _, said) = run(&[&image]);
    assert_eq!(code, 1);
    assert!(said.contains("seven is 0"), "{said}");
    let image = place.image(TRAP);
    let (code, _, said) = run(&[&image]);
    assert_eq!(code, 3, "{said}");
    assert_eq!(place.names(), ["program.dfi"]);
}

#[test]
fn a_timeout_is_a_limit() {
    let place = Place::new();
    let image = place.image(LOOP);
    for code in ["interpreter", "jit"] {
        let (exit, _, said) = run(&[&image, "--timeout", "0.2", "--code", code]);
        assert_eq!(exit, 4, "{said}");
        assert_eq!(said, "dflowc: the time limit was reached at cycle 0 (--timeout)\n");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_message_and_no_file() {
    let place = Place::new();
    let image = place.image(COPY);
    let raw = place.file("v.bin", &floats(&[1.0]));
    let (code, _, said) = run(&[&image, "--input", &format!("v={raw}"), "--output", "w=/dev/full"]);
    assert_eq!(code, 1);
    assert_eq!(said, "dflowc: cannot write /dev/full: the disk is full\n");
}

#[test]
fn an_unwritable_place_is_known_before_the_run() {
    let place = Place::new();
    let image = place.image(COPY);
    let (code, printed, said) = run(&[&image, "--output", "w=/no/such/folder/w.bin"]);
    assert_eq!((code, printed.as_str()), (2, ""), "{said}");
    assert!(said.contains("its folder does not exist"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_a_run_cleanly() {
    let place = Place::new();
    let image = place.image(LOOP);
    interrupted(started(&[&image]));
    assert_eq!(place.names(), ["program.dfi"]);
}

/// Likewise while the mesh runs: what was going on is said, as after a limit.
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_a_mesh_that_never_rests() {
    let place = Place::new();
    let source = "layout { @set_rectangle(40, 40); for (@range(u16, 40)) |x| { for (@range(u16, 40)) |y| { \
        @set_tile_code(x, y, t, .{}); } } } tile t { const id = @get_local_task_id(9); task main() void { \
        while (true) {} } comptime { @bind_local_task(main, id); @activate(id); } } host { @print(\"on\", .{}); }";
    let source = place.file("p.dfl", source.as_bytes());
    for engine in ["step", "exact", "flow"] {
        for threads in ["1", "3"] {
            let args = [&source, "--engine", engine, "--threads", threads];
            let mut said = String::new();
            let busy = "1600 PEs, (0, 0) to (39, 39), of `t` in `main`";
            let computes = |said: &str| said.contains(busy) && said.contains(": computes\n");
            // A busy computer may be interrupted before the first task of all PEs has begun: the later the try, the
            // more time it has.
            for tries in 0..20 {
                let mut child = started(&args);
                // The machine is there when the host block says something.
                let mut printed = child.stdout.take().expect("a pipe");
                printed.read_exact(&mut [0]).expect("a byte");
                std::thread::sleep(Duration::from_millis(10 * tries));
                said = interrupted(child);
                assert!(said.starts_with("dflowc: interrupted at cycle "), "{args:?}: {said}");
                if computes(&said) {
                    break;
                }
            }
            assert!(computes(&said), "{args:?}: {said}");
        }
    }
    assert_eq!(place.names(), ["p.dfl"]);
}

/// Starts a run that does not end.
#[cfg(target_os = "linux")]
fn started(args: &[&str]) -> Child {
    let mut tool = Command::new(env!("CARGO_BIN_EXE_dflowc"));
    let tool = tool.arg("run").args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    tool.spawn().expect("the tool starts")
}

/// Interrupts it, and looks at how it ends; what it says on standard error.
#[cfg(target_os = "linux")]
fn interrupted(child: Child) -> String {
    let pid = child.id().to_string();
    // The handler must be there before the signal: until then a signal ends the process at once,
    // which is fine for users and not what is tested here.
    wait_for_handler(&pid);
    let killed = Command::new("kill").args(["-INT", &pid]).status().expect("kill exists");
    assert!(killed.success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.lines().last(), Some("dflowc: interrupted; nothing was written"));
    said
}

/// Waits until the process catches SIGINT, by what the system says about it.
#[cfg(target_os = "linux")]
fn wait_for_handler(pid: &str) {
    let status = Path::new("/proc").join(pid).join("status");
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        if mask.is_some_and(|mask| mask & 0b10 != 0) {
            return;
        }
        std::thread::yield_now();
    }
}
