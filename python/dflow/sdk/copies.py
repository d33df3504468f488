"""Copies between host arrays and the PEs, and streams over colors."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from dflow import _native
from dflow.errors import HostError
from dflow.sdk import tensor
from dflow.sdk.arguments import Transfer, color_number, symbol_number
from dflow.sdk.commands import Commands, Task
from dflow.symbols import Symbol


class Copies(Commands):
    """The ``memcpy_`` calls of ``SdkRuntime``."""

    def memcpy_h2d(self, dest: int, src: npt.NDArray[Any], *args: Any, **kw: Any) -> Task:
        """Copy or stream an array to the PEs of a rectangle.

        ``memcpy_h2d(dest, src, px, py, w, h, elem_per_pe, streaming=, data_type=, order=,
        nonblock=)``
        """
        self._expect_running("memcpy_h2d")
        request = Transfer.parse("memcpy_h2d", args, kw)
        return self._in(request, dest, src, request.shape, "each")

    def memcpy_h2d_rowbcast(self, dest: int, src: npt.NDArray[Any], *args: Any, **kw: Any) -> Task:
        """Copy one block per row to all PEs of that row: an array of (h, elements)."""
        self._expect_running("memcpy_h2d_rowbcast")
        request = Transfer.parse("memcpy_h2d_rowbcast", args, kw)
        height, _, count = request.shape
        return self._in(request, dest, src, (height, count), "rows")

    def memcpy_h2d_colbcast(self, dest: int, src: npt.NDArray[Any], *args: Any, **kw: Any) -> Task:
        """Copy one block per column to all PEs of that column: an array of (w, elements)."""
        self._expect_running("memcpy_h2d_colbcast")
        request = Transfer.parse("memcpy_h2d_colbcast", args, kw)
        _, width, count = request.shape
        return self._in(request, dest, src, (width, count), "columns")

    def memcpy_h2d_stride(self, dest: int, src: npt.NDArray[Any], *args: Any, **kw: Any) -> Task:
        """Copy to every n-th PE of a rectangle.

        ``row_stride`` and ``col_stride`` follow ``elem_per_pe``: the steps from one PE of a row to
        the next, and from one row to the next.
        """
        self._expect_running("memcpy_h2d_stride")
        request = Transfer.parse("memcpy_h2d_stride", args, kw, strided=True)
        return self._in(request, dest, src, request.strided_shape, "each")

    def memcpy_d2h(self, dest: npt.NDArray[Any], src: int, *args: Any, **kw: Any) -> Task:
        """Copy or stream from the PEs of a rectangle into an array, in place.

        ``memcpy_d2h(dest, src, px, py, w, h, elem_per_pe, streaming=, data_type=, order=,
        nonblock=)``
        """
        self._expect_running("memcpy_d2h")
        request = Transfer.parse("memcpy_d2h", args, kw)
        region = self._region(request)
        array = tensor.flat_view(request.check(dest, request.shape, "dest"), "dest of memcpy_d2h")

        def take(data: bytes) -> None:
            # Two elements of 16 bits are an item of 32, the first in its low half.
            tensor.to_host(data, array, request.shape, max(bits, request.bits), request.order)

        if request.streaming:
            bits, color = 32, color_number(src, "src")
            number = self._native.stream_out(color, region, bits, request.count)
            return self._request(f"stream from color {color}", number, request.nonblock, take)
        symbol = self._pointer(request, src, "src")
        bits = 8 * symbol.dtype.itemsize
        count = request.count * request.bits // bits
        excess = self._native.excess(symbol.id, region, count)
        if excess is not None:
            self._say("WARNING", f"{excess}: the rest is what lies behind it")
        number = self._native.copy_out(symbol.id, region, count)
        what = f"copy of `{symbol.name}` to the host"
        return self._request(what, number, request.nonblock, take)

    def _in(self, request: Transfer, dest: int, src: Any, shape: tensor.Shape, spread: str) -> Task:
        """Give words to PEs. They are copied now: the caller may reuse the array at once."""
        region = self._region(request)
        words = request.words(src, shape)
        if request.streaming:
            color = color_number(dest, "dest")
            data = tensor.elements(words, 32)
            number = self._native.stream_in(color, region, 32, spread, data)
            return self._request(f"stream to color {color}", number, request.nonblock)
        symbol = self._pointer(request, dest, "dest")
        data = tensor.elements(words, request.bits)
        number = self._native.copy_in(symbol.id, region, spread, data)
        return self._request(f"copy to `{symbol.name}`", number, request.nonblock)

    def _region(self, request: Transfer) -> _native.Area:
        columns, rows = self._program.size
        x, y, width, height = request.region
        if x < 0 or y < 0 or width < 1 or height < 1 or x + width > columns or y + height > rows:
            raise HostError(
                f"{request.what}: the {width} x {height} PEs at ({x}, {y}) must lie inside the "
                f"program's {columns} x {rows} PEs"
            )
        return (*request.region, request.row_stride, request.col_stride)

    def _pointer(self, request: Transfer, number: Any, what: str) -> Symbol:
        index = symbol_number(number, f"{what} of {request.what}")
        symbols = list(self._program.symbols.values())
        if not 0 <= index < len(symbols):
            raise HostError(
                f"{request.what}: {index} is no id of an exported name: get_id(name) gives it "
                "(a color needs streaming=True)"
            )
        symbol = symbols[index]
        if symbol.kind != "pointer":
            raise HostError(f"{request.what}: `{symbol.name}` is a {symbol.kind}, not a pointer")
        request.check_element(symbol)
        return symbol
