# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the Triton language keeps apart from the rest: `libdevice`, also as `extra.cuda.libdevice`."""

from tessera.language.extra import cuda, libdevice

__all__ = ["cuda", "libdevice"]
