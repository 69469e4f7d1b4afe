# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A lane's loads and stores keep their order, whoever does them: threads with copies of an
element, threads of another layout, TMA; and whichever arguments they go by, for
two of them may be one array, or views of one.

Stale values show in the simulator, which has warps and engines run in the order of a seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl

TARGETS = ["sm_80", "sm_90a"]


def simulate(kernel: Any, *args: Any, seed: int, **options: Any) -> None:
    tessera.gpu.simulate(kernel, seed=seed)[(1,)](*args, **options).check()


def remarks_of(kernel: Any, signature: str, **options: Any) -> str:
    return "\n".join(tessera.compile(kernel, signature, target="sm_90a", **options).remarks)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@tessera.jit
def feeds(src, tmp, b_ptr, c_ptr, K, BM: tl.constexpr, BK: tl.constexpr, EARLY: tl.constexpr,
          ASM: tl.constexpr):  # fmt: skip
    """Multiplies what it has stored itself."""
    m, n, kk = tl.arange(0, BM), tl.arange(0, 64), tl.arange(0, BK)
    acc = tl.zeros((BM, 64), tl.float32)
    if EARLY:
        for at in range(0, K, BK):
            offs = m[:, None] * K + (at + kk)[None, :]
            tl.store(tmp + offs, tl.load(src + offs) * 2)
    for at in range(0, K, BK):
        offs = m[:, None] * K + (at + kk)[None, :]
        if not EARLY:
            if ASM:
                low = (tmp + offs).to(tl.int64)
                tl.inline_asm_elementwise("st.global.b16 [$1], $2; mov.b32 $0, 0;", "=r,l,h",
                                          [low, tl.load(src + offs) * 2], dtype=tl.int32,
                                          is_pure=False, pack=1)  # fmt: skip
            else:
                tl.store(tmp + offs, tl.load(src + offs) * 2)
        a = tl.load(tmp + offs)
        b = tl.load(b_ptr + (at + kk)[:, None] * 64 + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * 64 + n[None, :], acc)


@pytest.mark.parametrize("early, asm", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("twice", [False, True])
def test_a_dot_sees_what_was_stored(rng, target, early, asm, twice):
    M, K = 64, 256
    b = rng.integers(-2, 3, (K, 64)).astype("f2")
    for seed in range(3):
        a = rng.integers(-2, 3, (M, K)).astype("f2")
        want = (a * 2).astype("f4") @ b.astype("f4")
        c, tmp = np.zeros((M, 64), "f4"), a if twice else np.zeros_like(a)
        simulate(feeds, a, tmp, b, c, K, seed=seed, BM=64, BK=64, EARLY=early, ASM=asm,
                 num_warps=4, num_stages=3, target=target)  # fmt: skip
        np.testing.assert_array_equal(c, want)


def test_who_may_not_come_early_is_told():
    signature = "*fp16:16, *fp16:16, *fp16:16, *fp32:16, i32:16, 64, 64, "
    for early in "False", "True":
        text = remarks_of(feeds, signature + early + ", False", num_warps=4, num_stages=3)
        assert "the same program may have stored the tiles that it loads" in text
    text = remarks_of(feeds, signature + "False, True", num_warps=4, num_stages=3)
    assert "an op before it orders memory" in text


@tessera.jit
def powers(w_ptr, x_ptr, y_ptr, N, count, BLOCK: tl.constexpr):
    """y = w x, again and again: x may be y. All of y is one tile, and so is x."""
    i = tl.arange(0, BLOCK)
    mask = (i[:, None] < N) & (i[None, :] < N)
    for _ in range(count):
        acc = tl.zeros((BLOCK, BLOCK), tl.float32)
        for k in range(0, N, BLOCK):
            ks = k + i
            w = tl.load(w_ptr + i[:, None] * N + ks[None, :],
                        mask=(i[:, None] < N) & (ks[None, :] < N))  # fmt: skip
            x = tl.load(x_ptr + ks[:, None] * N + i[None, :],
                        mask=(ks[:, None] < N) & (i[None, :] < N))  # fmt: skip
            acc = tl.dot(w, x, acc)
        tl.store(y_ptr + i[:, None] * N + i[None, :], acc.to(tl.float16), mask=mask)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["apart", "same", "view"])
