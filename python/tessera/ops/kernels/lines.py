# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lines of an array along one dimension, of which a program has LANES (launching.Lines)."""

from __future__ import annotations

import tessera.language as tl
from tessera.runtime.jit import jit


@jit
def first_line(lanes, lane_stride, slab_stride, blocks, LANES: tl.constexpr):
    """The offset of the first element of a program, the number of its first lane, and its slab."""
    program = tl.program_id(0)
    slab, lane = program // blocks, program % blocks * LANES
    return slab.to(tl.int64) * slab_stride + lane.to(tl.int64) * lane_stride, lane, slab


@jit
def lane_offsets(lanes, lane, lane_stride, LANES: tl.constexpr):
    """The offsets of a program's lines from its first one, as a column, and which of them exist."""
    lines = tl.arange(0, LANES)[:, None]
    return lines * lane_stride, lane + lines < lanes


@jit
def line_number(lanes, lane, slab, LANES: tl.constexpr):
    """The numbers of a program's lines among all lines, in the order of their slabs and lanes."""
    return slab * lanes + lane + tl.arange(0, LANES)


@jit
def row_bounds(begins, row, count):
    """The elements of a row, from begins[row] to begins[row + 1], of `count` in all."""
    begin, end = tl.load(begins + row), tl.load(begins + row + 1)
    return tl.maximum(begin, 0), tl.minimum(end, count)
