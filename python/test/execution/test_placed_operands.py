# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dots that read both operands where they lie in memory (Dots/PlacedDot.h): the same bits as of
copies, for every mask, every distance of rows, and every overlap of what programs load and store.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from execution.running import CPU_TARGETS, host_has

import tessera
import tessera.language as tl

TARGETS = [target for target in CPU_TARGETS if host_has(target)]
SIZES = ["M", "N", "K", "am", "bk", "cm", "ap", "bp", "cp"]


@tessera.jit(do_not_specialize=SIZES, do_not_specialize_on_alignment=["a_ptr", "b_ptr", "c_ptr"])
def products(
    a_ptr, b_ptr, c_ptr, M, N, K, am, bk, cm, ap, bp, cp, MASKED: tl.constexpr,
    STORES: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """A product for each program, modulo 5. STORES: each iteration stores to c, too."""
    p = tl.program_id(0).to(tl.int64)
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), a_ptr.dtype.element_ty)
    c_at = c_ptr + p * cp + m[:, None] * cm + n[None, :]
    inside = (m < M)[:, None] & (n < N)[None, :]
    for start in range(0, K, BK):
        a_at = a_ptr + p * ap + m[:, None] * am + (start + k)[None, :]
        b_at = b_ptr + p * bp + (start + k)[:, None] * bk + n[None, :]
        if MASKED:
            left = k < K - start
            a = tl.load(a_at, mask=(m < M)[:, None] & left[None, :], other=0.0)
            b = tl.load(b_at, mask=left[:, None] & (n <= N - 1)[None, :], other=0.0)
        else:
            a, b = tl.load(a_at), tl.load(b_at)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        if STORES:
            tl.store(c_at, (start % 7).to(a_ptr.dtype.element_ty), mask=inside)
    tl.store(c_at, acc - 5.0 * tl.floor(acc / 5.0), mask=inside)


def rows_of(array: np.ndarray) -> list[int]:
    return [array.strides[1] // array.itemsize]


def launch(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, cpu: str = "", block: Any = (32, 64, 32),
    masked=True, stores=False, threads=1,
) -> Any:  # fmt: skip
    """On the interpreter if no CPU is named."""
    (count, m, k), n = a.shape, b.shape[2]
    kernel: Any = tessera.interpret(products) if not cpu else products
    options = {"cpu": cpu, "num_threads": threads} if cpu else {}
    return kernel[(count,)](
        first(a), first(b), first(c), m, n, k, *rows_of(a), *rows_of(b), *rows_of(c),
        *(x.strides[0] // x.itemsize for x in (a, b, c)), MASKED=masked, STORES=stores,
        BM=block[0], BN=block[1], BK=block[2], **options,
    )  # fmt: skip


def first(array: np.ndarray) -> np.ndarray:
    """Where an array begins: the rest of the memory that its first element is in."""
    whole = array
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    distance = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return whole.reshape(-1)[distance // array.itemsize :]


def draw_small(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Numbers whose products and sums are exact in any order."""
    return rng.integers(-2, 3, shape).astype(dtype)


def check(a: np.ndarray, b: np.ndarray, c: np.ndarray, cpu: str, **options: Any) -> None:
    """Views of one memory: all of it has to be as after the interpreter."""
    whole = a.base
    before = whole.copy()
    launch(a, b, c, **options)
    want = whole.copy()
    whole[:] = before
    launch(a, b, c, cpu, **options)
    np.testing.assert_array_equal(whole, want)


def cut(
    memory: np.ndarray, at: int, shape: tuple[int, int, int], row: int, product: int
) -> np.ndarray:
    """A view of `shape`, whose rows and products lie so many elements apart."""
    size = memory.itemsize
    strides = (product * size, row * size, size)
    return np.ndarray(shape, memory.dtype, memory, at * size, strides)


@pytest.mark.parametrize("cpu", TARGETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", [(5, 32, 64, 300), (3, 17, 41, 64), (12, 32, 64, 32), (2, 32, 64, 1100), (2, 1, 64, 7)]
)
def test_masks(rng, cpu, dtype, shape) -> None:
    count, m, n, k = shape
    a, b = draw_small(rng, count, m, k, dtype=dtype), draw_small(rng, count, k, n, dtype=dtype)
    c = np.full((count, m, n), 9, dtype)
    compiled = launch(a, b, c, cpu)
    assert "prefetch" in compiled.asm["llvmir"]
    np.testing.assert_array_equal(c, np.mod(a @ b, 5))


@pytest.mark.parametrize("cpu", TARGETS)
@pytest.mark.parametrize("block", [(32, 64, 32), (64, 64, 64), (16, 128, 16), (128, 32, 128)])
def test_sums_keep_their_order(rng, cpu, block) -> None:
    """Rows that lie in place, and rows that meet in the caches, have the same bits."""
    bm, bn, bk = block
    k = 5 * bk
    results = []
    for row in (max(k, bn) + 8, 1 << 13):
        memory = np.zeros(2 * bm * row + 2 * k * row, np.float32)
        a = cut(memory, 0, (2, bm, k), row, bm * row)
        b = cut(memory, 2 * bm * row, (2, k, bn), row, k * row)
        own = np.random.default_rng(7)
        a[:], b[:] = own.standard_normal(a.shape), own.standard_normal(b.shape)
        for masked in (False, True):
            results.append(np.zeros((2, bm, bn), np.float32))
            launch(a, b, results[-1], cpu, block=block, masked=masked)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


@pytest.mark.parametrize("row", [72, 100, -72, 0, 1, 1024, 4096])
@pytest.mark.parametrize("stores", [False, True])
def test_distances_and_overlaps(rng, row, stores) -> None:
    """Rows forwards, backwards and on top of each other, of which others are stored."""
    cpu, (count, m, n, k) = TARGETS[0], (6, 32, 64, 70)
    memory = draw_small(rng, 1 << 20)
    middle = memory.size // 2
    a = cut(memory, middle, (count, m, k), row, 128)
    b = cut(memory, middle + 64, (count, k, n), row, 192)
    apart = cut(memory, 0, (count, m, n), n, m * n)
    check(a, b, apart, cpu, stores=stores)
    # Programs store what later ones load, in both operands.
    over = cut(memory, middle + 500, (count, m, n), 64, 2100)
    check(a, b, over, cpu, stores=stores)
    over = cut(memory, middle, (count, m, n), 72, 72 * m)
    check(a, b, over, cpu, stores=stores)


def test_calls_of_few_programs(rng) -> None:
    """Threads run one product each, and read it in place."""
    a, b = draw_small(rng, 8, 32, 260), draw_small(rng, 8, 260, 64)
    for threads in (1, 2, 8):
        c = np.zeros((8, 32, 64), np.float32)
        launch(a, b, c, TARGETS[0], threads=threads)
        np.testing.assert_array_equal(c, np.mod(a @ b, 5))


def test_empty_loops(rng) -> None:
    a, b = np.zeros((3, 32, 1), np.float32)[:, :, :0], np.zeros((3, 1, 64), np.float32)[:, :0]
    c = np.full((3, 32, 64), 9, np.float32)
    launch(a, b, c, TARGETS[0])
    assert (c == 0).all()
