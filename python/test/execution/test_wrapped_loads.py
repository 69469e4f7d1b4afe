# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads at `index % extent` whose rest is masked where it is stored: the remainder goes only where
the mask compares the same index, and no index is negative. Rows of a block's number likewise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl

TARGETS = ["sm_80", "sm_90a"]


def agree(
    kernel: Any, grid: tuple[int, ...], out: np.ndarray, target: str, *args: Any, **options: Any
):
    """Compares a simulated GPU with the interpreter; `out` is an argument of both."""
    want, got = out.copy(), out.copy()
    give = lambda mine: [mine if arg is out else arg for arg in args]  # noqa: E731
    tessera.interpret(kernel)[grid](*give(want), **options)
    tessera.gpu.simulate(kernel)[grid](*give(got), target=target, **options)
    np.testing.assert_array_equal(got, want)
    assert want.any()


@tessera.jit
def kept(x_ptr, o_ptr, n, T, B: tl.constexpr):
    before = tl.zeros((B,), tl.float32)
    for s in range(0, T):
        index = (T - 1 - s) * B + tl.arange(0, B)
        x = tl.load(x_ptr + index % n)
        tl.store(o_ptr + index, before, mask=index < n)
        before = x


@tessera.jit
def chosen(x_ptr, o_ptr, n, T, B: tl.constexpr):
    before = tl.zeros((B,), tl.float32)
    for s in range(0, T):
        index = (T - 1 - s) * B + tl.arange(0, B)
        x = tl.load(x_ptr + tl.where(index < n, index, 0))
        tl.store(o_ptr + index, before, mask=index < n)
        before += x


@tessera.jit
def outer(x_ptr, o_ptr, n, T, B: tl.constexpr):
    """The inner loop's index is the same in all of it, and another one in the next iteration of the
    outer loop."""
    total = tl.zeros((B,), tl.float32)
    for s in range(0, T):
        index = (T - 1 - s) * B + tl.arange(0, B)
        for k in range(0, 2):
            total += tl.load(x_ptr + index % n)
        tl.store(o_ptr + index, total, mask=index < n)


@tessera.jit
def extents(x_ptr, o_ptr, n, T, B: tl.constexpr):
    """The index stays and the extent does not."""
    before = tl.zeros((B,), tl.float32)
    index = tl.arange(0, B)
    for s in range(0, T):
        extent = n - 60 * (T - 1 - s)
        x = tl.load(x_ptr + index % extent)
        tl.store(o_ptr + s * B + index, before, mask=index < extent)
        before = x


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", [kept, chosen, outer, extents])
def test_a_mask_of_another_iteration(kernel, target):
    out = np.zeros(1000, np.float32)
    x = np.arange(1, 1001, dtype=np.float32)
    agree(kernel, (1,), out, target, x, out, 200, 4, B=64)


@tessera.jit
def accumulated(a_ptr, b_ptr, o_ptr, M, T, K: tl.constexpr, BM: tl.constexpr, N: tl.constexpr):
    k, j = tl.arange(0, K), tl.arange(0, N)
    b = tl.load(b_ptr + k[:, None] * N + j[None, :])
    acc = tl.zeros((BM, N), tl.float32)
    for s in range(0, T):
        rm = (T - 1 - s) * BM + tl.arange(0, BM)
        acc = tl.dot(tl.load(a_ptr + (rm % M)[:, None] * K + k[None, :]), b, acc)
        tl.store(o_ptr + rm[:, None] * N + j[None, :], acc, mask=rm[:, None] < M)


@pytest.mark.parametrize("target", TARGETS)
def test_an_accumulator_of_other_rows(target):
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (100, 64)).astype(np.float16)
    b = rng.integers(-2, 3, (64, 64)).astype(np.float16)
    out = np.zeros((100, 64), np.float32)
    agree(accumulated, (1,), out, target, a, b, out, 100, 3, K=64, BM=64, N=64)


