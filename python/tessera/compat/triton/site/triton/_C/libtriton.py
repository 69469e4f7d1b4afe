# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of Triton's C++ library that programs use: cuBLAS, called through torch, and the IR of
kernels, as far as torch.compile needs it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from triton.compiler.effects import Context, load_dialects

__all__ = ["ir", "nvidia"]


class CublasLt:
    """Products by NVIDIA's library, to compare with. `workspace` is not used: torch has its own."""

    def __init__(self, workspace: Any) -> None:
        self.workspace = workspace

    def matmul(self, a: Any, b: Any, c: Any) -> None:
        """Writes the product of `a` (M, K) and the transposed `b` (N, K) to `c`."""
        import torch

        if a.dtype.itemsize > 1:
            torch.matmul(a, b.T, out=c)
            return
        one = torch.ones((), device=a.device)
        torch._scaled_mm(a, b.T, scale_a=one, scale_b=one, out_dtype=c.dtype, out=c)


ir = SimpleNamespace(context=Context, load_dialects=load_dialects)
"""Enough of the IR for torch.compile to ask what a kernel stores to."""

nvidia = SimpleNamespace(cublas=SimpleNamespace(CublasLt=CublasLt))
