# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds and parses the source of a @jit function, keeping the file's lines and columns."""

from __future__ import annotations

import __future__

import ast
import linecache
import marshal
import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any, Iterator, Mapping, NamedTuple, Optional, Sequence

from tessera.errors import CompilationError
from tessera.frontend.hints import assign_hints
from tessera.frontend.loop_else import write_out_loop_else
from tessera.frontend.recursion import DEEP_RECURSION
from tessera.language.callables import JITCallable
from tessera.locks import compile_tree, parse
from tessera.settings import note_change

_fields: dict[type[ast.AST], tuple[str, ...]] = {}
"""The fields of a kind of node that may hold nodes other than operators and contexts."""


def child_nodes(node: ast.AST) -> list[ast.AST]:
    """The nodes of `ast.iter_child_nodes` without operators and contexts, in half the time."""
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
    """The `def` as it stands in the file, its decorators before it; not dedented."""
    file: str
    """The path, or the name that the text was compiled under."""
    first_line: int
    """The line of the file where `text` begins."""
    lines: Sequence[str]
    """Those of `text`: `lines[k]` is line `first_line + k` of the file."""
    tree: ast.FunctionDef
    """Its lines and columns are those of the file, columns from 0."""


class WrittenFunction(NamedTuple):
    """A function's text and code, of which nothing is parsed."""

    text: str
    """As in FunctionSource, unless only tokens tell where the function ends."""
    file: str
    first_line: int
    code: bytes
    """Equal for the same code in all processes."""
    names: Sequence[str]
    """The names that the code reads and that are not its own variables."""


def written(fn: JITCallable) -> Optional[WrittenFunction]:
    """The text and code of a function; None if another process may have other bytes for the same code,
    or if the text is not that of the code.

    Nothing compares them: `source_of` does.
    """
    code = fn.fn.__code__
    if fn._is_rewritten:
        return None
    if fn._written is None or fn._written[0] is not code:
        fn._written = code, _read_written(fn)
    found: Optional[WrittenFunction] = fn._written[1]
    return found


def _read_written(fn: JITCallable) -> Optional[WrittenFunction]:
    code = fn.fn.__code__
    lines = fn._text or linecache.getlines(code.co_filename, fn.fn.__globals__)
    if not 0 < code.co_firstlineno <= len(lines):
        return None
    names: set[str] = set()
    pending = [code]
    for each in pending:  # which grows
        names.update(_loaded_globals(each), each.co_freevars)
        for constant in each.co_consts:
            if isinstance(constant, CodeType):
                pending.append(constant)
            elif isinstance(constant, frozenset):  # whose order is another one in each process
                return None
    try:
        data = marshal.dumps(code, 2)  # later versions depend on what else refers to a constant
    except ValueError:
        return None
    text = "".join(_block(lines, code.co_firstlineno - 1))
    return WrittenFunction(text, code.co_filename, code.co_firstlineno, data, tuple(sorted(names)))


def _loaded_globals(code: CodeType) -> Iterator[str]:
    import opcode

    load, extended = opcode.opmap["LOAD_GLOBAL"], opcode.opmap["EXTENDED_ARG"]
    operations = code.co_code
    at = operations.find(load)
    while at >= 0:
        if at % 2 == 0:
            place = operations[at + 1]
            if at and operations[at - 2] == extended:
                place |= operations[at - 1] << 8
            # The lowest bit says what is pushed besides.
            yield code.co_names[place >> 1 if sys.version_info >= (3, 11) else place]
        at = operations.find(load, at + 1)


def source_of(fn: JITCallable) -> FunctionSource:
    """The text and syntax tree of a function, found on first use."""
    code = fn.fn.__code__
    if fn._parsed is None or fn._parsed[0] is not code:
        # Somebody may have given the function other code, which is of the file as it is now.
        text = fn._text if fn._parsed is None else None
        try:
            with DEEP_RECURSION:
                fn._parsed = code, read_function(fn.fn, lines=text)
        except RecursionError:
            raise CompilationError.at_function(
                fn.fn,
                "E043",
                f"the source of `{fn.__name__}` nests too deep",
                "split the function up",
            ) from None
    found: FunctionSource = fn._parsed[1]
    return found


def text_of(fn: JITCallable) -> str:
    """Its text from the `def` on, not indented."""
    import textwrap  # which takes 2 ms

    source = source_of(fn)
    before = source.tree.lineno - source.first_line
    return textwrap.dedent("".join(line + "\n" for line in source.lines[before:]))


