# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Signatures: the types of a kernel's parameters, for compilation ahead of time."""

from __future__ import annotations

import re
from typing import Any, Mapping, Sequence, Union

from tessera import _C
from tessera.errors import ArgumentError
from tessera.frontend.signature import ArgSpec, ConstSpec, ValueSpec
from tessera.language import types
from tessera.language.callables import JITCallable, Param
from tessera.runtime.arrays import is_dtype, to_dtype
from tessera.wording import counted

Signature = Union[str, Mapping[str, Any], Sequence[Any]]


def parse_signature(
    fn: JITCallable, signature: Signature, constexprs: Mapping[str, Any]
) -> list[ArgSpec]:
    """The argument of `compile` for the parameters of a kernel."""
    if isinstance(signature, str):
        signature = _split(signature)
    names = [param.name for param in fn.params]
    if not isinstance(signature, Mapping):
        if len(signature) > len(names):
            raise ArgumentError(
                "E051",
                f"the signature has {counted(len(signature), 'type')}, `{fn.__name__}` takes {len(names)}",
                f"the parameters are {', '.join(names)}",
            )
        signature = dict(zip(names, map(_literal, signature)))
    for name in (*signature, *constexprs):
        if name not in names:
            raise ArgumentError(
                "E051",
                f"`{fn.__name__}` has no parameter `{name}`",
                f"the parameters are {', '.join(names)}",
            )
    return [_parse_param(fn, param, signature, constexprs) for param in fn.params]


def _split(text: str) -> list[Any]:
    """The items of a signature that is one text. Strings are in quotes, or spelled as they are
    where that is nothing else and has no comma."""
    items: list[Any] = []
    for part in re.findall(r"""(?:'[^']*'|"[^"]*"|[^,])+""", text):
        part = part.strip()
        quoted = len(part) >= 2 and part[0] in "'\"" and part.find(part[0], 1) == len(part) - 1
        if part:
            items.append(types.constexpr(part[1:-1]) if quoted else part)
    return items


def _literal(text: Any) -> Any:
    """A number in the text form of a signature."""
    if isinstance(text, str):
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
        return {"None": None, "True": True, "False": False}.get(text, text)
    return text


def _parse_param(
    fn: JITCallable, param: Param, signature: Mapping[str, Any], constexprs: Mapping[str, Any]
) -> ArgSpec:
    name = param.name
    if name in constexprs:
        return ConstSpec(constexprs[name])
    if name not in signature or (param.is_constexpr and signature[name] == "constexpr"):
        if param.has_default:
            return ConstSpec(types.unwrap(param.default))
        kind = "value of the constexpr" if param.is_constexpr else "type of the parameter"
        # A signature in order does not show the omitted ones: the last are missing then.
        order = ", ".join(one.name for one in fn.params)
        raise ArgumentError(
            "E051",
            f"the signature of `{fn.__name__}` lacks the {kind} `{name}`: it has "
            f"{counted(len(signature), 'item')} for {counted(len(fn.params), 'parameter')}",
            f"give one for each of {order}, in this order or by name",
        )
    value = signature[name]
    if isinstance(value, types.constexpr):
        return ConstSpec(value.value)
    if param.is_constexpr or not isinstance(value, (str, types.dtype)):
        if not is_dtype(value):
            return ConstSpec(value)
        dtype = to_dtype(value)
        return ConstSpec(dtype) if param.is_constexpr else value_spec(dtype)
    text, _, divisibility = value.partition(":") if isinstance(value, str) else (value, "", "")
    try:
        dtype = types.str_to_ty(text) if isinstance(text, str) else text
        return value_spec(dtype, int(divisibility or 0))
    except ValueError as error:
        raise ArgumentError(
            "E051", f"the type of `{name}` is {value!r}: {error}", 'write "*fp32", "i32", "fp32:16"'
        ) from None


def value_spec(dtype: types.dtype, divisibility: int = 0) -> ValueSpec:
    """The spec of an argument of a type, for what is known to divide it."""
    if isinstance(dtype, types.pointer_type):
        type = _C.Type(types.KIND_POINTER, dtype.element_ty._core_id, dtype.is_const(), ())
    else:
        type = _C.Type(types.KIND_NUMBER, dtype._core_id, False, ())
    return ValueSpec(type, divisibility)
