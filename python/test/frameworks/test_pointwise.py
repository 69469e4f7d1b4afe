# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators from one scalar function (tessera.pointwise), on NumPy and JAX, and their errors."""

from __future__ import annotations

import copy
import pickle
from typing import Any, Callable

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.calls.elements import Kind, Parameter, choose_blocks, choose_gpu_tile, kernel_text
from tessera.calls.iteration import broadcast, make_walk, memory_order, overlaps_itself
from tessera.calls.plans import result_dtypes


@tessera.pointwise
def silu(x):
    return x * tl.sigmoid(x)


@tessera.pointwise
def axpy(x, y, alpha=1):
    return x + y * alpha


@tessera.pointwise
def less(x, y):
    return x < y


@tessera.pointwise
def choose(mask: tl.int1, x, y):
    return tl.where(mask, x, y)


@tessera.pointwise
def product_and_sign(x, y):
    product = x * y
    return product, product > 0


@tessera.pointwise
def rounded(x, step: tl.constexpr = 1.0) -> tl.int32:
    return tl.floor(x / step).to(tl.int32)


@tessera.jit
def doubled(x):
    return 2 * x


@tessera.pointwise
def sum_of_doubles(x, y):
    return doubled(x) + doubled(y)


def values(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return np.asarray(np.random.default_rng(len(shape)).standard_normal(shape) * 4).astype(dtype)


def expected_silu(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return x / (1 + np.exp(-x))


VIEWS: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "itself": lambda x: x,
    "transposed": lambda x: x.transpose(2, 0, 1),
    "gaps": lambda x: x[:, ::2],
    "inner gaps": lambda x: x[..., ::3],
    "reversed": lambda x: x[::-1, :, ::-1],
    "offset": lambda x: x[1:, 2:, 1:],
    "one": lambda x: x[:1, 2:3],
    "expanded": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "empty": lambda x: x[:, 3:3],
    "single": lambda x: x[1, 2, 3],
}


@pytest.mark.parametrize("view", VIEWS)
def test_any_strides(view: str) -> None:
    x = VIEWS[view](values(3, 7, 40))
    result = silu(x)
    assert result.shape == x.shape and result.dtype == x.dtype
    np.testing.assert_allclose(result, expected_silu(x), rtol=1e-6)


@pytest.mark.parametrize(
    "left, right",
    [((5, 6), (6,)), ((5, 6), (5, 1)), ((5, 1), (1, 6)), ((), (4,)), ((2, 1, 3, 1), (4, 1, 5)),
     ((70, 1, 33, 65), (5, 33, 1)), ((3, 0), (1,)), ((1, 1), (1,))],
)  # fmt: skip
def test_broadcasting(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, y = values(*left), values(*right)
    np.testing.assert_allclose(axpy(x, y, 2.5), x + y * np.float32(2.5), rtol=1e-6, atol=1e-5)
    # Arrays that are dense along different dimensions share tiles.
    got = axpy(x.T, np.ascontiguousarray(np.broadcast_to(y, (x + y).shape).T))
    np.testing.assert_allclose(got, x.T + np.broadcast_to(y, (x + y).shape).T, rtol=1e-6, atol=1e-5)


def test_the_order_of_results() -> None:
    """A result lies in memory as the argument does, as NumPy's does."""
    x = values(3, 7, 40).transpose(2, 0, 1)
    assert silu(x).strides == (-x).strides
    assert silu(x[:, :1]).flags.c_contiguous == (-x[:, :1]).flags.c_contiguous


DTYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "uint64",
          "float16", "float32", "float64")  # fmt: skip


def test_types_are_numpys() -> None:
    """Of pairs of arrays, and of an array and a number."""
    for one in DTYPES:
        x = np.ones(3, one)
        assert silu(x).dtype == np.exp(x).dtype, one
        assert less(x, x).dtype == bool
        for other in DTYPES:
            y = np.ones(3, other)
            plan_dtype = result_dtypes(axpy, "numpy", (x, y, 1), "aan")[0]
            assert plan_dtype == np.result_type(x, y, 1), (one, other)
        for number in (2, 2.5, True):
            dtypes = result_dtypes(axpy, "numpy", (x, number, 1), "ann")
            assert dtypes[0] == np.result_type(x, number, 1), (one, number)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float64"])
def test_values_of_types(dtype: str) -> None:
    x = (np.arange(300) % 50).astype(dtype)
    result = axpy(x, x[::-1], 3)
    np.testing.assert_array_equal(result, x + x[::-1] * np.asarray(3, dtype))
    np.testing.assert_array_equal(axpy(x, np.float32(1.5)), x + np.float32(1.5))


def test_small_floats_are_rounded_once() -> None:
    x, y = values(100, dtype=np.float16), values(100, dtype=np.float16)
    expected = (x.astype(np.float32) + y.astype(np.float32) * np.float32(0.1)).astype(np.float16)
    np.testing.assert_array_equal(axpy(x, y, 0.1), expected)


def test_results_of_several_types() -> None:
    x, y = values(5, 6), values(6, dtype=np.float64)
    product, sign = product_and_sign(x, y)
    assert product.dtype == np.float64 and sign.dtype == bool
    np.testing.assert_array_equal(product, x * y)
    np.testing.assert_array_equal(sign, x * y > 0)
    np.testing.assert_array_equal(choose(x > 0, x, 0), np.where(x > 0, x, 0))
    assert choose(x > 0, x, 0).dtype == np.float32
    np.testing.assert_array_equal(rounded(x), np.floor(x).astype(np.int32))
    np.testing.assert_array_equal(rounded(x, 0.5), np.floor(x / 0.5).astype(np.int32))
    np.testing.assert_array_equal(sum_of_doubles(x, x), 4 * x)


def test_out() -> None:
    x = values(6, 8)
    out = np.empty((8, 6), np.float32).T
    assert silu(x, out=out) is out
    np.testing.assert_allclose(out, expected_silu(x), rtol=1e-6)
    wide = np.zeros((6, 16))
    silu(x, out=wide[:, ::2])  # other strides, and a wider type
    np.testing.assert_allclose(wide[:, ::2], expected_silu(x), rtol=1e-6)
    assert not wide[:, 1::2].any()
    outs = np.empty((6, 8), np.float32), np.empty((6, 8), bool)
    assert product_and_sign(x, x, out=outs)[1] is outs[1] and outs[1].all()
    same = x.copy()
    silu(same, out=same)
    np.testing.assert_allclose(same, expected_silu(x), rtol=1e-6)


def test_offsets_that_need_64_bits() -> None:
    """Elements that are 2**31 and more behind the first one. Few of the pages are touched."""
    step = 1 << 26
    memory = np.zeros((1 << 31) + 3 * step, np.int8)
    view = memory[::step]
    view[:] = np.arange(len(view)) % 100
    np.testing.assert_array_equal(axpy(view, 1), view + np.int8(1))


def test_jax() -> None:
    jax = pytest.importorskip("jax")
    x, y = jax.numpy.arange(6.0).reshape(2, 3), jax.numpy.arange(3)
    np.testing.assert_allclose(axpy(x, y, 2.5), x + y * 2.5)
    assert axpy(y, 2.5).dtype == (y + 2.5).dtype and silu(y).dtype == jax.numpy.exp(y).dtype
    compiled = jax.jit(lambda x, y: product_and_sign(silu(x), y)[0] + 1)
    np.testing.assert_allclose(compiled(x, y), expected_silu(np.asarray(x)) * y + 1, rtol=1e-6)
    with pytest.raises(tessera.ArgumentError, match="no `out`"):
        silu(x, out=x)


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "shapes": (
        lambda: axpy(np.ones((3, 4)), np.ones(7)),
        r"E089.*argument `y` of shape \(7,\) does not fit .* \(3, 4\)",
    ),
    "a number": (
        lambda: axpy(np.ones(3, np.uint8), 300),
        "E089.*argument `y` of `axpy` is 300, which does not fit uint8",
    ),
    "a text": (lambda: axpy(np.ones(3), "a"), "E089.*argument `y` of `axpy` is a str"),
    "no array": (lambda: axpy(1, 2), "E089.*a call of `axpy` has no array"),
    "complex": (lambda: silu(np.ones(3, complex)), "E089.*promoted to complex128"),
    "too many": (lambda: silu(np.ones(3), 1), "E051.*`silu` takes 1 argument, got 2"),
    "none": (lambda: silu(), "E051.*`silu` got no `x`"),
    "twice": (lambda: axpy(np.ones(3), 1, x=1), "E051.*two values for `x`"),
    "unknown": (lambda: silu(np.ones(3), z=1), "E051.*no parameter `z`"),
    "misspelt": (lambda: axpy(np.ones(3), z=1), "E051.*no parameter `z`"),
    "out's shape": (
        lambda: silu(np.ones(3), out=np.ones(4)), r"E089.*`out` .* has shape \(4,\)",
    ),
    "out's type": (
        lambda: silu(np.ones(3), out=np.ones(3, int)), "E089.*`out` .* has elements of int64",
    ),
    "out is shared": (
        lambda: silu(np.broadcast_to(np.ones(3), (2, 3)), out=np.broadcast_to(np.ones(3), (2, 3))),
        "E089.*has several elements at one place",
    ),
    "outs": (
        lambda: product_and_sign(np.ones(3), 1, out=np.ones(3)), "E089.*2 results, and `out` 1",
    ),
    "read-only": (lambda: silu(np.ones(3), out=read_only()), "out_.*read-only"),
}  # fmt: skip


