# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of a matmul: on a GPU programs beside each other take those of one column."""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import Runner

import tessera
import tessera.language as tl

B = 32


@tessera.jit
def in_turns(a_ptr, b_ptr, c_ptr, M, N, K, B: tl.constexpr):
    across = tl.cdiv(N, B)
    for tile in range(tl.program_id(0), tl.cdiv(M, B) * across, tl.num_programs(0)):
        rows = tile // across * B + tl.arange(0, B)
        columns = tile % across * B + tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, B):
            ks = k + tl.arange(0, B)
            a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=rows[:, None] < M, other=0)
            b = tl.load(
                b_ptr + columns[None, :] * K + ks[:, None], mask=columns[None, :] < N, other=0
            )
            acc += tl.dot(a, b)
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        at = c_ptr + rows[:, None] * N + columns[None, :]
        # Each element once, whoever computes it.
        tl.store(at, acc.to(tl.float16) + tl.load(at, mask=mask), mask=mask)


@tessera.jit
def of_problems(a_ptr, b_ptr, c_ptr, sizes_ptr, problems, K, B: tl.constexpr):
    tile, end, row, place = tl.program_id(0), 0, 0, 0
    for g in range(problems):
        M, N = tl.load(sizes_ptr + 2 * g), tl.load(sizes_ptr + 2 * g + 1)
        across = tl.cdiv(N, B)
        tiles = tl.cdiv(M, B) * across
        while tile < end + tiles:
            rows = (tile - end) // across * B + tl.arange(0, B)
            columns = (tile - end) % across * B + tl.arange(0, B)
            acc = tl.zeros((B, B), tl.float32)
            for k in range(0, K, B):
                ks = k + tl.arange(0, B)
                a = tl.load(
                    a_ptr + (row + rows[:, None]) * K + ks[None, :], mask=rows[:, None] < M, other=0
                )
                b = tl.load(
                    b_ptr + columns[None, :] * K + ks[:, None], mask=columns[None, :] < N, other=0
                )
                acc += tl.dot(a, b)
            mask = (rows[:, None] < M) & (columns[None, :] < N)
            at = c_ptr + place + rows[:, None] * N + columns[None, :]
            tl.store(at, acc.to(tl.float16) + tl.load(at, mask=mask), mask=mask)
            tile += tl.num_programs(0)
        end += tiles
        row += M
        place += M * N


