# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hints about caches, on the copies that loads and stores of a matmul become.

A load in a loop is an instruction of its own at first; copied ahead, by cp.async or by
TMA, it is another, which has to say the same.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl
from tessera.compiler import toolchain


@tessera.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, OF_A: tl.constexpr, CACHE: tl.constexpr,
           OF_C: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns, inner = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        ks = k + inner
        mask_a, mask_b = (rows[:, None] < M) & (ks < K)[None, :], (ks < K)[:, None]
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=mask_a, other=0.0,
                    cache_modifier=CACHE, eviction_policy=OF_A)  # fmt: skip
        b = tl.load(b_ptr + ks[:, None] * N + columns[None, :], mask=mask_b, other=0.0)
        acc = tl.dot(a, b, acc)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc, mask=mask, eviction_policy=OF_C)


WAYS = {
    "sm_80": {"target": "sm_80"},
    "copies": {"target": "sm_90a", "tensor_maps": False},
    "maps": {"target": "sm_90a"},
}


def build(way: str, of_a: str = "", cache: str = "", of_c: str = "", alignment: int = 16) -> Any:
    types = [f"*fp16:{alignment}"] * 2 + ["*fp32:16"] + ["i32:16"] * 3
    signature = dict(zip(["a_ptr", "b_ptr", "c_ptr", "M", "N", "K"], types))
    meta = {"OF_A": of_a, "CACHE": cache, "OF_C": of_c, "BM": 64, "BN": 64, "BK": 32}
    return tessera.compile(matmul, signature, constexprs=meta, num_stages=3, **WAYS[way])


def copies(kernel: Any) -> "list[str]":
    """The instructions that copy to shared memory, by what they say of caches."""
    ptx = kernel.asm["ptx"]
    pattern = r"cp\.async\.(c[ag])\.shared|cp\.async\.bulk\.tensor\.\dd\.shared"
    lines = [line for line in ptx.splitlines() if re.search(pattern, line)]
    return ["hint" if "L2::cache_hint" in line else "plain" for line in lines]


@pytest.mark.skipif(not toolchain.find_ptxas(), reason="there is no ptxas")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", ["evict_first", "evict_last"])
def test_eviction_policies_go_with_the_copies(way, policy):
    plain, kernel = build(way), build(way, of_a=policy)
    assert "createpolicy" not in plain.asm["ptx"] and "hint" not in copies(plain)
    ptx = kernel.asm["ptx"]
    assert f"createpolicy.fractional.L2::{policy}.b64" in ptx
    # Of the two operands one has the hint.
    assert copies(kernel).count("hint") == copies(kernel).count("plain") > 0
    # It is made once, not for each iteration.
    assert ptx.count("createpolicy") == 1


@pytest.mark.skipif(not toolchain.find_ptxas(), reason="there is no ptxas")
@pytest.mark.parametrize("way", WAYS)
def test_what_is_streamed_leaves_first(way):
    kernel = build(way, cache=".cs")
    assert "createpolicy.fractional.L2::evict_first.b64" in kernel.asm["ptx"]
    assert copies(kernel).count("hint") == copies(kernel).count("plain") > 0


@pytest.mark.skipif(not toolchain.find_ptxas(), reason="there is no ptxas")
@pytest.mark.parametrize("way", ["sm_80", "copies"])
def test_which_caches_hold_a_copy(way):
    by_default, first = build(way), build(way, cache=".ca")
    assert "cp.async.ca" not in by_default.asm["ptx"]
    assert "cp.async.ca" in first.asm["ptx"] and "cp.async.cg" in first.asm["ptx"]
    narrow = build(way, cache=".cg", alignment=8)
    (remark,) = {text for text in narrow.remarks if "L1 cache" in text}
    line = matmul.fn.__code__.co_firstlineno + 9
    assert remark.startswith(f"{__file__}:{line}:") and "copies of 8 bytes" in remark
    assert not [text for text in build(way, cache=".cg").remarks if "first-level" in text]


@pytest.mark.skipif(not toolchain.find_ptxas(), reason="there is no ptxas")
def test_stores_by_the_copy_engine_keep_their_policy():
    kernel = build("maps", of_c="evict_first")
    stores = [line for line in kernel.asm["ptx"].splitlines() if ".global.shared::cta" in line]
    assert stores and all("L2::cache_hint" in line for line in stores)
    assert "createpolicy.fractional.L2::evict_first.b64" in kernel.asm["ptx"]
    plain = build("copies", of_c="evict_first").asm["ptx"]
    assert "st.global.L1::evict_first" in plain


@pytest.mark.parametrize("way", WAYS)
def test_hints_change_no_value(way):
    rng = np.random.default_rng(0)
    M, N, K = 72, 64, 96
    a, b = rng.integers(-4, 5, (M, K)).astype("f2"), rng.integers(-4, 5, (K, N)).astype("f2")
    for of_a, cache in (("evict_last", ""), ("", ".cs"), ("evict_first", ".ca")):
        c = np.full((M, N), np.nan, "f4")
        tessera.gpu.simulate(matmul)[(2, 1)](
            a, b, c, M, N, K, OF_A=of_a, CACHE=cache, OF_C="evict_first", BM=64, BN=64, BK=32,
            num_stages=3, **WAYS[way],
        ).check()  # fmt: skip
        np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8"))
