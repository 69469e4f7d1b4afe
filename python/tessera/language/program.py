# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The program's place in the grid, loops, hints and inline assembly."""

from __future__ import annotations

import os
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, Union, overload

from tessera.digests import digest
from tessera.errors import UserMistake
from tessera.language.arguments import (
    constant_bool,
    constant_int,
    constant_ints,
    constant_str,
    element_type,
)
from tessera.language.tensor import (
    F,
    Operand,
    active,
    builtin,
    describe,
    emit,
    emit_one,
    known_value,
    specialised_value,
    tensor,
    to_tensor_value,
)
from tessera.language.types import dtype, unwrap

__all__ = [
    "assume",
    "condition",
    "debug_barrier",
    "extern",
    "extern_elementwise",
    "inline_asm_elementwise",
    "max_constancy",
    "max_contiguous",
    "multiple_of",
    "num_programs",
    "program_id",
    "range",
    "static_range",
]


def _grid_axis(axis: Any) -> int:
    number = constant_int(axis, "the axis of the grid")
    if number not in (0, 1, 2):
        raise UserMistake("E024", f"the grid has no axis {number}", "axis must be 0, 1 or 2")
    return number


@builtin
def program_id(axis: int) -> tensor:
    """This program's index along `axis` (0, 1 or 2) of the grid, an int32 scalar.

    Errors: E024. Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def number(out_ptr, columns):
            i, j = tl.program_id(0), tl.program_id(1)
            tl.store(out_ptr + i * columns + j, 10 * i + j)

        out = np.zeros((2, 3), np.int32)
        number[(2, 3)](out, 3)
        assert out.tolist() == [[0, 1, 2], [10, 11, 12]]
    """
    return emit_one("program_id", _grid_axis(axis))


@builtin
def num_programs(axis: int) -> tensor:
    """The extent of the grid along `axis` (0, 1 or 2), an int32 scalar.

    Errors: E024. Source: Triton language 3.6/3.9.

    Example:
        tiles = 0
        for tile in range(tl.program_id(0), 10, tl.num_programs(0)):
            tiles += 1  # programs take every n-th of 10 tiles
        assert tiles == 10  # with a grid of (1,)
        assert tl.num_programs(axis=2) == 1
    """
    return emit_one("num_programs", _grid_axis(axis))


@builtin
def clock_ns() -> tensor:
    """The time in nanoseconds since some start, an int64 scalar; it never goes back where a
    program runs. Ours."""
    return emit_one("clock_ns")


# --- Loops --------------------------------------------------------------------------


# The most that the hints of a loop may ask for.
_MOST = {"num_stages": 1024, "unroll": 1024}


class range:
    """A run-time loop with hints: `for i in tl.range(0, n, num_stages=3):`.

    Bounds and step are integer scalars. `num_stages` asks for software pipelining,
    `loop_unroll_factor` for unrolling, and `flatten` for making one loop of a nest. The other
    arguments are accepted and have no effect.
    Source: Triton language 3.6/3.9.

    Example:
        total = 0
        for start in tl.range(0, 1000, 256, num_stages=3):
            total += start  # a loop on a GPU loads two tiles ahead
        assert total == 0 + 256 + 512 + 768
    """

    def __init__(
        self,
        arg1: Operand,
        arg2: Optional[Operand] = None,
        step: Optional[Operand] = None,
        num_stages: Optional[int] = None,
        loop_unroll_factor: Optional[int] = None,
        disallow_acc_multi_buffer: bool = False,
        flatten: bool = False,
        warp_specialize: bool = False,
        disable_licm: bool = False,
    ) -> None:
        self.start: Any = 0 if unwrap(arg2) is None else arg1
        self.end: Any = arg1 if unwrap(arg2) is None else arg2
        self.step = 1 if unwrap(step) is None else step
        self.num_stages = num_stages
        self.loop_unroll_factor = loop_unroll_factor
        self.disallow_acc_multi_buffer = disallow_acc_multi_buffer
        self.flatten = flatten
        self.warp_specialize = warp_specialize
        self.disable_licm = disable_licm

    def __repr__(self) -> str:
        bounds = [self.start, self.end, *([self.step] if unwrap(self.step) != 1 else [])]
        return f"tl.{type(self).__name__}({', '.join(map(str, map(unwrap, bounds)))})"

    def hints(self) -> list[list[Any]]:
        """The hints that were given, as the builder takes them."""
        found: list[list[Any]] = []
        for name, value in (
            ("num_stages", self.num_stages),
            ("unroll", self.loop_unroll_factor),
        ):
            if unwrap(value) is None:
                continue
            spelled = "loop_unroll_factor" if name == "unroll" else name
            number, most = constant_int(value, spelled), _MOST[name]
            if not 0 <= number <= most:
                raise UserMistake(
                    "E039", f"{spelled} is {number}", f"use 0 to {most}, or leave it out"
                )
            found.append([name, number])
        if constant_bool(self.flatten, "flatten"):
            found.append(["flatten", True])
        return found

    def __iter__(self) -> Iterator[tensor]:
        raise ValueError("tl.range can only be used in a @jit function")


