# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses: of an element, which are summed up or averaged in the same launch, and of a line of classes."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import tessera.language as tl
from tessera.calls.outputs import library_of
from tessera.calls.pointwise import pointwise
from tessera.calls.recorded import recorded
from tessera.calls.reductions import reduction as make_reduction
from tessera.language import types
from tessera.ops.accumulation import launch_onto, zeros
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
    part_of,
)
from tessera.ops.differentiation import Operator, Results
from tessera.ops.kernels import losses as kernels
from tessera.ops.launching import Spec, launch, make_lines, power_of_2
from tessera.runtime.jit import jit
from tessera.ops.outputs import takes_out
from tessera.ops.tuning import choose_lines, threads_of
from tessera.wording import shown


@pointwise
def _quotient(x, y):
    return x / y


class _Loss:
    """A scalar function of elements, and its mean and its sum. Errors name `operator`."""

    def __init__(self, operator: str, function: Any, backward: Any = None) -> None:
        compiled: Any = jit(function)
        self._none = pointwise(promotion="float")(compiled)
        self._reduced = {
            kind: make_reduction(kind, promotion="float")(compiled) for kind in ("mean", "sum")
        }
        elements = (self._none, *(each.elements for each in self._reduced.values()))
        for op in (*elements, *self._reduced.values()):
            part_of(operator)(op)
        for op in elements if backward is not None else ():
            op.backward(backward)

    @classmethod
    def of(cls, operator: str) -> Callable[[Any], _Loss]:
        """Decorates the scalar function."""
        return lambda function: cls(operator, function)

    def __call__(self, operator: str, reduction: str, *args: Any) -> Any:
        if reduction == "batchmean":
            count = args[0].shape[0] if args[0].ndim else 1
            return _quotient(self._reduced["sum"](*args), float(count))
        check_reduction(operator, reduction)
        return self._none(*args) if reduction == "none" else self._reduced[reduction](*args)


def _weight(operator: str, reduction: str, weight: Any) -> Any:
    """The factor of losses whose mean torch divides by the sum of weights."""
    check(
        weight is None or reduction != "mean",
        f'`{operator}` got weight with reduction="mean", which torch divides by the sum of weights',
        'pass reduction="sum", and divide',
    )
    return 1.0 if weight is None else weight


@_Loss.of("mse_loss")
def _squared(input, target, weight):
    return weight * (input - target) * (input - target)


@_Loss.of("l1_loss")
def _absolute(input, target, weight):
    return weight * tl.abs(input - target)


@_Loss.of("huber_loss")
def _huber(input, target, weight, delta):
    size = tl.abs(input - target)
    return weight * tl.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))


@_Loss.of("smooth_l1_loss")
def _smooth(input, target, beta):
    size = tl.abs(input - target)
    return tl.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta)


def _entropy(input, target, weight):
    # torch bounds logarithms at -100.
    yes, no = tl.maximum(tl.log(input), -100.0), tl.maximum(tl.log(1.0 - input), -100.0)
    return -weight * (target * yes + (1.0 - target) * no)


def _entropy_backward(grad, input, target, weight):
    yes, no = tl.maximum(tl.log(input), -100.0), tl.maximum(tl.log(1.0 - input), -100.0)
    scaled = grad * weight
    by_input = scaled * (input - target) / tl.maximum((1.0 - input) * input, 1e-12)
    return by_input, scaled * (no - yes), -grad * (target * yes + (1.0 - target) * no)


_entropies = _Loss("binary_cross_entropy", _entropy, _entropy_backward)


@jit
def _logit_entropy(input, target, pos_weight):
    softplus = tl.maximum(-input, 0.0) + tl.log1p(tl.exp(-tl.abs(input)))
    return (1.0 - target) * input + (1.0 + (pos_weight - 1.0) * target) * softplus


@_Loss.of("binary_cross_entropy_with_logits")
def _logit_entropies(input, target, weight, pos_weight):
    return weight * _logit_entropy(input, target, pos_weight)


@_Loss.of("sigmoid_focal_loss")
def _focal(input, target, alpha, gamma):
    missed = tl.sigmoid(-input) * target + tl.sigmoid(input) * (1.0 - target)
    share = tl.where(alpha >= 0, alpha * target + (1.0 - alpha) * (1.0 - target), 1.0)
    return share * _logit_entropy(input, target, 1.0) * tl.math.pow(missed, gamma)


@_Loss.of("kl_div")
def _divergence(input, target):
    logarithm = tl.log(tl.where(target > 0, target, 1.0))
    return target * (logarithm - input)


