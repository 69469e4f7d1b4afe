# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks without parentheses: `r < M & c < N`, which Python reads as the chain `r < (M & c) < N`."""

from __future__ import annotations

import ast
from typing import Sequence

from tessera.frontend.source import FunctionSource

_BITS = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_COMPARISONS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_LOOSER = (ast.Compare, ast.BoolOp, ast.IfExp, ast.NamedExpr, ast.Lambda)


def is_bit_operation(node: ast.AST) -> bool:
    """True if it is `a & b`, `a | b` or `a ^ b`."""
    return isinstance(node, ast.BinOp) and type(node.op) in _BITS


def bits_without_parentheses(node: ast.Compare, source: FunctionSource) -> list[ast.expr]:
    """The operands in the middle of a chain that are `a & b`, `a | b` or `a ^ b`, without
    parentheses around them."""
    if len(node.ops) < 2:
        return []
    before = [node.left, *node.comparators]
    return [
        operand
        for last, operand in zip(before, node.comparators[:-1])
        if is_bit_operation(operand) and "(" not in _between(last, operand, source)
    ]


def _between(last: ast.expr, operand: ast.expr, source: FunctionSource) -> str:
    """The text between two operands: the operator, parentheses, spaces."""
    if last.end_lineno is None or last.end_col_offset is None:
        return ""
    pieces = []
    for number in range(last.end_lineno, operand.lineno + 1):
        index = number - source.first_line
        line = source.lines[index].encode() if 0 <= index < len(source.lines) else b""
        end = operand.col_offset if number == operand.lineno else len(line)
        start = last.end_col_offset if number == last.end_lineno else 0
        pieces.append(line[start:end].partition(b"#")[0].decode(errors="replace"))
    return " ".join(pieces)


def describe_chain(node: ast.Compare, unclear: Sequence[ast.expr]) -> tuple[str, str]:
    """The error of a chain of tiles through these operands, and its fix."""
    middle = unclear[0]
    assert isinstance(middle, ast.BinOp)
    bits = _BITS[type(middle.op)]
    chain = _spelled(node.left)
    for op, operand in zip(node.ops, node.comparators):
        text = _spelled(operand)
        text = f"({text})" if is_bit_operation(operand) else text
        chain += f" {_COMPARISONS[type(op)]} {text}"
    message = (
        f"a mask without parentheses: `{bits}` binds more tightly than "
        f"`{_COMPARISONS[type(node.ops[0])]}`, so this is the chain `{chain}`"
    )
    return message, f"write {_with_parentheses(node)}"


def _with_parentheses(node: ast.Compare) -> str:
    """The text with each comparison in parentheses of its own."""
    done = ""
    current = _spelled(node.left)
    for op, operand in zip(node.ops, node.comparators):
        current += f" {_COMPARISONS[type(op)]} "
        if operand is node.comparators[-1] or not is_bit_operation(operand):
            current += _spelled(operand)
            continue
        first, *rest = _flat(operand)
        done += f"({current}{first})"
        for text in rest[:-1]:
            done += f" {text}"
        done += " "
        current = rest[-1]
    return f"{done}({current})"


def _flat(node: ast.expr) -> list[str]:
    """The operands and operators of `a & b | c`, those in parentheses of their own as one."""
    if not is_bit_operation(node):
        return [_spelled(node)]
    assert isinstance(node, ast.BinOp)
    left, right = node.left, node.right
    starts_with = (left.lineno, left.col_offset) == (node.lineno, node.col_offset)
    ends_with = (right.end_lineno, right.end_col_offset) == (node.end_lineno, node.end_col_offset)
    return [
        *(_flat(left) if starts_with else [_in_parentheses(left)]),
        _BITS[type(node.op)],
        *(_flat(right) if ends_with else [_in_parentheses(right)]),
    ]


def _spelled(node: ast.expr) -> str:
    text = ast.unparse(node)
    return f"({text})" if isinstance(node, _LOOSER) else text


def _in_parentheses(node: ast.expr) -> str:
    text = ast.unparse(node)
    return f"({text})" if is_bit_operation(node) or isinstance(node, _LOOSER) else text
