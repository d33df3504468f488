"""Layouts built in Python: the package's own names and the vendor-shaped ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dflow
from dflow.layout import Edge, Layout, Position, Route
from dflow.sdk.geometry import IntRectangle, IntVector
from dflow.sdk.layout import (
    FP16TYPE,
    Color,
    RoutingPosition,
    SdkLayout,
    get_edge_routing,
)
from dflow.sdk.platform import SdkTarget, SimfabConfig, get_platform
from dflow.sdk.runtime import SdkRuntime

SOURCES = Path(__file__).parent / "programs" / "layout"
SCALE = str(SOURCES / "scale.csl")
KEEP = str(SOURCES / "keep.csl")
TARGETS = [SdkTarget.WSE2, SdkTarget.WSE3]
IN = RoutingPosition().set_output([Route.RAMP])
OUT = RoutingPosition().set_input([Route.RAMP])


@pytest.fixture(params=TARGETS, ids=lambda target: target.value)
def layout(request: pytest.FixtureRequest) -> SdkLayout:
    return SdkLayout(get_platform(None, SimfabConfig(), request.param))


def scale(layout: SdkLayout, name: str, place: tuple[int, int], factor: float = 2.0, size: int = 8):
    """Add a region that scales what comes from the left and goes to the right."""
    region = layout.create_code_region(SCALE, name, 1, 1)
    rx, tx = region.color("rx"), region.color("tx")
    region.set_param_all("size", size)
    region.set_param_all("factor", factor)
    region.set_param_all(rx)
    region.set_param_all("tx", tx)
    region.place(*place)
    first = region.create_input_port(rx, Edge.LEFT, [IN], size)
    last = region.create_output_port(tx, Edge.RIGHT, [OUT], size)
    return region, first, last


def start(layout: SdkLayout, folder: Path) -> SdkRuntime:
    runtime = SdkRuntime(layout.compile(str(folder)), memcpy_required=False)
    runtime.load()
    runtime.run()
    return runtime


def test_a_chain_of_regions(layout: SdkLayout, tmp_path: Path) -> None:
    _, first, between = scale(layout, "a", (4, 1))
    _, next_, last = scale(layout, "b", (2, 5), factor=0.5)
    layout.connect(between, next_)
    source = layout.create_input_stream(first)
    sink = layout.create_output_stream(last)
    runtime = start(layout, tmp_path / "out")
    words = np.arange(16, dtype=np.float32)
    results = np.zeros(16, np.float32)
    runtime.send(source, words, nonblock=True)
    runtime.receive(sink, results, 16, nonblock=True)
    runtime.stop()
    assert np.array_equal(results, words)
    # The third round waits for words that nobody sends.
    assert runtime.read_symbol(4, 1, "rounds", dtype="uint16") == [3]
    streams = json.loads((tmp_path / "out" / "out_port_map.json").read_text())
    assert [bus["port_name"] for bus in streams["buses"]] == [source, sink]
    assert json.loads((tmp_path / "out" / "out.json").read_text())["colors"]["a_rx"].isdigit()


def test_a_blocking_send_waits_for_more_than_the_buffer(layout: SdkLayout, tmp_path: Path) -> None:
    _, first, last = scale(layout, "a", (2, 2))
    source = layout.create_input_stream(first, io_buffer_size=64)
    sink = layout.create_output_stream(last, io_buffer_size=0)
    runtime = start(layout, tmp_path / "out")
    runtime.send(source, np.ones(32, np.float32), nonblock=False)
    with pytest.raises(dflow.Deadlock):
        runtime.send(source, np.ones(256, np.float32), nonblock=False)
    assert sink == "a_tx"


def test_values_arrays_and_paints(layout: SdkLayout, tmp_path: Path) -> None:
    source = layout.create_code_region(SCALE, "source", 1, 1)
    rx, tx = Color("rx"), Color("to_keep", 9)
    source.set_param_all(rx)
    source.set_param_all("tx", tx)
    source.set_param_all("size", np.uint16(12))
    source.set_param_all("factor", 1)
    first = source.create_input_port(rx, Edge.TOP, [IN], 12)
    out = source.create_output_port(tx, Edge.RIGHT, [OUT], 12)
    keep = layout.create_code_region(KEEP, "keep", 3, 1)
    keep.set_param_all("n", 12)
    keep.set_param_all("tag", -7)
    keep.set_param(IntVector(1, 0), "tag", 5)
    keep.set_param_all("loud", False)
    keep.set_param_range(IntRectangle(IntVector(1, 0), IntVector(3, 1)), "loud", 1)
    keep.set_param_all("rx", tx)
    both = RoutingPosition().set_input([Route.WEST]).set_output([Route.RAMP]).add_output(Route.EAST)
    end = RoutingPosition().set_input([Route.WEST]).set_output([Route.RAMP])
    keep.paint_all(tx, [both], [get_edge_routing(Edge.RIGHT, [end])])
    over = RoutingPosition().set_output([Route.RAMP, Route.EAST])
    row = keep.create_input_port(tx, Edge.LEFT, [over], 12, "_row")
    table = np.arange(18, dtype=np.int16)
    keep.set_symbol_all("table", table, 9, 2)
    assert layout.hstack([source, keep], IntVector(1, 1)) == 4
    layout.connect(out, row)
    stream = layout.create_input_stream(first)
    assert tx.get_value() == 9
    assert rx.get_value() is None
    runtime = start(layout, tmp_path / "out")
    assert rx.get_value() is not None
    runtime.send(stream, np.arange(12, dtype=np.uint32), nonblock=True)
    runtime.stop()
    for x in range(2, 5):
        assert np.array_equal(runtime.read_symbol(x, 1, "got", dtype="uint32"), np.arange(12))
        block = runtime.read_symbol(x, 1, "table", dtype="int16").reshape(2, 3)
        assert np.array_equal(block, table.reshape(2, 9)[:, 3 * (x - 2) : 3 * (x - 1)])
    own = [runtime.read_symbol(x, 1, "own", dtype="int16")[0] for x in range(2, 5)]
    flag = [runtime.read_symbol(x, 1, "flag", dtype="uint16")[0] for x in range(2, 5)]
    assert (own, flag) == ([-7, 5, -7], [0, 1, 1])


def test_streams_from_painted_places(layout: SdkLayout, tmp_path: Path) -> None:
    region = layout.create_code_region(SCALE, "r", 1, 1)
    rx, tx = region.color("rx"), region.color("tx")
    region.set_param_all("size", 4)
    region.set_param_all("factor", 3)
    region.set_param_all(rx)
    region.set_param_all(tx)
    region.paint_all(rx, [RoutingPosition().set_input([Route.WEST]).set_output([Route.RAMP])])
    region.paint_all(tx, [RoutingPosition().set_input([Route.RAMP]).set_output([Route.EAST])])
    region.place(0, 3)
    source = layout.create_input_stream_from_loc(IntVector(0, 3), rx, prefix="in")
    sink = layout.create_output_stream_from_loc(IntVector(0, 3), tx)
    runtime = start(layout, tmp_path / "out")
    results = np.zeros(4, np.float32)
    runtime.send(source, np.float32([1, 2, 3, 4]), nonblock=True)
    runtime.receive(sink, results, 4, nonblock=False)
    assert np.array_equal(results, [3, 6, 9, 12])
    runtime.stop()


def test_the_clean_names(tmp_path: Path) -> None:
    layout = Layout("wse3", size=(8, 6))
    region = layout.region("double", SOURCES / "scale.csl", 1, 1)
    rx, tx = region.color("rx"), region.color("tx", 5)
    region.set(rx=rx, tx=tx, size=3, factor=2.0)
    region.place(3, 2)
    source = layout.input_stream(region.input_port(rx, Edge.LEFT, 3), via=(1, 1), buffer=8)
    port = region.output_port(tx, Edge.BOTTOM, 3, Position(inputs=(Route.RAMP,)), prefix="_out")
    sink = layout.output_stream(port)
    program = layout.compile(tmp_path / "out")
    assert program.size == (8, 6)
    assert layout.number_of(tx) == 5
    assert [stream[0] for stream in program.streams] == [source, sink]
    assert sink == "double_tx_out"
    assert "connect" not in layout.text


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda layout, r: layout.create_code_region(SCALE, "r", 1, 1), "exists already"),
        (lambda layout, r: layout.create_code_region(SCALE, "s", 0, 1), "0 x 1 PEs"),
        (lambda layout, r: r.place(-1, 2), "leaves the mesh"),
        (lambda layout, r: r.set_param(IntVector(2, 0), "size", 1), "is not in region `r`"),
        (lambda layout, r: r.set_param(IntVector(-1, 0), "size", 1), "in no region"),
        (lambda layout, r: r.set_param_all("size", "1"), "must be an integer, found str"),
        (lambda layout, r: r.set_param_all(3), "a name and a value"),
        (lambda layout, r: Color("c", 24), "colors are 0 to 23"),
        (lambda layout, r: r.color("c", 3) and r.paint_all("c", [IN]), "a Color is needed"),
        (lambda layout, r: r.paint_all(Color("c"), [Route.RAMP]), "are RoutingPositions"),
        (lambda layout, r: r.paint_all(Color("c"), []), "no position"),
        (lambda layout, r: RoutingPosition().set_input(["WEST"]), "a Route is needed"),
        (
            lambda layout, r: r.create_input_port(Color("c"), Edge.LEFT, [OUT], 1),
            "an input port names input RAMP",
        ),
        (
            lambda layout, r: r.create_output_port(Color("c"), Edge.LEFT, [IN], 1),
            "an output port names output RAMP",
        ),
        (lambda layout, r: r.create_input_port(Color("c"), "left", [IN], 1), "an Edge is needed"),
        (lambda layout, r: layout.connect("a", "b"), "a port is needed"),
        (
            lambda layout, r: r.set_symbol_all("t", np.zeros(2, np.float64), 2, 1),
            "found float64",
        ),
        (lambda layout, r: r.set_symbol_all("t", np.zeros(3, np.int16), 2, 1), "given 3 elements"),
        (lambda layout, r: r.set_symbol_all("t", np.zeros(3, np.int16), 3, 1), "multiple"),
        (lambda layout, r: layout.hstack([]), "at least one"),
        (lambda layout, r: layout.compile("x", f16_type=FP16TYPE.CB16), "FP16TYPE.BF16"),
        (lambda layout, r: SdkLayout(3), "a platform, a target"),
        (lambda layout, r: SdkLayout("nowhere.json"), "no fabric file"),
        (lambda layout, r: SdkLayout(SdkTarget.WSE3, msg_level="LOUD"), "msg_level is one of"),
    ],
)
def test_requests_that_cannot_be(layout: SdkLayout, act, said: str) -> None:
    region = layout.create_code_region(SCALE, "r", 2, 1)
    with pytest.raises(dflow.HostError, match=said.replace("(", r"\(")):
        act(layout, region)


def test_ports_that_do_not_fit(layout: SdkLayout) -> None:
    _, first, out = scale(layout, "a", (2, 2))
    _, other, _ = scale(layout, "b", (5, 2), size=9)
    with pytest.raises(dflow.HostError, match="8 words leave the one, 9 enter the other"):
        layout.connect(out, other)
    with pytest.raises(dflow.HostError, match="is an input port"):
        layout.connect(first, out)
    layout.create_input_stream(first)
    with pytest.raises(dflow.HostError, match="connected already"):
        layout.create_input_stream(first)
    with pytest.raises(dflow.HostError, match="buffer of 70000 words"):
        layout.create_output_stream(out, io_buffer_size=70000)


def test_layouts_that_do_not_compile(layout: SdkLayout, tmp_path: Path) -> None:
    region, _, _ = scale(layout, "a", (0, 0))
    scale(layout, "b", (0, 0))
    with pytest.raises(dflow.CompileError, match="belongs to two regions, `a` and `b`") as caught:
        layout.compile(str(tmp_path / "out"))
    # The place is this file's.
    assert "test_layout.py" in caught.value.report
    region.place(3, 3)
    region.set_param_all("faktor", 1)
    with pytest.raises(dflow.CompileError, match="did you mean `factor`"):
        layout.compile(str(tmp_path / "out"))
    assert not (tmp_path / "out" / "out.json").exists()


def test_a_fabric_file(tmp_path: Path) -> None:
    file = tmp_path / "fabric.json"
    file.write_text(json.dumps({"target": "wse2", "fabric_dims": [20, 10]}))
    layout = SdkLayout(file)
    region, first, last = scale(layout, "a", (2, 2))
    layout.create_input_stream(first)
    layout.create_output_stream(last)
    folder = layout.compile(tmp_path / "out")
    program = dflow.Program.load(folder)
    assert (program.size, program.target) == ((20, 10), "wse2")
