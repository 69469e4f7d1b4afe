# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`max_num_imprecise_acc`: after how many products of 8-bit floats the accumulator is one of float32.

The instruction of sm_90a keeps some 14 bits of what it sums, so that ones that are added to
65536 leave no trace.
"""

from __future__ import annotations

import pytest

import tessera
import tessera.language as tl

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu


@tessera.jit
def kernel(a_ptr, b_ptr, c_ptr, K, BLOCK_K: tl.constexpr, MOST: tl.constexpr):
    i, k = tl.arange(0, 64), tl.arange(0, BLOCK_K)
    acc = tl.zeros((64, 64), tl.float32)
    for first in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + i[:, None] * K + (first + k)[None, :])
        b = tl.load(b_ptr + i[None, :] * K + (first + k)[:, None])
        acc = tl.dot(a, b, acc, max_num_imprecise_acc=MOST)
    tl.store(c_ptr + i[:, None] * 64 + i[None, :], acc)


def lost(most: int | None, block: int) -> float:
    """How much is missing of 65536 + 1023."""
    a = torch.ones(64, 1024, device="cuda")
    a[:, 0] = 256
    b = a.to(torch.float8_e4m3fn)
    c = torch.full((64, 64), float("nan"), device="cuda")
    kernel[(1,)](b, b, c, 1024, BLOCK_K=block, MOST=most)
    assert bool((c == c[0, 0]).all())
    return 65536 + 1023 - float(c[0, 0])


@pytest.mark.parametrize("block", [64, 128])
def test_sums_are_as_exact_as_was_asked_for(block):
    # Of the first 32, or of the first block, ones are lost beside 65536.
    assert 0 <= lost(0, block) < 32
    assert lost(32, block) == lost(0, block)
    assert 0 <= lost(block, block) < block
    if torch.cuda.get_device_capability() == (9, 0):
        assert lost(None, block) > 512


@pytest.mark.parametrize("tensor_maps", [False, True])
@pytest.mark.parametrize("bk, imprecise", [(32, 32), (128, 32), (128, 64)])
def test_bound_on_imprecise_sums_of_float8(bk, imprecise, tensor_maps):
    """Beside 2^14 the tensor cores drop what is below 1; accumulators of float32 do not."""
    k = 1024
    a, b = torch.full((64, k), 0.5, device="cuda"), torch.full((64, k), 0.5, device="cuda")
    a[:, :64], b[:, :64] = 0, 0
    a[:, 0], b[:, 0] = 128, 128
    a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    results = []
    for bound in (imprecise, None):
        c = torch.full((64, 64), -99.0, device="cuda")
        kernel[(1,)](a, b, c, k, BLOCK_K=bk, MOST=bound, tensor_maps=tensor_maps)
        results.append(c)
    assert bool((results[0] == 128 * 128 + 0.25 * (k - 64)).all())
    # Otherwise this test would see nothing.
    assert bool((results[1] < results[0]).all())
