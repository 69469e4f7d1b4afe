# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuning, by Triton's names."""

from tessera.tuning import Autotuner, Config, Heuristics, autotune, heuristics
from triton.runtime.errors import OutOfResources, PTXASError
from triton.runtime.jit import KernelInterface

__all__ = [
    "Autotuner",
    "Config",
    "Heuristics",
    "KernelInterface",
    "OutOfResources",
    "PTXASError",
    "autotune",
    "heuristics",
]
