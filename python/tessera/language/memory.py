# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads, stores, block pointers and tensor descriptors."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from tessera.errors import UserMistake
from tessera.language.arguments import constant_bool, constant_ints
from tessera.language.tensor import (
    Operand,
    builtin,
    describe,
    emit,
    emit_one,
    fits,
    known_value,
    method,
    must_use_result,
    specialised_value,
    tensor,
    to_tensor_value,
)
from tessera.language.types import (
    block_pointer_type,
    block_type,
    descriptor_type,
    dtype,
    pointer_type,
    unwrap,
)
from tessera.wording import closest

__all__ = [
    "advance",
    "load",
    "load_tensor_descriptor",
    "make_block_ptr",
    "make_tensor_descriptor",
    "store",
    "store_tensor_descriptor",
    "tensor_descriptor",
]

_LOAD_CACHE = ("", "ca", "cg", "cs", "cv")
_STORE_CACHE = ("", "wb", "cg", "cs", "wt")
_EVICTION = ("", "evict_normal", "evict_first", "evict_last")


def choice(value: Any, accepted: Sequence[str], what: str, id: str = "E048") -> Optional[str]:
    """One of `accepted`, or None where it is empty or left out."""
    value = unwrap(value)
    if value is None or value == "":
        return None
    if isinstance(value, str) and value in accepted:
        return value
    names = [name for name in accepted if name]
    near = closest(value, names) if isinstance(value, str) else None
    listing = ", ".join(f'"{name}"' for name in names)
    raise UserMistake(
        id,
        f"{what} is {value!r}",
        (f'did you mean "{near}"? ' if near else "") + f"use one of {listing}",
    )


def _cache(value: Any, accepted: Sequence[str]) -> Optional[str]:
    value = unwrap(value)
    if isinstance(value, str) and value.startswith("."):
        if value[1:] in accepted:
            return value[1:]
    return choice(value, accepted, "cache_modifier")


def _is_pointer(value: Any) -> bool:
    value = unwrap(value)
    return isinstance(value, tensor) and (
        value.dtype.is_ptr() or isinstance(value.type, block_pointer_type)
    )


def pointer_operand(value: Any, what: str) -> tensor:
    """An argument that must be a pointer, a tile of pointers or a block pointer."""
    value = unwrap(value)
    if isinstance(value, tensor):
        if _is_pointer(value):
            return value
        raise UserMistake(
            "E044",
            f"{what} needs a pointer, got {describe(value)}",
            "pass a tensor to the kernel's parameter, and add offsets to the pointer: "
            f"tl.{what}(x_ptr + i)",
        )
    raise UserMistake(
        "E044", f"{what} needs a pointer, got {describe(value)}", "pass a tensor to the kernel"
    )


def _rank(pointer: tensor) -> int:
    """How many dimensions a load or a store by `pointer` has."""
    type = pointer.type
    return len(type.block_shape if isinstance(type, block_pointer_type) else pointer.shape)


def _boundary(check: Any, rank: int) -> list[int]:
    dims = constant_ints(check, "boundary_check", "E049") if unwrap(check) is not None else []
    for dim in dims:
        if not 0 <= dim < rank:
            raise UserMistake(
                "E049",
                f"boundary_check names dimension {dim} of a block of rank {rank}",
                f"name dimensions in [0, {rank})",
            )
    return dims


def _check_shape(value: Any, pointer: tensor, what: str) -> None:
    """Raises unless a mask (or `other`) and the pointers have shapes that go together."""
    if not isinstance(value, tensor):
        return
    pairs = zip(reversed(value.shape), reversed(pointer.shape))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        raise UserMistake(
            "E045",
            f"{what} is {describe(value)} and the pointer {describe(pointer)}",
            f"give {what} the shape of the pointer",
        )


