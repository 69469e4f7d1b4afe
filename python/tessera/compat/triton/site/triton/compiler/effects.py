# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments that a kernel stores to, in the form of IR that torch.compile reads.

torch walks the ops of a module and recognises some by name. So this is a module of one function
with a load of each pointer, and two stores to each pointer that Tessera's IR may store to. If a
kernel has only one store, torch may move code behind it, and then searches for its text.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

__all__ = ["Context", "Effects", "load_dialects"]


class Context:
    """The context that torch makes for a module."""


def load_dialects(context: Context) -> None:
    """There are none to load."""


class _Numbered:
    def __init__(self, number: int) -> None:
        self._number = number

    def id(self) -> int:
        """A number that no other object of this kind has."""
        return self._number


class _Block(_Numbered):
    def __init__(self, count: int) -> None:
        super().__init__(0)
        self._arguments = [_Numbered(index) for index in range(count)]

    def get_num_arguments(self) -> int:
        return len(self._arguments)

    def get_argument(self, index: int) -> _Numbered:
        return self._arguments[index]

    def get_parent(self) -> _Numbered:
        return _Numbered(0)


class _Op:
    def __init__(
        self,
        name: str,
        operands: Sequence[_Numbered] = (),
        results: Sequence[_Numbered] = (),
        block: Optional[_Block] = None,
        symbol: str = "",
    ) -> None:
        self._name = name
        self._operands = operands
        self._results = results
        self._block = block
        self._symbol = symbol

    def get_name(self) -> str:
        return self._name

    def get_num_operands(self) -> int:
        return len(self._operands)

    def get_operand(self, index: int) -> _Numbered:
        return self._operands[index]

    def get_num_results(self) -> int:
        return len(self._results)

    def get_result(self, index: int) -> _Numbered:
        return self._results[index]

    def get_num_regions(self) -> int:
        return 1 if self._symbol else 0

    def get_region(self, index: int) -> _Numbered:
        return _Numbered(0)

    def get_block(self) -> Optional[_Block]:
        return self._block

    def get_str_attr(self, name: str) -> str:
        return self._symbol


class Effects:
    """The module. `count` arguments of the function, those `pointers` loaded from, `stored` to."""

    def __init__(
        self, name: str, count: int, pointers: Sequence[int], stored: Sequence[int]
    ) -> None:
        block = _Block(count)
        argument = block.get_argument
        self._ops = [
            *(
                _Op("tt.load", [argument(index)], [_Numbered(count + at)], block)
                for at, index in enumerate(pointers)
            ),
            *(_Op("tt.store", [argument(index)], (), block) for index in (*stored, *stored)),
            _Op("tt.return", (), (), block),
            _Op("tt.func", symbol=name),
        ]

    def verify(self) -> bool:
        """The IR that it stands for is verified as it is built."""
        return True

    def walk(self, visit: Callable[[Any], None]) -> None:
        """Calls `visit` with each op, the innermost first."""
        for op in self._ops:
            visit(op)
