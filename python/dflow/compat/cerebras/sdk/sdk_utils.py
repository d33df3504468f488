"""Vendor-shaped names of ``dflow.sdk.utils``."""

from dflow.sdk.utils import calculate_cycles, input_array_to_u32, memcpy_view

__all__ = ["calculate_cycles", "input_array_to_u32", "memcpy_view"]
