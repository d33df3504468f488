"""Host arrays as the copies want them: 32-bit items, in one of two orders.

Inside this package a tensor has the shape (rows, columns, elements) and is in C order, which is
what the mesh's side calls row by row.
"""

from __future__ import annotations

import enum
import inspect
import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from dflow.errors import HostError


class MemcpyDataType(enum.Enum):
    """Size of an element on the PEs."""

    MEMCPY_16BIT = 0
    MEMCPY_32BIT = 1


class MemcpyOrder(enum.Enum):
    """Order of the elements in the host's array."""

    ROW_MAJOR = 0
    COL_MAJOR = 1


ITEMS = (np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.uint32))
WORD = np.dtype("<u4")
HALF = np.dtype("<u2")

Shape = tuple[int, ...]


def check_array(array: Any, shape: Shape, what: str) -> npt.NDArray[Any]:
    """Give the part of the host's array that holds the items of ``shape``: its first ones.

    Scripts pass what is left of a longer array; there is a warning, since a wrong count looks
    the same.

    Raises:
        HostError: it holds fewer; ``what`` names the call and the argument.
    """
    if not isinstance(array, np.ndarray):
        raise HostError(
            f"{what} must be a NumPy array, found {type(array).__name__}: "
            "np.array(values, np.float32) makes one"
        )
    if array.dtype not in ITEMS:
        raise HostError(
            f"{what} must hold float32, int32 or uint32 items, found {array.dtype}"
            f"{_hint(array.dtype)}"
        )
    count = math.prod(shape)
    if array.size == count:
        return array
    sizes = " x ".join(str(size) for size in shape)
    if array.size < count:
        raise HostError(f"{what} must hold {sizes} = {count} items, found {array.size}")
    if array.ndim != 1:
        array = array.reshape(-1) if array.flags.c_contiguous else flat_view(array, what)
    message = f"{what} holds {array.size} items: only the first {sizes} = {count} are copied"
    warnings.warn(message, stacklevel=caller_depth())
    return array[:count]


def caller_depth() -> int:
    """Give the ``stacklevel`` for which a warning names the script's own line."""
    frame, depth = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "dflow":
        frame, depth = frame.f_back, depth + 1
    return max(depth, 1)


def _hint(dtype: np.dtype[Any]) -> str:
    if dtype.itemsize == 2:
        return ": an element of 16 bits takes the low half of an item (input_array_to_u32)"
    if dtype.itemsize == 8:
        return ": convert it, for instance with a.astype(np.float32)"
    return ""


def flat_view(array: npt.NDArray[Any], what: str) -> npt.NDArray[Any]:
    """Give an array that results are written to as one of one dimension on the same memory.

    Raises:
        HostError: there is none.
    """
    if not array.flags.writeable:
        raise HostError(f"{what} is read-only: np.zeros(count, np.float32) makes one to write to")
    if array.ndim > 1 and not array.flags.c_contiguous:
        raise HostError(f"{what} is not contiguous: results could not be written in place")
    return array if array.ndim == 1 else array.reshape(-1)


def to_mesh(array: npt.NDArray[Any], shape: Shape, order: MemcpyOrder) -> npt.NDArray[np.uint32]:
    """Give the host's items as a tensor of words."""
    words = np.ascontiguousarray(array).reshape(-1).view(WORD)
    return words.reshape(shape, order="F" if order is MemcpyOrder.COL_MAJOR else "C")


def elements(words: npt.NDArray[Any], bits: int) -> bytes:
    """Give a tensor of words as elements of 16 (the low halves) or 32 bits."""
    if bits == 16:
        return words.astype(HALF, order="C").tobytes()
    return words.astype(WORD, order="C", copy=False).tobytes()


def to_host(
    data: bytes, array: npt.NDArray[Any], shape: Shape, bits: int, order: MemcpyOrder
) -> None:
    """Write elements of 16 or 32 bits to the host's array, upper halves zero."""
    found = np.frombuffer(data, HALF if bits == 16 else WORD).reshape(shape)
    words = found.astype(WORD).ravel(order="F" if order is MemcpyOrder.COL_MAJOR else "C")
    array[...] = words.view(array.dtype)
