"""Helpers of SDK 0.6 to 0.9: tensors by port maps.

A port map says where each element of a tensor goes, as in
``{A[j=0:7][i=0:3] -> [PE[i//2, j//4] -> index[i%2, j%4]]}``: names and inclusive ranges (or single
values) of the indices, the PE's column and row, and the element's place on the PE.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dflow.errors import HostError
from dflow.sdk.debug import debug_util
from dflow.sdk.utils import input_array_to_u32

__all__ = [
    "convert_input_tensor",
    "debug_util",
    "format_output_tensor",
    "input_array_to_u32",
    "output_array_from_u32",
    "prepare_output_tensor",
]

WHOLE = re.compile(
    r"^\{(?P<name>\w+)(?P<ranges>(\[\w+=[^\]]+\])*)->\[?PE\[(?P<pe>[^\]]*)\]->"
    r"index\[(?P<index>[^\]]*)\]\]?\}$"
)
RANGE = re.compile(r"\[(\w+)=([^:\]]+)(?::([^\]]+))?\]")


@dataclass(frozen=True)
class PortMap:
    """Where the elements of a tensor of ``shape`` go."""

    shape: tuple[int, ...]
    region: tuple[int, int, int, int]
    count: int
    # For each element in C order: its position in the array (row, column, element) of the copy.
    order: npt.NDArray[np.int64]

    @staticmethod
    def parse(text: str) -> PortMap:
        """Read a port map.

        Raises:
            HostError: it cannot be understood.
        """
        match = WHOLE.match(re.sub(r"\s+", "", text))
        if match is None:
            raise HostError(f"cannot read the port map {text!r}")
        names, axes = [], []
        for name, first, last in RANGE.findall(match["ranges"]):
            names.append(name)
            end = _value(last or first, {}) + 1
            axes.append(np.arange(_value(first, {}), end, dtype=np.int64))
        grids = np.meshgrid(*axes, indexing="ij") if axes else []
        known = dict(zip(names, grids))
        shape = tuple(axis.size for axis in axes)
        column, row = (_spread(part, known, shape) for part in match["pe"].split(","))
        index = [_spread(part, known, shape) for part in match["index"].split(",")]
        return _arrange(shape, column, row, index)


def _arrange(
    shape: tuple[int, ...],
    column: npt.NDArray[np.int64],
    row: npt.NDArray[np.int64],
    index: list[npt.NDArray[np.int64]],
) -> PortMap:
    x, y = int(column.min()), int(row.min())
    width, height = int(column.max()) - x + 1, int(row.max()) - y + 1
    count, place = 1, np.zeros(column.shape, np.int64)
    for part in index:
        size = int(part.max()) + 1
        count, place = count * size, place * size + part
    order = ((row - y) * width + (column - x)) * count + place
    whole = width * height * count
    if order.size != whole or np.unique(order).size != whole:
        raise HostError("the port map must give every PE of a rectangle the same elements once")
    return PortMap(shape, (x, y, width, height), count, order)


def _spread(
    text: str, known: dict[str, npt.NDArray[np.int64]], shape: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    value = np.broadcast_to(_value(text, known), shape)
    return np.ascontiguousarray(value, np.int64).ravel()


def _value(text: str, known: dict[str, Any]) -> Any:
    try:
        return _evaluate(ast.parse(text, mode="eval").body, known)
    except (SyntaxError, ZeroDivisionError):
        raise HostError(f"cannot read `{text}` in a port map") from None


OPERATORS = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.FloorDiv: np.floor_divide,
    ast.Div: np.floor_divide,
    ast.Mod: np.mod,
}


def _evaluate(node: ast.expr, known: dict[str, Any]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name) and node.id in known:
        return known[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand, known)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        operate = OPERATORS[type(node.op)]
        return operate(_evaluate(node.left, known), _evaluate(node.right, known))
    raise HostError(f"cannot read `{ast.unparse(node)}` in a port map")


Tensor = tuple[int, int, int, int, int, npt.NDArray[Any]]


def convert_input_tensor(port_map: str, np_arr: npt.NDArray[Any]) -> Tensor:
    """Give px, py, w, h, elements per PE and the array for ``memcpy_h2d``."""
    layout = PortMap.parse(port_map)
    if np_arr.size != layout.order.size:
        raise HostError(
            f"the port map is for a tensor of shape {layout.shape}, found {np_arr.shape}"
        )
    data = np.zeros(layout.order.size, np_arr.dtype)
    data[layout.order] = np_arr.ravel()
    return (*layout.region, layout.count, input_array_to_u32(data))


def prepare_output_tensor(port_map: str, dtype: npt.DTypeLike) -> Tensor:
    """Give px, py, w, h, elements per PE and an array for ``memcpy_d2h``."""
    layout = PortMap.parse(port_map)
    del dtype
    return (*layout.region, layout.count, np.zeros(layout.order.size, np.uint32))


def format_output_tensor(
    port_map: str, dtype: npt.DTypeLike, data: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """Give the tensor whose elements ``memcpy_d2h`` has copied."""
    layout = PortMap.parse(port_map)
    values = output_array_from_u32(np.asarray(data).ravel(), dtype)
    return values[layout.order].reshape(layout.shape)


def output_array_from_u32(np_arr: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Give 32-bit items as elements of 16 (their low halves) or 32 bits."""
    wanted = np.dtype(dtype)
    words = np.ascontiguousarray(np_arr).view(np.uint32)
    if wanted.itemsize == 2:
        return words.astype(np.uint16).view(wanted)
    if wanted.itemsize == 4:
        return words.view(wanted)
    raise HostError(f"elements of 16 or 32 bits can be copied, not {wanted}")
