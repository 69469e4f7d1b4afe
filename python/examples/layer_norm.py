# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layer normalisation of rows, with weight and bias."""

from __future__ import annotations

from typing import Any

import tessera
import tessera.language as tl


@tessera.jit
def layer_norm_kernel(
    x_ptr: tl.tensor, weight_ptr: tl.tensor, bias_ptr: tl.tensor, out_ptr: tl.tensor, stride: int,
    columns: int, eps: float,
    BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    normed = centred * (1.0 / tl.sqrt(variance + eps))
    weight = tl.load(weight_ptr + offsets, mask=mask)
    bias = tl.load(bias_ptr + offsets, mask=mask)
    tl.store(out_ptr + row * stride + offsets, normed * weight + bias, mask=mask)


def layer_norm(x: Any, weight: Any, bias: Any, out: Any, eps: float = 1e-5) -> None:
    """out = weight * (x - mean) / sqrt(variance + eps) + bias over the rows of x."""
    rows, columns = x.shape
    block = tessera.next_power_of_2(columns)
    layer_norm_kernel[(rows,)](x, weight, bias, out, columns, columns, eps, BLOCK=block)
