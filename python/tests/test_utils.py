"""Arrays of 16-bit elements, timestamps, port maps."""

from __future__ import annotations

import numpy as np
import pytest

import dflow
from dflow.elements import dtype_of
from dflow.sdk import legacy, tensor
from dflow.sdk.geometry import IntRectangle, IntVector
from dflow.sdk.utils import calculate_cycles, input_array_to_u32, memcpy_view


def test_a_view_shows_the_low_bits() -> None:
    items = np.uint32([0xAAAA3C00, 0xBBBB4000])
    view = memcpy_view(items, np.float16)
    assert view.tolist() == [1.0, 2.0]
    view[0] = 2.0
    assert items[0] == 0xAAAA4000
    assert memcpy_view(items, np.uint8).tolist() == [0, 0]
    assert memcpy_view(items.reshape(1, 2), np.int16).shape == (1, 2)
    assert memcpy_view(np.float32([1]), np.uint32).tolist() == [0x3F800000]
    with pytest.raises(dflow.HostError, match="32-bit items, found uint16"):
        memcpy_view(np.uint16([1]), np.uint16)
    with pytest.raises(dflow.HostError, match="not float64"):
        memcpy_view(items, np.float64)


def test_elements_become_items() -> None:
    halves = np.int16([-1, 2, 3, 4])
    assert input_array_to_u32(halves, None, 2).tolist() == [0xFFFF, 2, 3, 4]
    indexed = input_array_to_u32(np_arr=halves, sentinel=1, fast_dim_sz=2)
    assert indexed.tolist() == [0xFFFF, 0x10002, 3, 0x10004]
    assert input_array_to_u32(np.float32([[1]]), 0, 1).tolist() == [0x3F800000]
    with pytest.raises(dflow.HostError, match="found float64"):
        input_array_to_u32(np.zeros(2), None, 1)
    with pytest.raises(dflow.HostError, match="fast_dim_sz"):
        input_array_to_u32(halves, 0, 0)


def test_cycles_between_timestamps() -> None:
    words = np.uint16([0xFFFF, 1, 0, 2, 0, 1])
    assert calculate_cycles(words.view(np.float32)) == (1 << 32) + 2 - 0x1FFFF
    with pytest.raises(dflow.HostError, match="3 items"):
        calculate_cycles(np.zeros(2, np.float32))


def test_port_maps_arrange_tensors() -> None:
    tensor = np.arange(4 * 6, dtype=np.float32).reshape(4, 6)
    text = "{ A[j=0:3][i=0:5] -> [PE[1 + i//2, j//2] -> index[i%2, j%2]] }"
    *place, data = legacy.convert_input_tensor(text, tensor)
    assert place == [1, 0, 3, 2, 4]
    # PE (2, 1): rows 2 and 3, columns 2 and 3; the index counts columns first.
    assert data.view(np.float32)[4 * 4 : 5 * 4].tolist() == [14, 20, 15, 21]
    back = legacy.format_output_tensor(text, np.float32, data)
    assert np.array_equal(back, tensor)
    *place, empty = legacy.prepare_output_tensor(text, np.float16)
    assert place == [1, 0, 3, 2, 4]
    assert empty.shape == (24,)
    halves = legacy.output_array_from_u32(np.uint32([0xFFFF3C00]), np.float16)
    assert halves.tolist() == [1.0]


def test_a_port_map_may_name_single_values() -> None:
    text = "{ r[i=0:1][j=0] -> [PE[1, 0] -> index[i]] }"
    *place, data = legacy.prepare_output_tensor(text, np.float32)
    assert place == [1, 0, 1, 1, 2]
    assert legacy.format_output_tensor(text, np.float32, data).shape == (2, 1)


def test_port_maps_are_checked() -> None:
    refused = {
        "A -> PE": "cannot read the port map",
        "{ A[i=0:3] -> [PE[k, 0] -> index[i]] }": "cannot read `k`",
        "{ A[i=0:3] -> [PE[0, 0] -> index[i//2]] }": "the same elements once",
    }
    for text, message in refused.items():
        with pytest.raises(dflow.HostError, match=message):
            legacy.prepare_output_tensor(text, np.float32)
    with pytest.raises(dflow.HostError, match="is for a tensor of shape"):
        legacy.convert_input_tensor("{ A[i=0:3] -> [PE[0, 0] -> index[i]] }", np.zeros(3, "f4"))


def test_places_and_rectangles() -> None:
    rect = IntRectangle(IntVector(1, 0), IntVector(3, 2))
    assert (rect.width, rect.height) == (2, 2)
    assert IntVector(2, 1) in rect
    assert IntVector(3, 1) not in rect
    assert IntVector(1, 2) + IntVector(1, 1) - IntVector(0, 1) == IntVector(2, 2)
    assert tuple(IntVector(4, 5)) == (4, 5)


def test_longer_arrays_give_their_first_items() -> None:
    shape = (2, 3, 1)
    with pytest.warns(UserWarning, match="holds 8 items: only the first 2 x 3 x 1 = 6"):
        found = tensor.check_array(np.arange(8, dtype=np.int32), shape, "src")
    assert found.tolist() == [0, 1, 2, 3, 4, 5]
    whole = np.zeros((4, 4), np.float32)
    with pytest.warns(UserWarning, match="holds 16 items"):
        tensor.check_array(whole, shape, "dest")[...] = 1
    assert whole.ravel().tolist() == [1.0] * 6 + [0.0] * 10


def test_a_type_that_numpy_has_not_is_refused_by_name() -> None:
    with pytest.raises(dflow.HostError, match="NumPy has no type for values of type `bf16`"):
        dtype_of("bf16")
