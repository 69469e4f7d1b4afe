# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A warning for a kernel whose launches take the whole path again and again.

The core counts launches that it cannot learn (python/src/Dispatcher.cpp). It names the argument
whose class it does not know; a constant that may change in place is named by the kernel.
"""

from __future__ import annotations

from typing import Any, Optional

from tessera import _C
from tessera.errors import SlowLaunchWarning, warn_of_machine
from tessera.runtime.arrays import is_fake
from tessera.wording import with_article


def _warn(slow: Any, name: Optional[str], value: Any, count: int) -> None:
    kernel = getattr(slow, "__self__", None)
    if name is None:
        name = getattr(kernel, "_changing", "")
        why = "is a constant that may change in place"
        fix = "pass a number, a string, a tuple of these, or a frozen dataclass"
    else:
        why = f"is {with_article(type(value).__name__)}"
        fix = "the page `The life of a launch` lists the arguments that launch fast"
    if not name or is_fake(value):  # accesses are checked, or nothing is launched
        return
    warn_of_machine(
        f"tessera: {count} launches of kernel `{getattr(kernel, '__name__', '?')}` took the whole "
        f"path, some 100 us each, since argument `{name}` {why}; {fix}",
        SlowLaunchWarning,
    )


_C.learn_slow_warning(_warn)
