# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Repeats decisions that torch made while there was no `triton`, or another one.

`torch.compile(model, backend="tessera")` alone loads most of Dynamo before it calls Tessera. The
few parts that have asked for `triton` by then can be given another answer. Once Inductor has
defined its functions for kernels without Tessera's `triton`, these cannot be changed any more.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any, Optional

from tessera.compat.triton import is_ours
from tessera.errors import SettingError

_COMPAT = "torch._inductor.runtime.triton_compat"
_DEFINING = ("torch._inductor.runtime.triton_helpers", "torch._inductor.runtime.triton_heuristics")
"""Modules in which kernels' functions are defined."""


def is_too_late() -> bool:
    """True if Inductor has defined its functions without `triton`."""
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


Modules = dict[str, ModuleType]


def forget_other() -> Modules:
    """Removes another `triton` from the loaded modules, and returns its modules, if only torch has
    loaded it, which does so to check for it. `import triton` then finds Tessera's.

    Other modules that have names of it may make kernels with it. Inductor does so, too, once it has
    defined its functions. In these cases, and if there are kernels, nothing changes.
    """
    loaded = sys.modules.get("triton")
    if loaded is None or is_ours(loaded):
        return {}
    modules = {name: module for name, module in sys.modules.items() if _is_in(name, "triton")}
    defined = any(name in sys.modules for name in _DEFINING)
    used = any(not _is_in(name, "torch") for name, _, _ in _uses(modules))
    if defined or used or _has_kernels(modules):
        return {}
    for name in modules:
        del sys.modules[name]
    return modules


def _has_kernels(modules: Modules) -> bool:
    """True if there are kernels, wherever they are kept, but for those of `triton` itself."""
    kind = getattr(modules.get("triton.runtime.jit"), "JITFunction", None)
    return kind is not None and any(
        type(kernel) is kind and not _is_in(getattr(kernel.fn, "__module__", ""), "triton")
        for kernel in gc.get_objects()
    )


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def _uses(modules: Modules) -> Iterator[tuple[str, str, Any]]:
    """The names in other modules that refer to modules, classes and functions of these modules: the
    module, the name and its value."""
    for where, module in list(sys.modules.items()):
        if where in modules or not isinstance(module, ModuleType):
            continue
        for name, value in list(vars(module).items()):
            # Not isinstance: deprecated objects of torch warn if their class is read.
            kind = type(value)
            if issubclass(kind, ModuleType):
                if modules.get(value.__name__) is value:
                    yield where, name, value
            elif issubclass(kind, (type, FunctionType)) and value.__module__ in modules:
                yield where, name, value


def replace_uses(modules: Modules) -> None:
    """Rebinds names in torch to Tessera's objects of the same name, if these exist."""
    for where, name, value in list(_uses(modules)):
        is_module = issubclass(type(value), ModuleType)
        try:
            module = importlib.import_module(value.__name__ if is_module else value.__module__)
        except ImportError:
            continue
        found = module if is_module else getattr(module, value.__name__, None)
        if found is not None:
            setattr(sys.modules[where], name, found)


def ask_again() -> None:
    """Clears the caches of the loaded parts of torch that check for `triton`."""
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
    if compat is not None and not is_ours(compat.triton):
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
