# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launching, by Triton's names."""

from typing import Any

from triton.runtime._allocation import set_allocator
from triton.runtime._async_compile import AsyncCompileMode, FutureKernel
from triton.runtime.driver import driver
from triton.runtime.errors import InterpreterError, OutOfResources
from triton.runtime.jit import (
    JITFunction,
    KernelInterface,
    MockTensor,
    TensorWrapper,
    reinterpret,
)

_OF_TUNING = ("Autotuner", "Config", "Heuristics", "autotune", "heuristics")


def __getattr__(name: str) -> Any:
    if name in _OF_TUNING:
        from triton.runtime import autotuner

        return getattr(autotuner, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