def read_only() -> np.ndarray[Any, Any]:
    array = np.ones(3)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("case", CALLS)
def test_errors_of_calls(case: str) -> None:
    call, expected = CALLS[case]
    with pytest.raises(tessera.ArgumentError, match=f"(?s){expected}"):
        call()


def test_an_output_that_overlaps() -> None:
    x = np.arange(10.0)
    before = x.copy()
    with pytest.raises(tessera.ArgumentError, match="`out` of `silu` shares memory with `x`"):
        silu(x[1:], out=x[:-1])
    np.testing.assert_array_equal(x, before)


def test_errors_of_declarations() -> None:
    @tessera.pointwise
    def no_result(x):
        x + 1

    @tessera.pointwise
    def many(*x):
        return x[0]

    @tessera.pointwise
    def annotated(x: "some text"):  # type: ignore[valid-type] # noqa: F722
        return x

    @tessera.pointwise
    def two(x) -> tl.int32:
        return x, x

    @tessera.pointwise(promotion="same")
    def fraction(x):
        return x * 0.5

    for op, text in (
        (no_result, "returns nothing"),
        (many, r"`\*x` is no parameter"),
        (annotated, "is no type of elements"),
        (two, "returns 2 values, and is annotated"),
        (fraction, r"`fraction` returns fp32\[4\], where its result has elements of int32"),
    ):
        with pytest.raises(tessera.CompilationError, match=f"(?s)E089.*{text}"):
            op(np.ones(3, np.int32))
    with pytest.raises(tessera.CompilationError, match="E089.*promotion='up'"):
        tessera.pointwise(promotion="up")


