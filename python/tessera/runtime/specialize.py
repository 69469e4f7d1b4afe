# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The specialisation of a kernel: the type of each argument, and the assumptions about its value.

An array counts by its element type and the alignment of its address. An integer counts by its
width, its alignment and whether it is 1, for which code is specialised. A constexpr counts by its
value. Equal keys mean that the same compiled kernel serves.

The alignment classes are 16, 8, 4 and none. They carry what a compiler can use without making a
kernel for every address. The core has them, and the rules of numbers (python/src/Numbers.h), by
which its warm path distinguishes arguments, too.
"""

from __future__ import annotations

import operator
import struct
import sys
import weakref
from enum import Enum
from typing import Any, Hashable, NamedTuple, Optional, Sequence, Union

from tessera import _C
from tessera.errors import ArgumentError, IntegerRangeError
from tessera.frontend.signature import (
    ArgSpec,
    ConstSpec,
    DescriptorSpec,
    KnownSpec,
    TupleSpec,
    ValueSpec,
)
from tessera.language import types
from tessera.language.aggregate import field_values, fields_of
from tessera.language.callables import JITCallable
from tessera.language.records import Parts, parts_of_argument, record_fields
from tessera.runtime.arrays import (
    NOWHERE,
    Consumer,
    Pointer,
    find_dtype,
    is_dtype,
    is_numpy_scalar,
    pointer_of,
)
from tessera.wording import shown, with_article

_SCALARS = (bool, int, float)


class ParamTraits(NamedTuple):
    """How one parameter is specialised."""

    name: str
    is_constexpr: bool
    annotation: Optional[types.dtype]
    """The type that the parameter's annotation fixes."""
    is_const: bool
    """Annotated `tl.const`: not stored through."""
    on_value: bool
    """Integers specialise on being 1 and on alignment, pointers on alignment."""
    on_alignment: bool


class PointerSlot(NamedTuple):
    """A slot that holds the address of an array."""

    slot: int
    name: str
    pointer: Pointer


def check_memory(pointers: Sequence[PointerSlot]) -> None:
    """Raises ArgumentError (E054) for what stands for an array while a kernel is compiled."""
    for item in pointers:
        if item.pointer.device == NOWHERE:
            raise ArgumentError(
                "E054",
                f"argument `{item.name}` is a MockTensor, which has no memory",
                "launch with an array; `warmup` compiles with a MockTensor",
            )


