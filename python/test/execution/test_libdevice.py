# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of `libdevice`: what is exact against exact arithmetic, types and errors.

How far the others are off is tested in test_library_errors.py.
"""

from __future__ import annotations

import fractions
import math
from typing import Any, Callable

import numpy as np
import pytest
from execution.math_errors import errors
from execution.running import Runner, make_kernel

import tessera
from tessera.errors import TesseraError
from tessera.language.extra import libdevice

DTYPES = {
    "int32": np.int32, "uint32": np.uint32, "int64": np.int64, "uint64": np.uint64,
    "fp32": np.float32, "fp64": np.float64,
}  # fmt: skip
SPELLED = {"int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64"}
BLOCK = 1024
Signature = tuple[tuple[str, ...], str]


def signatures(name: str) -> list[Signature]:
    """The types of arguments, and that of the result."""
    function = libdevice.FUNCTIONS[name]
    if function.signatures:
        return [(tuple(map(str, s.arguments)), str(s.result)) for s in function.signatures]
    return [((dtype,) * function.arity, dtype) for dtype in ("fp32", "fp64")]


def kernel_of(name: str, count: int) -> Any:
    """A kernel that applies a function to `count` arrays."""
    pointers = [f"p{i}" for i in range(count)]
    loads = ", ".join(f"tl.load({p} + offsets)" for p in pointers)
    return make_kernel(f"""
from tessera.language.extra import libdevice

