# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and scans with a combining function of your own, sorting, and maps.

`sum`, `max`, `cumsum` and others are made of these in `standard.py`.
"""

from __future__ import annotations

import builtins
from typing import Any, Callable, Literal, Optional, Sequence, Union, overload

from tessera.errors import Note, UserMistake, place_of_function
from tessera.language.arguments import axis_of, constant_bool, constant_int
from tessera.language.callables import JITCallable
from tessera.language.creation import cast
from tessera.language.math import where
from tessera.language.tensor import (
    Operand,
    active,
    builtin,
    describe,
    emit,
    emit_one,
    fits,
    method,
    scalars_only,
    tensor,
    to_tensor_value,
)
from tessera.language.types import int64, pointer_type, unwrap

__all__ = [
    "argsort",
    "associative_scan",
    "bitonic_merge",
    "map_elementwise",
    "reduce",
    "sort",
    "topk",
]


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
    """Visits the combining function on `scalars`; its results, of the operands' types."""
    combine_fn = unwrap(combine_fn)
    if not isinstance(combine_fn, JITCallable):
        raise UserMistake(
            "E016",
            f"combine_fn of {what} is {describe(combine_fn)}",
            "pass a function decorated with @jit",
        )
    with scalars_only(what):
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
            value = _literal_of(value, wanted, what, combine_fn)
        checked.append(value)
    return checked


def _literal_of(value: tensor, wanted: tensor, what: str, combine_fn: JITCallable) -> tensor:
    """A literal that `combine_fn` returns, of the operands' type; a mistake for all else."""
    literal = value._constant
    if isinstance(literal, builtins.float) and wanted.dtype.is_floating():
        return emit_one("cast", value, wanted.type, None, False)
    if isinstance(literal, int) and fits(literal, wanted.dtype):
        return emit_one("cast", value, wanted.type, None, False)
    raise UserMistake(
        "E037",
        f"combine_fn `{combine_fn.__name__}` of {what} returns {describe(value)} for operands of "
        f"type {describe(wanted)}",
        f"cast its result, `.to({wanted.dtype!r})`, or the tile before it is combined, "
        f"`.to({value.dtype!r})`",
        [Note(f"`{combine_fn.__name__}` is defined here", *place_of_function(combine_fn.fn)[:3])],
    )


@overload
def reduce(
    input: tensor, axis: Optional[int], combine_fn: Callable[..., Any], keep_dims: bool = False
) -> tensor: ...
@overload
def reduce(
    input: Sequence[tensor],
    axis: Optional[int],
    combine_fn: Callable[..., Any],
    keep_dims: bool = False,
) -> tuple[tensor, ...]: ...
@method
@builtin
def reduce(
    input: Union[tensor, Sequence[tensor]],
    axis: Optional[int],
    combine_fn: Callable[..., Any],
    keep_dims: bool = False,
) -> Any:
    """Combines the elements along `axis` with a @jit function of scalars.

    `input` is a tile, or a tuple of n tiles of one shape. `combine_fn` takes 2n scalars and
    returns n of the same types, or literals. It must be associative and commutative, since the
    order in which elements are combined is not defined. `axis=None` reduces all axes.
    Errors: E024 (axis), E037 (results of combine_fn).
    Source: Triton language 3.6/3.9.

    Example:
        @tessera.jit
        def product(a, b):
            return a * b

        x = tl.reshape(tl.arange(1, 9), (2, 4))  # 1 2 3 4, 5 6 7 8
        assert tl.sum(tl.reduce(x, 1, product)) == 24 + 1680
        assert tl.reduce(x, None, product) == 40320
    """
    tiles, is_tuple = _operands(input, "reduce")
    keep = constant_bool(keep_dims, "keep_dims")
    rank = len(tiles[0].shape)
    axis = unwrap(axis)
    if rank == 0:
        raise UserMistake(
            "E024", f"reduce got {describe(tiles[0])}, which has no axes", "pass a tile"
        )
    number = None if axis is None else axis_of(axis, rank)
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


