# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds and parses the source of a @jit function, keeping the file's lines and columns."""

from __future__ import annotations

import ast
import linecache
from types import FunctionType
from typing import NamedTuple, Optional, Sequence

from tessera.frontend.errors import CompilationError
from tessera.frontend.loop_else import write_out_loop_else


class FunctionSource(NamedTuple):
    """A function's text and tree, placed in its file."""

    text: str
    file: str
    first_line: int
    lines: Sequence[str]
    tree: ast.FunctionDef


def read_function(fn: FunctionType, source: Optional[str] = None) -> FunctionSource:
    """The source of `fn`, from its file (or `source`, text that starts with its `def`).

    Raises CompilationError: E002 where the source is not to be had, E007 for a coroutine,
    E001 for a lambda.
    """
    code = fn.__code__
    if source is None:
        lines = linecache.getlines(code.co_filename, fn.__globals__)
        if not lines:
            raise CompilationError(
                "E002",
                f"the source of `{fn.__name__}` is not available",
                "define the function in a file or a notebook cell, or pass `source=`",
                code.co_filename,
                code.co_firstlineno,
                1,
            )
        first_line = code.co_firstlineno
        block = _block(lines, first_line - 1)
    else:
        first_line = 1
        block = source.splitlines(keepends=True)
    text = "".join(block)
    tree = _parse(text, fn, first_line)
    return FunctionSource(
        text, code.co_filename, first_line, tuple(line.rstrip("\r\n") for line in block), tree
    )


def _block(lines: Sequence[str], start: int) -> Sequence[str]:
    """The lines of the function that starts at index `start`, decorators included."""
    from inspect import getblock

    return getblock(list(lines[start:]))


def _parse(text: str, fn: FunctionType, first_line: int) -> ast.FunctionDef:
    line_shift = first_line - 1
    first = text.lstrip("\n")
    if first[:1] in (" ", "\t"):
        # An indented `def` is the body of this `if`, so columns stay those of the file.
        text = "if 1:\n" + text
        line_shift -= 1
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise CompilationError(
            "E001",
            f"`{fn.__name__}` is not a plain `def` function that can be parsed: {error.msg}",
            "define it with `def` on lines of its own",
            fn.__code__.co_filename,
            (error.lineno or 1) + line_shift,
            error.offset or 1,
        ) from None
    if line_shift:
        ast.increment_lineno(module, line_shift)
    body = module.body
    while body and isinstance(body[0], ast.If):
        body = body[0].body
    for statement in body:
        if isinstance(statement, ast.FunctionDef) and statement.name == fn.__name__:
            return write_out_loop_else(statement)
        if isinstance(statement, ast.AsyncFunctionDef):
            raise CompilationError.at_function(
                fn, "E007", f"`{fn.__name__}` is an `async def`", "use a plain `def`"
            )
    raise CompilationError.at_function(
        fn,
        "E001",
        f"@jit needs a plain `def` function, got {_describe(fn)}",
        "define a function with `def` and decorate it",
    )


def _describe(fn: FunctionType) -> str:
    return "a lambda" if fn.__name__ == "<lambda>" else f"`{fn.__name__}`"
