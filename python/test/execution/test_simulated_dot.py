# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dots by multiply-adds on a GPU, simulated: values, races, and the banks of memory.

`deterministic` keeps dots off the tensor cores. Operands come to shared memory in as
many pieces along k as it takes.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from execution.test_dot import dot

import tessera
import tessera.gpu
import tessera.language as tl

CASES = [
    ((1, 16, 32), "float32", 4),
    ((48, 24, 8), "float32", 4),
    ((64, 32, 128), "float32", 4),
    ((96, 32, 160), "float16", 4),
    ((32, 32, 96), "float64", 4),
    ((64, 64, 64), "int8", 4),
    ((16, 16, 16), "float64", 1),
    ((32, 64, 512), "float32", 2),
    ((128, 128, 128), "float64", 8),  # 256 KiB of operands
]


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("shape,dtype,num_warps", CASES)
def test_dots_are_exact_and_meet_in_no_bank(rng, shape, dtype, num_warps, trans_a, trans_b):
    m, n, k = shape
    a = rng.integers(-4, 5, (m, k)).astype(dtype)
    b = rng.integers(-4, 5, (k, n)).astype(dtype)
    out = {"int8": "int32", "float64": "float64"}.get(dtype, "float32")
    c = np.full((m, n), 77, out)
    simulation = tessera.gpu.simulate(dot)[(1,)](
        np.ascontiguousarray(a.T) if trans_a else a,
        np.ascontiguousarray(b.T) if trans_b else b,
        c,
        M=m,
        N=n,
        K=k,
        TRANS_A=trans_a,
        TRANS_B=trans_b,
        ACC=False,
        target="sm_90a",
        num_warps=num_warps,
        deterministic=True,
    )
    simulation.check()
    np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8"))
    assert sum(s.wavefronts for s in simulation.shared) == sum(s.ideal for s in simulation.shared)


@tessera.jit
def cumulate(x_ptr, o_ptr, T, BT: tl.constexpr, S: tl.constexpr):
    """A triangle of ones, which no iteration changes, times a tile that is added up, too."""
    i, s = tl.arange(0, BT), tl.arange(0, S)
    ones = tl.where(i[:, None] >= i[None, :], 1.0, 0.0)
    before = tl.zeros((S,), dtype=tl.float32)
    for start in range(0, T, BT):
        place = (start + i)[:, None] * S + s[None, :]
        x = tl.load(x_ptr + place, mask=(start + i)[:, None] < T, other=0.0)
        y = tl.dot(ones, x, input_precision="ieee") + before[None, :]
        tl.store(o_ptr + place, y, mask=(start + i)[:, None] < T)
        before += tl.sum(x, 0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rows", [0, 1, 16, 70])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_invariant_operands(rng, rows, target):
    """The ones are stored once, before the loop, and all reads of tiles are without conflicts."""
    x = rng.integers(-4, 5, (rows, 32)).astype("f4")
    o = np.zeros((rows + 1, 32), "f4")
    simulation = tessera.gpu.simulate(cumulate)[(1,)](
        x, o, rows, BT=16, S=32, target=target, num_warps=2
    )
    simulation.check()
    np.testing.assert_array_equal(o[:rows], x.cumsum(0))
    assert not o[rows:].any()
    kernel = tessera.compile(
        cumulate,
        "*fp32:16, *fp32:16, i32",
        constexprs={"BT": 16, "S": 32},
        target=target,
        num_warps=2,
    )
    before, _, loop = kernel.asm["tilegpu"].partition("scf.for")
    assert re.search(r"local_alloc %", before) and "local_alloc" not in loop
    assert "along 1" in loop and "along 0" in loop
