# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, scans and sorting: each operation builds, with the type it should have and the IR it should make."""

from __future__ import annotations

import pytest

import tessera.language as tl

from language.building import Build, check

# expression, type of its value, text in the IR
REDUCTION = [
    ("tl.sum(x)", "fp32", "tile.reduce"),
    ("tl.sum(t, axis=0)", "fp32[8]", "tile.reduce"),
    ("t.sum(1)", "fp32[4]", "tile.reduce"),
    ("t.sum(axis=-1, keep_dims=True)", "fp32[4, 1]", "tile.reduce"),
    ("t.sum(keep_dims=True)", "fp32[1, 1]", "tile.reduce"),
    ("tl.sum(i.to(tl.int8))", "int32", "tile.reduce"),
    ("tl.sum(i.to(tl.uint16))", "uint32", "tile.reduce"),
    ("tl.sum(c)", "int32", "tile.reduce"),
    ("tl.sum(x.to(tl.float16))", "fp16", "tile.reduce"),
    ("tl.sum(i.to(tl.int8), dtype=tl.int64)", "int64", "tile.reduce"),
    ("tl.max(t, 1)", "fp32[4]", "maxnumf"),
    ("tl.max(x.to(tl.bfloat16))", "fp32", "tile.reduce"),
    ("tl.max(i.to(tl.int8))", "int32", "tile.reduce"),
    ("tl.min(i)", "int32", "minsi"),
    ("tl.max(t, 1, return_indices=True)", "fp32[4], int32[4]", "tile.reduce"),
    ("x.min(0, return_indices=True, return_indices_tie_break_left=False)", "fp32, int32", ""),
    ("tl.argmax(t, 1)", "int32[4]", "tile.reduce"),
    ("t.argmin(0, keep_dims=True)", "int32[1, 8]", "tile.reduce"),
    ("tl.xor_sum(i)", "int32", "arith.xori"),
    ("tl.reduce_or(i, 0)", "int32", "arith.ori"),
    ("tl.cumsum(x)", "fp32[8]", "tile.scan"),
    ("t.cumsum(1, reverse=True)", "fp32[4, 8]", "reverse"),
    ("tl.cumprod(t, axis=1)", "fp32[4, 8]", "tile.scan"),
    ("tl.cumsum(i.to(tl.int16))", "int32[8]", "tile.scan"),
]


@pytest.mark.parametrize("expression, type, text", REDUCTION, ids=[row[0] for row in REDUCTION])
def test_operation(build: Build, expression: str, type: str, text: str) -> None:
    check(build, expression, type, text)


def test_reduce_with_a_function_of_ones_own(build: Build) -> None:
    import tessera

    @tessera.jit
    def pair(a, b, c, d):
        return a + c, tl.maximum(b, d)

    built = build("tl.reduce((x, x), 0, F)", "x = tl.arange(0, 8)", F=pair)
    assert built.type == "int32, int32"
    built = build("tl.associative_scan((x, x), 0, F, reverse=True)", "x = tl.arange(0, 8)", F=pair)
    assert built.type == "int32[8], int32[8]"
