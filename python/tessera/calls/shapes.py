# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The shapes of a plain call: "x[m, n], y -> out[m / BLOCK]".

The arguments of the call stand on the left of the arrow, and the arrays that it makes on the right.
All are parameters of the kernel. The names in brackets are the extents of an array:

- `n` is an extent; if a name occurs twice, the extents must be equal.
- `*n` is any number of extents; its value is their product. Where arguments have other extents for it,
  they are broadcast.
- `4` is a fixed extent.
- `n / BLOCK` on the right: a program computes BLOCK elements along that extent. The extents with a
  block are the axes of the grid, in order.

An argument without brackets, such as a number, is passed unchanged. `out[n]: float32` gives an
output's type, and `out[n]: x` gives it the type of x. By default it has the type of the first
array.

An example is `a[m, k], b[k, n] -> c[m / BM, n / BN]`, with arguments of 100x64 and 64x300. The
output is 100x300, and with blocks of 32x64 the grid is (4, 5).
"""

from __future__ import annotations

import re
from typing import Mapping, NamedTuple, Optional, Sequence, Union

from tessera.calls.iteration import broadcast
from tessera.errors import ArgumentError, LaunchError

_NAME = r"[A-Za-z_]\w*"
_ARRAY = re.compile(rf"\s*({_NAME})\s*(?:\[([^\]]*)\])?\s*(?::\s*([\w.]+))?\s*")
_EXTENT = re.compile(rf"\s*(\*?)\s*({_NAME}|\d+)\s*(?:/\s*({_NAME}|\d+))?\s*")


class ShapesError(ValueError):
    """A text of shapes that cannot be read."""


class Extent(NamedTuple):
    """One extent of an array, or with `is_rest` any number of them."""

    name: str
    """Empty for a number."""
    number: int
    is_rest: bool
    block: Union[None, int, str]
    """How many elements a program makes: a number, or the parameter that says it."""


class ArrayShape(NamedTuple):
    """An argument or an output."""

    name: str
    extents: Optional[tuple[Extent, ...]]
    """None where no brackets say anything of it."""
    dtype: str


class Shapes(NamedTuple):
    """The meaning of a text of shapes."""

    inputs: tuple[ArrayShape, ...]
    outputs: tuple[ArrayShape, ...]

    @property
    def extent_names(self) -> set[str]:
        """The names of all extents."""
        arrays = [*self.inputs, *self.outputs]
        return {extent.name for array in arrays for extent in array.extents or ()} - {""}


def parse_shapes(text: str) -> Shapes:
    """Reads "x[n], y -> out[n / BLOCK]". Raises ShapesError."""
    left, arrow, right = text.partition("->")
    if not arrow:
        raise ShapesError(f"there is no `->` in {text!r}")
    shapes = Shapes(_parse_arrays(left), _parse_arrays(right))
    if not shapes.outputs:
        raise ShapesError(f"there is no output in {text!r}")
    names = [array.name for array in (*shapes.inputs, *shapes.outputs)]
    for name in names:
        if names.count(name) > 1:
            raise ShapesError(f"`{name}` comes twice in {text!r}")
    known: dict[str, bool] = {}
    for array in shapes.inputs:
        if array.dtype:
            raise ShapesError(f"the input `{array.name}` has a type, which only outputs have")
        for extent in array.extents or ():
            if extent.block is not None:
                raise ShapesError(f"the input `{array.name}` has a block, which only outputs have")
            if extent.name and known.setdefault(extent.name, extent.is_rest) != extent.is_rest:
                raise ShapesError(f"`{extent.name}` comes with and without `*`")
    for array in shapes.outputs:
        if array.extents is None:
            raise ShapesError(f"the output `{array.name}` has no shape: write {array.name}[...]")
        for extent in array.extents:
            if not extent.name:
                continue
            if extent.name not in known:
                raise ShapesError(
                    f"`{extent.name}` of the output `{array.name}` is an extent of no input"
                )
            if extent.is_rest != known[extent.name]:
                raise ShapesError(f"`{extent.name}` comes with and without `*`")
    return shapes


def _parse_arrays(text: str) -> tuple[ArrayShape, ...]:
    arrays = []
    at = 0
    while text[at:].strip():
        match = _ARRAY.match(text, at)
        if match is None:
            raise ShapesError(f"a name is expected at {text[at:].strip()!r}")
        name, extents, dtype = match.groups()
        parsed = None if extents is None else _parse_extents(extents, name)
        arrays.append(ArrayShape(name, parsed, dtype or ""))
        at = match.end()
        if at < len(text):
            if text[at] == "[":
                raise ShapesError(f"the `[` behind `{name}` is not closed: write {name}[n]")
            if text[at] != ",":
                raise ShapesError(f"a comma is expected at {text[at:].strip()!r}")
            at += 1
            if not text[at:].strip():
                raise ShapesError("nothing comes after the last comma")
    return tuple(arrays)


def _parse_extents(text: str, name: str) -> tuple[Extent, ...]:
    if not text.strip():
        return ()
    found = []
    for item in text.split(","):
        match = _EXTENT.fullmatch(item)
        if match is None:
            raise ShapesError(f"`{item.strip()}` is no extent of `{name}`")
        star, extent, block = match.groups()
        number = int(extent) if extent.isdigit() else 0
        if star and extent.isdigit():
            raise ShapesError(f"`*{extent}` of `{name}` has no name")
        if block == "0":
            raise ShapesError(f"`{name}` has blocks of 0 elements")
        size: Union[None, int, str] = int(block) if block and block.isdigit() else block
        found.append(Extent("" if extent.isdigit() else extent, number, bool(star), size))
    if sum(extent.is_rest for extent in found) > 1:
        raise ShapesError(f"`{name}` has two `*`")
    return tuple(found)


class Sizes:
    """The values of the names of extents in one call."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[tuple[int, ...], str]] = {}

    def bind(self, array: ArrayShape, shape: Sequence[int]) -> None:
        """Takes the extents of an argument. Raises ArgumentError (E076) where they do not fit."""
        extents = array.extents or ()
        rest = next((i for i, extent in enumerate(extents) if extent.is_rest), None)
        short = len(extents) - (rest is not None)
        if len(shape) != len(extents) if rest is None else len(shape) < short:
            raise _mismatch(
                array, shape, f"has {len(shape)} dimensions, where [{spelled(extents)}] is expected"
            )
        at = 0
        for extent in extents:
            width = len(shape) - short if extent.is_rest else 1
            here = tuple(shape[at : at + width])
            at += width
            if not extent.name:
                if here != (extent.number,):
                    raise _mismatch(
                        array, shape, f"has {here[0]} where {extent.number} is expected"
                    )
                continue
            known, where = self._found.setdefault(extent.name, (here, array.name))
            if known != here:
                raise _mismatch(
                    array,
                    shape,
                    f"has {_numbers(here)} for `{extent.name}`, which is {_numbers(known)} in "
                    f"`{where}`",
                )

    def of(self, extent: Extent) -> tuple[int, ...]:
        """The extents that one stands for."""
        return self._found[extent.name][0] if extent.name else (extent.number,)

    def count(self, extent: Extent) -> int:
        """Their product."""
        product = 1
        for size in self.of(extent):
            product *= size
        return product

    def shape(self, array: ArrayShape) -> tuple[int, ...]:
        """The shape of an output."""
        return tuple(size for extent in array.extents or () for size in self.of(extent))

    def named(self) -> dict[str, int]:
        """The number that each name stands for."""
        return {name: self.count(Extent(name, 0, False, None)) for name in self._found}


