# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dots of few rows by weights that lie along k: read in place, and added up along k."""

from __future__ import annotations

import functools

import ml_dtypes
import numpy as np
import pytest
from execution.test_dot_instructions import MACHINES, remarks_of

import tessera
import tessera.language as tl

REMARK = "since a has few rows"


@tessera.jit
def product(x_ptr, w_ptr, out_ptr, N, K, M: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
            SUM: tl.constexpr, MASKED: tl.constexpr = False, STORES: tl.constexpr = False):  # fmt: skip
    rows, inner = tl.arange(0, M), tl.arange(0, BK)
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((M, BN), SUM)
    for k in range(0, K, BK):
        x = tl.load(x_ptr + rows[:, None] * K + (k + inner)[None, :])
        at = w_ptr + columns[:, None] * K + (k + inner)[None, :]
        w = tl.load(at, mask=(columns < N)[:, None], other=0) if MASKED else tl.load(at)
        if STORES:
            tl.store(at, tl.full((BN, BK), 1, tl.int8))
        acc = tl.dot(x, tl.trans(w), acc)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc, mask=(columns < N)[None, :])


@tessera.jit
def nibbles(x_ptr, w_ptr, out_ptr, N, K, M: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
            SUM: tl.constexpr):  # fmt: skip
    rows, inner = tl.arange(0, M), tl.arange(0, BK)
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((M, BN), SUM)
    for k in range(0, K // 2, BK):
        x_ptrs = x_ptr + rows[:, None] * K + (k + inner)[None, :]
        w = tl.load(w_ptr + columns[:, None] * (K // 2) + (k + inner)[None, :])
        acc = tl.dot(tl.load(x_ptrs), tl.trans((w & 15) - 8), acc)
        acc = tl.dot(tl.load(x_ptrs + K // 2), tl.trans(((w >> 4) & 15) - 8), acc)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc)


def launch(kernel, machine: str, arrays, sizes: dict) -> list[str]:
    """The remarks on dots, after a run where this machine can."""
    cpu, features, _, _ = MACHINES[machine]
    grid = (-(-arrays[2].shape[1] // sizes["BN"]),)
    arguments = (*arrays, arrays[2].shape[1], arrays[0].shape[1])
    return remarks_of(kernel, grid, *arguments, cpu=cpu, features=features, **sizes)


def inputs(rng, dtype: str, m: int, n: int, k: int):
    """Rows, weights and results that are exact in every order."""
    if dtype == "int8":
        x, w = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (n, k)))
        x[0], w[0] = -128, -128
        return x, w, np.zeros((m, n), np.int32)
    of = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}[dtype]
    x, w = (rng.integers(-8, 9, shape).astype(of) for shape in ((m, k), (n, k)))
    return x, w, np.zeros((m, n), np.float32)


# Parts of k and all of it; one row and many; few columns and many.
SHAPES = [
    (1, 32, 512, 16, 256),
    (2, 24, 1024, 24, 512),
    (8, 6, 2048, 2, 2048),
    (16, 16, 512, 16, 256),
]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_weights_along_k(rng, machine, dtype, shape):
    m, n, k, bn, bk = shape
    x, w, out = inputs(rng, dtype, m, n, k)
    sizes = {"M": m, "BN": bn, "BK": bk, "SUM": tl.int32 if dtype == "int8" else tl.float32}
    (remark,) = launch(product, machine, (x, w, out), sizes)
    assert (REMARK in remark) == (dtype != "int8" or MACHINES[machine][2] is not None)
    wide = np.float64
    np.testing.assert_array_equal(out, x.astype(wide) @ w.astype(wide).T)


@pytest.mark.parametrize("machine", ["avx512-vnni", "avx-vnni"])
@pytest.mark.parametrize("m", [1, 4])
def test_halves_of_bytes(rng, machine, m):
    n, k = 16, 1024
    x = rng.integers(-128, 128, (m, k)).astype(np.int8)
    weights = rng.integers(-8, 8, (n, k))
    w = (
        ((weights[:, : k // 2] + 8) | (weights[:, k // 2 :] + 8) << 4)
        .astype(np.uint8)
        .view(np.int8)
    )
    out = np.zeros((m, n), np.int32)
    remarks = launch(nibbles, machine, (x, w, out), {"M": m, "BN": 16, "BK": 256, "SUM": tl.int32})
    assert len(remarks) == 2 and all(REMARK in remark for remark in remarks)
    np.testing.assert_array_equal(out, x.astype(np.int64) @ weights.T)


@pytest.mark.parametrize("way", ["MASKED", "STORES"])
def test_what_is_not_read_from_memory(rng, way):
    # A mask may exclude a column; and a store comes between the load and the dot, so that what
    # was loaded before waits in a buffer.
    x, w, out = inputs(rng, "int8", 2, 24, 512)
    want = x.astype(np.int64) @ w.astype(np.int64).T
    given = np.vstack([w, np.zeros((8, 512), np.int8)])
    sizes = {"M": 2, "BN": 8, "BK": 512, "SUM": tl.int32, way: True}
    (remark,) = launch(product, "avx512-vnni", (x, given, out), sizes)
    assert (REMARK in remark) == (way == "STORES")
    assert (given[:24] == 1).all() == (way == "STORES")
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("dtype", ["int8", "bfloat16"])
def test_as_interpreted(run, rng, dtype):
    x, w, out = inputs(rng, dtype, 4, 16, 512)
    sums = tl.int32 if dtype == "int8" else tl.float32
    run(product, (1,), x, w, out, 16, 512, M=4, BN=16, BK=256, SUM=sums)
    np.testing.assert_array_equal(out, x.astype(np.float64) @ w.astype(np.float64).T)


def test_deterministic_sums_keep_their_order(rng):
    x, w, out = inputs(rng, "bfloat16", 1, 16, 512)
    options = {"M": 1, "BN": 16, "BK": 512, "SUM": tl.float32, "deterministic": True}
    compiled = functools.partial(product.warmup, x, w, out, 16, 512)(**options)
    assert not any(REMARK in text for text in compiled.metadata["remarks"])