def replace_text(fn: JITCallable, text: str) -> None:
    """Has `text`, which starts with a `def` of the same parameters, take the place of its own."""
    fn._parsed = None
    fn._is_rewritten = text_of(fn) != text  # and not the function's own text again
    if fn._is_rewritten:
        fn._parsed = fn.fn.__code__, read_function(fn.fn, text)
    note_change()


def read_function(
    fn: FunctionType, source: Optional[str] = None, lines: Optional[Sequence[str]] = None
) -> FunctionSource:
    """The source of `fn`, from its file (or `source`, text that starts with its `def`).

    `lines` are those of the file when the function was made, if they are known.

    Raises CompilationError: E002 where the source is not to be had, E007 for a coroutine,
    E001 for a lambda.
    """
    code = fn.__code__
    if source is not None:
        block = source.splitlines(keepends=True)
        text = "".join(block)
        tree = _finish(_parse(text, fn, 1), text)
        return FunctionSource(text, code.co_filename, 1, _bare(block), tree)
    found = _find(fn, lines or linecache.getlines(code.co_filename, fn.__globals__))
    if found is None and lines is not None:
        # Perhaps the file was already another one when its text was read, and is back again.
        linecache.checkcache(code.co_filename)
        found = _find(fn, linecache.getlines(code.co_filename, fn.__globals__))
    if found is None:
        raise CompilationError(
            "E002",
            f"the text of `{fn.__name__}` is not the one that Python compiled: its file has "
            "changed since it was imported",
            "import the file again, or start the program again",
            code.co_filename,
            code.co_firstlineno,
            1,
        )
    return found


def _find(fn: FunctionType, lines: Sequence[str]) -> Optional[FunctionSource]:
    """The function in the lines of its file; None if what is there is another one."""
    code = fn.__code__
    if not lines:
        raise CompilationError(
            "E002",
            f"the source of `{fn.__name__}` is not available",
            "define the function in a file or a notebook cell",
            code.co_filename,
            code.co_firstlineno,
            1,
        )
    first_line = code.co_firstlineno
    if first_line > len(lines):
        return None
    block = _block(lines, first_line - 1)
    text = "".join(block)
    try:
        tree = _parse(text, fn, first_line)
    except CompilationError as error:
        from inspect import getblock
        from tokenize import TokenError

        try:
            block = getblock(list(lines[first_line - 1 :]))
            text = "".join(block)
            tree = _parse(text, fn, first_line)
        except (CompilationError, SyntaxError, TokenError):
            # Python has found the function at this line, so what is not there now has changed. For
            # a lambda or a coroutine, the error has more to say.
            if _is_plain(code) and not _is_rewritten(fn):
                return None
            raise error from None
    if not _gives(tree, code, fn.__globals__) and not _is_rewritten(fn):
        return None
    return FunctionSource(text, code.co_filename, first_line, _bare(block), _finish(tree, text))


def _is_plain(code: CodeType) -> bool:
    """True if the code is that of a `def`, and of no coroutine."""
    from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE

    return code.co_name != "<lambda>" and not code.co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR)


def _bare(block: Sequence[str]) -> Sequence[str]:
    return tuple(line.rstrip("\r\n") for line in block)


def _finish(tree: ast.FunctionDef, text: str) -> ast.FunctionDef:
    return assign_hints(write_out_loop_else(tree), text)


def _is_rewritten(fn: FunctionType) -> bool:
    """True if who imported the function may have compiled something else than its text, as pytest
    does with the asserts in tests."""
    loader = getattr(fn.__globals__.get("__spec__"), "loader", None)
    loader = loader or fn.__globals__.get("__loader__")
    module = type(loader).__module__ or ""
    plain = ("_frozen_importlib", "importlib.", "builtins", "zipimport")
    return loader is not None and not isinstance(loader, type) and not module.startswith(plain)


def _gives(tree: ast.FunctionDef, code: CodeType, names: Mapping[str, Any] = {}) -> bool:
    """True if Python compiles the function's text to this code, in a module that has `names`."""
    body: list[ast.stmt] = [tree]
    if code.co_freevars:
        # The free names of the function must be variables of the enclosing one.
        outer = parse(f"def _():\n    {' = '.join(code.co_freevars)} = None").body[0]
        assert isinstance(outer, ast.FunctionDef)
        outer.body.append(tree)
        body = [outer]
    # For `name.f()`, the operations differ if the module imports `name`. Nearly always the code is
    # the same with this, byte for byte.
    imported = [name for name in code.co_names if isinstance(names.get(name), ModuleType)]
    if imported:
        aliases = [ast.alias(name, lineno=1, col_offset=0) for name in imported]
        body.insert(0, ast.Import(aliases, lineno=1, col_offset=0))
    try:
        flags = code.co_flags & __future__.annotations.compiler_flag
        module = compile_tree(ast.Module(body, []), code.co_filename, flags)
    except (SyntaxError, RecursionError):
        return False
    within = [module]
    for outer_code in within:  # which grows
        for constant in outer_code.co_consts:
            if isinstance(constant, CodeType):
                if constant.co_name == tree.name and _is_same_code(constant, code):
                    return True
                if outer_code is module:
                    within.append(constant)
    return False


