# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the language promises where targets could differ, clause by clause.

docs/Language.md states each promise; here each has one test, on the interpreter and on
compiled code alike. A divisor, a shift or an index that breaks the ordinary rules stands in
a lane of its own, in a masked-off lane and in a constant.
"""

from __future__ import annotations

import functools

import ml_dtypes
import numpy as np
import pytest
from execution.running import INTS, UINTS, make_kernel

import tessera.gpu

N = 64


@functools.lru_cache(maxsize=None)
def elementwise(expression: str) -> object:
    """out = expression of the tiles x and y; lanes beyond n are masked off on the way in
    and out, but computed on."""
    return make_kernel(f"""
@tessera.jit
def kernel(x_ptr, y_ptr, out_ptr, n):
    i = tl.arange(0, {N})
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, {expression}, mask=i < n)
""")


def apply(run, expression, x, y, out_dtype, n=N - 5):
    """The first n results; y is 0 in the lanes beyond, as masked-off loads are."""
    pad = lambda values: np.resize(np.asarray(values), N)  # noqa: E731
    out = np.full(N, 9).astype(out_dtype)
    run(elementwise(expression), (1,), pad(x), pad(y), out, n)
    assert (out[n:] == 9).all()
    return out[: len(x)]


@pytest.mark.parametrize("dtype", INTS + UINTS)
def test_division_by_zero(run, dtype):
    info = np.iinfo(dtype)
    x = np.array([0, 1, 7, info.max, info.min], dtype)
    y = np.zeros_like(x)
    all_ones = np.array([-1 if info.min else info.max] * 5, dtype)
    np.testing.assert_array_equal(apply(run, "x // y", x, y, dtype), all_ones)
    np.testing.assert_array_equal(apply(run, "x % y", x, y, dtype), x)


@pytest.mark.parametrize("dtype", INTS)
def test_smallest_integer_by_minus_one(run, dtype):
    x = np.array([np.iinfo(dtype).min, 5], dtype)
    y = np.array([-1, -1], dtype)
    np.testing.assert_array_equal(apply(run, "x // y", x, y, dtype), [x[0], -5])
    np.testing.assert_array_equal(apply(run, "x % y", x, y, dtype), [0, 0])


def test_scalar_division_by_zero(run):
    kernel = make_kernel("""
@tessera.jit
def kernel(out_ptr, x, y):
    tl.store(out_ptr, x // y)
    tl.store(out_ptr + 1, x % y)
""")
    out = np.zeros(2, np.int32)
    run(kernel, (1,), out, 17, 0)
    assert out.tolist() == [-1, 17]


@pytest.mark.parametrize("dtype", INTS + UINTS)
def test_shift_by_the_width_or_more(run, dtype):
    bits = np.iinfo(dtype).bits
    x = np.array([1, 3, -1 & np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    y = np.array([bits, bits + 1, 100, bits], dtype)
    np.testing.assert_array_equal(apply(run, "x << y", x, y, dtype), [0, 0, 0, 0])
    signs = [-1 if value < 0 else 0 for value in x.tolist()]
    np.testing.assert_array_equal(apply(run, "x >> y", x, y, dtype), signs)


@pytest.mark.parametrize("amount", INTS + UINTS)
@pytest.mark.parametrize("dtype", INTS + UINTS)
def test_sign_that_a_shift_shifts_in(run, dtype, amount):
    """That of the left operand's own type, whatever the amount's type makes of it."""
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, -8 if info.min else 8, 1, 0, info.min + 1], dtype)
    y = np.array([1, 1, 1, 3, 7, 6], amount)
    exact = np.array([a >> b for a, b in zip(x.tolist(), y.tolist())])
    got = apply(run, "(x >> y).to(tl.int64)", x, y, np.int64)
    bits, unsigned = max(info.bits, np.iinfo(amount).bits), dtype in UINTS or (
        amount in UINTS and np.iinfo(amount).bits >= info.bits
    )
    # An unsigned result below 64 bits is widened with zeros.
    mask = 2**bits - 1 if unsigned and bits < 64 else -1
    np.testing.assert_array_equal(got, exact & mask)


def test_sign_that_a_shift_of_a_literal_shifts_in(run):
    x, y = np.zeros(4, np.uint8), np.array([0, 1, 4, 7], np.uint8)
    got = apply(run, "(200 >> y).to(tl.int32)", x, y, np.int32)
    assert got.tolist() == [200, 100, 12, 1]
    got = apply(run, "(-200 >> y.to(tl.uint32)).to(tl.int32)", x, y, np.int32)
    assert got.tolist() == [-200, -100, -13, -2]


@pytest.mark.parametrize("dtype", INTS + UINTS)
def test_integers_wrap(run, dtype):
    info = np.iinfo(dtype)
    x, y = np.array([info.max, info.min], dtype), np.array([1, 1], dtype)
    np.testing.assert_array_equal(apply(run, "x + y", x, y, dtype), [info.min, info.min + 1])
    np.testing.assert_array_equal(apply(run, "x - y", x, y, dtype), [info.max - 1, info.max])
    product = (info.max * info.max) % 2**info.bits
    assert apply(run, "x * x", x, y, dtype)[0] == product


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("dtype", INTS + UINTS)
def test_float_to_integer_saturates(run, source, dtype):
    info = np.iinfo(dtype)
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, -0.75, 3.75], source)
    want = [0, info.max, info.min, info.max, info.min, 0, 3]
    got = apply(run, f"x.to(tl.{dtype})", x, x, dtype)
    np.testing.assert_array_equal(got, np.array(want, dtype))


@pytest.mark.parametrize("dtype", ["int1", "int8", "int64", "float16", "float32", "float64"])
def test_masked_off_lanes_read_zero(run, dtype):
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, out_ptr):
    i = tl.arange(0, 16)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i % 3 == 0))
""")
    x = np.ones(16, "bool" if dtype == "int1" else dtype)
    out = np.full(16, 7).astype(x.dtype)
    run(kernel, (1,), x, out)
    np.testing.assert_array_equal(out, np.where(np.arange(16) % 3 == 0, x, np.zeros_like(x)))


