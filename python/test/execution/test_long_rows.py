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


@tessera.jit
def norm_backward(x_ptr, w_ptr, grad_ptr, out_ptr, total_ptr, rows, columns, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(program, rows, tl.num_programs(0)):
        start = row.to(tl.int64) * columns
        x = tl.load(x_ptr + start + offsets, mask=mask, other=0.0).to(tl.float32)
        grad = tl.load(grad_ptr + start + offsets, mask=mask, other=0.0).to(tl.float32)
        scaled = grad * w
        mean = tl.sum(scaled * x) / columns
        tl.store(out_ptr + start + offsets, (scaled - x * mean).to(tl.float16), mask=mask)
        total += grad * x
    tl.store(total_ptr + program * columns + offsets, total, mask=mask)


def copies_rows_ahead(columns_divisible: bool, **options) -> bool:
    columns = "i32:16" if columns_divisible else "i32"
    kernel = tessera.compile(
        norm_backward,
        f"*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp32:16, i32, {columns}, 1024",
        target="sm_90a",
        **options,
    )
    return "rows-copied-ahead" in [remark.kind for remark in kernel.remarks]


@pytest.mark.parametrize("columns", [1024, 1008, 1001, 1])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 7])
@pytest.mark.parametrize(("programs", "num_warps", "num_ctas"), [(1, 2, 1), (3, 1, 1), (2, 1, 2)])
def test_rows_that_are_copied_ahead(columns, rows, programs, num_warps, num_ctas):
    generator = np.random.default_rng(rows + columns)
    x, grad = (generator.standard_normal((rows, columns)).astype(np.float16) for _ in range(2))
    w = generator.standard_normal(columns).astype(np.float16)
    out, total = np.full_like(x, np.nan), np.full((programs, columns), np.nan, np.float32)
    run = tessera.gpu.simulate(norm_backward)[(programs,)](
        x, w, grad, out, total, rows, columns, BLOCK=1024, num_warps=num_warps, num_ctas=num_ctas
    )
    run.check()
    wide, scaled = x.astype(np.float64), grad.astype(np.float64) * w
    mean = (scaled * wide).mean(1, keepdims=True)
    np.testing.assert_allclose(out, scaled - wide * mean, rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(total.sum(0), (grad.astype(np.float64) * wide).sum(0), atol=1e-5)


def test_which_rows_are_copied_ahead():
    assert copies_rows_ahead(True, num_warps=1)
    assert not copies_rows_ahead(True, num_warps=1, num_stages=1)
    assert not copies_rows_ahead(True, num_warps=1, tensor_maps=False)
    # Pieces of less than 16 bytes.
    assert not copies_rows_ahead(False, num_warps=1)


@tessera.jit
def in_and_behind_another_loop(
    x_ptr, out_ptr, total_ptr, groups, rows, columns, STAGES: tl.constexpr, BLOCK: tl.constexpr
):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    first = tl.zeros((BLOCK,), tl.float32)
    second = tl.zeros((BLOCK,), tl.float32)
    for group in range(groups):
        for row in tl.range(group, rows, num_stages=STAGES):
            at = row.to(tl.int64) * columns + offsets
            x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
            largest = tl.max(tl.abs(x))
            tl.store(out_ptr + at, (x * largest).to(tl.float16), mask=mask)
            first += x * largest
            second += x
    for row in tl.range(rows, num_stages=STAGES):
        at = row.to(tl.int64) * columns + offsets
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        total = tl.sum(x)
        first += x * total
        second += total
    tl.store(total_ptr + offsets, first, mask=mask)
    tl.store(total_ptr + columns + offsets, second, mask=mask)


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("num_ctas", [1, 2])
@pytest.mark.parametrize(("groups", "rows"), [(0, 3), (1, 4), (3, 3), (4, 2)])
def test_rows_in_and_behind_another_loop(groups, rows, num_ctas, stages):
    columns = 1016
    x = np.random.default_rng(groups).standard_normal((rows, columns)).astype(np.float16)
    out, total = np.zeros_like(x), np.full((2, columns), np.nan, np.float32)
    run = tessera.gpu.simulate(in_and_behind_another_loop)[(1,)](
        x, out, total, groups, rows, columns, STAGES=stages, BLOCK=1024, num_warps=1,
        num_ctas=num_ctas,
    )  # fmt: skip
    run.check()
    wide = x.astype(np.float64)
    scaled, sums = wide * np.abs(wide).max(1, keepdims=True), wide.sum(1, keepdims=True)
    often = np.minimum(np.arange(rows) + 1, groups)[:, None]
    np.testing.assert_allclose(out, np.where(often > 0, scaled, 0), rtol=1e-3)
    np.testing.assert_allclose(
        total[0], (often * scaled + wide * sums).sum(0), rtol=1e-4, atol=2e-4
    )
    np.testing.assert_allclose(total[1], (often * wide + sums).sum(0), rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("shift", [0, 1, 2, -1])
def test_rows_that_are_stored_over_others(shift):
    """Views of one array: a row is stored where another one is loaded, earlier or later."""
    generator = np.random.default_rng(7)
    rows, columns = 5, 1024
    whole = generator.standard_normal((rows + 4, columns)).astype(np.float16)
    grad = generator.standard_normal((rows, columns)).astype(np.float16)
    w = generator.standard_normal(columns).astype(np.float16)
    total = np.zeros((1, columns), np.float32)
    expected = whole.copy()
    for row in range(rows):
        x, scaled = expected[2 + row].astype(np.float64), grad[row].astype(np.float64) * w
        expected[2 + shift + row] = scaled - x * (scaled * x).mean()
    x, out = whole[2 : 2 + rows], whole[2 + shift : 2 + shift + rows]
    tessera.gpu.simulate(norm_backward)[(1,)](
        x, w, grad, out, total, rows, columns, BLOCK=1024, num_warps=1
    ).check()
    np.testing.assert_allclose(whole, expected, rtol=2e-2, atol=2e-2)


@tessera.jit
def rows_of_lengths(x_ptr, lengths_ptr, total_ptr, rows, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        length = tl.load(lengths_ptr + row) * 16
        at = row.to(tl.int64) * columns + offsets
        x = tl.load(x_ptr + at, mask=offsets < length, other=0.0).to(tl.float32)
        total += x * tl.sum(x)
        tl.store(lengths_ptr + row + 1, length // 32 + 3)
    tl.store(total_ptr + offsets, total)


def test_the_next_row_waits_for_its_length():
    rows, columns = 5, 4096
    x = np.random.default_rng(1).standard_normal((rows, columns)).astype(np.float16)
    lengths, total = np.full(rows + 1, 256, np.int32), np.zeros(columns, np.float32)
    run = tessera.gpu.simulate(rows_of_lengths)[(1,)](
        x, lengths, total, rows, columns, BLOCK=columns, num_warps=1
    )
    run.check()
    length, want = 256, np.zeros(columns)
    for row in x.astype(np.float64):
        row[length * 16 :] = 0
        want += row * row.sum()
        length = length * 16 // 32 + 3
    np.testing.assert_allclose(total, want, rtol=1e-4, atol=1e-3)
