# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`and`, `or` and chains of comparisons.

For scalars, `a and b` is `b` if `a` is true, and otherwise a zero of the type of `b`. `a or b` is
`a` if that is true, and otherwise `b`, in the promoted type of both. So the values are Python's.
Both sides are computed, in order, but a constant that decides ends the evaluation, as in Python.

For tiles, and where only the truth value counts (the condition of an `if`, an operand of `not`),
the result is an int1. There operands may also be of types that have no common one.
"""

from __future__ import annotations

import ast
from typing import Any, Optional, cast

from tessera.errors import UserMistake
from tessera.frontend.chains import bits_without_parentheses, describe_chain, is_bit_operation
from tessera.frontend.constants import is_number
from tessera.frontend.expressions import truth
from tessera.frontend.part import Part
from tessera.frontend.scope import MISSING
from tessera.language.tensor import (
    binary,
    describe,
    emit_one,
    known_value,
    literal_dtype,
    specialised_value,
    tensor,
)
from tessera.language.types import unwrap


class Logic(Part):
    """Visits `and`, `or` and comparisons."""

    _tested: Optional[ast.expr] = None
    """The expression that is visited next, if its truth alone counts."""

    def visit_test(self, node: ast.expr) -> Any:
        """Visits an expression of which the truth alone counts."""
        self._tested = node if isinstance(node, ast.BoolOp) else None
        return self.walker.visit(node)

    # --- and, or --------------------------------------------------------------------------

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        is_test, self._tested = node is self._tested, None
        is_and = isinstance(node.op, ast.And)
        operands = []
        for part in node.values:
            value = self.visit_test(part) if is_test else self.walker.visit(part)
            known = known_value(value)
            if isinstance(known, tensor):
                operands.append(value)
            elif bool(known) != is_and:  # decides the whole
                operands.append(value)
                break
            elif part is node.values[-1]:
                operands.append(value)
        if len(operands) == 1:
            return operands[0]
        if is_test:
            return _truth_of_all(is_and, operands)
        if any(isinstance(value, tensor) and value.shape for value in operands):
            return self._of_tiles(node, is_and, operands)
        return self._of_scalars(node, is_and, operands)

    def _of_tiles(self, node: ast.BoolOp, is_and: bool, operands: list[Any]) -> Any:
        number = known_value(operands[-1])
        if is_number(number) and number not in (0, 1):
            word = "and" if is_and else "or"
            tile = next(value for value in operands if isinstance(value, tensor) and value.shape)
            raise UserMistake(
                "E032",
                f"`{word}` of {describe(tile)} and {describe(number)}: for tiles, it gives truth "
                "values only",
                f"choose elements with tl.where(x != 0, {'number, x' if is_and else 'x, number'})",
                node=node,
            )
        result = _truth_of_all(is_and, operands)
        return _as_bool(result) if isinstance(result, tensor) else result

    def _of_scalars(self, node: ast.BoolOp, is_and: bool, operands: list[Any]) -> Any:
        last = known_value(operands[-1])
        if not isinstance(last, tensor):
            if is_and and not last and not isinstance(last, float):
                # Zero on every path, be it the constant or what stands before it.
                return last if is_number(last) else False
            if not is_number(last):
                self._refuse_types(node, operands[-2], operands[-1])
        # A false value before an int1 is a zero, which equals False.
        if all(map(_is_bool, operands)) or (is_and and _is_bool(operands[-1])):
            result = _truth_of_all(is_and, operands)
            return _as_bool(result) if isinstance(result, tensor) else result
        result = operands[-1]
        for operand in reversed(operands[:-1]):
            make = self._and if is_and else self._or
            result = make(node, operand, result)
        return result

    def _and(self, node: ast.BoolOp, left: Any, right: Any) -> tensor:
        right = unwrap(right)
        type = right.type if isinstance(right, tensor) else literal_dtype(right)
        left = unwrap(left)
        if type.is_floating() and left.dtype.is_floating():
            zero = emit_one("cast", left, type, None, False)  # which may be -0.0
        else:
            zero = self.walker.branches.zeros(type)
        return _choose(_as_bool(left), right, zero)

    def _or(self, node: ast.BoolOp, left: Any, right: Any) -> tensor:
        left, right = unwrap(left), unwrap(right)
        other = right.dtype if isinstance(right, tensor) else None
        if left.dtype.is_ptr() or (other is not None and other.is_ptr()):
            if left.dtype != other:
                self._refuse_types(node, left, right)
        if is_number(right) and not right and left.dtype.is_int() and not isinstance(right, float):
            return cast(tensor, left)  # of which 0 is the only value that is false
        if left.dtype.is_bool() and is_number(right) and not _is_bool(right):
            right = tensor._known(right)  # a literal of its own type, which no bool holds
        return _choose(_as_bool(left), left, right)

    def _refuse_types(self, node: ast.BoolOp, left: Any, right: Any) -> None:
        word = "and" if isinstance(node.op, ast.And) else "or"
        raise UserMistake(
            "E037",
            f"`{word}` gives one of its operands, {describe(left)} or {describe(right)}, which "
            "have no common type",
            "use it as the condition of an `if`, or compare the operands: `x != 0`",
            node=node,
        )

    # --- Comparisons ------------------------------------------------------------------------

    def visit_Compare(self, node: ast.Compare) -> Any:
        unclear = bits_without_parentheses(node, self.walker.source)
        left, left_node = self.walker.visit(node.left), node.left
        seen = [left]
        result: Any = True
        for op, comparator in zip(node.ops, node.comparators):
            if comparator in unclear:
                right = self._visit_bits(comparator, node, seen)
            else:
                right = self.walker.visit(comparator)
            if unclear:
                seen.append(right)
                _refuse_tiles(node, seen, unclear)
            with self.walker.expressions.naming_operands((left_node, left), (comparator, right)):
                part = self.walker.expressions.compare(op, left, right)
            if result is True:
                result = part
            elif isinstance(result, tensor) or isinstance(part, tensor):
                if not isinstance(part, tensor):
                    result = result if part else False
                else:
                    result = binary("logical_and", result, part)
            else:
                result = result and part
            if result is False:
                return False
            left, left_node = right, comparator
        return result

    def _visit_bits(self, node: ast.expr, chain: ast.Compare, seen: list[Any]) -> Any:
        """Visits the operand of a chain, and looks for tiles before an operator fails on them."""
        if not is_bit_operation(node):
            value = self.walker.visit(node)
            seen.append(value)
            return value
        assert isinstance(node, ast.BinOp)
        left = self._visit_bits(node.left, chain, seen)
        right = self._visit_bits(node.right, chain, seen)
        _refuse_tiles(chain, seen, [node])
        self.walker.locate(node)
        with self.walker.expressions.naming_operands((node.left, left), (node.right, right)):
            return self.walker.expressions.binary_operator(type(node.op).__name__, left, right)


def _refuse_tiles(node: ast.Compare, seen: list[Any], unclear: list[ast.expr]) -> None:
    if not any(isinstance(value, tensor) and value.shape for value in seen):
        return
    message, fix = describe_chain(node, unclear)
    raise UserMistake("E083", message, fix, node=node)


def _is_bool(value: Any) -> bool:
    """True if a scalar is an int1, or a constant that an int1 can be."""
    known = known_value(value)
    if isinstance(known, tensor):
        return known.dtype.is_bool()
    return is_number(known) and not isinstance(known, float) and known in (0, 1)


def _as_bool(value: tensor) -> tensor:
    """True if a tensor is true, as an int1 of its shape."""
    value = truth(value)
    return value if value.dtype.is_bool() else binary("ne", value, 0)


def _truth_of_all(is_and: bool, operands: list[Any]) -> Any:
    """The truth of `and` or `or`: a bool, or a tensor that is true where the whole is."""
    result: Any = MISSING
    for value in operands:
        known = known_value(value)
        if not isinstance(known, tensor):
            if bool(known) != is_and:
                return not is_and
            continue
        value = truth(value)
        result = (
            value
            if result is MISSING
            else binary("logical_and" if is_and else "logical_or", result, value)
        )
    return result


def _choose(condition: tensor, first: Any, second: Any) -> tensor:
    result = emit_one("where", condition, first, second)
    holds = specialised_value(condition)
    if holds is not None:
        chosen = specialised_value(first if holds else second)
        if isinstance(chosen, (bool, int)) and literal_dtype(chosen) == result.type:
            result._specialised = chosen
    return result
