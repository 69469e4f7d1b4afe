# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The grid of a launch: how many programs there are in each of three directions."""

from __future__ import annotations

import operator
from typing import Any, Callable, Mapping, Sequence, Union

from tessera.errors import LaunchError
from tessera.wording import shown, with_article

Grid = Union[Sequence[int], Callable[[Mapping[str, Any]], Sequence[int]]]
"""One to three extents, or a function that returns them, of the kernel's arguments by name."""

_LIMIT = (1 << 31) - 1


def normalize_grid(grid: Any, meta: Mapping[str, Any]) -> tuple[int, int, int]:
    """Three extents from a tuple of one to three, or from a function of the kernel's arguments.

    Raises LaunchError (E052) for anything else. An extent of 0 launches nothing.
    """
    extents = grid
    if callable(grid):
        try:
            extents = grid(meta)
        except Exception as error:
            raise LaunchError(
                "E052",
                f"the grid function failed: {type(error).__name__}: {error}",
                f"it is called with a dict of {', '.join(meta) or 'nothing'}",
            ) from error
    if not isinstance(extents, (tuple, list)):
        got = "the grid function returned" if callable(grid) else "the grid is"
        usage = f"({extents},)" if isinstance(extents, int) else "(n,), (n, m) or (n, m, k)"
        raise LaunchError("E052", f"{got} {shown(extents)}, not a tuple", f"use {usage}")
    if not 1 <= len(extents) <= 3:
        raise LaunchError(
            "E052", f"the grid {shown(extents)} has {len(extents)} extents", "use one to three"
        )
    checked = []
    for extent in extents:
        try:
            value = operator.index(extent)
        except TypeError:
            raise LaunchError(
                "E052",
                f"the grid {shown(extents)} has the extent {shown(extent)}, {with_article(type(extent).__name__)}",
                "use integers (`//` or tessera.cdiv, not `/`)",
            ) from None
        if not 0 <= value <= _LIMIT:
            raise LaunchError(
                "E052",
                f"the grid {shown(extents)} has the extent {shown(value)}",
                f"use 0 to {_LIMIT}",
            )
        checked.append(value)
    return (*checked, *(1,) * (3 - len(checked)))  # type: ignore[return-value]
