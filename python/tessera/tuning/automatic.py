# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Configurations for a kernel that comes without any: `configs="auto"`.

The tuning chooses values of the constexpr parameters without a default that a launch passes no
value for. On a GPU, it also chooses `num_warps` and `num_stages`. The kernel's source shows which
of these parameters are extents of tiles: a range or a shape is made of them, directly or in a
function that they are passed to. Examples are `tl.arange(0, BLOCK)`, `tl.zeros([M, N], ...)` and
the block shape of a descriptor. Their values are powers of two. The values of other parameters are
not known, so the user has to pass them.

The product of all values has configurations whose tiles are too small or too large; these are
dropped. Each of the others is compiled. A configuration that spills is dropped if another one does
not spill. Those of the rest with the least estimate of time are measured.
"""

from __future__ import annotations

import ast
import itertools
from types import ModuleType
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from tessera.errors import TuningError
from tessera.frontend.source import source_of
from tessera.language.callables import ConstexprFunction, JITCallable
from tessera.machine.devices import WARP_SIZE
from tessera.runtime.arrays import described, pointer_of
from tessera.runtime.jit import JITFunction
from tessera.tuning.config import Config
from tessera.tuning.heuristics import Heuristics

MOST_COMPILED = 64
MOST_MEASURED = 24

_BLOCKS = {"make_block_ptr": 4, "make_tensor_descriptor": 3}
"""Which argument of these is the shape of the block."""


class Space(NamedTuple):
    """Values to choose from, by the name of a parameter or an option."""

    extents: dict[str, Sequence[int]]
    options: dict[str, Sequence[Any]]


def make_configs(
    fn: Any, arg_names: Sequence[str], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Config]:
    """Configurations for a kernel launched with these arguments."""
    space = find_space(fn, arg_names, args, kwargs)
    names = list(space.extents)
    found: list[Config] = []
    for sizes in itertools.product(*space.extents.values()):
        for options in itertools.product(*space.options.values()):
            settings = dict(zip(space.options, options))
            if _is_sensible(sizes, settings):
                found.append(Config(dict(zip(names, sizes)), **settings))
    if len(found) <= MOST_COMPILED:
        return found
    # The middle of the space is where most kernels are at their best.
    found.sort(key=lambda config: _distance(config, names))
    return found[:MOST_COMPILED]


def find_space(
    fn: Any, arg_names: Sequence[str], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Space:
    """The parameters and options to choose for a launch, and their values. Raises TuningError
    (E059) for a parameter whose values are not known."""
    inner, given = fn, {*arg_names[: len(args)], *kwargs}
    while isinstance(inner, Heuristics):
        given |= set(inner.values)
        inner = inner.fn
    if not isinstance(inner, JITFunction):
        raise TuningError("E059", 'configs="auto" is for @jit kernels', "pass a list of Config")
    extents = find_extents(inner)
    wanted = [
        param.name
        for param in inner.params
        if param.is_constexpr and param.name not in given and not param.has_default
    ]
    for name in wanted:
        if name not in extents:
            raise TuningError(
                "E059",
                f'configs="auto" finds no values for `{name}` of kernel `{inner.__name__}`, which '
                "is not the extent of a tile",
                "pass it, give it a default, or write the list of configurations",
            )
    if not wanted:
        sizes: dict[str, Sequence[int]] = {}
    elif len(wanted) == 1:
        sizes = {wanted[0]: [1 << power for power in range(5, 14)]}
    elif len(wanted) == 2:
        sizes = {name: [16, 32, 64, 128, 256] for name in wanted}
    else:
        sizes = {name: [32, 64, 128] for name in wanted}
    options: dict[str, Sequence[Any]] = {}
    if _is_for_gpu(inner, arg_names, args, kwargs):
        if "num_warps" not in given:
            options["num_warps"] = [4, 8] if len(wanted) > 1 else [2, 4, 8]
        if "num_stages" not in given and _has_loop(inner):
            options["num_stages"] = [2, 3, 4]
    return Space(sizes, options)


def find_extents(fn: JITCallable) -> set[str]:
    """The parameters that decide extents of a kernel's tiles. A range or a shape names them, or
    names a constant that is computed from them."""
    found: set[str] = set()
    _visit(fn, {param.name: {param.name} for param in fn.params}, found, set())
    return found


def _visit(
    fn: JITCallable, names: Mapping[str, set[str]], found: set[str], visited: set[JITCallable]
) -> None:
    """Adds to `found` the kernel's parameters that decide extents in a function; `names` maps the
    function's names to them."""
    if fn in visited:
        return
    visited = visited | {fn}
    nodes = list(ast.walk(source_of(fn).tree))
    known = _constants(fn, nodes, names)

    def stand_for(node: ast.expr) -> set[str]:
        return set().union(*(known.get(name, ()) for name in _names(node)))

    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        called = _name_of(node.func)
        for shape in _shapes(fn, node, called):
            found |= stand_for(shape)
        callee = fn._globals.get(called) if called else None
        if isinstance(callee, JITCallable) and not callee.__module__.startswith("tessera."):
            passed = {param.name: stand_for(value) for param, value in _passed(callee, node)}
            _visit(callee, passed, found, visited)


