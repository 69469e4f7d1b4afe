# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How an elementwise operator walks over arrays of several shapes and strides.

All strides count elements. A walk lists dimensions from the outermost to the innermost one, after
broadcasting. It has as few of them as possible: two that every array runs through as one are merged,
so that dense arrays of one shape are one flat dimension.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Optional, Sequence

Ints = tuple[int, ...]


class Walk(NamedTuple):
    """The dimensions that a kernel runs through, and how each array does."""

    sizes: Ints
    """From the outermost dimension on; none is 1. Empty for a single element."""
    strides: tuple[Ints, ...]
    """Of each array, one for each of `sizes`; 0 where the array is broadcast."""

    @property
    def is_wide(self) -> bool:
        """True if 32 bits may not hold an offset, or the number of an element."""
        reach = [
            sum((size - 1) * abs(stride) for size, stride in zip(self.sizes, strides))
            for strides in self.strides
        ]
        # A program's last block may begin inside of the array and end outside.
        return max(math.prod(self.sizes), *reach) >= (1 << 31) - (1 << 16)


def broadcast(shapes: Sequence[Ints]) -> tuple[Ints, Optional[int]]:
    """The shape of the results, and the place of the first array that does not fit, if one does not."""
    rank = max(map(len, shapes))
    result = [1] * rank
    for place, shape in enumerate(shapes):
        for at, size in enumerate(shape, rank - len(shape)):
            if size != 1 and size != result[at]:
                if result[at] != 1:
                    return (), place
                result[at] = size
    return tuple(result), None


def expand(shape: Ints, strides: Ints, wanted: Ints) -> Ints:
    """The strides of an array of `shape` that is broadcast to `wanted`."""
    missing = len(wanted) - len(shape)
    own = (
        0 if size == 1 != wanted[missing + at] else stride
        for at, (size, stride) in enumerate(zip(shape, strides))
    )
    return (0,) * missing + tuple(own)


def is_dense(shape: Ints, strides: Ints) -> bool:
    """True if the elements lie in the order of their indices, without gaps."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def memory_order(shape: Ints, arrays: Sequence[Ints]) -> Ints:
    """The dimensions from the outermost to the innermost one, as the arrays lie in memory.

    `arrays` are the strides of each. The first array that is broadcast along neither of two
    dimensions decides between them. This is the order of torch and, with one array, of NumPy.
    """
    order = list(reversed(range(len(shape))))  # the innermost first
    for start in range(1, len(order)):
        at = start
        for before in range(start - 1, -1, -1):
            sign = _compare(order[before], order[at], shape, arrays)
            if sign < 0:
                break
            if sign > 0:
                order[before], order[at] = order[at], order[before]
                at = before
    return tuple(reversed(order))


def _compare(one: int, other: int, shape: Ints, arrays: Sequence[Ints]) -> int:
    """Positive if dimension `one` belongs outside of `other`, negative if inside, 0 if no array
    says."""
    for strides in arrays:
        first, second = abs(strides[one]), abs(strides[other])
        if not first or not second:
            continue
        if first != second:
            return -1 if first < second else 1
        if shape[one] > shape[other]:
            return 1
    return 0


def dense_strides(shape: Ints, order: Ints) -> Ints:
    """The strides of a new array whose dimensions lie in `order`, without gaps."""
    result = [0] * len(shape)
    step = 1
    for dimension in reversed(order):
        result[dimension] = step
        step *= max(shape[dimension], 1)
    return tuple(result)


def make_walk(shape: Ints, order: Ints, arrays: Sequence[Ints]) -> Walk:
    """The walk over arrays that all have `shape`, with as few dimensions as possible."""
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in arrays]
    for dimension in order:
        size = shape[dimension]
        if size == 1:
            continue
        here = [strides[dimension] for strides in arrays]
        if sizes and all(own[-1] == step * size for own, step in zip(steps, here)):
            sizes[-1] *= size
            for own, step in zip(steps, here):
                own[-1] = step
            continue
        sizes.append(size)
        for own, step in zip(steps, here):
            own.append(step)
    return Walk(tuple(sizes), tuple(map(tuple, steps)))


def overlaps_itself(shape: Ints, strides: Ints) -> bool:
    """True if two elements may lie at one place. A False is certain."""
    reach = 1
    for stride, size in sorted((abs(stride), size) for stride, size in zip(strides, shape)):
        if size == 1:
            continue
        if stride < reach:
            return True
        reach = (size - 1) * stride + reach
    return False


def span(shape: Ints, strides: Ints) -> tuple[int, int]:
    """The first element of an array in memory, and the one after the last, from its address on."""
    reach = [(size - 1) * stride for size, stride in zip(shape, strides)]
    return sum(min(0, step) for step in reach), sum(max(0, step) for step in reach) + 1
