# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The activations of torch.nn.functional, and gated ones.

Each is a scalar function. If a branch of `tl.where` could overflow, its operand is replaced by one that
cannot. The derivative of a branch that is not taken is 0 times a factor, which must be finite.
"""

from __future__ import annotations

from typing import Any

import tessera.language as tl
from tessera.calls.pointwise import pointwise
from tessera.calls.recorded import recorded
from tessera.locks import load
from tessera.ops.arguments import (
    FLOATS,
    check_arrays,
    check_dim,
    part_of,
    refuse,
    shape_of,
    split_in_two,
)
from tessera.ops.differentiation import is_one_node
from tessera.ops.outputs import takes_out
from tessera.runtime.jit import jit


@pointwise
def threshold(input, threshold, value):
    """input where input > threshold, and value elsewhere.

    Shapes: any. Types: floats, integers. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.threshold(np.array([1.0, 3.0]), 2.0, -1.0).tolist() == [-1, 3]
    """
    return tl.where(input <= threshold, value, input)


@pointwise
def relu(input):
    """max(input, 0). The derivative at 0 is 0.

    Shapes: any. Types: floats, integers. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.relu(np.array([-1.0, 2.0])).tolist() == [0, 2]
    """
    return tl.where(input <= 0, 0, input)


@pointwise
def relu6(input):
    """min(max(input, 0), 6).

    Shapes: any. Types: floats, integers. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.relu6(np.array([-1.0, 2.0, 7.0])).tolist() == [0, 2, 6]
    """
    return tl.where(input <= 0, 0, tl.where(input >= 6, 6, input))


@pointwise(promotion="float")
def hardtanh(input, min_val=-1.0, max_val=1.0):
    """min(max(input, min_val), max_val). The derivative at both ends is 0.

    Shapes: any. Types: floats. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.hardtanh(np.array([-2.0, 0.5, 3.0])).tolist() == [-1, 0.5, 1]
    """
    return tl.where(input <= min_val, min_val, tl.where(input >= max_val, max_val, input))


@pointwise
def hardsigmoid(input):
    """min(max(input + 3, 0), 6) / 6.

    Shapes: any. Types: floats. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.hardsigmoid(np.array([-4.0, 0.0, 3.0])).tolist() == [0, 0.5, 1]
    """
    # The last operand is for a NaN alone, whose derivative is 0.
    outside = tl.where(input <= -3, 0.0, tl.where(input >= 3, 1.0, 0.0 * input))
    return tl.where((input > -3) & (input < 3), (input + 3) / 6, outside)


@pointwise
def hardswish(input):
    """input * min(max(input + 3, 0), 6) / 6.

    Shapes: any. Types: floats. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.hardswish(np.array([-4.0, 0.0, 3.0])).tolist() == [0, 0, 3]
    """
    inside = tl.where((input <= -3) | (input >= 3), 0.0, input)
    return tl.where(input <= -3, 0.0, tl.where(input >= 3, input, inside * (inside + 3) / 6))


@pointwise
def elu(input, alpha=1.0):
    """input where input > 0, and alpha * (exp(input) - 1) elsewhere.

    Shapes: any. Types: floats. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        assert np.allclose(ops.elu(np.array([-1.0, 2.0])), [np.exp(-1) - 1, 2])
    """
    return tl.where(input > 0, input, alpha * tl.expm1(tl.where(input > 0, 0.0, input)))


@elu.backward
def _elu_backward(grad, input, alpha):
    # By exp: expm1 + 1, which would be derived, has lost the digits of a small exponential.
    low = tl.where(input > 0, 0.0, input)
    of_input = tl.where(input > 0, grad, grad * alpha * tl.exp(low))
    return of_input, tl.where(input > 0, 0.0, grad * tl.expm1(low))


@pointwise
def selu(input):
    """1.0507 * elu(input, 1.6733), with torch's digits.

    Shapes: any. Types: floats. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        assert np.allclose(ops.selu(np.array([1.0])), [1.0507009873554805])
    """
    low = tl.expm1(tl.where(input > 0, 0.0, input))
    return 1.0507009873554805 * tl.where(input > 0, input, 1.6732632423543772 * low)


@selu.backward
def _selu_backward(grad, input):
    share = 1.6732632423543772 * tl.exp(tl.where(input > 0, 0.0, input))
    return 1.0507009873554805 * grad * tl.where(input > 0, 1.0, share)


@pointwise
def celu(input, alpha=1.0):
    """input where input > 0, and alpha * (exp(input / alpha) - 1) elsewhere.

    Shapes: any. Types: floats. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        assert np.allclose(ops.celu(np.array([-2.0, 2.0]), 2.0), [2 * np.exp(-1) - 2, 2])
    """
    return tl.where(input > 0, input, alpha * tl.expm1(tl.where(input > 0, 0.0, input) / alpha))


@celu.backward
def _celu_backward(grad, input, alpha):
    low = tl.where(input > 0, 0.0, input) / alpha
    share = tl.exp(low)
    of_alpha = tl.where(input > 0, 0.0, grad * (tl.expm1(low) - low * share))
    return tl.where(input > 0, grad, grad * share), of_alpha


@pointwise
def leaky_relu(input, negative_slope=0.01):
    """input where input > 0, and negative_slope * input elsewhere.

    Shapes: any. Types: floats. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.leaky_relu(np.array([-2.0, 2.0]), 0.5).tolist() == [-1, 2]
    """
    return tl.where(input > 0, input, negative_slope * input)


@part_of("prelu")
@pointwise
def _prelu(input, weight):
    return tl.where(input > 0, input, weight * input)


@recorded
@takes_out
def prelu(input: Any, weight: Any) -> Any:
    """input where input > 0, and weight * input elsewhere; weight is of dimension 1.

    Shapes: input (N, C, ...) and weight (C,) or (1,); input of one dimension with weight (1,).
    Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        x = np.array([[-2.0, -2.0], [1.0, 1.0]])
        assert ops.prelu(x, np.array([0.5, 0.25])).tolist() == [[-1, -0.5], [1, 1]]
    """
    shape, weights = shape_of("prelu", "input", input), shape_of("prelu", "weight", weight)
    count = weights[0] if weights else 1
    if len(weights) > 1 or count not in (1, shape[1] if len(shape) > 1 else 1):
        raise refuse(
            f"`weight` of `prelu` has shape {weights}, and `input` {shape}",
            "pass one weight, or one for each index of dimension 1",
        )
    if not shape or (count > 1 and len(shape) > 2):
        weight = weight.reshape((count,) + (1,) * (len(shape) - 2) if shape else ())
    return _prelu(input, weight)


@pointwise
def sigmoid(input):
    """1 / (1 + exp(-input)).

    Shapes: any. Types: floats; integers become floats.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.sigmoid(np.array([0.0])).tolist() == [0.5]
    """
    return tl.sigmoid(input)


@pointwise
def tanh(input):
    """The hyperbolic tangent of input.

    Shapes: any. Types: floats; integers become floats.

    Example:
        import numpy as np
        from tessera import ops

        assert np.allclose(ops.tanh(np.array([0.5])), np.tanh(0.5))
    """
    return tl.tanh(input)


@pointwise
def silu(input):
    """input * sigmoid(input).

    Shapes: any. Types: floats. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        assert np.allclose(ops.silu(np.array([1.0])), 1 / (1 + np.exp(-1)))
    """
    return input * tl.sigmoid(input)


@pointwise
def mish(input):
    """input * tanh(log(1 + exp(input))).

    Shapes: any. Types: floats. Missing: `inplace`.

    Example:
        import numpy as np
        from tessera import ops

        assert np.allclose(ops.mish(np.array([1.0])), np.tanh(np.log1p(np.e)))
    """
    return input * tl.tanh(tl.maximum(input, 0.0) + tl.log1p(tl.exp(-tl.abs(input))))


@pointwise
def softplus(input, beta=1.0, threshold=20.0):
    """log(1 + exp(beta * input)) / beta, and input where beta * input > threshold.

    Shapes: any. Types: floats.

    Example:
        import numpy as np
        from tessera import ops

        assert np.allclose(ops.softplus(np.array([0.0, 30.0])), [np.log(2), 30])
    """
    scaled = beta * input
    value = tl.maximum(scaled, 0.0) + tl.log1p(tl.exp(-tl.abs(scaled)))
    return tl.where(scaled > threshold, input, value / beta)


@softplus.backward
def _softplus_backward(grad, input, beta, threshold):
    scaled = beta * input
    is_linear, share = scaled > threshold, tl.sigmoid(scaled)
    value = tl.maximum(scaled, 0.0) + tl.log1p(tl.exp(-tl.abs(scaled)))
    of_beta = tl.where(is_linear, 0.0, grad * (scaled * share - value) / (beta * beta))
    return tl.where(is_linear, grad, grad * share), of_beta, 0.0 * grad


@pointwise
def logsigmoid(input):
    """log(sigmoid(input)).

    Shapes: any. Types: floats.

    Example:
        import numpy as np
        from tessera import ops

        assert np.allclose(ops.logsigmoid(np.array([0.0, -200.0])), [-np.log(2), -200])
    """
    return tl.minimum(input, 0.0) - tl.log1p(tl.exp(-tl.abs(input)))


@logsigmoid.backward
def _logsigmoid_backward(grad, input):
    return grad * tl.sigmoid(-input)


@pointwise
def softsign(input):
    """input / (1 + |input|).

    Shapes: any. Types: floats; integers become floats.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.softsign(np.array([-1.0, 3.0])).tolist() == [-0.5, 0.75]
    """
    return input / (1 + tl.abs(input))


@pointwise
def tanhshrink(input):
    """input - tanh(input).

    Shapes: any. Types: floats; integers become floats.

    Example:
        import numpy as np
        from tessera import ops

        assert np.allclose(ops.tanhshrink(np.array([1.0])), 1 - np.tanh(1))
    """
    return input - tl.tanh(input)


@pointwise
def hardshrink(input, lambd=0.5):
    """input where |input| > lambd, and 0 elsewhere.

    Shapes: any. Types: floats.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.hardshrink(np.array([-1.0, 0.25])).tolist() == [-1, 0]
    """
    return tl.where((input >= -lambd) & (input <= lambd), 0.0, input)


@pointwise
def softshrink(input, lambd=0.5):
    """input less lambd in size, and 0 where |input| <= lambd.

    Shapes: any. Types: floats.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.softshrink(np.array([-1.0, 0.25])).tolist() == [-0.5, 0]
    """
    low = tl.where(input < -lambd, input + lambd, 0.0 * input)
    return tl.where(input > lambd, input - lambd, low)


@jit
def _normal(x):
    """The distribution function of the normal distribution."""
    return 0.5 * (1 + tl.erf(0.7071067811865476 * x))


@part_of("gelu")
@pointwise(promotion="float")
def _gelu(input):
    return input * _normal(input)


@jit
def _tanh_gelu_of(x):
    # sqrt(2 / pi)
    return 0.5 * x * (1 + tl.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


@part_of("gelu")
@pointwise(promotion="float")
def _tanh_gelu(input):
    return _tanh_gelu_of(input)


def gelu(input: Any, approximate: str = "none", *, out: Any = None) -> Any:
    """input * P(input), where P is the distribution function of the normal distribution.

    approximate: "tanh" is 0.5 * input * (1 + tanh(sqrt(2/pi) * (input + 0.044715 * input^3))).
    Shapes: any. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert np.allclose(ops.gelu(np.array([1.0, -1.0])), [0.841344746, -0.158655254])
    """
    if approximate == "none":
        return _gelu(input, out=out)
    if approximate == "tanh":
        return _tanh_gelu(input, out=out)
    raise refuse(f"`gelu` got approximate={approximate!r}", 'pass "none" or "tanh"')


# --- Gated activations ----------------------------------------------------------------


@part_of("glu")
@pointwise
def _glu(input, gate):
    return input * tl.sigmoid(gate)


@recorded
@takes_out
def glu(input: Any, dim: int = -1) -> Any:
    """a * sigmoid(b), where a and b are the halves of input along dim.

    Shapes: an even extent of dim, which the result has half of. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.glu(np.array([3.0, 5.0, 0.0, 0.0])).tolist() == [1.5, 2.5]
    """
    check_arrays("glu", FLOATS, input=input)
    dim = check_dim("glu", input, dim)
    halves = split_in_two("glu", input, dim)
    if is_one_node(input):
        gradients: Any = load("tessera.ops.activation_gradients")
        return gradients.glu(_glu_of, dim, input)
    return _glu(*halves)


def _glu_of(input: Any, dim: int) -> Any:
    return _glu(*split_in_two("glu", input, dim))


@pointwise
def swiglu(gate, value):
    """silu(gate) * value. Halves of one array are passed as views.

    Shapes: two that can be broadcast. Types: floats.

    Example:
        import numpy as np
        from tessera import ops

        assert np.allclose(ops.swiglu(np.array([1.0]), np.array([2.0])), 2 / (1 + np.exp(-1)))
    """
    return gate * tl.sigmoid(gate) * value


@pointwise(promotion="float")
def geglu(gate, value):
    """gelu(gate) * value, with the exact gelu.

    Shapes: two that can be broadcast. Types: floats.

    Example:
        import numpy as np
        from tessera import ops

        assert np.allclose(ops.geglu(np.array([1.0]), np.array([2.0])), 2 * 0.841344746)
    """
    return gate * _normal(gate) * value


@pointwise(promotion="float")
def geglu_tanh(gate, value):
    """gelu(gate, approximate="tanh") * value.

    Shapes: two that can be broadcast. Types: floats.

    Example:
        import numpy as np
        from tessera import ops

        assert np.allclose(ops.geglu_tanh(np.array([1.0]), np.array([2.0])), 2 * 0.841192)
    """
    return _tanh_gelu_of(gate) * value


@pointwise
def reglu(gate, value):
    """relu(gate) * value.

    Shapes: two that can be broadcast. Types: floats, integers.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.reglu(np.array([-1.0, 2.0]), np.array([3.0, 3.0])).tolist() == [0, 6]
    """
    return tl.where(gate <= 0, 0, gate) * value
