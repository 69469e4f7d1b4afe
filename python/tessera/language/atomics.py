# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atomics."""

from __future__ import annotations

from typing import Any, Optional

from tessera.language.memory import choice, pointer_operand, reduce_descriptor
from tessera.language.tensor import Operand, builtin, emit, emit_one, method, tensor
from tessera.language.types import descriptor_type, unwrap

__all__ = [
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_store",
    "atomic_xchg",
    "atomic_xor",
]

_SCOPES = ("gpu", "cta", "sys")
_RMW_SEM = ("acq_rel", "acquire", "release", "relaxed")


def _atomic_rmw(kind: str, pointer: Any, val: Any, mask: Any, sem: Any, scope: Any) -> tensor:
    if isinstance(unwrap(pointer), tensor) and isinstance(unwrap(pointer).type, descriptor_type):
        # `desc.atomic_add([i, j], value)` is this method, too.
        reduce_descriptor(kind, pointer, val, mask)
        return None  # type: ignore[return-value]  # as `tensor_descriptor` says
    pointer = pointer_operand(pointer, f"atomic_{kind}")
    return emit_one(
        "atomic_rmw",
        kind,
        pointer,
        unwrap(val),
        unwrap(mask),
        choice(sem, _RMW_SEM, "sem", "E047"),
        choice(scope, _SCOPES, "scope", "E047"),
    )


@method
@builtin
def atomic_add(
    pointer: tensor,
    val: Operand,
    mask: Optional[Operand] = None,
    sem: Optional[str] = None,
    scope: Optional[str] = None,
) -> tensor:
    """Atomically adds `val` to memory, element by element; returns the old values.

    `pointer` is a scalar or a tile of pointers, and the result has its shape. `val` is cast to the
    pointee and broadcast. A masked-off lane changes nothing and gives 0. `sem` is "acq_rel"
    (default), "acquire", "release" or "relaxed"; `scope` is "gpu" (default), "cta" or "sys".
    Errors: E044, E045, E047 (type, sem or scope).
    Source: Triton language 3.6/3.9; the 0 of a masked-off element is ours.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def count(x_ptr, bins_ptr):
            x = tl.load(x_ptr + tl.arange(0, 8))
            tl.atomic_add(bins_ptr + x, 1, mask=x < 4)

        bins = np.zeros(4, np.int32)
        count[(1,)](np.array([0, 1, 1, 3, 3, 3, 9, 9], np.int32), bins)
        assert bins.tolist() == [1, 2, 0, 3]
    """
    return _atomic_rmw("add", pointer, val, mask, sem, scope)


@method
@builtin
def atomic_max(
    pointer: tensor,
    val: Operand,
    mask: Optional[Operand] = None,
    sem: Optional[str] = None,
    scope: Optional[str] = None,
) -> tensor:
    """Atomically replaces memory by the larger of itself and `val`; returns the old values.

    The arguments and errors are those of `atomic_add`. Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def maximum(x_ptr, out_ptr):
            x = tl.load(x_ptr + tl.program_id(0) * 64 + tl.arange(0, 64))
            tl.atomic_max(out_ptr, tl.max(x))  # of all programs together

        out = np.array([-1], np.int32)
        maximum[(4,)](np.arange(256, dtype=np.int32), out)
        assert out[0] == 255
    """
    return _atomic_rmw("max", pointer, val, mask, sem, scope)


@method
@builtin
def atomic_min(
    pointer: tensor,
    val: Operand,
    mask: Optional[Operand] = None,
    sem: Optional[str] = None,
    scope: Optional[str] = None,
) -> tensor:
    """Atomically replaces memory by the smaller of itself and `val`; returns the old values.

    The arguments and errors are those of `atomic_add`. Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def first_zero(x_ptr, out_ptr):
            i = tl.program_id(0) * 64 + tl.arange(0, 64)
            tl.atomic_min(out_ptr, tl.min(tl.where(tl.load(x_ptr + i) == 0, i, 256)))

        x, out = np.ones(256, np.int32), np.array([256], np.int32)
        x[[100, 200]] = 0
        first_zero[(4,)](x, out)
        assert out[0] == 100
    """
    return _atomic_rmw("min", pointer, val, mask, sem, scope)


@method
@builtin
def atomic_and(
    pointer: tensor,
    val: Operand,
    mask: Optional[Operand] = None,
    sem: Optional[str] = None,
    scope: Optional[str] = None,
) -> tensor:
    """Atomically replaces memory by `memory & val`; returns the old values.

    The arguments and errors are those of `atomic_add`. Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def finish(pending_ptr):
            tl.atomic_and(pending_ptr, ~(1 << tl.program_id(0)))  # clears the program's bit

        pending = np.array([0b1111], np.int32)
        finish[(3,)](pending)
        assert pending[0] == 0b1000
    """
    return _atomic_rmw("and", pointer, val, mask, sem, scope)


@method
@builtin
def atomic_or(
    pointer: tensor,
    val: Operand,
    mask: Optional[Operand] = None,
    sem: Optional[str] = None,
    scope: Optional[str] = None,
) -> tensor:
    """Atomically replaces memory by `memory | val`; returns the old values.

    The arguments and errors are those of `atomic_add`. Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def mark(x_ptr, seen_ptr):
            x = tl.load(x_ptr + tl.program_id(0))
            tl.atomic_or(seen_ptr + x // 32, 1 << (x % 32))  # a set of bits, 32 in a word

        seen = np.zeros(2, np.int32)
        mark[(4,)](np.array([0, 3, 33, 3], np.int32), seen)
        assert seen.tolist() == [0b1001, 0b10]
    """
    return _atomic_rmw("or", pointer, val, mask, sem, scope)


