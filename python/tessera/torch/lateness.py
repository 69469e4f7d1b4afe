# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What torch decided while there was no `triton`, decided anew.

`torch.compile(model, backend="tessera")` alone loads most of Dynamo before Tessera hears of it.
Those parts that have asked for `triton` by then are few, and take another answer; once Inductor
has defined its own functions for kernels without one, they stay without.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Optional

from tessera.errors import SettingError

_COMPAT = "torch._inductor.runtime.triton_compat"
_DEFINING = ("torch._inductor.runtime.triton_helpers", "torch._inductor.runtime.triton_heuristics")
"""Modules in which kernels' functions are defined."""


def is_too_late() -> bool:
    """Whether Inductor has defined its functions without `triton`."""
    compat = sys.modules.get(_COMPAT)
    defined = any(name in sys.modules for name in _DEFINING)
    return compat is not None and not compat.HAS_TRITON and defined


def refuse_if_too_late() -> None:
    """Raises SettingError (E075) where Inductor has been used without `triton`."""
    if is_too_late():
        raise SettingError(
            "E075",
            "TorchInductor was used in this process while there was no `triton`",
            "call tessera.torch.activate() before the first torch.compile",
        )


def ask_again() -> None:
    """Has the parts of torch that are loaded ask once more whether there is a `triton`."""
    for name in ("torch.utils._triton", "torch._inductor.utils"):
        for answer in vars(sys.modules.get(name, object)).values():
            clear = getattr(answer, "cache_clear", None)
            if clear is not None:
                clear()
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None:
        import triton

        setattr(dynamo, "triton", triton)
        dynamo.common_constant_types.add(triton.language.dtype)
    hints = sys.modules.get("torch._inductor.runtime.hints")
    if hints is not None:
        # Reloaded it would have its enums twice.
        name = "AttrsDescriptorWrapper"
        setattr(hints, name, getattr(_second(hints), name))
    compat = sys.modules.get(_COMPAT)
    if compat is not None and not compat.HAS_TRITON:
        _reload(compat)
    workers = sys.modules.get("torch._inductor.async_compile")
    if workers is not None:
        workers.shutdown_compile_workers()  # those to come have another path


def _second(module: ModuleType) -> ModuleType:
    """Another module of the same file."""
    origin: Optional[str] = module.__spec__.origin if module.__spec__ is not None else None
    spec = importlib.util.spec_from_file_location(module.__name__, origin)
    assert spec is not None and spec.loader is not None
    second = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(second)
    return second


def _reload(compat: ModuleType) -> None:
    """Reloads a module, and has others that took names of it take the new ones."""
    before = dict(vars(compat))
    importlib.reload(compat)
    for module in list(sys.modules.values()):
        if module is compat or not getattr(module, "__name__", "").startswith("torch._inductor."):
            continue
        for name, value in list(vars(module).items()):
            if name in compat.__all__ and value is before.get(name):
                setattr(module, name, getattr(compat, name))
