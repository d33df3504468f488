"""``SdkRuntime``: loading, running and talking to a program, as existing host scripts do it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy.typing as npt

from dflow import _native, account
from dflow.elements import whole
from dflow.errors import HostError
from dflow.machine import Program
from dflow.sdk import settings
from dflow.sdk.arguments import call_words
from dflow.sdk.commands import LEVELS, Task
from dflow.sdk.copies import Copies
from dflow.sdk.platform import Platform, refuse_address
from dflow.sdk.ports import Ports
from dflow.sdk.tensor import MemcpyDataType, MemcpyOrder
from dflow.symbols import Symbol, argument_words, unknown_export, unknown_variable, view

__all__ = ["MemcpyDataType", "MemcpyOrder", "SdkCompileArtifacts", "SdkRuntime", "Task"]

MOST_STATE = 1 << 28


class SdkCompileArtifacts:
    """The folder of a compiled program."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).resolve()

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"SdkCompileArtifacts({str(self.path)!r})"

    def add_port_mapping(self, file: str | os.PathLike[str]) -> SdkCompileArtifacts:
        """Check that a file of streams is there; the streams themselves are in the program."""
        if not Path(file).is_file():
            raise HostError(f"{file} cannot be read: there is no such file")
        return self


class SdkRuntime(Copies, Ports):
    """The host of a program: ``load``, ``run``, copies and launches, ``stop``.

    Args:
        bindir: the folder that ``cslc`` or ``SdkLayout.compile`` wrote.
        platform: what ``get_platform`` gave; not needed.
        cmaddr: must be left out or empty: there is no system.
        suppress_simfab_trace: without the (empty) folder of traces.
        simfab_numthreads: threads that run the mesh, 1 to 64; by default as many as it is worth.
        msg_level: DEBUG, INFO, WARNING or ERROR.
        memcpy_required: whether the program must have the copy interface.
    """

    def __init__(
        self,
        bindir: str | os.PathLike[str],
        platform: Platform | None = None,
        *,
        cmaddr: str | None = None,
        suppress_simfab_trace: bool = False,
        simfab_numthreads: int | None = None,
        msg_level: str = "WARNING",
        memcpy_required: bool = True,
    ) -> None:
        refuse_address(cmaddr)
        if msg_level not in LEVELS:
            raise HostError(f"msg_level is one of {', '.join(LEVELS)}, found {msg_level!r}")
        # Scripts change the folder before they load.
        self._folder = Path(bindir).resolve()
        super().__init__(Program.load(self._folder), LEVELS.index(msg_level))
        if memcpy_required and not self._program._native.memcpy:
            raise HostError(
                f"{bindir} was compiled without memcpy: compile with `cslc --memcpy`, or pass "
                "memcpy_required=False if the program has only streams of its own"
            )
        self._cores = _core_paths(platform)
        self._options = settings.machine_options(_threads(simfab_numthreads, platform))
        self._began = time.monotonic()
        self._traces = not suppress_simfab_trace

    # -- life ---------------------------------------------------------------------------------

    def load(self) -> None:
        """Put the program on the mesh."""
        self._expect("load", "new", "load() has been called already")
        settings.check_stats()
        self._machine = _native.Machine(self._program._native, finite=True, **self._options)
        self._state = "loaded"

    def run(self) -> None:
        """Start the PEs."""
        if self._state == "new":
            raise HostError("run() needs a loaded program: call load() first")
        self._expect("run", "loaded", "run() has been called already")
        self._began = time.monotonic()
        self._state = "running"
        self._begin_log(self._traces)

    def stop(self) -> None:
        """Wait for all commands, end the run, and keep the machine's memory for debugging.

        What PEs still do by themselves is given time to end; a program that never comes to rest,
        or PEs that wait for words that nobody sends, are no fault here.
        """
        if self._state in ("new", "loaded"):
            raise HostError("stop() needs a running program: call load() and run() first")
        self._expect("stop", "running", "stop() has been called already")
        try:
            self._finish_all()
        finally:
            self._state = "stopped"
            try:
                self._native.stop()
            finally:
                self._log()
        if self._level <= LEVELS.index("INFO"):
            self._say("INFO", f"at the end {self._native.waiting()}")
        self._keep_state()
        for path in self._cores:
            self._write_core(path)
        settings.append_stats(self._native.cycles, time.monotonic() - self._began, self._program)
        # Last: a warning may be made an exception.
        account.tell(self._native, 2)

    # -- names --------------------------------------------------------------------------------

    def get_id(self, name: str) -> int:
        """Give the number of an exported name, for copies."""
        found = self._program.symbols.get(name)
        if found is None:
            raise unknown_export(self._program.symbols, name)
        return found.id

    def get_symbol(self, name: str) -> int:
        """Do as :meth:`get_id`: its older name."""
        return self.get_id(name)

    def coord_logical_to_physical(self, coord: Any) -> tuple[int, int]:
        """Give the place on the fabric of a PE of the program."""
        try:
            x, y = coord
            place = (int(x), int(y))
        except (TypeError, ValueError, OverflowError):
            raise HostError(f"a place is (column, row), found {coord!r}") from None
        column, row = self._program.offsets
        return (place[0] + column, place[1] + row)

    # -- launches -----------------------------------------------------------------------------

    def launch(self, name: str, *args: Any, nonblock: bool = False) -> Task:
        """Call an exported function on all PEs.

        Arguments are NumPy scalars of the parameters' types, or plain numbers that fit them. The
        call is answered when every PE has called ``unblock_cmd_stream``.
        """
        self._expect_running("launch")
        symbol = self._function(name)
        words = argument_words(symbol, args)
        number = self._native.launch(symbol.id, words)
        return self._request(f"launch of `{name}`", number, nonblock)

    def call(self, name: str, args: Any = (), nonblock: bool = False) -> Task:
        """Do as :meth:`launch`, with arguments as 32-bit words: its older form."""
        self._expect_running("call")
        symbol = self._function(name)
        words = call_words(symbol, args)
        number = self._native.launch(symbol.id, words)
        return self._request(f"call of `{name}`", number, nonblock)

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
            symbols = self._program.symbols.items()
            functions = {known: one for known, one in symbols if one.kind == "function"}
            raise unknown_export(functions, name, "no function")
        return found

    # -- the end ------------------------------------------------------------------------------

    def read_symbol(
        self, x: int, y: int, name: str, dtype: npt.DTypeLike = "uint8"
    ) -> npt.NDArray[Any]:
        """Give the bytes of a variable of the PE at a place of the fabric."""
        if self._state in ("new", "loaded"):
            raise HostError("read_symbol needs a program that ran: call load() and run() first")
        column, row = self._program.offsets
        columns, rows = self._program.size
        at = (whole(x, "x") - column, whole(y, "y") - row)
        if not (0 <= at[0] < columns and 0 <= at[1] < rows):
            raise HostError(
                f"({x}, {y}) is no PE of the program, which has columns {column} to "
                f"{column + columns - 1} and rows {row} to {row + rows - 1} of the fabric"
            )
        data = self._native.read(*at, name)
        if data is None:
            raise unknown_variable(f"PE ({x}, {y})", name, self._native.names(*at))
        return view(data, dtype, name)

    def dump_core(self, corefile: str | os.PathLike[str]) -> None:
        """Write the memory of all PEs, at the end of the run, for ``debug_util``."""
        path = _core_path(corefile)
        if self._state == "stopped":
            self._write_core(path)
        else:
            self._cores.append(path)

    def dump_elf_core(self, corefile: str | os.PathLike[str]) -> None:
        """Do as :meth:`dump_core`: there is one format."""
        self.dump_core(corefile)

    def _keep_state(self) -> None:
        size = self._native.state_size()
        if size > MOST_STATE and not settings.keep_state():
            self._say(
                "WARNING",
                f"the machine's memory ({size >> 20} MiB) is not kept for "
                "debugging: set DFLOW_STATE=1 to keep it",
            )
            return
        if not self._folder.is_dir():
            self._say(
                "WARNING",
                f"the machine's memory is not kept for debugging: {self._folder} is gone",
            )
            return
        self._native.write_state(self._folder)

    def _write_core(self, path: Path) -> None:
        self._native.write_state(path)
        self._say("WARNING", f"{path} holds the machine's memory in dflow's own format")

    def _expect(self, what: str, state: str, otherwise: str) -> None:
        if self._state != state:
            raise HostError(
                otherwise
                if self._state != "stopped" or what == "stop"
                else f"{what}() after stop(): make a new SdkRuntime"
            )


def _threads(given: int | None, platform: Platform | None) -> int | None:
    if given is None:
        asked = None if platform is None else platform.config.num_threads
        return None if asked is None else max(1, asked)
    return whole(given, "simfab_numthreads", 1, 64)


def _core_paths(platform: Platform | None) -> list[Path]:
    if platform is None or not platform.config.dump_core:
        return []
    return [_core_path(platform.config.core_path or "corefile.cs1")]


def _core_path(path: str | os.PathLike[str]) -> Path:
    """Give the place of a core file; the folder must be there."""
    place = Path(path).resolve()
    if not place.parent.is_dir():
        raise HostError(f"{place} cannot be written: its folder does not exist")
    return place
