//! The standard library: sources of the language's own libraries and of the programs that come
//! with the tool, embedded as text.
//!
//! Absences first: nothing here is executed or parsed, and no other crate does anything for a library: what it does, it
//! does in its source.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

/// A library or program, as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// What `@import_module("<name>")` or `dflowc run name` asks for.
    pub name: &'static str,
    /// Path for diagnostics; its ending tells the dialect, as for any file.
    pub path: &'static str,
    /// The text.
    pub text: &'static str,
    /// One line for listings.
    pub summary: &'static str,
}

macro_rules! source {
    ($name:literal, $path:literal, $summary:literal) => {
        Source {
            name: $name,
            path: concat!("stdlib/", $path),
            text: include_str!(concat!("../", $path)),
            summary: $summary,
        }
    };
}

/// The libraries, ordered by name.
pub const LIBRARIES: &[Source] = &[
    source!(
        "allreduce/choice",
        "allreduce/choice.dfl",
        "the reduction tree that a line of PEs takes"
    ),
    source!("allreduce/host", "allreduce/host.dfl", "vectors on PEs, combined: the host's side"),
    source!(
        "allreduce/kinds",
        "allreduce/kinds.dfl",
        "names of reduction algorithms and operations"
    ),
    source!("allreduce/ops", "allreduce/ops.dfl", "what reductions do with elements"),
    source!("allreduce/pe", "allreduce/pe.dfl", "reduce, broadcast, all-reduce: a PE's side"),
    source!(
        "allreduce/plan",
        "allreduce/plan.dfl",
        "reduce, broadcast, all-reduce: the layout's side"
    ),
    source!(
        "allreduce/ring",
        "allreduce/ring.dfl",
        "reduce, broadcast and all-reduce over a ring of PEs"
    ),
    source!("allreduce/together", "allreduce/together.dfl", "a common start for measurements"),
    source!(
        "allreduce/tree",
        "allreduce/tree.dfl",
        "reduction trees: what they cost, who does what"
    ),
    source!("allreduce/worker", "allreduce/worker.dfl", "a PE of <allreduce/host>"),
    source!(
        "ceresz/bench",
        "ceresz/bench.dfl",
        "cycles per stage of compression beside published ones"
    ),
    source!("ceresz/bench_pe", "ceresz/bench_pe.dfl", "a PE that times the stages of compression"),
    source!(
        "ceresz/block",
        "ceresz/block.dfl",
        "a block on its way through the stages of <ceresz/pe>"
    ),
    source!("ceresz/decode", "ceresz/decode.dfl", "stages of decompression"),
    source!(
        "ceresz/decode_vector",
        "ceresz/decode_vector.dfl",
        "stages of decompression, by vector operations"
    ),
    source!("ceresz/encode", "ceresz/encode.dfl", "stages of compression"),
    source!(
        "ceresz/encode_vector",
        "ceresz/encode_vector.dfl",
        "stages of compression, by vector operations"
    ),
    source!("ceresz/field", "ceresz/field.dfl", "fields for runs, and what was lost of them"),
    source!("ceresz/file", "ceresz/file.dfl", "compressed fields as files"),
    source!("ceresz/format", "ceresz/format.dfl", "versions of the format of compressed fields"),
    source!("ceresz/host", "ceresz/host.dfl", "fields to block streams and back, the host's side"),
    source!("ceresz/pe", "ceresz/pe.dfl", "compression and decompression, a PE's side"),
    source!("ceresz/plan", "ceresz/plan.dfl", "compression and decompression, the layout's side"),
    source!(
        "ceresz/switched",
        "ceresz/switched.dfl",
        "compression and decompression with switches, a PE's side"
    ),
    source!("ceresz/vectors", "ceresz/vectors.dfl", "what stages by vector operations share"),
    source!("ceresz/work", "ceresz/work.dfl", "what a PE does with a block"),
    source!("cg/columns", "cg/columns.dfl", "where the columns of cells lie in a PE's memory"),
    source!("cg/count", "cg/count.dfl", "vector operations, counted by kind"),
    source!("cg/fast", "cg/fast.dfl", "the finite-volume operator with few vector operations"),
    source!("cg/host", "cg/host.dfl", "conjugate gradients on finite volumes: the host's side"),
    source!("cg/inverse", "cg/inverse.dfl", "reciprocals by vector operations"),
    source!("cg/kinds", "cg/kinds.dfl", "names of the solver's variants and ends"),
    source!("cg/paper", "cg/paper.dfl", "the finite-volume operator and exchange of the paper"),
    source!("cg/pe", "cg/pe.dfl", "conjugate gradients on finite volumes: a PE's side"),
    source!("cg/picture", "cg/picture.dfl", "a map of a field as a picture"),
    source!("cg/plan", "cg/plan.dfl", "conjugate gradients on finite volumes: the layout's side"),
    source!("cg/problem", "cg/problem.dfl", "fields of permeability"),
    source!("cg/reference", "cg/reference.dfl", "the equations of the solver in f64, on the host"),
    source!("cg/relay", "cg/relay.dfl", "sums from core to core, as the paper makes them"),
    source!("cg/report", "cg/report.dfl", "what a solution took and how good it is"),
    source!("cg/sums", "cg/sums.dfl", "sums of one or two numbers over all PEs"),
    source!("cg/vectors", "cg/vectors.dfl", "what the solver does with columns"),
    source!(
        "collectives_2d/params",
        "collectives_2d/params.csl",
        "parameters of <collectives_2d/pe>"
    ),
    source!(
        "collectives_2d/pe",
        "collectives_2d/pe.dfl",
        "collective operations along rows and columns"
    ),
    source!("complex", "complex.csl", "complex numbers of two floats"),
    source!("control", "control.csl", "payloads of control wavelets"),
    source!("data_utils", "data_utils.csl", "halves of words"),
    source!("debug", "debug.dfl", "records that can be read after the run"),
    source!("directions", "directions.csl", "turning directions"),
    source!("dsd_ops", "dsd_ops.csl", "vector operations chosen by element type"),
    source!("empty", "empty.csl", "nothing"),
    source!("kernels/fft/exchange", "kernels/fft/exchange.csl", "blocks between all PEs of a line"),
    source!("kernels/fft/fft1d", "kernels/fft/fft1d.csl", "transforms in one PE"),
    source!(
        "kernels/fft/fft3d",
        "kernels/fft/fft3d.csl",
        "three-dimensional transforms, a PE's side"
    ),
    source!(
        "kernels/fft/fft3d_layout",
        "kernels/fft/fft3d_layout.dfl",
        "three-dimensional transforms, the whole program"
    ),
    source!(
        "kernels/fft/fft3d_pe",
        "kernels/fft/fft3d_pe.csl",
        "code of <kernels/fft/fft3d_layout>"
    ),
    source!(
        "kernels/fft/get_params",
        "kernels/fft/get_params.csl",
        "parameters of <kernels/fft/fft3d>"
    ),
    source!("kernels/fft/stream", "kernels/fft/stream.csl", "one direction of an exchange"),
    source!("kernels/fft/words", "kernels/fft/words.csl", "complex numbers as wavelets"),
    source!("kernels/tally/layout", "kernels/tally/layout.csl", "parameters of <kernels/tally/pe>"),
    source!(
        "kernels/tally/pe",
        "kernels/tally/pe.csl",
        "counts over a rectangle until all are done"
    ),
    source!("layout", "layout.dfl", "a PE's own place"),
    source!("malloc", "malloc.csl", "memory by need, given back all at once"),
    source!("math", "math.csl", "functions of integers and floats"),
    source!(
        "memcpy/get_params",
        "memcpy/get_params.csl",
        "parameters of <memcpy/memcpy> per column"
    ),
    source!("memcpy/memcpy", "memcpy/memcpy.dfl", "copies, launches and streams, the mesh's side"),
    source!(
        "memcpy/memcpy_switches",
        "memcpy/memcpy_switches.csl",
        "command lists of control wavelets"
    ),
    source!(
        "memcpy_multi/get_params",
        "memcpy_multi/get_params.csl",
        "<memcpy/get_params> of old releases"
    ),
    source!("message_passing", "message_passing.csl", "messages from any PE to any other"),
    source!("plot", "plot.dfl", "line charts as a picture"),
    source!("random", "random.csl", "pseudo-random numbers"),
    source!("report", "report.dfl", "numbers for people"),
    source!("schedule", "schedule.dfl", "stages dealt to consecutive PEs"),
    source!("simprint", "simprint.csl", "text from PEs, for the user"),
    source!("string", "string.csl", "texts at compile time"),
    source!("tile_config", "tile_config/tile_config.dfl", "a PE's configuration registers"),
    source!("tile_config/color_config", "tile_config/color_config.csl", "routes at run time"),
    source!(
        "tile_config/control_transform",
        "tile_config/control_transform.csl",
        "control wavelets that pass as data"
    ),
    source!("tile_config/exceptions", "tile_config/exceptions.csl", "what ends a program"),
    source!("tile_config/filters", "tile_config/filters.csl", "counting filters at run time"),
    source!(
        "tile_config/input_queue_config",
        "tile_config/input_queue_config.csl",
        "another color for an input queue"
    ),
    source!(
        "tile_config/input_queue_status",
        "tile_config/input_queue_status.csl",
        "which input queues are empty or full"
    ),
    source!(
        "tile_config/main_thread_priority",
        "tile_config/main_thread_priority.csl",
        "the main thread among the microthreads"
    ),
    source!("tile_config/numbers", "tile_config/numbers.csl", "ids as numbers"),
    source!(
        "tile_config/output_queue_config",
        "tile_config/output_queue_config.csl",
        "another color for an output queue"
    ),
    source!(
        "tile_config/output_queue_status",
        "tile_config/output_queue_status.csl",
        "which output queues are empty or full"
    ),
    source!("tile_config/queue_flush", "tile_config/queue_flush.csl", "queues that were flushed"),
    source!("tile_config/switch_config", "tile_config/switch_config.csl", "switches at run time"),
    source!("tile_config/task_priority", "tile_config/task_priority.csl", "which task goes first"),
    source!("tile_config/teardown", "tile_config/teardown.csl", "colors that are suspended"),
    source!("time", "time.dfl", "the cycle counter"),
    source!("timer", "timer.dfl", "several stop watches"),
    source!("types", "types.csl", "questions about types"),
];

