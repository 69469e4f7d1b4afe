# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of elementwise operators, as text that `@jit` compiles.

A kernel calls the user's scalar function on tiles. Its text depends on what each array is along each
dimension of the walk (broadcast, dense, or with a stride), not on sizes. Sizes and other strides are
arguments, so that one kernel serves all shapes of a kind.
"""

from __future__ import annotations

import hashlib
import linecache
import math
from typing import Any, NamedTuple, Optional, Sequence

from tessera.calls.iteration import Ints, Walk
from tessera.errors import UserMistake
from tessera.language import types
from tessera.language.callables import JITCallable
from tessera.language.tensor import builtin, describe, tensor
from tessera.runtime.jit import JITFunction, jit

MIN_CPU_TILE = 256
MAX_CPU_TILE = 2048
"""Elements of a program."""

_CPU_PROGRAM_ELEMENTS = 16
"""To start a program takes a CPU as long as so many elements, in caches."""

MIN_GPU_TILE = 1024
MAX_GPU_TILE = 4096
"""Elements of a program."""

MIN_GPU_BYTES = 8192
"""A GPU's program moves so many bytes if there are MIN_GPU_PROGRAMS of that size."""

MIN_GPU_PROGRAMS = 4096
"""About two for each place of a block of four warps on a large GPU."""

MAX_CALLS = 48
"""Calls that are joined to one kernel."""

MAX_ARRAYS = 12
MAX_RESULTS = 8
"""Of a kernel of joined calls."""

MAX_LITERAL_STRIDE = 4
"""Strides up to this stand in the text, so that code picks elements out of whole vectors."""

_CROSSING_TILE = 32
"""The extents of a tile where two arrays are dense along different dimensions."""


class Parameter(NamedTuple):
    """A parameter of the scalar function in one kernel."""

    name: str
    kind: str
    """ "array", "number" or "constant"."""
    dtype: str
    """Of an array's elements or of a number, as the language spells it."""
    compute: str
    """The type that the function gets."""


class Kind(NamedTuple):
    """All that the text of a kernel depends on."""

    parameters: tuple[Parameter, ...]
    results: tuple[str, ...]
    """The types of the results' elements."""
    classes: tuple[str, ...]
    """Of each array, then of each result, one letter for each dimension: `0` where it is broadcast,
    `1` where it is dense, another digit or `n` where it has that stride or any other one."""
    tiled: tuple[bool, ...]
    """For each dimension, if a program has more than one element of it."""
    is_wide: bool
    is_on_gpu: bool


def classify(walk: Walk) -> tuple[str, ...]:
    """The letters of each array, as in `Kind`."""
    return tuple(
        "".join(str(step) if 0 <= step <= MAX_LITERAL_STRIDE else "n" for step in strides)
        for strides in walk.strides
    )


def choose_gpu_tile(walk: Walk, sizes: Sequence[int]) -> int:
    """The elements of a GPU's program. `sizes` has the bytes of an element of each array of the walk.

    To start a program, divide its number and load a broadcast element takes as long as to move some
    kilobytes. So programs of narrow elements, and of broadcast arrays, have more elements.
    """
    total = math.prod(walk.sizes)
    moved = sum(
        size * math.prod(extent for extent, step in zip(walk.sizes, strides) if step)
        for size, strides in zip(sizes, walk.strides)
    )
    tile = MIN_GPU_TILE
    while (
        tile < MAX_GPU_TILE
        and tile * moved < MIN_GPU_BYTES * total
        and total >= 2 * tile * MIN_GPU_PROGRAMS
    ):
        tile *= 2
    return tile


