# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators around a product of matrices, which is the array library's.

linear_cross_entropy goes through its lines in chunks, so that the logits of one chunk are in memory.

If the losses are reduced, the forward pass also computes the gradients of each chunk that are wanted. Its
logits are there, and a second product for them would take a third more time. The backward pass then
multiplies by one number. Losses that are not reduced have a factor for each line, so their backward pass
computes the logits again.
"""

from __future__ import annotations

from typing import Any, Iterator, Optional, Sequence

from tessera.calls.outputs import library_of
from tessera.calls.pointwise import pointwise
from tessera.language import types
from tessera.ops import losses
from tessera.locks import load
from tessera.ops.accumulation import empty, launch_onto, with_part, zeros
from tessera.ops.arguments import (
    FLOATS,
    FLOATS_AND_INDICES,
    INDICES,
    accumulator_of,
    check,
    check_arrays,
    check_reduction,
    check_without_gradient,
    converted,
    count_of,
    dense,
    dtype_of,
)
from tessera.ops.differentiation import Operator, Results
from tessera.ops.kernels.losses import cross_entropy_backward_kernel
from tessera.ops.launching import make_lines
from tessera.ops.outputs import takes_out
from tessera.ops.padding import cat
from tessera.wording import shown

MIN_CHUNK = 1024
"""Lines of a chunk, unless a call has another number. Fewer make products slow."""
MAX_CHUNKS = 16


@pointwise
def _scaled(x, grad, total):
    return x * (grad / total)


def _slices(rows: int, step: int) -> Iterator[slice]:
    return (slice(begin, min(rows, begin + step)) for begin in range(0, rows, step))


def _logits(x: Any, matrix: Any, bias: Any) -> Any:
    """x @ matrix.T + bias. NumPy's products of 16-bit floats are slow, so they are made in float32."""
    if library_of(x) == "numpy":
        acc = accumulator_of(dtype_of(x))
        x, matrix = converted(x, acc), converted(matrix, acc)
        bias = None if bias is None else converted(bias, acc)
    found = x @ matrix.T
    return found if bias is None else found + bias


def _losses_of(logits: Any, target: Any, weight: Any, settings: dict[str, Any]) -> tuple[Any, ...]:
    """The losses of lines, the weights of their targets, and the logarithms of the sums."""
    (loss, total), saved = losses._classes_forward(
        logits, target, weight, **settings, reduction="none"
    )
    return loss, total, saved[3]


def _to_gradient(
    logits: Any, target: Any, weight: Any, logsum: Any, grad: Any, settings: dict[str, Any]
) -> Any:
    """The gradient of the logits, in their place."""
    programs, lines = make_lines(logits.shape, 1)
    arrays = (logits, dense(target), dense(weight), logsum, dense(grad), None)
    numbers = (*settings.values(), *lines, accumulator_of(dtype_of(logits)), False)
    return launch_onto(cross_entropy_backward_kernel, programs, arrays, logits, numbers)


class _Gradients:
    """Gradients of input, matrix and bias, chunk by chunk."""

    def __init__(self, input: Any, matrix: Any, bias: Any, wanted: Sequence[bool]) -> None:
        # In float16, a sum of many lines may be too large before it is divided by their number.
        dtype = dtype_of(input)
        self._acc = types.float32 if dtype == types.float16 else dtype
        self.matrix, self._wanted = matrix, wanted
        self.of_input = empty(input, input.shape, dtype) if wanted[0] else None
        self.of_matrix: Any = None
        self.of_bias = zeros(bias, bias.shape, accumulator_of(dtype)) if wanted[2] else None

    def add(self, rows: slice, x: Any, grad: Any) -> None:
        """Adds those of a chunk. `grad` is the gradient of its logits."""
        if self.of_input is not None:
            self.of_input = with_part(self.of_input, rows, grad @ self.matrix)
        if self._wanted[1]:
            self._add_to_matrix(x, grad)
        if self.of_bias is not None:
            self.of_bias += grad.sum(0, dtype=self.of_bias.dtype)

    def _add_to_matrix(self, x: Any, grad: Any) -> None:
        if self.of_matrix is None:  # zeros would be written, and read again
            self.of_matrix = converted(grad.T @ x, self._acc)
        elif self.of_matrix.dtype == grad.dtype and library_of(grad) == "torch":
            self.of_matrix.addmm_(grad.T, x)
        else:
            self.of_matrix += grad.T @ x

    def found(self) -> tuple[Any, Any, Any]:
        return self.of_input, self.of_matrix, self.of_bias


