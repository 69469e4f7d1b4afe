# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules that a kernel's first launch loads, and `import tessera` does not.

Imports within functions belong here only. Such an import takes a lock of Python's that forks do not
wait for. A child that is forked meanwhile deadlocks (test_forks.py finds such imports).
"""

from __future__ import annotations

from tessera.locks import load_all

_LAUNCHING = (
    *("hashlib", "inspect", "json", "opcode", "zlib"),
    "tessera.compiler.cache",
    "tessera.compiler.compile",
    "tessera.compiler.dependencies",
    "tessera.compiler.options",
    "tessera.compiler.toolchain",
    "tessera.frontend.reads",
    "tessera.frontend.source",
    "tessera.runtime.compiling",
    "tessera.runtime.explaining",
    "tessera.runtime.frames",
    "tessera.runtime.kernel",
    "tessera.runtime.slow_launches",
)


def load_launching() -> None:
    """Loads what a kernel's first launch needs, if it is in the cache."""
    load_all(_LAUNCHING)
