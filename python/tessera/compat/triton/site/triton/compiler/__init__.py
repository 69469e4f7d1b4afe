# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling, by Triton's names."""

from triton.compiler import compiler, errors
from triton.compiler.compiler import (
    ASTSource,
    CompiledKernel,
    IRSource,
    LazyDict,
    compile,
    make_backend,
)
from triton.compiler.errors import CompilationError

__all__ = [
    "ASTSource",
    "CompilationError",
    "CompiledKernel",
    "IRSource",
    "LazyDict",
    "compile",
    "make_backend",
]
