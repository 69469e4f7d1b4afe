# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matmuls of float32 against float64, for each input_precision: docs/Numerics.md has the table."""

from __future__ import annotations

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl

pytestmark = pytest.mark.gpu

# What a result may be off by at most, of 512x512 with K = 2048 of normally distributed numbers.
# One accumulator in the tensor cores' registers would be off by 3e-3 in every row but the first.
BOUNDS = {"tf32": 0.25, "tf32x3": 1.5e-4, "bf16x3": 1.5e-3, "bf16x6": 1.5e-4, "ieee": 8e-4}


@tessera.jit
def matmul(a_ptr, b_ptr, c_ptr, K, N, sak, sam, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr, PRECISION: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * sam + inner[None, :] * sak)
        b = tl.load(b_ptr + inner[:, None] * N + columns[None, :])
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "block, warps",
    [((128, 128, 32), 8), ((128, 128, 32), 4), ((64, 128, 32), 4), ((32, 64, 32), 4)],
)
@pytest.mark.parametrize("precision", BOUNDS)
def test_errors_are_those_that_are_documented(precision, block, warps, transposed):
    torch = pytest.importorskip("torch")
    size, depth = 512, 2048
    torch.manual_seed(0)
    a = torch.randn(size, depth, device="cuda")
    if transposed:
        a = a.T.contiguous().T
    b = torch.randn(depth, size, device="cuda")
    c = torch.full((size, size), float("nan"), device="cuda")
    matmul[size // block[0], size // block[1]](
        a, b, c, depth, size, a.stride(1), a.stride(0), *block, precision, num_warps=warps
    )
    error = (c.double() - a.double() @ b.double()).abs().max().item()
    assert error < BOUNDS[precision]


@tessera.jit
def one_instruction(a_ptr, b_ptr, c_ptr, d_ptr, M: tl.constexpr, N: tl.constexpr,
                    K: tl.constexpr):  # fmt: skip
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + i[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + j[None, :])
    c = tl.load(c_ptr + i[:, None] * N + j[None, :])
    d = tl.dot(a, b, c, input_precision="tf32")
    tl.store(d_ptr + i[:, None] * N + j[None, :], d)


@pytest.mark.parametrize("rows", [64, 32])  # by wgmma, by mma.sync
@pytest.mark.parametrize("dtype, steps", [("float32", 8), ("float16", 16)])
def test_the_simulator_cuts_sums_off_as_the_machine(dtype, steps, rows):
    torch = pytest.importorskip("torch")
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("other machines keep more or less of an accumulator")
    rng, columns = np.random.default_rng(0), 64
    # Of magnitudes far apart, too.
    scale = 2.0 ** rng.integers(-6, 7, (rows, steps))
    a = (rng.standard_normal((rows, steps)) * scale).astype(dtype)
    b = rng.standard_normal((steps, columns)).astype(dtype)
    c = rng.standard_normal((rows, columns)).astype(np.float32)
    simulated = np.full_like(c, np.nan)
    tessera.gpu.simulate(one_instruction)[(1,)](
        a, b, c, simulated, M=rows, N=columns, K=steps, target="sm_90a", num_warps=4
    )
    real = torch.full(c.shape, float("nan"), device="cuda")
    given = [torch.from_numpy(value).cuda() for value in (a, b, c)]
    one_instruction[(1,)](*given, real, M=rows, N=columns, K=steps, num_warps=4)
    np.testing.assert_array_equal(real.cpu().numpy(), simulated)
