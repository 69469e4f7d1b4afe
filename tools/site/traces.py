# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of one program of a launch: which elements it stores, and which ones these depend on.

Nothing is drawn by hand. A call of an operator runs in the interpreter, which runs the programs of a
launch in their order. So two grids that differ by one program show what that program stores. Inputs
are then changed, a cell of the picture at a time, to see which of the stored elements change.
"""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tessera.errors import MemoryAccessError
from tessera.frontend.signature import kernel_name
from tessera.runtime import launching
from tessera.runtime.interpreting import interpret_launch
from tessera.settings import settings

ROWS, COLUMNS = 6, 8
"""The most cells of an array's picture."""

_CELL, _SIDE, _GAP, _LABEL = 12, 10, 10, 14
_LEFT, _RIGHT, _WIDTH = 8, 168, 290
_MAX_INPUTS = 4

Array = np.ndarray[Any, Any]


@dataclasses.dataclass
class Launch:
    """A launch with its arguments, as they were before it."""

    kernel: Any
    options: Any
    values: list[Any]
    grid: tuple[int, int, int]
    outputs: frozenset[str]
    """The names of parameters that the kernel stores to."""

    @property
    def size(self) -> int:
        """The elements of all of its arrays."""
        return sum(array.size for array in arrays_of(self.values))


def copied(value: Any) -> Any:
    """A copy of an argument: an array, a list of arrays, or anything else, which is kept."""
    if isinstance(value, np.ndarray):
        return copied_array(value)
    return type(value)(map(copied, value)) if type(value) in (list, tuple) else value


