"""``SdkRuntime``: loading, running and talking to a program, as existing host scripts do it."""

from __future__ import annotations

import operator
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from dflow import _native
from dflow.errors import HostError
from dflow.machine import Program, Symbol, argument_words, unknown_variable, view
from dflow.sdk import settings, tensor
from dflow.sdk.arguments import (
    Transfer,
    call_words,
    color_number,
    positive,
    symbol_number,
    wavelets,
)
from dflow.sdk.platform import Platform, refuse_address
from dflow.sdk.tensor import MemcpyDataType, MemcpyOrder

__all__ = ["MemcpyDataType", "MemcpyOrder", "SdkCompileArtifacts", "SdkRuntime", "Task"]

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
MOST_STATE = 1 << 30


class SdkCompileArtifacts:
    """The folder of a compiled program."""

    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        self.path = Path(path).resolve()

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"SdkCompileArtifacts({str(self.path)!r})"


class Task:
    """A command that may not be done yet; see ``task_wait`` and ``is_task_done``."""

    def __init__(
        self,
        what: str,
        start: Callable[[], None],
        finish: Optional[Callable[[], None]] = None,
    ) -> None:
        self._what = what
        self._start = start
        self._finish = finish
        self._started = False
        self.done = False

    def __repr__(self) -> str:
        return f"<{self._what}, {'done' if self.done else 'pending'}>"


