# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several GPUs that read and write each other's memory: what all_reduce.py and
all_gather_matmul.py share.

torch's symmetric memory gives each process the addresses of its peers' buffers, and of signal
pads: words of 32 bits that are 0. Tensors on peers' memory are arguments like any other.
"""

# torch.distributed says little of its types.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnnecessaryComparison=false

from __future__ import annotations

import datetime
import os
import sys
import time
from typing import Any, Callable

import torch
import torch.distributed as distributed

import tessera
import tessera.language as tl


@tessera.jit
def barrier(pads: tl.tensor, channel: tl.tensor, rank: tl.tensor, WORLD: tl.constexpr) -> None:
    """Waits until the programs with this channel are here on all GPUs. What they wrote before, to
    whichever memory, is seen behind it.

    `pads` has the address of each GPU's signal pad. Each channel takes WORLD words of it, which
    are 0 before and after. One program of a GPU uses a channel at a time.
    """
    lanes = tl.arange(0, tessera.next_power_of_2(WORLD))
    is_peer = lanes < WORLD
    peer = tl.where(is_peer, lanes, rank)
    # A lane for each peer, so that no signal waits for another one's way.
    theirs = tl.load(pads + peer).to(tl.pointer_type(tl.int32)) + channel * WORLD + rank
    own = tl.load(pads + rank).to(tl.pointer_type(tl.int32)) + channel * WORLD + peer
    tl.atomic_poll(theirs, 0, sem="relaxed", scope="sys")  # the last signal was taken
    tl.atomic_store(theirs, 1, mask=is_peer, sem="release", scope="sys")
    tl.atomic_poll(own, 1, sem="acquire", scope="sys")
    tl.atomic_store(own, 0, mask=is_peer, sem="relaxed", scope="sys")


class Peers:
    """Symmetric memory of one shape and type on each GPU of a group.

    Every process of the group makes it at the same point, with the same shape and type.
    """

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, group: Any = None) -> None:
        if not distributed.is_initialized():
            raise RuntimeError("call torch.distributed.init_process_group first")
        import torch.distributed._symmetric_memory as symmetric

        group = distributed.group.WORLD if group is None else group
        device = torch.device("cuda", torch.cuda.current_device())
        self.own = symmetric.empty(*shape, dtype=dtype, device=device)
        self._handle = symmetric.rendezvous(self.own, group)
        if self._handle is None:
            raise RuntimeError("the GPUs of this group do not reach each other's memory")
        self.rank: int = self._handle.rank
        self.world: int = self._handle.world_size
        self.buffers = tuple(
            self._handle.get_buffer(peer, shape, dtype) for peer in range(self.world)
        )
        """Each GPU's buffer, as tensors that are this GPU's to launch with."""
        self.pads = torch.tensor(self._handle.signal_pad_ptrs, dtype=torch.int64, device=device)
        """The addresses of signal pads, for `barrier`."""
        self.channels: int = self._handle.signal_pad_size // (4 * self.world)

    def check(self, tensor: torch.Tensor, what: str) -> None:
        """Refuses a tensor that is not a dense one of the same type on this GPU."""
        if tensor.dtype != self.own.dtype:
            raise ValueError(f"{what} has elements of {tensor.dtype}, peers of {self.own.dtype}")
        if tensor.device != self.own.device:
            raise ValueError(
                f"{what} is on {tensor.device}, and this process's peer on {self.own.device}"
            )
        if not tensor.is_contiguous():
            raise ValueError(f"{what} is not contiguous: pass {what}.contiguous()")


# --- Running an example ---------------------------------------------------------------------


def launch(work: Callable[[], None]) -> None:
    """Runs `work` in a process for each GPU: those that torchrun has started, or some of ours."""
    if "RANK" in os.environ:
        return _work(int(os.environ["LOCAL_RANK"]), None, work)
    count = torch.cuda.device_count()
    if count < 2:
        sys.exit(f"needs two GPUs that reach each other's memory; there are {count}")
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    torch.multiprocessing.spawn(  # type: ignore[attr-defined, no-untyped-call]
        _work, ((count, port), work), nprocs=count
    )


def _work(local_rank: int, started: Any, work: Callable[[], None]) -> None:
    if started is not None:
        world, port = started
        os.environ.update(
            MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(local_rank),
            WORLD_SIZE=str(world), LOCAL_RANK=str(local_rank),
        )  # fmt: skip
    torch.cuda.set_device(local_rank)
    patience = datetime.timedelta(seconds=120)  # for a process that does not come
    device = torch.device("cuda", local_rank)
    distributed.init_process_group("nccl", timeout=patience, device_id=device)
    try:
        work()
    finally:
        distributed.destroy_process_group()


def microseconds(call: Callable[[], Any], count: int = 20) -> float:
    """The time of a call that all processes make, of the slowest process."""
    for _ in range(3):
        call()
    times = []
    for _ in range(5):
        distributed.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / count * 1e6)
    slowest = torch.tensor(min(times), device="cuda")
    distributed.all_reduce(slowest, op=distributed.ReduceOp.MAX)
    return float(slowest)


def say(text: str) -> None:
    """Prints a line, in the first process."""
    if distributed.get_rank() == 0:
        print(text, flush=True)
