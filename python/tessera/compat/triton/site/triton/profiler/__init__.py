# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Triton's profiler."""

from tessera.compat.triton import refuse

refuse(
    __name__,
    "Proton is a profiler of its own; nsys, ncu and torch.profiler see the kernels by their names",
)
