"""Arrays of 16-bit elements, and timestamps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dflow.errors import HostError


def memcpy_view(arr: npt.NDArray[Any], datatype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Give the low 8, 16 or 32 bits of each 32-bit item as another type: a view, not a copy."""
    if arr.dtype.itemsize != 4:
        raise HostError(f"memcpy_view wants an array of 32-bit items, found {arr.dtype}")
    wanted = np.dtype(datatype)
    if wanted.itemsize not in (1, 2, 4):
        raise HostError(f"memcpy_view shows items of 8, 16 or 32 bits, not {wanted}")
    step = 4 // wanted.itemsize
    return arr.view(wanted)[..., ::step] if arr.ndim else arr.view(wanted)


def input_array_to_u32(
    np_arr: npt.NDArray[Any],
    sentinel: int | None = None,
    fast_dim_sz: int = 1,
) -> npt.NDArray[np.uint32]:
    """Give 16- or 32-bit elements as 32-bit items, in one dimension.

    A 16-bit element takes the low half. With a ``sentinel`` the upper half is the element's index
    in the innermost dimension, which has ``fast_dim_sz`` elements; without one it is zero.
    """
    flat = np.ascontiguousarray(np_arr).ravel()
    if flat.dtype.itemsize == 4:
        return flat.view(np.uint32)
    if flat.dtype.itemsize != 2:
        raise HostError(f"input_array_to_u32 wants 16- or 32-bit elements, found {flat.dtype}")
    items = flat.view(np.uint16).astype(np.uint32)
    if sentinel is None:
        return items
    if fast_dim_sz < 1:
        raise HostError(f"fast_dim_sz is the size of a dimension, found {fast_dim_sz}")
    index = np.arange(flat.size, dtype=np.uint32) % np.uint32(fast_dim_sz)
    return items | (index & np.uint32(0xFFFF)) << np.uint32(16)


def calculate_cycles(timestamp_buf: npt.NDArray[Any]) -> np.int64:
    """Give the cycles between two timestamps: three items, six 16-bit words, start then end."""
    words = np.ascontiguousarray(timestamp_buf).ravel()
    if words.size != 3 or words.dtype.itemsize != 4:
        raise HostError(
            f"calculate_cycles wants 3 items of 32 bits, found {words.size} of {words.dtype}"
        )
    halves = words.view("<u2").astype(np.int64)
    start, end = (halves[at] | halves[at + 1] << 16 | halves[at + 2] << 32 for at in (0, 3))
    return np.int64(end - start)
