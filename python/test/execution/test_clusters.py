# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that clusters of blocks do, in the simulator: values as without, and no races."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl

BLOCKS = (2, 4, 8)


def run(kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
    tessera.gpu.simulate(kernel)[grid](*args, **options).check()


@tessera.jit
def softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * n + i, e / tl.sum(e), mask=i < n)


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("n, block", ((1000, 1024), (100, 128), (3, 4)))
def test_a_row_over_blocks(blocks: int, n: int, block: int) -> None:
    x = np.random.default_rng(0).standard_normal((3, n)).astype(np.float32)
    out = np.zeros_like(x)
    run(softmax, (3,), x, out, n, BLOCK=block, num_ctas=blocks, num_warps=2)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)


@tessera.jit
def describe(out_ptr):
    i, j = tl.program_id(0), tl.program_id(1)
    at = out_ptr + 3 * (j * tl.num_programs(0) + i)
    tl.store(at, i)
    tl.store(at + 1, tl.num_programs(0))
    tl.store(at + 2, tl.num_programs(1))


@pytest.mark.parametrize("blocks", BLOCKS)
def test_programs_are_counted_not_blocks(blocks: int) -> None:
    out = np.zeros((2, 3, 3), np.int32)
    run(describe, (3, 2), out, num_ctas=blocks)
    np.testing.assert_array_equal(out[..., 0], [[0, 1, 2]] * 2)
    assert (out[..., 1] == 3).all() and (out[..., 2] == 2).all()