@builtin
def load(
    pointer: tensor,
    mask: Optional[Operand] = None,
    other: Optional[Operand] = None,
    boundary_check: Sequence[int] = (),
    padding_option: str = "",
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
) -> tensor:
    """The elements that `pointer` points to: a scalar, or a tile of its shape.

    Where `mask` is false no memory is touched and the element is `other` (0 without it).
    A block pointer takes `boundary_check` (dimensions to check) and `padding_option` ("zero"
    or "nan") instead. `cache_modifier` is "", ".ca", ".cg", ".cs" or ".cv";
    `eviction_policy` "", "evict_normal", "evict_first" or "evict_last".
    Errors: E044 (no pointer), E045 (mask or other does not fit), E048, E049.
    Source: Triton language 3.6/3.9; 0 for a masked-off element is ours.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def maximum(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            x = tl.load(x_ptr + i, mask=i < n, other=-float("inf"))  # nothing is read beyond n
            tl.store(out_ptr, tl.max(x))

        x, out = np.array([-3, -1, -2], np.float32), np.zeros(1, np.float32)
        maximum[(1,)](x, out, x.size, BLOCK=4)
        assert out[0] == -1
    """
    pointer = pointer_operand(pointer, "load")
    padding = choice(padding_option, ("zero", "nan"), "padding_option")
    block = isinstance(pointer.type, block_pointer_type)
    if isinstance(pointer.type, descriptor_type):
        raise UserMistake("E044", "load got a tensor descriptor", "use desc.load([...])")
    mask, other = unwrap(mask), unwrap(other)
    if block and (mask is not None or other is not None):
        raise UserMistake(
            "E049",
            "a block pointer takes no mask and no other",
            "use boundary_check and padding_option",
        )
    rank = _rank(pointer)
    dims = _boundary(boundary_check, rank)
    if not block and (dims or padding):
        raise UserMistake(
            "E049",
            f"boundary_check and padding_option need a block pointer, got {describe(pointer)}",
            "use mask and other",
        )
    if mask is None and other is not None:
        raise UserMistake(
            "E045", "`other` is given without a mask", "add mask=..., or leave out other"
        )
    if isinstance(mask, tensor) and mask.dtype.is_int() and not mask.dtype.is_int1():
        raise UserMistake(
            "E045",
            f"the mask of load is {describe(mask)}, not bool",
            "compare it, as in i < n; offsets are no mask, but are added to the pointer: "
            "tl.load(x_ptr + i)",
        )
    _check_shape(mask, pointer, "the mask")
    _check_shape(other, pointer, "`other`")
    return emit_one(
        "load",
        pointer,
        mask,
        other,
        dims,
        padding,
        _cache(cache_modifier, _LOAD_CACHE),
        choice(eviction_policy, _EVICTION, "eviction_policy"),
        constant_bool(volatile, "volatile"),
    )


@method
@builtin
def store(
    pointer: tensor,
    value: Operand,
    mask: Optional[Operand] = None,
    boundary_check: Sequence[int] = (),
    cache_modifier: str = "",
    eviction_policy: str = "",
) -> None:
    """Writes `value`, cast to the pointee, where `pointer` points.

    Where `mask` is false nothing is written. `value` and `mask` are broadcast to the shape
    of the pointers. `cache_modifier` is "", ".wb", ".cg", ".cs" or ".wt".
    Errors: E044 (no pointer), E045 (shapes), E046 (a const pointer, or a wrong shape), E048,
    E049. Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def fill(x_ptr, value, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(x_ptr + i, value, mask=i < n)  # broadcast, and cast to the array's type

        x = np.zeros(10, np.float32)
        fill[(2,)](x, 7, 9, BLOCK=8)
        assert x.tolist() == [7] * 9 + [0]
    """
    stored = unwrap(value)
    if isinstance(stored, tensor) and stored.dtype.is_ptr() and not _is_pointer(pointer):
        raise UserMistake(
            "E044",
            f"store needs a pointer, got {describe(pointer)}",
            "swap the two: tl.store(pointer, value)",
        )
    pointer = pointer_operand(pointer, "store")
    block = isinstance(pointer.type, block_pointer_type)
    if isinstance(pointer.type, descriptor_type):
        # `desc.store([i, j], value)` is this method.
        descriptor: Any = pointer
        store_tensor_descriptor(descriptor, value, mask)  # type: ignore[arg-type]
        return
    if block and unwrap(mask) is not None:
        raise UserMistake("E049", "a block pointer takes no mask", "use boundary_check")
    rank = _rank(pointer)
    dims = _boundary(boundary_check, rank)
    if not block and dims:
        raise UserMistake(
            "E049", f"boundary_check needs a block pointer, got {describe(pointer)}", "use mask"
        )
    value, mask = unwrap(value), unwrap(mask)
    _check_shape(mask, pointer, "the mask")
    if not isinstance(value, (tensor, bool, int, float)):
        raise UserMistake("E046", f"cannot store {describe(value)}", "store a tensor or a number")
    emit(
        "store",
        pointer,
        value,
        mask,
        dims,
        _cache(cache_modifier, _STORE_CACHE),
        choice(eviction_policy, _EVICTION, "eviction_policy"),
    )


