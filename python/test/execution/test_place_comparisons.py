# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Places that are compared with a number: a label of 64 or 32 bits, in a loop and of each row."""

from __future__ import annotations

import numpy as np
import pytest

import tessera
import tessera.language as tl


@tessera.jit
def one_hot(label_ptr, out_ptr, first, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(label_ptr + row)
    for start in range(first, first + n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        found = tl.where(columns == label, 1, 0) + tl.where(label != columns, 4, 2)
        to = start - first + tl.arange(0, BLOCK)
        tl.store(out_ptr + row * n + to, found, mask=to < n)


@tessera.jit
def rows(label_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row, column = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    label = tl.load(label_ptr + row)
    is_label = column[None, :] == label[:, None]
    tl.store(out_ptr + row[:, None] * BLOCK + column[None, :], is_label.to(tl.int8))


FAR = [-(2**33) + 5, 2**32 + 7, -(2**32) + 9, 2**31, -(2**31), 2**63 - 1]
"""Labels that are no place, though the low 32 bits of some are one."""


@pytest.mark.parametrize("first", [0, 2**31 - 300, -(2**31)])
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_labels(run, dtype, first):
    n = 200
    labels = [first + i for i in (0, 3, 4, 127, 128, 150, 199)] + [-1]
    labels = np.array(labels + (FAR if dtype == np.int64 else []), dtype)
    out = np.zeros((len(labels), n), np.int32)
    run(one_hot, (len(labels),), labels, out, first, n, BLOCK=128, num_warps=1)
    places = first + np.arange(n, dtype=np.int64)
    np.testing.assert_array_equal(out, np.where(places == labels[:, None].astype(np.int64), 3, 4))


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_label_of_each_row(run, dtype):
    labels = np.array([5, 0, 63, 64, -1, 31, 17, 2**32 + 3 if dtype == np.int64 else 1], dtype)
    out = np.zeros((8, 64), np.int8)
    run(rows, (1,), labels, out, ROWS=8, BLOCK=64, num_warps=1)
    np.testing.assert_array_equal(out, np.arange(64) == labels[:, None])
