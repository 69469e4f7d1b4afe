# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tile language, in which kernels are written (`import tessera.language as tl`).

The names and their meaning are those of the Triton language, in the spellings of 3.6, 3.9 and
later. Where that language leaves a result undefined, this page defines it.

## What is defined

This table holds on every target and in the reference interpreter. Each row has a test
(`python/test/execution/test_defined.py`).

| case | result |
|---|---|
| integer `x // 0` | all bits one: -1, or the largest unsigned value |
| integer `x % 0` | `x` |
| smallest integer `// -1`, `% -1` | itself, and 0 |
| integer `//`, `%` of negative numbers | as in C: the quotient towards zero, the remainder with the sign of `x`. `%` of floats, too |
| `//`, `%` of constants | as in Python: the quotient rounded down, the remainder with the sign of `y`. Where that is not what the same gives at run time, the compilation warns of the place, once in a process; not of `-(-x // y)`, which is meant to round up |
| integer overflow | wraps; an error (E065) with `debug=True`, unless `sanitize_overflow=False` |
| `x >> y` | shifts in the sign of `x` if the type of `x` is signed, whatever the types of `y` and of the result are |
| shift by the width or more | 0; for `>>` of a signed type, copies of the sign bit |
| float to integer, out of range | the nearest value of the integer type; NaN gives 0 |
| float to 8-bit float, out of range | the largest number of that format, for infinities too; NaN stays NaN. `+`, `-` and `*` of 8-bit floats are computed in float32 and then converted like this |
| masked-off lane of a load without `other` | 0 |
| masked-off lane of an atomic | memory does not change, the result is 0 |
| `gather` with an index out of range | 0 |
| `range` with a negative step that is known only at run time | counts down, as in Python |
| `range` with a step of 0 that is known only at run time | no iteration; an error (E065) in the interpreter and with `debug=True` |
| `range` with keywords, as in `range(0, n, step=s)` | as `tl.range` with them; Triton ignores them |
| several lanes store to one address | one of the values is there afterwards |
| several lanes of one atomic at one address | they take place one after the other if the old values are used; else they may be combined first, in any order. `atomic_xchg` leaves one of the values |
| `reshape`, `view`, `cat` | never change the order of elements |
| `maximum`, `minimum` with a NaN | the other operand; NaN with `propagate_nan=tl.PropagateNan.ALL` |
| denormal floats | are kept; `dot` of bfloat16 may take denormal operands for zero (docs/Numerics.md) |
| `volatile` loads and atomics of scalars | happen once in a program; every use sees that one value |

None of these ends the process, and neither do masked-off lanes. The check of a divisor costs
nothing if the compiler can prove that the divisor is not zero.

**Offsets.** An offset has to fit the integers that it is computed in. If `pid * stride` wraps in 32
bits and is added to a pointer, the access is undefined, as one outside of the array is. A copy by
TMA may then read another address than a load. Widen an operand first: `pid.to(tl.int64) * stride`.
With `debug=True` the interpreter and the CPU report such an offset (E081).

**Order of memory operations.** A program sees its own loads and stores in the order in which they
are written. On a GPU this holds for each lane separately. If a load must see a store of *another
lane*, or a store must follow another lane's load, write a `tl.debug_barrier()` between them. The
CPU and the interpreter keep the order without it.

A lane is an index of an element, in all accesses of one shape. The order holds for any threads or
copies that do the accesses, and for any arguments, even if one array is passed twice. A scalar is a
separate lane. Between programs, only atomics order memory, by their `sem` and `scope`.

**Loops.** After a loop, its variable keeps the last value that it had. If there was no iteration, it
keeps the value from before the loop; if it had none, using it is an error (E013). `break`, `continue`
and `return` may stand anywhere, also in loops, and a loop may have an `else`. A variable that a loop
carries keeps its type (E036).

**Arguments that are 1.** If an integer argument is 1, the kernel is compiled for that value: an
`if` on it is decided, and a stride of 1 is known. Otherwise the argument behaves like any other
number. It is an int32, which wraps and divides like one and has its methods. It cannot be used
where a constant is needed (E019). The branch of an `if` that is not taken is not compiled. So a
literal in the other branch keeps its own type, even if the omitted branch would have widened it.

**Sums and products of floats** may be fused to multiply-adds, and the compiler chooses the order of a
reduction. The option `deterministic` fixes both, so that every target gives the same bits, apart from
scans of floats, atomic additions, `exp`, `log` and `sin`. docs/Numerics.md has the bounds.

