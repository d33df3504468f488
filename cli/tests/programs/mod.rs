//! Programs of one line each, and how their runs end.

use std::process::{Command, Output};

use tempfile::TempDir;

/// A program of one PE that is launched once.
pub(crate) fn program(code: &str) -> String {
    format!(
        r#"const memcpy = @import_module("<memcpy/get_params>", .{{ .width = 1, .height = 1 }});
tile t {{
  param memcpy_params: comptime_struct;
  const sys = @import_module("<memcpy/memcpy>", memcpy_params);
  {code}
  comptime {{ @export_symbol(go); }}
}}
layout {{
  @set_rectangle(1, 1);
  @set_tile_code(0, 0, t, .{{ .memcpy_params = memcpy.get_params(0) }});
  @export_name("go", fn()void);
}}
host {{ @launch("go"); }}
"#
    )
}

/// A program whose host block, on line 3, does everything.
pub(crate) fn host(body: &str) -> String {
    format!(
        "layout {{ @set_rectangle(1, 1); @set_tile_code(0, 0, t, .{{}}); }}\ntile t {{}}\nhost {{ {body} }}\n"
    )
}

pub(crate) fn dflowc(source: &str, args: &[&str]) -> Output {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("p.dfl"), source).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dflowc"));
    command.current_dir(folder.path()).args(["run", "p.dfl"]).args(args);
    command.output().expect("the tool starts")
}

/// Runs a program on every pair of engines: exit code, and all of `wanted` in a report of at most
/// six lines (after the notes of the compiler).
#[track_caller]
pub(crate) fn ends(source: &str, args: &[&str], code: i32, wanted: &[&str]) {
    let mut first: Option<String> = None;
    for (engine, kind) in [("exact", "jit"), ("step", "interpreter")] {
        let all = [args, &["--engine", engine, "--code", kind]].concat();
        let output = dflowc(source, &all);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report = said.find("dflowc: ").map_or("", |at| &said[at..]);
        assert_eq!(output.status.code(), Some(code), "{said}");
        for part in wanted {
            assert!(report.contains(part), "no `{part}` in {said}");
        }
        assert!(report.lines().count() <= 6, "{said}");
        assert_eq!(first.get_or_insert_with(|| report.to_owned()), report);
    }
}
