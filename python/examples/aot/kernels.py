# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two kernels for programs in C and C++ (main.c, main.cpp, main_gpu.c).

    python -m tessera build kernels.py:scale kernels.py:softmax --name kernels -o out \
        -s "scale=*fp32:16, fp32, *fp32:16, i32:16, 1024" -s "scale=*fp32, fp32, *fp32, i32, 1024" \
        -s "softmax=*fp32, *fp32, i32, 1024"
    cc -O2 -Iout main.c out/*.c out/*.o -lm -lpthread -o main
"""

from __future__ import annotations

import tessera
import tessera.language as tl


@tessera.jit
def scale(
    x: tl.tensor, factor: tl.tensor, out: tl.tensor, n: tl.tensor, BLOCK: tl.constexpr
) -> None:
    """out = factor * x"""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, factor * tl.load(x + i, mask=i < n), mask=i < n)


@tessera.jit
def softmax(x: tl.tensor, out: tl.tensor, n: tl.tensor, BLOCK: tl.constexpr) -> None:
    """Of rows of up to BLOCK elements, one a program."""
    tl.device_assert(n <= BLOCK, "rows are longer than BLOCK")
    at = tl.program_id(0) * n
    i = tl.arange(0, BLOCK)
    row = tl.load(x + at + i, mask=i < n, other=-float("inf"))
    powers = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + at + i, powers / tl.sum(powers, axis=0), mask=i < n)
