# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels compiled at once, by threads of one process: nothing is shared, nothing mixed up."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import tessera
import tessera.language as tl
from tessera.compiler import toolchain

pytestmark = pytest.mark.skipif(not toolchain.find_ptxas(), reason="there is no ptxas")


@tessera.jit
def normalize(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + i, mask=i < n, other=float("-inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + tl.program_id(0) * n + i, e / tl.sum(e), mask=i < n)


def build(block: int) -> Any:
    return tessera.compile(normalize, f"*fp32:16, *fp32:16, i32:16, {block}", target="sm_90a")


def test_threads_compile_what_one_compiles(monkeypatch):
    monkeypatch.setenv("TESSERA_CACHE", "off")
    blocks = [128 << index for index in range(6)]
    alone = [build(block).asm["cubin"] for block in blocks]
    with ThreadPoolExecutor(len(blocks)) as pool:
        together = [kernel.asm["cubin"] for kernel in pool.map(build, blocks)]
    assert together == alone
    assert len(set(alone)) == len(blocks)
