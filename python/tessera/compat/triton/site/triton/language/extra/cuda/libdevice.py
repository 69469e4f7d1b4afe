# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tessera.language.extra.libdevice`."""

from typing import Any

import tessera.language.extra.libdevice as _ours
from tessera.language.extra.libdevice import *  # noqa: F401,F403


def __getattr__(name: str) -> Any:
    return getattr(_ours, name)