@tessera.jit
def negative(x_ptr, o_ptr, n, B: tl.constexpr):
    index = tl.arange(0, B) - 64
    x = tl.load(x_ptr + 100 + index % n)
    tl.store(o_ptr + 100 + index, x, mask=index < n)


@tessera.jit
def negative_programs(x_ptr, o_ptr, n, B: tl.constexpr):
    index = (tl.program_id(0) - 1) * B + tl.arange(0, B)
    x = tl.load(x_ptr + 200 + index % n)
    tl.store(o_ptr + 200 + index, x, mask=index < n)


@tessera.jit
def row(x_ptr, o_ptr, n, B: tl.constexpr):
    index = (tl.program_id(0) - 2) * B + tl.arange(0, B)
    scale = tl.load(x_ptr + 8 + index // B, mask=index < n, other=0.0)
    tl.store(o_ptr + 512 + index, scale, mask=index < n)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel, grid", [(negative, 1), (negative_programs, 2), (row, 4)])
@pytest.mark.parametrize("n", [8, 200])
def test_a_negative_index(kernel, grid, n, target):
    out = np.zeros(1000, np.float32)
    x = np.arange(1, 1001, dtype=np.float32)
    agree(kernel, (grid,), out, target, x, out, n, B=128)


@tessera.jit
def argument(x_ptr, o_ptr, n, start, B: tl.constexpr):
    index = start + tl.arange(0, B)
    x = tl.load(x_ptr + 200 + index % n)
    tl.store(o_ptr + 200 + index, x, mask=index < n)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("start", [-100, -3, 0, 5])
def test_an_index_that_a_launch_gives(start, target):
    """One that is not negative in most launches: the others run another variant."""
    out = np.zeros(1000, np.float32)
    x = np.arange(1, 1001, dtype=np.float32)
    agree(argument, (1,), out, target, x, out, 40, start, B=64)


@tessera.jit
def grouped(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
            GROUP: tl.constexpr):  # fmt: skip
    """The usual product, over groups of tiles."""
    pid = tl.program_id(0)
    num_m, num_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    in_group = GROUP * num_n
    first = pid // in_group * GROUP
    height = min(num_m - first, GROUP)
    pid_m = first + (pid % in_group) % height
    pid_n = (pid % in_group) // height
    rm = (pid_m * BM + tl.arange(0, BM)) % M
    rn = (pid_n * BN + tl.arange(0, BN)) % N
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] * K + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=rk[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    cm, cn = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
    c_ptrs = c_ptr + cm[:, None] * N + cn[None, :]
    tl.store(c_ptrs, acc.to(tl.float16), mask=(cm[:, None] < M) & (cn[None, :] < N))


def test_the_usual_product_goes_without_remainders():
    signature = "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, 128, 128, 64, 8"
    compiled = tessera.compile(grouped, signature, target="sm_90a")
    assert len(compiled.metadata["tensor_maps"]) == 3
    assert not compiled.metadata["arrays_apart"]


@pytest.mark.parametrize("target", TARGETS)
def test_the_usual_product_is_right(target):
    rng = np.random.default_rng(0)
    M, N, K = 136, 80, 48
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((M, K), (K, N)))
    c = np.zeros((M, N), np.float16)
    tessera.gpu.simulate(grouped)[(4,)](
        a, b, c, M, N, K, BM=64, BN=64, BK=32, GROUP=2, target=target
    )
    want = a.astype(np.float32) @ b.astype(np.float32)
    got = c.astype(np.float32)
    np.testing.assert_array_equal(got[:128, :64], want[:128, :64])


@tessera.jit
def scaled(x_ptr, s_ptr, o_ptr, n, B: tl.constexpr):
    index = tl.program_id(0) * B + tl.arange(0, B)
    scale = tl.load(s_ptr + (index % n) // 128)
    tl.store(o_ptr + index, tl.load(x_ptr + index % n) * scale, mask=index < n)


def test_a_scale_of_a_block_is_loaded_once():
    compiled = tessera.compile(scaled, "*fp32:16, *fp32:16, *fp32:16, i32, 64", target="sm_90a")
    assert "rem" not in compiled.asm["ptx"]
