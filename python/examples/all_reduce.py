# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums over GPUs, by kernels that read and write their peers' memory.

Usage: all_reduce.py, on a machine with two GPUs or more
       torchrun --nproc-per-node 2 all_reduce.py

`one_shot` has each GPU read the numbers of all: one trip, best for few numbers. `two_shot` has each
GPU sum up a share of them and write it to all: on eight GPUs a quarter of the bytes. Sums are taken
in float32 and in the same order everywhere, so that all GPUs have the same, to the bit.
"""

# torch.distributed says little of its types.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import torch
import torch.distributed as distributed
from peers import Peers, barrier, launch, microseconds, say

import tessera
import tessera.language as tl

PROGRAMS = 64  # enough for the bytes that are on their way at a time; a GPU runs more at once
BLOCK = 4096


@tessera.jit
def total_of(buffers: tuple[tl.tensor, ...], i: tl.tensor, n: tl.tensor, WORLD: tl.constexpr) -> tl.tensor:  # fmt: skip
    """The sums of the elements `i` of all buffers."""
    total = tl.load(buffers[0] + i, mask=i < n).to(tl.float32)
    for peer in tl.static_range(1, WORLD):
        total += tl.load(buffers[peer] + i, mask=i < n).to(tl.float32)
    return total


@tessera.jit
def one_shot_kernel(
    buffers: tuple[tl.tensor, ...], out: tl.tensor, pads: tl.tensor, n: int, rank: int,
    WORLD: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    program = tl.program_id(0)
    barrier(pads, 2 * program, rank, WORLD)  # the numbers are there
    for at in range(program * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = at + tl.arange(0, BLOCK)
        tl.store(out + i, total_of(buffers, i, n, WORLD), mask=i < n)
    barrier(pads, 2 * program + 1, rank, WORLD)  # they have been read


@tessera.jit
def two_shot_kernel(
    buffers: tuple[tl.tensor, ...], pads: tl.tensor, n: int, rank: int,
    WORLD: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    program = tl.program_id(0)
    barrier(pads, 2 * program, rank, WORLD)  # the numbers are there
    # The share of this GPU, which no other one reads or writes.
    share = tl.cdiv(tl.cdiv(n, WORLD), BLOCK) * BLOCK
    end = tl.minimum((rank + 1) * share, n)
    for at in range(rank * share + program * BLOCK, end, tl.num_programs(0) * BLOCK):
        i = at + tl.arange(0, BLOCK)
        total = total_of(buffers, i, end, WORLD)
        for peer in tl.static_range(WORLD):
            tl.store(buffers[peer] + i, total, mask=i < end)
    barrier(pads, 2 * program + 1, rank, WORLD)  # and the sums are


def one_shot(peers: Peers, out: torch.Tensor) -> None:
    """out = the sum of `peers.own` over all GPUs. All of them call it."""
    peers.check(out, "out")
    if out.shape != peers.own.shape:
        raise ValueError(f"out has the shape {tuple(out.shape)}, peers {tuple(peers.own.shape)}")
    n = out.numel()
    grid = (min(PROGRAMS, peers.channels // 2, max(1, tessera.cdiv(n, BLOCK))),)
    one_shot_kernel[grid](
        peers.buffers, out, peers.pads, n, peers.rank,
        WORLD=peers.world, BLOCK=BLOCK, num_warps=16,
    )  # fmt: skip


def two_shot(peers: Peers) -> None:
    """`peers.own` becomes its sum over all GPUs. All of them call it."""
    n = peers.own.numel()
    share = tessera.cdiv(n, peers.world)
    grid = (min(PROGRAMS, peers.channels // 2, max(1, tessera.cdiv(share, BLOCK))),)
    two_shot_kernel[grid](
        peers.buffers, peers.pads, n, peers.rank,
        WORLD=peers.world, BLOCK=BLOCK, num_warps=16,
    )  # fmt: skip


def main() -> None:
    rank, world = distributed.get_rank(), distributed.get_world_size()
    say(f"{world} GPUs, bfloat16; microseconds, and in brackets GB/s as NCCL counts them")
    for n in (3, 1000, 1 << 13, 1 << 17, 1 << 20, 1 << 23, 1 << 26):
        torch.manual_seed(rank)
        x = torch.randn(n, device="cuda").bfloat16()
        exact = x.float()
        distributed.all_reduce(exact)
        peers = Peers((n,), torch.bfloat16)

        peers.own.copy_(x)
        out = torch.full_like(x, float("nan"))
        one_shot(peers, out)
        again = torch.full_like(x, float("nan"))
        one_shot(peers, again)
        assert torch.equal(out, again) and torch.equal(peers.own, x)
        torch.testing.assert_close(out.float(), exact, rtol=1e-2, atol=1e-2)
        two_shot(peers)
        assert torch.equal(peers.own, out), "both ways add in the same order"
        everywhere = [torch.empty_like(out) for _ in range(world)]
        distributed.all_gather(everywhere, out)
        assert all(torch.equal(other, out) for other in everywhere), "all GPUs have the same"

        x.zero_()  # summed again and again, without becoming infinite
        peers.own.zero_()
        times = {
            "NCCL": microseconds(lambda: distributed.all_reduce(x)),
            "one shot": microseconds(lambda: one_shot(peers, out)),
            "two shot": microseconds(lambda: two_shot(peers)),
        }
        moved = 2 * n * 2 * (world - 1) / world
        row = ", ".join(f"{name} {t:9.1f} ({moved / t / 1e3:6.1f})" for name, t in times.items())
        say(f"{2 * n:12,} bytes: {row}")
    say("right")


if __name__ == "__main__":
    launch(main)
