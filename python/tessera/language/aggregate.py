# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Aggregates: your own classes, with values of kernels as fields. `aggregate` has an example.

In the IR an aggregate is the tensors in it, as a tuple is. Loops carry it, branches join it,
functions take and return it. Its class is an ordinary Python class: methods that are not @jit
functions run while the kernel is compiled.

An instance is complete when it is made and never changes afterwards. `aggregate_replace` makes a
copy with other fields.
"""

from __future__ import annotations

import inspect
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, TypeVar

from tessera.errors import UserMistake
from tessera.language.callables import ConstexprFunction, JITCallable
from tessera.language.tensor import active, describe, known_value, tensor
from tessera.language.types import constexpr, dtype, unwrap

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**options: Any) -> Any:
        """Declares to type checkers the constructor that a class gets."""
        return lambda fn: fn


__all__ = ["aggregate", "aggregate_replace"]

C = TypeVar("C", bound=type)
A = TypeVar("A")

FIELDS = "__tessera_aggregate__"
"""The class's attribute with its fields and their annotations."""
_OPEN = "__tessera_open__"
"""The attribute of an instance while its constructor runs."""


@dataclass_transform(eq_default=False, frozen_default=True)
def aggregate(cls: C) -> C:
    """Makes a class whose instances kernels can make, carry and pass on.

    Its annotations name the fields and what they hold: `tl.tensor`, `tl.constexpr`,
    `tl.tuple`, another aggregate, any class. Fields of parents, which are aggregates, come
    first. A class without `__init__` gets one that takes the fields in order; a value
    assigned in the class is a field's default. `__post_init__` runs when all are there.

    Methods are @jit functions, `constexpr_function`s, or plain Python ones that run while the
    kernel is compiled and get its constants as `tl.constexpr`. Operators and subscripts call
    `__add__`, `__radd__`, `__getitem__`, and so on, before those of tensors and numbers.

    Raises TypeError for a class with parents of another kind. Source: Triton language 3.9.

    Example:
        import tessera
        import tessera.language as tl

        @tessera.aggregate
        class Complex:
            re: tl.tensor
            im: tl.tensor

            @tessera.jit
            def __mul__(self, other):
                re = self.re * other.re - self.im * other.im
                return Complex(re, self.re * other.im + self.im * other.re)

        @tessera.jit
        def kernel():
            i = Complex(tl.zeros((4,), tl.float32), tl.full((4,), 1.0, tl.float32))
            square = i * i
            assert (square.re == -1) & (square.im == 0)

        kernel[(1,)](debug=True)
    """
    if not isinstance(cls, type):
        raise TypeError(f"aggregate takes a class, got {cls!r}")
    for base in cls.__mro__[1:-1]:
        if FIELDS not in vars(base):
            raise TypeError(
                f"Aggregates can only inherit from other aggregates, `{cls.__name__}` does from "
                f"`{base.__name__}`"
            )
    names = sys._getframe(1).f_locals
    setattr(cls, FIELDS, _read_fields(cls, names))
    for member in vars(cls).values():
        function = getattr(member, "__func__", member)  # of a staticmethod
        if isinstance(function, FunctionType):
            function.__tessera_method__ = True  # type: ignore[attr-defined]
    own = vars(cls).get("__init__")
    if isinstance(own, JITCallable):
        raise TypeError(
            f"the constructor of `{cls.__name__}` is a @jit function: write a plain one, or "
            "leave it out"
        )
    if own is None and (
        getattr(cls, "__init__") is object.__init__ or inspect.get_annotations(cls)
    ):
        own = _take_fields
    if own is not None:
        cls.__init__ = _constructor(own)  # type: ignore[misc]
    cls.__setattr__ = _set_field  # type: ignore[assignment,method-assign]
    cls.__delattr__ = _delete_field  # type: ignore[assignment,method-assign]
    return cls


