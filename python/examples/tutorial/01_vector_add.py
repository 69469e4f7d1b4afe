# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tutorial, step 1: vector addition.

Usage: 01_vector_add.py [--plots FOLDER]
"""

# %% [markdown]
# # Tutorial
#
# Four kernels, from adding two vectors to attention. It takes about an hour to read, and you need
# Python and NumPy, but neither a GPU nor any knowledge of one. Each step is a script in
# [`python/examples/tutorial`](../python/examples/tutorial), and this page is the text of the
# scripts. Run them, change them, and see what happens. In a checkout, after `tools/demo`:
#
# ```bash
# source tools/activate    # in each new shell: `python` is the one that finds Tessera
# python python/examples/tutorial/01_vector_add.py
# ```
#
# Each script checks its results and prints a line for each check. An editor that knows cells
# (`# %%`), such as VS Code, PyCharm or Jupyter with jupytext, runs them a cell at a time.
#
# ## 1. Vector addition: programs, tiles and masks
#
# We add two vectors. A loop in Python would do it one element at a time. A *kernel* does it one
# *tile* at a time: a tile is a small array with a fixed number of elements, and an operation on a
# tile acts on all of them.

# %%
from __future__ import annotations

from typing import Any

import numpy as np
from arrays import LIBRARY, check, empty, exact, plot_folder, random

import tessera
import tessera.language as tl
from tessera.testing import Benchmark, do_bench, perf_report


@tessera.jit
def add_kernel(
    x_ptr: tl.tensor, y_ptr: tl.tensor, out_ptr: tl.tensor, n: int, BLOCK: tl.constexpr
) -> None:
    program = tl.program_id(0)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


# %% [markdown]
# `@tessera.jit` marks the function as a kernel. Python never runs its body: Tessera reads the
# source and compiles it when the kernel is first launched.
#
# **A program** is one run of the body. A launch runs the body many times, and these programs
# differ only in the number that `tl.program_id(0)` gives: 0, 1, 2 and so on. Programs do not wait
# for each other and may run in any order, so they can be spread over the cores of a CPU or over a
# GPU. How many there are is called the *grid*.
#
# **A tile** is what `tl.arange(0, BLOCK)` makes: the numbers 0, 1, ..., BLOCK - 1. From it and
# the number of the program we compute `offsets`, the places in the vectors that this program takes
# care of. `x_ptr` is the address of the first element of `x`, so `x_ptr + offsets` is a tile of
# addresses, and `tl.load` fetches the elements that are there.
#
# **A mask** is a tile of booleans that says which elements a load or a store touches. The last
# program usually reaches beyond the end of the vector. Here is a vector of 10 elements with
# `BLOCK = 4`:
#
# ```text
# program          0              1               2
# offsets     0  1  2  3     4  5  6  7      8  9 10 11
# mask        T  T  T  T     T  T  T  T      T  T  F  F
#                                                  └──┴── outside: neither read nor written
# ```
#
# `BLOCK` is annotated as `tl.constexpr`, which means that it is known when the kernel is compiled.
# The extent of a tile has to be. Another value of `BLOCK` is compiled anew. The other annotations
# may be left out: they are there for editors and type checkers.
#
# To launch the kernel, say the grid in square brackets and then pass the arguments. An array
# arrives in the kernel as its address; its length has to be an argument of its own.


# %%
def add(x: Any, y: Any, out: Any, block: int = 1024) -> Any:
    n = int(x.shape[0])
    grid = (tessera.cdiv(n, block),)  # how many blocks it takes: n / block, rounded up
    return add_kernel[grid](x, y, out, n, BLOCK=block)


n = 98_432 + 7
x, y, out = random(n), random(n), empty(n)
add(x, y, out)
check("vector addition", out, exact(x) + exact(y), bound=1e-6)

# %% [markdown]
# The kernel runs where its arrays are: NumPy arrays mean the CPU, and torch, CuPy or JAX arrays in
# the memory of a GPU mean that GPU. All files of this tutorial use GPU arrays if torch finds a GPU
# and NumPy arrays if not; [`arrays.py`](../python/examples/tutorial/arrays.py), from which
# `random`, `empty` and `check` come, is all that differs.
#
# If a kernel computes something that you did not expect, ask the *interpreter*. It runs the same
# kernel slowly and plainly, without any optimisation, and it checks that each access lies within
# its array.

# %%
x, y, out = (np.arange(10, dtype=np.float32) for _ in range(3))
tessera.interpret(add_kernel)[(3,)](x, y, out, 10, BLOCK=4)
assert out.tolist() == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]
print("vector addition: right in the interpreter")

# %% [markdown]
# ### How fast is it?
#
# Adding two numbers costs nothing beside fetching them from memory, so what counts is how many
# bytes per second are moved: two arrays are read and one is written. `tessera.testing` has what is
# needed to measure that. `do_bench` calls a function many times and returns milliseconds, and
# `perf_report` does so for a list of sizes and makes a table and a plot (for which it needs
# matplotlib). Run `python python/examples/tutorial/01_vector_add.py --plots /tmp/plots` to see
# them.


# %%
@perf_report(
    Benchmark(
        x_names=["n"],
        x_vals=[2**i for i in range(12, 24, 2)],
        x_log=True,
        line_arg="who",
        line_vals=["tessera", "library"],
        line_names=["Tessera", LIBRARY],
        ylabel="GB/s",
        plot_name="vector-add",
        args={},
    )
)
def bandwidth(n: int, who: str) -> float:
    x, y, out = random(n), random(n), empty(n)
    work = {"tessera": lambda: add(x, y, out), "library": lambda: x + y}
    milliseconds = do_bench(work[who], warmup=10, rep=50, return_mode="median")
    return float(3 * n * x.itemsize / milliseconds / 1e6)


if folder := plot_folder():
    bandwidth.run(print_data=True, save_path=folder)
