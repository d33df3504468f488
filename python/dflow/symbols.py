"""Symbols and variables that the host names, and how values are fitted to them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dflow.elements import as_array, dtype_of, elements_of, number_type, scalar_bits
from dflow.errors import HostError

# How alike a misspelt name and the one that is meant are at least.
NEAR = 0.75


@dataclass(frozen=True)
class Symbol:
    """Something the host can name.

    Attributes:
        name: the name.
        id: its number, for the vendor-shaped calls.
        kind: ``pointer``, ``scalar`` or ``function``.
        types: element type of a pointer or scalar, or the types of a function's parameters.
        mutable: whether the host may write it.
    """

    name: str
    id: int
    kind: str
    types: tuple[str, ...]
    mutable: bool

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy type of the elements of a pointer."""
        return dtype_of(self.types[0])

    def __str__(self) -> str:
        if self.kind == "function":
            return f"{self.name}: fn({', '.join(self.types)})"
        const = "" if self.mutable else "const "
        return f"{self.name}: {const}[*]{self.types[0]}"


def unknown_export(symbols: Mapping[str, Symbol], name: str, what: str = "nothing") -> HostError:
    """Say that a program exports nothing of a name: what may be meant, or what there is."""
    near = difflib.get_close_matches(str(name), symbols, 1, NEAR)
    there = f"did you mean `{near[0]}`?" if near else f"there is {named(symbols.values())}"
    return HostError(f"{what} is exported as `{name}`; {there}")


def named(symbols: Iterable[Symbol]) -> str:
    """Give the names of some symbols, for a message."""
    return ", ".join(f"`{symbol.name}`" for symbol in symbols) or "nothing"


def unknown_variable(where: str, name: str, known: list[str]) -> HostError:
    """Say that a PE has no variable of a name, or has several."""
    if not known:
        return HostError(f"{where} runs no program")
    fitting = [other for other in known if name in (other, other.rsplit(".", 1)[-1])]
    if fitting.count(name) > 1:
        return HostError(
            f"{where} has {fitting.count(name)} variables `{name}`: "
            "those of a module that is imported with several params have one name"
        )
    if len(fitting) > 1:
        shown = ", ".join(f"`{other}`" for other in sorted(fitting))
        return HostError(f"{where} has {len(fitting)} variables `{name}`: {shown}")
    near = difflib.get_close_matches(str(name), known, 1, NEAR)
    if near:
        return HostError(f"{where} has no variable `{name}`; did you mean `{near[0]}`?")
    shown = ", ".join(f"`{name}`" for name in sorted(known)[:12])
    return HostError(f"{where} has no variable `{name}`; it has {shown}")


def view(data: bytes, dtype: npt.DTypeLike, name: str) -> npt.NDArray[Any]:
    """Give bytes of a variable as an array of a type; a byte that is not 0 is true."""
    wanted = number_type(dtype)
    if wanted == np.bool_:
        return np.frombuffer(data, np.uint8) != 0
    if len(data) % wanted.itemsize:
        raise HostError(
            f"`{name}` has {len(data)} bytes, which is no whole number of {wanted} elements"
        )
    return elements_of(data, wanted)


def argument_words(symbol: Symbol, args: tuple[Any, ...]) -> list[int]:
    """Give the raw values of a function's arguments."""
    if len(args) != len(symbol.types):
        many = "argument" if len(symbol.types) == 1 else "arguments"
        raise HostError(
            f"`{symbol.name}` takes {len(symbol.types)} {many} ({', '.join(symbol.types)}), "
            f"found {len(args)}"
        )
    return [
        scalar_bits(value, name, f"argument {index} of `{symbol.name}`")
        for index, (value, name) in enumerate(zip(args, symbol.types), 1)
    ]


def as_elements(array: npt.ArrayLike, symbol: Symbol) -> npt.NDArray[Any]:
    """Give values as an array of a pointer's elements; plain numbers are converted."""
    values = as_array(array)
    wanted = symbol.dtype
    if values.dtype == wanted:
        return values
    if not isinstance(array, (np.ndarray, np.generic)):
        return _converted(values, symbol)
    raise HostError(
        f"`{symbol.name}` points to elements of type {symbol.types[0]}: expected an array of "
        f"{wanted}, found {values.dtype}; convert it, for instance with a.astype(np.{wanted})"
    )


def _converted(values: npt.NDArray[Any], symbol: Symbol) -> npt.NDArray[Any]:
    """Plain numbers, in the type of a symbol's elements."""
    wanted = symbol.dtype
    if values.dtype.kind in "iu" and wanted.kind in "iu":
        limits = np.iinfo(wanted)
        if values.size == 0 or (values.min() >= limits.min and values.max() <= limits.max):
            return values.astype(wanted)
    elif values.dtype.kind in "iuf" and wanted.kind == "f":
        with np.errstate(over="ignore"):
            rounded = values.astype(wanted)
        if np.array_equal(np.isfinite(rounded), np.isfinite(values)):
            return rounded
    raise HostError(
        f"`{symbol.name}` points to elements of type {symbol.types[0]}: not all of the given "
        "values are such numbers"
    )
