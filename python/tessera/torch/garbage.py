# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python's garbage while a model is compiled.

torch makes objects by the million then, nearly all of which live until the model is compiled. To
look through them for garbage again and again was a tenth of the time.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_THRESHOLDS = (50_000, 20, 20)
"""As gc.set_threshold has them. The most memory that a process had was 5 % more with these."""


@contextlib.contextmanager
def collected_rarely() -> Iterator[None]:
    """Raises the thresholds of Python's garbage collection, unless it is off or they are higher."""
    before = gc.get_threshold()
    if before[0] != 0:
        gc.set_threshold(*map(max, before, _THRESHOLDS))
    try:
        yield
    finally:
        gc.set_threshold(*before)
