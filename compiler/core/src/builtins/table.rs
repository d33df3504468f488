//! The builtins, one row each, sorted by name.

use super::{
    Handler, allocate, color, config, dsd, estimate, export, filter, host, ids, layout, map, old,
    queue, structs, task, teardown, values, wse3,
};

/// A row.
pub(crate) struct Row {
    /// Without the `@`.
    pub(crate) name: &'static str,
    /// Fewest and most arguments.
    pub(crate) args: (usize, usize),
    /// Where it may stand.
    pub(crate) place: Where,
    /// Who does it.
    pub(crate) handler: Handler,
    /// One line for the manual.
    pub(crate) doc: &'static str,
}

/// A set of places.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Where(u8);

impl Where {
    /// Layout blocks.
    pub(crate) const LAYOUT: Where = Where(1);
    /// Top-level comptime blocks.
    pub(crate) const TOP: Where = Where(2);
    /// Any other comptime expression.
    pub(crate) const VALUE: Where = Where(4);
    /// Code of a PE.
    pub(crate) const CODE: Where = Where(8);
    /// Host and test blocks.
    pub(crate) const HOST: Where = Where(16);

    const ALL: [(Where, &'static str); 5] = [
        (Where::LAYOUT, "a layout block"),
        (Where::TOP, "a top-level comptime block"),
        (Where::VALUE, "a comptime expression"),
        (Where::CODE, "code of a PE"),
        (Where::HOST, "a host or test block"),
    ];

    pub(crate) fn contains(self, place: Where) -> bool {
        self.0 & place.0 != 0
    }

    pub(crate) fn name(self) -> &'static str {
        Where::ALL.iter().find(|(place, _)| self.contains(*place)).map_or("", |(_, name)| name)
    }

    pub(crate) fn names(self) -> String {
        let names = Where::ALL.iter().filter(|(place, _)| self.contains(*place));
        names.map(|&(_, name)| name).collect::<Vec<_>>().join(" or ")
    }
}

/// Anywhere.
const X: Where = Where(31);
const L: Where = Where::LAYOUT;
const C: Where = Where::TOP;
const R: Where = Where::CODE;
const H: Where = Where::HOST;
/// Top-level comptime blocks and code.
const CR: Where = Where(2 | 8);
/// Initializers of globals.
const V: Where = Where(2 | 4);
const MANY: usize = usize::MAX;

const fn row(
    name: &'static str,
    args: (usize, usize),
    place: Where,
    handler: Handler,
    doc: &'static str,
) -> Row {
    Row { name, args, place, handler, doc }
}

