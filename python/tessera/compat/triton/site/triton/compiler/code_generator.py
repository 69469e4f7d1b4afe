# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The class that walks over a kernel's source."""

from tessera.frontend.walker import FunctionWalker as CodeGenerator

__all__ = ["CodeGenerator"]