**Promises** state facts about values that the compiler cannot prove. A run is aligned: of runs of
`n`, the first has the elements 0 to n - 1 along the dimension, the next one n to 2n - 1. If `n` is
the extent or more, the whole dimension is one run.

- `max_contiguous(x, n)`: in each run of `n`, elements count up by 1; of pointers, by one element.
- `max_constancy(x, n)`: in each run of `n`, elements are equal.
- `multiple_of(x, n)`: each run begins at a multiple of `n`; of pointers, in bytes. Where one of the
  two calls `max_contiguous` and `multiple_of` has the other as its argument, the runs are those of
  `max_contiguous`. Elsewhere, a run begins at each element that is not 1 more than the one before. A
  scalar is a run.

They concern all elements, masked ones too. If a promise is broken, a CPU computes the same as
without it. It compares each block of indices with the promise, and accesses elements one by one
where they differ. On a GPU, a promise makes an access at most 16 bytes wide. If it is broken,
elements in the same 16 bytes may be those next to the first one, or the GPU reports an address that
is not aligned. Nothing else is accessed. With `debug=True` a broken promise is an error (E082).

**Not defined** are broken promises of `assume`, and accesses outside the arrays.

## Which Python may be used

- **Statements**: assignments (also to tuples, nested ones, augmented and annotated ones), `if`,
  `while`, `for` over `range`, `tl.range` and `tl.static_range`, `return`, `break`, `continue`,
  `pass`, `assert`.
- **Expressions**: arithmetic, `and`, `or`, `not`, comparisons (also chained), conditional
  expressions, `:=`, calls with positional, keyword and `*` arguments, attributes, subscripts, tuples,
  list comprehensions over constants (with filters), and f-strings of constants.
- **Names**: parameters, variables, `@jit` functions, modules, dtypes, named tuples, dataclasses,
  aggregates, and globals that are `tl.constexpr`.
- **Functions of Python on constants**, called when the kernel is compiled: `len`, `sum`, `round` and
  the like, those of `math`, NumPy's ufuncs and types of numbers, `finfo`, `iinfo`, `promote_types` and
  `can_cast` of NumPy and torch, and `prod`, `sum`, `max`, `min`, `round`, `isclose`, `dtype`,
  `result_type` and `issubdtype` of NumPy. They give numbers, strings, types, or what `finfo` gives. For
  functions of your own there is `@tessera.constexpr_function`.

Anything else is an error that says so (E014; docs/Errors.md).

**`and`, `or`** of scalars have Python's values: `n or 16` is `n`, or 16 if that is 0. The type of
`a and b` is that of `b`; that of `a or b` is the one that both are promoted to. Operands without a
common type are an error (E037), unless the truth alone counts, as in the condition of an `if`.
Operands are computed in order, all of them, but none behind a constant that decides. For tiles, the
result is an int1 for each element.

**Chains**: `0 <= i < n` is `(0 <= i) & (i < n)`. `r < M & c < N` is a chain, too, since `&` binds more
tightly than `<`. If a tile is in it, that is an error (E083): write `(r < M) & (c < N)`.

`x: tl.constexpr = ...` keeps a constant constant. `x: tl.constexpr` without a value does so for every
assignment to `x`; a value that is known only at run time stays what it is. If a helper function
returns a constant, the call is a constant, unless an `if` on a variable decides which one. A pointer
is true unless it is null. Parameters may be keyword-only. `*args` is a tuple, also in kernels. An
argument of a kernel may be a tuple, a list, a dataclass or an aggregate, and these may be nested.
Methods, properties, operators (`__add__`) and calls (`__call__`) of dataclasses and named tuples are
those of the class if they are @jit functions; else `+` joins them as tuples.

**Lists** and tuples are indexed by a constant, or by an integer that is known at run time, as in
`tensors[tl.program_id(0)]`. In the second case, items are pointers of one type, numbers, or tuples of
these with parts that belong together (else E037). Numbers are promoted to one type. The index counts
from 0. With `debug=True`, and in the interpreter, one outside of the list is an error (E065). Without,
it gives the last item. `len(tensors)` is a constant. `tl.static_range` loops over items of several types.

## Examples

