# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floats that are only loaded, chosen, carried and stored keep every bit: denormals, the sign of
zero, and which NaN they are.
"""

import numpy as np
import pytest

import tessera
import tessera.language as tl
from execution.running import numpy_dtype


@tessera.jit
def copy(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + i))


@tessera.jit
def copy_scalars(x, o, N: tl.constexpr):
    for k in range(N):
        tl.store(o + k, tl.load(x + k))


@tessera.jit
def swap_scalars(x, o, N: tl.constexpr):
    for k in range(0, N, 2):
        v, w = tl.load(x + k), tl.load(x + k + 1)
        for _ in range(3):
            v, w = w, v
        if k >= 0:
            w, v = v, w
        tl.store(o + k, v)
        tl.store(o + k + 1, w)


@tessera.jit
def choose(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(x + N - 1 - i)
    tl.store(o + i, tl.where(i % 3 >= 0, a, b))


@tessera.jit
def carry(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    for k in range(3):
        v = tl.where(k == 1, tl.load(x + i), v)
    tl.store(o + i, v)


@tessera.jit
def load_masked(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + i, mask=i < N - 1, other=0.0), mask=i < N - 1)
    tl.store(o + i, tl.load(x + i), mask=i == N - 1)


@tessera.jit
def flip_twice(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + N - 1 - i, tl.flip(tl.load(x + i)))


@tessera.jit
def split_and_join(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.split(tl.reshape(tl.load(x + i), (N // 2, 2)))
    tl.store(o + i, tl.reshape(tl.join(a, b), (N,)))


@tessera.jit
def over_a_reduction(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x)
    w = tl.load(x + i)
    most = tl.max(tl.arange(0, N), 0)
    tl.store(o + i, w, mask=i <= most)
    tl.store(o, v)


@tessera.jit
def same(v):
    return v


@tessera.jit(noinline=True)
def same_elsewhere(v):
    return v


@tessera.jit
def call(x, o, N: tl.constexpr):
    for k in range(N):
        tl.store(o + k, same_elsewhere(same(tl.load(x + k))))


KERNELS = [
    copy, copy_scalars, swap_scalars, choose, carry, load_masked, flip_twice, split_and_join,
    over_a_reduction, call,
]  # fmt: skip


def odd_floats(dtype: str, count: int) -> np.ndarray:
    """Denormals of both signs, zeros, NaNs, quiet and signalling ones, and some numbers."""
    target = numpy_dtype(dtype)
    bits = np.dtype(f"u{target.itemsize}")
    sign = bits.type(1 << (8 * target.itemsize - 1))
    infinity = np.array(np.inf).astype(target).view(bits)[()]
    odd = [1, 2, 3, sign, sign | bits.type(5), infinity, infinity + bits.type(1)]
    odd += [sign | infinity | bits.type(5), infinity | (infinity >> bits.type(1)), 0]
    values = np.arange(count).astype(target)
    values[: len(odd)] = np.array(odd, bits).view(target)[:count]
    return values


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("lanes", [2, 16, 64])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_every_bit_is_kept(run, kernel, lanes, dtype):
    x = odd_floats(dtype, lanes)
    o = np.full(lanes, 99).astype(x.dtype)
    run(kernel, (1,), x, o, N=lanes)
    bits = f"u{x.dtype.itemsize}"
    np.testing.assert_array_equal(o.view(bits), x.view(bits))


@tessera.jit
def loaded_before_a_reduction(x, largest, o, n):
    v = tl.load(x + tl.program_id(0))
    most = tl.max(tl.broadcast_to((~n).to(tl.float16), (56,)), axis=None) + 0.0
    tl.store(largest + tl.program_id(0), most)
    tl.store(o + tl.program_id(0), v)


def test_a_scalar_over_a_reduction(run):
    x = odd_floats("bfloat16", 8)
    o, largest = np.zeros_like(x), np.zeros(8, np.float16)
    run(loaded_before_a_reduction, (8,), x, largest, o, 2)
    np.testing.assert_array_equal(o.view("u2"), x.view("u2"))
    np.testing.assert_array_equal(largest, np.full(8, -3.0))