/// The programs that `dflowc run` knows, ordered by name: one row each, a path below `stdlib/`.
pub const PROGRAMS: &[Source] = &[
    source!(
        "allreduce",
        "allreduce/allreduce.dfl",
        "sums of vectors over a rectangle of PEs, and what they cost"
    ),
    source!(
        "allreduce_table",
        "allreduce/table.dfl",
        "reductions of lines of PEs beside their lower bound, and beside published cycles"
    ),
    source!(
        "allreduce_wafer",
        "allreduce/wafer.dfl",
        "one number per PE of a whole wafer, summed and made known to all"
    ),
    source!(
        "ceresz",
        "ceresz/ceresz.dfl",
        "error-bounded compressor for fields of f32, and its decompressor"
    ),
    source!(
        "ceresz_eval",
        "ceresz/eval.dfl",
        "the evaluation of CereSZ: cycles per stage, rows, squares, pipelines and ratios, beside published ones"
    ),
    source!(
        "ceresz_wafer",
        "ceresz/wafer.dfl",
        "fields compressed and restored by all rows of a mesh at once, and how fast"
    ),
    source!("cg", "cg/cg.dfl", "pressure in a reservoir: conjugate gradients on finite volumes"),
    source!(
        "cg_table",
        "cg/table.dfl",
        "what the solver's operator and iterations take, beside published figures"
    ),
    source!(
        "cg_wafer",
        "cg/wafer.dfl",
        "some iterations of the solver on as many PEs as a wafer has"
    ),
];

