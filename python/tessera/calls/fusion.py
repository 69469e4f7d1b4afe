# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""@fuse: a function in which chains of elementwise operators are one kernel.

The function runs as it is at each call. Its elementwise calls make a graph of pending values
(pending.py). To compute values, the scalar functions of their graph are joined to one scalar function,
which is an operator of `tessera.pointwise`: with broadcasting, any strides, and a derivative. Operators
are kept by the form of their graph.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any, Callable, NamedTuple, Optional, Sequence

from tessera.calls import pending, pointwise
from tessera.calls.elements import MAX_ARRAYS, MAX_CALLS, MAX_RESULTS, make_text_function
from tessera.calls.iteration import broadcast
from tessera.calls.libraries import LIBRARIES
from tessera.calls.outputs import library_of
from tessera.calls.pending import Node, Part, Pending
from tessera.calls.plans import NUMBERS
from tessera.calls.pointwise import Pointwise
from tessera.errors import ArgumentError, CompilationError
from tessera.language import types
from tessera.runtime.arrays import find_dtype
from tessera.runtime.jit import jit
from tessera.wording import shown, with_article

MAX_KERNELS = 256
"""Forms of graphs whose operators are kept."""

_FLOATS = (types.float16, types.bfloat16, types.float32, types.float64)

_operators: dict[Any, Pointwise] = {}
"""By the form of a graph."""


class _Leaf(NamedTuple):
    """An array that an operator of the graph reads."""

    array: Any
    version: int
    """Of a tensor of torch when it was taken; -1 for other arrays."""


