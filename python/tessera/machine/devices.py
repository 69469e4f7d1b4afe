# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Properties of this machine for programs before a launch: a target, a device, its sizes."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, NamedTuple, Optional, Union

from tessera import _C
from tessera.errors import LaunchError, raise_core_error
from tessera.machine.gpus import find_for_capability, gpu_machines

__all__ = [
    "GPUTarget",
    "architecture",
    "current_device",
    "current_target",
    "device_properties",
    "has_gpu",
]

WARP_SIZE = 32
MAX_WARPS = 32
"""Of a program."""
MAX_LANES = MAX_WARPS * WARP_SIZE
MAX_REGISTERS = 255
"""Of a thread."""


class GPUTarget(NamedTuple):
    """The target of a compilation: `GPUTarget("cuda", 90, 32)`, `GPUTarget("cpu", "znver5",
    32)`."""

    backend: str
    arch: Union[int, str]
    """The compute capability of a GPU, times ten; the name of a CPU."""
    warp_size: int
    """Lanes that go together. A CPU has as many as a GPU, so that programs which compute
    `num_warps` by it come to the same."""


def has_gpu() -> bool:
    """True if there is a GPU to launch on, and torch, where it is loaded, can reach it."""
    if not _C.cuda_is_available() or _C.cuda_device_count() == 0:
        return False
    torch = sys.modules.get("torch")
    if torch is None or torch.cuda.is_initialized():
        return True
    return bool(torch.cuda.is_available())


def current_device() -> int:
    """The GPU that launches without arrays go to: the current one of torch where torch uses GPUs,
    else the first. Asking has torch open none, and is allowed in a forked process."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return int(torch.cuda.current_device())
    return 0


def current_target() -> GPUTarget:
    """The current GPU, or this CPU where there is none."""
    if has_gpu():
        return _gpu_target(current_device())
    return GPUTarget("cpu", str(_C.host_info()["cpu"]), WARP_SIZE)


@functools.lru_cache(maxsize=None)
def architecture(device: int) -> str:
    """The target for code that runs on a GPU, such as "sm_90a".

    Raises LaunchError (E030, E066) for a GPU that is not there or not supported.
    """
    try:
        info = _C.cuda_device_info(device)
    except _C.CoreError as error:
        raise_core_error(error)
    major, minor = info["capability"]
    machine = find_for_capability(major, minor)
    if machine is None:
        generations = sorted({known.capability // 10 for known in gpu_machines().values()})
        raise LaunchError(
            "E030",
            f"GPU {device} ({info['name']}) has compute capability {major}.{minor}, "
            "for which there is no code generator",
            f"use a GPU of capability {', '.join(f'{known}.x' for known in generations)}, or arrays "
            "on the CPU",
        )
    return machine.name


@functools.cache
def _gpu_target(device: int) -> GPUTarget:
    """Cached, since host code reads the target several times a launch."""
    major, minor = _C.cuda_device_info(device)["capability"]
    return GPUTarget("cuda", major * 10 + minor, WARP_SIZE)


def device_properties(device: Optional[int] = None) -> dict[str, Any]:
    """The resources of a device: `multiprocessor_count`, `max_num_regs`, `max_shared_mem`,
    `warpSize`, ...

    A CPU's multiprocessors are its threads. Each has vector registers for as many lanes as a
    program may have, and its L2 cache as shared memory.
    """
    if has_gpu():
        info = _C.cuda_device_info(current_device() if device is None else device)
        return {
            "multiprocessor_count": info["multiprocessors"],
            "max_shared_mem": info["max_shared_bytes"],
            "max_num_regs": next(iter(gpu_machines().values())).registers,  # the same on all
            "warpSize": WARP_SIZE,
        }
    return {
        "multiprocessor_count": int(_C.host_info()["threads"]),
        "max_shared_mem": _second_cache(),
        "max_num_regs": MAX_LANES * vector_registers(str(_C.host_info()["features"])),
        "warpSize": WARP_SIZE,
    }


def vector_registers(features: str) -> int:
    """How many vector registers a CPU has."""
    names = features.split(",")
    return 32 if "+avx512f" in names or "+neon" in names or "+sve" in names else 16


def usable_cpus() -> int:
    """How many of the machine's threads this process may run on."""
    return len(os.sched_getaffinity(0))


def free_cpus(load: str = "/proc/loadavg") -> int:
    """How many threads may compile at once: the CPUs of this process, fewer where others run.

    With as many running threads as CPUs it is half of the CPUs, with four times as many a fifth.
    So processes that compile at once share the machine.
    """
    cpus = usable_cpus()
    try:
        with open(load, encoding="utf-8") as file:
            running = int(file.read().split()[3].partition("/")[0]) - 1  # this thread is one
    except (OSError, ValueError, IndexError):
        return cpus
    return max(1, round(cpus * cpus / (cpus + max(0, running))))


def _second_cache() -> int:
    name = "SC_LEVEL2_CACHE_SIZE"
    size = os.sysconf(name) if name in os.sysconf_names else 0
    return size if size > 0 else 1 << 20
