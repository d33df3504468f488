"""``SdkLayout``: layouts as existing host scripts build them."""

from __future__ import annotations

import enum
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from dflow import layout as built
from dflow.errors import HostError
from dflow.layout import Edge, Route, integer
from dflow.sdk.commands import LEVELS
from dflow.sdk.geometry import IntRectangle, IntVector
from dflow.sdk.platform import Platform, SdkTarget
from dflow.sdk.runtime import SdkCompileArtifacts

__all__ = [
    "FP16TYPE",
    "CodeRegion",
    "Color",
    "Edge",
    "EdgeRouteInfo",
    "PortHandle",
    "Route",
    "RoutingPosition",
    "SdkLayout",
    "get_edge_routing",
]

PortHandle = built.Port
ARRAYS = ("int32", "uint32", "float32", "int16", "uint16")


class FP16TYPE(enum.Enum):
    """Formats of 16-bit floats."""

    F16 = 0
    BF16 = 1
    CB16 = 2


#: Formats that PEs compute in, and their names in the language.
HALVES = {FP16TYPE.F16: "f16", FP16TYPE.BF16: "bf16"}


class Color:
    """A color by its name, with or without a number; the layout gives it one when it compiles."""

    def __init__(self, name: str, value: Optional[int] = None) -> None:
        if not isinstance(name, str):
            raise HostError(f"the name of a color must be a str, found {type(name).__name__}")
        self._name = name
        self._given = None if value is None else integer(value, f"the value of color `{name}`")
        if self._given is not None and not 0 <= self._given < 24:
            raise HostError(f"color `{name}` is given number {self._given}: colors are 0 to 23")
        self._region: Optional[built.Region] = None
        self._number: Optional[int] = None

    def __repr__(self) -> str:
        return f"Color({self.get_global_name()!r})"

    def get_global_name(self) -> str:
        """Give the name that is unique in the layout."""
        return self._name if self._region is None else f"{self._region.name}_{self._name}"

    def get_local_param_name(self) -> str:
        """Give the name of the param that it is bound to by default."""
        return self._name

    def get_value(self) -> Optional[int]:
        """Give the number; none before the layout is compiled, unless one was given."""
        return self._given if self._number is None else self._number

    def _built(self) -> built.Color:
        if self._region is None:
            return built.Color(self._name, self._given)
        return built.Color(self._name, self._given, self._region.id, self._region.layout)


class RoutingPosition:
    """Where words come from and where they go."""

    def __init__(self) -> None:
        self._input: list[Route] = []
        self._output: list[Route] = []

    def __repr__(self) -> str:
        ways = [" ".join(route.name for route in side) for side in (self._input, self._output)]
        return f"<{ways[0] or 'nothing'} to {ways[1] or 'nothing'}>"

    def set_input(self, routes: Sequence[Route]) -> RoutingPosition:
        """Take words from these ports."""
        self._input = _routes(routes)
        return self

    def set_output(self, routes: Sequence[Route]) -> RoutingPosition:
        """Send them to these."""
        self._output = _routes(routes)
        return self

    def add_input(self, route: Route) -> RoutingPosition:
        """Take words from one port more."""
        self._input += _routes([route])
        return self

    def add_output(self, route: Route) -> RoutingPosition:
        """Send them to one port more."""
        self._output += _routes([route])
        return self

    def get_input(self) -> list[Route]:
        """Give the ports that words are taken from."""
        return list(self._input)

    def get_output(self) -> list[Route]:
        """Give the ports that they are sent to."""
        return list(self._output)

    def _built(self) -> built.Position:
        return built.Position(tuple(self._input), tuple(self._output))


class EdgeRouteInfo:
    """Positions for one edge; see ``get_edge_routing``."""

    def __init__(self, edge: Edge, positions: list[built.Position]) -> None:
        self._edge = edge
        self._positions = positions


def get_edge_routing(edge: Edge, routes: Sequence[RoutingPosition]) -> EdgeRouteInfo:
    """Give positions for one edge, to be painted over those of the whole region."""
    return EdgeRouteInfo(_edge(edge), _positions(routes))