def test_a_store_to_one_address_leaves_one_of_the_values(run):
    kernel = make_kernel("""
@tessera.jit
def kernel(out_ptr):
    i = tl.arange(0, 64)
    tl.store(out_ptr + i % 4, i + 100)
""")
    out = np.zeros(4, np.int32)
    run(kernel, (1,), out)
    for place, value in enumerate(out.tolist()):
        assert value in range(100 + place, 164, 4)


def test_program_order_across_lanes(run):
    """A load sees what another lane stored earlier, and not what it stores later; debug_barrier
    is needed on GPUs alone."""
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, out_ptr):
    i = tl.arange(0, 64)
    tl.store(x_ptr + i, i * i)
    tl.debug_barrier()
    tl.store(out_ptr + i, tl.load(x_ptr + (63 - i)))
    next = tl.load(x_ptr + (i + 1) % 64)
    tl.debug_barrier()
    tl.store(x_ptr + i, next)
""")
    x, out = np.zeros(64, np.int32), np.zeros(64, np.int32)
    run(kernel, (1,), x, out)
    squares = np.arange(64) ** 2
    np.testing.assert_array_equal(out, squares[::-1])
    np.testing.assert_array_equal(x, np.roll(squares, -1))


def test_masked_off_atomics_return_zero(run):
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, out_ptr):
    i = tl.arange(0, 16)
    tl.store(out_ptr + i, tl.atomic_add(x_ptr + i, i, mask=i % 2 == 0))
""")
    x, out = np.full(16, 5, np.int32), np.full(16, 7, np.int32)
    run(kernel, (1,), x, out)
    even = np.arange(16) % 2 == 0
    np.testing.assert_array_equal(out, np.where(even, 5, 0))
    np.testing.assert_array_equal(x, np.where(even, 5 + np.arange(16), 5))


def test_gather_outside_reads_zero(run):
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, index_ptr, out_ptr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    index = tl.load(index_ptr + tl.arange(0, 8))
    tl.store(out_ptr + tl.arange(0, 8), tl.gather(x, index, 0))
