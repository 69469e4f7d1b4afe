# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of dots that the blocks of a cluster divide, in the simulator: values, and no races."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl


def run(kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> Any:
    found = tessera.gpu.simulate(kernel)[grid](*args, **options)
    found.check()
    return found


@tessera.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_bk, stride_bn, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    blocks_n = tl.cdiv(N, BN)
    rows = tl.program_id(0) // blocks_n * BM + tl.arange(0, BM)
    columns = tl.program_id(0) % blocks_n * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a = a_ptr + rows[:, None] * stride_a + ks[None, :]
    b = b_ptr + ks[:, None] * stride_bk + columns[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a, mask=(rows[:, None] < M) & (ks[None, :] < K - k), other=0.0)
        y = tl.load(b, mask=(ks[:, None] < K - k) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
        a += BK
        b += BK * stride_bk
    c = c_ptr + rows[:, None] * stride_c + columns[None, :]
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


@pytest.mark.parametrize("blocks", (2, 4, 8))
@pytest.mark.parametrize(
    "shape, tile",
    (
        ((64, 64, 256), (64, 64, 32)),
        ((70, 72, 136), (64, 64, 32)),
        ((100, 40, 8), (64, 32, 64)),  # fewer iterations than blocks
        ((16, 64, 256), (16, 64, 32)),
    ),
)
@pytest.mark.parametrize("along_k", (False, True))
def test_a_matmul(
    blocks: int, shape: tuple[int, int, int], tile: tuple[int, int, int], along_k: bool
) -> None:
    (m, n, k), (bm, bn, bk) = shape, tile
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (m, k)).astype(np.float16)
    b = rng.integers(-4, 5, (k, n)).astype(np.float16)
    given = np.ascontiguousarray(b.T).T if along_k else b
    strides = (1, k) if along_k else (n, 1)
    c = np.full((m, n), np.nan, np.float32)
    run(
        matmul, (-(-m // bm) * -(-n // bn),), a, given, c, m, n, k, k, *strides, n,
        BM=bm, BN=bn, BK=bk, num_ctas=blocks, num_stages=3,
    )  # fmt: skip
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@tessera.jit
def two_sums(a_ptr, b_ptr, c_ptr, bias_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr):
    """Both results go back to where the operands were, and begin with something."""
    i, j, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, 32)
    bias = tl.load(bias_ptr + j)
    acc = tl.zeros((BM, BN), dtype=tl.float32) + bias[None, :]
    other = tl.full((BM, BN), 2.0, dtype=tl.float32)
    for at in range(0, K, 32):
        x = tl.load(a_ptr + i[:, None] * K + (at + k)[None, :], mask=(at + k)[None, :] < K)
        y = tl.load(b_ptr + (at + k)[:, None] * N + j[None, :], mask=(at + k)[:, None] < K)
        acc = tl.dot(x, y, acc)
        other = tl.dot(x, y + y, other)
    tl.store(c_ptr + i[:, None] * N + j[None, :], acc)
    # Lanes of rows and of columns, after a reduction across blocks.
    tl.store(
        b_ptr + i[:, None] * N + j[None, :], (other - tl.max(other, 1)[:, None]).to(tl.float16)
    )


@pytest.mark.parametrize("blocks", (2, 8))
@pytest.mark.parametrize("k", (0, 32, 96, 300))
def test_sums_that_begin_with_something(blocks: int, k: int) -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(-2, 3, (64, k)).astype(np.float16)
    b = rng.integers(-2, 3, (max(k, 64), 64)).astype(np.float16)
    bias = rng.integers(-9, 9, 64).astype(np.float32)
    c, before = np.zeros((64, 64), np.float32), b[:k].astype(np.float32)
    a32 = a.astype(np.float32)
    given = a if k else np.zeros((64, 1), np.float16)
    run(two_sums, (1,), given, b, c, bias, 64, k, BM=64, BN=64, num_ctas=blocks)
    np.testing.assert_array_equal(c, a32 @ before + bias)
    other = 2 * (a32 @ before) + 2
    np.testing.assert_array_equal(b[:64], (other - other.max(1)[:, None]).astype(np.float16))


@tessera.jit
def of_integers(a_ptr, b_ptr, c_ptr, N, K, BK: tl.constexpr):
    i, k = tl.arange(0, 64), tl.arange(0, BK)
    acc = tl.full((64, 64), 7, dtype=tl.int32)
    for at in range(0, tl.cdiv(K, BK)):
        x = tl.load(a_ptr + i[:, None] * K + (at * BK + k)[None, :])
        y = tl.load(b_ptr + i[None, :] * K + (at * BK + k)[:, None])
        acc = tl.dot(x, y, acc, out_dtype=tl.int32)
    tl.store(c_ptr + i[:, None] * N + i[None, :], acc)


@pytest.mark.parametrize("warps", (1, 4))
def test_sums_of_integers_that_wrap(warps: int) -> None:
    a = np.full((64, 256), -128, np.int8)
    c = np.zeros((64, 64), np.int32)
    run(of_integers, (1,), a, a, c, 64, 256, BK=64, num_ctas=4, num_warps=warps)
    assert (c == 7 + 256 * 128 * 128).all()


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_multiply_adds(dtype: Any) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((16, 48), (48, 16)))
    c = np.zeros((16, 16), np.float32)

    run(multiply, (1,), a, b, c, 16, 48, num_ctas=2, num_warps=2)
    np.testing.assert_array_equal(c, (a @ b).astype(np.float32))


@tessera.jit
def multiply(a_ptr, b_ptr, c_ptr, N, K):
    i, k = tl.arange(0, 16), tl.arange(0, 8)
    acc = tl.zeros((16, 16), dtype=a_ptr.dtype.element_ty)
    for at in range(0, K, 8):
        x = tl.load(a_ptr + i[:, None] * K + (at + k)[None, :])
        y = tl.load(b_ptr + (at + k)[:, None] * N + i[None, :])
        acc = tl.dot(x, y, acc, input_precision="ieee", out_dtype=a_ptr.dtype.element_ty)
    tl.store(c_ptr + i[:, None] * N + i[None, :], acc.to(tl.float32))


@tessera.jit
def in_place(x_ptr, K, BK: tl.constexpr):
    """Each block reads all of what one of them then overwrites."""
    i, k = tl.arange(0, 64), tl.arange(0, BK)
    acc = tl.zeros((64, 64), dtype=tl.float32)
    for at in range(0, K, BK):
        x = tl.load(x_ptr + i[:, None] * K + (at + k)[None, :])
        y = tl.load(x_ptr + i[None, :] * K + (at + k)[:, None])
        acc = tl.dot(x, y, acc)
    tl.store(x_ptr + i[:, None] * K + i[None, :], acc.to(tl.float16))


@pytest.mark.parametrize("blocks", (2, 4))
def test_what_is_multiplied_is_overwritten(blocks: int) -> None:
    x = np.random.default_rng(3).integers(-2, 3, (64, 128)).astype(np.float16)
    wanted = x.astype(np.float32) @ x.astype(np.float32).T
    run(in_place, (1,), x, 128, BK=32, num_ctas=blocks)
    np.testing.assert_array_equal(x[:, :64], wanted.astype(np.float16))


def test_the_order_of_a_sum_is_always_the_same() -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 512), (512, 64)))
    results = []
    for seed in range(2):
        c = np.zeros((64, 64), np.float32)
        tessera.gpu.simulate(matmul, seed=seed)[(1,)](
            a, b, c, 64, 64, 512, 512, 64, 1, 64, BM=64, BN=64, BK=64, num_ctas=4
        ).check()
        results.append(c)
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(results[0], a.astype(np.float64) @ b.astype(np.float64), atol=1e-3)