@_Loss.of("kl_div")
def _log_divergence(input, target):
    return tl.exp(target) * (target - input)


@_Loss.of("jsd_loss")
def _jensen_shannon(input, target, beta):
    p, q = tl.exp(target), tl.exp(input)
    mean = beta * p + (1.0 - beta) * q
    log_mean = tl.log(tl.where(mean > 0, mean, 1.0))
    of_p = p * (tl.where(p > 0, target, 0.0) - log_mean)
    of_q = q * (tl.where(q > 0, input, 0.0) - log_mean)
    return beta * of_p + (1.0 - beta) * of_q


@recorded
@takes_out
def mse_loss(
    input: Any, target: Any, *, reduction: str = "mean", weight: Optional[Any] = None
) -> Any:
    """weight * (input - target)^2.

    Shapes: arrays that can be broadcast. Types: floats. Errors: E093. Missing: a mean with weight.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.mse_loss(np.array([1.0, 3.0]), np.array([0.0, 0.0])) == 5
    """
    return _squared("mse_loss", reduction, input, target, _weight("mse_loss", reduction, weight))


@recorded
@takes_out
def l1_loss(
    input: Any, target: Any, *, reduction: str = "mean", weight: Optional[Any] = None
) -> Any:
    """weight * |input - target|.

    Shapes: arrays that can be broadcast. Types: floats. Errors: E093. Missing: a mean with weight.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.l1_loss(np.array([1.0, 3.0]), np.array([0.0, 0.0])) == 2
    """
    return _absolute("l1_loss", reduction, input, target, _weight("l1_loss", reduction, weight))


@recorded
@takes_out
def smooth_l1_loss(input: Any, target: Any, *, reduction: str = "mean", beta: float = 1.0) -> Any:
    """d^2 / (2 * beta) where d = |input - target| is less than beta, and d - beta / 2 elsewhere.

    Shapes: arrays that can be broadcast. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.smooth_l1_loss(np.array([0.5, 3.0]), np.zeros(2), reduction="none")
        assert y.tolist() == [0.125, 2.5]
    """
    check(beta >= 0, f"`smooth_l1_loss` got beta={shown(beta)}", "pass a number from 0 on")
    if beta == 0:
        return _absolute("smooth_l1_loss", reduction, input, target, 1.0)
    return _smooth("smooth_l1_loss", reduction, input, target, float(beta))


@recorded
@takes_out
def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0,
    weight: Optional[Any] = None,
) -> Any:  # fmt: skip
    """d^2 / 2 where d = |input - target| is at most delta, and delta * (d - delta / 2) elsewhere.

    Shapes: arrays that can be broadcast. Types: floats. Errors: E093. Missing: a mean with weight.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.huber_loss(np.array([0.5, 3.0]), np.zeros(2), reduction="none", delta=2.0)
        assert y.tolist() == [0.125, 4.0]
    """
    check(delta > 0, f"`huber_loss` got delta={shown(delta)}", "pass a positive number")
    scale = _weight("huber_loss", reduction, weight)
    return _huber("huber_loss", reduction, input, target, scale, float(delta))


@recorded
@takes_out
def binary_cross_entropy(
    input: Any, target: Any, weight: Optional[Any] = None, *, reduction: str = "mean"
) -> Any:
    """-weight * (target * log(input) + (1 - target) * log(1 - input)), with logarithms from -100 on.

    Shapes: arrays that can be broadcast. Types: floats; probabilities, which are not checked.
    Errors: E093. Missing: the check that input is from 0 to 1.

    Example:
        import numpy as np
        from tessera import ops

        assert np.isclose(ops.binary_cross_entropy(np.array([0.25]), np.array([1.0])), np.log(4))
    """
    scale = 1.0 if weight is None else weight
    return _entropies("binary_cross_entropy", reduction, input, target, scale)


@recorded
@takes_out
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Optional[Any] = None, *, reduction: str = "mean",
    pos_weight: Optional[Any] = None,
) -> Any:  # fmt: skip
    """-weight * (pos_weight * target * log(p) + (1 - target) * log(1 - p)), where p = sigmoid(input).

    Shapes: arrays that can be broadcast. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.binary_cross_entropy_with_logits(np.array([0.0]), np.array([1.0]))
        assert np.isclose(y, np.log(2))
    """
    scale = 1.0 if weight is None else weight
    positive = 1.0 if pos_weight is None else pos_weight
    name = "binary_cross_entropy_with_logits"
    return _logit_entropies(name, reduction, input, target, scale, positive)


