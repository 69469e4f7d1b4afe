# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles that are loaded along one dimension and stored along another, with ragged edges."""

from __future__ import annotations

import numpy as np
import pytest
import tessera
import tessera.language as tl

from execution.running import draw, numpy_dtype


@tessera.jit
def transpose(x_ptr, out_ptr, rows, columns, start, R: tl.constexpr, C: tl.constexpr):
    r = tl.arange(0, R)
    c = tl.arange(0, C)
    mask = (start + r[:, None] < rows) & (c[None, :] < columns)
    x = tl.load(x_ptr + r[:, None] * C + c[None, :], mask=mask, other=7)
    tl.store(out_ptr + c[:, None] * R + r[None, :], tl.trans(x))


@tessera.jit
def matmul(x_ptr, y_ptr, out_ptr, rows, R: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr):
    """x @ y.T: y is read along k, as a dot wants it transposed."""
    r = tl.arange(0, R)
    k = tl.arange(0, K)
    x = tl.load(x_ptr + r[:, None] * K + k[None, :])
    y = tl.load(y_ptr + r[:, None] * K + k[None, :], mask=r[:, None] < rows, other=0)
    tl.store(out_ptr + r[:, None] * R + r[None, :], tl.dot(x, tl.trans(y), out_dtype=ACC))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "int64"])
@pytest.mark.parametrize("rows, columns", [(64, 32), (0, 32), (1, 32), (17, 32), (63, 32), (40, 9)])
def test_masked_rows(run, dtype: str, rows: int, columns: int) -> None:
    x = draw(np.random.default_rng(rows), (64, 32), dtype)
    out = np.full((32, 64), 99, numpy_dtype(dtype))
    run(transpose, (1,), x, out, rows + 5, columns, 5, R=64, C=32)
    want = np.full((64, 32), 7, x.dtype)
    want[:rows, :columns] = x[:rows, :columns]
    np.testing.assert_array_equal(out.view(np.uint8), np.ascontiguousarray(want.T).view(np.uint8))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int8"])
@pytest.mark.parametrize("rows", [64, 33, 0])
def test_transposed_operand(run, dtype: str, rows: int) -> None:
    rng = np.random.default_rng(rows)
    # Small integers: every sum is exact, whatever it is computed in.
    x, y = (rng.integers(-8, 8, (64, 64)).astype(numpy_dtype(dtype)) for _ in range(2))
    kind = np.int32 if dtype == "int8" else np.float32
    out = np.full((64, 64), 99, kind)
    run(matmul, (1,), x, y, out, rows, R=64, K=64, ACC=tl.int32 if dtype == "int8" else tl.float32)
    turned = y.astype(kind)
    turned[rows:] = 0
    np.testing.assert_array_equal(out, x.astype(kind) @ turned.T)
