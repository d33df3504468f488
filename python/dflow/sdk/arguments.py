"""Arguments of the vendor-shaped calls, checked before anything is sent."""

from __future__ import annotations

import operator
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dflow.elements import dtype_of, scalar_bits
from dflow.errors import HostError
from dflow.sdk import tensor
from dflow.sdk.tensor import MemcpyDataType, MemcpyOrder
from dflow.symbols import Symbol

PLACE = ("px", "py", "w", "h", "elem_per_pe")
STRIDES = ("row_stride", "col_stride")
OPTIONS = ("streaming", "data_type", "order", "nonblock")
DEFAULTS = {
    "streaming": False,
    "data_type": MemcpyDataType.MEMCPY_32BIT,
    "order": MemcpyOrder.ROW_MAJOR,
    "nonblock": False,
}
# Positions of the form of SDK 0.6, after the two arrays.
OLD = ("streaming", "px", "py", "w", "h", "elem_per_pe", "", "nonblock")


@dataclass(frozen=True)
class Transfer:
    """What a copy or a stream is told beside its two ends."""

    what: str
    region: tuple[int, int, int, int]
    count: int
    streaming: bool
    bits: int
    order: MemcpyOrder
    nonblock: bool
    row_stride: int = 1
    col_stride: int = 1

    @staticmethod
    def parse(
        what: str, args: tuple[Any, ...], kw: dict[str, Any], strided: bool = False
    ) -> Transfer:
        """Read the arguments after the two ends: by position, by name, or in the form of 0.6.

        Raises:
            HostError: one is missing, unknown or of the wrong kind.
        """
        values = _bind(what, args, kw, strided)
        place = [_integer(values[name], f"{name} of {what}") for name in PLACE]
        strides = [_integer(values[name], f"{name} of {what}") for name in STRIDES if strided]
        if any(stride < 1 for stride in strides):
            raise HostError(f"{what}: strides are 1 or more, found {strides}")
        if not 0 <= place[4] < 1 << 32:
            raise HostError(f"{what}: elem_per_pe is {place[4]}, which is no number of elements")
        if place[2] < 1 or place[3] < 1:
            raise HostError(f"{what}: a rectangle of {place[2]} x {place[3]} PEs is empty")
        data_type = _choice(values["data_type"], MemcpyDataType, f"data_type of {what}")
        order = _choice(values["order"], MemcpyOrder, f"order of {what}")
        return Transfer(
            what,
            (place[0], place[1], place[2], place[3]),
            place[4],
            _flag(values["streaming"], f"streaming of {what}"),
            16 if data_type is MemcpyDataType.MEMCPY_16BIT else 32,
            order,
            _flag(values["nonblock"], f"nonblock of {what}"),
            *strides,
        )

    @property
    def width(self) -> int:
        """Columns of PEs."""
        return self.region[2]

    @property
    def height(self) -> int:
        """Rows of PEs."""
        return self.region[3]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and elements of the tensor."""
        return (self.height, self.width, self.count)

    @property
    def strided_shape(self) -> tuple[int, int, int]:
        """The same, without the PEs that strides leave out."""
        columns = 1 + (self.width - 1) // self.row_stride
        rows = 1 + (self.height - 1) // self.col_stride
        return (rows, columns, self.count)

    def check(self, array: Any, shape: tensor.Shape, name: str) -> npt.NDArray[Any]:
        """Give the host's array if it fits."""
        return tensor.check_array(array, shape, f"{name} of {self.what}")

    def words(self, src: Any, shape: tensor.Shape) -> npt.NDArray[Any]:
        """Give the host's array as a tensor."""
        return tensor.to_mesh(self.check(src, shape, "src"), shape, self.order)

    def check_element(self, symbol: Symbol) -> None:
        """Refuse a data type that is not the size of the symbol's elements, or of two of them."""
        bits = 8 * symbol.dtype.itemsize
        if bits == 16 and self.bits == 32:
            warnings.warn(
                f"{self.what}: `{symbol.name}` points to elements of type {symbol.types[0]}, and "
                "an item of MEMCPY_32BIT is two of them (MEMCPY_16BIT copies one by one)",
                stacklevel=tensor.caller_depth(),
            )
        elif bits != self.bits:
            wanted = f"MEMCPY_{bits}BIT" if bits in (16, 32) else "elements of 16 or 32 bits"
            raise HostError(
                f"{self.what}: `{symbol.name}` points to elements of type {symbol.types[0]}: "
                f"expected {wanted}, found MEMCPY_{self.bits}BIT"
            )


