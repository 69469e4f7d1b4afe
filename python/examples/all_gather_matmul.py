# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A matmul of rows that lie on several GPUs, which begins while they are still being gathered.

Usage: all_gather_matmul.py, on a machine with two GPUs or more
       torchrun --nproc-per-node 2 all_gather_matmul.py

Each GPU has some rows of a, and columns of b of its own. The first programs of a launch copy the
peers' rows and say of each piece that it is there; the others multiply, first what is here anyway.
"""

# torch.distributed says little of its types.
# pyright: reportUnknownMemberType=false, reportDeprecated=false

from __future__ import annotations

import torch
import torch.distributed as distributed
from peers import Peers, barrier, launch, microseconds, say

import tessera
import tessera.language as tl

COPIERS = 16


@tessera.jit
def copy(
    buffers: tuple[tl.tensor, ...], arrived: tl.tensor, pads: tl.tensor, m: int, K: int, rank: int,
    copier: tl.tensor, WORLD: tl.constexpr, COPIERS: tl.constexpr, PIECE: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Copies what one of the copiers has to; `buffers` begins with this GPU's own."""
    pieces = tl.cdiv(m, PIECE)
    barrier(pads, 2 * copier, rank, WORLD)  # peers' rows are there
    for step in tl.static_range(1, WORLD):
        owner = (rank + step) % WORLD
        for piece in range(copier, pieces, COPIERS):
            start = (owner * m + piece * PIECE).to(tl.int64) * K
            size = tl.minimum(PIECE, m - piece * PIECE) * K
            for at in range(0, size, BLOCK):
                i = at + tl.arange(0, BLOCK)
                rows = tl.load(buffers[step] + start + i, mask=i < size)
                tl.store(buffers[0] + start + i, rows, mask=i < size)
            tl.atomic_xchg(arrived + owner * pieces + piece, 1, sem="release", scope="gpu")
    barrier(pads, 2 * copier + 1, rank, WORLD)  # they may change again


@tessera.jit
def multiply(
    a: tl.tensor, b: tl.tensor, c: tl.tensor, arrived: tl.tensor, m: int, N: int, K: int, rank: int,
    tile: tl.tensor, WORLD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
) -> None:  # fmt: skip
    """Computes a tile of c, when its rows of a are there."""
    pieces = tl.cdiv(m, BLOCK_M)
    columns = tl.cdiv(N, BLOCK_N)
    step = tile // (pieces * columns)
    owner = (rank + step) % WORLD
    inside = tile % (pieces * columns)
    piece, column = tl.swizzle2d(inside // columns, inside % columns, pieces, columns, GROUP)
    if step > 0:
        tl.atomic_poll(arrived + owner * pieces + piece, 1, sem="acquire", scope="gpu")
    within = piece * BLOCK_M + tl.arange(0, BLOCK_M)
    i = owner * m + within
    j = column * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for at in range(0, K, BLOCK_K):
        is_row = (within[:, None] < m) & (at + k[None, :] < K)
        is_column = (at + k[:, None] < K) & (j[None, :] < N)
        x = tl.load(a + i[:, None] * K + at + k[None, :], mask=is_row, other=0)
        y = tl.load(b + (at + k[:, None]) * N + j[None, :], mask=is_column, other=0)
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * N + j[None, :], acc, mask=(within[:, None] < m) & (j[None, :] < N))


@tessera.jit
def all_gather_matmul_kernel(
    buffers: tuple[tl.tensor, ...], b: tl.tensor, c: tl.tensor, arrived: tl.tensor, pads: tl.tensor,
    m: int, N: int, K: int, rank: int, WORLD: tl.constexpr, COPIERS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, COPIED: tl.constexpr,
) -> None:  # fmt: skip
    program = tl.program_id(0)
    if program < COPIERS:
        copy(buffers, arrived, pads, m, K, rank, program, WORLD, COPIERS, BLOCK_M, COPIED)
    else:
        multiply(buffers[0], b, c, arrived, m, N, K, rank, program - COPIERS, WORLD, BLOCK_M,
                 BLOCK_N, BLOCK_K, 8)  # fmt: skip


