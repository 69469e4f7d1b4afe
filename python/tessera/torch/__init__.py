# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in programs of torch, and programs of torch as kernels.

`tessera.torch.op` makes operators of functions that launch (docs/HowTo/CallFromFrameworks.md).
torch.compile, with TorchInductor's kernels compiled by Tessera (docs/HowTo/TorchCompile.md):

    model = tessera.torch.optimize(model)               # in one line, with settings chosen
    model = torch.compile(model, backend="tessera")     # on CPUs and on NVIDIA GPUs
    tessera.torch.enable()                # for programs that call torch.compile themselves

torch is loaded when something of this is first asked for, never by importing this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tessera.locks import load
from tessera.torch.registration import register

if TYPE_CHECKING:
    from tessera.torch.activation import activate, enable, is_enabled
    from tessera.torch.backend import compile_graph
    from tessera.torch.operators import op
    from tessera.torch.optimizing import optimize
    from tessera.torch.versions import SUPPORTED

__all__ = ["SUPPORTED", "activate", "compile_graph", "enable", "is_enabled", "op", "optimize"]

_HOMES = {
    "SUPPORTED": "tessera.torch.versions",
    "activate": "tessera.torch.activation",
    "compile_graph": "tessera.torch.backend",
    "enable": "tessera.torch.activation",
    "is_enabled": "tessera.torch.activation",
    "op": "tessera.torch.operators",
    "optimize": "tessera.torch.optimizing",
}

register()

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(load(_HOMES[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*__all__, *globals()})