def _bind(what: str, args: tuple[Any, ...], kw: dict[str, Any], strided: bool) -> dict[str, Any]:
    names = (*PLACE, *(STRIDES if strided else ()), *OPTIONS)
    if len(args) == len(OLD) and isinstance(args[0], (bool, np.bool_)):
        names = OLD
    if len(args) > len(names):
        raise HostError(f"{what} takes {len(names) + 2} arguments, found {len(args) + 2}")
    values = {**DEFAULTS, **dict(zip(names, args))}
    for name, value in kw.items():
        if name not in names:
            raise HostError(f"{what} has no argument `{name}`; it has {', '.join(names)}")
        if name in names[: len(args)]:
            raise HostError(f"{what} got `{name}` twice")
        values[name] = value
    missing = [name for name in names if name and name not in values]
    if missing:
        raise HostError(f"{what} needs {', '.join(f'`{name}`' for name in missing)}")
    return values


def _integer(value: Any, what: str) -> int:
    if isinstance(value, (bool, np.bool_)):
        raise HostError(f"{what} must be an integer, found a bool")
    try:
        return operator.index(value)
    except TypeError:
        raise HostError(f"{what} must be an integer, found {type(value).__name__}") from None


def _flag(value: Any, what: str) -> bool:
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise HostError(f"{what} must be True or False, found {value!r}")


def _choice(value: Any, kind: Any, what: str) -> Any:
    if isinstance(value, kind):
        return value
    names = " or ".join(f"{kind.__name__}.{one.name}" for one in kind)
    raise HostError(f"illegal {what}: expected {names}, found {value!r}")


def symbol_number(value: Any, what: str) -> int:
    """Give the number of an exported name."""
    if isinstance(value, str):
        raise HostError(f"{what} must be an id: pass get_id({value!r})")
    return _integer(value, what)


def color_number(value: Any, what: str) -> int:
    """Give the number of a color that streams."""
    number = _integer(value, f"{what} of a stream (a color)")
    if not 0 <= number < 32:
        raise HostError(f"{what}: {number} is no color that streams")
    return number


def positive(value: Any, what: str) -> int:
    """Give a number of words."""
    number = _integer(value, what)
    if number < 0:
        raise HostError(f"{what} is {number}, which is no number of words")
    return number


def wavelets(array: Any, count: Any, what: str) -> bytes:
    """Give an array as 32-bit words, of which there are ``count`` if it is given.

    Raises:
        HostError: it holds another number of words, or needs a count.
    """
    if not isinstance(array, np.ndarray):
        raise HostError(f"{what} wants a NumPy array, found {type(array).__name__}")
    if count is None and array.dtype not in tensor.ITEMS:
        raise HostError(
            f"{what} wants float32, int32 or uint32 items, or n_wavelets, found {array.dtype}"
        )
    found, rest = divmod(array.nbytes, 4)
    wanted = found if count is None else positive(count, f"n_wavelets of {what}")
    if rest or found != wanted:
        raise HostError(
            f"{what}: {array.size} elements of {array.dtype} are {array.nbytes / 4:g} words, "
            f"expected {wanted}"
        )
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def call_words(symbol: Symbol, args: Any) -> list[int]:
    """Give the arguments of an untyped call: a word each that stands for a value of the type."""
    given = list(args) if isinstance(args, (list, tuple, np.ndarray)) else [args]
    words = np.asarray(given, dtype=None if given else np.uint32).ravel()
    if words.dtype.kind not in "iuf" or (words.dtype.kind == "f" and words.dtype.itemsize != 4):
        raise HostError(f"arguments of call are 32-bit words, found {words.dtype}")
    if words.dtype.kind == "f":
        words = words.view(np.uint32)
    if words.size and not -(1 << 31) <= int(words.min()) <= int(words.max()) < 1 << 32:
        raise HostError(f"arguments of call are 32-bit words, found {given}")
    if words.size != len(symbol.types):
        raise HostError(
            f"`{symbol.name}` takes {len(symbol.types)} arguments ({', '.join(symbol.types)}), "
            f"found {words.size}"
        )
    return [
        _word_bits(int(word), name, f"argument {index} of `{symbol.name}`")
        for index, (word, name) in enumerate(zip(words, symbol.types), 1)
    ]


def _word_bits(word: int, name: str, what: str) -> int:
    """Give the raw bits of a word: above those of the type are zeros or, if it has one, its sign.

    Scripts make words of short values both ways, so -3 of an ``i16`` may be 0xfffffffd or 0xfffd.
    """
    if name == "bool":
        return scalar_bits(word, name, what)
    wanted = dtype_of(name)
    bits = 8 * wanted.itemsize
    low, high = 0 if wanted.kind == "u" else -(1 << (bits - 1)), (1 << bits) - 1
    number = word - (1 << 32) if low < 0 and word >= 1 << 31 else word
    if bits < 32 and not low <= number <= high:
        raise HostError(f"{what} is of type {name}: the word {word} is outside {low} to {high}")
    return word & high
