# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels without annotations but those that mean something; test_static_types.py has type
checkers read this file as they do by default."""

import tessera
import tessera.language as tl


@tessera.jit
def normalise(x_ptr, out_ptr, stride, columns, eps, BLOCK: tl.constexpr = 64):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    scale = tl.rsqrt((centred * centred).sum() / columns + eps)
    tl.store(out_ptr + row * stride + offsets, centred * scale, mask=mask)


@tessera.jit
def accumulate(x_ptr, out_ptr, n: tl.int32, BLOCK: tl.constexpr, IS_MAX: tl.constexpr):
    acc = 0.0
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + start + tl.arange(0, BLOCK))
        if IS_MAX:
            acc = tl.maximum(acc, x.max())
        else:
            acc += tl.sum(x)
    tl.store(out_ptr, acc)


def launch(x, out):
    normalise[(x.shape[0],)](x, out, x.shape[1], x.shape[1], 1e-5, BLOCK=64)
    grid = lambda meta: (tessera.cdiv(x.shape[0], meta["BLOCK"]),)
    accumulate[grid](x, out, x.shape[0], BLOCK=64, IS_MAX=False)
