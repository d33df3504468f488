//! Which release a program is read as.

use dflow_compiler::{
    Dialect, Mark, MemoryWorld, Options, Origin, QueueBinding, SdkVersion, compile,
};

const LAYOUT: &str = "layout { @set_rectangle(1, 1); @set_tile_code(0, 0, \"pe.csl\", .{}); }\n";

/// Dialect and codes of a program of two files.
fn read(top: &str, pe: &str, options: Options) -> (Dialect, Vec<&'static str>) {
    let top = format!("{top}\n{LAYOUT}");
    let world = MemoryWorld::new().with("src/top.csl", top).with("src/pe.csl", pe);
    let compiled = compile(&world, "src/top.csl", options);
    let codes = compiled.diagnostics.iter().map(|line| line.code().id()).collect();
    (compiled.dialect, codes)
}

fn plain(pe: &str) -> (Dialect, Vec<&'static str>) {
    read("", pe, Options::default())
}

fn named(major: u16, minor: u16) -> Options {
    let version = Some((SdkVersion::new(major, minor), Origin::Flag));
    Options { sdk_version: version, ..Options::default() }
}

const OLD: &str = "param p: comptime_struct = .{};\n";
const NEW: &str = "param memcpy_params;\nconst queue_flush = 1; const s = .{ .queue_flush = 1 }; const t = s.queue_flush;\n";

#[test]
fn nothing_said_is_read_as_1_4() {
    let (dialect, codes) = plain("");
    assert_eq!(dialect, Dialect::default());
    assert_eq!((dialect.packing, dialect.queue_binding), (false, QueueBinding::ByOperation));
    assert!(codes.is_empty());
}

#[test]
fn marks_of_one_side_decide() {
    let (dialect, codes) = plain(OLD);
    assert_eq!((dialect.version, dialect.origin), (SdkVersion::OLD, Origin::Marks));
    assert_eq!(dialect.marks[0].place, "src/pe.csl:1");
    assert!(codes.is_empty());
    let (dialect, codes) = plain(NEW);
    assert_eq!((dialect.version, dialect.origin), (SdkVersion::NEW, Origin::Marks));
    assert_eq!((dialect.packing, dialect.queue_binding), (true, QueueBinding::Once));
    assert!(codes.is_empty());
}

#[test]
fn marks_of_both_sides_are_read_as_1_4_with_a_warning() {
    let (dialect, codes) = plain(&format!("{OLD}{NEW}"));
    assert!(!dialect.packing);
    assert_eq!(codes, ["sdk-version"]);
}

#[test]
fn hard_marks_beat_soft_ones() {
    let soft = "param m;\nconst f = @import_module(\"<memcpy/memcpy>\", m);\n";
    let (dialect, _) = read("", &format!("{soft}{OLD}"), Options::default());
    assert_eq!(dialect.version, SdkVersion::OLD);
}

#[test]
fn a_named_version_beats_marks_and_the_pragma() {
    let (dialect, codes) = read("// dflow: sdk-version=2.10", OLD, Options::default());
    assert_eq!((dialect.version, dialect.origin), (SdkVersion::NEW, Origin::Pragma));
    assert!(codes.is_empty(), "{codes:?}");
    let (dialect, _) = read("// dflow: sdk-version=2.10", OLD, named(1, 2));
    assert_eq!((dialect.version, dialect.origin), (SdkVersion::OLD, Origin::Flag));
    assert_eq!(dialect.named, Some(SdkVersion::new(1, 2)));
}

#[test]
fn a_pragma_that_cannot_be_read_is_told_of() {
    let (dialect, codes) = read("// dflow: sdk-version=old", "", Options::default());
    assert_eq!((dialect.version, codes), (SdkVersion::OLD, vec!["sdk-version"]));
}

#[test]
fn what_is_newer_than_the_named_version_is_told_of() {
    let (_, codes) = read("", NEW, named(1, 4));
    assert_eq!(codes, ["sdk-version"]);
}

#[test]
fn callers_have_marks_too() {
    let marks = vec![Mark::of_caller(true, true, "a color for an integer param")];
    let (dialect, _) = read("", "", Options { marks, ..Options::default() });
    assert!(dialect.packing);
    assert_eq!(
        dialect.summary(),
        "SDK 2.10 (by marks in the sources: a color for an integer param)"
    );
}
