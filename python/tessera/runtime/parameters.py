# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parameters of a kernel: what their annotations and defaults say, how the core's launches take
them, and which values they get from the arguments of a call.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence

from tessera import _C
from tessera.errors import ArgumentError, CompilationError, raise_core_error
from tessera.language import types
from tessera.language.callables import Param
from tessera.runtime.arrays import MockTensor, is_dtype
from tessera.runtime.specialize import ParamTraits
from tessera.settings import settings
from tessera.wording import counted, with_article

if TYPE_CHECKING:
    from tessera.compiler.options import CompileOptions
    from tessera.runtime.jit import JITFunction

# How parameters are passed (`Passing` in python/src/Signature.h).
_PASSING = {"positional": 0, "keyword": 1, "varargs": 2}


def bind_arguments(
    fn: "JITFunction[Any, Any]", args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """A value for each parameter, and the rest: the options."""
    values: list[Any] = []
    rest = dict(kwargs)
    at = 0
    missing = []
    for param in fn.params:
        if param.kind == "varargs":
            values.append(args[at:])
            at = len(args)
            continue
        if at < len(args) and param.kind == "positional":
            if param.name in rest:
                raise ArgumentError(
                    "E051",
                    f"kernel `{fn.__name__}` got two values for `{param.name}`",
                    "pass it once, by place or by name",
                )
            values.append(args[at])
            at += 1
        elif param.name in rest:
            values.append(rest.pop(param.name))
        elif param.has_default:
            values.append(param.default)
        else:
            missing.append(param.name)
            values.append(None)
    if at < len(args):
        raise ArgumentError(
            "E051",
            f"kernel `{fn.__name__}` takes {counted(at, 'argument')} by place, got {len(args)}",
            f"the parameters are {', '.join(fn.arg_names)}",
        )
    if rest:
        from tessera.compiler.options import OPTION_NAMES, unknown_option

        for name in rest:
            if name not in OPTION_NAMES:
                raise unknown_option(name, tuple(fn.arg_names))
    if missing:
        raise ArgumentError(
            "E051",
            f"kernel `{fn.__name__}` is launched without "
            + ", ".join(f"`{name}`" for name in missing),
            (
                "write the kernel out of the class: one gets no `self`"
                if fn.arg_names[:1] == ["self"]
                else "pass a value for each parameter that has no default"
            ),
        )
    return values, rest


def with_stand_ins(
    declared: Sequence[Param], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a `warmup`, with a MockTensor in the place of each dtype that stands for an
    array."""

    def stand_in(value: Any, param: Optional[Param]) -> Any:
        if param is not None and param.is_constexpr:
            return value
        return MockTensor(value) if is_dtype(value) else value

    by_name = {param.name: param for param in declared}
    params = [*declared, *[None] * len(args)]
    positional = tuple(stand_in(value, param) for value, param in zip(args, params))
    return positional, {name: stand_in(value, by_name.get(name)) for name, value in kwargs.items()}


def find_options(fn: "JITFunction[Any, Any]", given: dict[str, Any]) -> "CompileOptions":
    """The options of a launch; `given` are those that are passed."""
    if fn.debug is not None:
        given.setdefault("debug", fn.debug)
    key = (settings.generation, *given.items())
    try:
        return fn._known_options[key]
    except (KeyError, TypeError):  # new, or not to be hashed
        pass
    from tessera.compiler.options import CompileOptions

    options = CompileOptions.of(given)
    try:
        fn._known_options[key] = options
    except TypeError:
        pass
    return options


def make_dispatcher(fn: "JITFunction[Any, Any]", slow: Callable[..., Any]) -> _C.Dispatcher:
    """The warm path of launches; `slow` does those that it does not know."""
    parameters = tuple(
        dispatched(param, trait) for param, trait in zip(fn.params, fn._all_traits())
    )
    return _C.Dispatcher(parameters, slow, raise_core_error)


def dispatched(
    param: Param, trait: ParamTraits, is_tuned: bool = False, is_key: bool = False
) -> tuple[Any, ...]:
    """A parameter as the core's launches take it."""
    fixed = trait.annotation
    return (
        param.name,
        (param.default,) if param.has_default and not is_tuned else (),
        # Such a default is no plain value, so it counts as what it wraps.
        trait.is_constexpr or isinstance(param.given_default, types.constexpr),
        trait.on_value,
        trait.on_alignment,
        is_tuned,
        is_key,
        0,
        # Annotated pointers take only arrays, which their types distinguish.
        0 if fixed is None or fixed.is_ptr() else fixed._core_id,
        _PASSING[param.kind],
    )


def listed(names: Any) -> tuple[Any, ...]:
    """Names and places of parameters; a single one needs no list."""
    return (names,) if isinstance(names, (str, int)) else tuple(names or ())


def check_is_function(fn: Any, kernels: type[Any]) -> None:
    """Raises CompilationError for what is no function, or one of the `kernels`."""
    if isinstance(fn, kernels):
        raise CompilationError.at_caller(
            "E001", f"`{fn.__name__}` is decorated with @jit twice", "drop one"
        )
    if isinstance(fn, FunctionType) and fn.__name__ != "<lambda>":
        return
    if hasattr(fn, "fn") and hasattr(fn, "run"):
        raise CompilationError.at_caller(
            "E003",
            f"@jit is put on top of @{type(fn).__name__.lower()}",
            "put @jit next to the `def`, the other decorator above it",
        )
    if isinstance(fn, FunctionType):
        raise CompilationError.at_function(
            fn, "E001", "@jit needs a plain `def` function, got a lambda", "write a `def`"
        )
    what = f"the class `{fn.__name__}`" if isinstance(fn, type) else with_article(type(fn).__name__)
    raise CompilationError.at_caller(
        "E001", f"@jit needs a plain `def` function, got {what}", "write a `def`"
    )


def check_defaults(fn: FunctionType) -> None:
    """Raises CompilationError (E006) for an array, which would be one for all launches."""
    if not fn.__defaults__:
        return
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    for name, default in zip(reversed(names), reversed(fn.__defaults__)):
        if hasattr(default, "__array_interface__") and getattr(default, "shape", ()) != ():
            raise CompilationError.at_function(
                fn,
                "E006",
                f"the default of `{name}` is {with_article(type(default).__name__)}",
                "a default must be a constant: pass the array with each launch",
            )


def read_traits(fn: "JITFunction[Any, Any]") -> tuple[ParamTraits, ...]:
    """How each parameter is specialised."""
    result = []
    for param in fn.params:
        if param.has_default and type(param.default) in (list, dict, set):
            raise CompilationError.at_function(
                fn.fn,
                "E006",
                f"the default of `{param.name}` is {with_article(type(param.default).__name__)}",
                "a default must be a constant: a number, a string, None or a tuple of these",
            )
        if param.is_constexpr and param.do_not_specialize:
            raise CompilationError.at_function(
                fn.fn,
                "E051",
                f"do_not_specialize names `{param.name}`, which is a constexpr",
                "drop one of the two",
            )
        annotation, is_const = _read_annotation(param)
        result.append(
            ParamTraits(
                name=param.name,
                is_constexpr=param.is_constexpr,
                annotation=annotation,
                is_const=is_const,
                on_value=not param.do_not_specialize,
                on_alignment=not param.do_not_specialize_on_alignment,
            )
        )
    return tuple(result)


def _read_annotation(param: Param) -> tuple[Optional[types.dtype], bool]:
    """The type that an annotation fixes, and whether it says `tl.const`."""
    annotation = param.annotation
    if isinstance(annotation, types.dtype):
        return annotation, annotation.is_const()
    if annotation is types.const:
        return None, True
    if isinstance(annotation, str):
        # Under `from __future__ import annotations`, only "tl.int64" remains of it.
        name = annotation.strip("\"'")
        last = name.rpartition(".")[2]
        if last == "const":
            return None, True
        try:
            dtype = types.str_to_ty(name if name.startswith("*") else last)
        except ValueError:
            return None, False
        # Python's own int, float and bool are hints for people.
        return (None, False) if last in ("int", "float", "bool") else (dtype, dtype.is_const())
    return None, False
