# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exponentials of elements minus the maximum that an earlier loop has taken of them."""

from __future__ import annotations

import numpy as np
import pytest

import tessera
import tessera.language as tl


@tessera.jit
def sums_of_rows(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """The maximum of each lane in one loop, the sum of exponentials in a second one."""
    row = tl.program_id(0)
    at = x_ptr + row * n
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        largest = tl.maximum(largest, tl.load(at + columns, mask=columns < n, other=-float("inf")))
    most = tl.max(largest, 0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.exp(tl.load(at + columns, mask=columns < n, other=-float("inf")) - most)
    tl.store(out_ptr + row, tl.sum(total, 0))


@tessera.jit
def softmax_in_place(x_ptr, n, AHEAD: tl.constexpr, BLOCK: tl.constexpr):
    """The second loop stores so many places ahead of what it has loaded."""
    row = tl.program_id(0)
    largest = -float("inf")
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=-float("inf"))
        largest = tl.maximum(largest, tl.max(x))
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=-float("inf"))
        e = tl.exp(x - largest)
        tl.store(x_ptr + row * n + columns + AHEAD, e, mask=columns < n - AHEAD)


def test_sums_of_rows(run, rng):
    x = rng.standard_normal((4, 100)).astype(np.float32) * 10
    x[1, ::3] = -np.inf
    x[2] = 3
    x[3, 1:] = -1e30
    out = np.zeros(4, np.float32)
    run(sums_of_rows, (4,), x, out, 100, BLOCK=32, num_warps=1)
    wide = x.astype(np.float64)
    want = np.exp(wide - wide.max(1, keepdims=True)).sum(1)
    np.testing.assert_allclose(out, want, rtol=4e-7)
    # exp(0) is 1.
    assert out[2] == 100 and out[3] == 1


def test_in_place(run, rng):
    x = rng.standard_normal((2, 100)).astype(np.float32) * 10 - 20
    wide = x.astype(np.float64)
    run(softmax_in_place, (2,), x, 100, AHEAD=0, BLOCK=32, num_warps=1)
    np.testing.assert_allclose(x, np.exp(wide - wide.max(1, keepdims=True)), rtol=6e-7)


@pytest.mark.parametrize(
    "kernel, sizes, is_short",
    [
        (sums_of_rows, {}, True),
        (softmax_in_place, {"AHEAD": 0}, True),
        (softmax_in_place, {"AHEAD": 1}, False),
    ],
)
def test_which_exp(kernel, sizes, is_short):
    x = np.zeros(128, np.float32)
    rest = (x,) if kernel is sums_of_rows else ()
    compiled = kernel.warmup(
        x, *rest, 64, **sizes, BLOCK=32, num_warps=1, grid=(1,), target="sm_80"
    )
    assert ("tessera.below_earlier_maximum" in compiled.asm["tilegpu"]) == is_short
    # Libdevice's exp has this constant.
    assert ("0f3BBB989D" not in compiled.asm["ptx"]) == is_short
