# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tile language: what kernels are written with (`import tessera.language as tl`).

The names and their meaning are those of the Triton language (3.6, 3.9 and current
spellings); docs/Language.md tells where ours say more.
"""

from __future__ import annotations

from tessera.language import math
from tessera.language.creation import arange, cast, full, item, to_tensor
from tessera.language.debug import (
    device_assert,
    device_print,
    expect_zero,
    static_assert,
    static_print,
)
from tessera.language.math import (
    abs,
    add,
    ceil,
    clamp,
    cos,
    div_rn,
    erf,
    exp,
    exp2,
    expm1,
    fdiv,
    floor,
    fma,
    log,
    log1p,
    log2,
    maximum,
    minimum,
    mul,
    rsqrt,
    sin,
    sqrt,
    sqrt_rn,
    sub,
    tan,
    tanh,
    umulhi,
    where,
)
from tessera.language.matmul import dot, dot_scaled
from tessera.language.memory import (
    advance,
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_load,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_store,
    atomic_xchg,
    atomic_xor,
    load,
    load_tensor_descriptor,
    make_block_ptr,
    make_tensor_descriptor,
    store,
    store_tensor_descriptor,
)
from tessera.language.program import (
    assume,
    condition,
    debug_barrier,
    extern_elementwise,
    inline_asm_elementwise,
    max_constancy,
    max_contiguous,
    multiple_of,
    num_programs,
    program_id,
    range,
    static_range,
)
from tessera.language.random import (
    pair_uniform_to_normal,
    philox,
    philox_impl,
    rand,
    rand4x,
    randint,
    randint4x,
    randn,
    randn4x,
    uint_to_uniform_float,
)
from tessera.language.reduction import (
    argsort,
    associative_scan,
    map_elementwise,
    reduce,
    sort,
    topk,
)
from tessera.language.shape import (
    broadcast,
    broadcast_to,
    cat,
    expand_dims,
    gather,
    histogram,
    join,
    permute,
    reshape,
    split,
    trans,
    view,
)
from tessera.language.standard import (
    argmax,
    argmin,
    cdiv,
    cumprod,
    cumsum,
    flip,
    interleave,
    max,
    min,
    ravel,
    reduce_or,
    sigmoid,
    softmax,
    squeeze,
    sum,
    swizzle2d,
    unsqueeze,
    xor_sum,
    zeros,
    zeros_like,
)
from tessera.language.tensor import builtin, tensor
from tessera.language.types import (
    TRITON_MAX_TENSOR_NUMEL,
    PropagateNan,
    bfloat16,
    block_type,
    const,
    constexpr,
    constexpr_type,
    dtype,
    float8e4b8,
    float8e4b15,
    float8e4nv,
    float8e5,
    float8e5b16,
    float16,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    int64,
    pi32_t,
    pointer_type,
    str_to_ty,
    tuple_type,
    uint8,
    uint16,
    uint32,
    uint64,
    void,
)

tuple = tuple
"""Tuples of the language are Python's."""

_MODULES = [
    "creation",
    "debug",
    "matmul",
    "memory",
    "program",
    "random",
    "reduction",
    "shape",
    "standard",
    "types",
    "annotations",
]

__all__ = [name for name in dir() if not name.startswith("_") and name not in _MODULES]
