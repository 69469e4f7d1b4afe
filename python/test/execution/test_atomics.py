# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atomic operations, with results, masks, and several programs at one address."""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import draw, make_kernel, numpy_dtype

import tessera


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


@pytest.mark.parametrize("dtype", ["int16", "int32", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("lanes", ["some", "none", "all"])
def test_compare_and_swap_of_some_lanes(run, rng, dtype, lanes):
    """Lanes that are off have addresses of nothing."""
    x = rng.integers(0, 2, 64).astype(dtype)
    value = rng.integers(2, 9, 64).astype(dtype)
    on = {"some": rng.integers(0, 2, 64), "none": np.zeros(64), "all": np.ones(64)}[lanes] == 1
    before, old = x.copy(), np.full(64, 7).astype(dtype)
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, value_ptr, on_ptr, old_ptr):
    i = tl.arange(0, 64)
    on = tl.load(on_ptr + i)
    value = tl.load(value_ptr + i)
    far = tl.where(on, i.to(tl.int64), i.to(tl.int64) + (1 << 40))
    tl.store(old_ptr + i, tl.atomic_cas(x_ptr + far, tl.zeros_like(value), value, mask=on))
""")
    run(kernel, (1,), x, value, on, old)
    np.testing.assert_array_equal(x, np.where(on & (before == 0), value, before))
    np.testing.assert_array_equal(old, np.where(on, before, 0))


def test_compare_and_swap_of_a_scalar_under_a_mask(run):
    kernel = make_kernel("""
@tessera.jit
def kernel(lock_ptr, out_ptr, n):
    for i in range(n):
        old = tl.atomic_cas(lock_ptr, i, i + 1, mask=i != 2)
        tl.store(out_ptr + i, old)
""")
    lock, out = np.zeros(1, np.int32), np.full(4, 9, np.int32)
    run(kernel, (1,), lock, out, 4)
    assert lock[0] == 2 and out.tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
@pytest.mark.parametrize("scope", ["cta", "gpu", "sys"])
def test_orders_and_scopes(run, rng, sem, scope):
    x, value = draw(rng, 64, "int32"), draw(rng, 64, "int32")
    before, old = x.copy(), np.zeros_like(x)
    kernel = atomic(f"tl.atomic_add(x_ptr + offsets, value, sem='{sem}', scope='{scope}')")
    run(kernel, (1,), x, value, old)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(x, before + value)


def unread(expression: str) -> object:
    """A kernel on rows of 64 at the addresses `ptrs`, whose old values nobody reads."""
    return make_kernel(f"""
@tessera.jit
def kernel(x_ptr, value_ptr, rows_ptr, ROWS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, 64)
    value = tl.load(value_ptr + rows[:, None] * 64 + columns[None, :])
    ptrs = x_ptr + tl.load(rows_ptr + rows)[:, None] * 64 + columns[None, :]
    {expression}
""")


# What aligns the rows: 16 bytes, 8 and less.
@pytest.mark.parametrize("shift", [0, 2, 1])
@pytest.mark.parametrize("scope", ["gpu", "cta"])
@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64", "float32", "float64"])
def test_rows(run, rng, dtype, kind, scope, shift):
    if dtype.startswith("float") and kind in ("and", "or", "xor"):
        pytest.skip("of integers")
    value = rng.integers(0, 50, (16, 64)).astype(dtype)
    rows = rng.permutation(16)[:16].astype(np.int32) if kind == "xchg" else rng.integers(0, 8, 16)
    rows = rows.astype(np.int32)
    memory = rng.integers(0, 50, 17 * 64).astype(dtype)
    x = memory[shift : shift + 1024]
    want = memory.copy()
    on = np.arange(64)[None, :] < np.where(np.arange(16) % 3 == 0, 64, 37)[:, None]
    for row, at in enumerate(rows):
        line = want[shift:][at * 64 : at * 64 + 64]
        line[on[row]] = CASES[kind](line, value[row])[on[row]]
    width = "tl.where(rows % 3 == 0, 64, 37)[:, None]"
    mask = f"columns[None, :] < {width}"
    kernel = unread(f"tl.atomic_{kind}(ptrs, value, mask={mask}, sem='relaxed', scope='{scope}')")
    run(kernel, (1,), x, value, rows, ROWS=16)
    np.testing.assert_array_equal(memory, want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("kind", ["add", "max"])
def test_rows_of_floats(run, rng, dtype, kind):
    if kind == "max" and dtype in ("float16", "bfloat16"):
        pytest.skip("of float32 and float64")
    x = rng.integers(-8, 9, 512).astype(numpy_dtype(dtype))
    value = rng.integers(-8, 9, (4, 64)).astype(numpy_dtype(dtype))
    rows = np.array([7, 3, 5, 0], np.int32)
    want = x.reshape(8, 64).copy()
    want[rows] = CASES[kind](want[rows], value)
    on = np.array([True, False, True, True])
    want[rows[~on]] = x.reshape(8, 64)[rows[~on]]
    kernel = unread(f"tl.atomic_{kind}(ptrs, value, mask=(rows != 1)[:, None])")
    run(kernel, (1,), x, value, rows, ROWS=4)
    np.testing.assert_array_equal(x.reshape(8, 64), want)


@pytest.mark.parametrize("dtype", ["int32", "float32", "int64"])
def test_many_programs_at_the_same_rows(run, rng, dtype):
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, shift):
    columns = tl.arange(0, 64)
    tl.atomic_add(x_ptr + columns, tl.full((64,), 1, x_ptr.dtype.element_ty))
    # One at a time, in the middle of a row that others add to as one.
    tl.atomic_add(x_ptr + 3, tl.full((), 1, x_ptr.dtype.element_ty))
    tl.atomic_add(x_ptr + shift + columns, tl.full((64,), 1, x_ptr.dtype.element_ty))
""")
    x = np.zeros(72, dtype)
    run(kernel, (3000,), x, 1)
    want = np.zeros(72, dtype)
    want[:64] += 3000
    want[3] += 3000
    want[1:65] += 3000
    np.testing.assert_array_equal(x, want)