class CodeRegion:
    """PEs that run one source; ``SdkLayout.create_code_region`` makes it."""

    def __init__(self, layout: SdkLayout, region: built.Region) -> None:
        self._layout = layout
        self._region = region

    def __repr__(self) -> str:
        return repr(self._region)

    def place(self, x: int, y: int) -> None:
        """Put the north-west corner on a PE of the mesh."""
        self._region.place(x, y)

    def color(self, name: str, value: Optional[int] = None) -> Color:
        """Give a color of this region."""
        color = Color(name, value)
        color._region = self._region
        self._layout._know(color)
        return color

    def set_param(self, coord: IntVector, *args: Any) -> None:
        """Set a param on one PE: a name and a value, a color, or a name and a color."""
        self._set(_one(coord), args)

    def set_param_all(self, *args: Any) -> None:
        """Set a param on all PEs."""
        self._set(None, args)

    def set_param_range(self, rect: IntRectangle, *args: Any) -> None:
        """Set a param on the PEs of a rectangle."""
        self._set(_area(rect), args)

    def paint(self, coord: IntVector, color: Color, routes: Sequence[RoutingPosition]) -> None:
        """Route a color on one PE."""
        self._region.paint(self._color(color), _positions(routes), _one(coord))

    def paint_range(
        self, rect: IntRectangle, color: Color, routes: Sequence[RoutingPosition]
    ) -> None:
        """Route a color on the PEs of a rectangle."""
        self._region.paint(self._color(color), _positions(routes), _area(rect))

    def paint_all(
        self,
        color: Color,
        routes: Sequence[RoutingPosition],
        edge_routes: Sequence[EdgeRouteInfo] = (),
    ) -> None:
        """Route a color on all PEs, with other routes on edges."""
        self._region.paint(self._color(color), _positions(routes))
        for info in edge_routes:
            if not isinstance(info, EdgeRouteInfo):
                raise HostError("routes of edges come from get_edge_routing(edge, routes)")
            self._region.paint(self._color(color), info._positions, edge=info._edge)

    def create_input_port(
        self,
        color: Color,
        edge: Edge,
        routes: Sequence[RoutingPosition],
        data_size: int,
        prefix: str = "",
    ) -> PortHandle:
        """Make a port through which words come in; routes name outputs only."""
        positions = _positions(routes)
        return self._region.input_port(
            self._color(color), _edge(edge), data_size, positions, prefix
        )

    def create_output_port(
        self,
        color: Color,
        edge: Edge,
        routes: Sequence[RoutingPosition],
        data_size: int,
        prefix: str = "",
    ) -> PortHandle:
        """Make a port through which words go out; routes name inputs only."""
        positions = _positions(routes)
        return self._region.output_port(
            self._color(color), _edge(edge), data_size, positions, prefix
        )

    def set_symbol_all(self, symbol: str, data: npt.NDArray[Any], width: int, height: int) -> None:
        """Give an array its first values: a block of a ``height`` x ``width`` matrix on each PE."""
        array = np.asarray(data)
        if array.dtype.name not in ARRAYS:
            raise HostError(
                f"set_symbol_all of `{symbol}` wants elements of {', '.join(ARRAYS)}, "
                f"found {array.dtype}"
            )
        shape = (integer(height), integer(width))
        if array.size != shape[0] * shape[1] or min(shape) < 1:
            raise HostError(
                f"set_symbol_all of `{symbol}` is told of {height} rows of {width}, "
                f"and given {array.size} elements"
            )
        self._region.set_array(symbol, array.reshape(shape))

    def _color(self, color: Color) -> built.Color:
        if not isinstance(color, Color):
            raise HostError(f"a Color is needed, found {type(color).__name__}")
        self._layout._know(color)
        return color._built()

    def _set(self, area: Optional[built.Area], args: tuple[Any, ...]) -> None:
        if len(args) == 1 and isinstance(args[0], Color):
            args = (args[0].get_local_param_name(), args[0])
        if len(args) != 2 or not isinstance(args[0], str):
            raise HostError("a param is set by a name and a value, a color, or a name and a color")
        name, value = args
        self._region.set_param(
            name, self._color(value) if isinstance(value, Color) else value, area
        )


