# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dots on machines with instructions for narrow elements, at 512 and 256 bits, and small
and skinny dots on all targets.

The targets of the other tests have no such instructions: each kernel here says what it was
compiled to, so that a machine that lost its instruction does not pass.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
from execution.running import draw, numpy_dtype
from execution.test_dot import dot

import tessera

# The CPU, changes to its features, what bytes are multiplied by, and what bf16 is.
BYTES, BF16 = "llvm.x86.avx512.vpdpbusd", "llvm.x86.avx512bf16.dpbf16ps"
MACHINES = {
    "avx512-vnni": ("x86-64-v4", "+avx512vnni", f"{BYTES}.512", None),
    "avx-vnni": ("x86-64-v3", "+avxvnni", f"{BYTES}.256", None),
    "cascadelake": ("cascadelake", "-pku", f"{BYTES}.512", None),
    "zen4": (
        "znver4",
        "-pku,-sse4a,-clzero,-mwaitx,-rdpru,-wbnoinvd,-shstk",
        f"{BYTES}.512",
        f"{BF16}.512",
    ),
    "avx2": ("x86-64-v3", "", None, None),
    "sse2": ("x86-64", "", None, None),
}


def remarks_of(kernel, grid, *arguments, cpu: str, features: str, **sizes) -> list[str]:
    """The remarks on dots, after a run where this machine can."""
    options = {"cpu": cpu, "features": features}
    compiled = kernel.warmup(*arguments, **sizes, **options)
    try:
        kernel[grid](*arguments, **sizes, **options)
    except tessera.errors.TesseraError as error:
        if "this machine" in str(error):
            pytest.skip(str(error).splitlines()[0])
        raise
    return [text for text in compiled.metadata["remarks"] if "dot of" in text]


def run_dot(machine: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """c += a @ b for that machine, with the instruction that it has."""
    cpu, features, bytes_by, bf16_by = MACHINES[machine]
    sizes = {"M": len(a), "N": b.shape[1], "K": len(b), "TRANS_A": False, "TRANS_B": False}
    options = {"cpu": cpu, "features": features}
    compiled = dot.warmup(a, b, c, **sizes, ACC=True, **options)
    (remark,) = [text for text in compiled.metadata["remarks"] if "dot of" in text]
    expected = {"int8": bytes_by, "bfloat16": bf16_by}.get(str(a.dtype))
    if expected and a.shape[1] % 4 == 0:
        assert expected in remark
    else:
        assert "rows by" in remark
    try:
        dot[(1,)](a, b, c, **sizes, ACC=True, **options)
    except tessera.errors.TesseraError as error:
        if "this machine" in str(error):
            pytest.skip(str(error).splitlines()[0])
        raise


def check_bytes(rng, shape: tuple[int, int, int], run: Callable[..., None]) -> None:
    """Compares a dot of bytes, which `run(a, b, c)` adds to c, with NumPy's: exact, also at the ends."""
    m, n, k = shape
    a = rng.integers(-128, 128, (m, k)).astype(np.int8)
    b = rng.integers(-128, 128, (k, n)).astype(np.int8)
    a[0], b[:, 0] = -128, -128
    c = rng.integers(-1000, 1000, (m, n)).astype(np.int32)
    want = a.astype(np.int64) @ b.astype(np.int64) + c
    run(a, b, c)
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "shape", [(64, 64, 64), (1, 64, 64), (2, 256, 32), (16, 48, 256), (32, 8, 24)]
)
def test_bytes(rng, machine: str, shape: tuple[int, int, int]) -> None:
    check_bytes(rng, shape, functools.partial(run_dot, machine))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("shape", [(64, 64, 64), (1, 64, 64), (16, 48, 256), (32, 8, 24)])
def test_bf16(rng, machine: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = draw(rng, (m, k), "bfloat16"), draw(rng, (k, n), "bfloat16")
    c = np.zeros((m, n), np.float32)  # is added to
    run_dot(machine, a, b, c)
    a, b = a.astype(np.float64), b.astype(np.float64)
    # Products are exact, and each of k sums is off by at most half an ulp of what it sums.
    assert (np.abs(c - a @ b) <= k * 2.0**-24 * (np.abs(a) @ np.abs(b))).all()


@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("rows", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("columns, depth", [(128, 64), (16, 512), (512, 16)])
def test_skinny(run, rng, dtype: str, rows: int, columns: int, depth: int) -> None:
    # Small integers: every sum is exact in every dtype and order.
    a = rng.integers(-4, 5, (rows, depth)).astype(numpy_dtype(dtype))
    b = rng.integers(-4, 5, (depth, columns)).astype(numpy_dtype(dtype))
    kind = {"int8": np.int32, "float64": np.float64}.get(dtype, np.float32)
    c = np.full((rows, columns), 99, kind)
    sizes = {"M": rows, "N": columns, "K": depth, "TRANS_A": False, "TRANS_B": False}
    run(dot, (1,), a, b, c, **sizes, ACC=False)
    np.testing.assert_array_equal(c, (a.astype(np.float64) @ b.astype(np.float64)).astype(kind))
