"""The commands of the package: ``dflowc``, ``cslc`` and ``cs_python``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from dflow import _native

COMPAT = Path(__file__).resolve().parent / "compat"


def dflowc() -> int:
    """Run the command line ``dflowc``."""
    end_at_interrupt()
    return _native.dflowc(["dflowc", *sys.argv[1:]])


def cslc() -> int:
    """Run the command line ``cslc``."""
    end_at_interrupt()
    return _native.cslc(["cslc", *sys.argv[1:]])


def end_at_interrupt() -> None:
    """Let Ctrl-C end this process at once until the tool takes it over.

    Python's own handler would wait until the tool returns.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def cs_python() -> int:
    """Run Python with the vendor-shaped modules on its path; arguments are Python's own."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = python_path(environment.get("PYTHONPATH", ""))
    command = [sys.executable, *sys.argv[1:]]
    if os.name == "posix":
        sys.stdout.flush()
        os.execve(sys.executable, command, environment)
    return subprocess.call(command, env=environment)


def python_path(before: str) -> str:
    """``PYTHONPATH`` with the vendor-shaped modules and this package first."""
    package = str(Path(__file__).resolve().parent.parent)
    wanted = [str(COMPAT), package]
    others = [entry for entry in before.split(os.pathsep) if entry and entry not in wanted]
    return os.pathsep.join([wanted[0], *others, package])