/// All rows.
pub(crate) const ROWS: &[Row] = &[
    row("activate", (1, 1), CR, task::activate, "activates a local task"),
    row("all", (0, 0), H, host::all, "the program's rectangle"),
    row("alloc", (2, 2), H, host::alloc, "`n` zeroed elements of host memory"),
    row("allocate_color", (0, 0), L, allocate::color, "a color that nothing in the layout names"),
    row("allocate_fifo", (1, 2), V, dsd::allocate_fifo, "a FIFO over a global array"),
    row(
        "allocate_input_queue",
        (0, 0),
        V,
        allocate::input_queue,
        "an input queue not named so far",
    ),
    row("allocate_local_task_id", (0, 0), V, allocate::local_task_id, "an id not named so far"),
    row(
        "allocate_output_queue",
        (0, 0),
        V,
        allocate::output_queue,
        "an output queue not named so far",
    ),
    row("as", (2, 2), X, values::as_, "converts numbers, bools and enums"),
    row("assert", (1, 2), X, values::assert, "ends the run unless true"),
    row("assumed_share", (0, 0), H, host::assumed_share, "the share of assumed cycles"),
    row("bind_control_task", (2, 2), C, task::bind_control, "binds a task to a control task id"),
    row("bind_data_task", (2, 2), C, task::bind_data, "binds a task to a data task id"),
    row("bind_local_task", (2, 2), C, task::bind_local, "binds a task to a local task id"),
    row(
        "bind_rotating_tasks",
        (4, 4),
        C,
        wse3::bind_rotating_tasks,
        "binds two tasks that take turns (wse3)",
    ),
    row("bind_task", (2, 2), C, old::bind_task, "binds a task as programs of SDK 0.x do"),
    row("bitcast", (2, 2), X, values::bitcast, "the same bits as another type"),
    row("block", (1, 1), CR, task::block, "holds back a task or channel"),
    row("clock_disable", (0, 0), R, task::clock_disable, "stops the cycle counter"),
    row("clock_enable", (0, 0), R, task::clock_enable, "starts the cycle counter from zero"),
    row("clock_rate", (0, 0), H, host::clock_rate, "the target's clock in Hz"),
    row("clock_read", (0, 0), R, task::clock_read, "the 48-bit cycle counter"),
    row("clock_reset", (0, 0), R, task::clock_reset, "sets the cycle counter to zero"),
    row("clock_resume", (0, 0), R, task::clock_resume, "lets the cycle counter run on"),
    row("clock_total", (0, 0), R, task::clock_total, "the cycles counted in all"),
    row("comptime_assert", (1, 2), X, values::comptime_assert, "ends the compilation unless true"),
    row("comptime_print", (0, MANY), X, values::comptime_print, "prints at compile time"),
    row("concat_structs", (2, 2), X, structs::concat, "one anonymous struct of two"),
    row("constants", (2, 2), X, values::constants, "an array filled with a value"),
    row("copy_in", (3, 3), H, host::copy_in, "copies to the memory behind an exported pointer"),
    row("copy_out", (3, 3), H, host::copy_out, "copies from the memory behind an exported pointer"),
    row("cos", (1, 1), H, host::cos, "cosine"),
    row(
        "cycle_estimate",
        (1, 1),
        X,
        estimate::cycle_estimate,
        "static cost of a function in cycles",
    ),
    row("cycles", (0, 0), H, host::cycles, "cycles since the start"),
    row("dfilt", (2, 2), R, filter::dfilt, "drops data until control wavelets have come"),
    row("dimensions", (1, 1), X, values::dimensions, "sizes of an array type"),
    row("element_count", (1, 1), X, values::element_count, "number of elements of an array type"),
    row("element_type", (1, 1), X, values::element_type, "element type of an array type"),
    row("exp", (1, 1), H, host::exp, "natural exponential"),
    row("expect", (1, 3), H, host::expect, "fails the test or run unless true"),
    row("export_name", (2, 3), L, export::export_name, "declares a name for the host"),
    row("export_symbol", (1, 2), C, export::export_symbol, "binds a symbol to a declared name"),
    row("field", (2, 2), X, structs::field, "a field by name"),
    row("fp16", (0, 0), X, values::fp16, "the 16-bit float type"),
    row("get_array", (1, 1), X, values::get_array, "a string as an array of bytes"),
    row("get_color", (1, 1), X, ids::get_color, "a color by number"),
    row("get_color_id", (1, 1), X, old::get_color_id, "the number of a color, as it was written"),
    row("get_config", (1, 2), CR, config::get, "a configuration register's value"),
    row(
        "get_config_unchecked",
        (1, 2),
        CR,
        config::get_unchecked,
        "a configuration register's value, any register's",
    ),
    row("get_control_task_id", (1, 1), X, ids::get_control_task_id, "a control task id by number"),
    row(
        "get_data_task_id",
        (1, 1),
        X,
        ids::get_data_task_id,
        "the data task id of a color or queue",
    ),
    row("get_dsd", (2, 2), X, dsd::get_dsd, "a descriptor"),
    row("get_dsr", (2, 2), X, ids::get_dsr, "a descriptor register"),
    row("get_filter_id", (1, 1), X, filter::get_filter_id, "the id of a color's filter"),
    row("get_input_queue", (1, 1), X, ids::get_input_queue, "an input queue by number"),
    row("get_int", (1, 1), X, ids::get_int, "the number of an id, color, queue or enum"),
    row("get_local_task_id", (1, 1), X, ids::get_local_task_id, "a local task id by number"),
    row("get_output_queue", (1, 1), X, ids::get_output_queue, "an output queue by number"),
    row("get_rectangle", (0, 0), X, layout::get_rectangle, "the layout's rectangle"),
    row("get_sr", (1, 1), X, ids::get_sr, "a stride register by number"),
    row("get_string_from_byte", (1, 1), X, values::get_string_from_byte, "a string of one byte"),
    row("get_symbol_id", (1, 1), X, export::get_symbol_id, "the id of an exported symbol"),
    row(
        "get_symbol_value",
        (2, 2),
        R,
        export::get_symbol_value,
        "an exported symbol's value by id",
    ),
    row("get_tensor_ptr", (1, 1), R, export::get_tensor_ptr, "an exported pointer by id"),
    row("get_ut_id", (1, 1), X, ids::get_ut_id, "a microthread by number (wse3)"),
    row("get_xdsr", (1, 1), X, ids::get_xdsr, "an extended register by number"),
    row(
        "has_exported_tensors",
        (0, 0),
        X,
        export::has_exported_tensors,
        "whether any pointer is exported",
    ),
    row("has_field", (2, 2), X, structs::has_field, "whether a struct has a field"),
    row("has_input", (1, 1), H, host::has_input, "whether an input was given"),
    row("has_setting", (1, 1), H, host::has_setting, "whether a setting was given"),
    row(
        "import_comptime_value",
        (2, 2),
        X,
        values::import_comptime_value,
        "a value from a JSON file",
    ),
    row("import_module", (1, 2), V, structs::import_module, "an instance of a module"),
    row(
        "increment_dsd_offset",
        (3, 3),
        X,
        dsd::increment_offset,
        "a descriptor with its base moved",
    ),
    row("initialize_queue", (1, 2), C, queue::initialize, "binds a queue to a color"),
    row("input", (2, 2), H, host::input, "a named input as a slice"),
    row("is_arch", (1, 1), X, values::is_arch, "whether the target is the named one"),
    row("is_comptime", (0, 0), X, values::is_comptime, "whether this is evaluated by the compiler"),
    row("is_same_type", (2, 2), X, values::is_same_type, "whether two types are the same"),
    row("launch", (1, MANY), H, host::launch, "runs an exported function on all PEs"),
    row("launch_export", (2, 2), R, export::launch_export, "calls the exported function of an id"),
    row("load_to_dsr", (2, 3), CR, dsd::load_to_dsr, "loads a descriptor into a register"),
    row("load_to_dsr_xdsr", (3, 4), CR, dsd::load_to_dsr_xdsr, "loads a `circbuf_dsd`"),
    row("load_to_dsr_xdsr_sr", (4, 5), CR, dsd::load_to_dsr_xdsr_sr, "loads a `mem4d_dsd`"),
    row("log", (1, 1), H, host::log, "natural logarithm"),
    row("log10", (1, 1), H, host::log10, "decimal logarithm"),
    row("machine_flag", (2, 2), CR, wse3::machine_flag, "changes the core's state, for libraries"),
    row("machine_queues", (1, 1), R, wse3::machine_queues, "states of queues, for libraries"),
    row("map", (2, MANY), R, map::map, "calls a function per element"),
    row("output", (2, 2), H, host::output, "hands a named output to the caller"),
    row("pe_coord_x", (0, 0), X, values::pe_coord_x, "the PE's column in the rectangle"),
    row("pe_coord_y", (0, 0), X, values::pe_coord_y, "the PE's row in the rectangle"),
    row("print", (1, 2), H, host::print, "prints a line"),
    row("ptrcast", (2, 2), X, values::ptrcast, "a pointer to another type"),
    row(
        "queue_flush",
        (1, 1),
        R,
        wse3::queue_flush,
        "activates the teardown task when a queue is empty (wse3)",
    ),
    row("random16", (0, 0), R, values::random16, "the next pseudo-random word"),
    row("range", (2, 4), X, values::range, "a range of integers"),
    row("range_start", (1, 1), X, values::range_start, "first value of a range"),
    row("range_step", (1, 1), X, values::range_step, "step of a range"),
    row("range_stop", (1, 1), X, values::range_stop, "end of a range"),
    row("rank", (1, 1), X, values::rank, "number of dimensions of an array type"),
    row("rect", (4, 4), H, host::rect, "a rectangle: x, y, width, height"),
    row("rpc", (1, 1), C, export::rpc, "asks for the server of host calls, which is there anyway"),
    row("set_active_prng", (1, 1), R, values::set_active_prng, "chooses a random generator"),
    row("set_color_config", (4, 4), L, color::set_color_config, "configures a color on a PE"),
    row("set_config", (2, 3), CR, config::set, "writes a configuration register"),
    row(
        "set_config_unchecked",
        (2, 3),
        CR,
        config::set_unchecked,
        "writes a configuration register, any of them",
    ),
    row(
        "set_control_task_table",
        (0, 1),
        C,
        wse3::set_control_task_table,
        "gives control tasks a table of their own (wse3)",
    ),
    row("set_dsd_base_addr", (2, 2), X, dsd::set_base, "a descriptor with another base"),
    row("set_dsd_length", (2, 2), X, dsd::set_length, "a descriptor with another length"),
    row("set_dsd_stride", (2, 2), X, dsd::set_stride, "a descriptor with another stride"),
    row("set_dsr_base_addr", (2, 2), R, dsd::set_dsr_base, "changes a register's base"),
    row("set_dsr_length", (2, 2), R, dsd::set_dsr_length, "changes a register's length"),
    row(
        "set_empty_queue_handler",
        (2, 2),
        C,
        wse3::set_empty_queue_handler,
        "a function that is called when a flushed queue is empty (wse3)",
    ),
    row(
        "set_fifo_read_length",
        (2, 2),
        R,
        dsd::set_fifo_read_length,
        "length of a FIFO's pop side",
    ),
    row(
        "set_fifo_write_length",
        (2, 2),
        R,
        dsd::set_fifo_write_length,
        "length of a FIFO's push side",
    ),
    row("set_host_link", (3, 3), C, color::set_host_link, "joins a link of this PE to the host"),
    row(
        "set_local_color_config",
        (2, 2),
        C,
        color::set_local_color_config,
        "configures a color on this program's PEs",
    ),
    row("set_rectangle", (2, 2), L, layout::set_rectangle, "the size of the program"),
    row(
        "set_symbol_name",
        (2, 2),
        C,
        export::set_symbol_name,
        "makes a variable readable from outside under a name",
    ),
    row(
        "set_teardown_handler",
        (2, 2),
        C,
        teardown::set_handler,
        "a function for a color in teardown",
    ),
    row("set_tile_code", (2, 4), L, layout::set_tile_code, "the code of a PE"),
    row("setting", (3, 3), H, host::setting, "a named setting, or a default"),
    row("sin", (1, 1), H, host::sin, "sine"),
    row("slice", (3, 3), H, host::slice, "part of a slice"),
    row("sqrt", (1, 1), X, values::sqrt, "IEEE square root"),
    row("strcat", (0, MANY), X, values::strcat, "strings joined"),
    row("stream_in", (3, 3), H, host::stream_in, "queues wavelets for a color"),
    row("stream_out", (3, 3), H, host::stream_out, "queues the reception of wavelets"),
    row(
        "stream_out_rows",
        (5, 5),
        H,
        host::stream_out_rows,
        "receives rows that end by a control wavelet",
    ),
    row("strlen", (1, 1), X, values::strlen, "length of a string in bytes"),
    row("type_of", (1, 1), X, values::type_of, "the type of an expression"),
    row("unblock", (1, 1), CR, task::unblock, "lets a task or channel go on"),
    row("wait", (0, 0), H, host::wait, "waits for all queued transfers"),
    row("wavelets", (0, 0), H, host::wavelets, "wavelets delivered so far"),
    row("zeros", (1, 1), X, values::zeros, "an array of zeros"),
];

