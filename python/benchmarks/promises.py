# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the GPU target is to reach, beside which docs/Benchmarks.md shows what it reaches.

The rows of cpu.py carry their promises themselves; those of gpu.py and gpu_matmul.py are
measured on a machine that writes figures alone. A ratio is Triton's time divided by ours
unless said; the first name that a row's begins with counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Promise(NamedTuple):
    """None: nothing was promised."""

    at_least: float | None = None
    """Of Triton's speed (of nvcc's, where there is no Triton)."""
    of_copy: float | None = None
    """Of the speed of a copy, at least."""
    aim_of_copy: float | None = None
    of_library: float | None = None
    """Of the speed of torch's call, at least."""
    aim_of_library: float | None = None


GPU = {
    "add": Promise(1.0, of_library=0.99),
    "softmax": Promise(1.0, aim_of_copy=0.95),
    "rms norm": Promise(1.0, aim_of_copy=0.95),
    "layer norm": Promise(1.0, aim_of_copy=0.92),
    "transpose": Promise(of_copy=0.85, aim_of_copy=0.95),
    "sum": Promise(1.0, aim_of_copy=0.92),
    "deformable attention": Promise(1.3),
    "": Promise(1.0),
}

MATMULS = {
    "matmul bf16 8192x8192x8192": Promise(1.0, aim_of_library=1.05),
    "matmul bf16 4096x4096x4096": Promise(1.0, aim_of_library=1.05),
    "matmul bf16 2048x2048x2048": Promise(1.0, aim_of_library=1.05),
    "matmul bf16 1024x1024x1024": Promise(1.0, aim_of_library=1.10),
    "matmul bf16 4096x14336x4096": Promise(1.0, aim_of_library=1.03),
    "matmul bf16 512x4096x14336": Promise(1.0, aim_of_library=1.0),
    "matmul bf16 128x8192x8192": Promise(1.0, aim_of_library=1.05),
    "matmul bf16 16x8192x8192": Promise(1.0, aim_of_library=1.2),
    "matmul bf16 3000x5000x4100": Promise(of_library=1.4, aim_of_library=2.0),
    "matmul fp8": Promise(of_library=0.9, aim_of_library=1.0),
    "linear": Promise(1.0, of_library=0.93, aim_of_library=1.0),
    "matmul bias gelu": Promise(of_library=1.2),
    "matmul int4": Promise(1.0),
    "attention bf16 d128 T2048": Promise(1.15, aim_of_library=1.0),
    "attention bf16 d128 T16384": Promise(1.2, aim_of_library=1.0),
    "": Promise(1.0, aim_of_library=1.0),
}

COMPILE = {
    "add": (0.7, 12.0),
    "softmax 4096": (0.3, 20.0),
    "rms norm 4096": (0.3, 20.0),
    "matmul": (0.6, 80.0),
    "attention": (0.6, 120.0),
}
"""Of Triton's time for a cold compile at most, and milliseconds without ptxas at most."""


def of(promises: dict[str, Promise], work: str) -> Promise:
    return next(promise for start, promise in promises.items() if work.startswith(start))


def judged(
    value: float, at_least: float | None, aim: float | None = None, spread: float = 0
) -> str:
    """A ratio: bold where it misses what was promised by more than the run's spread, slanted
    where it misses the aim alone."""
    text = f"{value:.2f}"
    if at_least and round(value, 2) < round(at_least - spread, 2):
        return f"**{text}**"
    return f"*{text}*" if aim and round(value, 2) < aim else text


def spread(*results: dict[str, Any]) -> float:
    """How far a run's medians are uncertain, as part of them: at least a hundredth, by which runs
    of the same kernel differ."""
    return max(0.01, *(result.get("spread", 0.0) for result in results))
