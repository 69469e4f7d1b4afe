# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Descriptors of arrays that a kernel finds in memory: on a GPU it makes tensor maps itself."""

from __future__ import annotations

import numpy as np
from execution.running import Runner

import tessera
import tessera.language as tl

BM, BN, BK = 64, 64, 64


@tessera.jit
def grouped(as_ptr, bs_ptr, cs_ptr, sizes_ptr, lds_ptr, groups, PROGRAMS: tl.constexpr,
            BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """Matmuls of arrays that lie anywhere, a tile of one of them at a time."""
    tile = tl.program_id(0)
    end = 0
    for g in range(groups):
        M, N = tl.load(sizes_ptr + g * 3), tl.load(sizes_ptr + g * 3 + 1)
        K = tl.load(sizes_ptr + g * 3 + 2)
        across = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * across
        if tile >= end and tile < end + tiles:
            a_ptr = tl.load(as_ptr + g).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(bs_ptr + g).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(cs_ptr + g).to(tl.pointer_type(tl.float16))
            lda, ldb = tl.load(lds_ptr + g * 3), tl.load(lds_ptr + g * 3 + 1)
            ldc = tl.load(lds_ptr + g * 3 + 2)
            a = tl.make_tensor_descriptor(a_ptr, [M, K], [lda, 1], [BM, BK])
            b = tl.make_tensor_descriptor(b_ptr, [N, K], [ldb, 1], [BN, BK])
            c = tl.make_tensor_descriptor(c_ptr, [M, N], [ldc, 1], [BM, BN])
            while tile >= end and tile < end + tiles:
                m, n = (tile - end) // across * BM, (tile - end) % across * BN
                acc = tl.zeros((BM, BN), dtype=tl.float32)
                for k in range(0, tl.cdiv(K, BK)):
                    acc += tl.dot(a.load([m, k * BK]), b.load([n, k * BK]).T)
                c.store([m, n], acc.to(tl.float16))
                tile += PROGRAMS
        end += tiles


def small(rng, *shape):
    return rng.integers(-2, 3, shape).astype(np.float16)


def test_grouped_matmul(run: Runner, rng):
    sizes = [(128, 64, 192), (8, 72, 8), (96, 136, 0), (64, 64, 64), (65, 16, 328)]
    a = [small(rng, M, max(8, K)) for M, N, K in sizes]
    b = [small(rng, N, max(8, K)) for M, N, K in sizes]
    c = [np.full((M, N), 99, np.float16) for M, N, K in sizes]
    where = run.addresses([*a, *b, *c]).reshape(3, -1)
    lds = np.array([x.shape[1] for each in zip(a, b, c) for x in each], np.int32)
    arguments = (*[x.copy() for x in where], np.array(sizes, np.int32), lds, len(sizes))
    meta = {"PROGRAMS": 3, "BM": BM, "BN": BN, "BK": BK}
    run(grouped, (3,), *arguments, **meta)
    for x, y, z, (_, _, K) in zip(a, b, c, sizes):
        np.testing.assert_array_equal(
            z, x[:, :K].astype(np.float32) @ y[:, :K].astype(np.float32).T
        )
    if run.target == "simulator":
        kernel = grouped.warmup(*arguments, **meta, target="sm_90a")
        assert kernel.asm["ptx"].count("tensormap.cp_fenceproxy") == 2
        assert any(
            "copies for itself: the kernel finds its arrays" in str(x) for x in kernel.remarks
        )
