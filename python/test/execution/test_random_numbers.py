# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers against Philox-4x32-10 in Python's own integers."""

from __future__ import annotations

import numpy as np
import pytest

import tessera
import tessera.language as tl

COUNT = 16


def philox(key: int, counter: int) -> list[int]:
    """The four words for a key and a counter of 64 bits each."""
    c0, c1, c2, c3 = counter % 2**32, counter // 2**32, 0, 0
    k0, k1 = key % 2**32, key // 2**32
    for _ in range(10):
        high0, low0 = divmod(c0 * 0xD2511F53, 1 << 32)
        high1, low1 = divmod(c2 * 0xCD9E8D57, 1 << 32)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return [c0, c1, c2, c3]


@tessera.jit
def words(seed, first_ptr, one_ptr, four_ptr, uniform_ptr, normal_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    offset = tl.load(first_ptr) + i
    word = tl.randint(seed, offset)
    tl.static_assert(word.dtype == tl.uint32)
    tl.store(one_ptr + i, word)
    a, b, c, d = tl.randint4x(seed, offset)
    tl.static_assert(d.dtype == tl.uint32)
    tl.store(four_ptr + i, a)
    tl.store(four_ptr + N + i, b)
    tl.store(four_ptr + 2 * N + i, c)
    tl.store(four_ptr + 3 * N + i, d)
    tl.store(uniform_ptr + i, tl.rand(seed, offset))
    tl.store(normal_ptr + i, tl.randn(seed, offset))


@pytest.mark.parametrize("seed", [0, 42, (5 << 32) + 7])
@pytest.mark.parametrize(
    "dtype, first",
    [
        (np.int32, 0), (np.int32, 2**31 - 8), (np.uint32, 2**32 - 4), (np.int64, 0),
        (np.int64, 2**32 - 8), (np.int64, 3 * 2**40 + 5), (np.int64, -8), (np.uint64, 2**64 - 4),
    ],
)  # fmt: skip
def test_words_of_an_offset(run, seed, dtype, first):
    """An offset is two words of the counter, whatever its width: the same offset gives the
    same numbers in 32 and in 64 bits."""
    one, four = np.zeros(COUNT, np.uint32), np.zeros((4, COUNT), np.uint32)
    uniform, normal = np.full(COUNT, -1, np.float32), np.full(COUNT, np.nan, np.float32)
    run(words, (1,), seed, np.array([first], dtype), one, four, uniform, normal, N=COUNT)
    bits = 8 * np.dtype(dtype).itemsize
    offsets = [(first + i) % 2**bits for i in range(COUNT)]
    want = np.array([philox(seed, offset) for offset in offsets], np.uint32).T
    np.testing.assert_array_equal(one, want[0])
    np.testing.assert_array_equal(four, want)
    magnitude = want[0].view(np.int32).astype(np.float64)
    magnitude = np.where(magnitude < 0, -magnitude - 1, magnitude)
    np.testing.assert_allclose(uniform, magnitude / 2**31, rtol=1e-6)
    assert (uniform < 1).all() and np.isfinite(normal).all()


@pytest.mark.parametrize("arguments", ["2.5, tl.arange(0, 8)", "3, tl.arange(0, 8) * 0.5"])
def test_seeds_and_offsets_are_integers(arguments):
    from execution.running import make_kernel

    kernel = make_kernel(f"""
@tessera.jit
def kernel(out_ptr):
    tl.store(out_ptr + tl.arange(0, 8), tl.rand({arguments}))
""")
    with pytest.raises(tessera.CompilationError, match="of random numbers is an integer"):
        tessera.interpret(kernel)[(1,)](np.zeros(8, np.float32))