# --- Block pointers ---------------------------------------------------------------------


def _items(values: Any, what: str, id: str = "E049") -> list[Any]:
    values = unwrap(values)
    if not isinstance(values, (tuple, list)):
        raise UserMistake(id, f"{what} must be a tuple, got {describe(values)}", f"write ({what},)")
    return [unwrap(value) for value in values]


@builtin
def make_block_ptr(
    base: tensor,
    shape: Sequence[Operand],
    strides: Sequence[Operand],
    offsets: Sequence[Operand],
    block_shape: Sequence[int],
    order: Sequence[int],
) -> tensor:
    """A pointer to a block of an array.

    The array starts at `base` and has `shape` and `strides` (in elements). The block starts at
    `offsets` and has the constant extents `block_shape`. `order` lists the dimensions, the one
    with the smallest stride first. Errors: E044, E049. Source: Triton language 3.6.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def transpose(x_ptr, out_ptr, M, N):
            x = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (0, 0), (8, 16), order=(1, 0))
            out = tl.make_block_ptr(out_ptr, (N, M), (M, 1), (0, 0), (16, 8), order=(1, 0))
            block = tl.load(x, boundary_check=(0, 1))
            tl.store(out, tl.trans(block), boundary_check=(0, 1))

        x, out = np.random.rand(7, 10), np.zeros((10, 7))
        transpose[(1,)](x, out, 7, 10)
        assert (out == x.T).all()
    """
    base = pointer_operand(base, "make_block_ptr")
    lists = [_items(shape, "shape"), _items(strides, "strides"), _items(offsets, "offsets")]
    block = constant_ints(block_shape, "block_shape", "E049")
    dims = constant_ints(order, "order", "E049")
    for name, got in zip(("strides", "offsets", "block_shape", "order"), lists[1:] + [block, dims]):
        if len(got) != len(lists[0]):
            raise UserMistake(
                "E049",
                f"shape has {len(lists[0])} dimensions and {name} has {len(got)}",
                "give each the same number of dimensions",
            )
    if sorted(dims) != list(range(len(dims))):
        raise UserMistake(
            "E049",
            f"order {tuple(dims)} is no permutation of the dimensions",
            f"name each of 0..{len(dims) - 1} once",
        )
    return emit_one("make_block_ptr", base, *lists, block, dims)


@method
@must_use_result("the block pointer that it is called on stays where it is")
@builtin
def advance(base: tensor, offsets: Sequence[Operand]) -> tensor:
    """A block pointer, moved by `offsets` elements along each dimension; `base` does not change.

    Errors: E049. Source: Triton language 3.6.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def sum_rows(x_ptr, out_ptr):
            block = tl.make_block_ptr(x_ptr, (4, 64), (64, 1), (0, 0), (4, 16), order=(1, 0))
            acc = tl.zeros((4,), tl.float32)
            for _ in range(4):
                acc += tl.sum(tl.load(block), axis=1)
                block = tl.advance(block, (0, 16))  # 16 columns to the right
            tl.store(out_ptr + tl.arange(0, 4), acc)

        out = np.zeros(4, np.float32)
        sum_rows[(1,)](np.ones((4, 64), np.float32), out)
        assert (out == 64).all()
    """
    base = unwrap(base)
    if not isinstance(base, tensor) or not isinstance(base.type, block_pointer_type):
        raise UserMistake(
            "E049", f"advance needs a block pointer, got {describe(base)}", "use make_block_ptr"
        )
    moves = _items(offsets, "offsets")
    if len(moves) != len(base.type.block_shape):
        raise UserMistake(
            "E049",
            f"advance got {len(moves)} offsets for a block of rank {len(base.type.block_shape)}",
            "give an offset a dimension",
        )
    return emit_one("advance", base, moves)