class Graph:
    """The pending calls of one call of a fused function."""

    def __init__(self, name: str, library: str) -> None:
        self._name, self._library = name, library
        self._values: "weakref.WeakSet[Pending]" = weakref.WeakSet()
        self._leaves: dict[int, _Leaf] = {}
        self._has_gradients = self._are_gradients_on()

    def wrap(self, value: Any) -> Any:
        """The value; an array as a Pending, so that its uses are seen."""
        if not self._is_plain(value):
            return value
        return Pending(self, value.shape, value.dtype, getattr(value, "device", None), value)

    def _is_plain(self, value: Any) -> bool:
        if library_of(value) != self._library:
            return False
        if self._library == "torch":
            return bool(pointwise.in_torch.is_plain((value,)))
        return type(value).__name__ == "ndarray"

    def _are_gradients_on(self) -> bool:
        return self._library == "torch" and bool(pointwise.in_torch.torch.is_grad_enabled())

    def call(self, op: Pointwise, args: Sequence[Any], out: Any) -> Any:
        """A call of an elementwise operator inside of the function."""
        if self._has_gradients != self._are_gradients_on():
            self.flush()  # as they were asked for
            self._has_gradients = not self._has_gradients
        shape = self._shape_of(op, args)
        if shape is None:
            return pending.call_opened(op, args, {} if out is None else {"out": out})
        if out is not None and self._may_write(args, out):
            node = self._node(op, args)
            self._compute([Part(node, at) for at in range(len(node.values))], pending.contents(out))
            return out
        if out is not None:
            return pending.call_opened(op, args, {"out": out})
        node = self._node(op, args)
        like = next(each for each in args if type(each) not in NUMBERS)
        dtype, device = like.dtype, getattr(like, "device", None)
        made = [
            Pending(self, shape, dtype, device, Part(node, at)) for at in range(len(node.values))
        ]
        self._values.update(made)
        return made[0] if len(made) == 1 else tuple(made)

    def _may_write(self, args: Sequence[Any], out: Any) -> bool:
        """True if nothing that is pending reads the arrays that results are written to."""
        read: dict[int, Any] = {}
        for each in (*args, *pending.alive(self._values)):
            _collect(_content(each), read)
        outs = pending.contents(out)
        return all(
            library_of(one) == self._library and not self._share(one, other)
            for one in (outs if isinstance(outs, (tuple, list)) else (outs,))
            for other in read.values()
        )

    def _share(self, one: Any, other: Any) -> bool:
        if self._library == "torch":
            return bool(one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr())
        return bool(sys.modules["numpy"].may_share_memory(one, other))

    def _shape_of(self, op: Pointwise, args: Sequence[Any]) -> Optional[tuple[int, ...]]:
        """The shape of the results; None for a call that is done at once."""
        if not op.can_join:
            return None
        arrays = [each for each in args if type(each) not in NUMBERS]
        if not arrays or not all(type(each) is Pending or self._is_plain(each) for each in arrays):
            return None
        first = arrays[0]
        shape, dtype, device = first.shape, first.dtype, getattr(first, "device", None)
        if find_dtype(dtype) not in _FLOATS:
            return None
        is_same = True
        for each in arrays[1:]:
            if each.dtype != dtype or getattr(each, "device", None) != device:
                return None
            is_same = is_same and each.shape == shape
        if op.derivative is not None and any(map(self._requires_gradient, arrays)):
            return None  # which is not that of the text
        if is_same:
            return tuple(shape)
        shape, wrong = broadcast([tuple(each.shape) for each in arrays])
        return shape if wrong is None else None

    def _requires_gradient(self, each: Any) -> bool:
        if not self._has_gradients:
            return False
        arrays: dict[int, Any] = {}
        _collect(_content(each), arrays)
        return any(getattr(array, "requires_grad", False) for array in arrays.values())

    def _node(self, op: Pointwise, args: Sequence[Any]) -> Node:
        contents, arrays, size = self._inputs(args)
        if size > MAX_CALLS or len(arrays) > MAX_ARRAYS:
            self._flush([each for each in args if type(each) is Pending and not each.is_computed])
            contents, arrays, size = self._inputs(args)
        for each in contents:
            if (
                type(each) not in NUMBERS
                and type(each) is not Part
                and id(each) not in self._leaves
            ):
                self._leaves[id(each)] = _Leaf(each, getattr(each, "_version", -1))
        return Node(op, contents, size, arrays)

    def _inputs(self, args: Sequence[Any]) -> tuple[tuple[Any, ...], dict[int, Any], int]:
        """The contents of arguments, the arrays that they are computed from, and the calls it takes."""
        contents = tuple(map(_content, args))
        arrays: dict[int, Any] = {}
        size = 1
        for each in contents:
            if type(each) is Part:
                size += each.node.size
            _collect(each, arrays)
        return contents, arrays, size

    def open(self, value: Pending) -> Any:
        """The array of a value, for code that may do anything with it."""
        self.flush()
        if not value.is_computed:  # it is not among those that are alive: it is being released
            self._flush([value])
        return pending.contents(value)

    def flush(self) -> None:
        """Computes all values that something refers to."""
        self._flush(pending.alive(self._values))
        self._leaves.clear()

    def _flush(self, values: Sequence[Pending]) -> None:
        by_shape: dict[tuple[int, ...], list[Pending]] = {}
        for each in values:
            by_shape.setdefault(tuple(each.shape), []).append(each)
        for several in by_shape.values():
            for at in range(0, len(several), MAX_RESULTS):
                parts = dict.fromkeys(each.content for each in several[at : at + MAX_RESULTS])
                arrays: dict[int, Any] = {}
                for part in parts:
                    _collect(part, arrays)
                if len(arrays) <= MAX_ARRAYS:
                    self._compute(list(parts), None)
                    continue
                for part in parts:
                    self._compute([part], None)

    def _compute(self, values: Sequence[Part], out: Any) -> None:
        """Computes values of one shape by one kernel."""
        form = _Form(self._name)
        wanted = [form.add(each) for each in values]
        for array in form.arrays:
            leaf = self._leaves.get(id(array))
            if leaf is not None and leaf.version >= 0 and array._version != leaf.version:
                raise ArgumentError(
                    "E097",
                    f"in `{self._name}` an array of shape {tuple(array.shape)} was written by another "
                    "name, after an operator took it and before its result was computed",
                    "write to it by the name that the function got it by, or outside of the function",
                )
        operator = form.operator(wanted)
        with pending.entered(None), self._gradients():
            found = operator(*form.arrays, *form.numbers, **({} if out is None else {"out": out}))
        for each, value in zip(values, found if isinstance(found, tuple) else (found,)):
            each.node.values[each.place] = value

    def _gradients(self) -> Any:
        if self._library != "torch":
            return pending.entered(None)
        return pointwise.in_torch.torch.set_grad_enabled(self._has_gradients)


def _content(value: Any) -> Any:
    """A part, an array or a number."""
    if type(value) is Pending:
        value = value.content
    return value.value if type(value) is Part and value.value is not None else value


def _collect(content: Any, arrays: dict[int, Any]) -> None:
    """Adds the arrays that a value is computed from."""
    if type(content) is Part:
        arrays.update(content.node.arrays)
    elif type(content) not in NUMBERS:
        arrays[id(content)] = content


