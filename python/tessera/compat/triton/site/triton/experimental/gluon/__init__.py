# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Triton's second language."""

from tessera.compat.triton import refuse

refuse(
    __name__,
    "gluon lays out one GPU's registers, barriers and memories by hand, and here the compiler "
    "does that: write the kernel in triton.language",
)
