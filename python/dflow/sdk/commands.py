"""Commands of a host: in their order, done at once or when somebody waits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from dflow import _native
from dflow.errors import HostError
from dflow.machine import Program

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class Task:
    """A command that may not be done yet; see ``task_wait`` and ``is_task_done``."""

    def __init__(
        self,
        what: str,
        start: Callable[[], None],
        finish: Callable[[], None] | None = None,
    ) -> None:
        self._what = what
        self._start = start
        self._finish = finish
        self._started = False
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
        # Copies to the mesh that may be under way.
        self._unfenced = False

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

    def _drain(self, until: Task | None) -> None:
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


def _check_task(task: Any) -> None:
    if not isinstance(task, Task):
        raise HostError(f"expected what a command returned, found {type(task).__name__}")
