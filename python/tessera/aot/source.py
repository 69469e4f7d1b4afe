# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C text of kernels that are compiled ahead of time: a header and a source for each library.

The header declares a function for each kernel; the source has the specialisations, and for each
function a dispatcher, which calls the first one whose conditions hold.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Sequence, Union

from tessera.errors import ArgumentError

CONVENTION = 4
"""TESSERA_AOT_CONVENTION of runtime/tessera_aot.h."""

C_TYPES = {
    "u1": "uint8_t", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
    "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
    "fp8e5": "uint8_t", "fp8e4nv": "uint8_t", "fp8e4b8": "uint8_t", "fp8e5b16": "uint8_t",
    "fp8e4b15": "uint8_t", "fp16": "uint16_t", "bf16": "uint16_t", "fp32": "float", "fp64": "double",
}  # fmt: skip
"""The C type of an element, or of a number: 16-bit and 8-bit floats are passed as their bits."""

_RESERVED = frozenset(
    "alignas alignof and asm auto bool break case catch char class compl const constexpr continue "
    "decltype default delete do double else enum explicit export extern false float for friend goto "
    "if inline int long mutable namespace new not nullptr operator or private protected public "
    "register restrict return short signed sizeof static struct switch template this throw true try "
    "typedef typeid typename typeof union unsigned using virtual void volatile while xor launch slots "
    "errno main NULL".split()
)

_LIBRARY = frozenset(
    name + suffix
    for name in (
        "acos acosh asin asinh atan atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs "
        "fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma log log10 log1p log2 logb "
        "lrint lround modf nan nearbyint nextafter pow remainder rint round roundeven scalbn sin "
        "sincos sinh sqrt tan tanh tgamma trunc atan2 j0 j1 jn y0 y1 yn gamma drem significand"
    ).split()
    for suffix in ("", "f", "l")
) | frozenset(
    "abort abs accept access alarm atexit atoi atof bcmp bcopy bind bsearch bzero calloc close "
    "connect div dup exit ffs fork free getenv getopt index kill labs link listen malloc memchr "
    "memcmp memcpy memmove memset nice open pause pipe poll printf puts qsort raise rand random read "
    "realloc recv remove rename rindex select send sleep signal snprintf socket srand stat strcmp "
    "strlen sync system tee time times truncate unlink wait wait3 write".split()
)
"""Functions of C's library, which compiled code may call: a kernel must not take their place."""


class Parameter(NamedTuple):
    """A parameter of a C function."""

    name: str
    type: str
    """Its name in a signature, such as "*fp32"."""
    is_stored: bool

    @property
    def declared(self) -> str:
        """As C declares it."""
        element = C_TYPES[self.type.lstrip("*")]
        if not self.type.startswith("*"):
            return f"{element} {c_name(self.name)}"
        return f"{'' if self.is_stored else 'const '}{element} *{c_name(self.name)}"

    @property
    def slot(self) -> str:
        """As the slot of an argument."""
        name = c_name(self.name)
        if self.type.startswith("*"):
            return f"(uint64_t)(uintptr_t){name}"
        if self.type in ("fp32", "fp64"):
            return f"tessera_slot_f{self.type[2:]}({name})"
        if self.type == "u1":
            return f"(uint64_t)({name} != 0)"
        return f"(uint64_t){'(int64_t)' if self.type.startswith('i') else ''}{name}"


class Variant(NamedTuple):
    """A specialisation."""

    symbol: str
    conditions: tuple[str, ...]
    """C expressions of the function's parameters; all have to hold."""
    machine: str
    """A C expression: whether this machine can run it; empty if any can."""
    machine_name: str
    slots: tuple[str, ...]
    """The parameters that are passed on, by name."""
    scratch_bytes: int = 0
    assertions: tuple[str, ...] = ()
    cubin: Optional[bytes] = None
    facts: tuple[tuple[str, Union[int, str]], ...] = ()
    """For a kernel for a GPU: the fields of tessera_gpu_kernel."""
    row: str = ""
    """For a kernel for a CPU: the row of the table of CPUs, with the figures that are not its own."""
    limits: tuple[str, ...] = ()
    """The lines that define what it takes for granted of a launch; none if it is nothing."""


class Function(NamedTuple):
    """A kernel."""

    name: str
    parameters: tuple[Parameter, ...]
    variants: tuple[Variant, ...]
    described: str


def c_name(name: str) -> str:
    """A parameter's name in C. Raises ArgumentError (E079) if it has none there."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or not name.isascii():
        raise ArgumentError("E079", f"`{name}` is not a valid name in C", "use ASCII letters")
    return f"{name}_" if name in _RESERVED or name.startswith("tessera_") else name


def c_function(name: str) -> str:
    """A kernel's name in C."""
    return f"{name}_" if name in _LIBRARY else c_name(name)


