# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hints that stand alone: `tl.multiple_of(x, 16)` as a statement is `x = tl.multiple_of(x, 16)`.

A hint returns its operand with the promise. Kernels often do not use the result, since in other
implementations of the language the hint changes the variable.
"""

from __future__ import annotations

import ast
from typing import Any

from tessera.language import program

_HINTS = {
    "multiple_of": program.multiple_of,
    "max_contiguous": program.max_contiguous,
    "max_constancy": program.max_constancy,
}


class StandingHint(ast.Assign):
    """The assignment that such a statement becomes."""

    def is_hint(self, function: Any) -> bool:
        """True if it does call a hint, and not a user's own function of that name."""
        return any(function is hint for hint in _HINTS.values())


class _Rewriter(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        call = node.value
        if not isinstance(call, ast.Call) or not call.args:
            return node
        function, first = call.func, call.args[0]
        name = function.attr if isinstance(function, ast.Attribute) else None
        if isinstance(function, ast.Name):
            name = function.id
        if name not in _HINTS or not isinstance(first, ast.Name):
            return node
        target = ast.copy_location(ast.Name(first.id, ast.Store()), first)
        return ast.copy_location(StandingHint([target], call), node)


def assign_hints(tree: ast.FunctionDef, text: str) -> ast.FunctionDef:
    """The function, whose source is `text`, with hints assigned to what they are about."""
    if any(name in text for name in _HINTS):
        _Rewriter().visit(tree)
    return tree
