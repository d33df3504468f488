"""Vendor-shaped names of ``dflow.sdk.legacy``."""

from dflow.sdk.legacy import (
    convert_input_tensor,
    debug_util,
    format_output_tensor,
    input_array_to_u32,
    output_array_from_u32,
    prepare_output_tensor,
)

__all__ = [
    "convert_input_tensor",
    "debug_util",
    "format_output_tensor",
    "input_array_to_u32",
    "output_array_from_u32",
    "prepare_output_tensor",
]
