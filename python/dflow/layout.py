"""Layouts built in Python: regions of PEs, routes, ports, connections, streams.

A layout takes the place of a layout block. Places of regions count from the north-west corner of
the mesh, places in a region from the region's own. ``spec/sdklayout.md`` is the reference.

    layout = Layout("wse3")
    double = layout.region("double", "double.csl", 1, 1)
    rx, tx = double.color("rx"), double.color("tx")
    double.set(rx=rx, tx=tx, size=8)
    double.place(2, 1)
    words = layout.input_stream(double.input_port(rx, Edge.LEFT, 8))
    results = layout.output_stream(double.output_port(tx, Edge.RIGHT, 8))
    machine = Machine(layout.compile("out"))
"""

from __future__ import annotations

import enum
import operator
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from dflow import _native
from dflow.elements import whole
from dflow.errors import HostError
from dflow.machine import Program

__all__ = ["Color", "Edge", "Layout", "Port", "Position", "Region", "Route"]

Place = tuple[int, int]
Area = tuple[int, int, int, int]

MOST_SIDE = (1 << 16) - 1
_OWN = os.path.dirname(os.path.abspath(__file__))


class Route(enum.Enum):
    """Ports of a router."""

    RAMP = 0
    EAST = 1
    WEST = 2
    NORTH = 3
    SOUTH = 4


class Edge(enum.Enum):
    """Edges of a region."""

    TOP = 0
    BOTTOM = 1
    LEFT = 2
    RIGHT = 3


_BITS = {Route.WEST: 1, Route.EAST: 2, Route.SOUTH: 4, Route.NORTH: 8, Route.RAMP: 16}


@dataclass(frozen=True)
class Position:
    """A route, or one position of a switch: where words come from and where they go."""

    inputs: tuple[Route, ...] = ()
    outputs: tuple[Route, ...] = ()


FROM_RAMP = Position(inputs=(Route.RAMP,))
TO_RAMP = Position(outputs=(Route.RAMP,))


@dataclass(frozen=True)
class Color:
    """A color of a layout; ``region`` is the number of the region it belongs to, if any."""

    name: str
    number: Optional[int] = None
    region: Optional[int] = None
    layout: Optional[Layout] = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Port:
    """A port of a region."""

    id: int
    name: str
    layout: Optional[Layout] = field(default=None, compare=False, repr=False)


