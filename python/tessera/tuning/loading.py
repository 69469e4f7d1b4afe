# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The modules that the choice of a configuration loads, and `import tessera` does not."""

from __future__ import annotations

from tessera.locks import load_all
from tessera.runtime.loading import load_launching

_TUNING = (
    "concurrent.futures.thread",
    "tessera.tuning.automatic",
    "tessera.tuning.candidates",
    "tessera.tuning.compare",
    "tessera.tuning.progress",
    "tessera.tuning.session",
    "tessera.tuning.store",
)


def load_tuning() -> None:
    """Loads what the choice of a configuration needs."""
    load_launching()
    load_all(_TUNING)