/// What people write who come from elsewhere, and what to write instead.
pub(crate) const HABITS: &[(&str, &str)] = &[
    ("intCast", "`@as(T, value)`"),
    ("floatCast", "`@as(T, value)`"),
    ("intToFloat", "`@as(T, value)`"),
    ("floatToInt", "`@as(T, value)`"),
    ("floatFromInt", "`@as(T, value)`"),
    ("intFromFloat", "`@as(T, value)`"),
    ("bitCast", "`@bitcast(T, value)`"),
    ("ptrCast", "`@ptrcast(T, pointer)`"),
    ("import", "`@import_module(\"path\")`"),
    ("TypeOf", "`@type_of(expression)`"),
    ("typeOf", "`@type_of(expression)`"),
    ("memset", "a vector operation such as `@fmovs(dsd, value)`"),
    ("memcpy", "a vector operation such as `@fmovs(dest, source)`"),
    ("min", "`math.min` of `<math>`"),
    ("max", "`math.max` of `<math>`"),
    ("abs", "`math.abs` of `<math>`"),
    ("compileError", "`@comptime_assert(false, \"message\")`"),
    ("add32", "a loop: vector operations add integers of 16 bits, `@add16`"),
    ("sub32", "a loop: vector operations subtract integers of 16 bits, `@sub16`"),
    ("add64", "a loop: vector operations have 16 and 32 bits"),
    ("sub64", "a loop: vector operations have 16 and 32 bits"),
    ("mov64", "`@mov32` over twice as many elements"),
    ("faddd", "`@fadds`: there are no floats of 64 bits"),
    ("fmuld", "`@fmuls`: there are no floats of 64 bits"),
    ("fmacd", "`@fmacs`: there are no floats of 64 bits"),
    ("sizeOf", "`@element_count(T)` times the bytes of an element"),
    ("enumToInt", "`@as(T, value)`, or `@get_int(value)`"),
    ("intToEnum", "`@as(E, number)`"),
    ("intFromEnum", "`@as(T, value)`, or `@get_int(value)`"),
    ("enumFromInt", "`@as(E, number)`"),
    ("intToPtr", "`@bitcast(*T, address)`"),
    ("ptrToInt", "`@bitcast(u16, pointer)`"),
    ("truncate", "`@as(T, value)`"),
    ("boolToInt", "`@as(T, value)`"),
    ("hasField", "`@has_field(T, \"name\")`"),
    ("fabs", "`math.abs` of `<math>`"),
    ("exp2", "the functions of `<math>`"),
    ("pow", "`math.pow` of `<math>`"),
    ("floor", "`math.floor` of `<math>`"),
    ("get_task_id", "`@get_local_task_id(n)`, `@get_data_task_id(…)` or `@get_control_task_id(n)`"),
    ("send", "a vector operation into a `fabout_dsd`, such as `@mov32(out, value)`"),
    ("receive", "a vector operation from a `fabin_dsd`, such as `@mov32(memory, in)`"),
    ("get_dsd_length", "the extent that the descriptor was made with"),
    ("compileLog", "`@comptime_print(value)`"),
];