class Bound:
    """The arguments of a launch, specialised: a key, a spec a parameter, and the slots."""

    def __init__(self, consumer: Optional[Consumer] = None) -> None:
        self._consumer = consumer
        self.key: list[Hashable] = []
        self.specs: list[ArgSpec] = []
        self.slots: list[int] = []
        self.pointers: list[PointerSlot] = []
        self.values: Sequence[Any] = ()
        """Their origin, for messages."""
        self.changing = ""
        """The argument that is a constant from an object that may hold another one at the next
        launch. The warm path, which knows constants by identity, is not for such launches."""
        self._containers: list[Any] = []
        """Those whose parts are being specialised, the outermost first."""

    def add(self, traits: ParamTraits, value: Any) -> None:
        """Specialises the next argument."""
        key, spec = self._specialise(traits, value, traits.name)
        self.key.append(key)
        self.specs.append(spec)

    def _specialise(self, traits: ParamTraits, value: Any, name: str) -> tuple[Hashable, ArgSpec]:
        if isinstance(value, types.constexpr):
            return self._constant(value.value, name)
        if traits.is_constexpr:
            return self._constant(value, name)
        if value is None or isinstance(value, (types.dtype, JITCallable)):
            return _constant(value, name)
        if type(value) not in _SCALARS:
            if is_descriptor(value):
                return self._descriptor(traits, value, name)
            parts = parts_of_argument(value)
            if parts is not None:
                if not isinstance(value, (tuple, list)) and not hasattr(value, "layout"):
                    _learn_record(type(value))
                return self._tuple(traits, value, parts, name)
        if traits.annotation is not None and not traits.annotation.is_ptr():
            return self._number_as(traits, traits.annotation, value, name)
        if type(value) in _SCALARS:
            return self._plain_number(traits, value, name)
        pointer = pointer_of(value, name, self._consumer)
        if pointer is not None:
            return self._pointer(traits, pointer, name)
        scalar = plain_number(value)
        if scalar is not None:
            _learn_scalar(type(value))
            return self._plain_number(traits, scalar, name)
        raise ArgumentError(
            "E054",
            f"argument `{name}` is {with_article(type(value).__name__)}, which no kernel can take: "
            f"{shown(value)}",
            "pass an array, a number, a bool, None or a tuple of these, "
            f"or annotate it: `{name}: tl.constexpr`",
        )

    def _constant(self, value: Any, name: str) -> tuple[Hashable, ArgSpec]:
        if not self.changing and may_change(value):
            self.changing = name
        return _constant(value, name)

    def _tuple(
        self, traits: ParamTraits, value: Any, parts: Parts, name: str
    ) -> tuple[Hashable, ArgSpec]:
        if any(one is value for one in self._containers):
            raise ArgumentError(
                "E054",
                f"argument `{name}` is {with_article(type(value).__name__)} that contains itself",
                "pass a container of arrays and numbers, whose parts end somewhere",
            )
        self._containers.append(value)
        keys, specs = [], []
        for index, item in enumerate(parts.items):
            key, spec = self._specialise(traits, item, f"{name}[{index}]")
            keys.append(key)
            specs.append(spec)
        self._containers.pop()
        return ("t", parts.cls, *keys), TupleSpec(tuple(specs), parts.cls)

    def _descriptor(self, traits: ParamTraits, value: Any, name: str) -> tuple[Hashable, ArgSpec]:
        value.check(name)
        pointer = pointer_of(value.base, name, self._consumer)
        if pointer is None:
            raise ArgumentError(
                "E054",
                f"tensor descriptor `{name}` is of {with_article(type(value.base).__name__)}",
                "describe an array",
            )
        key, spec = self._pointer(traits, pointer, name)
        keys: list[Hashable] = [key]
        specs = [spec]
        for what, numbers in (("shape", value.shape), ("strides", value.strides)):
            for index, number in enumerate(numbers):
                # The last stride is 1 for every array.
                fixed = what == "strides" and index == len(numbers) - 1
                key, spec = (
                    _constant(1, name)
                    if fixed
                    else self._number(traits, _integer(number), f"{name}.{what}[{index}]")
                )
                keys.append(key)
                specs.append(spec)
        block_shape = tuple(map(_integer, value.block_shape))
        rounds = bool(value.round_f32_to_tf32)
        key = ("d", block_shape, value.padding, rounds, *keys)
        return key, DescriptorSpec(tuple(specs), block_shape, value.padding, rounds)

    def _pointer(
        self, traits: ParamTraits, pointer: Pointer, name: str
    ) -> tuple[Hashable, ArgSpec]:
        dtype, is_const = pointer.dtype, traits.is_const
        if isinstance(traits.annotation, types.pointer_type):
            dtype = traits.annotation.element_ty
            is_const = traits.annotation.is_const()
            if dtype != pointer.dtype:
                raise ArgumentError(
                    "E054",
                    f"argument `{name}` is annotated {traits.annotation}, got an array of "
                    f"{pointer.dtype}",
                    f"convert it or drop the annotation; tessera.reinterpret({name}, "
                    f"{types.spelled(dtype)}) reads its memory as it is",
                )
        aligned = traits.on_value and traits.on_alignment
        alignment = _C.alignment_class(pointer.address) if aligned else 0
        self.pointers.append(PointerSlot(len(self.slots), name, pointer))
        self.slots.append(pointer.address)
        type = _C.Type(types.KIND_POINTER, dtype._core_id, is_const, ())
        return ("p", dtype._core_id, is_const, alignment), ValueSpec(type, alignment)

    def _plain_number(self, traits: ParamTraits, value: Any, name: str) -> tuple[Hashable, ArgSpec]:
        if traits.annotation is not None:
            raise ArgumentError(
                "E054",
                f"argument `{name}` is annotated {traits.annotation}, got the number {shown(value)}",
                "pass an array",
            )
        return self._number(traits, value, name)

    def _number(self, traits: ParamTraits, value: Any, name: str) -> tuple[Hashable, ArgSpec]:
        found = _C.specialise_number(value, traits.on_value, traits.on_alignment)
        if found is None:
            raise _fits_nothing(value, name)
        core_id, alignment, slot = found
        if core_id == types.void._core_id:
            return ("c", int, 1), KnownSpec(1)
        return self._value(types.dtype_of_core(core_id), slot, alignment)

    def _number_as(
        self, traits: ParamTraits, dtype: types.dtype, value: Any, name: str
    ) -> tuple[Hashable, ArgSpec]:
        number = value if type(value) in (bool, int, float) else plain_number(value)
        if number is None:
            raise ArgumentError(
                "E054",
                f"argument `{name}` is annotated {dtype}, got {with_article(type(value).__name__)}",
                "pass a number",
            )
        if type(value) not in _SCALARS:
            _learn_scalar(type(value))
        if dtype.is_floating():
            try:
                bits = float_bits(dtype, number)
            except OverflowError:
                raise ArgumentError(
                    "E055",
                    f"argument `{name}` is annotated {dtype}, which {shown(number)} does not fit",
                    "pass a float",
                ) from None
            return self._value(dtype, bits)
        if isinstance(number, float):
            raise ArgumentError(
                "E055",
                f"argument `{name}` is annotated {dtype}, got the float {number!r}",
                "pass an integer",
            )
        if not dtype.get_int_min_value() <= number <= dtype.get_int_max_value():
            raise ArgumentError(
                "E055",
                f"argument `{name}` is annotated {dtype}, which {shown(number)} does not fit",
            )
        aligned = traits.on_value and traits.on_alignment and not dtype.is_bool()
        alignment = _C.alignment_class(int(number) % (1 << 64)) if aligned else 0
        return self._value(dtype, int(number), alignment)

    def _value(self, dtype: types.dtype, slot: int, alignment: int = 0) -> tuple[Hashable, ArgSpec]:
        self.slots.append(slot)
        type = _C.Type(types.KIND_NUMBER, dtype._core_id, False, ())
        return ("v", dtype._core_id, alignment), ValueSpec(type, alignment)