# --- Sums that come back to another place ------------------------------------------------


@tessera.jit
def turned(x, WAY: tl.constexpr):
    """A tile of 32 x 32 in other places; odd ways are the ways back of the even ones before."""
    if WAY == 0 or WAY == 1:
        return tl.trans(x)
    if WAY == 2:
        return tl.reshape(tl.permute(tl.reshape(x, (2, 16, 32)), (1, 0, 2)), (32, 32))
    if WAY == 3:
        return tl.reshape(tl.permute(tl.reshape(x, (16, 2, 32)), (1, 0, 2)), (32, 32))
    if WAY == 4:
        return tl.reshape(tl.permute(tl.reshape(x, (4, 8, 32)), (1, 2, 0)), (32, 32))
    if WAY == 5:
        return tl.reshape(tl.permute(tl.reshape(x, (8, 32, 4)), (2, 0, 1)), (32, 32))
    a, b = tl.split(tl.reshape(x, (32, 16, 2)))
    return tl.reshape(tl.join(b, a), (32, 32))


@tessera.jit
def sum_of_turned(
    a_ptr, b_ptr, c_ptr, K, BEFORE: tl.constexpr, BEHIND: tl.constexpr, BK: tl.constexpr
):
    i, k = tl.arange(0, 32), tl.arange(0, BK)
    acc = tl.zeros((32, 32), tl.float32) + i[:, None]
    for at in range(0, K, BK):
        x = tl.load(a_ptr + i[:, None] * K + (at + k)[None, :])
        y = tl.load(b_ptr + (at + k)[:, None] * 32 + i[None, :])
        if BEFORE >= 0:
            acc = turned(acc, BEFORE)
        acc = tl.dot(x, y, acc)
        if BEHIND >= 0:
            acc = turned(acc, BEHIND)
    tl.store(c_ptr + i[:, None] * 32 + i[None, :], acc)


