"""Element types of the machine as NumPy types, and scalars as words."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from dflow.errors import HostError

MOST_COLOR = 23

# Kinds of NumPy types whose elements are numbers: truth values, integers, floats, complex numbers.
NUMBERS = "biufc"

DTYPES: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "i16": np.dtype(np.int16),
    "u16": np.dtype(np.uint16),
    "f16": np.dtype(np.float16),
    "i32": np.dtype(np.int32),
    "u32": np.dtype(np.uint32),
    "f32": np.dtype(np.float32),
    "i64": np.dtype(np.int64),
    "u64": np.dtype(np.uint64),
    "f64": np.dtype(np.float64),
}


def dtype_of(name: str) -> np.dtype[Any]:
    """Give the NumPy type of an element type as written in sources.

    Raises:
        HostError: NumPy has no such type.
    """
    if name not in DTYPES:
        raise HostError(f"NumPy has no type for values of type `{name}`")
    return DTYPES[name]


def kind_of(dtype: np.dtype[Any]) -> str:
    """Give the word for a NumPy type, as in ``float`` or ``unsigned integer``."""
    words = {"f": "float", "i": "integer", "u": "unsigned integer", "b": "bool"}
    return words.get(dtype.kind, str(dtype))


def whole(value: Any, what: str, low: int = 0, high: int = (1 << 32) - 1) -> int:
    """Give an integer within limits.

    Raises:
        HostError: it is none; ``what`` names it.
    """
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise HostError(f"{what} is a whole number, found {value!r}") from None
    if not low <= number <= high:
        raise HostError(f"{what} is {low} to {high}, found {number}")
    return number


def color_number(value: Any) -> int:
    """Give the number of a color."""
    number = whole(value, "a color", -(1 << 32))
    if not 0 <= number <= MOST_COLOR:
        raise HostError(f"{number} is no color: colors are 0 to {MOST_COLOR}")
    return number


def number_type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Give what somebody means by a ``dtype``, if numbers have it."""
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        wanted = np.dtype(object)
    if wanted.kind not in NUMBERS:
        raise HostError(f"a dtype of numbers is needed, found {dtype!r}")
    return wanted


def elements_of(data: bytes, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Give what the machine holds as elements of a type, in whichever byte order that has."""
    return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype)


def as_array(array: npt.ArrayLike) -> npt.NDArray[Any]:
    """Give what somebody means by an array; lists in it must be of one length."""
    try:
        return np.asarray(array)
    except (ValueError, TypeError, OverflowError) as fault:
        raise HostError(f"an array, or numbers that make one, is needed: {fault}") from None


def scalar_bits(value: Any, name: str, what: str) -> int:
    """Give the raw bits of an argument of element type ``name``.

    NumPy scalars must be of exactly that type; plain numbers must fit it. A ``bool`` is a bool, or
    a whole number that is 0 or 1, of whatever type.

    Raises:
        HostError: the value is of another kind, or out of range; ``what`` names the argument.
    """
    wanted = dtype_of(name)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if name == "bool":
        return _truth(value, what)
    if isinstance(value, np.generic) and not _is_plain(value, wanted):
        return _typed_bits(value, wanted, name, what)
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool) or not isinstance(plain, (int, float)):
        raise _wrong(value, name, wanted, what)
    if wanted.kind == "f":
        return _float_bits(float(plain), wanted, name, what)
    if isinstance(plain, float):
        raise _wrong(value, name, wanted, what)
    limits = np.iinfo(wanted)
    if not limits.min <= plain <= limits.max:
        raise HostError(
            f"{what} is of type {name}: {plain} is outside {limits.min} to {limits.max}"
        )
    return int(plain) & ((1 << 8 * wanted.itemsize) - 1)


def _truth(value: Any, what: str) -> int:
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, (int, np.integer)) and value in (0, 1):
        return int(value)
    raise HostError(
        f"{what} is of type bool: expected True or False (or 1 or 0), found {value!r}; "
        "`x != 0` makes a bool of a number"
    )


def _is_plain(value: np.generic, wanted: np.dtype[Any]) -> bool:
    """Whether a NumPy scalar stands for a plain number: Python's own float is a float64."""
    return isinstance(value, np.float64) and wanted.kind == "f"


def _typed_bits(value: np.generic, wanted: np.dtype[Any], name: str, what: str) -> int:
    if value.dtype != wanted:
        raise _wrong(value, name, wanted, what)
    return int.from_bytes(value.astype(wanted.newbyteorder("<")).tobytes(), "little")


def _float_bits(value: float, wanted: np.dtype[Any], name: str, what: str) -> int:
    with np.errstate(over="ignore"):
        rounded = np.array(value).astype(wanted.newbyteorder("<"))
    if math.isfinite(value) and not np.isfinite(rounded):
        raise HostError(f"{what} is of type {name}: {value} is too large for it")
    return int.from_bytes(rounded.tobytes(), "little")


def _wrong(value: Any, name: str, wanted: np.dtype[Any], what: str) -> HostError:
    found = f"numpy.{value.dtype}" if isinstance(value, np.generic) else type(value).__name__
    plain = "number" if wanted.kind == "f" else "int"
    return HostError(
        f"{what} is of type {name}: expected numpy.{wanted} or a plain {plain}, found {found}"
    )