_C.learn_constexpr(types.constexpr)

_learned: "weakref.WeakSet[type]" = weakref.WeakSet()
"""The classes that are registered with the core, which does not keep them alive either."""


def _learn_record(cls: type) -> None:
    """Has the warm path take the instances of a dataclass or of an aggregate."""
    if cls in _learned:
        return
    _learned.add(cls)
    _C.learn_record(cls, record_fields(cls))


def _learn_scalar(cls: type) -> None:
    """Has the warm path take NumPy's numbers of a type, or those of a subclass of int or float."""
    if cls in _learned:
        return
    _learned.add(cls)
    names = {base.__name__ for base in cls.__mro__ if base.__module__ == "numpy"}
    if issubclass(cls, int) or ("integer" in names and "timedelta64" not in names):
        _C.learn_scalar(cls, "int")
    elif issubclass(cls, float) or "floating" in names:
        _C.learn_scalar(cls, "float")
    elif "generic" in names and cls.__name__ in ("bool", "bool_"):
        _C.learn_scalar(cls, "bool")


def is_descriptor(value: Any) -> bool:
    """True if `value` is a TensorDescriptor."""
    # A caller that has one has loaded the module.
    module = sys.modules.get("tessera.tools.tensor_descriptor")
    return module is not None and isinstance(value, module.TensorDescriptor)


def _integer(value: Any) -> int:
    """A plain integer of what may be one of NumPy's or torch's."""
    return value if type(value) is int else operator.index(value)


def integer_type(value: int, name: str) -> types.dtype:
    """The type of an integer argument: the narrowest of int32, int64 and uint64.

    Raises IntegerRangeError (E055) if there is none.
    """
    found = _C.specialise_number(int(value), False, False)
    if found is None:
        raise _fits_nothing(value, name)
    return types.dtype_of_core(found[0])


def _fits_nothing(value: int, name: str) -> IntegerRangeError:
    return IntegerRangeError(
        "E055",
        f"argument `{name}` is {shown(value)}, which fits no 64-bit integer",
        "pass it in two parts",
    )


def float_bits(dtype: types.dtype, value: Union[int, float]) -> int:
    """`value`, rounded once to a float type (to nearest, ties to even), as the low bits of a slot.

    Raises OverflowError for an integer that is beyond all floats.
    """
    if dtype in (types.float16, types.bfloat16, types.float32, types.float64):
        return _C.float_bits(value, dtype._core_id)
    raise ArgumentError("E054", f"a scalar argument cannot be of type {dtype}", "use fp32")


