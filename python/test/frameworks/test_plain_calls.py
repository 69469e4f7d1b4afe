# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that are called like functions (tessera.calls), on NumPy and torch."""

from __future__ import annotations

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.calls.shapes import ShapesError, parse_shapes


@tessera.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr = 256):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + y, mask=i < n)


add = tessera.function("x[*n], y -> out[*n / BLOCK]")(add_kernel)


@tessera.function("a[m, k], b[k, n] -> c[m / BM, n / BN]: float32")
@tessera.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr = 16, BN: tl.constexpr = 32):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(k):
        left = tl.load(a + rows * k + at, mask=rows < m, other=0).to(tl.float32)
        right = tl.load(b + at * n + columns, mask=columns < n, other=0).to(tl.float32)
        acc += left[:, None] * right[None, :]
    mask = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(c + rows[:, None] * n + columns[None, :], acc, mask=mask)


@tessera.function("x[m, n] -> top[m / 1], at[m]: int32")
@tessera.jit
def row_max(x, top, at, n, BLOCK: tl.constexpr = 64):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    values = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    tl.store(top + row, tl.max(values, axis=0))
    tl.store(at + row, tl.argmax(values, axis=0))


@tessera.function(
    outputs={"out": lambda args: ((2 * args["x"].size,), args["x"].dtype)},
    grid=lambda meta: (tessera.cdiv(meta["x"].size, meta["BLOCK"]),),
)
@tessera.heuristics({"n": lambda args: args["x"].size})
@tessera.jit
def twice(x, out, n, BLOCK: tl.constexpr = 128):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, value, mask=i < n)
    tl.store(out + n + i, value, mask=i < n)


