# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two arguments that are views of one array, gone through by loops: what is loaded ahead, or stored
by TMA, must not come to what another iteration does by the other argument.

All of an element's accesses are one lane's, whose order is promised.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl

TARGETS = ["sm_80", "sm_90a"]
D, STEPS = 64, 4


def permutation() -> np.ndarray:
    w = np.zeros((D, D), np.float16)
    w[np.arange(D), (np.arange(D) + 1) % D] = 1
    return w


@tessera.jit
def up(hin, hout, w_ptr, T, rows, D: tl.constexpr, MASK: tl.constexpr):
    i, j = tl.arange(0, D), tl.arange(0, D)
    w = tl.load(w_ptr + j[:, None] * D + j[None, :])
    for t in range(0, T):
        at = t * D * D + i[:, None] * D + j[None, :]
        if MASK:
            x = tl.load(hin + at, mask=i[:, None] < rows, other=0.0)
            tl.store(hout + at, tl.dot(x, w).to(tl.float16), mask=i[:, None] < rows)
        else:
            tl.store(hout + at, tl.dot(tl.load(hin + at), w).to(tl.float16))


@tessera.jit
def down(hin, hout, w_ptr, T, rows, D: tl.constexpr, MASK: tl.constexpr):
    """hin is a tile behind hout."""
    i, j = tl.arange(0, D), tl.arange(0, D)
    w = tl.load(w_ptr + j[:, None] * D + j[None, :])
    for t in range(T - 1, -1, -1):
        at = t * D * D + i[:, None] * D + j[None, :]
        tl.store(hout + at, tl.dot(tl.load(hin + at), w).to(tl.float16))


@tessera.jit
def nested(hin, hout, w_ptr, T, rows, D: tl.constexpr, MASK: tl.constexpr):
    i, j = tl.arange(0, D), tl.arange(0, D)
    w = tl.load(w_ptr + j[:, None] * D + j[None, :])
    for u in range(0, T // 2):
        for t in tl.range(0, 2, num_stages=3):
            at = (u * 2 + t) * D * D + i[:, None] * D + j[None, :]
            tl.store(hout + at, tl.dot(tl.load(hin + at), w).to(tl.float16))


@tessera.jit
def carried(hin, hout, w_ptr, T, rows, D: tl.constexpr, MASK: tl.constexpr):
    i, j = tl.arange(0, D), tl.arange(0, D)
    w = tl.load(w_ptr + j[:, None] * D + j[None, :])
    source = hin + i[:, None] * D + j[None, :]
    target = hout + i[:, None] * D + j[None, :]
    for _ in range(0, T):
        tl.store(target, tl.dot(tl.load(source), w).to(tl.float16))
        source += D * D
        target += D * D


@tessera.jit
def counted(hin, hout, w_ptr, T, rows, D: tl.constexpr, MASK: tl.constexpr):
    i, j = tl.arange(0, D), tl.arange(0, D)
    w = tl.load(w_ptr + j[:, None] * D + j[None, :])
    t = 0
    while t < T:
        at = t * D * D + i[:, None] * D + j[None, :]
        tl.store(hout + at, tl.dot(tl.load(hin + at), w).to(tl.float16))
        t += 1


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "kernel, mask",
    [(up, False), (up, True), (down, False), (nested, False), (carried, False), (counted, False)],
    ids=["up", "masked", "down", "nested", "carried", "while"],
)
def test_a_recurrence_sees_the_steps_before(kernel, mask, target):
    w = permutation()
    start = np.zeros((STEPS + 1, D, D), np.float16)
    is_down = kernel is down
    first = STEPS if is_down else 0
    start[first] = np.random.default_rng(0).integers(-3, 4, (D, D))
    want = start.copy()
    for t in range(STEPS):
        here, there = (STEPS - t, STEPS - t - 1) if is_down else (t, t + 1)
        want[there] = np.roll(want[here], 1, axis=1)
    for seed in range(2):
        h = start.copy()
        hin, hout = (h[1:], h[:-1]) if is_down else (h[:-1], h[1:])
        tessera.gpu.simulate(kernel, seed=seed)[(1,)](
            hin, hout, w, STEPS, D, D=D, MASK=mask, target=target
        ).check()
        np.testing.assert_array_equal(h, want)


