# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of dots with few columns, of which two iterations are done as one."""

from __future__ import annotations

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl


@tessera.jit
def gradients(
    q_ptr, k_ptr, v_ptr, do_ptr, m_ptr, delta_ptr, dk_ptr, dv_ptr, T, stride,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, COUNTED: tl.constexpr,
    GAP: tl.constexpr = 0,
):  # fmt: skip
    """Of keys and values, of the rows from the program's own columns on."""
    columns, ds = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, D)
    rows = tl.arange(0, BM)
    k = tl.load(k_ptr + columns[:, None] * stride + ds[None, :])
    v = tl.load(v_ptr + columns[:, None] * stride + ds[None, :])
    dk = tl.zeros((BN, D), tl.float32)
    dv = tl.zeros((BN, D), tl.float32)
    first = tl.program_id(0) * BN
    at = first
    q_ptrs = q_ptr + (first + rows)[None, :] * stride + ds[:, None]
    do_ptrs = do_ptr + (first + rows)[:, None] * stride + ds[None, :]
    for _ in range((T - first) // BM):
        qt = tl.load(q_ptrs)
        m = tl.load(m_ptr + at + rows)
        p = tl.exp2(tl.dot(k, qt) - m[None, :])
        do = tl.load(do_ptrs)
        dv += tl.dot(p.to(do.dtype), do)
        delta = tl.load(delta_ptr + at + rows)
        g = p * (tl.dot(v, tl.trans(do)) - delta[None, :])
        if COUNTED:  # a row is not the same in both halves of a pair
            g *= rows[None, :].to(tl.float32)
        dk += tl.dot(g.to(qt.dtype), tl.trans(qt))
        at += BM
        q_ptrs += (BM + GAP) * stride
        do_ptrs += (BM + GAP) * stride
    out = columns[:, None] * stride + ds[None, :]
    tl.store(dv_ptr + out, dv.to(dv_ptr.dtype.element_ty))
    tl.store(dk_ptr + out, dk.to(dk_ptr.dtype.element_ty))


BN, D = 128, 128


def make(rng, T):
    q, k, v, do = (rng.standard_normal((T, D)).astype("f2") / 8 for _ in range(4))
    m, delta = (rng.standard_normal(T).astype("f4") for _ in range(2))
    return q, k, v, do, m, delta


def by_numpy(q, k, v, do, m, delta):
    q, k, v, do = (x.astype("f8") for x in (q, k, v, do))
    p = np.exp2(k @ q.T - m)
    # Each block of columns has the rows from its own first one on.
    p *= np.arange(len(q))[None, :] >= (np.arange(len(k)) // BN * BN)[:, None]
    return (p * (v @ do.T - delta)) @ q, p @ do


def count_rows(kernel) -> list[int]:
    """The rows of an iteration, by the remarks about dots with the keys."""
    remarks = "\n".join(map(str, kernel.remarks))
    return [rows for rows in (16, 32, 64) if f"x{rows}x{D} of f16" in remarks]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("BM, T", [(16, 384), (32, 384), (32, 288)])
def test_two_iterations_are_one(rng, BM, T):
    """Another variant does an odd number of iterations, of the last grid."""
    arrays = make(rng, T)
    dk, dv = (np.full((T, D), np.nan, "f4") for _ in range(2))
    programs = T // BN
    simulation = tessera.gpu.simulate(gradients)[(programs,)](
        *arrays,
        dk,
        dv,
        T,
        D,
        BM=BM,
        BN=BN,
        D=D,
        COUNTED=False,
        num_warps=8,
        target="sm_90a",
        tensor_maps=True,
    )
    simulation.check()
    done = programs * BN
    for got, want in zip((dk, dv), by_numpy(*arrays)):
        np.testing.assert_allclose(got[:done], want[:done], atol=2e-2)


def compile_gradients(**options):
    types = ", ".join(["*fp16:16"] * 4 + ["*fp32:16"] * 4 + ["i32:16", "i32:16"])
    values = {"BM": 32, "BN": BN, "D": D, "COUNTED": False, "GAP": 0}
    values.update((name, options.pop(name)) for name in list(options) if name.isupper())
    options = {"target": "sm_90a", "num_warps": 8, **options}
    return tessera.compile(gradients, types, constexprs=values, **options)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("BM, rows", [(16, 64), (32, 64), (64, 64)])
def test_few_rows_are_paired(BM, rows):
    kernel = compile_gradients(BM=BM)
    assert count_rows(kernel) == [rows]
    even = [bound for bound in kernel.metadata["program_bounds"] if "rem64" in bound]
    assert len(even) == (BM != rows)
    assert all(bound.endswith(f" {rows}))") for bound in even)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options",
    [{"COUNTED": True}, {"GAP": 32}, {"BN": 64}, {"target": "sm_80"}, {"tensor_maps": False}],
)
def test_other_loops_are_not(options):
    """Values that count rows, rows left out, programs that share an SM, and no TMA."""
    assert count_rows(compile_gradients(**options)) == [32]
