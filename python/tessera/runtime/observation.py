# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel's compilations, for hooks and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

from tessera.frontend.signature import ConstSpec, ValueSpec, spell
from tessera.machine.devices import current_target
from tessera.runtime.hooks import FunctionInfo
from tessera.runtime.preload import specialization_data
from tessera.runtime.specialize import Bound
from tessera.settings import note_change

if TYPE_CHECKING:
    from tessera.compiler.options import CompileOptions
    from tessera.runtime.jit import JITFunction


def describe_compilation(
    fn: JITFunction, bound: Bound, options: "CompileOptions", key: Any, warmup: bool
) -> dict[str, Any]:
    """The argument of compilation hooks."""
    named = dict(zip(fn.arg_names, bound.specs))
    signature = {name: spell(spec) for name, spec in named.items()}
    constants = {
        (place,): spec.value
        for place, spec in enumerate(bound.specs)
        if isinstance(spec, ConstSpec)
    }
    attributes = {
        (place,): [["tt.divisibility", spec.divisibility]]
        for place, spec in enumerate(bound.specs)
        if isinstance(spec, ValueSpec) and spec.divisibility
    }
    of_options = {
        name: getattr(options, name)
        for name in ("num_warps", "num_ctas", "num_stages", "enable_fp_fusion")
    }
    types = ", ".join(f"{name}: {type}" for name, type in signature.items())
    told = ", ".join(f"{name}={value}" for name, value in of_options.items())
    text = repr(key)
    readable = {
        "signature": {name: str(type) for name, type in signature.items()},
        "constants": {fn.arg_names[place]: repr(value) for (place,), value in constants.items()},
        "key": text,
    }
    return {
        "key": text,
        "repr": f"{fn.__qualname__}[{told}]({types})",
        "fn": FunctionInfo(fn.__module__, fn.__qualname__, fn),
        "compile": {
            "key": text,
            "signature": signature,
            "device": 0,
            "constants": constants,
            **of_options,
            "extern_libs": options.extern_libs,
            "launch_cooperative_grid": options.launch_cooperative_grid,
            "configs": [attributes],
            "specialization_data": specialization_data(fn, bound, options, readable),
            "is_warmup": warmup,
        },
        "is_manual_warmup": warmup,
        "already_compiled": False,
    }


class DeviceCaches:
    """The kernels of a function; they are the same for all devices of a kind."""

    def __init__(self, fn: JITFunction) -> None:
        self._fn = fn

    def __getitem__(self, device: Any) -> tuple[Any, ...]:
        return CompiledKernels(self._fn._kernels), {}, current_target(), None, None

    def clear(self) -> None:
        """Forgets all of them."""
        CompiledKernels(self._fn._kernels).clear()


class CompiledKernels(Mapping[str, Any]):
    """Compiled kernels by the text of their keys."""

    def __init__(self, kernels: dict[Any, Any]) -> None:
        self._kernels = kernels

    def __getitem__(self, text: str) -> Any:
        for key, found in self._kernels.items():
            if repr(key) == text:
                return found.kernel
        raise KeyError(text)

    def __iter__(self) -> Any:
        return iter([repr(key) for key in self._kernels])

    def __len__(self) -> int:
        return len(self._kernels)

    def values(self) -> Any:
        """The kernels."""
        return [found.kernel for found in self._kernels.values()]

    def clear(self) -> None:
        """Forgets all of them, so that they are compiled again or come from the disk."""
        self._kernels.clear()
        note_change()