def constant_key(value: Any) -> Hashable:
    """A key that distinguishes constants that Python calls equal (1, 1.0 and True; 0.0 and -0.0).

    Raises TypeError if `value` cannot be hashed.
    """
    if isinstance(value, types.constexpr):
        return constant_key(value.value)
    if isinstance(value, float):
        return ("c", float, struct.pack("<d", value))
    if isinstance(value, tuple):
        return ("c", type(value), *map(constant_key, value))
    cls: Any = type(value)
    if fields_of(value) is not None:
        return ("c", cls, *map(constant_key, field_values(value)))
    hash(value)
    by_identity = getattr(cls, "__eq__") is getattr(object, "__eq__")
    if by_identity or cls.__module__ == "builtins" or isinstance(value, Enum):
        return ("c", cls, value)
    if isinstance(value, (types.dtype, JITCallable)):
        return ("c", cls, value)
    # Equal by what its class says, which may not ask for all that a kernel can read of it.
    return ("c", cls, value, *_members_key(value))


def may_change(value: Any) -> bool:
    """True if a constant's key may change while the object stays the same: the element of a 0-d
    array, or the members of an object that is compared by them."""
    if isinstance(value, types.constexpr):
        return may_change(value.value)
    if isinstance(value, (bool, int, float, str, types.dtype, JITCallable, Enum)) or value is None:
        return False
    if isinstance(value, tuple):
        return any(map(may_change, value))
    if is_array(value):
        return True
    if is_dtype(value) or is_numpy_scalar(value):
        return False
    cls: Any = type(value)
    if getattr(cls, "__eq__") is getattr(object, "__eq__") or cls.__module__ == "builtins":
        return False
    if fields_of(value) is not None:
        return any(map(may_change, field_values(value)))
    is_frozen: bool = getattr(getattr(cls, "__dataclass_params__", None), "frozen", False)
    return not is_frozen or any(map(may_change, getattr(value, "__dict__", {}).values()))


def is_array(value: Any) -> bool:
    """True if `value` is an array of NumPy's, be it one of no dimension, and no number."""
    return hasattr(value, "__array_interface__") and not is_numpy_scalar(value)


def _members_key(value: Any) -> Sequence[Hashable]:
    members = dict(getattr(value, "__dict__", None) or {})
    for cls in type(value).__mro__:
        names = cls.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            members[name] = getattr(value, name, None)
    keys: list[Hashable] = []
    for name, member in members.items():
        try:
            keys.append((name, constant_key(member)))
        except TypeError:
            keys.append((name, _Identity(member)))
    return keys


class _Identity:
    """Equal for one object alone."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.value is self.value


def _constant(value: Any, name: str) -> tuple[Hashable, ArgSpec]:
    if is_dtype(value):
        value = find_dtype(value)
    if not isinstance(value, (bool, int, float, str, tuple)) and value is not None:
        scalar = _numpy_scalar(value)
        if scalar is not None:
            value = scalar
        elif hasattr(value, "data_ptr") or hasattr(value, "__array_interface__"):
            raise ArgumentError(
                "E033",
                f"argument `{name}` is a constexpr, got {with_article(type(value).__name__)}",
                (
                    "pass the number in it: x.item()"
                    if getattr(value, "ndim", None) == 0
                    else "pass a number, a string, a dtype or a tuple of these, or drop `tl.constexpr`"
                ),
            )
    try:
        return constant_key(value), ConstSpec(value)
    except TypeError:
        fix = "pass a tuple" if isinstance(value, list) else "pass something that can be hashed"
        raise ArgumentError(
            "E033",
            f"argument `{name}` is a constexpr and must be hashable, got {with_article(type(value).__name__)}",
            fix,
        ) from None


def plain_number(value: Any) -> Any:
    """The bool, int or float that an object of one of their subclasses or a NumPy scalar is worth,
    None for anything else. Redefinitions of a subclass, such as an IntEnum, do not count."""
    if isinstance(value, bool):
        return bool(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    return _numpy_scalar(value)


def _numpy_scalar(value: Any) -> Any:
    """The Python number in a NumPy scalar, None for anything else."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "__array_interface__"):
        item = value.item() if hasattr(value, "item") else None
        if isinstance(item, (bool, int, float)):
            return item
        if item is not None and hasattr(item, "__float__"):  # bfloat16 and its like
            return float(item)
    return None
