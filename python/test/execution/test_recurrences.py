# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrences over tokens: rows come iterations ahead of the stores of the loop, if arrays are apart."""

from __future__ import annotations

import numpy as np
import pytest

import tessera
import tessera.language as tl


@tessera.jit
def recurrence(
    q_ptr, k_ptr, v_ptr, o_ptr, T, K: tl.constexpr, V: tl.constexpr, GUARD: tl.constexpr
):
    ks, vs = tl.arange(0, K), tl.arange(0, V)
    state = tl.zeros((V, K), dtype=tl.float32)
    for t in range(0, T):
        inside = ks < K - GUARD
        k = tl.load(k_ptr + t * K + ks, mask=inside, other=0.0).to(tl.float32)
        q = tl.load(q_ptr + t * K + ks, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + t * V + vs).to(tl.float32)
        state = state * 0.5 + k[None, :] * v[:, None]
        o = tl.sum(state * q[None, :], 1)
        tl.store(o_ptr + t * V + vs, o.to(o_ptr.dtype.element_ty))


@tessera.jit
def delta(q_ptr, k_ptr, v_ptr, o_ptr, T, K: tl.constexpr, V: tl.constexpr, GUARD: tl.constexpr):
    ks, vs = tl.arange(0, K), tl.arange(0, V)
    state = tl.zeros((V, K), dtype=tl.float32)
    for _ in range(0, T):
        k = tl.load(k_ptr + ks, mask=ks < K - GUARD, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + vs).to(tl.float32)
        q = tl.load(q_ptr + ks, mask=ks < K - GUARD, other=0.0).to(tl.float32)
        v -= tl.sum(state * k[None, :], 1) * 0.25
        state = state * 0.5 + k[None, :] * v[:, None]
        tl.store(o_ptr + vs, tl.sum(state * q[None, :], 1).to(o_ptr.dtype.element_ty))
        q_ptr += K
        k_ptr += K
        v_ptr += V
        o_ptr += V


@tessera.jit
def cumsum(x_ptr, o_ptr, T, BT: tl.constexpr, BS: tl.constexpr):
    i, columns = tl.arange(0, BT), tl.arange(0, BS)
    ones = tl.where(i[:, None] >= i[None, :], 1.0, 0.0)
    carried = tl.zeros((BS,), dtype=tl.float32)
    for chunk in range(0, tl.cdiv(T, BT)):
        rows = chunk * BT + i
        place = rows[:, None] * BS + columns[None, :]
        x = tl.load(x_ptr + place, mask=(rows < T)[:, None], other=0.0)
        y = tl.dot(ones, x, input_precision="ieee") + carried[None, :]
        tl.store(o_ptr + place, y, mask=(rows < T)[:, None])
        carried += tl.sum(x, 0)


def expect(q, k, v, isdelta):
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    state, out = np.zeros((v.shape[1], k.shape[1]), np.float32), np.zeros_like(v)
    for t in range(len(q)):
        value = v[t] - (state @ k[t]) * 0.25 if isdelta else v[t]
        state = state * 0.5 + value[:, None] * k[t][None, :]
        out[t] = state @ q[t]
    return out


def draw(rng, *shape):
    return rng.choice([-1, 0, 0, 0.5, 1], shape).astype(np.float16)


def compile_for(kernel, target, **constexprs):
    types = {"x_ptr": "*fp32:16", "T": "i32"}
    names = [name for name in kernel.arg_names if name not in constexprs]
    of_kernel = "*fp16:16" if kernel is not cumsum else "*fp32:16"
    signature = {name: types.get(name, of_kernel) for name in names}
    return tessera.compile(
        kernel, signature=signature, constexprs=constexprs, target=target, num_warps=1
    )


@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
@pytest.mark.parametrize("kernel", [recurrence, delta], ids=["recurrence", "delta"])
def test_rows_come_seven_iterations_ahead(kernel, target):
    compiled = compile_for(kernel, target, K=128, V=16, GUARD=0)
    text = compiled.asm["tilegpu"]
    assert "slots = 8" in text and "pending = 6" in text
    # A lane reads runs of a row, not single elements.
    assert compiled.asm["ptx"].count("ld.shared") < 16
    assert not [remark for remark in compiled.remarks if remark.kind == "copy-at-once"]


def test_a_loop_that_stores_is_pipelined_unless_no_launch_compares_arrays():
    compiled = compile_for(cumsum, "sm_90a", BT=64, BS=32)
    assert "tilegpu.async_copy" in compiled.asm["tilegpu"]
    types = "*fp32:16, *fp32:16, i32"
    plain = tessera.compile(
        cumsum, signature=types, constexprs={"BT": 64, "BS": 32}, target="sm_90a", tensor_maps=False
    )
    assert "tilegpu.async_copy" not in plain.asm["tilegpu"]
    assert "loop-not-pipelined" in [remark.kind for remark in plain.remarks]


@pytest.mark.parametrize("kernel", [recurrence, delta], ids=["recurrence", "delta"])
@pytest.mark.parametrize("tokens", [0, 1, 7, 12])
def test_results(rng, kernel, tokens):
    """Fewer tokens than stages, and more."""
    keys, values, guard = 32, 16, 3
    q, k = draw(rng, tokens + 1, keys), draw(rng, tokens + 1, keys)
    v, o = draw(rng, tokens + 1, values), np.full((tokens + 1, values), 7, np.float16)
    tessera.gpu.simulate(kernel)[(1,)](
        q, k, v, o, tokens, K=keys, V=values, GUARD=guard, num_warps=1
    ).check()
    q[:, keys - guard :] = k[:, keys - guard :] = 0
    want = expect(q[:tokens], k[:tokens], v[:tokens], kernel is delta)
    np.testing.assert_allclose(o[:tokens], want, rtol=2e-3, atol=2e-3)
    assert (o[tokens] == 7).all()


@pytest.mark.parametrize("distance", [0, 1, 3])
def test_arrays_that_overlap(rng, distance):
    """What a token stores is the value of a later one: such a launch takes another variant."""
    keys, values, tokens = 32, 16, 12
    q, k = draw(rng, tokens, keys), draw(rng, tokens, keys)
    memory = draw(rng, tokens + distance, values)
    want = memory.copy()
    state = np.zeros((values, keys), np.float32)
    for t in range(tokens):
        state = state * 0.5 + want[t].astype(np.float32)[:, None] * k[t].astype(np.float32)
        want[t + distance] = state @ q[t].astype(np.float32)
    v, o = memory[:tokens], memory[distance:]
    tessera.gpu.simulate(recurrence)[(1,)](
        q, k, v, o, tokens, K=keys, V=values, GUARD=0, num_warps=1
    ).check()
    np.testing.assert_allclose(memory, want, rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
def test_cumsum_of_chunks(rng, target):
    x = rng.integers(-3, 4, (75, 32)).astype(np.float32)
    o = np.full_like(x, 7)
    tessera.gpu.simulate(cumsum)[(1,)](x, o, 75, BT=16, BS=32, num_warps=4, target=target).check()
    np.testing.assert_array_equal(o, x.cumsum(0))
    # In place each chunk is loaded before it is stored.
    tessera.gpu.simulate(cumsum)[(1,)](x, x, 75, BT=16, BS=32, num_warps=4, target=target).check()
    np.testing.assert_array_equal(x, o)