/// What to write where a builtin cannot stand.
pub(crate) const ELSEWHERE: &[(&str, &str)] = &[
    ("bind_control_task", TOP_LEVEL),
    ("bind_data_task", TOP_LEVEL),
    ("bind_local_task", TOP_LEVEL),
    ("export_name", "the layout block names what the host may use: write it there"),
    ("export_symbol", TOP_LEVEL),
    ("initialize_queue", TOP_LEVEL),
    ("print", "a PE prints with `<simprint>`: `const log = @import_module(\"<simprint>\");`"),
    ("set_color_config", "a PE routes its own colors: `@set_local_color_config(color, …)`"),
    ("set_local_color_config", "the layout names a PE: `@set_color_config(x, y, color, …)`"),
    ("setting", "take it as a param: `param name: i16;`"),
];

/// The same for code of a PE, where it is another thing.
pub(crate) const IN_CODE: &[(&str, &str)] =
    &[("set_color_config", WHILE_RUNNING), ("set_local_color_config", WHILE_RUNNING)];

const WHILE_RUNNING: &str = "a running program changes routes with `<tile_config>`; otherwise configure the color in a `comptime { … }` block";

const TOP_LEVEL: &str = "write it in a `comptime { … }` block outside of functions";

/// The table as text: name, state, places, meaning.
pub(crate) fn manual() -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for row in ROWS {
        let _ = writeln!(out, "@{:<24} {}; in {}; supported", row.name, row.doc, row.place.names());
    }
    for op in dflow_ir::dsd::op::DsdOp::all() {
        let row = op.row();
        let state = match row.state {
            dflow_ir::dsd::op::RowState::Full => "supported".to_owned(),
            dflow_ir::dsd::op::RowState::Assumed(what) => format!("supported, assumed: {what}"),
            dflow_ir::dsd::op::RowState::NotYet(reason) => format!("not supported yet: {reason}"),
        };
        let _ = writeln!(out, "@{:<24} {}; in code of a PE; {state}", row.name, row.doc);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::ROWS;

    #[test]
    fn rows_are_sorted_and_unique() {
        for pair in ROWS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
        }
    }
}
