# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of operators that are not computed yet, inside of a function of `@tessera.fuse` (fusion.py).

An elementwise operator that is called there returns a Pending: the operator and its arguments. Other
elementwise operators take it as one. Whatever else gets it, computes it.

The arrays that the function is called with are Pending, too, though they have values. So an access by
other code is always seen. It may write to memory. Hence all values that are pending are computed before
it, from arrays as they are.
"""

from __future__ import annotations

import operator
import threading
import weakref
from contextlib import contextmanager
from typing import Any, Callable, Iterator, NamedTuple, Optional, Sequence

from tessera import _C


class Node:
    """A call of an elementwise operator."""

    __slots__ = ("op", "args", "size", "arrays", "values")

    def __init__(self, op: Any, args: Sequence[Any], size: int, arrays: dict[int, Any]) -> None:
        self.op = op
        self.args = args
        """Parts, arrays and numbers."""
        self.size = size
        """The calls that it takes to compute it."""
        self.arrays = arrays
        """The arrays that it is computed from, by identity: fewer, once some of its arguments are."""
        self.values: list[Any] = [None] * len(op.scalar.results)
        """The results, once they are computed."""


class Part(NamedTuple):
    """A result of a call. It does not keep a Pending alive, whose value would then be stored."""

    node: Node
    place: int

    @property
    def value(self) -> Any:
        return self.node.values[self.place]


class Pending:
    """A result of an elementwise operator, or an array that the function got."""

    __slots__ = ("graph", "content", "shape", "dtype", "device", "__weakref__")

    def __init__(self, graph: Any, shape: Any, dtype: Any, device: Any, content: Any) -> None:
        self.graph = graph
        self.content = content
        """A Part or an array."""
        self.shape = shape
        self.dtype = dtype
        self.device = device

    @property
    def is_computed(self) -> bool:
        return type(self.content) is not Part or self.content.value is not None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and not name.startswith(("__array", "__cuda_array", "__dlpack")):
            raise AttributeError(name)
        found = getattr(self.graph.open(self), name)
        if not callable(found) or name.startswith("__"):
            return found

        def call(*args: Any, **named: Any) -> Any:
            return self.graph.wrap(found(*opened(args), **opened(named)))

        return call

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Optional[dict[str, Any]] = None
    ) -> Any:
        return _wrapped(func(*opened(args), **opened(kwargs or {})))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.graph.open(self).__array__(*args, **kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return _wrapped(getattr(ufunc, method)(*opened(args), **opened(kwargs)))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _wrapped(func(*opened(args), **opened(kwargs)))

    def __setitem__(self, place: Any, value: Any) -> None:
        self.graph.open(self)[opened(place)] = opened(value)

    def __bool__(self) -> bool:
        return bool(self.graph.open(self))

    def __repr__(self) -> str:
        return repr(self.graph.open(self))

    __hash__ = object.__hash__


def _forwarded(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)

    def call(*args: Any) -> Any:
        return _wrapped(function(*opened(args)))

    return call


def _reversed(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)

    def call(self: Any, other: Any) -> Any:
        return _wrapped(function(opened(other), opened(self)))

    return call


for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
    setattr(Pending, f"__{_name}__", _forwarded(f"__{_name}__"))
    setattr(Pending, f"__r{_name}__", _reversed(f"__{_name}__"))
    setattr(Pending, f"__i{_name}__", _forwarded(f"__i{_name}__"))
for _name in "lt le eq ne gt ge neg pos abs invert getitem contains index".split():
    setattr(Pending, f"__{_name}__", _forwarded(f"__{_name}__"))
for _function in (float, int, complex, len, iter):
    setattr(
        Pending,
        f"__{_function.__name__}__",
        lambda self, _function=_function: _function(self.graph.open(self)),
    )


def _wrapped(value: Any) -> Any:
    """An array that other code made inside of the function: what is written to it is seen, too."""
    graph = current()
    return value if graph is None else graph.wrap(value)


def contents(value: Any) -> Any:
    """The arrays of values that are computed, alone or in a tuple."""
    if isinstance(value, (tuple, list)):
        return tuple(map(contents, value))
    if type(value) is not Pending:
        return value
    content = value.content
    return content.value if type(content) is Part else content


def opened(value: Any) -> Any:
    """The value with arrays for all that is pending in it, at any depth."""
    if type(value) is Pending:
        return value.graph.open(value)
    if type(value) in (tuple, list):
        return type(value)(opened(each) for each in value)
    if type(value) is dict:
        return {name: opened(each) for name, each in value.items()}
    return value


def has_pending(args: Sequence[Any], named: dict[str, Any] = {}) -> bool:
    """True if an argument is a value that a fused function has left behind, as in a list of the
    caller's. Outside of the function, operators take its array."""
    return any(type(each) is Pending for each in (*args, *named.values()))


class _Current(threading.local):
    graph: Any = None


_current = _Current()


def current() -> Any:
    """The calls that are pending on this thread, inside of a fused function; otherwise None."""
    return _current.graph


@contextmanager
def entered(graph: Any) -> Iterator[None]:
    """A block whose elementwise calls are pending in the graph; None for one in which none are."""
    was, _current.graph = _current.graph, graph
    did = _C.set_recording(graph is not None)
    try:
        yield
    finally:
        _current.graph = was
        _C.set_recording(did)


def call_opened(op: Any, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """A call of an operator that takes no pending values, as it is outside of fused functions."""
    args, named = opened(tuple(args)), opened(named)
    with entered(None):
        found = op(*args, **named)
    return tuple(map(_wrapped, found)) if isinstance(found, tuple) else _wrapped(found)


def alive(references: "weakref.WeakSet[Pending]") -> list[Pending]:
    """Those without a value."""
    return [each for each in references if not each.is_computed]
