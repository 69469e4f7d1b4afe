# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atomics whose lanes have the same address, which a CPU reduces first."""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import draw, make_kernel, numpy_dtype

REDUCE = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def make(kind: str, place: str, mask: str = "None") -> object:
    """`place` and `mask` are of row, column, M and N; x is a tile of M by N."""
    return make_kernel(f"""
@tessera.jit
def kernel(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    row = tl.arange(0, M)[:, None]
    column = tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + (tl.program_id(0) * M + row) * N + column)
    tl.atomic_{kind}(out_ptr + ({place}) + tl.zeros((M, N), tl.int32), x, mask={mask})
""")


PLACES = {
    "one": lambda row, column: 0 * row,
    "row": lambda row, column: row,
    "column": lambda row, column: column,
    "row + (column // 8) * M": lambda row, column: row + (column // 8) * 16,
    "(row // 4) * N + column": lambda row, column: (row // 4) * 32 + column,
    "(row * N + column) // 16 + 3": lambda row, column: (row * 32 + column) // 16 + 3,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
@pytest.mark.parametrize("kind", REDUCE)
def test_integers(run, rng, kind: str, dtype: str, place: str) -> None:
    x, out = draw(rng, (48, 32), dtype), draw(rng, 520, dtype)
    want = out.copy()
    row, column = np.indices((16, 32))
    at = np.broadcast_to(PLACES[place](row, column), (16, 32))
    for program in range(3):
        REDUCE[kind].at(want, at, x[16 * program : 16 * program + 16])
    run(make(kind, place.replace("one", "0")), (3,), x, out, 5, M=16, N=32)
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("mask", ["column < n", "row < n", "x > n", "(row >= n) & (x > 0)"])
@pytest.mark.parametrize("place", ["one", "row", "row + (column // 8) * M"])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("kind", ["add", "max", "min"])
def test_masks(run, rng, kind: str, dtype: str, place: str, mask: str) -> None:
    """Lanes that are masked off count for nothing; a place of no others is left alone."""
    x = rng.integers(-20, 20, (32, 32)).astype(dtype)
    kernel = make(kind, place.replace("one", "0"), mask)
    for n in (-3, 0, 5, 19, 40):
        out = rng.integers(-9, 10, 520).astype(dtype)
        if dtype == "float32":
            out[::3] = -0.0
        want = out.copy()
        row, column = np.indices((16, 32))
        for part in (x[:16], x[16:]):
            on = eval(mask, {"row": row, "column": column, "x": part, "n": n})
            REDUCE[kind].at(want, PLACES[place](row, column)[on], part[on])
        run(kernel, (2,), x, out, n, M=16, N=32)
        np.testing.assert_array_equal(out, want)
        if kind == "add":
            np.testing.assert_array_equal(np.signbit(out), np.signbit(want))


def test_nothing_is_touched_where_all_lanes_are_masked_off(run) -> None:
    """A pointer that no lane follows may be no memory."""
    kernel = make_kernel("""
@tessera.jit
def kernel(out_ptr, n):
    lane = tl.arange(0, 64)
    tl.atomic_add(out_ptr + (1 << 40) + lane * 0, lane, mask=lane < n)
    tl.atomic_add(out_ptr + ((lane * 0).to(tl.int64) << 40), 1, mask=lane >= n)
""")
    out = np.zeros(2, np.int32)
    run(kernel, (1,), out, 0)
    np.testing.assert_array_equal(out, [64, 0])


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_float_sums(run, rng, dtype: str, deterministic: bool) -> None:
    x = rng.integers(-2, 3, (48, 32)).astype(numpy_dtype(dtype))
    for place in ("one", "row", "column"):
        out = np.zeros(32, x.dtype)
        want = {"one": x.sum(), "row": x.reshape(3, 16, 32).sum((0, 2)), "column": x.sum(0)}[place]
        options = {"deterministic": True} if deterministic else {}
        run(make("add", place.replace("one", "0")), (3,), x, out, 0, M=16, N=32, **options)
        np.testing.assert_array_equal(out[: np.size(want)], want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["max", "min"])
def test_no_number_is_passed_over(run, rng, kind: str, dtype: str) -> None:
    x = rng.normal(size=(16, 32)).astype(dtype)
    x[2], x[3, 5], x[4, 1:] = np.nan, np.nan, np.inf
    out = rng.normal(size=16).astype(dtype)
    reduce = {"max": np.fmax, "min": np.fmin}[kind]
    want = reduce(out, reduce.reduce(np.where(np.arange(32) < 9, x, np.nan), axis=1))
    run(make(kind, "row", "column < n"), (1,), x, out, 9, M=16, N=32)
    np.testing.assert_array_equal(out, want)


def test_old_values_are_those_of_each_lane(run, rng) -> None:
    if run.target in ("cuda", "simulator"):
        pytest.skip("lanes meet in any order")
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, out_ptr, old_ptr):
    lane = tl.arange(0, 64)
    old = tl.atomic_add(out_ptr + lane // 64, tl.load(x_ptr + lane))
    tl.store(old_ptr + lane, old)
""")
    x = rng.integers(0, 9, 64).astype(np.int32)
    out, old = np.zeros(1, np.int32), np.zeros(64, np.int32)
    run(kernel, (1,), x, out, old)
    np.testing.assert_array_equal(old, np.cumsum(x) - x)
    np.testing.assert_array_equal(out, x.sum())


def test_exchanges_keep_the_last(run, rng) -> None:
    if run.target in ("cuda", "simulator"):
        pytest.skip("lanes meet in any order")
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, out_ptr):
    lane = tl.arange(0, 64)
    tl.atomic_xchg(out_ptr + lane // 32, tl.load(x_ptr + lane))
""")
    x, out = draw(rng, 64, "int32"), np.zeros(2, np.int32)
    run(kernel, (1,), x, out)
    np.testing.assert_array_equal(out, x[[31, 63]])
