# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atomic operations, with results, masks, and several programs at one address."""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import draw, make_kernel, numpy_dtype


def atomic(expression: str) -> object:
    return make_kernel(f"""
@tessera.jit
def kernel(x_ptr, value_ptr, old_ptr):
    offsets = tl.arange(0, 64)
    value = tl.load(value_ptr + offsets)
    old = {expression}
    tl.store(old_ptr + offsets, old)
""")


CASES = {
    "add": lambda x, v: x + v,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "xchg": lambda x, v: v,
}


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("kind", CASES)
def test_integers(run, rng, kind, dtype):
    x, value = draw(rng, 64, dtype), draw(rng, 64, dtype)
    before, old = x.copy(), np.zeros_like(x)
    run(atomic(f"tl.atomic_{kind}(x_ptr + offsets, value)"), (1,), x, value, old)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(x, CASES[kind](before, value))
    np.testing.assert_array_equal(old, before)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_float_add(run, rng, dtype):
    x = rng.integers(-8, 9, 64).astype(numpy_dtype(dtype))
    value = rng.integers(-8, 9, 64).astype(numpy_dtype(dtype))
    before, old = x.copy(), np.zeros_like(x)
    run(atomic("tl.atomic_add(x_ptr + offsets, value)"), (1,), x, value, old)
    np.testing.assert_array_equal(x, before + value)
    np.testing.assert_array_equal(old, before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float_max_min(run, rng, dtype):
    for kind, reference in (("max", np.maximum), ("min", np.minimum)):
        x, value = draw(rng, 64, dtype), draw(rng, 64, dtype)
        before, old = x.copy(), np.zeros_like(x)
        run(atomic(f"tl.atomic_{kind}(x_ptr + offsets, value)"), (1,), x, value, old)
        np.testing.assert_array_equal(x, reference(before, value))
        np.testing.assert_array_equal(old, before)


def test_masked_off_lanes_touch_nothing_and_return_zero(run, rng):
    x, value = draw(rng, 64, "int32"), draw(rng, 64, "int32")
    before, old = x.copy(), np.full(64, 5, np.int32)
    run(atomic("tl.atomic_add(x_ptr + offsets, value, mask=offsets < 40)"), (1,), x, value, old)
    on = np.arange(64) < 40
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(x, np.where(on, before + value, before))
    np.testing.assert_array_equal(old, np.where(on, before, 0))


def test_many_lanes_at_one_address(run, rng):
    value = rng.integers(0, 100, 64).astype(np.int32)
    x, old = np.zeros(64, np.int32), np.zeros(64, np.int32)
    run(atomic("tl.atomic_add(x_ptr + offsets % 4, value)"), (1,), x, value, old)
    np.testing.assert_array_equal(x[:4], value.reshape(16, 4).sum(0))


def test_many_programs_at_one_address(run, rng):
    kernel = make_kernel("""
@tessera.jit
def kernel(counter_ptr, total_ptr):
    tl.atomic_add(counter_ptr, 1)
    tl.atomic_add(total_ptr, 0.5)
""")
    counter, total = np.zeros(1, np.int32), np.zeros(1, np.float32)
    run(kernel, (1000,), counter, total)
    assert counter[0] == 1000 and total[0] == 500


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_compare_and_swap(run, rng, dtype):
    x = rng.integers(0, 2, 64).astype(dtype)
    value = draw(rng, 64, dtype)
    before, old = x.copy(), np.zeros_like(x)
    kernel = atomic("tl.atomic_cas(x_ptr + offsets, tl.zeros_like(value), value)")
    run(kernel, (1,), x, value, old)
    np.testing.assert_array_equal(x, np.where(before == 0, value, before))
    np.testing.assert_array_equal(old, before)


@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
@pytest.mark.parametrize("scope", ["cta", "gpu", "sys"])
def test_orders_and_scopes(run, rng, sem, scope):
    x, value = draw(rng, 64, "int32"), draw(rng, 64, "int32")
    before, old = x.copy(), np.zeros_like(x)
    kernel = atomic(f"tl.atomic_add(x_ptr + offsets, value, sem='{sem}', scope='{scope}')")
    run(kernel, (1,), x, value, old)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(x, before + value)
