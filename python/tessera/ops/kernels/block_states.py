# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States of optimisers in 8 bits: blocks of 256 elements, each with a scale, and steps on them."""

from __future__ import annotations

import tessera.language as tl
from tessera.runtime.jit import jit

BLOCK = 256
"""Elements of a block."""

ROWS = 4
"""Blocks of a program."""


@jit
def decoded(codes, scales, place, block, mask, in_range):
    """The elements of blocks, by codes that lie at `place`."""
    code = tl.load(codes + place, mask=mask, other=0).to(tl.float32)
    scale = tl.load(scales + block, mask=in_range, other=0.0)
    if codes.dtype.element_ty == tl.uint8:
        share = code * (1 / 255.0)
        return scale * (share * share) * (share * share)
    else:
        share = code * (1 / 127.0)
        return scale * share * share * share


@jit
def cube_root(x):
    """The cube root of shares from 0 to 1, within 4e-7 of it.

    A third of the bits is right within 4 %, and each step of Halley's takes the third power of the error.
    The library's function takes most of the time of a step of an optimiser.
    """
    bits = (x.to(tl.int32, bitcast=True).to(tl.float32) * (1 / 3.0)).to(tl.int32) + 709921077
    root = bits.to(tl.float32, bitcast=True)
    for _ in tl.static_range(2):
        cube = root * root * root
        root *= (cube + 2 * x) / (2 * cube + x)
    return tl.where(x > 1e-30, root, 0.0)


@jit
def store_encoded(value, codes, scales, place, block, mask, in_range):
    """Stores scales and codes of blocks. A block with a NaN gets the scale NaN."""
    value = tl.where(mask, value.to(tl.float32), 0.0)
    size = tl.abs(value)
    scale = tl.max(tl.where(size == size, size, float("inf")), axis=1, keep_dims=True)
    is_spoilt = tl.max((size != size).to(tl.int32), axis=1, keep_dims=True) > 0
    share = tl.where(scale > 0, size / tl.where(scale > 0, scale, 1.0), 0.0)
    if codes.dtype.element_ty == tl.uint8:
        code = tl.floor(tl.sqrt(tl.sqrt(share)) * 255 + 0.5)
        # A second moment above 0 stays above 0, since steps are divided by its root.
        code = tl.where(size > 0, tl.maximum(code, 1.0), code)
    else:
        code = tl.floor(cube_root(share) * 127 + 0.5)
        code = tl.where(value < 0, -code, code)
    tl.store(codes + place, code.to(codes.dtype.element_ty), mask=mask)
    tl.store(scales + block, tl.where(is_spoilt, float("nan"), scale), mask=in_range)


@jit
def places_of_blocks(count, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The blocks of a program, the places of their elements, and which of both are there."""
    block = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    place = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    return block, place, place < count, block.to(tl.int64) * BLOCK < count


@jit
def encode_kernel(x, codes, scales, count, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    block, place, mask, in_range = places_of_blocks(count, ROWS, BLOCK)
    value = tl.load(x + place, mask=mask, other=0.0)
    store_encoded(value, codes, scales, place, block, mask, in_range)


@jit
def decode_kernel(codes, scales, out, count, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    block, place, mask, in_range = places_of_blocks(count, ROWS, BLOCK)
    tl.store(out + place, decoded(codes, scales, place, block, mask, in_range), mask=mask)


@jit
def adamw_blocks_kernel(param, grad, averages, average_scales, squares, square_scales, count,
                        step_size: tl.float64, kept: tl.float64, beta1: tl.float64, beta2: tl.float64,
                        root_scale: tl.float64, eps: tl.float64, sign, ROWS: tl.constexpr,
                        BLOCK: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """params = params * kept - step_size * average / (sqrt(square) * root_scale + eps)."""
    block, place, mask, in_range = places_of_blocks(count, ROWS, BLOCK)
    g = tl.load(grad + place, mask=mask, other=0.0).to(ACC) * sign
    first = decoded(averages, average_scales, place, block, mask, in_range).to(ACC)
    second = decoded(squares, square_scales, place, block, mask, in_range).to(ACC)
    first = beta1.to(ACC) * first + (1 - beta1).to(ACC) * g
    second = beta2.to(ACC) * second + (1 - beta2).to(ACC) * g * g
    step = first / (tl.sqrt(second) * root_scale.to(ACC) + eps.to(ACC))
    value = tl.load(param + place, mask=mask).to(ACC) * kept.to(ACC) - step_size.to(ACC) * step
    tl.store(param + place, value, mask=mask)
    store_encoded(first, averages, average_scales, place, block, mask, in_range)
    store_encoded(second, squares, square_scales, place, block, mask, in_range)


@jit
def lion_blocks_kernel(param, grad, averages, scales, count, lr: tl.float64, kept: tl.float64,
                       beta1: tl.float64, beta2: tl.float64, sign, ROWS: tl.constexpr,
                       BLOCK: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """params = params * kept - lr * sign(beta1 * average + (1 - beta1) * grad)."""
    block, place, mask, in_range = places_of_blocks(count, ROWS, BLOCK)
    g = tl.load(grad + place, mask=mask, other=0.0).to(ACC) * sign
    average = decoded(averages, scales, place, block, mask, in_range).to(ACC)
    step = beta1.to(ACC) * average + (1 - beta1).to(ACC) * g
    step = tl.where(step > 0, 1.0, tl.where(step < 0, -1.0, step))
    value = tl.load(param + place, mask=mask).to(ACC) * kept.to(ACC) - lr.to(ACC) * step
    tl.store(param + place, value, mask=mask)
    average = beta2.to(ACC) * average + (1 - beta2).to(ACC) * g
    store_encoded(average, averages, scales, place, block, mask, in_range)
