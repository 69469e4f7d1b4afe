# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far the elementary functions are off, in units of the last place.

float32 is compared with float64 over every bit pattern (or every so-manieth), float64
with long double over random arguments, drawn where the functions do something; pow, which
has two arguments, over random pairs of both. As a
program it measures all of it in parallel, slice by slice, each of which is a line of the
file of results: what is there already is not measured again. From a complete file it
writes the table of docs/Numerics.md:

    PYTHONPATH=python:python/test python -m execution.math_errors RESULTS [--write]
"""

from __future__ import annotations

import argparse
import dataclasses
import decimal
import functools
import json
import math
import multiprocessing
import os
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from execution.running import Runner, host_has, make_kernel

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "Numerics.md"
GPUS = ("cuda", "simulator")
BLOCK = 1 << 14
CHUNK = 1 << 22


@dataclasses.dataclass(frozen=True)
class Function:
    """A function of `tl`, its reference and the worst errors it may have, on a CPU and (as
    NVIDIA states them for the rounded result, so half a ulp more here) on a GPU."""

    name: str
    reference: Callable[[Any], Any]
    single_bound: float
    double_bound: float
    gpu_single_bound: float
    gpu_double_bound: float
    takes_two: bool = False
    may_be_flushed: bool = False
    """Whether a float32 below 2^-126 may come as 0 on a GPU."""

    def bound(self, dtype: str, target: str) -> float:
        """The bound for "float32" or "float64" on a target."""
        name = f"{dtype.replace('float32', 'single').replace('float64', 'double')}_bound"
        return float(getattr(self, f"gpu_{name}" if target in GPUS else name))


@functools.lru_cache(maxsize=None)
def _erf_table(dtype: Any) -> np.ndarray:
    """Taylor coefficients of erf about 0, 1/16, 2/16, ... up to 6.5, a column each."""
    with decimal.localcontext() as context:
        context.prec = 60
        two_over_root_pi = (
            2
            / decimal.Decimal(
                "3.14159265358979323846264338327950288419716939937510582097494"
            ).sqrt()
        )
        columns = []
        for step in range(105):
            centre = decimal.Decimal(step) / 16
            value, term, n = decimal.Decimal(0), centre, 0
            while abs(term) > decimal.Decimal(10) ** -55:
                value += term / (2 * n + 1)
                n += 1
                term *= -centre * centre / n
            coefficients = [value * two_over_root_pi]
            # Of the derivative g, for which g' = -2 x g.
            last, at = decimal.Decimal(0), two_over_root_pi * (-centre * centre).exp()
            for n in range(24):
                coefficients.append(at / (n + 1))
                last, at = at, -2 * (centre * at + last) / (n + 1)
            columns.append([str(coefficient) for coefficient in coefficients])
    return np.array(columns, dtype).T


def _erf(x: np.ndarray) -> np.ndarray:
    """erf in the precision of x, which NumPy has not: by Taylor series about near points."""
    size = np.abs(x)
    size = np.where(size < 6.5, size, x.dtype.type(6.5))
    step = np.rint(size * 16).astype(np.int64)
    h = size - step.astype(x.dtype) / 16
    table = _erf_table(x.dtype)
    value = np.take(table[-1], step)
    for row in table[-2::-1]:
        value = value * h + np.take(row, step)
    value = np.where(np.abs(x) >= 6.5, 1, value)
    return np.copysign(np.where(np.isnan(x), x, value), x).astype(x.dtype)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), which is 0 where exp(-x) is beyond the type that x was widened from."""
    narrow = np.float32 if x.dtype == np.float64 else np.float64
    return np.where(-x > np.log(x.dtype.type(np.finfo(narrow).max)), 0, 1 / (1 + np.exp(-x)))


