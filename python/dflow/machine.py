"""Programs and machines: the package's own interface."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from dflow import _native, account
from dflow.elements import as_array, color_number, elements_of, number_type, whole
from dflow.errors import HostError
from dflow.symbols import (
    Symbol,
    argument_words,
    as_elements,
    named,
    unknown_export,
    unknown_variable,
    view,
)

Source = Union[str, "os.PathLike[str]"]
Rect = tuple[int, int, int, int]
MOST_THREADS = 1024


@dataclass(frozen=True)
class Stats:
    """Counters of a run.

    Attributes:
        wavelets: words that reached an input queue or the host.
        hops: words taken over a link between routers.
        slots: issue slots used by the PEs' threads.
        charged_cycles: cycles charged to PEs: issue slots, and the starts of tasks.
        assumed_cycles: of these, what rests on constants that nobody has published.
        tasks: tasks started.
        dropped_controls: control wavelets for whose entry point no task is bound.
        touched: PEs that took part.
    """

    wavelets: int
    hops: int
    slots: int
    charged_cycles: int
    assumed_cycles: int
    tasks: int
    dropped_controls: int
    touched: int


@dataclass(frozen=True)
class ConsoleLine:
    """A line that a PE has printed.

    Attributes:
        cycle: when its end was written.
        x: the PE's column in the program's rectangle.
        y: its row.
        text: the line, without its end.
    """

    cycle: int
    x: int
    y: int
    text: str


class Program:
    """A compiled program; made by :func:`compile` or :meth:`load`."""

    def __init__(self, native: _native.Program) -> None:
        self._native = native
        named = enumerate(native.symbols)
        self._symbols = {
            name: Symbol(name, number, kind, tuple(types), mutable)
            for number, (name, kind, types, mutable) in named
        }

    @staticmethod
    def load(path: Source) -> Program:
        """Open a ``.dfi`` file, or a folder that ``cslc`` wrote.

        Raises:
            HostError: there is none, or it is damaged.
        """
        path = Path(path)
        if path.is_file() and path.suffix in (".csl", ".dfl"):
            raise HostError(
                f"{path} is a source: compile it with dflow.compile, or with `cslc -o out {path}` "
                "and give the folder"
            )
        if path.is_file():
            return Program(_native.read_image(str(path), path.read_bytes()))
        if path.suffix == ".dfi":
            raise HostError(f"{path}: no such file")
        return Program(_native.read_artifact(path))

    def save(self, path: Source) -> None:
        """Write the program as a ``.dfi`` file, whole or not at all.

        Raises:
            HostError: it cannot be written, or would take the place of a source of the program, or
                of what is called so if the program was loaded.
        """
        self._native.save(Path(path))

    @property
    def target(self) -> str:
        """Name of the hardware generation: ``wse2`` or ``wse3``."""
        return self._native.target

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of PEs."""
        return self._native.size

    @property
    def offsets(self) -> tuple[int, int]:
        """Where on the fabric the first PE is."""
        return self._native.offsets

    @property
    def clock_hz(self) -> int:
        """Cycles per second of the target."""
        return self._native.clock_hz

    @property
    def clock_assumed(self) -> bool:
        """Whether nobody has published that clock."""
        return self._native.clock_assumed

    @property
    def params(self) -> dict[str, str]:
        """Params and their values, as text."""
        return dict(self._native.params)

    @property
    def symbols(self) -> Mapping[str, Symbol]:
        """What the host can name."""
        return self._symbols

    @property
    def streams(self) -> list[tuple[str, bool, int, int, int, int]]:
        """Streams with names: name, into the mesh or not, color, column, row, words buffered."""
        return self._native.streams

    @property
    def warnings(self) -> str:
        """What the compiler warned of."""
        return self._native.warnings

    def symbol(self, name: str, kind: str) -> Symbol:
        """Give the symbol of a name.

        Raises:
            HostError: there is none, or it is of another kind.
        """
        found = self._symbols.get(name)
        if found is None:
            raise unknown_export(self._symbols, name)
        if found.kind != kind:
            others = [one for one in self._symbols.values() if one.kind == kind]
            there = f"; there is {named(others)}" if others else ""
            raise HostError(f"`{name}` is a {found.kind}, not a {kind}{there}")
        return found

    def __repr__(self) -> str:
        width, height = self.size
        return f"<dflow.Program of {width} x {height} PEs, {self.target}>"


