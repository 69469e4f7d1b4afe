# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of optimisers, in place: one launch for each parameter.

Parameters and states may have different floats; a step is computed in the widest (at least float32).
"""

from __future__ import annotations

import sys
from typing import Any, Optional, Sequence

import tessera.language as tl
from tessera.calls.pointwise import pointwise
from tessera.ops.arguments import FLOATS, add_right, check, check_arrays, is_right, kind_of
from tessera.wording import shown


@pointwise
def _plain_sgd(param, grad, lr, decay):
    return param - lr * (grad + decay * param)


@pointwise
def _sgd(param, grad, buffer, lr, decay, momentum, share, nesterov, is_first):
    step = grad + decay * param
    moved = tl.where(is_first != 0, step, momentum * buffer + share * step)
    return param - lr * tl.where(nesterov != 0, step + momentum * moved, moved), moved


@pointwise
def _adamw(param, grad, average, square, lr, decay, beta1, beta2, scale, root_scale, eps):
    first = beta1 * average + (1.0 - beta1) * grad
    second = beta2 * square + (1.0 - beta2) * grad * grad
    kept = param * (1.0 - lr * decay)
    return kept - lr * scale * first / (tl.sqrt(second) * root_scale + eps), first, second


@pointwise
def _lion(param, grad, average, lr, decay, beta1, beta2):
    step = beta1 * average + (1.0 - beta1) * grad
    sign = tl.where(step > 0, 1.0, tl.where(step < 0, -1.0, step))
    return param * (1.0 - lr * decay) - lr * sign, beta2 * average + (1.0 - beta2) * grad


def _check_group(name: str, named: dict[str, Any]) -> str:
    """Checks the arrays of a parameter, which come first. Returns their library. Raises ArgumentError (E093)."""
    library = check_arrays(name, FLOATS, **named)
    check(library != "jax", f"`{name}` got arrays of JAX", "arrays of JAX never change")
    shape = tuple(named["params"].shape)
    for key, each in named.items():
        check(
            tuple(each.shape) == shape,
            f"`{key}` of `{name}` has shape {tuple(each.shape)}, and a parameter {shape}",
            "pass arrays of the parameter's shape",
        )
    return library


def _lists(name: str, **arrays: Any) -> list[tuple[Any, ...]]:
    """The arrays of each parameter. Raises ArgumentError (E093)."""
    only = tuple(arrays.values())
    if is_right(kind_of(name, only)):  # of one parameter, and known
        return [_constant(only)]
    listed = {
        key: list(value) if isinstance(value, (list, tuple)) else [value]
        for key, value in arrays.items()
    }
    count = len(listed["params"])
    for key, values in listed.items():
        check(
            len(values) == count,
            f"`{name}` got {count} parameters, and {len(values)} of `{key}`",
            "pass one for each parameter",
        )
    found = []
    for group in zip(*listed.values()):
        kind = kind_of(name, group)
        library = "torch"
        if not is_right(kind):
            library = _check_group(name, dict(zip(listed, group)))
            add_right(kind)
        found.append(_constant(group) if library == "torch" else group)
    return found


def _constant(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same elements, which autograd does not watch."""
    if not sys.modules["torch"].is_grad_enabled():
        return tensors
    return tuple(each.detach() for each in tensors)


