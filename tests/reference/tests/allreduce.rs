//! The programs of `stdlib/allreduce` as users run them: they check their results themselves.
#![forbid(unsafe_code)]

use dflow_ir::target::TargetId;

use host::{program, run};

mod host;

#[test]
fn every_algorithm_sums_on_both_targets() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        for algorithm in
            ["auto", "star", "chain", "tree", "two_phase", "generated", "snake", "relay", "ring"]
        {
            let params =
                [("width", "11"), ("height", "6"), ("length", "9"), ("algorithm", algorithm)];
            let printed = run("allreduce", target, &params);
            assert!(printed.iter().any(|line| line.starts_with("equal to the host's")));
        }
        for (width, height) in [("5", "1"), ("1", "6"), ("2", "1"), ("3", "3"), ("4", "5")] {
            let ring =
                [("width", width), ("height", height), ("length", "64"), ("algorithm", "ring")];
            run("allreduce", target, &ring);
        }
    }
}

#[test]
fn integers_are_combined_one_by_one_and_in_pieces() {
    let types = [("i32", "sum"), ("u32", "max"), ("i16", "min")];
    for (kind, operation) in types {
        for (length, algorithm) in [
            ("7", "chain"),
            ("13", "star"),
            ("77", "tree"),
            ("77", "two_phase"),
            ("32", "snake"),
            ("77", "ring"),
        ] {
            let params = [
                ("width", "7"),
                ("height", "5"),
                ("length", length),
                ("algorithm", algorithm),
                ("T", kind),
                ("operation", operation),
            ];
            let printed = run("allreduce", TargetId::Wse2, &params);
            assert!(printed.iter().any(|line| line.starts_with("equal to the host's")));
        }
    }
}

#[test]
fn rows_and_columns_share_colors() {
    let params = [("width", "257"), ("height", "257"), ("length", "1"), ("algorithm", "tree")];
    program("allreduce", TargetId::Wse3, &params).expect("ten colors with switches are enough");
}

#[test]
fn it_runs_without_arguments_and_says_why() {
    let printed = run("allreduce", TargetId::Wse2, &[]);
    assert!(printed[1].contains("the cheapest by the model"), "{printed:?}");
}

#[test]
fn lines_are_near_their_lower_bound() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        let printed = run("allreduce_table", target, &[("sizes", "3"), ("lengths", "6")]);
        assert_eq!(printed.len(), 3 * 6 + 2);
    }
}

#[test]
fn all_pes_of_a_wafer_know_the_sum() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        run("allreduce_wafer", target, &[("width", "60"), ("height", "40")]);
    }
}

#[test]
fn what_does_not_fit_is_refused_with_what_does() {
    let refusal = |params: &[(&str, &str)]| {
        program("allreduce", TargetId::Wse2, params).expect_err("it is refused")
    };
    assert!(refusal(&[("length", "0")]).contains("at least one element"));
    assert!(refusal(&[("length", "20000")]).contains("a vector of up to 10240 elements"));
    assert!(refusal(&[("width", "751")]).contains("wse2 holds up to 750 x 994"));
    assert!(refusal(&[("algorithm", "best")]).contains("takes one of auto, star, chain"));
    assert!(refusal(&[("operation", "mean")]).contains("takes one of sum, min, max"));
    let wide = [("algorithm", "ring"), ("width", "300"), ("height", "200")];
    assert!(refusal(&wide).contains("a ring has at most 32,768 PEs"));
}
