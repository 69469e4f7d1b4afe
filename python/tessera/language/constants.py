# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants: `constexpr` around a value, and the types of constants and of tuples."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

from tessera.settings import note_change

__all__ = ["CONSTEXPR_0", "constexpr", "constexpr_type", "tuple_type"]


class constexpr:
    """A compile-time constant.

    As an annotation (`BLOCK: tl.constexpr`) it makes a parameter, or a variable, a constant.
    Around a value (`N = tl.constexpr(8)`) it lets kernels use a module's global. Inside a
    kernel, constants are the plain Python values, whose `.value` is themselves.

    Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        SCALE = tl.constexpr(3)

        @tessera.jit
        def scale(x_ptr, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)  # bounds have to be constants
            tl.store(x_ptr + i, SCALE * tl.load(x_ptr + i))

        x = np.ones(8, np.float32)
        scale[(1,)](x, BLOCK=8)
        assert (x == 3).all()
    """

    def __init__(self, value: Any) -> None:
        while isinstance(value, constexpr):
            value = value.value
        self.__dict__["value"] = value

    value: Any

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, unwrap(value))
        note_change()  # kernels may have been compiled with what was there

    @property
    def type(self) -> "constexpr_type":
        """The type of the constant, which its value is a part of."""
        return constexpr_type(self.value)

    def __repr__(self) -> str:
        return f"constexpr[{self.value!r}]"

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return int(self.value.__index__())

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return str(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Any:
        return iter(self.value)

    def __getitem__(self, index: Any) -> Any:
        return self.value[unwrap(index)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value(*args, **kwargs)

    def __neg__(self) -> "constexpr":
        return constexpr(-self.value)

    def __pos__(self) -> "constexpr":
        return constexpr(+self.value)

    def __invert__(self) -> "constexpr":
        return constexpr(~self.value)

    def __eq__(self, other: object) -> Any:
        return constexpr(self.value == unwrap(other))

    def __ne__(self, other: object) -> Any:
        return constexpr(self.value != unwrap(other))


def _of_tuple(type: "constexpr_type") -> tuple_type:
    """The type of a constant tuple, which is that of a tuple of constants."""
    return tuple_type(list(map(constexpr_type, type.value)))


class constexpr_type:
    """The type of a compile-time constant.

    Example:
        import tessera.language as tl

        assert tl.constexpr(8).type == tl.constexpr_type(8)
        assert tl.constexpr_type(8) != tl.constexpr_type(16)  # the value is part of the type
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if isinstance(self.value, tuple):
            return _of_tuple(self) == other
        return isinstance(other, constexpr_type) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"constexpr_type[{self.value!r}]"


CONSTEXPR_0 = constexpr(0)


def unwrap(value: Any) -> Any:
    """The value inside a `constexpr`, or `value` itself."""
    return value.value if isinstance(value, constexpr) else value


def _add_constexpr_operators() -> None:
    import operator

    def forward(function: Callable[[Any, Any], Any]) -> Callable[[constexpr, Any], constexpr]:
        return lambda self, other: constexpr(function(self.value, unwrap(other)))

    def reflected(function: Callable[[Any, Any], Any]) -> Callable[[constexpr, Any], constexpr]:
        return lambda self, other: constexpr(function(unwrap(other), self.value))

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
        setattr(constexpr, f"__{name}__", forward(getattr(operator, name)))
        setattr(constexpr, f"__r{name}__", reflected(getattr(operator, name)))
    for name in ("lshift", "rshift", "and_", "or_", "xor"):
        dunder = name.rstrip("_")
        setattr(constexpr, f"__{dunder}__", forward(getattr(operator, name)))
        setattr(constexpr, f"__r{dunder}__", reflected(getattr(operator, name)))
    for name in ("lt", "le", "gt", "ge"):
        setattr(constexpr, f"__{name}__", forward(getattr(operator, name)))


_add_constexpr_operators()


class tuple_type:
    """The type of a tuple: the types of its items.

    Example:
        import tessera.language as tl

        pair = tl.tuple_type([tl.int32, tl.pointer_type(tl.float16)])
        assert str(pair) == "(int32, pointer<fp16>)"
        assert pair.types[0] == tl.int32
    """

    def __init__(self, types: Sequence[Any], fields: Optional[Sequence[str]] = None) -> None:
        self.types = tuple(types)
        self.fields = fields
        self.name = f"({', '.join(str(item) for item in self.types)})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, constexpr_type) and isinstance(other.value, tuple):
            other = _of_tuple(other)
        return isinstance(other, tuple_type) and self.types == other.types

    def __hash__(self) -> int:
        return hash(self.types)

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__