# --- Tensor descriptors -----------------------------------------------------------------


@builtin
def make_tensor_descriptor(
    base: tensor,
    shape: Sequence[Operand],
    strides: Sequence[Operand],
    block_shape: Sequence[int],
    padding_option: str = "zero",
) -> tensor_descriptor:
    """A descriptor of an array, for loads and stores of whole blocks by coordinates.

    1 to 5 dimensions; the last stride is the constant 1. Outside the array a load gives
    zero (or NaN with `padding_option="nan"`) and a store writes nothing. Made on the host,
    by `tessera.tools.tensor_descriptor.TensorDescriptor`, one can be a kernel's argument.
    Its `shape` (int32 scalars) and `strides` (int64 scalars, in elements) are the array's;
    `block_shape` and `dtype` are constants.
    On a GPU, a base or a stride that the kernel loads from memory must be a multiple of 16 bytes,
    as TMA requires. Otherwise the launch fails with a misaligned address.
    Errors: E044, E049. Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def double(x_ptr, M, N):
            desc = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[4, 16])
            at = [tl.program_id(0) * 4, tl.program_id(1) * 16]
            desc.store(at, 2 * desc.load(at))  # nothing outside the array is written

        x = np.ones((6, 40), np.float32)
        double[(2, 3)](x, 6, 40)
        assert (x == 2).all()
    """
    return _as_descriptor(descriptor_of(base, shape, strides, block_shape, padding_option, False))


def descriptor_of(
    base: Any,
    shape: Any,
    strides: Any,
    block_shape: Any,
    padding_option: Any,
    round_f32_to_tf32: bool,
) -> tensor:
    """The descriptor of `make_tensor_descriptor`, or one whose loads round float32 to tf32."""
    steps = _items(strides, "strides")
    if steps and specialised_value(steps[-1]) == 1:
        steps[-1] = 1
    return emit_one(
        "make_tensor_descriptor",
        pointer_operand(base, "make_tensor_descriptor"),
        _items(shape, "shape"),
        steps,
        constant_ints(block_shape, "block_shape", "E049"),
        choice(padding_option, ("zero", "nan"), "padding_option", "E049"),
        round_f32_to_tf32,
    )


@builtin
def polled_type(pointer: Any, expected: Any, timeout: Any) -> Any:
    """The element type that `atomic_poll` reads, and which the expected number must have."""
    type = pointer_operand(pointer, "atomic_poll").dtype
    pointee = type.element_ty if isinstance(type, pointer_type) else None
    if pointee is None or not pointee.is_int() or pointee.primitive_bitwidth < 16:
        raise UserMistake(
            "E047",
            f"atomic_poll of {describe(pointer)}",
            "it takes pointers to integers of 16, 32 and 64 bits",
        )
    number = known_value(expected)
    if isinstance(number, int) and not fits(number, pointee):
        raise UserMistake(
            "E028",
            f"atomic_poll waits for {number}, which does not fit {pointee}",
            "wait for a value of that type",
        )
    nanoseconds = known_value(timeout)
    if isinstance(nanoseconds, int) and nanoseconds < 0:
        raise UserMistake(
            "E047",
            f"atomic_poll waits for at most {nanoseconds} ns",
            "give 0 or more, or None for as long as it takes",
        )
    return pointee


