# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Privatisation: atomics that a CPU adds to a thread's own copy of the array first.

How large the copy is depends on how many programs the thread runs: there are launches for
which it holds all that is added to, a part, and nothing.
"""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import make_kernel

SCATTER = make_kernel("""
@tessera.jit
def kernel(i_ptr, value_ptr, out_ptr, n, first, SEM: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    i = tl.load(i_ptr + offsets, mask=mask)
    value = tl.load(value_ptr + offsets, mask=mask)
    tl.atomic_add(out_ptr + i, value, mask=mask & (i >= first), sem=SEM)
""")


@pytest.mark.parametrize("bins", [7, 100, 3000])
@pytest.mark.parametrize("n", [100, 5000])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "float32", "float64"])
def test_scatter(run, rng, dtype: str, bins: int, n: int) -> None:
    """Some places are behind the copy, some before the base, most of them met often."""
    index = rng.integers(-2, bins, n).astype(np.int32)
    index[rng.random(n) < 0.5] = bins // 2
    value = rng.integers(0, 9, n).astype(dtype)
    memory = rng.integers(0, 9, bins + 9).astype(dtype)
    memory[1] = memory[-1] = -0.0 if dtype.startswith("float") else 0
    for first, sem in [(-2, "relaxed"), (0, "acq_rel")]:
        if first < 0 and run.target in ("cuda", "simulator"):
            continue  # has not what lies before an array
        want, out = memory.copy(), memory.copy()
        on = index >= first
        np.add.at(want, 3 + index[on], value[on])
        grid = (-(-n // 256),)
        run(SCATTER, grid, index, value, out[3:], n, first, SEM=sem, BLOCK=256)
        np.testing.assert_array_equal(out, want)
        np.testing.assert_array_equal(np.signbit(out), np.signbit(want))


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("rows", [4, 90])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_rows(run, rng, dtype: str, rows: int, shift: int) -> None:
    kernel = make_kernel("""
@tessera.jit
def kernel(grad_ptr, i_ptr, table_ptr, n, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)[None, :]
    i = tl.load(i_ptr + row, mask=row < n, other=0)
    mask = (row < n)[:, None] & (column < WIDTH - 3)
    grad = tl.load(grad_ptr + row[:, None] * WIDTH + column, mask=mask)
    tl.atomic_add(table_ptr + i[:, None] * WIDTH + column, grad, mask=mask)
""")
    n, width = 300, 32
    grad = rng.integers(-9, 10, (n, width)).astype(dtype)
    index = rng.integers(0, rows, n)
    memory = rng.integers(-9, 10, rows * width + 2).astype(dtype)
    want = memory.copy()
    table = want[shift : shift + rows * width].reshape(rows, width)
    np.add.at(table[:, : width - 3], index, grad[:, : width - 3])
    run(kernel, (-(-n // 16),), grad, index, memory[shift:], n, WIDTH=width, ROWS=16)
    np.testing.assert_array_equal(memory, want)


def test_two_atomics_on_one_array(run, rng) -> None:
    """One array under two names too: what both add is there."""
    kernel = make_kernel("""
@tessera.jit
def kernel(i_ptr, a_ptr, b_ptr, BLOCK: tl.constexpr):
    i = tl.load(i_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(a_ptr + i, 1)
    tl.atomic_add(a_ptr + (i + 1), 10)
    tl.atomic_add(b_ptr + i, 100)
""")
    index = rng.integers(0, 50, 4096).astype(np.int32)
    out = np.zeros(52, np.int32)
    want = out.copy()
    for step, value in [(0, 1), (1, 10), (2, 100)]:
        np.add.at(want, index + step, value)
    run(kernel, (16,), index, out, out[2:], BLOCK=256)
    np.testing.assert_array_equal(out, want)


def test_a_program_sees_what_it_has_added(run, rng) -> None:
    """A load after the atomic, and one in the next iteration of a loop, by another name."""
    kernel = make_kernel("""
@tessera.jit
def kernel(i_ptr, out_ptr, same_ptr, sums_ptr, BLOCK: tl.constexpr):
    i = tl.load(i_ptr + tl.arange(0, BLOCK))
    sum = tl.zeros([], tl.int32)
    for _ in range(3):
        sum += tl.load(same_ptr + 2)
        tl.atomic_add(out_ptr + i, 1)
        tl.debug_barrier()
    tl.store(sums_ptr + tl.program_id(0), sum)
    tl.atomic_add(out_ptr + i, 1)
    tl.debug_barrier()
    tl.store(sums_ptr + tl.num_programs(0) + tl.program_id(0), tl.load(same_ptr + 2))
""")
    index = np.resize(np.array([2, 0], np.int32), 256)
    out, sums = np.zeros(4, np.int32), np.zeros(2, np.int32)
    run(kernel, (1,), index, out, out, sums, BLOCK=256)
    np.testing.assert_array_equal(sums, [128 * 3, 128 * 4])


@pytest.mark.parametrize("kind", ["add", "max", "xchg"])
def test_scope_of_one_program(run, rng, kind: str) -> None:
    """Nothing is locked; old values are right all the same."""
    kernel = make_kernel(f"""
@tessera.jit
def kernel(i_ptr, x_ptr, out_ptr, old_ptr):
    o = tl.arange(0, 64)
    i = tl.load(i_ptr + o)
    old = tl.atomic_{kind}(out_ptr + i, tl.load(x_ptr + o), mask=i != 7, scope="cta")
    tl.store(old_ptr + o, old)
""")
    index = rng.permutation(64).astype(np.int32)
    x = rng.integers(-50, 50, 64).astype(np.int32)
    out = rng.integers(-50, 50, 64).astype(np.int32)
    before, old = out.copy(), np.empty_like(out)
    run(kernel, (1,), index, x, out, old)
    new = {"add": np.add, "max": np.maximum, "xchg": lambda a, b: b}[kind]
    want = before.copy()
    want[index] = new(before[index], x)
    want[7] = before[7]
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(old, np.where(index == 7, 0, before[index]))
