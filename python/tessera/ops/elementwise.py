# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Other elementwise operators: clamp, where, lerp, addcmul and addcdiv."""

from __future__ import annotations

from typing import Any

import tessera.language as tl
from tessera.calls.pointwise import pointwise
from tessera.ops.arguments import part_of, refuse
from tessera.runtime.jit import jit


@jit
def _at_least(input, min):
    # The last operand is for a NaN alone, whose derivative is 0.
    return tl.where((input < min) | (min != min), min, tl.where(input >= min, input, 0 * input))


@part_of("clamp")
@pointwise
def _clamp(input, min, max):
    above = _at_least(input, min)
    return tl.where((above > max) | (max != max), max, tl.where(above <= max, above, 0 * above))


@part_of("clamp")
@pointwise
def _clamp_min(input, min):
    return _at_least(input, min)


@part_of("clamp")
@pointwise
def _clamp_max(input, max):
    return tl.where((input > max) | (max != max), max, tl.where(input <= max, input, 0 * input))


def clamp(input: Any, min: Any = None, max: Any = None, *, out: Any = None) -> Any:
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
        return _clamp_min(input, min, out=out)
    if min is None:
        return _clamp_max(input, max, out=out)
    return _clamp(input, min, max, out=out)


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