def turn(x: np.ndarray, way: int) -> np.ndarray:
    if way < 0:
        return x
    if way < 2:
        return x.T.copy()
    if way == 6:
        return x.reshape(32, 16, 2)[..., ::-1].reshape(32, 32)
    shape, order = [
        ((2, 16, 32), (1, 0, 2)),
        ((16, 2, 32), (1, 0, 2)),
        ((4, 8, 32), (1, 2, 0)),
        ((8, 32, 4), (2, 0, 1)),
    ][way - 2]
    return x.reshape(shape).transpose(order).reshape(32, 32)


@pytest.mark.parametrize(
    "before, behind, divided",
    (
        (-1, 0, False),
        (0, -1, False),
        (0, 1, True),
        (2, -1, False),
        (2, 3, True),
        (3, 2, True),
        (4, 4, False),
        (4, 5, True),
        (5, 4, True),
        (6, -1, False),
        (2, 5, False),
    ),
)
def test_an_accumulator_that_comes_back_to_its_place_or_not(
    before: int, behind: int, divided: bool
) -> None:
    rng = np.random.default_rng(5)
    a = rng.integers(-3, 4, (32, 96)).astype(np.float16)
    b = rng.integers(-3, 4, (96, 32)).astype(np.float16)
    wanted = np.zeros((32, 32), np.float32) + np.arange(32, dtype=np.float32)[:, None]
    for at in range(0, 96, 16):
        part = a[:, at : at + 16].astype(np.float32) @ b[at : at + 16].astype(np.float32)
        wanted = turn(turn(wanted, before) + part, behind)
    ways = {"BEFORE": before, "BEHIND": behind, "BK": 16}
    for blocks in (2, 4):
        c = np.zeros((32, 32), np.float32)
        run(sum_of_turned, (1,), a, b, c, 96, **ways, num_ctas=blocks, split_k=True)
        np.testing.assert_array_equal(c, wanted)
    plain = sum_of_turned.warmup(a, b, c, 96, **ways, grid=(1,), target="sm_90")
    assert bool(plain.metadata["divisible_sum"]) is divided


# --- Code that sees by how many blocks it is done ------------------------------------------


@tessera.jit(noinline=True)
def asks_in_a_function(x):
    return x + tl.inline_asm_elementwise("mov.u32 $0, %nctaid.x;", "=r", [], tl.int32, True, 1)


@tl.core.extern
def soften(x):
    return tl.extern_elementwise(
        "mine", "", [x], {(tl.float32,): ("soften", tl.float32)}, is_pure=True
    )