""")
    x = np.arange(100, 116, dtype=np.float32)
    index = np.array([0, 15, 16, -1, 7, 2**31 - 1, -(2**31), 3], np.int32)
    out = np.zeros(8, np.float32)
    run(kernel, (1,), x, index, out)
    assert out.tolist() == [100, 115, 0, 0, 107, 0, 0, 103]


def test_reshape_view_and_cat_keep_the_order(run):
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, out_ptr):
    i = tl.arange(0, 64)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.ravel(tl.reshape(x, (4, 16))))
    tl.store(out_ptr + 64 + i, tl.reshape(x.view(8, 8), (64,)))
    tl.store(out_ptr + 128 + tl.arange(0, 128), tl.cat(x, x + 64, dim=0))
""")
    x, out = np.arange(64, dtype=np.int32), np.zeros(256, np.int32)
    run(kernel, (1,), x, out)
    np.testing.assert_array_equal(out, [*range(64), *range(64), *range(128)])


@pytest.mark.parametrize("iterations", [0, 2, 5])
def test_a_loop_variable_keeps_its_last_value(run, iterations):
    kernel = make_kernel("""
@tessera.jit
def kernel(out_ptr, iterations):
    i = 77
    for i in range(0, iterations * 3, 3):
        tl.store(out_ptr + 1, i)
    tl.store(out_ptr, i)
""")
    out = np.full(2, -1, np.int32)
    run(kernel, (1,), out, iterations)
    assert out[0] == (3 * (iterations - 1) if iterations else 77)


def test_denormals_are_kept(run):
    tiny = np.float32(2.0**-149)
    x = np.array([tiny, -tiny, 2.0**-126, 2.0**-127], np.float32)
    y = np.array([1, 1, 0.5, 2], np.float32)
    want = (x.astype(np.float64) * y).astype(np.float32)
    got = apply(run, "x * y", x, y, np.float32)
    assert got.view(np.uint32).tolist() == want.view(np.uint32).tolist()
    want = (x.astype(np.float64) + tiny).astype(np.float32)
    got = apply(run, "x + y", x, np.full_like(x, tiny), np.float32)
    assert got.view(np.uint32).tolist() == want.view(np.uint32).tolist()


def test_exponentials_that_are_flushed():
    """One instruction on a GPU, which gives 0 for what is below 2^-126."""
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, single_ptr, half_ptr):
    i = tl.arange(0, 32)
    x = tl.load(x_ptr + i)
    tl.store(single_ptr + i, tl.exp2(x))
    tl.store(half_ptr + i, tl.exp(x * 0.6931471805599453).to(tl.bfloat16))
""")
    x = np.linspace(-141, -110, 32, dtype=np.float32)
    exact = np.exp2(x)
    normal = x >= -126
    for flushes in (True, False):
        single, half = np.ones(32, np.float32), np.ones(32, ml_dtypes.bfloat16)
        tessera.gpu.simulate(kernel)[(1,)](
            x, single, half, target="sm_90a", enable_reflect_ftz=flushes
        ).check()
        np.testing.assert_array_equal(single, np.where(normal | (not flushes), exact, 0))
        # A bfloat16 ends at 2^-133.
        far = x < (-126.5 if flushes else -134.5)
        np.testing.assert_array_equal(half[far], 0)
        near = x > (-125.5 if flushes else -133.5)
        np.testing.assert_allclose(half[near].astype(np.float32), exact[near], rtol=2**-7)


def test_volatile_scalar_loads_are_uniform(run):
    """Both uses of one volatile load see one value, though the memory changes in between."""
    kernel = make_kernel("""
@tessera.jit
def kernel(flag_ptr, out_ptr):
    flag = tl.load(flag_ptr, volatile=True)
    tl.store(flag_ptr, flag + 1)
    again = tl.load(flag_ptr, volatile=True)
    i = tl.arange(0, 16)
    tl.store(out_ptr + i, tl.zeros((16,), tl.int32) + flag * 10 + again)
""")
    flag, out = np.full(1, 3, np.int32), np.zeros(16, np.int32)
    run(kernel, (1,), flag, out)
    assert out.tolist() == [34] * 16


def test_minimum_and_maximum_with_nan(run):
    x = np.array([1, np.nan, np.nan, -2], np.float32)
    y = np.array([np.nan, 4, np.nan, 3], np.float32)
    np.testing.assert_array_equal(
        apply(run, "tl.maximum(x, y)", x, y, np.float32), [1, 4, np.nan, 3]
    )
    propagate = "tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)"
    np.testing.assert_array_equal(
        apply(run, propagate, x, y, np.float32), [np.nan, np.nan, np.nan, -2]
    )