The example of a function is the body of a kernel without parameters, launched with a grid of `(1,)`.
Functions and classes above the body stand outside the kernel. Launch it with `debug=True`: otherwise
no `assert` is checked. An example that begins with `import` is a program. The tests run all of them.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tessera.language import extra, math, target_info
from tessera.language.aggregate import aggregate as _aggregate
from tessera.language.aggregate import aggregate_replace
from tessera.language.atomics import (
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
)
from tessera.language.creation import acc_type, arange, cast, full, item, to_tensor
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
    block_type,
    constexpr_type,
    dtype,
    get_int_dtype,
    pi32_t,
    pointer_type,
    str_to_ty,
    tuple_type,
)

if TYPE_CHECKING:
    from tessera.language.extra import libdevice
    from tessera.language.static_types import (
        bfloat16,
        const,
        constexpr,
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
        uint8,
        uint16,
        uint32,
        uint64,
        void,
    )
else:
    from tessera.language.types import (
        bfloat16,
        const,
        constexpr,
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
        uint8,
        uint16,
        uint32,
        uint64,
        void,
    )

tuple = tuple
"""Tuples of the language are Python's.

Example:
    pair = (tl.arange(0, 4), 2.5)
    assert isinstance(pair, tl.tuple)
    x, scale = pair
    assert tl.sum(x * scale) == 15.0
"""

slice = slice
"""And so are slices; `x[a:b]` makes one.

Example:
    shape = (2, 4, 8)
    assert shape[tl.slice(1, 3)] == (4, 8)  # as shape[1:3]
"""

core: ModuleType = sys.modules[__name__]
"""What is in a module of this name elsewhere is all here."""

__all__ = [
    "PropagateNan",
    "TRITON_MAX_TENSOR_NUMEL",
    "abs",
    "acc_type",
    "add",
    "advance",
    "aggregate_replace",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "associative_scan",
    "assume",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_poll",
    "atomic_store",
    "atomic_xchg",
    "atomic_xor",
    "bfloat16",
    "bitonic_merge",
    "block_type",
    "broadcast",
    "broadcast_to",
    "builtin",
    "cast",
    "cat",
    "cdiv",
    "ceil",
    "clamp",
    "condition",
    "const",
    "constexpr",
    "constexpr_type",
    "core",
    "cos",
    "cumprod",
    "cumsum",
    "debug_barrier",
    "device_assert",
    "device_print",
    "div_rn",
    "dot",
    "dot_scaled",
    "dtype",
    "erf",
    "exp",
    "exp2",
    "expand_dims",
    "expect_zero",
    "expm1",
    "extern",
    "extern_elementwise",
    "extra",
    "fdiv",
    "flip",
    "float16",
    "float32",
    "float64",
    "float8e4b15",
    "float8e4b8",
    "float8e4nv",
    "float8e5",
    "float8e5b16",
    "floor",
    "fma",
    "full",
    "gather",
    "get_int_dtype",
    "histogram",
    "inline_asm_elementwise",
    "int1",
    "int16",
    "int32",
    "int64",
    "int8",
    "interleave",
    "item",
    "join",
    "libdevice",
    "load",
    "load_tensor_descriptor",
    "log",
    "log1p",
    "log2",
    "make_block_ptr",
    "make_tensor_descriptor",
    "map_elementwise",
    "math",
    "max",
    "max_constancy",
    "max_contiguous",
    "maximum",
    "min",
    "minimum",
    "mul",
    "multiple_of",
    "must_use_result",
    "num_programs",
    "pair_uniform_to_normal",
    "permute",
    "philox",
    "philox_impl",
    "pi32_t",
    "pointer_type",
    "program_id",
    "rand",
    "rand4x",
    "randint",
    "randint4x",
    "randn",
    "randn4x",
    "range",
    "ravel",
    "reduce",
    "reduce_or",
    "reshape",
    "rsqrt",
    "sigmoid",
    "sin",
    "slice",
    "softmax",
    "sort",
    "split",
    "sqrt",
    "sqrt_rn",
    "squeeze",
    "static_assert",
    "static_print",
    "static_range",
    "store",
    "store_tensor_descriptor",
    "str_to_ty",
    "sub",
    "sum",
    "swizzle2d",
    "tan",
    "tanh",
    "target_info",
    "tensor",
    "tensor_descriptor",
    "to_tensor",
    "topk",
    "trans",
    "tuple",
    "tuple_type",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "uint_to_uniform_float",
    "umulhi",
    "unsqueeze",
    "view",
    "void",
    "where",
    "xor_sum",
    "zeros",
    "zeros_like",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "libdevice":  # where it was once
            return extra.libdevice
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        # All public names, for completion, without names that are only imported here.
        return sorted({*__all__, *(name for name in globals() if name[:2] == "__")})
