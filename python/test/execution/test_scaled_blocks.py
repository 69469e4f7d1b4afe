# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""8-bit floats with scales of blocks along K: each dot is multiplied before it is summed up.

The kernels are those that are measured (benchmarks/gpu_matmul_kernels.py), and one with
descriptors. Scales are powers of two and elements small, so that every sum is exact.
"""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from runtime.usual_kernels import load

import tessera
import tessera.gpu
import tessera.language as tl

KERNELS = load("benchmarks/gpu_matmul_kernels.py")
F8 = ml_dtypes.float8_e4m3fn


@tessera.jit
def of_descriptors(a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, M, N, K, stride_a, stride_bk,
                   stride_bn, stride_c, stride_as, stride_ask, stride_bs, BM: tl.constexpr,
                   BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    row = tl.program_id(0) // tl.cdiv(N, BN) * BM
    column = tl.program_id(0) % tl.cdiv(N, BN) * BN
    rows = row + tl.arange(0, BM)
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [stride_a, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [stride_bn, 1], [BN, BK])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x, y = a.load([row, k * BK]), b.load([column, k * BK])
        of_a = tl.load(a_scale_ptr + rows * stride_as + k * stride_ask, mask=rows < M, other=0.0)
        of_b = tl.load(b_scale_ptr + column // 128 * stride_bs + k)
        acc += tl.dot(x, y.T) * of_a[:, None] * of_b
    c = c_ptr + rows[:, None] * stride_c + (column + tl.arange(0, BN))[None, :]
    columns = column + tl.arange(0, BN)
    tl.store(c, acc.to(c_ptr.dtype.element_ty), (rows[:, None] < M) & (columns[None, :] < N))


@tessera.jit
def of_wrapped(a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, M, N, K, stride_a, stride_bk,
               stride_bn, stride_c, stride_as, stride_ask, stride_bs, BM: tl.constexpr,
               BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    """Indices that wrap in place of masks, and pointers of scales that move, as libraries have it."""
    pid, blocks_m, blocks_n = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    first_m = pid // (GROUP * blocks_n) * GROUP
    group = min(blocks_m - first_m, GROUP)
    pid_m = first_m + pid % group
    pid_n = pid % (GROUP * blocks_n) // group
    rows = (pid_m * BM + tl.arange(0, BM)) % M
    columns = (pid_n * BN + tl.arange(0, BN)) % N
    ks = tl.arange(0, BK)
    a = a_ptr + (rows[:, None] * stride_a + ks[None, :])
    b = b_ptr + (ks[:, None] * stride_bk + columns[None, :] * stride_bn)
    a_scale, b_scale = a_scale_ptr + rows * stride_as, b_scale_ptr + columns // 128 * stride_bs
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(a, mask=ks[None, :] < K - k * BK, other=0.0)
        y = tl.load(b, mask=ks[:, None] < K - k * BK, other=0.0)
        of_a, of_b = tl.load(a_scale), tl.load(b_scale)
        acc += tl.dot(x, y) * (of_a[:, None] * of_b[None, :])
        a += BK
        b += BK * stride_bk
        a_scale += stride_ask
        b_scale += 1
    rows, columns = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
    c = c_ptr + stride_c * rows[:, None] + columns[None, :]
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=mask)


class Problem:
    """Operands, their scales, and what they stand for."""

    def __init__(self, rng: Any, m: int, n: int, k: int, along_k: bool, by_rows: bool) -> None:
        blocks = -(-k // 128)
        self.shape = m, n, k
        self.a = rng.integers(-4, 5, (m, k)).astype(F8)
        stored = rng.integers(-4, 5, (n, k) if along_k else (k, n)).astype(F8)
        self.b = stored.T if along_k else stored
        scales = 2.0 ** rng.integers(-2, 3, (m, blocks) if by_rows else (blocks, m))
        self.a_scale = scales.astype("f4") if by_rows else scales.astype("f4").T
        self.b_scale = (2.0 ** rng.integers(-2, 3, (-(-n // 128), blocks))).astype("f4")
        self.c = np.full((m, n), np.nan, "f4")

    def arguments(self) -> tuple[Any, ...]:
        m, n, k = self.shape
        strides = (k, self.b.strides[0], self.b.strides[1], n)
        strides += (self.a_scale.strides[0] // 4, self.a_scale.strides[1] // 4)
        scales = self.a_scale, self.b_scale
        return (self.a, self.b, *scales, self.c, m, n, k, *strides, self.b_scale.shape[1])

    def check(self) -> None:
        m, n, k = self.shape
        a = self.a.astype("f8") * self.a_scale.repeat(128, 1)[:, :k]
        b = self.b.astype("f8") * self.b_scale.repeat(128, 1)[:, :k].repeat(128, 0)[:n].T
        np.testing.assert_array_equal(self.c, a @ b)


def simulate(kernel: Any, problem: Problem, tile: tuple[int, int], target: str, warps: int,
             stages: int, seed: int = 0) -> None:  # fmt: skip
    m, n, _ = problem.shape
    bm, bn = tile
    grid = (-(-m // bm) * -(-n // bn),)
    tessera.gpu.simulate(kernel, seed=seed)[grid](
        *problem.arguments(), BM=bm, BN=bn, BK=128, GROUP=2, target=target, num_warps=warps,
        num_stages=stages,
    ).check()  # fmt: skip
    problem.check()


KERNELS["of_wrapped"] = of_wrapped
NAMES = ["matmul_scaled", "matmul_scaled_once", "of_wrapped"]


@pytest.mark.parametrize("k", [0, 128, 304, 640])
@pytest.mark.parametrize("name", NAMES)
def test_on_cpus(run, rng, name, k):
    """By the interpreter, too, and with a tail of K."""
    for along_k, by_rows in ((True, False), (False, True)):
        problem = Problem(rng, 40, 144, k, along_k, by_rows)
        run(KERNELS[name], (4,), *problem.arguments(), BM=32, BN=128, BK=128, GROUP=2)
        problem.check()


@pytest.mark.in_turn("k", 304)
@pytest.mark.parametrize("k", [0, 128, 256, 304, 640])
@pytest.mark.parametrize("along_k", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_loads_scales_ahead(rng, name, along_k, k):
    """The last iteration loads no scales behind the end of theirs."""
    for seed, by_rows in enumerate((False, True)):
        problem = Problem(rng, 80, 144, k, along_k, by_rows)
        simulate(KERNELS[name], problem, (64, 128), "sm_90a", 4, 3, seed)


@pytest.mark.parametrize("warps, tile", [(4, (128, 128)), (8, (128, 128)), (8, (256, 128)), (8, (128, 256))])  # fmt: skip
def test_tiles(rng, warps, tile):
    problem = Problem(rng, 144, 272, 384, True, False)
    simulate(KERNELS["matmul_scaled"], problem, tile, "sm_90a", warps, 3)


@pytest.mark.parametrize("name", NAMES)
def test_without_tma(rng, name):
    """Rows of 300 bytes, and a machine that has none."""
    problem = Problem(rng, 72, 136, 300, True, True)
    simulate(KERNELS[name], problem, (64, 128), "sm_90a", 4, 3)
    problem = Problem(rng, 40, 128, 256, True, False)
    simulate(KERNELS[name], problem, (32, 128), "sm_80", 4, 3)


@pytest.mark.parametrize("k", [128, 304, 512])
def test_descriptors(rng, k):
    problem = Problem(rng, 144, 144, k, True, False)
    simulate(of_descriptors, problem, (128, 128), "sm_90a", 8, 4)


def compile_for_hopper(name: str, warps: int, tile: tuple[int, int] = (128, 128)) -> Any:
    types = ["*fp8e4nv:16"] * 2 + ["*fp32:16"] * 2 + ["*bf16:16"] + ["i32:16"] * 10
    bm, bn = tile
    names = [parameter for parameter in KERNELS[name].arg_names][:15]
    signature = dict(zip(names, types), stride_bk=1)
    return tessera.compile(
        KERNELS[name], signature, constexprs={"BM": bm, "BN": bn, "BK": 128, "GROUP": 8},
        target="sm_90a", num_warps=warps, num_stages=4, tensor_maps=True,
    )  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("warps", [4, 8])
def test_is_specialised_and_loads_ahead(name, warps):
    """A producer has the tiles, and what is loaded besides is there from the iteration before."""
    kernel = compile_for_hopper(name, warps, (64 if warps == 4 else 128, 128))
    assert not [text for text in kernel.remarks if "not specialised" in text]
    text = kernel.asm["tilegpu"]
    assert "tilegpu.tma_load" in text
    # The loop carries scales of A and B beside the sum.
    carried = re.search(r"scf.for .* -> \(tensor<\d+x128xf32, #\w+>, (.*)\)", text)
    numbers = re.findall(r"tensor<\d+xf32|f32(?=, )", carried[1]) if carried else []
    assert len(numbers) == 2
    assert kernel.n_spills in (None, 0)
    assert ("tilegpu.over_programs" in text) == (warps == 8)