def _operations(code: CodeType) -> Sequence[tuple[int, int]]:
    """The operations of code, but for what depends on the module around it: `name.f()` has others
    where the module imports `name` than where it assigns it."""
    import opcode

    def number(name: str) -> int:
        return opcode.opmap.get(name, -1)

    left_out = {number(name) for name in ("CACHE", "PUSH_NULL", "PRECALL")}
    load_attribute, load_global = number("LOAD_ATTR"), number("LOAD_GLOBAL")
    extended = number("EXTENDED_ARG")
    same = {number("LOAD_METHOD"): load_attribute, number("CALL_METHOD"): number("CALL_FUNCTION")}
    jumps = {*opcode.hasjrel, *opcode.hasjabs}
    # The lowest bit of their arguments says what is pushed besides.
    flagged = {load_global} if sys.version_info >= (3, 11) else set()
    if sys.version_info >= (3, 12):
        flagged.add(load_attribute)
    operations = []
    high = 0
    for at in range(0, len(code.co_code), 2):
        operation, argument = code.co_code[at], code.co_code[at + 1] | high
        high = argument << 8 if operation == extended else 0
        if operation == extended or operation in left_out:
            continue
        operation = same.get(operation, operation)
        if operation in jumps:  # over more or fewer of those
            argument = 0
        elif operation in flagged:
            argument >>= 1
        operations.append((operation, argument))
    return operations


def _is_same_code(one: CodeType, other: CodeType) -> bool:
    names = ("co_names", "co_varnames", "co_freevars", "co_cellvars", "co_firstlineno")
    if any(getattr(one, name) != getattr(other, name) for name in names):
        return False
    if len(one.co_consts) != len(other.co_consts):
        return False
    if one.co_code != other.co_code and _operations(one) != _operations(other):
        return False
    for a, b in zip(one.co_consts, other.co_consts):
        if isinstance(a, CodeType) and isinstance(b, CodeType):
            if not _is_same_code(a, b):
                return False
        elif isinstance(a, str) and "<locals>" in a:
            pass  # the name of an inner function says where the outer one is
        elif type(a) is not type(b):
            return False
        elif a != b if isinstance(a, frozenset) else repr(a) != repr(b):
            return False
    return True


def _block(lines: Sequence[str], start: int) -> Sequence[str]:
    """The lines of the function that starts at index `start`, decorators included.

    They end where a line is indented no more than the first one. That holds nearly always.
    Otherwise the truncated function does not parse. Then the tokens say where.
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
        module = parse("\n" * padding + text)
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
        if isinstance(statement, ast.FunctionDef) and statement.name == fn.__code__.co_name:
            return _mangle(statement, text, fn)
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


def _mangle(tree: ast.FunctionDef, text: str, fn: FunctionType) -> ast.FunctionDef:
    """Gives private names (`__x`) in a function of a class the names that Python gives them."""
    if "__" not in text:
        return tree
    # A part of the name is a class's unless "<locals>" follows.
    path = getattr(fn.__code__, "co_qualname", fn.__qualname__).split(".")
    around = zip(path[:-1], path[1:])
    classes = [part for part, inner in around if "<locals>" not in (part, inner)]
    prefix = classes[-1].lstrip("_") if classes else ""
    if not prefix:
        return tree

    def mangled(name: str) -> str:
        is_private = name.startswith("__") and not name.endswith("__") and "." not in name
        return f"_{prefix}{name}" if is_private else name

    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = mangled(node.id)
        elif isinstance(node, ast.Attribute):
            node.attr = mangled(node.attr)
        elif isinstance(node, ast.arg):
            node.arg = mangled(node.arg)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = list(map(mangled, node.names))
    return tree


def _describe(fn: FunctionType) -> str:
    return "a lambda" if fn.__name__ == "<lambda>" else f"`{fn.__name__}`"
