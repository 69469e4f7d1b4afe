# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and scans with a combining function of the user's own.

Those with a name (`sum`, `max`, `cumsum`, ...) are written on top in `standard.py`.
"""

from __future__ import annotations

from typing import Any, Optional

from tessera.frontend.errors import UserMistake
from tessera.frontend.signature import JITCallable
from tessera.language.tensor import (
    active,
    axis_of,
    builtin,
    constant_bool,
    describe,
    emit,
    emit_one,
    method,
    tensor,
    to_tensor_value,
)
from tessera.language.types import unwrap


def _operands(input: Any, what: str) -> tuple[list[tensor], bool]:
    """The tiles to combine, all of one shape, and whether they came as a tuple."""
    input = unwrap(input)
    is_tuple = isinstance(input, (tuple, list))
    tiles = [to_tensor_value(one) for one in (input if is_tuple else (input,))]
    if not tiles:
        raise UserMistake("E024", f"{what} got an empty tuple", "pass a tile")
    for tile in tiles[1:]:
        if tile.shape != tiles[0].shape:
            shapes = ", ".join(describe(one) for one in tiles)
            raise UserMistake(
                "E022", f"{what} needs tiles of one shape, got {shapes}", "broadcast them first"
            )
    return tiles, is_tuple


def _combined(what: str, combine_fn: Any, count: int, scalars: tuple[tensor, ...]) -> list[Any]:
    """Visits the combining function on `scalars`; its results, cast to the operands' types."""
    combine_fn = unwrap(combine_fn)
    if not isinstance(combine_fn, JITCallable):
        raise UserMistake(
            "E016",
            f"combine_fn of {what} is {describe(combine_fn)}",
            "pass a function decorated with @jit",
        )
    results = active.session.call_function(combine_fn, list(scalars), {})
    if not isinstance(results, tuple) or hasattr(results, "_fields"):
        results = (results,) if not isinstance(results, tuple) else tuple(results)
    if len(results) != count:
        raise UserMistake(
            "E037",
            f"combine_fn of {what} returns {len(results)} values for {count} operands",
            f"return {count} values",
        )
    checked = []
    for result, wanted in zip(results, scalars[:count]):
        value = to_tensor_value(result)
        if value.shape:
            raise UserMistake(
                "E037", f"combine_fn of {what} returns {describe(value)}", "return scalars"
            )
        if value.type != wanted.type:
            value = emit_one("cast", value, wanted.type, None, False)
        checked.append(value)
    return checked


@method
@builtin
def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: bool = False) -> Any:
    """Combines the elements along `axis` with a @jit function of scalars.

    `input` is a tile or a tuple of n tiles of one shape; `combine_fn` takes 2n scalars and
    returns n, and must be associative and commutative. `axis=None` reduces all. The order
    of combining is not defined. Errors: E024 (axis), E037 (results of combine_fn).
    Source: Triton language 3.6/3.9.
    """
    tiles, is_tuple = _operands(input, "reduce")
    keep = constant_bool(keep_dims, "keep_dims")
    rank = len(tiles[0].shape)
    axis = unwrap(axis)
    if rank == 0:
        raise UserMistake(
            "E024", f"reduce got {describe(tiles[0])}, which has no axes", "pass a tile"
        )
    if axis is None:
        if rank > 1:
            tiles = [emit_one("reshape", tile, [tile.numel]) for tile in tiles]
        number = 0
    else:
        number = axis_of(axis, rank)
    scalars = emit("begin_reduce", tiles, number)
    combined = _combined("reduce", combine_fn, len(tiles), scalars)
    results = emit("end_reduce", combined)
    if keep:
        if axis is None:
            results = tuple(emit_one("broadcast_to", one, [1] * rank) for one in results)
        elif rank == 1:
            results = tuple(emit_one("broadcast_to", one, [1]) for one in results)
        else:
            results = tuple(emit_one("expand_dims", one, number) for one in results)
    return results if is_tuple else results[0]


@method
@builtin
def associative_scan(input: Any, axis: Any, combine_fn: Any, reverse: bool = False) -> Any:
    """Running combinations along `axis`: element i combines elements 0..i.

    `input` and `combine_fn` are as in `reduce`; `reverse` starts at the end.
    Errors: E024 (axis), E037 (results of combine_fn). Source: Triton language 3.6/3.9.
    """
    tiles, is_tuple = _operands(input, "associative_scan")
    rank = len(tiles[0].shape)
    if rank == 0:
        raise UserMistake(
            "E024", f"associative_scan got {describe(tiles[0])}, which has no axes", "pass a tile"
        )
    number = axis_of(axis, rank)
    scalars = emit("begin_scan", tiles, number, constant_bool(reverse, "reverse"))
    combined = _combined("associative_scan", combine_fn, len(tiles), scalars)
    results = emit("end_scan", combined)
    return results if is_tuple else results[0]


def result_axis(axis: Optional[int], rank: int) -> Optional[int]:
    """The dimension that a reduction along `axis` removes; None for all."""
    return None if axis is None else axis_of(axis, rank)
