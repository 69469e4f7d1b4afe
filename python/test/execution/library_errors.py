# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far the functions of `libdevice` are off on CPUs, in units of the last place.

What is compared with are values in 200 bits, by python-flint, which nothing else needs
(`pip install python-flint`). As a program it measures random arguments on all levels that this
machine has, and writes the table of docs/Numerics.md; with `--values` it writes the sample of
arguments and values that test_library_errors.py holds every target to:

    PYTHONPATH=python:python/test python -m execution.library_errors [--write] [--values]
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import pathlib
from typing import Any

import numpy as np

from execution.math_errors import HEADINGS, LEVELS, PAGE
from execution.running import Runner, host_has, make_kernel

VALUES = pathlib.Path(__file__).with_name("library_values.npz")
BLOCK = 1024
DTYPES = ("float32", "float64")


@dataclasses.dataclass(frozen=True)
class Function:
    """A function and the worst errors that it may have, of float32 and float64, on a CPU and
    (as NVIDIA states them, half a ulp more for what is rounded) on a GPU."""

    name: str
    double_bound: float
    gpu_single_bound: float
    gpu_double_bound: float
    arity: int = 1
    single_bound: float = 0.55

    def bound(self, dtype: str, target: str) -> float:
        """The bound for a type on a target."""
        on_gpu = target in ("cuda", "simulator")
        if dtype == "float32":
            return self.gpu_single_bound if on_gpu else self.single_bound
        return self.gpu_double_bound if on_gpu else self.double_bound


FUNCTIONS = [
    Function("exp10", 1.3, 2.5, 1.5),
    Function("log10", 0.9, 2.5, 1.5),
    Function("cbrt", 0.51, 1.5, 1.5),
    Function("rcbrt", 0.51, 1.5, 1.5),
    Function("hypot", 0.51, 3.5, 2.5, arity=2),
    Function("rhypot", 0.75, 2.5, 1.5, arity=2),
    Function("sinpi", 1.3, 1.5, 2.5),
    Function("cospi", 1.3, 1.5, 2.5),
    Function("asin", 0.65, 2.5, 2.5),
    Function("acos", 0.65, 2.5, 2.5),
    Function("atan", 1.8, 2.5, 2.5),
    Function("atan2", 1.8, 3.5, 2.5, arity=2),
    Function("sinh", 1.7, 3.5, 2.5),
    Function("cosh", 1.4, 2.5, 1.5),
    Function("asinh", 1.7, 3.5, 3.5),
    Function("acosh", 1.9, 4.5, 3.5),
    Function("atanh", 1.7, 3.5, 2.5),
    Function("erfc", 4.0, 4.5, 5.5),
    Function("erfcx", 2.8, 4.5, 4.5),
    Function("erfinv", 3.2, 2.5, 5.5),
    Function("erfcinv", 3.2, 4.5, 6.5),
    Function("normcdf", 4.2, 5.5, 5.5),
    Function("normcdfinv", 5.2, 5.5, 8.5),
    Function("lgamma", 4.5, 6.5, 4.5, single_bound=0.8),
    Function("tgamma", 7.0, 5.5, 10.5),
    Function("j0", 5.5, 9.5, 7.5),
    Function("j1", 6.0, 9.5, 7.5),
    Function("y0", 6.0, 9.5, 7.5),
    Function("y1", 9.0, 9.5, 7.5),
    Function("cyl_bessel_i0", 4.0, 6.5, 6.5),
    Function("cyl_bessel_i1", 4.0, 6.5, 6.5),
]


def function_of(name: str) -> Function:
    """The function of that name."""
    return next(function for function in FUNCTIONS if function.name == name)


def kernel_of(function: Function) -> Any:
    """The kernel that applies a function to BLOCK elements a program."""
    names = "xy"[: function.arity]
    pointers = ", ".join(f"{x}_ptr" for x in names)
    loads = ", ".join(f"tl.load({x}_ptr + offsets)" for x in names)
    return make_kernel(f"""
from tessera.language.extra import libdevice

@tessera.jit
def kernel({pointers}, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, libdevice.{function.name}({loads}))
""")