def test_errors_show_the_scalar_function() -> None:
    @tessera.pointwise
    def wrong(x):
        return x + tl.zeros((3, 5), tl.float32)  # here

    with pytest.raises(tessera.CompilationError) as caught:
        wrong(np.ones((2, 40), np.float32)[:, ::2])
    assert "tl.zeros((3, 5), tl.float32)  # here" in str(caught.value)
    assert caught.value.file == __file__


def test_pickle_and_copy() -> None:
    assert pickle.loads(pickle.dumps(silu)) is silu and copy.deepcopy(silu) is silu
    assert silu.__name__ == "silu" and "silu" in repr(silu)


def test_kernels_are_shared() -> None:
    """Shapes of one kind share a kernel; calls of one shape share a plan."""
    op = tessera.pointwise(silu.function)
    for size in (100, 1000, 3000):
        for _ in range(2):
            op(values(size))
            op(values(2, size // 2))
    assert len(op._kernels) == 1 and len(op._plans) == 6


def test_tiles_of_gpus() -> None:
    """A program of narrow elements has more of them, as long as there are many programs."""
    side = 1 << 12
    dense, column, row = (side, 1), (1, 0), (0, 1)

    def tile(strides: Any, size: int, side: int = side) -> int:
        walk = make_walk((side, side), (0, 1), [*strides, (side, 1)])
        return choose_gpu_tile(walk, [size] * 3)

    assert tile([dense, dense], 4) == tile([dense, column], 4) == 1024
    assert tile([dense, dense], 2) == tile([dense, column], 2) == tile([column, row], 4) == 2048
    assert tile([column, row], 2) == 4096
    assert tile([column, row], 2, 1 << 10) == 1024
    assert choose_gpu_tile(make_walk((0, 3), (0, 1), [(3, 1)]), [2]) == 1024


def test_walks() -> None:
    assert broadcast([(3, 1), (1, 4), ()]) == ((3, 4), None)
    assert broadcast([(3, 1), (2, 4)])[1] == 1
    dense = make_walk((2, 3, 4), (0, 1, 2), [(12, 4, 1), (12, 4, 1)])
    assert dense.sizes == (24,) and dense.strides == ((1,), (1,))
    rows = make_walk((2, 3, 4), (0, 1, 2), [(12, 4, 1), (0, 0, 1)])
    assert rows.sizes == (6, 4) and rows.strides == ((4, 1), (0, 1))
    assert memory_order((2, 3, 4), [(1, 8, 2)]) == (1, 2, 0)
    assert make_walk((), (), [(), ()]).sizes == ()
    assert not dense.is_wide and make_walk((2, 2), (0, 1), [(1 << 31, 1)]).is_wide
    assert choose_blocks(rows, 1024, False) == (8, 4)
    crossing = make_walk((100, 100), (0, 1), [(1, 100), (100, 1)])
    assert choose_blocks(crossing, 1024, False) == (32, 32)
    column = make_walk((100, 100), (0, 1), [(1, 0), (100, 1)])
    assert choose_blocks(column, 1024, False) == (8, 128)
    # Few lanes of a CPU lie behind the end of a row.
    for size, block in ((1000, 1024), (1100, 256), (2100, 512), (4096, 2048), (4152, 512)):
        gaps = make_walk((3, size), (0, 1), [(size + 8, 1), (size + 8, 1)])
        rows_of_program = 2 if size < block else 1
        assert choose_blocks(gaps, 2048, False) == (rows_of_program, block)
        assert choose_blocks(gaps, 2048, True)[1] >= 1024
    assert overlaps_itself((2, 3), (0, 1)) and not overlaps_itself((2, 3), (3, 1))
    assert overlaps_itself((2, 3), (2, 1)) and not overlaps_itself((1, 3), (0, 1))


def test_the_text_of_a_kernel() -> None:
    parameters = (
        Parameter("x", "array", "bfloat16", "float32"),
        Parameter("a", "number", "float32", "float32"),
    )
    kind = Kind(parameters, ("bf16",), ("n1", "n1"), (False, True), False, True)
    assert kernel_text("scale", kind) == (
        """def scale_elements(x, a: tl.float32, out_, size_0_, size_1_, x_stride_0_, out__stride_0_, block_1_: tl.constexpr):
    program_ = tl.program_id(0)
    blocks_1_ = tl.cdiv(size_1_, block_1_)
    index_1_ = ((program_ % blocks_1_) * block_1_ + tl.arange(0, block_1_))
    mask_1_ = index_1_ < size_1_
    program_ = program_ // blocks_1_
    index_0_ = program_
    x_value_ = tl.load(x + index_0_ * x_stride_0_ + index_1_, mask=mask_1_).to(tl.float32)
    value_0_ = scalar_function(x_value_, a)
    tl.store(out_ + index_0_ * out__stride_0_ + index_1_, check_result(value_0_, out_, "scale"), mask=mask_1_)
"""
    )
