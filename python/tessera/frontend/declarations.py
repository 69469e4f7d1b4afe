# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How kernels are declared: mistakes in their parameters, annotations and defaults."""

from __future__ import annotations

import ast
import builtins
import re
from typing import Optional, Any

import tessera.language as tl
from tessera.errors import CompilationError, Frame
from tessera.frontend.source import source_of
from tessera.language import types
from tessera.language.callables import JITCallable, Param
from tessera.wording import closest


def check_signature(fn: JITCallable) -> None:
    """Raises CompilationError for a declaration that kernels cannot have (E006, E017)."""
    arguments = source_of(fn).tree.args
    nodes = {
        node.arg: node
        for node in [
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            *([arguments.vararg] if arguments.vararg else []),
        ]
    }
    for param in fn.params:
        node = nodes[param.name]
        if param.is_constexpr and param.do_not_specialize:
            raise declaration_error(
                fn,
                node,
                "E051",
                f"do_not_specialize names `{param.name}`, which is a constexpr",
                "drop one of the two",
            )
        problem = _annotation_problem(param)
        if problem is not None:
            raise declaration_error(fn, node.annotation or node, "E017", *problem)
        if param.has_default and not _is_constant_default(param.default):
            raise declaration_error(
                fn,
                node,
                "E006",
                f"the default of `{param.name}` is a {type(param.default).__name__}",
                "a default must be a number, a string, None, a dtype or a tuple of these",
            )


def declaration_error(
    fn: JITCallable, node: ast.AST, id: str, message: str, fix: str
) -> CompilationError:
    line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
    source = source_of(fn)
    text = source.lines[line - source.first_line]
    column = len(text.encode()[:column].decode(errors="replace")) + 1
    width = (node.end_col_offset or 0) - node.col_offset  # type: ignore[attr-defined]
    frame = Frame(fn.__name__, source.file, line, column)
    return CompilationError(
        id, message, fix, source.file, line, column, column + width, text, [frame]
    )


def _annotation_problem(param: Param) -> Optional[tuple[str, str]]:
    """Message and fix for an annotation that is a misspelt one of ours, if it is.

    Others (`torch.Tensor`, `Optional[int]`) are for readers and type checkers, and mean nothing
    here.
    """
    if not isinstance(param.annotation, str):
        return None
    near = misspelt_annotation(param.annotation.strip("'\" "))
    if near is None:
        return None
    message = f"parameter `{param.name}` has the unknown annotation `{param.annotation}`"
    return message, f"did you mean `tl.{near}`?" if near else "use tl.constexpr or a dtype"


def misspelt_annotation(text: str) -> Optional[str]:
    """The name of `tl` that an annotation's text probably means, if it looks like one and is not.

    Empty if it is of `tl` by its spelling, and nothing there is near it.
    """

    dtypes = [*types._PUBLIC_NAMES.values(), *(entry.name for entry in types.BY_CORE_ID)]
    owner, _, name = re.split(r"[\[(]", text, maxsplit=1)[0].strip().rpartition(".")
    ours = owner in ("tl", "triton.language", "tessera.language", "language")
    if ours:
        if hasattr(tl, name) or name in types._SHORT_NAMES:
            return None
        return closest(name, ["constexpr", "const", "tensor", *dtypes]) or ""
    if owner or hasattr(builtins, name) or name == "constexpr" or name in dtypes:
        return None
    try:
        types.str_to_ty(text)
        return None
    except ValueError:
        pass
    # A bare name may be anything.
    return closest(name, ["constexpr", *dtypes], cutoff=0.8)


def _is_constant_default(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_constant_default(item) for item in value)
    return (
        value is None
        or callable(value)
        or isinstance(value, (bool, int, float, str, types.dtype, types.constexpr, JITCallable))
    )
