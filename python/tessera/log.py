# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Log messages for Python's `logging`: the logger "tessera", at the level INFO.

TESSERA_LOG=info prints it to the standard error stream. A program that has set up `logging` gets it
there, too. This module does not load `logging`: if the program has not loaded it, there is no
logger.
"""

from __future__ import annotations

import sys
from typing import Any

from tessera.settings import settings

__all__ = ["info"]

_printed: list[Any] = []
"""The handler that prints, once there is one."""


def info(message: str, *parts: Any) -> None:
    """Logs `message % parts`."""
    is_printed = settings.log == "info"
    if not is_printed and not _printed and "logging" not in sys.modules:
        return
    import logging

    logger = logging.getLogger("tessera")
    if is_printed and not _printed:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("tessera: %(message)s"))
        handler.addFilter(lambda _: settings.log == "info")
        logger.addHandler(handler)
        if not logger.isEnabledFor(logging.INFO):
            logger.setLevel(logging.INFO)
        _printed.append(handler)
    logger.info(message, *parts)
