# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names that NumPy, torch, CUDA and Python have for what the language writes otherwise.

One table, for every message about an unknown name. It is read where a mistake is reported, so that
loading the language does not pay for it.
"""

from __future__ import annotations

from typing import Any, Optional

_FUNCTIONS = {
    # Element by element.
    "relu": "tl.maximum(x, 0)",
    "leaky_relu": "tl.where(x > 0, x, slope * x)",
    "elu": "tl.where(x > 0, x, tl.expm1(x))",
    "gelu": "0.5 * x * (1 + tl.erf(x * 0.70710678))",
    "silu swish": "x * tl.sigmoid(x)",
    "softplus": "tl.log1p(tl.exp(x))",
    "expit": "tl.sigmoid(x)",
    "log_softmax": "tl.log(tl.softmax(x))",
    "clip clamp_min clamp_max": "tl.clamp(x, low, high)",
    "absolute fabs": "tl.abs(x)",
    "square": "x * x",
    "reciprocal": "1 / x",
    "negative neg": "-x",
    "sign": "tl.where(x > 0, 1, tl.where(x < 0, -1, 0))",
    "pow power float_power": "tl.math.pow(x, y)",
    "exp10": "tl.libdevice.exp10(x)",
    "log10": "tl.libdevice.log10(x)",
    "arcsin": "tl.libdevice.asin(x)",
    "arccos": "tl.libdevice.acos(x)",
    "arctan": "tl.libdevice.atan(x)",
    "arctan2": "tl.libdevice.atan2(y, x)",
    "gamma lgamma gammaln": "tl.libdevice.lgamma(x)",
    "round around rint": "tl.libdevice.rint(x)",
    "trunc fix": "tl.libdevice.trunc(x)",
    "mod remainder fmod": "x % y",
    "floor_divide": "x // y",
    "divide true_divide div": "x / y",
    "subtract": "x - y",
    "multiply": "x * y",
    "isnan": "x != x",
    "isinf": "tl.abs(x) == float('inf')",
    "isfinite": "tl.abs(x) < float('inf')",
    "nan_to_num": "tl.where(x == x, x, 0.0)",
    "logical_and": "(x != 0) & (y != 0)",
    "logical_or": "(x != 0) | (y != 0)",
    "logical_not": "x == 0",
    "bitwise_and": "x & y",
    "bitwise_or": "x | y",
    "bitwise_xor": "x ^ y",
    "bitwise_not invert": "~x",
    "left_shift": "x << n",
    "right_shift": "x >> n",
    "equal eq": "x == y",
    "not_equal ne": "x != y",
    "less lt": "x < y",
    "less_equal le": "x <= y",
    "greater gt": "x > y",
    "greater_equal ge": "x >= y",
    "fmax": "tl.maximum(x, y)",
    "fmin": "tl.minimum(x, y)",
    "select": "tl.where(condition, x, y)",
    "masked_fill": "tl.where(mask, value, x)",
    "lerp": "x + w * (y - x)",
    # Along an axis.
    "mean average": "tl.sum(x, axis) / x.shape[axis]",
    "var variance": "tl.sum((x - m) * (x - m), axis) / x.shape[axis], where m is the mean",
    "std": "tl.sqrt(tl.sum((x - m) * (x - m), axis) / x.shape[axis]), where m is the mean",
    "prod": "tl.reduce(x, axis, multiply) with a @jit function `multiply(a, b)`",
    "amax": "tl.max(x, axis)",
    "amin": "tl.min(x, axis)",
    "any": "tl.max((x != 0).to(tl.int32), axis)",
    "all": "tl.min((x != 0).to(tl.int32), axis)",
    "norm": "tl.sqrt(tl.sum(x * x, axis))",
    "logsumexp": "m + tl.log(tl.sum(tl.exp(x - m), axis)), where m = tl.max(x, axis)",
    "count_nonzero": "tl.sum((x != 0).to(tl.int32), axis)",
    "dot_product vdot inner": "tl.sum(x * y)",
    "matmul mm bmm einsum mma": "tl.dot(a, b)",
    "sorted": "tl.sort(x)",
    "scan": "tl.associative_scan(x, axis, combine_fn)",
    # Shapes.
    "transpose swapaxes t": "tl.trans(x)",
    "flatten": "tl.ravel(x)",
    "newaxis": "x[:, None]",
    "stack": "tl.join(x, y)",
    "concat concatenate hstack vstack": "tl.cat(x, y, can_reorder=True), or tl.join(x, y)",
    "repeat tile expand": "tl.broadcast_to(x, shape)",
    "chunk unbind": "tl.split(x)",
    "roll take take_along_axis index_select": "tl.gather(x, index, axis)",
    "ndim dim rank": "len(x.shape)",
    "size": "x.numel",
    "astype type_as asarray array as_tensor": "x.to(dtype), such as x.to(tl.float32)",
    "half": "x.to(tl.float16)",
    "bitcast view_as": "x.to(dtype, bitcast=True)",
    "copy clone detach contiguous": "x itself: a tile never changes",
    "cpu cuda device": "x itself: a tile has no device",
    "tolist numpy": "tl.store, and read the array after the launch",
    # Making tiles.
    "ones": "tl.full(shape, 1, tl.float32)",
    "ones_like": "tl.full(x.shape, 1, x.dtype)",
    "full_like": "tl.full(x.shape, value, x.dtype)",
    "empty": "tl.zeros(shape, tl.float32)",
    "empty_like": "tl.zeros_like(x)",
    "iota linspace": "tl.arange(0, N)",
    "eye identity": "i[:, None] == i[None, :], where i = tl.arange(0, N)",
    "tril triu": "tl.where(i[:, None] >= j[None, :], x, 0), with aranges i and j",
    "random uniform": "tl.rand(seed, offsets)",
    "normal": "tl.randn(seed, offsets)",
    "dropout": "tl.where(tl.rand(seed, offsets) > p, x / (1 - p), 0.0)",
    # CUDA.
    "threadIdx thread_id thread_idx local_id lane_id": "tl.arange(0, BLOCK): a program computes "
    "whole tiles and has no thread numbers",
    "blockIdx block_id block_idx pid get_program_id": "tl.program_id(0)",
    "blockDim block_dim": "the tl.constexpr that is the extent of the tile",
    "gridDim grid_dim num_blocks": "tl.num_programs(0)",
    "syncthreads barrier sync syncwarp threadfence": "tl.debug_barrier(), or leave it out: operations "
    "on tiles need no barrier",
    "shared shared_memory alloc_shared": "a tile: the compiler decides what is in shared memory",
    "shfl_sync shfl_down_sync shfl_xor_sync ballot_sync": "tl.sum, tl.max, tl.reduce or tl.gather",
    "atomicExch": "tl.atomic_xchg(pointer, value)",
    "atomicCAS": "tl.atomic_cas(pointer, compare, value)",
    "ldg": "tl.load(pointer)",
    "printf": "tl.device_print('x', x)",
    "assert_": "tl.device_assert(condition, 'message')",
    "ceil_div": "tl.cdiv(x, y)",
    "next_power_of_2": "tessera.next_power_of_2(n) outside the kernel, and pass the result as a "
    "tl.constexpr",
}

_TYPES = {
    "float float32 single fp32 f32": "float32",
    "double float_ float64 fp64 f64": "float64",
    "half float16 fp16 f16": "float16",
    "bf16 bfloat16": "bfloat16",
    "int int_ int32 i32": "int32",
    "long longlong int64 i64 intp": "int64",
    "short int16 i16": "int16",
    "char byte_ int8 i8": "int8",
    "bool bool_ boolean i1": "int1",
    "byte ubyte uint8 u8": "uint8",
    "ushort uint16 u16": "uint16",
    "uint uintc uint32 u32": "uint32",
    "ulong uint64 u64 uintp": "uint64",
    "float8_e4m3fn fp8e4nv float8": "float8e4nv",
    "float8_e5m2 fp8e5": "float8e5",
}

_BUILTINS = {
    "enumerate": "`for i in tl.static_range(len(t))`, and t[i]",
    "zip": "`for i in tl.static_range(len(a))`, and a[i], b[i]",
    "reversed": "`for i in tl.static_range(len(t))`, and t[len(t) - 1 - i]",
    "map filter": "a `for` loop, or the operation on the whole tile",
    "sum": "tl.sum(x, axis)",
    "divmod": "x // y and x % y",
    "dict set frozenset": "a tuple or a named tuple",
    "open input": "tl.load and tl.store of the arrays that are passed",
    "slice": "x[:, None], or offsets that load the part",
}


def plain_name(name: str) -> str:
    """Equal for names that differ in capitals and underscores alone."""
    return name.replace("_", "").lower()


def _find(table: dict[str, str], name: str) -> Optional[str]:
    wanted = plain_name(name)
    for names, text in table.items():
        if any(plain_name(one) == wanted for one in names.split()):
            return text
    return None


def type_meant(name: str) -> Optional[str]:
    """The dtype of the language that has the name `name` elsewhere ("double": "float64")."""
    return _find(_TYPES, name)


def meant(name: str, is_builtin: bool = False, is_value: bool = False) -> Optional[str]:
    """The code to write for a name of NumPy, torch or CUDA; of Python, if `is_builtin`.

    `is_value` says that the name is an attribute of a tile: `x.float()` is a cast there.
    """
    if is_builtin and (text := _find(_BUILTINS, name)):
        return text
    dtype = type_meant(name)
    if is_value and dtype and plain_name(name) not in ("float", "int"):
        return f"x.to(tl.{dtype})"
    if text := _find(_FUNCTIONS, name):
        return text
    if dtype:
        return f"x.to(tl.{dtype})" if is_value else f"tl.{dtype}"
    return None


def python_type(value: Any) -> Optional[str]:
    """The dtype for one of Python's or NumPy's own classes of numbers."""
    if not isinstance(value, type):
        return None
    return type_meant(value.__name__)
