# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matching arguments with what a compiled kernel takes.

A kernel is compiled for types, for divisors of its integers and addresses, and for constants. A
launch of the compiled kernel itself does not specialise, so this module checks each of these. A
value of another type would be misread, and one that breaks an assumption would run the wrong code.
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping, NamedTuple, NoReturn, Optional, Sequence

from tessera import _C
from tessera.errors import ArgumentError
from tessera.frontend.signature import (
    ArgSpec,
    ConstSpec,
    DescriptorSpec,
    KnownSpec,
    TupleSpec,
    ValueSpec,
)
from tessera.language import types
from tessera.language.records import parts_of_argument
from tessera.runtime.arrays import NOWHERE, Consumer, pointer_of
from tessera.runtime.specialize import (
    PointerSlot,
    constant_key,
    float_bits,
    is_descriptor,
    plain_number,
)
from tessera.wording import counted, shown, with_article

Parameters = Sequence[tuple[str, ArgSpec]]
"""The parameters of a kernel by name, with what each was compiled as."""


class Expected(NamedTuple):
    """One argument of a compiled kernel."""

    name: str
    dtypes: tuple[types.dtype, ...]
    """Its type, or that of the elements: one, or those that the IR does not distinguish."""
    is_pointer: bool
    divisibility: int = 0

    def __str__(self) -> str:
        spelled = " or ".join(f"{'*' * self.is_pointer}{dtype}" for dtype in self.dtypes)
        return spelled + (f":{self.divisibility}" if self.divisibility > 1 else "")


_DTYPES_OF_IR = {
    "i1": ("int1",),
    "i8": ("int8", "uint8"),
    "i16": ("int16", "uint16"),
    "i32": ("int32", "uint32"),
    "i64": ("int64", "uint64"),
    "f16": ("fp16",),
    "bf16": ("bf16",),
    "f32": ("fp32",),
    "f64": ("fp64",),
    "f8E5M2": ("fp8e5",),
    "f8E4M3FN": ("fp8e4nv", "fp8e4b15"),
    "f8E4M3FNUZ": ("fp8e4b8",),
    "f8E5M2FNUZ": ("fp8e5b16",),
}


def read_arguments(metadata: Sequence[Mapping[str, Any]]) -> list[Expected]:
    """The parameters of a kernel by its metadata, for one compiled from the file of a stage, which
    has no names and no signs."""
    found = []
    for index, argument in enumerate(metadata):
        type = argument["type"]
        is_pointer = "ptr" in type
        element = type.rpartition("<")[2].rstrip(">") if is_pointer else type
        dtypes = tuple(map(types.dtype, _DTYPES_OF_IR.get(element, ())))
        found.append(Expected(argument.get("name") or f"#{index}", dtypes, is_pointer))
    return found


def flatten(parameters: Parameters) -> list[Expected]:
    """The parameters of a kernel without the constants, tuples item by item."""
    return [item for name, spec in parameters for item in leaves(name, spec)]


def leaves(name: str, spec: ArgSpec) -> Iterator[Expected]:
    """The arguments that a parameter becomes."""
    if isinstance(spec, ValueSpec):
        dtype = types.dtype_of_core(spec.type.dtype)
        is_pointer = spec.type.kind == types.KIND_POINTER
        yield Expected(name, (dtype,), is_pointer, spec.divisibility)
    elif isinstance(spec, (TupleSpec, DescriptorSpec)):
        for index, item in enumerate(spec.items):
            yield from leaves(f"{name}[{index}]", item)


def launchable_parameters(
    parameters: Optional[Parameters],
) -> Optional[tuple[tuple[Any, ...], ...]]:
    """The parameters in the form that the core's launches take; None if the core cannot launch with
    them.

    The core distinguishes arguments by their kind and divisors, not by their values. So each number
    must be of the one kind whose bits it is passed as.
    """
    if parameters is None or len(parameters) > _C.MAX_PARAMETERS:
        return None
    found = []
    for name, spec in parameters:
        if isinstance(spec, (ConstSpec, KnownSpec)):
            expected = _C.EXPECT_CONSTANT
        elif not isinstance(spec, ValueSpec):
            return None
        elif spec.type.kind == types.KIND_POINTER:
            expected = _C.EXPECT_POINTER
        else:
            expected = _C.expect_number(spec.type.dtype)
            if not expected:
                return None
        is_constant = expected == _C.EXPECT_CONSTANT
        found.append((name, (), is_constant, True, True, False, False, expected))
    return tuple(found)


