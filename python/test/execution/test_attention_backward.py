# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention's backward pass on sm_90a, simulated: loops of three to five dots.

The simulator lets copies arrive when the seed says, and knows what a wgmma that goes on still
reads; the values are compared with NumPy's in float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl
from runtime.usual_kernels import load

LOG2E = 1.4426950408889634


KERNELS = load("benchmarks/attention_backward_kernels.py")
of_keys, of_rows = KERNELS["of_keys"], KERNELS["of_rows"]


@tessera.jit
def at_once_rows(
    dk, dv, k, v, q_ptr, do_ptr, dq_ptr, m_ptr, d_ptr, keys, first, last, scale2,
    D: tl.constexpr, BM: tl.constexpr, MASK: tl.constexpr,
):  # fmt: skip
    ds = tl.arange(0, D)
    for start in range(first, last, BM):
        rows = start + tl.arange(0, BM)
        q = tl.load(q_ptr + rows[:, None] * D + ds[None, :])
        s = tl.dot(k, tl.trans(q))
        m = tl.load(m_ptr + rows)
        do = tl.load(do_ptr + rows[:, None] * D + ds[None, :])
        dp = tl.dot(v, tl.trans(do))
        p = tl.math.exp2(s * scale2 - m[None, :])
        if MASK:
            p = tl.where(rows[None, :] >= keys[:, None], p, 0.0)
        dv = tl.dot(p.to(do.dtype), do, dv)
        delta = tl.load(d_ptr + rows)
        g = (p * (dp - delta[None, :])).to(q.dtype)
        dk = tl.dot(g, q, dk)
        dq = tl.dot(tl.trans(g), k)
        tl.atomic_add(dq_ptr + rows[:, None] * D + ds[None, :], dq, sem="relaxed")
    return dk, dv


