# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The input of the front-end: a function to build, and the meaning of each parameter."""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence, Union

from tessera.language import types
from tessera.language.callables import JITCallable


class ValueSpec(NamedTuple):
    """A parameter that is an argument of the compiled kernel."""

    type: Any
    """`tessera._C.Type`."""
    divisibility: int = 0
    """A power of two that divides the integer or the address; 0 if none is known."""


class ConstSpec(NamedTuple):
    """A parameter that is a compile-time constant; it takes no kernel argument."""

    value: Any


class KnownSpec(NamedTuple):
    """A parameter whose value the kernel is specialised on; it takes no kernel argument.

    Kernel code sees an int32 like any other, whose value makes it faster and no more.
    """

    value: int


class TupleSpec(NamedTuple):
    """A parameter that is a tuple (`cls` is None) or a named tuple of class `cls`."""

    items: Sequence["ArgSpec"]
    cls: Optional[type] = None


class DescriptorSpec(NamedTuple):
    """A parameter that is a tensor descriptor: made of its parts where the kernel begins."""

    items: Sequence["ArgSpec"]
    """The pointer, the shape and the strides."""
    block_shape: tuple[int, ...]
    padding: str
    rounds_to_tf32: bool = False


ArgSpec = Union[ValueSpec, ConstSpec, KnownSpec, TupleSpec, DescriptorSpec]


class Specialisation(NamedTuple):
    """The specialisation of a kernel, as `@jit(repr=...)` gets it to name the kernel."""

    constants: Mapping[str, Any]
    """The values of constants by their parameters."""
    signature: Mapping[str, Any]
    """The types of arguments by their parameters, as "*fp32"; "constexpr" of a constant."""


def spell(spec: ArgSpec) -> Any:
    """The type of an argument, as signatures spell it."""
    if isinstance(spec, (ConstSpec, KnownSpec)):
        return "constexpr"
    if isinstance(spec, TupleSpec):
        return tuple(map(spell, spec.items))
    if isinstance(spec, DescriptorSpec):
        return f"tensordesc<{spell(spec.items[0])[1:]}{list(spec.block_shape)}>"
    short = types.short_name(types.dtype_of_core(spec.type.dtype))
    if spec.type.kind == types.KIND_POINTER:
        return f"*k{short}" if spec.type.is_const else f"*{short}"
    return short


def kernel_name(fn: JITCallable, specs: Sequence[ArgSpec]) -> str:
    """The name of a kernel in its machine code, and so in profilers.

    Raises ValueError where `repr` gives no name.
    """
    name_of: Optional[Callable[[Specialisation], str]] = getattr(fn, "_repr", None)
    if name_of is None:
        return fn.__name__
    named = [(param.name, spec) for param, spec in zip(fn.params, specs)]
    known = (ConstSpec, KnownSpec)
    constants = {name: spec.value for name, spec in named if isinstance(spec, known)}
    name = name_of(Specialisation(constants, {name: spell(spec) for name, spec in named}))
    if not isinstance(name, str) or not name:
        raise ValueError(f"the `repr` of `{fn.__name__}` returns {name!r}, which is not a name")
    # The names that assemblers accept.
    return "".join(c if c.isascii() and (c.isalnum() or c in "_$") else "_" for c in name)


def constant_part(spec: ArgSpec) -> Any:
    """The constants of an argument, in the tuples that they are in."""
    if isinstance(spec, ConstSpec):
        return spec.value
    if isinstance(spec, TupleSpec):
        return tuple(map(constant_part, spec.items))
    return None
