# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Statistics of lines on a GPU in one launch, which reads the elements once.

Elsewhere they are several reductions: a CPU has a line in its cache when it is read again.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple, Optional, Sequence

from tessera.calls.outputs import is_dense, library_of
from tessera.language import types
from tessera.locks import load
from tessera.ops.arguments import FLOATS, accumulator_of, dense, dtype_of
from tessera.ops.kernels import statistics as kernels
from tessera.ops.launching import Lines, Spec, launch, make_lines, power_of_2
from tessera.ops.outputs import launch_results
from tessera.ops.tuning import GPU, GPU_COLUMNS, Choice, choose_lines, multiprocessors_of

_ROWS, _LONG_ROWS = GPU, GPU._replace(tile=2048)
"""Tiles of lines that lie one behind the other, and of those that are no tile."""

_COUNTED_ROWS = GPU._replace(tile=1024)
"""The same where each element of a tile takes three registers."""

_PROGRAMS, _PART = 16, 128
"""Programs for each SM of launches that store all elements, and the least elements of a line in one."""


class _Launch(NamedTuple):
    """A launch on the lines of an array."""

    programs: int
    lines: Lines
    warps: int
    acc: types.dtype
    is_tile: bool
    """True if a line is one tile."""


def _launch_of(
    kernel: Any, x: Any, axes: Sequence[int], parts: int = 1, rows: Optional[Choice] = None
) -> Optional[_Launch]:
    """The launch for lines along some axes; None if it would leave SMs of a GPU idle, or there is none.

    parts: the lines that each line of neighbours is divided into.
    rows: the tiles of lines that lie one behind the other.
    """
    if 0 in x.shape or not axes or tuple(axes) != tuple(range(axes[0], axes[-1] + 1)):
        return None
    units = multiprocessors_of(x) if is_dense(x) else 0
    outer, inner = math.prod(x.shape[: axes[0]]), math.prod(x.shape[axes[-1] + 1 :])
    shape = (outer * parts, math.prod(x.shape[at] for at in axes) // parts, inner)
    if not units or inner > 1 and shape[1] * inner >= 1 << 31:
        return None
    rows = rows or (_LONG_ROWS if shape[1] > _ROWS.tile else _ROWS)
    default = GPU_COLUMNS if inner > 1 else rows
    choice = choose_lines(kernel, x, shape, 1, default)
    if shape[1] * choice.tile >= 1 << 31:
        return None
    programs, lines = make_lines(shape, 1, choice=choice)
    if 2 * programs < units:
        return None
    return _Launch(
        programs, lines, choice.warps, accumulator_of(dtype_of(x)), lines.length <= lines.BLOCK
    )


def is_direct(x: Any) -> bool:
    """True if kernels may be launched on an array: nothing traces a call, and no derivative is of it."""
    library = library_of(x)
    if library == "torch":
        torch = sys.modules["torch"]
        if not x.is_cuda or torch.compiler.is_compiling():
            return False
        autograd: Any = load("tessera.ops.autograd")
        return bool(autograd.is_untraced(x)) and not (x.requires_grad and torch.is_grad_enabled())
    return library == "cupy"


def moments(
    x: Any, axes: Sequence[int], divisor: float, parts: int = 1
) -> Optional[tuple[Any, Any]]:
    """The sum of squared distances to the mean by the divisor, and the mean, of lines along some axes.

    Both have an element for each line, or for each part of lines of neighbours. None if there is no launch
    for them.
    """
    found = _launch_of(kernels.moments_of_lines_kernel, x, axes, parts)
    if found is None:
        return None
    spec = Spec((math.prod(x.shape) // found.lines.length,), found.acc)
    return launch(
        kernels.moments_of_lines_kernel, found.programs, (x,), [spec, spec],
        (divisor, *found.lines, found.acc, found.is_tile), found.warps,
    )  # fmt: skip


def log_sum(x: Any, axes: Sequence[int], shape: Sequence[int]) -> Any:
    """logsumexp along some axes, of that shape. None if there is no launch for it."""
    found = _launch_of(kernels.logsumexp_kernel, x, axes)
    if found is None:
        return None
    return launch_results(
        kernels.logsumexp_kernel, found.programs, (x,), [Spec(shape, dtype_of(x))],
        (*found.lines, found.acc, found.is_tile), found.warps,
    )[0]  # fmt: skip


def extremum(x: Any, axes: Sequence[int], shape: Sequence[int], is_max: bool) -> Any:
    """The extrema along some axes, of that shape, their first places, and how many elements are equal to
    each. None if there is no launch for them."""
    found = _launch_of(kernels.counted_extremum_kernel, x, axes, rows=_COUNTED_ROWS)
    if found is None or dtype_of(x) not in FLOATS:
        return None
    specs = [Spec(shape, dtype_of(x)), Spec(shape, types.int32), Spec(shape, types.int32)]
    numbers = (*found.lines, is_max)
    return launch(
        kernels.counted_extremum_kernel, found.programs, (x,), specs, numbers, found.warps
    )


def extremum_gradient(x: Any, known: Sequence[Any], grad: Any, axes: Sequence[int]) -> Any:
    """The gradient of what `extremum` has found."""
    kernel, parts = kernels.extremum_gradient_kernel, 1
    found = _launch_of(kernel, x, axes)
    assert found is not None
    if math.prod(x.shape[axes[-1] + 1 :]) > 1:
        length, most = found.lines.length, _PROGRAMS * multiprocessors_of(x)
        while (
            found.programs * parts < most
            and length % (2 * parts) == 0
            and length >= 2 * parts * _PART
        ):
            parts *= 2
        found = _launch_of(kernel, x, axes, parts) or found
    return launch(
        kernel, found.programs, (x, *known, dense(grad)), [Spec(x.shape, dtype_of(x))],
        (parts, *found.lines, found.acc), found.warps,
    )[0]  # fmt: skip


_TILE = 2048
"""Elements that a program squares at once."""


def norm(x: Any, shape: Sequence[int]) -> Any:
    """The Euclidean norm of all elements, of that shape. None if there is no launch for it."""
    count = math.prod(x.shape)
    units = multiprocessors_of(x) if is_dense(x) else 0
    if not _TILE * units <= count < (1 << 31) - (1 << 24) or not units:
        return None
    acc, parts = accumulator_of(dtype_of(x)), min(8 * units, -(-count // _TILE))
    spec = Spec((parts,), acc)
    (squares,) = launch(kernels.squares_kernel, parts, (x,), [spec], (count, parts, _TILE, acc))
    return launch_results(
        kernels.root_of_sum_kernel, 1, (squares,), [Spec(shape, dtype_of(x))],
        (parts, power_of_2(parts)), 4,
    )[0]  # fmt: skip