class static_range(range):
    """A loop that is unrolled when the kernel is compiled; its variable is a constant.

    Bounds and step are constants. Errors: E040 (not constant, or too many iterations).
    Source: Triton language 3.6/3.9.

    Example:
        total = 0
        for i in tl.static_range(1, 4):
            x = tl.full((2**i,), i, tl.int32)  # i is a constant: extents may depend on it
            total += tl.sum(x)
        assert total == 2 * 1 + 4 * 2 + 8 * 3
    """

    def __init__(self, arg1: int, arg2: Optional[int] = None, step: Optional[int] = None) -> None:
        super().__init__(arg1, arg2, step)

    def __iter__(self) -> Iterator[int]:  # type: ignore[override]
        raise ValueError("tl.static_range can only be used in a @jit function")


class condition:
    """A wrapper for the condition of a `while`: `while tl.condition(i < n):`.

    Source: Triton language 3.6/3.9; `disable_licm` is accepted and has no effect.

    Example:
        n, steps = 100 * tl.num_programs(0), 0
        while tl.condition(n > 1):
            n //= 2  # 50 25 12 6 3 1
            steps += 1
        assert steps == 6
    """

    def __init__(self, arg: Operand, disable_licm: bool = False) -> None:
        self.condition = arg
        self.disable_licm = disable_licm

    def __bool__(self) -> bool:
        raise ValueError("tl.condition can only be used in a @jit function")


# --- Hints ---------------------------------------------------------------------------


def _hint(name: str, input: Any, values: Any) -> tensor:
    x = to_tensor_value(input)
    numbers = constant_ints(values, f"the values of {name}")
    if any(number < 1 for number in numbers):
        raise UserMistake("E020", f"{name} got {numbers}", "the values are positive")
    if len(numbers) != max(1, len(x.shape)):
        raise UserMistake(
            "E023",
            f"{name} got {len(numbers)} values for {describe(x)}",
            "give a value a dimension",
        )
    session = active.session
    checks = session.debug and not session.scalar_function
    checks = checks and getattr(session.options, "sanitize_promises", True)
    known = specialised_value(x)
    if known is None:
        return emit_one(name, x, numbers, checks)
    if checks and name == "multiple_of" and known % numbers[0] != 0:
        broken = f"E082: the value is no multiple of {numbers[0]}"
        emit("device_assert", emit_one("eq", x, 0), broken, None)
    return x


@builtin
def multiple_of(input: Operand, values: Union[int, Sequence[int]]) -> tensor:
    """A promise that each run of neighbours in `input` begins at a multiple of `values` ("Promises").

    `values` has a number for each dimension; for a scalar, one number. Returns `input`. Used as
    a statement, this hint, `max_contiguous` and `max_constancy` hold for the variable that they
    name, from there on. Errors: E082 (it is broken, with `debug=True`).
    Source: Triton language 3.6/3.9.

    Example:
        start = tl.multiple_of(tl.program_id(0) * 48, 16)
        x = start + tl.arange(0, 16)  # so these can be loaded with one aligned access
        tl.multiple_of(x, 16)  # as a statement: holds for x from here on
        assert tl.max(x) == 15
    """
    return _hint("multiple_of", input, values)


@builtin
def max_contiguous(input: Operand, values: Union[int, Sequence[int]]) -> tensor:
    """A promise that along each dimension, aligned runs of `values` elements count up by 1 ("Promises").

    Returns `input`. Errors: E082 (it is broken, with `debug=True`).
    Source: Triton language 3.6/3.9.

    Example:
        i = tl.arange(0, 64)
        rotated = tl.max_contiguous((i + 16) % 64, 16)  # 16 to 31, 32 to 47, 48 to 63, 0 to 15
        assert tl.sum(rotated) == tl.sum(i)
    """
    return _hint("max_contiguous", input, values)


