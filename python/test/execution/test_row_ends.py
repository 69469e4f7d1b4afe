# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stores of tiles whose rows end within 16 bytes: nothing is written beyond.

TMA writes 16 bytes or none of them (seen on an H200), so such rows are stored by threads. The
arrays are wider than what the kernels may write.
"""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import Runner

import tessera
import tessera.language as tl

on_gpus = pytest.mark.parametrize("run", ["simulator", "cuda"], indirect=True)
SIZE = 64
BEYOND = 77.0


@tessera.jit
def product(a_ptr, b_ptr, steps):
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    acc = tl.zeros((64, 64), tl.float32)
    for _ in range(steps):
        acc = tl.dot(tl.load(a_ptr + i * 64 + j), tl.load(b_ptr + i * 64 + j), acc)
    return acc


@tessera.jit
def by_constant(a_ptr, b_ptr, c_ptr, width, steps, W: tl.constexpr):
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    acc = product(a_ptr, b_ptr, steps)
    tl.store(c_ptr + i * 64 + j, acc.to(c_ptr.dtype.element_ty), mask=j < W)


@tessera.jit
def by_argument(a_ptr, b_ptr, c_ptr, width, steps, W: tl.constexpr):
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    acc = product(a_ptr, b_ptr, steps)
    tl.store(c_ptr + i * 64 + j, acc.to(c_ptr.dtype.element_ty), mask=j < width)


@tessera.jit
def by_descriptor(a_ptr, b_ptr, c_ptr, width, steps, W: tl.constexpr):
    acc = product(a_ptr, b_ptr, steps)
    c = tl.make_tensor_descriptor(c_ptr, [64, width], [64, 1], [64, 64])
    c.store([0, 0], acc.to(c_ptr.dtype.element_ty))


@tessera.jit
def of_found_arrays(where_ptr, width_ptr, groups, steps, TILES: tl.constexpr):
    """Their rows end where numbers in memory say."""
    for group in range(groups):
        at = where_ptr + group * 3
        width = tl.load(width_ptr + group)
        a_ptr = tl.load(at).to(tl.pointer_type(tl.float16))
        b_ptr = tl.load(at + 1).to(tl.pointer_type(tl.float16))
        c_ptr = tl.load(at + 2).to(tl.pointer_type(tl.float16))
        a = tl.make_tensor_descriptor(a_ptr, [64, 64], [64, 1], [64, 64])
        b = tl.make_tensor_descriptor(b_ptr, [64, 64], [64, 1], [64, 64])
        c = tl.make_tensor_descriptor(c_ptr, [64 * TILES, width], [64, 1], [64, 64])
        for tile in range(tl.program_id(0), TILES, tl.num_programs(0)):
            acc = tl.zeros((64, 64), tl.float32)
            for step in range(steps):
                acc = tl.dot(a.load([0, step * 64]), b.load([step * 64, 0]), acc)
            c.store([tile * 64, 0], acc.to(tl.float16))


def options_of(run: Runner) -> dict[str, str]:
    return {"target": "sm_90a"} if run.target == "simulator" else {}


def operands(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b = (rng.integers(-2, 3, (SIZE, SIZE)).astype("f2") for _ in range(2))
    return a, b, a.astype("f4") @ b.astype("f4")


@on_gpus
@pytest.mark.parametrize("kernel", [by_constant, by_argument, by_descriptor])
@pytest.mark.parametrize("dtype", ["f2", "f4"])
@pytest.mark.parametrize("width", [64, 63, 61, 60, 58, 57, 56, 33, 1])
def test_nothing_is_written_beyond_a_row(run: Runner, rng, kernel, dtype, width) -> None:
    a, b, product = operands(rng)
    c = np.full((SIZE, SIZE), BEYOND, dtype)
    run(kernel, (1,), a, b, c, width, 1, W=width, **options_of(run))
    np.testing.assert_array_equal(c[:, :width], product[:, :width].astype(dtype))
    np.testing.assert_array_equal(c[:, width:], BEYOND)


@on_gpus
def test_nothing_is_written_beyond_a_row_of_found_arrays(run: Runner, rng) -> None:
    a, b, product = operands(rng)
    widths = np.array([64, 61, 56, 1, 40], "i4")
    arrays = [np.full((2 * SIZE, SIZE), BEYOND, "f2") for _ in widths]
    where = run.addresses([array for c in arrays for array in (a, b, c)])
    run(of_found_arrays, (1,), where, widths, len(widths), 1, TILES=2, **options_of(run))
    for c, width in zip(arrays, widths):
        for rows in (c[:SIZE], c[SIZE:]):
            np.testing.assert_array_equal(rows[:, :width], product[:, :width].astype("f2"))
            np.testing.assert_array_equal(rows[:, width:], BEYOND)


def test_rows_that_end_at_16_bytes_are_stored_by_tma() -> None:
    def remarks(signature: str) -> list[str]:
        compiled = tessera.compile(by_argument, signature, target="sm_90a")
        return [text for text in compiled.remarks if "stored by threads" in text]

    assert not remarks("*fp16:16, *fp16:16, *fp16:16, i32:8, i32, 0")
    assert not remarks("*fp16:16, *fp16:16, *fp32:16, i32:4, i32, 0")
    (text,) = remarks("*fp16:16, *fp16:16, *fp16:16, i32:4, i32, 0")
    assert "its rows are not known to end at a multiple of 16 bytes" in text
