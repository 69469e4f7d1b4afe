# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Long chains of operations that move elements and use what they moved again: code grows with
their length, and no faster.
"""

import re

import numpy as np
import pytest

import tessera
import tessera.language as tl
from execution.running import draw

N = 64


@tessera.jit
def sum_transposed(x, o, steps: tl.constexpr):
    i = tl.arange(0, 64)
    v = tl.load(x + i)
    for _ in tl.static_range(steps):
        v = tl.reshape(tl.trans(tl.reshape(v, (16, 4))), (64,)) + v
    tl.store(o + i, v)


@tessera.jit
def sum_split(x, o, steps: tl.constexpr):
    i = tl.arange(0, 64)
    v = tl.load(x + i)
    for _ in tl.static_range(steps):
        a, b = tl.split(tl.reshape(v, (32, 2)))
        v = tl.reshape(tl.join(a + b, a - b), (64,)) ^ tl.cat(b, a)
    tl.store(o + i, v)


@tessera.jit
def sum_counted(x, o, steps: tl.constexpr):
    i = tl.arange(0, 64)
    v = i
    for _ in tl.static_range(steps):
        v = tl.reshape(tl.trans(tl.reshape(v, (16, 4))), (64,)) + v
    tl.store(o + i, v + tl.load(x + i))


def transposed(v, steps):
    for _ in range(steps):
        v = v.reshape(16, 4).T.reshape(64) + v
    return v


def split(v, steps):
    for _ in range(steps):
        a, b = v[::2], v[1::2]
        v = np.stack([a + b, a - b], -1).reshape(64) ^ np.concatenate([b, a])
    return v


def counted(v, steps):
    return transposed(np.arange(N, dtype=np.int32), steps) + v


CHAINS = [(sum_transposed, transposed), (sum_split, split), (sum_counted, counted)]


@pytest.mark.parametrize("kernel, want", CHAINS, ids=lambda f: getattr(f, "__name__", ""))
@pytest.mark.parametrize("steps", [1, 5, 12])
def test_values(run, rng, kernel, want, steps):
    x, o = draw(rng, N, "int32"), np.zeros(N, np.int32)
    run(kernel, (1,), x, o, steps=steps)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(o, want(x, steps))


@pytest.mark.in_turn("cpu")
@pytest.mark.parametrize("kernel, want", CHAINS, ids=lambda f: getattr(f, "__name__", ""))
@pytest.mark.parametrize("cpu", ["x86-64-v4", "x86-64-v3", "x86-64"])
def test_code_grows_with_the_steps(kernel, want, cpu):
    x = np.zeros(N, np.int32)
    few, many = (
        len(kernel.warmup(x, x, steps=steps, grid=(1,), cpu=cpu).asm["strips"].splitlines())
        for steps in (8, 24)
    )
    assert many < 4 * few


@tessera.jit
def exchange(x, ids, distance: tl.constexpr, n: tl.constexpr, ascends):
    pairs: tl.constexpr = (n // (2 * distance), 2, distance)
    other = tl.reshape(tl.flip(tl.reshape(x, pairs), 1), (n,))
    other_ids = tl.reshape(tl.flip(tl.reshape(ids, pairs), 1), (n,))
    is_first = (tl.arange(0, n) // distance) % 2 == 0
    is_less = (x < other) | ((x == other) & (ids < other_ids))
    keeps = is_less == (is_first == ascends)
    return tl.where(keeps, x, other), tl.where(keeps, ids, other_ids)


@tessera.jit
def argsort(x_ptr, o_ptr, ids_ptr, n: tl.constexpr, rounds: tl.constexpr):
    i = tl.arange(0, n)
    x = tl.load(x_ptr + i)
    ids = i
    for r in tl.static_range(rounds):
        ascends = ((i >> (r + 1)) & 1) == 0
        for s in tl.static_range(r + 1):
            x, ids = exchange(x, ids, 1 << (r - s), n, ascends)
    tl.store(o_ptr + i, x)
    tl.store(ids_ptr + i, ids)


@tessera.jit
def exchange_halves(x, ids, distance: tl.constexpr, n: tl.constexpr, ascends):
    pairs: tl.constexpr = (n // (2 * distance), 2, distance)
    a, b = tl.split(tl.permute(tl.reshape(x, pairs), (0, 2, 1)))
    id_a, id_b = tl.split(tl.permute(tl.reshape(ids, pairs), (0, 2, 1)))
    up, _ = tl.split(tl.permute(tl.reshape(ascends, pairs), (0, 2, 1)))
    keeps = ((a < b) | ((a == b) & (id_a < id_b))) == (up != 0)
    x = tl.join(tl.where(keeps, a, b), tl.where(keeps, b, a))
    ids = tl.join(tl.where(keeps, id_a, id_b), tl.where(keeps, id_b, id_a))
    return (
        tl.reshape(tl.permute(x, (0, 2, 1)), (n,)),
        tl.reshape(tl.permute(ids, (0, 2, 1)), (n,)),
    )


@tessera.jit
def argsort_by_halves(x_ptr, o_ptr, ids_ptr, n: tl.constexpr, rounds: tl.constexpr):
    i = tl.arange(0, n)
    x = tl.load(x_ptr + i)
    ids = i
    for r in tl.static_range(rounds):
        ascends = 1 - ((i >> (r + 1)) & 1)
        for s in tl.static_range(r + 1):
            x, ids = exchange_halves(x, ids, 1 << (r - s), n, ascends)
    tl.store(o_ptr + i, x)
    tl.store(ids_ptr + i, ids)


@pytest.mark.parametrize("kernel", [argsort, argsort_by_halves], ids=["by_flips", "by_halves"])
@pytest.mark.parametrize("n", [8, 32])
def test_a_bitonic_argsort(run, rng, kernel, n):
    x = rng.integers(0, n // 2, n).astype(np.float32)
    o, ids = np.zeros(n, np.float32), np.zeros(n, np.int32)
    run(kernel, (1,), x, o, ids, n=n, rounds=n.bit_length() - 1)
    np.testing.assert_array_equal(o, np.sort(x))
    np.testing.assert_array_equal(ids, np.argsort(x, kind="stable"))


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16"])
def test_an_argsort_of_other_types(run, rng, dtype):
    x = rng.integers(-20, 20, N).astype(dtype)
    o, ids = np.zeros(N, dtype), np.zeros(N, np.int32)
    run(argsort, (1,), x, o, ids, n=N, rounds=6)
    np.testing.assert_array_equal(o, np.sort(x))
    np.testing.assert_array_equal(ids, np.argsort(x, kind="stable"))


def compile_argsort(kernel, n):
    x, ids = np.zeros(n, np.float32), np.zeros(n, np.int32)
    meta = {"n": n, "rounds": n.bit_length() - 1}
    return kernel.warmup(x, x, ids, **meta, grid=(1,), cpu="x86-64-v4").asm


def test_code_of_an_argsort():
    """One of 64 has 21 exchanges, one of 256 has 36."""
    small, large = (compile_argsort(argsort, n) for n in (64, 256))
    lines = len(large["strips"].splitlines())
    assert lines < 2.5 * len(small["strips"].splitlines()) and lines < 15_000
    # Quotients by powers of two are shifts in all parts of the function.
    assert not re.search(r"^\s+i?div[lq]", large["asm"], re.M)


def test_code_of_an_argsort_by_halves():
    """Which half of a pair a lane is of is known where strips begin at multiples of the pair."""
    assert len(compile_argsort(argsort_by_halves, 256)["strips"].splitlines()) < 50_000


@tessera.jit
def fourier_step(re, im, n: tl.constexpr, done: tl.constexpr):
    a, b = tl.split(tl.trans(tl.reshape(re, (2, n // 2))))
    c, d = tl.split(tl.trans(tl.reshape(im, (2, n // 2))))
    angle = (tl.arange(0, n // 2) // done).to(tl.float32) * (-6.283185307179586 * done / n)
    cos, sin = tl.cos(angle), tl.sin(angle)
    new_re = tl.trans(tl.join(a + b, (a - b) * cos - (c - d) * sin))
    new_im = tl.trans(tl.join(c + d, (a - b) * sin + (c - d) * cos))
    parts: tl.constexpr = (2, n // (2 * done), done)
    re = tl.reshape(tl.trans(tl.reshape(new_re, parts), (1, 0, 2)), (n,))
    im = tl.reshape(tl.trans(tl.reshape(new_im, parts), (1, 0, 2)), (n,))
    return re, im


@tessera.jit
def fourier(re_ptr, im_ptr, o_ptr, n: tl.constexpr, steps: tl.constexpr):
    i = tl.arange(0, n)
    re, im = tl.load(re_ptr + i), tl.load(im_ptr + i)
    for step in tl.static_range(steps):
        re, im = fourier_step(re, im, n, 1 << step)
    tl.store(o_ptr + i, re)
    tl.store(o_ptr + n + i, im)


@pytest.mark.parametrize("n", [8, 64])
def test_a_fourier_transform(run, rng, n):
    re, im = draw(rng, n, "float32"), draw(rng, n, "float32")
    want = np.fft.fft(re.astype(np.float64) + 1j * im)
    o = np.zeros((2, n), np.float32)
    run(fourier, (1,), re, im, o, n=n, steps=n.bit_length() - 1)
    # Each of the steps rounds a few times.
    bound = 2.0**-20 * np.abs(want).max()
    np.testing.assert_allclose(o[0] + 1j * o[1].astype(np.float64), want, rtol=0, atol=bound)


@tessera.jit
def half_flipped(x, o, flipped):
    i = tl.arange(0, 32)
    a, b = tl.split(tl.reshape(tl.load(x + tl.arange(0, 64)), (32, 2)))
    tl.store(o + i, b)
    tl.store(flipped + i, tl.flip(a))


def test_one_half_is_stored_and_the_other_gathered(run, rng):
    x, o, flipped = draw(rng, N, "float32"), np.zeros(32, np.float32), np.zeros(32, np.float32)
    run(half_flipped, (1,), x, o, flipped)
    np.testing.assert_array_equal(o, x[1::2])
    np.testing.assert_array_equal(flipped, x[::2][::-1])