@tessera.jit
def fold(x_ptr, sums_ptr, maxima_ptr, R: tl.constexpr, C: tl.constexpr, AXIS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :])
    i = tl.arange(0, C if AXIS == 0 else R)
    tl.store(sums_ptr + i, tl.sum(x, AXIS))
    tl.store(maxima_ptr + i, tl.argmax(x, AXIS))


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("axis", (0, 1))
@pytest.mark.parametrize("shape", ((64, 32), (8, 128), (1, 256), (4, 24)))
def test_folds_along_each_axis(blocks: int, axis: int, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(1).integers(-50, 50, shape).astype(np.int32)
    kept = shape[1 - axis]
    sums, maxima = np.zeros(kept, np.int32), np.zeros(kept, np.int32)
    run(fold, (1,), x, sums, maxima, R=shape[0], C=shape[1], AXIS=axis, num_ctas=blocks)
    np.testing.assert_array_equal(sums, x.sum(axis))
    np.testing.assert_array_equal(maxima, x.argmax(axis))


@tessera.jit
def running(x_ptr, out_ptr, BLOCK: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.cumsum(tl.load(x_ptr + i), 0, reverse=REVERSE))


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("reverse", (False, True))
@pytest.mark.parametrize("block", (16, 96, 1024))
def test_scans(blocks: int, reverse: bool, block: int) -> None:
    x = np.random.default_rng(2).integers(-9, 9, block).astype(np.int32)
    out = np.zeros_like(x)
    run(running, (1,), x, out, BLOCK=block, REVERSE=reverse, num_ctas=blocks)
    np.testing.assert_array_equal(out, x[::-1].cumsum()[::-1] if reverse else x.cumsum())


@tessera.jit
def order(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.sort(tl.load(x_ptr + i)))


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("dtype", (np.int32, np.float32, np.int8))
def test_sorts(blocks: int, dtype: Any) -> None:
    x = np.random.default_rng(3).integers(-100, 100, 512).astype(dtype)
    out = np.zeros_like(x)
    run(order, (1,), x, out, BLOCK=512, num_ctas=blocks, num_warps=2)
    np.testing.assert_array_equal(out, np.sort(x))


@tessera.jit
def sort_pairs(x_ptr, order_ptr, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    tl.store(order_ptr + at, tl.argsort(tl.load(x_ptr + at)))


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("shape", [(4, 256), (4, 128), (1, 64)])
@pytest.mark.parametrize("dtype", [np.int32, np.uint64])
def test_sorts_of_several_tiles(
    blocks: int, warps: int, shape: tuple[int, int], dtype: Any
) -> None:
    """Of which each block has a part in its memory: the tiles themselves, and their order."""
    x = np.random.default_rng(blocks).integers(0, 100, shape).astype(dtype)
    order = np.full(shape, -1, np.int32)
    run(sort_pairs, (1,), x, order, R=shape[0], C=shape[1], num_ctas=blocks, num_warps=warps)
    np.testing.assert_array_equal(order, np.argsort(x, axis=1, kind="stable"))


@tessera.jit
def turn(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    tl.store(out_ptr + j[:, None] * M + i[None, :], tl.trans(x))


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("dtype", (np.float32, np.float16, np.int8, np.float64, np.bool_))
def test_transposed(blocks: int, dtype: Any) -> None:
    x = np.random.default_rng(4).integers(0, 100, (32, 64)).astype(dtype)
    out = np.zeros((64, 32), dtype)
    run(turn, (1,), x, out, M=32, N=64, num_ctas=blocks)
    np.testing.assert_array_equal(out, x.T)


@tessera.jit
def pick(x_ptr, index_ptr, out_ptr, bins_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + i)
    tl.store(out_ptr + i, tl.gather(tl.load(x_ptr + i), index, 0))
    tl.store(bins_ptr + tl.arange(0, 32), tl.histogram(index, 32))


@pytest.mark.parametrize("blocks", BLOCKS)
def test_gathers_and_histograms(blocks: int) -> None:
    rng = np.random.default_rng(5)
    x, index = rng.random(256, np.float32), rng.integers(0, 64, 256).astype(np.int32)
    out, bins = np.zeros_like(x), np.zeros(32, np.int32)
    run(pick, (1,), x, index, out, bins, BLOCK=256, num_ctas=blocks)
    np.testing.assert_array_equal(out, x[index])
    np.testing.assert_array_equal(bins, np.bincount(index, minlength=64)[:32])


@tessera.jit
def count(x_ptr, bins_ptr, BLOCK: tl.constexpr, BINS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(bins_ptr + tl.arange(0, BINS), tl.histogram(x, BINS))


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("bins", (4, 256, 1024))
def test_bins_that_blocks_have_parts_of(blocks: int, bins: int) -> None:
    x = np.random.default_rng(9).integers(0, bins, 512).astype(np.int32)
    out = np.zeros(bins, np.int32)
    run(count, (1,), x, out, BLOCK=512, BINS=bins, num_ctas=blocks, num_warps=1)
    np.testing.assert_array_equal(out, np.bincount(x, minlength=bins))


@tessera.jit
def shapes(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    a, b = tl.split(x.reshape(BLOCK // 2, 2))
    y = tl.cat(a, b)
    z = tl.join(a, b).reshape(BLOCK)
    tl.store(out_ptr + i, y * 1000 + tl.flip(z))


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("block", (8, 256))
def test_shapes(blocks: int, block: int) -> None:
    x = np.arange(block, dtype=np.int32)
    out = np.zeros_like(x)
    run(shapes, (1,), x, out, BLOCK=block, num_ctas=blocks)
    np.testing.assert_array_equal(out, np.concatenate([x[::2], x[1::2]]) * 1000 + x[::-1])


@tessera.jit
def renumbered(x_ptr, out_ptr):
    i = tl.arange(0, 384)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.ravel(tl.reshape(x, (16, 24)).T + 0))


@pytest.mark.parametrize("blocks", BLOCKS)
def test_odd_factors_that_move(blocks: int) -> None:
    x = np.arange(384, dtype=np.int32)
    out = np.zeros_like(x)
    run(renumbered, (1,), x, out, num_ctas=blocks)
    np.testing.assert_array_equal(out, x.reshape(16, 24).T.reshape(-1))


@tessera.jit
def ticket(x_ptr, out_ptr, counter_ptr, order_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    number = tl.atomic_add(counter_ptr, 1)
    tl.store(order_ptr + number, tl.program_id(0))
    tl.atomic_add(out_ptr + i % 8, tl.load(x_ptr + i))
    old = tl.atomic_max(out_ptr + 8 + tl.arange(0, 4), number + tl.zeros((4,), tl.int32))
    tl.atomic_add(out_ptr + 12, tl.sum((old < 0).to(tl.int32)))


@pytest.mark.parametrize("blocks", BLOCKS)
def test_atomics_happen_once(blocks: int) -> None:
    x = np.arange(128, dtype=np.int32)
    out, counter, first = np.zeros(13, np.int32), np.zeros(1, np.int32), np.full(4, -1, np.int32)
    out[8:12] = -1
    run(ticket, (4,), x, out, counter, first, BLOCK=128, num_ctas=blocks)
    assert counter[0] == 4 and sorted(first) == [0, 1, 2, 3]
    np.testing.assert_array_equal(out[:8], 4 * x.reshape(-1, 8).sum(0))
    assert (out[8:12] == 3).all() and out[12] == 4


@tessera.jit
def locked(lock_ptr, count_ptr, seen_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    count = tl.load(count_ptr, volatile=True)
    tl.store(count_ptr, count + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)
    tl.store(seen_ptr + tl.program_id(0), count)


@pytest.mark.parametrize("blocks", BLOCKS)
def test_all_blocks_see_what_one_has_read(blocks: int) -> None:
    lock, count, seen = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(5, np.int32)
    run(locked, (5,), lock, count, seen, num_ctas=blocks)
    assert count[0] == 5 and sorted(seen) == [0, 1, 2, 3, 4]


@tessera.jit
def in_place(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = 0
    for step in range(n):
        x = tl.load(x_ptr + i)
        total += tl.sum(x)
        tl.store(x_ptr + i, x + step)
    first = tl.load(x_ptr)
    tl.store(x_ptr, first + total)


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("block", (4, 64, 512))
def test_a_program_sees_its_own_stores(blocks: int, block: int) -> None:
    x = np.arange(block, dtype=np.int32)
    wanted, total = x.copy(), 0
    for step in range(3):
        total += wanted.sum()
        wanted += step
    wanted[0] += total
    # The last load and store are of another shape than what was stored before them.
    simulation = tessera.gpu.simulate(in_place)[(1,)](x, 3, BLOCK=block, num_ctas=blocks)
    assert not [item for item in simulation.findings if "shared" in item.text], simulation.findings
    np.testing.assert_array_equal(x[1:], wanted[1:])


@tessera.jit
def matmul(a_ptr, b_ptr, out_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, K, BK):
        a = tl.load(a_ptr + i[:, None] * K + (at + k)[None, :])
        b = tl.load(b_ptr + (at + k)[:, None] * N + j[None, :])
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(out_ptr + i[:, None] * N + j[None, :], acc)


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize(
    "dtype, tile",
    (
        (np.float16, (128, 64, 32)),  # wgmma, by rows, then by columns
        (np.float16, (64, 128, 32)),  # wgmma, by columns
        (np.float16, (32, 32, 32)),  # mma.sync
        (np.float16, (16, 8, 16)),  # mma.sync by one block of the cluster
        (np.float32, (16, 16, 8)),  # multiply-adds
        (np.float32, (8, 4, 4)),
    ),
)
def test_dots(blocks: int, dtype: Any, tile: tuple[int, int, int]) -> None:
    BM, BN, BK = tile
    rng = np.random.default_rng(6)
    a = rng.integers(-3, 4, (2 * BM, 3 * BK)).astype(dtype)
    b = rng.integers(-3, 4, (3 * BK, BN)).astype(dtype)
    out = np.zeros((2 * BM, BN), np.float32)
    run(matmul, (2, 1), a, b, out, BN, 3 * BK, BM=BM, BN=BN, BK=BK, num_ctas=blocks)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


@tessera.jit
def attend(q_ptr, k_ptr, v_ptr, out_ptr, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    i, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(q_ptr + i[:, None] * D + d[None, :])
    largest = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for at in range(0, T, BN):
        j = at + tl.arange(0, BN)
        k = tl.load(k_ptr + j[None, :] * D + d[:, None])
        s = tl.dot(q, k)
        new = tl.maximum(largest, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        scale = tl.exp(largest - new)
        total = total * scale + tl.sum(p, 1)
        v = tl.load(v_ptr + j[:, None] * D + d[None, :])
        acc = tl.dot(p.to(tl.float16), v, acc * scale[:, None])
        largest = new
    tl.store(out_ptr + i[:, None] * D + d[None, :], acc / total[:, None])


@pytest.mark.parametrize("blocks", (2, 4))
@pytest.mark.parametrize("BM", (32, 64, 128))
def test_attention(blocks: int, BM: int) -> None:
    rng = np.random.default_rng(7)
    q, k, v = (rng.standard_normal((128, 32)).astype(np.float16) for _ in range(3))
    out = np.zeros((128, 32), np.float32)
    run(attend, (128 // BM,), q, k, v, out, 128, D=32, BM=BM, BN=32, num_ctas=blocks)
    s = q.astype(np.float32) @ k.astype(np.float32).T
    p = np.exp(s - s.max(1, keepdims=True))
    wanted = (p / p.sum(1, keepdims=True)) @ v.astype(np.float32)
    np.testing.assert_allclose(out, wanted, rtol=0.02, atol=0.01)


@tessera.jit
def add_rows(x_ptr, row_ptr, out_ptr, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    x = tl.load(x_ptr + r[:, None] * C + c[None, :])
    row = tl.load(row_ptr + c)
    mean = tl.sum(x, 1) / C
    y = x * row[None, :] - mean[:, None]
    tl.store(out_ptr + r[:, None] * C + c[None, :], y + tl.sum(y, 0)[None, :])


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("deterministic", (False, True))
def test_both_axes_in_one_kernel(blocks: int, deterministic: bool) -> None:
    rng = np.random.default_rng(8)
    x = rng.integers(-8, 8, (16, 64)).astype(np.float32)
    row, out = rng.integers(-8, 8, 64).astype(np.float32), np.zeros((16, 64), np.float32)
    options = {"num_ctas": blocks, "deterministic": deterministic}
    run(add_rows, (1,), x, row, out, R=16, C=64, **options)
    y = x * row[None, :] - x.sum(1, keepdims=True) / 64
    np.testing.assert_allclose(out, y + y.sum(0, keepdims=True), rtol=1e-5, atol=1e-4)