@recorded
@takes_out
def sigmoid_focal_loss(
    inputs: Any, targets: Any, alpha: float = 0.25, gamma: float = 2.0, reduction: str = "none"
) -> Any:
    """share * (1 - p)^gamma * -log(p), where p is the probability of the right answer.

    share is alpha where targets is 1, and 1 - alpha where it is 0. A negative alpha is none. As
    torchvision's function of that name.
    Shapes: arrays that can be broadcast. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.sigmoid_focal_loss(np.array([0.0]), np.array([1.0]))
        assert np.allclose(y, 0.25 * 0.25 * np.log(2))
    """
    return _focal("sigmoid_focal_loss", reduction, inputs, targets, float(alpha), float(gamma))


@recorded
@takes_out
def kl_div(input: Any, target: Any, *, reduction: str = "mean", log_target: bool = False) -> Any:
    """target * (log(target) - input), of logarithms of probabilities and of probabilities.

    reduction: also "batchmean", the sum divided by the first extent.
    log_target: true if target has logarithms, too.
    Shapes: arrays that can be broadcast. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        p, q = np.array([[0.5, 0.5]]), np.array([[0.25, 0.75]])
        expected = (p * np.log(p / q)).sum()
        assert np.isclose(ops.kl_div(np.log(q), p, reduction="batchmean"), expected)
    """
    loss = _log_divergence if log_target else _divergence
    return loss("kl_div", reduction, input, target)


@recorded
@takes_out
def jsd_loss(input: Any, target: Any, beta: float = 0.5, reduction: str = "batchmean") -> Any:
    """beta * KL(p, m) + (1 - beta) * KL(q, m), where m = beta * p + (1 - beta) * q.

    input and target are the logarithms of q and p. torch has no such function.
    reduction: also "batchmean", the sum divided by the first extent.
    Shapes: arrays that can be broadcast. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.jsd_loss(np.array([[0.0, -np.inf]]), np.array([[-np.inf, 0.0]]))
        assert np.isclose(y, np.log(2))
    """
    check(0 < beta < 1, f"`jsd_loss` got beta={shown(beta)}", "pass a number between 0 and 1")
    return _jensen_shannon("jsd_loss", reduction, input, target, float(beta))


# --- Classes --------------------------------------------------------------------------


@make_reduction("sum")
def _sum(x):
    return x


@make_reduction("mean")
def _mean(x):
    return x


def _lines(kernel: Any, input: Any) -> tuple[int, Any, int]:
    """The lines of classes, along dimension 1, or 0 of a single line: programs, lines, warps."""
    dim = min(1, len(input.shape) - 1)
    choice = choose_lines(kernel, input, input.shape, dim)
    return (*make_lines(input.shape, dim, choice=choice), choice.warps)


def _line_shape(shape: Sequence[int]) -> tuple[int, ...]:
    return (*shape[: min(1, len(shape) - 1)], *shape[2:])


_BLOCK = 1024

_MIN_ZEROS = 1 << 16
"""Elements of a gradient of which a CPU stores zeros first, in a step of its own."""
_MAX_SUMMED = 1 << 15
"""So many lines are summed up by one program at most."""


def _classes_forward(
    input: Any,
    target: Any,
    weight: Any,
    *,
    ignored: int,
    smoothing: float,
    z: float,
    reduction: str,
) -> Results:
    acc = accumulator_of(dtype_of(input))
    programs, lines, warps = _lines(kernels.cross_entropy_kernel, input)
    spec = Spec(_line_shape(input.shape), acc)
    arrays = (dense(input), dense(target), dense(weight))
    loss, total, logsum = launch(
        kernels.cross_entropy_kernel, programs, arrays, [spec] * 3,
        (ignored, smoothing, z, *lines, acc), warps,
    )  # fmt: skip
    if reduction == "none":
        return (loss, total), (*arrays, logsum, None)
    count, is_mean = count_of(spec.shape), reduction == "mean"
    loss, total = launch(
        kernels.sum_lines_kernel, 1, (loss, total), [Spec((), dtype_of(input)), Spec((), acc)],
        (count, min(_BLOCK, power_of_2(count)), acc, is_mean),
    )  # fmt: skip
    return (loss, total), (*arrays, logsum, total if is_mean else None)