@tessera.jit
def at_once(
    q_ptr, k_ptr, v_ptr, do_ptr, dq_ptr, dk_ptr, dv_ptr, m_ptr, d_ptr, T, scale2, scale,
    D: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """All gradients; that of q is added up in f32, in memory."""
    first = tl.program_id(0) * BN
    keys, ds = first + tl.arange(0, BN), tl.arange(0, D)
    head = tl.program_id(1).to(tl.int64)
    at = head * T * D + keys[:, None] * D + ds[None, :]
    k = tl.load(k_ptr + at)
    v = tl.load(v_ptr + at)
    dk = tl.zeros((BN, D), dtype=tl.float32)
    dv = tl.zeros((BN, D), dtype=tl.float32)
    q, do, dq, m, d = (
        q_ptr + head * T * D, do_ptr + head * T * D, dq_ptr + head * T * D, m_ptr + head * T,
        d_ptr + head * T,
    )  # fmt: skip
    begin = 0
    if CAUSAL:
        dk, dv = at_once_rows(
            dk, dv, k, v, q, do, dq, m, d, keys, first, first + BN, scale2, D, BM, True
        )
        begin = first + BN
    dk, dv = at_once_rows(dk, dv, k, v, q, do, dq, m, d, keys, begin, T, scale2, D, BM, False)
    tl.store(dk_ptr + at, (dk * scale).to(dk_ptr.dtype.element_ty))
    tl.store(dv_ptr + at, dv.to(dv_ptr.dtype.element_ty))


class Gradients(NamedTuple):
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray


class Problem:
    """Arrays of a backward pass, and what it gives; `group` heads of q share one of k and v."""

    def __init__(self, rng: Any, T: int, D: int, causal: bool, heads: int = 1, group: int = 1):
        self.T, self.D, self.causal, self.heads, self.group = T, D, causal, heads, group
        self.scale = D**-0.5

        def draw(heads: int) -> np.ndarray:
            return rng.normal(0, 0.5, (heads, T, D)).astype("f2")

        self.q, self.do = draw(heads), draw(heads)
        self.k, self.v = draw(heads // group), draw(heads // group)
        q, do = self.q.astype("f8"), self.do.astype("f8")
        k, v = (np.repeat(x.astype("f8"), group, 0) for x in (self.k, self.v))
        s = q @ k.transpose(0, 2, 1) * self.scale
        if causal:
            s[:, ~np.tri(T, dtype=bool)] = -np.inf
        m = np.log(np.exp(s).sum(-1, keepdims=True))
        p = np.exp(s - m)
        dp = do @ v.transpose(0, 2, 1)
        d = (p * dp).sum(-1, keepdims=True)
        g = p * (dp - d)
        self.m, self.d = (m[..., 0] * LOG2E).astype("f4"), d[..., 0].astype("f4")

        def over_group(x: np.ndarray) -> np.ndarray:
            return x.reshape(heads // group, group, T, D).sum(1)

        self.want = Gradients(
            g @ k * self.scale,
            over_group(g.transpose(0, 2, 1) @ q) * self.scale,
            over_group(p.transpose(0, 2, 1) @ do),
        )

    def empty(self, heads: int) -> np.ndarray:
        return np.full((heads, self.T, self.D), np.nan, "f2")

    def check(self, **results: np.ndarray) -> None:
        for name, result in results.items():
            want = getattr(self.want, name)
            np.testing.assert_allclose(
                result.astype("f8"), want, rtol=0, atol=4e-3 * np.abs(want).max(), err_msg=name
            )


CONFIGS = [
    # D, BM, BN, warps, stages
    (64, 64, 128, 8, 2),
    (64, 64, 64, 4, 3),
    (128, 64, 128, 8, 2),
]


@pytest.mark.in_turn("causal")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("D, BM, BN, warps, stages", CONFIGS)
def test_keys_and_values(rng, D, BM, BN, warps, stages, causal):
    T, heads = 256, 2
    it = Problem(rng, T, D, causal, heads, group=2)
    dk, dv = it.empty(heads // 2), it.empty(heads // 2)
    simulation = tessera.gpu.simulate(of_keys, seed=BM + stages)[(T // BN, heads // 2)](
        it.q, it.k, it.v, it.do, dk, dv, it.m, it.d, T, it.scale * LOG2E, it.scale, GROUP=2, D=D,
        CAUSAL=causal, BM=BM, BN=BN, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    simulation.check()
    it.check(k=dk, v=dv)


@pytest.mark.in_turn("causal")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("D, BN, BM, warps, stages", CONFIGS)
def test_rows(rng, D, BM, BN, warps, stages, causal):
    T, heads = 256, 2
    it = Problem(rng, T, D, causal, heads, group=2)
    dq = it.empty(heads)
    simulation = tessera.gpu.simulate(of_rows, seed=BM + stages)[(T // BM, heads)](
        it.q, it.k, it.v, it.do, dq, it.m, it.d, T, it.scale * LOG2E, it.scale, GROUP=2, D=D,
        CAUSAL=causal, BM=BM, BN=BN, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    simulation.check()
    it.check(q=dq)


@pytest.mark.in_turn("causal")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("D, warps", [(64, 8), (64, 4), (128, 8)])
def test_all_at_once(rng, D, warps, causal):
    """Five dots; the gradient of q is added up in memory."""
    T = 256
    it = Problem(rng, T, D, causal)
    dq, dk, dv = np.zeros((1, T, D), "f4"), it.empty(1), it.empty(1)
    simulation = tessera.gpu.simulate(at_once, seed=D + warps)[(T // 128, 1)](
        it.q, it.k, it.v, it.do, dq, dk, dv, it.m, it.d, T, it.scale * LOG2E, it.scale, D=D,
        CAUSAL=causal, BM=64, BN=128, num_warps=warps, num_stages=2,
    )  # fmt: skip
    simulation.check()
    it.check(q=dq * it.scale, k=dk, v=dv)


@pytest.mark.parametrize("warps", [4, 8])
def test_loops_without_iterations(rng, warps):
    """What the loop would have begun an iteration later is not begun at all."""
    it = Problem(rng, 128, 64, True)
    dk, dv = it.empty(1), it.empty(1)
    # The block of keys is the last one: no rows come behind its diagonal.
    simulation = tessera.gpu.simulate(of_keys)[(1, 1)](
        it.q, it.k, it.v, it.do, dk, dv, it.m, it.d, 128, it.scale * LOG2E, it.scale, GROUP=1,
        D=64, CAUSAL=True, BM=64, BN=128, num_warps=warps, num_stages=3,
    )  # fmt: skip
    simulation.check()
    it.check(k=dk, v=dv)


@tessera.jit
def two_loops(a_ptr, b_ptr, k_ptr, m_ptr, out_ptr, T, D: tl.constexpr, B: tl.constexpr):
    """Rows of numbers come with the tiles of the first loop alone."""
    rows, ds = tl.arange(0, B), tl.arange(0, D)
    k = tl.load(k_ptr + rows[:, None] * D + ds[None, :])
    acc = tl.zeros((B, D), tl.float32)
    for start in range(0, T, B):
        x = tl.load(a_ptr + (start + rows)[:, None] * D + ds[None, :])
        m = tl.load(m_ptr + start + rows)
        s = tl.dot(k, tl.trans(x)) * m[None, :]
        acc = tl.dot(s.to(x.dtype), x, acc)
    for start in range(0, T, B):
        y = tl.load(b_ptr + (start + rows)[:, None] * D + ds[None, :])
        acc = tl.dot(tl.dot(k, tl.trans(y)).to(y.dtype), y, acc)
    tl.store(out_ptr + rows[:, None] * D + ds[None, :], acc)


@pytest.mark.filterwarnings("ignore")
def test_successive_loops_share_rings(rng):
    T, D, B = 192, 64, 64
    a, b = (rng.standard_normal((T, D)).astype("f2") / 4 for _ in range(2))
    k = rng.standard_normal((B, D)).astype("f2") / 4
    m = rng.standard_normal(T).astype("f4")
    out = np.full((B, D), np.nan, "f4")
    arguments = (a, b, k, m, out, T)
    simulation = tessera.gpu.simulate(two_loops)[(1,)](
        *arguments, D=D, B=B, num_warps=4, num_stages=3, target="sm_90a", tensor_maps=True
    )
    simulation.check()
    a8, b8, k8 = (x.astype("f8") for x in (a, b, k))
    want = (k8 @ a8.T * m) @ a8 + (k8 @ b8.T) @ b8
    np.testing.assert_allclose(out, want, atol=3e-2)
    kernel = tessera.compile(
        two_loops,
        "*fp16:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, i32:16",
        constexprs={"D": D, "B": B},
        num_warps=4,
        num_stages=3,
        target="sm_90a",
    )
    rings = [line for line in kernel.asm["tilegpu"].splitlines() if "local_alloc" in line]
    assert sum("xf16" in line and "slots" in line for line in rings) == 1
