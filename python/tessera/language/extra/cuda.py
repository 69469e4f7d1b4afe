# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The older place of `libdevice`: it is there on every target."""

from tessera.language.extra import libdevice

__all__ = ["libdevice"]
