# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops whose bounds, conditions and coordinates come from memory: a producer is told of them."""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import Runner

import tessera
import tessera.language as tl

BM, BN, BK = 64, 64, 32


@tessera.jit
def experts(a_ptr, b_ptr, c_ptr, expert_ptr, N, K, M, BM: tl.constexpr, BN: tl.constexpr,
            BK: tl.constexpr):  # fmt: skip
    """Each block of rows is multiplied by the weights of its expert, if it has one."""
    m, n = tl.program_id(0), tl.program_id(1) * BN
    expert = tl.load(expert_ptr + m)
    if expert < 0:
        return
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [8 * N, K], [K, 1], [BN, BK])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc += tl.dot(a.load([m * BM, k]), b.load([expert * N + n, k]).T)
    c.store([m * BM, n], acc.to(tl.float16))


@tessera.jit
def lengths(a_ptr, b_ptr, c_ptr, length_ptr, next_ptr, groups_ptr, N, K, M, BM: tl.constexpr,
            BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """Sums of different lengths in a loop of a length that is loaded, too.

    What a group multiplies by is carried from group to group; a group without a sum is a branch.
    """
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [8 * N, K], [K, 1], [BN, BK])
    weights, g = 0, 0
    while g < tl.load(groups_ptr):
        end = tl.sum(tl.load(length_ptr + g * 2 + tl.arange(0, 2)))
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        if end > 0:
            for k in range(0, end, BK):
                acc += tl.dot(a.load([m, k]), b.load([weights * N + n, k]).T)
        else:
            acc += 1.0
        weights = (weights + tl.load(next_ptr + g)) % 8
        rows, columns = m + tl.arange(0, BM)[:, None], n + tl.arange(0, BN)[None, :]
        tl.store(c_ptr + (g * M + rows) * N + columns, acc.to(tl.float16),
                 mask=(rows < M) & (columns < N))  # fmt: skip
        g += 1


def small(rng, *shape):
    return rng.integers(-2, 3, shape).astype(np.float16)


def check_is_specialised(kernel, arguments, meta):
    compiled = kernel.warmup(*arguments, **meta, target="sm_90a")
    ptx = compiled.asm["ptx"]
    assert "cp.async.bulk.tensor.2d.shared" in ptx and "cp.async.cg" not in ptx
    assert not [
        x for x in compiled.remarks if "not specialised" in x or "without a producer warp" in x
    ]


@pytest.mark.parametrize("stages", [2, 4])
def test_experts(run: Runner, rng, stages):
    M, N, K = 4 * BM, 72, 136
    a, b = small(rng, M, K), small(rng, 8 * N, K)
    c = np.full((M, N), 99, np.float16)
    chosen = np.array([3, -1, 0, 7], np.int32)
    meta = {"BM": BM, "BN": BN, "BK": BK, "num_stages": stages}
    arguments = (a, b, c, chosen, N, K, M)
    options = {
        key: meta[key] for key in meta if run.target in ("simulator", "cuda") or key[0] == "B"
    }
    run(experts, (4, 2), *arguments, **options)
    for block, expert in enumerate(chosen):
        x = a[block * BM : (block + 1) * BM].astype(np.float32)
        want = x @ b[expert * N : (expert + 1) * N].astype(np.float32).T if expert >= 0 else 99
        np.testing.assert_array_equal(c[block * BM : (block + 1) * BM], want)
    if run.target == "simulator":
        check_is_specialised(experts, arguments, meta)


def test_rings_end_in_a_branch():
    """A result takes the place of what was multiplied, also behind an early `return`."""
    meta = {"BM": 128, "BN": 256, "BK": 64}
    types = ["*fp16:16"] * 3 + ["*i32:16"] + ["i32:16"] * 3
    names = ["a_ptr", "b_ptr", "c_ptr", "expert_ptr", "N", "K", "M"]
    compiled = tessera.compile(experts, dict(zip(names, types)), constexprs=meta, target="sm_90a",
                               num_warps=8, num_stages=3)  # fmt: skip
    assert "cp.async.bulk.tensor.2d.global" in compiled.asm["ptx"]
    # Four slots of the rings, which is more than what is left beside the result.
    assert 4 * 49152 < compiled.metadata["shared_bytes"] <= 232448


@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("groups", [0, 1, 4])
def test_lengths(run: Runner, rng, warps, groups):
    M, N, K, rows = 200, 72, 136, 64 * warps // 4
    a, b = small(rng, M, K), small(rng, 8 * N, K)
    c = np.full((4, M, N), 99, np.float16)
    parts, steps = np.array([[64, 8], [0, 0], [1, 135], [0, 32]], np.int32), [2, 5, 3, 1]
    meta = {"BM": rows, "BN": BN, "BK": BK}
    if run.target in ("simulator", "cuda"):
        meta["num_warps"] = warps
    count = np.array([groups], np.int32)
    arguments = (a, b, c, parts, np.array(steps, np.int32), count, N, K, M)
    run(lengths, (-(-M // rows), 2), *arguments, **meta)
    weights = 0
    for g, (end, step) in enumerate(zip(parts.sum(1), steps)):
        # The last iteration goes on to the end of its tile.
        end = min(K, -(-end // BK) * BK)
        y = b[weights * N : (weights + 1) * N, :end].astype(np.float32)
        want = a[:, :end].astype(np.float32) @ y.T if end else 1
        np.testing.assert_array_equal(c[g], want if g < groups else 99)
        weights = (weights + step) % 8
    if run.target == "simulator":
        check_is_specialised(lengths, arguments, meta)
