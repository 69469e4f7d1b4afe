# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles that programs take in turns: on a GPU neighbours take those of one column."""

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


def test_no_problem_is_asked_for_its_size(run: Runner, rng):
    """The first size is loaded ahead only if there is one: here nothing lies there."""
    nothing = np.zeros(0, np.int32)
    c = small(rng, 1)
    want = c.copy()
    run(of_problems, (5,), small(rng, 1, 32), small(rng, 1, 32), c, nothing, 0, 32, B=B)
    np.testing.assert_array_equal(c, want)


@pytest.mark.filterwarnings("ignore::tessera.ToolchainWarning")
@pytest.mark.parametrize("kernel", [in_turns, of_problems], ids=lambda kernel: kernel.__name__)
def test_what_is_said(kernel):
    sizes = "*i32, i32" if kernel is of_problems else "i32, i32"
    compiled = tessera.compile(kernel, f"*fp16, *fp16, *fp16, {sizes}, i32, 32", target="sm_90a")
    assert [each.values for each in compiled.remarks if each.kind == "tiles-ordered"] == [
        {"rows": 4}
    ]
