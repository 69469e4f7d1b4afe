# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy arrays on a GPU for the duration of a launch.

Whatever memory lies behind an array is copied as it is, so that views keep their strides
and arrays that share memory go on sharing it.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import sys
from typing import Any

import numpy as np

from tessera.language.aggregate import field_values, fields_of, of_values
from tessera import _C
from tessera.tools.tensor_descriptor import TensorDescriptor


def has_gpu() -> bool:
    """Whether kernels can be run on a GPU here: it is torch that brings arrays there."""
    if not _C.cuda_is_available():
        return False
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


class Mirror:
    """Copies of arrays on the GPU, which stand in for them in a launch."""

    def __init__(self) -> None:
        self._bases: dict[int, tuple[np.ndarray, Any]] = {}

    def upload(self, value: Any) -> Any:
        """A tensor on the GPU for an array, all else as it is."""
        import torch

        if isinstance(value, TensorDescriptor):
            return dataclasses.replace(value, base=self.upload(value.base))
        if isinstance(value, tuple):
            items = map(self.upload, value)
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if isinstance(value, list):
            return list(map(self.upload, value))
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value)]
            return type(value)(**{name: self.upload(getattr(value, name)) for name in names})
        if fields_of(value) is not None:
            return of_values(type(value), list(map(self.upload, field_values(value))))
        if not isinstance(value, np.ndarray):
            return value
        dtype = getattr(torch, value.dtype.name)
        if value.size == 0:
            return torch.empty(0, dtype=dtype, device="cuda")
        base = value
        while isinstance(base.base, np.ndarray):
            base = base.base
        low, memory = _memory(base)
        if id(base) not in self._bases:
            self._bases[id(base)] = (base, torch.from_numpy(memory.copy()).cuda())
        copy = self._bases[id(base)][1]
        offset = value.ctypes.data - low
        size = (len(memory) - offset) // value.itemsize * value.itemsize
        return copy[offset : offset + size].view(dtype)

    def download(self) -> None:
        """Brings back what the GPU has made of the arrays."""
        for base, copy in self._bases.values():
            if base.flags.writeable:
                _memory(base)[1][:] = copy.cpu().numpy()


def launch(kernel: Any, grid: tuple[int, ...], arguments: tuple[Any, ...], options: Any) -> None:
    """`kernel[grid](*arguments, **options)` on the GPU; returns when it is done."""
    import torch

    mirror = Mirror()
    copies = [mirror.upload(argument) for argument in arguments]
    named = {name: mirror.upload(value) for name, value in options.items()}
    try:
        kernel[grid](*copies, target="cuda", **named)
        torch.cuda.synchronize()
    except Exception as error:
        _leave_if_broken(error)
        raise
    mirror.download()


def _memory(base: np.ndarray) -> tuple[int, np.ndarray]:
    """The address where an array's memory begins, and its bytes."""
    low = base.ctypes.data
    high = low + base.itemsize
    for extent, stride in zip(base.shape, base.strides):
        low += min(0, (extent - 1) * stride)
        high += max(0, (extent - 1) * stride)
    data = (ctypes.c_uint8 * (high - low)).from_address(low)
    return low, np.frombuffer(data, np.uint8)


def _leave_if_broken(error: Exception) -> None:
    """After a fault of a kernel no CUDA call of the process works any more: under
    pytest-xdist, the process ends, and a new one goes on with the next test."""
    import torch

    try:
        torch.cuda.synchronize()
    except Exception:
        if "PYTEST_XDIST_WORKER" in os.environ:
            print(f"the GPU is lost to this process: {error}", file=sys.stderr, flush=True)
            os._exit(70)
