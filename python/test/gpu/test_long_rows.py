# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of which one fills an SM, so that the next program's is asked for: values, on a GPU."""

from __future__ import annotations

from typing import Any

import pytest

import tessera
import tessera.language as tl

pytestmark = pytest.mark.gpu


@tessera.jit
def softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + i, mask=i < n, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row + i, (e / tl.sum(e)).to(out_ptr.dtype.element_ty), mask=i < n)


@pytest.mark.parametrize("n", (32768, 32760, 32761, 20000, 3))
@pytest.mark.parametrize("rows", (1, 132, 133, 700))
@pytest.mark.parametrize("inplace", (False, True))
def test_softmax(n: int, rows: int, inplace: bool) -> None:
    torch: Any = pytest.importorskip("torch")
    x = torch.randn(rows, n, device="cuda", dtype=torch.bfloat16)
    want = torch.softmax(x.float(), 1)
    out = x if inplace else torch.full_like(x, float("nan"))
    softmax[(rows,)](x, out, n, BLOCK=32768, num_warps=16)
    torch.testing.assert_close(out.float(), want, rtol=1e-2, atol=1e-3)