@builtin
def max_constancy(input: Operand, values: Union[int, Sequence[int]]) -> tensor:
    """A promise that along each dimension, aligned runs of `values` elements are equal ("Promises").

    Returns `input`. Errors: E082 (it is broken, with `debug=True`).
    Source: Triton language 3.6/3.9.

    Example:
        i = tl.arange(0, 64)
        group = tl.max_constancy(i // 16, 16)  # 16 equal numbers, then the next ones
        assert tl.max(group) == 3
    """
    return _hint("max_constancy", input, values)


@builtin
def assume(cond: Operand) -> None:
    """A promise, not checked, that a scalar condition holds here.

    Source: Triton language 3.6/3.9.

    Example:
        n = tl.num_programs(0)
        tl.assume(n > 0)  # so the division needs no check
        assert 1000 // n == 1000  # with a grid of (1,)
    """
    if isinstance(known_value(cond), (bool, int)):
        return  # a constant is known to the compiler
    emit("assume", to_tensor_value(cond))


@builtin
def debug_barrier() -> None:
    """Waits for all lanes of the program; what they stored before is then visible to all of them.

    Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def reverse(x_ptr):
            i = tl.arange(0, 8)
            tl.store(x_ptr + i, i)
            tl.debug_barrier()  # each lane loads what another one has stored
            y = tl.load(x_ptr + 7 - i)
            tl.debug_barrier()  # all have loaded
            tl.store(x_ptr + i, y)

        x = np.zeros(8, np.int32)
        reverse[(1,)](x)
        assert x.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
    """
    emit("barrier")


# --- Escape hatches --------------------------------------------------------------------


def require_cuda(name: str, why: str, guard: str = "is_cuda()") -> None:
    """Raises UserMistake (E030) in a kernel that is built for a CPU."""
    if getattr(active.session.options, "target", "cuda") == "cpu":
        raise UserMistake(
            "E030",
            f"`{name}` {why}, and this kernel is compiled for the CPU",
            f"guard it: if tl.target_info.{guard}: ...",
        )


@overload
def inline_asm_elementwise(
    asm: str,
    constraints: str,
    args: Sequence[Operand],
    dtype: Union[dtype, str],
    is_pure: bool,
    pack: int,
) -> tensor: ...
@overload
def inline_asm_elementwise(
    asm: str,
    constraints: str,
    args: Sequence[Operand],
    dtype: Union[tuple[Union[dtype, str], ...], list[dtype]],
    is_pure: bool,
    pack: int,
) -> tuple[tensor, ...]: ...
@builtin
def inline_asm_elementwise(
    asm: str,
    constraints: str,
    args: Sequence[Operand],
    dtype: Union[dtype, str, tuple[Union[dtype, str], ...], list[dtype]],
    is_pure: bool,
    pack: int,
) -> Any:
    """Assembly that is applied to every `pack` elements of `args`; GPUs only.

    `constraints` are in LLVM's syntax. `dtype` is the type of the result, or a tuple for several
    results. Errors: E030 (on a CPU), E050.
    Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 128)  # on a GPU
        bits = tl.inline_asm_elementwise(
            "popc.b32 $0, $1;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1
        )
        assert tl.sum(bits) == 64 * 7  # of seven bits, half are set
    """
    require_cuda("inline_asm_elementwise", "is assembly of a GPU")
    args = unwrap(args)
    if not isinstance(args, (tuple, list)):
        raise UserMistake("E050", f"args is {describe(args)}", "pass a list of tensors")
    several = isinstance(unwrap(dtype), (tuple, list))
    types = [element_type(one) for one in (unwrap(dtype) if several else (dtype,))]
    results = emit(
        "inline_asm",
        constant_str(asm, "asm", "E050"),
        constant_str(constraints, "constraints", "E050"),
        [to_tensor_value(arg) for arg in args],
        types,
        constant_bool(is_pure, "is_pure"),
        constant_int(pack, "pack", "E050"),
    )
    return results if several else results[0]


