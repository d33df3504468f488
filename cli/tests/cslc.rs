//! `cslc`: one test per option, held against the table of `spec/cslc.md`.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

const LAYOUT: &str = "\
param n: u16 = 3;
param signed: i16 = 0;
param on: bool = false;
param link: color = @get_color(5);
layout {
  @set_rectangle(2, 1);
  for (@range(u16, 2)) |x| @set_tile_code(x, 0, \"pe.csl\", .{ .n = n, .signed = signed });
  @set_color_config(0, 0, link, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
  @set_color_config(1, 0, link, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
  @export_name(\"out\", [*]u16, true);
  @export_name(\"fill\", fn()void);
}
";

const PE: &str = "\
param n: u16;
param signed: i16;
var out = @zeros([8]u16);
var out_ptr: [*]u16 = &out;
fn fill() void {
  inline for (@range(u16, 6)) |i| { out[i] = n; }
}
comptime {
  @export_symbol(out_ptr, \"out\");
  @export_symbol(fill);
}
";

/// A program in a spelling that our library uses too.
const OLD: &str = "\
const memcpy = @import_module(\"<memcpy/get_params>\", .{ .width = 1, .height = 1 });
layout {
  @set_rectangle(1, 1);
  @set_tile_code(0, 0, \"old_pe.csl\", .{ .memcpy_params = memcpy.get_params(0) });
}
";

const OLD_PE: &str = "\
param memcpy_params: comptime_struct;
const sys = @import_module(\"<memcpy/memcpy>\", memcpy_params);
";

/// A folder with a program.
struct Place(TempDir);

/// What a call gave.
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().expect("a folder"));
        place.file("layout.csl", LAYOUT);
        place.file("pe.csl", PE);
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

    fn call_with(&self, args: &[&str], environment: &[(&str, &str)]) -> Said {
        let output = Command::new(env!("CARGO_BIN_EXE_cslc"))
            .args(args)
            .current_dir(self.0.path())
            .env_remove("CSL_IMPORT_PATH")
            .env_remove("DFLOW_SDK_VERSION")
            .envs(environment.iter().copied())
            .output()
            .expect("the tool starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = Said {
            code: output.status.code().unwrap_or(-1),
            out: text(&output.stdout),
            err: text(&output.stderr),
        };
        assert!(!said.err.contains("internal error"), "{args:?}: {}", said.err);
        said
    }

    fn call(&self, args: &[&str]) -> Said {
        self.call_with(args, &[])
    }

    /// Compiles `layout.csl` with these options; wants success.
    #[track_caller]
    fn well(&self, options: &[&str]) -> Said {
        let mut args = options.to_vec();
        args.push("layout.csl");
        let said = self.call(&args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.err);
        said
    }

    /// The one line of a refusal.
    #[track_caller]
    fn refused(&self, options: &[&str]) -> String {
        let mut args = options.to_vec();
        args.push("layout.csl");
        let said = self.call(&args);
        assert_eq!(said.code, 2, "{args:?}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        assert!(!self.path("out").exists(), "a refusal writes nothing");
        said.err.trim_start_matches("cslc: ").trim_end().to_owned()
    }

    /// As `refused`, when a folder is there already.
    #[track_caller]
    fn refused_more(&self, options: &[&str]) -> String {
        let _ = std::fs::remove_dir_all(self.path("out"));
        self.refused(options)
    }

    /// Names and addresses of the variables of the first program.
    fn addresses(&self) -> Vec<(String, u32)> {
        let artifact = dflow_cli::artifact::read(&self.path("out")).expect("the folder");
        let (program, map) =
            (artifact.image.programs.iter().next(), artifact.image.memory.values().next());
        let (Some((_, program)), Some(map)) = (program, map) else { return Vec::new() };
        map.globals.iter().map(|&(id, at)| (program.globals[id].name.clone(), at)).collect()
    }

    fn json(&self, name: &str) -> Value {
        let text = std::fs::read_to_string(self.path(name)).expect("the file");
        serde_json::from_str(&text).expect("JSON")
    }

    fn fabric(&self) -> Value {
        self.json("out/bin/fabric.json")
    }
}

/// An option and its test.
type Case = (&'static str, fn(&Place));

/// One test per row of the table in the specification.
const CASES: &[Case] = &[
    ("-o", |place| {
        place.well(&["-o=a b/c"]);
        assert!(
            place.path("a b/c/out.json").is_file() && place.path("a b/c/bin/program.dfi").is_file()
        );
        place.well(&["-o", "d"]);
        assert!(place.path("d/bin/fabric.json").is_file());
        assert!(!place.path("out").exists());
        place.well(&[]);
        assert!(place.path("out/out.json").is_file());
    }),
    ("--arch", |place| {
        assert_eq!(place.refused(&["--arch=wse1"]), "--arch is wse2 or wse3, not `wse1`");
        place.well(&["--arch", "wse3"]);
        assert_eq!(place.fabric()["target"], "wse3");
        place.well(&[]);
        assert_eq!(place.fabric()["target"], "wse2");
    }),
    ("--params", |place| {
        let said = place.well(&["--params=n:0x7,on:true", "--params", "signed:-2", "--verbose"]);
        assert!(said.out.contains("n:7, signed:-2"), "{}", said.out);
        let params = &place.json("out/out.json")["params"];
        assert_eq!((&params["n"], &params["signed"]), (&"7".into(), &"-2".into()));
        let said = place.well(&["--params=m:1"]);
        assert!(said.err.contains("`m` is given on the command line"), "{}", said.err);
        let said = place.call(&["--params=n:70000", "layout.csl"]);
        assert_eq!(said.code, 1, "{}", said.err);
        assert!(said.err.contains("70000"), "{}", said.err);
    }),
    ("--colors", |place| {
        assert!(place.refused(&["--colors=link:red"]).contains("a color is a number"));
        let said = place.well(&["--colors=link:9", "--out-routes"]);
        assert!(said.out.contains("color 9 "), "{}", said.out);
        assert_eq!(place.json("out/out.json")["colors"]["link"], "9");
    }),
    ("--fabric-dims", |place| {
        let small = place.refused(&["--memcpy", "--fabric-dims=8,3"]);
        assert!(small.contains("at least 9,3 is needed"), "{small}");
        assert!(place.refused(&["--fabric-dims=8"]).contains("two numbers"));
        place.well(&["--memcpy", "--fabric-dims", "9,3"]);
        assert_eq!(place.fabric()["fabric_dims"], serde_json::json!([9, 3]));
    }),
    ("--fabric-offsets", |place| {
        let small = place.refused(&["--memcpy", "--fabric-offsets=3,1"]);
        assert!(small.contains("at least 4,1 is needed"), "{small}");
        place.well(&["--fabric-offsets=5,2"]);
        assert_eq!(place.fabric()["fabric_offsets"], serde_json::json!([5, 2]));
        assert_eq!(place.fabric()["fabric_dims"], serde_json::json!([7, 3]));
    }),
    ("--memcpy", |place| {
        assert!(place.refused(&["--memcpy=1"]).contains("takes no value"));
        place.well(&["--memcpy"]);
        assert_eq!(place.fabric()["memcpy"], true);
        assert_eq!(place.fabric()["fabric_offsets"], serde_json::json!([4, 1]));
        place.well(&[]);
        assert_eq!(place.fabric()["memcpy"], false);
    }),
    ("--channels", |place| {
        for wrong in ["0", "17", "x", ""] {
            let said = place.refused(&[&format!("--channels={wrong}")]);
            assert!(said.contains("from 1 to 16"), "{said}");
        }
        place.well(&["--channels", "16"]);
        assert_eq!(place.fabric()["channels"], 16);
    }),
    ("--width-west-buf", |place| {
        let small = place.refused(&["--memcpy", "--width-west-buf=2", "--fabric-offsets=4,1"]);
        assert!(small.contains("at least 6,1"), "{small}");
        place.well(&["--memcpy", "--width-west-buf=2"]);
        assert_eq!(place.fabric()["width_west_buf"], 2);
    }),
    ("--width-east-buf", |place| {
        let small = place.refused(&["--memcpy", "--width-east-buf=1", "--fabric-dims=9,3"]);
        assert!(small.contains("at least 10,3"), "{small}");
        place.well(&["--memcpy", "--width-east-buf=1"]);
        assert_eq!(place.fabric()["width_east_buf"], 1);
    }),
    ("--import-path", import_path),
    ("--max-inlined-iterations", |place| {
        place.well(&["--max-inlined-iterations=6"]);
        let said = place.call(&["--max-inlined-iterations", "5", "layout.csl"]);
        assert_eq!(said.code, 1, "{}", said.err);
        assert!(said.err.contains("more than 5 inlined iterations"), "{}", said.err);
    }),
    ("--comptime-func-depth-limit", |place| {
        let deep = LAYOUT.replace("layout {", "fn down(k: u16) u16 { return if (k == 0) 0 else down(k - 1); }\nlayout {\n  const zero = down(2000);");
        place.file("layout.csl", &deep);
        let said = place.call(&["layout.csl"]);
        assert!(said.code == 1 && said.err.contains("more than 512 calls"), "{}", said.err);
        place.well(&["--comptime-func-depth-limit=4096"]);
        let said = place.call(&["--comptime-func-depth-limit", "9", "layout.csl"]);
        assert!(said.err.contains("more than 9 calls"), "{}", said.err);
    }),
    ("--fp16-format", |place| {
        assert!(place.refused(&["--fp16-format=cb16"]).contains("not supported"));
        assert!(place.refused(&["--fp16-format=x"]).contains("is f16, cb16 or bf16"));
        let with_bf16 =
            LAYOUT.replace("layout {", "layout {\n  @comptime_assert(@fp16() == bf16);");
        place.file("layout.csl", &with_bf16);
        let said = place.call(&["--fp16-format", "f16", "layout.csl"]);
        assert_eq!(said.code, 1, "{}", said.err);
        place.well(&["--fp16-format=bf16"]);
        place.file("layout.csl", LAYOUT);
        place.well(&["--fp16-format", "f16"]);
    }),
    ("--max-parallelism", |place| {
        place.well(&["--max-parallelism=4"]);
        assert_eq!(place.call(&["--max-parallelism=x", "layout.csl"]).code, 2);
    }),
    ("--warnings-as-errors", |place| {
        let said = place.call(&["--params=m:1", "--warnings-as-errors", "layout.csl"]);
        assert_eq!(said.code, 1);
        assert!(
            said.err.ends_with("1 warning, and --warnings-as-errors is given\n"),
            "{}",
            said.err
        );
        assert!(!place.path("out").exists());
        place.well(&["--warnings-as-errors"]);
    }),
    ("--out-routes", |place| {
        let said = place.well(&["--out-routes"]);
        assert!(said.out.contains("color 5   (0,0) RAMP>EAST  (1,0) WEST>RAMP"), "{}", said.out);
        assert_eq!(place.well(&[]).out, "");
    }),
    ("--output-json", |place| {
        place.well(&["--output-json=p.json", "--params=signed:4"]);
        assert_eq!(
            place.json("p.json")["params"],
            serde_json::json!({ "signed": "4", "n": "3", "link": "5" })
        );
        place.well(&["-o", "d", "--output-json"]);
        assert_eq!(place.json("d.json")["params"]["n"], "3");
    }),
    ("--sdk-version", |place| {
        place.well(&["--sdk-version=1.4"]);
        assert_eq!(place.json("out/out.json")["dflow"]["dialect"], "1.4");
        let said = place.call_with(&["layout.csl", "-o", "e"], &[("DFLOW_SDK_VERSION", "2.10")]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(place.json("e/out.json")["dflow"]["dialect"], "2.10");
        place.file("old.csl", OLD);
        place.file("old_pe.csl", OLD_PE);
        let said = place.call(&["--sdk-version=2.10", "old.csl", "-o", "f"]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(said.err.contains("`comptime_struct` is an old spelling"), "{}", said.err);
        assert!(said.err.contains("old_pe.csl:1") && !said.err.contains("stdlib"), "{}", said.err);
        let said = place.call(&["--sdk-version=new", "layout.csl"]);
        assert!(said.code == 2 && said.err.contains("no version of the SDK"), "{}", said.err);
    }),
    ("--verbose", |place| {
        let said = place.well(&["--verbose", "--fabric-offsets=5,2"]);
        assert!(said.out.contains("mesh      2x1 PEs at (5,2) of a fabric of 7x3"), "{}", said.out);
        assert!(said.out.contains("dialect   SDK "), "{}", said.out);
    }),
    ("--llvm-option", |place| {
        place.well(&["--llvm-option=--inline-threshold=256", "--llvm-option", "-O3"]);
        assert_eq!(place.call(&["layout.csl", "--llvm-option"]).code, 2);
    }),
    ("-g0", |place| {
        place.well(&["-g0"]);
    }),
    ("--link-section-start-address-bytes", sections),
    ("--lomem-reservation-end", |place| {
        place.well(&["--lomem-reservation-end", "5000"]);
        assert!(place.addresses().iter().all(|(_, address)| *address >= 5000));
        assert!(place.refused_more(&["--lomem-reservation-end=49152"]).contains("from 0 to 49151"));
    }),
    ("--single-pe", |place| {
        assert!(place.refused(&["--single-pe"]).contains("is not supported"));
    }),
    ("--disable-auto-microthread-id", |place| {
        assert!(place.refused(&["--disable-auto-microthread-id"]).contains(".ut_id"));
    }),
    ("--dump-dsr-alloc-graph", |place| {
        assert!(place.refused(&["--dump-dsr-alloc-graph"]).contains("--stage ir"));
    }),
    ("-h", |place| {
        for word in ["-h", "--help"] {
            let said = place.call(&["--nonsense", word]);
            assert_eq!(said.code, 0);
            for (name, _) in CASES {
                assert!(said.out.contains(&format!("\n  {name}")), "{name}");
            }
        }
    }),
    ("--version", |place| {
        let said = place.call(&["--version"]);
        let version = env!("CARGO_PKG_VERSION");
        let build = dflow_cli::artifact::BUILD;
        assert_eq!((said.code, said.out), (0, format!("cslc (dflow) {version}, build {build}\n")));
    }),
];

fn sections(place: &Place) {
    let variables = "export var a: [4]u16 linksection(\".one\") = @zeros([4]u16);\n\
                     export var b: [2]u32 linksection(\".two\") = @zeros([2]u32);\n\
                     export var c: [3000]u32 = @zeros([3000]u32);\n\
                     export var d: u16 linksection(\".one\") = 0;\n";
    place.file("pe.csl", &format!("{variables}{PE}"));
    let option = "--link-section-start-address-bytes";
    place.well(&[option, ".one:0x1000,.two:300"]);
    let found = place.addresses();
    let at = |name: &str| found.iter().find(|(other, _)| other == name).map(|(_, at)| *at);
    assert_eq!((at("a"), at("d"), at("b")), (Some(4096), Some(4104), Some(300)));
    assert!(at("c").is_some_and(|at| at >= 4106), "{found:?}");
    // Sections do not count without the option.
    place.well(&[]);
    assert!(place.addresses().iter().all(|(_, at)| *at < 13_000));
    let said = place.call(&[option, ".one:1000,.two:1004", "layout.csl"]);
    assert!(
        said.code == 1 && said.err.contains("error[section-address]: `b` of section `.two`"),
        "{}",
        said.err
    );
    let said = place.call(&[option, ".two:0", "layout.csl"]);
    assert!(said.code == 1 && said.err.contains("would begin at address 0"), "{}", said.err);
    let said = place.well(&["--link-section-start-address-bytes=.three:1000"]);
    assert!(said.err.contains("warning[section-unused]: section `.three`"), "{}", said.err);
    assert!(
        place
            .refused_more(&["--link-section-start-address-bytes=.a:50000"])
            .contains("up to 49151")
    );
    assert!(
        place
            .refused_more(&["--link-section-start-address-bytes=1000"])
            .contains("needs NAME:ADDRESS")
    );
}

fn import_path(place: &Place) {
    let layout = LAYOUT.replace("\"pe.csl\"", "\"parts/tile.csl\"");
    place.file("layout.csl", &layout);
    let missing = place.call(&["layout.csl"]);
    assert!(
        missing.code == 1 && missing.err.contains("`parts/tile.csl` cannot be read"),
        "{}",
        missing.err
    );
    place.file("one dir/parts/tile.csl", PE);
    place.file("two/parts/tile.csl", "nonsense");
    place.well(&["--import-path=one dir", "--import-path", "two"]);
    let both = format!("{}:{}", place.path("none").display(), place.path("one dir").display());
    let said = place.call_with(&["layout.csl"], &[("CSL_IMPORT_PATH", &both)]);
    assert_eq!(said.code, 0, "{}", said.err);
    // What is beside the importing file comes first.
    place.file("parts/tile.csl", PE);
    place.well(&["--import-path=two"]);
}

#[test]
fn every_option_does_what_the_table_says() {
    for (name, case) in CASES {
        std::io::Write::write_all(&mut std::io::stdout(), format!("{name}\n").as_bytes())
            .expect("a terminal");
        case(&Place::new());
    }
}

#[test]
fn table_help_and_tests_have_the_same_options() {
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec/cslc.md");
    let spec = std::fs::read_to_string(spec).expect("the specification");
    let rows = spec.lines().filter_map(|line| line.strip_prefix("| `-"));
    let in_spec: Vec<String> = rows
        .map(|row| format!("-{}", row.split([' ', '`', '[']).next().unwrap_or_default()))
        .collect();
    let in_tests: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
    let in_tool: Vec<&str> = dflow_cli::cslc::option_names().collect();
    assert_eq!(in_spec, in_tool);
    assert_eq!(in_tests, in_tool);
}

#[test]
fn wrong_use_is_one_line() {
    let place = Place::new();
    let said = |args: &[&str]| {
        let said = place.call(args);
        (said.code, said.err)
    };
    let missing = "cslc: no.csl: no such file\n".to_owned();
    assert_eq!(said(&["no.csl"]), (2, missing));
    assert_eq!(said(&[]), (2, "cslc: no layout file is given; `cslc -h` shows how\n".to_owned()));
    let (code, text) = said(&["--fabric-offset=4,1", "layout.csl"]);
    assert_eq!(code, 2);
    assert!(text.ends_with("did you mean --fabric-offsets?\n"), "{text}");
    place.file("taken", "");
    let (code, text) = said(&["-o", "taken", "layout.csl"]);
    assert!(code == 2 && text.contains("taken"), "{text}");
}

#[test]
fn no_json_takes_the_place_of_a_source() {
    let place = Place::new();
    for source in ["layout.csl", "pe.csl", "./pe.csl"] {
        let said = place.refused(&[&format!("--output-json={source}")]);
        assert!(said.contains("the program was read from it"), "{said}");
    }
    assert_eq!(std::fs::read(place.path("layout.csl")).expect("still there"), LAYOUT.as_bytes());
    assert_eq!(std::fs::read(place.path("pe.csl")).expect("still there"), PE.as_bytes());
    place.file("old.json", "");
    std::os::unix::fs::symlink("old.json", place.path("link.json")).expect("a link");
    place.well(&["--output-json=link.json"]);
    assert!(place.path("link.json").is_symlink());
    assert!(
        std::fs::read_to_string(place.path("old.json")).is_ok_and(|text| text.contains("params"))
    );
}

#[test]
fn a_place_may_be_as_far_out_as_it_likes() {
    let place = Place::new();
    for offsets in ["4294967295,1", "5,4294967295"] {
        let said = place.refused(&["--memcpy", &format!("--fabric-offsets={offsets}")]);
        assert!(said.starts_with(&format!("--fabric-offsets={offsets} is too large")), "{said}");
    }
    let said = place.refused(&["--fabric-dims=9,9", "--fabric-offsets=1,4294967295"]);
    assert!(said.contains("at least 3,4294967296 is needed"), "{said}");
}

#[test]
fn a_program_that_is_wrong_leaves_the_folder_as_it_was() {
    let place = Place::new();
    place.well(&[]);
    let before = std::fs::read(place.path("out/bin/program.dfi")).expect("the image");
    place.file("pe.csl", "param n: u16; param signed: i16; comptime { nonsense(); }");
    let said = place.call(&["layout.csl"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("pe.csl:1:"), "{}", said.err);
    assert_eq!(std::fs::read(place.path("out/bin/program.dfi")).expect("the image"), before);
}

#[test]
fn imports_go_through_parents_blanks_and_links() {
    let place = Place::new();
    let layout = LAYOUT.replace("\"pe.csl\"", "\"../../shared parts/pe.csl\"");
    place.file("a b/c/layout.csl", &layout);
    place.file("shared parts/pe.csl", &format!("const lib = @import_module(\"./lib.csl\");\n{PE}"));
    place.file("shared parts/lib.csl", "const x = 1;");
    let said = place.call(&["./a b/c/layout.csl"]);
    assert_eq!(said.code, 0, "{}", said.err);
    // Behind a link, the parent is that of what the link points at.
    place.file("real/deep/layout.csl", &LAYOUT.replace("\"pe.csl\"", "\"../near.csl\""));
    place.file("real/near.csl", PE);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("real/deep", place.path("link")).expect("a link");
        let said = place.call(&["link/layout.csl", "-o", "linked"]);
        assert_eq!(said.code, 0, "{}", said.err);
        std::os::unix::fs::symlink("../pe.csl", place.path("real/deep/tile.csl")).expect("a link");
        place.file("real/pe.csl", PE);
        place.file("real/deep/layout.csl", &LAYOUT.replace("\"pe.csl\"", "\"tile.csl\""));
        let said = place.call(&["link/layout.csl", "-o", "linked"]);
        assert_eq!(said.code, 0, "{}", said.err);
    }
}

#[test]
fn a_compiled_folder_says_how_to_run_it() {
    let place = Place::new();
    place.well(&[]);
    let output = Command::new(env!("CARGO_BIN_EXE_dflowc"))
        .args(["run", "out"])
        .current_dir(place.0.path())
        .output()
        .expect("the tool starts");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("`cs_python run.py --name out`"), "{said}");
}