def _classes_backward(
    saved: Any, grads: Any, wanted: Any, *, ignored: int, smoothing: float, z: float, reduction: str
) -> Sequence[Any]:
    *arrays, total = saved
    x, acc = arrays[0], accumulator_of(dtype_of(arrays[0]))
    programs, lines, warps = _lines(kernels.cross_entropy_backward_kernel, x)
    (grad,) = launch(
        kernels.cross_entropy_backward_kernel, programs, (*arrays, dense(grads[0]), total),
        [Spec(x.shape, dtype_of(x))], (ignored, smoothing, z, *lines, acc, reduction != "none"), warps,
    )  # fmt: skip
    return grad, None, None


def _soft_forward(input: Any, target: Any, weight: Any, *, smoothing: float) -> Results:
    acc = accumulator_of(dtype_of(input))
    programs, lines, warps = _lines(kernels.soft_cross_entropy_kernel, input)
    spec = Spec(_line_shape(input.shape), acc)
    arrays = (dense(input), dense(target), dense(weight))
    loss, logsum = launch(
        kernels.soft_cross_entropy_kernel, programs, arrays, [spec] * 2, (smoothing, *lines, acc),
        warps,
    )  # fmt: skip
    return (loss,), (*arrays, logsum)


def _soft_backward(saved: Any, grads: Any, wanted: Any, *, smoothing: float) -> Sequence[Any]:
    x, target = saved[:2]
    acc = accumulator_of(dtype_of(x))
    programs, lines, warps = _lines(kernels.soft_cross_entropy_backward_kernel, x)
    specs = [Spec(x.shape, dtype_of(x)), Spec(x.shape, dtype_of(target)) if wanted[1] else None]
    found = launch(
        kernels.soft_cross_entropy_backward_kernel, programs, (*saved, dense(grads[0])), specs,
        (smoothing, *lines, acc), warps,
    )  # fmt: skip
    return (*found, None)


