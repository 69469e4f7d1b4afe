# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tessera: kernels written in Python on tiles, compiled to native code.

import numpy, tessera
import tessera.language as tl

@tessera.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)

add[(tessera.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tessera.errors import (
    ArgumentError,
    CompilationError,
    InternalError,
    KernelAssertionError,
    LaunchError,
    MemoryAccessError,
    SettingError,
    TesseraError,
    ToolchainWarning,
    TuningError,
    TuningWarning,
)
from tessera.frontend.signature import JITCallable, constexpr_function
from tessera.language.aggregate import aggregate
from tessera.language.tensor import must_use_result
from tessera.language.types import constexpr
from tessera.locks import load
from tessera.runtime.jit import JITFunction, interpret, jit
from tessera.settings import settings

if TYPE_CHECKING:
    from tessera.tuning.autotuner import autotune as autotune
    from tessera.tuning.config import Config as Config
    from tessera.tuning.heuristics import heuristics as heuristics
    from tessera.tuning.search import tune as tune

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "CompilationError",
    "CompiledKernel",
    "Config",
    "InternalError",
    "JITFunction",
    "KernelAssertionError",
    "LaunchError",
    "MemoryAccessError",
    "MockTensor",
    "SettingError",
    "TensorWrapper",
    "TesseraError",
    "ToolchainWarning",
    "TuningError",
    "TuningWarning",
    "aggregate",
    "autotune",
    "cdiv",
    "compile",
    "constexpr",
    "constexpr_function",
    "heuristics",
    "host_info",
    "interpret",
    "jit",
    "must_use_result",
    "next_power_of_2",
    "reinterpret",
    "settings",
    "tune",
]

# Loaded when first asked for: launching a kernel that is in the cache needs none of it.
_HOMES = {
    "CompiledKernel": "tessera.compiler.artifacts",
    "Config": "tessera.tuning.config",
    "MockTensor": "tessera.runtime.arrays",
    "TensorWrapper": "tessera.runtime.arrays",
    "autotune": "tessera.tuning.autotuner",
    "compile": "tessera.compiler.compile",
    "heuristics": "tessera.tuning.heuristics",
    "reinterpret": "tessera.runtime.arrays",
    "tune": "tessera.tuning.search",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(load(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Anywhere(JITCallable):
    """A function of kernels that plain Python code may call, too."""

    def __init__(self, fn: Any) -> None:
        super().__init__(fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)


def host_info() -> dict[str, Any]:
    """What this machine's CPU is to the compiler: `cpu`, `features` (a string such as
    "+avx2,-avx512f"), `vector_bits`, `cpus`, `threads` and who provides them."""
    from tessera import _C

    info: dict[str, Any] = _C.host_info()
    return info


@_Anywhere
def cdiv(x: Any, y: Any) -> Any:
    """`x / y`, rounded up: how many tiles of `y` cover `x` elements."""
    return (x + y - 1) // y


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not below `n`. In kernels, of constants only."""
    return 1 << (int(n) - 1).bit_length() if n > 1 else 1