def aggregate_replace(obj: A, **changes: Any) -> A:
    """A copy of an aggregate with some of its fields changed: `aggregate_replace(state, x=x)`.

    Raises TypeError (in a kernel: E016) for what is no aggregate, or a field that it has not.
    Source: Triton language 3.9.

    Example:
        @tessera.aggregate
        class State:
            total: tl.tensor
            count: tl.tensor

        old = State(tl.full((8,), 1.5, tl.float32), 0)
        new = tl.aggregate_replace(old, count=old.count + 8)
        assert old.count == 0 and new.count == 8
        assert new.total == 1.5
    """
    fields = fields_of(obj)
    if fields is None:
        raise TypeError(f"aggregate_replace expects an aggregate instance, got {describe(obj)}")
    result: Any = object.__new__(type(obj))
    values = {name: getattr(obj, name) for name in fields}
    for name, value in changes.items():
        if name not in fields:
            raise TypeError(f"`{type(obj).__name__}` has no field '{name}'")
        values[name] = _checked(type(obj), name, value)
    vars(result).update(values)
    return result  # type: ignore[no-any-return]


aggregate_replace.__tessera_method__ = True  # type: ignore[attr-defined]


# --- Queries of the front-end -----------------------------------------------------------


def is_aggregate_class(cls: Any) -> bool:
    """True if `cls` was made by `aggregate`, or inherits from such a class."""
    return isinstance(cls, type) and hasattr(cls, FIELDS)


def fields_of(value: Any) -> Optional[Mapping[str, Any]]:
    """The fields of an instance with their annotations; None for anything else."""
    return getattr(type(value), FIELDS, None)


def field_values(value: Any) -> tuple[Any, ...]:
    """The values of an instance's fields, in order; constants are `tl.constexpr`s."""
    members = vars(value)
    return tuple(members[name] for name in getattr(type(value), FIELDS))


def of_values(cls: type, values: Sequence[Any]) -> Any:
    """The instance with these fields, for which no constructor runs."""
    result: Any = object.__new__(cls)
    fields = getattr(cls, FIELDS)
    for (name, annotation), value in zip(fields.items(), values):
        vars(result)[name] = _as_constant(value) if annotation is constexpr else value
    return result


def find_member(cls: type, name: str) -> Any:
    """The class's attribute of a name, unbound; None if there is none."""
    for base in cls.__mro__[:-1]:
        if name in vars(base):
            return vars(base)[name]
    return None


# --- Fields ------------------------------------------------------------------------------


def _read_fields(cls: type, names: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:-1]):
        fields.update(getattr(base, FIELDS))
    namespace = getattr(sys.modules.get(cls.__module__), "__dict__", {})
    for name, annotation in inspect.get_annotations(cls).items():
        if isinstance(annotation, str):
            annotation = _evaluated(annotation, namespace, names)
        fields[name] = annotation
    return fields


def _evaluated(text: str, namespace: Mapping[str, Any], names: Mapping[str, Any]) -> Any:
    """The meaning of an annotation's text; `Any` if that is unknown."""
    try:
        found = eval(text, dict(namespace), dict(names))
    except Exception:
        return Any
    return _evaluated(found, namespace, names) if isinstance(found, str) else found


def _constructor(own: Callable[..., None]) -> Callable[..., None]:
    """`own`, with a look at the fields when the outermost constructor is done."""
    function = own.fn if isinstance(own, ConstexprFunction) else own

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(own, ConstexprFunction):
            args = tuple(map(unwrap, args))
            kwargs = {name: unwrap(value) for name, value in kwargs.items()}
        if _OPEN in vars(self):  # a child's has called it
            function(self, *args, **kwargs)
            return
        vars(self)[_OPEN] = True
        try:
            function(self, *args, **kwargs)
            cls = type(self)
            for name in getattr(cls, FIELDS):
                if name in vars(self):
                    continue
                if not hasattr(cls, name):
                    raise AttributeError(
                        f"the constructor of `{cls.__name__}` leaves out the field '{name}'"
                    )
                setattr(self, name, getattr(cls, name))
            if hasattr(self, "__post_init__"):
                self.__post_init__()
        finally:
            del vars(self)[_OPEN]

    if own is not _take_fields:
        __init__.__wrapped__ = function  # type: ignore[attr-defined]
    return __init__


