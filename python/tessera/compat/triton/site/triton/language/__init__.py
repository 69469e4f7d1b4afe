# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tile language: all of `tessera.language`."""

from typing import Any

import tessera.language
from tessera.language import *  # noqa: F401,F403
from tessera.language import __all__ as __all__
from triton.language import core, extra, math, random, standard, target_info

tessera.language.types.owner = __name__


def __getattr__(name: str) -> Any:
    return getattr(tessera.language, name)
