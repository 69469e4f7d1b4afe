# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The targets that kernels can be compiled for here."""

from __future__ import annotations

from typing import Any, NamedTuple

from triton.backends.compiler import BaseBackend, TesseraBackend
from triton.backends.driver import MachineDriver

__all__ = ["Backend", "BaseBackend", "backends"]


class Backend(NamedTuple):
    """One kind of machine."""

    compiler: Any
    driver: Any


class _CpuDriver(MachineDriver):
    """The driver of a machine without a GPU."""

    @classmethod
    def is_active(cls) -> bool:
        return not super().is_active()


backends = {
    "nvidia": Backend(TesseraBackend, MachineDriver),
    "cpu": Backend(TesseraBackend, _CpuDriver),
}
