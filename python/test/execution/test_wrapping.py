# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices whose arithmetic wraps on purpose: halos in unsigned integers, hashes, offsets
that are subtracted.

What the compiler knows of indices (docs/Language.md, "Outside the promise") must not make
it see runs where one of these begins anew.
"""

import numpy as np

import tessera
import tessera.language as tl
from execution.running import draw


@tessera.jit
def load_halo(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = tl.program_id(0).to(tl.uint32) * BLOCK + lanes.to(tl.uint32) - 4
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=-1.0)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + lanes, x)


def test_unsigned_offsets_that_begin_below_zero(run, rng):
    x = draw(rng, 256, "float32")
    out = np.zeros(128, np.float32)
    run(load_halo, (2,), x, out, 100, BLOCK=64)
    want = np.concatenate([np.full(4, -1.0), x[:100], np.full(24, -1.0)])
    np.testing.assert_array_equal(out, want.astype(np.float32))
