# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls: of the language's operations, of @jit functions, of what Python has built in."""

from __future__ import annotations

import ast
import builtins
import dataclasses
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Callable, Sequence

import tessera.language as tl
from tessera.errors import UserMistake
from tessera.frontend.aggregates import BoundFunction, is_aggregate, is_method
from tessera.frontend.constants import (
    build_of,
    is_constant,
    leaves,
    parts_of,
    plain,
    settle,
    with_leaves,
)
from tessera.frontend.host_functions import argument_of, home_of, is_description
from tessera.frontend.part import Part
from tessera.frontend.scope import MISSING
from tessera.frontend.python_builtins import exactly
from tessera.frontend.session import NoinlineFunction
from tessera.language import program
from tessera.language.aggregate import call_python
from tessera.language.callables import ConstexprFunction, JITCallable, Param
from tessera.language.records import record_class, record_items
from tessera.language.tensor import describe, emit, is_builtin, lower, tensor
from tessera.language.types import constexpr, constexpr_type, dtype, tuple_type, unwrap
from tessera.wording import closest, counted

# Inlined calls may nest this deep (see recursion.py).
MAX_CALL_DEPTH = 200

_HOST_MODULES = ("numpy", "torch", "math", "jax", "cupy", "random", "time", "os", "sys")


