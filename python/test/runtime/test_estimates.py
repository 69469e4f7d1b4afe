# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The expected times of launches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.errors import ArgumentError, LaunchError

TARGET = "sm_90a"


@tessera.jit
def add(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)


@tessera.jit
def matmul(a_ptr, b_ptr, c_ptr, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + k + ks[None, :])
        b = tl.load(b_ptr + (k + ks[:, None]) * N + columns[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(tl.float16))


@tessera.jit
def sum_segment(x_ptr, ends_ptr, out_ptr, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, tl.load(ends_ptr), BLOCK):
        total += tl.load(x_ptr + start + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sum(total, 0))


def estimate_add(n: int, block: int = 1024, **options: Any) -> Any:
    x = tessera.MockTensor(tl.float32, (n,))
    return tessera.estimate(
        add, (tessera.cdiv(n, block),), (x, x, n), BLOCK=block, target=TARGET, **options
    )


def estimate_matmul(size: int, bm: int, bn: int, **options: Any) -> Any:
    x = tessera.MockTensor(tl.float16, (size, size))
    return tessera.estimate(
        matmul,
        lambda args: (size // args["BM"], size // args["BN"]),
        (x, x, x, size, size),
        BM=bm, BN=bn, BK=64, target=TARGET, **options,
    )  # fmt: skip


def test_streaming_is_bound_by_memory():
    found = estimate_add(1 << 26)
    assert found.bound == "memory" and found.is_certain
    # Half a gigabyte at 4 to 4.8 TB/s.
    assert 110 < found.microseconds < 160
    assert 1.9 < found.microseconds / estimate_add(1 << 25).microseconds < 2.1
    assert estimate_add(1 << 8).bound == "launch"


def test_dots_follow_the_arguments():
    large = estimate_matmul(4096, 128, 256, num_warps=8, num_stages=3)
    # 137 GFLOP at 600 to 900 TFLOP/s.
    assert 140 < large.microseconds < 240 and large.busy_cycles["tensor"] > 0
    twice = estimate_matmul(8192, 128, 256, num_warps=8, num_stages=3)
    assert 7 < twice.microseconds / large.microseconds < 9
    narrow = estimate_matmul(4096, 64, 32, num_warps=4, num_stages=3)
    assert narrow.microseconds > 2 * large.microseconds


def test_loaded_bounds_are_guessed():
    x = tessera.MockTensor(tl.float32, (1 << 16,))
    ends = tessera.MockTensor(tl.int32, (1,))
    found = tessera.estimate(sum_segment, (1,), (x, ends, x), BLOCK=1024, target=TARGET)
    assert not found.is_certain


@pytest.mark.parametrize("shape", [(-4,), (1 << 61,), (1 << 40, 1 << 40), (2.5,), ("a",), 7])
def test_shapes_that_no_array_has(shape: Any):
    with pytest.raises(ArgumentError, match="E054.*MockTensor has the shape"):
        tessera.MockTensor(tl.float32, shape)


def test_shapes_and_grids_at_the_limits():
    largest = tessera.MockTensor(tl.float32, ((1 << 61) - 1,))
    empty = tessera.MockTensor(tl.float32, (0, 1 << 62))
    launch = {"BLOCK": 1024, "target": TARGET}
    assert tessera.estimate(add, (4,), (largest, empty, 5), **launch).microseconds < 100
    for grid, message in (((0,), "extent 0"), ((2**31 - 1,) * 3, "more than 10\\^15 programs")):
        with pytest.raises(LaunchError, match=f"E052.*{message}"):
            tessera.estimate(add, grid, (largest, largest, 5), **launch)


def test_a_compiled_kernel_takes_what_its_launch_takes():
    x = np.zeros(1000, np.float32)
    compiled = add.warmup(x, x, 1000, BLOCK=256, grid=(4,), target=TARGET)
    assert compiled.estimate((4,), x, x, 1000) == compiled.estimate(4, x, x, 1000, 256)
    with pytest.raises(ArgumentError, match="E051"):
        compiled.estimate((4,), x)
    with pytest.raises(ArgumentError, match="E054.*MockTensor"):
        compiled[(4,)](tessera.MockTensor(tl.float32), x, 1000, 256)
    on_cpu = add.warmup(x, x, 1000, BLOCK=256, grid=(4,), target="cpu")
    with pytest.raises(LaunchError, match="E054.*compiled for the CPU"):
        on_cpu.estimate((4,), x, x, 1000)


def test_the_estimate_leaves_top_k_configurations():
    configs = [tessera.Config({"BLOCK": block}) for block in (64, 128, 256, 512)]
    prune = {"perf_model": tessera.estimate, "top_k": 2}
    kernel = tessera.autotune(configs, ["n"], prune, cache_results=False)(add)
    x, out = np.zeros(5000, np.float32), np.zeros(5000, np.float32)
    kernel[lambda args: (tessera.cdiv(5000, args["BLOCK"]),)](x, out, 5000)
    measured = [times for times in kernel.configs_timings.values() if times[0] != float("inf")]
    assert len(measured) <= 2 and (out == 1).all()