FUNCTIONS = [
    Function("exp", np.exp, 1.1, 1.1, 2.5, 1.5),
    Function("exp2", np.exp2, 1.3, 1.3, 2.5, 1.5, may_be_flushed=True),
    Function("expm1", np.expm1, 1.8, 1.9, 1.5, 1.5),
    Function("log", np.log, 1.0, 1.0, 1.5, 1.5),
    Function("log2", np.log2, 1.4, 1.4, 1.5, 1.5),
    Function("log1p", np.log1p, 1.0, 1.0, 1.5, 1.5),
    Function("sin", np.sin, 1.7, 1.0, 2.5, 2.5),
    Function("cos", np.cos, 1.7, 1.0, 2.5, 2.5),
    Function("tan", np.tan, 1.5, 2.5, 4.5, 2.5),
    Function("tanh", np.tanh, 1.5, 2.8, 2.5, 2.5),
    Function("erf", _erf, 1.6, 1.6, 2.5, 2.5),
    # On a GPU twice exp's and half a ulp, for a power of two apart, and the quotient's.
    Function("sigmoid", _sigmoid, 2.6, 2.6, 8.5, 4.5),
    Function("rsqrt", lambda x: 1 / np.sqrt(x), 1.6, 1.6, 2.5, 1.5),
    Function("sqrt", np.sqrt, 0.5, 0.5, 1.5, 0.5),
    Function("math.pow", np.power, 0.55, 1.4, 4.5, 2.5, takes_two=True),
]


def function_of(name: str) -> Function:
    """The function of that name."""
    return next(function for function in FUNCTIONS if function.name == name)


@functools.lru_cache(maxsize=None)
def kernel_of(name: str) -> Any:
    """The kernel that applies `tl.<name>` to BLOCK elements a program."""
    if function_of(name).takes_two:
        return make_kernel(f"""
@tessera.jit
def kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)
    tl.store(out_ptr + offsets, tl.{name}(x, y))
""")
    return make_kernel(f"""
@tessera.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.{name}(tl.load(x_ptr + offsets)))
""")


