"""The commands of the package and the vendor-shaped modules."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from conftest import PROGRAMS, tool

from dflow.tools import python_path

IMPORTS = """
from cerebras.geometry.geometry import IntRectangle, IntVector
from cerebras.sdk import sdk_utils
from cerebras.sdk.debug.debug_util import debug_util
from cerebras.sdk.runtime.runtime_utils import convert_input_tensor
from cerebras.sdk.runtime.sdkruntimepybind import (
    MemcpyDataType, MemcpyOrder, SdkCompileArtifacts, SdkRuntime, SdkTarget, SimfabConfig,
    get_platform, get_simulator, get_system,
)
from cerebras.sdk.sdk_utils import calculate_cycles, input_array_to_u32, memcpy_view
import sys
print("arguments", *sys.argv[1:])
"""


def test_a_script_finds_the_vendors_names(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(IMPORTS)
    done = tool("cs_python", str(script), "--name", "out")
    assert done.stderr == ""
    assert done.stdout == "arguments --name out\n"
    failing = tool("cs_python", "-c", "raise SystemExit(7)")
    assert failing.returncode == 7


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("cerebras.sdk.client", "sdkruntimepybind"),
        ("cerebras.appliance.pb.sdk.sdk_common_pb2", "is an emulator"),
        ("cerebras.elf.cs_elf_runner", "SdkRuntime"),
    ],
)
def test_what_is_not_there_says_what_to_use(module: str, message: str) -> None:
    done = tool("cs_python", "-c", f"import {module}")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: cerebras.")
    assert message in done.stderr


def test_the_vendors_names_are_not_installed() -> None:
    code = "import importlib.util as u, dflow; print(u.find_spec('cerebras'))"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    done = tool("cs_python", "-c", code)
    assert "ModuleSpec" in done.stdout
    import importlib.util

    assert importlib.util.find_spec("cerebras") is None
    assert sys.modules.get("cerebras") is None


def test_the_path_keeps_what_it_had() -> None:
    first = python_path("")
    before = os.pathsep.join(["/mine", "/other"])
    entries = python_path(before).split(os.pathsep)
    assert entries[1:3] == ["/mine", "/other"]
    assert python_path(first) == first


def test_the_tools_are_the_native_ones(tmp_path: Path) -> None:
    help_text = tool("dflowc", "--help")
    assert help_text.returncode == 0
    assert "Usage: dflowc" in help_text.stdout
    done = tool(
        "dflowc",
        "check",
        str(PROGRAMS / "many" / "layout.csl"),
        "--set",
        "width=1",
        "--set",
        "height=1",
        "--set",
        "size=4",
    )
    assert done.returncode == 0, done.stderr
    wrong = tmp_path / "wrong.csl"
    wrong.write_text("layout { oops(); }\n")
    refused = tool("cslc", str(wrong))
    assert refused.returncode == 1
    assert "`oops`" in refused.stderr
