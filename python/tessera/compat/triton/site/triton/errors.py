# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors that kernels and launches raise, by Triton's names."""

from tessera.errors import TesseraError as TritonError

__all__ = ["TritonError"]