class Layout:
    """Regions and what joins them.

    Args:
        target: ``wse2`` or ``wse3``.
        size: columns and rows of the mesh; as large as needed if left out.
    """

    def __init__(self, target: str = "wse3", size: Optional[Place] = None) -> None:
        self._native = _native.Layout(target)
        self._colors: list[Color] = []
        self._numbers: list[int] = []
        if size is not None:
            columns, rows = (whole(side, "a side of the mesh", 1, MOST_SIDE) for side in size)
            self._native.set_size(columns, rows)

    @property
    def target(self) -> str:
        """Name of the target."""
        return self._native.target

    @property
    def text(self) -> str:
        """The requests so far, one per line."""
        return self._native.text

    def region(
        self,
        name: str,
        source: Union[str, os.PathLike[str]],
        width: int,
        height: int,
        tile: Optional[str] = None,
    ) -> Region:
        """Add ``width`` x ``height`` PEs that run a source file, or a tile of it."""
        self._here()
        id = self._native.region(name, os.fspath(source), integer(width), integer(height), tile)
        return Region(self, id, name, integer(width), integer(height))

    def color(self, name: str, number: Optional[int] = None) -> Color:
        """Give a color of the whole layout: the same for the same name."""
        return Color(name, number)

    def connect(self, output: Port, input: Port) -> None:
        """Send the words that leave a port into another, along ways that are found."""
        self._here()
        self._native.connect(self._port(output), self._port(input))

    def input_stream(self, port: Port, via: Optional[Place] = None, buffer: int = 1024) -> str:
        """Join an input port to the host, through the PE ``via`` if given; give the stream's name.

        ``buffer`` words of a send may wait outside the mesh when the send is done.
        """
        self._here()
        return self._native.stream(self._port(port), True, _optional(via), _buffer(buffer))

    def output_stream(self, port: Port, via: Optional[Place] = None, buffer: int = 1024) -> str:
        """Join an output port to the host; give the stream's name.

        The host takes ``buffer`` words more than it was asked to receive.
        """
        self._here()
        return self._native.stream(self._port(port), False, _optional(via), _buffer(buffer))

    def input_stream_at(self, place: Place, color: Color, prefix: str = "") -> str:
        """Join the host to a color that is painted on a PE; give the stream's name."""
        self._here()
        return self._native.stream_at(_place(place), self._color(color), True, prefix)

    def output_stream_at(self, place: Place, color: Color, prefix: str = "") -> str:
        """Likewise, towards the host."""
        self._here()
        return self._native.stream_at(_place(place), self._color(color), False, prefix)

    def stack(
        self, regions: Sequence[Region], horizontal: bool, origin: Optional[Place] = None
    ) -> int:
        """Place regions in a row or a column, from the first one's place or from ``origin`` on.

        Give the extent of all of them.
        """
        self._here()
        for region in regions:
            self._own(region.layout, f"region `{region.name}`")
        ids = [region.id for region in regions]
        return self._native.stack(ids, horizontal, _optional(origin))

    def compile(
        self,
        folder: Union[str, os.PathLike[str]],
        import_paths: Sequence[Union[str, os.PathLike[str]]] = (),
        half: str = "f16",
    ) -> Program:
        """Compile, and write the folder that ``Program.load`` and ``SdkRuntime`` take.

        ``half`` is the 16-bit float that PEs compute in, ``"f16"`` or ``"bf16"``.
        """
        if not os.fspath(folder):
            raise HostError("the folder that a layout is compiled to has no name")
        paths = [os.fspath(path) for path in import_paths]
        self._numbers, report = self._native.compile(Path(folder), paths, half)
        if report:
            print(report, file=sys.stderr, end="")
        return Program.load(folder)

    def number_of(self, color: Color) -> Optional[int]:
        """Give the number that a color got when the layout was compiled."""
        id = self._color(color)
        return self._numbers[id] if id < len(self._numbers) else color.number

    def _color(self, color: Color) -> int:
        if color.region is not None:
            self._own(color.layout, f"color `{color.name}`")
        number = color.number
        if number is not None:
            number = integer(number, f"the number of color `{color.name}`")
        return self._native.color(color.region, color.name, number)

    def _port(self, port: Port) -> int:
        self._own(port.layout, f"port `{port.name}`")
        return port.id

    def _own(self, layout: Optional[Layout], what: str) -> None:
        """Refuse what another layout made: its number means something else here."""
        if layout is not None and layout is not self:
            raise HostError(f"{what} is of another layout")

    def _here(self) -> None:
        """Tell where in the caller's program the next request stands."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(_OWN):
            frame = frame.f_back
        if frame is not None:
            self._native.at(frame.f_code.co_filename, frame.f_lineno)


class Region:
    """PEs that run one source."""

    def __init__(self, layout: Layout, id: int, name: str, width: int, height: int) -> None:
        self.layout = layout
        self.id = id
        self.name = name
        self.width = width
        self.height = height

    def __repr__(self) -> str:
        return f"<region {self.name}, {self.width} x {self.height} PEs>"

    def place(self, x: int, y: int) -> None:
        """Put the north-west corner on a PE."""
        self.layout._here()
        self._native.place(self.id, integer(x), integer(y))

    def color(self, name: str, number: Optional[int] = None) -> Color:
        """Give a color of this region: the same for the same name."""
        return Color(name, number, self.id, self.layout)

    def set(self, area: Optional[Area] = None, /, **params: Any) -> None:
        """Set params on all PEs, or on those of ``(x, y, width, height)``."""
        for name, value in params.items():
            self.set_param(name, value, area)

    def set_param(self, name: str, value: Any, area: Optional[Area] = None) -> None:
        """Set a param: an integer, a bool, a float or a color; the last value holds."""
        self.layout._here()
        native, area = self._native, self._all if area is None else _area(area)
        if isinstance(value, Color):
            native.set_color(self.id, area, name, self.layout._color(value))
        elif isinstance(value, (float, np.floating)):
            native.set_float(self.id, area, name, float(value))
        else:
            native.set_int(self.id, area, name, integer(value, f"param `{name}`", 127))

    def paint(
        self,
        color: Color,
        positions: Union[Position, Sequence[Position]],
        area: Optional[Area] = None,
        edge: Optional[Edge] = None,
    ) -> None:
        """Route a color on all PEs, an area or an edge; further positions are a switch's."""
        self.layout._here()
        id, routes = self.layout._color(color), _positions(positions)
        if edge is not None:
            self._native.paint_edge(self.id, edge.value, id, routes)
        else:
            area = self._all if area is None else _area(area)
            self._native.paint(self.id, area, id, routes)

    def input_port(
        self,
        color: Color,
        edge: Edge,
        size: int,
        positions: Union[Position, Sequence[Position]] = TO_RAMP,
        prefix: str = "",
    ) -> Port:
        """Make a port over an edge through which ``size`` words come in."""
        return self._port(True, color, edge, size, positions, prefix)

    def output_port(
        self,
        color: Color,
        edge: Edge,
        size: int,
        positions: Union[Position, Sequence[Position]] = FROM_RAMP,
        prefix: str = "",
    ) -> Port:
        """Make a port over an edge through which ``size`` words go out."""
        return self._port(False, color, edge, size, positions, prefix)

    def set_array(self, name: str, matrix: npt.NDArray[Any]) -> None:
        """Give an array of the code its first values: a block of the matrix on each PE."""
        self.layout._here()
        matrix = np.atleast_2d(np.asarray(matrix))
        rows, columns = matrix.shape
        values = matrix.astype(matrix.dtype.newbyteorder("<"), copy=False)
        self._native.set_symbol(
            self.id, name, matrix.dtype.itemsize, values.tobytes(), columns, rows
        )

    def _port(
        self,
        input: bool,
        color: Color,
        edge: Edge,
        size: int,
        positions: Union[Position, Sequence[Position]],
        prefix: str,
    ) -> Port:
        self.layout._here()
        words = integer(size, "the size of a port")
        if words < 0:
            raise HostError(f"the size of a port is {words}, which is no number of words")
        native = self._native
        id = native.port(
            self.id,
            input,
            self.layout._color(color),
            edge.value,
            _positions(positions),
            words,
            prefix,
        )
        return Port(id, native.port_name(id), self.layout)

    @property
    def _native(self) -> _native.Layout:
        return self.layout._native

    @property
    def _all(self) -> Area:
        return (0, 0, self.width, self.height)


