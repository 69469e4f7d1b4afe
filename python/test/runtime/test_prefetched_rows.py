# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which kernels ask for what the next program on their SM loads, and when they load the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu.test_long_rows import softmax

import tessera
import tessera.gpu
import tessera.language as tl
from tessera.compiler import toolchain

PREFETCH = "cp.async.bulk.prefetch.L2.global"


def build(n: int, target: str = "sm_90a", **options: Any) -> str:
    if not toolchain.find_ptxas():
        pytest.skip("there is no ptxas")
    kernel = tessera.compile(
        softmax, f"*bf16:16, *bf16:16, i32, {n}", target=target, num_warps=16, **options
    )
    assert kernel.n_spills == 0
    return kernel.asm["ptx"]


def test_a_row_that_fills_an_sm_is_asked_for() -> None:
    assert build(32768).count(PREFETCH) == 1


def test_nothing_is_asked_for_where_programs_share_an_sm() -> None:
    assert PREFETCH not in build(4096)
    assert PREFETCH not in build(32768, num_ctas=4)


def test_nothing_is_asked_for_where_there_is_no_instruction() -> None:
    assert PREFETCH not in build(16384, target="sm_80", maxnreg=128)


@tessera.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + i, mask=i < n, other=0.0)
    tl.store(out_ptr + row + i, x * tl.sum(x) + x, mask=i < n)


def test_programs_that_have_none_behind_them() -> None:
    """A bound that is negative or beyond the block, and the last programs, ask for nothing."""
    x = np.arange(3 * 32768, dtype=np.float32).reshape(3, 32768) % 7
    for n in (32768, 5):
        rows = np.ascontiguousarray(x[:, :n])
        out = np.zeros_like(rows)
        tessera.gpu.simulate(scale)[(3,)](rows, out, n, BLOCK=32768, num_warps=32).check()
        np.testing.assert_array_equal(out, rows * rows.sum(1, keepdims=True) + rows)