@tessera.jit
def kernel({", ".join(pointers)}, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, libdevice.{name}({loads}))
""")


def apply(run: Runner, name: str, result: str, *arguments: np.ndarray) -> np.ndarray:
    """A function of arrays of one length, which is made a multiple of BLOCK."""
    length = len(arguments[0])
    padded = [np.resize(x, -(-length // BLOCK) * BLOCK) for x in arguments]
    out = np.zeros(len(padded[0]), DTYPES[result])
    run(kernel_of(name, len(arguments)), (len(out) // BLOCK,), *padded, out, BLOCK=BLOCK)
    return out[:length]


SPECIAL = [
    0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.5, 1e30, -1e30, 1e-40,
    -1e-40, 1e-45, 5e-324, 1e-310, 3.4028235e38, -3.4028235e38, 1.7976931348623157e308, 2147483647.5,
    2147483648.0, -2147483649.0, 4294967295.5, 4294967296.0, 9.3e18, -9.3e18, 1.9e19, 0.49999997,
]  # fmt: skip


def drawn(rng: np.random.Generator, dtype: str, count: int) -> np.ndarray:
    """Any bits, special values and moderate numbers."""
    kind = DTYPES[dtype]
    width = np.dtype(kind).itemsize * 8
    any_bits = rng.integers(0, 1 << width, count, dtype=f"uint{width}").view(kind)
    if not dtype.startswith("fp"):
        highest = 1 << (width - 1)
        ends = np.array([0, 1, 2, 2 * highest - 1, highest, highest - 1], np.uint64)
        small = rng.integers(0, 1 << 12, count // 4).astype(kind)
        return rng.permutation(
            np.concatenate([np.resize(ends.astype(f"uint{width}").view(kind), 64), small, any_bits])
        )[:count]
    with np.errstate(all="ignore"):
        special = np.array(SPECIAL).astype(kind)
        moderate = (rng.standard_normal(count) * 10.0 ** rng.uniform(-3, 4, count)).astype(kind)
    halves = (rng.integers(-40, 40, count // 8) / 2).astype(kind)
    mixed = np.concatenate([np.tile(special, 4), halves, moderate[: count // 2], any_bits])
    return rng.permutation(mixed[:count])


# --- Integers and bits -------------------------------------------------------------------


def _mask(dtype: str) -> int:
    return (1 << np.dtype(DTYPES[dtype]).itemsize * 8) - 1


def _wrap(value: int, dtype: str) -> int:
    value &= _mask(dtype)
    if not dtype.startswith("u") and value > _mask(dtype) >> 1:
        value -= _mask(dtype) + 1
    return value


def _byte_perm(x: int, y: int, selector: int) -> int:
    both = ((y & 0xFFFFFFFF) << 32) | (x & 0xFFFFFFFF)
    return sum(
        ((both >> 8 * ((selector >> 4 * i) & 7)) & 0xFF) << 8 * i for i in range(4)
    )  # fmt: skip


def _low24(x: int, dtype: str) -> int:
    low = x & 0xFFFFFF
    return low - (1 << 24) if dtype == "int32" and low >> 23 else low


def _bits(x: int, dtype: str) -> str:
    return f"{x & _mask(dtype):b}".zfill(_mask(dtype).bit_length())


INTEGERS: dict[str, Callable[..., int]] = {
    "clz": lambda t, x: _mask(t).bit_length() - (x & _mask(t)).bit_length(),
    "popc": lambda t, x: _bits(x, t).count("1"),
    "ffs": lambda t, x: _bits(x, t)[::-1].find("1") + 1,
    "brev": lambda t, x: int(_bits(x, t)[::-1], 2),
    "byte_perm": lambda t, x, y, z: _byte_perm(x, y, z),
    "mulhi": lambda t, x, y: (x * y) >> _mask(t).bit_length(),
    "mul24": lambda t, x, y: _low24(x, t) * _low24(y, t),
    "sad": lambda t, x, y, z: abs(x - y) + z,
    "hadd": lambda t, x, y: (x + y) >> 1,
    "rhadd": lambda t, x, y: (x + y + 1) >> 1,
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(run, rng, name: str) -> None:
    for types, result in signatures(name):
        arguments = [drawn(rng, dtype, 1024) for dtype in types]
        out = apply(run, name, result, *arguments)
        want = [_wrap(INTEGERS[name](types[0], *map(int, row)), result) for row in zip(*arguments)]
        np.testing.assert_array_equal(out, np.array(want, DTYPES[result]))


BITS: dict[str, Callable[..., np.ndarray]] = {
    "int_as_float": lambda x: x.view(np.float32),
    "float_as_int": lambda x: x.view(np.int32),
    "uint_as_float": lambda x: x.view(np.float32),
    "float_as_uint": lambda x: x.view(np.int32),
    "longlong_as_double": lambda x: x.view(np.float64),
    "double_as_longlong": lambda x: x.view(np.int64),
    "hiloint2double": lambda x, y: np.stack([y, x], 1).ravel().view(np.float64),
    "double2loint": lambda x: x.view(np.int32)[::2],
    "double2hiint": lambda x: x.view(np.int32)[1::2],
    "signbit": lambda x: np.signbit(x).astype(np.int32),
    "copysign": np.copysign,
}


@pytest.mark.parametrize("name", BITS)
def test_bits(run, rng, name: str) -> None:
    for types, result in signatures(name):
        arguments = [drawn(rng, dtype, 1024) for dtype in types]
        out = apply(run, name, result, *arguments)
        unsigned = f"uint{8 * out.itemsize}"
        np.testing.assert_array_equal(out.view(unsigned), BITS[name](*arguments).view(unsigned))


# --- Rounded in a direction --------------------------------------------------------------

Exact = fractions.Fraction


def _neighbours(x: Exact, dtype: str) -> tuple[float, float]:
    """The floats of a type next to a number, below (or equal) and above (or equal)."""
    kind = DTYPES[dtype]
    info = np.finfo(kind)
    largest = Exact(float(info.max))
    if abs(x) > largest:
        low, high = (float(info.max), math.inf) if x > 0 else (-math.inf, -float(info.max))
        return low, high
    if x == 0:
        return 0.0, 0.0
    size = abs(x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Exact(2) ** exponent > size:
        exponent -= 1
    exponent = max(exponent, int(info.minexp))
    unit = Exact(2) ** (exponent - info.nmant)
    below = math.floor(x / unit)
    return float(below * unit), float(-math.floor(-x / unit) * unit)


def directed(x: Exact, dtype: str, rounding: str) -> float:
    """A number rounded in a direction to a type."""
    below, above = _neighbours(x, dtype)
    if rounding == "rn":
        with np.errstate(over="ignore"):
            if below == above:
                return below
            if math.isinf(above) or math.isinf(below):
                info = np.finfo(DTYPES[dtype])
                limit = Exact(float(info.max)) + Exact(2) ** (info.maxexp - info.nmant - 2)
                far = abs(x) >= limit
                return (above if math.isinf(above) == far else below) if x > 0 else (
                    below if math.isinf(below) == far else above
                )  # fmt: skip
            low, high = x - Exact(below), Exact(above) - x
            if low != high:
                return below if low < high else above
            even = int(np.array(below, DTYPES[dtype]).view(f"i{np.dtype(DTYPES[dtype]).itemsize}"))
            return below if even % 2 == 0 else above
    if rounding == "rz":
        return below if x >= 0 else above
    return below if rounding == "rd" else above


OPERATIONS: dict[str, Callable[..., Exact]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "rcp": lambda x: 1 / x,
    "fma": lambda x, y, z: x * y + z,
}


def _operands(rng: np.random.Generator, dtype: str, arity: int) -> list[np.ndarray]:
    """Any bits, near numbers, denormal ones and small ones, of which results are exact."""
    kind, info = DTYPES[dtype], np.finfo(DTYPES[dtype])
    count = 1024
    arguments = [drawn(rng, dtype, count) for _ in range(arity)]
    tiny = float(info.smallest_subnormal)
    for index, x in enumerate(arguments):
        x[:200] = rng.integers(-8, 8, 200)
        x[200:400] = rng.uniform(-2, 2, 200)
        with np.errstate(all="ignore"):
            x[400:500] = (rng.integers(-9, 9, 100) * tiny).astype(kind)
            x[500:600] = rng.uniform(0.5, 2, 100) * float(info.max)
            x[600:700] = float(info.tiny) * rng.uniform(0.2, 4, 100)
            x[700:800] = float(info.tiny) ** 0.5 * rng.uniform(0.2, 4, 100)
            if index == 2:
                # Sums that nearly vanish, and of which one part is far smaller.
                x[:] = np.where(rng.random(count) < 0.3, -arguments[0] * arguments[1], x)
                x[900:950] *= 2.0**-80
            x[950 + 10 * index : 960 + 10 * index] = tiny
            x[960 - 10 * index : 970 - 10 * index] = float(info.max)
            if index == 1:
                x[800:900] = arguments[0][800:900] * rng.choice([1, -1, 1 + 2.0**-20], 100)
    return arguments


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("rounding", ["rn", "rz", "rd", "ru"])
def test_directed_arithmetic(run, rng, operation: str, rounding: str) -> None:
    name = f"{operation}_{rounding}"
    for types, result in signatures(name):
        arguments = _operands(rng, result, len(types))
        out = apply(run, name, result, *arguments)
        for row in zip(*arguments, out):
            *values, got = map(float, row)
            if not all(map(math.isfinite, values)):
                continue
            if operation in ("div", "rcp") and values[-1] == 0:
                continue
            want = directed(OPERATIONS[operation](*map(Exact, values)), result, rounding)
            assert got == want, f"{name}{tuple(values)} is {want}, not {got}"


@pytest.mark.parametrize("rounding", ["rn", "rz", "rd", "ru"])
@pytest.mark.parametrize(
    "kind", ["int2float", "uint2float", "ll2float", "ull2float", "ll2double", "ull2double"]
)
def test_zero_is_converted_to_zero(run, kind: str, rounding: str) -> None:
    name = f"{kind}_{rounding}"
    for types, result in signatures(name):
        out = apply(run, name, result, np.zeros(4, DTYPES[types[0]]))
        assert not out.any() and not np.signbit(out).any()


@pytest.mark.parametrize("name", ["remainder", "fmod"])
def test_a_rest_of_zero_has_the_sign_of_what_was_divided(run, name: str) -> None:
    for types, result in signatures(name):
        kind = DTYPES[result]
        tiny = np.finfo(kind).tiny
        x = np.array([4, 4, 1.5 * 2.0**90 * tiny, 2.0**100 * tiny, tiny, 0], kind)
        y = np.array([2, -2, tiny, tiny, tiny, 3], kind)
        if result == "fp64":
            x, y = np.append(x, 1.0199975699583484e-255), np.append(y, tiny)
        for sign in (1, -1):
            out = apply(run, name, result, sign * x, y)
            assert not out.any() and (np.signbit(out) == (sign < 0)).all()


_LIMITS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "rcp": lambda x: 1 / x,
    "fma": lambda x, y, z: x * y + z,
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("rounding", ["rn", "rz", "rd", "ru"])
def test_directed_arithmetic_of_what_is_not_finite(run, operation: str, rounding: str) -> None:
    """Infinities, NaN and divisors that are 0 have results that no rounding changes."""
    name = f"{operation}_{rounding}"
    for types, result in signatures(name):
        kind = DTYPES[result]
        values = np.array([0.0, -0.0, 1.0, -3.5, np.inf, -np.inf, np.nan], kind)
        arguments = [x.ravel() for x in np.meshgrid(*[values] * len(types))]
        out = apply(run, name, result, *arguments)
        with np.errstate(all="ignore"):
            want = _LIMITS[operation](*arguments)
        special = ~np.isfinite(arguments).all(axis=0)
        if operation in ("div", "rcp"):
            special |= arguments[-1] == 0
        assert special.any()
        np.testing.assert_array_equal(out[special], want[special])
        signed = special & ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(out[signed]), np.signbit(want[signed]))


@pytest.mark.parametrize("rounding", ["rn", "rz", "rd", "ru"])
def test_directed_roots(run, rng, rounding: str) -> None:
    name = f"sqrt_{rounding}"
    for types, result in signatures(name):
        (x,) = _operands(rng, result, 1)
        x = np.abs(x)
        x[:100] = np.arange(100) ** 2
        out = apply(run, name, result, x)
        for argument, got in zip(x, out):
            if not 0 < argument < np.inf:
                np.testing.assert_array_equal(got, np.sqrt(argument))
                continue
            # got <= sqrt(x) < next, or the other way round.
            below = Exact(float(got)) ** 2 <= Exact(float(argument))
            above = Exact(float(got)) ** 2 >= Exact(float(argument))
            other = float(np.nextafter(got, got.dtype.type(np.inf if below else 0)))
            if rounding == "ru":
                assert above, f"{argument}: {got}"
            elif rounding in ("rd", "rz"):
                assert below, f"{argument}: {got}"
            if not (below and above):
                nearer = Exact(other) ** 2 > Exact(float(argument))
                assert nearer == below, f"{argument}: {got}"


@pytest.mark.parametrize("rounding", ["rz", "rd", "ru"])
def test_signs_of_directed_zeros(run, rounding: str) -> None:
    x = np.array([0.0, -0.0, 0.0, -0.0, 1.5, -1.5, np.inf, np.nan])
    y = np.array([0.0, -0.0, -0.0, 0.0, -1.5, 1.5, -np.inf, 1.0])
    negative = [False, True] + [rounding == "rd"] * 4
    for types, result in signatures(f"add_{rounding}"):
        kind = DTYPES[result]
        out = apply(run, f"add_{rounding}", result, x.astype(kind), y.astype(kind))
        np.testing.assert_array_equal(np.signbit(out[:6]), negative)
        assert np.isnan(out[6:]).all()


CONVERSIONS = [name for name in libdevice.FUNCTIONS if "2" in name and name[-3:-1] == "_r"]
INTEGER_TYPES = {"int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}
ROUND: dict[str, Callable[[Exact], int]] = {
    "rn": round, "rz": math.trunc, "rd": math.floor, "ru": math.ceil,
}  # fmt: skip


def rounded_integer(x: float, dtype: str, rounding: str, from_64: bool) -> int:
    """A float as an integer, as PTX says."""
    ends = np.iinfo(DTYPES[dtype])
    if math.isnan(x):
        return 1 << (ends.bits - 1) if from_64 or ends.bits == 64 else 0
    if math.isinf(x):
        return int(ends.max if x > 0 else ends.min)
    return max(int(ends.min), min(int(ends.max), ROUND[rounding](Exact(x))))


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions(run, rng, name: str) -> None:
    (((source,), result),) = signatures(name)
    target, rounding = name.split("2")[1].split("_")
    x = drawn(rng, source, 1024)
    out = apply(run, name, result, x)
    if target in INTEGER_TYPES:
        dtype = INTEGER_TYPES[target]
        want = [
            _wrap(rounded_integer(float(v), dtype, rounding, source == "fp64"), result) for v in x
        ]
        np.testing.assert_array_equal(out, np.array(want, DTYPES[result]))
        return
    for value, got in zip(x, out):
        if source.startswith("fp") and not np.isfinite(value):
            np.testing.assert_array_equal(got, value)
        else:
            exact = Exact(float(value)) if source.startswith("fp") else Exact(int(value))
            assert float(got) == directed(exact, result, rounding), f"{name}({value}) is {got}"


@pytest.mark.parametrize("name", ["llrint", "llround"])
def test_integers_of_floats(run, rng, name: str) -> None:
    for types, result in signatures(name):
        x = drawn(rng, types[0], 1024)
        x = x[np.isfinite(x)]
        out = apply(run, name, result, x)
        ends = np.iinfo(np.int64)

        def nearest(value: float) -> int:
            exact = Exact(value)
            if name == "llrint":
                return round(exact)
            return int(math.copysign(math.floor(abs(exact) + Exact(1, 2)), exact))

        want = [max(int(ends.min), min(int(ends.max), nearest(float(v)))) for v in x]
        np.testing.assert_array_equal(out, np.array(want, np.int64))


# --- Parts of floats, rounding, remainders -----------------------------------------------


def _logb(x: np.ndarray) -> np.ndarray:
    mantissa, exponent = np.frexp(x)
    result = exponent.astype(x.dtype) - 1
    result = np.where(x == 0, -np.inf, result)
    return np.where(np.isfinite(x), result, np.abs(x)).astype(x.dtype)


def _ilogb(x: np.ndarray) -> np.ndarray:
    result = np.frexp(x)[1].astype(np.int32) - 1
    result = np.where(np.isinf(x), 0x7FFFFFFF, result)
    return np.where((x == 0) | np.isnan(x), -0x80000000, result).astype(np.int32)


def _remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    result = [
        math.nan if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0 else math.remainder(a, b)
        for a, b in zip(x.astype(float), y.astype(float))
    ]  # fmt: skip
    return np.array(result).astype(x.dtype)


def _fdim(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(x <= y, 0, x - y).astype(x.dtype)


def _rounded_away(x: np.ndarray) -> np.ndarray:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole)


FLOATS: dict[str, Callable[..., np.ndarray]] = {
    "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
    "nearbyint": np.rint, "round": _rounded_away, "isnan": np.isnan, "isinf": np.isinf,
    "finitef": np.isfinite, "isfinited": np.isfinite, "nextafter": np.nextafter, "logb": _logb,
    "ilogb": _ilogb, "fmod": np.fmod, "remainder": _remainder, "fdim": _fdim,
    "saturatef": lambda x: np.where(x > 0, np.minimum(x, 1), 0), "sqrt_rn": np.sqrt,
    "div_rn": np.divide,
}  # fmt: skip


@pytest.mark.parametrize("name", FLOATS)
def test_exact_functions(run, rng, name: str) -> None:
    for types, result in signatures(name):
        arguments = [drawn(rng, dtype, 2048) for dtype in types]
        if len(arguments) == 2:
            arguments[1][:300] = arguments[0][:300]
            with np.errstate(all="ignore"):
                arguments[1][300:600] = arguments[0][300:600] / rng.integers(1, 9, 300)
        out = apply(run, name, result, *arguments)
        with np.errstate(all="ignore"):
            want = FLOATS[name](*arguments).astype(out.dtype)
        np.testing.assert_array_equal(out, want)
        if out.dtype.kind == "f":
            known = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(out[known]), np.signbit(want[known]))


@pytest.mark.parametrize("name", ["ldexp", "scalbn"])
def test_ldexp(run, rng, name: str) -> None:
    for types, result in signatures(name):
        x = drawn(rng, types[0], 4096)
        info = np.finfo(DTYPES[result])
        n = rng.integers(-2 * info.maxexp, 2 * info.maxexp, 4096).astype(np.int32)
        finite = np.isfinite(x)
        # To where results are denormal, too.
        towards = info.minexp - info.nmant + rng.integers(-3, 30, 4096)
        with np.errstate(all="ignore"):
            n[:2048] = np.where(finite, towards - np.frexp(np.where(finite, x, 1))[1], n)[:2048]
            n[2048:2052] = [2**31 - 1, -(2**31), 2**31 - 1, -(2**31)]
            out = apply(run, name, result, x, n)
            want = np.ldexp(x, n)
        np.testing.assert_array_equal(out, want)
        np.testing.assert_array_equal(np.signbit(out[finite]), np.signbit(x[finite]))


def test_rcp64h(run, rng) -> None:
    x = drawn(rng, "fp64", 1024)
    x = x[np.isfinite(x) & (np.abs(x) > 1e-300) & (np.abs(x) < 1e300)]
    out = apply(run, "rcp64h", "fp64", x)
    np.testing.assert_allclose(out, 1 / x, rtol=2.0**-19)
    assert not (out.view(np.int64) & 0xFFFFFFFF).any()


# --- All of them -------------------------------------------------------------------------


@pytest.mark.in_turn("arch")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", sorted(libdevice.FUNCTIONS))
def test_code_for_gpus(name: str, arch: str) -> None:
    """Each is compiled, half of them for either generation, and nothing is left to be called."""
    parameters: list[str] = []
    types: list[str] = []
    lines: list[str] = []
    for index, (arguments, result) in enumerate(signatures(name)):
        names = [f"a{index}_{i}" for i in range(len(arguments))]
        parameters += [*names, f"out{index}"]
        types += [f"*{SPELLED.get(dtype, dtype)}" for dtype in (*arguments, result)]
        loads = ", ".join(f"tl.load({p} + offsets)" for p in names)
        lines.append(f"    tl.store(out{index} + offsets, libdevice.{name}({loads}))\n")
    kernel = make_kernel(f"""