def choose_blocks(walk: Walk, most: int, is_on_gpu: bool) -> Ints:
    """How many elements a program has of each dimension; all are powers of two."""
    blocks = [1] * len(walk.sizes)
    if not blocks:
        return (1,)
    inner = len(blocks) - 1
    # An array that is broadcast along the inner dimension is read once for a row.
    crossing = [
        strides.index(1)
        for strides in walk.strides
        if 1 in strides and strides[inner] not in (0, 1)
    ]
    if crossing:  # read some rows of one array and some columns of the other
        for at in (inner, max(crossing)):
            blocks[at] = min(_power_of_2(walk.sizes[at]), _CROSSING_TILE)
        return tuple(blocks)
    left = most
    for at in range(inner, -1, -1):
        blocks[at] = min(_power_of_2(walk.sizes[at]), left)
        if at == inner and not is_on_gpu:
            blocks[at] = _fit(walk.sizes[at], blocks[at])
        left //= blocks[at]
        if left < 2 or blocks[at] < walk.sizes[at]:
            break
    return tuple(blocks)


def _fit(size: int, most: int) -> int:
    """The elements of a row that a CPU's program has. A CPU computes lanes behind the row's end as
    others, so the last program of a row should have few of them."""

    def cost(tile: int) -> int:
        return -(-size // tile) * (tile + _CPU_PROGRAM_ELEMENTS)

    tiles = [most]
    while tiles[-1] > MIN_CPU_TILE:
        tiles.append(tiles[-1] // 2)
    least = min(map(cost, tiles))
    return next(tile for tile in tiles if 10 * cost(tile) <= 11 * least)


def _power_of_2(size: int) -> int:
    return 1 << max(0, size - 1).bit_length()


def count_programs(walk: Walk, blocks: Ints) -> int:
    """The programs that cover the walk."""
    return math.prod(-(-size // block) for size, block in zip(walk.sizes, blocks))


def kernel_arguments(walk: Walk, kind: Kind, blocks: Ints) -> Ints:
    """The arguments behind those of the function and the results."""
    sizes = walk.sizes or (1,)
    strides = [
        step
        for steps, letters in zip(walk.strides, kind.classes)
        for step, letter in zip(steps, letters)
        if letter == "n"
    ]
    return (*sizes, *strides, *(block for block, is_tiled in zip(blocks, kind.tiled) if is_tiled))


@builtin
def check_result(value: Any, pointer: Any, name: Any) -> Any:
    """`value`, if an element of its type may be stored as a result."""
    result = types.unwrap(value)
    wanted = pointer.type.element_ty
    if isinstance(result, tensor):
        has = result.type.scalar
        fits = has.is_floating() == wanted.is_floating() if has != wanted else True
        if has != wanted and wanted.is_bool() != has.is_bool():
            fits = False
    else:
        fits = isinstance(result, bool) == wanted.is_bool() and (
            wanted.is_floating() or not isinstance(result, float)
        )
    if not fits:
        raise UserMistake(
            "E089",
            f"`{types.unwrap(name)}` returns {describe(result)}, where its result has elements of "
            f"{wanted}",
            "annotate the type of the result, as in `-> tl.int1`, or convert the value with `.to`",
        )
    return value


def make_kernel(name: str, function: JITCallable, kind: Kind) -> JITFunction[Any, Any]:
    """The kernel of that kind, whose text names no value."""
    text = kernel_text(name, kind)
    scope = {"scalar_function": function, "check_result": check_result}
    made = make_text_function(f"{name}_elements", text, function.__module__, scope)
    unspecialised = _numbers_of(kind) if kind.is_on_gpu else _numbers_of(kind) + _sizes_of(kind)
    kernel = jit(do_not_specialize=unspecialised)(made)
    kernel._is_tuned = True  # a variant for each kind of alignment is no mistake
    return kernel


def make_text_function(name: str, text: str, module: Optional[str], scope: dict[str, Any]) -> Any:
    """The Python function of a generated text, whose lines errors and the front end find."""
    import tessera.language as tl

    digest = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
    file = f"<tessera.pointwise {name} {digest}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope.update(tl=tl, __name__=module or "")
    exec(compile(text, file, "exec"), scope)
    return scope[name]


def _numbers_of(kind: Kind) -> list[str]:
    return [each.name for each in kind.parameters if each.kind == "number"]


def _sizes_of(kind: Kind) -> list[str]:
    return [name for name in _walk_parameters(kind) if not name.startswith("block_")]


def _arrays_of(kind: Kind) -> list[str]:
    names = [each.name for each in kind.parameters if each.kind == "array"]
    return names + _results_of(kind)


def _results_of(kind: Kind) -> list[str]:
    return [f"out_{at}_" if len(kind.results) > 1 else "out_" for at in range(len(kind.results))]


def _walk_parameters(kind: Kind) -> list[str]:
    dimensions = range(len(kind.tiled))
    strides = [
        f"{name}_stride_{at}_"
        for name, letters in zip(_arrays_of(kind), kind.classes)
        for at, letter in enumerate(letters)
        if letter == "n"
    ]
    blocks = [f"block_{at}_" for at in dimensions if kind.tiled[at]]
    return [f"size_{at}_" for at in dimensions] + strides + blocks


def kernel_text(name: str, kind: Kind) -> str:
    """The text of a kernel that `make_kernel` compiles."""
    parameters = [
        each.name
        + {"number": f": tl.{each.dtype}", "constant": ": tl.constexpr"}.get(each.kind, "")
        for each in kind.parameters
    ]
    parameters += _results_of(kind)
    parameters += [
        each + (": tl.constexpr" if each.startswith("block_") else "")
        for each in _walk_parameters(kind)
    ]
    lines = [f"def {name}_elements({', '.join(parameters)}):", *_index_lines(kind)]
    classes = dict(zip(_arrays_of(kind), kind.classes))
    values = []
    for each in kind.parameters:
        value = each.name
        if each.kind == "array":
            value = f"tl.load({_access(each.name, classes[each.name], kind, is_store=False)})"
        if each.kind != "constant" and each.dtype != each.compute:
            value += f".to(tl.{each.compute})"
        if value != each.name:
            lines.append(f"{each.name}_value_ = {value}")
            value = f"{each.name}_value_"
        values.append(value)
    call = f"scalar_function({', '.join(values)})"
    results = _results_of(kind)
    if len(results) == 1:
        lines.append(f"value_0_ = {call}")
    else:
        lines.append(f"{', '.join(f'value_{at}_' for at in range(len(results)))} = {call}")
    for at, out in enumerate(results):
        pointer, *rest = _access(out, classes[out], kind, is_store=True).split(", mask=")
        mask = f", mask={rest[0]}" if rest else ""
        value = f'check_result(value_{at}_, {out}, "{name}")'
        lines.append(f"tl.store({pointer}, {value}{mask})")
    return "\n    ".join(lines) + "\n"


def _index_lines(kind: Kind) -> list[str]:
    """The element of each dimension, and which of them there are."""
    rank = len(kind.tiled)
    tiled = [at for at in range(rank) if kind.tiled[at]]
    lines = ["program_ = tl.program_id(0)" + (".to(tl.int64)" if kind.is_wide else "")]
    for at in range(rank - 1, -1, -1):
        here = "program_"
        if at:
            blocks = f"tl.cdiv(size_{at}_, block_{at}_)" if kind.tiled[at] else f"size_{at}_"
            here = f"(program_ % blocks_{at}_)"
            lines.append(f"blocks_{at}_ = {blocks}")
        if not kind.tiled[at]:
            lines.append(f"index_{at}_ = {here}")
        else:
            place = ", ".join(":" if each == at else "None" for each in tiled)
            spread = f"[{place}]" if len(tiled) > 1 else ""
            lines.append(
                f"index_{at}_ = ({here} * block_{at}_ + tl.arange(0, block_{at}_)){spread}"
            )
            lines.append(f"mask_{at}_ = index_{at}_ < size_{at}_")
        if at:
            lines.append(f"program_ = program_ // blocks_{at}_")
    return lines


def _access(name: str, letters: str, kind: Kind, is_store: bool) -> str:
    """The pointer and the mask of a load or a store."""
    terms, masks = [name], []
    for at, letter in enumerate(letters):
        if letter != "0":
            factor = {"1": "", "n": f" * {name}_stride_{at}_"}.get(letter, f" * {letter}")
            terms.append(f"index_{at}_{factor}")
        if kind.tiled[at] and letter != "0":
            masks.append(f"mask_{at}_")
    return " + ".join(terms) + (f", mask={' & '.join(masks)}" if masks else "")
