# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bags of rows of a table: their sums, means and maxima."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from tessera.calls.recorded import recorded
from tessera.language import types
from tessera.ops.accumulation import launch_onto, steps, zeros
from tessera.ops.arguments import (
    FLOATS,
    FLOATS_AND_INDICES,
    INDICES,
    accumulator_of,
    check,
    check_arrays,
    converted,
    dense,
    dtype_of,
)
from tessera.ops.differentiation import Operator, Results
from tessera.ops.kernels import bags as kernels
from tessera.ops.launching import Spec, power_of_2
from tessera.ops.outputs import launch_results, takes_out
from tessera.ops.padding import cat
from tessera.wording import shown

_BLOCK = 1024


def _forward(
    table: Any, index: Any, begins: Any, scales: Any, *, kind: str, padding: Optional[int]
) -> Results:
    bags, (extent, length) = begins.shape[0] - 1, table.shape
    block = min(power_of_2(length), _BLOCK)
    shape, dtype = (bags, length), dtype_of(table)
    out, places = launch_results(
        kernels.bag_kernel, bags * -(-length // block),
        (dense(table), dense(index), dense(begins), dense(scales)),
        [Spec(shape, dtype), Spec(shape, types.int64) if kind == "max" else None],
        (index.shape[0], extent, length, padding, block, accumulator_of(dtype), kind),
    )  # fmt: skip
    return (out,), (table, index, begins, scales, places)


def _backward(
    saved: Any, grads: Any, wanted: Any, *, kind: str, padding: Optional[int]
) -> Sequence[Any]:
    table, index, begins, scales, places = saved
    bags, (extent, length) = begins.shape[0] - 1, table.shape
    block, acc = min(power_of_2(length), _BLOCK), accumulator_of(dtype_of(table))
    count, grad, index, begins = index.shape[0], dense(grads[0]), dense(index), dense(begins)
    programs, of_table, of_scales = bags * -(-length // block), None, None
    if wanted[0]:
        of_table = zeros(table, (extent, length), acc)
        if kind == "max":
            of_table = launch_onto(
                kernels.bag_maximum_backward_kernel,
                programs,
                (grad, places),
                of_table,
                (length, block),
            )
        else:
            of_table = launch_onto(
                kernels.bag_backward_kernel, programs, (grad, index, begins, dense(scales)), of_table,
                (count, extent, length, padding, block, kind),
            )  # fmt: skip
        of_table = converted(of_table, dtype_of(table))
    if wanted[3]:
        of_scales = launch_onto(
            kernels.bag_scales_kernel, bags, (dense(table), grad, index, begins),
            zeros(table, (count,), acc), (count, extent, length, padding, block),
        )  # fmt: skip
        of_scales = converted(of_scales, dtype_of(scales))
    return of_table, None, None, of_scales


_bags = Operator("embedding_bag", _forward, _backward)


@recorded
@takes_out
def embedding_bag(
    input: Any, weight: Any, offsets: Optional[Any] = None, *, mode: str = "mean",
    per_sample_weights: Optional[Any] = None, include_last_offset: bool = False,
    padding_idx: Optional[int] = None,
) -> Any:  # fmt: skip
    """The sum, mean or max of the rows weight[input[i]] of each bag, from offsets[b] to offsets[b + 1].

    The last bag ends with input, unless include_last_offset says that offsets end with its end. Each line
    of an input of two dimensions is a bag, without offsets. A bag without rows is 0.
    per_sample_weights: a factor for each row, with mode="sum".
    padding_idx: the number of a row that does not count.
    An index that is negative, or too large, counts as a row of 0, and not for a maximum. Bags end with input.
    Shapes: input (n,) or (bags, n), per_sample_weights as input, weight (rows, size), offsets (bags,) or
    (bags + 1,). Types: floats; indices of int32 or int64. Errors: E093. Missing: `max_norm`,
    `norm_type`, `scale_grad_by_freq`, `sparse`.

    Example:
        import numpy as np
        from tessera import ops

        weight, index = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0, 1])
        y = ops.embedding_bag(index, weight, np.array([0, 2]), mode="sum")
        assert y.tolist() == [[4, 6], [3, 4]]
    """
    name, shape = "embedding_bag", _check(input, weight, per_sample_weights, padding_idx, mode)
    if offsets is None:
        check(
            len(shape) == 2,
            f"`{name}` got indices of shape {shape} and no offsets",
            "pass a line for each bag: (bags, n), or offsets",
        )
        offsets = steps(input, 0, shape[0] + 1, shape[1], dtype_of(input))
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    else:
        check_arrays(name, INDICES, input=input, offsets=offsets)
        has_end = bool(include_last_offset)
        check(
            len(shape) == 1 and len(offsets.shape) == 1 and offsets.shape[0] >= has_end,
            f"`{name}` got indices of shape {shape} and offsets of {tuple(offsets.shape)}",
            "pass (n,) and (bags,), or (bags + 1,) with include_last_offset",
        )
        if not has_end:
            offsets = cat([offsets, steps(offsets, shape[0], 1, 1, dtype_of(offsets))])
    padding = None if padding_idx is None else padding_idx % weight.shape[0]
    return _bags(weight, input, offsets, per_sample_weights, kind=mode, padding=padding)


def _check(input: Any, weight: Any, scales: Any, padding: Any, mode: Any) -> tuple[int, ...]:
    """Checks all arguments but offsets, and returns the shape of input."""
    name = "embedding_bag"
    check_arrays(name, FLOATS_AND_INDICES, input=input, weight=weight, per_sample_weights=scales)
    check_arrays(name, INDICES, input=input)
    check_arrays(name, FLOATS, weight=weight, per_sample_weights=scales)
    shape, rows = tuple(input.shape), weight.shape[0] if len(weight.shape) else 0
    check(
        len(weight.shape) == 2,
        f"`weight` of `{name}` has shape {tuple(weight.shape)}",
        "pass a table of rows: (n, size)",
    )
    check(
        mode in ("sum", "mean", "max"), f"`{name}` got mode={shown(mode)}",
        'pass "sum", "mean" or "max"',
    )  # fmt: skip
    check(
        padding is None or (type(padding) is int and -rows <= padding < rows),
        f"`{name}` got padding_idx={shown(padding)} for {rows} rows",
        "pass the number of a row",
    )
    check(
        scales is None or (mode == "sum" and tuple(scales.shape) == shape),
        f"`{name}` got per_sample_weights with mode={shown(mode)} and indices of shape {shape}",
        'pass a number for each index, and mode="sum"',
    )
    return shape
