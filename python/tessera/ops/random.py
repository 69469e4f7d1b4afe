# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators with random numbers: dropout, rrelu and gumbel_softmax.

One seed gives the same elements for one shape on every machine. The statistics are those of torch.
"""

from __future__ import annotations

import functools
import math
import random as python_random
import sys
from typing import Any, NamedTuple, Optional, Sequence

import tessera.language as tl
from tessera.calls import recording
from tessera.calls.outputs import library_of
from tessera.calls.pointwise import pointwise
from tessera.calls.recorded import recorded
from tessera.language import types
from tessera.ops.activations import leaky_relu
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
from tessera.ops.kernels.random import (
    BLOCK,
    DROPOUT_BLOCK,
    dropout_kernel,
    gumbel_kernel,
    mark_places_kernel,
    rrelu_kernel,
)
from tessera.ops.launching import Spec, launch, make_lines
from tessera.ops.outputs import launch_results, takes_out
from tessera.ops.reductions import argmax
from tessera.ops.softmaxes import softmax
from tessera.ops.tuning import choose, threads_of
from tessera.wording import shown


class Seed(NamedTuple):
    """The seed of a launch: an array with it, or else the number."""

    array: Any
    number: int


def checked_seed(name: str, like: Any, seed: Any) -> Seed:
    """The seed that was passed, or one of the library's own generator. Each call of a program draws another.

    A tensor of CUDA has one of the generator of its device, which the call does not wait for.
    """
    library = library_of(like)
    if seed is not None:
        check(type(seed) is int, f"`{name}` got seed={shown(seed)}", "pass an integer")
        return Seed(None, int(seed))
    # Recording a call draws nothing: the next draws would be others than in a later run of the same seed.
    if library == "torch":
        torch = sys.modules["torch"]
        draw = functools.partial(torch.randint, 1 << 62, (), device=like.device)
        like_it = functools.partial(torch.zeros, (), dtype=torch.int64, device=like.device)
        return Seed(recording.create(draw, like_it), 0)
    if library == "numpy":
        return Seed(recording.create(_drawn, lambda: sys.modules["numpy"].zeros((), "int64")), 0)
    return Seed(None, drawn_seed(name, library, None))


def _drawn() -> Any:
    numpy = sys.modules["numpy"]
    return numpy.array(python_random.getrandbits(62), numpy.int64)


def drawn_seed(name: str, library: str, seed: Any) -> int:
    """The seed, or one of the library's own generator, as a number. A call that draws it is not recorded."""
    if seed is None:
        check(library != "jax", f"`{name}` of JAX got no seed", "pass seed=")
        if recording.current() is not None:
            raise recording.NotRecorded
        if library == "torch":
            return int(sys.modules["torch"].randint(1 << 62, ()))
        return python_random.getrandbits(62)
    check(type(seed) is int, f"`{name}` got seed={shown(seed)}", "pass an integer")
    return int(seed)