@tessera.jit
def multiply(a_ptr, b_ptr, c_ptr, rows, columns, M, N, K, BK: tl.constexpr):
    acc = tl.zeros((rows.shape[0], columns.shape[0]), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        ks = k * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=ks[None, :] < K, other=0)
        b = tl.load(b_ptr + columns[None, :] * K + ks[:, None], mask=ks[:, None] < K, other=0)
        acc += tl.dot(a, b)
    at = c_ptr + rows[:, None] * N + columns[None, :]
    tl.store(at, acc.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


@tessera.jit
def of_a_grid(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    across = tl.cdiv(N, BN)
    tile = tl.program_id(0)
    rows, columns = tile // across * BM + tl.arange(0, BM), tile % across * BN + tl.arange(0, BN)
    multiply(a_ptr, b_ptr, c_ptr, rows, columns, M, N, K, BK)


@tessera.jit
def of_two_axes(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    batch = tl.program_id(2)
    multiply(a_ptr + batch * M * K, b_ptr, c_ptr + batch * M * N, rows, columns, M, N, K, BK)


@tessera.jit
def in_any_order(a_ptr, b_ptr, c_ptr, M, N, K, STEP: tl.constexpr, B: tl.constexpr):
    """With a step of 0 it is the number of programs."""
    across = tl.cdiv(N, B)
    step = STEP if STEP else tl.num_programs(0)
    for tile in range(tl.program_id(0), tl.cdiv(M, B) * across, step):
        rows = tile // across * B + tl.arange(0, B)
        columns = tile % across * B + tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, B):
            ks = k + tl.arange(0, B)
            a = tl.load(a_ptr + rows[:, None] * K + ks[None, :])
            b = tl.load(b_ptr + columns[None, :] * K + ks[:, None])
            acc += tl.dot(a, b)
        tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(tl.float16))


def small(rng, *shape):
    return rng.integers(-2, 3, shape).astype(np.float16)


@pytest.mark.parametrize("programs", [1, 7, 8, 13, 40])
@pytest.mark.parametrize(
    "shape", [(96, 96), (130, 97), (20, 300), (300, 20), (0, 64), (64, 0)], ids=str
)
def test_in_turns(run: Runner, rng, shape, programs):
    (M, N), K = shape, 64
    a, b, c = small(rng, max(M, 1), K), small(rng, max(N, 1), K), small(rng, max(M, 1), max(N, 1))
    want = c.astype(np.float32)
    if M and N:
        want += a.astype(np.float32) @ b.astype(np.float32).T
    run(in_turns, (programs,), a, b, c, M, N, K, B=B)
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("programs", [1, 9, 16])
@pytest.mark.parametrize(
    "sizes",
    [
        [(96, 128), (128, 96), (33, 65)],
        [(128, 32), (32, 128), (64, 64)],
        [(0, 64), (64, 96)],
        [(64, 0), (64, 96), (96, 64)],
    ],
    ids=str,
)
def test_of_problems(run: Runner, rng, sizes, programs):
    """Tiles of all problems follow each other, and the first one's columns order all of them."""
    K = 32
    a, b = small(rng, sum(M for M, _ in sizes), K), small(rng, max(N for _, N in sizes), K)
    c = small(rng, sum(M * N for M, N in sizes))
    want, row, place = c.astype(np.float32), 0, 0
    for M, N in sizes:
        product = a[row : row + M].astype(np.float32) @ b[:N].astype(np.float32).T
        want[place : place + M * N] += product.ravel()
        row, place = row + M, place + M * N
    run(of_problems, (programs,), a, b, c, np.array(sizes, np.int32), len(sizes), K, B=B)
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("tile", [(16, 16, 32, 4), (128, 256, 64, 8)], ids=str)
@pytest.mark.parametrize("grid", [(1, 1), (3, 5), (9, 3), (12, 2), (2, 12)], ids=str)
def test_of_a_grid(run: Runner, rng, grid, tile):
    """With large tiles a GPU has a persistent kernel, whose blocks do several programs each."""
    BM, BN, BK, warps = tile
    # Rows and columns that the last tiles do not have are loaded, and have to be there.
    M, N, K = grid[0] * BM, grid[1] * BN, 64
    a, b, c = small(rng, M, K), small(rng, N, K), np.full((M, N), 99, np.float16)
    arguments, meta = (a, b, c, M, N, K), {"BM": BM, "BN": BN, "BK": BK, "num_warps": warps}
    run(of_a_grid, (grid[0] * grid[1],), *arguments, **meta)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
    if run.target == "simulator":
        kernel = of_a_grid.warmup(*arguments, **meta, grid=(1,), target="sm_90a")
        assert ("over_programs" in kernel.asm["tilegpu"]) == (warps == 8)


@pytest.mark.parametrize("tile", [(16, 16, 32, 4), (128, 256, 64, 8)], ids=str)
@pytest.mark.parametrize("grid", [(1, 1, 1), (3, 2, 2), (9, 3, 1), (12, 2, 1), (1, 7, 3)], ids=str)
def test_of_two_axes(run: Runner, rng, grid, tile):
    BM, BN, BK, warps = tile
    M, N, K = grid[0] * BM, grid[1] * BN, 64
    a, b = small(rng, grid[2], M, K), small(rng, N, K)
    c = np.full((grid[2], M, N), 99, np.float16)
    arguments, meta = (a, b, c, M, N, K), {"BM": BM, "BN": BN, "BK": BK, "num_warps": warps}
    run(of_two_axes, grid, *arguments, **meta)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
    if run.target == "simulator":
        kernel = of_two_axes.warmup(*arguments, **meta, grid=(1,), target="sm_90a")
        assert ("over_programs" in kernel.asm["tilegpu"]) == (warps == 8)


def test_no_problem_is_asked_for_its_size(run: Runner, rng):
    """The first size is loaded ahead only if there is one: here nothing lies there."""
    nothing = np.zeros(0, np.int32)
    c = small(rng, 1)
    want = c.copy()
    run(of_problems, (5,), small(rng, 1, 32), small(rng, 1, 32), c, nothing, 0, 32, B=B)
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("programs", [1, 3, 8, 21])
@pytest.mark.parametrize("step", ["given", "asked for", "one"])
@pytest.mark.parametrize("shape", [(160, 96), (96, 320), (64, 64)], ids=str)
def test_other_tiles(run: Runner, rng, shape, step, programs):
    """Where the step is not the number of programs, tiles are done by several, with one result."""
    (M, N), K = shape, 64
    a, b, c = small(rng, M, K), small(rng, N, K), small(rng, M, N)
    number = {"given": programs, "asked for": 0, "one": 1}[step]
    run(in_any_order, (programs,), a, b, c, M, N, K, STEP=number, B=B)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


@pytest.mark.parametrize("operand", [0, 1])
@pytest.mark.parametrize("first", [0, 32, 64, 96, 160])
def test_tiles_that_later_ones_load(run: Runner, rng, first, operand):
    """Results that lie in an operand, from some row on: a program sees its own, tile after tile."""
    if run.target == "cuda":
        pytest.skip("views of one array have copies of their own there")
    M, N, K = 128, 64, 64
    a, b, expected_a, expected_b = (np.empty((first + M, K), np.float16) for _ in range(4))
    for array, expected in ((a, expected_a), (b, expected_b)):
        array[:] = small(rng, first + M, K) * (rng.random(array.shape) < 0.1)
        expected[:] = array
    c, expected_c = (a, b)[operand][first:], (expected_a, expected_b)[operand][first:]
    for row in range(0, M, B):
        for column in range(0, N, B):
            tile = expected_a[row : row + B].astype(np.float32) @ expected_b[column : column + B].T
            expected_c[row : row + B, column : column + B] = tile
    run(in_any_order, (1,), a, b, c, M, N, K, STEP=0, B=B)
    np.testing.assert_array_equal(c, expected_c)


@pytest.mark.filterwarnings("ignore::tessera.ToolchainWarning")
@pytest.mark.parametrize(
    "kernel, sizes, rows",
    [
        (in_turns, "i32, i32, i32, 32", 4),
        (of_problems, "*i32, i32, i32, 32", 4),
        (of_a_grid, "i32, i32, i32, 64, 64, 32", 8),
        (of_a_grid, "i32, i32, i32, 64, 128, 32", 16),
        (of_two_axes, "i32, i32, i32, 64, 64, 32", 8),
        (in_any_order, "i32, i32:16, i32:16, 132, 32", 8),
        (in_any_order, "i32, i32:16, i32:16, 0, 32", 8),
        (in_any_order, "i32, i32, i32, 132, 32", 4),
    ],
)
def test_what_is_said(kernel, sizes, rows):
    arrays = "*fp16:16, *fp16:16, *fp16:16" if kernel is in_any_order else "*fp16, *fp16, *fp16"
    compiled = tessera.compile(kernel, f"{arrays}, {sizes}", target="sm_90a")
    assert [each.values for each in compiled.remarks if each.kind == "tiles-ordered"] == [
        {"rows": rows}
    ]