/// The library of a name (as written between `<` and `>`): its path and its text.
pub fn library(name: &str) -> Option<(&'static str, &'static str)> {
    LIBRARIES.iter().find(|source| source.name == name).map(|source| (source.path, source.text))
}

/// Libraries that had another name in older releases: old name, today's.
const RENAMED: &[(&str, &str)] = &[
    ("memcpy_multi/memcpy", "memcpy/memcpy"),
    ("memcpy_multi/memcpy_switches", "memcpy/memcpy_switches"),
];

/// Today's name of a library that has been renamed.
pub fn renamed(name: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(old, _)| *old == name).map(|&(_, new)| new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_unique() {
        for list in [LIBRARIES, PROGRAMS] {
            assert!(list.is_sorted_by(|a, b| a.name < b.name));
        }
    }

    #[test]
    fn a_library_is_found_by_its_name_only() {
        assert!(
            library("memcpy/memcpy").is_some_and(|(path, _)| path == "stdlib/memcpy/memcpy.dfl")
        );
        assert_eq!(library("memcpy"), None);
        assert_eq!(library("<math>"), None);
    }

    #[test]
    fn every_text_says_what_it_is() {
        for source in LIBRARIES {
            assert!(source.text.starts_with(&format!("// <{}>", source.name)), "{}", source.name);
        }
    }
}
