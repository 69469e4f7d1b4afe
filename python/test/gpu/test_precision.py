# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of float32 against float64, for each input_precision: docs/Numerics.md has the table."""

from __future__ import annotations

import pytest

import tessera
import tessera.language as tl

pytestmark = pytest.mark.gpu

# What a result may be off by at most, of 512x512 with K = 2048 of normally distributed numbers.
# One sum in the tensor cores' registers would be off by 3e-3 in every row but the first.
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


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "block, warps",
    [((128, 128, 32), 8), ((128, 128, 32), 4), ((64, 128, 32), 4), ((32, 64, 32), 4)],
)
@pytest.mark.parametrize("precision", BOUNDS)
def test_errors_are_those_that_are_documented(precision, block, warps, turned):
    torch = pytest.importorskip("torch")
    size, depth = 512, 2048
    torch.manual_seed(0)
    a = torch.randn(size, depth, device="cuda")
    if turned:
        a = a.T.contiguous().T
    b = torch.randn(depth, size, device="cuda")
    c = torch.full((size, size), float("nan"), device="cuda")
    matmul[size // block[0], size // block[1]](
        a, b, c, depth, size, a.stride(1), a.stride(0), *block, precision, num_warps=warps
    )
    error = (c.double() - a.double() @ b.double()).abs().max().item()
    assert error < BOUNDS[precision]