def errors(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """The error of each element in ulps of `got`'s type; infinite where one of the two is
    NaN or infinite and the other is not (but the ends of the range count as neighbours)."""
    info = np.finfo(got.dtype)
    wide = want.dtype.type
    with np.errstate(all="ignore"):
        size = np.abs(want)
        exponent = np.floor(np.log2(np.where(size == 0, wide(1), size)))
        exponent = np.maximum(np.where(size == 0, info.minexp, exponent), info.minexp)
        result = np.abs(got.astype(want.dtype) - want) / np.exp2(exponent - info.nmant)
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        same |= np.isinf(got) & (got == want.astype(got.dtype))
        # About the largest number both it and infinity are near enough.
        end = (size > wide(info.max) * wide(1 - 2.0**-20)) & (np.sign(got) == np.sign(want))
        at_end = end & (np.isinf(got) | (np.abs(got) == info.max))
        result = np.where(same, 0, np.where(at_end & ~(result < 1), 1, result))
    return np.where(np.isnan(result), np.inf, result).astype(np.float64)


class Reference:
    """What results of a type are compared with, prepared for several comparisons."""

    def __init__(self, want: np.ndarray, dtype: str) -> None:
        self.want = want
        info = np.finfo(dtype)
        with np.errstate(all="ignore"):
            self.high = want.astype(np.float64)
            bits = self.high.view(np.int64)
            power = (bits & 0x7FF0000000000000).view(np.float64)
            self.low: Any = None
            if want.dtype != np.float64:
                self.low = (want - self.high).astype(np.float64)
                # What rounds up to a power of two has the ulp below it.
                rounded_up = ((bits & 0xFFFFFFFFFFFFF) == 0) & (self.low * self.high < 0)
                power = np.where(rounded_up, power / 2, power)
            self.ulp = np.maximum(power, float(info.tiny)) * 2.0**-info.nmant

    def errors(self, got: np.ndarray) -> np.ndarray:
        """`errors`, many times as fast: the slow way is for what is not finite and near."""
        with np.errstate(all="ignore"):
            wide = got.astype(np.float64)
            result = wide - self.high
            if self.low is not None:
                result -= self.low
            np.abs(result, out=result)
            result /= self.ulp
            if not np.max(result) < 8:
                far = np.flatnonzero(~(result < 8))
                result[far] = 0
                x, high = wide[far], self.high[far]
                far = far[~((x == high) | (np.isnan(x) & np.isnan(high)))]
                if len(far):
                    result[far] = errors(got[far], self.want[far])
        return result


def single_arguments(step: int) -> Iterator[np.ndarray]:
    """Every `step`-th float32, by bit pattern, in chunks that BLOCK divides."""
    for first in range(0, 1 << 32, CHUNK * step):
        bits = np.arange(first, min(first + CHUNK * step, 1 << 32), step, dtype=np.uint64)
        yield np.resize(bits.astype(np.uint32).view(np.float32), -(-len(bits) // BLOCK) * BLOCK)


def double_arguments(count: int, seed: int = 0) -> Iterator[np.ndarray]:
    """Random float64: any bits, and ranges in which the functions are not trivial."""
    rng = np.random.default_rng(seed)
    for low, high in [(-2.0, 2.0), (0.5, 2.0), (-50.0, 50.0), (-1100.0, 1100.0), (-1e6, 1e6)]:
        yield rng.uniform(low, high, count)
    yield rng.standard_normal(count) * 10.0 ** rng.uniform(-10, 3, count)
    yield rng.integers(0, 1 << 64, count, dtype=np.uint64).view(np.float64)


def pairs(dtype: str, count: int, seed: int = 0) -> Iterator[np.ndarray]:
    """Random arguments of pow, in rows x and y: any bits, and pairs whose power is in range,
    for x anywhere, near 1 and denormal; small integers and halves as y, of either sign of x."""
    rng = np.random.default_rng(seed)
    info = np.finfo(dtype)
    bits = np.uint32 if dtype == "float32" else np.uint64
    top = float(info.maxexp) * 1.1

    def pair(x: Any, y: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.stack([np.asarray(x, dtype), np.asarray(y, dtype)])

    def reaching(x: Any) -> np.ndarray:
        """x, with a y that leads to all exponents there are, and a little beyond."""
        with np.errstate(all="ignore"):
            x = x.astype(dtype).astype(np.float64)
            return pair(x, rng.uniform(-top, top, count) / np.log2(np.where(x == 1, 2, x)))

    with np.errstate(all="ignore"):
        tiny = float(info.smallest_subnormal) * 2.0 ** rng.uniform(0, info.nmant, count)
    sign = rng.choice([-1.0, 1.0], count)
    anywhere = 2.0 ** rng.uniform(info.minexp, info.maxexp, count)
    yield rng.integers(0, 1 << 8 * info.dtype.itemsize, (2, count), dtype=bits).view(dtype)
    yield reaching(anywhere)
    yield reaching(1 + rng.standard_normal(count) * 2.0 ** rng.uniform(-info.nmant, -2, count))
    yield reaching(rng.uniform(0.5, 2, count))
    yield reaching(tiny)
    yield pair(rng.uniform(-4, 4, count), rng.integers(-40, 40, count) / 2)
    yield pair(sign * anywhere, rng.integers(-9, 9, count))


def arguments(function: Function, dtype: str, count: int, step: int) -> Iterator[np.ndarray]:
    """A sample: every `step`-th float32, or `count` of each kind of random arguments."""
    if function.takes_two:
        return pairs(dtype, count)
    return single_arguments(step) if dtype == "float32" else double_arguments(count)


def measure(
    run: Runner, function: Function, arguments: Iterator[np.ndarray], **options: Any
) -> tuple[float, list[float]]:
    """The worst error over the arguments, and where it is. `options` are those of the launch."""
    kernel = kernel_of(function.name)
    flushes = function.may_be_flushed and run.target in GPUS
    flushes &= bool(options.get("enable_reflect_ftz", True))
    worst, where = 0.0, [math.nan]
    for x in map(np.atleast_2d, arguments):
        out = np.empty_like(x[0])
        run(kernel, (len(out) // BLOCK,), *x, out, BLOCK=BLOCK, **options)
        wide: Any = np.float64 if x.dtype == np.float32 else np.longdouble
        with np.errstate(all="ignore"):
            want = function.reference(*x.astype(wide))
        if flushes and x.dtype == np.float32:
            want = np.where((out == 0) & (want < np.finfo(np.float32).tiny), 0, want)
        found = Reference(want, str(x.dtype)).errors(out)
        index = int(np.argmax(found))
        if found[index] > worst:
            worst, where = float(found[index]), x[:, index].tolist()
    return worst, where


LEVELS = ["x86-64-v4", "x86-64-v3", "x86-64"]
HEADINGS = {"x86-64-v4": "AVX-512", "x86-64-v3": "AVX2", "x86-64": "SSE2"}
# Of the arguments of one function: 2^26 bit patterns, or 7 * 2^18 random numbers or pairs.
SLICES = {"float32": 64, "float64": 55}
PART = 1 << 16
DRAWN = 1 << 18


def arguments_of(function: Function, dtype: str, number: int) -> Iterator[np.ndarray]:
    """The arguments of a slice, in parts that stay in the cache."""
    if function.takes_two:
        for drawn in pairs(dtype, DRAWN, seed=number):
            yield from np.split(drawn, DRAWN // PART, axis=1)
        return
    if dtype == "float32":
        for first in range(number << 26, (number + 1) << 26, PART):
            yield np.arange(first, first + PART, dtype=np.uint32).view(np.float32)
        return
    for drawn in double_arguments(DRAWN, seed=number):
        yield from np.split(drawn, DRAWN // PART)


def measure_slice(job: tuple[str, str, int]) -> dict[str, Any]:
    """The worst error of each of this machine's levels over one slice, and where it is."""
    name, dtype, number = job
    function, kernel = function_of(name), kernel_of(name)
    runners = {level: Runner(level) for level in LEVELS if host_has(level)}
    worst: dict[str, list[Any]] = dict.fromkeys(runners, [0.0, 0.0])
    count = 0
    for x in map(np.atleast_2d, arguments_of(function, dtype, number)):
        wide: Any = np.float64 if dtype == "float32" else np.longdouble
        with np.errstate(all="ignore"):
            want = Reference(function.reference(*x.astype(wide)), dtype)
        out = np.empty_like(x[0])
        count += len(out)
        for level, run in runners.items():
            run(kernel, (len(out) // BLOCK,), *x, out, BLOCK=BLOCK)
            found = want.errors(out)
            index = int(np.argmax(found))
            if found[index] > worst[level][0]:
                worst[level] = [float(found[index]), *x[:, index].tolist()]
    return {"function": name, "dtype": dtype, "slice": number, "count": count, "worst": worst}


def read_results(path: pathlib.Path) -> dict[tuple[str, str, int], dict[str, Any]]:
    """The slices of a file of results; a line that was cut off is none."""
    results = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            result = json.loads(line)
        except ValueError:
            continue
        results[result["function"], result["dtype"], result["slice"]] = result
    return results


def measure_all(path: pathlib.Path, jobs: int, seconds: float) -> None:
    """Measures the slices that the file has not, and adds them to it, for so long."""
    os.environ["TESSERA_NUM_THREADS"] = "1"
    end = time.monotonic() + seconds
    known = read_results(path)
    left = [
        (function.name, dtype, number)
        for dtype, slices in SLICES.items()
        for number in range(slices)
        for function in FUNCTIONS
        if (function.name, dtype, number) not in known
    ]
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs) as pool, path.open("a") as file:
        for result in pool.imap_unordered(measure_slice, left):
            file.write(json.dumps(result) + "\n")
            file.flush()
            if time.monotonic() > end:
                pool.terminate()
                break
    print(f"{len(left) - len(read_results(path)) + len(known)} of {len(left)} slices are left")


def table(results: dict[tuple[str, str, int], dict[str, Any]]) -> str:
    """The Markdown table of all functions on all levels that were measured."""
    measured = next(iter(results.values()))["worst"]
    levels = [level for level in LEVELS if level in measured]
    heads = [f"f32 {HEADINGS[level]} | f64 {HEADINGS[level]}" for level in levels]
    lines = ["| function | " + " | ".join(heads) + " |", "|---|" + "---|---|" * len(levels)]
    for function in FUNCTIONS:
        cells = []
        for level in levels:
            for dtype, slices in SLICES.items():
                found = [results.get((function.name, dtype, n)) for n in range(slices)]
                worst = max((r["worst"][level][0] for r in found if r), default=math.nan)
                # Errors are bounds: rounded up, and not told before all is measured.
                cells.append(f"{math.ceil(worst * 100) / 100:.2f}" if all(found) else "?")
        lines.append(f"| `{function.name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measures what is left to be measured, and prints the table or puts it in the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path, help="a file of JSON lines, added to")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--seconds", type=float, default=math.inf, help="to measure for")
    parser.add_argument("--write", action="store_true", help=f"update {PAGE.name}")
    options = parser.parse_args()
    if options.seconds > 0:
        measure_all(options.results, options.jobs, options.seconds)
    text = table(read_results(options.results))
    print(text)
    if options.write:
        page = PAGE.read_text()
        begin, end = "<!-- measured -->\n", "<!-- end -->"
        head, rest = page.split(begin)
        PAGE.write_text(head + begin + text + "\n" + end + rest.split(end)[1])


if __name__ == "__main__":
    main()
