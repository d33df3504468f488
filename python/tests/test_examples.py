"""Python scripts among the examples run as they stand, without their plots."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("compress", r"bound 0\.0001: ratio \d+\.\d+, largest error \S+"),
        ("mean", r" +auto  256 elements: \d+ cycles"),
        ("reservoir", r" +jacobi: \d+ iterations in \d+ cycles, pressure 0\.000 to 1\.000"),
    ],
)
def test_an_example(name: str, last: str) -> None:
    commands = Path(sys.executable).parent
    where = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ.get('PATH', '')}"}
    script = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(script, capture_output=True, text=True, check=False, env=where)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(last, done.stdout.splitlines()[-1]), done.stdout
