# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The front-end: the Python `ast` of a @jit function becomes tile IR.

It walks the source, evaluates constants, keeps scopes, turns Python's control flow into structured
regions, and reports mistakes at their place in the user's file. The core's TileBuilder decides
types, promotion and shapes.
"""

from __future__ import annotations

from typing import Any

from tessera.locks import load

_HOMES = {
    "build_module": "build",
    "BuiltModule": "build",
    "ValueSpec": "signature",
    "ConstSpec": "signature",
    "KnownSpec": "signature",
    "TupleSpec": "signature",
    "ArgSpec": "signature",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    # The walker is loaded when the first kernel is built, not when tessera is imported.
    if name in _HOMES:
        return getattr(load(f"tessera.frontend.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
