# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the example kernels and compares each with NumPy (and torch where it is importable).

The closing table has the median time of each kernel and of its reference, their ratio
(above 1: Tessera is faster) and the largest error against a float64 computation. Exits 0
only if every result is within its bound.

Usage: demo.py [--only NAME...] [--repeat N] [--json FILE]
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

sys.path.insert(0, __file__.rsplit("/", 1)[0])

import attention as attention_example  # noqa: E402
import layer_norm as layer_norm_example  # noqa: E402
import matmul as matmul_example  # noqa: E402
import softmax as softmax_example  # noqa: E402
import vector_add as vector_add_example  # noqa: E402

Array = np.ndarray


@dataclasses.dataclass
class Case:
    """One row of the table."""

    name: str
    shape: str
    run: Callable[[], object]
    """Fills `out`."""
    out: Array
    exact: Array
    """The float64 result."""
    bound: float
    """Largest allowed |out - exact| / max(1, |exact|)."""
    references: dict[str, Callable[[], object]]
    """Library name -> the same work, with a preallocated output where the library has one."""


def random(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape, dtype=np.float32)


def load_torch() -> Any:
    """torch, if somebody has installed it; it is never installed for the demo."""
    try:
        return importlib.import_module("torch")
    except ImportError:
        return None


def vector_add_cases(rng: np.random.Generator, torch: Any) -> Iterator[Case]:
    x, y = random(rng, 1024), random(rng, 1024)
    out = np.empty_like(x)
    yield Case(
        "vector add, one program", "1024",
        lambda: vector_add_example.add_1024[(1,)](x, y, out),
        out, x.astype(np.float64) + y, 1e-6, {"numpy": lambda: np.add(x, y)},
    )  # fmt: skip
    n = 192311
    x1, y1 = random(rng, n), random(rng, n)
    out1 = np.empty_like(x1)
    yield Case(
        "vector add, masked", str(n),
        lambda: vector_add_example.add_masked[(math.ceil(n / 1024),)](x1, y1, out1, n),
        out1, x1.astype(np.float64) + y1, 1e-6, {"numpy": lambda: np.add(x1, y1, out=out1)},
    )  # fmt: skip
    n2 = 1 << 24
    x2, y2 = random(rng, n2), random(rng, n2)
    out2, other = np.empty_like(x2), np.empty_like(x2)
    references: dict[str, Callable[[], object]] = {"numpy": lambda: np.add(x2, y2, out=other)}
    if torch:
        tx, ty, tout = torch.from_numpy(x2), torch.from_numpy(y2), torch.from_numpy(other)
        references["torch"] = lambda: torch.add(tx, ty, out=tout)
    yield Case(
        "vector add", str(n2), lambda: vector_add_example.vector_add(x2, y2, out2),
        out2, x2.astype(np.float64) + y2, 1e-6, references,
    )  # fmt: skip


def softmax_cases(rng: np.random.Generator, torch: Any) -> Iterator[Case]:
    rows, columns = 4096, 4096
    x = random(rng, rows, columns)
    out, other = np.empty_like(x), np.empty_like(x)

    def numpy_softmax() -> None:
        np.subtract(x, x.max(axis=1, keepdims=True), out=other)
        np.exp(other, out=other)
        np.divide(other, other.sum(axis=1, keepdims=True), out=other)

    exact = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    references: dict[str, Callable[[], object]] = {"numpy": numpy_softmax}
    if torch:
        tx, tout = torch.from_numpy(x), torch.from_numpy(other)
        references["torch"] = lambda: torch.softmax(tx, dim=1, out=tout)
    yield Case(
        "softmax", f"{rows}x{columns}", lambda: softmax_example.softmax(x, out),
        out, exact, 1e-6, references,
    )  # fmt: skip


def matmul_cases(rng: np.random.Generator, torch: Any) -> Iterator[Case]:
    m = n = k = 1024
    a, b, bias = random(rng, m, k), random(rng, k, n), random(rng, n)
    out, other = np.empty((m, n), np.float32), np.empty((m, n), np.float32)
    product = a.astype(np.float64) @ b + bias

    def numpy_relu() -> None:
        np.matmul(a, b, out=other)
        np.add(other, bias, out=other)
        np.maximum(other, 0, out=other)

    def numpy_gelu() -> None:
        np.matmul(a, b, out=other)
        np.add(other, bias, out=other)
        inner = 0.7978845608028654 * (other + 0.044715 * other * other * other)
        np.multiply(other, 0.5 + 0.5 * np.tanh(inner), out=other)

    inner = 0.7978845608028654 * (product + 0.044715 * product**3)
    gelu = product * (0.5 + 0.5 * np.tanh(inner))
    references_relu: dict[str, Callable[[], object]] = {"numpy": numpy_relu}
    references_gelu: dict[str, Callable[[], object]] = {"numpy": numpy_gelu}
    if torch:
        ta, tb, tbias, tout = (torch.from_numpy(array) for array in (a, b, bias, other))

        def torch_linear(activation: Callable[[object], object]) -> object:
            torch.addmm(tbias, ta, tb, out=tout)
            return activation(tout)

        references_relu["torch"] = lambda: torch_linear(torch.relu_)
        references_gelu["torch"] = lambda: torch_linear(
            lambda t: torch.nn.functional.gelu(t, approximate="tanh")
        )
    yield Case(
        "matmul + bias + relu", f"{m}x{n}x{k}",
        lambda: matmul_example.matmul(a, b, bias, out, "relu"),
        out, np.maximum(product, 0), 2e-4, references_relu,
    )  # fmt: skip
    yield Case(
        "matmul + bias + gelu", f"{m}x{n}x{k}",
        lambda: matmul_example.matmul(a, b, bias, out, "gelu"),
        out, gelu, 2e-4, references_gelu,
    )  # fmt: skip


