# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dependencies of a kernel's IR besides its arguments, in a form that another process can
check.

The first form is a hash. It covers the source of the kernel and of every @jit function that it can
reach, the globals that these name, and the front-end. In a new process the hash leads to a link in
the disk cache. The link has the values that the compilation then read in fact (`pack_reads`), as
paths from the kernel. If all of them have the same value again (`replay`), the link leads to the
machine code. So a new process finds a kernel without building its IR.

A wrong answer would serve stale code. So anything uncertain (a global of an unknown type, a host
function called at compile time) gives no hash or no link at all. Such a kernel is still cached, by
its IR.
"""

from __future__ import annotations

import ast
import enum
import functools
import json
import os
import struct
import sys
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Optional, Sequence

from tessera.digests import digest, framed
from tessera.frontend.host_functions import home_of, is_description, version_of
from tessera.frontend.reads import Path, Reads, is_ours, is_own_builtin
from tessera.frontend.scope import MISSING
from tessera.frontend.signature import ArgSpec, constant_part
from tessera.frontend.source import child_nodes, source_of, written
from tessera.language import types
from tessera.language.callables import ConstexprFunction, JITCallable
from tessera.language.tensor import tensor


class Unpinnable(Exception):
    """Something whose later changes could not be noticed."""


def source_key(fn: JITCallable, *values: Any) -> Optional[bytes]:
    """The hash for `fn`, together with `values`; None if there is none.

    It covers texts and codes. `is_as_written` says whether these belong together.
    """
    try:
        closure = _closure(fn)
        fields = [closure.stable(value) for value in values]
    except Unpinnable:
        return None
    return digest(_front_end_key(), *closure.fields, b"values", *fields)


def text_key(fn: JITCallable, use: str) -> Optional[bytes]:
    """The hash for what `use` finds in the text of `fn` alone; None if the text and the code of the
    function may not belong together. Only who has parsed the text may store anything under it."""
    text = written(fn)
    if text is None:
        return None
    return digest(_front_end_key(), use, text.text, text.code)


def is_as_written(fn: JITCallable) -> bool:
    """True if the hash is of the texts that the front-end compiles. If the text of a function is not
    the one that Python compiled, raises CompilationError (E002).

    A process that finds the hash on disk need not parse: one that compiled the same texts and codes
    has asked this.
    """
    return not any(
        (text := written(each)) is not None and text.text != source_of(each).text
        for each in _closure(fn).visited
    )


def _closure(fn: JITCallable) -> _Closure:
    """The functions that `fn` reaches, without parsing them if their codes have all that is needed."""
    try:
        closure = _Closure(is_parsed=False)
        closure.visit(fn)
    except Unpinnable:
        closure = _Closure()
        closure.visit(fn)
    return closure


def pack_reads(reads: Reads) -> Optional[bytes]:
    """The reads, for another process; None if they cannot be described."""
    if reads.portable is None:
        return None
    try:
        values = digest(*map(_fingerprint, reads.portable.values())).hex()
    except Unpinnable:
        return None
    paths = list(reads.portable)
    if not all(step is None or type(step) in (int, str) for path in paths for _, step in path):
        return None
    return json.dumps({"paths": paths, "values": values, "files": reads.files}).encode()


def replay(fn: JITCallable, specs: Sequence[ArgSpec], packed: bytes) -> Optional[Reads]:
    """The same reads in this process; None unless each gives what it gave then."""
    reads = Reads(fn)
    arguments = [constant_part(spec) for spec in specs]
    for index, argument in enumerate(arguments):
        reads.argument(index, argument)
    values: dict[Path, Any] = {(): fn, (("tensor", None),): tensor}
    for index, argument in enumerate(arguments):
        values[(("argument", index),)] = argument
    try:
        stored = json.loads(packed)
        fingerprints = []
        for steps in stored["paths"]:
            path = tuple((kind, name) for kind, name in steps)
            owner = _value_at(path[:-1], values)
            kind, name = path[-1]
            if kind == "name":
                if not isinstance(owner, JITCallable):
                    return None
                value = reads.name(owner, name)
                if isinstance(value, JITCallable):
                    reads.function(value)
            elif kind == "attribute":
                value = reads.attribute(owner, name)
            else:
                value = types.unwrap(owner)[name]
                reads.item(owner, name, value)
            fingerprints.append(_fingerprint(value))
            values[path] = types.unwrap(value)
            if isinstance(value, JITCallable):
                reads.function(value)
        if digest(*fingerprints).hex() != stored["values"]:
            return None
        for name, contents in stored["files"].items():
            with open(name, "rb") as file:
                if digest(file.read()).hex() != contents:
                    return None
            reads.files[name] = contents
    except Exception:  # of any property, where another object is at a path now
        return None
    reads.function(fn)
    return reads


def _value_at(path: Path, values: dict[Path, Any]) -> Any:
    """The value at a path; items of tuples may be passed through without being read."""
    if path not in values:
        kind, name = path[-1]
        if kind != "item":
            raise KeyError(path)
        values[path] = types.unwrap(types.unwrap(_value_at(path[:-1], values))[name])
    return values[path]


def _fingerprint(value: Any) -> bytes:
    """Equal in another process just if the front-end takes the value for the same.

    Its other reads of the value are recorded separately.
    """
    if value is MISSING:
        return framed("missing")
    if type(value) is FunctionType and home_of(value) is None:  # nearly all are
        return _Closure()._described(value)
    if isinstance(value, types.constexpr):
        return framed("constexpr", _fingerprint(value.value))
    if isinstance(value, ModuleType):
        return framed("module", value.__name__)
    if isinstance(value, JITCallable):
        name = f"{value.__module__}.{value.__qualname__}"
        if is_ours(value.__module__):
            return framed("ours", name)
        defaults = [_fingerprint(param.default) for param in value.params if param.has_default]
        return framed("jit", name, *_text_fields(value), *defaults)
    if isinstance(value, enum.Enum):
        cls = type(value)
        return framed("enum", f"{cls.__module__}.{cls.__qualname__}.{value.name}")
    if (home := home_of(value)) is not None:
        return framed("host", home, version_of(home), value.__name__)
    if isinstance(value, property) and is_ours(getattr(value.fget, "__module__", None)):
        return framed(
            "property", getattr(value.fget, "__qualname__")
        )  # such as `dtype` of a tensor
    if isinstance(value, type):
        fields = map(str, getattr(value, "_fields", ()))
        defaults = [_fingerprint(each) for each in getattr(value, "_field_defaults", {}).values()]
        return framed("type", f"{value.__module__}.{value.__qualname__}", *fields, *defaults)
    if isinstance(value, tuple):
        return framed("tuple", _fingerprint(type(value)), *map(_fingerprint, value))
    return _Closure().stable(value)


def _text_fields(fn: JITCallable) -> list[bytes]:
    """A function's text and its place, which is in assertions and in error messages of compiled code;
    and its code, where that replaces a parse of the text."""
    text = written(fn)
    source = text or source_of(fn)
    place = f"{source.file}:{source.first_line}:{fn.noinline}"
    return [place.encode(), source.text.encode(), b"" if text is None else text.code]


class _Closure:
    """Walks from function to function; `fields` is what the hash is made of.

    is_parsed: if it is false, the names in a function are those of its code. These do not say which
      attributes of a module are read. So a function that reads a user's module has no such hash.
    """

    def __init__(self, is_parsed: bool = True) -> None:
        self.is_parsed = is_parsed
        self.fields: list[bytes] = []
        self.visited: dict[JITCallable, int] = {}

    def visit(self, fn: JITCallable) -> None:
        if fn in self.visited:
            return
        self.visited[fn] = len(self.visited)
        self.fields += [fn.__qualname__.encode(), *_text_fields(fn)]
        for param in fn.params:
            if param.has_default:
                self.fields.append(self.stable(param.default))
        scope = fn._globals
        for chain in _global_names(fn) if self.is_parsed else self._names_of_code(fn):
            if chain[0] in scope:
                self.fields.append(".".join(chain).encode())
                self.fields.append(self.resolve(scope[chain[0]], chain[1:]))

    def _names_of_code(self, fn: JITCallable) -> list[tuple[str, ...]]:
        text = written(fn)
        if text is None:
            raise Unpinnable(fn.__name__)
        return [(name,) for name in text.names]

    def resolve(self, value: Any, attributes: tuple[str, ...]) -> bytes:
        """The value of a global, or of what is reached from it through modules."""
        for attribute in attributes:
            if not isinstance(value, ModuleType):
                break
            if is_ours(value.__name__):
                return b"ours"
            if not hasattr(value, attribute):
                raise Unpinnable(attribute)
            value = getattr(value, attribute)
        if isinstance(value, ModuleType):
            if not self.is_parsed and not is_ours(value.__name__):
                raise Unpinnable(value.__name__)  # it may be anything in there that is read
            return value.__name__.encode()
        return self.stable(value)

    def stable(self, value: Any) -> bytes:
        """Bytes that are equal in another process just if the value is."""
        kind = type(value)
        if kind is str or kind is int or kind is bool or value is None:  # nearly all are
            return framed(kind.__name__, repr(value))
        if isinstance(value, types.constexpr):
            return b"constexpr" + self.stable(value.value)
        if isinstance(value, JITCallable):
            if not is_ours(value.__module__):
                self.visit(value)
                return b"fn%d" % self.visited[value]
            return b"ours:" + value.__qualname__.encode()
        if value is None or isinstance(value, (bool, int, str, bytes)):
            if isinstance(value, enum.Enum):
                return self._described(type(value)) + repr(value.value).encode()
            return framed(type(value).__name__, repr(value))
        if isinstance(value, float):
            return b"float" + struct.pack("<d", value)
        if isinstance(value, tuple):
            if hasattr(value, "_fields"):
                return framed(self._described(type(value)), *map(self.stable, value))
            return framed(b"tuple", *map(self.stable, value))
        if isinstance(value, types.dtype):
            return repr(value).encode()
        if (home := home_of(value)) is not None:
            return framed("host", home, version_of(home), value.__name__)
        if is_description(value):
            return framed(type(value).__module__, type(value).__name__, repr(value))
        return self._described(value)

    def _described(self, value: Any) -> bytes:
        if isinstance(value, ConstexprFunction):
            value = value.fn
        name = getattr(value, "__qualname__", None)
        module = getattr(value, "__module__", None)
        if name is None or not isinstance(value, (type, FunctionType, BuiltinFunctionType)):
            raise Unpinnable(repr(value))
        is_hashed = bool(module) and (is_ours(module) or is_own_builtin(value))
        if module in ("builtins", "math") or is_hashed:
            return f"{module}.{name}".encode()
        fields = getattr(value, "_fields", None)
        if isinstance(value, type) and fields and value.__base__ is tuple:
            given = getattr(value, "_field_defaults", {}).items()
            defaults = [framed(field, self.stable(default)) for field, default in given]
            return framed(b"namedtuple", f"{module}.{name}", *map(str.encode, fields), *defaults)
        raise Unpinnable(name)


def _global_names(fn: JITCallable) -> list[tuple[str, ...]]:
    """The names that are not the function's own variables; see `_names`."""
    outer: set[str] = set()
    codes = [fn.fn.__code__]
    while codes:  # comprehensions have code of their own
        code = codes.pop()
        outer.update(code.co_names, code.co_freevars)
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    # Another text than that of the code may have other names.
    return sorted(
        chain for chain in _names(source_of(fn).tree) if chain[0] in outer or fn._is_rewritten
    )


