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

from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

try:
    from tessera import _C as _C

    if not _C.is_main_interpreter():
        raise ImportError("this is a subinterpreter")
except ImportError as error:
    from tessera.unbuilt import explain

    raise explain(error) from None

from tessera.errors import (
    ArgumentError,
    CompilationError,
    InternalError,
    KernelAssertionError,
    LaunchError,
    MemoryAccessError,
    MemoryAccessWarning,
    SettingError,
    TesseraError,
    ToolchainWarning,
    TuningError,
    TuningWarning,
)
from tessera.language.aggregate import aggregate
from tessera.language.callables import JITCallable, constexpr_function
from tessera.language.tensor import F, N, Operand, must_use_result
from tessera.locks import load
from tessera.runtime.interpreting import interpret
from tessera.runtime.jit import JITFunction, jit
from tessera.settings import settings

if TYPE_CHECKING:
    __version__: str
    """The version by PEP 440: of a wheel what it was built as, of a checkout what git says."""

    from tessera import (
        gpu as gpu,
        jax as jax,
        nn as nn,
        ops as ops,
        testing as testing,
        torch as torch,
        views as views,
    )
    from tessera.calls.function import function
    from tessera.calls.fusion import fuse
    from tessera.calls.pointwise import Pointwise, pointwise
    from tessera.calls.reductions import Reduction, reduction
    from tessera.language.static_types import constexpr
    from tessera.runtime.arrays import MockTensor, TensorWrapper, reinterpret
    from tessera.runtime.compiling import compile
    from tessera.runtime.estimates import estimate
    from tessera.runtime.kernel import CompiledKernel
    from tessera.tuning.autotuner import autotune
    from tessera.tuning.config import Config
    from tessera.tuning.heuristics import heuristics
    from tessera.tuning.search import tune
else:
    from tessera.language.types import constexpr

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
    "MemoryAccessWarning",
    "MockTensor",
    "Pointwise",
    "Reduction",
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
    "estimate",
    "function",
    "fuse",
    "heuristics",
    "host_info",
    "interpret",
    "jit",
    "must_use_result",
    "next_power_of_2",
    "pointwise",
    "reduction",
    "reinterpret",
    "settings",
    "tune",
]

# Loaded when first asked for: launching a kernel that is in the cache needs none of it.
_HOMES = {
    "CompiledKernel": "tessera.runtime.kernel",
    "Config": "tessera.tuning.config",
    "MockTensor": "tessera.runtime.arrays",
    "Pointwise": "tessera.calls.pointwise",
    "Reduction": "tessera.calls.reductions",
    "TensorWrapper": "tessera.runtime.arrays",
    "autotune": "tessera.tuning.autotuner",
    "compile": "tessera.runtime.compiling",
    "estimate": "tessera.runtime.estimates",
    "function": "tessera.calls.function",
    "fuse": "tessera.calls.fusion",
    "heuristics": "tessera.tuning.heuristics",
    "pointwise": "tessera.calls.pointwise",
    "reduction": "tessera.calls.reductions",
    "reinterpret": "tessera.runtime.arrays",
    "tune": "tessera.tuning.search",
}


_MODULES = ("gpu", "jax", "nn", "ops", "testing", "torch", "views")
"""Loaded as soon as they are asked for, so that `import tessera` does for them, too."""


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _HOMES:  # from now on without this function, which takes longer than a launch
            globals()[name] = getattr(load(_HOMES[name]), name)
            return globals()[name]
        if name in _MODULES:
            return load(f"tessera.{name}")
        if name == "__version__":
            globals()[name] = load("tessera.version").version()
            return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        # All public names, for completion, without names that are only imported here.
        names = [name for name, value in globals().items() if isinstance(value, ModuleType)]
        return sorted(
            {*__all__, *_MODULES, *names, *(name for name in globals() if name[:2] == "__")}
        )


class _Anywhere(JITCallable):
    """A function of kernels that plain Python code may call, too."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # A method, since torch.compile traces no static `__call__`.
        return self.fn(*args, **kwargs)


def _anywhere(fn: F) -> F:
    return cast(F, _Anywhere(cast(Any, fn)))


def host_info() -> dict[str, Any]:
    """This machine's CPU, as the compiler sees it: `cpu`, `features` (a string such as
    "+avx2,-avx512f"), `vector_bits`, `cpus`, `threads` and who provides them, and `llvm`, the
    version that the compiler has. `machine` is the row of the compiler's table of CPUs, and
    `measured` the CPU on which the row's figures were measured; "" if they are the vendor's.

    Example:
        import tessera

        info = tessera.host_info()
        assert info["vector_bits"] in (128, 256, 512) and info["cpus"] >= 1
        has_avx2 = "+avx2" in info["features"].split(",")
    """
    from tessera import _C

    info: dict[str, Any] = _C.host_info()
    return info


@_anywhere
def cdiv(x: N, y: Operand) -> N:
    """`x / y`, rounded up: how many tiles of `y` elements cover `x` elements.

    For host code, and for kernels, where it takes tensors, too. Both are integers, 0 or more
    and 1 or more.

    Example:
        import tessera

        n, BLOCK = 1000, 256
        grid = (tessera.cdiv(n, BLOCK),)
        assert grid == (4,) and tessera.cdiv(1024, BLOCK) == 4
    """
    return (x + y - 1) // y  # type: ignore[operator,return-value]


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not below the integer `n`; 1 for 0 and less.

    In kernels, of constants only.

    Example:
        import tessera

        assert tessera.next_power_of_2(100) == 128 and tessera.next_power_of_2(128) == 128
        assert tessera.next_power_of_2(0) == 1
    """
    return 1 << (int(n) - 1).bit_length() if n > 1 else 1
