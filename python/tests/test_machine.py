"""The package's own interface: programs and machines."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from conftest import MANY, PROGRAMS, SIZE, cslc

import dflow


def numbers(rows: int = 2, columns: int = 3) -> np.ndarray:
    return np.arange(rows * columns * SIZE, dtype=np.float32).reshape(rows, columns, SIZE)


def test_a_program_says_what_it_is(many_program: dflow.Program) -> None:
    assert many_program.size == (3, 2)
    assert many_program.target == "wse2"
    assert many_program.params["size"] == "8"
    assert str(many_program.symbols["mix"]) == "mix: fn(i16, u16, u32, f32)"
    assert str(many_program.symbols["table"]) == "table: const [*]u32"
    assert many_program.symbols["halves"].dtype == np.float16
    assert repr(many_program) == "<dflow.Program of 3 x 2 PEs, wse2>"


def test_what_does_not_compile_is_reported(tmp_path: Path) -> None:
    with pytest.raises(dflow.CompileError, match=r"nothing\.csl: no such file"):
        dflow.compile(tmp_path / "nothing.csl")
    wrong = tmp_path / "wrong.csl"
    wrong.write_text("layout { @set_rectangle(1, oops); }\n")
    with pytest.raises(dflow.CompileError) as caught:
        dflow.compile(wrong)
    assert "unknown-name" in caught.value.report
    assert "`oops`" in str(caught.value)
    with pytest.raises(dflow.HostError, match="`wse9` is no target"):
        dflow.compile(wrong, target="wse9")
    with pytest.raises(dflow.CompileError, match="size"):
        dflow.compile(PROGRAMS / "many" / "layout.csl", {**MANY, "size": "many"})


def test_imports_and_releases(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "sizes.csl").write_text("const rows = 3;\n")
    (tmp_path / "idle.csl").write_text("comptime {}\n")
    layout = tmp_path / "layout.csl"
    layout.write_text("""
        const sizes = @import_module("sizes.csl");
        layout {
          @set_rectangle(1, sizes.rows);
          for (@range(u16, sizes.rows)) |y| { @set_tile_code(0, y, "idle.csl", .{}); }
        }
    """)
    with pytest.raises(dflow.CompileError, match=r"sizes\.csl"):
        dflow.compile(layout)
    program = dflow.compile(layout, import_paths=[tmp_path / "shared"], sdk_version="1.4")
    assert program.size == (1, 3)
    with pytest.raises(dflow.HostError, match="`new` is no version of the SDK"):
        dflow.compile(layout, sdk_version="new")


def test_a_program_is_kept_and_opened(many_program: dflow.Program, tmp_path: Path) -> None:
    path = tmp_path / "program.dfi"
    many_program.save(path)
    assert dflow.Program.load(path).symbols == many_program.symbols
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(dflow.HostError, match=r"program\.dfi.*damaged"):
        dflow.Program.load(path)
    with pytest.raises(dflow.HostError, match=r"no such file"):
        dflow.Program.load(tmp_path / "other.dfi")
    with pytest.raises(dflow.HostError, match="compile with `cslc -o"):
        dflow.Machine(tmp_path)


def test_a_folder_is_opened_with_its_place(tmp_path: Path) -> None:
    folder = cslc("many", tmp_path / "out", **MANY)
    program = dflow.Program.load(folder)
    assert program.offsets == (4, 1)
    assert program.params == {name: str(value) for name, value in MANY.items()}


def test_elements_go_in_and_come_out(machine: dflow.Machine) -> None:
    values = numbers()
    machine.copy_in("numbers", values)
    machine.launch("double")
    assert np.array_equal(machine.copy_out("numbers", count=SIZE), 2 * values)
    part = machine.copy_out("numbers", (1, 1, 2, 1), 3)
    assert np.array_equal(part, 2 * values[1:, 1:, :3])
    machine.copy_in("halves", np.float16([1.5, -2]))
    assert np.array_equal(machine.copy_out("halves", count=2)[1, 2], np.float16([1.5, -2]))
    machine.copy_in("shorts", [[[1], [2]]], (0, 1, 2, 1))
    assert machine.copy_out("shorts").tolist() == [[[0], [0], [0]], [[1], [2], [0]]]
    assert machine.copy_out("table", count=2).tolist() == [[[77, 77]] * 3] * 2
    words = machine.copy_out("numbers", count=1, dtype=np.uint32)
    assert words[0, 1, 0] == np.float32(16).view(np.uint32)
    for dtype in (">f4", "<f4"):
        same = machine.copy_out("numbers", count=SIZE, dtype=dtype)
        assert same.dtype == dtype and np.array_equal(same, 2 * values)


def test_matrices_are_shared_and_put_together(machine: dflow.Machine) -> None:
    field = np.arange(4 * 12, dtype=np.uint32).reshape(4, 12)
    machine.scatter("counts", field)
    assert machine.copy_out("counts", count=8)[1, 2].tolist() == field[2:, 8:].ravel().tolist()
    assert np.array_equal(machine.gather("counts", (2, 4)), field)
    with pytest.raises(dflow.HostError, match=r"shape \(3, 3\) cannot be shared by 2 rows of 3"):
        machine.scatter("counts", np.zeros((3, 3), np.uint32))


def test_requests_are_checked(machine: dflow.Machine) -> None:
    refused = [
        ("nothing is exported as `x`", lambda: machine.copy_in("x", numbers())),
        ("`double` is a function, not a pointer", lambda: machine.copy_in("double", [1.0])),
        ("`counts` is a pointer, not a function", lambda: machine.launch("counts")),
        (
            "expected an array of float32, found float64",
            lambda: machine.copy_in("numbers", numbers().astype(np.float64)),
        ),
        (
            "not all of the given values are such numbers",
            lambda: machine.copy_in("shorts", [40000]),
        ),
        ("not all of the given values are such numbers", lambda: machine.copy_in("counts", [0.5])),
        (r"expected \(2, 3, elements per PE\)", lambda: machine.copy_in("numbers", numbers(3, 2))),
        ("exported as constant", lambda: machine.copy_in("table", [1])),
        ("leaves the program", lambda: machine.copy_out("numbers", (2, 0, 2, 1))),
        (
            "expected a dtype of 4 bytes, found float64",
            lambda: machine.copy_out("numbers", dtype=np.float64),
        ),
        *(
            ("a dtype of numbers is needed", partial(machine.copy_out, "numbers", dtype=dtype))
            for dtype in ("S4", "V4", "2i2", [("a", "i2"), ("b", "i2")])
        ),
        (
            "points to 8 elements, the host asks for 9",
            lambda: machine.copy_out("counts", count=9),
        ),
        ("is no stream", lambda: machine.stream_in(5, np.zeros(6, np.float32))),
        ("elements of 16 or 32 bits", lambda: machine.stream_in(5, np.zeros(6))),
        ("200 is no color", lambda: machine.stream_out(200)),
        (
            "memory can be read when the machine is stopped",
            lambda: machine.read_symbol(0, 0, "calls"),
        ),
    ]
    for message, request in refused:
        with pytest.raises(dflow.HostError, match=message):
            request()
    # None of them has done any harm.
    machine.launch("double")


def test_arguments_of_a_wrong_type_are_told_as_python_does(
    many_program: dflow.Program, machine: dflow.Machine
) -> None:
    source = PROGRAMS / "many" / "layout.csl"
    wrong = [
        lambda: dflow.Machine(many_program, engine=5),
        lambda: dflow.Machine(many_program, code=None),
        lambda: dflow.Machine(many_program, seconds="x"),
        lambda: dflow.compile(5),
        lambda: dflow.compile(source, MANY, import_paths=[5]),
        lambda: machine.copy_out(["a"]),
    ]
    for request in wrong:
        with pytest.raises(TypeError):
            request()
    # The type is right, and the value is none that there is.
    with pytest.raises(dflow.HostError, match="is no engine"):
        dflow.Machine(many_program, engine="swift")
    with pytest.raises(dflow.HostError, match="nothing is exported"):
        machine.copy_out("nowhere")


def test_arguments_have_the_parameters_types(machine: dflow.Machine) -> None:
    machine.launch("mix", np.int16(-3), np.uint16(65535), np.uint32(1 << 31), np.float32(0.5))
    assert machine.copy_out("shorts", count=2)[1, 1].tolist() == [-3, -1]
    machine.launch("mix", -4, 7, 9, 2)
    assert machine.copy_out("numbers")[0, 0, 0] == 2.0
    machine.launch("half", 0.1)
    assert machine.copy_out("halves")[0, 0, 0] == np.float16(0.1)
    refused = [
        ((1, 2, 3), r"`mix` takes 4 arguments \(i16, u16, u32, f32\), found 3"),
        (
            (np.int32(1), 2, 3, 4.0),
            "argument 1 of `mix` is of type i16: expected numpy.int16 or "
            "a plain int, found numpy.int32",
        ),
        ((1.0, 2, 3, 4.0), "argument 1 of `mix` is of type i16"),
        ((40000, 2, 3, 4.0), "40000 is outside -32768 to 32767"),
        ((1, -1, 3, 4.0), "argument 2 of `mix` is of type u16: -1 is outside 0 to 65535"),
        ((1, 2, True, 4.0), "argument 3 of `mix` is of type u32"),
        (
            (1, 2, 3, "4"),
            "argument 4 of `mix` is of type f32: expected numpy.float32 or a plain "
            "number, found str",
        ),
        ((1, 2, 3, 1e300), "too large"),
    ]
    for args, message in refused:
        with pytest.raises(dflow.HostError, match=message):
            machine.launch("mix", *args)


def test_a_hang_is_reported(many_program: dflow.Program) -> None:
    machine = dflow.Machine(many_program)
    with pytest.raises(dflow.Deadlock) as caught:
        machine.launch("silent")
    assert caught.value.report
    assert str(caught.value).startswith("deadlock: ")
    assert isinstance(caught.value, RuntimeError)
    with pytest.raises(dflow.HostError, match="the run has ended already"):
        machine.launch("double")
    machine.stop()
    assert machine.read_symbol(0, 0, "calls", np.uint16).tolist() == [1]


def test_a_trap_names_its_place(many_program: dflow.Program) -> None:
    machine = dflow.Machine(many_program)
    with pytest.raises(dflow.Trap, match=r"pe\.csl:\d+:\d+: .* PE \(\d, \d\)"):
        machine.launch("wrong", 13000)


def test_limits_end_a_run(many_program: dflow.Program) -> None:
    with pytest.raises(dflow.LimitReached, match="cycle limit"):
        dflow.Machine(many_program, max_cycles=20_000).launch("spin")
    with pytest.raises(dflow.LimitReached, match="time limit"):
        dflow.Machine(many_program, seconds=0.2).launch("spin")
    with pytest.raises(dflow.HostError, match="`slow` is no engine"):
        dflow.Machine(many_program, engine="slow")
    with pytest.raises(dflow.HostError, match="`asm` runs no code"):
        dflow.Machine(many_program, code="asm")
    with pytest.raises(dflow.HostError, match="-1 is no number of seconds"):
        dflow.Machine(many_program, seconds=-1)


def test_engines_and_threads_agree(many_program: dflow.Program) -> None:
    results = []
    for options in (
        {"threads": 1},
        {"threads": 2},
        {"engine": "step"},
        {"code": "interpreter"},
    ):
        with dflow.Machine(many_program, **options) as machine:
            machine.copy_in("numbers", numbers())
            machine.launch("double")
            results.append(
                (
                    machine.copy_out("numbers", count=8).tobytes(),
                    machine.cycles,
                    machine.stats.wavelets,
                    machine.stats.tasks,
                )
            )
    assert len(set(results)) == 1
    assert results[0][1] > 0


def test_seconds_say_what_they_rest_on(many_program: dflow.Program) -> None:
    assert (many_program.clock_hz, many_program.clock_assumed) == (850_000_000, True)
    with dflow.Machine(many_program) as machine:
        assert (machine.seconds, machine.assumed_share) == (0.0, 0.0)
        machine.launch("double")
        assert machine.seconds == machine.cycles / 850_000_000
        stats = machine.stats
        # A task's start takes two cycles, which are charged beside issue slots.
        assert stats.charged_cycles == stats.slots + 2 * stats.tasks
        assert machine.assumed_share == stats.assumed_cycles / stats.charged_cycles
        assert 0.0 < machine.assumed_share < 1.0
        if many_program.target == "wse2":
            assert stats.assumed_cycles >= 2 * stats.tasks


def test_what_goes_on_after_the_last_answer_is_done(many_program: dflow.Program) -> None:
    with dflow.Machine(many_program) as machine:
        machine.launch("later")
    assert machine.read_symbol(2, 1, "calls", np.uint16).tolist() == [100]
    assert machine.read_symbol(2, 1, "mine", np.uint16).tolist() == [5]
    assert machine.read_symbol(2, 1, "mine", ">u2").tolist() == [5]
    assert machine.read_symbol(2, 1, "numbers").size == 4 * SIZE
    with pytest.raises(dflow.HostError, match=r"PE \(2, 1\) has no variable `no`; it has .*calls"):
        machine.read_symbol(2, 1, "no")
    with pytest.raises(dflow.HostError, match="whole number of uint32 elements"):
        machine.read_symbol(2, 1, "calls", np.uint32)
    with pytest.raises(dflow.HostError, match="the machine is stopped"):
        machine.launch("double")
    machine.stop()


def test_words_are_streamed(echo) -> None:
    with dflow.Machine(echo(5)) as machine:
        words = np.linspace(1, 2, 10, dtype=np.float32)
        machine.stream_in(1, words)
        back = machine.stream_out(2, count=5, dtype=">f4")
    assert np.array_equal(back.ravel(), -words)


def test_a_name_that_several_variables_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "left.csl").write_text("param k: u16; var n: u16 = k;\n")
    (tmp_path / "right.csl").write_text("var n: u16 = 2;\n")
    source = tmp_path / "several.dfl"
    source.write_text("""
        const memcpy = @import_module("<memcpy/get_params>", .{ .width = 1, .height = 1 });
        tile pe {
          param memcpy_params: comptime_struct;
          const sys = @import_module("<memcpy/memcpy>", memcpy_params);
          const one = @import_module("left.csl", .{ .k = 1 });
          const other = @import_module("left.csl", .{ .k = 3 });
          const right = @import_module("right.csl");
          fn go() void {
            one.n += 10;
            right.n += 10;
            other.n += 10;
            sys.unblock_cmd_stream();
          }
          comptime { @export_symbol(go); }
        }
        layout {
          @set_rectangle(1, 1);
          @set_tile_code(0, 0, pe, .{ .memcpy_params = memcpy.get_params(0) });
          @export_name("go", fn()void);
        }
    """)
    with dflow.Machine(dflow.compile(source)) as machine:
        machine.launch("go")
    assert machine.read_symbol(0, 0, "right.n", np.uint16).tolist() == [12]
    with pytest.raises(dflow.HostError, match=r"3 variables `n`: `left\.n`, `left\.n`, `right\.n`"):
        machine.read_symbol(0, 0, "n")
    with pytest.raises(dflow.HostError, match=r"2 variables `left\.n`: those of a module"):
        machine.read_symbol(0, 0, "left.n")


def test_timestamps_are_numbers() -> None:
    assert dflow.timestamps(np.uint16([1, 2, 0])) == 0x20001
    several = dflow.timestamps(np.int16([[-1, 0, 0, 0, 0, 1]]))
    assert several.tolist() == [[0xFFFF, 1 << 32]]
    for words, match in [([1, 2], "three words"), (np.zeros(4, np.uint16), "three words")]:
        with pytest.raises(dflow.HostError, match=match):
            dflow.timestamps(words)
    with pytest.raises(dflow.HostError, match="whole numbers"):
        dflow.timestamps(["a", "b", "c"])


ODD = """
const memcpy = @import_module("<memcpy/get_params>", .{ .width = 1, .height = 1 });
tile pe {
  param memcpy_params: comptime_struct;
  const sys = @import_module("<memcpy/memcpy>", memcpy_params);
  var a: [4]u32;
  var b = [1]u32{ 1 };
  const never = @get_dsd(fabin_dsd, .{
    .fabric_color = @get_color(3), .extent = 1, .input_queue = @get_input_queue(3) });
  const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> a[i] });
  fn go() void {
    @mov32(@get_dsd(mem1d_dsd, .{ .base_address = &a, .extent = 5 }), 7);
    @mov32(d, never, .{ .async = true });
    @assert(b[0] == 7);
    sys.unblock_cmd_stream();
  }
  comptime { @export_symbol(go); }
}
layout {
  @set_rectangle(1, 1);
  @set_tile_code(0, 0, pe, .{ .memcpy_params = memcpy.get_params(0) });
  @set_color_config(0, 0, @get_color(3), .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} } });
  @export_name("go", fn()void);
}
"""


def test_what_is_odd_and_left_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "odd.dfl"
    path.write_text(ODD)
    program = dflow.compile(path)
    machine = dflow.Machine(program)
    machine.launch("go")
    with pytest.warns(dflow.ProgramWarning, match=r"odd\.dfl:12: .* past the end of `a`") as told:
        machine.stop()
    assert told[0].filename == __file__
    error = capfd.readouterr().err
    assert "note: at the end, PE (0, 0) of `pe`" in error
    assert "waits for a word on color 3" in error
    machine.stop()
    assert capfd.readouterr().err == ""
    with pytest.raises(dflow.Trap, match="past the end of `a`"):
        dflow.Machine(program, strict=True).launch("go")
    monkeypatch.setenv("DFLOW_STRICT", "1")
    with pytest.raises(dflow.Trap, match="past the end of `a`"):
        dflow.Machine(program).launch("go")


INDEX = ODD.replace("@mov32(d, never, .{ .async = true });", "for (@range(i16, 5)) |i| { a[i] = 1; }")


def test_indices_are_looked_at_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index.dfl"
    path.write_text(INDEX)
    outside = "index 4 is outside an array of 4 elements"
    with pytest.raises(dflow.Trap, match=outside):
        dflow.Machine(dflow.compile(path, check_bounds=True)).launch("go")
    monkeypatch.setenv("DFLOW_CHECK_BOUNDS", "1")
    with pytest.raises(dflow.Trap, match=outside):
        dflow.Machine(dflow.compile(path)).launch("go")
    with pytest.raises(dflow.Trap, match="assertion failed"):
        dflow.Machine(dflow.compile(path, check_bounds=False)).launch("go")
