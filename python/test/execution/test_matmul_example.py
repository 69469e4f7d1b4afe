# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example of a matmul with a bias and an activation, in every type that it is for."""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import draw

import tessera

EXAMPLE = "matmul"


@pytest.mark.parametrize("activation", ["", "relu", "gelu"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_matmul(run, rng, example, dtype, activation):
    M, N, K, BLOCK = 72, 40, 104, 64
    a, b = draw(rng, (M, K), dtype) / 8, draw(rng, (K, N), dtype) / 8
    a, b, bias = a.astype(dtype), b.astype(dtype), draw(rng, N, dtype)
    out = np.zeros((M, N), a.dtype)
    grid = (tessera.cdiv(M, BLOCK) * tessera.cdiv(N, BLOCK),)
    meta = {"BLOCK_M": BLOCK, "BLOCK_N": BLOCK, "BLOCK_K": 32, "GROUP_M": 4}
    arguments = (a, b, bias, out, M, N, K, K, N, N)
    run(example.matmul_kernel, grid, *arguments, **meta, ACTIVATION=activation)
    x = a.astype(np.float64) @ b.astype(np.float64) + bias.astype(np.float64)
    if activation == "relu":
        x = np.maximum(x, 0)
    elif activation == "gelu":
        x = x / (1 + np.exp(-2 * 0.7978845608028654 * (x + 0.044715 * x**3)))
    unit = {"float32": 2.0**-18, "float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    np.testing.assert_allclose(out.astype(np.float64), x, rtol=unit, atol=unit)
    if run.target == "simulator" and dtype != "float32":
        arrays = (a, b, bias, out, 128, 128, 64, 64, 128, 128)
        kernel = example.matmul_kernel.warmup(
            *arrays, **meta, ACTIVATION=activation, target="sm_90a"
        )
        assert any(remark.endswith("by wgmma") for remark in kernel.remarks)