def header(library: str, functions: Sequence[Function]) -> str:
    """The text of the header."""
    guard = f"TESSERA_{library.upper()}_H"
    lines = [
        f"/* Made by `python -m tessera build`: kernels of the library {library}. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        '#include "tessera_aot.h"',
        "",
        f"#if TESSERA_AOT_CONVENTION != {CONVENTION}",
        f'#error "{library}.h was made for version {CONVENTION} of the calling convention of '
        'tessera_aot.h, which is of another version: build the kernels anew"',
        "#endif",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    for function in functions:
        lines += [f"/* {function.described} */", f"{_prototype(function)};", ""]
    lines += ["#ifdef __cplusplus", '} /* extern "C" */', "#endif", "", f"#endif /* {guard} */", ""]
    return "\n".join(lines)


def source(library: str, functions: Sequence[Function]) -> str:
    """The text of the source."""
    lines = [
        f"/* Made by `python -m tessera build`: kernels of the library {library}. */",
        f'#include "{library}.h"',
        "",
        "#include <stddef.h>",
        "",
    ]
    for function in functions:
        for variant in function.variants:
            lines += _kernel(function, variant)
        lines += _dispatcher(function)
    return "\n".join(lines)


def _prototype(function: Function) -> str:
    parameters = ["const tessera_launch *launch", *(each.declared for each in function.parameters)]
    return f"int {function.name}({', '.join(parameters)})"


def _kernel(function: Function, variant: Variant) -> list[str]:
    lines = list(variant.limits)
    limits = f", .limits = &{variant.symbol}_limits" if variant.limits else ""
    if variant.cubin is not None:
        # Aligned, as the driver wants an image.
        lines += [f"static const _Alignas(64) unsigned char {variant.symbol}_image[] = {{"]
        for at in range(0, len(variant.cubin), 24):
            lines.append("".join(f"{byte}," for byte in variant.cubin[at : at + 24]))
        fields = "".join(f", .{name} = {value}" for name, value in variant.facts)
        return [
            *lines,
            "};",
            f'static tessera_gpu_kernel {variant.symbol} = {{.name = "{function.name}", '
            f'.symbol = "{variant.symbol}", .image = {variant.symbol}_image{fields}{limits}}};',
            "",
        ]
    lines.append(f'extern tessera_chunk {variant.symbol}_run __asm__("{variant.symbol}.kernel");')
    places = "NULL"
    if variant.assertions:
        places = f"{variant.symbol}_assertions"
        texts = ", ".join(_quoted(text) for text in variant.assertions)
        lines.append(f"static const char *const {places}[] = {{{texts}}};")
    lines += [
        f'static tessera_cpu_kernel {variant.symbol} = {{.name = "{function.name}", '
        f".run = {variant.symbol}_run, .scratch_bytes = {variant.scratch_bytes}, "
        f".assertions = {places}, .num_assertions = {len(variant.assertions)}, "
        f".picoseconds = -1, .machine = {_quoted(variant.row)}{limits}}};",
        "",
    ]
    return lines


def _dispatcher(function: Function) -> list[str]:
    lines = [f"{_prototype(function)} {{"]
    by_name = {each.name: each for each in function.parameters}
    machines = list(dict.fromkeys(v.machine for v in function.variants if v.machine))
    for index, machine in enumerate(machines):
        lines.append(f"  int runs_{index} = {machine};")
        if function.variants[0].cubin is not None:
            lines += [f"  if (runs_{index} < 0)", "    return TESSERA_DRIVER;"]
    for variant in function.variants:
        conditions = list(variant.conditions)
        if variant.machine:
            conditions.insert(0, f"runs_{machines.index(variant.machine)}")
        lines.append(f"  if ({' && '.join(conditions)}) {{" if conditions else "  {")
        slots = ", ".join(by_name[name].slot for name in variant.slots) or "0"
        run = "tessera_run_cpu" if variant.cubin is None else "tessera_run_gpu"
        lines.append(f"    uint64_t slots[] = {{{slots}}};")
        call = f"{run}(&{variant.symbol}, launch, slots)"
        if variant.limits:
            lines += [
                f"    int status = {call};",
                "    if (status != TESSERA_OUTSIDE_LIMITS)",
                "      return status;",
                "  }",
            ]
            continue
        lines += [f"    return {call};", "  }"]
        if not conditions:
            return [*lines, "}", ""]
    if machines:
        every = [v for v in function.variants if not v.machine]
        wanted = ", ".join(dict.fromkeys(v.machine_name for v in function.variants))
        if not every:
            none = " && ".join(f"!runs_{index}" for index in range(len(machines)))
            lines += [
                f"  if ({none})",
                f'    return tessera_fail(TESSERA_WRONG_MACHINE, "{function.name}: this machine is '
                f'none of {wanted}");',
            ]
    lines += [
        f'  return tessera_fail(TESSERA_NO_VARIANT, "{function.name}: no specialisation takes these '
        'arguments: another alignment, or another constant, than it was built for");',
        "}",
        "",
    ]
    return lines


def _quoted(text: str) -> str:
    escaped = []
    for byte in text.encode():
        plain = 32 <= byte < 127 and chr(byte) not in '"\\?'
        escaped.append(chr(byte) if plain else f"\\{byte:03o}")
    return '"' + "".join(escaped) + '"'