from tessera.language.extra import libdevice

@tessera.jit
def kernel({", ".join(parameters)}):
    offsets = tl.arange(0, 128)
{"".join(lines)}""")
    compiled = tessera.compile(kernel, ", ".join(types), target=arch)
    # What libdevice itself keeps apart, for large arguments, stays so.
    called = [line for line in compiled.asm["ptx"].splitlines() if "call.uni" in line]
    assert all("__internal_" in line for line in called), called
    if "cubin" in compiled.asm:
        assert compiled.asm["cubin"]


def test_how_many_there_are() -> None:
    """As many as Triton 3.6 has, each with docs and named parameters."""
    assert len(libdevice.FUNCTIONS) == 197
    for name in libdevice.FUNCTIONS:
        function = getattr(libdevice, name)
        assert function.__doc__ and function.__name__ == name


# --- Arguments ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int16", "int32"])
def test_types_that_are_refused(run, dtype: str) -> None:
    kernel = make_kernel(f"""
from tessera.language.extra import libdevice

@tessera.jit
def kernel(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 16)).to(tl.{dtype})
    tl.store(x_ptr + tl.arange(0, 16), libdevice.asin(x).to(tl.float32))
""")
    with pytest.raises(TesseraError, match="libdevice.asin of .*; it takes fp32; fp64") as caught:
        run(kernel, (1,), np.ones(16, np.float32))
    assert caught.value.id == "E030"


def test_numbers_scalars_and_broadcasting(run) -> None:
    kernel = make_kernel("""
