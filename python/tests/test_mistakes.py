# ruff: noqa: E501
"""Typical mistakes of host scripts, and what is said of them, word by word.

``mistakes.txt`` beside this file holds each mistake, the line of the script and the message; the
index ``spec/mistakes.md`` shows it. ``UPDATE_SNAPSHOTS=1`` writes the file anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from conftest import MANY, SIZE, cslc

import dflow
from dflow.sdk.runtime import MemcpyDataType, MemcpyOrder, SdkRuntime

WRITTEN = Path(__file__).parent / "mistakes.txt"

OPTIONS = {
    "streaming": False,
    "data_type": MemcpyDataType.MEMCPY_32BIT,
    "order": MemcpyOrder.ROW_MAJOR,
    "nonblock": False,
}

# A mistake and the line that makes it. The program has 3 x 2 PEs; each has `numbers`, an array of
# 8 elements of type f32, and some functions.
RUNTIME = [
    ("nothing is loaded", "new.launch('double')"),
    ("a copy stands before run()", "loaded.memcpy_h2d(numbers, np.zeros(48, np.float32), 0, 0, 3, 2, 8, **options)"),
    ("run() stands before load()", "new.run()"),
    ("load() is called twice", "loaded.load()"),
    ("stop() stands before run()", "loaded.stop()"),
    ("a symbol is misspelt", "runner.get_id('number')"),
    ("a function is misspelt", "runner.launch('doubel')"),
    ("an array is launched", "runner.launch('numbers')"),
    ("a function gets too few arguments", "runner.launch('append')"),
    ("an argument has another type", "runner.launch('append', np.float32(1.5))"),
    ("an argument is too large", "runner.launch('mix', 70000, 0, 0, 0.0)"),
    ("a name stands for a symbol's id", "runner.memcpy_h2d('numbers', np.zeros(48, np.float32), 0, 0, 3, 2, 8, **options)"),
    ("an array has too few elements", "runner.memcpy_h2d(numbers, np.zeros(8, np.float32), 0, 0, 3, 2, 8, **options)"),
    ("an array has elements of 64 bits", "runner.memcpy_h2d(numbers, np.zeros(48), 0, 0, 3, 2, 8, **options)"),
    ("a list stands for an array", "runner.memcpy_h2d(numbers, [0.0] * 48, 0, 0, 3, 2, 8, **options)"),
    ("more elements are copied in than the PE has", "runner.memcpy_h2d(numbers, np.zeros(60, np.float32), 0, 0, 3, 2, 10, **options)"),
    ("a rectangle leaves the program", "runner.memcpy_h2d(numbers, np.zeros(64, np.float32), 0, 0, 4, 2, 8, **options)"),
    ("the data type has the wrong size", "runner.memcpy_h2d(numbers, np.zeros(48, np.uint32), 0, 0, 3, 2, 8, **{**options, 'data_type': MemcpyDataType.MEMCPY_16BIT})"),
    ("a keyword is missing", "runner.memcpy_h2d(numbers, np.zeros(48, np.float32), 0, 0, 3, 2)"),
    ("a keyword is misspelt", "runner.memcpy_h2d(numbers, np.zeros(48, np.float32), 0, 0, 3, 2, 8, non_block=True)"),
    ("a function's id stands for an array", "runner.memcpy_d2h(np.zeros(48, np.float32), runner.get_id('double'), 0, 0, 3, 2, 8, **options)"),
    ("a copy is taken for a result", "runner.memcpy_d2h(np.zeros(48, np.float32)[None].tolist(), numbers, 0, 0, 3, 2, 8, **options)"),
    ("a destination cannot be written", "runner.memcpy_d2h(frozen, numbers, 0, 0, 3, 2, 8, **options)"),
    ("a constant is written", "runner.memcpy_h2d(runner.get_id('table'), np.zeros(12, np.uint32), 0, 0, 3, 2, 2, **options)"),
    ("a variable is read that no PE has", "runner.read_symbol(4, 1, 'call')"),
    ("a copy of a color without streaming=True", "runner.memcpy_h2d(21, np.zeros(48, np.float32), 0, 0, 3, 2, 8, **options)"),
    ("the folder was never compiled", "SdkRuntime('no_such_folder')"),
    ("a source stands for the compiled folder", "SdkRuntime(source)"),
]

MACHINE = [
    ("an array has the wrong type", "machine.copy_in('numbers', np.zeros(8))"),
    ("an array has the wrong shape", "machine.copy_in('numbers', np.zeros((2, 2, 8), np.float32))"),
    ("more is copied out than there is", "machine.copy_out('numbers', count=9)"),
    ("numbers do not fit", "machine.copy_in('shorts', [70000])"),
    ("a name is misspelt", "machine.copy_out('number')"),
    ("an array is launched as a function", "machine.launch('numbers')"),
    ("a matrix cannot be shared", "machine.scatter('numbers', np.zeros((3, 3), np.float32))"),
    ("a file is not there", "dflow.compile('no_such.csl')"),
    ("a param is misspelt", "dflow.compile(source, {'width': 3, 'height': 2, 'sise': 8})"),
]


def said(code: str, names: dict) -> str:
    """Run a line that must fail and give what it says, without this machine's folders."""
    with pytest.raises(dflow.Error) as caught:
        eval(code, names)  # noqa: S307
    text = str(caught.value)
    for folder in (names["folder"], names["source"].parent):
        text = text.replace(str(folder), folder.name)
    text = re.sub(re.escape(os.getcwd()) + "/?", "", text)
    assert "Traceback" not in text and "internal" not in text
    return f"{type(caught.value).__name__}: {text}"


def test_mistakes_of_host_scripts_are_told_as_written(tmp_path: Path, many_program) -> None:
    folder = cslc("many", tmp_path / "out", **MANY)
    new, loaded, runner = (SdkRuntime(folder) for _ in range(3))
    loaded.load()
    runner.load()
    runner.run()
    frozen = np.zeros(6 * SIZE, np.float32)
    frozen.flags.writeable = False
    names = {
        "dflow": dflow,
        "np": np,
        "SdkRuntime": SdkRuntime,
        "MemcpyDataType": MemcpyDataType,
        "new": new,
        "loaded": loaded,
        "runner": runner,
        "numbers": runner.get_id("numbers"),
        "options": OPTIONS,
        "frozen": frozen,
        "folder": folder,
        "source": Path(__file__).parent / "programs" / "many" / "layout.csl",
    }
    blocks = []
    with dflow.Machine(many_program) as machine:
        names["machine"] = machine
        for mistake, code in [*RUNTIME, *MACHINE]:
            shown = code.replace(", **options", ", ...")
            if "**{**options, " in shown:
                shown = shown.replace("**{**options, ", "..., ").replace("})", ")")
            blocks.append(f"{mistake}\n{shown}\n{said(code, names)}\n")
        # None of them has harmed the run.
        machine.launch("append", 4)
        assert machine.copy_out("counts")[0, 0, 0] == 4
    runner.launch("append", np.uint32(7), nonblock=False)
    runner.stop()
    text = "\n".join(blocks)
    if os.environ.get("UPDATE_SNAPSHOTS", "0") not in ("", "0"):
        WRITTEN.write_text(text, encoding="utf-8")
    assert WRITTEN.read_text(encoding="utf-8") == text
