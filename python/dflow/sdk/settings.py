"""What the environment decides: so that scripts stay as they are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from dflow.errors import HostError
from dflow.machine import Program, is_set, is_strict


def machine_options(threads: int | None) -> dict[str, Any]:
    """Give the options of a machine: ``DFLOW_THREADS``, ``DFLOW_ENGINE``, ``DFLOW_CODE``,
    ``DFLOW_MAX_CYCLES``, ``DFLOW_TIMEOUT``, ``DFLOW_STRICT``.
    """
    wanted = _number("DFLOW_THREADS")
    if wanted is None and threads is not None:
        wanted = min(threads, os.cpu_count() or 1)
    options: dict[str, Any] = {
        # As many as the mesh is worth, unless somebody says how many.
        "threads": 0 if wanted is None else wanted,
        "engine": os.environ.get("DFLOW_ENGINE") or "exact",
        "code": os.environ.get("DFLOW_CODE") or "jit",
        "max_cycles": _number("DFLOW_MAX_CYCLES"),
        "strict": is_strict(),
    }
    seconds = os.environ.get("DFLOW_TIMEOUT")
    if seconds:
        options["seconds"] = _seconds(seconds)
    return options


def keep_state() -> bool:
    """Whether the memory of machines is kept however large it is: ``DFLOW_STATE``."""
    return is_set("DFLOW_STATE")


def check_stats() -> None:
    """Refuse a file of statistics whose folder is not there, before anything runs.

    Raises:
        HostError: it could not be written.
    """
    path = os.environ.get("DFLOW_STATS_FILE")
    if path and not Path(path).absolute().parent.is_dir():
        raise HostError(f"DFLOW_STATS_FILE: {path} cannot be written: its folder does not exist")


def append_stats(cycles: int, seconds: float, program: Program) -> None:
    """Append a line of JSON to the file that ``DFLOW_STATS_FILE`` names."""
    path = os.environ.get("DFLOW_STATS_FILE")
    if not path:
        return
    line = {"cycles": cycles, "seconds": round(seconds, 6), "target": program.target}
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    except OSError as fault:
        raise HostError(f"DFLOW_STATS_FILE: {path} cannot be written: {fault.strerror}") from None


def _number(name: str) -> int | None:
    text = os.environ.get(name)
    if not text:
        return None
    try:
        value = int(text.replace("_", ""))
    except ValueError:
        value = 0
    if value < 1:
        raise HostError(f"{name} must be a whole number above 0, found {text!r}")
    return value


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise HostError(f"DFLOW_TIMEOUT must be a number of seconds, found {text!r}") from None
