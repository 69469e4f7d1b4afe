# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels, by Triton's names."""

from __future__ import annotations

from typing import Any

from tessera import MockTensor, TensorWrapper, constexpr_function, jit, reinterpret
from tessera.frontend.signature import ConstexprFunction, JITCallable
from tessera.frontend.signature import Param as KernelParam
from tessera.runtime.jit import JITFunction, KernelInterface
from triton._utils import canonicalize_dtype, type_canonicalisation_dict
from triton.runtime.driver import driver

__all__ = [
    "ConstexprFunction",
    "JITCallable",
    "JITFunction",
    "KernelInterface",
    "KernelParam",
    "MockTensor",
    "TensorWrapper",
    "constexpr_function",
    "jit",
    "mangle_type",
    "reinterpret",
    "type_canonicalisation_dict",
]


def mangle_type(arg: Any, specialize: bool = False) -> str:
    """How signatures call the type that an argument has in a kernel: "*fp32", "i32"."""
    from triton.compiler.compiler import type_of_argument

    return type_of_argument(arg, specialize)
