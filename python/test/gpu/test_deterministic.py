# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""With `deterministic` the bits of a result do not depend on how many warps computed it."""

from __future__ import annotations

import pytest

import tessera
import tessera.language as tl

pytestmark = pytest.mark.gpu

ROWS, COLUMNS = 16, 1024


@tessera.jit
def layer_norm(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + at)
    centred = x - tl.sum(x, axis=0) / N
    tl.store(out_ptr + at, centred * tl.rsqrt(tl.sum(centred * centred, axis=0) / N + 1e-5))


@tessera.jit
def softmax(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    e = tl.exp(tl.load(x_ptr + at))
    tl.store(out_ptr + at, e / tl.sum(e, axis=0))


@tessera.jit
def cumsum(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), axis=0))


@tessera.jit
def column_sums(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, 16)[:, None]
    j = tl.program_id(0) * (N // 16) + tl.arange(0, N // 16)[None, :]
    total = tl.sum(tl.load(x_ptr + i * N + j), axis=0)
    tl.store(out_ptr + i * N + j, tl.broadcast_to(total[None, :], (16, N // 16)))


@tessera.jit
def dot(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, 16)
    j = tl.program_id(0) * (N // 16) + tl.arange(0, N // 16)
    a = tl.load(x_ptr + i[:, None] * N + tl.arange(0, 64)[None, :])
    b = tl.load(x_ptr + tl.arange(0, 64)[:, None] % 16 * N + j[None, :])
    tl.store(out_ptr + i[:, None] * N + j[None, :], tl.dot(a, b, input_precision="ieee"))


@pytest.mark.parametrize("kernel", [layer_norm, softmax, cumsum, column_sums, dot])
def test_bits_do_not_depend_on_the_number_of_warps(kernel):
    import torch

    torch.manual_seed(0)
    x = torch.randn(ROWS, COLUMNS, device="cuda")
    results = []
    for warps in (1, 2, 4, 8):
        out = torch.full_like(x, float("nan"))
        kernel[(ROWS,)](x, out, N=COLUMNS, num_warps=warps, deterministic=True)
        assert torch.isfinite(out).all()
        results.append(out)
    for other in results[1:]:
        assert torch.equal(results[0], other)