def _likelihood_forward(
    input: Any, target: Any, weight: Any, *, ignored: int, reduction: str
) -> Results:
    shape, acc = _line_shape(input.shape), accumulator_of(dtype_of(input))
    lines, length = count_of(shape), input.shape[min(1, input.ndim - 1)]
    arrays = (dense(input), dense(target), dense(weight))
    numbers = (ignored, lines, length, count_of(input.shape[2:]))
    if reduction == "none":
        loss, total = launch(
            kernels.nll_kernel, -(-lines // _BLOCK), arrays, [Spec(shape, acc)] * 2,
            (*numbers, _BLOCK, acc),
        )  # fmt: skip
        return (loss, total), (*arrays, None)
    loss, total = launch(
        kernels.nll_sum_kernel, 1, arrays, [Spec((), dtype_of(input)), Spec((), acc)],
        (*numbers, min(_BLOCK, power_of_2(lines)), acc, reduction == "mean"),
    )  # fmt: skip
    return (loss, total), (*arrays, total if reduction == "mean" else None)


def _likelihood_backward(
    saved: Any, grads: Any, wanted: Any, *, ignored: int, reduction: str
) -> Sequence[Any]:
    input, target, weight, total = saved
    acc, is_sum = accumulator_of(dtype_of(input)), reduction != "none"
    is_large = count_of(input.shape) >= _MIN_ZEROS and library_of(input) != "jax"
    if is_large and threads_of(input):
        shape, dim = input.shape, min(1, input.ndim - 1)
        count = count_of(_line_shape(shape))
        block = min(_BLOCK, power_of_2(count))
        grad = launch_onto(
            kernels.nll_places_kernel, -(-count // block), (target, weight, dense(grads[0]), total),
            zeros(input, shape, dtype_of(input)),
            (ignored, count, shape[dim], count_of(shape[2:]), block, acc, is_sum),
        )  # fmt: skip
        return grad, None, None
    programs, lines, warps = _lines(kernels.nll_backward_kernel, input)
    numbers = (ignored, *lines, acc, is_sum)
    (grad,) = launch(
        kernels.nll_backward_kernel, programs, (target, weight, dense(grads[0]), total),
        [Spec(input.shape, dtype_of(input))], numbers, warps,
    )  # fmt: skip
    return grad, None, None


_classes = Operator("cross_entropy", _classes_forward, _classes_backward, constants=1)
_soft_classes = Operator("cross_entropy", _soft_forward, _soft_backward)
_likelihood = Operator("nll_loss", _likelihood_forward, _likelihood_backward, constants=1)


def _check_classes(name: str, input: Any, target: Any, weight: Any, reduction: Any) -> None:
    """Checks arguments whose targets are numbers of classes."""
    check_arrays(name, FLOATS, input=input, weight=weight)
    check_arrays(name, FLOATS_AND_INDICES, input=input, target=target)
    check_reduction(name, reduction)
    shape, classes = tuple(input.shape), input.shape[min(1, input.ndim - 1)] if input.ndim else 0
    check(
        classes > 0, f"`input` of `{name}` has shape {shape}, without classes", "pass (N, C, ...)"
    )
    wanted = shape if dtype_of(target) in FLOATS else _line_shape(shape)
    check(
        tuple(target.shape) == wanted,
        f"`target` of `{name}` has shape {tuple(target.shape)}, and `input` {shape}",
        f"pass a target of shape {wanted}",
    )
    check(
        weight is None or tuple(weight.shape) == (classes,),
        f"`weight` of `{name}` has another shape than ({classes},)",
        "pass a weight for each class",
    )
    check_without_gradient(name, weight=weight)


def _reduced(losses: Any, weights: Optional[Any], reduction: str, dtype: types.dtype) -> Any:
    """The losses of lines, or their sum, or that divided by the sum of weights (their number)."""
    if reduction == "none":
        return converted(losses, dtype)
    if reduction == "mean" and weights is None:
        return converted(_mean(losses), dtype)
    total = _sum(losses)
    return converted(_quotient(total, _sum(weights)) if reduction == "mean" else total, dtype)


def _is_one_sum(target: Any, reduction: str) -> bool:
    """True if one program sums up all lines."""
    return reduction != "none" and 0 < count_of(target.shape) <= _MAX_SUMMED


@recorded
@takes_out
def cross_entropy(
    input: Any, target: Any, weight: Optional[Any] = None, *, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0, z_loss: float = 0.0,
) -> Any:  # fmt: skip
    """-weight[target] * log_softmax(input)[target], of classes along dimension 1.

    target: numbers of classes, or probabilities of all classes, which have input's shape.
    z_loss: adds z_loss * log(sum(exp(input)))^2 to each line's loss, before the reduction.
    The mean is divided by the sum of weights of the targets, as torch's. A target that is neither a
    class nor ignore_index has a loss of NaN.
    Shapes: input (C,) or (N, C, ...), target () or (N, ...). Types: floats; targets int32, int64 or
    floats. Errors: E093, E094 for a gradient of weight.

    Example:
        import numpy as np
        from tessera import ops

        x, target = np.log([[0.25, 0.75], [0.5, 0.5]]), np.array([1, -100])
        assert np.isclose(ops.cross_entropy(x, target), -np.log(0.75))
    """
    name = "cross_entropy"
    _check_classes(name, input, target, weight, reduction)
    check(
        0 <= label_smoothing <= 1,
        f"`{name}` got label_smoothing={shown(label_smoothing)}",
        "pass a number from 0 to 1",
    )
    if dtype_of(target) in FLOATS:
        check(z_loss == 0, f"`{name}` got z_loss with probabilities", "pass numbers of classes")
        losses = _soft_classes(input, target, weight, smoothing=float(label_smoothing))
        return _reduced(losses, None, reduction, dtype_of(input))
    is_one = _is_one_sum(target, reduction)
    losses, weights = _classes(
        input, target, weight, ignored=ignore_index, smoothing=float(label_smoothing),
        z=float(z_loss), reduction=reduction if is_one else "none",
    )  # fmt: skip
    return losses if is_one else _reduced(losses, weights, reduction, dtype_of(input))


@recorded
@takes_out
def nll_loss(
    input: Any, target: Any, weight: Optional[Any] = None, *, ignore_index: int = -100,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """-weight[target] * input[target], of classes along dimension 1.

    The mean is divided by the sum of weights of the targets. A target that is neither a class nor
    ignore_index has a loss of NaN.
    Shapes: input (C,) or (N, C, ...), target () or (N, ...). Types: floats; targets int32 or int64.
    Errors: E093, E094 for a gradient of weight.

    Example:
        import numpy as np
        from tessera import ops

        x, target = np.log([[0.25, 0.75], [0.5, 0.5]]), np.array([1, 0])
        assert np.allclose(ops.nll_loss(x, target, reduction="none"), -np.log([0.75, 0.5]))
    """
    check_arrays("nll_loss", INDICES, target=target)
    _check_classes("nll_loss", input, target, weight, reduction)
    is_one = _is_one_sum(target, reduction)
    settings = {"ignored": ignore_index, "reduction": reduction if is_one else "none"}
    losses, weights = _likelihood(input, target, weight, **settings)
    return losses if is_one else _reduced(losses, weights, reduction, dtype_of(input))
