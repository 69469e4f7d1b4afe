# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example of attention, in every type that it is for."""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import draw

import tessera

EXAMPLE = "attention"


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_attention(run, rng, example, dtype, causal):
    heads, length, d, block = 2, 72, 64, 32
    q, k, v = ((draw(rng, (heads, length, d), dtype) / 4).astype(dtype) for _ in range(3))
    out = np.zeros_like(q)
    run(
        example.attention_kernel, (tessera.cdiv(length, block), heads), q, k, v, out, length,
        d**-0.5, HEAD=d, BLOCK_M=block, BLOCK_N=block, CAUSAL=causal,
    )  # fmt: skip
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(1, 2) * d**-0.5
    if causal:
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(2, keepdims=True))
    want = weights @ v / weights.sum(2, keepdims=True)
    # Queries and weights are rounded to the type of the arrays.
    unit = {"float32": 2.0**-18, "float16": 2.0**-7, "bfloat16": 2.0**-4}[dtype]
    np.testing.assert_allclose(out.astype(np.float64), want, rtol=0, atol=unit)
    if run.target == "simulator" and dtype != "float32":
        kernel = example.attention_kernel.warmup(
            *(np.zeros((1, 64, d), out.dtype) for _ in range(4)), 64, d**-0.5, HEAD=d, BLOCK_M=64,
            BLOCK_N=64, CAUSAL=causal, target="sm_90a",
        )  # fmt: skip
        assert sum(remark.endswith("by wgmma") for remark in kernel.remarks) == 2
