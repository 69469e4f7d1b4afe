# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rotary embeddings of queries and keys."""

from __future__ import annotations

from typing import Any, Sequence

from tessera.calls.recorded import recorded
from tessera.ops.arguments import (
    FLOATS,
    accumulator_of,
    check,
    check_arrays,
    check_dim,
    check_without_gradient,
    count_of,
    dense,
    dtype_of,
    shape_of,
)
from tessera.ops.differentiation import Operator, Results
from tessera.ops.kernels.rotations import rotary_kernel
from tessera.ops.launching import MAX_TILE, Spec, power_of_2
from tessera.ops.outputs import launch_results, takes_out
from tessera.ops.tuning import GPU, choose

_GPU = GPU._replace(lanes=MAX_TILE)
"""A CPU has few rows in a tile, since the angles of each row are elsewhere."""


def _rotate(x: Any, cos: Any, sin: Any, seq_dim: int, interleaved: bool, sign: float) -> Any:
    length, pairs = x.shape[-1], cos.shape[-1]
    rows, block = count_of(x.shape[:-1]), min(power_of_2(cos.shape[-1]), MAX_TILE)
    choice = choose(rotary_kernel, "rows", x, length, rows, ("lanes", "warps"), _GPU)
    lines = min(power_of_2(rows), max(1, MAX_TILE // block // 2), choice.lanes)
    positions, inner = x.shape[seq_dim], count_of(x.shape[seq_dim + 1 : -1])
    of_batch = positions if len(cos.shape) == 3 else 0
    acc = accumulator_of(dtype_of(x), dtype_of(cos))
    numbers = (
        rows, length, pairs, positions, inner, count_of(x.shape[1:-1]), of_batch, sign, lines, block, acc, interleaved,
    )  # fmt: skip
    arrays = (dense(x), dense(cos), dense(sin))
    spec = Spec(x.shape, dtype_of(x))
    programs = -(-rows // lines) if length else 0
    return launch_results(rotary_kernel, programs, arrays, [spec], numbers, choice.warps)[0]


def _forward(input: Any, cos: Any, sin: Any, *, seq_dim: int, interleaved: bool) -> Results:
    return (_rotate(input, cos, sin, seq_dim, interleaved, 1.0),), (cos, sin)


def _backward(
    saved: Any, grads: Any, wanted: Any, *, seq_dim: int, interleaved: bool
) -> Sequence[Any]:
    cos, sin = saved
    return _rotate(grads[0], cos, sin, seq_dim, interleaved, -1.0), None, None


_rotary = Operator("apply_rotary_emb", _forward, _backward)


@recorded
@takes_out
def apply_rotary_emb(
    input: Any, cos: Any, sin: Any, *, interleaved: bool = False, seq_dim: int = -2
) -> Any:
    """(a * cos - b * sin, b * cos + a * sin), for pairs (a, b) of the last dimension.

    torch has no such function.
    cos, sin: a number for each position and pair. Elements behind the last pair stay as they are.
    interleaved: true for pairs of neighbours. Otherwise the first elements of all pairs come first.
    seq_dim: the dimension of positions: -2 for (batch, heads, positions, size), and 1 for
      (batch, positions, heads, size).
    Shapes: cos and sin (positions, pairs), or (batch, positions, pairs), where batch is the first
    extent of input. Types: floats; cos and sin may have others. Errors: E093, E094 for gradients of
    cos and sin.

    Example:
        import numpy as np
        from tessera import ops

        x, angle = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[0.0], [np.pi / 2]])
        y = ops.apply_rotary_emb(x, np.cos(angle), np.sin(angle))
        assert np.allclose(y, [[1, 0], [0, 1]])
    """
    name = "apply_rotary_emb"
    check_arrays(name, FLOATS, input=input, cos=cos, sin=sin)
    check_without_gradient(name, cos=cos, sin=sin)
    shape, angles = shape_of(name, "input", input), shape_of(name, "cos", cos)
    dim = check_dim(name, input, seq_dim, "seq_dim")
    batched = (shape[0],) if len(angles) == 3 else ()
    check(
        len(shape) > 1 and dim < len(shape) - 1 and (not batched or dim > 0),
        f"`input` of `{name}` has shape {shape}, and seq_dim is {seq_dim}",
        "pass (..., positions, ..., size)",
    )
    wanted = (*batched, shape[dim])
    check(
        angles[:-1] == wanted and tuple(sin.shape) == angles and 2 * angles[-1] <= shape[-1],
        f"`cos` and `sin` of `{name}` have shapes {angles} and {tuple(sin.shape)}, and `input` {shape}",
        f"pass {(*wanted, shape[-1] // 2)}, or fewer pairs",
    )
    return _rotary(input, cos, sin, seq_dim=dim, interleaved=bool(interleaved))
