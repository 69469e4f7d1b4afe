# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Aggregates in kernel code: their members, operators and constructors.

The class's attribute decides. A @jit function is visited with the instance as its first argument. A
`constexpr_function` and plain Python run now, on values of the kernel.
"""

from __future__ import annotations

import dataclasses
from types import FunctionType, MethodType
from typing import Any, Callable, Optional

from tessera.errors import UserMistake
from tessera.frontend.constants import plain
from tessera.frontend.scope import MISSING
from tessera.frontend.part import Part
from tessera.language.aggregate import (
    FIELDS,
    call_python,
    fields_of,
    find_member,
    is_aggregate_class,
)
from tessera.language.callables import ConstexprFunction, JITCallable
from tessera.language.records import declaring_class
from tessera.language.tensor import describe

_BINARY = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "FloorDiv": "floordiv",
    "Mod": "mod", "BitAnd": "and", "BitOr": "or", "BitXor": "xor", "LShift": "lshift",
    "RShift": "rshift", "Pow": "pow", "MatMult": "matmul",
}  # fmt: skip

_COMPARE = {
    "Eq": ("eq", "eq"), "NotEq": ("ne", "ne"), "Lt": ("lt", "gt"), "LtE": ("le", "ge"),
    "Gt": ("gt", "lt"), "GtE": ("ge", "le"),
}  # fmt: skip

_UNARY = {"USub": "neg", "UAdd": "pos", "Invert": "invert"}


class BoundFunction:
    """A @jit function, or a `constexpr_function`, reached as a method: `x.sum`."""

    def __init__(self, fn: Any, self_argument: Any) -> None:
        self.fn = fn
        self.self_argument = self_argument

    @property
    def _must_use_result(self) -> Any:
        return getattr(self.fn, "_must_use_result", False)


def is_aggregate(value: Any) -> bool:
    """True if `value` is an instance of an aggregate."""
    return fields_of(value) is not None


class Aggregates(Part):
    """Aggregates in the walk over a function."""

    def member(self, value: Any, name: str) -> Any:
        """`value.name` of an aggregate, MISSING if there is no such thing."""
        fields = fields_of(value)
        if fields is not None and name in fields:
            return plain(getattr(value, name))
        cls = type(value)
        if self.session.reads.attribute(cls, name) is MISSING:
            return MISSING
        found = find_member(cls, name)
        if isinstance(found, (JITCallable, ConstexprFunction)):
            return BoundFunction(found, value)
        if isinstance(found, property):
            assert found.fget is not None
            self.session.reads.called(found.fget)
            if isinstance(found.fget, (JITCallable, ConstexprFunction)):
                return self._property(found.fget, value)
            return plain(call_python(found.fget, [value], {}))
        return plain(getattr(value, name, MISSING))

    def record_member(self, value: tuple[Any, ...], name: str) -> Any:
        """`value.name` of a named tuple or a dataclass, if that is a method or a property which is a
        @jit function; MISSING otherwise."""
        cls = declaring_class(value)
        if cls is None or name in getattr(value, "_fields"):
            return MISSING
        found = find_member(cls, name)
        getter = found.fget if isinstance(found, property) else None
        if isinstance(getter, (JITCallable, ConstexprFunction)):
            self.session.reads.attribute(cls, name)
            return self._property(getter, value)
        if isinstance(found, (JITCallable, ConstexprFunction)):
            self.session.reads.attribute(cls, name)
            return BoundFunction(found, value)
        if dataclasses.is_dataclass(cls) and isinstance(found, (FunctionType, property)):
            raise UserMistake(
                "E012",
                f"`{cls.__name__}.{name}` is plain Python, which a dataclass has outside of kernels alone",
                "decorate it with @tessera.jit, or the class with @tessera.aggregate",
            )
        return MISSING

    def _property(self, getter: Any, value: Any) -> Any:
        return self.walker.calls.call(BoundFunction(getter, value), [], {}, self.walker.node)

    def make_aggregate(self, cls: type, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """An instance, by its class's own constructor."""
        self.session.reads.called(cls)
        for name in getattr(cls, FIELDS):
            self.session.reads.attribute(cls, name)  # its default
        return call_python(cls, args, kwargs)

    def call_method(self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Calls a plain Python method of an aggregate's class."""
        self.session.reads.called(function)
        return plain(call_python(function, args, kwargs))

    # --- Operators ------------------------------------------------------------------------

    def operator_of_aggregates(self, name: str, symbol: str, left: Any, right: Any) -> Any:
        """A binary operator, of which at least one operand is an aggregate.

        The left operand's method is asked first, then the reflected one of the right; the
        result NotImplemented sends on to the next.
        """
        if name in _COMPARE:
            own, reflected = _COMPARE[name]
        else:
            own, reflected = _BINARY[name], "r" + _BINARY[name]
        for owner, other, method in ((left, right, own), (right, left, reflected)):
            result = self._special(owner, f"__{method}__", [other])
            if result is not NotImplemented:
                return result
        if name in ("Eq", "NotEq") and (left is None or right is None):
            return name == "NotEq"
        raise UserMistake(
            "E029",
            f"unsupported operand type(s) for {symbol}: {_kind(left)} and {_kind(right)}",
            f"give the class a method `__{own}__`",
        )

    def unary_of_aggregate(self, name: str, symbol: str, operand: Any) -> Any:
        """`-x`, `+x` or `~x` of an aggregate."""
        method = _UNARY.get(name)
        result = NotImplemented
        if method is not None:
            result = self._special(operand, f"__{method}__", [])
        if result is NotImplemented:
            raise UserMistake(
                "E029",
                f"bad operand type for unary {symbol}: {_kind(operand)}",
                f"give the class a method `__{method}__`" if method else "compare a field of it",
            )
        return result

    def item_of_aggregate(self, value: Any, index: Any) -> Any:
        """`value[index]` of an aggregate."""
        result = self._special(value, "__getitem__", [index])
        if result is NotImplemented:
            raise UserMistake(
                "E029", f"{describe(value)} cannot be indexed", "give the class a `__getitem__`"
            )
        return result

    def operator_of_record(self, name: str, left: Any, right: Any) -> Any:
        """A binary operator that the class of a dataclass or a named tuple has as a @jit function.
        MISSING if there is none: then it is that of tuples."""
        own, reflected = _COMPARE.get(name) or (_BINARY.get(name), f"r{_BINARY.get(name)}")
        for owner, other, method in ((left, right, own), (right, left, reflected)):
            result = self.special_of_record(owner, f"__{method}__", [other])
            if result is not MISSING:
                return result
        return MISSING

    def unary_of_record(self, name: str, operand: Any) -> Any:
        """`-x`, `+x` or `~x` by a @jit function of the class; MISSING if there is none."""
        return self.special_of_record(operand, f"__{_UNARY.get(name)}__", [])

    def special_of_record(
        self, owner: Any, method: str, args: list[Any], kwargs: Optional[dict[str, Any]] = None
    ) -> Any:
        """The result of a special method which is a @jit function; MISSING if there is none."""
        cls = declaring_class(owner) if isinstance(owner, tuple) else None
        found = None if cls is None else find_member(cls, method)
        if not isinstance(found, (JITCallable, ConstexprFunction)):
            return MISSING
        self.session.reads.attribute(cls, method)
        bound = BoundFunction(found, owner)
        return self.walker.calls.call(bound, args, kwargs or {}, self.walker.node)

    def _special(self, owner: Any, method: str, args: list[Any]) -> Any:
        """The result of an operator's method, or NotImplemented if the class has none."""
        found: Optional[Any] = find_member(type(owner), method) if is_aggregate(owner) else None
        if found is None:
            return NotImplemented
        self.session.reads.attribute(type(owner), method)
        if isinstance(found, FunctionType):
            return self.call_method(MethodType(found, owner), args, {})
        return self.walker.calls.call(BoundFunction(found, owner), args, {}, self.walker.node)


def is_method(function: Any) -> bool:
    """True if it is plain Python that belongs to an aggregate's class."""
    if isinstance(function, MethodType) and is_aggregate(function.__self__):
        return True
    return hasattr(function, "__tessera_method__") or is_aggregate_class(function)


def _kind(value: Any) -> str:
    return f"'{type(value).__name__}'" if is_aggregate(value) else describe(value)