class SdkLayout:
    """Regions and what joins them.

    Args:
        platform: what ``get_platform`` gave, a target, or the path of a JSON file that names
            ``target`` and ``fabric_dims``.
        msg_level: DEBUG, INFO, WARNING or ERROR.
    """

    def __init__(
        self,
        platform: Union[Platform, SdkTarget, str, os.PathLike[str]],
        msg_level: str = "WARNING",
    ) -> None:
        if msg_level not in LEVELS:
            raise HostError(f"msg_level is one of {', '.join(LEVELS)}, found {msg_level!r}")
        self._level = LEVELS.index(msg_level)
        target, size = _fabric(platform)
        self._layout = built.Layout(target, size)
        self._colors: list[Color] = []

    def create_code_region(self, source: str, name: str, width: int, height: int) -> CodeRegion:
        """Add ``width`` x ``height`` PEs that run a source file."""
        return CodeRegion(self, self._layout.region(name, source, width, height))

    def connect(self, tx: PortHandle, rx: PortHandle) -> None:
        """Send the words that leave one port into another."""
        self._layout.connect(_port(tx), _port(rx))

    def create_input_stream(
        self,
        port: PortHandle,
        io_loc: Optional[IntVector] = None,
        io_buffer_size: int = 1024,
    ) -> str:
        """Join an input port to the host; give the name for ``SdkRuntime.send``."""
        return self._layout.input_stream(_port(port), _optional(io_loc), io_buffer_size)

    def create_output_stream(
        self,
        port: PortHandle,
        io_loc: Optional[IntVector] = None,
        io_buffer_size: int = 1024,
    ) -> str:
        """Join an output port to the host; give the name for ``SdkRuntime.receive``."""
        return self._layout.output_stream(_port(port), _optional(io_loc), io_buffer_size)

    def create_input_stream_from_loc(self, loc: IntVector, color: Color, prefix: str = "") -> str:
        """Join the host to a color that is painted on a PE."""
        self._know(color)
        return self._layout.input_stream_at(_place(loc), color._built(), prefix)

    def create_output_stream_from_loc(self, loc: IntVector, color: Color, prefix: str = "") -> str:
        """Likewise, towards the host."""
        self._know(color)
        return self._layout.output_stream_at(_place(loc), color._built(), prefix)

    def hstack(self, children: Sequence[CodeRegion], origin: Optional[IntVector] = None) -> int:
        """Place regions from west to east; give their width."""
        return self._stack(children, True, origin)

    def vstack(self, children: Sequence[CodeRegion], origin: Optional[IntVector] = None) -> int:
        """Place regions from north to south; give their height."""
        return self._stack(children, False, origin)

    def compile(
        self,
        out_prefix: Union[str, os.PathLike[str]],
        libs: Sequence[str] = (),
        cslc_prefix: str = "",
        save_port_map: bool = False,
        f16_type: FP16TYPE = FP16TYPE.F16,
    ) -> SdkCompileArtifacts:
        """Compile, and write the folder ``out_prefix``.

        The streams always stand in ``<out_prefix>/<name>_port_map.json``.
        """
        del save_port_map
        if f16_type not in HALVES:
            raise HostError(
                f"16-bit floats of layouts are FP16TYPE.F16 or FP16TYPE.BF16, found {f16_type}"
            )
        if cslc_prefix and self._level <= LEVELS.index("INFO"):
            print(f"dflow: its own compiler is used, not the one at {cslc_prefix}", file=sys.stderr)
        self._layout.compile(out_prefix, libs, HALVES[f16_type])
        for color in self._colors:
            color._number = self._layout.number_of(color._built())
        return SdkCompileArtifacts(out_prefix)

    def _stack(
        self, children: Sequence[CodeRegion], horizontal: bool, origin: Optional[IntVector]
    ) -> int:
        regions = [child._region for child in children]
        return self._layout.stack(regions, horizontal, _optional(origin))

    def _know(self, color: Color) -> None:
        """Remember a color, and let the layout have it."""
        if not isinstance(color, Color):
            raise HostError(f"a Color is needed, found {type(color).__name__}")
        if not any(color is known for known in self._colors):
            self._layout._here()
            self._layout._color(color._built())
            self._colors.append(color)


def _fabric(
    platform: Union[Platform, SdkTarget, str, os.PathLike[str]],
) -> tuple[str, Optional[tuple[int, int]]]:
    if isinstance(platform, SdkTarget):
        return platform.value, None
    if isinstance(platform, Platform):
        return platform.target.value, None
    if not isinstance(platform, (str, os.PathLike)):
        raise HostError(
            f"a platform, a target or the path of a fabric file is needed, found "
            f"{type(platform).__name__}"
        )
    path = Path(platform)
    try:
        fabric = json.loads(path.read_text(encoding="utf-8"))
        columns, rows = fabric["fabric_dims"]
        return str(fabric["target"]), (integer(columns), integer(rows))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HostError(
            f"{path} is no fabric file: it must name `target` and `fabric_dims` ({error})"
        ) from None


def _place(place: Any) -> built.Place:
    try:
        x, y = place
    except TypeError:
        raise HostError(f"an IntVector is needed, found {type(place).__name__}") from None
    return integer(x), integer(y)


def _optional(place: Any) -> Optional[built.Place]:
    return None if place is None else _place(place)


def _one(place: Any) -> built.Area:
    return (*_place(place), 1, 1)


def _area(rect: IntRectangle) -> built.Area:
    if not isinstance(rect, IntRectangle):
        raise HostError(f"an IntRectangle is needed, found {type(rect).__name__}")
    return (*_place(rect.origin), rect.width, rect.height)


def _positions(routes: Sequence[RoutingPosition]) -> list[built.Position]:
    if isinstance(routes, RoutingPosition):
        routes = [routes]
    positions = []
    for one in routes:
        if not isinstance(one, RoutingPosition):
            raise HostError(f"routes are RoutingPositions, found {type(one).__name__}")
        positions.append(one._built())
    return positions


def _routes(routes: Sequence[Route]) -> list[Route]:
    routes = [routes] if isinstance(routes, Route) else list(routes)
    for route in routes:
        if not isinstance(route, Route):
            raise HostError(f"a Route is needed, found {route!r}")
    return routes


def _edge(edge: Edge) -> Edge:
    if not isinstance(edge, Edge):
        raise HostError(f"an Edge is needed, found {edge!r}")
    return edge


def _port(port: PortHandle) -> PortHandle:
    if not isinstance(port, PortHandle):
        raise HostError(
            f"a port is needed, as create_input_port gives it, found {type(port).__name__}"
        )
    return port
