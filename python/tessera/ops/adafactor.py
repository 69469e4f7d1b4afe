# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of Adafactor, whose second moments of a matrix are a product of means of rows and columns.

Norms stay arrays of one element on the device, so that a step waits for nothing.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence

import tessera.language as tl
from tessera.calls.pointwise import pointwise
from tessera.calls.reductions import reduction
from tessera.language import types
from tessera.ops.arguments import FLOATS, accumulator_of, check, check_arrays, converted, dtype_of
from tessera.wording import shown


@reduction("mean")
def _mean_square(x):
    return x * x


@reduction("mean")
def _mean(x):
    return x


@pointwise
def _averaged(average, new, share):
    return average + (new - average) * share


@pointwise
def _update_of_matrix(grad, row, column, mean, floor):
    variance = row * column / tl.maximum(mean, floor)
    return grad * tl.rsqrt(tl.maximum(variance, floor * floor))


@pointwise
def _update_of_vector(grad, variance, floor):
    return grad * tl.rsqrt(tl.maximum(variance, floor * floor))


@pointwise
def _stepped(param, update, param_square, update_square, rho, decay, least, threshold):
    length = tl.maximum(tl.sqrt(param_square), least) * rho
    too_large = tl.maximum(tl.sqrt(update_square) / threshold, 1.0)
    return param * decay - length / too_large * update


_EPSILONS = {
    types.float16: 2.0**-10, types.bfloat16: 2.0**-7, types.float32: 2.0**-23, types.float64: 2.0**-52
}  # fmt: skip


def _listed(value: Any, count: int) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    return [value] if count == 1 else [None] * count if value is None else [value]


def _check(param: Any, grad: Any, row: Any, column: Any, variance: Any) -> None:
    """Checks the arrays of a parameter. Raises ArgumentError (E093)."""
    name = "adafactor_step"
    named = {
        "params": param,
        "grads": grad,
        "row_vars": row,
        "col_vars": column,
        "variances": variance,
    }
    library = check_arrays(name, FLOATS, **named)
    check(library != "jax", f"`{name}` got arrays of JAX", "arrays of JAX never change")
    shape = tuple(param.shape)
    wanted = {"grads": shape}
    if len(shape) > 1:
        wanted |= {"row_vars": (*shape[:-1], 1), "col_vars": (*shape[:-2], 1, shape[-1])}
    else:
        wanted |= {"variances": shape}
    for key, each in wanted.items():
        got = named[key]
        check(
            got is not None and tuple(got.shape) == each,
            f"`{key}` of `{name}` has {None if got is None else tuple(got.shape)} for a parameter of "
            f"{shape}",
            f"pass an array of shape {each}",
        )


def adafactor_step(
    params: Any, grads: Any, row_vars: Any, col_vars: Any, variances: Any = None, *, step: int,
    lr: float = 1e-2, beta2_decay: float = -0.8, eps: Sequence[Optional[float]] = (None, 1e-3),
    d: float = 1.0, weight_decay: float = 0.0, maximize: bool = False,
) -> None:  # fmt: skip
    """A step of torch.optim.Adafactor, in place: params -= size * update / max(1, rms(update) / d).

    update = grads / sqrt(v), where v = row_vars * col_vars / mean(row_vars) for two dimensions or more,
    and variances otherwise. They are averages of squares, whose share of new ones is step^beta2_decay.
    size = max(eps[1], rms(params)) * min(lr, 1 / sqrt(step)). Before that, params are multiplied by
    1 - lr * weight_decay. eps[0] is the least v^(1/2); None stands for the distance of 1 to the next
    number of params' type.
    Shapes: arrays, or lists of as many. A parameter (..., n, m) has row_vars (..., n, 1) and col_vars
    (..., 1, m). Another one has variances of its shape. The others are None. Types: floats. Errors:
    E093, also for JAX. Missing: `foreach`.

    Example:
        import numpy as np
        from tessera import ops

        x, row, column = np.ones((2, 3)), np.zeros((2, 1)), np.zeros((1, 3))
        ops.adafactor_step(x, np.full((2, 3), 5.0), row, column, step=1, lr=0.01)
        assert np.allclose(x, 0.99) and np.allclose(row, 25)
    """
    name = "adafactor_step"
    check(
        type(step) is int and step > 0,
        f"`{name}` got step={shown(step)}",
        "pass the number of the step, from 1 on",
    )
    check(d >= 1 and beta2_decay <= 0, f"`{name}` got d={shown(d)} and beta2_decay={shown(beta2_decay)}",
          "pass d from 1 on, and beta2_decay up to 0")  # fmt: skip
    count = len(params) if isinstance(params, (list, tuple)) else 1
    lists = [_listed(each, count) for each in (params, grads, row_vars, col_vars, variances)]
    check(
        all(len(each) == count for each in lists),
        f"`{name}` got {count} parameters, and lists of {', '.join(str(len(each)) for each in lists[1:])}",
        "pass one array, or None, for each parameter",
    )
    for group in zip(*lists):
        _check(*group)
        group = tuple(each.detach() if hasattr(each, "detach") else each for each in group)
        _step(
            *group, floor=eps[0] if eps[0] is not None else _EPSILONS[dtype_of(group[0])], share=step**beta2_decay,
            rho=min(lr, step**-0.5), decay=1 - lr * weight_decay, least=eps[1], threshold=d, sign=-1.0 if maximize else 1.0,
        )  # fmt: skip


def _step(
    param: Any, grad: Any, row: Any, column: Any, variance: Any, *, floor: float, share: float,
    rho: float, decay: float, least: Any, threshold: float, sign: float,
) -> None:  # fmt: skip
    if 0 in param.shape:
        return
    # Squares of 16-bit floats would not be in their range.
    acc = accumulator_of(dtype_of(param), dtype_of(grad))
    wide = converted(grad, acc)
    if len(param.shape) > 1:
        rank = len(param.shape)
        _averaged(row, _mean_square(wide, axis=rank - 1, keepdims=True), share, out=row)
        _averaged(column, _mean_square(wide, axis=rank - 2, keepdims=True), share, out=column)
        mean = _mean(converted(row, acc), axis=rank - 2, keepdims=True)
        update = _update_of_matrix(wide, row, column, mean, floor)
    else:
        _averaged(variance, wide * wide, share, out=variance)
        update = _update_of_vector(wide, variance, floor)
    squares = [
        _mean_square(converted(each, acc).reshape(-1), axis=0, keepdims=True)
        for each in (param, update)
    ]
    one = (1,) * len(param.shape)
    size, length = (each.reshape(one) for each in squares)
    _stepped(param, update, size, length, sign * rho, decay, least, threshold, out=param)
