# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPUs that there is code for: the compiler's own table (Machine/GPUMachine.h)."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Optional

from tessera import _C

__all__ = ["GPUMachine", "find_for_capability", "gpu_machines", "has_instruction"]


class GPUMachine(NamedTuple):
    """A row of the table."""

    name: str
    """The name of the architecture, such as "sm_90a"."""
    capability: int
    """NVIDIA's compute capability times ten."""
    is_specific: bool
    """True if code for it runs on GPUs of just this capability."""
    has_run: bool
    """True if code for it has run on such a GPU; of others, it has been assembled."""
    warp_size: int
    registers: int
    """The registers of an SM, of 32 bits."""
    max_registers: int
    """The maximum of a thread."""
    shared_bytes: int
    """Shared memory of a program, at most."""
    shared_bytes_of_sm: int
    max_threads_of_sm: int
    max_blocks_of_sm: int
    max_cluster_size: int
    instructions: list[str]
    """Those that not all have: "wgmma", "cp.async.bulk.tensor", ..."""
    mma_rate: int
    """Multiply-adds of 16-bit operands that tensor cores of an SM do in a cycle, by the instructions
    that are used."""
    f32_rate: int
    f16_rate: int
    """The same of threads."""


@functools.cache
def gpu_machines() -> dict[str, GPUMachine]:
    """All rows by name, the oldest first."""
    rows: list[dict[str, Any]] = _C.gpu_machines()
    return {row["name"]: GPUMachine(**row) for row in rows}


def has_instruction(arch: str, name: str) -> bool:
    """True if an architecture has one of the `instructions` above."""
    machine = gpu_machines().get(arch)
    return machine is not None and name in machine.instructions


def find_for_capability(major: int, minor: int) -> Optional[GPUMachine]:
    """The row whose code a GPU of this compute capability runs best."""
    name = _C.gpu_machine_for_capability(major, minor)
    return gpu_machines()[name] if name else None
