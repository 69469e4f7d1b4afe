# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives with JAX: of elementwise operators, of reductions, and of operators with kernels.

A call with an array that JAX traces is a function of `jax.custom_vjp`. Its backward pass is that of
torch: a scalar function that is derived, or kernels of the operator's own. Calls on arrays with values
launch at once. JAX has no forward derivatives of such functions, and says so itself.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import jax
import numpy

from tessera.calls.derivatives import derive, is_differentiable
from tessera.calls.scalars import is_identity
from tessera.errors import ArgumentError

Backward = Callable[[Any, Sequence[Any], Sequence[bool]], Sequence[Any]]
"""A function of the saved arrays, the gradients of the results, and a flag for each argument that is
true if its gradient is wanted. It returns a gradient, or None, for each argument."""


def is_traced(args: Sequence[Any]) -> bool:
    """True if JAX traces a call with these arguments."""
    return any(isinstance(arg, jax.core.Tracer) for arg in args)


def with_derivative(
    args: Sequence[Any],
    forward: Callable[[Sequence[Any]], tuple[tuple[Any, ...], Any]],
    backward: Backward,
    is_last: bool = True,
) -> tuple[Any, ...]:
    """The results of a call. `forward` returns them, and the arrays that `backward` needs; None for
    all arguments.

    is_last: true if JAX may not differentiate the backward pass. Otherwise it needs the arguments alone.
    """
    places = [at for at, arg in enumerate(args) if isinstance(arg, jax.Array)]
    arrays = [args[at] for at in places]
    kinds = [
        jax.ShapeDtypeStruct(arg.shape, arg.dtype) if isinstance(arg, jax.Array) else None
        for arg in args
    ]
    wanted = [each is not None and is_float(each) for each in kinds]

    def filled(given: Sequence[Any]) -> list[Any]:
        found = list(args)
        for at, each in zip(places, given):
            found[at] = each
        return found

    def primal(*given: Any) -> tuple[Any, ...]:
        return forward(filled(given))[0]

    # JAX differentiates what is saved for a second derivative.
    def save(*given: Any) -> tuple[tuple[Any, ...], Any]:
        if not is_last:
            return call(*given), (given, None)
        results, saved = forward(filled(given))
        return results, (given, saved)

    # Numbers among the arguments are no part of what JAX saves: it would make arrays of them.
    def differentiate(residuals: Any, grads: Sequence[Any]) -> tuple[Any, ...]:
        given, saved = residuals
        found = backward(filled(given) if saved is None else saved, grads, wanted)
        return tuple(_cotangent(kinds[at], found[at]) for at in places)

    call = jax.custom_vjp(primal)
    call.defvjp(save, differentiate)
    return tuple(call(*arrays))


def _cotangent(kind: Any, grad: Any) -> Any:
    """A gradient as JAX wants it: of integers it has a type of its own."""
    if not is_float(kind):
        return numpy.zeros(kind.shape, jax.dtypes.float0)
    return jax.numpy.zeros(kind.shape, kind.dtype) if grad is None else grad


def is_float(array: Any) -> bool:
    """True for an array that may have a gradient."""
    return bool(jax.numpy.issubdtype(array.dtype, jax.numpy.floating))


def constant(args: Sequence[Any]) -> list[Any]:
    """The arguments of a call whose results have no gradient."""
    return [jax.lax.stop_gradient(arg) if isinstance(arg, jax.Array) else arg for arg in args]


# --- Elementwise operators and reductions -------------------------------------------------


def elementwise(op: Any, run: Callable[[Sequence[Any]], Any], args: Sequence[Any]) -> Any:
    """A call of an elementwise operator that JAX traces. `run` does it without a derivative."""
    if not any(map(is_differentiable, op.scalar.results)):
        return run(constant(args))

    def forward(given: Sequence[Any]) -> tuple[tuple[Any, ...], Any]:
        results = run(given)
        return results if isinstance(results, tuple) else (results,), None

    def backward(saved: Any, grads: Sequence[Any], wanted: Sequence[bool]) -> Sequence[Any]:
        return _gradients(op, grads, saved, wanted)

    results = with_derivative(args, forward, backward, is_last=False)
    return results[0] if len(results) == 1 else results


