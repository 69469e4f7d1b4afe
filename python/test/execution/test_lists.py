# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists that kernels index at run time: pointers, numbers, tuples of these; many and few."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from execution.running import Runner

import tessera
import tessera.language as tl


@tessera.jit
def add_to_each(tensors, sizes, amount, B: tl.constexpr):
    which = tl.program_id(0)
    i = tl.program_id(1) * B + tl.arange(0, B)
    p = tensors[which]
    mask = i < sizes[which]
    tl.store(p + i, tl.load(p + i, mask=mask) + amount, mask=mask)


@pytest.mark.parametrize("count", [1, 2, 4, 5, 33])
def test_a_program_for_each_array(run: Runner, count: int) -> None:
    arrays = [np.arange(7 * k + 1, dtype=np.float32) for k in range(count)]
    wanted = [array + 2.5 for array in arrays]
    sizes = [len(array) for array in arrays]
    run(add_to_each, (count, -(-max(sizes) // 64)), arrays, sizes, 2.5, B=64)
    for array, expected in zip(arrays, wanted):
        np.testing.assert_array_equal(array, expected)


@tessera.jit
def sum_all(tensors, out, count, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for k in range(count):
        total += tl.load(tensors[k] + i)
    tl.store(out + i, total)


@pytest.mark.parametrize("count", [3, 300])
def test_a_loop_over_a_list(run: Runner, rng: np.random.Generator, count: int) -> None:
    base = rng.integers(0, 100, (count, 32)).astype(np.float32)
    out = np.zeros(32, np.float32)
    run(sum_all, (1,), list(base), out, count, B=32)
    np.testing.assert_array_equal(out, base.sum(0))


@tessera.jit
def pass_on(tensors, count):
    """Each load must see the store of the iteration before it, whichever arrays the two are."""
    for k in range(1, count):
        before = tl.load(tensors[k - 1])
        tl.store(tensors[k], before * 2 + k)
        tl.store(tensors[0], tl.load(tensors[k]) + 1)


def test_stores_between_loads_of_one_array(run: Runner) -> None:
    """The list has arrays twice, so its pointers alias at run time."""

    def expected(order: list[int]) -> list[int]:
        cells = [3, 5, 7]
        for k in range(1, len(order)):
            cells[order[k]] = cells[order[k - 1]] * 2 + k
            cells[order[0]] = cells[order[k]] + 1
        return cells

    for order in ([0, 1, 2], [0, 0, 1, 0, 2, 1], [2, 2, 2, 2, 2, 2, 2]):
        cells = [np.array([value], np.int32) for value in (3, 5, 7)]
        run(pass_on, (1,), [cells[place] for place in order], len(order))
        assert [int(cell[0]) for cell in cells] == expected(order)


@tessera.jit
def shift_rows(tensors, count, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(count - 1):
        row = tl.load(tensors[k] + i)
        tl.store(tensors[k + 1] + i, row + 1)


def test_tiles_of_one_array(run: Runner) -> None:
    x = np.arange(256, dtype=np.float32)
    y = x.copy()
    run(shift_rows, (1,), [x, y, x, x, y], 5, B=256)
    np.testing.assert_array_equal(x, np.arange(256) + 3)
    np.testing.assert_array_equal(y, np.arange(256) + 4)


class Task(NamedTuple):
    data: Any
    scale: float
    wide: int


@tessera.jit
def scale_tasks(tasks, out):
    k = tl.program_id(0)
    task = tasks[k]
    tl.store(out + k, (tl.load(task.data) * task.scale).to(tl.float64) + task.wide)


def test_items_with_parts(run: Runner) -> None:
    """Integers of a list get the type that holds all of them."""
    data = [np.array([k + 1], np.float32) for k in range(6)]
    tasks = [Task(array, k + 0.5, 1 if k < 3 else 2**40 + k) for k, array in enumerate(data)]
    out = np.zeros(6)
    run(scale_tasks, (6,), tasks, out)
    assert out.tolist() == [(k + 1) * (k + 0.5) + tasks[k].wide for k in range(6)]


@tessera.jit
def choose(x, y, out, count):
    k = tl.program_id(0)
    weights = (0.5, 2, -1.0)
    flags = (x > y, x < y, True)
    tl.store(out + k, tl.where(flags[k], weights[k], (x, y, x + y)[k]))


def test_tuples_of_the_kernel(run: Runner) -> None:
    out = np.zeros(3, np.float32)
    run(choose, (3,), 7, 9, out, 3)
    assert out.tolist() == [7, 2, -1]


@tessera.jit
def take(tensors, index, out):
    tl.store(out, tl.load(tensors[index]))


@pytest.mark.parametrize("index", [-1, 3, 2**31, 2**40])
def test_an_index_outside(index: int) -> None:
    cells, out = [np.array([k], np.int32) for k in range(3)], np.zeros(1, np.int32)
    message = "the index is outside the list of 3 items"
    with pytest.raises(tessera.KernelAssertionError, match=message) as error:
        take[(1,)](cells, index, out, debug=True)
    assert error.value.id == "E065"
    with pytest.raises(tessera.KernelAssertionError, match=message):
        tessera.interpret(take)[(1,)](cells, index, out)
    take[(1,)](cells, index, out)  # not checked: it gives the last one
    assert out[0] == 2


@tessera.jit
def add_at(tensors, index, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(tensors[index] + i))


def test_alignment_is_what_all_items_have(run: Runner) -> None:
    base = np.arange(300, dtype=np.float32)
    out = np.zeros(64, np.float32)
    for index in range(5):
        views = [base[16:], base[32:], base[17:], base[64:], base[96:]]
        run(add_at, (1,), views, index, out, B=64)
        np.testing.assert_array_equal(out, views[index][:64])


@tessera.jit
def through_a_list(tensors, out, k):
    tl.store(out, k)
    tl.store(out, tl.load(tensors[k]) + 1)


def test_the_arguments_that_a_list_stores_to(run: Runner) -> None:
    """Each array of the list counts as stored to."""

    frozen = np.zeros(1, np.int32)
    frozen.flags.writeable = False
    cells = [np.zeros(1, np.int32), np.ones(1, np.int32)]
    run(through_a_list, (1,), [frozen, *cells], cells[0], 2)
    assert cells[0][0] == 2
    if run.target not in ("simulator", "cuda"):
        with pytest.raises(tessera.ArgumentError, match="read-only"):
            run(pass_on, (1,), [*cells, frozen], 2)


@tessera.jit
def grouped_matmul(
    lefts, rights, results, rows, K, N: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr
):
    group = tl.program_id(0)
    a_ptr, b_ptr, c_ptr, M = lefts[group], rights[group], results[group], rows[group]
    m, n, k = tl.program_id(1) * BM + tl.arange(0, BM), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((BM, N), tl.float32)
    for at in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (at + k)[None, :], mask=m[:, None] < M, other=0)
        b = tl.load(b_ptr + (at + k)[:, None] * N + n[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total, mask=m[:, None] < M)


def test_products_of_the_arrays_of_lists(run: Runner, rng: np.random.Generator) -> None:
    rows = [64, 16, 100, 1, 33, 64]
    lefts = [rng.integers(-3, 4, (count, 128)).astype(np.float16) for count in rows]
    rights = [rng.integers(-3, 4, (128, 64)).astype(np.float16) for _ in rows]
    results = [np.zeros((count, 64), np.float32) for count in rows]
    run(grouped_matmul, (6, 2), lefts, rights, results, rows, 128, N=64, BM=64, BK=32)
    for a, b, c in zip(lefts, rights, results):
        np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
