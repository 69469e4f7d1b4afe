# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Specialisation data: a text from which a kernel is compiled again, without its arguments.

Hooks of compilations are given it (`compile["specialization_data"]`), and
`JITFunction.preload` takes it, in this process or another one:

    kernel.preload(text)    # what was compiled there is compiled here, before it is launched

It is JSON: the function's name, what each argument is specialised on, and the options. A
constant that has no text, such as an object of a class of the user's, is in it by a description
alone, and refused when the kernel is preloaded.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Any, Hashable, Optional, Sequence

from tessera import _C
from tessera.errors import LaunchError, PreloadError
from tessera.frontend.signature import (
    ArgSpec,
    ConstSpec,
    DescriptorSpec,
    KnownSpec,
    TupleSpec,
    ValueSpec,
)
from tessera.language import types
from tessera.language.callables import JITCallable
from tessera.runtime.specialize import Bound, constant_key
from tessera.wording import shown, with_article

if TYPE_CHECKING:
    from tessera.compiler.options import CompileOptions
    from tessera.runtime.jit import JITFunction

_OF_A_LAUNCH = ("num_threads", "stream")


def full_name(fn: JITCallable) -> str:
    """The function, as specialisation data name it."""
    return f"{fn.__module__}.{fn.__qualname__}"


def specialization_data(
    fn: "JITFunction", bound: Bound, options: "CompileOptions", more: dict[str, Any]
) -> str:
    """The text for one compilation; `more` is for those who read it."""
    given = {name: value for name, value in options.as_dict.items() if name not in _OF_A_LAUNCH}
    return json.dumps(
        {
            "name": full_name(fn),
            "arguments": [_describe(spec) for spec in bound.specs],
            "options": given,
            **more,
        }
    )


def read_specialization_data(fn: "JITFunction", text: Any) -> tuple[Bound, "CompileOptions"]:
    """The specialisation for which `fn` is compiled. Raises PreloadError (E062)."""
    from tessera.compiler.options import CompileOptions

    try:
        data = json.loads(text)
        name, arguments, options = data["name"], data["arguments"], data["options"]
    except (TypeError, ValueError, KeyError, RecursionError):
        raise _unreadable(f"this is no specialization data: {shown(text)}") from None
    if name != full_name(fn):
        raise _unreadable(f"specialization data is for {shown(name)}, not for {full_name(fn)!r}")
    if not isinstance(arguments, list) or len(arguments) != len(fn.params):
        raise _unreadable(f"specialization data is for other parameters than {name!r} has")
    bound = Bound()
    for param, described in zip(fn.params, arguments):
        try:
            key, spec = _rebuild(described)
        except _Unknown as unknown:
            raise _unreadable(f"`{param.name}` is {unknown}") from None
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
            raise _unreadable(f"`{param.name}` is not described as an argument is") from None
        bound.key.append(key)
        bound.specs.append(spec)
    try:
        given = CompileOptions(**options)
    except (TypeError, LaunchError) as error:
        raise _unreadable(f"its options are those of another release ({error})") from None
    return bound, given


class _Unknown(Exception):
    """An argument that the text has no full description of."""


def _unreadable(message: str) -> PreloadError:
    return PreloadError(
        "E062",
        message,
        "pass what a hook of compilations of this kernel was given, or use `warmup`",
    )


# --- Arguments ----------------------------------------------------------------------------


def _describe(spec: ArgSpec) -> Any:
    if isinstance(spec, ConstSpec):
        return {"constant": _describe_constant(spec.value)}
    if isinstance(spec, KnownSpec):
        return {"known": spec.value}
    if isinstance(spec, ValueSpec):
        element = types.dtype_of_core(spec.type.dtype).name
        if spec.type.kind == types.KIND_POINTER:
            pointer = {"pointer": element, "const": spec.type.is_const}
            return {**pointer, "divisibility": spec.divisibility}
        return {"number": element, "divisibility": spec.divisibility}
    items = [_describe(item) for item in spec.items]
    if isinstance(spec, TupleSpec):
        return {"tuple": items, "class": None if spec.cls is None else _describe_constant(spec.cls)}
    return {
        "descriptor": items,
        "block_shape": list(spec.block_shape),
        "padding": spec.padding,
        "round_f32_to_tf32": spec.rounds_to_tf32,
    }


def _rebuild(described: Any) -> tuple[Hashable, ArgSpec]:
    if "constant" in described:
        value = _rebuild_constant(described["constant"])
        return constant_key(value), ConstSpec(value)
    if "known" in described:
        return ("c", int, int(described["known"])), KnownSpec(int(described["known"]))
    if "pointer" in described or "number" in described:
        divisibility = int(described["divisibility"])
        if "number" in described:
            element = types.dtype(described["number"])._core_id
            type = _C.Type(types.KIND_NUMBER, element, False, ())
            return ("v", element, divisibility), ValueSpec(type, divisibility)
        element, is_const = types.dtype(described["pointer"])._core_id, bool(described["const"])
        type = _C.Type(types.KIND_POINTER, element, is_const, ())
        return ("p", element, is_const, divisibility), ValueSpec(type, divisibility)
    if "tuple" in described:
        keys, specs = _rebuild_all(described["tuple"])
        cls = None if described["class"] is None else _rebuild_constant(described["class"])
        return ("t", cls, *keys), TupleSpec(specs, cls)
    keys, specs = _rebuild_all(described["descriptor"])
    block_shape = tuple(map(int, described["block_shape"]))
    padding, rounds = str(described["padding"]), bool(described["round_f32_to_tf32"])
    key = ("d", block_shape, padding, rounds, *keys)
    return key, DescriptorSpec(specs, block_shape, padding, rounds)


def _rebuild_all(described: Sequence[Any]) -> tuple[Sequence[Hashable], tuple[ArgSpec, ...]]:
    pairs = [_rebuild(item) for item in described]
    return [key for key, _ in pairs], tuple(spec for _, spec in pairs)


# --- Constants ----------------------------------------------------------------------------


def _describe_constant(value: Any) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, types.constexpr):
        return {"constexpr": _describe_constant(value.value)}
    if type(value) is types.dtype:
        return {"dtype": value.name}
    if type(value) is tuple:
        return {"items": [_describe_constant(item) for item in value]}
    if isinstance(value, (JITCallable, type)):
        place = [value.__module__, value.__qualname__]
        if _find(*place) is value:
            return {"object": place}
    return {"unknown": f"{with_article(type(value).__name__)}, which has no text: {shown(value)}"}


def _rebuild_constant(described: Any) -> Any:
    if not isinstance(described, dict):
        return described
    if "constexpr" in described:
        return types.constexpr(_rebuild_constant(described["constexpr"]))
    if "dtype" in described:
        return types.dtype(described["dtype"])
    if "items" in described:
        return tuple(map(_rebuild_constant, described["items"]))
    if "object" in described:
        found = _find(*described["object"])
        if found is None:
            raise _Unknown(f"`{'.'.join(described['object'])}`, which no loaded module has")
        return found
    raise _Unknown(described["unknown"])


def _find(module: str, qualname: str) -> Optional[Any]:
    """The attribute of a loaded module by that name."""
    found: Any = sys.modules.get(module)
    for name in qualname.split("."):
        found = getattr(found, name, None)
    return found