@tessera.function("x[*n] -> out[*n / BLOCK]: x")
@tessera.autotune([tessera.Config({"BLOCK": 64}), tessera.Config({"BLOCK": 512})], key=["n"])
@tessera.jit
def tuned(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, -tl.load(x + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("shape", [(), (1,), (1000,), (3, 5, 7), (0,), (4, 0)])
def test_any_shape(shape: tuple[int, ...]) -> None:
    x = np.asarray(np.random.default_rng(0).standard_normal(shape), np.float32)
    result = add(x, 2.0)
    assert type(result) is np.ndarray and result.shape == shape and result.dtype == x.dtype
    np.testing.assert_array_equal(result, x + np.float32(2))
    np.testing.assert_array_equal(add(x, y=2.0, BLOCK=64, num_threads=1), result)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float64", "bool"])
def test_types(dtype: str) -> None:
    x = (np.arange(300) % 2).astype(dtype)
    result = tuned(x) if dtype != "bool" else row_max(np.ones((2, 3), np.float32))[1]
    assert result.dtype == (dtype if dtype != "bool" else np.int32)


def test_two_axes() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-4, 4, (37, 19)), rng.integers(-4, 4, (19, 70))
    np.testing.assert_array_equal(
        matmul(a.astype(np.float16), b.astype(np.float16)), (a @ b).astype(np.float32)
    )


def test_several_outputs() -> None:
    x = np.random.default_rng(2).standard_normal((9, 50)).astype(np.float32)
    top, at = row_max(x)
    np.testing.assert_array_equal(top, x.max(1))
    np.testing.assert_array_equal(at, x.argmax(1))


def test_shape_functions() -> None:
    x = np.arange(300, dtype=np.int32)
    np.testing.assert_array_equal(twice(x), np.concatenate([x, x]))


def test_tuned_kernel() -> None:
    x = np.arange(5000, dtype=np.float64)
    np.testing.assert_array_equal(tuned(x), -x)


def test_the_kernel_is_still_launched() -> None:
    x, out = np.ones(10, np.float32), np.zeros(10, np.float32)
    add[(1,)](x, 1.0, out, 10)
    assert (out == 2).all()


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(7, 33)
    result = add(x, 2.0)
    assert type(result) is torch.Tensor and torch.equal(result, x + 2)
    half = torch.randn(4, 6).to(torch.bfloat16)
    assert row_max(half)[0].dtype == torch.bfloat16
    with pytest.raises(tessera.ArgumentError, match="E057.*requires a gradient"):
        add(x.requires_grad_(), 2.0)
    with torch.no_grad():
        assert torch.equal(add(x, 2.0), result)


def test_tensorflow() -> None:
    tensorflow = pytest.importorskip("tensorflow")
    for name in ("float32", "bfloat16", "int64"):
        x = tensorflow.cast(tensorflow.range(90), name)
        result = add(x, 2)
        assert tensorflow.is_tensor(result) and result.dtype == x.dtype
        # TensorFlow ends the process where an array is not as aligned as its own.
        assert bool(tensorflow.reduce_all(result == x + 2))
    assert add(tensorflow.zeros((0, 3)), 1.0).shape == (0, 3)
    out = np.empty(90, np.int64)
    add[(1,)](x, 3, out, 90)
    np.testing.assert_array_equal(out, np.arange(90) + 3)
    with pytest.raises(Exception, match="E057.*inside tf.function"):
        tensorflow.function(lambda x: add(x, 1))(x)


@pytest.mark.parametrize(
    "text, message",
    [
        ("x[n]", "no `->`"),
        ("x[n] ->", "no output"),
        ("x[n] -> out", "no shape"),
        ("x[n], x[m] -> out[n]", "comes twice"),
        ("x[n] -> out[m]", "of no input"),
        ("x[*n] -> out[n]", "with and without"),
        ("x[*n, *m] -> out[n]", r"two `\*`"),
        ("x[n+1] -> out[n]", "no extent"),
        ("x[*4] -> out[4]", "no name"),
        ("x[n / 4] -> out[n]", "only outputs"),
        ("x[n]: int8 -> out[n]", "only outputs"),
        ("x[n] y -> out[n]", "comma"),
        ("x[n -> out[n]", r"`\[` behind `x` is not closed"),
        ("x[n], -> out[n]", "last comma"),
        ("x[n] -> out[n / 0]", "0 elements"),
        ("3 -> out[n]", "a name is expected"),
    ],
)
def test_texts_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(ShapesError, match=message):
        parse_shapes(text)


@pytest.mark.parametrize(
    "arguments, options, message",
    [
        (("x[n -> out[n]",), {}, "behind `x` is not closed"),
        (("x[n] -> out[n]",), {}, "the grid is undefined"),
        (("x[n] -> out[n / BLOK]",), {}, "(?s)no parameter.*did you mean `BLOCK`"),
        (("z[n] -> out[n / BLOCK]",), {}, "no parameter"),
        (("x[n], n -> out[n / BLOCK]",), {}, "an extent and of an argument"),
        (("x[n] -> out[n / BLOCK]: float31",), {}, "neither an element type"),
        (("x[n] -> out[n / BLOCK]",), {"grid": (1,)}, "both blocks and `grid`"),
        (("x[n] -> out[n / BLOCK]",), {"outputs": {}}, "both `shapes` and `outputs`"),
        ((), {}, "neither"),
        ((), {"outputs": {"out": len}}, "no `grid`"),
        ((), {"outputs": {"out": 3}, "grid": (1,)}, "shape function"),
        ((), {"outputs": {}, "grid": (1,)}, "no outputs"),
        (("x[a, b, c, d] -> out[a / 1, b / 1, c / 1, d / 1]",), {}, "4 axes"),
    ],
)
def test_decorators_that_do_not_fit(arguments, options, message: str) -> None:
    with pytest.raises(tessera.CompilationError, match=message) as caught:
        tessera.function(*arguments, **options)(add_kernel)
    assert caught.value.id == "E076"


def test_what_is_decorated_has_to_be_a_kernel() -> None:
    with pytest.raises(tessera.CompilationError, match="E003"):
        tessera.function("x[n] -> out[n / 4]")(len)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: add(1.0, 2.0), "without an array"),
        (lambda: add(), "without an array"),
        (lambda: add(np.ones(3), 1, 2), "takes 2 arguments by place"),
        (lambda: add(np.ones(3), x=np.ones(3)), "two values"),
        (lambda: add(np.ones(3), 1, out=np.ones(4)), r"output `out` has shape \(4,\)"),
        (lambda: add(np.ones(3), 1, out=np.ones(3, int)), "`out` has elements of int64"),
        (
            lambda: add(np.ones(3), 1, out=np.lib.stride_tricks.as_strided(np.ones(1), (3,), (0,))),
            "`out` has several elements at one place",
        ),
        (lambda: add(np.ones(3), 1, out=3), "`out` is an int, where an array is expected"),
        (lambda: add(np.ones(6), 1, n=3), "E076.*`n` is an extent of `add_kernel`"),
        (lambda: add(np.ones(6), 1, n=6), "E076.*takes from the shapes"),
        (lambda: add(np.ones(3)), "without `y`"),
        (lambda: add(np.ones(3), 1, BLOK=3), "no option|BLOK"),
        (lambda: gathered(np.ones(1), np.ones(3)), "has 3 for `n`, which is 1 in `x`"),
        (lambda: summed(np.ones((2, 3)), np.ones(4)), r"has \(4,\) for `n`|4 for `n`"),
        (lambda: add(np.ones(8), 1, BLOCK=0), "`BLOCK` is 0"),
        (lambda: matmul(np.ones((3, 4)), np.ones((5, 6))), "5 for `k`, which is 4 in `a`"),
        (lambda: matmul(np.ones(3), np.ones((5, 6))), "1 dimensions"),
        (lambda: matmul(3.0, np.ones((5, 6))), "float, where an array is expected"),
    ],
)
def test_calls_that_do_not_fit(call, message: str) -> None:
    with pytest.raises(tessera.LaunchError, match=message):
        call()


