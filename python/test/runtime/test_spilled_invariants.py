# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a loop over rows keeps in shared memory, since registers do not do for it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl
from tessera.compiler import toolchain


@tessera.jit
def gradients(x_ptr, g_ptr, w_ptr, out_ptr, sums_ptr, rows, n, BLOCK: tl.constexpr):
    """The backward pass of y = x * w / sum(x * w), or nearly so."""
    i = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    a = tl.zeros((BLOCK,), tl.float32)
    b = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0).to(tl.float32)
        g = tl.load(g_ptr + row * n + i, mask=i < n, other=0.0).to(tl.float32)
        scaled = g * w
        s = tl.sum(scaled * x)
        y = scaled + x * s
        tl.store(out_ptr + row * n + i, y.to(out_ptr.dtype.element_ty), mask=i < n)
        a += g * x
        b += g + y
    tl.store(sums_ptr + i, a + b, mask=i < n)


def expected(x: Any, g: Any, w: Any) -> tuple[Any, Any]:
    x, g, w = (array.astype(np.float64) for array in (x, g, w))
    scaled = g * w
    y = scaled + x * (scaled * x).sum(1, keepdims=True)
    return y, (g * x + g + y).sum(0)


SIGNATURE = "*bf16:16, *bf16:16, *bf16:16, *fp32:16, *fp32:16, i32, i32:16, {}"


@pytest.mark.parametrize(
    "block, warps, is_spilled", [(16384, 8, True), (16384, 16, True), (4096, 8, False)]
)
def test_weights_wait_in_shared_memory(block: int, warps: int, is_spilled: bool) -> None:
    if not toolchain.find_ptxas():
        pytest.skip("there is no ptxas")
    kernel = tessera.compile(gradients, SIGNATURE.format(block), target="sm_90a", num_warps=warps)
    assert ("tilegpu.local_alloc" in kernel.stages["tilegpu"]) == is_spilled
    assert (kernel.metadata.shared > 2 * block) == is_spilled and kernel.metadata.num_ctas == 1
    assert kernel.n_spills <= 16


@pytest.mark.parametrize("rows, n", [(0, 16384), (1, 16384), (3, 16000), (2, 7)])
def test_values(rows: int, n: int) -> None:
    random = np.random.default_rng(rows * n)
    x, g = (random.integers(-1, 2, (rows, n)).astype(ml_dtypes.bfloat16) for _ in range(2))
    w = random.integers(-2, 3, n).astype(ml_dtypes.bfloat16)
    out, sums = np.full((rows, n), -99, np.float32), np.full(n, -99, np.float32)
    tessera.gpu.simulate(gradients)[(1,)](
        x, g, w, out, sums, rows, n, BLOCK=16384, num_warps=8
    ).check()
    want, want_sums = expected(x, g, w)
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(sums, want_sums)


def test_a_store_to_the_weights_changes_nothing_of_later_iterations() -> None:
    """They were loaded before the loop."""
    n, rows = 16384, 3
    random = np.random.default_rng(0)
    x, g = (random.integers(-1, 2, (rows, n)).astype(ml_dtypes.bfloat16) for _ in range(2))
    memory = np.zeros((rows, n), ml_dtypes.bfloat16)
    memory[0] = random.integers(-1, 2, n).astype(ml_dtypes.bfloat16)
    w, sums = memory[0].copy(), np.zeros(n, np.float32)
    tessera.gpu.simulate(gradients)[(1,)](
        x, g, memory, memory, sums, rows, n, BLOCK=16384, num_warps=8
    ).check()
    want, want_sums = expected(x, g, w)
    np.testing.assert_array_equal(memory, want.astype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(sums, want_sums)
