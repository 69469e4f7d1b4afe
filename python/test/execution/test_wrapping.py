# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices whose arithmetic wraps on purpose: halos in unsigned integers, hashes, offsets
that are subtracted.

What the compiler knows of indices (docs/Language.md, "Outside the promise") must not make
it see runs where one of these begins anew.
"""

import numpy as np
import pytest

import tessera
import tessera.language as tl
from execution.running import draw


@tessera.jit
def load_halo(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = tl.program_id(0).to(tl.uint32) * BLOCK + lanes.to(tl.uint32) - 4
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=-1.0)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + lanes, x)


def test_unsigned_offsets_that_begin_below_zero(run, rng):
    x = draw(rng, 256, "float32")
    out = np.zeros(128, np.float32)
    run(load_halo, (2,), x, out, 100, BLOCK=64)
    want = np.concatenate([np.full(4, -1.0), x[:100], np.full(24, -1.0)])
    np.testing.assert_array_equal(out, want.astype(np.float32))


@tessera.jit
def load_hashed(x_ptr, out_ptr, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    remainder = (tl.program_id(0) * FACTOR + lanes) % n
    tl.store(out_ptr + tl.program_id(0) * BLOCK + lanes, tl.load(x_ptr + n + remainder))


@tessera.jit
def load_hashed_constant(
    x_ptr, out_ptr, n: tl.constexpr, FACTOR: tl.constexpr, BLOCK: tl.constexpr
):
    lanes = tl.arange(0, BLOCK)
    remainder = (tl.program_id(0) * FACTOR + lanes) % n
    tl.store(out_ptr + tl.program_id(0) * BLOCK + lanes, tl.load(x_ptr + n + remainder))


@tessera.jit
def load_shifted(x_ptr, out_ptr, n: tl.constexpr, AMOUNT: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    remainder = ((tl.program_id(0) << AMOUNT) + lanes) % n
    tl.store(out_ptr + tl.program_id(0) * BLOCK + lanes, tl.load(x_ptr + n + remainder))


@pytest.mark.parametrize(
    "kernel, n, factor, programs",
    [
        (load_hashed, 1000, 1103515245, 256),
        (load_hashed_constant, 1024, 1431655760, 64),
        (load_hashed_constant, 1024, 1 << 30, 8),
        (load_shifted, 1024, 29, 16),
    ],
)
def test_remainders_of_hashes(run, rng, kernel, n, factor, programs):
    block = 64
    x = draw(rng, 2 * n, "float32")
    out = np.zeros(programs * block, np.float32)
    run(kernel, (programs,), x, out, n, factor, BLOCK=block)
    start = np.arange(programs, dtype=np.int64)
    start = (start << factor) if kernel is load_shifted else start * factor
    index = (start[:, None] + np.arange(block)).astype(np.int32)
    assert (index < 0).any()
    np.testing.assert_array_equal(out, x[n + np.fmod(index, n)].ravel())


@tessera.jit
def load_before(x_ptr, by_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.load(x_ptr + 256 - tl.load(by_ptr + lanes)))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_offsets_subtracted_from_pointers(run, rng, dtype):
    x = draw(rng, 400, "float32")
    by = np.arange(-128, 0).astype(dtype)
    out = np.zeros(128, np.float32)
    run(load_before, (1,), x, by, out, BLOCK=128)
    np.testing.assert_array_equal(out, x[256 - by.astype(np.int64)])


@tessera.jit
def copy_window(x_ptr, out_ptr, start, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    inside = (lanes - start).to(tl.uint32) < n.to(tl.uint32)  # start <= lanes < start + n
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes, mask=inside, other=0), mask=inside)


@tessera.jit
def copy_below(x_ptr, out_ptr, start, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    inside = lanes + start < n
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes, mask=inside, other=0), mask=inside)


@tessera.jit
def copy_below_widened(x_ptr, out_ptr, start, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    inside = (lanes + start).to(tl.int64) < n
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes, mask=inside, other=0), mask=inside)


@tessera.jit
def copy_steps_below(x_ptr, out_ptr, start, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    inside = lanes * 3 + start <= n
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes, mask=inside, other=0), mask=inside)


@pytest.mark.parametrize(
    "start, n",
    [
        (3, 40),
        (0, 40),
        (16, 40),
        (-5, 40),
        (2**31 - 3, 0),
        (2**31 - 64, 0),
        (-(2**31), -(2**31) + 9),
    ]
    + [(2**31 - 100, 2**31 - 1), (-1, 2**31 - 1), (2**31 - 1, -(2**31))],
)
@pytest.mark.parametrize(
    "kernel, step",
    [(copy_window, 1), (copy_below, 1), (copy_below_widened, 1), (copy_steps_below, 3)],
)
def test_masks_that_wrap(run, kernel, step, start, n):
    """An index that wraps within the tile: the mask begins anew where it does."""
    block = 256
    x = np.arange(100, 100 + block, dtype=np.int32)
    out = np.full(block, -1, np.int32)
    run(kernel, (1,), x, out, start, n, BLOCK=block)
    lanes = np.arange(block, dtype=np.int64) * step
    if kernel is copy_window:
        inside = (lanes - start) % 2**32 < n % 2**32
    else:
        index = (lanes + start + 2**31) % 2**32 - 2**31
        inside = index <= n if kernel is copy_steps_below else index < n
    np.testing.assert_array_equal(out, np.where(inside, x, -1))


@tessera.jit
def load_without_sign(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + lanes) & 0x7FFFFFFFFFFFFFFF
    tl.store(out_ptr + lanes, tl.load(x_ptr + index))


def test_masks_of_all_bits_but_the_sign(run, rng):
    x = draw(rng, 64, "float32")
    index = rng.permutation(64).astype(np.int64)
    out = np.zeros(64, np.float32)
    run(load_without_sign, (1,), x, index | np.int64(-(2**63)), out, BLOCK=64)
    np.testing.assert_array_equal(out, x[index])


@tessera.jit
def count_iterations(out_ptr, start, end, STEP: tl.constexpr, FACTOR: tl.constexpr):
    iterations = 0
    last = start
    for index in tl.range(start, end, STEP, loop_unroll_factor=FACTOR):
        iterations += 1
        last = index
    tl.store(out_ptr, iterations)
    tl.store(out_ptr + 1, last)


@pytest.mark.parametrize("factor", [2, 4, 8])
@pytest.mark.parametrize("step", [2**28 + 1, 2**29, 2**30, 2**31 - 1])
@pytest.mark.parametrize("start, end", [(-(2**31), 2**31 - 1), (-(2**31), 0), (0, 2**31 - 1)])
def test_unrolled_loops_of_long_steps(run, start, end, step, factor):
    out = np.zeros(2, np.int32)
    run(count_iterations, (1,), out, start, end, STEP=step, FACTOR=factor)
    iterations = range(start, end, step)
    assert out.tolist() == [len(iterations), iterations[-1]]


@tessera.jit
def count_known_iterations(
    out_ptr, START: tl.constexpr, END: tl.constexpr, STEP: tl.constexpr, FACTOR: tl.constexpr
):
    iterations = 0
    last = START
    for index in tl.range(START, END, STEP, loop_unroll_factor=FACTOR):
        iterations += 1
        last = index
    tl.store(out_ptr, iterations)
    tl.store(out_ptr + 1, last)


@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize("step", [2**29, 10**9])
@pytest.mark.parametrize(
    "start, end", [(-(2**31), 2**31 - 1), (-(2**31), 0), (-(2**30), 2**31 - 1)]
)
def test_loops_between_constants_far_apart(run, start, end, step, factor):
    out = np.zeros(2, np.int32)
    run(count_known_iterations, (1,), out, START=start, END=end, STEP=step, FACTOR=factor)
    iterations = range(start, end, step)
    assert out.tolist() == [len(iterations), iterations[-1]]


@tessera.jit
def load_around(x_ptr, out_ptr, start, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    index = (start + lanes) % n
    tl.store(out_ptr + lanes, tl.load(x_ptr + n + index))
    tl.store(out_ptr + BLOCK + lanes, tl.load(x_ptr + n + (start + lanes) // n % n))


@pytest.mark.parametrize("start", [0, 5, 64, -7, -64, -200, 2**31 - 5, 2**30, -(2**31)])
@pytest.mark.parametrize("n", [64, 100, 128])
def test_remainders_outside_the_limits_of_launches(run, rng, start, n):
    """Of numbers that are no sizes: a launch of them takes a variant that relies on no limits."""
    block = 128
    x = draw(rng, 2 * n, "float32")
    out = np.zeros(2 * block, np.float32)
    run(load_around, (1,), x, out, start, n, BLOCK=block)
    index = (start + np.arange(block, dtype=np.int64)).astype(np.int32).astype(np.int64)
    quotient = np.trunc(index / n).astype(np.int64)
    np.testing.assert_array_equal(out[:block], x[n + np.fmod(index, n)])
    np.testing.assert_array_equal(out[block:], x[n + np.fmod(quotient, n)])


@tessera.jit
def count_programs(out_ptr, n, BLOCK: tl.constexpr):
    lanes = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) % n
    tl.atomic_add(out_ptr + lanes, 1)


def test_more_programs_than_are_taken_for_granted():
    """A kernel whose variant for fewer is compiled already."""
    programs = 2**20 + 1
    out = np.zeros(24, np.int32)
    for count in (3, programs, 3):
        count_programs[(count,)](out, 24, BLOCK=8)
    assert out.sum() == (programs + 6) * 8
    kernel = count_programs.warmup(out, 24, BLOCK=8)
    assert kernel.metadata["most_programs"] == 2**20
    with pytest.raises(tessera.LaunchError, match="grid extent 0 is 1048577"):
        kernel[(programs,)](out, 24)