def copied_array(array: Array) -> Array:
    """A copy with the strides of the array, which a kernel has as numbers."""
    if array.flags.c_contiguous or not array.size:
        dense: Array = array.copy()
        return dense
    last = sum((extent - 1) * stride for extent, stride in zip(array.shape, array.strides))
    memory = np.zeros(last // array.itemsize + 1, array.dtype)
    view: Array = np.lib.stride_tricks.as_strided(memory, array.shape, array.strides)
    view[...] = array
    return view


def arrays_of(value: Any) -> list[Array]:
    """The arrays of an argument, in order."""
    if isinstance(value, np.ndarray):
        return [value]
    if type(value) in (list, tuple):
        return [array for each in value for array in arrays_of(each)]
    return []


def launches_of(call: Callable[[], Any]) -> list[Launch]:
    """The launches that a call makes, which run in the interpreter."""
    found: list[Launch] = []

    def watch(fn: Any, bound: Any, values: Sequence[Any], options: Any, grid: Any) -> None:
        before = [copied(value) for value in values]
        interpret_launch(fn, bound, values, options, grid)
        module = fn._modules[tuple(bound.key), options.key][0]
        stored = module.stored_arguments(kernel_name(fn, bound.specs))
        slots = [item.name for item in bound.pointers if item.slot in stored]
        # An array of a list has the name of the parameter, then its place.
        names = frozenset(re.split(r"[.\[]", name)[0] for name in slots)
        found.append(Launch(fn, options, before, grid, names))

    setattr(launching, "interpret_launch", watch)
    try:
        with settings.override(interpret=True):
            call()
    finally:
        setattr(launching, "interpret_launch", interpret_launch)
    return found


def run(launch: Launch, values: Sequence[Any], programs: int) -> list[list[Array]]:
    """The arrays of each argument after the first programs of a launch."""
    after = [copied(value) for value in values]
    if programs:
        bound = launch.kernel._specialise(after)
        interpret_launch(launch.kernel, bound, after, launch.options, (programs, 1, 1))
    return [arrays_of(value) for value in after]


def cells(shape: Sequence[int]) -> Array:
    """The cell of the picture that each element of an array is in: `row * COLUMNS + column`."""
    columns = shape[-1] if shape else 1
    rows = int(np.prod(shape[:-1])) if shape else 1
    row = np.arange(rows) * min(ROWS, rows) // max(rows, 1)
    column = np.arange(columns) * min(COLUMNS, columns) // max(columns, 1)
    made: Array = (row[:, None] * COLUMNS + column[None, :]).reshape(shape)
    return made


def differs(one: Array, other: Array) -> Array:
    """True where two arrays have other bits."""
    size = one.dtype.itemsize
    bits = [np.ascontiguousarray(each).view(np.uint8).reshape(-1, size) for each in (one, other)]
    found: Array = (bits[0] != bits[1]).any(axis=1).reshape(one.shape)
    return found


def changed(array: Array, chosen: Array) -> Array:
    """An array with other values where `chosen` is true, which stay in the range of the array."""
    made = copied_array(array)
    if array.dtype == np.bool_:
        made[chosen] = ~made[chosen]
    elif array.dtype.kind in "iu":
        made[chosen] = (made[chosen] + 1) % (array.max(initial=0) + 1)
    else:
        made[chosen] = made[chosen] * 1.5 + 1
    return made


def stored_by(launch: Launch, program: int) -> list[list[Array]]:
    """The elements of each argument's arrays that a program stores.

    A store of what is there already is no change. So outputs are also filled with another number.
    """
    filled = [copied(value) for value in launch.values]
    for name, value in zip(launch.kernel.arg_names, filled):
        for array in arrays_of(value) if name in launch.outputs else ():
            array.fill(77)
    found = []
    for values in (launch.values, filled):
        try:
            before, after = (run(launch, values, count) for count in (program, program + 1))
        except MemoryAccessError:  # a kernel that reads what it stores, as a place
            continue
        found.append([list(map(differs, *pair)) for pair in zip(before, after)])
    return [[np.logical_or.reduce(arrays) for arrays in zip(*each)] for each in zip(*found)]


def read_by(launch: Launch, program: int, stored: list[list[Array]], at: int) -> set[int]:
    """The cells of the argument `at`, which is one array, that the stored elements depend on."""
    expected = run(launch, launch.values, program + 1)
    cell_of = cells(launch.values[at].shape)
    found = set()
    for cell in np.unique(cell_of):
        values = list(launch.values)
        values[at] = changed(values[at], cell_of == cell)
        try:
            after = run(launch, values, program + 1)
        except MemoryAccessError:  # places that have to be in order are none of these any more
            found.add(int(cell))
            continue
        if any(
            (differs(one, other) & of).any()
            for number, arrays in enumerate(after)
            if number != at
            for one, other, of in zip(arrays, expected[number], stored[number])
        ):
            found.add(int(cell))
    return found


def picture(launch: Launch) -> tuple[str, int]:
    """The picture of a program of a launch, as SVG, and the number of the program."""
    program = min(1, launch.grid[0] - 1)
    stored = stored_by(launch, program)
    inputs: list[tuple[str, Sequence[int], dict[int, str]]] = []
    outputs: list[tuple[str, Sequence[int], dict[int, str]]] = []
    for at, (name, value) in enumerate(zip(launch.kernel.arg_names, launch.values)):
        arrays = arrays_of(value)
        if name in launch.outputs:
            for number, array in enumerate(arrays):
                hot = set(map(int, np.unique(cells(array.shape)[stored[at][number]])))
                title = name if isinstance(value, np.ndarray) else f"{name}[{number}]"
                outputs.append((title, array.shape, dict.fromkeys(hot, "hot")))
        elif isinstance(value, np.ndarray) and len(inputs) < _MAX_INPUTS:
            read = read_by(launch, program, stored, at)
            inputs.append((name, value.shape, dict.fromkeys(read, "warm")))
    left, left_end = _column(inputs, _LEFT)
    right, right_end = _column(outputs[:_MAX_INPUTS], _RIGHT)
    height = max(left_end, right_end, 40)
    says = f"What program {program} of {launch.kernel.fn.__name__} reads and stores"
    arrow = f'<text x="{(_LEFT + COLUMNS * _CELL + _RIGHT) / 2:g}" y="{height / 2:g}">→</text>'
    svg = (
        f'<svg class="picture arrays" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{html.escape(says)}">{"".join(left)}{arrow}{"".join(right)}</svg>'
    )
    return svg, program


def _column(
    arrays: Sequence[tuple[str, Sequence[int], dict[int, str]]], x: int
) -> tuple[list[str], int]:
    """The pictures of arrays below each other, and where they end."""
    parts: list[str] = []
    y = _GAP
    for name, shape, kinds in arrays:
        extents = "×".join(map(str, shape)) or "one number"
        parts.append(f'<text class="label" x="{x}" y="{y + 8}">{name}: {extents}</text>')
        y += _LABEL
        squares: dict[str, str] = {}
        for cell in _places(shape):
            row, column = divmod(cell, COLUMNS)
            kind = kinds.get(cell, "cold")
            square = f"M{x + column * _CELL} {y + row * _CELL}h{_SIDE}v{_SIDE}h-{_SIDE}z"
            squares[kind] = squares.get(kind, "") + square
        parts += (f'<path class="{kind}" d="{path}"/>' for kind, path in squares.items())
        y += (max(_places(shape), default=0) // COLUMNS + 1) * _CELL + _GAP
    return parts, y


def _places(shape: Sequence[int]) -> list[int]:
    return [int(cell) for cell in np.unique(cells(shape))]


def pictures(launches: Sequence[Launch]) -> Iterator[tuple[Launch, str, int]]:
    """The launch with the largest arrays, with its picture and the program that it shows."""
    if launches:
        largest = max(launches, key=lambda launch: launch.size)
        yield largest, *picture(largest)