class SdkRuntime:
    """The host of a program: ``load``, ``run``, copies and launches, ``stop``.

    Args:
        bindir: the folder that ``cslc`` or ``SdkLayout.compile`` wrote.
        platform: what ``get_platform`` gave; not needed.
        cmaddr: must be left out or empty: there is no system.
        suppress_simfab_trace: accepted; no traces are written unless asked for.
        simfab_numthreads: threads that run the mesh, 1 to 64.
        msg_level: DEBUG, INFO, WARNING or ERROR.
        memcpy_required: whether the program must have the copy interface.
    """

    def __init__(
        self,
        bindir: Union[str, os.PathLike[str]],
        platform: Optional[Platform] = None,
        *,
        cmaddr: Optional[str] = None,
        suppress_simfab_trace: bool = False,
        simfab_numthreads: Optional[int] = None,
        msg_level: str = "WARNING",
        memcpy_required: bool = True,
    ) -> None:
        refuse_address(cmaddr)
        if msg_level not in LEVELS:
            raise HostError(f"msg_level is one of {', '.join(LEVELS)}, found {msg_level!r}")
        self._level = LEVELS.index(msg_level)
        # Scripts change the folder before they load.
        self._folder = Path(bindir).resolve()
        self._program = Program.load(self._folder)
        if memcpy_required and not self._program._native.memcpy:
            raise HostError(
                f"{bindir} was compiled without memcpy: compile with `cslc --memcpy`, or pass "
                "memcpy_required=False if the program has only streams of its own"
            )
        self._core = _core_path(platform)
        self._options = settings.machine_options(_threads(simfab_numthreads, platform))
        self._machine: Optional[_native.Machine] = None
        self._state = "new"
        self._pending: list[Task] = []
        # Copies to the mesh that may be under way.
        self._unfenced = False
        self._began = time.monotonic()

    # -- life ---------------------------------------------------------------------------------

    def load(self) -> None:
        """Put the program on the mesh."""
        self._expect("load", "new", "load() has been called already")
        self._machine = _native.Machine(self._program._native, **self._options)
        self._state = "loaded"

    def run(self) -> None:
        """Start the PEs."""
        if self._state == "new":
            raise HostError("run() needs a loaded program: call load() first")
        self._expect("run", "loaded", "run() has been called already")
        self._began = time.monotonic()
        self._state = "running"

    def stop(self) -> None:
        """Wait for all commands, end the run, and keep the machine's memory for debugging.

        What PEs still do by themselves is given time to end; a program that never comes to rest,
        or PEs that wait for words that nobody sends, are no fault here.
        """
        if self._state in ("new", "loaded"):
            raise HostError("stop() needs a running program: call load() and run() first")
        self._expect("stop", "running", "stop() has been called already")
        try:
            self._drain(None)
        finally:
            self._state = "stopped"
            self._native.stop()
        if self._level <= LEVELS.index("INFO"):
            self._say("INFO", f"at the end {self._native.waiting()}")
        self._keep_state()
        settings.append_stats(self._native.cycles, time.monotonic() - self._began, self._program)

    # -- names --------------------------------------------------------------------------------

    def get_id(self, name: str) -> int:
        """Give the number of an exported name, for copies."""
        found = self._program.symbols.get(name)
        if found is None:
            known = ", ".join(f"`{known}`" for known in self._program.symbols) or "nothing"
            raise HostError(f"nothing is exported as `{name}`; there is {known}")
        return found.id

    def get_symbol(self, name: str) -> int:
        """Do as :meth:`get_id`: its older name."""
        return self.get_id(name)

    def coord_logical_to_physical(self, coord: Any) -> tuple[int, int]:
        """Give the place on the fabric of a PE of the program."""
        x, y = coord
        column, row = self._program.offsets
        return (int(x) + column, int(y) + row)

    # -- launches -----------------------------------------------------------------------------

    def launch(self, name: str, *args: Any, nonblock: bool = False) -> Task:
        """Call an exported function on all PEs.

        Arguments are NumPy scalars of the parameters' types, or plain numbers that fit them. The
        call is answered when every PE has called ``unblock_cmd_stream``.
        """
        self._expect_running("launch")
        symbol = self._function(name)
        words = argument_words(symbol, args)
        return self._command(f"launch of `{name}`", lambda: self._launch(symbol, words), nonblock)

    def call(self, name: str, args: Any = (), nonblock: bool = False) -> Task:
        """Do as :meth:`launch`, with arguments as 32-bit words: its older form."""
        self._expect_running("call")
        symbol = self._function(name)
        words = call_words(symbol, args)
        return self._command(f"call of `{name}`", lambda: self._launch(symbol, words), nonblock)

    def memcpy_launch(self, *_: Any, **__: Any) -> Task:
        """Refuse: the launches of SDK 0.6 have no names."""
        raise HostError(
            "memcpy_launch is the launch of SDK 0.6, by words on a color: export the function "
            'and write launch("name", ...)'
        )

    def _function(self, name: str) -> Symbol:
        if not isinstance(name, str):
            raise HostError(f"a launch names a function, found {name!r}")
        found = self._program.symbols.get(name)
        if found is None or found.kind != "function":
            known = [f"`{one.name}`" for one in self._program.symbols.values()
                     if one.kind == "function"]
            there = ", ".join(known) or "no function"
            raise HostError(f"no function is exported as `{name}`; there is {there}")
        return found

    def _launch(self, symbol: Symbol, words: list[int]) -> None:
        self._native.launch(symbol.id, words)
        self._unfenced = False

    # -- copies -------------------------------------------------------------------------------

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

    # -- streams of the program ------------------------------------------------------------------

    def send(
        self,
        port: Union[str, int],
        src: npt.NDArray[Any],
        n_wavelets: Optional[int] = None,
        nonblock: bool = False,
    ) -> Task:
        """Send an array over a stream into the mesh, a word per 32 bits.

        Done when the words have gone, but for what the stream's buffer holds.
        """
        self._expect_running("send")
        number, name = self._stream(port, to_mesh=True)
        data = wavelets(src, n_wavelets, f"send to `{name}`")

        def start() -> None:
            self._native.send_words(number, data)

        task = Task(f"send to `{name}`", start, lambda: self._native.wait_sent(number))
        return self._submit(task, nonblock)

    def receive(
        self,
        port: Union[str, int],
        dest: npt.NDArray[Any],
        n_wavelets: Optional[int] = None,
        nonblock: bool = False,
    ) -> Task:
        """Receive words from a stream of the mesh into an array, in place."""
        self._expect_running("receive")
        number, name = self._stream(port, to_mesh=False)
        what = f"dest of receive from `{name}`"
        wavelets(dest, n_wavelets, f"receive from `{name}`")
        array = tensor.flat_view(dest, what)

        def deliver(data: bytes) -> None:
            array[...] = np.frombuffer(data, array.dtype.newbyteorder("<"))

        return self._receive(number, name, dest.nbytes // 4, deliver, nonblock)

    def receive_tofile(
        self,
        port: Union[str, int],
        path: Union[str, os.PathLike[str]],
        n_wavelets: int,
        nonblock: bool = False,
    ) -> Task:
        """Receive words from a stream of the mesh into a file, four bytes each."""
        self._expect_running("receive_tofile")
        number, name = self._stream(port, to_mesh=False)
        target = Path(path).resolve()
        count = positive(n_wavelets, f"n_wavelets of receive from `{name}`")
        return self._receive(number, name, count, lambda data: _write(target, data), nonblock)

    def _receive(
        self, stream: int, name: str, count: int, deliver: Callable[[bytes], Any], nonblock: bool
    ) -> Task:
        numbers: list[int] = []

        def start() -> None:
            numbers.append(self._native.receive_words(stream, count))

        def finish() -> None:
            deliver(self._native.complete(numbers[0]))

        return self._submit(Task(f"receive from `{name}`", start, finish), nonblock)

    def get_port_id(self, name: str) -> int:
        """Give the number of a stream, to be used in place of its name."""
        for number, (other, *_) in enumerate(self._program.streams):
            if other == name:
                return number
        known = ", ".join(f"`{stream[0]}`" for stream in self._program.streams) or "none"
        raise HostError(f"there is no stream `{name}`; there is {known}")

    def report_port_infos(self) -> None:
        """Print name, direction, color and place on the fabric of every stream."""
        for name, to_mesh, color, x, y, _ in self._program.streams:
            way = "into the mesh" if to_mesh else "to the host"
            print(f"{name}: {way}, color {color}, at ({x}, {y})")

    def _stream(self, port: Union[str, int], to_mesh: bool) -> tuple[int, str]:
        number = self.get_port_id(port) if isinstance(port, str) else operator.index(port)
        streams = self._program.streams
        if not 0 <= number < len(streams):
            raise HostError(f"{number} is no id of a stream: get_port_id(name) gives it")
        name, leads_in = streams[number][:2]
        if leads_in != to_mesh:
            way = "into the mesh: send to it" if leads_in else "to the host: receive from it"
            raise HostError(f"the stream `{name}` leads {way}")
        return number, name

    # -- tasks --------------------------------------------------------------------------------

    def task_wait(self, task: Task) -> None:
        """Wait until a command is done; commands before it are done first."""
        _check_task(task)
        if not task.done:
            self._expect_running("task_wait")
            self._drain(task)

    def is_task_done(self, task: Task) -> bool:
        """Whether a command is done. The mesh advances only when somebody waits, so this waits."""
        self.task_wait(task)
        return True

    def _command(self, what: str, act: Callable[[], None], nonblock: bool) -> Task:
        return self._submit(Task(what, act), nonblock)

    def _submit(self, task: Task, nonblock: bool) -> Task:
        self._pending.append(task)
        if not nonblock:
            self._drain(task)
        return task

    def _drain(self, until: Optional[Task]) -> None:
        """Begin commands in their order, up to and with one of them, and wait for it; or all."""
        for task in self._pending:
            if not task._started:
                task._started = True
                self._attempt(task, task._start)
                task.done = task._finish is None
            if task is until:
                break
        for task in [until] if until is not None else self._pending:
            if not task.done and task._finish is not None:
                self._attempt(task, task._finish)
                task.done = True
        self._pending = [task for task in self._pending if not task.done]

    def _attempt(self, task: Task, step: Callable[[], None]) -> None:
        """Do a step of a command. One that is refused is forgotten; other faults end the run."""
        try:
            step()
        except HostError:
            self._pending = [other for other in self._pending if other is not task]
            raise
        except BaseException:
            self._pending = []
            raise

    # -- the end ------------------------------------------------------------------------------

    def read_symbol(
        self, x: int, y: int, name: str, dtype: npt.DTypeLike = "uint8"
    ) -> npt.NDArray[Any]:
        """Give the bytes of a variable of the PE at a place of the fabric."""
        if self._state in ("new", "loaded"):
            raise HostError("read_symbol needs a program that ran: call load() and run() first")
        column, row = self._program.offsets
        columns, rows = self._program.size
        at = (int(x) - column, int(y) - row)
        if not (0 <= at[0] < columns and 0 <= at[1] < rows):
            raise HostError(
                f"({x}, {y}) is no PE of the program, which has columns {column} to "
                f"{column + columns - 1} and rows {row} to {row + rows - 1} of the fabric"
            )
        data = self._native.read(*at, name)
        if data is None:
            raise unknown_variable(f"PE ({x}, {y})", name, self._native.names(*at))
        return view(data, dtype, name)

    def dump_core(self, corefile: Union[str, os.PathLike[str]]) -> None:
        """Write the memory of all PEs to a file that ``debug_util`` reads."""
        if self._state in ("new", "loaded"):
            raise HostError("dump_core needs a program that ran: call load() and run() first")
        path = Path(corefile).resolve()
        self._native.write_state(path)
        self._say("WARNING", f"{corefile} holds the machine's memory in dflow's own format")

    def dump_elf_core(self, corefile: Union[str, os.PathLike[str]]) -> None:
        """Do as :meth:`dump_core`: there is one format."""
        self.dump_core(corefile)

    def _keep_state(self) -> None:
        size = self._native.state_size()
        if size > MOST_STATE and not settings.keep_state():
            self._say("WARNING", f"the machine's memory ({size >> 20} MiB) is not kept for "
                      "debugging: set DFLOW_STATE=1 to keep it")
            return
        self._native.write_state(self._folder)
        if self._core is not None:
            self.dump_core(self._core)

    @property
    def _native(self) -> _native.Machine:
        if self._machine is None:
            raise HostError("the program is not loaded: call load() first")
        return self._machine

    def _expect(self, what: str, state: str, otherwise: str) -> None:
        if self._state != state:
            raise HostError(otherwise if self._state != "stopped" or what == "stop"
                            else f"{what}() after stop(): make a new SdkRuntime")

    def _expect_running(self, what: str) -> None:
        if self._state in ("new", "loaded"):
            raise HostError(
                f"SdkRuntime must be running to accept {what}: call load() and run() first"
            )
        if self._state == "stopped":
            raise HostError(f"{what} after stop(): make a new SdkRuntime")

    def _say(self, level: str, text: str) -> None:
        if LEVELS.index(level) >= self._level:
            print(f"dflow: {text}", file=sys.stderr)


def _check_task(task: Any) -> None:
    if not isinstance(task, Task):
        raise HostError(f"expected what a command returned, found {type(task).__name__}")


def _threads(given: Optional[int], platform: Optional[Platform]) -> int:
    if given is None:
        return 1 if platform is None else max(1, platform.config.num_threads)
    if not 1 <= given <= 64:
        raise HostError(f"simfab_numthreads is 1 to 64, found {given}")
    return given


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _core_path(platform: Optional[Platform]) -> Optional[Path]:
    if platform is None or not platform.config.dump_core:
        return None
    return Path(platform.config.core_path or "corefile.cs1").resolve()
