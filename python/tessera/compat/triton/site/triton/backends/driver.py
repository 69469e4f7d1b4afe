# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Queries about the machine that a program launches on."""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional

from tessera.machine import devices
from tessera.machine.devices import GPUTarget

__all__ = ["DriverBase", "GPUDriver", "MachineDriver"]


class _Utils:
    """Sizes of a device."""

    def get_device_properties(self, device: Optional[int] = None) -> dict[str, Any]:
        """The resources of a device."""
        return devices.device_properties(device)


class MachineDriver:
    """The current GPU of this machine, or its CPU where there is none."""

    def __init__(self) -> None:
        self.utils = _Utils()

    @classmethod
    def is_active(cls) -> bool:
        """True if there is a GPU. A forked worker of TorchInductor's can compile for it but cannot
        launch: there, torch reports the GPU, but the driver does not start."""
        torch = sys.modules.get("torch")
        if torch is not None and torch.version.hip is None and torch.cuda.is_available():
            return True
        return devices.has_gpu()

    def get_current_target(self) -> GPUTarget:
        """The default target of a compilation."""
        return devices.current_target()

    def get_active_torch_device(self) -> Any:
        """The device to allocate arrays of kernels on."""
        import torch

        if devices.has_gpu():
            return torch.device("cuda", self.get_current_device())
        if not hasattr(torch.cpu, "set_stream"):
            # A CPU has one stream. Programs set it by the name of the device that this returns.
            torch.cpu.set_stream = lambda stream: None
        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        """torch's module for such devices."""
        import torch

        return torch.cuda if devices.has_gpu() else torch.cpu

    def get_current_device(self) -> int:
        """The number of the GPU that launches without arrays go to."""
        return devices.current_device()

    def set_current_device(self, device: int) -> None:
        """Makes another GPU the current one."""
        if devices.has_gpu():
            import torch

            torch.cuda.set_device(device)

    def get_device_capability(self, device: Optional[int] = None) -> tuple[int, int]:
        """The compute capability of a GPU; (0, 0) on a CPU."""
        target = devices.current_target()
        return divmod(int(target.arch), 10) if target.backend == "cuda" else (0, 0)

    def get_current_stream(self, device: Optional[int] = None) -> int:
        """The handle of torch's current stream; 0 on a CPU."""
        if not devices.has_gpu():
            return 0
        import torch

        return int(torch.cuda.current_stream(device).cuda_stream)

    def get_benchmarker(self) -> Callable[..., Any]:
        """The function that measures a launch."""
        from tessera.testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        """Memory as large as the caches that a measurement writes over."""
        import torch

        return torch.empty(1 << 26, dtype=torch.int32, device=self.get_active_torch_device())

    def clear_cache(self, cache: Any) -> None:
        """Writes over the caches."""
        cache.zero_()


DriverBase = GPUDriver = MachineDriver
