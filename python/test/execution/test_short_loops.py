# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The variant of a kernel for loops of one or two iterations is right for any number of them."""

from __future__ import annotations

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl


@tessera.jit
def exponentials(x_ptr, out_ptr, first, n, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0) * n
    top = tl.full((BLOCK,), -1e30, dtype=tl.float32)
    for start in range(first, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        top = tl.maximum(top, tl.load(x_ptr + at, mask=at < n, other=-1e30))
    best = tl.max(top, 0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(first, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.exp(tl.load(x_ptr + at, mask=at < n, other=-1e30) - best)
    tl.store(out_ptr + tl.program_id(0), tl.sum(total, 0))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("n, first", ((0, 0), (5, 0), (512, 0), (513, 1), (700, 0), (2100, 3)))
def test_the_variant_gives_the_same_bits(rng, target, n, first):
    x = rng.standard_normal((3, n)).astype(np.float32)
    results = []
    for options in ({}, {"short_loops": True}):
        out = np.zeros(3, np.float32)
        simulated = tessera.gpu.simulate(exponentials)
        simulated[(3,)](x, out, first, n, BLOCK=256, num_warps=1, target=target, **options).check()
        results.append(out)
    np.testing.assert_array_equal(results[0], results[1])
    if n > first:
        top = x[:, first:].max(1, keepdims=True)
        np.testing.assert_allclose(results[0], np.exp(x[:, first:] - top).sum(1), rtol=1e-5)


def test_a_simulated_launch_chooses_it(monkeypatch):
    asked = []
    of_variant = tessera.compiler.options.CompileOptions.for_variant

    def for_variant(options, variant):
        asked.append(variant)
        return of_variant(options, variant)

    monkeypatch.setattr(tessera.compiler.options.CompileOptions, "for_variant", for_variant)
    kinds = tessera._C.Variant
    for n, kind in ((500, kinds.SHORT_LOOPS), (600, kinds.USUAL)):
        x, out = np.ones((3, n), np.float32), np.zeros(3, np.float32)
        asked.clear()
        simulated = tessera.gpu.simulate(exponentials, multiprocessors=132)
        run = simulated[(3,)](x, out, 0, n, BLOCK=256, num_warps=1, target="sm_90a")
        run.check()
        assert run.division is None and asked[-1] == kind
        np.testing.assert_array_equal(out, n)