@tessera.jit
def asks(a_ptr, b_ptr, c_ptr, seen_ptr, K, HOW: tl.constexpr, ASM: tl.constexpr):
    i, k = tl.arange(0, 32), tl.arange(0, 16)
    acc = tl.zeros((32, 32), tl.float32)
    if HOW == "before":
        seen = tl.inline_asm_elementwise(ASM, "=r", [], tl.int32, is_pure=True, pack=1)
    for at in range(0, K, 16):
        x = tl.load(a_ptr + i[:, None] * K + (at + k)[None, :])
        y = tl.load(b_ptr + (at + k)[:, None] * 32 + i[None, :])
        if HOW == "computes":
            x = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], tl.float16, True, 2)
        if HOW == "in":
            seen = tl.inline_asm_elementwise(ASM, "=r", [], tl.int32, is_pure=True, pack=1)
            x *= (seen >= 0).to(tl.float16)
        acc = tl.dot(x, y, acc)
    if HOW == "behind":
        seen = tl.inline_asm_elementwise(ASM, "=r", [], tl.int32, is_pure=True, pack=1)
    if HOW == "branch":
        seen = tl.inline_asm_elementwise(ASM, "=r", [], tl.int32, is_pure=False, pack=1)
        if seen % 2 == 0:
            acc += tl.sum(acc, 0)[None, :] * 0
        else:
            acc += tl.sum(acc, 1)[:, None] * 0
    if HOW == "behind" or HOW == "before" or HOW == "branch":
        tl.store(seen_ptr, seen)
    if HOW == "function":
        tl.store(seen_ptr, asks_in_a_function(K))
    if HOW == "library":
        acc = soften(acc)
    if HOW == "libdevice":
        acc = tl.extra.libdevice.rint(acc)
    if HOW == "sm":
        tl.store(seen_ptr, tl.extra.cuda.smid())
    tl.store(c_ptr + i[:, None] * 32 + i[None, :], acc)


ASKS = [
    (how, f"mov.u32 $0, {register};")
    for how in ("before", "in", "behind", "branch")
    for register in ("%ctaid.x", "%nctaid.x", "%smid", "%nsmid", "%clusterid.x", "%gridid")
]
ASKS += [("function", ""), ("sm", "")]


def operands() -> tuple[np.ndarray, ...]:
    a, b = np.ones((32, 96), np.float16), np.ones((96, 32), np.float16)
    return a, b, np.zeros((32, 32), np.float32), np.full(1, -1, np.int32)


@pytest.mark.parametrize("how, asm", ASKS)
def test_a_kernel_that_sees_its_blocks_is_not_divided_unasked(how: str, asm: str) -> None:
    plain = asks.warmup(*operands(), 96, how, asm, grid=(2,), target="sm_90")
    assert plain.metadata["divisible_sum"] is None


@pytest.mark.parametrize("how", ("", "computes", "libdevice"))
def test_other_kernels_are_divisible(how: str) -> None:
    plain = asks.warmup(*operands(), 96, how, "", grid=(2,), target="sm_90")
    assert plain.metadata["divisible_sum"]
    a, b, c, seen = operands()
    run(asks, (2,), a, b, c, seen, 96, how, "", num_ctas=4, split_k=True)
    assert (c == 96).all()


def test_nobody_knows_of_a_library(tmp_path: Any) -> None:
    path = tmp_path / "mine.ll"
    path.write_text(
        'target triple = "nvptx64-nvidia-cuda"\n'
        "define float @soften(float %x) {\n  %y = fmul float %x, 5.0e-01\n  ret float %y\n}\n"
    )
    libraries = {"mine": str(path)}
    plain = asks.warmup(
        *operands(), 96, "library", "", grid=(2,), target="sm_90", extern_libs=libraries
    )
    assert plain.metadata["divisible_sum"] is None


@pytest.mark.parametrize("how", ("before", "in", "behind", "branch"))
@pytest.mark.parametrize("register", ("%ctaid.x", "%cluster_ctarank", "%smid"))
@pytest.mark.parametrize("blocks", (2, 4))
def test_blocks_of_a_cluster_see_the_same(how: str, register: str, blocks: int) -> None:
    """What the first of them sees; a branch on it is one that all take."""
    a, b, c, seen = operands()
    asm = f"mov.u32 $0, {register};"
    run(asks, (1,), a, b, c, seen, 96, how, asm, num_ctas=blocks, split_k=True)
    assert (c == 96).all()
    assert seen[0] == (-1 if how == "in" else 0)


@tessera.jit
def sums_of_ranks(c_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    rank = tl.inline_asm_elementwise(
        "mov.u32 $0, %cluster_ctarank;", "=r,r", [i], tl.int32, True, 1
    )
    total = tl.sum(rank)
    if total % 2 == 0:
        tl.store(c_ptr + i, tl.cumsum(i))
    else:
        tl.store(c_ptr + i, tl.cumsum(i) + 1)


@pytest.mark.parametrize("n", (1, 4, 64))
def test_elements_that_several_blocks_have_are_the_same(n: int) -> None:
    """Few elements are in all blocks, each of which would see another rank."""
    c = np.full(n, -1, np.int32)
    run(sums_of_ranks, (1,), c, n, num_ctas=4, num_warps=2)
    assert (c - np.cumsum(np.arange(n)) == c[0]).all()
