# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which kernels ask for the row that is loaded next on their SM, and when they load the rest."""

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


@tessera.jit
def gradients(x_ptr, w_ptr, out_ptr, sums_ptr, rows, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0).to(tl.float32)
        y = x * tl.sum(x * w)
        tl.store(out_ptr + row * n + i, y, mask=i < n)
        sums += y
    tl.store(sums_ptr + tl.program_id(0) * n + i, sums, mask=i < n)


@pytest.mark.parametrize("num_ctas", [1, 2])
def test_loops_ask_for_the_row_of_their_next_iteration(num_ctas: int) -> None:
    if not toolchain.find_ptxas():
        pytest.skip("there is no ptxas")
    signature = "*bf16:16, *bf16:16, *fp32:16, *fp32:16, i32, i32:16, 32768"
    kernel = tessera.compile(gradients, signature, target="sm_90a", num_warps=16, num_ctas=num_ctas)
    assert kernel.asm["ptx"].count(PREFETCH) == 1
    # Parts of a quarter, and rows of 4096, leave room for other programs.
    for columns, blocks in (("32768", 4), ("4096", 1)):
        kernel = tessera.compile(
            gradients,
            signature.replace("32768", columns),
            target="sm_90a",
            num_warps=16,
            num_ctas=blocks,
        )
        assert PREFETCH not in kernel.asm["ptx"]


@pytest.mark.parametrize("num_ctas", [1, 4])
@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("n", [32768, 5, 20000])
def test_loops_that_end(num_ctas: int, rows: int, n: int) -> None:
    """The last iteration asks for nothing, nor does a block of a cluster whose part is masked off."""
    x = np.arange(rows * n, dtype=np.float32).reshape(rows, n) % 3
    w = np.arange(n, dtype=np.float32) % 2
    out, sums = np.zeros_like(x), np.full((2, n), -1, np.float32)
    run = tessera.gpu.simulate(gradients)[(2,)](
        x, w, out, sums, rows, n, BLOCK=32768, num_warps=8, num_ctas=num_ctas
    )
    run.check()
    want = x * (x * w).sum(1, keepdims=True)
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(sums, [want[0::2].sum(0), want[1::2].sum(0)])
