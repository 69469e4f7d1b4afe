# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tutorial, step 2: softmax over the rows of a matrix.

Usage: 02_softmax.py [--plots FOLDER]
"""

# %% [markdown]
# ## 2. Softmax: rows, reductions and fusion
#
# The softmax of a row is `exp(x - max(x)) / sum(exp(x - max(x)))`. Written with whole arrays, as
# in NumPy, each of these operations reads the matrix from memory and writes a new one. A kernel
# can read a row once, do all of the work in registers and caches, and write the result once. This
# is called *fusion*, and it is the main reason to write kernels of your own.

# %%
from __future__ import annotations

from typing import Any

import numpy as np
from arrays import LIBRARY, ON_GPU, check, empty, exact, plot_folder, random

import tessera
import tessera.language as tl
from tessera.testing import Benchmark, do_bench, perf_report


@tessera.jit
def softmax_kernel(
    x_ptr: tl.tensor, out_ptr: tl.tensor, row_stride: int, columns: int, BLOCK: tl.constexpr
) -> None:
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * row_stride + offsets, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    result = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * row_stride + offsets, result, mask=mask)


# %% [markdown]
# Here one program computes one row:
#
# ```text
#                  columns = 5, BLOCK = 8
#              ┌────────────────┬──────────┐
# program 0    │ x  x  x  x  x  │ ∞  ∞  ∞  │     ∞ stands for `other`, -infinity:
# program 1    │ x  x  x  x  x  │ ∞  ∞  ∞  │     what masked-off lanes of the load get
# program 2    │ x  x  x  x  x  │ ∞  ∞  ∞  │
#              └────────────────┴──────────┘
#                mask is true     false
# ```
#
# - Memory has no rows. An element is found by its distance from the first one, which is
#   `row * row_stride + column`. The *stride* of a dimension is the number of elements from one
#   index to the next.
# - An extent of a tile is a power of two (or a small odd number times one). `next_power_of_2`
#   rounds the length of the row up, and the mask cuts off the rest. A single element of a tile is
#   called a *lane*.
# - `tl.max` and `tl.sum` are *reductions*: they make one number of all lanes. The masked-off lanes
#   take part, so `other` has to be a value that changes nothing: -infinity is never the maximum,
#   and `exp` makes a 0 of it for the sum.


# %%
def softmax(x: Any, out: Any) -> None:
    rows, columns = x.shape
    block = tessera.next_power_of_2(columns)
    softmax_kernel[(rows,)](x, out, columns, columns, BLOCK=block)


def reference(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    numerator = np.exp(x - x.max(axis=1, keepdims=True))
    result: np.ndarray[Any, Any] = numerator / numerator.sum(axis=1, keepdims=True)
    return result


x, out = random(1823, 781), empty(1823, 781)
softmax(x, out)
check("softmax", out, reference(exact(x)), bound=1e-6)

# %% [markdown]
# ### Rows of any length
#
# A row that is too long for one tile is taken in pieces, in a loop. But the maximum has to be
# known before the first `exp`. There is a way that reads the row only once for both: keep the
# largest value so far and the sum so far, and when a piece brings a larger value, scale the old
# sum down to it. This is called the *online softmax*, and step 4 is built on it.
#
# ```text
# after some pieces      highest = 3.0        total = Σ exp(x - 3.0)
# a piece has a 5.0      highest = 5.0        total = total · exp(3.0 - 5.0) + Σ exp(piece - 5.0)
# ```


# %%
@tessera.jit
def long_softmax_kernel(
    x_ptr: tl.tensor, out_ptr: tl.tensor, row_stride: int, columns: int, BLOCK: tl.constexpr
) -> None:
    row = tl.program_id(0)
    x_row = x_ptr + row * row_stride
    out_row = out_ptr + row * row_stride
    highest = tl.full((), -float("inf"), tl.float32)  # a tile without dimensions: a number
    total = tl.full((), 0.0, tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + offsets, mask=offsets < columns, other=-float("inf"))
        new_highest = tl.maximum(highest, tl.max(x, axis=0))
        total = total * tl.exp(highest - new_highest) + tl.sum(tl.exp(x - new_highest), axis=0)
        highest = new_highest
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + offsets, mask=offsets < columns)
        tl.store(out_row + offsets, tl.exp(x - highest) / total, mask=offsets < columns)


x, out = random(16, 100_003), empty(16, 100_003)
long_softmax_kernel[(16,)](x, out, 100_003, 100_003, BLOCK=4096)
check("softmax of long rows", out, reference(exact(x)), bound=1e-6)

# %% [markdown]
# `highest` and `total` are carried from one iteration to the next, as in Python. They have to
# keep their type: what is a float32 number before the loop stays one.


# %%
@perf_report(
    Benchmark(
        x_names=["columns"],
        x_vals=[256, 512, 1024, 2048, 4096],
        line_arg="who",
        line_vals=["tessera", "library"],
        line_names=["Tessera", LIBRARY],
        ylabel="GB/s",
        plot_name="softmax",
        args={"rows": 1024},
    )
)
def bandwidth(rows: int, columns: int, who: str) -> float:
    x, out = random(rows, columns), empty(rows, columns)
    library = (lambda: x.softmax(1)) if ON_GPU else (lambda: reference(x))
    work = {"tessera": lambda: softmax(x, out), "library": library}
    milliseconds = do_bench(work[who], warmup=10, rep=50, return_mode="median")
    return float(2 * rows * columns * x.itemsize / milliseconds / 1e6)


if folder := plot_folder():
    bandwidth.run(print_data=True, save_path=folder)
