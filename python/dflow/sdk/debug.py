"""Looking into the memory of a machine that has stopped."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dflow import _native
from dflow.errors import HostError
from dflow.layout import integer
from dflow.sdk.platform import refuse_address
from dflow.symbols import unknown_variable, view

# Records of <debug>: a word that says what follows, and its value (spec/libraries.md).
TRACE = "debug:"
BOOL, STRING, TIME = 1, 10, 11
SCALARS = {
    number: np.dtype(name)
    for number, name in zip(range(2, 10), ("u1", "i1", "<u2", "<i2", "<f2", "<u4", "<i4", "<f4"))
}
SIZES = {
    BOOL: 1,
    STRING: 2,
    TIME: 3,
    **{number: (dtype.itemsize + 1) // 2 for number, dtype in SCALARS.items()},
}


class debug_util:
    """The memory that a run has left in the folder of its program.

    Places are absolute on the fabric: the program's offset and the PE's place in the program.

    Args:
        bindir: the folder that was given to ``SdkRuntime``, or the file of ``dump_core``.
        cmaddr: must be left out.
    """

    def __init__(self, bindir: str | os.PathLike[str], cmaddr: str | None = None) -> None:
        refuse_address(cmaddr)
        self._state = _native.read_state(Path(bindir))

    def get_symbol(self, col: int, row: int, symbol: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Give a variable of the PE at a place, as elements of a type."""
        col, row = self._place(col, row)
        data = self._state.read(col, row, symbol)
        if data is None:
            known = self._state.names(col, row)
            if known is None:
                raise HostError(self._outside(col, row))
            raise unknown_variable(f"PE ({col}, {row})", symbol, known)
        return view(data, dtype, symbol)

    def get_symbol_rect(
        self,
        rectangle: tuple[tuple[int, int], tuple[int, int]],
        symbol: str,
        dtype: npt.DTypeLike,
    ) -> npt.NDArray[Any]:
        """Give a variable of all PEs of ((column, row), (columns, rows)).

        The first index of the result is the column, the second the row.
        """
        (col, row), (width, height) = rectangle
        columns = [
            [self.get_symbol(x, y, symbol, dtype) for y in range(row, row + height)]
            for x in range(col, col + width)
        ]
        return np.array(columns)

    def read_trace(self, px: int, py: int, key: str) -> list[Any]:
        """Give the values that a PE has recorded with ``<debug>``, in order.

        ``key`` is the one that the library was imported with. Values come as NumPy scalars of the
        recorded type, bools, strings, and time stamps as plain numbers.
        """
        px, py = self._place(px, py)
        names = self._state.names(px, py)
        if names is None:
            raise HostError(self._outside(px, py))
        data = self._state.read(px, py, TRACE + key)
        if data is None:
            keys = [name[len(TRACE) :] for name in names if name.startswith(TRACE)]
            there = ", ".join(f"`{key}`" for key in keys) or "no key"
            raise HostError(f"PE ({px}, {py}) has no trace of key `{key}`; there is {there}")
        words = np.frombuffer(data, "<u2")
        used, lost = int(words[0]), int(words[1])
        if lost:
            print(
                f"dflow: the trace `{key}` of PE ({px}, {py}) had no room for {lost} records: "
                "give <debug> a larger buffer_size",
                file=sys.stderr,
            )
        return list(self._records(px, py, words[2 : 2 + used]))

    def _records(self, px: int, py: int, words: npt.NDArray[Any]) -> Iterator[Any]:
        at = 0
        while at < len(words):
            kind = int(words[at])
            size = SIZES.get(kind, 0)
            value = words[at + 1 : at + 1 + size]
            if size == 0 or len(value) < size:
                raise HostError(f"the trace of PE ({px}, {py}) is damaged at word {at}")
            yield self._value(px, py, kind, value)
            at += 1 + size

    def _value(self, px: int, py: int, kind: int, words: npt.NDArray[Any]) -> Any:
        if kind == BOOL:
            return bool(words[0])
        if kind == TIME:
            return sum(int(word) << 16 * place for place, word in enumerate(words))
        if kind == STRING:
            text = self._state.memory(px, py, int(words[0]), int(words[1])) or b""
            return text.decode("utf-8", "replace")
        dtype = SCALARS[kind]
        return np.frombuffer(words.tobytes()[: dtype.itemsize], dtype)[0]

    def _place(self, col: int, row: int) -> tuple[int, int]:
        """Give a place that may be one of the fabric."""
        column, line = integer(col, "a column"), integer(row, "a row")
        if not (0 <= column < 1 << 32 and 0 <= line < 1 << 32):
            raise HostError(self._outside(column, line))
        return column, line

    def _outside(self, col: int, row: int) -> str:
        (x, y), (width, height) = self._state.offsets, self._state.size
        return (
            f"({col}, {row}) is no PE of the program, which has columns {x} to {x + width - 1} "
            f"and rows {y} to {y + height - 1} of the fabric"
        )
