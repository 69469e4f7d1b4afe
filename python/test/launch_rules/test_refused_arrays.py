# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules about arrays that a launch refuses, also after it was launched with others of their kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.errors import ArgumentError
from tessera.tools.tensor_descriptor import TensorDescriptor


@tessera.jit
def copy(x, out):
    i = tl.arange(0, 16)
    tl.store(out + i, tl.load(x + i))


class OnlyInterface:
    def __init__(self, array: np.ndarray, **more: Any) -> None:
        self.array, self.more, self.dtype = array, more, array.dtype

    @property
    def __array_interface__(self) -> Any:
        return {**self.array.__array_interface__, **self.more}


def check_refused(right: tuple[Any, Any], wrong: tuple[Any, Any], says: str, out: Any) -> None:
    """By the whole path, and by the warm one, which knows launches with the right arrays. These
    write to `out`."""
    fresh = tessera.jit(copy.fn)
    for _ in range(4):
        with pytest.raises(ArgumentError, match=says):
            fresh[(1,)](*wrong)
        fresh[(1,)](*right)
        np.testing.assert_array_equal(np.asarray(out), np.arange(16))
        out[:] = 0


def arrays() -> tuple[np.ndarray, np.ndarray]:
    return np.arange(16, dtype=np.float32), np.zeros(16, np.float32)


class Exporter:
    """An array that has DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **asked: Any) -> Any:
        return self.array.__dlpack__(**asked)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Pointed:
    """An object with `data_ptr` and `dtype`, and whatever a test adds."""

    def __init__(self, array: np.ndarray, **more: Any) -> None:
        self.array, self.dtype, self.shape = array, array.dtype, array.shape
        vars(self).update(more)

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)


def reinterpreted(array: np.ndarray) -> Any:
    return tessera.TensorWrapper(array, tl.float32)


@pytest.mark.parametrize(
    "wrap", [lambda array: array, OnlyInterface, Exporter, reinterpreted],
    ids=["array", "interface", "DLPack", "reinterpreted"],
)  # fmt: skip
def test_a_read_only_array_that_is_written(wrap: Any) -> None:
    x, out = arrays()
    frozen = np.zeros(16, np.float32)
    frozen.flags.writeable = False
    check_refused((x, wrap(out)), (x, wrap(frozen)), "read-only", out)
    for _ in range(3):
        copy[(1,)](wrap(frozen), out)  # which may be read
    assert not out.any()


def test_a_read_only_array_of_a_compiled_kernel() -> None:
    x, out = arrays()
    frozen = np.zeros(16, np.float32)
    frozen.flags.writeable = False
    compiled = tessera.compile(copy, "*fp32, *fp32")
    for _ in range(3):
        compiled[(1,)](x, out)
        with pytest.raises(ArgumentError, match="read-only"):
            compiled[(1,)](x, frozen)


def test_a_read_only_array_of_a_descriptor() -> None:
    @tessera.jit
    def copy_block(x: Any, out: Any) -> Any:
        out.store([0], x.load([0]))

    x, out = arrays()
    frozen = np.zeros(16, np.float32)
    frozen.flags.writeable = False
    of = lambda array: TensorDescriptor.from_tensor(array, [16])
    for _ in range(3):
        copy_block[(1,)](of(x), of(out))
        copy_block[(1,)](of(frozen), of(out))
        with pytest.raises(ArgumentError, match="read-only"):
            copy_block[(1,)](of(x), of(frozen))


def test_an_array_of_jax_that_is_written() -> None:
    numpy = pytest.importorskip("jax.numpy")
    x, out = arrays()
    check_refused((x, out), (x, numpy.zeros(16)), "read-only", out)


@pytest.mark.parametrize("kind", ["negative", "conjugate", "view", "subclass", "inference"])
def test_a_tensor_with_a_bit_that_changes_its_values(kind: str) -> None:
    torch = pytest.importorskip("torch")

    class Named(torch.Tensor):
        pass

    x, out = torch.arange(16.0), torch.zeros(16)
    right = x.as_subclass(Named) if kind == "subclass" else x
    with torch.inference_mode(kind == "inference"):
        negative = torch.complex(x, x).conj().imag
    assert negative.is_neg()
    wrong = {
        "conjugate": torch.zeros(16, dtype=torch.complex64).conj(),
        "view": torch.zeros(16, requires_grad=True)._neg_view(),
        "subclass": negative.as_subclass(Named),
    }.get(kind, negative)
    bit = "conjugate" if kind == "conjugate" else "negative"
    says = rf"has the {bit} bit.*\n.*x.resolve_{bit[:4] if bit == 'conjugate' else 'neg'}\(\)"
    check_refused((right, out), (wrong, out), says, out)


@pytest.mark.parametrize("bit", ["negative", "conjugate"])
def test_an_object_that_says_that_it_has_the_bit(bit: str) -> None:
    x, out = arrays()
    says = {"is_neg" if bit == "negative" else "is_conj": lambda: True}
    check_refused((Pointed(x), out), (Pointed(x, **says), out), f"has the {bit} bit", out)


def test_an_array_with_a_mask() -> None:
    x, out = arrays()
    check_refused((OnlyInterface(x), out), (OnlyInterface(x, mask=x), out), "has a mask", out)


@pytest.mark.parametrize("kind", ["interface", "pointer", "tensor"])
def test_an_array_at_address_0(kind: str) -> None:
    x, _ = arrays()
    right, wrong = {
        "interface": lambda: (OnlyInterface(x), OnlyInterface(x, data=(0, False))),
        "pointer": lambda: (Pointed(x), Pointed(x, data_ptr=lambda: 0)),
        "tensor": lambda: (
            pytest.importorskip("torch").from_numpy(x),
            pytest.importorskip("torch")._efficientzerotensor(16),
        ),
    }[kind]()

    @tessera.jit
    def untouched(x: Any, n: Any) -> Any:
        tl.store(x, n, mask=n > 4)  # without the rule, no launch reads address 0

    for _ in range(4):
        with pytest.raises(ArgumentError, match="address 0"):
            untouched[(1,)](wrong, 4)
        untouched[(1,)](right, 4)


@tessera.jit
def fill(x, n):
    tl.store(x + tl.arange(0, 16), n)


def test_tensors_whose_elements_are_not_in_one_array() -> None:
    torch = pytest.importorskip("torch")
    for _ in range(2):
        fill[(1,)](torch.zeros(16), 3)

    def inside(row: Any) -> Any:
        fill[(1,)](row, 3)
        return row

    with pytest.raises(tessera.ArgumentError, match="storage") as caught:
        torch.func.vmap(inside)(torch.zeros(3, 16))
    assert caught.value.id == "E058"
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
    quantised = torch.quantize_per_tensor(torch.zeros(16), 0.1, 0, torch.qint8)
    for tensor in (nested, quantised, torch.eye(4).to_sparse(), torch.zeros(3, device="meta")):
        with pytest.raises(tessera.ArgumentError) as caught:
            fill[(1,)](tensor, 3)
        assert caught.value.id in ("E054", "E058")
