# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`max_num_imprecise_acc`: after how many products of 8-bit floats a sum is one of float32.

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