class _Form:
    """The calls that some values take, their arrays and their numbers."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.arrays: list[Any] = []
        self.numbers: list[Any] = []
        self._known: dict[int, int] = {}
        """The places of arrays, by identity."""
        self._calls: list[tuple[Any, ...]] = []
        """The function and the arguments of each call."""
        self._counts: list[int] = []
        """The results of each call."""
        self._nodes: dict[int, int] = {}
        """The places of calls, by the identity of their nodes."""

    def add(self, value: Any) -> Any:
        """A value: the call and the place of its result, the place of an array, or a negative number
        for the place of a number."""
        content = _content(value)
        kind = type(content)
        if kind is Part:
            return self._add_node(content.node), content.place
        if kind in NUMBERS:
            self.numbers.append(content)
            return -len(self.numbers)
        found = self._known.get(id(content))
        if found is None:
            found = self._known[id(content)] = len(self.arrays)
            self.arrays.append(content)
        return found

    def _add_node(self, node: Node) -> int:
        found = self._nodes.get(id(node))
        if found is None:
            call = (node.op.function, *map(self.add, node.args))
            found = self._nodes[id(node)] = len(self._calls)
            self._calls.append(call)
            self._counts.append(len(node.values))
        return found

    def operator(self, wanted: Sequence[Any]) -> Pointwise:
        """The operator that computes these values."""
        kinds = tuple(map(type, self.numbers))
        key = (self._name, tuple(self._calls), tuple(wanted), len(self.arrays), kinds)
        found = _operators.get(key)
        if found is None:
            found = self._make(wanted)
            if len(_operators) >= MAX_KERNELS:
                _operators.clear()
            _operators[key] = found
        return found

    def _make(self, wanted: Sequence[Any]) -> Pointwise:
        parameters = [f"x{at}_" for at in range(len(self.arrays))]
        parameters += [f"n{at}_" for at in range(len(self.numbers))]

        def name_of(value: Any) -> str:
            if isinstance(value, tuple):
                return f"t{value[0]}_{value[1]}_"
            return f"x{value}_" if value >= 0 else f"n{-value - 1}_"

        lines = []
        for at, (function, *args) in enumerate(self._calls):
            results = ", ".join(f"t{at}_{each}_" for each in range(self._counts[at]))
            lines.append(f"{results} = f{at}_({', '.join(map(name_of, args))})")
        lines.append(f"return {', '.join(map(name_of, wanted))}")
        name = f"{self._name}_fused"
        text = f"def {name}({', '.join(parameters)}):\n    " + "\n    ".join(lines) + "\n"
        scope = {f"f{at}_": function for at, (function, *_) in enumerate(self._calls)}
        return Pointwise(jit(make_text_function(name, text, __name__, scope)), "same")


class Fused:
    """The result of `@tessera.fuse`. It is called like the function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *args: Any, **named: Any) -> Any:
        if pointwise.is_tracing() or pending.current() is not None:
            return self.function(*args, **named)  # the graph is that of the outer function
        if pending.has_pending(args, named):
            args, named = pending.opened(args), pending.opened(named)
        libraries = {library_of(each) for each in (*args, *named.values())} - {""}
        if libraries != {"numpy"} and libraries != {"torch"}:
            return self.function(*args, **named)
        library = libraries.pop()
        if library == "torch":
            pointwise.learn_torch()
        graph = Graph(self.function.__name__, library)
        with pending.entered(graph):
            found = self.function(
                *[graph.wrap(each) for each in args],
                **{name: graph.wrap(each) for name, each in named.items()},
            )
            graph.flush()
            return pending.opened(found)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> str:
        return self.function.__qualname__  # by name, as functions are

    def __repr__(self) -> str:
        return f"<fused {self.function!r}>"


def fuse(function: Callable[..., Any]) -> Fused:
    """Makes one kernel of each chain of elementwise operators that a function calls.

    The function takes and returns arrays of NumPy or torch. Calls of operators of `tessera.pointwise`,
    and of those of `tessera.ops` that are such, are not done at once there, if their arrays are floats
    of one type. Their results stand for arrays: their shape and type are known. Any other use computes
    them: an operation of the array library, a launch, a method. So do the end of the function and
    `out=`. A value that nothing refers to any more is not stored.

    Results within a chain are not rounded: 16-bit floats stay float32 up to the chain's end. With torch
    a chain has the derivative of its operators. An array that is written by another name than the
    function got it by is an error (E097) with torch; NumPy does not tell.

    Raises CompilationError (E089) for what is no function.

    Example:
        import numpy as np
        import tessera
        from tessera import ops

        @tessera.fuse
        def gated(x, y, bias):
            return ops.silu(ops.addcmul(bias, x, y))

        x = np.ones((3, 4), np.float32)
        assert gated(x, x, x[0]).shape == (3, 4)
    """
    if not callable(function) or isinstance(function, type):
        raise CompilationError.at_caller(
            "E089",
            f"@tessera.fuse is put on {with_article(type(function).__name__)}: {shown(function)}",
            "put it on a function of arrays",
        )
    return Fused(function)
