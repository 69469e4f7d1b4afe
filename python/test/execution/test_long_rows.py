# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of which a GPU's registers hold too little: what is needed on both sides of a sum is
loaded again behind it, also where the kernel stores over what it has loaded.
"""

from __future__ import annotations

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl


@tessera.jit
def layer_norm_backward(x_ptr, w_ptr, grad_ptr, total_ptr, rows, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    total_w = tl.zeros((BLOCK,), tl.float32)
    total_b = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        at = row * columns + offsets
        normal = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        grad = tl.load(grad_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scaled = grad * w
        mean_scaled = tl.sum(scaled) / columns
        mean_product = tl.sum(scaled * normal) / columns
        grad_x = scaled - mean_scaled - normal * mean_product
        tl.store(x_ptr + at, grad_x.to(tl.float16), mask=mask)
        total_w += grad * normal
        total_b += grad
    tl.store(total_ptr + offsets, total_w, mask=mask)
    tl.store(total_ptr + columns + offsets, total_b, mask=mask)


def count_ops(op: str, block: int, num_warps: int, num_ctas: int = 1) -> int:
    """How often an op is in the kernel behind its last change."""
    kernel = tessera.compile(
        layer_norm_backward,
        f"*fp16:16, *fp16:16, *fp16:16, *fp32:16, i32, i32:16, {block}",
        target="sm_90a",
        num_warps=num_warps,
        num_ctas=num_ctas,
        # Spilling kernels get more warps than they ask for, unless registers are limited.
        maxnreg=255,
    )
    return kernel.asm["tilegpu"].count(op + " ")


@pytest.mark.parametrize("columns", [4096, 4000])
@pytest.mark.parametrize(("num_warps", "num_ctas"), [(1, 1), (2, 1), (1, 2)])
def test_a_row_in_place(columns, num_warps, num_ctas):
    generator = np.random.default_rng(columns + num_warps)
    rows = 3
    x, grad = (generator.standard_normal((rows, columns)).astype(np.float16) for _ in range(2))
    w = generator.standard_normal(columns).astype(np.float16)
    out, total = x.copy(), np.full((2, columns), np.nan, np.float32)
    run = tessera.gpu.simulate(layer_norm_backward)[(1,)](
        out, w, grad, total, rows, columns, BLOCK=4096, num_warps=num_warps, num_ctas=num_ctas
    )
    run.check()
    wide, wide_grad = x.astype(np.float64), grad.astype(np.float64)
    scaled = wide_grad * w
    mean_scaled = scaled.mean(1, keepdims=True)
    mean_product = (scaled * wide).mean(1, keepdims=True)
    np.testing.assert_allclose(
        out.astype(np.float64), scaled - mean_scaled - wide * mean_product, rtol=2e-3, atol=2e-3
    )
    np.testing.assert_allclose(total[0], (wide_grad * wide).sum(0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(total[1], wide_grad.sum(0), rtol=1e-5, atol=1e-5)


def test_only_what_does_not_fit_is_loaded_again():
    # x, w and the gradient; with 2 warps x and the gradient once more.
    assert count_ops("tile.load", 4096, 2) == 5
    assert count_ops("tile.load", 4096, 8) == 3


def test_weights_wait_in_the_memory_of_their_block():
    assert count_ops("tilegpu.local_load", 8192, 2, num_ctas=2) != 0
    assert count_ops("tilegpu.local_load", 8192, 8, num_ctas=2) == 0
