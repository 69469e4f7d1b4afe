# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles that are too large to change their layout at once: a slice goes after the other.

On the simulator, which knows races and counts banks, and on a GPU if there is one. That
kernels need rounds is seen from their remarks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from execution.running import Runner
from gpu.test_pipelines import matmul

import tessera
import tessera.gpu
import tessera.language as tl
from tessera.compiler import toolchain

TARGETS = ["sm_80", "sm_90a"]
on_gpus = pytest.mark.parametrize("run", ["simulator", "cuda"], indirect=True)


@tessera.jit
def transpose(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(out_ptr + j * M + i, tl.load(x_ptr + i * N + j))


@tessera.jit
def sums(x_ptr, rows_ptr, columns_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    tl.store(rows_ptr + i, tl.sum(x, axis=1))
    tl.store(columns_ptr + j, tl.sum(x, axis=0))


@tessera.jit
def running_sums(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), axis=0))


@tessera.jit
def sort(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.sort(tl.load(x_ptr + i)))


def find_rounds(kernel: Any, signature: str, **options: Any) -> list[str]:
    """The remarks on what exchange through shared memory takes rounds."""
    compiled = tessera.compile(kernel, signature, **options)
    return [text for text in compiled.remarks if "exchange through shared memory takes" in text]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "shape, dtype", [((256, 256), "f4"), ((128, 256), "f8"), ((192, 256), "f4"), ((512, 512), "i1")]
)
def test_conversions(rng, target, shape, dtype):
    x = rng.integers(-100, 100, shape).astype(dtype)
    out = np.zeros(shape[::-1], dtype)
    simulation = tessera.gpu.simulate(transpose)[(1,)](
        x, out, M=shape[0], N=shape[1], num_warps=16, target=target
    )
    simulation.check()
    np.testing.assert_array_equal(out, x.T)
    # What goes at once meets in no bank, as if all did.
    wavefronts = sum(access.wavefronts for access in simulation.shared)
    assert 0 < wavefronts == sum(access.ideal for access in simulation.shared)


@on_gpus
@pytest.mark.parametrize("warps", [8, 16])
@pytest.mark.parametrize("shape", [(256, 256), (200, 256)])
def test_results_of_large_dots(run: Runner, rng, shape, warps):
    if run.target == "cuda" and warps == 16:
        pytest.skip("the accumulator alone is all registers of an SM (E063)")
    (M, N), K = shape, 96
    a = rng.integers(-4, 5, (M, K)).astype("f2")
    b = rng.integers(-4, 5, (K, N)).astype("f2")
    c = np.full((M, N), np.nan, "f4")
    run(matmul, (1, 1), a, b, c, M, N, K, K, 1, N, 1, BM=256, BN=256, BK=32, num_warps=warps)
    np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8"))


@on_gpus
@pytest.mark.parametrize("deterministic", [False, True])
def test_reductions(run: Runner, rng, deterministic):
    x = rng.integers(-9, 10, (256, 256)).astype("f4")
    rows, columns = np.zeros(256, "f4"), np.zeros(256, "f4")
    run(sums, (1,), x, rows, columns, M=256, N=256, num_warps=16, deterministic=deterministic)
    np.testing.assert_array_equal(rows, x.sum(1))
    np.testing.assert_array_equal(columns, x.sum(0))


@on_gpus
def test_scans(run: Runner, rng):
    x = rng.integers(-9, 10, (128, 512)).astype("f4")
    out = np.zeros_like(x)
    run(running_sums, (1,), x, out, M=128, N=512, num_warps=16)
    np.testing.assert_array_equal(out, x.cumsum(0))


@on_gpus
@pytest.mark.parametrize("n", [32768, 49152])
def test_sorts(run: Runner, rng, n):
    x = rng.integers(-1000, 1000, n).astype("f4")
    out = np.zeros_like(x)
    run(sort, (1,), x, out, N=n, num_warps=32)
    np.testing.assert_array_equal(out, np.sort(x))


