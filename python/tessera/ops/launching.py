# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches on arrays of any library, and the lines of an array along one dimension."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional, Sequence

from tessera.calls import recording
from tessera.calls.outputs import library_of, make_output
from tessera.calls.plans import library_dtype
from tessera.errors import ArgumentError
from tessera.language import types
from tessera.locks import load
from tessera.ops.tuning import Choice

MAX_TILE = 4096
"""Elements of a tile."""


_MIN_WIDTH = 32
"""Neighbours that a tile has at least, if there are so many."""


class Spec(NamedTuple):
    """An output of a launch, before it is made."""

    shape: Sequence[int]
    dtype: types.dtype


def launch(
    kernel: Any,
    programs: int,
    inputs: Sequence[Any],
    outputs: Sequence[Optional[Spec]],
    numbers: Sequence[Any],
    warps: int = 4,
) -> tuple[Any, ...]:
    """Launches a kernel whose parameters are the inputs, the outputs and the numbers, in this order.

    Makes the outputs, of the library of the first input, and returns them. Inputs are dense. An input
    or output that is None is passed as None. Without programs, nothing is launched.
    """
    like = next(each for each in inputs if each is not None)
    library = library_of(like)
    options = {} if warps == 4 else {"num_warps": warps}
    if library == "jax":
        typed = [
            (tuple(each.shape), library_dtype("jax", each.dtype)) if each else None
            for each in outputs
        ]
        if programs:
            results = load("tessera.jax.calls").run_kernel(
                kernel, inputs, numbers, typed, (programs,), options
            )
            found = iter(results if isinstance(results, tuple) else (results,))
        else:
            found = (load("jax.numpy").zeros(*each) for each in typed if each)
        return tuple(next(found) if each else None for each in typed)
    made = [
        make_output(like, tuple(each.shape), each.dtype, "out") if each else None
        for each in outputs
    ]
    recorder = recording.current()
    if recorder is not None:
        recorder.launch(kernel, programs, inputs, made, numbers, options)
    elif programs:
        kernel[(programs,)](*inputs, *made, *numbers, **options)
    return tuple(made)


class Lines(NamedTuple):
    """The lines of a dense array along one dimension, as kernels/lines.py goes through them.

    A slab has lanes, which lie `lane_stride` apart; elements of a line lie `stride` apart. A program
    has LANES lines of a slab. If the dimension is the last, all lines are in one slab.
    """

    length: int
    lanes: int
    lane_stride: int
    stride: int
    slab_stride: int
    blocks: int
    """Programs for each slab."""
    LANES: int
    BLOCK: int
    """Elements of a line in a tile."""


def make_lines(
    shape: Sequence[int], dim: int, whole: bool = False, choice: Choice = Choice()
) -> tuple[int, Lines]:
    """The number of programs for the lines of a dense array along `dim`, and the lines.

    whole: True for a tile with all elements of a line.
    choice: how large tiles are (tuning.choose_lines).
    """
    shape = tuple(shape) or (1,)
    length, inner = shape[dim], math.prod(shape[dim + 1 :])
    outer = math.prod(shape[:dim])
    block = power_of_2(length)
    if not whole:
        block = min(block, choice.tile if inner == 1 else choice.block)
    if inner == 1:
        lanes, slabs, lane_stride, stride, slab_stride = outer, 1, length, 1, 0
        tile = min(power_of_2(lanes), max(1, choice.tile // block), choice.lanes)
    else:
        lanes, slabs, lane_stride, stride, slab_stride = inner, outer, 1, inner, length * inner
        tile = min(power_of_2(lanes), max(1, choice.tile // block))
        while tile > _MIN_WIDTH and slabs * -(-lanes // tile) < choice.programs:
            tile //= 2
    blocks = -(-lanes // tile)
    if max(tile * length if inner == 1 else 0, slab_stride) >= 1 << 31:
        raise ArgumentError(
            "E093",
            f"an array of shape {shape} has lines along dimension {dim} that take 2^31 elements",
            "pass a part of it, or one whose last dimension is the line",
        )
    made = Lines(length, lanes, lane_stride, stride, slab_stride, blocks, tile, block)
    return (slabs * blocks if lanes else 0), made


def power_of_2(size: int) -> int:
    """The least power of 2 that is not less."""
    return 1 << max(0, size - 1).bit_length()
