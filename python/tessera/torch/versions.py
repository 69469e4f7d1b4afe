# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The versions of torch whose compiler is known to fit."""

from __future__ import annotations

import re

from tessera.errors import UnsupportedError

SUPPORTED = ((2, 11), (2, 13))
"""The first and the last version of torch, as (major, minor)."""


def check_version(version: str) -> None:
    """Raises UnsupportedError (E077) for a torch that this was not made for.

    TorchInductor has no stable interface, so another version is an error and no attempt.
    """
    numbers = re.match(r"(\d+)\.(\d+)", version)
    found = tuple(map(int, numbers.groups())) if numbers else ()
    first, last = SUPPORTED
    if first <= found <= last:
        return
    after = f"{last[0]}.{last[1] + 1}"
    raise UnsupportedError(
        "E077",
        f"this is torch {version}, and tessera.torch supports "
        f"{first[0]}.{first[1]} to {last[0]}.{last[1]}",
        f"pip install 'torch>={first[0]}.{first[1]},<{after}'",
    )
