"""Programs for the tests, compiled once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dflow
from dflow.sdk.runtime import SdkRuntime

PROGRAMS = Path(__file__).parent / "programs"
SIZE = 8
MANY = {"width": 3, "height": 2, "size": SIZE}


def tool(name: str, *args: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run one of the package's commands in a process of its own."""
    code = f"import sys; from dflow.tools import {name}; sys.exit({name}())"
    command = [sys.executable, "-c", code, *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def cslc(
    program: str, out: Path, target: str = "wse2", flags: tuple[str, ...] = (), **params: int
) -> Path:
    """Compile one of our programs as host scripts do."""
    given = ",".join(f"{name}:{value}" for name, value in params.items())
    args = [f"--arch={target}", "--fabric-dims=12,6", "--fabric-offsets=4,1", "--memcpy"]
    args += [f"--params={given}"] if given else []
    source = PROGRAMS / program / "layout.csl"
    done = tool("cslc", *args, *flags, "--channels=1", str(source), "-o", str(out))
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="session")
def many_program() -> dflow.Program:
    """The program with something for each call, 3 x 2 PEs."""
    return dflow.compile(PROGRAMS / "many" / "layout.csl", MANY)


@pytest.fixture
def machine(many_program: dflow.Program) -> Iterator[dflow.Machine]:
    """A machine that runs it."""
    with dflow.Machine(many_program) as made:
        yield made


@pytest.fixture(scope="session", params=["wse2", "wse3"])
def many_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the same program, for both targets."""
    return cslc("many", tmp_path_factory.mktemp("many") / "out", request.param, **MANY)


@pytest.fixture
def runtime(many_folder: Path) -> SdkRuntime:
    """A runtime of that folder that runs."""
    made = SdkRuntime(many_folder)
    made.load()
    made.run()
    return made


@pytest.fixture(scope="session")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """A maker of folders of the program that sends back what it is sent, negated."""
    made: dict[int, Path] = {}

    def make(count: int) -> Path:
        if count not in made:
            made[count] = cslc("echo", tmp_path_factory.mktemp("echo") / "out", count=count)
        return made[count]

    return make
