# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads and stores: masks, tails, strides, gathers, overlap, block pointers."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest
from execution.running import FLOATS, INTS, UINTS, draw, host_has, numpy_dtype

import tessera
import tessera.language as tl
from tessera.tools.tensor_descriptor import TensorDescriptor


@tessera.jit
def copy_masked(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


@pytest.mark.parametrize("dtype", INTS + UINTS + FLOATS + ["int1"])
@pytest.mark.parametrize("n", [1, 7, 63, 64, 65, 200])
def test_copy_of_any_length(run, rng, dtype, n):
    x = draw(rng, n, dtype)
    out = np.zeros(n + 64, numpy_dtype(dtype))
    run(copy_masked, (-(-n // 64),), x, out, n, BLOCK=64)
    np.testing.assert_array_equal(out[:n].view(np.uint8), x.view(np.uint8))
    assert not out[n:].view(np.uint8).any()


@pytest.mark.parametrize("block", [1, 2, 4, 8, 24, 48, 192, 4096])
def test_copy_with_any_extent(run, rng, block):
    x = draw(rng, 5000, "float32")
    out = np.zeros_like(x)
    run(copy_masked, (-(-5000 // block),), x, out, 5000, BLOCK=block)
    np.testing.assert_array_equal(out, x)


@tessera.jit
def copy_window(x_ptr, out_ptr, n, low, other, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=other)
    tl.store(out_ptr + offsets, x, mask=(offsets < n + 3) & (offsets >= low))


@pytest.mark.parametrize("dtype", ["int1", "int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("n", [1, 1001, 1023, 1024, 1026, 2040, 3071])
def test_a_mask_may_end_within_a_vector(run, rng, dtype, n):
    x = draw(rng, n, dtype)
    out = np.zeros(3072, numpy_dtype(dtype))
    expected = out.copy()
    low, end = min(5, n - 1), min(n + 3, 3072)
    expected[:n] = x
    expected[n:end] = 1
    expected[:low] = 0
    run(copy_window, (3,), x, out, n, low, 1, BLOCK=1024)
    np.testing.assert_array_equal(out.view(np.uint8), expected.view(np.uint8))


@tessera.jit
def double_block(x_ptr, out_ptr, rows, columns, stride: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, 16)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    mask = (i < rows) & (j < columns)
    x = tl.load(x_ptr + i * stride + j, mask=mask, other=0)
    total = tl.sum(x.to(tl.float32), axis=1)[:, None]
    tl.store(out_ptr + i * stride + j, x + total.to(x.dtype), mask=mask)


@pytest.mark.parametrize("dtype", ["float16", "int32"])
@pytest.mark.parametrize("rows, columns", [(16, 128), (15, 127), (3, 100), (16, 1), (1, 66)])
def test_rows_that_end_within_a_vector(run, rng, dtype, rows, columns):
    x = rng.integers(-3, 4, (16, 128)).astype(numpy_dtype(dtype))
    out = np.full_like(x, 77)
    expected = out.copy()
    part = x[:rows, :columns]
    expected[:rows, :columns] = part + part.sum(axis=1, keepdims=True).astype(x.dtype)
    run(double_block, (1,), x, out, rows, columns, stride=128, BLOCK=128)
    np.testing.assert_array_equal(out, expected)


@tessera.jit
def load_other(x_ptr, out_ptr, n, other):
    offsets = tl.arange(0, 64)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n, other=other))
    tl.store(out_ptr + 64 + offsets, tl.load(x_ptr + offsets, mask=offsets < n))


def test_masked_off_lanes_read_other_or_zero(run, rng):
    x = draw(rng, 64, "float32")
    out = np.full(128, np.nan, np.float32)
    run(load_other, (1,), x, out, 40, 2.5)
    np.testing.assert_array_equal(out[:64], np.where(np.arange(64) < 40, x, 2.5))
    np.testing.assert_array_equal(out[64:], np.where(np.arange(64) < 40, x, 0))


@tessera.jit
def every_nth(x_ptr, out_ptr, n, STRIDE: tl.constexpr, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n if MASKED else None
    tl.store(out_ptr + i, tl.load(x_ptr + STRIDE * i, mask=mask))


@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
@pytest.mark.parametrize("stride", [2, 3, 4, 5])
@pytest.mark.parametrize("block, n", [(16, 16), (64, 64), (64, 37)])
def test_elements_apart_at_the_end_of_memory(run, rng, dtype, stride, block, n):
    # What lies between elements may be loaded, but nothing behind the last one.
    size = np.dtype(dtype).itemsize
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    behind = ctypes.addressof(ctypes.c_char.from_buffer(pages)) + mmap.PAGESIZE
    count = (n - 1) * stride + 1
    x = np.frombuffer(pages, dtype, count, mmap.PAGESIZE - count * size)
    x[:] = draw(rng, count, dtype)
    mprotect = ctypes.CDLL(None, use_errno=True).mprotect
    assert mprotect(ctypes.c_void_p(behind), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    out = np.zeros(block, dtype)
    run(every_nth, (1,), x, out, n, STRIDE=stride, BLOCK=block, MASKED=n != block)
    np.testing.assert_array_equal(out[:n], x[::stride])
    assert not out[n:].any()


@tessera.jit
def rows_by_flag(x_ptr, flag_ptr, out_ptr, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    flags = tl.load(flag_ptr + rows)
    index, inside = tl.abs(flags) % ROWS, flags > 0
    ptrs = x_ptr + index[:, None] * WIDTH + columns[None, :]
    x = tl.load(ptrs, mask=inside[:, None])
    x += tl.load(ptrs, mask=inside[:, None], other=0.0)
    x += tl.load(ptrs, mask=inside[:, None], other=1.0)
    tl.store(out_ptr + rows[:, None] * WIDTH + columns[None, :], x)
    tl.store(out_ptr + (ROWS + rows) * WIDTH, tl.sum(x, axis=1))


@pytest.mark.parametrize("rows, width", [(2, 32), (16, 32), (32, 8), (16, 256), (4, 1024)])
def test_rows_left_out_by_the_data(run, rng, rows, width):
    x = draw(rng, (rows, width), "float32")
    flags = rng.integers(-rows, rows + 1, rows).astype(np.int32)
    out = np.zeros((2 * rows, width), np.float32)
    run(rows_by_flag, (1,), x, flags, out, ROWS=rows, WIDTH=width)
    want = np.where(flags[:, None] > 0, 3 * x[np.abs(flags) % rows], 1)
    np.testing.assert_allclose(out[:rows], want, rtol=1e-6)
    np.testing.assert_allclose(out[rows:, 0], want.sum(1), rtol=1e-3, atol=1e-3)


@tessera.jit
def masked_by_data(x_ptr, flag_ptr, out_ptr):
    offsets = tl.arange(0, 128)
    flags = tl.load(flag_ptr + offsets) > 0
    x = tl.load(x_ptr + offsets, mask=flags, other=-1.0)
    tl.store(out_ptr + offsets, x, mask=(offsets % 3) != 0)


def test_masks_from_memory(run, rng):
    x, flags = draw(rng, 128, "float32"), rng.integers(0, 2, 128).astype(np.int8)
    out = np.full(128, 9, np.float32)
    run(masked_by_data, (1,), x, flags, out)
    want = np.where(np.arange(128) % 3 != 0, np.where(flags > 0, x, -1), 9)
    np.testing.assert_array_equal(out, want)


@tessera.jit
def copy_matrix(x_ptr, out_ptr, M, N, stride_xm, stride_xn, stride_om, stride_on,
                BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    x = tl.load(x_ptr + rows[:, None] * stride_xm + columns[None, :] * stride_xn, mask=mask)
    tl.store(out_ptr + rows[:, None] * stride_om + columns[None, :] * stride_on, x, mask=mask)


@pytest.mark.parametrize("order_x, order_out", [("C", "C"), ("F", "C"), ("C", "F"), ("F", "F")])
@pytest.mark.parametrize("shape", [(1, 1), (16, 16), (33, 47), (100, 7)])
def test_matrices_of_any_strides(run, rng, shape, order_x, order_out):
    x = np.asarray(draw(rng, shape, "float32"), order=order_x)
    out = np.zeros(shape, np.float32, order=order_out)
    strides = [s // 4 for s in (*x.strides, *out.strides)]
    grid = (-(-shape[0] // 16), -(-shape[1] // 32))
    run(copy_matrix, grid, x, out, *shape, *strides, BLOCK_M=16, BLOCK_N=32)
    np.testing.assert_array_equal(out, x)


@tessera.jit
def gather_rows(table_ptr, index_ptr, out_ptr, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    index = tl.load(index_ptr + rows)
    columns = tl.arange(0, WIDTH)
    x = tl.load(table_ptr + index[:, None] * WIDTH + columns[None, :])
    tl.store(out_ptr + rows[:, None] * WIDTH + columns[None, :], x)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_rows_chosen_by_index(run, rng, dtype):
    table = draw(rng, (100, 32), "float32")
    index = rng.integers(0, 100, 64).astype(dtype)
    out = np.zeros((64, 32), np.float32)
    run(gather_rows, (8,), table, index, out, WIDTH=32, ROWS=8)
    np.testing.assert_array_equal(out, table[index])


@pytest.mark.parametrize("first", [0, 8, 9, 40])
def test_rows_chosen_by_index_and_stored_among_them(run, rng, first):
    # Every row is loaded before any is stored, wherever the chosen rows lie.
    skip_where_threads_race(run)
    table = draw(rng, (48, 32), "float32")
    index = rng.integers(0, 17, 8).astype(np.int64)
    want = table.copy()
    want[first : first + 8] = table[index]
    run(gather_rows, (1,), table, index, table[first:], WIDTH=32, ROWS=8)
    np.testing.assert_array_equal(table, want)


@tessera.jit
def permute_rows(x_ptr, from_ptr, to_ptr, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    source, target = tl.load(from_ptr + rows), tl.load(to_ptr + rows)
    x = tl.load(x_ptr + source[:, None] * WIDTH + columns[None, :])
    tl.store(x_ptr + target[:, None] * WIDTH + columns[None, :], x)


@pytest.mark.parametrize("apart", [0, 12, 30])
def test_rows_moved_to_rows_chosen_by_index(run, rng, apart):
    if apart < 16:
        skip_where_threads_race(run)
    x = draw(rng, (64, 32), "float32")
    source, target = rng.permutation(16)[:8], rng.permutation(16)[:8] + apart
    want = x.copy()
    want[target] = x[source]
    run(permute_rows, (1,), x, source, target, WIDTH=32, ROWS=8)
    np.testing.assert_array_equal(x, want)


@tessera.jit
def transpose_onto(x_ptr, out_ptr, N: tl.constexpr):
    x_ptrs = x_ptr + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    out_ptrs = out_ptr + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptrs, tl.trans(tl.load(x_ptrs)))


@tessera.jit
def transpose_in_place(x_ptr, N: tl.constexpr):
    ptrs = x_ptr + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(ptrs, tl.trans(tl.load(ptrs)))


@pytest.mark.parametrize("n", [16, 32])
def test_matrices_transposed_in_place(run, rng, n):
    x = draw(rng, (n, n), "float32")
    one, other = x.copy(), x.copy()
    run(transpose_in_place, (1,), one, N=n)
    np.testing.assert_array_equal(one, x.T)
    run(transpose_onto, (1,), other, other, N=n)
    np.testing.assert_array_equal(other, x.T)


@tessera.jit
def scale_rows(x_ptr, y_ptr, out_ptr, stride, M: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * stride + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, x * tl.load(y_ptr + offsets))


@pytest.mark.parametrize("stride", [64, 100])
@pytest.mark.parametrize("shift", [0, 1, 64])
def test_results_in_place_of_an_argument(run, rng, stride, shift):
    if shift:
        skip_where_threads_race(run)
    space, y = rng.integers(1, 9, 2000).astype(np.float32), draw(rng, 2000, "float32")
    offsets = np.arange(8)[:, None] * stride + np.arange(64)[None, :]
    want = space.copy()
    want[shift:][offsets] = space[offsets] * y[offsets]
    run(scale_rows, (1,), space, y, space[shift:], stride, M=8, N=64)
    np.testing.assert_array_equal(space, want)


@tessera.jit
def count_up(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, (x + offsets).to(out_ptr.dtype.element_ty), mask=offsets < n)


@pytest.mark.in_turn("aligned")
@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64-v3", "x86-64"])
@pytest.mark.parametrize("dtype", ["int32", "int16"])
@pytest.mark.parametrize("aligned", [4, 16, 32, 64])
def test_results_larger_than_the_caches(target, dtype, aligned):
    # They are stored by non-temporal stores, and seen all the same by whoever comes next.
    if not host_has(target):
        pytest.skip(f"this machine has no {target}")
    n = (1 << 24) + 5
    space = np.zeros(n + 64, dtype)
    first = (-space.ctypes.data % 64 + aligned % 64) // space.itemsize
    out = space[first : first + n]
    x = np.ones(n, np.int8)
    count_up[(-(-n // 4096),)](x, out, n, BLOCK=4096, cpu=target)
    np.testing.assert_array_equal(out, np.arange(1, n + 1).astype(dtype))
    assert not space[:first].any() and not space[first + n :].any()


@tessera.jit
def gather_and_scatter(x_ptr, from_ptr, to_ptr, out_ptr):
    offsets = tl.arange(0, 64)
    x = tl.load(x_ptr + tl.load(from_ptr + offsets))
    tl.store(out_ptr + tl.load(to_ptr + offsets), x)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
def test_gather_and_scatter(run, rng, dtype):
    x = draw(rng, 500, dtype)
    source, target = rng.integers(0, 500, 64), rng.permutation(500)[:64]
    out = np.zeros(500, x.dtype)
    run(gather_and_scatter, (1,), x, source, target, out)
    want = np.zeros(500, x.dtype)
    want[target] = x[source]
    np.testing.assert_array_equal(out, want)


@tessera.jit
def modulo_addresses(x_ptr, out_ptr, n):
    offsets = (tl.program_id(0) * 32 + tl.arange(0, 32)) % n
    tl.store(out_ptr + tl.program_id(0) * 32 + tl.arange(0, 32), tl.load(x_ptr + offsets))


def test_addresses_that_wrap_around(run, rng):
    x = draw(rng, 20, "float32")
    out = np.zeros(96, np.float32)
    run(modulo_addresses, (3,), x, out, 20)
    np.testing.assert_array_equal(out, x[np.arange(96) % 20])


def skip_where_threads_race(run):
    if run.target in ("cuda", "simulator"):
        pytest.skip("a GPU orders accesses of different threads at barriers only")


@tessera.jit
def shift_in_place(x_ptr, by, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets + by, tl.load(x_ptr + offsets))


@pytest.mark.parametrize("by", [0, 1, 3, 16, 100, -1, -7])
def test_all_of_a_tile_is_loaded_before_it_is_stored(run, rng, by):
    skip_where_threads_race(run)
    x = draw(rng, 600, "float32")
    view = x[150:]
    want = x.copy()
    want[150 + by : 150 + by + 256] = x[150 : 150 + 256]
    run(shift_in_place, (1,), view, by, BLOCK=256)
    np.testing.assert_array_equal(x, want)


@tessera.jit
def reverse_in_place(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + (BLOCK - 1) - offsets, tl.load(x_ptr + offsets))


def test_reversal_in_place(run, rng):
    skip_where_threads_race(run)
    x = draw(rng, 256, "int32")
    want = x[::-1].copy()
    run(reverse_in_place, (1,), x, BLOCK=256)
    np.testing.assert_array_equal(x, want)


@tessera.jit
def two_stores_then_load(x_ptr, out_ptr, BARRIERS: tl.constexpr):
    offsets = tl.arange(0, 64)
    tl.store(x_ptr + offsets, offsets)
    if BARRIERS:
        tl.debug_barrier()
    tl.store(x_ptr + offsets + 1, offsets * 10)
    if BARRIERS:
        tl.debug_barrier()
    tl.store(out_ptr + offsets, tl.load(x_ptr + 63 - offsets))


@pytest.mark.parametrize("barriers", [False, True])
def test_memory_operations_keep_program_order(run, barriers):
    if not barriers:
        skip_where_threads_race(run)
    x, out = np.zeros(65, np.int32), np.zeros(64, np.int32)
    run(two_stores_then_load, (1,), x, out, BARRIERS=barriers)
    want = np.concatenate([[0], np.arange(64) * 10])
    np.testing.assert_array_equal(x, want)
    np.testing.assert_array_equal(out, want[:64][::-1])


@tessera.jit
def scalars(x_ptr, out_ptr, i):
    x = tl.load(x_ptr + i)
    tl.store(out_ptr, x * 2)
    tl.store(out_ptr + 1, tl.load(x_ptr + i + 1, mask=i > 100, other=7))


def test_scalar_loads_and_stores(run, rng):
    x, out = draw(rng, 16, "int32"), np.zeros(2, np.int32)
    run(scalars, (1,), x, out, 3)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out, [x[3] * np.int32(2), 7])


@tessera.jit
def through_pointers(addresses_ptr, out_ptr, BLOCK: tl.constexpr):
    which = tl.program_id(0)
    x_ptr = tl.load(addresses_ptr + which).to(tl.pointer_type(tl.float32))
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + which * BLOCK + offsets, tl.load(x_ptr + offsets))


def test_pointers_loaded_from_memory(run, rng):
    arrays = [draw(rng, 32, "float32") for _ in range(4)]
    addresses = run.addresses(arrays)
    out = np.zeros((4, 32), np.float32)
    run(through_pointers, (4,), addresses, out, BLOCK=32)
    np.testing.assert_array_equal(out, arrays)


@tessera.jit
def multiply_listed(pointers, sizes, out_ptr, BLOCK: tl.constexpr, FROM: tl.constexpr):
    """Of a grouped matmul: what an array is, memory says."""
    m, n, k = tl.load(sizes), tl.load(sizes + 1), tl.load(sizes + 2)
    a_ptr = tl.load(pointers).to(tl.pointer_type(tl.float16))
    b_ptr = tl.load(pointers + 1).to(tl.pointer_type(tl.float16))
    a = tl.make_tensor_descriptor(a_ptr, [m, k], [tl.load(sizes + 3), 1], [64, BLOCK])
    b = tl.make_tensor_descriptor(b_ptr, [n, k], [tl.load(sizes + 4), 1], [64, BLOCK])
    acc = tl.zeros([64, 64], tl.float32)
    for i in range(FROM, k, BLOCK):
        acc = tl.dot(a.load([0, i]), b.load([0, i]).T, acc)
    i = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(out_ptr + i, acc)


@pytest.mark.parametrize("start", [0, -3])
@pytest.mark.parametrize(
    "m, n, k", [(64, 64, 128), (64, 64, 77), (33, 64, 96), (64, 50, 33), (1, 1, 1)]
)
def test_descriptors_of_what_is_loaded(run, rng, m, n, k, start):
    """Rows that end within 16 bytes, of which a copy moves a part."""
    rows = rng.integers(-3, 4, (m, 136)).astype(np.float16)
    columns = rng.integers(-3, 4, (n, 144)).astype(np.float16)
    sizes = np.array([m, n, k, 136, 144], np.int32)
    out = np.zeros((64, 64), np.float32)
    run(multiply_listed, (1,), run.addresses([rows, columns]), sizes, out, BLOCK=32, FROM=start)
    want = np.zeros((64, 64), np.float32)
    want[:m, :n] = rows[:, :k].astype(np.float32) @ columns[:, :k].astype(np.float32).T
    np.testing.assert_array_equal(out, want)


@tessera.jit
def multiply_from(a_ptr, b_ptr, out_ptr, K, lda, ldb, ldo, FROM: tl.constexpr, BLOCK: tl.constexpr):
    """The elements of rows from `FROM` on, to columns from there on."""
    i, j = tl.arange(0, 64), tl.arange(0, BLOCK)
    acc = tl.zeros([64, 64], tl.float32)
    for k in range(FROM, K, BLOCK):
        inside = (k + j < K)[None, :]
        a = tl.load(a_ptr + i[:, None] * lda + (k + j)[None, :], mask=inside, other=0.0)
        b = tl.load(b_ptr + i[:, None] * ldb + (k + j)[None, :], mask=inside, other=0.0)
        acc = tl.dot(a, b.T, acc)
    tl.store(out_ptr + i[:, None] * ldo + i[None, :] + FROM, acc.to(tl.float16))


@pytest.mark.parametrize("start", [0, 3, 8, 20])
def test_rows_from_somewhere_on(run, rng, start):
    """TMA copies from and to multiples of 16 bytes of a row alone."""
    a, b = (rng.integers(-2, 3, (64, 128)).astype(np.float16) for _ in range(2))
    out = np.zeros((64, 96), np.float16)
    run(multiply_from, (1,), a, b, out, 112, 128, 128, 96, FROM=start, BLOCK=32)
    want = a[:, start:112].astype(np.float32) @ b[:, start:112].astype(np.float32).T
    np.testing.assert_array_equal(out[:, start : start + 64], want.astype(np.float16))
    assert not out[:, :start].any() and not out[:, start + 64 :].any()


@tessera.jit
def block_pointers(x_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    source = tl.make_block_ptr(
        x_ptr, shape=(M, N), strides=(N, 1), offsets=(tl.program_id(0) * BLOCK_M, 0),
        block_shape=(BLOCK_M, BLOCK_N), order=(1, 0),
    )  # fmt: skip
    target = tl.make_block_ptr(
        out_ptr, shape=(M, N), strides=(N, 1), offsets=(tl.program_id(0) * BLOCK_M, 0),
        block_shape=(BLOCK_M, BLOCK_N), order=(1, 0),
    )  # fmt: skip
    for _ in range(0, N, BLOCK_N):
        x = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, x + 1.0, boundary_check=(0, 1))
        source = tl.advance(source, (0, BLOCK_N))
        target = tl.advance(target, (0, BLOCK_N))


@pytest.mark.parametrize("shape", [(32, 64), (17, 50), (5, 129)])
def test_block_pointers(run, rng, shape):
    x = draw(rng, shape, "float32")
    out = np.zeros(shape, np.float32)
    run(block_pointers, (-(-shape[0] // 16),), x, out, *shape, BLOCK_M=16, BLOCK_N=32)
    np.testing.assert_array_equal(out, x + np.float32(1))


@tessera.jit
def move_rows(x_ptr, rows_ptr, out_ptr, n):
    source = tl.make_tensor_descriptor(x_ptr, [n, 8], [8, 1], [1, 8])
    target = tl.make_tensor_descriptor(out_ptr, [n, 8], [8, 1], [1, 8])
    rows = tl.load(rows_ptr + tl.arange(0, 8))
    target.scatter(source.gather(rows, 0), rows, 0)


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "uint32"])
def test_rows_of_a_descriptor_by_index(run, rng, dtype):
    n = 32000 if dtype == "int16" else 40000
    rows = np.array([0, 5, n - 1, n - 7000, 17, 31999, 1, 2], dtype)
    x = draw(rng, (n, 8), "float32")
    out = np.zeros_like(x)
    run(move_rows, (1,), x, rows, out, n)
    want = np.zeros_like(x)
    want[rows] = x[rows]
    np.testing.assert_array_equal(out, want)


@tessera.jit
def scale_blocks(source, result, factor):
    i = tl.program_id(0) * 8
    for j in range(0, 64, 16):
        result.store([i, j], source.load([i, j]) * factor)


@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize("shape", [(8, 64), (19, 50), (3, 1)])
def test_descriptors_made_on_the_host(run, rng, shape, dtype):
    """Of a part of an array: what lies around it is neither read nor written."""
    if dtype == "float32":
        whole = draw(rng, (24, 72), dtype)
    else:
        whole = rng.integers(-99, 99, (24, 72)).astype(dtype)
    out = np.full_like(whole, 7)
    part, target = whole[: shape[0], : shape[1]], out[: shape[0], : shape[1]]
    run(
        scale_blocks,
        (-(-shape[0] // 8),),
        TensorDescriptor.from_tensor(part, [8, 16]),
        TensorDescriptor.from_tensor(target, [8, 16]),
        3,
    )
    np.testing.assert_array_equal(target, part * whole.dtype.type(3))
    target[:] = 7
    assert (out == 7).all()


@tessera.jit
def multiply_rows(x_ptr, y_ptr, out_ptr, m, n):
    """A loop with a dot, so that tiles may come by TMA."""
    x = tl.make_tensor_descriptor(x_ptr, [m * n, 64], [64, 1], [64, 64])
    y = tl.make_tensor_descriptor(y_ptr, [64, 64], [64, 1], [64, 64])
    acc = tl.zeros([64, 64], tl.float32)
    for k in range(0, 128, 64):
        acc = tl.dot(x.load([k, 0]), y.load([0, 0]), acc)
    i = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(out_ptr + i, acc)


@pytest.mark.parametrize(
    "m, n", [(8, 16), (5, 16), (1 << 16, 1 << 16), (16, -8), ((1 << 30) + 6, 16)]
)
def test_an_extent_that_is_computed(run, rng, m, n):
    """It may wrap: then it is what is left of it."""
    x, y = (rng.integers(-3, 4, (rows, 64)).astype(np.float16) for rows in (128, 64))
    rows = np.array(m * n & 0xFFFFFFFF, np.uint32).astype(np.int32)
    inside = np.where(np.arange(128)[:, None] < rows, x, 0).astype(np.float32)
    out = np.zeros((64, 64), np.float32)
    run(multiply_rows, (1,), x, y, out, m, n)
    np.testing.assert_array_equal(out, (inside[:64] + inside[64:]) @ y.astype(np.float32))


@tessera.jit
def sum_rows_of_pair(pair, out_ptr):
    x = pair[0].load([0, 0]) + pair[1].load([-2, 0])
    tl.store(out_ptr + tl.arange(0, 8), tl.sum(x, 1))


def test_descriptors_in_a_tuple_with_padding(run, rng):
    a, b = draw(rng, (8, 16), "float32"), draw(rng, (8, 16), "float32")
    pair = tuple(TensorDescriptor.from_tensor(x, [8, 16], "nan") for x in (a, b))
    out = np.zeros(8, np.float32)
    run(sum_rows_of_pair, (1,), pair, out)
    assert np.isnan(out[:2]).all()
    np.testing.assert_allclose(out[2:], (a[2:] + b[:6]).sum(1), rtol=1e-5)


def test_a_grid_of_nothing_does_nothing(run, rng):
    x, out = draw(rng, 64, "float32"), np.zeros(64, np.float32)
    run(copy_masked, (0,), x, out, 64, BLOCK=64)
    assert not out.any()


@tessera.jit
def through_named_types(x_ptr, y_ptr, n):
    source = tl.make_block_ptr(x_ptr, (n, 16), (16, 1), (0, 0), (4, 16), (1, 0))
    target = tl.make_block_ptr(y_ptr, (n, 16), (16, 1), (0, 0), (4, 16), (1, 0))
    tl.static_assert(target.dtype.is_ptr())
    tl.static_assert(target.dtype.element_ty == tl.block_type(tl.float16, [4, 16]))
    tl.static_assert(target.dtype.element_ty.element_ty == tl.float16)
    rounded = tl.load(source, boundary_check=(0,)).to(target.dtype.element_ty)
    tl.static_assert(rounded.dtype == tl.float16)
    tl.store(target, rounded, boundary_check=(0,))


def test_type_of_a_block_pointer(run, rng):
    x, y = rng.standard_normal((3, 16), np.float32), np.zeros((4, 16), np.float16)
    run(through_named_types, (1,), x, y, 3)
    np.testing.assert_array_equal(y[:3], x.astype(np.float16))
    assert (y[3] == 0).all()


@tessera.jit
def indexed_scalars(x_ptr, out_ptr, N: tl.constexpr):
    pointer = x_ptr[None, None, :]
    tl.static_assert(pointer.shape == (1, 1))
    x = tl.load(x_ptr)
    tl.static_assert(x[None, :].shape == (1,) and x[:].shape == () and x[None, ...].shape == (1,))
    i = tl.arange(0, N)
    tl.store(out_ptr + i, x[None, :] * i)
    tl.store(out_ptr[None, None, :], tl.load(pointer) + 5)


def test_scalars_are_indexed_as_tiles_are(run):
    out = np.zeros(8, np.float32)
    run(indexed_scalars, (1,), np.array([3], np.float32), out, N=8)
    assert out.tolist() == [8, *(3 * i for i in range(1, 8))]


@tessera.jit
def chosen_by_integers(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.where(tl.load(x_ptr + i), 1.0, 2.0))


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.bool_])
def test_integers_are_conditions(run, dtype):
    """Every bit counts: 256 is true."""
    x = np.array([0, 1, -1, 2, 64, 0, 256, 1 << 40]).astype(dtype)
    out = np.zeros(8, np.float32)
    run(chosen_by_integers, (1,), x, out, N=8)
    np.testing.assert_array_equal(out, np.where(x, 1, 2))


@tessera.jit
def parts_of(array):
    return array.shape[0] + array.shape[1] * 1000 + array.strides[0].to(tl.int32) * 1000000


@tessera.jit(noinline=True)
def parts_by_call(array):
    return array.shape[0] + array.shape[1] * 1000


@tessera.jit
def parts_of_descriptors(given, pair, x_ptr, rows, columns, out_ptr):
    made = tl.make_tensor_descriptor(x_ptr, [rows, columns], [columns, 1], [2, 16])
    tl.static_assert(given.shape[0].dtype == tl.int32 and given.strides[0].dtype == tl.int64)
    tl.static_assert(given.block_shape == (2, 16) and given.dtype == tl.float32)
    tl.static_assert(len(given.shape) == 2 and given.block_type.shape == (2, 16))
    tl.store(out_ptr, parts_of(given))
    tl.store(out_ptr + 1, parts_of(made))
    tl.store(out_ptr + 2, parts_of(pair[1]))
    tl.store(out_ptr + 3, given.strides[1] + made.strides[1])
    tl.store(out_ptr + 4, parts_by_call(given))
    current = given
    if rows > 5:
        current = made
    tl.store(out_ptr + 5, parts_of(current))
    total = 0
    for i in range(current.shape[0]):
        total += current.shape[1]
        current = pair[1]
    tl.store(out_ptr + 6, total)


@pytest.mark.parametrize("rows, columns", [(6, 64), (1, 16), (24, 128)])
def test_shape_and_strides_of_descriptors(run, rows, columns):
    """The array's, not the block's: of arguments, of those made here, wherever they went."""
    wide = np.zeros((9, 256), np.float32)
    given = TensorDescriptor.from_tensor(wide[:7, :96], [2, 16])
    other = TensorDescriptor.from_tensor(np.zeros((3, 48), np.float32), [2, 16])
    out = np.zeros(7, np.int64)
    x = np.zeros((rows, columns), np.float32)
    run(parts_of_descriptors, (1,), given, (1, other), x, rows, columns, out)
    of_given = 7 + 96000 + 256000000
    of_made = rows + columns * 1000 + columns * 1000000
    current = (rows, columns, of_made) if rows > 5 else (7, 96, of_given)
    total = current[1] + (current[0] - 1) * 48
    want = [of_given, of_made, 3 + 48000 + 48000000, 2, 96007, current[2], total]
    assert out.tolist() == want


@tessera.jit
def sums_of_rows(array, out_ptr):
    columns = array.block_shape[1]
    acc = tl.zeros((2,), tl.float32)
    for k in range(0, tl.cdiv(array.shape[1], columns)):
        acc += tl.sum(array.load([0, k * columns]), 1)
    tl.store(out_ptr + tl.arange(0, 2), acc)


def test_loop_over_the_extent_of_a_descriptor(run):
    out = np.zeros(2, np.float32)
    array = TensorDescriptor.from_tensor(np.ones((2, 256), np.float32), [2, 16])
    run(sums_of_rows, (1,), array, out)
    assert out.tolist() == [256, 256]


@tessera.jit
def addresses_of(x_ptr, addresses_ptr, one_ptr, n):
    i = tl.arange(0, 16)
    tl.store(addresses_ptr + i, x_ptr + 2 * i, mask=i < n)
    tl.store(one_ptr, x_ptr + 5)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_addresses_are_stored_as_integers(run, dtype):
    x = np.zeros(32, np.float16)
    addresses, one = np.full(16, 1, dtype), np.zeros(1, dtype)
    run(addresses_of, (1,), x, addresses, one, 13)
    base = int(one[0]) - 10
    np.testing.assert_array_equal(addresses[:13], base + 4 * np.arange(13, dtype=dtype))
    assert (addresses[13:] == 1).all()
    if run.target in ("interpreter", "x86-64"):
        assert base == x.ctypes.data


@tessera.jit
def rounded_blocks(x, y, other, rows_ptr, out_ptr, swap):
    i, j = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    tl.store(out_ptr + i * 16 + j, x.load([0, 0]))
    tl.store(out_ptr + 128 + i * 16 + j, y.gather(tl.load(rows_ptr + tl.arange(0, 8)), 0))
    if swap:
        x = other
    for _ in range(2):
        tl.store(out_ptr + 256 + i * 16 + j, x.load([0, 0]))


@pytest.mark.parametrize("swap", [0, 1])
def test_float32_rounded_to_tf32_by_a_descriptor(run, rng, swap):
    """To 10 bits, ties to even; infinities and NaN as they are. Nothing else is rounded."""
    bits = rng.integers(0, 2**32, (8, 16), np.uint32)
    bits[0, :8] = 0x3F801000, 0x3F803000, 0x3F800FFF, 0x7F800000, 0xFF800000, 0x7FC00001, 1, 0x7F7FFFFF  # fmt: skip
    x = bits.view(np.float32)
    make = TensorDescriptor.from_tensor
    rows, out = np.arange(8, dtype=np.int32)[::-1].copy(), np.zeros((3, 8, 16), np.float32)
    other = draw(rng, (8, 16), "float32")
    run(
        rounded_blocks,
        (1,),
        make(x, [8, 16], round_f32_to_tf32=True),
        make(x, [1, 16], round_f32_to_tf32=True),
        make(other, [8, 16], "zero", True),
        rows,
        out,
        swap,
    )

    def rounded(numbers: np.ndarray) -> np.ndarray:
        bits = numbers.view(np.uint32)
        up = (bits.astype(np.uint64) + 0xFFF + (bits >> 13 & 1)).astype(np.uint32) & 0xFFFFE000
        return np.where((bits & 0x7F800000) == 0x7F800000, bits, up)

    np.testing.assert_array_equal(out[0].view(np.uint32), rounded(x))
    np.testing.assert_array_equal(out[1].view(np.uint32), rounded(x)[::-1])
    np.testing.assert_array_equal(out[2].view(np.uint32), rounded(other if swap else x))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_no_other_type_is_rounded_by_a_descriptor(run, rng, dtype):
    x = rng.integers(-99, 99, (8, 64)).astype(numpy_dtype(dtype))
    out = np.zeros_like(x)
    source = TensorDescriptor.from_tensor(x, [8, 16], round_f32_to_tf32=True)
    run(scale_blocks, (1,), source, TensorDescriptor.from_tensor(out, [8, 16]), 3)
    np.testing.assert_array_equal(out, x * x.dtype.type(3))
