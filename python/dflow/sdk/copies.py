"""Copies between host arrays and the PEs, and streams over colors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dflow import _native
from dflow.errors import HostError
from dflow.machine import Symbol
from dflow.sdk import tensor
from dflow.sdk.arguments import Transfer, color_number, symbol_number
from dflow.sdk.commands import Commands, Task


class Copies(Commands):
    """The ``memcpy_`` calls of ``SdkRuntime``."""

    def memcpy_h2d(self, dest: int, src: npt.NDArray[Any], *args: Any, **kw: Any) -> Task:
        """Copy or stream an array to the PEs of a rectangle.

        ``memcpy_h2d(dest, src, px, py, w, h, elem_per_pe, streaming=, data_type=, order=,
        nonblock=)``
        """
        self._expect_running("memcpy_h2d")
        request = Transfer.parse("memcpy_h2d", args, kw)
        shape = request.shape
        words = request.words(src, shape)
        return self._in(request, dest, words)

    def memcpy_h2d_rowbcast(self, dest: int, src: npt.NDArray[Any], *args: Any, **kw: Any) -> Task:
        """Copy one block per row to all PEs of that row: an array of (h, elements)."""
        self._expect_running("memcpy_h2d_rowbcast")
        request = Transfer.parse("memcpy_h2d_rowbcast", args, kw)
        height, _, count = request.shape
        words = request.words(src, (height, count))
        return self._in(request, dest, np.broadcast_to(words[:, None, :], request.shape))

    def memcpy_h2d_colbcast(self, dest: int, src: npt.NDArray[Any], *args: Any, **kw: Any) -> Task:
        """Copy one block per column to all PEs of that column: an array of (w, elements)."""
        self._expect_running("memcpy_h2d_colbcast")
        request = Transfer.parse("memcpy_h2d_colbcast", args, kw)
        _, width, count = request.shape
        words = request.words(src, (width, count))
        return self._in(request, dest, np.broadcast_to(words[None, :, :], request.shape))

    def memcpy_h2d_stride(self, dest: int, src: npt.NDArray[Any], *args: Any, **kw: Any) -> Task:
        """Copy to every n-th PE of a rectangle.

        ``row_stride`` and ``col_stride`` follow ``elem_per_pe``: the steps from one PE of a row to
        the next, and from one row to the next.
        """
        self._expect_running("memcpy_h2d_stride")
        request = Transfer.parse("memcpy_h2d_stride", args, kw, strided=True)
        words = request.words(src, request.strided_shape)
        return self._in(request, dest, words)

    def memcpy_d2h(self, dest: npt.NDArray[Any], src: int, *args: Any, **kw: Any) -> Task:
        """Copy or stream from the PEs of a rectangle into an array, in place.

        ``memcpy_d2h(dest, src, px, py, w, h, elem_per_pe, streaming=, data_type=, order=,
        nonblock=)``
        """
        self._expect_running("memcpy_d2h")
        request = Transfer.parse("memcpy_d2h", args, kw)
        array = tensor.flat_view(request.check(dest, request.shape, "dest"), "dest of memcpy_d2h")
        region = self._region(request)
        if request.streaming:
            return self._stream_out(request, region, array, color_number(src, "src"))
        symbol = self._pointer(request, src, "src")
        bits = 8 * symbol.dtype.itemsize

        def copy() -> None:
            data = self._native.copy_out(symbol.id, region, request.count)
            tensor.to_host(data, array, request.shape, bits, request.order)

        return self._command(f"copy of `{symbol.name}` to the host", copy, request.nonblock)

    def _in(self, request: Transfer, dest: int, words: npt.NDArray[Any]) -> Task:
        region = self._region(request)
        if request.streaming:
            return self._stream_in(request, region, words, color_number(dest, "dest"))
        symbol = self._pointer(request, dest, "dest")
        if not symbol.mutable:
            raise HostError(f"`{symbol.name}` is exported as constant: the host cannot write it")
        # Copied now: the caller may reuse the array at once.
        data = tensor.elements(words, 8 * symbol.dtype.itemsize)
        parts = request.parts(region, data)

        def copy() -> None:
            for part, block in parts:
                self._native.copy_in(symbol.id, part, block)
            self._unfenced = True

        return self._command(f"copy to `{symbol.name}`", copy, request.nonblock)

    def _stream_in(
        self, request: Transfer, region: _native.Region, words: npt.NDArray[Any], color: int
    ) -> Task:
        if request.is_strided:
            raise HostError("a stream has no strides: set streaming=False")
        data = tensor.elements(words, 32)

        def start() -> None:
            self._fence()
            self._native.stream_in(color, region, 32, data)

        return self._command(f"stream to color {color}", start, request.nonblock)

    def _stream_out(
        self, request: Transfer, region: _native.Region, array: npt.NDArray[Any], color: int
    ) -> Task:
        numbers: list[int] = []

        def start() -> None:
            self._fence()
            count = request.count * request.width * request.height
            numbers.append(self._native.stream_out(color, region, 32, count))

        def finish() -> None:
            data = self._native.complete(numbers[0])
            tensor.to_host(data, array, request.shape, 32, request.order)

        return self._submit(Task(f"stream from color {color}", start, finish), request.nonblock)

    def _fence(self) -> None:
        """Let copies end before a stream begins: commands are carried out in their order."""
        if self._unfenced:
            self._native.fence()
            self._unfenced = False

    def _region(self, request: Transfer) -> _native.Region:
        columns, rows = self._program.size
        x, y, width, height = request.region
        if x < 0 or y < 0 or width < 1 or height < 1 or x + width > columns or y + height > rows:
            raise HostError(
                f"{request.what}: the {width} x {height} PEs at ({x}, {y}) must lie inside the "
                f"program's {columns} x {rows} PEs"
            )
        return request.region

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