@tessera.function("x[*n], y[*n] -> out[*n / BLOCK]")
@tessera.jit
def summed(x, y, out, n, BLOCK: tl.constexpr = 64, FILL: tl.constexpr = False):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)
    if FILL:
        tl.store(y + i, 7.0, mask=i < n)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_strides_and_broadcasting(library: str) -> None:
    convert = np.asarray if library == "numpy" else pytest.importorskip("torch").from_numpy
    base = np.arange(48, dtype=np.float32).reshape(6, 8)
    for x, y in (
        (base[:, ::2], base[::-1, 4:] if library == "numpy" else base[:, 4:]),
        (base.T, base.T[:1]),
        (base[:, :1], base[0]),
        (np.broadcast_to(base[0], (3, 8)).copy()[:0], base[0]),
        (base[2, 3, None][0:1].reshape(()), base),
    ):
        x, y = convert(x), convert(y)
        expected = x + y
        for _ in range(3):
            found = summed(x, y)
            assert tuple(found.shape) == tuple(expected.shape) and (found == expected).all()
        for out in (convert(np.zeros((*expected.shape, 2), np.float32))[..., 0], expected + 1):
            for _ in range(2):
                assert summed(x, y, out=out) is out and (out == expected).all()


def test_an_argument_that_is_copied_and_written() -> None:
    x, base = np.ones((3, 4), np.float32), np.zeros((3, 8), np.float32)
    for _ in range(3):
        base[...] = 0
        assert (summed(x, base[:, ::2], FILL=True) == 1).all()
        assert (base[:, ::2] == 7).all() and (base[:, 1::2] == 0).all()
        with pytest.raises(tessera.ArgumentError, match="E076.*argument `y`, which is broadcast"):
            summed(x, base[0, :4], FILL=True)
        assert (summed(x, base[1, 1::2]) == 1).all()
    shared = np.arange(9, dtype=np.float32)
    assert summed(shared[1:], shared[:-1], out=shared[1:]).tolist() == list(range(1, 17, 2))


def test_shape_functions_that_fail() -> None:
    for answer in (lambda args: args["z"], lambda args: 3, lambda args: ((-1,), "float32")):
        function = tessera.function(outputs={"out": answer}, grid=(1,))(add_kernel)
        with pytest.raises(tessera.LaunchError, match="E076.*shape function of output `out`"):
            function(np.ones(3), 1, 3)


def test_outputs_of_the_callers_own() -> None:
    x = np.ones((4, 50), np.float32)
    out = np.empty_like(x)
    assert add(x, 2.0, out=out) is out and (out == 3).all()
    assert add(out, 1.0, out=out) is out and (out == 4).all()
    top, at = row_max(x, at=np.empty(4, np.int32))
    assert top.dtype == np.float32 and at.dtype == np.int32


@tessera.function("x[n], y[n] -> out[n / BLOCK]")
@tessera.jit
def gathered(x, y, out, n, BLOCK: tl.constexpr = 64):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def test_arrays_of_several_types() -> None:
    """An output has the type of the first array, unless another one has more to give."""
    x = np.arange(10, dtype=np.float32)
    assert gathered(x, np.ones(10, int)).dtype == np.float32
    for first, other in ((x, np.ones(10)), (np.ones(10, int), x), (np.ones(10, bool), x > 1)):
        if first.dtype == other.dtype:
            assert gathered(first, other).dtype == first.dtype
            continue
        for _ in range(2):
            with pytest.raises(tessera.ArgumentError, match="E076.*`y` .* nothing says which"):
                gathered(first, other)
    typed = tessera.function("x[n], y[n] -> out[n / BLOCK]: y")(gathered.fn)
    assert typed(x, np.ones(10)).dtype == np.float64


def test_known_extents() -> None:
    @tessera.function("x[3, n] -> out[n / BLOCK, 2]")
    @tessera.jit
    def columns(x, out, n, BLOCK: tl.constexpr = 64):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        for row in tl.static_range(2):
            tl.store(out + 2 * i + row, tl.load(x + row * n + i, mask=i < n), mask=i < n)

    x = np.arange(300, dtype=np.int32).reshape(3, 100)
    np.testing.assert_array_equal(columns(x), x[:2].T)
    with pytest.raises(tessera.ArgumentError, match="has 4 where 3 is expected"):
        columns(np.zeros((4, 100), np.int32))
