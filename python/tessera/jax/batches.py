# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels under jax.vmap: one grid for the whole batch, which is its last axis.

A batched kernel is a kernel around another one. It finds out which of the batch its program is
for, adds to each pointer where that one's array begins, and calls the kernel. For `add(x, y, out)`,
a batch of 8, and arrays of 1000 elements of which y is not batched:

    def add_batched(x, y, out):
        at = tl.program_id(2).to(tl.int64)
        add(x + at % 8 * 1000, y, out + at % 8 * 1000)

A kernel that asks for its place along the last axis cannot be wrapped like that.
"""

from __future__ import annotations

import functools
import linecache
from typing import Any, NamedTuple, Optional, Sequence

from tessera import language
from tessera.compiler.compile import build_module
from tessera.runtime.jit import JITFunction
from tessera.runtime.specialize import Bound

_MOST_ALONG_LAST_AXIS = 65535
"""The limit of a grid on NVIDIA's GPUs."""


class Batch(NamedTuple):
    """One jax.vmap."""

    size: int
    mapped: tuple[bool, ...]
    """Which inputs have its extent in front."""


def is_batchable(
    kernel: JITFunction[Any, Any],
    bound: Bound,
    options: dict[str, Any],
    batches: Sequence[Batch],
    grid: tuple[int, int, int],
) -> bool:
    """True if the last axis of the grid is free for the batch."""
    count = 1
    for batch in batches:
        count *= batch.size
    if grid[2] != 1 or not 0 < count <= _MOST_ALONG_LAST_AXIS:
        return False
    if any(param.kind != "positional" for param in kernel.params):
        return False
    text = build_module(kernel, bound.specs, kernel._options(dict(options)).resolved(None)).print()
    return not any(f"tile.{what} 2" in text for what in ("program_id", "num_programs"))


def batched_kernel(
    kernel: JITFunction[Any, Any],
    offsets: Sequence[Optional[Sequence[int]]],
    batches: Sequence[Batch],
) -> JITFunction[Any, Any]:
    """A kernel that runs `kernel` for each of a batch. `offsets` has for each parameter that is an
    array how many elements its place moves by with each of the batches."""
    key = tuple(None if each is None else tuple(each) for each in offsets)
    return _batched_kernel(kernel, key, tuple(batch.size for batch in batches))


@functools.lru_cache(maxsize=None)
def _batched_kernel(
    kernel: JITFunction[Any, Any],
    offsets: tuple[Optional[tuple[int, ...]], ...],
    sizes: tuple[int, ...],
) -> JITFunction[Any, Any]:
    names = {"tl": language, "_kernel": kernel}
    parameters, arguments = [], []
    for index, (param, moves) in enumerate(zip(kernel.params, offsets)):
        parameter = param.name
        if param.is_constexpr:
            parameter += ": tl.constexpr"
        elif param.annotation is not None:
            names[f"_annotation_{index}"] = param.annotation
            parameter += f": _annotation_{index}"
        parameters.append(parameter)
        terms = [f"_at_{level} * {move}" for level, move in enumerate(moves or ()) if move]
        arguments.append(" + ".join([param.name, *terms]))
    lines = [f"def {kernel.__name__}_batched({', '.join(parameters)}):"]
    lines.append("    _at = tl.program_id(2).to(tl.int64)")
    for level, size in enumerate(sizes):
        lines.append(f"    _at_{level} = _at % {size}")
        lines.append(f"    _at = _at // {size}")
    lines.append(f"    _kernel({', '.join(arguments)})")
    text = "\n".join(lines) + "\n"
    # The front-end reads a function's source where Python says that it is.
    file = f"<{kernel.__module__}.{kernel.__name__} batched {len(linecache.cache)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names["__name__"] = kernel.__module__
    exec(compile(text, file, "exec", dont_inherit=True), names)
    unspecialised = [param.name for param in kernel.params if param.do_not_specialize]
    return JITFunction(
        names[f"{kernel.__name__}_batched"],  # type: ignore[arg-type]
        debug=kernel.debug,
        do_not_specialize=unspecialised,
    )
