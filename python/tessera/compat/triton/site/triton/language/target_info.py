# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a kernel is being compiled for."""

from triton.runtime import driver
from tessera import constexpr_function

__all__ = ["current_target", "cuda_capability_geq", "is_cuda", "is_hip"]


@constexpr_function
def current_target():
    """The GPUTarget of this machine."""
    return driver.active.get_current_target()


@constexpr_function
def is_cuda():
    """Whether it is an NVIDIA GPU."""
    return driver.active.get_current_target().backend == "cuda"


@constexpr_function
def cuda_capability_geq(major, minor=0):
    """Whether it is an NVIDIA GPU of at least that compute capability."""
    target = driver.active.get_current_target()
    return target.backend == "cuda" and target.arch >= major * 10 + minor


@constexpr_function
def is_hip():
    """Whether it is a GPU of AMD's: never."""
    return False