def _take_fields(self: Any, *args: Any, **kwargs: Any) -> None:
    """The constructor of a class that has none: its fields in order, or by name."""
    cls = type(self)
    names = list(getattr(cls, FIELDS))
    if len(args) > len(names):
        raise TypeError(f"`{cls.__name__}` has {len(names)} fields, got {len(args)} values")
    values = dict(zip(names, args))
    for name, value in kwargs.items():
        if name in values:
            raise TypeError(f"`{cls.__name__}` got two values for the field '{name}'")
        if name not in names:
            raise TypeError(f"`{cls.__name__}` has no field '{name}'")
        values[name] = value
    missing = [name for name in names if name not in values and not hasattr(cls, name)]
    if missing:
        raise TypeError(f"`{cls.__name__}` is made without {', '.join(map(repr, missing))}")
    for name, value in values.items():
        setattr(self, name, value)


def _set_field(self: Any, name: str, value: Any) -> None:
    cls = type(self)
    if name not in getattr(cls, FIELDS):
        raise AttributeError(f"`{cls.__name__}` has no field '{name}'")
    if _OPEN not in vars(self):
        raise AttributeError(
            f"cannot assign to field '{name}' on immutable aggregate `{cls.__name__}`: "
            f"aggregate_replace(x, {name}=...) makes a changed copy"
        )
    vars(self)[name] = _checked(cls, name, value)


def _delete_field(self: Any, name: str) -> None:
    raise AttributeError(
        f"cannot delete field '{name}' of immutable aggregate `{type(self).__name__}`"
    )


def _checked(cls: type, name: str, value: Any) -> Any:
    """A field's value as the field holds it. Raises TypeError if it is of another kind."""
    annotation = getattr(cls, FIELDS)[name]
    if annotation is constexpr:
        known = known_value(value)
        if not isinstance(known, tensor):
            return _as_constant(known)
    elif annotation is tensor:
        value = unwrap(value)
        if active.session is None or isinstance(value, tensor):
            return value  # outside of kernels that is an array
        if isinstance(value, (bool, int, float)):
            return tensor._known(value)
    elif annotation is tuple:
        value = unwrap(value)
        if isinstance(value, (tuple, list)):
            return value if active.session is not None else _constants_in(value)
    elif not isinstance(annotation, type) or issubclass(annotation, dtype):
        return unwrap(value)
    elif active.session is None and annotation.__name__ == "tensor_descriptor":
        return value
    elif isinstance(value, annotation):
        return value
    elif isinstance(unwrap(value), annotation):
        return unwrap(value)
    wanted = getattr(annotation, "__name__", str(annotation))
    raise TypeError(
        f"the field '{name}' of `{cls.__name__}` holds a {wanted}, got {describe(unwrap(value))}"
    )


def _as_constant(value: Any) -> constexpr:
    return value if isinstance(value, constexpr) else constexpr(value)


def _constants_in(value: Any) -> Any:
    """A tuple with its numbers as `tl.constexpr`s."""
    if isinstance(value, (tuple, list)):
        items = [_constants_in(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return constexpr(value) if isinstance(value, (bool, int, float, str)) else value


def call_python(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls a plain Python method from a kernel. Raises UserMistake (E016) for what it raises."""
    name = getattr(function, "__name__", str(function))
    try:
        return function(
            *map(_for_python, args), **{key: _for_python(value) for key, value in kwargs.items()}
        )
    except UserMistake:
        raise
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        raise UserMistake(
            "E016", f"`{name}` raised {type(error).__name__}: {error}", "correct its arguments"
        ) from error
    except AssertionError as error:
        raise UserMistake("E067", f"an assertion of `{name}` fails: {error}", "") from error


def _for_python(value: Any) -> Any:
    """A kernel's value as Python code of the user's gets it: numbers are `tl.constexpr`s."""
    if isinstance(value, (bool, int, float, str)):
        return constexpr(value)
    return value
