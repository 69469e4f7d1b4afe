# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that take longer with a higher id come in another order, and each of them once."""

from __future__ import annotations

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl


@tessera.jit
def triangle(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Adds to each program's element what it has of a row up to its place."""
    place, row, slice = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    total = 0.0
    for start in range(0, place + 1, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + columns, mask=columns <= place, other=0.0))
    at = (slice * tl.num_programs(1) + row) * tl.num_programs(0) + place
    tl.store(out_ptr + at, tl.load(out_ptr + at) + total)


@pytest.mark.parametrize("grid", [(5, 7, 2), (1, 13, 1), (64, 3, 1), (33, 1, 3)])
def test_each_program_once(rng, grid):
    x = rng.integers(0, 9, 64).astype(np.float32)
    out = np.zeros(grid[::-1], np.float32)
    run = tessera.gpu.simulate(triangle)[grid](x, out, BLOCK=32, num_warps=1, target="sm_90a")
    assert not run.findings
    np.testing.assert_array_equal(out, np.broadcast_to(np.cumsum(x)[: grid[0]], out.shape))


def test_order_is_used(rng):
    x = np.ones(64, np.float32)
    compiled = triangle.warmup(x, x.copy(), BLOCK=32, num_warps=1, grid=(64, 3), target="sm_80")
    assert any("programs start with the last" in remark for remark in compiled.remarks)