def broadcast_shapes(
    arrays: Sequence[ArrayShape], shapes: Sequence[tuple[int, ...]]
) -> Sequence[tuple[int, ...]]:
    """The shapes of arguments once the extents of each `*n` are broadcast. Those that do not fit stay."""
    parts: dict[str, list[tuple[int, ...]]] = {}
    places: list[Optional[tuple[str, int, int]]] = []
    for array, shape in zip(arrays, shapes):
        extents = array.extents or ()
        at = next((i for i, extent in enumerate(extents) if extent.is_rest), None)
        width = len(shape) - len(extents) + 1
        if at is None or width < 0:
            places.append(None)
            continue
        places.append((extents[at].name, at, width))
        parts.setdefault(extents[at].name, []).append(tuple(shape[at : at + width]))
    found = {}
    for name, several in parts.items():
        found[name], wrong = broadcast(several)
        if wrong is not None:
            return shapes
    return [
        (
            shape
            if place is None
            else (*shape[: place[1]], *found[place[0]], *shape[place[1] + place[2] :])
        )
        for place, shape in zip(places, shapes)
    ]


class BlockGrid:
    """The grid of a call: a function of arguments and options, as a launch takes one."""

    def __init__(self, axes: Sequence[tuple[int, Union[int, str]]]) -> None:
        self._axes = axes

    def __call__(self, meta: Mapping[str, int]) -> tuple[int, ...]:
        grid = []
        for size, block in self._axes:
            width = meta[block] if isinstance(block, str) else block
            if width < 1:
                raise LaunchError("E076", f"`{block}` is {width}", "a block has 1 element or more")
            grid.append(-(-size // width))
        return tuple(grid)


def spelled(extents: Sequence[Extent]) -> str:
    """As in the text."""
    return ", ".join(
        "*" * extent.is_rest + (extent.name or str(extent.number)) for extent in extents
    )


def _numbers(sizes: tuple[int, ...]) -> str:
    return str(sizes[0]) if len(sizes) == 1 else str(sizes)


def _mismatch(array: ArrayShape, shape: Sequence[int], why: str) -> ArgumentError:
    return ArgumentError(
        "E076",
        f"argument `{array.name}` of shape {tuple(shape)} {why}",
        "pass arrays whose shapes fit the text of @tessera.function",
    )