def test_a_loop_around_sees_what_it_stored(rng, target, kind):
    N, count = 64, 3
    w = rng.integers(-1, 2, (N, N)).astype("f2") * (rng.random((N, N)) < 0.1)
    w = np.ascontiguousarray(w, "f2")
    start = rng.integers(-2, 3, (N, N)).astype("f2")
    for seed in range(4):
        if kind == "view":
            # y begins a row later than x. A row of x is the row before of y, in another lane:
            # of these no order is promised, so that only the last row of y is looked at, of
            # which all is known.
            whole = np.zeros((N + 1, N), "f2")
            whole[:N] = start
            x, y = whole[:N], whole[1:]
            simulate(powers, w, x, y, N, 1, seed=seed, BLOCK=64, target=target, num_stages=3)
            got, want = y[-1], (w.astype("f4") @ start.astype("f4"))[-1]
        else:
            x = start.copy()
            y = x if kind == "same" else np.zeros_like(x)
            simulate(powers, w, x, y, N, count, seed=seed, BLOCK=64, target=target, num_stages=3)
            want = start.astype("f4")
            for _ in range(count if kind == "same" else 1):
                want = w.astype("f4") @ want
            got = y
        np.testing.assert_array_equal(got, want.astype("f2"))


def test_a_launch_is_asked_about_arrays_of_two_arguments():
    kernel = tessera.compile(
        powers, "*fp16:16, *fp16:16, *fp16:16, i32:16, i32, 64", target="sm_90a", num_stages=3
    )
    assert len(kernel.metadata["tensor_maps"]) >= 2, "loads come early all the same"
    pairs = [[each["argument"] for each in pair] for pair in kernel.metadata["arrays_apart"]]
    assert sorted(pairs) == [[0, 2], [1, 2]]


@tessera.jit
def twice(a_ptr, c_ptr, d_ptr, N, count, IN_LOOP: tl.constexpr):
    """Stores to c, then to d, and reads d."""
    i = tl.arange(0, 64)
    offs = i[:, None] * N + i[None, :]
    if IN_LOOP:
        for t in range(count):
            a = tl.load(a_ptr + offs)
            acc = tl.dot(a, a)
            tl.store(c_ptr + offs, acc + t)
            tl.store(d_ptr + offs, acc * 2)
    else:
        a = tl.load(a_ptr + offs)
        acc = tl.dot(a, a)
        tl.store(c_ptr + offs, acc)
        d = tl.load(d_ptr + offs)
        tl.store(d_ptr + offs, d + acc)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("in_loop", [False, True])
@pytest.mark.parametrize("same", [False, True])
def test_stores_come_one_after_the_other(rng, target, in_loop, same):
    a = rng.integers(-2, 3, (64, 64)).astype("f2")
    product = a.astype("f4") @ a.astype("f4")
    for seed in range(3):
        c = np.zeros((64, 64), "f4")
        d = c if same else np.ones((64, 64), "f4")
        simulate(twice, a, c, d, 64, 3, seed=seed, IN_LOOP=in_loop, target=target)
        want = 2 * product if in_loop or same else product + 1
        np.testing.assert_array_equal(d, want)
        if not same:
            np.testing.assert_array_equal(c, product + 2 * in_loop)


@pytest.mark.parametrize("in_loop", [False, True])
def test_a_launch_is_asked_about_stores(in_loop):
    kernel = tessera.compile(
        twice, f"*fp16:16, *fp32:16, *fp32:16, i32:16, i32, {in_loop}", target="sm_90a"
    )
    pairs = [[each["argument"] for each in pair] for pair in kernel.metadata["arrays_apart"]]
    assert [1, 2] in pairs


