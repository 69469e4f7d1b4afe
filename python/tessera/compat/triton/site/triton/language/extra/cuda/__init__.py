# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tessera.language.extra.cuda`."""

from typing import Any

import tessera.language.extra.cuda as _ours
from tessera.language.extra.cuda import *  # noqa: F401,F403
from triton.language.extra.cuda import libdevice


def __getattr__(name: str) -> Any:
    return getattr(_ours, name)
