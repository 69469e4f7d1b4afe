# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What Triton keeps apart from the rest."""

from triton.language.extra import cuda, libdevice

__all__ = ["cuda", "libdevice"]