from tessera.language.extra import libdevice
from tessera.language.extra.cuda import libdevice as older

TWO = tl.constexpr(2.0)

@tessera.jit
def kernel(x_ptr, wide_ptr, out_ptr, y, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    wide = tl.load(wide_ptr + offsets)
    tl.store(out_ptr + offsets, libdevice.copysign(x, -1.0))
    tl.store(out_ptr + BLOCK + offsets, older.copysign(TWO, x))
    tl.store(out_ptr + 2 * BLOCK + offsets, tl.extra.libdevice.copysign(arg0=y, arg1=x))
    both = tl.extra.cuda.libdevice.copysign(x, wide)
    tl.static_assert(both.dtype == tl.float64)
    tl.store(out_ptr + 3 * BLOCK + offsets, both.to(tl.float32))
    rows = libdevice.copysign(x[:, None], wide.to(tl.float32)[None, :])
    tl.static_assert(rows.shape == (BLOCK, BLOCK))
    tl.store(out_ptr + 4 * BLOCK + offsets, tl.sum(rows, 1))
    scalar = libdevice.copysign(y, -1.0)
    tl.static_assert(scalar.shape == ())
    tl.store(out_ptr + 5 * BLOCK, scalar)
    tl.store(out_ptr + 5 * BLOCK + 1, libdevice.copysign(3.0, -0.0))
    shifted = libdevice.abs(tl.load(x_ptr)) + libdevice.fma(y, 2, x)
    tl.store(out_ptr + 6 * BLOCK + offsets, shifted)
""")
    x = np.linspace(-2, 2, 16, dtype=np.float32)
    wide = np.linspace(2, -3, 16)
    out = np.zeros(7 * 16, np.float32)
    run(kernel, (1,), x, wide, out, 5.0, BLOCK=16)
    rows = out.reshape(7, 16)
    np.testing.assert_array_equal(rows[0], -np.abs(x))
    np.testing.assert_array_equal(rows[1], np.copysign(2, x))
    np.testing.assert_array_equal(rows[2], np.copysign(5, x))
    np.testing.assert_array_equal(rows[3], np.copysign(x, wide))
    np.testing.assert_allclose(
        rows[4], np.copysign(x[:, None], wide[None, :]).sum(1), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_array_equal(rows[5][:2], [-5, -3])
    np.testing.assert_allclose(rows[6], 2 + 10 + x, rtol=1e-6)


def test_other_names(run) -> None:
    kernel = make_kernel("""
from tessera.language import core

@tessera.jit
def kernel(x_ptr, BLOCK: core.constexpr):
    x = core.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(x_ptr + tl.core.arange(0, BLOCK), tl.libdevice.trunc(x) + tl.extra.libdevice.rint(x))
""")
    x = np.array([1.7, -1.7], np.float32).repeat(16)
    run(kernel, (1,), x, BLOCK=32)
    np.testing.assert_array_equal(x, np.array([3, -3]).repeat(16))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pow(run, rng, dtype: str) -> None:
    short = "fp32" if dtype == "float32" else "fp64"
    x = np.abs(drawn(rng, short, 1024))
    y = drawn(rng, short, 1024)
    out = apply(run, "pow", short, x, y)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    assert errors(out, want).max() <= (4.5 if run.target in ("cuda", "simulator") else 2)


def test_products_that_are_not_fused(run, rng) -> None:
    """What mul_rn rounds stays rounded where it is added to."""
    kernel = make_kernel("""
from tessera.language.extra import libdevice

@tessera.jit
def kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)
    product = libdevice.mul_rn(x, y)
    tl.store(out_ptr + offsets, libdevice.add_rn(product, -product) + (product - product))
    tl.store(out_ptr + BLOCK + offsets, libdevice.mul_rn(x, y) - 1.0)
