# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tile language: what kernels are written with (`import tessera.language as tl`).

The names and their meaning are those of the Triton language (3.6, 3.9 and current
spellings). Where that language leaves something open, this page settles it.

## What is defined

The following holds on every target, in the reference interpreter too, and is tested clause
by clause (`python/test/execution/test_defined.py`).

| case | result |
|---|---|
| integer `x // 0` | all bits one: -1, or the largest unsigned value |
| integer `x % 0` | `x` |
| smallest integer `// -1`, `% -1` | itself, and 0 |
| integer `//`, `%` of negative numbers | as in C: the quotient towards zero, the remainder with the sign of `x` |
| integer overflow | wraps; an error (E065) with `debug=True`, unless `sanitize_overflow=False` |
| `x >> y` | shifts in the sign of `x` if the type of `x` is signed, whatever type `y` has and the result gets |
| shift by the width or more | 0; for `>>` of a signed type all sign bits |
| float to integer, out of range | the nearest value of the integer type; NaN gives 0 |
| float to 8-bit float, out of range | the largest number of that format, for infinities too; NaN stays NaN. `+`, `-` and `*` of 8-bit floats are computed in float32 and end so |
| lane of a load that is masked off, without `other` | 0 |
| lane of an atomic that is masked off | memory is left alone, the result is 0 |
| `gather` with an index out of range | 0 |
| `range` with a step below 0, known at run time only | counts down, as in Python |
| `range` with the step 0, known at run time only | no iteration; an error (E065) in the interpreter and with `debug=True` |
| several lanes store to one address | one of the values is left there |
| several lanes of one atomic at one address | one after the other where the old values are read, else combined first in any order; `atomic_xchg` leaves one of the values |
| `reshape`, `view`, `cat` | never change the order of elements |
| `maximum`, `minimum` with a NaN | the other operand; NaN with `propagate_nan=tl.PropagateNan.ALL` |
| denormal floats | are kept; `dot` of bfloat16 may take denormal factors for zero (docs/Numerics.md) |
| `volatile` loads and atomics of scalars | happen once a program; every use sees that one value |

None of these traps, in masked-off lanes either. A guard costs nothing where the divisor is a constant
or can be seen not to be zero.

**Order of memory operations.** A program sees its own loads and stores in the order in which
they are written. On a GPU that holds for each lane by itself: a load that must see what *another
lane* stored, or a store over what another lane must have loaded before, needs a
`tl.debug_barrier()` in between; the CPU and the interpreter keep program order without it. A lane
is an element at its place in accesses of one shape, whichever threads, copies or engines do them
and by whichever arguments, be they one array passed twice; a scalar is a lane of its own.
Between programs nothing is ordered but atomics, by their `sem` and `scope`.

**Loops.** After a loop its variable keeps the last value it had; after no trip it keeps the
one it had before (and is an error, E013, if there was none). `break`, `continue` and
`return` may stand anywhere, in loops too, and a loop may have an `else`. What a loop carries keeps one type (E036).

**Arguments that are 1.** An integer argument that is 1 has code of its own, in which an `if` on it is
decided and a stride of 1 is seen. It means what every other number means there: it is an int32 that
wraps, divides and has methods as one, and it is no constant where one is needed (E019). Of a decided
`if` the other branch is not looked at: a literal there keeps its own type, which the other branch's
might have widened.

**Sums and products of floats** may be contracted to fused multiply-adds, and the order of a
reduction is the compiler's; the option `deterministic` fixes both, so that every
target gives the same bits. docs/Numerics.md has the bounds.

**Outside the promise**: what the user vouches for (`assume`, `multiple_of`,
`max_contiguous`, `max_constancy`), and addresses that are not his.

## What Python may be used

Assignments (tuples and nested ones, `:=`), augmented and annotated ones, `if`, `while`, `for` over
`range`, `tl.range`, `tl.static_range`, `return`, `break`, `continue`, `pass`, `assert`,
conditional expressions, boolean operators, comparisons (chained too), calls with positional,
keyword and `*` arguments, attributes, subscripts, tuples, named tuples, dataclasses and aggregates,
list comprehensions over constants (with filters), f-strings of constants, and names: parameters,
variables, `@jit` functions, modules, dtypes, globals that are `tl.constexpr`. Everything else is an
error that says so (E014; docs/Errors.md).

`x: tl.constexpr = ...` keeps a constant one, and `x: tl.constexpr` without a value has every
assignment to `x` do so; a value that is known at run time alone stays what it is. A helper returns
constants as constants, unless an `if` on a variable decides which. A pointer is true unless it is
null. Parameters may be keyword-only, and `*args` is a tuple, in kernels too; an argument of a kernel
may be a tuple, a list, a dataclass, an aggregate, or any of these in another.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from tessera.language import extra, math, target_info
from tessera.language.aggregate import aggregate as _aggregate
from tessera.language.aggregate import aggregate_replace
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
    tensor_descriptor,
)
from tessera.language.program import (
    assume,
    condition,
    debug_barrier,
    extern,
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
    bitonic_merge,
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
    atomic_poll,
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
from tessera.language.tensor import builtin, must_use_result, tensor
from tessera.language.types import (
    CONSTEXPR_0,
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
    get_int_dtype,
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

slice = slice
"""And so are slices; `x[a:b]` makes one."""

core: ModuleType = sys.modules[__name__]
"""What is in a module of this name elsewhere is all here."""

_MODULES = [
    "CONSTEXPR_0",
    "aggregate",
    "constants",
    "records",
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
    "sys",
    "Any",
    "ModuleType",
]

__all__ = [name for name in dir() if not name.startswith("_") and name not in _MODULES]
__all__ += ["libdevice"]


def __getattr__(name: str) -> Any:
    if name == "libdevice":  # where it was once
        return extra.libdevice
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