class Calls(Part):
    """Visits calls."""

    def visit_Call(self, node: ast.Call) -> Any:
        function = self.walker.visit(node.func)
        if node is self.walker.discarded:
            self._check_result_is_used(function, node)
        args = list(self.walker.expressions.elements(node.args))
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise UserMistake(
                    "E014",
                    "`**` in a call is not supported inside a kernel",
                    "name each argument",
                    node=keyword.value,
                )
            kwargs[keyword.arg] = self.walker.visit(keyword.value)
        self.walker.locate(node)
        return self.call(function, args, kwargs, node)

    def _check_result_is_used(self, function: Any, node: ast.Call) -> None:
        """Raises UserMistake (E073) where a statement drops what `must_use_result` is about."""
        wanted = getattr(function, "_must_use_result", False)
        if wanted:
            why = f": {wanted}" if isinstance(wanted, str) else ""
            raise UserMistake(
                "E073",
                f"The result of {ast.unparse(node.func)} is not being used{why}",
                "assign it to a variable",
            )

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        """Calls anything that kernel code can name."""
        if isinstance(function, constexpr) and isinstance(function.value, FunctionType):
            return self.walker.aggregates.call_method(function.value, args, kwargs)
        function = unwrap(function)
        if isinstance(function, BoundFunction):
            if isinstance(function.fn, ConstexprFunction):
                return self._call_on_constants(function.fn, args, kwargs, function.self_argument)
            return self.call_jit(function.fn, [function.self_argument, *args], kwargs)
        if is_method(function):
            if isinstance(function, type):
                return self.walker.aggregates.make_aggregate(function, args, kwargs)
            return self.walker.aggregates.call_method(function, args, kwargs)
        if is_aggregate(function):
            return self.call(
                self.walker.expressions.attribute(function, "__call__", node), args, kwargs, node
            )
        result = self.walker.aggregates.special_of_record(function, "__call__", args, kwargs)
        if result is not MISSING:
            return result
        if isinstance(function, JITCallable):
            return self.call_jit(function, args, kwargs)
        if is_builtin(function):
            self.session.reads.called(function)  # which may be the user's
            return self.apply(function, args, kwargs)
        if self.walker.builtins.has(function):
            return self.walker.builtins.call(function, args, kwargs)
        home = home_of(function)
        if home and all(is_constant(value) for value in [*args, *kwargs.values()]):
            return self._call_on_constants(function, args, kwargs)
        if function is constexpr:
            (value,) = exactly("constexpr", 1, args)
            if not is_constant(value):
                raise UserMistake(
                    "E033",
                    f"constexpr got {describe(value)}, which is only known at run time",
                    "pass a constant",
                )
            return settle(value)
        if isinstance(function, type) and not home:
            return self._call_class(function, args, kwargs)
        if hasattr(function, "__tessera_constexpr_function__"):
            return self._call_on_constants(function, args, kwargs)
        owner = getattr(function, "__self__", None)
        if owner is not None and not isinstance(owner, (ModuleType, tensor)):
            if isinstance(owner, (bool, int, float, str, tuple, dtype)):
                return self._call_on_constants(function, args, kwargs)
        self._refuse_host_function(function, node)

    def apply(self, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Calls a Python function of ours; wrong arguments are the user's mistake."""
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            import inspect

            try:
                inspect.signature(function).bind(*args, **kwargs)
            except TypeError as mismatch:
                name = getattr(function, "__name__", str(function))
                raise UserMistake(
                    "E051", f"`{name}`: {mismatch}", _signature_hint(function, kwargs)
                ) from None
            except ValueError:
                pass
            raise error

    def _call_class(self, cls: type, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if issubclass(cls, (program.range, program.condition)):
            return self.apply(cls, args, kwargs)
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            return self.apply(cls, args, kwargs)
        if issubclass(cls, (dtype, tuple_type, constexpr_type, slice)):
            return self._call_on_constants(cls, args, kwargs)
        if dataclasses.is_dataclass(cls):
            self.session.reads.called(cls)
            return plain(build_of(record_class(cls), record_items(call_python(cls, args, kwargs))))
        if hasattr(cls, "__tessera_constexpr_function__"):
            return self._call_on_constants(cls, args, kwargs)
        if getattr(builtins, cls.__name__, None) is cls:
            raise UserMistake(
                "E015",
                f"`{cls.__name__}` of Python cannot be used inside a kernel",
                self._instead_of(cls.__name__, True),
            )
        raise UserMistake(
            "E016",
            f"the class `{cls.__name__}` cannot be used inside a kernel",
            "use tuples or named tuples of tensors",
        )

    def _call_on_constants(
        self,
        function: Callable[..., Any],
        args: list[Any],
        kwargs: dict[str, Any],
        owner: Any = None,
    ) -> Any:
        """Calls a Python function all of whose arguments are constants, perhaps as a method of
        `owner`, which may hold tensors."""
        name = getattr(function, "__name__", str(function))
        home = home_of(function)
        if not home:
            self.session.reads.called(function)
        if owner is not None:
            self.session.reads.called(MethodType(function.fn, owner))  # type: ignore[attr-defined]
        for value in [*args, *kwargs.values()]:
            if not is_constant(value):
                raise UserMistake(
                    "E019",
                    f"`{name}` runs when the kernel is compiled, got {describe(value)}",
                    "pass constants",
                )
        try:
            result = function(
                *([] if owner is None else [owner]),
                *[argument_of(home, settle(arg)) for arg in args],
                **{key: argument_of(home, settle(value)) for key, value in kwargs.items()},
            )
        except UserMistake:
            raise
        except Exception as error:
            raise UserMistake(
                "E016", f"`{name}` raised {type(error).__name__}: {error}", "correct its arguments"
            ) from None
        result = plain(result)
        if home in ("numpy", "torch") and not _is_kept(result):
            raise UserMistake(
                "E016",
                f"`{name}` of {home} gives {describe(result)}, which cannot be a constant of a kernel",
                "call functions that give numbers, strings or types",
            )
        return result

    def _refuse_host_function(self, function: Any, node: ast.Call) -> None:
        name = getattr(function, "__name__", None)
        module = (getattr(function, "__module__", None) or "").split(".")[0]
        if name is None or not callable(function):
            raise UserMistake(
                "E016",
                f"{describe(function)} is not a function",
                "call a @jit function or tl's",
                node=node.func,
            )
        if isinstance(function, BuiltinFunctionType) and getattr(builtins, name, None) is function:
            module = "builtins"
        private = module.startswith("_") and module != "__main__"
        if module in _HOST_MODULES or private or module == "builtins":
            what = "a host function: it cannot run inside a kernel"
            if home_of(function):
                what = "a host function: inside a kernel it takes constants alone"
            raise UserMistake(
                "E015",
                f"`{name}` of {module} is {what}",
                self._instead_of(name, module == "builtins"),
                node=node.func,
            )
        if isinstance(function, (FunctionType, MethodType)):
            raise UserMistake(
                "E016",
                f"`{name}` is not a @jit function",
                f"decorate `{name}` with @jit, or compute its result outside and pass it as a "
                "tl.constexpr",
                node=node.func,
            )
        raise UserMistake(
            "E016",
            f"`{name}` cannot be called inside a kernel",
            "call a @jit function or an operation of tessera.language",
            node=node.func,
        )

    def _instead_of(self, name: str, is_builtin: bool) -> str:
        """The operation of the language for a function of the host."""
        if name in tl.__all__ and name not in ("slice",):
            return f"use tl.{name}"
        from tessera.frontend.suggestions import instead_of

        text = instead_of(name, is_builtin)
        return f"use {text}" if text else "use an operation of tessera.language"

    # --- @jit functions --------------------------------------------------------------------

    def call_jit(self, fn: JITCallable, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Calls a @jit function with values; its body is visited here, or is a function."""
        values = self._bind(fn, args, kwargs)
        # Functions of elements are always inlined, so that the front-end sees every operation in
        # them.
        if fn.noinline and not self.session.scalar_function:
            return self._call_noinline(fn, values)
        walker = self.walker.inside(fn)
        walker.call_key = (fn, _key(tuple(values.values())))
        self._check_recursion(walker)
        walker.scope.values.update(values)
        self.session.builder.push_frame(fn.__name__)
        result = walker.run()
        self.session.builder.pop_frame()
        return result

    def _check_recursion(self, callee: Any) -> None:
        stack = self.session.walkers
        same = [i for i, walker in enumerate(stack) if walker.call_key == callee.call_key]
        if same:
            names = [walker.fn.__name__ for walker in stack[same[0] :]] + [callee.fn.__name__]
            raise UserMistake(
                "E009",
                f"infinite recursion: {' -> '.join(names)}",
                "write a loop, or recurse on a constexpr that gets smaller",
            )
        if len(stack) >= MAX_CALL_DEPTH:
            raise UserMistake(
                "E043",
                f"calls nest more than {MAX_CALL_DEPTH} deep at `{callee.fn.__name__}`",
                "write a loop, or fewer helpers",
            )

    def _bind(self, fn: JITCallable, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The value of each parameter of `fn`."""
        values: dict[str, Any] = {}
        rest = {
            name: value
            for name, value in kwargs.items()
            if name not in ("_semantic", "_builder", "_generator")
        }
        at = 0
        for param in fn.params:
            if param.kind == "varargs":
                values[param.name] = tuple(args[at:])
                at = len(args)
            elif param.kind == "positional" and at < len(args):
                if param.name in rest:
                    raise UserMistake(
                        "E051", f"`{fn.__name__}` got two values for `{param.name}`", "pass it once"
                    )
                values[param.name] = self._bind_one(fn, param, args[at])
                at += 1
            elif param.name in rest:
                values[param.name] = self._bind_one(fn, param, rest.pop(param.name))
            elif param.has_default:
                values[param.name] = plain(param.default)
            else:
                raise UserMistake(
                    "E051",
                    f"`{fn.__name__}` is called without `{param.name}`",
                    f"its parameters are {', '.join(one.name for one in fn.params)}",
                )
        if at < len(args):
            raise UserMistake(
                "E051",
                f"`{fn.__name__}` takes {counted(at, 'argument')} by place, got {len(args)}",
                f"its parameters are {', '.join(one.name for one in fn.params)}",
            )
        for name in rest:
            near = closest(name, [param.name for param in fn.params])
            raise UserMistake(
                "E051",
                f"`{fn.__name__}` has no parameter `{name}`",
                (
                    f"did you mean `{near}`?"
                    if near
                    else f"its parameters are {', '.join(one.name for one in fn.params)}"
                ),
            )
        return values

    def _bind_one(self, fn: JITCallable, param: Param, value: Any) -> Any:
        value = unwrap(value)
        if not param.is_constexpr:
            return value
        # A value known only at run time is passed as it is: kernels annotate arguments so that they
        # do not mean to change. If a constant is needed, the error comes there.
        return settle(value) if is_constant(value) else value

    def _call_noinline(self, fn: JITCallable, values: dict[str, Any]) -> Any:
        bound = tuple(values.values())
        tensors = [leaf for value in bound for leaf in leaves(value)]
        key = (fn, _key(bound, with_known=False))
        function = self.session.noinline_functions.get(key)
        if function is None:
            function = self._build_noinline(fn, values, key)
        results = iter(emit("call_function", function.name, tensors))
        return with_leaves(function.result, results)

    def _build_noinline(
        self, fn: JITCallable, values: dict[str, Any], key: Any
    ) -> NoinlineFunction:
        session = self.session
        walker = self.walker.inside(fn)
        walker.call_key = key
        self._check_recursion(walker)
        count = session.noinline_names.get(fn.__name__, 0)
        session.noinline_names[fn.__name__] = count + 1
        # A dot keeps the name apart from those that users can give.
        name = f"{fn.__name__}.{count}"
        inputs = [leaf for value in values.values() for leaf in leaves(value)]
        handles = session.builder.call(
            "begin_function", name, [lower(leaf.type) for leaf in inputs], [], False, True
        )
        arguments = iter([tensor(handle, leaf.type) for handle, leaf in zip(handles, inputs)])
        for parameter, value in values.items():
            walker.scope.set(parameter, with_leaves(value, arguments))
        result = walker.run()
        outputs = list(leaves(result))
        session.builder.call("end_function", [leaf._value for leaf in outputs])
        kinds = iter([tensor(None, leaf.type, constant=0) for leaf in outputs])
        function = NoinlineFunction(name, with_leaves(result, kinds))
        session.noinline_functions[key] = function
        return function


def _signature_hint(function: Callable[..., Any], kwargs: dict[str, Any]) -> str:
    import inspect

    names = list(inspect.signature(function).parameters)
    for name in kwargs:
        near = closest(name, names)
        if name not in names and near:
            return f"did you mean `{near}`?"
    required = [
        name
        for name, one in inspect.signature(function).parameters.items()
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    hint = f"its parameters are {', '.join(names)}"
    return (
        f"{hint}: write {getattr(function, '__name__', '...')}({', '.join(required)})"
        if required
        else hint
    )


def _key(value: Any, with_known: bool = True) -> Any:
    """Equal for arguments that give the same function body."""
    if isinstance(value, tensor):
        known = repr(value._constant) + repr(value._specialised) if with_known else None
        return ("tensor", value.type, known)
    value = unwrap(value)
    parts = parts_of(value)
    if parts is not None:
        return (type(value), *[_key(part, with_known) for part in parts])
    try:
        hash(value)
    except TypeError:
        return ("object", id(value))
    return (type(value), repr(value) if isinstance(value, float) else value)


def _is_kept(value: Any) -> bool:
    """True if kernel code can go on with what a function of the host gave."""
    if isinstance(value, tuple):
        return all(map(_is_kept, value))
    plain_types = (bool, int, float, str, type(None), dtype, type)
    return isinstance(value, plain_types) or is_description(value)