def compile(
    path: Source,
    params: Mapping[str, Any] | None = None,
    target: str | None = None,
    *,
    sdk_version: str | None = None,
    import_paths: Iterable[Source] = (),
    check_bounds: bool | None = None,
) -> Program:
    """Compile a source file (``.dfl`` or ``.csl``), or a program of the library.

    Args:
        path: the source file.
        params: values for the layout's params, as numbers, bools or text.
        target: ``wse2`` (the default) or ``wse3``.
        sdk_version: the SDK release whose meanings hold, as ``"1.4"``; decided from the sources
            by default.
        import_paths: folders where imports are looked for that are not beside the importing file.
        check_bounds: code of PEs traps where it indexes outside of an array; by default as
            ``DFLOW_CHECK_BOUNDS`` says. Cycles are the same.

    Raises:
        CompileError: it cannot be read or does not compile; ``report`` holds the diagnostics.
    """
    if isinstance(import_paths, (str, os.PathLike)):
        raise HostError(f"import_paths is a list of folders: write [{os.fspath(import_paths)!r}]")
    texts = [(str(name), _param(value)) for name, value in (params or {}).items()]
    folders = [os.fspath(folder) for folder in import_paths]
    if check_bounds is None:
        check_bounds = is_set("DFLOW_CHECK_BOUNDS")
    native = _native.compile(
        os.fspath(path), texts, target, sdk_version, folders, bool(check_bounds)
    )
    return Program(native)


def _param(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, np.generic):
        value = value.item()
    return str(value)