@pytest.mark.parametrize("sem", ["relaxed", "release", "acq_rel"])
@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("mask", ["None", "i < n", "i < n // 16 * 16", "(i >= 0) & (n > 0)"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32"])
def test_neighbours(run, rng, dtype, mask, reads, sem):
    """GPUs add floats that lie side by side, and are masked together, at once."""
    body = f"old = tl.atomic_add(x_ptr + i, tl.load(value_ptr + i), mask={mask}, sem={sem!r})"
    kernel = make_kernel(f"""
@tessera.jit
def kernel(x_ptr, value_ptr, old_ptr, n):
    i = tl.arange(0, 1024)
    {body}
    {"tl.store(old_ptr + i, old)" if reads else ""}
""")
    x = rng.integers(-8, 9, 1024).astype(numpy_dtype(dtype))
    value = rng.integers(-8, 9, 1024).astype(numpy_dtype(dtype))
    before, old = x.copy(), np.zeros_like(x)
    run(kernel, (1,), x, value, old, 1001)
    last = {"i < n": 1001, "i < n // 16 * 16": 992}.get(mask, 1024)
    on = np.arange(1024) < last
    np.testing.assert_array_equal(x, np.where(on, before + value, before))
    if reads:
        np.testing.assert_array_equal(old, np.where(on, before, np.zeros_like(x)))


BINS = {
    "mask": ("i", "(i >= 0) & (i < 13)"),
    "bits": ("i & 15", "i < 13"),
    "remainder": ("(i & 0xffff).to(tl.uint32) % 13", "i != 5"),
    "bytes": ("tl.load(b_ptr + tl.arange(0, 1024)).to(tl.int32)", "i != 5"),
}


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "float32", "float64"])
def test_many_lanes_in_few_places(run, rng, dtype, bins, shift):
    place, mask = BINS[bins]
    kernel = make_kernel(f"""
@tessera.jit
def kernel(x_ptr, i_ptr, b_ptr, value_ptr):
    i = tl.load(i_ptr + tl.arange(0, 1024))
    value = tl.load(value_ptr + tl.arange(0, 1024))
    tl.atomic_add(x_ptr + ({place}), value, mask={mask})
""")
    i = rng.integers(-20, 30, 1024).astype(np.int32)
    b = rng.integers(0, 256, 1024).astype(np.uint8)
    value = rng.integers(0, 9, 1024).astype(dtype)
    memory = rng.integers(0, 9, 300).astype(dtype)
    # Where nothing is added, nothing changes: not the sign of a zero either.
    memory[20] = -0.0 if dtype.startswith("float") else 0
    want = memory.copy()
    at = {"mask": i, "bits": i & 15, "remainder": (i & 0xFFFF) % 13, "bytes": b.astype(np.int32)}[bins]  # fmt: skip
    on = {"mask": (i >= 0) & (i < 13), "bits": i < 13}.get(bins, i != 5)
    np.add.at(want, shift + at[on], value[on])
    run(kernel, (1,), memory[shift:], i, b, value)
    np.testing.assert_array_equal(memory, want)
    if bins != "bytes":
        np.testing.assert_array_equal(np.signbit(memory), np.signbit(want))


