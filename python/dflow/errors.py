"""What can go wrong, as exceptions."""

from __future__ import annotations


class Error(RuntimeError):
    """Any fault that this package reports."""


class CompileError(Error):
    """The program does not compile.

    Attributes:
        report: the diagnostics, as the command line prints them.
    """

    def __init__(self, message: str, report: str = "") -> None:
        super().__init__(message)
        self.report = report


class HostError(Error):
    """A request that cannot be carried out. Nothing was sent to the mesh for it.

    An argument of a type that no such argument has, as a number in the place of a path, is a
    :class:`TypeError` instead, as it is anywhere in Python.
    """


class Trap(Error):
    """A PE did something forbidden; the message names it, the source line and the cycle."""


class Deadlock(Error):
    """Nothing can move any more and the host waits.

    Attributes:
        report: who waits in which source line for what, and where words stand.
    """

    def __init__(self, message: str, report: str = "") -> None:
        super().__init__(message)
        self.report = report


class LimitReached(Error):
    """A limit on cycles, memory or time ended the run."""


class ProgramWarning(UserWarning):
    """Something legal and odd that a program did, told once per place.

    With ``strict=True`` (or ``DFLOW_STRICT=1``) it is a :class:`Trap` instead.
    """
