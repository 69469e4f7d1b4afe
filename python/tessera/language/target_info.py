# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The target of a kernel, as constants of the kernel.

`if tl.target_info.cuda_capability_geq(9): ...` is decided when the kernel is compiled. In a kernel,
it is the target of the compilation, not the machine's GPU; in the interpreter it is the CPU.
Outside of kernels it is the first GPU, or the CPU if there is none.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Union

from tessera.errors import TesseraError
from tessera.language.callables import constexpr_function
from tessera.language.tensor import active
from tessera.machine.devices import WARP_SIZE, architecture
from tessera.machine.gpus import gpu_machines

__all__ = [
    "Target",
    "cuda_capability_geq",
    "current_target",
    "is_cuda",
    "is_hip",
    "is_hip_cdna3",
    "is_hip_cdna4",
]


class Target(NamedTuple):
    """The target of code.

    Example:
        import tessera.language as tl

        target = tl.target_info.Target(backend="cuda", arch=90, warp_size=32)
        assert target != tl.target_info.Target("cpu", target.arch, target.warp_size)
    """

    backend: str
    """"cuda" or "cpu"."""
    arch: Union[int, str]
    """The compute capability, as 90 for 9.0; the name of a CPU."""
    warp_size: int


@constexpr_function
def current_target() -> Optional[Target]:
    """The target of this compilation, or of this machine. Source: Triton language 3.6/3.9.

    Example:
        target: tl.constexpr = tl.target_info.current_target()
        assert (target.backend == "cuda") == tl.target_info.is_cuda()
    """
    session = active.session
    if session is None:
        return _of_machine()
    options = session.options
    if getattr(options, "target", "cpu") != "cuda":
        return Target("cpu", getattr(options, "cpu", "host"), WARP_SIZE)
    return Target("cuda", capability(options.arch), WARP_SIZE)


def capability(arch: str) -> int:
    """The compute capability of an architecture: 90 for "sm_90a"; 0 if there is none."""
    machine = gpu_machines().get(arch)
    return machine.capability if machine else 0


def _of_machine() -> Target:
    try:
        return Target("cuda", capability(architecture(0)), WARP_SIZE)
    except TesseraError:
        return Target("cpu", "host", WARP_SIZE)


@constexpr_function
def is_cuda() -> bool:
    """True if the target is an NVIDIA GPU. Source: Triton language 3.6/3.9.

    Example:
        BLOCK: tl.constexpr = 1024 if tl.target_info.is_cuda() else 256
        assert tl.arange(0, BLOCK).shape == (BLOCK,)
        assert BLOCK == 256  # on a CPU
    """
    target = current_target()
    return target is not None and target.backend == "cuda"


@constexpr_function
def cuda_capability_geq(major: int, minor: int = 0) -> bool:
    """True if the target is an NVIDIA GPU of this compute capability or a later one.

    Source: Triton language 3.6/3.9.

    Example:
        num_stages: tl.constexpr = 4 if tl.target_info.cuda_capability_geq(9, 0) else 2
        assert num_stages == 2 or tl.target_info.is_cuda()
    """
    target = current_target()
    if target is None or target.backend != "cuda" or not isinstance(target.arch, int):
        return False
    return target.arch >= 10 * major + minor


@constexpr_function
def is_hip() -> bool:
    """False: there is no code for AMD's GPUs. Source: Triton language 3.6/3.9.

    Example:
        BLOCK: tl.constexpr = 64 if tl.target_info.is_hip() else 32
        assert BLOCK == 32
    """
    return False


@constexpr_function
def is_hip_cdna3() -> bool:
    """False: there is no code for AMD's GPUs. Source: Triton language 3.6/3.9.

    Example:
        K: tl.constexpr = 16 if tl.target_info.is_hip_cdna3() else 32
        assert K == 32
    """
    return False


@constexpr_function
def is_hip_cdna4() -> bool:
    """False: there is no code for AMD's GPUs. Source: Triton language 3.6/3.9.

    Example:
        K: tl.constexpr = 64 if tl.target_info.is_hip_cdna4() else 32
        assert K == 32
    """
    return False