@tessera.jit
def drained(p_ptr, q_ptr, out_ptr, BLOCK: tl.constexpr):
    """Takes what is there, and leaves something else."""
    i = tl.arange(0, BLOCK)
    x = tl.load(p_ptr + i)
    tl.store(q_ptr + i, x * 0 - 7)
    y = tl.load(p_ptr + i)
    tl.store(out_ptr + i, x * 100 + y)
    tl.store(out_ptr + BLOCK, tl.sum(x, 0))
    tl.store(out_ptr + BLOCK + 1, tl.sum(y, 0))


@pytest.mark.parametrize("block", [8, 16, 32, 64, 256, 1024])
@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("same", [False, True])
def test_copies_load_before_the_store(rng, block, warps, same):
    for seed in range(6):
        p = rng.integers(1, 9, block).astype("i4")
        want_x, want_y = p.copy(), np.full(block, -7, "i4") if same else p.copy()
        q = p if same else np.zeros_like(p)
        out = np.zeros(block + 2, "i4")
        simulate(drained, p, q, out, seed=seed, BLOCK=block, num_warps=warps, target="sm_80")
        np.testing.assert_array_equal(out[:block], want_x * 100 + want_y)
        assert out[block] == want_x.sum() and out[block + 1] == want_y.sum()


@tessera.jit
def counted(count_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """A scalar is one lane."""
    i = tl.arange(0, BLOCK)
    for t in range(N):
        old = tl.load(count_ptr)
        tl.store(count_ptr, old + 1)
        new = tl.load(count_ptr)
        tl.store(out_ptr + t * BLOCK + i, old * 1000 + new)


def test_scalars_are_one_lane():
    for seed in range(8):
        count, out = np.zeros(1, "i4"), np.zeros((4, 256), "i4")
        simulate(counted, count, out, 4, seed=seed, BLOCK=256, num_warps=8, target="sm_80")
        np.testing.assert_array_equal(out, np.arange(4)[:, None] * 1001 + 1 + 0 * out)


@tessera.jit
def turned(p_ptr, N, BLOCK: tl.constexpr):
    """Loaded in the layout that a transposition wants, stored in another."""
    i = tl.arange(0, BLOCK)
    down = i[:, None] * N + i[None, :]
    across = i[None, :] * N + i[:, None]
    x = tl.load(p_ptr + down)
    y = tl.load(p_ptr + across)
    tl.store(p_ptr + down, x + y)
    z = tl.load(p_ptr + across)
    tl.store(p_ptr + BLOCK * N + across, z)


def test_elements_that_are_symmetric(rng):
    """Each lane of x meets that of y on the diagonal alone, where both are one lane."""
    for seed in range(4):
        p = np.zeros((64, 32), "i4")
        p[:32] = rng.integers(0, 9, (32, 32))
        diagonal = p[:32].diagonal().copy()
        simulate(turned, p, 32, seed=seed, BLOCK=32, num_warps=8, target="sm_80")
        np.testing.assert_array_equal(p[32:].diagonal(), 2 * diagonal)


@tessera.jit
def signed(a_ptr, b_ptr, c_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           ASM: tl.constexpr):  # fmt: skip
    m, n, kk = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (at + kk)[None, :])
        b = tl.load(b_ptr + (at + kk)[:, None] * BN + n[None, :])
        acc = tl.dot(a, b, acc)
    tag = tl.inline_asm_elementwise(ASM, "=r,r", [m], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(c_ptr + m[:, None] * BN + n[None, :], acc + tag[:, None].to(tl.float32))


@pytest.mark.parametrize("asm, repeats", [("add.u32 $0, $1, 1;", True),
                                          ("mov.u32 $0, %ctaid.x;", False),
                                          ("mov.u32 $0, %nctaid.x;", False)])  # fmt: skip
def test_assembly_that_asks_for_the_program_is_run_by_it(asm, repeats):
    """One program after the other is done by a few only where no code of others can tell."""
    kernel = tessera.compile(
        signed, ["*fp16:16", "*fp16:16", "*fp32:16", "i32:16"],
        constexprs=dict(BM=128, BN=256, BK=64, ASM=asm), target="sm_90a", num_warps=8, num_stages=3,
    )  # fmt: skip
    assert kernel.metadata["tensor_maps"]
    assert bool(kernel.metadata["persistent_programs"]) == repeats
