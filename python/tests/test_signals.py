"""The interpreter is free while the mesh runs, and Ctrl-C ends a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import dflow
from dflow.sdk.runtime import SdkRuntime

# A process that is started in the background ignores interrupts unless it says otherwise.
SPIN = """
import signal
import sys
from dflow.sdk.runtime import SdkRuntime
signal.signal(signal.SIGINT, signal.default_int_handler)
runner = SdkRuntime(sys.argv[1])
runner.load()
runner.run()
print("ready", flush=True)
try:
    runner.launch("spin", nonblock=False)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    runner.stop()
    print("stopped", flush=True)
"""


def test_other_threads_go_on(many_program: dflow.Program) -> None:
    counted, done = [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            counted[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    machine = dflow.Machine(many_program, seconds=0.5)
    thread.start()
    before = counted[0]
    with pytest.raises(dflow.LimitReached):
        machine.launch("spin")
    during = counted[0] - before
    done.set()
    thread.join()
    assert during > 5


def test_two_threads_take_turns(many_program: dflow.Program) -> None:
    machine = dflow.Machine(many_program)
    faults: list[BaseException] = []

    def append(digit: int) -> None:
        try:
            for _ in range(3):
                machine.launch("append", digit)
        except BaseException as fault:  # noqa: BLE001
            faults.append(fault)

    threads = [threading.Thread(target=append, args=(digit,)) for digit in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    digits = str(machine.copy_out("counts")[0, 0, 0])
    assert sorted(digits) == ["1", "1", "1", "2", "2", "2"]


@pytest.mark.skipif(os.name != "posix", reason="signals are sent the POSIX way")
def test_an_interrupt_ends_the_run(many_folder: Path) -> None:
    command = [sys.executable, "-c", SPIN, str(many_folder)]
    environment = {**os.environ, "DFLOW_TIMEOUT": "60"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert time.monotonic() - sent < 10
        assert process.stdout.readline() == "stopped\n"
    assert process.returncode == 0


ENDLESS = """
param n: u32;
layout { @set_rectangle(1, 1); var i: u32 = 0; while (true) { i = n; } }
"""

# As a console script that a terminal starts.
COMPILE = """
import signal
import sys
from dflow.tools import cslc
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["cslc", sys.argv[1], "--params=n:1", "-o", sys.argv[2]]
print("ready", flush=True)
sys.exit(cslc())
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are sent the POSIX way")
def test_an_interrupt_ends_the_compiler(tmp_path: Path) -> None:
    source, folder = tmp_path / "endless.csl", tmp_path / "out"
    source.write_text(ENDLESS)
    command = [sys.executable, "-c", COMPILE, str(source), str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
        assert time.monotonic() - sent < 5
    assert process.returncode == 130
    assert said == "cslc: interrupted; nothing was written\n"
    assert not folder.exists()


# The same in a script's own compiler.
SCRIPT = """
import signal
import sys
import dflow
signal.signal(signal.SIGINT, signal.default_int_handler)
print("ready", flush=True)
try:
    dflow.compile(sys.argv[1], {"n": 1})
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are sent the POSIX way")
def test_an_interrupt_ends_a_compilation(tmp_path: Path) -> None:
    source = tmp_path / "endless.csl"
    source.write_text(ENDLESS)
    command = [sys.executable, "-c", SCRIPT, str(source)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert time.monotonic() - sent < 2
    assert process.returncode == 0


def test_the_time_limit_holds_while_a_machine_is_made(many_program: dflow.Program) -> None:
    with pytest.raises(dflow.LimitReached, match=r"limit was reached at cycle 0 \(seconds\)"):
        dflow.Machine(many_program, seconds=0)


def test_the_time_limit_of_the_environment(
    many_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DFLOW_TIMEOUT", "0.2")
    runner = SdkRuntime(many_folder)
    runner.load()
    runner.run()
    with pytest.raises(dflow.LimitReached, match="time limit"):
        runner.launch("spin")