""")
    x, y = rng.uniform(1, 2, (2, 64)).astype(np.float32)
    out = np.ones(128, np.float32)
    run(kernel, (1,), x, y, out, BLOCK=64)
    np.testing.assert_array_equal(out[:64], 0)
    np.testing.assert_array_equal(out[64:], x * y - np.float32(1))


@pytest.mark.parametrize("name", ["trunc", "floor", "abs"])
def test_functions_by_name(run, name: str) -> None:
    kernel = make_kernel("""
from tessera.language.extra import libdevice
from tessera.language.extra.libdevice import fast_dividef as quotient

@tessera.jit
def kernel(x_ptr, y_ptr, NAME: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = getattr(libdevice, NAME)(tl.load(x_ptr + offsets))
    tl.store(y_ptr + offsets, x)
    if NAME == "none":
        tl.store(y_ptr + offsets, quotient(x, x))
""")
    x = np.linspace(-4, 4, 64, dtype=np.float32)
    y = np.zeros_like(x)
    run(kernel, (1,), x, y, NAME=name, BLOCK=64)
    np.testing.assert_array_equal(y, getattr(np, name)(x))


def test_answers_are_booleans(run) -> None:
    """They may be stored as such, and combined."""
    kernel = make_kernel("""
from tessera.language.extra import libdevice

@tessera.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.static_assert(libdevice.isnan(x).dtype == tl.int1)
    odd = libdevice.isnan(x) | libdevice.isinf(x)
    tl.store(out_ptr + offsets, odd & ~libdevice.finitef(x))
""")
    x = np.resize(np.array([1, -1, 0, np.inf, -np.inf, np.nan], np.float32), 64)
    out = np.zeros(64, bool)
    run(kernel, (1,), x, out, BLOCK=64)
    np.testing.assert_array_equal(out, ~np.isfinite(x))


def test_in_functions_of_scalars(run) -> None:
    """They may be called where there are no tiles: of scalars, and in a reduction."""
    kernel = make_kernel("""
from tessera.language.extra import libdevice

@tessera.jit
def longer(a, b):
    return libdevice.hypot(a, b)

@tessera.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.reduce(x, 0, longer))
    tl.store(out_ptr + 1, libdevice.asin(tl.load(x_ptr)))
    tl.store(out_ptr + 2, libdevice.jn(3, tl.load(x_ptr)))
""")
    x = np.linspace(0.5, 2, 32, dtype=np.float32)
    out = np.zeros(3, np.float32)
    run(kernel, (1,), x, out, BLOCK=32)
    want = [np.sqrt(np.sum(x.astype(np.float64) ** 2)), np.arcsin(0.5), 0.00256372999458724]
    np.testing.assert_allclose(out, want, rtol=1e-6)