def _names(tree: ast.AST) -> set[tuple[str, ...]]:
    """Every name that is read, with the attributes that follow it."""
    found: set[tuple[str, ...]] = set()
    inner: set[int] = set()
    pending: list[ast.AST] = [tree]
    for node in pending:  # which grows; outer attributes come before what they are of
        pending.extend(child_nodes(node))
        if id(node) in inner or not isinstance(node, (ast.Attribute, ast.Name)):
            continue
        chain: list[str] = []
        at: ast.expr = node
        while isinstance(at, ast.Attribute):
            chain.append(at.attr)
            at = at.value
            inner.add(id(at))
        if isinstance(at, ast.Name):
            found.add((at.id, *reversed(chain)))
    return found


_APART = (
    "__pycache__", "testing", "aot", "jax", "nn", "ops", "torch", "tuning", "views",
)  # fmt: skip
"""Folders that decide about no IR: kernels in them are read as a user's are."""


@functools.lru_cache(maxsize=None)
def _front_end_key() -> bytes:
    """The front-end's own sources: they change IR as much as a kernel's do. And the Python that
    parses kernels and evaluates their constants."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    fields: list[bytes] = [repr(sys.version_info[:3]).encode()]
    for folder, inner, names in os.walk(package):
        inner[:] = sorted(name for name in inner if name not in _APART)
        for name in sorted(names):
            if name.endswith(".py"):
                path = f"{folder}/{name}"
                with open(path, "rb", buffering=0) as file:
                    fields += [path[len(package) :].encode(), file.read()]
    return digest(*fields)
