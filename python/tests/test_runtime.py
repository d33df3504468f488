"""``SdkRuntime``, as host scripts use it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import MANY, SIZE, cslc

import dflow
from dflow.sdk.debug import debug_util
from dflow.sdk.platform import SdkTarget, SimfabConfig, get_platform, get_system
from dflow.sdk.runtime import MemcpyDataType, MemcpyOrder, SdkCompileArtifacts, SdkRuntime

W, H = 3, 2
ROW = {
    "streaming": False,
    "data_type": MemcpyDataType.MEMCPY_32BIT,
    "order": MemcpyOrder.ROW_MAJOR,
    "nonblock": False,
}
COL = {**ROW, "order": MemcpyOrder.COL_MAJOR}
HALF = {**ROW, "data_type": MemcpyDataType.MEMCPY_16BIT}
HALF_COL = {**COL, "data_type": MemcpyDataType.MEMCPY_16BIT}
STREAM = {**ROW, "streaming": True}


def out(runtime: SdkRuntime, name: str, count: int, options: dict) -> np.ndarray:
    array = np.zeros(W * H * count, np.uint32)
    runtime.memcpy_d2h(array, runtime.get_id(name), 0, 0, W, H, count, **options)
    return array


def test_row_major_is_the_order_of_c(runtime: SdkRuntime) -> None:
    source = np.arange(W * H * SIZE, dtype=np.float32)
    target = runtime.get_id("numbers")
    runtime.memcpy_h2d(target, source, 0, 0, W, H, SIZE, **ROW)
    runtime.launch("double", nonblock=False)
    back = np.zeros(source.size, np.float32)
    runtime.memcpy_d2h(back, target, 0, 0, W, H, SIZE, **ROW)
    assert np.array_equal(back, 2 * source)
    # One PE: row 1, column 2.
    one = np.zeros(SIZE, np.float32)
    runtime.memcpy_d2h(one, target, 2, 1, 1, 1, SIZE, **ROW)
    assert np.array_equal(one, 2 * source[-SIZE:])


def test_column_major_has_the_row_fastest(runtime: SdkRuntime) -> None:
    counts = runtime.get_id("counts")
    tensor = np.arange(H * W * 4, dtype=np.uint32).reshape(H, W, 4)
    source = np.array([tensor[y, x, k] for k in range(4) for x in range(W) for y in range(H)])
    runtime.memcpy_h2d(counts, source, 0, 0, W, H, 4, **COL)
    assert np.array_equal(out(runtime, "counts", 4, ROW), tensor.ravel())
    assert np.array_equal(out(runtime, "counts", 4, COL), source)


def test_16_bit_elements_take_the_low_halves(runtime: SdkRuntime) -> None:
    values = (np.arange(W * H * 2) - 5).astype(np.int16)
    words = values.view(np.uint16).astype(np.uint32) | 0xABCD0000
    shorts = runtime.get_id("shorts")
    runtime.memcpy_h2d(shorts, words, 0, 0, W, H, 2, **HALF)
    assert np.array_equal(out(runtime, "shorts", 2, HALF), words & 0xFFFF)
    swapped = out(runtime, "shorts", 2, HALF_COL).reshape(2, W, H).T.ravel()
    assert np.array_equal(swapped, words & 0xFFFF)


@pytest.mark.parametrize("release", ["1.4", "2.10"])
def test_16_bit_elements_travel_alone_in_every_release(tmp_path: Path, release: str) -> None:
    folder = cslc("many", tmp_path / "out", flags=(f"--sdk-version={release}",), **MANY)
    runtime = SdkRuntime(folder)
    runtime.load()
    runtime.run()
    words = np.arange(W * H * 7, dtype=np.uint32) | 0x30000
    runtime.memcpy_h2d(runtime.get_id("shorts"), words, 0, 0, W, H, 7, **HALF)
    assert np.array_equal(out(runtime, "shorts", 7, HALF), words & 0xFFFF)


def test_results_are_written_in_place(runtime: SdkRuntime) -> None:
    whole = np.zeros((H * W, SIZE), np.float32)
    runtime.memcpy_h2d(
        runtime.get_id("numbers"), np.ones(W * H * SIZE, np.float32), 0, 0, W, H, SIZE, **ROW
    )
    runtime.memcpy_d2h(whole.ravel(), runtime.get_id("numbers"), 0, 0, W, H, SIZE, **ROW)
    assert whole.sum() == W * H * SIZE
    matrix = np.zeros((W * H, SIZE), np.float32)
    runtime.memcpy_d2h(matrix, runtime.get_id("numbers"), 0, 0, W, H, SIZE, **ROW)
    assert np.array_equal(matrix, whole)
    strided = np.zeros(2 * W * H * SIZE, np.float32)[::2]
    runtime.memcpy_d2h(strided, runtime.get_id("numbers"), 0, 0, W, H, SIZE, **ROW)
    assert strided.all()


def test_rows_and_columns_are_broadcast(runtime: SdkRuntime) -> None:
    counts = runtime.get_id("counts")
    rows = np.arange(H * 2, dtype=np.uint32).reshape(H, 2)
    runtime.memcpy_h2d_rowbcast(counts, rows.ravel(), 0, 0, W, H, 2, **ROW)
    found = out(runtime, "counts", 2, ROW).reshape(H, W, 2)
    assert np.array_equal(found, np.repeat(rows[:, None], W, axis=1))
    runtime.memcpy_h2d_rowbcast(counts, rows.ravel(order="F") + 9, 0, 0, W, H, 2, **COL)
    assert np.array_equal(out(runtime, "counts", 2, ROW), found.ravel() + 9)
    columns = np.arange(W * 2, dtype=np.uint32).reshape(W, 2)
    runtime.memcpy_h2d_colbcast(counts, columns.ravel(), 0, 0, W, H, 2, **ROW)
    found = out(runtime, "counts", 2, ROW).reshape(H, W, 2)
    assert np.array_equal(found, np.repeat(columns[None], H, axis=0))
    with pytest.warns(UserWarning, match="only the first 2 x 2 = 4 are copied"):
        runtime.memcpy_h2d_rowbcast(counts, columns.ravel(), 0, 0, W, H, 2, **ROW)


def test_strides_leave_pes_out(runtime: SdkRuntime) -> None:
    counts = runtime.get_id("counts")
    runtime.memcpy_h2d_stride(counts, np.uint32([1, 2]), 0, 0, W, 1, 1, 2, 1, **ROW)
    assert out(runtime, "counts", 1, ROW).tolist() == [1, 0, 2, 0, 0, 0]
    runtime.memcpy_h2d_stride(
        counts, np.uint32([7, 8, 9]), 0, 1, W, 1, 1, row_stride=1, col_stride=2, **ROW
    )
    assert out(runtime, "counts", 1, ROW).tolist() == [1, 0, 2, 7, 8, 9]
    with pytest.raises(dflow.HostError, match="strides are 1 or more"):
        runtime.memcpy_h2d_stride(counts, np.uint32([1]), 0, 0, 1, 1, 1, 0, 1, **ROW)
    with pytest.raises(dflow.HostError, match="`row_stride`"):
        runtime.memcpy_h2d_stride(counts, np.uint32([1]), 0, 0, 1, 1, 1, **ROW)


def test_commands_are_carried_out_in_their_order(runtime: SdkRuntime) -> None:
    counts = runtime.get_id("counts")
    later = {**ROW, "nonblock": True}
    first, second = (np.zeros(W * H, np.uint32) for _ in range(2))
    start = np.full(W * H, 4, np.uint32)
    copied = runtime.memcpy_h2d(counts, start, 0, 0, W, H, 1, **later)
    start[:] = 0
    runtime.launch("append", 1, nonblock=True)
    read = runtime.memcpy_d2h(first, counts, 0, 0, W, H, 1, **later)
    runtime.launch("append", 2, nonblock=True)
    last = runtime.memcpy_d2h(second, counts, 0, 0, W, H, 1, **later)
    assert not first.any()
    assert "pending" in repr(read)
    runtime.task_wait(read)
    assert set(first) == {41}
    assert not second.any()
    assert runtime.is_task_done(copied)
    assert runtime.is_task_done(last)
    assert "done" in repr(last)
    assert set(second) == {412}
    with pytest.raises(dflow.HostError, match="expected what a command returned, found int"):
        runtime.task_wait(3)


def test_stop_waits_for_commands(runtime: SdkRuntime) -> None:
    array = np.zeros(W * H, np.uint32)
    runtime.launch("append", 3, nonblock=True)
    runtime.memcpy_d2h(array, runtime.get_id("counts"), 0, 0, W, H, 1, **{**ROW, "nonblock": True})
    runtime.stop()
    assert set(array) == {3}


def test_a_hang_is_reported_where_it_is_waited_for(many_folder: Path) -> None:
    for wait in (lambda one: one.launch("silent"), lambda one: one.stop()):
        runtime = SdkRuntime(many_folder)
        runtime.load()
        runtime.run()
        runtime.launch("silent", nonblock=True)
        with pytest.raises(dflow.Deadlock) as caught:
            wait(runtime)
        assert caught.value.report


def test_stop_does_not_wait_for_what_never_comes(echo, capsys: pytest.CaptureFixture) -> None:
    runtime = SdkRuntime(echo(3), msg_level="INFO")
    runtime.load()
    runtime.run()
    runtime.stop()
    assert "waits for a word on color 1" in capsys.readouterr().err


def test_older_launches_take_words(runtime: SdkRuntime) -> None:
    runtime.call("double", [], nonblock=False)
    runtime.call("double", nonblock=False)
    words = np.array([-3, 7, 9, np.float32(0.5).view(np.int32)]).astype(np.int32).view(np.uint32)
    runtime.call("mix", words, nonblock=False)
    runtime.call("append", [5], nonblock=False)
    assert out(runtime, "counts", 1, ROW)[0] == 95
    assert out(runtime, "shorts", 1, HALF)[0] == 0xFFFD
    assert out(runtime, "numbers", 1, ROW)[0] == np.float32(0.5).view(np.uint32)
    with pytest.raises(dflow.HostError, match=r"`append` takes 1 arguments \(u32\), found 2"):
        runtime.call("append", [1, 2])
    with pytest.raises(dflow.HostError, match="32-bit words"):
        runtime.call("append", ["x"])
    with pytest.raises(dflow.HostError, match="SDK 0.6"):
        runtime.memcpy_launch(3, words, True)


def test_words_of_older_launches_are_values_of_their_types(runtime: SdkRuntime) -> None:
    # A short value with a sign comes either way, and all words are 32-bit values.
    for word in (-3, 0xFFFFFFFD, 0xFFFD):
        runtime.call("mix", [word, 0xFFFF, 0, 0])
        assert out(runtime, "shorts", 2, HALF)[:2].tolist() == [0xFFFD, 0xFFFF]
    runtime.call("half", [np.float16(-2).view(np.int16)])
    runtime.call("mix", [0, 0, -1, np.float32(-2).view(np.int32)])
    assert out(runtime, "counts", 1, ROW)[0] == 0xFFFFFFFF
    assert out(runtime, "numbers", 1, ROW)[0] == np.float32(-2).view(np.uint32)
    for args, message in [
        ([70000, 0, 0, 0], "1 of `mix` is of type i16: the word 70000 is outside -32768 to 65535"),
        ([-32769, 0, 0, 0], "1 of `mix` is of type i16: the word -32769 is outside -32768 to"),
        ([0, 70000, 0, 0], "2 of `mix` is of type u16: the word 70000 is outside 0 to 65535"),
        ([0, -1, 0, 0], "2 of `mix` is of type u16: the word -1 is outside 0 to 65535"),
        ([0, 0xFFFFFFFF, 0, 0], "2 of `mix` is of type u16: the word 4294967295 is outside 0"),
    ]:
        with pytest.raises(dflow.HostError, match=f"argument {message}"):
            runtime.call("mix", args)
    with pytest.raises(dflow.HostError, match="of type f16: the word 65536 is outside"):
        runtime.call("half", [65536])


def test_arguments_by_position_and_in_the_form_of_0_6(runtime: SdkRuntime) -> None:
    counts = runtime.get_symbol("counts")
    assert counts == runtime.get_id("counts")
    kind, order = MemcpyDataType.MEMCPY_32BIT, MemcpyOrder.ROW_MAJOR
    source, back = np.arange(W * H, dtype=np.uint32), np.zeros(W * H, np.uint32)
    runtime.memcpy_h2d(counts, source, 0, 0, W, H, 1, False, kind, order, False)
    runtime.memcpy_d2h(back, counts, False, 0, 0, W, H, 1, 0, False)
    assert np.array_equal(back, source)
    runtime.memcpy_h2d(counts, source + 1, False, 0, 0, W, H, 1, 0, True)
    runtime.memcpy_d2h(dest=back, src=counts, px=0, py=0, w=W, h=H, elem_per_pe=1, **ROW)
    assert np.array_equal(back, source + 1)


def test_an_item_may_be_two_short_elements(runtime: SdkRuntime) -> None:
    shorts = runtime.get_id("shorts")
    items = np.arange(W * H * 2, dtype=np.uint32) * 0x10001 + 0x70000
    with pytest.warns(UserWarning, match="an item of MEMCPY_32BIT is two of them"):
        runtime.memcpy_h2d(shorts, items, 0, 0, W, H, 2, **ROW)
    found = out(runtime, "shorts", 4, HALF).reshape(-1, 2)
    assert np.array_equal(found[:, 0] | found[:, 1] << 16, items)
    with pytest.warns(UserWarning, match="two of them"):
        found = out(runtime, "shorts", 2, COL)
    assert np.array_equal(found, items.reshape(H, W, 2).ravel(order="F"))


def test_copies_are_checked(runtime: SdkRuntime) -> None:
    counts, shorts, table = (runtime.get_id(name) for name in ("counts", "shorts", "table"))
    good = np.zeros(W * H, np.uint32)
    place = (0, 0, W, H, 1)
    frozen = good.copy()
    frozen.flags.writeable = False
    refused = [
        (
            lambda: runtime.memcpy_h2d(counts, good.astype(np.float64), *place, **ROW),
            r"src of memcpy_h2d must hold float32, int32 or uint32 items, found float64: convert",
        ),
        (
            lambda: runtime.memcpy_h2d(shorts, good.astype(np.int16), *place, **HALF),
            "found int16: an element of 16 bits takes the low half",
        ),
        (lambda: runtime.memcpy_h2d(counts, [1] * 6, *place, **ROW), "NumPy array, found list"),
        (
            lambda: runtime.memcpy_h2d(counts, good[:5], *place, **ROW),
            r"src of memcpy_h2d must hold 2 x 3 x 1 = 6 items, found 5",
        ),
        (
            lambda: runtime.memcpy_d2h(good[:5], counts, *place, **ROW),
            r"dest of memcpy_d2h must hold 2 x 3 x 1 = 6 items, found 5",
        ),
        (lambda: runtime.memcpy_d2h(frozen, counts, *place, **ROW), "is read-only"),
        (
            lambda: runtime.memcpy_d2h(np.zeros((4, 3), np.uint32)[::2], counts, *place, **ROW),
            "not contiguous",
        ),
        (
            lambda: runtime.memcpy_h2d(counts, good, *place, **HALF),
            "`counts` points to elements of type u32: expected MEMCPY_32BIT, found MEMCPY_16BIT",
        ),
        (lambda: runtime.memcpy_h2d(table, good, *place, **ROW), "exported as constant"),
        (
            lambda: runtime.memcpy_h2d(runtime.get_id("double"), good, *place, **ROW),
            "`double` is a function, not a pointer",
        ),
        (lambda: runtime.memcpy_h2d(99, good, *place, **ROW), "99 is no id of an exported name"),
        (lambda: runtime.memcpy_h2d("counts", good, *place, **ROW), r"pass get_id\('counts'\)"),
        (
            lambda: runtime.memcpy_h2d(counts, good, 1, 0, W, H, 1, **ROW),
            r"the 3 x 2 PEs at \(1, 0\) must lie inside the program's 3 x 2 PEs",
        ),
        (
            lambda: runtime.memcpy_h2d(counts, good, 0, 0, W, H, 1.0, **ROW),
            "elem_per_pe of memcpy_h2d must be an integer, found float",
        ),
        (lambda: runtime.memcpy_h2d(counts, good, 0, 0, W, H, -1, **ROW), "elem_per_pe is -1"),
        (lambda: runtime.memcpy_h2d(counts, good, 0, 0, W, **ROW), "needs `h`, `elem_per_pe`"),
        (
            lambda: runtime.memcpy_h2d(counts, good, *place, **ROW, color=1),
            "has no argument `color`",
        ),
        (lambda: runtime.memcpy_h2d(counts, good, *place, px=1), "got `px` twice"),
        (lambda: runtime.memcpy_h2d(counts, good, *place, 1, 2, 3, 4, 5), "takes 11 arguments"),
        (
            lambda: runtime.memcpy_h2d(counts, good, *place, **{**ROW, "data_type": 32}),
            "illegal data_type of memcpy_h2d: expected MemcpyDataType.MEMCPY_16BIT or ",
        ),
        (
            lambda: runtime.memcpy_h2d(counts, good, *place, **{**ROW, "order": "C"}),
            "illegal order of memcpy_h2d",
        ),
        (
            lambda: runtime.memcpy_h2d(counts, good, *place, **{**ROW, "nonblock": None}),
            "nonblock of memcpy_h2d must be True or False",
        ),
        (lambda: runtime.memcpy_h2d(counts, good, *place, **STREAM), "is no stream to the mesh"),
        (lambda: runtime.memcpy_d2h(good, 77, *place, **STREAM), "77 is no color that streams"),
        (lambda: runtime.launch("counts"), "no function is exported as `counts`; there is "),
        (lambda: runtime.launch(3), "a launch names a function, found 3"),
        (lambda: runtime.launch("append", 1.5), "argument 1 of `append` is of type u32"),
        (lambda: runtime.get_id("other"), "nothing is exported as `other`; there is "),
    ]
    for request, message in refused:
        with pytest.raises(dflow.HostError, match=message):
            request()
    runtime.launch("double", nonblock=False)


def test_a_copy_may_read_what_lies_behind_an_array(
    runtime: SdkRuntime, capsys: pytest.CaptureFixture
) -> None:
    counts = runtime.get_id("counts")
    values = np.arange(W * H * SIZE, dtype=np.uint32)
    runtime.memcpy_h2d(counts, values, 0, 0, W, H, SIZE, **ROW)
    found = out(runtime, "counts", SIZE + 1, ROW).reshape(H, W, SIZE + 1)
    assert np.array_equal(found[:, :, :SIZE].ravel(), values)
    assert "points to 8 elements, the host asks for 9 per PE" in capsys.readouterr().err
    more = np.zeros(W * H * (SIZE + 1), np.uint32)
    with pytest.raises(dflow.HostError, match="points to 8 elements, the host asks for 9"):
        runtime.memcpy_h2d(counts, more, 0, 0, W, H, SIZE + 1, **ROW)


def test_calls_come_in_their_order(many_folder: Path) -> None:
    runtime = SdkRuntime(str(many_folder), cmaddr="", suppress_simfab_trace=True)
    ids = [runtime.get_id(name) for name in ("numbers", "counts", "double")]
    assert len(set(ids)) == 3
    word = np.zeros(1, np.uint32)

    def refused(call, message: str) -> None:
        with pytest.raises(dflow.HostError, match=message):
            call()

    def copy() -> None:
        runtime.memcpy_h2d(ids[1], word, 0, 0, 1, 1, 1, **ROW)

    refused(runtime.run, r"call load\(\) first")
    refused(runtime.stop, r"call load\(\) and run\(\) first")
    refused(copy, "SdkRuntime must be running to accept memcpy_h2d")
    runtime.load()
    refused(runtime.load, r"load\(\) has been called already")
    refused(copy, "SdkRuntime must be running")
    refused(lambda: runtime.launch("double"), "SdkRuntime must be running to accept launch")
    refused(lambda: runtime.read_symbol(4, 1, "calls"), "needs a program that ran")
    runtime.run()
    refused(runtime.run, r"run\(\) has been called already")
    copy()
    runtime.stop()
    refused(runtime.stop, r"stop\(\) has been called already")
    refused(copy, r"memcpy_h2d after stop\(\): make a new SdkRuntime")


def test_constructors(many_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(many_folder.parent)
    platform = get_platform(None, SimfabConfig(num_threads=2), SdkTarget.WSE2)
    assert platform.is_simulation()
    assert not platform.is_system()
    relative = SdkRuntime("out", platform, simfab_numthreads=2)
    artifacts = SdkRuntime(SdkCompileArtifacts("out"), platform, memcpy_required=False)
    monkeypatch.chdir(tmp_path)
    for runtime in (relative, artifacts):
        runtime.load()
        runtime.run()
        runtime.stop()
    refused = {
        "reaches no system at 10.0.0.1:9000": lambda: SdkRuntime(
            many_folder, cmaddr="10.0.0.1:9000"
        ),
        "simfab_numthreads is 1 to 64, found 65": lambda: SdkRuntime(
            many_folder, simfab_numthreads=65
        ),
        "msg_level is one of DEBUG, INFO": lambda: SdkRuntime(many_folder, msg_level="LOUD"),
        "is not a folder": lambda: SdkRuntime("out"),
        "reaches no system": lambda: get_system("10.0.0.1:9000"),
    }
    for message, make in refused.items():
        with pytest.raises(dflow.HostError, match=message):
            make()


def test_streams(echo) -> None:
    runtime = SdkRuntime(echo(4))
    runtime.load()
    runtime.run()
    tensor = np.arange(8, dtype=np.float32).reshape(2, 1, 4)
    back = np.zeros(8, np.float32)
    column = {**STREAM, "order": MemcpyOrder.COL_MAJOR}
    runtime.memcpy_h2d(1, tensor.ravel(), 0, 0, 1, 2, 4, **STREAM)
    reading = runtime.memcpy_d2h(back, 2, 0, 0, 1, 2, 4, **{**column, "nonblock": True})
    assert not back.any()
    runtime.task_wait(reading)
    assert np.array_equal(back, -tensor.ravel(order="F"))
    missing = np.zeros(2, np.float32)
    runtime.memcpy_d2h(missing, 2, 0, 0, 1, 2, 1, **{**STREAM, "nonblock": True})
    with pytest.raises(dflow.Deadlock, match="on color 2"):
        runtime.stop()


@pytest.mark.parametrize(("count", "passes"), [(14, True), (15, False)])
def test_an_echo_is_as_long_as_the_queues(echo, count: int, passes: bool) -> None:
    runtime = SdkRuntime(echo(count))
    runtime.load()
    runtime.run()
    back = np.zeros(2 * count, np.float32)
    words = np.arange(2 * count, dtype=np.float32)
    runtime.memcpy_h2d(1, words, 0, 0, 1, 2, count, **{**STREAM, "nonblock": True})
    if passes:
        runtime.memcpy_d2h(back, 2, 0, 0, 1, 2, count, **STREAM)
        assert np.array_equal(back, -words)
    else:
        with pytest.raises(dflow.Deadlock, match="the queues at the edge hold 14"):
            runtime.memcpy_d2h(back, 2, 0, 0, 1, 2, count, **STREAM)


def test_a_stream_to_the_host_is_waited_for_before_later_commands(echo) -> None:
    runtime = SdkRuntime(echo(2))
    runtime.load()
    runtime.run()
    back = np.zeros(4, np.float32)
    runtime.memcpy_d2h(back, 2, 0, 0, 1, 2, 2, **{**STREAM, "nonblock": True})
    with pytest.raises(dflow.Deadlock, match="the host waits for 2 more words"):
        runtime.memcpy_h2d(1, back, 0, 0, 1, 2, 2, **STREAM)


def test_the_memory_is_kept_for_debugging(
    runtime: SdkRuntime, many_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    runtime.launch("double", nonblock=False)
    assert runtime.coord_logical_to_physical((2, 1)) == (6, 2)
    runtime.dump_core(tmp_path / "before.cs1")
    runtime.stop()
    assert (tmp_path / "before.cs1").is_file()
    assert runtime.read_symbol(6, 2, "mine", "uint16").tolist() == [5]
    assert runtime.read_symbol(6, 2, "calls").view(np.uint16).tolist() == [1]
    runtime.dump_core(tmp_path / "corefile.cs1")
    assert "dflow's own format" in capsys.readouterr().err
    for found in (debug_util(str(many_folder), cmaddr=None), debug_util(tmp_path / "corefile.cs1")):
        assert found.get_symbol(4, 1, "mine", np.uint16).tolist() == [0]
        rect = found.get_symbol_rect(((4, 1), (W, H)), "mine", np.uint16)
        assert rect.shape == (W, H, 1)
        assert rect[:, 1, 0].tolist() == [3, 4, 5]
    refused = {
        r"\(0, 0\) is no PE of the program, which has columns 4 to 6 and rows 1 to 2": lambda: (
            found.get_symbol(0, 0, "mine", np.uint16)
        ),
        r"PE \(4, 1\) has no variable `other`": lambda: found.get_symbol(4, 1, "other", np.uint16),
        r"\(3, 1\) is no PE": lambda: runtime.read_symbol(3, 1, "mine"),
        "has no trace of key `no`; there is no key": lambda: found.read_trace(4, 1, "no"),
        "is missing: it is written when a run is stopped": lambda: debug_util(tmp_path),
    }
    for message, request in refused.items():
        with pytest.raises(dflow.HostError, match=message):
            request()


def test_records_are_read(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder = cslc("trace", tmp_path / "out")
    runtime = SdkRuntime(folder)
    runtime.load()
    runtime.run()
    runtime.launch("record", nonblock=False)
    runtime.stop()
    found = debug_util(folder)
    values = found.read_trace(5, 1, "all")
    assert values[:8] == [True, 1, -5, 0.5, 70000, -70000, 1.25, "here"]
    assert [type(value) for value in values[1:4]] == [np.uint16, np.int16, np.float16]
    assert isinstance(values[8], int)
    assert len(values) == 9
    assert found.read_trace(4, 1, "short") == [0, 1]
    assert "no room for 3 records" in capsys.readouterr().err
    with pytest.raises(dflow.HostError, match="there is `all`, `short`"):
        found.read_trace(4, 1, "other")


def test_printed_lines_are_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cslc("trace", tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sim.log").write_text("old\n")
    runtime = SdkRuntime(folder)
    runtime.load()
    runtime.run()
    runtime.launch("record", nonblock=False)
    runtime.launch("record", nonblock=False)
    runtime.stop()
    lines = [line.split(" ", 1) for line in (tmp_path / "sim.log").read_text().splitlines()]
    first = ["PE(0,0): 0", "PE(1,0): 7"]
    assert [text for _, text in lines] == first + [f"no end{text}" for text in first]
    cycles = [int(cycle.removeprefix("@")) for cycle, _ in lines]
    assert cycles == sorted(cycles) and cycles[1] < cycles[2]
    assert (tmp_path / "simfab_traces").is_dir()


def test_a_log_that_cannot_be_written_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    folder = cslc("trace", tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sim.log").mkdir()
    runtime = SdkRuntime(folder)
    runtime.load()
    runtime.run()
    runtime.launch("record", nonblock=False)
    runtime.stop()
    assert "sim.log cannot be written" in capsys.readouterr().err


def test_the_environment_decides(
    many_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stats = tmp_path / "stats"
    monkeypatch.setenv("DFLOW_STATS_FILE", str(stats))
    monkeypatch.setenv("DFLOW_THREADS", "2")
    for engine in ("exact", "step"):
        monkeypatch.setenv("DFLOW_ENGINE", engine)
        runtime = SdkRuntime(many_folder)
        runtime.load()
        runtime.run()
        runtime.launch("double", nonblock=False)
        runtime.stop()
    lines = [json.loads(line) for line in stats.read_text().splitlines()]
    assert len(lines) == 2
    assert lines[0]["cycles"] == lines[1]["cycles"] > 0
    assert lines[0]["target"] in ("wse2", "wse3")
    assert lines[0]["seconds"] > 0
    monkeypatch.setenv("DFLOW_MAX_CYCLES", "5_000")
    runtime = SdkRuntime(many_folder)
    runtime.load()
    runtime.run()
    reached = r"cycle limit of 5,000 was reached \(DFLOW_MAX_CYCLES\); at the end\n.*: computes"
    with pytest.raises(dflow.LimitReached, match=reached):
        runtime.launch("spin", nonblock=False)
    for name, value in {"DFLOW_THREADS": "none", "DFLOW_TIMEOUT": "soon"}.items():
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            with pytest.raises(dflow.HostError, match=name):
                SdkRuntime(many_folder)
