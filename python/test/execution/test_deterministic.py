# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""With `deterministic`, every target gives the same bits, whatever it can fuse or widen."""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import Runner, host_has, make_kernel, numpy_dtype
from execution.math_errors import FUNCTIONS, Function, kernel_of

CPUS = [target for target in ("x86-64-v4", "x86-64-v3", "x86-64") if host_has(target)]


def assert_same_bits(results: list[np.ndarray]) -> None:
    for result in results[1:]:
        assert result.tobytes() == results[0].tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_functions(rng, function: Function, dtype: str) -> None:
    x = (rng.standard_normal(2048) * 8).astype(numpy_dtype(dtype))
    inputs = [np.abs(x), x] if function.takes_two else [x]
    kernel, results = kernel_of(function.name), []
    for cpu in CPUS:
        results.append(np.empty_like(x))
        Runner(cpu)(kernel, (1,), *inputs, results[-1], BLOCK=2048, deterministic=True)
    # The sign of a NaN says nothing.
    assert_same_bits([np.where(np.isnan(result), np.nan, result) for result in results])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(64, 64, 64), (16, 48, 256), (1, 24, 40)])
def test_dot(rng, shape: tuple[int, int, int], dtype: str) -> None:
    M, N, K = shape
    kernel = make_kernel("""
@tessera.jit
def kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b))
""")
    a = rng.standard_normal((M, K)).astype(numpy_dtype(dtype))
    b = rng.standard_normal((K, N)).astype(numpy_dtype(dtype))
    results = []
    for cpu in CPUS:
        results.append(np.full((M, N), 99, np.float64 if dtype == "float64" else np.float32))
        Runner(cpu)(kernel, (1,), a, b, results[-1], M=M, N=N, K=K, deterministic=True)
    assert np.abs(results[0]).max() > 0
    assert_same_bits(results)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_sums(rng, dtype: str) -> None:
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, out_ptr):
    i, j = tl.arange(0, 16), tl.arange(0, 256)
    x = tl.load(x_ptr + i[:, None] * 256 + j[None, :])
    y = tl.sum(x * x + 0.1 * x, axis=1)
    tl.store(out_ptr + i, y)
    tl.store(out_ptr + 16 + j, tl.sum(x, axis=0))
""")
    x = rng.standard_normal((16, 256)).astype(dtype)
    results = []
    for cpu in CPUS:
        results.append(np.full(16 + 256, 99, dtype))
        Runner(cpu)(kernel, (1,), x, results[-1], deterministic=True)
    assert_same_bits(results)


ON_GPUS = {
    "sum": "tl.broadcast_to(tl.sum(x * x + 0.1 * x, axis=1)[:, None], (16, 64))",
    "column sum": "tl.broadcast_to(tl.sum(x, axis=0)[None, :], (16, 64))",
    "all": "tl.broadcast_to(tl.sum(tl.sum(x, axis=1), axis=0), (16, 64))",
    "softmax": "(tl.exp(x - tl.max(x, axis=1)[:, None]) / "
    "tl.sum(tl.exp(x - tl.max(x, axis=1)[:, None]), axis=1)[:, None])",
    "cumsum": "tl.cumsum(x, axis=1)",
    "running product down": "tl.cumprod(1 + x / 64, axis=0)",
    "dot": "tl.dot(tl.dot(x, tl.trans(x)).to(x.dtype), x)",
}


@pytest.mark.parametrize("target", ["simulator", "cuda"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ON_GPUS)
def test_gpus_give_one_answer_for_any_number_of_warps(rng, name: str, dtype: str, target: str):
    if not host_has(target):
        pytest.skip("there is no GPU")
    if name == "softmax" and dtype in ("float16", "bfloat16"):
        pytest.skip("exponentials are of float32 and float64")
    kernel = make_kernel(f"""
@tessera.jit
def kernel(x_ptr, out_ptr):
    to = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]
    x = tl.load(x_ptr + to)
    tl.store(out_ptr + to, {ON_GPUS[name]})
""")
    x = rng.standard_normal((16, 64)).astype(numpy_dtype(dtype))
    results = []
    for warps in (1, 2, 4, 8):
        results.append(np.full((16, 64), np.nan, numpy_dtype(dtype)))
        Runner(target)(kernel, (1,), x, results[-1], num_warps=warps, deterministic=True)
        assert np.isfinite(results[-1].astype(np.float64)).all()
    assert_same_bits(results)
