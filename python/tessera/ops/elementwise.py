# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Other elementwise operators: clamp, where, lerp, addcmul, addcdiv, and dropout."""

from __future__ import annotations

import math
import random
import sys
from typing import Any, Optional

import tessera.language as tl
from tessera.calls.pointwise import pointwise
from tessera.ops.arguments import (
    FLOATS,
    accumulator_of,
    check,
    check_arrays,
    dense,
    dtype_of,
    refuse,
)
from tessera.ops.differentiation import Operator, Results
from tessera.ops.kernels.dropout import BLOCK, dropout_kernel
from tessera.ops.launching import Spec, launch
from tessera.wording import shown


@pointwise
def _clamp(input, min, max):
    above = tl.where((input < min) | (min != min), min, input)
    return tl.where((above > max) | (max != max), max, above)


@pointwise
def _clamp_min(input, min):
    return tl.where((input < min) | (min != min), min, input)


@pointwise
def _clamp_max(input, max):
    return tl.where((input > max) | (max != max), max, input)


def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """min(max(input, min), max); max, if it is less than min. None is no bound.

    Shapes: bounds are numbers, or arrays that can be broadcast with input. A NaN stays.
    Types: floats, integers. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.clamp(np.array([-2, 1, 5]), 0, 3).tolist() == [0, 1, 3]
    """
    if max is None and min is None:
        raise refuse("`clamp` got no bound", "pass `min`, `max` or both")
    if max is None:
        return _clamp_min(input, min)
    return _clamp_max(input, max) if min is None else _clamp(input, min, max)


@pointwise(promotion="same")
def where(condition: tl.int1, input, other):
    """input where condition is true, and other elsewhere.

    Shapes: three that can be broadcast. Types: floats, integers, bools.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.where(np.array([True, False]), np.array([1, 2]), 7).tolist() == [1, 7]
    """
    return tl.where(condition, input, other)


@pointwise
def lerp(input, end, weight):
    """input + weight * (end - input).

    Shapes: three that can be broadcast; weight may be a number. Types: floats.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.lerp(np.array([1.0]), np.array([3.0]), 0.75).tolist() == [2.5]
    """
    low, high = input + weight * (end - input), end - (end - input) * (1.0 - weight)
    return tl.where(tl.abs(weight) < 0.5, low, high)


@pointwise
def addcmul(input, tensor1, tensor2, value=1):
    """input + value * tensor1 * tensor2.

    Shapes: three that can be broadcast. Types: floats, integers.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.addcmul(np.array([1.0]), np.array([2.0]), np.array([3.0]), value=2).item() == 13
    """
    return input + value * tensor1 * tensor2


@pointwise
def addcdiv(input, tensor1, tensor2, value=1):
    """input + value * tensor1 / tensor2.

    Shapes: three that can be broadcast. Types: floats.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.addcdiv(np.array([1.0]), np.array([2.0]), np.array([4.0]), value=3).item() == 2.5
    """
    return input + value * (tensor1 / tensor2)


def _drop(input: Any, p: float, seed: int) -> Any:
    count, dtype = math.prod(input.shape), dtype_of(input)
    numbers = (count, p, 1 / (1 - p), seed, accumulator_of(dtype), BLOCK)
    (out,) = launch(
        dropout_kernel, -(-count // BLOCK), (input,), [Spec(input.shape, dtype)], numbers
    )
    return out


def _dropout_forward(input: Any, *, p: float, seed: int) -> Results:
    return (_drop(dense(input), p, seed),), ()


def _dropout_backward(saved: Any, grads: Any, wanted: Any, *, p: float, seed: int) -> Any:
    return (_drop(dense(grads[0]), p, seed),)


_dropout = Operator("dropout", _dropout_forward, _dropout_backward)


def dropout(
    input: Any, p: float = 0.5, training: bool = True, *, seed: Optional[int] = None
) -> Any:
    """0 with probability p, and input / (1 - p) otherwise; input itself if training is false.

    seed: an integer; one seed drops the same elements of one shape on every machine. Without one,
    torch's own generator gives it for tensors, and Python's `random` for other arrays. The statistics
    are those of torch, and the elements are others. JAX needs a seed.
    Shapes: any. Types: floats. Errors: E093. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.dropout(np.ones(10000, np.float32), 0.25, seed=7)
        assert abs((y == 0).mean() - 0.25) < 0.02 and np.allclose(y[y != 0], 4 / 3)
        assert (y == ops.dropout(np.ones(10000, np.float32), 0.25, seed=7)).all()
    """
    library = check_arrays("dropout", FLOATS, input=input)
    check(
        isinstance(p, (int, float)) and 0 <= p <= 1,
        f"`dropout` got p={shown(p)}",
        "pass a probability from 0 to 1",
    )
    if not training or p == 0:
        return input
    if p == 1:
        return input * 0.0
    if seed is None:
        check(library != "jax", "`dropout` of JAX got no seed", "pass seed=")
        if library == "torch":
            seed = int(sys.modules["torch"].randint(1 << 62, ()))
        else:
            seed = random.getrandbits(62)
    check(type(seed) is int, f"`dropout` got seed={shown(seed)}", "pass an integer")
    return _dropout(input, p=float(p), seed=seed)
