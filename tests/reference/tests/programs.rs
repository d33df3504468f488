//! Every program of the library runs to its good end without inputs, with what makes it small.
#![forbid(unsafe_code)]

use dflow_ir::target::TargetId;

use host::run;

mod host;

/// The programs, by name, and params for a short run.
const SMALL: &[(&str, &[(&str, &str)])] = &[
    ("allreduce", &[]),
    ("allreduce_table", &[("sizes", "3"), ("lengths", "6")]),
    ("allreduce_wafer", &[("width", "20"), ("height", "12")]),
    ("ceresz", &[]),
    ("ceresz_eval", &[("size", "4"), ("width", "8"), ("rounds", "3")]),
    ("ceresz_wafer", &[("rows", "2"), ("cols", "4"), ("rounds", "3")]),
    ("cg", &[]),
    ("cg_table", &[("nx", "3"), ("ny", "3"), ("nz", "20")]),
    ("cg_wafer", &[("nx", "6"), ("ny", "5")]),
];

#[test]
fn every_program_of_the_library_runs() {
    let names = dflow_stdlib::PROGRAMS.iter().map(|program| program.name);
    assert!(names.eq(SMALL.iter().map(|&(name, _)| name)), "a program has no run here");
    for (name, params) in SMALL {
        let printed = run(name, TargetId::Wse2, params);
        assert!(!printed.is_empty(), "{name} says nothing");
    }
}