def _constants(
    fn: JITCallable, nodes: Sequence[ast.AST], names: Mapping[str, set[str]]
) -> dict[str, set[str]]:
    """The kernel's parameters that each name depends on, including names that are assigned
    constants computed from them."""
    known = {name: set(what) for name, what in names.items()}
    assigned: list[tuple[list[ast.expr], ast.expr]] = []
    for node in nodes:
        if isinstance(node, ast.Assign):
            assigned.append((node.targets, node.value))
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            assigned.append(([node.target], node.value))
    is_changed = True
    while is_changed:
        is_changed = False
        for targets, value in assigned:
            if not _is_arithmetic(fn, value):
                continue
            what = set().union(*(known.get(name, ()) for name in _names(value)))
            for name in set().union(*(_names(target) for target in targets)):
                if not what <= known.get(name, set()):
                    known.setdefault(name, set()).update(what)
                    is_changed = True
    return known


_OF_CONSTANTS = {"min", "max", "abs", "int", "cdiv", "next_power_of_2", "constexpr"}


def _is_arithmetic(fn: JITCallable, node: ast.expr) -> bool:
    """True if it has the form that the extents of tiles are computed in: no loads, no ranges."""
    called = {_name_of(inner.func) for inner in ast.walk(node) if isinstance(inner, ast.Call)}
    return all(
        isinstance(fn._globals.get(name), ConstexprFunction) for name in called - _OF_CONSTANTS
    )


def _shapes(fn: JITCallable, node: ast.Call, called: str) -> list[ast.expr]:
    """The arguments of a call that become extents."""
    words = [word.value for word in node.keywords if word.arg in ("shape", "block_shape")]
    if called == "arange":
        return [*words, *node.args, *(word.value for word in node.keywords)]
    if called in _BLOCKS:
        return [*words, *node.args[_BLOCKS[called] : _BLOCKS[called] + 1]]
    if called in ("zeros", "full", "ones"):
        return [*words, *node.args[:1]]
    if called in ("reshape", "broadcast_to", "view"):
        # The first argument of a function is the tile; a method has no such argument.
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        is_method = owner is not None and not (
            isinstance(owner, ast.Name) and isinstance(fn._globals.get(owner.id), ModuleType)
        )
        return [*words, *node.args[0 if is_method else 1 :]]
    return words


def _name_of(called: ast.expr) -> str:
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""


def _passed(callee: JITCallable, call: ast.Call) -> Iterator[tuple[Any, ast.expr]]:
    yield from zip(callee.params, call.args)
    by_name = {param.name: param for param in callee.params}
    for word in call.keywords:
        if word.arg in by_name:
            yield by_name[word.arg], word.value


def _names(node: ast.expr) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _has_loop(fn: JITCallable) -> bool:
    return any(isinstance(node, (ast.For, ast.While)) for node in ast.walk(source_of(fn).tree))


def _is_for_gpu(
    fn: JITFunction, arg_names: Sequence[str], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> bool:
    target = str(kwargs.get("target", "auto"))
    if target != "auto":
        return target != "cpu"
    for name, value in {**dict(zip(arg_names, args)), **kwargs}.items():
        if isinstance(value, (bool, int, float, str, tuple, type(None))):
            continue
        pointer = pointer_of(described(value), name)
        if pointer is not None and pointer.device >= 0:
            return True
    return False


def _is_sensible(sizes: Sequence[int], options: Mapping[str, Any]) -> bool:
    """True if two of the extents make a tile that is worth a program."""
    if len(sizes) < 2:
        warps = options.get("num_warps", 4)
        return not sizes or sizes[0] >= WARP_SIZE // 2 * warps
    tile = sizes[0] * sizes[1]
    return 256 <= tile <= 256 * 128 and max(sizes) <= 16 * min(sizes[:2])


def _distance(config: Config, names: Sequence[str]) -> float:
    sizes = [config.kwargs[name] for name in names]
    middle = 6.5 if len(sizes) > 1 else 10.0
    spread: float = sum(abs(size.bit_length() - 1 - middle) for size in sizes)
    return spread + abs(config.num_stages - 3) * 0.5 + abs(config.num_warps - 4) * 0.125