def integer(value: Any, what: str = "a size or place", bits: int = 63) -> int:
    """Give a whole number of so many bits and a sign, NumPy's included; a bool is 0 or 1."""
    try:
        number = int(value) if isinstance(value, np.bool_) else operator.index(value)
    except TypeError:
        raise HostError(f"{what} must be an integer, found {type(value).__name__}") from None
    if not -(1 << bits) <= number < 1 << bits:
        raise HostError(f"{what} is {number}, which is too large")
    return number


def _optional(place: Optional[Place]) -> Optional[Place]:
    return None if place is None else _place(place)


def _place(place: Place) -> Place:
    try:
        x, y = place
    except (TypeError, ValueError):
        raise HostError(f"a place is (column, row), found {place!r}") from None
    return integer(x), integer(y)


def _area(area: Area) -> Area:
    try:
        x, y, width, height = area
    except (TypeError, ValueError):
        raise HostError(
            f"an area is (first column, first row, columns, rows), found {area!r}"
        ) from None
    return integer(x), integer(y), integer(width), integer(height)


def _buffer(buffer: int) -> int:
    words = integer(buffer, "the buffer of a stream")
    if not 0 <= words < 1 << 32:
        raise HostError(f"the buffer of a stream is {words}, which is no number of words")
    return words


def _positions(positions: Union[Position, Sequence[Position]]) -> list[tuple[int, int]]:
    several = [positions] if isinstance(positions, Position) else list(positions)
    return [(_bits(one.inputs), _bits(one.outputs)) for one in several]


def _bits(routes: Sequence[Route]) -> int:
    bits = 0
    for route in routes:
        bits |= _BITS[route]
    return bits
