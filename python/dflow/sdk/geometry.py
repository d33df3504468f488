"""Places and rectangles of PEs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class IntVector:
    """A place or an extent: column and row."""

    x: int
    y: int

    def __iter__(self) -> Iterator[int]:
        return iter((self.x, self.y))

    def __add__(self, other: IntVector) -> IntVector:
        return IntVector(self.x + other.x, self.y + other.y)

    def __sub__(self, other: IntVector) -> IntVector:
        return IntVector(self.x - other.x, self.y - other.y)


@dataclass(frozen=True)
class IntRectangle:
    """The places from ``origin`` up to, and without, ``end``."""

    origin: IntVector
    end: IntVector

    def __contains__(self, place: IntVector) -> bool:
        inside_x = self.origin.x <= place.x < self.end.x
        return inside_x and self.origin.y <= place.y < self.end.y

    @property
    def width(self) -> int:
        """Columns."""
        return self.end.x - self.origin.x

    @property
    def height(self) -> int:
        """Rows."""
        return self.end.y - self.origin.y