@pytest.mark.skipif(not toolchain.find_ptxas(), reason="there is no ptxas")
def test_what_goes_in_rounds():
    tile = "*fp32:16, *fp32:16, 256, 256"
    assert find_rounds(transpose, tile, target="sm_90a", num_warps=16)
    wide = "*fp32:16, *fp32:16, 128, 512"
    assert find_rounds(running_sums, wide, target="sm_90a", num_warps=16)
    sums_of = "*fp32:16, *fp32:16, *fp32:16, 256, 256"
    # With a bound of its own no kernel becomes a cluster, of which each block has less.
    bound = {"num_warps": 16, "maxnreg": 128}
    assert find_rounds(sums, sums_of, target="sm_90a", deterministic=True, **bound)
    assert find_rounds(sort, "*fp32:16, *fp32:16, 32768", target="sm_90a", num_warps=32)
    arguments = "*fp16:16, *fp16:16, *fp32:16, " + "i32:16, " * 4 + "1, i32:16, 1, 256, 256, 32"
    assert find_rounds(matmul, arguments, target="sm_80", num_warps=8)
    # What fits goes at once.
    assert not find_rounds(transpose, "*fp32:16, *fp32:16, 128, 128", target="sm_90a", num_warps=16)


@tessera.jit
def persistent(
    a_ptr, b_ptr, c_ptr, count_ptr, M, N, K, COUNTS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """The second operand is transposed; results are stored while the next loop's copies begin."""
    columns = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * columns, tl.num_programs(0)):
        offs_m = tile // columns * BM + tl.arange(0, BM)
        offs_n = tile % columns * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            offs_k = k + tl.arange(0, BK)
            x = tl.load(
                a_ptr + offs_m[:, None] * K + offs_k[None, :],
                mask=(offs_m[:, None] < M) & (offs_k[None, :] < K), other=0.0,
            )  # fmt: skip
            y = tl.load(
                b_ptr + offs_n[None, :] * K + offs_k[:, None],
                mask=(offs_k[:, None] < K) & (offs_n[None, :] < N), other=0.0,
            )  # fmt: skip
            acc = tl.dot(x, y, acc)
        c = c_ptr + offs_m[:, None] * N + offs_n[None, :]
        tl.store(c, acc, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))
        if COUNTS:
            tl.atomic_add(count_ptr, 1, sem="relaxed")


PLAIN = "*fp32:16, *fp32:16, *fp32:16, " + "i32:16, " * 4 + "1, 1, i32:16, 128, 128, 64"
PERSISTENT = "*fp32:16, *fp32:16, *fp32:16, *i32:16, i32:16, i32:16, i32:16, {}, 128, 128, 64"


@pytest.mark.skipif(not toolchain.find_ptxas(), reason="there is no ptxas")
@pytest.mark.parametrize(
    "kernel, signature, tensor_maps, goes_in_rounds",
    [
        (matmul, PLAIN, False, False),
        (matmul, PLAIN, True, False),
        (persistent, PERSISTENT.format(0), False, False),
        (persistent, PERSISTENT.format(0), True, False),
        # A relaxed atomic of an array that lies apart keeps nothing from being stored by TMA.
        (persistent, PERSISTENT.format(1), True, False),
    ],
)
def test_stages_are_kept_beside_results(kernel, signature, tensor_maps, goes_in_rounds):
    """Three stages of 64 KB leave no room for a result of 64 KB, but for a part of it."""

    def build(stages: int) -> Any:
        return tessera.compile(
            kernel, signature, target="sm_90a", num_stages=stages, num_warps=4,
            tensor_maps=tensor_maps,
        )  # fmt: skip

    three = build(3)
    assert not [text for text in three.remarks if "stages, not" in text]
    assert three.asm["tilegpu"].count("slots = 3>") > 0
    assert (
        any("exchange through shared memory takes" in text for text in three.remarks)
        == goes_in_rounds
    )
    assert [text for text in build(4).remarks if "3 stages, not 4" in text]


@on_gpus
@pytest.mark.parametrize("counts", [0, 1])
@pytest.mark.parametrize("tensor_maps", [False, True])
def test_results_beside_rings(run: Runner, rng, tensor_maps, counts):
    M, N, K = 160, 256, 200
    a, b = (rng.integers(-4, 5, shape).astype("f4") for shape in ((M, K), (N, K)))
    c, count = np.full((M, N), np.nan, "f4"), np.zeros(1, "i4")
    run(persistent, (2,), a, b, c, count, M, N, K, COUNTS=counts, BM=128, BN=128, BK=64, num_stages=3,
        tensor_maps=tensor_maps)  # fmt: skip
    np.testing.assert_array_equal(c, a @ b.T)
    assert count[0] == 4 * counts
