# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that the tests here tune, and their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

import tessera
import tessera.language as tl


@tessera.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


@tessera.jit
def increment(x_ptr, n, BLOCK: tl.constexpr):
    """Reads and writes the same array."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


@tessera.jit
def accumulate(x_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(sum_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))


@tessera.jit
def work(out_ptr, n, STEPS: tl.constexpr):
    """Takes as long as there are steps, and always computes the same."""
    value = tl.load(out_ptr + 1)
    for _ in range(STEPS * n):
        value = value * 0.5 + 1.0
    tl.store(out_ptr, value * 0 + 7.0)


def blocks(*sizes: int, **more: Any) -> list[tessera.Config]:
    return [tessera.Config({"BLOCK": size}, **more) for size in sizes]


def steps(*counts: int) -> list[tessera.Config]:
    return [tessera.Config({"STEPS": count}) for count in counts]


def grid(meta: Any) -> tuple[int]:
    return (tessera.cdiv(meta["n"], meta["BLOCK"]),)


def numbers(count: int = 1000) -> Any:
    return np.arange(count, dtype=np.float32)
