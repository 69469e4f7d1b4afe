# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The assumptions of a specialisation about a launch, as tables of C (`tessera_limits`).

The core has these tables for its own launches (include/tessera/Runtime/CUDA/LaunchLimits.h), and
says what is in them (`Kernel.limits`). Here they are written down once more, for
tessera_limits.c to evaluate them in a program without the core.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

Step = tuple[str, int, int]
"""An operation of tessera_limits.h without its prefix, its bits and its number."""


def declare_limits(symbol: str, limits: Mapping[str, Any]) -> list[str]:
    """The lines of C that define `SYMBOL_limits`, from what `Kernel.limits` returns."""
    return _Tables(symbol).declare(limits)


class _Tables:
    """The tables of a specialisation: a formula is written once, however often it is used."""

    def __init__(self, symbol: str) -> None:
        self._symbol = symbol
        self._lines: list[str] = []
        self._formulas: dict[tuple[Step, ...], str] = {}
        self._num_dims = 0

    def declare(self, limits: Mapping[str, Any]) -> list[str]:
        conditions = [self._formula(each) for each in limits["conditions"]]
        apart = [
            f"{{{self._array(first)}, {self._array(second)}}}" for first, second in limits["apart"]
        ]
        maps = [
            f"{{{self._array(each['array'])}, {each['element']}, {each['swizzle_bytes']}}}"
            for each in limits["maps"]
        ]
        lists = {
            "conditions": self._list("tessera_step *const", "conditions", conditions),
            "apart": self._list("tessera_array_pair", "apart", apart),
            "maps": self._list("tessera_tensor_map", "maps", maps),
        }
        fields = {
            "most_programs": str(limits["most_programs"]),
            "counts_programs": str(int(limits["counts_programs"])),
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

    def _formula(self, steps: Sequence[Sequence[Any]]) -> str:
        key = tuple((name, bits, number) for name, bits, number in steps)
        if key not in self._formulas:
            items = [f"{{TESSERA_{name}, {bits}, {_number(number)}}}" for name, bits, number in key]
            name = f"formula_{len(self._formulas)}"
            self._formulas[key] = self._define(
                "tessera_step", name, [*items, "{TESSERA_END, 0, 0}"]
            )
        return self._formulas[key]

    def _array(self, array: Mapping[str, Any]) -> str:
        dims = [
            f"{{{self._formula(dim['extent'])}, {self._formula(dim['stride'])}, {dim['box']}, "
            f"{'NULL' if dim['first'] is None else self._formula(dim['first'])}}}"
            for dim in array["dims"]
        ]
        self._num_dims += 1
        place = self._list("tessera_dim", f"dims_{self._num_dims}", dims) or "NULL"
        return f"{{{array['argument']}, {array['element_bytes']}, {len(dims)}, {place}}}"


def _number(number: int) -> str:
    """As C writes it: there is no literal of -2^63."""
    return f"INT64_C({number})" if number > -(1 << 63) else "INT64_MIN"
