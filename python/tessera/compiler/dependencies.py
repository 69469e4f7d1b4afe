# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a kernel's IR depends on besides its arguments, as one hash.

That is the source of the kernel and of every @jit function it can reach, the values of the
globals they name, and the front-end itself. With it, a new process finds a kernel in the
disk cache without building its IR first.

A wrong hash would serve stale code, so whatever is not plainly understood (a global of an
unknown type, a host function called at compile time) gives no hash at all. Such a kernel is
still cached, by its IR.
"""

from __future__ import annotations

import ast
import enum
import functools
import os
import struct
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Optional

from tessera.frontend.signature import ConstexprFunction, JITCallable
from tessera.frontend.source import child_nodes
from tessera.language import types
from tessera.runtime.cache import digest


class Unpinnable(Exception):
    """Something whose later changes could not be noticed."""


def source_key(fn: JITCallable, *values: Any) -> Optional[bytes]:
    """The hash for `fn`, together with `values`; None if there is none."""
    closure = _Closure()
    try:
        closure.visit(fn)
        fields = [closure.stable(value) for value in values]
    except Unpinnable:
        return None
    return digest(_front_end_key(), *closure.fields, b"values", *fields)


def global_uses(fn: JITCallable) -> tuple[tuple[dict[str, Any], str, Any], ...]:
    """(namespace, name, value) of every global that `fn` and what it calls may read."""
    closure = _Closure()
    closure.visit_globals(fn)
    unique = {
        (id(namespace), name): (namespace, name, value) for namespace, name, value in closure.uses
    }
    return tuple(unique.values())


class _Closure:
    """Walks from function to function; `fields` is what the hash is made of."""

    def __init__(self) -> None:
        self.fields: list[bytes] = []
        self.visited: dict[JITCallable, int] = {}
        self.uses: list[tuple[dict[str, Any], str, Any]] = []

    def visit(self, fn: JITCallable) -> None:
        if fn in self.visited:
            return
        self.visited[fn] = len(self.visited)
        # The place is in assertions and in error messages of compiled code.
        place = f"{fn.file}:{fn.first_line}:{fn.noinline}"
        self.fields += [fn.__qualname__.encode(), place.encode(), fn.source.encode()]
        for param in fn.params:
            if param.has_default:
                self.fields.append(self.stable(param.default))
        scope = fn.globals
        for chain in _global_names(fn):
            if chain[0] in scope:
                self.fields.append(".".join(chain).encode())
                self.fields.append(self.resolve(scope[chain[0]], chain[1:]))

    def visit_globals(self, fn: JITCallable) -> None:
        """Only notes which globals are used, in `uses`."""
        if fn in self.visited or _is_ours(fn.__module__):
            return
        self.visited[fn] = len(self.visited)
        scope = fn.globals
        # A closure's variables are copied when they are asked for, so only true globals
        # can be watched.
        namespace = fn.fn.__globals__
        for chain in _global_names(fn):
            name = chain[0]
            if name not in scope:
                continue
            value = scope[name]
            if name in namespace and namespace[name] is value:
                self.uses.append((namespace, name, value))
            for attribute in chain[1:]:
                if not isinstance(value, ModuleType) or _is_ours(value.__name__):
                    break
                if attribute in vars(value):
                    self.uses.append((vars(value), attribute, vars(value)[attribute]))
                value = getattr(value, attribute, None)
            if isinstance(value, JITCallable):
                self.visit_globals(value)

    def resolve(self, value: Any, attributes: tuple[str, ...]) -> bytes:
        """The value of a global, or of what is reached from it through modules."""
        for attribute in attributes:
            if not isinstance(value, ModuleType):
                break
            if _is_ours(value.__name__):
                return b"ours"
            if not hasattr(value, attribute):
                raise Unpinnable(attribute)
            value = getattr(value, attribute)
        if isinstance(value, ModuleType):
            return value.__name__.encode()
        return self.stable(value)

    def stable(self, value: Any) -> bytes:
        """Bytes that are equal in another process just if the value is."""
        if isinstance(value, types.constexpr):
            return b"constexpr" + self.stable(value.value)
        if isinstance(value, JITCallable):
            if not _is_ours(value.__module__):
                self.visit(value)
                return b"fn%d" % self.visited[value]
            return b"ours:" + value.__qualname__.encode()
        if value is None or isinstance(value, (bool, int, str, bytes)):
            if isinstance(value, enum.Enum):
                return self._described(type(value)) + repr(value.value).encode()
            return digest(type(value).__name__, repr(value))
        if isinstance(value, float):
            return b"float" + struct.pack("<d", value)
        if isinstance(value, tuple):
            if hasattr(value, "_fields"):
                return digest(self._described(type(value)), *map(self.stable, value))
            return digest(b"tuple", *map(self.stable, value))
        if isinstance(value, types.dtype):
            return repr(value).encode()
        return self._described(value)

    def _described(self, value: Any) -> bytes:
        if isinstance(value, ConstexprFunction):
            value = value.fn
        name = getattr(value, "__qualname__", None)
        module = getattr(value, "__module__", None)
        if name is None or not isinstance(value, (type, FunctionType, BuiltinFunctionType)):
            raise Unpinnable(repr(value))
        if module in ("builtins", "math") or (module and _is_ours(module)):
            return f"{module}.{name}".encode()
        fields = getattr(value, "_fields", None)
        if isinstance(value, type) and fields and value.__base__ is tuple:
            return digest(b"namedtuple", f"{module}.{name}", *map(str.encode, fields))
        raise Unpinnable(name)


def _is_ours(module: str) -> bool:
    # Kernels that come with the package are its users, not part of the front-end.
    return module == "tessera" or module.startswith(("tessera.language", "tessera.frontend"))


def _global_names(fn: JITCallable) -> list[tuple[str, ...]]:
    """The names that are not the function's own variables; see `_names`."""
    outer: set[str] = set()
    codes = [fn.fn.__code__]
    while codes:  # comprehensions have code of their own
        code = codes.pop()
        outer.update(code.co_names, code.co_freevars)
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return sorted(chain for chain in _names(fn.tree) if chain[0] in outer)


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


@functools.lru_cache(maxsize=None)
def _front_end_key() -> bytes:
    """The front-end's own sources: they change IR as much as a kernel's do."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    fields: list[bytes] = []
    for folder in ("language", "frontend", "compiler", "runtime"):
        root = os.path.join(package, folder)
        for name in sorted(os.listdir(root)):
            if name.endswith(".py"):
                with open(os.path.join(root, name), "rb") as file:
                    fields += [f"{folder}/{name}".encode(), file.read()]
    return digest(*fields)
