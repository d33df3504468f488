//! Values: conversions, bits, arrays, strings, ranges, and questions about types.
//!
//! Invariant: what is known stays known (and keeps its provenance where a node can express it);
//! what is not becomes code at the place of the call.

mod arrays;
mod bits;
pub(crate) mod checks;
mod json;
mod ranges;
pub(crate) mod show;
mod text;
mod types;

pub(crate) use arrays::{constants, dimensions, element_count, element_type, rank, zeros};
pub(crate) use bits::{
    as_, bitcast, pe_coord_x, pe_coord_y, ptrcast, random16, set_active_prng, sqrt,
};
pub(crate) use checks::{assert, comptime_assert, comptime_print};
pub(crate) use json::import_comptime_value;
pub(crate) use ranges::{range, range_start, range_step, range_stop};
pub(crate) use text::{get_array, get_string_from_byte, strcat, strlen};
pub(crate) use types::{fp16, is_arch, is_comptime, is_same_type, type_of};
