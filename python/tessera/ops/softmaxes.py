# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Softmax, its logarithm, and softmin."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from tessera.calls.pointwise import pointwise
from tessera.calls.recorded import recorded
from tessera.language import types
from tessera.ops.arguments import (
    FLOATS,
    accumulator_of,
    check,
    check_arrays,
    check_dim,
    dense,
    dtype_of,
    part_of,
)
from tessera.ops.differentiation import Operator, Results
from tessera.ops.kernels.softmaxes import softmax_backward_kernel, softmax_kernel
from tessera.ops.launching import Spec, launch, make_lines
from tessera.ops.outputs import launch_results, takes_out
from tessera.ops.tuning import GPU, GPU_COLUMNS, choose_lines, multiprocessors_of
from tessera.runtime.arrays import find_dtype
from tessera.wording import shown


def _is_on_gpu(array: Any) -> bool:
    return multiprocessors_of(array) > 0


def _forward(input: Any, *, dim: int, dtype: types.dtype, is_log: bool) -> Results:
    gpu = GPU if dim == input.ndim - 1 else GPU_COLUMNS
    choice = choose_lines(softmax_kernel, input, input.shape, dim, gpu)
    programs, lines = make_lines(input.shape, dim, choice=choice)
    is_tile, is_spread = lines.length <= lines.BLOCK, lines.stride > 1 and _is_on_gpu(input)
    numbers = (*lines, accumulator_of(dtype, dtype_of(input)), is_log, is_tile, is_spread)
    spec = Spec(input.shape, dtype)
    (y,) = launch_results(softmax_kernel, programs, (dense(input),), [spec], numbers, choice.warps)
    # A part of the input would have torch refuse to write to it.
    return (y,), (y, None if dtype == dtype_of(input) else input[:0] if input.ndim else input)


def _backward(
    saved: Any, grads: Any, wanted: Any, *, dim: int, dtype: types.dtype, is_log: bool
) -> Sequence[Any]:
    y, like = saved
    gpu = GPU if dim == y.ndim - 1 else GPU_COLUMNS
    choice = choose_lines(softmax_backward_kernel, y, y.shape, dim, gpu)
    programs, lines = make_lines(y.shape, dim, choice=choice)
    # A CPU has a line in its cache when it is read again.
    is_on_gpu = _is_on_gpu(y)
    is_tile, is_spread = is_on_gpu and lines.length <= lines.BLOCK, is_on_gpu and lines.stride > 1
    numbers = (*lines, accumulator_of(dtype), is_log, is_tile, is_spread)
    spec = Spec(y.shape, dtype if like is None else dtype_of(like))
    arrays = (y, dense(grads[0]))
    return launch(softmax_backward_kernel, programs, arrays, [spec], numbers, choice.warps)


@part_of("softmin")
@pointwise
def _negative(x):
    return -x


_softmax = Operator("softmax", _forward, _backward)


def _checked(name: str, input: Any, dim: Any, dtype: Any, is_log: bool) -> Any:
    check_arrays(name, FLOATS, input=input)
    wanted = dtype_of(input) if dtype is None else find_dtype(dtype)
    check(
        wanted in FLOATS,
        f"`{name}` got dtype={shown(dtype)}",
        "pass a type of floats of 16, 32 or 64 bits, or None",
    )
    return _softmax(input, dim=check_dim(name, input, dim), dtype=wanted, is_log=is_log)


@recorded
@takes_out
def softmax(input: Any, dim: int = -1, dtype: Optional[Any] = None) -> Any:
    """exp(input) / sum(exp(input)), summed along dim.

    dtype: the type of the result; None for that of input.
    Shapes: any. The result has that of input. Types: floats. Errors: E093.
    A line of -inf alone is NaN, as with torch.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.softmax(np.array([[0.0, np.log(3)], [1.0, 1.0]]), dim=1)
        assert np.allclose(y, [[0.25, 0.75], [0.5, 0.5]])
    """
    return _checked("softmax", input, dim, dtype, False)


@recorded
@takes_out
def log_softmax(input: Any, dim: int = -1, dtype: Optional[Any] = None) -> Any:
    """input - log(sum(exp(input))), summed along dim.

    dtype: the type of the result; None for that of input.
    Shapes: any. The result has that of input. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert np.allclose(ops.log_softmax(np.array([0.0, np.log(3)])), np.log([0.25, 0.75]))
    """
    return _checked("log_softmax", input, dim, dtype, True)


@recorded
@takes_out
def softmin(input: Any, dim: int = -1, dtype: Optional[Any] = None) -> Any:
    """softmax(-input).

    Shapes: any. The result has that of input. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert np.allclose(ops.softmin(np.array([0.0, np.log(3)])), [0.75, 0.25])
    """
    check_arrays("softmin", FLOATS, input=input)
    return _checked("softmin", _negative(input), dim, dtype, False)
