# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names: their values at a point of a function, and the names that a piece of source reads or
assigns.

A scope maps names to values. Values known at compile time are plain Python objects, tensors are
`tl.tensor`, tuples hold either. Three hidden names record early returns, breaks and continues; they
are merged and carried like any variable.
"""

from __future__ import annotations

import ast
from typing import Any, Iterable, Iterator, NamedTuple, Optional, Sequence

from tessera.frontend.source import child_nodes

RETURNED, RESULT, BROKE, CONTINUED = "%returned", "%result", "%broke", "%continued"
EXIT_FLAGS = (RETURNED, BROKE, CONTINUED)
HIDDEN = frozenset((RETURNED, RESULT, BROKE, CONTINUED))

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()
"""Stands for the value of a name that has none."""


class Undefined(NamedTuple):
    """Why a name has no value although the function assigns it somewhere."""

    line: int
    """The place of an assignment to it, on some path."""
    construct: str
    """`if`, `for`, `while`."""


class Scope:
    """The values of a function's names at one point of it."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.undefined: dict[str, Undefined] = {}

    def copy(self) -> "Scope":
        """A scope with the same names."""
        other = Scope()
        other.values = dict(self.values)
        other.undefined = dict(self.undefined)
        return other

    def get(self, name: str) -> Any:
        """The value of `name`, or MISSING."""
        return self.values.get(name, MISSING)

    def set(self, name: str, value: Any) -> None:
        """Gives `name` a value."""
        self.values[name] = value
        self.undefined.pop(name, None)

    def drop(self, name: str, reason: Undefined) -> None:
        """Takes the value of `name` away."""
        self.values.pop(name, None)
        self.undefined[name] = reason


# --- Which names a piece of source touches -------------------------------------------
#
# Results are kept on the nodes, since nested regions ask for the same ones again.


_NAMING = frozenset((ast.Name, ast.AugAssign, ast.comprehension))


def _names(tree: ast.AST) -> Sequence[ast.AST]:
    """The nodes of a tree that have names, cached, so that all queries need one walk.

    A statement's result includes those of the statements in it.
    """
    found: Optional[list[ast.AST]] = getattr(tree, "_tsr_names", None)
    if found is None:
        found = []
        pending = [tree]
        for node in pending:  # which grows
            if isinstance(node, ast.stmt) and node is not tree:
                found.extend(_names(node))
                continue
            if node.__class__ in _NAMING:
                found.append(node)
            pending.extend(child_nodes(node))
        setattr(tree, "_tsr_names", found)
    return found


def _stores(trees: Iterable[ast.AST], name: str) -> Iterator[ast.Name]:
    """The nodes that assign `name`."""
    for tree in trees:
        for node in _names(tree):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
                yield node


def _cached(node: ast.AST, attribute: str, compute: Any) -> frozenset[str]:
    found = getattr(node, attribute, None)
    if found is None:
        found = frozenset(compute(node))
        setattr(node, attribute, found)
    return found


def _assigned(node: ast.AST) -> Iterator[str]:
    # A comprehension's variables are its own: names beside it that are spelled alike are not.
    own = {
        id(name)
        for comprehension in _names(node)
        if isinstance(comprehension, ast.comprehension)
        for name in ast.walk(comprehension.target)
    }
    for child in _names(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            if id(child) not in own:
                yield child.id


def _loaded(node: ast.AST) -> Iterator[str]:
    for child in _names(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
            yield child.id
        elif isinstance(child, ast.AugAssign) and isinstance(child.target, ast.Name):
            yield child.target.id


def assigned_names(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """The names that the nodes give a value."""
    return frozenset().union(*(_cached(node, "_tsr_assigned", _assigned) for node in nodes))


def loaded_names(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """The names that the nodes read."""
    return frozenset().union(*(_cached(node, "_tsr_loaded", _loaded) for node in nodes))


def exposed_names(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """The names that the nodes, run in order, may read before giving them a value."""
    exposed: set[str] = set()
    _expose(nodes, set(), exposed)
    return frozenset(exposed)


def _expose(nodes: Sequence[ast.AST], defined: set[str], exposed: set[str]) -> None:
    for node in nodes:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            if node.value is not None:
                exposed |= loaded_names([node.value]) - defined
                defined |= assigned_names([node])
        elif isinstance(node, ast.If):
            exposed |= loaded_names([node.test]) - defined
            then, otherwise = set(defined), set(defined)
            _expose(node.body, then, exposed)
            _expose(node.orelse, otherwise, exposed)
            defined |= then & otherwise
        elif isinstance(node, ast.For):
            exposed |= loaded_names([node.iter]) - defined
            _expose(node.body, defined | assigned_names([node.target]), exposed)
        elif isinstance(node, ast.While):
            exposed |= loaded_names([node.test]) - defined
            _expose(node.body, set(defined), exposed)
        else:
            exposed |= loaded_names([node]) - defined


def assignment_line(nodes: Sequence[ast.AST], name: str) -> int:
    """The line where the nodes first assign `name`; 0 if they do not."""
    return min((node.lineno for node in _stores(nodes, name)), default=0)


def terminates(statements: Sequence[ast.stmt]) -> bool:
    """True if control never runs out of the end of these statements."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return terminates(last.body) and terminates(last.orelse)
    return isinstance(last, (ast.Return, ast.Break, ast.Continue))


def has_exit(nodes: Sequence[ast.AST], in_loop: bool = False) -> bool:
    """True if the nodes have a return, or a break that belongs to a loop around them."""
    for node in nodes:
        if isinstance(node, ast.Return) or (isinstance(node, ast.Break) and not in_loop):
            return True
        inner = in_loop or isinstance(node, (ast.For, ast.While))
        below = [child for child in child_nodes(node) if not isinstance(child, ast.expr)]
        if below and has_exit(below, inner):
            return True
    return False


def first_store(nodes: Sequence[ast.AST], name: str) -> Optional[ast.Name]:
    """The node that first assigns `name`."""
    return next(_stores(nodes, name), None)