def block_attribute(value: tensor, name: str) -> Any:
    """The attribute of a block pointer or a tensor descriptor by its name, or None.

    The shape and the strides of a descriptor are the array's.
    """
    type = value.type
    assert isinstance(type, block_pointer_type)
    if not isinstance(type, descriptor_type):
        if name == "dtype":
            return pointer_type(block_type(type.element_ty, type.block_shape))
        return type.block_shape if name in ("block_shape", "shape") else None
    dims = range(len(type.block_shape))
    if name == "shape":
        return tuple(emit_one("descriptor_extent", value, dim) for dim in dims)
    if name == "strides":
        return tuple(emit_one("descriptor_stride", value, dim) for dim in dims)
    if name == "block_type":
        return block_type(type.element_ty, type.block_shape)
    return {"dtype": type.element_ty, "block_shape": type.block_shape}.get(name)


class _IsDescriptor(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, tensor) and isinstance(value.type, descriptor_type)


class tensor_descriptor(metaclass=_IsDescriptor):
    """A tensor descriptor: a view of an array, by whose coordinates whole blocks are accessed.

    `make_tensor_descriptor` makes one in a kernel, `TensorDescriptor` on the host. In kernels
    `isinstance(x, tl.tensor_descriptor)` holds for it. Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl
        from tessera.tools.tensor_descriptor import TensorDescriptor

        @tessera.jit
        def total(x, out_ptr):
            tl.static_assert(isinstance(x, tl.tensor_descriptor))
            tl.store(out_ptr, tl.sum(x.load([0, 0])))

        x, out = np.ones((6, 16), np.float32), np.zeros(1, np.float32)
        total[(1,)](TensorDescriptor.from_tensor(x, [8, 16]), out)
        assert out[0] == 96
    """

    shape: tuple[tensor, ...]
    """The extents of the array, int32 scalars."""
    strides: tuple[tensor, ...]
    """The strides of the array in elements, int64 scalars."""
    block_shape: tuple[int, ...]
    """The extents of a block."""
    dtype: dtype
    """The type of an element."""

    @builtin
    def load(self, offsets: Sequence[Operand]) -> tensor:
        """The block at `offsets`, a tile of `block_shape`; 0 (or NaN) outside the array."""
        return load_tensor_descriptor(self, offsets)

    @builtin
    def store(self, offsets: Sequence[Operand], value: Operand) -> None:
        """Writes the block at `offsets`, but nothing outside the array."""
        store_tensor_descriptor(self, offsets, value)

    @builtin
    def gather(self, x_offsets: tensor, y_offset: Operand) -> tensor:
        """The rows `x_offsets` of a matrix, from the column `y_offset` on; the result has a row for each."""
        rows = to_tensor_value(x_offsets)
        return emit_one("descriptor_gather", _descriptor(self, "gather"), rows, unwrap(y_offset))

    @builtin
    def scatter(self, value: Operand, x_offsets: tensor, y_offset: Operand) -> None:
        """Writes the rows of `value` to the rows `x_offsets`, from the column `y_offset` on."""
        scatter(self, value, x_offsets, y_offset)

    @builtin
    def atomic_add(self, offsets: Sequence[Operand], value: Operand) -> None:
        """Adds `value` to the block at `offsets`, each element in one step."""
        reduce_descriptor("add", self, offsets, value)

    @builtin
    def atomic_min(self, offsets: Sequence[Operand], value: Operand) -> None:
        """Replaces each element at `offsets` by the smaller of itself and `value`."""
        reduce_descriptor("min", self, offsets, value)

    @builtin
    def atomic_max(self, offsets: Sequence[Operand], value: Operand) -> None:
        """Replaces each element at `offsets` by the larger of itself and `value`."""
        reduce_descriptor("max", self, offsets, value)

    @builtin
    def atomic_and(self, offsets: Sequence[Operand], value: Operand) -> None:
        """Replaces each element at `offsets` by its bitwise and with `value`."""
        reduce_descriptor("and", self, offsets, value)

    @builtin
    def atomic_or(self, offsets: Sequence[Operand], value: Operand) -> None:
        """Replaces each element at `offsets` by its bitwise or with `value`."""
        reduce_descriptor("or", self, offsets, value)

    @builtin
    def atomic_xor(self, offsets: Sequence[Operand], value: Operand) -> None:
        """Replaces each element at `offsets` by its bitwise exclusive or with `value`."""
        reduce_descriptor("xor", self, offsets, value)


