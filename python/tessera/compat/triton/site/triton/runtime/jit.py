# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels, by Triton's names."""

from __future__ import annotations

from typing import Any

from tessera import MockTensor, TensorWrapper, constexpr_function, jit, reinterpret
from tessera.language.callables import ConstexprFunction, JITCallable, Param as KernelParam
from tessera.runtime.interface import KernelInterface
from tessera.runtime.jit import JITFunction
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
    "native_specialize_impl",
    "reinterpret",
    "type_canonicalisation_dict",
]


def native_specialize_impl(
    backend: Any, arg: Any, is_const: bool, specialize_value: bool, align: bool
) -> tuple[str, Any]:
    """The type of an argument, and its specialisation: "D" if 16 divides an integer or an address,
    a constant's value, or None."""
    from triton.compiler.compiler import type_of_argument

    name = type_of_argument(arg, specialize_value)
    if name == "constexpr":
        return name, arg
    number = arg.data_ptr() if name.startswith("*") and hasattr(arg, "data_ptr") else arg
    if isinstance(number, bool) or not isinstance(number, int):
        return name, None
    return name, "D" if align and number % 16 == 0 else None


def mangle_type(arg: Any, specialize: bool = False) -> str:
    """How signatures call the type that an argument has in a kernel: "*fp32", "i32"."""
    from triton.compiler.compiler import type_of_argument

    return type_of_argument(arg, specialize)
