# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How deep kernels may nest."""

from __future__ import annotations

import sys
from typing import Any

from tessera.locks import ForkSafeLock

# An inlined call needs some 15 frames of Python's own stack.
_RECURSION_LIMIT = 20000


class _DeepRecursion:
    """Raises Python's recursion limit, which is the process's, while any thread builds."""

    def __init__(self) -> None:
        self.lock = ForkSafeLock(self._begin_child)
        self.users = 0
        self.limit = 0

    def __enter__(self) -> None:
        with self.lock:
            if self.users == 0:
                self.limit = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self.limit, _RECURSION_LIMIT))
            self.users += 1

    def __exit__(self, *exception: Any) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                sys.setrecursionlimit(self.limit)

    def _begin_child(self) -> None:
        # Threads that were building are not there any more.
        if self.users:
            self.users = 0
            sys.setrecursionlimit(self.limit)


DEEP_RECURSION = _DeepRecursion()
