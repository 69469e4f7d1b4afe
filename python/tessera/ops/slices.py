# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The different slices of an array along a dimension: `unique` and `unique_consecutive` with `dim`.

Slices become lines of a copy. They are sorted by one stable sort for each element of a line, the last
element first, so long lines are slow.
"""

from __future__ import annotations

from typing import Any

import tessera.language as tl
from tessera.calls.pointwise import pointwise
from tessera.language import types
from tessera.ops.accumulation import steps, zeros
from tessera.ops.arguments import (
    check,
    check_dim,
    check_without_gradient,
    part_of,
    read_number,
)
from tessera.ops.indexing import index_add, index_select
from tessera.ops.padding import cat, permute_copy
from tessera.ops.reductions import any as any_of
from tessera.ops.scans import cumsum
from tessera.ops.sorting import MAX_SORTED, argsort


@part_of("unique")
@pointwise
def _differ(a, b) -> tl.int1:
    return a != b


def different(
    name: str, input: Any, dim: Any, is_sorted: bool, return_inverse: bool, return_counts: bool
) -> Any:
    """The first slice of each run of equal ones, after a sort if `is_sorted`; and what else is asked for."""
    dim, shape = check_dim(name, input, dim), tuple(input.shape)
    rank, count = len(shape), shape[dim] if shape else 1
    others = [size for axis, size in enumerate(shape) if axis != dim]
    check(0 not in others, f"`{name}` got dim={dim} and shape {shape}", "pass slices with elements")
    check_without_gradient(name, input=input)
    if not count:
        none = steps(input, 0, 0, 1, types.int64)
        empty = (permute_copy(input, tuple(range(rank))), none, none)
        found = [each for each, asked in zip(empty, (True, return_inverse, return_counts)) if asked]
        return found[0] if len(found) == 1 else tuple(found)
    whole = input if rank else input.reshape(1)
    axes = (dim, *(axis for axis in range(rank) if axis != dim)) if rank else (0,)
    lines, order = permute_copy(whole, axes).reshape(count, -1), None
    if is_sorted:
        check(count <= MAX_SORTED, f"`{name}` got {count} slices", f"pass up to {MAX_SORTED}")
        for at in reversed(range(lines.shape[1])):
            keys = lines[:, at] if order is None else index_select(lines[:, at], 0, order)
            places = argsort(keys)
            order = places if order is None else index_select(order, 0, places)
        lines = index_select(lines, 0, order)
    changes = any_of(_differ(lines[1:], lines[:-1]), 1)
    numbers = cat([steps(lines, 0, 1, 1, types.int64), cumsum(changes, 0)])
    runs = int(read_number(numbers[-1:])) + 1
    ones = zeros(lines, (count,), types.int64) + 1
    counts = index_add(zeros(lines, (runs,), types.int64), 0, numbers, ones)
    begins = cumsum(counts, 0) - counts
    picked = begins if order is None else index_select(order, 0, begins)
    found = [index_select(whole, dim, picked)]
    if return_inverse:
        back = numbers if order is None else index_select(numbers, 0, argsort(order))
        found.append(back)
    if return_counts:
        found.append(counts)
    return found[0] if len(found) == 1 else tuple(found)
