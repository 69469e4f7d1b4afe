# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running kernels on every target of this machine, and arrays to run them on.

The tests here run each operation of the language on random data against NumPy, on the
reference interpreter, on the CPU with AVX-512, AVX2 and SSE2 code, on a GPU if there is
one, and for a GPU on the simulator.
"""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import ml_dtypes
import numpy as np

import tessera
import tessera.gpu
from execution import on_gpu
from tessera import _C

INTS = ["int8", "int16", "int32", "int64"]
UINTS = ["uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]

CPU_TARGETS = ["x86-64-v4", "x86-64-v3", "x86-64"]
TARGETS = ["interpreter", *CPU_TARGETS, "simulator", "cuda"]


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype of a tl dtype's name; bfloat16 is ml_dtypes'."""
    return np.dtype({"bfloat16": ml_dtypes.bfloat16, "int1": "bool"}.get(name, name))


def host_has(target: str) -> bool:
    if target == "cuda":
        return on_gpu.has_gpu()
    features = _C.host_info()["features"].split(",")
    needed = {"x86-64-v4": ["+avx512f", "+avx512vl"], "x86-64-v3": ["+avx2", "+fma"]}
    return all(feature in features for feature in needed.get(target, []))


class Runner:
    """Launches a kernel on one target: `run(kernel, grid, *arguments, **meta)`."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.memory: list[np.ndarray] = []  # what kernels find by `addresses`
        self.mirror: on_gpu.Mirror | None = None  # its copies on the GPU

    def __call__(self, kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
        if self.target == "interpreter":
            for name in ("num_threads", "deterministic"):
                options.pop(name, None)
            tessera.interpret(kernel)[grid](*arguments, **options)
        elif self.target == "simulator":
            tessera.gpu.simulate(kernel, memory=self.memory)[grid](*arguments, **options).check()
        elif self.target == "cuda":
            on_gpu.launch(kernel, grid, arguments, options)
            if self.mirror is not None:
                self.mirror.download()
        else:
            kernel[grid](*arguments, cpu=self.target, **options)

    def addresses(self, arrays: list[np.ndarray]) -> np.ndarray:
        """Where kernels find arrays, to be passed in memory."""
        if self.target != "cuda":
            self.memory = arrays
            return np.array([array.ctypes.data for array in arrays], np.int64)
        self.mirror = on_gpu.Mirror()
        copies = map(self.mirror.upload, arrays)
        return np.array([copy.data_ptr() for copy in copies], np.int64)


_numbers = itertools.count()


def make_kernel(source: str) -> Any:
    """The @tessera.jit function `kernel` of a piece of source text.

    For tests that put an operator or a function's name into a template: the language has
    no strings at run time, and one kernel an operator is what a user would write.
    """
    file_name = f"<kernel {next(_numbers)}>"
    text = "import tessera\nimport tessera.language as tl\n\n" + source
    linecache.cache[file_name] = (len(text), None, text.splitlines(True), file_name)
    namespace: dict[str, Any] = {"__name__": "kernels"}
    exec(compile(text, file_name, "exec"), namespace)
    return namespace["kernel"]


def draw(rng: np.random.Generator, shape: int | tuple[int, ...], dtype: str) -> np.ndarray:
    """Random elements: all bit patterns of integers, moderate floats of either sign."""
    target = numpy_dtype(dtype)
    if target.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if target.kind in "iu":
        info = np.iinfo(target)
        return rng.integers(info.min, info.max, shape, dtype=target, endpoint=True)
    return (rng.standard_normal(shape) * 4).astype(target)


def ulps(dtype: str) -> float:
    """The relative distance of neighbouring floats."""
    return {
        "float16": 2.0**-10,
        "bfloat16": 2.0**-7,
        "float32": 2.0**-23,
        "float64": 2.0**-52,
    }[dtype]


def assert_close(out: np.ndarray, exact: np.ndarray, dtype: str, bound: float = 1.0) -> None:
    """Every element within `bound` ulps of `dtype` of the float64 result; NaN like NaN."""
    got, want = out.astype(np.float64), np.asarray(exact, np.float64)
    both_nan = np.isnan(got) & np.isnan(want)
    same = both_nan | (got == want)
    limit = bound * ulps(dtype) * np.maximum(np.abs(want), 1e-30)
    with np.errstate(invalid="ignore"):
        good = same | (np.abs(got - want) <= limit)
    if not good.all():
        index = tuple(np.argwhere(~good)[0])
        raise AssertionError(f"element {index}: got {got[index]}, wanted {want[index]}")
