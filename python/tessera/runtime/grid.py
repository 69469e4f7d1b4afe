# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The grid of a launch: how many programs there are in each of three directions.

The core says what a grid may be (python/src/Grid.h). Here are the errors for anything else."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence, SupportsIndex, Union

from tessera import _C
from tessera.errors import LaunchError
from tessera.language import types
from tessera.language.callables import Param
from tessera.wording import shown, with_article

if TYPE_CHECKING:
    from tessera.compiler.options import CompileOptions

Extents = Union[SupportsIndex, Sequence[SupportsIndex]]

Grid = Union[Extents, Callable[[Mapping[str, Any]], Extents]]
"""An integer or one to three, or a function that returns such, of the kernel's arguments by name."""

_LIMIT = (1 << 31) - 1


def normalize_grid(grid: Any, meta: Mapping[str, Any]) -> tuple[int, int, int]:
    """Three extents from a grid, which may be a function of the kernel's arguments.

    Raises LaunchError (E052) for anything else, and what the function raises. An extent of 0
    launches nothing.
    """
    is_function = callable(grid) and not isinstance(grid, (tuple, list))
    extents = grid(meta) if is_function else grid
    found = _C.read_grid(extents)
    if found is None:
        raise _describe(extents, "the grid function returned" if is_function else "the grid is")
    return found


def _describe(extents: Any, got: str) -> LaunchError:
    """The error of a grid."""
    usage = "use n, (n,), (n, m) or (n, m, k)"
    items = extents if isinstance(extents, (tuple, list)) else (extents,)
    if not 1 <= len(items) <= 3:
        return LaunchError("E052", f"the grid {shown(extents)} has {len(items)} extents", usage)
    for item in items:
        try:
            value = operator.index(item)
        except TypeError:
            if items is not extents:
                return LaunchError(
                    "E052", f"{got} {shown(extents)}, not one to three integers", usage
                )
            return LaunchError(
                "E052",
                f"the grid {shown(extents)} has the extent {shown(item)}, {with_article(type(item).__name__)}",
                "use integers (`//` or tessera.cdiv, not `/`)",
            )
        if not 0 <= value <= _LIMIT:
            return LaunchError(
                "E052",
                f"the grid {shown(extents)} has the extent {shown(value)}",
                f"use 0 to {_LIMIT}",
            )
    return LaunchError("E052", f"{got} {shown(extents)}, which changed while it was read", usage)


class Meta(Mapping[str, Any]):
    """The argument of a grid function: arguments and options by name."""

    def __init__(
        self, params: Sequence[Param], values: Sequence[Any], options: "CompileOptions"
    ) -> None:
        self._values = {param.name: types.unwrap(value) for param, value in zip(params, values)}
        self._options = options

    def __getitem__(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        if isinstance(name, str) and not name.startswith("_") and hasattr(self._options, name):
            return getattr(self._options, name)
        raise KeyError(name)

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
