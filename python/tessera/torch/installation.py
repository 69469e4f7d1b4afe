# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Making Tessera the `triton` that torch imports."""

from __future__ import annotations

import functools
import sys

import tessera.compat.triton
from tessera.torch.lateness import ask_again, forget_other, refuse_if_too_late, replace_uses
from tessera.torch.versions import check_version


@functools.cache
def install() -> None:
    """Makes it that in this process and in Inductor's workers.

    Raises what `activate` does.
    """
    import torch

    check_version(torch.__version__)
    refuse_if_too_late()
    others = forget_other()
    was_there = "triton" in sys.modules
    tessera.compat.triton.install()
    if not was_there:
        ask_again()
        replace_uses(others)