class Matched:
    """Arguments that a compiled kernel takes: their slots, and which of them are arrays.

    `args` has one for each of `expected`; or, where `parameters` are known, one for each
    parameter, of which the constants must be what they were. Raises ArgumentError (E051,
    E054, E055). Without `needs_memory` a MockTensor is an array.
    """

    def __init__(
        self,
        kernel: str,
        expected: Sequence[Expected],
        parameters: Optional[Parameters],
        args: Sequence[Any],
        consumer: Optional[Consumer] = None,
        needs_memory: bool = True,
    ) -> None:
        self._consumer = consumer
        self._needs_memory = needs_memory
        self.slots: list[int] = []
        self.pointers: list[PointerSlot] = []
        by_parameter = parameters is not None and len(args) == len(parameters)
        has_parts = any(
            is_descriptor(value) or parts_of_argument(value) is not None for value in args
        )
        if len(args) == len(expected) and not (has_parts and by_parameter):
            for item, value in zip(expected, args):
                self._add(item, value)
        elif parameters is not None and by_parameter:
            for (name, spec), value in zip(parameters, args):
                self._match(name, spec, value)
        else:
            names = ", ".join(f"{item.name}: {item}" for item in expected)
            raise ArgumentError(
                "E051",
                f"the compiled kernel `{kernel}` takes {counted(len(expected), 'argument')}, "
                f"got {len(args)}",
                f"pass {names}" if names else "pass none: all became constants",
            )

    def _match(self, name: str, spec: ArgSpec, value: Any) -> None:
        if isinstance(spec, (ConstSpec, KnownSpec)):
            _check_constant(name, spec.value, value)
        elif isinstance(spec, ValueSpec):
            (expected,) = leaves(name, spec)
            self._add(expected, value)
        else:
            items = _parts(name, spec, value)
            for index, (item, part) in enumerate(zip(spec.items, items)):
                self._match(f"{name}[{index}]", item, part)

    def _add(self, expected: Expected, value: Any) -> None:
        value = types.unwrap(value)
        if expected.is_pointer:
            self._add_array(expected, value)
        else:
            self.slots.append(_number(expected, value))

    def _add_array(self, expected: Expected, value: Any) -> None:
        pointer = pointer_of(value, expected.name, self._consumer)
        if pointer is None:
            _refuse(expected, f"got {_describe(value)}", "pass an array")
        if pointer.device == NOWHERE and self._needs_memory:
            _refuse(expected, "got a MockTensor, which has no memory", "pass an array")
        if expected.dtypes and pointer.dtype not in expected.dtypes:
            _refuse(
                expected,
                f"got an array of {pointer.dtype}",
                "convert it, or compile for its type",
            )
        if expected.divisibility > 1 and pointer.address % expected.divisibility:
            _refuse(
                expected,
                f"got an array at an address that {expected.divisibility} does not divide",
                f"pass an aligned copy, or compile without :{expected.divisibility}",
            )
        self.pointers.append(PointerSlot(len(self.slots), expected.name, pointer))
        self.slots.append(pointer.address)


def _parts(name: str, spec: TupleSpec | DescriptorSpec, value: Any) -> Sequence[Any]:
    """The items of a tuple, or what a descriptor consists of."""
    if isinstance(spec, TupleSpec):
        parts = parts_of_argument(value)
        if parts is None or len(parts.items) != len(spec.items):
            kind = "a tuple" if spec.cls is None else f"a {spec.cls.__name__}"
            raise ArgumentError(
                "E054",
                f"argument `{name}` was compiled as {kind} of {len(spec.items)}, "
                f"got {_describe(value)}",
                "pass as many items",
            )
        return parts.items
    if not is_descriptor(value):
        raise ArgumentError(
            "E054",
            f"argument `{name}` was compiled as a tensor descriptor, got {_describe(value)}",
            "pass a TensorDescriptor",
        )
    value.check(name)
    rounds = bool(value.round_f32_to_tf32)
    given = tuple(map(int, value.block_shape)), value.padding, rounds
    if given != (tuple(spec.block_shape), spec.padding, spec.rounds_to_tf32):
        raise ArgumentError(
            "E054",
            f"tensor descriptor `{name}` was compiled for blocks of "
            f"{list(spec.block_shape)}, the padding {spec.padding!r} and "
            f"round_f32_to_tf32={spec.rounds_to_tf32}, got {list(given[0])}, {given[1]!r} and "
            f"{rounds}",
            "pass such a descriptor, or compile for this one",
        )
    return (value.base, *value.shape, *value.strides)


def _check_constant(name: str, expected: Any, value: Any) -> None:
    value = types.unwrap(value)
    number = plain_number(value)
    value = value if number is None else number
    try:
        is_same = constant_key(types.unwrap(expected)) == constant_key(value)
    except TypeError:
        is_same = False
    if not is_same:
        raise ArgumentError(
            "E055",
            f"argument `{name}` was compiled as the constant {shown(expected)}, got {_describe(value)}",
            "compile for this one, or launch the @jit function",
        )


def _number(expected: Expected, value: Any) -> int:
    number = plain_number(value)
    if number is None:
        _refuse(expected, f"got {_describe(value)}", "pass a number")
    if not expected.dtypes:
        return int(number)
    if expected.dtypes[0].is_floating():
        try:
            return float_bits(expected.dtypes[0], number)
        except OverflowError:
            _refuse(expected, f"which {shown(number)} does not fit", "pass a float", id="E055")
    if isinstance(number, float):
        _refuse(expected, f"got the float {number!r}", "pass an integer", id="E055")
    low = min(dtype.get_int_min_value() for dtype in expected.dtypes)
    high = max(dtype.get_int_max_value() for dtype in expected.dtypes)
    if not low <= number <= high:
        _refuse(
            expected, f"which {shown(number)} does not fit", "compile for a wider type", id="E055"
        )
    if expected.divisibility > 1 and number % expected.divisibility:
        _refuse(
            expected,
            f"and {expected.divisibility} does not divide {shown(number)}",
            f"compile without :{expected.divisibility}",
            id="E055",
        )
    return int(number)


def _describe(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float, str)):
        return shown(value)
    return with_article(type(value).__name__)


def _refuse(expected: Expected, why: str, fix: str, id: str = "E054") -> NoReturn:
    joint = " " if why.startswith("and ") else ", "
    raise ArgumentError(
        id, f"argument `{expected.name}` was compiled as {expected}{joint}{why}", fix
    )
