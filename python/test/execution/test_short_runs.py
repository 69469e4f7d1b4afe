# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Neighbours in memory that are fewer than a strip's lanes, and elements that several lanes have:
loads and stores of `% 8` and `// 8`, of rows that data chooses and of reshaped tiles, with masks
that take runs as wholes and masks that do not; and gathers by offsets of 32 and 64 bits."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tessera
import tessera.language as tl
from execution.running import draw

DTYPES = ["int8", "bool", "bfloat16", "float32", "float64"]
SIZE = 128


def rows_of(size: int, run: int, stride: int) -> np.ndarray:
    """The elements that a kernel here takes: runs that begin `stride` apart."""
    i = np.arange(size)
    return i // run * stride + i % run


@tessera.jit
def copy_runs(x_ptr, out_ptr, RUN: tl.constexpr, STRIDE: tl.constexpr, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out_ptr + i, tl.load(x_ptr + i // RUN * STRIDE + i % RUN))


@pytest.mark.parametrize("run_length", [2, 4, 8, 16])
@pytest.mark.parametrize("dtype", DTYPES)
def test_runs_are_loaded(run, rng, dtype, run_length):
    where = rows_of(2 * SIZE, run_length, run_length + 3)
    x = draw(rng, where.max() + 1, dtype)  # no element after the last run's
    out = np.zeros(2 * SIZE, x.dtype)
    run(copy_runs, (2,), x, out, RUN=run_length, STRIDE=run_length + 3, SIZE=SIZE)
    np.testing.assert_array_equal(out, x[where])


@tessera.jit
def spread_runs(x_ptr, out_ptr, RUN: tl.constexpr, STRIDE: tl.constexpr, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out_ptr + i // RUN * STRIDE + i % RUN, tl.load(x_ptr + i))


@pytest.mark.parametrize("run_length", [2, 4, 8, 16])
@pytest.mark.parametrize("dtype", DTYPES)
def test_runs_are_stored(run, rng, dtype, run_length):
    where = rows_of(2 * SIZE, run_length, run_length + 3)
    x = draw(rng, 2 * SIZE, dtype)
    out = draw(rng, where.max() + 1, dtype)
    want = out.copy()
    want[where] = x
    run(spread_runs, (2,), x, out, RUN=run_length, STRIDE=run_length + 3, SIZE=SIZE)
    np.testing.assert_array_equal(out, want)


@tessera.jit
def masked_runs(x_ptr, keep_ptr, out_ptr, RUN: tl.constexpr, KIND: tl.constexpr):
    i = tl.arange(0, 128)
    at = i // RUN * (RUN + 3) + i % RUN
    if KIND == "lanes":
        mask = tl.load(keep_ptr + i) != 0
    elif KIND == "runs":
        mask = tl.load(keep_ptr + i // RUN) != 0
    elif KIND == "both":
        mask = (tl.load(keep_ptr + i // RUN) != 0) & (i % RUN < RUN - 1)
    else:
        mask = i < tl.load(keep_ptr)
    x = tl.load(x_ptr + at, mask=mask, other=(i * 2).to(x_ptr.dtype.element_ty))
    tl.store(out_ptr + at, x + 1, mask=mask)
    tl.store(out_ptr + 128 // RUN * (RUN + 3) + i, x)


@pytest.mark.parametrize("kind", ["lanes", "runs", "both", "bound"])
@pytest.mark.parametrize("run_length", [2, 8])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64"])
def test_runs_with_masks(run, rng, dtype, run_length, kind):
    i = np.arange(128)
    where = rows_of(128, run_length, run_length + 3)
    keep = rng.integers(0, 2, 128).astype("int32")
    if kind == "bound":
        keep[0] = 77
    mask = {
        "lanes": keep != 0,
        "runs": keep[i // run_length] != 0,
        "both": (keep[i // run_length] != 0) & (i % run_length < run_length - 1),
        "bound": i < keep[0],
    }[kind]
    length = 128 // run_length * (run_length + 3)
    x = rng.integers(0, 50, length).astype(dtype)
    out = np.full(length + 128, 99, dtype)
    loaded = np.where(mask, x[where], (2 * i).astype("int32").astype(dtype))
    want = out.copy()
    want[where[mask]] = (loaded + 1)[mask]
    want[length:] = loaded
    run(masked_runs, (1,), x, keep, out, RUN=run_length, KIND=kind)
    np.testing.assert_array_equal(out, want)


@tessera.jit
def masked_at_the_edge(addresses_ptr, out_ptr, RUN: tl.constexpr):
    i = tl.arange(0, 64)
    base = tl.load(addresses_ptr + i // RUN).to(tl.pointer_type(tl.float32))
    x = tl.load(base + i % RUN, mask=(i // RUN < 3) & (i % RUN < RUN - 1), other=-1.0)
    tl.store(out_ptr + i, x)


@pytest.mark.parametrize("run_length", [4, 8])
def test_masked_lanes_touch_nothing(run, run_length):
    """Runs at address 0, and lanes behind the last element of an array."""
    if run.target in ("interpreter", "simulator", "cuda"):
        pytest.skip("addresses of the process are the CPU's")
    x = np.arange(3 * run_length, dtype="float32")
    addresses = np.zeros(64 // run_length, "int64")
    addresses[:3] = x.ctypes.data + 4 * run_length * np.arange(3)
    out = np.zeros(64, "float32")
    run(masked_at_the_edge, (1,), addresses, out, RUN=run_length)
    want = np.full(64, -1.0, "float32")
    for first in range(0, 3 * run_length, run_length):
        want[first : first + run_length - 1] = x[first : first + run_length - 1]
    np.testing.assert_array_equal(out, want)


@tessera.jit
def chosen_runs(x_ptr, index_ptr, out_ptr, n, RUN: tl.constexpr, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    row = tl.load(index_ptr + i // RUN, mask=i // RUN < n, other=0)
    tl.store(out_ptr + i, tl.load(x_ptr + row * RUN + i % RUN, mask=i // RUN < n, other=7))


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("run_length", [2, 8, 32])
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
def test_runs_that_data_choose(run, rng, dtype, run_length, index):
    rows, n = 2 * SIZE // run_length, 2 * SIZE // run_length - 1
    x = draw(rng, 50 * run_length, dtype)
    chosen = rng.integers(0, 50, rows).astype(index)
    out = np.zeros(2 * SIZE, x.dtype)
    run(chosen_runs, (2,), x, chosen, out, n, RUN=run_length, SIZE=SIZE)
    want = x.reshape(50, run_length)[chosen].copy()
    want[n:] = np.array(7).astype(x.dtype)
    np.testing.assert_array_equal(out, want.ravel())


@tessera.jit
def repeated(x_ptr, out_ptr, n, RUN: tl.constexpr, MASK: tl.constexpr):
    i = tl.arange(0, 128)
    if MASK == "none":
        x = tl.load(x_ptr + i // RUN)
    elif MASK == "runs":
        x = tl.load(x_ptr + i // RUN, mask=i // RUN % 2 == 0, other=3)
    else:
        x = tl.load(x_ptr + i // RUN, mask=i < n, other=3)
    tl.store(out_ptr + i, x)


@pytest.mark.parametrize("mask", ["none", "runs", "bound"])
@pytest.mark.parametrize("run_length", [2, 8, 64])
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
def test_one_element_for_several_lanes(run, rng, dtype, run_length, mask):
    x = draw(rng, 128 // run_length, dtype)
    out = np.zeros(128, x.dtype)
    run(repeated, (1,), x, out, 77, RUN=run_length, MASK=mask)
    i = np.arange(128)
    holds = {"none": i >= 0, "runs": i // run_length % 2 == 0, "bound": i < 77}[mask]
    want = np.where(holds, x[i // run_length], np.array(3).astype(x.dtype))
    np.testing.assert_array_equal(out, want)


@tessera.jit
def stored_several_times(x_ptr, out_ptr, RUN: tl.constexpr):
    i = tl.arange(0, 64)
    tl.store(out_ptr + i % RUN, tl.load(x_ptr + i))
    tl.store(out_ptr + 64 + i // RUN, tl.load(x_ptr + i))


@pytest.mark.parametrize("run_length", [2, 8, 32])
def test_the_last_lane_is_what_is_left(run, rng, run_length):
    if run.target in ("simulator", "cuda"):
        pytest.skip("which of several stores is the last one, a GPU does not say")
    x = draw(rng, 64, "float32")
    out = np.zeros(128, x.dtype)
    run(stored_several_times, (1,), x, out, RUN=run_length)
    np.testing.assert_array_equal(out[:run_length], x[-run_length:])
    np.testing.assert_array_equal(out[64 : 64 + 64 // run_length], x[run_length - 1 :: run_length])


@tessera.jit
def reshaped_rows(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + i[:, None] * (COLUMNS + 5) + j[None, :])
    k = tl.arange(0, ROWS * COLUMNS)
    y = tl.load(x_ptr + k)
    tl.store(out_ptr + k, tl.reshape(x, (ROWS * COLUMNS,)) * 2 + y)


@pytest.mark.parametrize("columns", [1, 2, 4, 8])
def test_rows_of_a_reshaped_tile(run, rng, columns):
    x = rng.integers(-50, 50, (64, columns + 5)).astype("float32")
    out = np.zeros(64 * columns, "float32")
    run(reshaped_rows, (1,), x, out, ROWS=64, COLUMNS=columns)
    want = x[:, :columns].ravel() * 2 + x.ravel()[: 64 * columns]
    np.testing.assert_array_equal(out, want)


@tessera.jit
def by_offsets(x_ptr, row_ptr, index_ptr, out_ptr, base, FIRST: tl.constexpr, WIDE: tl.constexpr):
    i = tl.arange(0, 64)
    index = tl.load(index_ptr + i)
    if WIDE:
        index = index.to(tl.int64) + base
    row = tl.load(row_ptr)
    x = tl.load(x_ptr + FIRST + row + index)
    tl.store(out_ptr + FIRST + index, x)
    both = x_ptr + FIRST + index + tl.load(index_ptr + 64 + i)
    tl.store(out_ptr + 300 + i, tl.load(both))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("index", ["int8", "int16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
def test_bases_and_offsets(run, rng, dtype, index, wide):
    """Negative offsets count backwards from a base, whatever width they have."""
    x = draw(rng, 400, dtype)
    first = 0 if index == "uint32" else 64
    chosen = np.concatenate([rng.permutation(128)[:64] - first, rng.integers(0, 60, 64)])
    chosen = chosen.astype(index)
    base, row = 3 if wide else 0, 7
    out, want = np.zeros(364, x.dtype), np.zeros(364, x.dtype)
    where = first + chosen[:64].astype("int64") + base
    want[where] = x[where + row]
    want[300:] = x[where + chosen[64:].astype("int64")]
    rows = np.array([row], "int64")
    run(by_offsets, (1,), x, rows, chosen, out, base, FIRST=first, WIDE=wide)
    np.testing.assert_array_equal(out, want)


@tessera.jit
def gather_by(x_ptr, index_ptr, out_ptr):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(out_ptr + i, tl.load(x_ptr + tl.load(index_ptr + i)))


def test_offsets_of_32_bits_take_one_instruction():
    """The machine extends them, scales them and adds the base."""
    signature = {"x_ptr": "*fp32", "index_ptr": "*i32", "out_ptr": "*fp32"}
    asm = tessera.compile(gather_by, signature=signature, cpu="x86-64-v4").stages["asm"]
    assert re.search(r"vgatherdps\s+\(%r\w+,%zmm\d+,4\)", asm)
    assert "vgatherqps" not in asm and "vpmovsxdq" not in asm


@pytest.mark.parametrize("cpu", ["x86-64-v4", "x86-64-v3", "x86-64"])
def test_runs_are_no_gathers(cpu):
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32"}
    constexprs = {"RUN": 8, "STRIDE": 64, "SIZE": 128}
    kernel = tessera.compile(copy_runs, signature=signature, constexprs=constexprs, cpu=cpu)
    assert "gather" not in kernel.stages["strips"]
    assert "gather" not in kernel.stages["asm"]


@tessera.jit
def scale_channels(
    x_ptr, w_ptr, out_ptr, C, S, SIZE: tl.constexpr, VOLATILE: tl.constexpr, FIRST: tl.constexpr
):
    """Each channel has S places and a weight, where the loop's end is a product."""
    size = C * S
    for start in range(FIRST, size, SIZE):
        i = start + tl.arange(0, SIZE)
        inside = (i >= 0) & (i < size)
        w = tl.load(w_ptr + i // S, mask=inside, other=2.0, volatile=VOLATILE)
        x = tl.load(x_ptr + i, mask=inside, other=1.0)
        tl.store(out_ptr + i, x * w, mask=inside)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("channels, places", [(5, 48), (3, 37), (7, 8), (2, 512), (0, 16)])
@pytest.mark.parametrize("first, is_volatile", [(0, False), (0, True), (-SIZE * 4, False)])
def test_weights_of_channels(rng, channels, places, first, is_volatile):
    """Places of a thread that have one channel share the quotient and the load of the weight."""
    x, w = draw(rng, channels * places, "float32"), draw(rng, channels + 1, "float32")
    out = np.zeros_like(x)
    simulated = tessera.gpu.simulate(scale_channels)[(1,)](
        x, w, out, channels, places, SIZE * 4, is_volatile, first, num_warps=1, target="sm_80"
    )
    simulated.check()
    np.testing.assert_array_equal(out, x * np.repeat(w[:channels], places))


@pytest.mark.filterwarnings("ignore")
def test_a_weight_is_loaded_once():
    """A launch is asked for the loop's end, since an index that wrapped would be negative."""
    types = "*fp16:16, *fp16:16, *fp16:16, i32, i32:16"
    counts = []
    for is_volatile in (False, True):
        constants = {"SIZE": 256, "VOLATILE": is_volatile, "FIRST": 0}
        kernel = tessera.compile(
            scale_channels, types, constexprs=constants, num_warps=1, target="sm_90a"
        )
        assert kernel.metadata["program_bounds"] == ["(sub64 1073741824 (mul32 i32:3 i32:4))"]
        loop = kernel.asm["ptx"].split("ld.param")[-1]
        counts.append(len(re.findall(r"ld\.\S*global\S*", loop)))
    assert counts == [2, 9]
