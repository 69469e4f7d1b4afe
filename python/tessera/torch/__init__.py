# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in programs of torch: `tessera.torch.op` makes operators of functions that launch.

torch is loaded when something of this is first asked for, never by importing this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tessera.locks import load

if TYPE_CHECKING:
    from tessera.torch.operators import op

__all__ = ["op"]

_HOMES = {
    "op": "tessera.torch.operators",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(load(_HOMES[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*__all__, *globals()})