@overload
def associative_scan(
    input: tensor, axis: int, combine_fn: Callable[..., Any], reverse: bool = False
) -> tensor: ...
@overload
def associative_scan(
    input: Sequence[tensor], axis: int, combine_fn: Callable[..., Any], reverse: bool = False
) -> tuple[tensor, ...]: ...
@method
@builtin
def associative_scan(
    input: Union[tensor, Sequence[tensor]],
    axis: int,
    combine_fn: Callable[..., Any],
    reverse: bool = False,
) -> Any:
    """An inclusive scan along `axis`: element i of the result combines elements 0 to i.

    `input` and `combine_fn` are as in `reduce`. With `reverse` it starts at the end.
    Errors: E024 (axis), E037 (results of combine_fn). Source: Triton language 3.6/3.9.

    Example:
        @tessera.jit
        def larger(a, b):
            return tl.maximum(a, b)

        x = tl.arange(0, 8) % 4  # 0 1 2 3 0 1 2 3
        running = tl.associative_scan(x, 0, larger)  # 0 1 2 3 3 3 3 3
        assert tl.sum(running) == 18
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


@builtin
def _begin_sort(tiles: Any, axis: Any) -> Any:
    tiles = [to_tensor_value(tile) for tile in tiles]
    rank = len(tiles[0].shape)
    if rank == 0:
        raise UserMistake(
            "E024", f"sort got {describe(tiles[0])}, which has no axes", "pass a tile"
        )
    number = rank - 1 if unwrap(axis) is None else axis_of(axis, rank)
    return emit("begin_sort", tiles, number)


def _turned_keys(bits: tensor) -> tensor:
    """The bits of floats as integers of the same order, and back: of negative numbers all
    bits but the sign are turned."""
    width = bits.dtype.primitive_bitwidth
    turned: tensor = bits ^ ((bits >> (width - 1)) & (2 ** (width - 1) - 1))
    return turned


def _float_keys(x: tensor) -> tensor:
    """Integers in the order of floats: -0 before 0, NaN (made positive) after all others."""
    bits = cast(x, f"int{x.dtype.primitive_bitwidth}", bitcast=True)
    largest = 2 ** (x.dtype.primitive_bitwidth - 1) - 1
    return where(x != x, bits & largest, _turned_keys(bits))


def _sorted(tiles: list[Any], dim: Any, descending: bool) -> tuple[tensor, ...]:
    """`tiles` ordered by the first of them; NaNs count as the largest.

    Floats alone are sorted as integers: no comparison has to mind NaN then, and no order of
    equal ones.
    """
    key = to_tensor_value(tiles[0])
    if len(tiles) == 1 and key.dtype.is_floating() and key.dtype.primitive_bitwidth >= 16:
        (ordered,) = _sorted([_float_keys(key)], dim, descending)
        return (cast(_turned_keys(ordered), key.dtype, bitcast=True),)
    a, b = _begin_sort(tiles, dim)
    if descending:
        a, b = b, a
    is_before = a < b
    if a.dtype.is_floating():
        is_before = is_before | ((b != b) & (a == a))
    return emit("end_sort", is_before)


@method
@builtin
def sort(x: tensor, dim: Optional[int] = None, descending: bool = False) -> tensor:
    """The elements of a tile, sorted along `dim` (the last dimension if left out).

    NaNs count as the largest. Errors: E024. Source: Triton language 3.6/3.9; dimensions
    other than the last, and the place of NaNs, are ours.

    Example:
        x = tl.arange(0, 8) * 3 % 8  # 0 3 6 1 4 7 2 5
        assert tl.sort(x) == tl.arange(0, 8)
        assert tl.sort(x, descending=True) == 7 - tl.arange(0, 8)
    """
    return _sorted([x], dim, constant_bool(descending, "descending"))[0]


@method
@builtin
def argsort(x: tensor, dim: Optional[int] = None, descending: bool = False) -> tensor:
    """The int32 indices that sort a tile along `dim` (the last dimension if left out).

    Equal elements may come in any order. Errors: E024. Triton has no such function.

    Example:
        x = tl.arange(0, 8) * 3 % 8  # 0 3 6 1 4 7 2 5
        order = tl.argsort(x, descending=True)
        assert order.dtype == tl.int32
        assert tl.gather(x, order, axis=0) == 7 - tl.arange(0, 8)
    """
    x = to_tensor_value(x)
    rank = len(x.shape)
    number = axis_of(rank - 1 if unwrap(dim) is None else dim, rank)
    return _sorted([x, _positions(x, number)], number, constant_bool(descending, "descending"))[1]


def _positions(x: tensor, dim: int, count: Optional[int] = None) -> tensor:
    """The index along `dim` of each element of `x` (or of its first `count`)."""
    shape = list(x.shape)
    shape[dim] = shape[dim] if count is None else count
    index = emit_one("arange", 0, shape[dim])
    for axis in builtins.range(len(shape)):
        if axis != dim:
            index = emit_one("expand_dims", index, axis)
    return emit_one("broadcast_to", index, shape)


@overload
def topk(
    x: tensor,
    k: int,
    dim: Optional[int] = None,
    descending: bool = True,
    return_indices: Literal[False] = False,
) -> tensor: ...
@overload
def topk(
    x: tensor,
    k: int,
    dim: Optional[int] = None,
    descending: bool = True,
    *,
    return_indices: Literal[True],
) -> tuple[tensor, tensor]: ...
@method
@builtin
def topk(
    x: tensor,
    k: int,
    dim: Optional[int] = None,
    descending: bool = True,
    return_indices: bool = False,
) -> Any:
    """The `k` largest elements along `dim` (the last dimension if left out), in order.

    With `descending=False` it is the smallest ones. With `return_indices` their int32 indices
    are returned as well. Errors: E024 (dim), E018 (k cannot be an extent). Source: Triton
    language 3.9; the indices, and dimensions other than the last, are ours.

    Example:
        x = tl.arange(0, 8) * 3 % 8  # 0 3 6 1 4 7 2 5
        values, indices = tl.topk(x, 2, return_indices=True)
        assert tl.sum(values) == 7 + 6
        assert tl.gather(x, indices, axis=0) == values
        assert tl.sum(tl.topk(x, 2, descending=False)) == 0 + 1
    """
    x = to_tensor_value(x)
    rank = len(x.shape)
    number = axis_of(rank - 1 if unwrap(dim) is None else dim, rank)
    count = constant_int(k, "k")
    if not 0 < count <= x.shape[number]:
        raise UserMistake(
            "E018", f"k is {count} for {describe(x)}", f"k must be in [1, {x.shape[number]}]"
        )
    tiles = [x]
    with_indices = constant_bool(return_indices, "return_indices")
    if with_indices:
        tiles.append(_positions(x, number))
    downwards = constant_bool(descending, "descending")
    # Sorting all of a long line would order elements that are dropped. Instead, rounds halve the
    # line. Each sorts runs of 2 k elements, and keeps the first half of each run.
    run = 2 * 2 ** (count - 1).bit_length()
    while tiles[0].shape[number] in [run << bits for bits in builtins.range(1, 32)]:
        tiles = [
            _first_halves(tile, number) for tile in _sorted_runs(tiles, number, run, downwards)
        ]
    ordered = _sorted(tiles, number, downwards)
    first = _positions(x, number, count)
    taken = tuple(emit_one("gather", tile, first, number) for tile in ordered)
    return taken if with_indices else taken[0]


def _sorted_runs(tiles: list[Any], dim: int, run: int, descending: bool) -> tuple[tensor, ...]:
    """`tiles` with `dim` made two, of which the second has the extent `run` and is in order."""
    before, extent, after = tiles[0].shape[:dim], tiles[0].shape[dim], tiles[0].shape[dim + 1 :]
    shape = [*before, extent // run, run, *after]
    return _sorted([emit_one("reshape", tile, shape) for tile in tiles], dim + 1, descending)


def _first_halves(tile: tensor, dim: int) -> tensor:
    """The first half of each line along `dim + 1`; `dim` and `dim + 1` become one again."""
    before, (runs, run), after = tile.shape[:dim], tile.shape[dim : dim + 2], tile.shape[dim + 2 :]
    halved = emit_one("reshape", tile, [*before, runs, 2, run // 2, *after])
    order = [axis for axis in builtins.range(len(halved.shape)) if axis != dim + 1]
    half = emit("split", emit_one("permute", halved, [*order, dim + 1]))[0]
    return emit_one("reshape", half, [*before, runs * run // 2, *after])


@builtin
def bitonic_merge(x: tensor, dim: Optional[int] = None, descending: bool = False) -> tensor:
    """Sorts a tile that is bitonic along `dim` (the last dimension if left out).

    Bitonic means that elements first rise and then fall, or that a rotation of them does. Other
    tiles are sorted, too. Errors: E024. Source: Triton language 3.6/3.9.

    Example:
        i = tl.arange(0, 8)
        x = tl.where(i < 4, i, 11 - i)  # 0 1 2 3 7 6 5 4: rises, then falls
        assert tl.bitonic_merge(x) == i
        assert tl.bitonic_merge(x, descending=True) == 7 - i
    """
    return sort(x, dim, descending)


def _apart(tile: tensor, pack: int) -> list[tensor]:
    """Neighbours in row-major order: the first of each `pack`, the second, ..."""
    parts = [emit_one("reshape", tile, [tile.numel // pack, pack])]
    # Each round takes apart the two halves of each group, so that of all parts the order stays.
    while len(parts) < pack:
        groups, width = parts[0].shape
        order = (0, 2, 1)
        halved = [emit_one("reshape", part, [groups, 2, width // 2]) for part in parts]
        halves = [emit("split", emit_one("permute", part, order)) for part in halved]
        parts = [half for pair in halves for half in pair]
    return [emit_one("reshape", part, [tile.numel // pack]) for part in parts]


def _as_address(x: tensor) -> tensor:
    """A pointer as an integer, which is what functions of elements are given and give."""
    return cast(x, int64) if isinstance(x.dtype, pointer_type) else x


def _of_address(x: tensor, wanted: Any) -> tensor:
    """The pointer of a type from the result of `_as_address`."""
    return cast(x, wanted) if isinstance(wanted, pointer_type) else x


def _together(parts: list[tensor], shape: tuple[int, ...]) -> tensor:
    """The inverse of `_apart`."""
    while len(parts) > 1:
        half = len(parts) // 2
        # The first choice of a half is the first dimension that comes back.
        parts = [emit_one("join", parts[i], parts[i + half]) for i in builtins.range(half)]
    return emit_one("reshape", parts[0], list(shape))


@builtin
def map_elementwise(scalar_fn: Callable[..., Any], *args: Operand, pack: int = 1) -> Any:
    """A @jit function of scalars, applied to each element; it may branch and loop.

    The tiles are broadcast to one shape. With `pack` (a power of two), the function takes `pack`
    neighbours in row-major order at a time. Its arguments are first the neighbours of the first
    tile, then those of the second, and so on. It returns as many values of each result. A tile of
    pointers gives it pointers, from which it may load but to which it may not store. Errors: E016,
    E018 (pack), E022, E030 (a forbidden operation of the function), E037 (its results). Source:
    Triton language 3.6/3.9; which elements are neighbours is ours.

    Example:
        @tessera.jit
        def steps(n):
            count = 0
            while n > 1:  # for each element on its own
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                count += 1
            return count

        assert tl.max(tl.map_elementwise(steps, tl.arange(1, 9))) == 16
    """
    fn = unwrap(scalar_fn)
    if not isinstance(fn, JITCallable):
        raise UserMistake(
            "E016",
            f"the function of map_elementwise is {describe(fn)}",
            "pass a function decorated with @jit",
        )
    tiles = [to_tensor_value(arg) for arg in args]
    if not tiles:
        raise UserMistake("E022", "map_elementwise got no tile", "pass one")
    for position, tile in enumerate(tiles[1:], 1):
        tiles[0], tiles[position] = emit("broadcast", tiles[0], tile)
    tiles = [emit("broadcast", tiles[0], tile)[1] for tile in tiles]
    whole = tiles[0]
    count = constant_int(pack, "pack")
    if count < 1 or count & (count - 1) or whole.numel % count:
        raise UserMistake(
            "E018",
            f"pack is {count} for {describe(whole)}",
            "pass a power of two that divides the number of elements",
        )
    if count > 1:
        tiles = [part for tile in tiles for part in _apart(tile, count)]
    scalars = emit("begin_map", [_as_address(tile) for tile in tiles])
    scalars = tuple(_of_address(scalar, tile.dtype) for scalar, tile in zip(scalars, tiles))
    with scalars_only("map_elementwise"):
        results = active.session.call_function(fn, list(scalars), {})
    several = isinstance(results, tuple)
    returned = [to_tensor_value(one) for one in (results if several else (results,))]
    if len(returned) % count:
        raise UserMistake(
            "E037",
            f"`{fn.__name__}` returns {len(returned)} values to map_elementwise with pack={count}",
            f"return {count} values of each result",
        )
    mapped = emit("end_map", [_as_address(one) for one in returned])
    mapped = tuple(_of_address(tile, one.dtype) for tile, one in zip(mapped, returned))
    if count == 1:
        return mapped if several else mapped[0]
    groups = [mapped[at : at + count] for at in builtins.range(0, len(mapped), count)]
    for group in groups:
        if any(part.type != group[0].type for part in group):
            listing = ", ".join(str(part.dtype) for part in group)
            raise UserMistake(
                "E037",
                f"`{fn.__name__}` returns {listing} for one result of map_elementwise",
                "return values of one type, with .to(...)",
            )
    whole_results = tuple(_together(list(group), whole.shape) for group in groups)
    return whole_results if len(whole_results) > 1 else whole_results[0]
