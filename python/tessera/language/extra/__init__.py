# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of the Triton language in modules of their own: `libdevice`, also as
`extra.cuda.libdevice`.

Both are imported when they are asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tessera.language.extra import cuda, libdevice

__all__ = ["cuda", "libdevice"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in __all__:
            return importlib.import_module(f"tessera.language.extra.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
