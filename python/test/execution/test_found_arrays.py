# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Descriptors of arrays that a kernel finds in memory: on a GPU it makes tensor maps itself."""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import Runner

import tessera
import tessera.language as tl

BM, BN, BK = 64, 64, 64


@tessera.jit
def grouped(as_ptr, bs_ptr, cs_ptr, sizes_ptr, lds_ptr, groups, PROGRAMS: tl.constexpr,
            BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """Matmuls of arrays that lie anywhere, a tile of one of them at a time."""
    tile = tl.program_id(0)
    end = 0
    for g in range(groups):
        M, N = tl.load(sizes_ptr + g * 3), tl.load(sizes_ptr + g * 3 + 1)
        K = tl.load(sizes_ptr + g * 3 + 2)
        tl.multiple_of(N, 8)  # so that TMA may store rows
        across = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * across
        if tile >= end and tile < end + tiles:
            a_ptr = tl.load(as_ptr + g).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(bs_ptr + g).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(cs_ptr + g).to(tl.pointer_type(tl.float16))
            lda, ldb = tl.load(lds_ptr + g * 3), tl.load(lds_ptr + g * 3 + 1)
            ldc = tl.load(lds_ptr + g * 3 + 2)
            a = tl.make_tensor_descriptor(a_ptr, [M, K], [lda, 1], [BM, BK])
            b = tl.make_tensor_descriptor(b_ptr, [N, K], [ldb, 1], [BN, BK])
            c = tl.make_tensor_descriptor(c_ptr, [M, N], [ldc, 1], [BM, BN])
            while tile >= end and tile < end + tiles:
                m, n = (tile - end) // across * BM, (tile - end) % across * BN
                acc = tl.zeros((BM, BN), dtype=tl.float32)
                for k in range(0, tl.cdiv(K, BK)):
                    acc += tl.dot(a.load([m, k * BK]), b.load([n, k * BK]).T)
                c.store([m, n], acc.to(tl.float16))
                tile += PROGRAMS
        end += tiles


def small(rng, *shape):
    return rng.integers(-2, 3, shape).astype(np.float16)


def test_grouped_matmul(run: Runner, rng):
    sizes = [(128, 64, 192), (8, 72, 8), (96, 136, 0), (64, 64, 64), (65, 16, 328)]
    a = [small(rng, M, max(8, K)) for M, N, K in sizes]
    b = [small(rng, N, max(8, K)) for M, N, K in sizes]
    c = [np.full((M, N), 99, np.float16) for M, N, K in sizes]
    where = run.addresses([*a, *b, *c]).reshape(3, -1)
    lds = np.array([x.shape[1] for each in zip(a, b, c) for x in each], np.int32)
    arguments = (*[x.copy() for x in where], np.array(sizes, np.int32), lds, len(sizes))
    meta = {"PROGRAMS": 3, "BM": BM, "BN": BN, "BK": BK}
    run(grouped, (3,), *arguments, **meta)
    for x, y, z, (_, _, K) in zip(a, b, c, sizes):
        np.testing.assert_array_equal(
            z, x[:, :K].astype(np.float32) @ y[:, :K].astype(np.float32).T
        )
    if run.target == "simulator":
        kernel = grouped.warmup(*arguments, **meta, target="sm_90a")
        # A producer is told of two of them, and TMA stores by the third.
        assert kernel.asm["ptx"].count("tensormap.cp_fenceproxy") == 3
        assert "cp.async.bulk.tensor.2d.global" in kernel.asm["ptx"]
        assert not any("copies without a producer warp" in str(x) for x in kernel.remarks)


def test_result_is_the_next_operand(run: Runner, rng):
    """What one matmul of a program stores, its next one loads."""
    size, count = 64, 4
    a = [small(rng, size, size) for _ in range(count)]
    b = [np.eye(size, dtype=np.float16)[:, ::-1].copy() for _ in range(count)]
    b[1] *= 2
    # Each result lies where the next first operand is.
    c = [*a[1:], np.full((size, size), 99, np.float16)]
    where = run.addresses([*a, *b, c[-1]])
    as_ptr, bs_ptr = where[:count].copy(), where[count : 2 * count].copy()
    cs_ptr = np.concatenate([where[1:count], where[-1:]])
    sizes = np.full(3 * count, size, np.int32)
    want = a[0].astype(np.float32)
    for y in b:
        want = want @ y.astype(np.float32).T
    meta = {"PROGRAMS": 1, "BM": BM, "BN": BN, "BK": 32}
    run(grouped, (1,), as_ptr, bs_ptr, cs_ptr, sizes, sizes.copy(), count, **meta)
    np.testing.assert_array_equal(c[-1], want)


@pytest.mark.parametrize("rows_later", [0, 1, 64, 100, 128])
@pytest.mark.parametrize("operand", ["first", "second"])
def test_result_lies_in_an_operand_of_its_own(run: Runner, rng, rows_later, operand):
    """What a tile stores, later tiles of the same matmul load: the first rows are theirs."""
    M, N, K = 192, 64, 64
    memory = small(rng, M + 320, K)
    other = np.zeros((M, K), np.float16)
    other[np.arange(M), rng.permutation(M) % K] = 1
    a, b = (memory, other) if operand == "first" else (other, memory)
    if operand == "second":
        M, N = N, M
    c = memory[rows_later:].reshape(-1)[: M * N].reshape(M, N)
    want = memory.copy()
    interpreted = Runner("interpreter")
    for runner, place in ((interpreted, want), (run, memory)):
        there = (place, other) if operand == "first" else (other, place)
        where = runner.addresses([place, other])
        first, second = (where[0], where[1]) if operand == "first" else (where[1], where[0])
        result = where[0] + rows_later * K * 2
        pointers = [np.array([x], np.int64) for x in (first, second, result)]
        sizes, lds = np.array([M, N, K], np.int32), np.array([K, K, N], np.int32)
        runner(grouped, (1,), *pointers, sizes, lds, 1, PROGRAMS=1, BM=64, BN=64, BK=32)
        assert there[0].shape[1] == K
    np.testing.assert_array_equal(memory, want)


def test_result_lies_where_sizes_are(run: Runner, rng):
    """A matmul of zeros stores zeros over the size of the next one, which is left out then."""
    size, count = 64, 2
    sizes = np.zeros((size + 8) * size // 2, np.int32)
    sizes[: 3 * count] = size
    a, b = [small(rng, size, size) for _ in range(count)], small(rng, size, size)
    a[0][:] = 0
    c = np.full((size, size), 99, np.float16)
    where = run.addresses([sizes, *a, b, c])
    cs_ptr = np.array([where[0] + 16, where[-1]])  # behind the first one's
    bs_ptr = np.array([where[3], where[3]])
    lds = np.full(3 * count, size, np.int32)
    if run.target == "cuda":
        pytest.skip("sizes are passed as an array, which is another one on the GPU")
    meta = {"PROGRAMS": 1, "BM": BM, "BN": BN, "BK": 32}
    run(grouped, (1,), where[1:3].copy(), bs_ptr, cs_ptr, sizes, lds, count, **meta)
    np.testing.assert_array_equal(sizes[:4], [size, size, size, size])
    assert not sizes[4:].any()
    assert (c == 99).all()


@tessera.jit
def described(where_ptr, sizes_ptr, n, tiles, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Tiles that are done whatever extents the descriptors have."""
    M, N, K = tl.load(sizes_ptr), tl.load(sizes_ptr + 1), tl.load(sizes_ptr + 2)
    a_ptr = tl.load(where_ptr).to(tl.pointer_type(tl.float16))
    b_ptr = tl.load(where_ptr + 1).to(tl.pointer_type(tl.float16))
    c_ptr = tl.load(where_ptr + 2).to(tl.pointer_type(tl.float16))
    a = tl.make_tensor_descriptor(a_ptr, [n, K], [64, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [n, K], [64, 1], [BN, BK])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [64, 1], [BM, BN])
    for tile in range(tiles):
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, 64, BK):
            acc += tl.dot(a.load([tile * BM, k]), b.load([0, k]).T)
        c.store([tile * BM, 0], acc.to(tl.float16))


@pytest.mark.parametrize(
    "sizes", [(0, 64, 64), (64, 0, 64), (-5, 64, 64), (64, 64, 0), (64, 64, -1), (30, 40, 56)]
)
def test_arrays_without_elements(run: Runner, rng, sizes):
    """Loads give zeros, and nothing is stored; a GPU takes a map without elements for wrong."""
    M, N, K = sizes
    a, b = small(rng, 128, 64), small(rng, 64, 64)
    c = np.full((128, 64), 99, np.float16)
    where = run.addresses([a, b, c])
    run(described, (1,), where.copy(), np.array(sizes, np.int32), 128, 2, BM=64, BN=64, BK=32)
    K = max(0, K)
    want = np.full_like(c, 99)
    want[: max(0, M), :N] = (a[:, :K].astype(np.float32) @ b[:, :K].astype(np.float32).T)[
        : max(0, M), :N
    ]
    np.testing.assert_array_equal(c, want)


@tessera.jit
def alternating(
    where_ptr, c_ptr, count_ptr, tiles, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """Every other tile is multiplied: a branch that has nothing but the loop, by what is carried."""
    a_ptr = tl.load(where_ptr).to(tl.pointer_type(tl.float16))
    b_ptr = tl.load(where_ptr + 1).to(tl.pointer_type(tl.float16))
    a = tl.make_tensor_descriptor(a_ptr, [256, 64], [64, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [BN, 64], [64, 1], [BN, BK])
    rows, columns = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :]
    is_done = tl.load(where_ptr) == 0
    for tile in range(tiles):
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        if is_done:
            for k in range(0, 64, BK):
                acc += tl.dot(a.load([tile * BM, k]), b.load([0, k]).T)
        tl.store(c_ptr + (tile * BM + rows) * BN + columns, acc)
        tl.atomic_add(count_ptr, 1)  # so that nothing is copied ahead of what is stored
        is_done = not is_done


def test_a_branch_by_what_is_carried(run: Runner, rng):
    a, b = small(rng, 256, 64), small(rng, BN, 64)
    c = np.full((256, BN), 99, np.float32)
    where = run.addresses([a, b])
    count = np.zeros(1, np.int32)
    run(alternating, (1,), where.copy(), c, count, 4, BM=64, BN=BN, BK=32)
    assert count[0] == 4
    want = a.astype(np.float32) @ b.astype(np.float32).T
    want.reshape(4, 64, BN)[::2] = 0
    np.testing.assert_array_equal(c, want)


@tessera.jit
def queued(as_ptr, bs_ptr, c_ptr, sizes_ptr, scales_ptr, counter_ptr, groups, N, K, ld,
           BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FLOATS: tl.constexpr):  # fmt: skip
    """Tiles by a counter in memory, numbers of rows by a sum of a tile, two loops, a branch."""
    tile = tl.atomic_add(counter_ptr, 1)
    end = 0
    for g in range(groups):
        rows = tl.arange(0, 4)
        M = tl.sum(tl.load(sizes_ptr + g * 4 + rows))
        tiles = tl.cdiv(M, BM)
        a = tl.make_tensor_descriptor(
            tl.load(as_ptr + g).to(tl.pointer_type(tl.float16)), [M, K], [ld, 1], [BM, BK]
        )
        b = tl.make_tensor_descriptor(
            tl.load(bs_ptr + g).to(tl.pointer_type(tl.float16)), [N, K], [ld, 1], [BN, BK]
        )
        c = tl.make_tensor_descriptor(c_ptr + end * BM * N, [M, N], [N, 1], [BM, BN])
        scale = tl.load(scales_ptr + g)
        while tile < end + tiles:
            m = (tile - end) * BM
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            if scale > 0.5 if FLOATS else tile % 3 != 1:
                for k in range(0, K // 2, BK):
                    acc += tl.dot(a.load([m, k]), b.load([0, k]).T)
                for k in range(K // 2, K, BK):
                    acc += tl.dot(a.load([m, k]), b.load([0, k]).T)
            c.store([m, 0], acc.to(tl.float16))
            tile = tl.atomic_add(counter_ptr, 1)
        end += tiles


@pytest.mark.parametrize("floats", [False, True])
@pytest.mark.parametrize("programs", [1, 2])
def test_tiles_by_a_counter(run: Runner, rng, floats, programs):
    N, K, ld, parts = 64, 128, 136, [[30, 40, 50, 60], [0, 0, 0, 0], [1, 2, 3, 4], [64, 0, 64, 0]]
    rows = [sum(part) for part in parts]
    a = [small(rng, max(1, M), ld) for M in rows]
    b = [small(rng, N, ld) for _ in rows]
    tiles = [-(-M // BM) for M in rows]
    c = np.full((sum(tiles) * BM, N), 99, np.float16)
    where = run.addresses([*a, *b])
    scales = np.array([1, 1, 0, 1], np.float32)
    run(queued, (programs,), where[:4].copy(), where[4:].copy(), c, np.array(parts, np.int32),
        scales, np.zeros(1, np.int32), 4, N, K, ld, BM=BM, BN=BN, BK=32,
        FLOATS=floats)  # fmt: skip
    want = np.full_like(c, 99)
    for g, M in enumerate(rows):
        first = sum(tiles[:g])
        for tile in range(tiles[g]):
            m = min(BM, M - tile * BM)
            x = a[g][tile * BM : tile * BM + m, :K].astype(np.float32)
            here = (scales[g] > 0.5) if floats else (first + tile) % 3 != 1
            place = (first + tile) * BM
            want[place : place + m] = x @ b[g][:, :K].astype(np.float32).T if here else 0
    np.testing.assert_array_equal(c, want)


@tessera.jit
def beside(as_ptr, w_ptr, c_ptr, M, N, K, first, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr, STAGES: tl.constexpr):  # fmt: skip
    """One operand is found, the other is an argument, in two loops; boxes begin outside."""
    a_ptr = tl.load(as_ptr + tl.program_id(0)).to(tl.pointer_type(tl.float16))
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    w = tl.make_tensor_descriptor(w_ptr, [N, K], [K, 1], [BN, BK])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K // 2, BK, num_stages=STAGES):
        acc += tl.dot(a.load([first, k]), w.load([0, k]).T)
    for k in tl.range(K // 2, K + 2 * BK, BK, num_stages=STAGES):
        acc += tl.dot(a.load([first, k]), w.load([0, k]).T)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    tl.store(c_ptr + rows[:, None] * BN + tl.arange(0, BN)[None, :], acc)


@pytest.mark.parametrize("first", [-8, 0, 40, 200])
@pytest.mark.parametrize("stages", [2, 5])
def test_found_beside_an_argument(run: Runner, rng, first, stages):
    M, N, K = 72, 64, 192
    a, w = [small(rng, M, K) for _ in range(2)], small(rng, N, K)
    c = np.full((2 * BM, BN), 99, np.float32)
    meta = {"BM": BM, "BN": BN, "BK": 32, "STAGES": stages}
    run(beside, (2,), run.addresses(a).copy(), w, c, M, N, K, first, **meta)
    for x, z in zip(a, np.split(c, 2)):
        rows = np.zeros((BM, K), np.float32)
        inside = [r for r in range(BM) if 0 <= first + r < M]
        if inside:
            rows[inside] = x[[first + r for r in inside]]
        np.testing.assert_array_equal(z, rows @ w.astype(np.float32).T)


@tessera.jit
def attend(ks_ptr, vs_ptr, q_ptr, o_ptr, T, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Two dots an iteration, of keys and values that are found, one after the other."""
    index, rows = tl.arange(0, D), tl.arange(0, BM)
    q = tl.load(q_ptr + rows[:, None] * D + index[None, :])
    for head in range(2):
        k_ptr = tl.load(ks_ptr + head).to(tl.pointer_type(tl.float16))
        v_ptr = tl.load(vs_ptr + head).to(tl.pointer_type(tl.float16))
        k = tl.make_tensor_descriptor(k_ptr, [T, D], [D, 1], [BN, D])
        v = tl.make_tensor_descriptor(v_ptr, [T, D], [D, 1], [BN, D])
        acc = tl.zeros((BM, D), dtype=tl.float32)
        for t in range(0, T, BN):
            s = tl.dot(q, k.load([t, 0]).T)
            acc += tl.dot(tl.maximum(s, 0.0).to(tl.float16), v.load([t, 0]))
        tl.store(o_ptr + head * BM * D + rows[:, None] * D + index[None, :], acc)


def test_two_dots_of_found_arrays(run: Runner, rng):
    T, D = 112, 64
    k, v = ([small(rng, T, D) for _ in range(2)] for _ in range(2))
    q = rng.integers(0, 2, (BM, D)).astype(np.float16)
    o = np.full((2, BM, D), 99, np.float32)
    where = run.addresses([*k, *v])
    run(attend, (1,), where[:2].copy(), where[2:].copy(), q, o, T, BM=BM, BN=32, D=D)
    for x, y, z in zip(k, v, o):
        s = np.maximum(q.astype(np.float32) @ x.astype(np.float32).T, 0)
        np.testing.assert_array_equal(z, s @ y.astype(np.float32))