def layer_norm_cases(rng: np.random.Generator, torch: Any) -> Iterator[Case]:
    rows, columns = 4096, 4096
    x, weight, bias = random(rng, rows, columns), random(rng, columns), random(rng, columns)
    out, other = np.empty_like(x), np.empty_like(x)

    def numpy_layer_norm() -> None:
        np.subtract(x, x.mean(axis=1, keepdims=True), out=other)
        scale = 1 / np.sqrt(np.mean(other * other, axis=1, keepdims=True) + 1e-5)
        np.multiply(other, scale, out=other)
        np.multiply(other, weight, out=other)
        np.add(other, bias, out=other)

    wide = x.astype(np.float64)
    exact = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    exact = exact * weight + bias
    references: dict[str, Callable[[], object]] = {"numpy": numpy_layer_norm}
    if torch:
        tx, tw, tb, tout = (torch.from_numpy(array) for array in (x, weight, bias, other))
        tmean, trstd = torch.empty(rows, 1), torch.empty(rows, 1)
        references["torch"] = lambda: torch.ops.aten.native_layer_norm.out(
            tx, [columns], tw, tb, 1e-5, out0=tout, out1=tmean, out2=trstd
        )
    yield Case(
        "layer norm", f"{rows}x{columns}",
        lambda: layer_norm_example.layer_norm(x, weight, bias, out),
        out, exact, 1e-4, references,
    )  # fmt: skip


def attention_cases(rng: np.random.Generator, torch: Any) -> Iterator[Case]:
    heads, length, head = 8, 1024, 64
    q, k, v = (random(rng, heads, length, head) for _ in range(3))
    out = np.empty_like(q)
    for causal in (False, True):
        hidden = np.triu(np.full((length, length), -np.inf, np.float32), 1)

        def attend(dtype: type, causal: bool = causal, hidden: Array = hidden) -> Array:
            scores = q.astype(dtype) @ k.astype(dtype).transpose(0, 2, 1) / dtype(math.sqrt(head))
            if causal:
                scores += hidden
            scores = np.exp(scores - scores.max(axis=2, keepdims=True))
            weights: Array = scores / scores.sum(axis=2, keepdims=True)
            result: Array = weights @ v.astype(dtype)
            return result

        references: dict[str, Callable[[], object]] = {
            "numpy": functools.partial(attend, np.float32)
        }
        if torch:
            tq, tk, tv = (torch.from_numpy(array)[None] for array in (q, k, v))
            sdpa = torch.nn.functional.scaled_dot_product_attention
            references["torch"] = functools.partial(sdpa, tq, tk, tv, is_causal=causal)
        yield Case(
            "attention, causal" if causal else "attention", f"{heads}x{length}x{head}",
            functools.partial(attention_example.attention, q, k, v, out, causal),
            out, attend(np.float64), 1e-5, references,
        )  # fmt: skip


FAMILIES = {
    "vector_add": vector_add_cases,
    "softmax": softmax_cases,
    "matmul": matmul_cases,
    "layer_norm": layer_norm_cases,
    "attention": attention_cases,
}


def interleaved(functions: dict[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """Median seconds of each function, the functions taking turns."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(repeat):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", help="write the rows to this file")
    arguments = parser.parse_args()
    torch = load_torch()
    rows: list[dict[str, object]] = []
    for family in arguments.only:
        # Each family draws from a generator of its own, so that --only changes no data.
        for case in FAMILIES[family](np.random.default_rng(arguments.seed), torch):
            case.out.fill(np.nan)
            case.run()
            difference = np.abs(case.out - case.exact) / np.maximum(1, np.abs(case.exact))
            # NaN compares false, so an element that was never written fails.
            error = float(difference.max())
            times = interleaved({"tessera": case.run, **case.references}, arguments.repeat)
            for library in case.references:
                rows.append(
                    {
                        "kernel": case.name, "shape": case.shape, "dtype": str(case.out.dtype),
                        "ms": times["tessera"] * 1e3, "reference": library,
                        "reference_ms": times[library] * 1e3,
                        "ratio": times[library] / times["tessera"],
                        "error": error, "bound": case.bound, "agrees": bool(error <= case.bound),
                    }
                )  # fmt: skip
            print(
                f"  {case.name} {case.shape}: {'ok' if error <= case.bound else 'WRONG'}",
                flush=True,
            )
    print_table(rows)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)
    wrong = [row for row in rows if not row["agrees"]]
    print("all results agree" if not wrong else f"{len(wrong)} results do not agree")
    return 1 if wrong else 0


def print_table(rows: list[dict[str, object]]) -> None:
    heads = ["kernel", "shape", "dtype", "time ms", "reference", "its ms", "ratio", "max error"]
    lines = [
        [
            str(row["kernel"]), str(row["shape"]), str(row["dtype"]), f"{row['ms']:.3f}",
            str(row["reference"]), f"{row['reference_ms']:.3f}", f"{row['ratio']:.2f}",
            f"{row['error']:.1e}" + ("" if row["agrees"] else f" > {row['bound']:.0e} WRONG"),
        ]
        for row in rows
    ]  # fmt: skip
    widths = [max(len(line[i]) for line in [heads, *lines]) for i in range(len(heads))]
    print()
    for line in [heads, ["-" * width for width in widths], *lines]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    print()


if __name__ == "__main__":
    sys.exit(main())