def all_gather_matmul(
    peers: Peers, b: torch.Tensor, out: torch.Tensor, arrived: torch.Tensor
) -> None:
    """out = a @ b. `peers.own` has room for all rows of a; this GPU has filled in its own part, and gets
    the others. All GPUs call it, and have the same number of rows.

    `arrived` is scratch memory: int32, a number for each 128 rows of each GPU and more.
    """
    (rows, k), n = peers.own.shape, b.shape[-1]
    m = rows // peers.world
    if rows % peers.world:
        raise ValueError(f"{rows} rows are not the same number on each of {peers.world} GPUs")
    if b.shape != (k, n) or out.shape != (rows, n):
        shapes = " and ".join(str(tuple(x.shape)) for x in (b, out))
        raise ValueError(f"b and out have the shapes {shapes}, for peers of {rows} rows of {k}")
    peers.check(b, "b")
    peers.check(out, "out")
    block_m, block_n = 128, 256
    pieces = tessera.cdiv(m, block_m)
    if arrived.dtype != torch.int32 or arrived.numel() < pieces * peers.world:
        raise ValueError(f"arrived has less than {pieces * peers.world} elements of int32")
    arrived.zero_()
    copiers = min(COPIERS, peers.channels // 2, pieces)
    tiles = pieces * peers.world * tessera.cdiv(n, block_n)
    # This GPU's own comes first, then the next one's, so that no GPU is read by all at a time.
    buffers = peers.buffers[peers.rank :] + peers.buffers[: peers.rank]
    all_gather_matmul_kernel[(copiers + tiles,)](
        buffers, b, out, arrived, peers.pads, m, n, k, peers.rank,
        WORLD=peers.world, COPIERS=copiers, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=64,
        COPIED=8192, num_warps=8, num_stages=3,
    )  # fmt: skip


def main() -> None:
    rank, world = distributed.get_rank(), distributed.get_world_size()
    say(f"{world} GPUs, bfloat16, microseconds")
    for m, n, k in (
        (128, 256, 64),
        (1000, 520, 200),
        (1024, 2048, 4096),
        (4096, 4096, 8192),
        (8192, 4096, 8192),
    ):
        torch.manual_seed(rank)
        shard = torch.randn(m, k, device="cuda").bfloat16()
        b = torch.randn(k, n, device="cuda").bfloat16()
        gathered = torch.empty(world * m, k, dtype=torch.bfloat16, device="cuda")
        distributed.all_gather_into_tensor(gathered, shard)
        exact = gathered @ b

        peers = Peers((world * m, k), torch.bfloat16)
        own = peers.own[rank * m : (rank + 1) * m]
        out = torch.empty(world * m, n, dtype=torch.bfloat16, device="cuda")
        arrived = torch.empty(tessera.cdiv(m, 128) * world, dtype=torch.int32, device="cuda")
        for _ in range(3):
            peers.own.fill_(float("nan"))
            out.fill_(float("nan"))
            distributed.barrier()  # a peer may still be reading
            own.copy_(shard)
            all_gather_matmul(peers, b, out, arrived)
            assert torch.equal(peers.own, gathered)
            torch.testing.assert_close(out, exact, rtol=2e-2, atol=2e-2 * k**0.5)

        def apart() -> None:
            distributed.all_gather_into_tensor(gathered, shard)
            torch.matmul(gathered, b, out=exact)

        times = {
            "NCCL, then cuBLAS": microseconds(apart),
            "fused": microseconds(lambda: all_gather_matmul(peers, b, out, arrived)),
            "cuBLAS alone": microseconds(lambda: torch.matmul(gathered, b, out=exact)),
        }
        row = ", ".join(f"{name} {t:9.1f}" for name, t in times.items())
        say(f"{world} x {m} rows, {n} columns, sum of {k}: {row}")
    say("right")


if __name__ == "__main__":
    launch(main)
