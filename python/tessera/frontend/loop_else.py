# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `else` of a loop, written as an `if` behind it.

    for i in r:                    flag = False
        ...                        for i in r:
        break                          ...
    else:              becomes         flag = True; break
        last()                     if not flag:
                                       last()

No later code depends on it, and without a `break` in the loop there is no flag.
"""

from __future__ import annotations

import ast
from typing import Optional, Union

Loop = Union[ast.For, ast.While]


class _Flag:
    """That of one loop: whether a `break` has left it."""

    def __init__(self, node: Loop) -> None:
        # The percent sign keeps it from the names that a user can write.
        self.name = f"%else{node.lineno}.{node.col_offset}"
        self.is_needed = False

    def assign(self, value: bool, place: ast.stmt) -> ast.stmt:
        target = ast.Name(self.name, ast.Store())
        return _at(ast.Assign([target], ast.Constant(value)), place)


def _at(node: ast.stmt, place: ast.stmt) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(node, place))


class _Rewriter(ast.NodeTransformer):
    def __init__(self) -> None:
        self.flag: Optional[_Flag] = None
        """That of the innermost loop around, if it has an `else`."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        # Statements alone are looked at; no expression holds one.
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, self._visit_block(value))
            elif name in ("handlers", "cases"):
                for item in value:
                    self.generic_visit(item)
        return node

    def visit_For(self, node: ast.For) -> Union[ast.stmt, list[ast.stmt]]:
        return self._visit_loop(node)

    def visit_While(self, node: ast.While) -> Union[ast.stmt, list[ast.stmt]]:
        return self._visit_loop(node)

    def visit_Break(self, node: ast.Break) -> Union[ast.stmt, list[ast.stmt]]:
        if self.flag is None:
            return node
        self.flag.is_needed = True
        return [self.flag.assign(True, node), node]

    def _visit_loop(self, node: Loop) -> Union[ast.stmt, list[ast.stmt]]:
        outer = self.flag
        flag = self.flag = _Flag(node) if node.orelse else None
        node.body = self._visit_block(node.body)
        self.flag = outer
        # A `break` in here is one of the loop around.
        otherwise, node.orelse = self._visit_block(node.orelse), []
        if flag is None:
            return node
        if not flag.is_needed:
            return [node, *otherwise]
        test = ast.UnaryOp(ast.Not(), ast.Name(flag.name, ast.Load()))
        follows = ast.If(test, otherwise, [])
        return [flag.assign(False, node), node, _at(follows, otherwise[0])]

    def _visit_block(self, block: list[ast.stmt]) -> list[ast.stmt]:
        statements: list[ast.stmt] = []
        for statement in block:
            visited = self.visit(statement)
            statements.extend(visited if isinstance(visited, list) else [visited])
        return statements


def write_out_loop_else(tree: ast.FunctionDef) -> ast.FunctionDef:
    """The function without any `else` of loops."""
    tree.body = _Rewriter()._visit_block(tree.body)
    return tree
