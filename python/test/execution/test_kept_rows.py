# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Few rows that a thread keeps, packed, for its next programs (Dots/KeptRows.h): what is kept is
what memory has."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from execution.running import host_has
from execution.test_few_rows import nibbles

import tessera
import tessera.language as tl

KEPT = "kept for the next programs"
VNNI = {"cpu": "x86-64-v4", "features": "+avx512vnni"}

pytestmark = pytest.mark.skipif(not host_has("x86-64-v4"), reason="no AVX-512")

SIZES = ["N", "K", "row", "later", "valid", "PER"]


@tessera.jit(do_not_specialize=SIZES, do_not_specialize_on_alignment=["x_ptr", "w_ptr", "out_ptr"])
def few_rows(
    x_ptr, w_ptr, out_ptr, N, K, row, later, valid, PER, M: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """PER programs one after another share rows of x; those from `valid` on are 0."""
    part, column = tl.program_id(0) // PER, tl.program_id(0) % PER * BN
    rows, inner, columns = tl.arange(0, M), tl.arange(0, BK), column + tl.arange(0, BN)
    acc = tl.zeros((M, BN), SUM)
    for k in range(0, K, BK):
        at = x_ptr + (part * M + rows)[:, None] * row + (k + inner)[None, :]
        x = tl.load(at, mask=(part * M + rows < valid)[:, None], other=0)
        w = tl.load(w_ptr + columns[:, None] * K + (k + inner)[None, :])
        acc = tl.dot(x, tl.trans(w), acc)
    acc = acc - (acc // 7) * 7 if SUM == tl.int32 else acc - 7 * tl.floor(acc / 7)
    at = out_ptr + later + (part * M + rows)[:, None] * N + columns[None, :]
    tl.store(at, acc.to(out_ptr.dtype.element_ty))


def check(
    memory: np.ndarray, cut: Any, m=4, parts=2, per=4, block=(4, 256), row=0, later=0, valid=99,
    threads=1,
) -> None:  # fmt: skip
    """`cut` makes x, w and the result of memory; all of it has to be as after the interpreter."""
    want, got = memory.copy(), memory.copy()
    sums = tl.int32 if memory.dtype == np.int8 else tl.float32
    for kernel, whole, options in (
        (tessera.interpret(few_rows), want, {}),
        (few_rows, got, {**VNNI, "num_threads": threads}),
    ):
        x, w, out = cut(whole)
        compiled = kernel[(parts * per,)](
            x, w, out, per * block[0], w.shape[1], row or w.shape[1], later, valid, per,
            M=m, BN=block[0], BK=block[1], SUM=sums, **options,
        )  # fmt: skip
    assert any(KEPT in str(remark) for remark in compiled.remarks)
    np.testing.assert_array_equal(got, want)


def draw(rng: np.random.Generator, size: int, dtype: Any = np.int8) -> np.ndarray:
    return rng.integers(-3, 4, size).astype(dtype)


def cut_apart(k: int, rows: int, columns: int) -> Any:
    a, b = rows * k, rows * k + columns * k
    return lambda whole: (whole[:a], whole[a:b].reshape(columns, k), whole[b:])


@pytest.mark.parametrize("dtype", [np.int8, ml_dtypes.bfloat16])
@pytest.mark.parametrize("threads", [1, 64])
def test_programs_share_rows(rng, dtype: Any, threads: int) -> None:
    """Each tile of rows for four programs, and for one, where looking for them is given up."""
    for parts, per, m, valid in ((3, 4, 4, 99), (20, 1, 2, 37)):
        size = 20 * 4 * 512 + 16 * 512 + 20 * 4 * 16
        check(
            draw(rng, size, dtype), cut_apart(512, 80, 16), m, parts, per, valid=valid,
            threads=threads,
        )  # fmt: skip


def test_more_iterations_than_slots(rng) -> None:
    k = 70 * 256
    check(draw(rng, 2 * k + 8 * k + 64), cut_apart(k, 2, 8), m=2, parts=1, per=4, block=(2, 256))


def test_stores_to_what_is_kept(rng) -> None:
    """Each program stores where the next one loads rows, and rows lie on each other."""
    k, columns = 512, 16
    memory = draw(rng, 16 * k + columns * k)

    def in_place(whole: np.ndarray) -> Any:
        x = whole[: 16 * k]
        return x, whole[16 * k :].reshape(columns, k), x

    for later in (0, 5, 3 * k + 250, 8 * k):
        check(memory, in_place, later=later)
    check(memory, in_place, later=4 * k, row=k // 2)
    check(memory, in_place, later=7 * k - 64)


def test_calls_see_new_rows(rng) -> None:
    """A second launch with the same array has what was written since."""
    n, k, m = 32, 1024, 4
    out = np.zeros((m, n), np.int32)
    x = draw(rng, m * k).reshape(m, k)
    weights = rng.integers(-8, 8, (n, k))
    low, high = weights[:, : k // 2] + 8, weights[:, k // 2 :] + 8
    w = (low | high << 4).astype(np.uint8).view(np.int8)
    for _ in range(2):
        sizes = {"M": m, "BN": 4, "BK": 256, "SUM": tl.int32, "num_threads": 2, **VNNI}
        compiled = nibbles[(n // 4,)](x, w, out, n, k, **sizes)
        assert sum(KEPT in str(remark) for remark in compiled.remarks) == 2
        np.testing.assert_array_equal(out, x.astype(np.int64) @ weights.T)
        x[:] = draw(rng, m * k).reshape(m, k)