def sgd_step(
    params: Any, grads: Any, momentum_buffers: Optional[Any] = None, *, lr: float,
    momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0,
    nesterov: bool = False, maximize: bool = False, is_first: bool = False,
) -> None:  # fmt: skip
    """params -= lr * buffer, where buffer = momentum * buffer + (1 - dampening) * gradient, in place.

    The gradient is grads + weight_decay * params. With nesterov, the step is gradient + momentum *
    buffer. As torch.optim.SGD.
    momentum_buffers: needed for a momentum that is not 0.
    is_first: true for the first step, which sets the buffer to the gradient.
    Shapes: arrays, or lists of as many arrays. Types: floats. Errors: E093, also for JAX.

    Example:
        import numpy as np
        from tessera import ops

        x = np.array([1.0, 2.0])
        ops.sgd_step(x, np.array([1.0, -1.0]), lr=0.5)
        assert x.tolist() == [0.5, 2.5]
    """
    name, sign = "sgd_step", -1.0 if maximize else 1.0
    if not momentum:
        check(not nesterov, f"`{name}` got nesterov without momentum", "pass momentum=")
        for param, grad in _lists(name, params=params, grads=grads):
            _plain_sgd(param, grad, lr * sign, weight_decay * sign, out=param)
        return
    check(
        momentum_buffers is not None and not (nesterov and dampening),
        f"`{name}` got momentum={shown(momentum)} without buffers, or nesterov with dampening",
        "pass momentum_buffers, and dampening=0 with nesterov",
    )
    listed = _lists(name, params=params, grads=grads, momentum_buffers=momentum_buffers)
    numbers = (momentum, 1.0 - dampening, int(nesterov), int(is_first))
    for param, grad, buffer in listed:
        _sgd(
            param, grad * sign if maximize else grad, buffer, float(lr), float(weight_decay), *numbers,
            out=(param, buffer),
        )  # fmt: skip


def adamw_step(
    params: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, *, step: int, lr: float = 1e-3,
    betas: Sequence[float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
    maximize: bool = False,
) -> None:  # fmt: skip
    """A step of torch.optim.AdamW, in place: decay, then the averages, then their quotient.

    params = params * (1 - lr * weight_decay) - lr * m / (sqrt(v) + eps). The averages m and v
    are of gradients and of their squares, each divided by 1 - beta^step.
    step: the number of the step, from 1 on.
    Shapes: arrays, or lists of as many arrays. Types: floats. Errors: E093, also for JAX.
    Missing: `amsgrad`.

    Example:
        import numpy as np
        from tessera import ops

        x, m, v = np.array([1.0]), np.zeros(1), np.zeros(1)
        ops.adamw_step(x, np.array([3.0]), m, v, step=1, lr=0.1, weight_decay=0.0)
        assert np.allclose(x, 0.9) and np.allclose(m, 0.3)
    """
    name, (beta1, beta2) = "adamw_step", betas
    check(
        type(step) is int and step > 0,
        f"`{name}` got step={shown(step)}",
        "pass the number of the step, from 1 on",
    )
    scale, root_scale = 1 / (1 - beta1**step), 1 / (1 - beta2**step) ** 0.5
    listed = _lists(name, params=params, grads=grads, exp_avgs=exp_avgs, exp_avg_sqs=exp_avg_sqs)
    for param, grad, average, square in listed:
        _adamw(
            param, -grad if maximize else grad, average, square, float(lr), float(weight_decay),
            beta1, beta2, scale, root_scale, float(eps), out=(param, average, square),
        )  # fmt: skip


def lion_step(
    params: Any, grads: Any, exp_avgs: Any, *, lr: float = 1e-4,
    betas: Sequence[float] = (0.9, 0.99), weight_decay: float = 0.0, maximize: bool = False,
) -> None:  # fmt: skip
    """A step of Lion, in place: params = params * (1 - lr * weight_decay) - lr * sign(update).

    update = beta1 * average + (1 - beta1) * grads; then average = beta2 * average + (1 - beta2) * grads.
    torch has no such optimiser.
    Shapes: arrays, or lists of as many arrays. Types: floats. Errors: E093, also for JAX.

    Example:
        import numpy as np
        from tessera import ops

        x, average = np.array([1.0, 1.0]), np.zeros(2)
        ops.lion_step(x, np.array([3.0, -3.0]), average, lr=0.5)
        assert x.tolist() == [0.5, 1.5]
    """
    beta1, beta2 = betas
    listed = _lists("lion_step", params=params, grads=grads, exp_avgs=exp_avgs)
    for param, grad, average in listed:
        _lion(
            param, -grad if maximize else grad, average, float(lr), float(weight_decay), beta1, beta2,
            out=(param, average),
        )  # fmt: skip
