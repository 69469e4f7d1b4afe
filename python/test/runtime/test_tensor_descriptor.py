# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor descriptors made on the host: what they may be of, and what kernels they make.

That they load and store what they should is in execution/test_memory.py.
"""

from __future__ import annotations

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.tools.tensor_descriptor import TensorDescriptor


@tessera.jit
def double(x, out):
    out.store([0, 0], x.load([0, 0]) * 2)


@tessera.jit
def last_row(x, out_ptr, ROW: tl.constexpr):
    row = tl.reshape(x.load([ROW, 0]), [16])
    tl.store(out_ptr + tl.arange(0, 16), row)


@tessera.jit
def described(x, M, N):
    if isinstance(x, tl.tensor_descriptor):
        return x
    else:
        return tl.make_tensor_descriptor(x, [M, N], [N, 1], [8, 16])


@tessera.jit
def triple(x: tl.tensor_descriptor, out, M, N):
    described(out, M, N).store([0, 0], described(x, M, N).load([0, 0]) * 3)


def describe(array, block=(8, 16), **more) -> TensorDescriptor:
    return TensorDescriptor.from_tensor(array, block, **more)


def test_frameworks_say_their_strides() -> None:
    torch = pytest.importorskip("torch")
    whole = np.random.default_rng(0).standard_normal((8, 64)).astype("f4")
    for array in (whole[:, :16], torch.from_numpy(whole)[:, :16]):
        descriptor = describe(array)
        assert tuple(descriptor.shape) == (8, 16) and tuple(descriptor.strides) == (64, 1)
        out = np.zeros((8, 16), np.float32)
        double[(1,)](descriptor, describe(out))
        np.testing.assert_array_equal(out, 2 * whole[:, :16])


class WithStride:
    """An array with `shape` and `stride()`, which may be anything."""

    def __init__(self, shape, strides) -> None:
        self.shape = shape
        self.strides_of_it = strides

    def stride(self):
        if isinstance(self.strides_of_it, BaseException):
            raise self.strides_of_it
        return self.strides_of_it


def test_a_descriptor_of_a_whole_tensor_is_like_one_of_its_parts() -> None:
    array = WithStride((8, 16), [16, 1])
    for block, padding, rounds in (([8, 16], "zero", False), ((8, 16), "nan", True)):
        made = describe(array, block, padding=padding, round_f32_to_tf32=rounds)
        parts = TensorDescriptor(array, (8, 16), [16, 1], [8, 16], padding, rounds)
        assert type(made) is TensorDescriptor and made == parts and repr(made) == repr(parts)
        assert made.block_shape is not block
    assert describe(WithStride((8, 16), (np.int64(16), np.int64(1)))).strides[-1] == 1
    assert describe(array, range(8, 17, 8)).block_shape == [8, 16]


@pytest.mark.parametrize(
    "shape, strides, block, more, says",
    [
        ((8, 16), (16, 1), [8], {}, "rank 2, 2 strides and a block of rank 1"),
        ((8, 16), (1,), [8, 16], {}, "rank 2, 1 strides and a block of rank 2"),
        ((), (), [], {}, "rank 0"),
        ((1,) * 6, (1,) * 6, [1] * 6, {}, "rank 6"),
        ((8, 16), (1, 8), [8, 16], {}, "the last stride 8"),
        ((8, 16), (16, 1), [8, 16], {"padding": "one"}, "the padding 'one'"),
        ((8, 16), (16, 1), [8, 16], {"padding": None}, "the padding None"),
    ],
)
def test_a_tensor_that_no_descriptor_describes(shape, strides, block, more, says) -> None:
    with pytest.raises(tessera.ArgumentError, match=says) as caught:
        describe(WithStride(shape, strides), block, **more)
    assert caught.value.id == "E051"


def test_what_a_tensor_raises_reaches_the_caller() -> None:
    for error in (ValueError("own"), KeyboardInterrupt("own")):
        with pytest.raises(type(error), match="own"):
            describe(WithStride((8, 16), error))


def test_one_kernel_for_arrays_alike() -> None:
    def launch(rows: int, columns: int, block=(8, 16)):
        x = np.ones((rows, columns), np.float32)
        out = np.zeros((8, columns), np.float32)
        kernel = double[(1,)](describe(x, block), describe(out, block))
        np.testing.assert_array_equal(out[: min(rows, 8), :16], 2)
        return kernel

    first = launch(32, 64)
    assert launch(48, 128) is first, "extents of the same alignment"
    kinds = [argument["type"][:3] for argument in first.metadata["arguments"]]
    assert kinds[::4] == ["ptr"] * 2 and len(kinds) == 8


def test_a_descriptor_beside_others_and_constants() -> None:
    x = np.arange(20 * 16, dtype=np.int32).reshape(20, 16)
    out = np.zeros(16, np.int32)
    last_row[(1,)](describe(x, (1, 16)), out, ROW=19)
    np.testing.assert_array_equal(out, x[19])


def test_kernels_can_ask_whether_they_have_one() -> None:
    x = np.arange(128, dtype=np.int32).reshape(8, 16)
    for wrap in (describe, lambda array: array):
        out = np.zeros_like(x)
        triple[(1,)](wrap(x), wrap(out), 8, 16)
        np.testing.assert_array_equal(out, 3 * x)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda x: describe(x.T), "last stride"),
        (lambda x: describe(x, (16,)), "block of rank 1"),
        (lambda x: describe(x, padding="one"), "padding 'one'"),
        (lambda x: TensorDescriptor(x, [8, 16], [16], [8, 16]), "1 strides"),
    ],
)
def test_what_describes_no_array_is_refused(make, message) -> None:
    with pytest.raises(tessera.ArgumentError, match=message) as caught:
        make(np.zeros((8, 16), np.float32))
    assert caught.value.id == "E051"


def test_a_change_is_looked_at_in_the_launch() -> None:
    x = np.zeros((8, 16), np.float32)
    changed = describe(x)
    changed.block_shape = [8]
    with pytest.raises(tessera.ArgumentError, match="descriptor `x`.*block of rank 1"):
        double[(1,)](changed, describe(x))
    with pytest.raises(tessera.ArgumentError, match="`out` is of a list"):
        double[(1,)](describe(x), TensorDescriptor([1.0], [8, 16], [16, 1], [8, 16]))


@pytest.mark.parametrize(
    "block, id, message", [((8, 2), "E049", "8 bytes"), ((7, 16), "E018", "7 in shape")]
)
def test_a_block_that_no_kernel_can_have(block, id, message) -> None:
    x = np.zeros((8, 16), np.float32)
    with pytest.raises(tessera.CompilationError, match=message) as caught:
        tessera.jit(double.fn)[(1,)](describe(x), describe(x, block))
    error = caught.value
    assert error.id == id and error.file == __file__
    assert error.source_line.strip() == "def double(x, out):"
    assert error.source_line[error.column - 1 :].startswith("out")


@tessera.jit
def either(x, y, out):
    if out.shape[0] > 2:
        x = y
    out.store([0, 0], x.load([0, 0]))


def test_one_that_rounds_and_one_that_does_not() -> None:
    x = np.ones((8, 16), np.float32)
    with pytest.raises(tessera.CompilationError) as error:
        either[(1,)](describe(x, round_f32_to_tf32=True), describe(x), describe(x))
    assert error.value.id == "E037"
    one, other = (
        "tensor descriptor of fp32[8, 16]",
        "tensor descriptor of fp32[8, 16] rounded to tf32",
    )
    assert f"`x` is {one} on one path of the `if` and {other} on the other" in error.value.message
