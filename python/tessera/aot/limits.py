# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a specialisation takes for granted of a launch, as tables of C (`tessera_limits`).

A kernel's metadata says it in the forms of include/tessera/Runtime/CUDA: sums of products of
arguments (`LaunchExpression`) and texts (`ProgramBound`). Both become formulas of one kind, steps
with operands first, which runtime/tessera_aot_limits.c computes.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, Sequence

Step = tuple[str, int, int]
"""An operation of tessera_aot.h without its prefix, its bits and its number."""

_LEAVES = {"program": "PROGRAM", "extent": "EXTENT"}

_MOST_OPERANDS = 40
"""MOST_OPERANDS of tessera_aot_limits.c."""


def has_limits(metadata: Mapping[str, Any]) -> bool:
    """True if a kernel takes anything for granted of a launch."""
    lists = ("tensor_maps", "launch_conditions", "arrays_apart", "program_bounds")
    numbers = ("most_programs", "persistent_programs")
    return any(metadata[name] for name in lists + numbers)


def sum_formula(terms: Sequence[Sequence[Any]]) -> list[Step]:
    """The steps of a sum of products: [[factor, [argument, its bits], ...], ...]."""
    steps: list[Step] = []
    for number, (scale, *factors) in enumerate(terms or [[0]]):
        operands: list[Step] = [("ARGUMENT", bits, argument) for argument, bits in factors]
        if scale != 1 or not operands:
            operands.insert(0, ("CONSTANT", 64, scale))
        steps.append(operands[0])
        for operand in operands[1:]:
            steps += [operand, ("MUL", 64, 0)]
        if number > 0:
            steps.append(("ADD", 64, 0))
    return steps


def text_formula(text: str) -> list[Step]:
    """The steps of a text such as "(sub32 i32:3 (mul32 program:0 8))"."""
    steps: list[Step] = []
    operators: list[str] = []
    for token in re.findall(r"\(\S+|\)|[^\s()]+", text):
        if token.startswith("("):
            operators.append(token[1:])
        elif token == ")":
            operator = operators.pop()
            name, bits = operator.rstrip("0123456789"), operator.lstrip(
                "abcdefghijklmnopqrstuvwxyz"
            )
            # That of a loop is its step.
            is_loop = name == "loop"
            steps.append(
                (name.upper(), 64 if is_loop else int(bits or 64), is_loop * int(bits or 1))
            )
        else:
            name, _, number = token.rpartition(":")
            if name in ("i32", "i64"):
                steps.append(("ARGUMENT", int(name[1:]), int(number)))
            else:
                steps.append((_LEAVES[name] if name else "CONSTANT", 64, int(number)))
    return steps


def declare_limits(symbol: str, metadata: Mapping[str, Any]) -> list[str]:
    """The lines of C that define `SYMBOL_limits` from a kernel's metadata."""
    return _Tables(symbol).declare(metadata)


class _Tables:
    """The tables of a specialisation: a formula is written once, however often it is used."""

    def __init__(self, symbol: str) -> None:
        self._symbol = symbol
        self._lines: list[str] = []
        self._formulas: dict[tuple[Step, ...], str] = {}
        self._num_dims = 0

    def declare(self, metadata: Mapping[str, Any]) -> list[str]:
        conditions = [self._formula(sum_formula(each)) for each in metadata["launch_conditions"]]
        conditions += [self._formula(text_formula(each)) for each in metadata["program_bounds"]]
        apart = [
            f"{{{self._array(first, 'argument')}, {self._array(second, 'argument')}}}"
            for first, second in metadata["arrays_apart"]
        ]
        maps = [
            f"{{{self._array(each, 'base')}, {each['element']}, {each['swizzle']}}}"
            for each in metadata["tensor_maps"]
        ]
        lists = {
            "conditions": self._list("tessera_step *const", "conditions", conditions),
            "apart": self._list("tessera_array_pair", "apart", apart),
            "maps": self._list("tessera_tensor_map", "maps", maps),
        }
        fields = {
            "most_programs": str(metadata["most_programs"]),
            "num_conditions": str(len(conditions)),
            "num_apart": str(len(apart)),
            "num_maps": str(len(maps)),
            **{name: place for name, place in lists.items() if place},
        }
        text = ", ".join(f".{name} = {value}" for name, value in fields.items())
        return [*self._lines, f"static const tessera_limits {self._symbol}_limits = {{{text}}};"]

    def _define(self, type_name: str, name: str, items: Sequence[str]) -> str:
        self._lines.append(
            f"static const {type_name} {self._symbol}_{name}[] = {{{', '.join(items)}}};"
        )
        return f"{self._symbol}_{name}"

    def _list(self, type_name: str, name: str, items: Sequence[str]) -> str:
        return self._define(type_name, name, items) if items else ""

    def _formula(self, steps: Sequence[Step]) -> str:
        key = tuple(steps)
        if key not in self._formulas:
            assert _count_operands(key) <= _MOST_OPERANDS
            items = [f"{{TESSERA_{name}, {bits}, {_number(number)}}}" for name, bits, number in key]
            name = f"formula_{len(self._formulas)}"
            self._formulas[key] = self._define(
                "tessera_step", name, [*items, "{TESSERA_END, 0, 0}"]
            )
        return self._formulas[key]

    def _array(self, array: Mapping[str, Any], argument: str) -> str:
        dims = [
            f"{{{self._formula(sum_formula(dim['extent']))}, "
            f"{self._formula(sum_formula(dim['stride']))}, {dim.get('box', 0)}, "
            f"{self._formula(text_formula(dim['first'])) if 'first' in dim else 'NULL'}}}"
            for dim in array["dims"]
        ]
        self._num_dims += 1
        place = self._list("tessera_dim", f"dims_{self._num_dims}", dims) or "NULL"
        return f"{{{array[argument]}, {array['bytes']}, {len(dims)}, {place}}}"


def _count_operands(steps: Sequence[Step]) -> int:
    """The most operands that are there at once."""
    size = most = 0
    for name, _, _ in steps:
        if name in ("CONSTANT", "ARGUMENT", "PROGRAM", "EXTENT"):
            size += 1
        elif name != "UNSIGNED":
            size -= 1
        most = max(most, size)
    return most


def _number(number: int) -> str:
    """As C writes it: there is no literal of -2^63."""
    return f"INT64_C({number})" if number > -(1 << 63) else "INT64_MIN"
