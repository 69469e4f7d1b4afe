# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands of dots that a thread keeps for its next programs (Dots/KeptOperands.h): what is kept
is what memory has, in every order of stores and for every view."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest
from execution.running import CPU_TARGETS, host_has, numpy_dtype

import tessera
import tessera.language as tl

TARGETS = [target for target in CPU_TARGETS if host_has(target)]
KEPT = "kept for the next programs"


SIZES = ["M", "N", "K", "am", "ak", "bk", "bn", "cm", "cn", "later"]


@tessera.jit(do_not_specialize=SIZES, do_not_specialize_on_alignment=["a_ptr", "b_ptr", "c_ptr"])
def products(
    a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, cm, cn, later, SHORTER: tl.constexpr,
    ADDS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """c = a @ b modulo 5, in groups of GROUP rows of tiles. `later`: of the columns of b behind.
    SHORTER: tiles of row i sum up to i * BK steps less. ADDS: counts programs in c."""
    row, column = tl.swizzle2d(
        tl.program_id(0), tl.program_id(1), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP
    )
    m, n, k = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    end = K - row * BK if SHORTER else K
    for start in range(0, end, BK):
        left = k < end - start
        a_at = a_ptr + m[:, None] * am + (start + k)[None, :] * ak
        b_at = b_ptr + (start + k)[:, None] * bk + n[None, :] * bn
        a = tl.load(a_at, mask=(m < M)[:, None] & left[None, :], other=0.0)
        b = tl.load(b_at, mask=left[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    acc = acc - 5.0 * tl.floor(acc / 5.0)
    if ADDS:
        tl.atomic_add(c_ptr, 1.0)
    else:
        at = c_ptr + m[:, None] * cm + n[None, :] * cn + later
        tl.store(at, acc, mask=(m < M)[:, None] & (n < N)[None, :])


def strides(array: np.ndarray) -> list[int]:
    return [stride // array.itemsize for stride in array.strides]


def launch(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, cpu: str = "", block: Any = (64, 64, 32), group=2,
    threads=1, later=0, shorter=False, adds=False,
) -> Any:  # fmt: skip
    """On the interpreter if no CPU is named."""
    (m, k), n = a.shape, b.shape[1]
    grid = (-(-m // block[0]), -(-n // block[1]))
    kernel: Any = tessera.interpret(products) if not cpu else products
    options = {"cpu": cpu, "num_threads": threads} if cpu else {}
    return kernel[grid](
        first(a), first(b), first(c), m, n, k, *strides(a), *strides(b), *strides(c), later,
        SHORTER=shorter, ADDS=adds, BM=block[0], BN=block[1], BK=block[2], GROUP=group, **options,
    )  # fmt: skip


def first(array: np.ndarray) -> np.ndarray:
    """Where an array begins: the rest of the memory that its first element is in."""
    whole = array
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    offset = (array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]) // 4
    return whole.reshape(-1)[offset:]


def draw_small(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers whose products and sums are exact in any order."""
    return rng.integers(-2, 3, shape).astype(np.float32)


def is_kept(compiled: Any) -> bool:
    return any(KEPT in str(remark) for remark in compiled.remarks)


@pytest.mark.parametrize("cpu", TARGETS)
@pytest.mark.parametrize("shape", [(200, 333, 300), (64, 640, 32), (257, 130, 1100)])
def test_sizes_and_threads(rng, cpu, shape) -> None:
    m, n, k = shape
    a, b = draw_small(rng, m, k), draw_small(rng, k, n)
    a += 0.1  # sums depend on their order
    results = [np.full((m, n), 9, np.float32) for _ in range(3)]
    assert is_kept(launch(a, b, results[0], cpu))
    # Calls of few programs keep nothing.
    launch(a, b, results[1], cpu, threads=64)
    launch(a, b, results[2], cpu, threads=2)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    near = np.abs(results[0] - np.mod(exact, 5.0))
    assert np.minimum(near, 5.0 - near).max() < 1e-2


def check(memory: np.ndarray, views: Any, cpu: str, **options: Any) -> None:
    """`views` cuts a, b and c from the memory; all of it has to be as after the interpreter."""
    want, got = memory.copy(), memory.copy()
    launch(*views(want), **options)
    launch(*views(got), cpu, **options)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("group", [1, 4])
def test_stores_to_what_is_kept(rng, group) -> None:
    """Each program stores where later ones load: a, b, both, a part of a row of tiles."""
    cpu, n = TARGETS[0], 192
    memory = draw_small(rng, 3 * n * n)
    a, b, c = (slice(i * n * n, (i + 1) * n * n) for i in range(3))

    def cut(*parts: slice) -> Any:
        return lambda whole: [whole[part].reshape(n, n) for part in parts]

    for parts in ((a, b, a), (a, b, b), (a, a, a), (a, b, c)):
        check(memory, cut(*parts), cpu, group=group)
    # The last rows of c are the first of a, and of b.
    check(memory, cut(b, c, slice(n * n // 2, n * n // 2 + n * n)), cpu, group=group)
    check(memory, cut(c, b, a), cpu, group=group, later=n * n - n // 2)


def test_views(rng) -> None:
    """Rows and columns backwards, transposed, the same row again; b is a view of a."""
    cpu, n = TARGETS[-1], 160
    memory = draw_small(rng, 3 * n * n)

    def square(whole: np.ndarray, part: int) -> np.ndarray:
        return whole[part * n * n : (part + 1) * n * n].reshape(n, n)

    same = lambda x: np.lib.stride_tricks.as_strided(x, x.shape, (0, x.strides[1]))  # noqa: E731
    for change in (lambda x: x[::-1], lambda x: x[:, ::-1], lambda x: x.T, same):
        check(memory, lambda w: (change(square(w, 0)), square(w, 1), square(w, 2)), cpu)
        check(memory, lambda w: (square(w, 0), change(square(w, 0)), square(w, 2)), cpu)
        check(memory, lambda w: (square(w, 0), square(w, 1), square(w, 0)[::-1]), cpu)


@pytest.mark.parametrize("shape", [(4, 160, 1000), (5, 128, 64)])
def test_loops_of_other_lengths(rng, shape) -> None:
    """Panels of programs with fewer iterations begin elsewhere."""
    rows, n, k = shape
    a, b = draw_small(rng, rows * 64, k), draw_small(rng, k, n)
    memory = np.concatenate([a.ravel(), b.ravel(), np.zeros(rows * 64 * n, np.float32)])

    def cut(whole: np.ndarray) -> Any:
        x, y, z = np.split(whole, [a.size, a.size + b.size])
        return x.reshape(a.shape), y.reshape(b.shape), z.reshape(rows * 64, n)

    check(memory, cut, TARGETS[0], shorter=True)


def test_later_launches_load_again(rng) -> None:
    a, b, c = draw_small(rng, 192, 64), draw_small(rng, 64, 192), np.zeros((192, 192), np.float32)
    for _ in range(3):
        launch(a, b, c, TARGETS[0])
        np.testing.assert_array_equal(c, np.mod(a @ b, 5.0))
        a[100, :] += 1
        b[:, 70] -= 1


@tessera.jit
def scaled_products(
    memory, b_at, scale_at, c_at, last, N, K, CASE: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """What is loaded of a depends on numbers at `scale_at`, which each program changes."""
    column = tl.program_id(0)
    m, n, k = tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    scale = memory + scale_at
    for start in range(0, K, BK):
        a_at = memory + m[:, None] * K + (start + k)[None, :]
        if CASE == "branch":
            if start < last:
                a = tl.load(a_at) * tl.load(scale)
            else:
                a = tl.zeros((BM, BK), tl.float32)
        elif CASE == "address":
            a = tl.zeros((BM, BK), tl.float32)
            if start < last:
                a = tl.load(a_at + tl.load(scale).to(tl.int32) * K)
        elif CASE == "table":
            row = tl.load(scale + m % 16).to(tl.int32)
            a = tl.load(memory + row[:, None] * K + (start + k)[None, :])
        else:
            a = tl.load(a_at, mask=tl.load(scale + m % 16)[:, None] > 3, other=0.0)
        b = tl.load(memory + b_at + (start + k)[:, None] * N + n[None, :])
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(memory + c_at + m[:, None] * N + n[None, :], acc)
    tl.store(scale + tl.arange(0, 16), tl.full((16,), (column + 2) * 1.0, tl.float32))


@pytest.mark.parametrize("case", ["branch", "address", "table", "mask"])
def test_stores_to_what_a_load_depends_on(rng, case) -> None:
    m, n, k = 64, 640, 64
    a, b = draw_small(rng, m, k), draw_small(rng, k, n)
    parts = [a.ravel(), b.ravel(), np.zeros(m * n), np.ones(16)]
    want = np.concatenate(parts).astype(np.float32)
    got = want.copy()
    at = np.cumsum([part.size for part in parts]).tolist()
    sizes = (at[0], at[2], at[1], 40, n, k, case, 64, 64, 32)
    tessera.interpret(scaled_products)[(n // 64,)](want, *sizes)
    scaled_products[(n // 64,)](got, *sizes, cpu=TARGETS[0], num_threads=1)
    np.testing.assert_array_equal(got, want)


@tessera.jit(do_not_specialize=["M", "N", "K"])
def narrow_products(
    a_ptr, b_ptr, c_ptr, M, N, K, SUM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """c = a @ b; c lies behind a and b, or within them."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n, k = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), SUM)
    for start in range(0, K, BK):
        left = k < K - start
        a_at = a_ptr + m[:, None] * K + (start + k)[None, :]
        b_at = b_ptr + (start + k)[:, None] * N + n[None, :]
        a = tl.load(a_at, mask=(m < M)[:, None] & left[None, :], other=0)
        b = tl.load(b_at, mask=left[:, None] & (n < N)[None, :], other=0)
        acc = tl.dot(a, b, acc)
    at = c_ptr + m[:, None] * N + n[None, :]
    tl.store(at, acc.to(c_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


NARROW = {"int8": "int8-dot", "bfloat16": "bf16-dot"}


@pytest.mark.parametrize("dtype", sorted(NARROW))
@pytest.mark.parametrize("block", [(64, 64, 32), (32, 64, 64), (32, 32, 128), (64, 16, 1024)])
@pytest.mark.parametrize("places", ["apart", "in a", "in b"])
def test_narrow_elements(rng, dtype, block, places) -> None:
    """By instructions on words, where the host has them: blocks that a loop fills in part, and
    stores to what is kept."""
    if NARROW[dtype] not in tessera.host_info()["machine"]:
        pytest.skip(f"the host has no {NARROW[dtype]}")
    m, n, k = 160, 200, 330
    largest = 128 if dtype == "int8" else 2
    memory = rng.integers(-largest, largest, m * k + k * n + m * n).astype(numpy_dtype(dtype))
    at = {"apart": m * k + k * n, "in a": 1000, "in b": m * k + 77}[places]
    sum_type = tl.int32 if dtype == "int8" else tl.float32
    rows, columns, steps = block
    want, got = memory.copy(), memory.copy()
    grid = (-(-m // rows), -(-n // columns))
    for kernel, all_of, options in (
        (tessera.interpret(narrow_products), want, {}),
        (narrow_products, got, {"num_threads": 1}),
    ):
        compiled = kernel[grid](
            all_of, all_of[m * k :], all_of[at:], m, n, k, SUM=sum_type, BM=rows, BN=columns,
            BK=steps, **options,
        )  # fmt: skip
    assert is_kept(compiled)
    np.testing.assert_array_equal(got, want)


def test_programs_that_may_meet_keep_nothing(rng) -> None:
    a, b, c = draw_small(rng, 128, 64), draw_small(rng, 64, 128), np.zeros((128, 128), np.float32)
    assert not is_kept(launch(a, b, c, TARGETS[0], adds=True))
    assert c[0, 0] == 4


def test_launches_at_once_and_in_a_child(rng) -> None:
    a, b = draw_small(rng, 192, 128), draw_small(rng, 128, 192)
    want = np.mod(a @ b, 5.0)
    wrong = []

    def work(sign: int) -> None:
        for _ in range(10):
            c = np.zeros((192, 192), np.float32)
            launch(a * sign, b * sign, c, TARGETS[0])
            if not np.array_equal(c, want):
                wrong.append(sign)

    threads = [threading.Thread(target=work, args=(sign,)) for sign in (1, -1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    child = os.fork()
    if child == 0:
        work(1)
        os._exit(len(wrong))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@tessera.jit(do_not_specialize=["begin", "end"])
def far_bounds(a_ptr, b_ptr, c_ptr, begin, end, K, STEP: tl.constexpr, BM: tl.constexpr,
               BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """Counts iterations for itself: the bounds are further apart than 64 bits tell."""
    m, n, k = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    i = 0
    for _ in range(begin, end, STEP):
        a = tl.load(a_ptr + m[:, None] * K + (i * BK + k)[None, :])
        b = tl.load(b_ptr + (i * BK + k)[:, None] * (16 * BN) + n[None, :])
        acc = tl.dot(a, b, acc, input_precision="ieee")
        i += 1
    tl.store(c_ptr + m[:, None] * (16 * BN) + n[None, :], acc)


@pytest.mark.parametrize("wide", [False, True])
def test_counts_of_iterations_that_wrap(rng, wide) -> None:
    """The number of iterations is too small, so that few of them have a slot. None reads another's."""
    rows, columns, k = 64, 16 * 64, 6 * 32
    a, b = draw_small(rng, rows, k), draw_small(rng, k, columns)
    c = np.zeros((rows, columns), np.float32)
    unit = 1 << 61 if wide else 1 << 29
    compiled: Any = far_bounds[(16,)](
        a, b, c, -3 * unit, 3 * unit, k, STEP=unit, BM=64, BN=64, BK=32, cpu=TARGETS[0],
        num_threads=1,
    )  # fmt: skip
    assert is_kept(compiled)
    np.testing.assert_array_equal(c, a @ b)