class Machine:
    """A machine that runs a program, with its host.

    Arrays have the shape ``(rows, columns, elements)`` of the rectangle they are for. Use it in a
    ``with`` statement, or call :meth:`stop`.

    Args:
        program: a :class:`Program`, a ``.dfi`` file, or a folder that ``cslc`` wrote.
        threads: threads that run the mesh; the results do not depend on it. By default as many as
            the mesh is worth: one for each 512 PEs, up to the computer's cores and 8.
        engine: ``exact``; ``flow``, which approximates cycles; or ``step``, the slow definition of
            time.
        code: ``jit``, or ``interpreter``, the slow definition of code.
        max_cycles: the run ends with :class:`LimitReached` at this cycle.
        max_memory: bytes of machine state that the run may take.
        seconds: the run ends with :class:`LimitReached` after this time.
        strict: what is legal and odd is a :class:`Trap`, not a :class:`ProgramWarning`; by default
            as ``DFLOW_STRICT`` says.
    """

    def __init__(
        self,
        program: Program | Source,
        *,
        threads: int | None = None,
        engine: str = "exact",
        code: str = "jit",
        max_cycles: int | None = None,
        max_memory: int | None = None,
        seconds: float | None = None,
        strict: bool | None = None,
    ) -> None:
        self.program = program if isinstance(program, Program) else Program.load(program)
        most = (1 << 64) - 1
        self._native = _native.Machine(
            self.program._native,
            threads=0 if threads is None else whole(threads, "threads", 1, MOST_THREADS),
            engine=engine,
            code=code,
            max_cycles=None if max_cycles is None else whole(max_cycles, "max_cycles", 0, most),
            max_memory=None if max_memory is None else whole(max_memory, "max_memory", 0, most),
            seconds=seconds,
            strict=is_strict() if strict is None else strict,
        )
        self._told = False

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.stop()

    @property
    def rect(self) -> Rect:
        """The whole rectangle: first column, first row, columns, rows."""
        return (0, 0, *self.program.size)

    def _rect(self, rect: Rect | None) -> Rect:
        if rect is None:
            return self.rect
        try:
            _, _, _, _ = rect
        except (TypeError, ValueError):
            raise HostError(
                f"a rectangle is (first column, first row, columns, rows), found {rect!r}"
            ) from None
        names = ("first column", "first row", "columns", "rows")
        x, y, width, height = (
            whole(side, f"{name} of a rectangle") for side, name in zip(rect, names)
        )
        columns, rows = self.program.size
        if width < 1 or height < 1 or x + width > columns or y + height > rows:
            raise HostError(
                f"the region at ({x}, {y}) of {width} x {height} PEs is empty or leaves the "
                f"program's {columns} x {rows} PEs"
            )
        return (x, y, width, height)

    @property
    def cycles(self) -> int:
        """Cycle of the last event that the host waited for."""
        return self._native.cycles

    @property
    def seconds(self) -> float:
        """The same as emulated time, at the clock of the program's target.

        ``program.clock_assumed`` says whether that clock is assumed, ``assumed_share`` how much of
        what was charged rests on assumed constants.
        """
        return self.cycles / self.program.clock_hz

    @property
    def assumed_share(self) -> float:
        """Part of the cycles charged so far that rests on constants which nobody has published."""
        return self._native.assumed_share

    @property
    def stats(self) -> Stats:
        """Counters so far."""
        return Stats(**dict(self._native.stats()))

    @property
    def waiting(self) -> str:
        """Who waits for what now, as a deadlock's report says it."""
        return self._native.waiting()

    def printed(self) -> list[ConsoleLine]:
        """Take the lines that PEs have printed since the last call, ordered by cycle and PE."""
        return [ConsoleLine(*line) for line in self._native.printed()]

    def copy_in(self, name: str, array: npt.ArrayLike, rect: Rect | None = None) -> None:
        """Copy elements into the memory behind an exported pointer, on each PE of a rectangle.

        ``array`` has the shape (rows, columns, elements), or (rows, columns) for one element per
        PE; a one-dimensional array goes to every PE as it is. It must be of the pointer's element
        type; plain numbers and lists of them are converted if they fit. Does not wait: the mesh
        advances when somebody does.
        """
        symbol = self.program.symbol(name, "pointer")
        rect = self._rect(rect)
        values = as_elements(array, symbol)
        _, _, width, height = rect
        if values.ndim <= 1:
            values = np.broadcast_to(values.reshape(-1), (height, width, values.size))
        if values.shape[:2] != (height, width) or values.ndim > 3:
            raise HostError(
                f"an array of shape {values.shape} does not fit {height} rows of {width} PEs: "
                f"expected ({height}, {width}, elements per PE)"
            )
        self._native.copy_in(symbol.id, (*rect, 1, 1), "each", _bytes(values))

    def copy_out(
        self,
        name: str,
        rect: Rect | None = None,
        count: int = 1,
        dtype: npt.DTypeLike | None = None,
    ) -> npt.NDArray[Any]:
        """Copy ``count`` elements of each PE of a rectangle out of an exported pointer's memory.

        Gives an array of shape (rows, columns, count). ``dtype`` may name another type of the same
        size to read the elements as.
        """
        symbol = self.program.symbol(name, "pointer")
        rect = self._rect(rect)
        count = whole(count, "count")
        wanted = symbol.dtype if dtype is None else number_type(dtype)
        if wanted.itemsize != symbol.dtype.itemsize:
            raise HostError(
                f"`{name}` points to elements of type {symbol.types[0]}: expected a dtype of "
                f"{symbol.dtype.itemsize} bytes, found {wanted}"
            )
        area = (*rect, 1, 1)
        excess = self._native.excess(symbol.id, area, count)
        if excess is not None:
            raise HostError(excess)
        data = self._native.wait_for(self._native.copy_out(symbol.id, area, count))
        return elements_of(data, wanted).reshape(rect[3], rect[2], count)

    def scatter(self, name: str, field: npt.ArrayLike, rect: Rect | None = None) -> None:
        """Share a matrix among the PEs: each gets its block, row by row.

        ``field`` has the shape (rows * block rows, columns * block columns).
        """
        symbol = self.program.symbol(name, "pointer")
        rect = self._rect(rect)
        values = as_elements(field, symbol)
        _, _, width, height = rect
        if values.ndim != 2 or values.shape[0] % height or values.shape[1] % width:
            raise HostError(
                f"an array of shape {values.shape} cannot be shared by {height} rows of {width} "
                "PEs: expected a matrix whose sides are multiples of that"
            )
        rows, columns = values.shape[0] // height, values.shape[1] // width
        blocks = values.reshape(height, rows, width, columns).swapaxes(1, 2)
        self._native.copy_in(symbol.id, (*rect, 1, 1), "each", _bytes(blocks))

    def gather(
        self, name: str, block: tuple[int, int], rect: Rect | None = None
    ) -> npt.NDArray[Any]:
        """Put the blocks (rows, columns) of the PEs together to one matrix."""
        rect = self._rect(rect)
        try:
            rows, columns = block
        except (TypeError, ValueError):
            raise HostError(f"a block is (rows, columns), found {block!r}") from None
        rows, columns = whole(rows, "rows of a block"), whole(columns, "columns of a block")
        _, _, width, height = rect
        parts = self.copy_out(name, rect, rows * columns)
        blocks = parts.reshape(height, width, rows, columns).swapaxes(1, 2)
        return np.ascontiguousarray(blocks.reshape(height * rows, width * columns))

    def launch(self, name: str, *args: Any) -> None:
        """Call an exported function on all PEs, and wait until each has answered."""
        symbol = self.program.symbol(name, "function")
        self._native.wait_for(self._native.launch(symbol.id, argument_words(symbol, args)))

    def stream_in(self, color: int, array: npt.ArrayLike, rect: Rect | None = None) -> None:
        """Queue elements of 16 or 32 bits for a streaming color, one word each.

        ``array`` holds those of each PE of the rectangle, row by row. Does not wait: the mesh
        advances when somebody does.
        """
        area = (*self._rect(rect), 1, 1)
        color = color_number(color)
        values = as_array(array)
        bits = _bits(values.dtype)
        self._native.stream_in(color, area, bits, "each", _bytes(values))

    def stream_out(
        self,
        color: int,
        rect: Rect | None = None,
        count: int = 1,
        dtype: npt.DTypeLike = np.uint32,
    ) -> npt.NDArray[Any]:
        """Wait for ``count`` words per PE of a streaming color; shape (rows, columns, count)."""
        rect = self._rect(rect)
        color = color_number(color)
        wanted = number_type(dtype)
        count = whole(count, "count")
        request = self._native.stream_out(color, (*rect, 1, 1), _bits(wanted), count)
        data = self._native.wait_for(request)
        return elements_of(data, wanted).reshape(rect[3], rect[2], count)

    def stop(self) -> None:
        """End the run: what the program still does by itself is done first.

        A program that never comes to rest is stopped after a while (``spec/host.md``). What was
        odd is told as :class:`ProgramWarning`, what was not as expected as notes on the standard
        error output (``spec/faults.md``).
        """
        self._native.stop()
        if not self._told:
            self._told = True
            account.tell(self._native, 2)

    def read_symbol(
        self, x: int, y: int, name: str, dtype: npt.DTypeLike | None = None
    ) -> npt.NDArray[Any]:
        """Give a variable of a PE of the rectangle, after :meth:`stop`.

        Without ``dtype`` these are bytes; of a variable that is exported as a ``bool``, bools.
        """
        if dtype is None:
            symbol = self.program.symbols.get(name)
            is_bool = symbol is not None and (symbol.kind, symbol.types) == ("scalar", ("bool",))
            dtype = np.bool_ if is_bool else np.uint8
        columns, rows = self.program.size
        x, y = whole(x, "x", 0, columns - 1), whole(y, "y", 0, rows - 1)
        data = self._native.read(x, y, name)
        if data is None:
            raise unknown_variable(f"PE ({x}, {y})", name, self._native.names(x, y))
        return view(data, dtype, name)


def is_strict() -> bool:
    """Whether what is odd is a trap: ``DFLOW_STRICT``."""
    return is_set("DFLOW_STRICT")


def is_set(name: str) -> bool:
    """Whether a variable of the environment says yes."""
    return os.environ.get(name, "") not in ("", "0")


def _bits(dtype: np.dtype[Any]) -> int:
    if dtype.itemsize not in (2, 4) or dtype.kind not in "iuf":
        raise HostError(f"elements of 16 or 32 bits can be streamed, found {dtype}")
    return 8 * dtype.itemsize


def _bytes(values: npt.NDArray[Any]) -> bytes:
    """The elements, little endian, in C order."""
    return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
