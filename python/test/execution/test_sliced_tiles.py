# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles that take more registers than a thread has, which GPUs do in slices."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl
from tessera.compiler import toolchain


@tessera.jit
def elementwise(x_ptr, y_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    at = rows[:, None] * N + columns[None, :]
    x, y = tl.load(x_ptr + at, mask=mask), tl.load(y_ptr + at, mask=mask, other=3.0)
    bias = tl.load(y_ptr + columns, mask=columns < N, other=0.0)
    tl.store(out_ptr + at, tl.where(x > 0, x * y, y - x) + bias[None, :], mask=mask)


@tessera.jit
def long_row(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * x + 1.0, mask=i < n)


@tessera.jit
def shifted(x_ptr, out_ptr, BM: tl.constexpr, BN: tl.constexpr):
    """All is loaded before any of it is stored."""
    at = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    x, y = tl.load(x_ptr + at), tl.load(x_ptr + at + 1)
    tl.store(out_ptr + at + 1, x + 2 * y)


@tessera.jit
def turned(x_ptr, out_ptr, BM: tl.constexpr, BN: tl.constexpr):
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    x = tl.load(x_ptr + rows[:, None] * BN + columns[None, :])
    tl.store(out_ptr + columns[:, None] * BM + rows[None, :], tl.trans(x) * 2)


def slices(kernel: Any) -> "list[str]":
    return [match[1] for text in kernel.remarks if (match := re.search(r"in (\d+) slices", text))]


def types(kernel: Any, numbers: int) -> "dict[str, str]":
    names = [name for name in kernel.arg_names if not name.startswith("B")]
    return {
        name: "*fp32:16" if index < len(names) - numbers else "i32:16"
        for index, name in enumerate(names)
    }


def build(kernel: Any, numbers: int, warps: int, **more: Any) -> Any:
    options = {"tensor_maps": True, "target": "sm_90a", "num_warps": warps}
    meta = {name: more.pop(name) for name in list(more) if name.startswith("B")}
    return tessera.compile(kernel, types(kernel, numbers), constexprs=meta, **{**options, **more})


@pytest.mark.skipif(not toolchain.find_ptxas(), reason="there is no ptxas")
@pytest.mark.parametrize("block, warps", [((256, 256), 4), ((256, 256), 8), ((64, 1024), 4)])
def test_nothing_is_spilled(block, warps):
    kernel = build(elementwise, 2, warps, BM=block[0], BN=block[1])
    assert slices(kernel) and kernel.n_spills == 0
    # In place of a compilation with other warps.
    assert not [text for text in kernel.remarks if "schedule is dropped" in text]


def test_only_what_needs_it():
    assert not slices(build(elementwise, 2, 4, BM=64, BN=64))
    # Where it may be the same array, which nobody would find out at the launch, nothing is.
    assert not slices(build(elementwise, 2, 16, BM=128, BN=256, tensor_maps=False))


@pytest.mark.parametrize("m, n", [(130, 400), (257, 36), (1, 1)])
@pytest.mark.parametrize("block", [(128, 128), (256, 256)])
def test_elementwise(run, rng, m, n, block):
    x, y = (rng.standard_normal((m, n)).astype("f4") for _ in range(2))
    want = np.where(x > 0, x * y, y - x) + y[0]
    grid = (-(-m // block[0]), -(-n // block[1]))
    for launch in ("run", "simulate"):
        out = np.full((m, n), np.nan, "f4")
        arguments = (x, y, out, m, n)
        meta = {"BM": block[0], "BN": block[1]}
        if launch == "run":
            run(elementwise, grid, *arguments, **meta)
        else:
            simulation = tessera.gpu.simulate(elementwise)
            simulation[grid](*arguments, **meta, target="sm_90a", num_warps=4).check()
        np.testing.assert_allclose(out, want, rtol=1e-6)


def test_rows_of_a_warp(rng):
    x = rng.standard_normal(20000).astype("f4")
    out = np.full_like(x, np.nan)
    simulation = tessera.gpu.simulate(long_row)
    simulation[(2,)](x, out, len(x), BLOCK=16384, target="sm_90a", num_warps=1).check()
    np.testing.assert_allclose(out, x * x + 1, rtol=1e-6)
    assert slices(build(long_row, 1, 1, BLOCK=16384))


@pytest.mark.parametrize("is_same", [False, True])
def test_one_array_is_loaded_first(rng, is_same):
    x = rng.integers(-8, 8, 64 * 512 + 1).astype("f4")
    out = x if is_same else np.zeros_like(x)
    want = x[:-1] + 2 * x[1:]
    simulation = tessera.gpu.simulate(shifted)
    simulation[(1,)](x, out, BM=64, BN=512, target="sm_90a", num_warps=1)
    np.testing.assert_array_equal(out[1:], want)


@tessera.jit
def in_place(x_ptr, BM: tl.constexpr, BN: tl.constexpr):
    at = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    tl.store(x_ptr + at, tl.load(x_ptr + at) * 2 + 1)


def test_in_place(rng):
    x = rng.integers(-8, 8, (128, 512)).astype("f4")
    want = 2 * x + 1
    tessera.gpu.simulate(in_place)[(1,)](x, BM=128, BN=512, target="sm_90a", num_warps=4).check()
    np.testing.assert_array_equal(x, want)
    # Nobody has to know anything of other arrays.
    assert slices(build(in_place, 0, 4, BM=128, BN=512, tensor_maps=False))


@tessera.jit
def with_barrier(x_ptr, out_ptr, BM: tl.constexpr, BN: tl.constexpr):
    at = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    x = tl.load(x_ptr + at)
    tl.debug_barrier()
    tl.store(out_ptr + at, x)


@tessera.jit
def with_assembly(x_ptr, out_ptr, BM: tl.constexpr, BN: tl.constexpr):
    at = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    x = tl.load(x_ptr + at)
    y = tl.inline_asm_elementwise("add.f32 $0, $1, $1;", "=f,f", [x], tl.float32, False, 1)
    tl.store(out_ptr + at, y)


@pytest.mark.parametrize("kernel", [with_barrier, with_assembly])
def test_what_has_effects_stays_whole(kernel):
    assert not slices(build(kernel, 0, 16, BM=256, BN=256))


def test_turned(rng):
    x = rng.integers(-8, 8, (128, 256)).astype("f4")
    out = np.full((256, 128), np.nan, "f4")
    simulation = tessera.gpu.simulate(turned)
    simulation[(1,)](x, out, BM=128, BN=256, target="sm_90a", num_warps=4).check()
    np.testing.assert_array_equal(out, 2 * x.T)