@method
@builtin
def atomic_xor(
    pointer: tensor,
    val: Operand,
    mask: Optional[Operand] = None,
    sem: Optional[str] = None,
    scope: Optional[str] = None,
) -> tensor:
    """Atomically replaces memory by `memory ^ val`; returns the old values.

    The arguments and errors are those of `atomic_add`. Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def checksum(x_ptr, out_ptr):
            x = tl.load(x_ptr + tl.program_id(0) * 64 + tl.arange(0, 64))
            tl.atomic_xor(out_ptr, tl.xor_sum(x))

        x, out = np.arange(256, dtype=np.int32) * 3, np.zeros(1, np.int32)
        checksum[(4,)](x, out)
        assert out[0] == np.bitwise_xor.reduce(x)
    """
    return _atomic_rmw("xor", pointer, val, mask, sem, scope)


@method
@builtin
def atomic_xchg(
    pointer: tensor,
    val: Operand,
    mask: Optional[Operand] = None,
    sem: Optional[str] = None,
    scope: Optional[str] = None,
) -> tensor:
    """Atomically replaces memory by `val`; returns the old values.

    The arguments and errors are those of `atomic_add`. Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def take(box_ptr, out_ptr):
            old = tl.atomic_xchg(box_ptr, 0)  # one program gets what is there, all others 0
            tl.store(out_ptr + tl.program_id(0), old)

        box, out = np.array([7], np.int32), np.zeros(8, np.int32)
        take[(8,)](box, out)
        assert box[0] == 0 and out.sum() == 7
    """
    return _atomic_rmw("xchg", pointer, val, mask, sem, scope)


@method
@builtin
def atomic_cas(
    pointer: tensor,
    cmp: Operand,
    val: Operand,
    sem: Optional[str] = None,
    scope: Optional[str] = None,
    mask: Optional[Operand] = None,
) -> tensor:
    """Atomically writes `val` where memory equals `cmp`; returns the old values.

    Pointees of 16, 32 or 64 bits. A lane that is masked off returns 0 and touches no memory;
    Triton has no `mask` here. Errors: E044, E045, E047. Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def claim(owner_ptr, wins_ptr):
            old = tl.atomic_cas(owner_ptr, -1, tl.program_id(0))
            if old == -1:  # this program was the first
                tl.atomic_add(wins_ptr, 1)

        owner, wins = np.array([-1], np.int32), np.zeros(1, np.int32)
        claim[(8,)](owner, wins)
        assert wins[0] == 1 and 0 <= owner[0] < 8
    """
    return emit_one(
        "atomic_cas",
        pointer_operand(pointer, "atomic_cas"),
        unwrap(cmp),
        unwrap(val),
        unwrap(mask),
        choice(sem, _RMW_SEM, "sem", "E047"),
        choice(scope, _SCOPES, "scope", "E047"),
    )


@method
@builtin
def atomic_load(
    pointer: tensor,
    mask: Optional[Operand] = None,
    sem: Optional[str] = None,
    scope: Optional[str] = None,
) -> tensor:
    """Atomically reads memory; a masked-off lane is 0. `sem` is "acquire" or "relaxed".

    Errors: E044, E047. Source: Triton language 3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def publish(data_ptr, flag_ptr, out_ptr):
            if tl.program_id(0) == 0:
                tl.store(data_ptr, 42)
                tl.atomic_store(flag_ptr, 1, sem="release")
            elif tl.atomic_load(flag_ptr, sem="acquire") == 1:  # then the data is there, too
                tl.store(out_ptr, tl.load(data_ptr))

        data, flag, out = (np.zeros(1, np.int32) for _ in range(3))
        publish[(2,)](data, flag, out)
        assert flag[0] == 1 and out[0] in (0, 42)
    """
    return emit_one(
        "atomic_load",
        pointer_operand(pointer, "atomic_load"),
        unwrap(mask),
        choice(sem, ("acquire", "relaxed"), "sem", "E047"),
        choice(scope, _SCOPES, "scope", "E047"),
    )


@method
@builtin
def atomic_store(
    pointer: tensor,
    val: Operand,
    mask: Optional[Operand] = None,
    sem: Optional[str] = None,
    scope: Optional[str] = None,
) -> None:
    """Atomically writes memory. `sem` is "release" (default) or "relaxed".

    Errors: E044, E046 (a const pointer), E047. Source: Triton language 3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def finish(x_ptr, done_ptr):
            pid = tl.program_id(0)
            tl.store(x_ptr + pid, pid * pid)
            tl.atomic_store(done_ptr + pid, 1, sem="release")  # after the store above

        x, done = np.zeros(4, np.int32), np.zeros(4, np.int32)
        finish[(4,)](x, done)
        assert x.tolist() == [0, 1, 4, 9] and done.all()
    """
    emit(
        "atomic_store",
        pointer_operand(pointer, "atomic_store"),
        unwrap(val),
        unwrap(mask),
        choice(sem, ("release", "relaxed"), "sem", "E047"),
        choice(scope, _SCOPES, "scope", "E047"),
    )
