# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Other dropouts than of elements to 0: of channels, and those that keep the mean and the variance."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence

from tessera.calls.recorded import recorded
from tessera.ops.arguments import (
    FLOATS,
    accumulator_of,
    check,
    check_arrays,
    dense,
    dtype_of,
)
from tessera.ops.differentiation import Operator, Results
from tessera.ops.kernels.dropouts import dropout_lines_kernel
from tessera.ops.launching import Spec
from tessera.ops.outputs import launch_results, takes_out
from tessera.ops.padding import row_tiles
from tessera.ops.random import (
    checked_seed,
    dropout_gradient,
    keeps_choices,
    launch_dropout,
)
from tessera.wording import shown

_SELU_LOW = -1.7580993408473766
"""The value that selu has far below 0."""


def _dropped(
    x: Any, seeds: Any, length: int, p: float, seed: int, scale: float, shift: float, low: float
) -> Any:
    """The array without some of its lines."""
    dtype, count = dtype_of(x), math.prod(x.shape)
    rows = count // length
    programs, tile, block = row_tiles(x, rows, length)
    numbers = (
        rows, length, p, scale, shift, low, seed, tile, block, accumulator_of(dtype)
    )  # fmt: skip
    spec = Spec(x.shape, dtype)
    return launch_results(
        dropout_lines_kernel, programs if count else 0, (dense(x), seeds), [spec], numbers
    )[0]


def _forward(
    input: Any, seeds: Any, *, length: int, p: float, seed: int, scale: float, shift: float,
    low: float, keeps: bool,
) -> Results:  # fmt: skip
    if not length:  # a decision for each element
        return launch_dropout(input, seeds, p, scale, shift, low, seed, keeps)
    return (_dropped(input, seeds, length, p, seed, scale, shift, low),), (seeds, None)


def _backward(
    saved: Any, grads: Any, wanted: Any, *, length: int, p: float, seed: int, scale: float,
    shift: float, low: float, keeps: bool,
) -> Sequence[Any]:  # fmt: skip
    if not length:
        return dropout_gradient(grads[0], saved, p, scale, seed)
    return _dropped(grads[0], saved[0], length, p, seed, scale, 0.0, 0.0), None


_dropout = Operator("dropout", _forward, _backward)


def _call(
    name: str,
    input: Any,
    p: Any,
    training: bool,
    seed: Any,
    channels: Sequence[int],
    is_alpha: bool,
) -> Any:
    """A dropout of elements, or of the channels of arrays with these numbers of dimensions.

    An array of the smallest number has no batch, so that its first dimension has the channels.
    """
    check_arrays(name, FLOATS, input=input)
    shape = tuple(input.shape)
    check(
        isinstance(p, (int, float)) and 0 <= p <= 1,
        f"`{name}` got p={shown(p)}",
        "pass a probability from 0 to 1",
    )
    check(
        not channels or len(shape) in channels,
        f"`input` of `{name}` has shape {shape}",
        f"pass an array of {' or '.join(map(str, channels))} dimensions",
    )
    if not training or p == 0:
        return input
    begin = 1 if channels and len(shape) == channels[0] and len(channels) == 2 else 2
    # 0 stands for a decision for each element.
    length = max(1, math.prod(shape[begin:])) if channels else 0
    scale, shift, low = 1 / (1 - p) if p < 1 else 0.0, 0.0, 0.0
    if is_alpha and p < 1:
        # With these factors the variance and the mean of selu's results stay 1 and 0.
        scale = ((1 - p) * (1 + p * _SELU_LOW**2)) ** -0.5
        shift = -scale * _SELU_LOW * p
        low = scale * _SELU_LOW + shift
    if p == 1:
        return input * 0.0
    seeds, number = checked_seed(name, input, seed)
    return _dropout(
        input, seeds, length=length, p=float(p), seed=number, scale=scale, shift=shift, low=low,
        keeps=keeps_choices(input),
    )  # fmt: skip


@recorded
@takes_out
def alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, *, seed: Optional[int] = None
) -> Any:
    """a * input + b, or a * -1.7581 + b with probability p; input itself if training is false.

    a and b keep the mean 0 and the variance 1 of an input that has these. For networks with selu.
    seed: as of dropout.
    Shapes: any. Types: floats. Errors: E093. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        x = np.random.default_rng(0).standard_normal(40000)
        y = ops.alpha_dropout(x, 0.3, training=True, seed=5)
        assert abs(y.mean()) < 0.05 and abs(y.std() - 1) < 0.05
    """
    return _call("alpha_dropout", input, p, training, seed, (), True)


@recorded
@takes_out
def feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, *, seed: Optional[int] = None
) -> Any:
    """alpha_dropout of whole channels: one decision for each input[n, c].

    seed: as of dropout.
    Shapes: (N, C, ...). Types: floats. Errors: E093. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.feature_alpha_dropout(np.ones((5, 8, 9)), 0.5, training=True, seed=3)
        assert (y == y[:, :, :1]).all() and len(np.unique(y)) == 2
    """
    return _call("feature_alpha_dropout", input, p, training, seed, (2, 3, 4, 5, 6), True)


@recorded
@takes_out
def dropout1d(
    input: Any, p: float = 0.5, training: bool = True, *, seed: Optional[int] = None
) -> Any:
    """0 for a whole channel with probability p, and input / (1 - p) otherwise.

    seed: as of dropout.
    Shapes: (C, L) or (N, C, L). Types: floats. Errors: E093. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.dropout1d(np.ones((50, 40, 3)), 0.25, seed=3)
        assert (y == y[:, :, :1]).all() and abs((y == 0).mean() - 0.25) < 0.05
    """
    return _call("dropout1d", input, p, training, seed, (2, 3), False)


@recorded
@takes_out
def dropout2d(
    input: Any, p: float = 0.5, training: bool = True, *, seed: Optional[int] = None
) -> Any:
    """0 for a whole channel with probability p, and input / (1 - p) otherwise.

    seed: as of dropout.
    Shapes: (N, C, H, W). Types: floats. Errors: E093. Missing: `inplace`, arrays without a batch (torch
    warns of them).

    Example:
        import numpy as np
        from tessera import ops

        y = ops.dropout2d(np.ones((50, 40, 3, 2)), 0.25, seed=3)
        assert (y == y[:, :, :1, :1]).all() and abs((y == 0).mean() - 0.25) < 0.05
    """
    return _call("dropout2d", input, p, training, seed, (4,), False)


@recorded
@takes_out
def dropout3d(
    input: Any, p: float = 0.5, training: bool = True, *, seed: Optional[int] = None
) -> Any:
    """0 for a whole channel with probability p, and input / (1 - p) otherwise.

    seed: as of dropout.
    Shapes: (C, D, H, W) or (N, C, D, H, W). Types: floats. Errors: E093. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.dropout3d(np.ones((50, 40, 3, 2, 1)), 0.25, seed=3)
        assert (y == y[:, :, :1, :1]).all() and abs((y == 0).mean() - 0.25) < 0.05
    """
    return _call("dropout3d", input, p, training, seed, (4, 5), False)
