# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds and parses the source of a @jit function, keeping the file's lines and columns."""

from __future__ import annotations

import ast
import linecache
from types import FunctionType
from typing import NamedTuple, Optional, Sequence

from tessera.frontend.errors import CompilationError
from tessera.frontend.hints import assign_hints
from tessera.frontend.loop_else import write_out_loop_else

_fields: dict[type[ast.AST], tuple[str, ...]] = {}
"""The fields of a kind of node that may hold nodes other than operators and contexts."""


def child_nodes(node: ast.AST) -> list[ast.AST]:
    """What `ast.iter_child_nodes` gives but for operators and contexts, in half the time."""
    kind = node.__class__
    fields = _fields.get(kind)
    if fields is None:
        fields = tuple(name for name in node._fields if name not in ("ctx", "op", "ops"))
        _fields[kind] = fields
    children: list[ast.AST] = []
    for name in fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            children.append(value)
        elif isinstance(value, list):
            children += [item for item in value if isinstance(item, ast.AST)]
    return children


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
    try:
        tree = _parse(text, fn, first_line)
    except CompilationError:
        if source is not None:
            raise
        from inspect import getblock

        block = getblock(list(lines[first_line - 1 :]))
        text = "".join(block)
        tree = _parse(text, fn, first_line)
    return FunctionSource(
        text, code.co_filename, first_line, tuple(line.rstrip("\r\n") for line in block), tree
    )


def _block(lines: Sequence[str], start: int) -> Sequence[str]:
    """The lines of the function that starts at index `start`, decorators included.

    They end where a line is indented no more than the first one: nearly always, and where it
    is not so, what is left of the function does not parse. Then the tokens say where.
    """
    first = lines[start]
    indent = len(first) - len(first.lstrip())
    body: Optional[int] = None  # how far that is indented
    end = start
    in_head = True
    for number in range(start, len(lines)):
        line = lines[number]
        text = line.lstrip()
        column = len(line) - len(text)
        if not text or (text[0] == "#" and (body is None or column < body)):
            continue
        if column <= indent and text[0] not in ")]}":
            if not in_head:
                break
            in_head = text[0] == "@"
        elif column > indent and not in_head and body is None and text[0] not in ")]}":
            body = column
        end = number + 1
    return lines[start:end]


def _parse(text: str, fn: FunctionType, first_line: int) -> ast.FunctionDef:
    line_shift = first_line - 1
    first = text.lstrip("\n")
    if first[:1] in (" ", "\t"):
        # An indented `def` is the body of this `if`, so columns stay those of the file.
        text = "if 1:\n" + text
        line_shift -= 1
    # Empty lines in front are quicker than a walk over the tree to move it down.
    padding = max(line_shift, 0)
    line_shift -= padding
    try:
        module = ast.parse("\n" * padding + text)
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
            return assign_hints(write_out_loop_else(statement), text)
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