@pytest.mark.parametrize("deterministic", [False, True])
def test_rows_along_another_dimension(run, rng, deterministic):
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, value_ptr, at_ptr, bins_ptr):
    i, j, k = tl.arange(0, 4), tl.arange(0, 8), tl.arange(0, 16)
    value = tl.load(value_ptr + i[:, None, None] * 128 + j[None, :, None] * 16 + k[None, None, :])
    at = tl.load(at_ptr + k)
    ptrs = x_ptr + i[:, None, None] * 1000 + at[None, None, :] * 8 + j[None, :, None]
    tl.atomic_add(ptrs, value, mask=(at >= 3)[None, None, :])
    flat = tl.reshape(value, (512,))
    tl.atomic_add(bins_ptr + (flat.to(tl.int32) & 7), flat)
""")
    value = rng.integers(0, 50, (4, 8, 16)).astype(np.float32)
    at = rng.integers(0, 100, 16).astype(np.int32)
    x, bins = np.zeros((4, 1000), np.float32), np.zeros(8, np.float32)
    want, want_bins = x.copy(), bins.copy()
    for k in np.flatnonzero(at >= 3):
        want[:, at[k] * 8 : at[k] * 8 + 8] += value[:, :, k]
    np.add.at(want_bins, value.astype(np.int32).ravel() & 7, value.ravel())
    run(kernel, (1,), x, value, at, bins, deterministic=deterministic)
    np.testing.assert_array_equal(x, want)
    np.testing.assert_array_equal(bins, want_bins)


@pytest.mark.parametrize("sem", ["relaxed", "acquire"])
@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_poll_of_what_is_there(run, dtype, sem):
    kernel = make_kernel(f"""
@tessera.jit
def kernel(flag_ptr, out_ptr, expected):
    i = tl.arange(0, 64)
    tl.store(out_ptr + i, tl.atomic_poll(flag_ptr + i % 8, expected, sem="{sem}"))
    tl.store(out_ptr + 64, tl.atomic_poll(flag_ptr, expected, "{sem}", "sys"))
""")
    out = np.zeros(65, np.int8)
    run(kernel, (1,), np.full(8, 7, dtype), out, 7)
    assert out.all()


def test_poll_of_what_comes_between_polls(run):
    """Elements become equal one after the other: each stays true."""
    kernel = make_kernel("""
@tessera.jit
def kernel(flag_ptr, out_ptr):
    i = tl.arange(0, 4)
    first = tl.atomic_poll(flag_ptr + i, 1, timeout_ns=0)
    tl.store(out_ptr + i, first)
    tl.debug_barrier()
    tl.atomic_xchg(flag_ptr + i, i, mask=i == 1)
    second = tl.atomic_poll(flag_ptr + i, 1, timeout_ns=1000)
    tl.store(out_ptr + 4 + i, second)
    tl.store(out_ptr + 8, tl.atomic_poll(flag_ptr + 2, 1, timeout_ns=10 * tl.num_programs(0)))
    tl.store(out_ptr + 9, tl.atomic_poll(flag_ptr + 1, 1, timeout_ns=0))
""")
    flag, out = np.array([1, 0, 0, 1], np.int32), np.full(10, 9, np.int8)
    run(kernel, (1,), flag, out)
    np.testing.assert_array_equal(out, [1, 0, 0, 1, 1, 1, 0, 1, 0, 1])


@pytest.mark.parametrize("id, call", [
    ("E047", "tl.atomic_poll(x_ptr.to(tl.pointer_type(tl.int8)), 1)"),
    ("E047", "tl.atomic_poll(x_ptr.to(tl.pointer_type(tl.float32)), 1)"),
    ("E047", "tl.atomic_poll(x_ptr, 1, sem='release')"),
    ("E047", "tl.atomic_poll(x_ptr, 1, timeout_ns=-1)"),
    ("E044", "tl.atomic_poll(3, 1)"),
    ("E028", "tl.atomic_poll(x_ptr.to(tl.pointer_type(tl.int16)), 70000)"),
    ("E028", "tl.atomic_poll(x_ptr.to(tl.pointer_type(tl.uint32)), -1)"),
])  # fmt: skip
def test_polls_that_are_none(id, call):
    kernel = make_kernel(f"""
@tessera.jit
def kernel(x_ptr):
    {call}
""")
    with pytest.raises(tessera.CompilationError) as caught:
        kernel[(1,)](np.zeros(4, np.int32))
    assert caught.value.id == id
