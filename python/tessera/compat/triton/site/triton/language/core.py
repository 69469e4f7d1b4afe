# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What Triton keeps in this module, which is all of the language here."""

from typing import Any

import tessera.language
from tessera.language import *  # noqa: F401,F403
from tessera.language import builtin, constexpr, extern, extern_elementwise, tensor
from tessera.language.types import unwrap as _unwrap_if_constexpr

_constexpr_to_value = _unwrap_if_constexpr
CONSTEXPR_0 = constexpr(0)


def get_int_dtype(bitwidth: int, signed: bool) -> Any:
    """The integer type of so many bits."""
    return tessera.language.str_to_ty(f"{'int' if signed else 'uint'}{bitwidth}")


def __getattr__(name: str) -> Any:
    return getattr(tessera.language, name)
