# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tessera.language.standard`, and what Triton has in this module and Tessera elsewhere."""

from typing import Any

import tessera.language
import tessera.language.standard as _ours
from tessera.language.standard import *  # noqa: F401,F403


def __getattr__(name: str) -> Any:
    return getattr(_ours, name) if hasattr(_ours, name) else getattr(tessera.language, name)
