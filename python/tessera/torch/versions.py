# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The versions of torch whose compiler is known to fit."""

from __future__ import annotations

from tessera.errors import UnsupportedError
from tessera.untried import release

SUPPORTED = ((2, 11), (2, 15))
"""The first and the last version of torch that were tested, as (major, minor)."""

TESTED = "torch {}.{} to {}.{}".format(*SUPPORTED[0], *SUPPORTED[1])

FIX = "pip install 'torch>={}.{},<{}.{}'".format(
    *SUPPORTED[0], SUPPORTED[1][0], SUPPORTED[1][1] + 1
)


def is_tested(version: str) -> bool:
    """True if a version of torch is one of `SUPPORTED`; False for a newer one.

    Raises UnsupportedError (E077) for an older one, and for a text that is no version.
    """
    found = release(version)
    first, last = SUPPORTED
    if found >= first:
        return found <= last
    raise UnsupportedError(
        "E077", f"this is torch {version}, and tessera.torch supports {TESTED}", FIX
    )
