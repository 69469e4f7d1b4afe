# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels whose loads one thread orders from TMA, simulated.

The simulator has the engine write when the seed says, counts bytes and arrivals, and knows
which warp has heard of what: a wait that is missing is a race or a deadlock.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from gpu.test_pipelines import attention, described, matmul
from gpu.test_tensor_maps import KINDS, fused, fused_by_numpy

import tessera
import tessera.gpu
import tessera.language as tl

OPTIONS = {"target": "sm_90a", "tensor_maps": True}


@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("shape", [(64, 64, 64), (128, 128, 192), (72, 40, 136), (200, 64, 8)])
def test_matmul(rng, shape, stages, warps):
    M, N, K = shape
    a = rng.integers(-4, 5, (M, K)).astype("f2")
    b = rng.integers(-4, 5, (K, N)).astype("f2")
    rows = 16 * warps
    for seed in range(2):
        c = np.full((M, N), np.nan, "f4")
        simulation = tessera.gpu.simulate(matmul, seed=seed)[(-(-M // rows), -(-N // 64))](
            a, b, c, M, N, K, K, 1, N, 1, BM=rows, BN=64, BK=64, num_stages=stages,
            num_warps=warps, **OPTIONS,
        )  # fmt: skip
        simulation.check()
        np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8"))


@pytest.mark.parametrize("tensor_maps", [False, True])
@pytest.mark.parametrize("block", [(128, 192, 32), (192, 128, 32), (256, 192, 16)])
def test_blocks_with_an_odd_factor(rng, block, tensor_maps):
    BM, BN, BK = block
    M, N, K = BM - 8, BN + 8, 2 * BK + 8
    a = rng.integers(-4, 5, (M, K)).astype("f2")
    b = rng.integers(-4, 5, (K, N)).astype("f2")
    c = np.full((M, N), np.nan, "f4")
    tessera.gpu.simulate(matmul)[(1, 2)](
        a, b, c, M, N, K, K, 1, N, 1, BM=BM, BN=BN, BK=BK, num_stages=3, num_warps=8,
        target="sm_90a", tensor_maps=tensor_maps,
    ).check()  # fmt: skip
    np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8"))


@pytest.mark.parametrize("result", ["f2", "f4"])
@pytest.mark.parametrize("N", [520, 516])
def test_results_in_pieces(rng, result, N):
    # Beside a ring of four slots the result has a buffer of 32 KB. Rows of 516 are no multiple
    # of 16 bytes in f2, and then threads store.
    BM, BN, BK = 128, 256, 64
    M, K = 2 * BM - 24, 5 * BK
    a = rng.integers(-4, 5, (M, K)).astype("f2")
    b = rng.integers(-4, 5, (K, N + -N % 8)).astype("f2")
    for seed in range(2):
        c = np.full((M, N), np.nan, result)
        simulated = tessera.gpu.simulate(matmul, seed=seed)
        simulated[(-(-M // BM), -(-N // BN))](
            a, b, c, M, N, K, K, 1, N + -N % 8, 1, BM=BM, BN=BN, BK=BK, num_stages=3, num_warps=8,
            **OPTIONS,
        ).check()  # fmt: skip
        np.testing.assert_array_equal(c, (a.astype("f8") @ b.astype("f8"))[:, :N])


@pytest.mark.parametrize("kind", KINDS)
def test_groups_of_warps_store_for_themselves(rng, kind):
    """One program does several tiles, of which groups need not be at the same."""
    block = (128, 128, 64)
    M, N, K = 2 * block[0] - 24, 2 * block[1] - 8, 5 * block[2] - 8
    a = rng.integers(-4, 5, (M, K)).astype("f2")
    b = rng.integers(-4, 5, (K, N)).astype("f2")
    bias, residual = rng.integers(-4, 5, N).astype("f2"), rng.integers(-4, 5, (M, N)).astype("f2")
    if kind == "gelu":
        a, b = a / np.float16(16), b / np.float16(16)
    want, error = fused_by_numpy(a, b, bias, residual, kind, block)
    for seed in range(3):
        c = np.full((M, N), np.nan, "f2")
        tessera.gpu.simulate(fused, seed=seed)[(1,)](
            a, b, bias, residual, c, M, N, K, K, N, KIND=kind, BM=block[0], BN=block[1],
            BK=block[2], num_stages=3, num_warps=8, **OPTIONS,
        ).check()  # fmt: skip
        np.testing.assert_allclose(c.astype("f8"), want, rtol=error, atol=error / 8)


@pytest.mark.parametrize("kind", ["none", "gelu", "residual", "rows"])
def test_groups_of_warps_meet_for_others_alone(kind):
    """Of what is loaded in whole rows, a tile is exchanged between all warps; a row is not."""
    types = "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp16:16" + ", i32:16" * 5
    kernel = tessera.compile(
        fused, types, constexprs={"KIND": kind, "BM": 128, "BN": 256, "BK": 64}, num_warps=8,
        num_stages=3, **OPTIONS,
    )  # fmt: skip
    text = kernel.asm["tilegpu"]
    assert "tilegpu.barrier {of_group}" in text
    assert ("tilegpu.barrier\n" in text) == (kind == "residual")
    assert kernel.n_spills == 0


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("shape", [(64, 64, 64), (72, 136, 160), (200, 64, 0)])
def test_descriptors_made_in_the_kernel(rng, shape, target):
    M, N, K = shape
    a = rng.integers(-4, 5, (M, K)).astype("f2")
    b = rng.integers(-4, 5, (K, N)).astype("f2")
    # What lies behind the result stays as it is.
    memory = np.full((M + 8, N), 77, "f4")
    tessera.gpu.simulate(described)[(-(-M // 64), -(-N // 64))](
        a, b, memory[:M], M, N, K, BM=64, BN=64, BK=32, num_stages=3, target=target
    ).check()
    np.testing.assert_array_equal(memory[:M], a.astype("f8") @ b.astype("f8"))
    assert (memory[M:] == 77).all()


def test_descriptors_made_in_the_kernel_take_the_way_of_pointers():
    """As many maps, the same copies in the same rings."""
    types = ["*fp16:16", "*fp16:16", "*fp32:16"]
    block = ["128", "128", "64"]
    ours = tessera.compile(described, ", ".join(types + ["i32:16"] * 3 + block), target="sm_90a")
    strides = ["i32:16", "1", "i32:16", "1"]
    pointers = ", ".join(types + ["i32:16"] * 3 + strides + block)
    theirs = tessera.compile(matmul, pointers, target="sm_90a")
    for kernel in (ours, theirs):
        assert len(kernel.metadata["tensor_maps"]) == 3
        assert kernel.asm["tilegpu"].count("tilegpu.tma_load") == 2
        assert kernel.asm["tilegpu"].count("tilegpu.tma_store ") == 1
        assert not [remark for remark in kernel.remarks if "not " in remark]
    slots = [re.findall(r"(memdesc<\d+x\d+xf\d+).*slots", k.asm["tilegpu"]) for k in (ours, theirs)]
    assert slots[0] == slots[1] and len(set(slots[0])) == 2


@tessera.jit
def beside(a_ptr, b_ptr, c_ptr, n, stride, K, BK: tl.constexpr):
    i, ks, program = tl.arange(0, 64), tl.arange(0, BK), tl.program_id(0)
    first = 6 // (n - 2 * program) * 64
    a = a_ptr + i[:, None] * stride + (first + ks)[None, :]
    b = b_ptr + ks[:, None] * 64 + i[None, :]
    acc = tl.zeros((64, 64), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(tl.load(a), tl.load(b), acc)
        a += BK
        b += BK * 64
    tl.store(c_ptr + (program * 64 + i)[:, None] * 64 + i[None, :], acc)


@pytest.mark.parametrize("n, programs", [(1, 1), (1, 4), (7, 4), (-1, 1), (2**31 - 1, 4)])
def test_an_index_is_divided_by_a_negative_number(rng, n, programs):
    """It lies before the array that was passed, in which no box begins."""
    whole = rng.integers(-4, 5, (64, 1024)).astype("f2")
    b = rng.integers(-4, 5, (128, 64)).astype("f2")
    c = np.full((64 * programs, 64), np.nan, "f4")
    tessera.gpu.simulate(beside, memory=[whole])[(programs,)](
        whole[:, 512:], b, c, n, 1024, 128, BK=64, num_stages=2, num_warps=4, **OPTIONS
    ).check()
    for program in range(programs):
        first = 512 + int(6 / (n - 2 * program)) * 64
        want = whole[:, first : first + 128].astype("f8") @ b.astype("f8")
        np.testing.assert_array_equal(c[64 * program : 64 * program + 64], want)


def test_the_launcher_bounds_what_an_index_is_divided_by():
    kernel = tessera.compile(
        beside, "*fp16:16, *fp16:16, *fp32:16, i32, i32:16, i32:16", constexprs={"BK": 64},
        target="sm_90a", num_warps=4, num_stages=2,
    )  # fmt: skip
    assert kernel.metadata["tensor_maps"]
    assert kernel.metadata["program_bounds"] == ["(sub32 i32:3 (mul32 program:0 2))"]


def test_arguments_without_tensor_maps(rng):
    """Rows that are no multiple of 16 bytes, and an empty array: by the other variant."""
    for K in (0, 33):
        a = rng.integers(-4, 5, (64, K)).astype("f2")
        b = rng.integers(-4, 5, (K, 64)).astype("f2")
        c = np.full((64, 64), np.nan, "f4")
        tessera.gpu.simulate(matmul)[(1, 1)](
            a, b, c, 64, 64, K, K, 1, 64, 1, BM=64, BN=64, BK=64, num_stages=2, **OPTIONS
        ).check()
        np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8"))


@pytest.mark.parametrize("causal", [False, True])
def test_attention(rng, causal):
    T, D = 160, 128  # With less, its arithmetic takes longer than its dots.
    q, k, v = (rng.standard_normal((1, T, D)).astype("f2") for _ in range(3))
    o = np.full_like(q, np.nan)
    scores = q[0].astype("f8") @ k[0].astype("f8").T * D**-0.5
    if causal:
        scores = np.where(np.tril(np.ones((T, T), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights / weights.sum(1, keepdims=True) @ v[0].astype("f8")
    tessera.gpu.simulate(attention)[(3, 1)](
        q, k, v, o, T, D**-0.5 * 1.4426950408889634, CAUSAL=causal, BM=64, BN=64, D=D,
        num_stages=2, **OPTIONS,
    ).check()  # fmt: skip
    np.testing.assert_allclose(o[0], expected, atol=5e-3)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("T", [40, 128, 200])
def test_groups_of_warps_take_turns(rng, T, causal):
    """One, two and four iterations of a loop whose second dot is put off."""
    D, BM, BN = 128, 128, 64
    q, k, v = (rng.standard_normal((1, T, D)).astype("f2") for _ in range(3))
    scores = q[0].astype("f8") @ k[0].astype("f8").T * D**-0.5
    if causal:
        scores = np.where(np.tril(np.ones((T, T), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights / weights.sum(1, keepdims=True) @ v[0].astype("f8")
    for seed in range(2):
        o = np.full_like(q, np.nan)
        tessera.gpu.simulate(attention, seed=seed)[(-(-T // BM), 1)](
            q, k, v, o, T, D**-0.5 * 1.4426950408889634, CAUSAL=causal, BM=BM, BN=BN, D=D,
            num_stages=2, num_warps=8, **OPTIONS,
        ).check()  # fmt: skip
        np.testing.assert_allclose(o[0], expected, atol=5e-3)
    types = ["*fp16:16"] * 4 + ["i32", "fp32", str(causal), str(BM), str(BN), str(D)]
    kernel = tessera.compile(attention, ", ".join(types), target="sm_90a", num_warps=8)
    assert "tilegpu.ping_pong_wait" in kernel.asm["tilegpu"] and "bar.arrive" in kernel.asm["ptx"]
    assert not [remark for remark in kernel.remarks if "not " in remark or "erializ" in remark]
