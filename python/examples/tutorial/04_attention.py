# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tutorial, step 4: attention, with tile sizes chosen by measurement.

Usage: 04_attention.py [--plots FOLDER]
"""

# %% [markdown]
# ## 4. Attention: everything together, and tuned
#
# Attention computes `softmax(Q Kᵀ · scale) V`. For a sequence of T tokens, `Q Kᵀ` has T × T
# elements, far more than the inputs and the result. *Flash attention* never stores that matrix.
# One program takes a block of rows of Q and walks over K and V in blocks of columns:
#
# ```text
#               K and V, in blocks of BLOCK_N tokens
#               ┌──────┬──────┬──────┬──────┐
#     Q block   │ n=0  │ n=1  │ n=2  │ n=3  │        each iteration:
#   ┌─────────┐ ├──────┼──────┼──────┼──────┤        scores  = q @ kᵀ          (tl.dot)
#   │ BLOCK_M │ │  ──────────────────────►  │        weights = online softmax  (step 2)
#   └─────────┘ └──────┴──────┴──────┴──────┘        acc    += weights @ v     (tl.dot)
# ```
#
# It is the online softmax of step 2, for `BLOCK_M` rows at once, and the dot of step 3, twice.
# When a larger maximum is found, both the sum and the accumulator are scaled down to it.
#
# With `CAUSAL`, a token sees only itself and the tokens before it. The loop then ends at the
# diagonal, and `tl.where` hides what lies to the right of it within a tile.
#
# `BLOCK_M` and `BLOCK_N` may be anything, and the result is the same. How fast the kernel is
# depends on them, on the machine and on the sizes. `@tessera.autotune` tries a list of
# configurations at the first launch, and again whenever an argument of `key` changes.

# %%
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from arrays import LIBRARY, ON_GPU, check, empty, exact, plot_folder, random, torch

import tessera
import tessera.language as tl
from tessera.testing import Benchmark, do_bench, perf_report


@tessera.autotune(
    configs=[
        tessera.Config({"BLOCK_M": 32, "BLOCK_N": 64}, num_warps=4),
        tessera.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=4),
        tessera.Config({"BLOCK_M": 128, "BLOCK_N": 64}, num_warps=8),
        tessera.Config({"BLOCK_M": 128, "BLOCK_N": 128}, num_warps=8),
    ],
    key=["length", "HEAD", "CAUSAL"],
)
@tessera.jit
def attention_kernel(
    q_ptr: tl.tensor, k_ptr: tl.tensor, v_ptr: tl.tensor, out_ptr: tl.tensor, length: tl.tensor,
    scale: float,
    HEAD: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
) -> None:  # fmt: skip
    start_m = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64) * length * HEAD
    rows = start_m + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD)
    q_offsets = head + rows[:, None] * HEAD + dims[None, :]
    q = tl.load(q_ptr + q_offsets, mask=rows[:, None] < length, other=0.0)

    highest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    end = tl.minimum(length, start_m + BLOCK_M) if CAUSAL else length
    for start_n in range(0, end, BLOCK_N):
        columns = start_n + tl.arange(0, BLOCK_N)
        kv_offsets = head + columns[:, None] * HEAD + dims[None, :]
        k = tl.load(k_ptr + kv_offsets, mask=columns[:, None] < length, other=0.0)
        v = tl.load(v_ptr + kv_offsets, mask=columns[:, None] < length, other=0.0)
        # exp(x) is exp2(x * log2(e)), and exp2 is the cheaper of the two.
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * 1.4426950408889634)
        visible = columns[None, :] < length
        if CAUSAL:
            visible = visible & (rows[:, None] >= columns[None, :])
        scores = tl.where(visible, scores, -float("inf"))
        new_highest = tl.maximum(highest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_highest[:, None])
        rescale = tl.exp2(highest - new_highest)
        total = total * rescale + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(v.dtype), v, acc * rescale[:, None], input_precision="ieee")
        highest = new_highest
    tl.store(out_ptr + q_offsets, acc / total[:, None], mask=rows[:, None] < length)


# %% [markdown]
# - The parameters that a configuration sets (`BLOCK_M`, `BLOCK_N`) are not passed at the launch.
#   So the grid cannot be a tuple of numbers: it is a function of the parameters that were chosen.
# - `num_warps` is the number of groups of 32 threads that a program has on a GPU. On a CPU it has
#   no meaning, and configurations that differ in it alone are measured once.
# - Column 0 is visible to every row, so `highest` is a number after the first iteration, and
#   `highest - new_highest` never becomes the difference of two infinities.


# %%
def attention(q: Any, k: Any, v: Any, out: Any, causal: bool) -> None:
    heads, length, head = map(int, q.shape)

    def grid(meta: Mapping[str, int]) -> tuple[int, int]:
        return tessera.cdiv(length, meta["BLOCK_M"]), heads

    attention_kernel[grid](q, k, v, out, length, head**-0.5, HEAD=head, CAUSAL=causal)


Array = np.ndarray[Any, Any]


def reference(q: Array, k: Array, v: Array, causal: bool) -> Array:
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[2])
    if causal:
        scores += np.triu(np.full(scores.shape[1:], -np.inf, scores.dtype), 1)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    result: Array = weights / weights.sum(axis=2, keepdims=True) @ v
    return result


heads, length, head = 4, 500, 64
q, k, v = (random(heads, length, head, half=True) for _ in range(3))
out = empty(heads, length, head)
for causal in (False, True):
    attention(q, k, v, out, causal)
    expected = reference(exact(q), exact(k), exact(v), causal)
    # With 16-bit arrays the weights are rounded to 16 bits before they multiply v.
    check("causal attention" if causal else "attention", out, expected, 2e-3 if ON_GPU else 1e-5)
    print(f"  tuned: {attention_kernel.best_config}")

# %% [markdown]
# The choice is kept on disk, so the next process that launches this kernel with these sizes on
# this machine measures nothing. [TuneAKernel](HowTo/TuneAKernel.md) says how to leave out
# configurations that cannot win, how to search a larger space, and how to move results to another
# machine.


# %%
@perf_report(
    Benchmark(
        x_names=["length"],
        x_vals=[256, 512, 1024],
        line_arg="who",
        line_vals=["tessera", "library"],
        line_names=["Tessera", LIBRARY],
        ylabel="TFLOP/s",
        plot_name="attention",
        args={"heads": 4, "head": 64},
    )
)
def speed(heads: int, length: int, head: int, who: str) -> float:
    q, k, v = (random(heads, length, head, half=True) for _ in range(3))
    out = empty(heads, length, head)

    def library() -> Any:
        if not ON_GPU:
            return reference(q, k, v, False)
        return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])

    work = {"tessera": lambda: attention(q, k, v, out, False), "library": library}
    milliseconds = do_bench(work[who], warmup=10, rep=50, return_mode="median")
    return float(4 * heads * length**2 * head / milliseconds / 1e9)


if folder := plot_folder():
    speed.run(print_data=True, save_path=folder)

# %% [markdown]
# ## How these kernels compare
#
# This is how kernels of these four kinds do on the machines of [Benchmarks](Benchmarks.md), where the
# figures and the way in which they were measured are:
#
# ![Bar charts of Tessera's speed relative to cuBLAS, cuDNN, NumPy and torch](images/speed.svg)
#
# ## Where to go from here
#
# - [The language](Language.md) has every function, [the examples](../python/examples) have
#   more kernels: layer norm, scatter, deformable attention.
# - [Debugging](Debugging.md) is for a kernel that computes something wrong,
#   [FastMatmul](HowTo/FastMatmul.md) for a matmul or attention that is slower on a GPU than it
#   should be.
# - Coming from [Triton](HowTo/ComingFromTriton.md), or from
#   [Numba and CUDA](HowTo/ComingFromNumbaAndCUDA.md)?
