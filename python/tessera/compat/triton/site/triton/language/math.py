# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tessera.language.math`."""

from typing import Any

import tessera.language.math as _ours
from tessera.language.math import *  # noqa: F401,F403


def __getattr__(name: str) -> Any:
    return getattr(_ours, name)
