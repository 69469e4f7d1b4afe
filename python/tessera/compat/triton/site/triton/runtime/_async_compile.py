# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling beside the program."""

from tessera.runtime.async_compile import AsyncCompileMode, FutureKernel

__all__ = ["AsyncCompileMode", "FutureKernel"]
