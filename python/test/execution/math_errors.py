# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far the elementary functions are off, in units of the last place.

float32 is compared with float64 over every bit pattern (or every so-manieth), float64
with long double over random arguments, drawn where the functions do something. As a
program it writes the table of docs/Numerics.md:

    PYTHONPATH=python:python/test python -m execution.math_errors [--full] [--write]
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from execution.running import Runner, host_has, make_kernel

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "Numerics.md"
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

    def bound(self, dtype: str, target: str) -> float:
        """The bound for "float32" or "float64" on a target."""
        name = f"{dtype.replace('float32', 'single').replace('float64', 'double')}_bound"
        return float(getattr(self, f"gpu_{name}" if target == "cuda" else name))


def _erf(x: np.ndarray) -> np.ndarray:
    """erf of float64; the C library's, within 1 ulp of float64."""
    return np.fromiter(map(math.erf, x.astype(np.float64)), np.float64, len(x)).astype(x.dtype)


FUNCTIONS = [
    Function("exp", np.exp, 1.1, 1.1, 2.5, 1.5),
    Function("exp2", np.exp2, 1.3, 1.3, 2.5, 1.5),
    Function("expm1", np.expm1, 1.7, 1.9, 1.5, 1.5),
    Function("log", np.log, 1.0, 1.0, 1.5, 1.5),
    Function("log2", np.log2, 1.3, 1.4, 1.5, 1.5),
    Function("log1p", np.log1p, 1.0, 1.0, 1.5, 1.5),
    Function("sin", np.sin, 1.7, 1.0, 2.5, 2.5),
    Function("cos", np.cos, 1.7, 1.0, 2.5, 2.5),
    Function("tan", np.tan, 1.5, 2.5, 4.5, 2.5),
    Function("tanh", np.tanh, 1.5, 2.7, 2.5, 2.5),
    Function("erf", _erf, 1.3, 2.0, 2.5, 2.5),
    Function("rsqrt", lambda x: 1 / np.sqrt(x), 1.6, 1.6, 2.5, 1.5),
    Function("sqrt", np.sqrt, 0.5, 0.5, 1.5, 0.5),
]


def kernel_of(name: str) -> Any:
    """The kernel that applies `tl.<name>` to BLOCK elements a program."""
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
        # Past the largest number both it and infinity are near enough.
        end = (size > wide(info.max) * wide(1 - 2.0**-20)) & (np.sign(got) == np.sign(want))
        at_end = end & (np.isinf(got) | (np.abs(got) == info.max))
        result = np.where(same, 0, np.where(at_end & ~(result < 1), 1, result))
    return np.where(np.isnan(result), np.inf, result).astype(np.float64)


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


def measure(
    run: Runner, function: Function, arguments: Iterator[np.ndarray]
) -> tuple[float, float]:
    """The worst error over the arguments, and where it is."""
    kernel = kernel_of(function.name)
    worst, where = 0.0, math.nan
    for x in arguments:
        out = np.empty_like(x)
        run(kernel, (len(x) // BLOCK,), x, out, BLOCK=BLOCK)
        wide: Any = np.float64 if x.dtype == np.float32 else np.longdouble
        with np.errstate(all="ignore"):
            want = function.reference(x.astype(wide))
        found = errors(out, want)
        index = int(np.argmax(found))
        if found[index] > worst:
            worst, where = float(found[index]), float(x[index])
    return worst, where


def table(full: bool) -> str:
    """The Markdown table of all functions on all targets of this machine."""
    targets = [t for t in ("x86-64-v4", "x86-64-v3", "x86-64") if host_has(t)]
    lines = [
        "| function | " + " | ".join(f"f32 {t} | f64 {t}" for t in targets) + " |",
        "|---|" + "---|---|" * len(targets),
    ]
    for function in FUNCTIONS:
        cells = []
        for target in targets:
            # erf has no vectorised reference.
            step = (1 if full else 509) * (101 if function.name == "erf" else 1)
            count = BLOCK * (64 if full else 4)
            for arguments in (single_arguments(step), double_arguments(count)):
                cells.append(f"{measure(Runner(target), function, arguments)[0]:.2f}")
        lines.append(f"| `{function.name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Prints the table, or puts it in the page between its two markers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="every float32 (an hour)")
    parser.add_argument("--write", action="store_true", help=f"update {PAGE.name}")
    options = parser.parse_args()
    text = table(options.full)
    print(text)
    if options.write:
        page = PAGE.read_text()
        begin, end = "<!-- measured -->\n", "<!-- end -->"
        head, rest = page.split(begin)
        PAGE.write_text(head + begin + text + "\n" + end + rest.split(end)[1])


if __name__ == "__main__":
    main()
