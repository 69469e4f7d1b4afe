# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes in kernels, by Triton's names."""

from tessera.errors import (
    CompilationError,
    CompileTimeAssertionFailure,
    UnsupportedLanguageConstruct,
)

__all__ = ["CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct"]