@builtin
def extern_elementwise(
    lib_name: str,
    lib_path: str,
    args: Sequence[Operand],
    arg_type_symbol_dict: Mapping[tuple[dtype, ...], tuple[str, dtype]],
    is_pure: bool,
    ret_shape: Optional[Sequence[int]] = None,
) -> tensor:
    """A function of an external library, applied to each element; GPUs only.

    `arg_type_symbol_dict` maps a tuple of argument dtypes to (symbol, result dtype). The library
    is a file of LLVM IR for nvptx64, as bitcode or text. The launch's option
    `extern_libs={lib_name: path}` names it, else `lib_path`; without either it is libdevice. Only
    what is called is linked. Types are those of LLVM IR: int32 is i32, bool is i1, and a pointer
    is a generic one. The file is read when a kernel is compiled; a cached kernel is used only if
    the file had the same contents.

    Errors: E030 for argument types without an entry, or for a CPU; E071 for a library that cannot
    be linked. Source: Triton language 3.6/3.9.

    Example:
        @tl.extern
        def length(x, y):
            table = {(tl.float32, tl.float32): ("__nv_hypotf", tl.float32)}
            return tl.extern_elementwise("libdevice", "", [x, y], table, is_pure=True)

        x = tl.arange(0, 128) * 1.0  # on a GPU
        assert tl.abs(length(3 * x, 4 * x) - 5 * x) < 1e-3
    """
    del ret_shape
    args, entries = unwrap(args), unwrap(arg_type_symbol_dict)
    if not isinstance(args, (tuple, list)):
        raise UserMistake("E044", f"args is {describe(args)}", "pass a list of tensors")
    operands = [to_tensor_value(arg) for arg in args]
    key = tuple(operand.dtype for operand in operands)
    _check_entries(entries)
    arg_type_symbol_dict = entries
    if key not in arg_type_symbol_dict:
        accepted = "; ".join(", ".join(map(str, types)) for types in arg_type_symbol_dict)
        raise UserMistake(
            "E030",
            f"the external function takes no ({', '.join(map(str, key))})",
            f"it takes: {accepted}",
        )
    symbol, result = map(unwrap, arg_type_symbol_dict[key])
    if not isinstance(result, dtype) or result.is_ptr():
        raise UserMistake(
            "E030",
            f"the external function `{symbol}` gives {describe(result)}",
            "its result is a number: give an offset, and add it to a pointer",
        )
    library = find_library(constant_str(lib_name, "lib_name"), constant_str(lib_path, "lib_path"))
    is_pure = constant_bool(is_pure, "is_pure")
    return emit_one("extern_elementwise", symbol, operands, result, is_pure, *library)


def _check_entries(entries: Any) -> None:
    """Raises UserMistake unless `entries` maps tuples of dtypes to (symbol, dtype)."""
    shape = 'map each tuple of dtypes to a symbol and a dtype: {(tl.float32,): ("f", tl.float32)}'
    if not isinstance(entries, dict) or not entries:
        raise UserMistake("E030", f"arg_type_symbol_dict is {describe(entries)}", shape)
    for types, entry in entries.items():
        if not isinstance(types, tuple) or not all(isinstance(one, dtype) for one in types):
            raise UserMistake("E030", f"a key of arg_type_symbol_dict is {types!r}", shape)
        entry = unwrap(entry)
        if (
            not isinstance(entry, (tuple, list))
            or len(entry) != 2
            or not isinstance(unwrap(entry[0]), str)
            or not unwrap(entry[0])
        ):
            raise UserMistake("E030", f"arg_type_symbol_dict gives {entry!r} for {types!r}", shape)


def find_library(name: str, path: str) -> tuple[str, str]:
    """The file of a library, and a hash of what is in it; empty for libdevice.

    Raises UserMistake (E071) if there is no such file.
    """
    given = active.session.extern_libs
    path = given.get(name, path)
    if not path:
        if name in ("", "libdevice"):
            return "", ""
        named = ", ".join(given)
        raise UserMistake(
            "E071",
            f"no file is given for the library `{name}`",
            f"pass its path, or launch with extern_libs={{{name!r}: path}}"
            + (f"; extern_libs names {named}" if named else ""),
        )

    path = os.path.abspath(path)
    try:
        with open(path, "rb") as file:
            contents = digest(file.read()).hex()
    except OSError as error:
        raise UserMistake(
            "E071",
            f"cannot read the library `{name}`: {error.strerror} ({path})",
            "name a file with LLVM IR",
        ) from None
    active.session.reads.files[path] = contents
    return path, contents


def extern(fn: F) -> F:
    """Marks a function that calls `extern_elementwise`; it runs while a kernel is compiled.

    Example:
        @tl.extern
        def ceiling(x):
            table = {(tl.float32,): ("__nv_ceilf", tl.float32), (tl.float64,): ("__nv_ceil", tl.float64)}
            return tl.extern_elementwise("libdevice", "", [x], table, is_pure=True)

        x = tl.arange(0, 128) / 128  # on a GPU
        assert tl.sum(ceiling(x)) == 127.0
    """
    return builtin(fn)
