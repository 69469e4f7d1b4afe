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
