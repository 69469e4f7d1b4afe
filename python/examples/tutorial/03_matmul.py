# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tutorial, step 3: matrix multiplication.

Usage: 03_matmul.py [--plots FOLDER]
"""

# %% [markdown]
# ## 3. Matrix multiplication: tiles in two dimensions, and dot
#
# `C = A @ B` for matrices of M × K and K × N. One program computes one tile of C, of
# `BLOCK_M` × `BLOCK_N` elements. For that it needs a band of rows of A and a band of columns of B,
# which it goes through in steps of `BLOCK_K`:
#
# ```text
#                               B   ┌──────────┬─────┬──────────┐
#                                   │          │     │          │  ▲
#                                   │          ├─────┤          │  │
#                                   │          │  b  │ BLOCK_K  │  K
#                                   │          ├─────┤          │  │
#                                   │          │     │          │  ▼
#                                   └──────────┴─────┴──────────┘
#     A   ┌────────────────────┐  C ┌──────────┬─────┬──────────┐
#         │                    │    │          │     │          │
#         ├───────┬─────┬──────┤    ├──────────┼─────┤          │
#         │       │  a  │      │    │          │ acc │ BLOCK_M  │
#         ├───────┴─────┴──────┤    ├──────────┼─────┤          │
#         │        BLOCK_K     │    │        BLOCK_N │          │
#         └────────────────────┘    └──────────┴─────┴──────────┘
#          ◄─────── K ────────►
#
#          in each iteration:   acc += a @ b
# ```

# %%
from __future__ import annotations

from typing import Any

import numpy as np
from arrays import LIBRARY, check, empty, exact, plot_folder, random

import tessera
import tessera.language as tl
from tessera.testing import Benchmark, do_bench, perf_report


@tessera.jit
def matmul_kernel(
    a_ptr: tl.tensor, b_ptr: tl.tensor, c_ptr: tl.tensor, M: int, N: int, K: int,
    stride_am: int, stride_bk: int, stride_cm: int,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, RELU: tl.constexpr,
) -> None:  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * stride_bk + columns[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (inner[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=(inner[:, None] < K - k) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    if RELU:
        acc = tl.maximum(acc, 0.0)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :]
    tl.store(c_ptrs, acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


# %% [markdown]
# - `rows[:, None]` makes a column of the tile `rows`, and `inner[None, :]` makes a row of `inner`.
#   Their sum has two dimensions, as in NumPy: this is how a tile of addresses is made.
# - `tl.dot(a, b, acc)` multiplies two tiles and adds the result to `acc`, the *accumulator*. On a
#   GPU this is what the tensor cores do, on a CPU blocks of multiply-adds. The accumulator has 32
#   bits even if `a` and `b` have 16, so that errors do not add up.
# - `input_precision="ieee"` matters for float32 operands on a GPU: without it their last 13 bits
#   are dropped, so that tensor cores can multiply them (TF32).
# - Masks have two dimensions as well. `other=0.0` makes what lies beyond the end of K count for
#   nothing in the sum.
# - `RELU` is a `constexpr`, so the `if` is decided when the kernel is compiled, and the code of
#   the branch that is not taken does not exist.
# - The grid has two dimensions here: `tl.program_id(0)` numbers the tiles of C from top to bottom
#   and `tl.program_id(1)` from left to right.
#
# That is all. You do not say how a GPU is to bring tiles into its shared memory, when, with which
# instructions, or what each thread does. The compiler finds that out.


# %%
def matmul(
    a: Any, b: Any, c: Any, relu: bool = False, blocks: tuple[int, int, int] = (64, 64, 64)
) -> Any:
    M, K, N = int(a.shape[0]), int(a.shape[1]), int(b.shape[1])
    grid = (tessera.cdiv(M, blocks[0]), tessera.cdiv(N, blocks[1]))
    return matmul_kernel[grid](
        a, b, c, M, N, K, K, N, N,
        BLOCK_M=blocks[0], BLOCK_N=blocks[1], BLOCK_K=blocks[2], RELU=relu,
    )  # fmt: skip


a, b, c = random(300, 400, half=True), random(400, 200, half=True), empty(300, 200)
expected = exact(a) @ exact(b)
matmul(a, b, c)
check("matmul", c, expected, bound=1e-4)
compiled = matmul(a, b, c, relu=True)
check("matmul with ReLU", c, np.maximum(expected, 0), bound=1e-4)

# %% [markdown]
# A launch returns the compiled kernel. Its *remarks* say what the compiler decided, with the line
# that each of them is about, and often what would be better.

# %%
print(f"matmul: {len(compiled.remarks)} remarks, the first is")
print(f"  {compiled.remarks[0]}" if compiled.remarks else "  none")

# %% [markdown]
# ### How fast is it?
#
# Multiplying M × K by K × N takes `2 M N K` operations, and each element that was loaded is used
# many times. So this time operations per second count, not bytes.


# %%
@perf_report(
    Benchmark(
        x_names=["size"],
        x_vals=[128, 256, 512, 1024],
        line_arg="who",
        line_vals=["tessera", "library"],
        line_names=["Tessera", LIBRARY],
        ylabel="TFLOP/s",
        plot_name="matmul",
        args={},
    )
)
def speed(size: int, who: str) -> float:
    a, b, c = random(size, size, half=True), random(size, size, half=True), empty(size, size)
    work = {
        "tessera": lambda: matmul(a, b, c, blocks=(128, 128, 64)),
        "library": lambda: a @ b,
    }
    milliseconds = do_bench(work[who], warmup=10, rep=50, return_mode="median")
    return float(2 * size**3 / milliseconds / 1e9)


if folder := plot_folder():
    speed.run(print_data=True, save_path=folder)
