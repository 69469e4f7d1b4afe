# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of Triton's module: here, all of the language."""

import functools
import inspect
from typing import Any

import tessera.language
from tessera.language import *  # noqa: F401,F403
from tessera.language import builtin, constexpr, extern, extern_elementwise, tensor
from tessera.language.types import unwrap as _unwrap_if_constexpr

_constexpr_to_value = _unwrap_if_constexpr
CONSTEXPR_0 = constexpr(0)


@functools.wraps(tessera.language.view)
def view(*args: Any, **kwargs: Any) -> Any:
    return tessera.language.view(*args, **kwargs)


# Compilers that write kernels look here for the name of the argument which every function of the
# language may be given, and which none needs.
_declared = inspect.signature(view)
_hidden = inspect.Parameter("_semantic", inspect.Parameter.KEYWORD_ONLY, default=None)
view.__signature__ = _declared.replace(parameters=[*_declared.parameters.values(), _hidden])


def get_int_dtype(bitwidth: int, signed: bool) -> Any:
    """The integer type of so many bits."""
    return tessera.language.str_to_ty(f"{'int' if signed else 'uint'}{bitwidth}")


setattr(get_int_dtype, "__tessera_constexpr_function__", True)  # kernels call it on constants


def __getattr__(name: str) -> Any:
    return getattr(tessera.language, name)
