# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of the language that Triton keeps in a module of their own."""

from triton.language.extra import cuda, libdevice

__all__ = ["cuda", "libdevice"]
