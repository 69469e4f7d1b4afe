# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matmul and attention in the ways in which kernels of the Triton language are written:
indices that wrap or are chosen, hints, promises, loops over tiles that count which one they
store, descriptors of either kind, results in halves, matrices found in memory.

Besides its values, each is asked how it was compiled for sm_90a: none of these habits may
keep a kernel off the fast path.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from execution.running import Runner

import tessera
import tessera.language as tl
from tessera.tools.tensor_descriptor import TensorDescriptor

BM, BN, BK = 64, 64, 32
SHAPES = [(130, 72, 104), (64, 64, 32)]


@tessera.jit
def leaky(x):
    return tl.where(x >= 0, x, 0.5 * x)


@tessera.jit
def place(tile, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """The row and column of a tile, in groups of rows."""
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = tile // (GROUP * across) * GROUP
    height = min(down - first, GROUP)
    within = tile % (GROUP * across)
    return first + within % height, within // height


@tessera.jit
def wrapped(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr,
            BN: tl.constexpr, BK: tl.constexpr, ACTIVATION: tl.constexpr):  # fmt: skip
    i, j = place(tl.program_id(axis=0), M, N, BM, BN, 8)
    tl.assume(i >= 0)
    tl.assume(sam > 0)
    rows = (i * BM + tl.arange(0, BM)) % M
    columns = (j * BN + tl.arange(0, BN)) % N
    inner = tl.arange(0, BK)
    a_ptrs = a_ptr + (rows[:, None] * sam + inner[None, :] * sak)
    b_ptrs = b_ptr + (inner[:, None] * sbk + columns[None, :] * sbn)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=inner[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=inner[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK * sak
        b_ptrs += BK * sbk
    if ACTIVATION == "leaky":
        acc = leaky(acc)
    rows = i * BM + tl.arange(0, BM)
    columns = j * BN + tl.arange(0, BN)
    c_ptrs = c_ptr + scm * rows[:, None] + scn * columns[None, :]
    tl.store(c_ptrs, acc.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


@tessera.jit
def over_tiles(a_ptr, b_ptr, c_ptr, M, N, K, sam, sbk, scm, BM: tl.constexpr, BN: tl.constexpr,
               BK: tl.constexpr, PROGRAMS: tl.constexpr, FLATTEN: tl.constexpr):  # fmt: skip
    start = tl.program_id(axis=0)
    stored = start - PROGRAMS
    inner = tl.arange(0, BK)
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    for tile in tl.range(start, tiles, PROGRAMS, flatten=FLATTEN):
        i, j = place(tile, M, N, BM, BN, 8)
        rows = i * BM + tl.arange(0, BM)
        columns = j * BN + tl.arange(0, BN)
        rows = tl.max_contiguous(tl.multiple_of(tl.where(rows < M, rows, 0), BM), BM)
        columns = tl.max_contiguous(tl.multiple_of(tl.where(columns < N, columns, 0), BN), BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            ks = k * BK + tl.arange(0, BK)
            a_ptrs = a_ptr + (rows[:, None] * sam + ks[None, :])
            b_ptrs = b_ptr + (ks[:, None] * sbk + columns[None, :])
            a = tl.load(a_ptrs, mask=inner[None, :] < K - k * BK, other=0.0)
            b = tl.load(b_ptrs, mask=inner[:, None] < K - k * BK, other=0.0)
            acc = tl.dot(a, b, acc)
        stored += PROGRAMS
        i, j = place(stored, M, N, BM, BN, 8)
        rows = i * BM + tl.arange(0, BM)
        columns = j * BN + tl.arange(0, BN)
        c_ptrs = c_ptr + scm * rows[:, None] + columns[None, :]
        tl.store(c_ptrs, acc.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


@tessera.jit
def in_turns(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
             PROGRAMS: tl.constexpr):  # fmt: skip
    """M and N are multiples of a tile's extents, so only K needs masks."""
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, PROGRAMS):
        rows = tile // across * BM + tl.arange(0, BM)
        columns = tile % across * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            ks = k * BK + tl.arange(0, BK)
            a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=ks[None, :] < K, other=0.0)
            b = tl.load(b_ptr + ks[:, None] * N + columns[None, :], mask=ks[:, None] < K, other=0.0)
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(tl.float16))


@tessera.jit
def described(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
              PROGRAMS: tl.constexpr, HALVES: tl.constexpr, HINTS: tl.constexpr):  # fmt: skip
    """b has its columns in rows. Descriptors are given, or made here."""
    if not isinstance(a, tl.tensor_descriptor):
        a = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
        b = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
        c = tl.make_tensor_descriptor(
            c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN // 2 if HALVES else BN]
        )
    start = tl.program_id(axis=0)
    stored = start - PROGRAMS
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    for tile in tl.range(start, tiles, PROGRAMS, flatten=HINTS, warp_specialize=HINTS):
        i, j = place(tile, M, N, BM, BN, 8)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(a.load([i * BM, k * BK]), b.load([j * BN, k * BK]).T, acc)
        stored += PROGRAMS
        i, j = place(stored, M, N, BM, BN, 8)
        if HALVES:
            halves = tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1))
            left, right = tl.split(halves)
            c.store([i * BM, j * BN], left.to(c.dtype))
            c.store([i * BM, j * BN + BN // 2], right.to(c.dtype))
        else:
            c.store([i * BM, j * BN], acc.to(c.dtype))


@tessera.jit
def grouped(as_ptr, bs_ptr, sizes_ptr, c_ptr, groups, PROGRAMS: tl.constexpr, BM: tl.constexpr,
            BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """Matmuls of matrices that lie anywhere; their results one after the other in c."""
    tile = tl.program_id(0)
    end = 0
    for g in range(groups):
        M, N = tl.load(sizes_ptr + g * 3), tl.load(sizes_ptr + g * 3 + 1)
        K = tl.load(sizes_ptr + g * 3 + 2)
        tl.multiple_of(K, 16)
        tl.multiple_of(N, 16)
        across = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * across
        while tile >= end and tile < end + tiles:
            a_ptr = tl.load(as_ptr + g).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(bs_ptr + g).to(tl.pointer_type(tl.float16))
            rows = (tile - end) // across * BM + tl.arange(0, BM)
            columns = (tile - end) % across * BN + tl.arange(0, BN)
            inner = tl.arange(0, BK)
            a_ptrs = a_ptr + rows[:, None] * K + inner[None, :]
            b_ptrs = b_ptr + inner[:, None] * N + columns[None, :]
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for k in range(0, tl.cdiv(K, BK)):
                # Of which nothing is made.
                tl.multiple_of(a_ptrs, [16, 16])
                tl.multiple_of(b_ptrs, [16, 16])
                acc += tl.dot(tl.load(a_ptrs), tl.load(b_ptrs))
                a_ptrs += BK
                b_ptrs += BK * N
            tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc)
            tile += PROGRAMS
        c_ptr += M * N
        end += tiles


@tessera.jit
def attend(acc, l, m, q, k_desc, v_desc, base, start, scale, BM: tl.constexpr, D: tl.constexpr,
           BN: tl.constexpr, STAGE: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
           T: tl.constexpr):  # fmt: skip
    """Some of the columns: those before the rows, those at the rows, or all."""
    if STAGE == 1:
        low, high = 0, start * BM
    elif STAGE == 2:
        low, high = start * BM, (start + 1) * BM
        low = tl.multiple_of(low, BM)
    else:
        low, high = 0, T
    at = base + low
    for n in tl.range(low, high, BN, warp_specialize=True):
        n = tl.multiple_of(n, BN)
        s = tl.dot(q, k_desc.load([at, 0]).T)
        if STAGE == 2:
            s = s * scale + tl.where(rows[:, None] >= (n + columns[None, :]), 0, -1.0e6)
            new = tl.maximum(m, tl.max(s, 1))
            s -= new[:, None]
        else:
            new = tl.maximum(m, tl.max(s, 1) * scale)
            s = s * scale - new[:, None]
        p = tl.math.exp2(s)
        fade = tl.math.exp2(m - new)
        acc = tl.dot(p.to(tl.float16), v_desc.load([at, 0]), acc * fade[:, None])
        l = l * fade + tl.sum(p, 1)
        m = new
        at += BN
    return acc, l, m


@tessera.jit
def attention(q, k, v, o, lse_ptr, H, scale, T, D: tl.constexpr, BM: tl.constexpr,
              BN: tl.constexpr, STAGE: tl.constexpr):  # fmt: skip
    """Over all rows of all heads as those of one array; STAGE 3 is causal."""
    start, head = tl.program_id(0), tl.program_id(1)
    q = tl.make_tensor_descriptor(q, [H * T, D], [D, 1], [BM, D])
    k = tl.make_tensor_descriptor(k, [H * T, D], [D, 1], [BN, D])
    v = tl.make_tensor_descriptor(v, [H * T, D], [D, 1], [BN, D])
    o = tl.make_tensor_descriptor(o, [H * T, D], [D, 1], [BM, D])
    base = head * T
    rows = start * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    m = tl.zeros([BM], dtype=tl.float32) - float("inf")
    l = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    x = q.load([base + start * BM, 0])
    if STAGE & 1:
        acc, l, m = attend(
            acc, l, m, x, k, v, base, start, scale, BM, D, BN, 4 - STAGE, rows, columns, T
        )
    if STAGE & 2:
        acc, l, m = attend(acc, l, m, x, k, v, base, start, scale, BM, D, BN, 2, rows, columns, T)
    tl.store(lse_ptr + base + rows, m + tl.math.log2(l))
    o.store([base + start * BM, 0], (acc / l[:, None]).to(tl.float16))


def operands(rng: Any, M: int, N: int, K: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Small integers, of which every sum is exact, and their product."""
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((M, K), (K, N)))
    return a, b, a.astype(np.float64) @ b.astype(np.float64)


def check_fast(kernel: Any, maps: int) -> None:
    """All that is multiplied, and the result, by TMA."""
    assert len(kernel.metadata["tensor_maps"]) == maps
    assert "tilegpu.warp_specialize" in kernel.asm["tilegpu"]
    assert not [remark for remark in kernel.remarks if " not " in remark]
    assert kernel.n_spills == 0


@pytest.mark.parametrize("M, N, K", SHAPES)
@pytest.mark.parametrize("activation", ["", "leaky"])
def test_indices_that_wrap(run: Runner, rng, M, N, K, activation):
    a, b, want = operands(rng, M, N, K)
    c = np.full((M, N), 99, np.float16)
    grid = (tessera.cdiv(M, BM) * tessera.cdiv(N, BN),)
    meta = {"BM": BM, "BN": BN, "BK": BK, "ACTIVATION": activation}
    arguments = (a, b, c, M, N, K, K, 1, N, 1, N, 1)
    run(wrapped, grid, *arguments, **meta)
    np.testing.assert_array_equal(c, np.where(want < 0, want / 2, want) if activation else want)
    if run.target == "simulator":
        check_fast(wrapped.warmup(*arguments, **meta, target="sm_90a"), 3)


@pytest.mark.parametrize("M, N, K", SHAPES)
@pytest.mark.parametrize("flatten", [False, True])
def test_indices_that_are_chosen(run: Runner, rng, M, N, K, flatten):
    a, b, want = operands(rng, M, N, K)
    c = np.full((M, N), 99, np.float16)
    meta = {"BM": BM, "BN": BN, "BK": BK, "PROGRAMS": 3, "FLATTEN": flatten}
    arguments = (a, b, c, M, N, K, K, N, N)
    run(over_tiles, (3,), *arguments, **meta)
    np.testing.assert_array_equal(c, want)
    if run.target == "simulator":
        check_fast(over_tiles.warmup(*arguments, **meta, target="sm_90a"), 3)


def test_tiles_in_turns(run: Runner, rng):
    M, N, K = 4 * BM, 5 * BN, 2 * BK + 8
    a, b, want = operands(rng, M, N, K)
    c = np.full((M, N), 99, np.float16)
    meta = {"BM": BM, "BN": BN, "BK": BK, "PROGRAMS": 3}
    arguments = (a, b, c, M, N, K)
    run(in_turns, (3,), *arguments, **meta)
    np.testing.assert_array_equal(c, want)
    if run.target == "simulator":
        kernel = in_turns.warmup(*arguments, **meta, target="sm_90a")
        assert any("tiles are taken column by column" in remark for remark in kernel.remarks)
        check_fast(kernel, 3)


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("made", ["here", "there"])
def test_descriptors_and_halves(run: Runner, rng, made, halves):
    M, N, K = SHAPES[0]
    a, b, want = operands(rng, M, N, K)
    columns = np.ascontiguousarray(b.T)
    c = np.full((M, N), 99, np.float16)
    blocks = ([BM, BK], [BN, BK], [BM, BN // 2 if halves else BN])
    given: Any = (a, columns, c)
    if made == "there":
        given = [TensorDescriptor(x, x.shape, [x.shape[1], 1], y) for x, y in zip(given, blocks)]
    meta = {"BM": BM, "BN": BN, "BK": BK, "PROGRAMS": 3, "HALVES": halves, "HINTS": halves}
    run(described, (3,), *given, M, N, K, **meta)
    np.testing.assert_array_equal(c, want)
    if run.target == "simulator":
        check_fast(described.warmup(*given, M, N, K, **meta, target="sm_90a"), 3)


def test_matrices_found_in_memory(run: Runner, rng):
    sizes = [(128, 64, 96), (64, 128, 64), (192, 64, 32)]
    a, b, want = zip(*(operands(rng, *size) for size in sizes))
    where_a, where_b = run.addresses([*a, *b]).reshape(2, -1)
    c = np.full(sum(M * N for M, N, _ in sizes), 99, np.float32)
    arguments = (where_a.copy(), where_b.copy(), np.array(sizes, np.int32), c, len(sizes))
    meta = {"PROGRAMS": 3, "BM": BM, "BN": BN, "BK": BK}
    run(grouped, (3,), *arguments, **meta)
    np.testing.assert_array_equal(c, np.concatenate([x.ravel() for x in want]))
    if run.target == "simulator":
        for target in ("sm_80", "sm_90a"):
            kernel = grouped.warmup(*arguments, **meta, target=target)
            assert "cp.async.cg" in kernel.asm["ptx"]
            assert not [remark for remark in kernel.remarks if "not pipelined" in remark]


@pytest.mark.parametrize("stage", [1, 3])
def test_attention_in_two_loops(run: Runner, rng, stage):
    H, T, D, rows, columns = 2, 128, 64, 64, 32
    q, k, v = (rng.standard_normal((H, T, D)).astype(np.float16) for _ in range(3))
    o, lse = np.full((H, T, D), np.nan, np.float16), np.full((H, T), np.nan, np.float32)
    meta = {"D": D, "BM": rows, "BN": columns, "STAGE": stage}
    arguments = (q, k, v, o, lse, H, 0.125 * 1.4426950408889634, T)
    run(attention, (T // rows, H), *arguments, **meta)
    s = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) * 0.125
    if stage == 3:
        s = np.where(np.tri(T, dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(2, keepdims=True))
    total = p.sum(2, keepdims=True)
    # Weights are rounded to float16, and so is the result.
    np.testing.assert_allclose(o, p @ v.astype(np.float64) / total, rtol=0, atol=4e-3)
    want = (s.max(2) + np.log(total[:, :, 0])) * 1.4426950408889634
    np.testing.assert_allclose(lse, want, rtol=0, atol=2e-3)
