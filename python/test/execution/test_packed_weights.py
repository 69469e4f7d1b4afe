# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dots by weights that were packed ahead: read in place, by each instruction that takes such words."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from execution.test_dot_instructions import MACHINES, remarks_of

import tessera
import tessera.language as tl
from tessera.views import pack_weights

REMARK = "b was packed ahead"
TYPES = {"int8": np.int8, "bfloat16": ml_dtypes.bfloat16}


@tessera.jit
def product(x, w, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
            SUM: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    columns = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), SUM)
    for first in range(0, w.rows, BK):
        k = first + tl.arange(0, BK)[None, :]
        a = tl.load(x + rows * K + k, mask=(rows < M) & (k < K), other=0)
        total = tl.dot(a, w.load(first, tl.program_id(1) * BN, BK, BN), total)
    tl.store(out + rows * N + columns, total, mask=(rows < M) & (columns < N))


@tessera.jit
def one_tile(x, w, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STEPS: tl.constexpr,
             COLUMNS: tl.constexpr, KIND: tl.constexpr, SUM: tl.constexpr):  # fmt: skip
    """Words first, then panels; one panel; and columns that are the slowest."""
    WORDS: tl.constexpr = K // STEPS
    element = tl.arange(0, WORDS * N * STEPS)
    if KIND == "words":
        tile = tl.load(w + tl.reshape(element, (WORDS, N // COLUMNS, COLUMNS, STEPS)))
        b = tl.reshape(tl.permute(tile, (0, 3, 1, 2)), (K, N))
    elif KIND == "panel":
        tile = tl.load(w + tl.reshape(element, (WORDS, N, STEPS)))
        b = tl.reshape(tl.permute(tile, (0, 2, 1)), (K, N))
    else:
        tile = tl.load(w + tl.reshape(element, (N, WORDS, STEPS)))
        b = tl.reshape(tl.permute(tile, (1, 2, 0)), (K, N))
    i, k, j = tl.arange(0, M)[:, None], tl.arange(0, K)[None, :], tl.arange(0, N)
    total = tl.dot(tl.load(x + i * K + k), b, out_dtype=SUM)
    tl.store(out + i * N + j[None, :], total)


def draw_numbers(rng, dtype: str, *shape: int) -> np.ndarray:
    """Numbers whose products and sums are exact."""
    low, high = (-128, 128) if dtype == "int8" else (-8, 9)
    return rng.integers(low, high, shape).astype(TYPES[dtype])


def check_product(rng, dtype: str, shape, tile, cpu: str, features: str) -> list[str]:
    """Compares a product with NumPy's, and returns the remarks."""
    (m, n, k), (bm, bn, bk) = shape, tile
    x, weights = draw_numbers(rng, dtype, m, k), draw_numbers(rng, dtype, k, n)
    out = np.zeros((m, n), np.int32 if dtype == "int8" else np.float32)
    packed = pack_weights(weights, tile=(bk, bn))
    sizes = {"BM": bm, "BN": bn, "BK": bk, "SUM": tl.int32 if dtype == "int8" else tl.float32}
    grid = (-(-m // bm), -(-n // bn))
    texts = remarks_of(product, grid, x, packed, out, m, n, k, cpu=cpu, features=features, **sizes)
    np.testing.assert_array_equal(out, x.astype(np.float64) @ weights.astype(np.float64))
    return texts


# Whole tiles; few rows, and rows, columns and steps of k that are padded.
SHAPES = [((64, 64, 256), (32, 64, 128)), ((3, 50, 150), (4, 32, 64))]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape, tile", SHAPES)
def test_products(rng, machine, dtype, shape, tile):
    cpu, features, bytes_by, bf16_by = MACHINES[machine]
    (remark,) = check_product(rng, dtype, shape, tile, cpu, features)
    instruction = bytes_by if dtype == "int8" else bf16_by
    assert (REMARK in remark) == (instruction is not None)


@pytest.mark.parametrize("kind", ["words", "panel", "columns"])
def test_orders(rng, kind):
    m, n, k, steps, columns = 4, 64, 128, 4, 32
    x, weights = draw_numbers(rng, "int8", m, k), draw_numbers(rng, "int8", k, n)
    words = weights.reshape(k // steps, steps, n)
    order = {"words": (0, 2, 1), "panel": (0, 2, 1), "columns": (2, 0, 1)}[kind]
    packed = np.ascontiguousarray(words.transpose(order))
    out = np.zeros((m, n), np.int32)
    cpu, features, *_ = MACHINES["avx512-vnni"]
    (remark,) = remarks_of(
        one_tile, (1,), x, packed, out, cpu=cpu, features=features,
        M=m, N=n, K=k, STEPS=steps, COLUMNS=columns, KIND=kind, SUM=tl.int32,
    )  # fmt: skip
    assert (REMARK in remark) == (kind != "columns")
    np.testing.assert_array_equal(out, x.astype(np.int64) @ weights.astype(np.int64))


@tessera.jit
def nibbles(x, w, out, N, K, M: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, k = tl.arange(0, M)[:, None], tl.arange(0, BK)[None, :]
    total = tl.zeros((M, BN), tl.int32)
    for first in range(0, w.rows, BK):
        pairs = w.load(first, tl.program_id(0) * BN, BK, BN)
        total = tl.dot(tl.load(x + rows * K + first + k), (pairs & 15) - 8, total)
        total = tl.dot(tl.load(x + rows * K + w.rows + first + k), (pairs >> 4 & 15) - 8, total)
    columns = tl.program_id(0) * BN + tl.arange(0, BN)[None, :]
    tl.store(out + rows * N + columns, total)


@pytest.mark.parametrize("machine", ["avx512-vnni", "avx-vnni"])
@pytest.mark.parametrize("m", [1, 8, 16])
def test_halves_of_bytes(rng, machine, m):
    """More rows than 12 would decode the words several times, so they are packed."""
    n, k = 64, 512
    x, weights = draw_numbers(rng, "int8", m, k), rng.integers(-8, 8, (k, n))
    pairs = (weights[: k // 2] + 8 | (weights[k // 2 :] + 8) << 4).astype(np.uint8).view(np.int8)
    out, packed = np.zeros((m, n), np.int32), pack_weights(pairs, tile=(128, 32))
    cpu, features, *_ = MACHINES[machine]
    texts = remarks_of(
        nibbles, (2,), x, packed, out, n, k, cpu=cpu, features=features, M=m, BN=32, BK=128
    )
    assert len(texts) == 2 and all((REMARK in text) == (m <= 12) for text in texts)
    np.testing.assert_array_equal(out, x.astype(np.int64) @ weights)


@pytest.mark.parametrize("dtype", TYPES)
def test_as_interpreted(run, rng, dtype):
    x, weights = draw_numbers(rng, dtype, 16, 128), draw_numbers(rng, dtype, 128, 32)
    out = np.zeros((16, 32), np.int32 if dtype == "int8" else np.float32)
    sums = tl.int32 if dtype == "int8" else tl.float32
    packed = pack_weights(weights, tile=(64, 32))
    run(product, (1, 1), x, packed, out, 16, 32, 128, BM=16, BN=32, BK=64, SUM=sums)
    np.testing.assert_array_equal(out, x.astype(np.float64) @ weights.astype(np.float64))


@pytest.mark.parametrize(
    "array, tile, message",
    [
        (np.ones((4, 4), np.float32), (64, 16), "an array of float32"),
        (np.ones(16, np.int8), (64, 16), r"an array of shape \(16,\)"),
        (np.ones((4, 16), np.int8), (6, 16), r"the tile \(6, 16\)"),
        (np.ones((4, 16), np.int8), (8, 24), "a multiple of 4 rows and one of 16 columns"),
        ([1, 2], (64, 16), "got a list"),
        (np.ma.masked_array(np.ones((4, 16), np.int8)), (4, 16), "a masked array"),
    ],
)
def test_errors(array, tile, message) -> None:
    with pytest.raises(tessera.ArgumentError, match=message) as raised:
        pack_weights(array, tile=tile)
    assert raised.value.id == "E054"


def test_tiles_within() -> None:
    """A tile of part of a word is refused when the kernel is compiled; one behind the matrix with debug."""
    packed = pack_weights(np.ones((64, 16), np.int8))
    x, out = np.ones((16, 64), np.int8), np.zeros((16, 16), np.int32)
    sizes = {"BM": 16, "BN": 16, "SUM": tl.int32}
    with pytest.raises(tessera.CompilationError, match="a multiple of w.steps"):
        product[(1, 1)](x, packed, out, 16, 16, 64, BK=2, **sizes)
    with pytest.raises(tessera.errors.TesseraError, match="the tile ends behind w.cols"):
        product[(1, 2)](x, packed, out, 16, 16, 64, BK=64, debug=True, **sizes)


def test_the_packed_weights_are_a_copy() -> None:
    """Also where the order is that of the weights."""
    weights = np.ones((32, 4), np.int8)
    packed = pack_weights(weights.T, (4, np.int64(16)))
    weights[:] = 0
    assert (packed.data == 1).all()