def _reduced_forward(
    input: Any, matrix: Any, bias: Any, target: Any, weight: Any, *, settings: dict[str, Any],
    step: int, reduction: str, needed: Sequence[bool],
) -> Results:  # fmt: skip
    """needed: for input, matrix and bias, true if a gradient may be asked for."""
    found, gradients = [], None
    if any(needed):
        gradients = _Gradients(input, matrix, bias, needed)
    for rows in _slices(input.shape[0], step):
        x, part = input[rows], target[rows]
        logits = _logits(x, matrix, bias)
        loss, total, logsum = _losses_of(logits, part, weight, settings)
        found.append((loss, total))
        if gradients is not None:
            ones = zeros(loss, loss.shape, dtype_of(loss)) + 1
            gradients.add(rows, x, _to_gradient(logits, part, weight, logsum, ones, settings))
    each, weights = (cat(list(parts)) for parts in zip(*found))
    total = losses._sum(weights) if reduction == "mean" else losses._sum(weights) * 0 + 1
    result = converted(losses._sum(each) / total, dtype_of(input))
    return (result,), (total, input[:0], *(gradients.found() if gradients else ()))


def _reduced_backward(
    saved: Any, grads: Any, wanted: Any, *, settings: dict[str, Any], step: int, reduction: str,
    needed: Sequence[bool],
) -> Sequence[Any]:  # fmt: skip
    total, like, *found = saved
    dtype = dtype_of(like)
    scaled = [
        None if each is None else converted(_scaled(each, grads[0], total), dtype) for each in found
    ]
    return (*scaled, None, None)


def _lines_forward(
    input: Any, matrix: Any, bias: Any, target: Any, weight: Any, *, settings: dict[str, Any], step: int
) -> Results:  # fmt: skip
    parts = [
        _losses_of(_logits(input[rows], matrix, bias), target[rows], weight, settings)
        for rows in _slices(input.shape[0], step)
    ]
    loss, _, logsum = (cat(list(each)) for each in zip(*parts))
    return (converted(loss, dtype_of(input)),), (input, matrix, bias, target, weight, logsum)


def _lines_backward(
    saved: Any, grads: Any, wanted: Any, *, settings: dict[str, Any], step: int
) -> Sequence[Any]:
    input, matrix, bias, target, weight, logsum = saved
    gradients = _Gradients(input, matrix, bias, wanted[:3])
    for rows in _slices(input.shape[0], step):
        x, logits = input[rows], _logits(input[rows], matrix, bias)
        grad = _to_gradient(logits, target[rows], weight, logsum[rows], grads[0][rows], settings)
        gradients.add(rows, x, grad)
    dtype = dtype_of(input)
    return (
        *(each if each is None else converted(each, dtype) for each in gradients.found()),
        None,
        None,
    )


_reduced = Operator("linear_cross_entropy", _reduced_forward, _reduced_backward)
_lines = Operator("linear_cross_entropy", _lines_forward, _lines_backward)


def _check_linear(input: Any, matrix: Any, bias: Any, target: Any, weight: Any) -> None:
    name = "linear_cross_entropy"
    check_arrays(name, FLOATS, input=input, linear_weight=matrix, linear_bias=bias, weight=weight)
    check_arrays(name, FLOATS_AND_INDICES, input=input, target=target)
    check_arrays(name, INDICES, target=target)
    shapes = tuple(input.shape), tuple(matrix.shape)
    check(
        len(shapes[0]) > 0
        and len(shapes[1]) == 2
        and shapes[0][-1] == shapes[1][1]
        and shapes[1][0] > 0,
        f"`{name}` got input of shape {shapes[0]}, and linear_weight of {shapes[1]}",
        "pass (..., features) and (classes, features)",
    )
    check(
        tuple(target.shape) == shapes[0][:-1],
        f"`target` of `{name}` has shape {tuple(target.shape)}, and `input` {shapes[0]}",
        f"pass a target of shape {shapes[0][:-1]}",
    )
    for key, each in (("linear_bias", bias), ("weight", weight)):
        check(
            each is None or tuple(each.shape) == shapes[1][:1],
            f"`{key}` of `{name}` has another shape than {shapes[1][:1]}",
            "pass an element for each class",
        )
    for key, each in (("linear_weight", matrix), ("linear_bias", bias)):
        check(
            each is None or dtype_of(each) == dtype_of(input),
            f"`{key}` of `{name}` has another type than `input` of {input.dtype}",
            "convert it",
        )
    check_without_gradient(name, weight=weight)