def _gradients(
    op: Any, grads: Sequence[Any], args: Sequence[Any], wanted: Sequence[bool]
) -> list[Any]:
    """A gradient for each argument, None for those that are not wanted."""
    mask = tuple(wanted)
    if not any(mask):
        return [None] * len(args)
    if mask not in op.gradients:
        op.gradients[mask] = type(op)(derive(op.scalar, mask, op.derivative), "same")
    given = [grad for grad, dtype in zip(grads, op.scalar.results) if is_differentiable(dtype)]
    made = op.gradients[mask](*given, *args)
    found = iter(made if isinstance(made, tuple) else (made,))
    return [
        _as_argument(next(found), arg) if is_wanted else None
        for arg, is_wanted in zip(args, wanted)
    ]


def _as_argument(grad: Any, arg: Any) -> Any:
    """The gradient of an argument that was broadcast and promoted."""
    extra = grad.ndim - arg.ndim
    axes = tuple(range(extra)) + tuple(
        extra + at for at, size in enumerate(arg.shape) if size == 1 and grad.shape[extra + at] != 1
    )
    if axes:
        grad = grad.sum(axes).reshape(arg.shape)
    return grad.astype(arg.dtype)


def reduction(op: Any, args: Sequence[Any], axis: Any, keepdims: bool) -> Any:
    """A call of an operator of `tessera.reduction`."""
    if not is_traced(args):
        return op.compute(args, axis, keepdims)
    if op.kind in ("any", "all") or not any(
        isinstance(arg, jax.Array) and is_float(arg) for arg in args
    ):
        return op.compute(constant(args), axis, keepdims)
    is_plain = op.elements.derivative is None and is_identity(op.elements.scalar)

    def forward(given: Sequence[Any]) -> tuple[tuple[Any, ...], Any]:
        return (op.compute(given, axis, keepdims),), None

    def backward(saved: Any, grads: Sequence[Any], wanted: Sequence[bool]) -> Sequence[Any]:
        values = saved[0] if is_plain else op.elements(*saved)
        reduced = getattr(jax.numpy, op.kind)
        (of_values,) = jax.vjp(
            lambda each: reduced(each, axis=axis, keepdims=keepdims).astype(grads[0].dtype), values
        )[1](grads[0])
        if is_plain:
            return [of_values]
        return _gradients(op.elements, [of_values], saved, wanted)

    return with_derivative(args, forward, backward, is_last=False)[0]


# --- Operators with kernels of their own --------------------------------------------------


def operator(op: Any, arrays: Sequence[Any], settings: dict[str, Any]) -> tuple[Any, ...]:
    """The results of an operator of tessera.ops that JAX traces.

    Raises ArgumentError (E094) if a derivative is asked for that the operator does not have.
    """

    def refuse(*_: Any) -> Any:
        raise ArgumentError(
            "E094",
            f"`{op.__name__}` has no second derivative with JAX",
            "differentiate it once, or use JAX's own operator",
        )

    def forward(given: Sequence[Any]) -> tuple[tuple[Any, ...], Any]:
        """The results, and what is saved, whose derivative would be a second one."""
        counts: list[Any] = []

        def both(values: Sequence[Any]) -> tuple[tuple[Any, ...], Any]:
            results, saved = op.forward(*values, **settings)
            counts[:] = [len(results), [each is not None for each in saved]]
            return (*results, *(each for each in saved if each is not None)), ()

        found = with_derivative(given, both, refuse)
        rest = iter(found[counts[0] :])
        return found[: counts[0]], tuple(next(rest) if here else None for here in counts[1])

    def backward(saved: Any, grads: Sequence[Any], wanted: Sequence[bool]) -> Sequence[Any]:
        if op.backward is None:
            raise ArgumentError(
                "E094",
                f"`{op.__name__}` has no derivative",
                "pass jax.lax.stop_gradient(x)",
            )
        places: list[int] = []

        def once(values: Sequence[Any]) -> tuple[tuple[Any, ...], Any]:
            parts = values[: len(saved)], values[len(saved) :]
            found = op.backward(*parts, wanted, **settings)
            found = [each if here else None for each, here in zip(found, wanted)]
            places[:] = [at for at, each in enumerate(found) if each is not None]
            return tuple(found[at] for at in places), ()

        results = with_derivative([*saved, *grads], once, refuse)
        found: list[Any] = [None] * len(wanted)
        for at, each in zip(places, results):
            found[at] = each
        return found

    return with_derivative(arrays, forward, backward)