def _as_descriptor(value: Any) -> tensor_descriptor:
    """A tensor that is a descriptor, as what it is to type checkers."""
    return value  # type: ignore[no-any-return]


def reduce_descriptor(kind: str, desc: Any, offsets: Any, value: Any) -> None:
    what = f"atomic_{kind}"
    emit(
        "descriptor_reduce",
        kind,
        _descriptor(desc, what),
        _items(offsets, "offsets"),
        unwrap(value),
    )


def _descriptor(value: Any, what: str) -> tensor:
    value = unwrap(value)
    if isinstance(value, tensor_descriptor):
        return value  # type: ignore[return-value]
    raise UserMistake(
        "E044", f"{what} needs a tensor descriptor, got {describe(value)}", "make one first"
    )


@builtin
def load_tensor_descriptor(
    desc: Union[tensor_descriptor, tensor], offsets: Sequence[Operand]
) -> tensor:
    """The block of the array at `offsets`, a tile of the descriptor's `block_shape`.

    `offsets` are integers or integer scalars, one a dimension, in elements. Elements outside of the
    array have the value that `make_tensor_descriptor` chose (`padding_option`). Errors: E044, E049.
    Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def corner(x_ptr, out_ptr, M, N):
            desc = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [4, 16])
            block = tl.load_tensor_descriptor(desc, [M - 2, N - 8])  # or desc.load([M - 2, N - 8])
            tl.store(out_ptr, tl.sum(block))

        out = np.zeros(1, np.float32)
        corner[(1,)](np.ones((6, 32), np.float32), out, 6, 32)
        assert out[0] == 2 * 8  # outside the array there are zeros
    """
    return emit_one(
        "descriptor_load",
        _descriptor(desc, "load_tensor_descriptor"),
        _items(offsets, "offsets"),
    )


@builtin
def store_tensor_descriptor(
    desc: Union[tensor_descriptor, tensor], offsets: Sequence[Operand], value: Operand
) -> None:
    """Writes a block of the array at `offsets`, but nothing outside the array.

    `offsets` are as in `load_tensor_descriptor`; `value` has the shape of a block.
    Errors: E044, E049. Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def identity(x_ptr, n):
            desc = tl.make_tensor_descriptor(x_ptr, [n, n], [n, 1], [8, 8])
            block = tl.arange(0, 8)[:, None] == tl.arange(0, 8)[None, :]
            tl.store_tensor_descriptor(desc, [0, 0], block.to(tl.float32))  # or desc.store(...)

        x = np.zeros((6, 6), np.float32)
        identity[(1,)](x, 6)
        assert (x == np.eye(6)).all()
    """
    emit(
        "descriptor_store",
        _descriptor(desc, "store_tensor_descriptor"),
        _items(offsets, "offsets"),
        to_tensor_value(value),
    )


@builtin
def _descriptor_load(self: tensor, offsets: Sequence[Operand]) -> tensor:
    """`desc.load([i, j])`: the block of a tensor descriptor at these coordinates.

    A tensor of pointers has no such method: `tl.load(pointers)`. Errors: E044.
    """
    return load_tensor_descriptor(self, offsets)


tensor.load = _descriptor_load


@method
@builtin
def scatter(
    desc: Union[tensor_descriptor, tensor], value: Operand, x_offsets: tensor, y_offset: Operand
) -> None:
    """`desc.scatter(value, rows, column)`: writes rows of the array that a descriptor names.

    `value` has a row for each element of `x_offsets`. Errors: E044, E049.
    Source: Triton language 3.6/3.9.
    """
    rows = to_tensor_value(x_offsets)
    emit("descriptor_scatter", _descriptor(desc, "scatter"), value, rows, unwrap(y_offset))