@takes_out
def linear_cross_entropy(
    input: Any, linear_weight: Any, target: Any, *, linear_bias: Optional[Any] = None,
    weight: Optional[Any] = None, reduction: str = "mean", ignore_index: int = -100,
    label_smoothing: float = 0.0, z_loss: float = 0.0, chunk_rows: Optional[int] = None,
) -> Any:  # fmt: skip
    """cross_entropy(input @ linear_weight.T + linear_bias, target, ...), without an array of all logits.

    Products are the array library's. Logits are there for chunk_rows lines at a time: 1024, or a
    sixteenth of the lines if that is more. If linear_weight has a gradient, a chunk has at least half as
    many lines as there are features, so that its logits take half of that gradient. With gradients, the call also has arrays of their size, and
    the gradient of linear_weight is rounded to its type after each chunk (in float32 for float16).
    With reduction="none" the backward pass computes the logits again.
    z_loss: as of cross_entropy. The mean is divided by the sum of weights of the targets.
    Shapes: input (..., features), linear_weight (classes, features), target (...). Types: floats, one for
    input, linear_weight and linear_bias; targets int32 or int64. Errors: E093, E094 for a gradient
    of weight. Missing: `options`, targets that are probabilities, losses of several dimensions.

    Example:
        import numpy as np
        from tessera import ops

        x, matrix, target = np.eye(2), np.log([[0.25, 0.5], [0.75, 0.5]]), np.array([1, -100])
        assert np.isclose(ops.linear_cross_entropy(x, matrix, target), -np.log(0.75))
    """
    name = "linear_cross_entropy"
    _check_linear(input, linear_weight, linear_bias, target, weight)
    check_reduction(name, reduction)
    check(
        0 <= label_smoothing <= 1,
        f"`{name}` got label_smoothing={shown(label_smoothing)}",
        "pass a number from 0 to 1",
    )
    check(
        chunk_rows is None or type(chunk_rows) is int and chunk_rows > 0,
        f"`{name}` got chunk_rows={shown(chunk_rows)}",
        "pass an integer from 1 on, or None",
    )
    settings = {"ignored": ignore_index, "smoothing": float(label_smoothing), "z": float(z_loss)}
    shape, count = tuple(target.shape), count_of(target.shape)
    arrays = (
        input.reshape(count, input.shape[-1]),
        linear_weight,
        linear_bias,
        target.reshape(count),
        weight,
    )
    needed = [_has_gradient(each) for each in arrays[:3]]
    # Each chunk reads and writes the gradient of the matrix. Its logits take half as much memory.
    usual = max(MIN_CHUNK, -(-count // MAX_CHUNKS), input.shape[-1] // 2 * needed[1])
    step = chunk_rows or usual
    if not count:
        empty = input.reshape(-1)[:0]
        return losses.cross_entropy(
            empty.reshape(0, 1), target.reshape(0), reduction=reduction
        ).reshape(shape if reduction == "none" else ())
    if reduction == "none":
        return _lines(*arrays, settings=settings, step=step).reshape(shape)
    return _reduced(*arrays, settings=settings, step=step, reduction=reduction, needed=needed)


def _has_gradient(array: Any) -> bool:
    if array is not None and library_of(array) == "jax":
        return bool(load("tessera.jax.derivatives").is_traced((array,)))
    if array is None or library_of(array) != "torch":
        return False
    import torch

    return bool(array.requires_grad and torch.is_grad_enabled())
