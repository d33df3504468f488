"""What cannot be carried out is a fault of the package, told at once and with its reason."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import MANY, PROGRAMS, SIZE, cslc, tool
from test_layout import SCALE, scale

import dflow
from dflow.layout import Layout
from dflow.sdk.debug import debug_util
from dflow.sdk.layout import SdkLayout
from dflow.sdk.platform import SdkTarget
from dflow.sdk.runtime import SdkRuntime

FLAG = """
const memcpy = @import_module("<memcpy/get_params>", .{ .width = 1, .height = 1 });
tile t {
  param memcpy_params: comptime_struct;
  const sys = @import_module("<memcpy/memcpy>", memcpy_params);
  var seen: u16 = 9; var is_on: bool = false;
  fn say(on: bool) void { seen = if (on) 1 else 0; is_on = on; sys.unblock_cmd_stream(); }
  fn stay() void { while (true) { seen += 1; } }
  comptime { @export_symbol(say); @export_symbol(stay); @export_symbol(is_on); }
}
layout {
  @set_rectangle(1, 1);
  @set_tile_code(0, 0, t, .{ .memcpy_params = memcpy.get_params(0) });
  @export_name("say", fn(bool)void);
  @export_name("is_on", bool, true);
  @export_name("stay", fn()void);
}
"""


@pytest.fixture
def flag(tmp_path: Path) -> dflow.Program:
    source = tmp_path / "flag.dfl"
    source.write_text(FLAG)
    return dflow.compile(source)


def started(folder: Path) -> SdkRuntime:
    runtime = SdkRuntime(folder, memcpy_required=False)
    runtime.load()
    runtime.run()
    return runtime


def test_no_source_is_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in (PROGRAMS / "many").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    program = dflow.compile("layout.csl", MANY)
    monkeypatch.chdir("/")
    for name in ("layout.csl", "pe.csl"):
        source = tmp_path / name
        text = source.read_bytes()
        with pytest.raises(dflow.HostError, match="the program was read from it"):
            program.save(source)
        assert source.read_bytes() == text
    with pytest.raises(dflow.HostError, match="its folder does not exist"):
        program.save(tmp_path / "no" / "program.dfi")
    program.save(tmp_path / "program.dfi")


def test_a_loaded_program_is_not_saved_over_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in (PROGRAMS / "many").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    params = "--params=" + ",".join(f"{name}:{value}" for name, value in MANY.items())
    done = tool("cslc", "layout.csl", params, "--memcpy", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    dflow.compile("layout.csl", MANY).save("program.dfi")
    (tmp_path / "link.dfi").symlink_to("pe.csl")
    monkeypatch.chdir("/")
    for loaded in ("out", "program.dfi"):
        program = dflow.Program.load(tmp_path / loaded)
        for name in ("layout.csl", "pe.csl", "link.dfi"):
            source = tmp_path / name
            text = source.read_bytes()
            with pytest.raises(dflow.HostError, match="a source of the program is called"):
                program.save(source)
            assert source.read_bytes() == text
        # Over itself it may be saved, and where no file is to lose.
        program.save(tmp_path / "program.dfi")
        program.save(tmp_path / "out" / "pe.csl")
        (tmp_path / "out" / "pe.csl").unlink()


def test_a_limit_says_what_was_going_on(flag: dflow.Program) -> None:
    machine = dflow.Machine(flag, max_cycles=7777)
    computes = r"flag\.dfl:\d+: computes"
    reached = r"the cycle limit of 7,777 was reached \(max_cycles\)"
    with pytest.raises(dflow.LimitReached, match=rf"{reached}; at the end\n.*{computes}"):
        machine.launch("stay")
    # Also when it is stopped.
    for _ in range(2):
        assert machine.waiting.startswith("the mesh still worked at cycle 7777; at the end\n")
        assert "flag.dfl:8: computes" in machine.waiting
        with pytest.raises(dflow.HostError, match=rf"ended already: {reached}$"):
            machine.launch("stay")
        machine.stop()
    machine = dflow.Machine(flag, seconds=0.2)
    reached = r"the time limit was reached at cycle [\d,]+ \(seconds\)"
    with pytest.raises(dflow.LimitReached, match=rf"{reached}; at the end\n.*{computes}"):
        machine.launch("stay")


def test_bools_are_true_or_false(flag: dflow.Program) -> None:
    assert flag.symbols["say"].types == ("bool",)
    assert flag.symbols["is_on"].dtype == np.bool_
    machine = dflow.Machine(flag)
    for value in (True, np.False_, 1, np.int64(0), np.bool_(True)):
        machine.launch("say", value)
    wanted = r"argument 1 of `say` is of type bool: expected True or False \(or 1 or 0\), found"
    for wrong in (2, -1, 256, 1.0, np.uint8(3), "true"):
        with pytest.raises(dflow.HostError, match=wanted):
            machine.launch("say", wrong)
    # What a script gives to the machine itself is looked at too.
    with pytest.raises(dflow.HostError, match="argument 1 of `say` is a bool: 2 is neither 0"):
        machine._native.launch(flag.symbols["say"].id, [2])
    machine.stop()
    assert machine.read_symbol(0, 0, "seen", np.uint16).tolist() == [1]
    is_on = machine.read_symbol(0, 0, "is_on")
    assert is_on.dtype == np.bool_ and is_on.tolist() == [True]
    assert machine.read_symbol(0, 0, "is_on", np.uint8).tolist() == [1]


def test_bools_of_untyped_calls_are_0_or_1(flag: dflow.Program, tmp_path: Path) -> None:
    done = tool("cslc", str(tmp_path / "flag.dfl"), "-o", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    runtime = started(tmp_path / "out")
    runtime.call("say", [1])
    with pytest.raises(dflow.HostError, match="argument 1 of `say` is of type bool: .* found 2"):
        runtime.call("say", [2])
    with pytest.raises(dflow.HostError, match="argument 1 of `say` is of type bool: .* found 2"):
        runtime.launch("say", 2)
    runtime.stop()
    seen = debug_util(tmp_path / "out").get_symbol(0, 0, "is_on", bool)
    assert seen.tolist() == [True]


def test_raw_arguments_have_the_bits_of_their_types(machine: dflow.Machine) -> None:
    mix = machine.program.symbols["mix"].id
    message = "argument 2 of `mix` is of type u16: 70000 has more than 16 bits"
    with pytest.raises(dflow.HostError, match=message):
        machine._native.launch(mix, [0, 70000, 0, 0])
    message = "argument 3 of `mix` is of type u32: 4294967296 has more than 32 bits"
    with pytest.raises(dflow.HostError, match=message):
        machine._native.launch(mix, [0, 0, 1 << 32, 0])


def test_numbers_must_fit(machine: dflow.Machine) -> None:
    with pytest.raises(dflow.HostError, match="not all of the given values are such numbers"):
        machine.copy_in("numbers", [1e300] * SIZE)
    with pytest.raises(dflow.HostError, match="not all of the given values are such numbers"):
        machine.copy_in("halves", [1e5] * SIZE)
    machine.copy_in("numbers", [float("inf"), float("nan")])
    assert np.isinf(machine.copy_out("numbers")[0, 0, 0])


def test_each_fault_is_the_packages(machine: dflow.Machine) -> None:
    ones = np.ones(SIZE, np.float32)
    refused = [
        # Nobody makes an array for so many PEs first.
        ("leaves the program", lambda: machine.copy_in("numbers", ones, (0, 0, 1 << 31, 1 << 31))),
        ("0 to 4294967295", lambda: machine.copy_in("numbers", ones, (0, 0, 1 << 70, 1))),
        ("a color is a whole number", lambda: machine.stream_in("MEMCPYH2D_1", ones)),
        ("-1 is no color: colors are 0 to 23", lambda: machine.stream_out(-1)),
        ("an array, or numbers", lambda: machine.copy_in("numbers", [[1.0], [1.0, 2.0]])),
        ("a dtype of numbers", lambda: machine.copy_out("numbers", dtype="no such")),
        ("a dtype of numbers", lambda: machine.copy_out("numbers", dtype=object)),
    ]
    for message, request in refused:
        with pytest.raises(dflow.HostError, match=message):
            request()


def test_a_region_is_looked_at_before_its_array(many_folder: Path) -> None:
    runtime = started(many_folder)
    numbers, ones = runtime.get_id("numbers"), np.ones(SIZE, np.float32)
    side = 1 << 31
    for call in (
        lambda: runtime.memcpy_h2d(numbers, ones, 0, 0, side, side, side),
        lambda: runtime.memcpy_d2h(ones, numbers, 0, 0, side, side, side),
    ):
        with pytest.raises(dflow.HostError, match="must lie inside the program's 3 x 2 PEs"):
            call()
    with pytest.raises(dflow.HostError, match=f"3 x 2 x {side}|2 x 3 x {side}"):
        runtime.memcpy_h2d(numbers, ones, 0, 0, 3, 2, side)
    runtime.stop()


def test_statistics_need_a_folder(
    many_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DFLOW_STATS_FILE", str(tmp_path / "no" / "stats"))
    with pytest.raises(dflow.HostError, match="DFLOW_STATS_FILE: .* its folder does not exist"):
        started(many_folder)


def test_commands_after_a_trap_and_of_others(many_folder: Path) -> None:
    runtime, other = started(many_folder), started(many_folder)
    before = runtime.launch("double", nonblock=True)
    task = runtime.launch("wrong", np.uint16(13000), nonblock=True)
    after = runtime.launch("double", nonblock=True)
    with pytest.raises(dflow.HostError, match="launch of `double` is a command of another"):
        other.task_wait(before)
    with pytest.raises(dflow.Trap):
        runtime.is_task_done(task)
    runtime.task_wait(before)
    for wait in (runtime.is_task_done, runtime.task_wait, runtime.task_wait):
        for one in (task, after):
            with pytest.raises(dflow.HostError, match="the run has ended already"):
                wait(one)
    other.stop()


def test_a_core_goes_where_it_is_told(many_folder: Path, tmp_path: Path, capsys) -> None:
    runtime = started(many_folder)
    runtime.stop()
    with pytest.raises(dflow.HostError, match="its folder does not exist"):
        runtime.dump_core(tmp_path / "no" / "core")
    assert not (tmp_path / "no").exists()
    kept, link, pipe = tmp_path / "kept", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(kept)
    runtime.dump_core(link)
    # What the path leads to is named.
    assert f"{kept} holds the machine's memory" in capsys.readouterr().err
    assert link.is_symlink()
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        runtime.dump_core(pipe)
        assert reader.communicate()[0] == kept.read_bytes()
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    found = debug_util(kept)
    for place, message in (
        ((-1, 1), "is no PE of the program"),
        ((1 << 40, 1), "is no PE of the program"),
        ((1 << 70, 1), "which is too large"),
        (("4", 1), "a column must be an integer"),
    ):
        with pytest.raises(dflow.HostError, match=message):
            found.get_symbol(*place, "calls", "uint16")
        with pytest.raises(dflow.HostError, match=message):
            found.read_trace(*place, "key")


def test_a_folder_that_is_gone_keeps_no_state(tmp_path: Path, capsys) -> None:
    folder = cslc("many", tmp_path / "out", **MANY)
    runtime = started(folder)
    folder.rename(tmp_path / "elsewhere")
    runtime.stop()
    assert "out is gone" in capsys.readouterr().err
    assert not folder.exists()


def test_what_another_layout_made_is_refused() -> None:
    layout, other = SdkLayout(SdkTarget.WSE3), SdkLayout(SdkTarget.WSE3)
    _, first, last = scale(layout, "a", (1, 1))
    region, their_first, _ = scale(other, "b", (1, 1))
    refused = [
        (r"port `b_rx` is of another layout", lambda: layout.create_input_stream(their_first)),
        (r"port `a_tx` is of another layout", lambda: other.create_output_stream(last)),
        (r"port `b_rx` is of another layout", lambda: layout.connect(last, their_first)),
        (r"region `b` is of another layout", lambda: layout.hstack([region])),
        (
            r"color `rx` is of another layout",
            lambda: layout.create_code_region(SCALE, "c", 1, 1).set_param_all(region.color("rx")),
        ),
    ]
    for message, request in refused:
        with pytest.raises(dflow.HostError, match=message):
            request()
    layout.create_input_stream(first)
    layout.create_output_stream(last)


def test_layouts_know_what_numbers_and_names_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, far = Layout("wse3"), 1 << 70
    region = layout.region("a", SCALE, 1, 1)
    refused = [
        ("a region of -1 x 1 PEs", lambda: layout.region("b", SCALE, -1, 1)),
        (f"{far}, which is too large", lambda: layout.region("b", SCALE, far, 1)),
        ("which is too large", lambda: region.place(far, 0)),
        ("which is too large", lambda: region.set((far, 0, 1, 1), size=1)),
        ("which is too large", lambda: region.set(size=1 << 200)),
        ("a place is", lambda: layout.stack([region], True, (1, 2, 3))),
        ("a side of the mesh is", lambda: Layout("wse3", (far, 1))),
        ("has no name", lambda: layout.compile("")),
    ]
    monkeypatch.chdir(tmp_path)
    for message, request in refused:
        with pytest.raises(dflow.HostError, match=message):
            request()
    assert not list(tmp_path.iterdir())
    missing = Layout("wse3")
    missing.region("a", "no.csl", 1, 1)
    with pytest.raises(dflow.CompileError, match="a path is relative to the current folder"):
        missing.compile(tmp_path / "out")


def test_a_deadlock_names_the_stream(tmp_path: Path) -> None:
    layout = SdkLayout(SdkTarget.WSE3)
    _, first, last = scale(layout, "a", (2, 2))
    source = layout.create_input_stream(first, io_buffer_size=64)
    sink = layout.create_output_stream(last, io_buffer_size=0)
    folder = Path(layout.compile(str(tmp_path / "out")))
    runtime = started(folder)
    waits = rf"its words for the stream `{source}` have entered the mesh: \d+ have not, and its"
    with pytest.raises(dflow.Deadlock, match=waits):
        runtime.send(source, np.ones(256, np.float32))
    runtime = started(folder)
    runtime.receive(sink, np.zeros(17, np.float32), 17, nonblock=True)
    runtime.send(source, np.ones(16, np.float32), nonblock=True)
    with pytest.raises(dflow.Deadlock, match=f"waits for 1 more word of the stream `{sink}`"):
        runtime.stop()


def test_a_fault_of_the_package_is_an_error(
    flag: dflow.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DFLOW_PANIC", "mesh")
    for threads in (1, 2):
        machine = dflow.Machine(flag, threads=threads, seconds=60)
        told = r"internal-error: .*a test panics here.*please report this"
        with pytest.raises(dflow.Error, match=told) as raised:
            machine.launch("stay")
        assert type(raised.value) is dflow.Error
