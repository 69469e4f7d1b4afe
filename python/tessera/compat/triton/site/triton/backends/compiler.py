# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Targets."""

from tessera.runtime.machine import GPUTarget

__all__ = ["GPUTarget"]
