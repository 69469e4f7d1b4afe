# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of Triton 3.6, each of which is Tessera's; see `tessera.compat.triton`."""

import os
import sys
from typing import Any

try:
    import tessera
except ModuleNotFoundError:  # a process that was given this folder alone
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 5)))
    import tessera

__version__ = "3.6.0"
__tessera__ = True
"""Set in this package only, and not in Triton's."""

from tessera import cdiv, constexpr_function, jit, next_power_of_2
from triton.errors import TritonError
from triton.runtime import (
    AsyncCompileMode,
    FutureKernel,
    InterpreterError,
    JITFunction,
    KernelInterface,
    MockTensor,
    OutOfResources,
    TensorWrapper,
    reinterpret,
    set_allocator,
)
from triton.compiler import CompilationError, compile
from triton import compiler, knobs, language, runtime, tools

__all__ = [
    "AsyncCompileMode",
    "CompilationError",
    "Config",
    "FutureKernel",
    "InterpreterError",
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "TritonError",
    "aggregate",
    "autotune",
    "cdiv",
    "compile",
    "constexpr_function",
    "heuristics",
    "jit",
    "language",
    "must_use_result",
    "next_power_of_2",
    "reinterpret",
    "runtime",
    "set_allocator",
    "testing",
    "tools",
]

# Those that have something to load first.
_HOMES = {
    "Config": "tessera.tuning",
    "autotune": "tessera.tuning",
    "heuristics": "tessera.tuning",
    "aggregate": "tessera",
    "must_use_result": "tessera",
}


def __getattr__(name: str) -> Any:
    if name == "testing":
        import triton.testing

        return triton.testing
    if name == "_C":
        import triton._C.libtriton

        return triton._C
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