def _launch_draws(kernel: Any, arrays: Sequence[Any], *numbers: Any) -> Any:
    """An array like the first one, of the elements in their order."""
    count, dtype = math.prod(arrays[0].shape), dtype_of(arrays[0])
    # The block is not tuned: the random number of an element depends on it.
    warps = choose(kernel, "flat", arrays[0], count, 1, ("warps",)).warps
    rest = (count, *numbers, accumulator_of(dtype), BLOCK)
    spec = Spec(arrays[0].shape, dtype)
    return launch_results(
        kernel, -(-count // BLOCK), tuple(map(dense, arrays)), [spec], rest, warps
    )[0]


def keeps_choices(input: Any) -> bool:
    """True if a dropout should store which elements it keeps: for a gradient on a CPU, where a byte takes
    less than to draw again. A GPU draws while it waits for memory."""
    return (
        library_of(input) == "torch"
        and bool(input.requires_grad)
        and bool(sys.modules["torch"].is_grad_enabled())
        and threads_of(input) > 0
    )


@part_of("dropout")
@pointwise(promotion="same")
def _of_kept(grad, kept: tl.int1, scale):
    return tl.where(kept, grad * scale, 0.0)


def launch_dropout(
    x: Any, seeds: Any, p: float, scale: float, shift: float, low: float, seed: int, keeps: bool
) -> Results:
    """x * scale + shift, or `low` with probability p; and what its gradient needs: which elements are kept,
    or the seeds."""
    # The block is not tuned: the random number of an element depends on it.
    count, block, dtype = math.prod(x.shape), DROPOUT_BLOCK, dtype_of(x)
    warps = choose(dropout_kernel, "flat", x, count, 1, ("warps",)).warps
    specs = [Spec(x.shape, dtype), Spec(x.shape, types.int1) if keeps else None]
    numbers = (
        count, p, scale, shift, low, seed, accumulator_of(dtype), block, bool(shift or low),
    )  # fmt: skip
    out, kept = launch_results(
        dropout_kernel, -(-count // block), (dense(x), seeds), specs, numbers, warps
    )
    return (out,), (seeds, kept)


def dropout_gradient(
    grad: Any, saved: Sequence[Any], p: float, scale: float, seed: int
) -> Sequence[Any]:
    """The gradient of launch_dropout by its arguments."""
    seeds, kept = saved
    if kept is not None:
        return _of_kept(grad, kept, scale), None
    return launch_dropout(grad, seeds, p, scale, 0.0, 0.0, seed, False)[0][0], None


def _dropout_forward(input: Any, seeds: Any, *, p: float, seed: int, keeps: bool) -> Results:
    return launch_dropout(input, seeds, p, 1 / (1 - p), 0.0, 0.0, seed, keeps)


def _dropout_backward(
    saved: Any, grads: Any, wanted: Any, *, p: float, seed: int, keeps: bool
) -> Sequence[Any]:
    return dropout_gradient(grads[0], saved, p, 1 / (1 - p), seed)


_dropout = Operator("dropout", _dropout_forward, _dropout_backward)


@recorded
@takes_out
def dropout(
    input: Any, p: float = 0.5, training: bool = True, *, seed: Optional[int] = None
) -> Any:
    """0 with probability p, and input / (1 - p) otherwise; input itself if training is false.

    seed: an integer; one seed drops the same elements of one shape on every machine. Without one, torch's
    own generator of the device gives it for tensors, and Python's `random` for other arrays. The statistics
    are those of torch, and the elements are others. JAX needs a seed.
    Shapes: any. Types: floats. Errors: E093. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.dropout(np.ones(10000, np.float32), 0.25, seed=7)
        assert abs((y == 0).mean() - 0.25) < 0.02 and np.allclose(y[y != 0], 4 / 3)
        assert (y == ops.dropout(np.ones(10000, np.float32), 0.25, seed=7)).all()
    """
    check_arrays("dropout", FLOATS, input=input)
    check(
        isinstance(p, (int, float)) and 0 <= p <= 1,
        f"`dropout` got p={shown(p)}",
        "pass a probability from 0 to 1",
    )
    if not training or p == 0:
        return input
    if p == 1:
        return input * 0.0
    seeds, number = checked_seed("dropout", input, seed)
    return _dropout(input, seeds, p=float(p), seed=number, keeps=keeps_choices(input))


def _rrelu_forward(input: Any, seeds: Any, *, lower: float, upper: float, seed: int) -> Results:
    found = _launch_draws(rrelu_kernel, (input, input, seeds), lower, upper, seed)
    return (found,), (input, seeds)


def _rrelu_backward(
    saved: Any, grads: Any, wanted: Any, *, lower: float, upper: float, seed: int
) -> Sequence[Any]:
    input, seeds = saved
    return _launch_draws(rrelu_kernel, (input, grads[0], seeds), lower, upper, seed), None


_rrelu = Operator("rrelu", _rrelu_forward, _rrelu_backward)


@recorded
@takes_out
def rrelu(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, *,
    seed: Optional[int] = None,
) -> Any:  # fmt: skip
    """input where input >= 0, and slope * input elsewhere; slope is from lower to upper, at random.

    training: false for the slope (lower + upper) / 2. seed: as of dropout.
    Shapes: any. Types: floats. Errors: E093. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.rrelu(np.array([-8.0, 3.0]), 0.25, 0.5, training=True, seed=1)
        assert -4 <= y[0] <= -2 and y[1] == 3
    """
    check_arrays("rrelu", FLOATS, input=input)
    check(
        lower <= upper,
        f"`rrelu` got lower={shown(lower)} and upper={shown(upper)}",
        "pass a lower bound that is not above the upper one",
    )
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    seeds, number = checked_seed("rrelu", input, seed)
    return _rrelu(input, seeds, lower=float(lower), upper=float(upper), seed=number)


def _gumbel_forward(input: Any, *, tau: float, seed: int) -> Results:
    return (_launch_draws(gumbel_kernel, (input,), tau, seed),), ()


def _gumbel_backward(
    saved: Any, grads: Any, wanted: Any, *, tau: float, seed: int
) -> Sequence[Any]:
    return (grads[0] if tau == 1 else grads[0] / tau,)


_gumbel = Operator("gumbel_softmax", _gumbel_forward, _gumbel_backward)


def _hard_forward(input: Any, *, dim: int) -> Results:
    shape = tuple(input.shape)
    programs, lines = make_lines(shape, dim)
    places = argmax(input, dim)
    spec = Spec(shape, dtype_of(input))
    return launch(mark_places_kernel, programs, (dense(places),), [spec], lines), ()


def _hard_backward(saved: Any, grads: Any, wanted: Any, *, dim: int) -> Sequence[Any]:
    return (grads[0],)


_hard = Operator("gumbel_softmax", _hard_forward, _hard_backward)


@takes_out
def gumbel_softmax(
    logits: Any, tau: float = 1.0, hard: bool = False, *, dim: int = -1, seed: Optional[int] = None
) -> Any:
    """softmax((logits + noise) / tau) along dim, where the noise has the Gumbel distribution.

    hard: true for 1 at the first largest element and 0 elsewhere, with the gradient of the softmax.
    seed: as of dropout.
    Shapes: any. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.gumbel_softmax(np.zeros((5, 8)), 0.5, seed=3)
        assert np.allclose(y.sum(1), 1) and (y != ops.softmax(np.zeros((5, 8)))).all()
    """
    library = check_arrays("gumbel_softmax", FLOATS, logits=logits)
    check(tau > 0, f"`gumbel_softmax` got tau={shown(tau)}", "pass a positive number")
    seed = drawn_seed("gumbel_softmax", library, seed)
    soft = softmax(_gumbel(logits, tau=float(tau), seed=seed), dim)
    is_whole = bool(hard) and len(soft.shape) > 0 and 0 not in soft.shape
    return _hard(soft, dim=check_dim("gumbel_softmax", soft, dim)) if is_whole else soft