@tessera.jit
def scan(x_ptr, w_ptr, hprev, hout, T, n, D: tl.constexpr, MASK: tl.constexpr):
    i = tl.arange(0, D)
    m = (i[:, None] < n) & (i[None, :] < n)
    for t in range(0, T):
        acc = tl.zeros((D, D), tl.float32)
        for k in range(0, D, 32):
            kk = k + tl.arange(0, 32)
            x = tl.load(x_ptr + t * D * D + i[:, None] * D + kk[None, :])
            acc = tl.dot(x, tl.load(w_ptr + kk[:, None] * D + i[None, :]), acc)
        at = t * D * D + i[:, None] * D + i[None, :]
        if MASK:
            h = tl.load(hprev + at, mask=m, other=0.0)
            tl.store(hout + at, acc + h * 0.5, mask=m)
        else:
            tl.store(hout + at, acc + tl.load(hprev + at) * 0.5)


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("options", [{"target": "sm_80"}, {"num_warps": 8}, {}, {"num_ctas": 2}])
def test_what_tma_stores_is_loaded_by_another_argument(mask, options):
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 3, (STEPS, D, D)).astype(np.float16)
    w = rng.integers(-2, 3, (D, D)).astype(np.float16)
    start = np.zeros((STEPS + 1, D, D), np.float32)
    start[0] = rng.integers(-8, 9, (D, D))
    want = start.copy()
    for t in range(STEPS):
        want[t + 1] = x[t].astype(np.float32) @ w.astype(np.float32) + want[t] * 0.5
    h = start.copy()
    tessera.gpu.simulate(scan, copies="late")[(1,)](
        x, w, h[:-1], h[1:], STEPS, D, D=D, MASK=mask, **{"target": "sm_90a", **options}
    )
    np.testing.assert_array_equal(h, want)


SIGNATURE = "*fp16:16, *fp16:16, *fp16:16, i32, i32, 64, {}"


@pytest.mark.parametrize("kernel", [up, nested, carried], ids=["up", "nested", "carried"])
def test_two_arrays_keep_their_plan(kernel):
    """A launch is asked how far the loop goes, and copies come early all the same."""
    compiled = tessera.compile(kernel, SIGNATURE.format(False), target="sm_90a")
    assert compiled.metadata["tensor_maps"]
    assert [[a["argument"], b["argument"]] for a, b in compiled.metadata["arrays_apart"]] == [
        [0, 1]
    ]
    h = np.zeros((STEPS, D, D), np.float16)
    other = np.zeros_like(h)
    h[:] = np.random.default_rng(1).integers(-3, 4, h.shape)
    # Another variant would be compiled where the launch does not hold.
    simulation = tessera.gpu.simulate(kernel)[(1,)]
    simulation(h, other, permutation(), STEPS, D, D=D, MASK=False, target="sm_90a").check()
    np.testing.assert_array_equal(other, np.roll(h, 1, axis=2))


@tessera.jit
def stacked(x_ptr, w_ptr, out_ptr, T, ld, D: tl.constexpr, STEP: tl.constexpr):
    i = tl.arange(0, D)
    w = tl.load(w_ptr + i[:, None] * D + i[None, :])
    for t in range(0, T):
        x = tl.load(x_ptr + (t * D + i[:, None]) * D + i[None, :])
        out = out_ptr + (t * STEP + i[:, None]) * ld + i[None, :]
        tl.store(out, tl.dot(x, w))


@pytest.mark.parametrize("step", [D, D // 2])
def test_a_store_by_tma_waits_for_the_one_before_if_they_overlap(step):
    signature = "*fp16:16, *fp16:16, *fp32:16, i32, i32:16"
    constants = {"D": D, "STEP": step}
    kernel = tessera.compile(stacked, signature, constexprs=constants, target="sm_90a")
    loop = kernel.asm["tilegpu"].partition("scf.for")[2]
    assert "tilegpu.tma_store %" in loop
    waits = loop.partition("tilegpu.tma_store %")[0].count(
        "tma_store_wait {pending = 0 : i32, read}"
    )
    assert waits == (step == D)
    # Rows that are shorter than a tile overlap.
    for ld in (D, D - 16):
        assert kernel._kernel.accepts((1, 1, 1), [1 << 20, 1 << 21, 1 << 22, STEPS, ld]) == (
            ld == D or step != D
        )
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 3, (STEPS, D, D)).astype(np.float16)
    w = rng.integers(-2, 3, (D, D)).astype(np.float16)
    want = np.zeros(((STEPS + 1) * D, D), np.float32)
    for t in range(STEPS):
        want[t * step : t * step + D] = x[t].astype(np.float32) @ w.astype(np.float32)
    for seed in range(2):
        out = np.zeros_like(want)
        tessera.gpu.simulate(stacked, seed=seed, copies="late")[(1,)](
            x, w, out, STEPS, D, D=D, STEP=step, target="sm_90a"
        ).check()
        np.testing.assert_array_equal(out, want)