def apply(
    run: Runner, function: Function, arguments: list[np.ndarray], **options: Any
) -> np.ndarray:
    """The function of arrays. `options` are those of the launch."""
    length = len(arguments[0])
    padded = [np.resize(x, -(-length // BLOCK) * BLOCK) for x in arguments]
    out = np.zeros_like(padded[0])
    run(kernel_of(function), (len(out) // BLOCK,), *padded, out, BLOCK=BLOCK, **options)
    return out[:length]


# Where pieces of functions meet, and where they end.
PLACES = [
    0.4, 0.5, 0.6, 0.7, 1.0, 1.6, 2.0, 2.1, 2.25, 2.5, 2.6, 2.9, 3.0, 4.0, 5.5, 5.75, 8.0, 26.5, 27.2, 36.0,
    88.9, 90.0, 170.6, 171.6, 184.0, 308.0, 323.0, 709.0, 710.4, 713.9, 1e16, 1e100, 1e300, 2.0**28,
]  # fmt: skip


def arguments_of(function: Function, dtype: str, count: int, seed: int) -> list[np.ndarray]:
    """Random arguments: in ranges where functions do something, about places and of any bits."""
    rng = np.random.default_rng(seed)
    width = np.dtype(dtype).itemsize * 8

    def column() -> np.ndarray:
        parts = [
            rng.uniform(low, high, count)
            for low, high in [(-2, 2), (-12, 12), (-50, 50), (-200, 200), (-750, 750), (0.3, 1.7)]
        ]
        parts += [rng.uniform(0, 1, count), rng.uniform(0, 30, count)]
        places = rng.choice(PLACES, count) * rng.choice([-1, 1], count)
        parts.append(
            places * (1 + rng.standard_normal(count) * 10.0 ** rng.uniform(-16, -2, count))
        )
        parts.append(rng.standard_normal(count) * 10.0 ** rng.uniform(-20, 5, count))
        parts.append(10.0 ** rng.uniform(-320, 0, count))
        parts.append(2 - 10.0 ** rng.uniform(-16, 0, count))
        parts.append(rng.choice([-1, 1], count) * (1 - 10.0 ** rng.uniform(-16, 0, count)))
        any_bits = rng.integers(0, 1 << width, count, dtype=f"uint{width}").view(dtype)
        with np.errstate(all="ignore"):
            parts.append(any_bits.astype(np.float64))
            return np.concatenate(parts).astype(dtype)

    columns = [column() for _ in range(function.arity)]
    if function.arity == 2:
        with np.errstate(all="ignore"):
            near = columns[0] * rng.uniform(-3, 3, len(columns[0]))
        columns[1] = np.where(rng.random(len(near)) < 0.6, near, columns[1]).astype(dtype)
    order = rng.permutation(len(columns[0]))
    return [x[order] for x in columns]


def exact_function(name: str) -> Any:
    """The function of flint's numbers."""
    from flint import acb, arb, ctx  # type: ignore[import-not-found]

    ctx.prec = 200
    root = arb(2).sqrt()

    def cbrt(x: Any) -> Any:
        return x.root(3) if x > 0 else -((-x).root(3))

    functions: dict[str, Any] = {
        "exp10": lambda x: (x * arb(10).log()).exp(),
        "log10": lambda x: x.log() / arb(10).log(),
        "cbrt": cbrt,
        "rcbrt": lambda x: 1 / cbrt(x),
        "hypot": lambda x, y: (x * x + y * y).sqrt(),
        "rhypot": lambda x, y: 1 / (x * x + y * y).sqrt(),
        "sinpi": lambda x: x.sin_pi(),
        "cospi": lambda x: x.cos_pi(),
        "atan2": lambda y, x: arb.atan2(y, x),
        "erfcx": lambda x: (x * x).exp() * x.erfc(),
        "normcdf": lambda x: (-x / root).erfc() / 2,
        "normcdfinv": lambda x: -root * (2 * x).erfcinv(),
        "lgamma": lambda x: x.lgamma() if x > 0 else acb(x).lgamma().real,
        "tgamma": lambda x: x.gamma(),
        "j0": lambda x: x.bessel_j(0),
        "j1": lambda x: x.bessel_j(1),
        "y0": lambda x: x.bessel_y(0),
        "y1": lambda x: x.bessel_y(1),
        "cyl_bessel_i0": lambda x: x.bessel_i(0),
        "cyl_bessel_i1": lambda x: x.bessel_i(1),
    }
    return functions.get(name, lambda x: getattr(x, name)())


def exact_values(
    function: Function, arguments: list[np.ndarray], dtype: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which arguments have a value in the range of a type, and the values as sums of two."""
    from flint import arb

    exact = exact_function(function.name)
    largest = float(np.finfo(dtype).max)
    kept, high, low = [], [], []
    for index, row in enumerate(zip(*arguments)):
        numbers = list(map(float, row))
        if not all(map(math.isfinite, numbers)):
            continue
        if function.name in ("j0", "j1", "y0", "y1") and abs(numbers[0]) > 1e15:
            continue
        if function.name == "erfcx" and abs(numbers[0]) > 1e8:
            continue
        if function.name == "atan2" and numbers[0] == 0:
            continue
        try:
            value = exact(*map(arb, numbers))
        except (ValueError, ZeroDivisionError):
            continue
        if not value.is_finite() or not abs(float(value.mid())) < largest:
            continue
        first = float(value.mid())
        if value.rad() > abs(first) * 2.0**-80 + 2.0**-1090:
            continue
        kept.append(index)
        high.append(first)
        low.append(float((value - arb(first)).mid()))
    return np.array(kept, np.int64), np.array(high), np.array(low)


def errors(
    function: Function, x: np.ndarray, got: np.ndarray, high: np.ndarray, low: np.ndarray
) -> np.ndarray:
    """Errors in ulps of the value; of Bessel functions from 8 on of their amplitude, and of
    lgamma below 0 of the logarithms that it is the difference of, if these are larger."""
    info = np.finfo(got.dtype)
    size = np.abs(x.astype(np.float64))
    scale = np.abs(high)
    if function.name in ("j0", "j1", "y0", "y1"):
        scale = np.where(
            size >= 8, np.maximum(scale, np.sqrt(2 / (np.pi * np.maximum(size, 8)))), scale
        )
    if function.name == "lgamma":
        scale = np.where(x < 0, np.maximum(scale, size * np.log(size + 2)), scale)
    with np.errstate(all="ignore"):
        exponent = np.frexp(scale)[1].astype(np.int64) - 1
        exponent = np.maximum(np.where(scale == 0, info.minexp, exponent), info.minexp)
        unit = np.ldexp(1.0, np.maximum(exponent - info.nmant, -1074))
        found = np.abs((got.astype(np.float64) - high) - low) / unit
        # Next to the largest number, infinity is its neighbour.
        end = np.isinf(got) & (np.abs(high) >= float(info.max) * (1 - 4 * float(info.eps)))
        found = np.where(end, 1, found)
    return np.where(np.isnan(found), np.inf, found)


def write_values() -> None:
    """Writes the sample of the tests."""
    columns = {}
    for function in FUNCTIONS:
        for dtype in DTYPES:
            arguments = arguments_of(function, dtype, 14, seed=1)
            kept, high, low = exact_values(function, arguments, dtype)
            key = f"{function.name}.{dtype}"
            columns[f"{key}.x"] = np.stack([x[kept] for x in arguments])
            columns[f"{key}.high"] = high
            if dtype == "float64":
                columns[f"{key}.low"] = low
    np.savez_compressed(VALUES, **columns)  # type: ignore[arg-type]


def measure(count: int) -> str:
    """The table of the worst errors on all levels."""
    levels = [level for level in LEVELS if host_has(level)]
    heads = [f"f32 {HEADINGS[level]} | f64 {HEADINGS[level]}" for level in levels]
    lines = ["| function | " + " | ".join(heads) + " |", "|---|" + "---|---|" * len(levels)]
    total = 0
    for function in FUNCTIONS:
        cells: dict[tuple[str, str], str] = {}
        for dtype in DTYPES:
            arguments = arguments_of(function, dtype, count, seed=2)
            kept, high, low = exact_values(function, arguments, dtype)
            arguments = [x[kept] for x in arguments]
            total += len(kept)
            for level in levels:
                got = apply(Runner(level), function, arguments)
                found = errors(function, arguments[0], got, high, low)
                index = int(np.argmax(found))
                cells[level, dtype] = f"{math.ceil(found[index] * 100) / 100:.2f}"
                print(
                    function.name,
                    dtype,
                    level,
                    found[index],
                    [x[index] for x in arguments],
                    flush=True,
                )
        row = [cells[level, dtype] for level in levels for dtype in DTYPES]
        lines.append(f"| `{function.name}` | " + " | ".join(row) + " |")
    print(f"{total} arguments")
    return "\n".join(lines)


def main() -> None:
    """Measures and prints the table, or puts it in the page; or writes the tests' values."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000, help="arguments of each of 14 kinds")
    parser.add_argument("--write", action="store_true", help=f"update {PAGE.name}")
    parser.add_argument("--values", action="store_true", help=f"write {VALUES.name}")
    options = parser.parse_args()
    if options.values:
        write_values()
        return
    text = measure(options.count)
    print(text)
    if options.write:
        begin, end = "<!-- measured libdevice -->\n", "<!-- end libdevice -->"
        head, rest = PAGE.read_text().split(begin)
        PAGE.write_text(head + begin + text + "\n" + end + rest.split(end)[1])


if __name__ == "__main__":
    main()
