"""Commands of a host: in their order, done at once or when somebody waits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dflow import _native
from dflow.errors import HostError
from dflow.machine import Program

# Where lines that PEs print go: in the folder that the script runs in.
SIM_LOG = "sim.log"
# Where the vendor's simulator leaves traces; ours are elsewhere, so it stays empty.
SIM_TRACES = "simfab_traces"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class Task:
    """A command that may not be done yet; see ``task_wait`` and ``is_task_done``."""

    def __init__(
        self, owner: Commands, what: str, finish: Callable[[], None], in_order: bool
    ) -> None:
        self._owner = owner
        self._what = what
        self._finish = finish
        # Commands of the copy interface are carried out one after the other.
        self._in_order = in_order
        self.done = False

    def __repr__(self) -> str:
        return f"<{self._what}, {'done' if self.done else 'pending'}>"


class Commands:
    """A program, its machine once it is loaded, and the commands that are not done yet."""

    _program: Program

    def __init__(self, program: Program, level: int) -> None:
        self._program = program
        self._level = level
        self._machine: _native.Machine | None = None
        self._state = "new"
        self._pending: list[Task] = []

    def task_wait(self, task: Task) -> None:
        """Wait until a command is done; commands before it are done first."""
        self._check_task(task)
        if not task.done:
            self._expect_running("task_wait")
            self._finish(task)

    def is_task_done(self, task: Task) -> bool:
        """Whether a command is done. The mesh advances only when somebody waits, so this waits."""
        self.task_wait(task)
        return True

    def _request(
        self, what: str, request: int, nonblock: bool, take: Callable[[bytes], None] | None = None
    ) -> Task:
        """Register a request of the machine; ``take`` gets what it brings."""

        def finish() -> None:
            data = self._native.wait_for(request)
            if take is not None:
                take(data)

        return self._submit(Task(self, what, finish, in_order=True), nonblock)

    def _submit(self, task: Task, nonblock: bool) -> Task:
        self._pending.append(task)
        if not nonblock:
            self._finish(task)
        return task

    def _finish(self, task: Task) -> None:
        """Wait for a command and, if they are carried out in order, for those before it."""
        if task._in_order:
            for other in list(self._pending):
                if other is task:
                    break
                if other._in_order:
                    self._end(other)
        self._end(task)

    def _finish_all(self) -> None:
        """Wait for all commands."""
        for task in list(self._pending):
            if not task.done:
                self._finish(task)

    def _end(self, task: Task) -> None:
        """Wait for a command. A refused one is forgotten; other faults end the run.

        Commands that were not done then are asked for in vain: the machine says why.
        """
        try:
            task._finish()
        except HostError:
            self._forget(task)
            raise
        except BaseException:
            self._pending = []
            raise
        finally:
            self._log()
        task.done = True
        self._forget(task)

    def _forget(self, task: Task) -> None:
        self._pending = [other for other in self._pending if other is not task]

    def _check_task(self, task: Any) -> None:
        if not isinstance(task, Task):
            raise HostError(f"expected what a command returned, found {type(task).__name__}")
        if task._owner is not self:
            raise HostError(f"the {task._what} is a command of another SdkRuntime")

    def _begin_log(self, traces: bool) -> None:
        """Make the simulator's log anew, and the folder of its traces: scripts move both away."""
        try:
            Path(SIM_LOG).write_text("", encoding="utf-8")
            if traces:
                Path(SIM_TRACES).mkdir(exist_ok=True)
        except OSError as fault:
            self._say("WARNING", f"{SIM_LOG} and {SIM_TRACES} cannot be made: {fault}")

    def _log(self) -> None:
        """Write what PEs have printed to the simulator's log, the cycle before each line."""
        lines = [] if self._machine is None else self._machine.printed()
        if not lines:
            return
        try:
            with open(SIM_LOG, "a", encoding="utf-8") as log:
                log.writelines(f"@{cycle} {text}\n" for cycle, _, _, text in lines)
        except OSError as fault:
            self._say("WARNING", f"{SIM_LOG} cannot be written: {fault}")

    @property
    def _native(self) -> _native.Machine:
        if self._machine is None:
            raise HostError("the program is not loaded: call load() first")
        return self._machine

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
