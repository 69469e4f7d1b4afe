# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of what Python has built in: `len`, `range`, `min`, ..."""

from __future__ import annotations

import builtins
from typing import Any, Callable, Sequence

from tessera.errors import UserMistake
from tessera.frontend.constants import is_constant, settle
from tessera.frontend.part import Part
from tessera.language import debug as debug_ops, math as math_ops, program
from tessera.language.arguments import constant_str
from tessera.language.tensor import describe, known_value, tensor
from tessera.language.types import constexpr
from tessera.wording import counted


class PythonBuiltins(Part):
    """Calls of the functions that kernels may use as in Python."""

    def has(self, function: Any) -> bool:
        """True if `function` is one of them."""
        return function in _TABLE

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Its result."""
        return _TABLE[function](self, args, kwargs)

    def _len(self, args: list[Any], kwargs: dict[str, Any]) -> int:
        (value,) = exactly("len", 1, args)
        if isinstance(value, tensor):
            if not value.shape:
                raise UserMistake(
                    "E029", f"{describe(value)} has no length", "pass a tile or a tuple"
                )
            return value.shape[0]
        if isinstance(value, (tuple, str)):
            return len(value)
        raise UserMistake("E029", f"{describe(value)} has no length", "pass a tuple")

    def _range(self, args: list[Any], kwargs: dict[str, Any]) -> program.range:
        if not 1 <= len(args) <= 3:
            raise UserMistake(
                "E039", f"range takes 1 to 3 arguments, got {len(args)}", "range(start, end, step)"
            )
        # Python's takes no keywords, and Triton ignores them, `step` too; public kernels have them
        # and mean what tl.range means.
        return self.walker.calls.apply(program.range, args, kwargs)  # type: ignore[no-any-return]

    def _number(self, cls: type) -> Callable[[list[Any], dict[str, Any]], Any]:
        def convert(args: list[Any], kwargs: dict[str, Any]) -> Any:
            (value,) = exactly(cls.__name__, 1, args)
            known = known_value(value)
            if isinstance(known, tensor):
                if cls is bool:
                    return known.__ne__(0)
                target = "int32" if cls is int else "float32"
                raise UserMistake(
                    "E015",
                    f"`{cls.__name__}` is a host function and {describe(known)} is only known at "
                    "run time",
                    f"use x.to(tl.{target})",
                )
            try:
                return cls(known)
            except (TypeError, ValueError, OverflowError) as error:
                raise UserMistake(
                    "E029", f"{cls.__name__}({known!r}): {error}", "pass a number"
                ) from None

        return convert

    def _isinstance(self, args: list[Any], kwargs: dict[str, Any]) -> bool:
        value, cls = exactly("isinstance", 2, args)
        classes = cls if isinstance(cls, tuple) else (cls,)
        if not all(isinstance(one, type) for one in classes):
            raise UserMistake("E029", f"isinstance with {describe(cls)}", "name a class")
        if constexpr in classes and not isinstance(value, (tensor, tuple)):
            return True
        return isinstance(value, tuple(one for one in classes if one is not constexpr))

    def _getattr(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if len(args) not in (2, 3):
            raise UserMistake(
                "E051", f"getattr takes 2 or 3 arguments, got {len(args)}", "getattr(x, name)"
            )
        if len(args) == 3 and not self._hasattr(args[:2], {}):
            return args[2]
        return self.walker.expressions.attribute(
            args[0], constant_str(args[1], "the name", "E029"), self.walker.node
        )

    def _hasattr(self, args: list[Any], kwargs: dict[str, Any]) -> bool:
        value, name = exactly("hasattr", 2, args)
        name = constant_str(name, "the name", "E029")
        try:
            self.walker.expressions.attribute(value, name, self.walker.node)
        except UserMistake:
            return False
        return True

    def _print(self, args: list[Any], kwargs: dict[str, Any]) -> None:
        return self.walker.calls.apply(debug_ops.device_print, args, kwargs)  # type: ignore[no-any-return]

    def _extremum(self, name: str) -> Callable[[list[Any], dict[str, Any]], Any]:
        def choose(args: list[Any], kwargs: dict[str, Any]) -> Any:
            values = list(args[0]) if len(args) == 1 and isinstance(args[0], tuple) else args
            if not values:
                raise UserMistake("E051", f"{name} got no arguments", "pass two or more")
            known = [known_value(value) for value in values]
            if not any(isinstance(value, tensor) for value in known):
                self._check_order(name, known)
                try:
                    return (builtins.min if name == "min" else builtins.max)(known)
                except TypeError as error:
                    raise UserMistake("E029", f"{name}: {error}", "pass numbers") from None
            function = math_ops.minimum if name == "min" else math_ops.maximum
            result = values[0]
            for value in values[1:]:
                result = function(result, value)
            return result

        return choose

    def _check_order(self, name: str, values: Sequence[Any]) -> None:
        """Raises UserMistake for constants of which Python's `min` and `max` choose by place."""
        for value in values:
            if isinstance(value, float) and (value != value or str(value) == "-0.0"):
                raise UserMistake(
                    "E029",
                    f"{name} of the constants {', '.join(map(repr, values))}, whose result in Python "
                    "depends on their order",
                    f"use tl.{name}imum, which defines the result for a NaN",
                )

    def _abs(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        (value,) = exactly("abs", 1, args)
        known = known_value(value)
        if not isinstance(known, (tensor, bool, int, float)):
            raise UserMistake("E029", f"abs of {describe(known)}", "pass a number")
        return math_ops.abs(known) if isinstance(known, tensor) else builtins.abs(known)

    def _tuple(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        if not args:
            return ()
        (value,) = exactly("tuple", 1, args)
        return tuple(self.walker.loops.static_items(value, self.walker.node))

    def _str(self, args: list[Any], kwargs: dict[str, Any]) -> str:
        (value,) = exactly("str", 1, args)
        if not is_constant(value):
            raise UserMistake(
                "E015", f"str of {describe(value)}, known at run time only", "use tl.device_print"
            )
        return str(settle(value))

    def _type(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        (value,) = exactly("type", 1, args)
        return tensor if isinstance(value, tensor) else type(value)


def exactly(name: str, count: int, args: list[Any]) -> list[Any]:
    if len(args) != count:
        raise UserMistake(
            "E051",
            f"`{name}` takes {counted(count, 'argument')}, got {len(args)}",
            f"pass {count}",
        )
    return args


def _bound(name: str) -> Callable[..., Any]:
    return lambda builtins, args, kwargs: getattr(builtins, name)(args, kwargs)


def _made(maker: str, argument: Any) -> Callable[..., Any]:
    return lambda builtins, args, kwargs: getattr(builtins, maker)(argument)(args, kwargs)


class _IdentityTable:
    """A table keyed by objects that may not be hashable."""

    def __init__(self, entries: Sequence[tuple[Any, Callable[..., Any]]]) -> None:
        self.entries = {id(key): value for key, value in entries}

    def __contains__(self, key: Any) -> bool:
        return id(key) in self.entries

    def __getitem__(self, key: Any) -> Callable[..., Any]:
        return self.entries[id(key)]


_TABLE = _IdentityTable(
    [
        (len, _bound("_len")),
        (range, _bound("_range")),
        (int, _made("_number", int)),
        (float, _made("_number", float)),
        (bool, _made("_number", bool)),
        (isinstance, _bound("_isinstance")),
        (getattr, _bound("_getattr")),
        (hasattr, _bound("_hasattr")),
        (print, _bound("_print")),
        (min, _made("_extremum", "min")),
        (max, _made("_extremum", "max")),
        (abs, _bound("_abs")),
        (tuple, _bound("_tuple")),
        (list, _bound("_tuple")),
        (str, _bound("_str")),
        (type, _bound("_type")),
    ]
)
