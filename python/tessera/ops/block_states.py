# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of 8-bit codes with a scale for each block, and steps of optimisers whose states are these.

The format: the elements in their order are divided into blocks of 256, the last of which may be shorter.
A block has a scale, the largest absolute value in it, of float32. An element has a code c:

- signed (int8, from -127 to 127): the element is scale * (c / 127)^3;
- unsigned (uint8): the element is scale * (c / 255)^4.

So about half of the codes of a block are for the highest decade, a quarter for the next, and so on. The
least signed value that is not 0 is 5e-7 of the scale, the least unsigned one 2e-10. Codes are those next
to the root; an unsigned element above 0 has a code above 0. A block with a NaN has the scale NaN.
All codes 0 are an array of zeros.
"""

from __future__ import annotations

from typing import Any, Sequence

from tessera.calls.outputs import is_dense
from tessera.calls.recorded import recorded
from tessera.language import types
from tessera.ops.arguments import (
    FLOATS,
    accumulator_of,
    add_right,
    check,
    check_arrays,
    count_of,
    dense,
    dtype_of,
    is_right,
    kind_of,
)
from tessera.ops.differentiation import Operator, Results
from tessera.ops.kernels import block_states as kernels
from tessera.ops.kernels.block_states import BLOCK, ROWS
from tessera.ops.launching import Spec, launch
from tessera.ops.outputs import takes_out, takes_two
from tessera.runtime.arrays import find_dtype
from tessera.wording import shown

_STATES = (types.int8, types.uint8, types.float32)
_PARAMS_AND_CODES = (*FLOATS, types.int8, types.uint8)


def _blocks(count: int) -> int:
    return -(-count // BLOCK)


def _programs(count: int) -> int:
    return -(-_blocks(count) // ROWS)


def _encode_forward(input: Any, *, signed: bool) -> Results:
    count = count_of(input.shape)
    specs = [
        Spec(input.shape, types.int8 if signed else types.uint8),
        Spec((_blocks(count),), types.float32),
    ]
    numbers = (count, ROWS, BLOCK)
    return launch(kernels.encode_kernel, _programs(count), (dense(input),), specs, numbers), ()


def _decode_forward(codes: Any, scales: Any, *, dtype: types.dtype) -> Results:
    count = count_of(codes.shape)
    return launch(
        kernels.decode_kernel, _programs(count), (dense(codes), dense(scales)),
        [Spec(codes.shape, dtype)], (count, ROWS, BLOCK),
    ), ()  # fmt: skip


_encode = Operator("quantize_blocks", _encode_forward, None)
_decode = Operator("dequantize_blocks", _decode_forward, None)


@recorded
@takes_two
def quantize_blocks(input: Any, signed: bool = True) -> tuple[Any, Any]:
    """8-bit codes of input, and a scale for each block of 256 elements.

    The elements are scale * (code / 127)^3, with codes of int8. If signed is false, they are
    scale * (code / 255)^4, with codes of uint8, and the sign is lost. The scale is the largest absolute value of its
    block. This is the format of the states of adamw8bit_step and lion8bit_step.
    Shapes: any; the codes have input's, the scales are (blocks,). Types: floats. Errors: E093, E094 for
    a gradient. torch has no such function.

    Example:
        import numpy as np
        from tessera import ops

        codes, scales = ops.quantize_blocks(np.array([0.0, -2.0, 2.0 * (64 / 127) ** 3]))
        assert codes.tolist() == [0, -127, 64] and scales.tolist() == [2]
    """
    check_arrays("quantize_blocks", FLOATS, input=input)
    found: tuple[Any, Any] = _encode(input, signed=bool(signed))
    return found


@recorded
@takes_out
def dequantize_blocks(codes: Any, scales: Any, dtype: Any = None) -> Any:
    """The elements of codes of int8 or uint8, and scales, as quantize_blocks makes them.

    dtype: a type of floats of the library; float32 without one.
    Shapes: codes of any, scales (blocks,). Types: int8 or uint8, with scales of float32. Errors: E093.
    torch has no such function.

    Example:
        import numpy as np
        from tessera import ops

        x = np.random.default_rng(0).standard_normal(1000)
        y = ops.dequantize_blocks(*ops.quantize_blocks(x))
        assert abs(y - x).max() < 0.04 * abs(x).max()
    """
    name = "dequantize_blocks"
    _check_state(name, codes, scales)
    wanted = types.float32 if dtype is None else find_dtype(dtype)
    check(wanted in FLOATS, f"`{name}` got dtype={shown(dtype)}", "pass a type of floats")
    assert wanted is not None
    return _decode(codes, scales, dtype=wanted)


def _check_state(
    name: str, codes: Any, scales: Any, wanted: Any = (types.int8, types.uint8)
) -> None:
    """Checks codes and scales. Raises ArgumentError (E093)."""
    check_arrays(name, _STATES, codes=codes, scales=scales)
    if dtype_of(codes) not in wanted or dtype_of(scales) != types.float32:
        check_arrays(name, wanted, codes=codes)
        check_arrays(name, (types.float32,), scales=scales)
    blocks = (_blocks(count_of(codes.shape)),)
    check(
        tuple(scales.shape) == blocks,
        f"the scales of `{name}` have shape {tuple(scales.shape)} for codes of {tuple(codes.shape)}",
        f"pass scales of shape {blocks}",
    )


def _check_group(name: str, param: Any, grad: Any, *states: Any) -> str:
    """Checks the arrays of a parameter. Returns their library. Raises ArgumentError (E093)."""
    library = check_arrays(name, FLOATS, params=param, grads=grad)
    check(library != "jax", f"`{name}` got arrays of JAX", "arrays of JAX never change")
    check_arrays(name, _PARAMS_AND_CODES, params=param, codes=states[0])
    for at in range(0, len(states), 2):
        _check_state(name, states[at], states[at + 1], (types.uint8 if at else types.int8,))
    for each in (grad, states[0], states[-2]):
        check(
            tuple(each.shape) == tuple(param.shape),
            f"`{name}` got an array of shape {tuple(each.shape)} for a parameter of "
            f"{tuple(param.shape)}",
            "pass arrays of the parameter's shape",
        )
    check(
        all(map(is_dense, states)),
        f"`{name}` got codes or scales with gaps",
        "pass contiguous arrays: they change in place",
    )
    return library


def _lists(name: str, params: Any, *others: Any) -> list[tuple[Any, ...]]:
    """The arrays of each parameter: param, grad, then codes and scales. Raises ArgumentError (E093)."""
    lists = [
        list(each) if isinstance(each, (list, tuple)) else [each] for each in (params, *others)
    ]
    check(
        all(len(each) == len(lists[0]) for each in lists),
        f"`{name}` got {len(lists[0])} parameters, and lists of {', '.join(str(len(e)) for e in lists[1:])}",
        "pass one array for each parameter",
    )
    found = []
    for group in zip(*lists):
        kind = kind_of(name, group)
        library = "torch"
        if not is_right(kind):
            library = _check_group(name, *group)
            add_right(kind)
        found.append(tuple(each.detach() if library == "torch" else each for each in group))
    return found


def _step(kernel: Any, arrays: Sequence[Any], numbers: Sequence[Any]) -> None:
    """Launches a kernel that changes a parameter and its states, in place."""
    param, grad, *states = arrays
    target, count = dense(param), count_of(param.shape)
    acc = accumulator_of(dtype_of(param), dtype_of(grad))
    rest = (count, *numbers, ROWS, BLOCK, acc)
    launch(kernel, _programs(count), (target, dense(grad), *states), [], rest)
    if target is not param:
        param[...] = target


def adamw8bit_step(
    params: Any, grads: Any, exp_avgs: Any, exp_avg_scales: Any, exp_avg_sqs: Any,
    exp_avg_sq_scales: Any, *, step: int, lr: float = 1e-3, betas: Sequence[float] = (0.9, 0.999),
    eps: float = 1e-8, weight_decay: float = 1e-2, maximize: bool = False,
) -> None:  # fmt: skip
    """A step of adamw_step whose averages are 8-bit codes with scales, as of quantize_blocks, in place.

    exp_avgs: signed codes; exp_avg_sqs: unsigned ones. Zeros begin. The step is made with averages that
    are not rounded yet.
    step: the number of the step, from 1 on.
    Shapes: arrays, or lists of as many; scales (ceil(n / 256),) for n elements. Types: floats, with codes
    of int8 and uint8, and scales of float32. Errors: E093, also for JAX. torch has no such optimiser.

    Example:
        import numpy as np
        from tessera import ops

        x, m, v = np.array([1.0]), np.zeros(1, np.int8), np.zeros(1, np.uint8)
        m_scale, v_scale = np.zeros(1, np.float32), np.zeros(1, np.float32)
        ops.adamw8bit_step(x, np.array([3.0]), m, m_scale, v, v_scale, step=1, lr=0.1, weight_decay=0.0)
        assert np.allclose(x, 0.9) and np.allclose(ops.dequantize_blocks(m, m_scale), 0.3)
    """
    name, (beta1, beta2) = "adamw8bit_step", betas
    check(
        type(step) is int and step > 0,
        f"`{name}` got step={shown(step)}",
        "pass the number of the step, from 1 on",
    )
    scale, root_scale = 1 / (1 - beta1**step), 1 / (1 - beta2**step) ** 0.5
    numbers = (
        lr * scale, 1 - lr * weight_decay, beta1, beta2, root_scale, eps, -1.0 if maximize else 1.0
    )  # fmt: skip
    states = (exp_avgs, exp_avg_scales, exp_avg_sqs, exp_avg_sq_scales)
    for arrays in _lists(name, params, grads, *states):
        _step(kernels.adamw_blocks_kernel, arrays, numbers)


def lion8bit_step(
    params: Any, grads: Any, exp_avgs: Any, exp_avg_scales: Any, *, lr: float = 1e-4,
    betas: Sequence[float] = (0.9, 0.99), weight_decay: float = 0.0, maximize: bool = False,
) -> None:  # fmt: skip
    """A step of lion_step whose average is signed 8-bit codes with scales, as of quantize_blocks, in place.

    Shapes: arrays, or lists of as many; scales (ceil(n / 256),) for n elements. Types: floats, with codes
    of int8, and scales of float32. Errors: E093, also for JAX. torch has no such optimiser.

    Example:
        import numpy as np
        from tessera import ops

        x, codes, scales = np.ones(2), np.zeros(2, np.int8), np.zeros(1, np.float32)
        ops.lion8bit_step(x, np.array([3.0, -3.0]), codes, scales, lr=0.5)
        assert x.tolist() == [0.5, 1.5] and codes.tolist() == [127, -127]
    """
    name, (beta1, beta2) = "lion8bit_step", betas
    numbers = (lr, 1 - lr * weight_decay, beta1, beta2, -1.0 if maximize else 1.0)
    for arrays in _lists(name, params, grads, exp_avgs, exp_avg_scales):
        _step(kernels.lion_blocks_kernel, arrays, numbers)
