# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`driver.active`: which machine there is."""

from __future__ import annotations

from typing import Any, Optional

from triton.backends.driver import MachineDriver

__all__ = ["driver"]


class DriverConfig:
    """The driver in use: this machine's, unless somebody sets another."""

    def __init__(self) -> None:
        self._default: Optional[MachineDriver] = None
        self._active: Any = None

    @property
    def default(self) -> MachineDriver:
        """The driver of this machine."""
        if self._default is None:
            self._default = MachineDriver()
        return self._default

    @property
    def active(self) -> Any:
        """The driver that is asked."""
        return self._active if self._active is not None else self.default

    def set_active(self, driver: Any) -> None:
        """Sets another driver."""
        self._active = driver

    def reset_active(self) -> None:
        """Sets this machine's driver again."""
        self._active = None


driver = DriverConfig()
