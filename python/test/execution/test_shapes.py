# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that move elements: none of them reorders."""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import draw, make_kernel


def offsets(shape: tuple[int, ...]) -> str:
    """The row-major offsets of a tile of this shape, as an expression."""
    terms, stride = [], 1
    for dim in reversed(range(len(shape))):
        index = ", ".join(":" if d == dim else "None" for d in range(len(shape)))
        terms.append(f"tl.arange(0, {shape[dim]})[{index}] * {stride}")
        stride *= shape[dim]
    return " + ".join(reversed(terms))


def move(run, x: np.ndarray, expression: str, out_shape: tuple[int, ...]) -> np.ndarray:
    kernel = make_kernel(f"""
@tessera.jit
def kernel(x_ptr, out_ptr):
    x = tl.load(x_ptr + {offsets(x.shape)})
    tl.store(out_ptr + {offsets(out_shape)}, {expression})
""")
    out = np.full(out_shape, 99, x.dtype)
    run(kernel, (1,), x, out)
    return out


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
def test_transpose(run, rng, dtype):
    x = draw(rng, (16, 32), dtype)
    np.testing.assert_array_equal(move(run, x, "tl.trans(x)", (32, 16)), x.T)
    np.testing.assert_array_equal(move(run, x, "x.T", (32, 16)), x.T)
    np.testing.assert_array_equal(move(run, x, "tl.trans(x + x).to(x.dtype)", (32, 16)), (x + x).T)


@pytest.mark.parametrize(
    "order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
)
def test_permute(run, rng, order):
    x = draw(rng, (4, 8, 16), "int32")
    shape = tuple(x.shape[d] for d in order)
    np.testing.assert_array_equal(
        move(run, x, f"tl.permute(x, {order})", shape), x.transpose(order)
    )


@pytest.mark.parametrize("shape", [(512,), (2, 256), (8, 4, 16), (16, 32), (1, 512)])
def test_reshape(run, rng, shape):
    x = draw(rng, (16, 32), "float32")
    np.testing.assert_array_equal(move(run, x, f"tl.reshape(x, {shape})", shape), x.reshape(shape))


# Shapes of which one cannot be had of the other within a thread, from where an odd factor is moved.
MOVED = [
    ((16, 24), (384,)), ((384,), (24, 16)), ((24, 16), (16, 24)), ((24, 40), (40, 24)),
    ((24, 88), (88, 24)), ((2, 24, 4), (192,)), ((24, 24), (576,)), ((1, 56), (56, 1)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["int1", "int8", "float16", "float32", "int64"])
@pytest.mark.parametrize("shapes", MOVED, ids=str)
def test_reshape_that_moves_an_odd_factor(run, rng, shapes, dtype):
    before, after = shapes
    x = draw(rng, before, dtype)
    got = move(run, x, f"tl.reshape(x, {after})", after)
    np.testing.assert_array_equal(got, x.reshape(after))


def test_odd_factors_move_in_loops_and_branches(run, rng):
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, out_ptr, n, size):
    i = tl.arange(0, 384)
    places = tl.reshape(x_ptr + i, (16, 24))
    inside = tl.reshape(i < size, (16, 24))
    total = tl.zeros((384,), tl.float32)
    for step in range(n):
        x = tl.load(places + step * 384, mask=inside, other=1)
        if step % 2 == 0:
            total += tl.ravel(x)
        else:
            total = tl.ravel(tl.reshape(total + tl.ravel(x), (48, 8)).T)
    tl.store(out_ptr + i, total)
