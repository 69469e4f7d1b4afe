# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of the scatter example, against NumPy."""

import numpy as np
import pytest

EXAMPLE = "scatter"


@pytest.mark.parametrize("kernel", ["histogram_kernel", "histogram_by_atomics_kernel"])
@pytest.mark.parametrize("bins", [4, 64])
def test_histogram(run, rng, example, kernel, bins):
    # Most in one bin, some in none.
    x = rng.integers(-3, bins + 3, 3000).astype(np.int32)
    x[rng.random(3000) < 0.5] = 2
    out = np.full(bins + 8, 100, np.int32)
    run(getattr(example, kernel), (3,), x, out, 3000, BINS=bins, BLOCK=1024)
    inside = x[(x >= 0) & (x < bins)]
    np.testing.assert_array_equal(out[:bins], 100 + np.bincount(inside, minlength=bins))
    assert (out[bins:] == 100).all()


@pytest.mark.parametrize("places", [3, 500])
def test_scatter_add(run, rng, example, places):
    source = rng.integers(-9, 10, 3000).astype(np.float32)
    index = rng.integers(0, places, 3000)
    out = rng.integers(-9, 10, places).astype(np.float32)
    want = out.copy()
    np.add.at(want, index, source)
    run(example.scatter_add_kernel, (12,), source, index, out, 3000, BLOCK=256)
    np.testing.assert_array_equal(out, want)


def test_scatter_add_beyond_private_copies(run, rng, example):
    # Most places are behind the 256 KiB that a thread has a copy of; those are fetched ahead.
    places, n = 100_000, 1500
    source = rng.integers(-9, 10, n).astype(np.float32)
    index = rng.integers(0, places, n)
    index[::7] = places - 1
    out = rng.integers(-9, 10, places).astype(np.float32)
    want = out.copy()
    np.add.at(want, index, source)
    run(example.scatter_add_kernel, (3,), source, index, out, n, BLOCK=512)
    np.testing.assert_array_equal(out, want)


def test_scatter_add_in_a_copy_that_grows(rng, example):
    # One thread runs enough programs for a copy of more than 256 KiB, which the first ones ask for.
    # Some places are outside of the grown copy, too.
    places, n = 1_100_000, 300_000
    source = rng.integers(-9, 10, n).astype(np.float32)
    index = rng.integers(0, 70_000, n)
    index[::999] = rng.integers(0, places, index[::999].size)
    out = rng.integers(-9, 10, places).astype(np.float32)
    want = out.copy()
    np.add.at(want, index, source)
    grid = (-(-n // 4096),)
    example.scatter_add_kernel[grid](source, index, out, n, BLOCK=4096, num_threads=1)
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("columns, scope", [(32, "gpu"), (16, "gpu"), (16, "cta")])
def test_embedding_backward(run, rng, example, columns, scope):
    grad = rng.integers(-9, 10, (150, 32)).astype(np.float32)
    index = rng.integers(0, 20, 150)
    table = rng.integers(-9, 10, (20, 32)).astype(np.float32)
    want = table.copy()
    np.add.at(want, index, grad)
    programs, share = (1, 150) if scope == "cta" else (3, 64)
    run(
        example.embedding_backward_kernel, (programs, 32 // columns), grad, index, table, 150, share,
        WIDTH=32, COLUMNS=columns, ROWS=16, SCOPE=scope,
    )  # fmt: skip
    np.testing.assert_array_equal(table, want)
