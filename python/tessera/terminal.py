# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kind of the standard error stream."""

from __future__ import annotations

import os
import sys


def is_terminal() -> bool:
    """True if the standard error stream is one."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


def columns() -> int:
    """How wide its lines are; 80 where it is none."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (AttributeError, OSError, ValueError):
        return 80
