# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How an elementwise operator reads and makes the arrays of each library.

An array has to say its shape, its strides, its type and its device, and the library to make one with
given strides. No library is imported: one whose arrays are passed is loaded.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, NamedTuple

from tessera.calls.iteration import Ints, dense_strides
from tessera.errors import ArgumentError


class Facts(NamedTuple):
    """An array without its values."""

    shape: Ints
    strides: Ints
    """In elements."""
    dtype: Any
    """The library's own."""
    device: Any


class Library(NamedTuple):
    """The functions of an array library that an operator needs."""

    key: Callable[[Any], Any]
    """What plans depend on of an array. Arrays of one key are computed by one plan."""
    facts: Callable[[Any, str], Facts]
    """Of an array; the second argument is its name in errors."""
    maker: Callable[[Facts], Callable[[], Any]]
    """A function that makes arrays without values."""
    address: Callable[[Any], int]


def _in_elements(array: Any, name: str) -> Ints:
    size = array.dtype.itemsize
    if any(stride % size for stride in array.strides):
        raise ArgumentError(
            "E089",
            f"argument `{name}` has elements of {size} bytes, and strides of {array.strides} bytes",
            "pass a copy: x.copy()",
        )
    return tuple(stride // size for stride in array.strides)


def _strided_facts(array: Any, name: str) -> Facts:
    return Facts(
        array.shape, _in_elements(array, name), array.dtype, getattr(array, "device", None)
    )


def _strided_key(array: Any) -> Any:
    return array.dtype, array.shape, array.strides


def _make_strided(empty: Callable[..., Any], facts: Facts) -> Callable[[], Any]:
    order = _order_of(facts)
    if order == tuple(range(len(order))):
        return functools.partial(empty, facts.shape, facts.dtype)
    shape = tuple(facts.shape[dimension] for dimension in order)
    back = tuple(order.index(dimension) for dimension in range(len(order)))
    return lambda: empty(shape, facts.dtype).transpose(back)


def _order_of(facts: Facts) -> Ints:
    plain = tuple(range(len(facts.shape)))
    if dense_strides(facts.shape, plain) == facts.strides:
        return plain
    return tuple(sorted(plain, key=lambda at: (-facts.strides[at], at)))


def _numpy_maker(facts: Facts) -> Callable[[], Any]:
    return _make_strided(sys.modules["numpy"].empty, facts)


def _cupy_key(array: Any) -> Any:
    return array.dtype, array.shape, array.strides, array.device.id


def _cupy_maker(facts: Facts) -> Callable[[], Any]:
    make = _make_strided(sys.modules["cupy"].empty, facts)

    def make_there() -> Any:
        with facts.device:
            return make()

    return make_there


def _torch_key(tensor: Any) -> Any:
    try:
        return tensor.dtype, tensor.shape, tensor.stride(), tensor.device, tensor.requires_grad
    except RuntimeError:  # one whose elements are not in one array
        return object()  # which no plan is for


def _torch_facts(tensor: Any, name: str) -> Facts:
    if tensor.layout != sys.modules["torch"].strided or tensor.is_nested:
        kind = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
        raise ArgumentError(
            "E089",
            f"argument `{name}` is {kind}: its elements are not in one array",
            "pass x.to_padded_tensor(0.0) or x.to_dense()",
        )
    return Facts(tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, tensor.device)


def _torch_maker(facts: Facts) -> Callable[[], Any]:
    return functools.partial(
        sys.modules["torch"].empty_strided,
        facts.shape,
        facts.strides,
        dtype=facts.dtype,
        device=facts.device,
    )


def _jax_key(array: Any) -> Any:
    return array.dtype, array.shape, bool(getattr(array, "weak_type", False))


def _jax_facts(array: Any, name: str) -> Facts:
    shape = tuple(array.shape)
    return Facts(shape, dense_strides(shape, tuple(range(len(shape)))), array.dtype, None)


def _jax_maker(facts: Facts) -> Callable[[], Any]:
    return lambda: (facts.shape, facts.dtype)


LIBRARIES = {
    "numpy": Library(
        _strided_key,
        _strided_facts,
        _numpy_maker,
        lambda array: int(array.__array_interface__["data"][0]),
    ),
    "torch": Library(_torch_key, _torch_facts, _torch_maker, lambda tensor: int(tensor.data_ptr())),
    "cupy": Library(_cupy_key, _strided_facts, _cupy_maker, lambda array: int(array.data.ptr)),
    "jax": Library(_jax_key, _jax_facts, _jax_maker, lambda array: 0),
}