""")
    x, out = draw(rng, (5, 384), "float32"), np.zeros(384, np.float32)
    run(kernel, (1,), x, out, 5, 300)
    want = np.zeros(384, np.float32)
    for step, row in enumerate(x):
        want += np.where(np.arange(384) < 300, row, 1)
        if step % 2 == 1:
            want = want.reshape(48, 8).T.reshape(-1)
    np.testing.assert_array_equal(out, want)


def test_expand_and_broadcast(run, rng):
    x = draw(rng, (32,), "float32")
    got = move(run, x, "tl.broadcast_to(x[:, None], (32, 8))", (32, 8))
    np.testing.assert_array_equal(got, np.broadcast_to(x[:, None], (32, 8)))
    got = move(run, x, "tl.expand_dims(x, 0) + tl.zeros((4, 1), tl.float32)", (4, 32))
    np.testing.assert_array_equal(got, np.broadcast_to(x, (4, 32)))


def test_join_split_interleave_cat_flip(run, rng):
    x = draw(rng, (64,), "int32")
    np.testing.assert_array_equal(
        move(run, x, "tl.join(x, x + 1)", (64, 2)), np.stack([x, x + 1], 1)
    )
    got = move(run, x, "tl.interleave(x, -x)", (128,))
    np.testing.assert_array_equal(got, np.stack([x, -x], 1).reshape(-1))
    got = move(run, x, "tl.cat(x, x * 2, can_reorder=True)", (128,))
    np.testing.assert_array_equal(got, np.concatenate([x, x * 2]))
    np.testing.assert_array_equal(move(run, x, "tl.flip(x)", (64,)), x[::-1])
    pairs = draw(rng, (32, 2), "float32")
    np.testing.assert_array_equal(move(run, pairs, "tl.split(x)[0]", (32,)), pairs[:, 0])
    np.testing.assert_array_equal(move(run, pairs, "tl.split(x)[1]", (32,)), pairs[:, 1])


def test_ranges_and_constants(run, rng):
    x = draw(rng, (24,), "int32")
    got = move(run, x, "x * 0 + tl.arange(5, 29)", (24,))
    np.testing.assert_array_equal(got, np.arange(5, 29))
    got = move(run, x, "tl.full((24,), 7, tl.int32) + tl.zeros_like(x)", (24,))
    np.testing.assert_array_equal(got, np.full(24, 7))


@pytest.mark.parametrize("rank", [9, 10, 12])
def test_many_dimensions(run, rng, rank):
    order = tuple(int(axis) for axis in rng.permutation(rank))
    kernel = make_kernel(f"""
@tessera.jit
def kernel(x_ptr, out_ptr, sums_ptr):
    i = tl.arange(0, {2**rank})
    x = tl.load(x_ptr + i).reshape({(2,) * rank})
    y = tl.permute(x, {order})
    tl.store(out_ptr + i, (y + y * 2).reshape({2**rank}))
    tl.store(sums_ptr + tl.arange(0, {2 ** (rank - 1)}), tl.ravel(tl.sum(y, {rank // 2})))
""")
    x = rng.integers(-100, 100, 2**rank).astype(np.int32)
    out, sums = np.zeros_like(x), np.zeros(2 ** (rank - 1), np.int32)
    run(kernel, (1,), x, out, sums)
    y = x.reshape((2,) * rank).transpose(order)
    np.testing.assert_array_equal(out, (3 * y).reshape(-1))
    np.testing.assert_array_equal(sums, y.sum(rank // 2).reshape(-1))


@pytest.mark.parametrize("dtype", ["int32", "float16", "int1"])
def test_two_elements_become_scalars(run, rng, dtype):
    """By a split: of what is loaded or computed, in a loop, and beside the tile itself."""
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, out_ptr):
    i = tl.arange(0, 2)
    a, b = tl.split(tl.load(x_ptr + i))
    tl.store(out_ptr, a | b if a.dtype == tl.int1 else a * b)
    left, right = tl.split(tl.load(x_ptr + tl.arange(0, 4)).reshape(2, 2))
    c, d = tl.split(right)
    tl.store(out_ptr + 1, c)
    tl.store(out_ptr + 2, d)
    for k in range(2):
        x = tl.load(x_ptr + k + i)
        a, b = tl.split(x)
        if b:
            tl.store(out_ptr + 3 + 2 * k + i, tl.where(i == 0, x, a))
""")
    x = draw(rng, 4, dtype) if dtype != "int1" else np.array([True, False, True, True])
    x[1] = 1
    out = np.zeros(7, x.dtype)
    run(kernel, (1,), x, out)
    with np.errstate(over="ignore"):
        want = [x[0] | x[1] if dtype == "int1" else x[0] * x[1], x[1], x[3]]
    for k in range(2):
        want += [x[k], x[k]] if x[k + 1] else [0, 0]
    np.testing.assert_array_equal(out, np.array(want, x.dtype))
