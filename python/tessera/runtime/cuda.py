# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches on NVIDIA GPUs: on which one, on which stream.

A kernel runs on the GPU of its arrays, on the current stream of the framework that they belong to.
So it runs after the work that fills its inputs, and before the work that reads its outputs. This
module imports no framework: if a framework's array is passed, the framework is loaded already.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Protocol, Sequence, Union

from tessera import _C
from tessera.errors import ArgumentError, LaunchError, TesseraError, raise_core_error
from tessera.machine.devices import current_device
from tessera.runtime.arrays import (
    ANYWHERE,
    HOST,
    NOWHERE,
    Consumer,
    Pointer,
    is_exported,
    pointer_of,
)
from tessera.runtime.memory_ranges import arrays_in

if TYPE_CHECKING:
    from tessera.compiler.options import CompileOptions

StreamSource = Union[int, Callable[[int], int]]
"""A stream's handle, or a function that returns the current one of a device."""


class NamedPointer(Protocol):
    """An array argument and what messages call it."""

    @property
    def name(self) -> str: ...
    @property
    def pointer(self) -> Pointer: ...


class Place(NamedTuple):
    """The destination of a launch."""

    device: int
    by_arrays: bool
    """True if arrays decided it; if not, the next launch may go elsewhere."""
    has_host_arrays: bool = False
    """True if some of the arrays are in memory of the host that the GPU reaches."""

    def resolve(self, options: "CompileOptions") -> "CompileOptions":
        """`options` for a launch there."""
        resolved = options.resolved(self.device)
        if self.has_host_arrays and resolved.tensor_maps:
            # TMA is for memory of the GPU's own.
            return dataclasses.replace(resolved, tensor_maps=False)
        return resolved


def find_place(pointers: Sequence[NamedPointer], target: str) -> Optional[Place]:
    """The GPU for a launch with these arrays, or None for the CPU.

    `target` is "auto", "cpu" or "cuda". A GPU reaches pinned memory of the host, too. Raises
    ArgumentError (E054) where arrays lie on several devices or not where the target is.
    """
    on_gpu = next((item for item in pointers if item.pointer.device >= 0), None)
    on_host = [item for item in pointers if item.pointer.device == HOST]
    if on_gpu is None:
        if target != "cuda":
            return None
        device = current_device()
        for item in on_host:
            if not _C.cuda_reaches(device, item.pointer.address):
                raise ArgumentError(
                    "E054",
                    f"argument `{item.name}` is in the CPU's memory, and the target is 'cuda'",
                    "copy it to a GPU, pin it (with torch, it.pin_memory()), or drop `target`",
                )
        return Place(device, False, bool(on_host))
    device = on_gpu.pointer.device
    if target == "cpu":
        raise ArgumentError(
            "E054",
            f"argument `{on_gpu.name}` is on GPU {device}, and the target is 'cpu'",
            "copy it to the CPU, or drop `target`",
        )
    for item in pointers:
        where = item.pointer.device
        if where in (device, ANYWHERE, NOWHERE):
            continue
        if where == HOST and _C.cuda_reaches(device, item.pointer.address):
            continue
        spelled = "in the CPU's memory" if where == HOST else f"on GPU {where}"
        pinning = f", or pin it: {item.name}.pin_memory()" if where == HOST else ""
        raise ArgumentError(
            "E054",
            f"argument `{item.name}` is {spelled}, and `{on_gpu.name}` is on GPU {device}",
            f"copy one of them; with torch, {item.name}.to('cuda:{device}'){pinning}",
        )
    return Place(device, True, bool(on_host))


def find_stream(pointers: Sequence[NamedPointer], device: int, given: Any = None) -> StreamSource:
    """The stream of a launch: `given` or a framework's current one. If a tensor of torch is on a
    GPU, or in pinned memory while no array is on one, it is torch's. Otherwise it is the stream of
    another array, or the legacy default stream.

    If another array's stream differs, the launch's is made to wait for it.
    """
    found = [item.pointer for item in pointers]
    source = _choose_stream(found, given)
    streams = [pointer.stream for pointer in found if pointer.stream is not None]
    if streams:
        chosen = read_stream(source, device)
        for stream in dict.fromkeys(map(_without_alias, streams)):
            if stream != _without_alias(chosen):
                wait_for_stream(device, chosen, stream)
    return source


def _choose_stream(pointers: Sequence[Pointer], given: Any) -> StreamSource:
    if given is not None:
        return _handle(given)
    deciding = [pointer for pointer in pointers if pointer.device >= 0] or pointers
    if any(pointer.framework == "torch" for pointer in deciding):
        return _torch_stream()
    return next((pointer.stream for pointer in pointers if pointer.stream is not None), 0)


def consumer_of(values: Sequence[Any], given: Any) -> Consumer:
    """The stream of a launch with these arguments, by the rule of `find_stream`, for those among
    them that are exported to it. Looks at the other ones when the first is exported."""

    def find(device: int) -> int:
        pointers = []
        for array in arrays_in(values):
            if not is_exported(array):
                try:
                    pointer = pointer_of(array, "")
                except TesseraError:  # which is raised again, with the argument's name
                    continue
                if pointer is not None and pointer.device >= 0:
                    pointers.append(pointer)
        return read_stream(_choose_stream(pointers, given), device)

    return find


def read_stream(source: StreamSource, device: int) -> int:
    """The handle of a stream at this moment."""
    return source(device) if callable(source) else source


def synchronize(device: int, stream: int = 0) -> None:
    """Waits for all that was put on a stream."""
    try:
        _C.cuda_synchronize(device, stream)
    except _C.CoreError as error:
        raise_core_error(error)


def wait_for_stream(device: int, stream: int, other: int) -> None:
    """Makes later work of a stream wait for what is on another one now."""
    try:
        _C.cuda_wait_for_stream(device, stream, other)
    except _C.CoreError as error:
        raise_core_error(error)


def _torch_stream() -> StreamSource:
    torch = sys.modules["torch"]
    # The same as below without an object for the stream, a tenth of the time.
    raw: Optional[Callable[[int], int]] = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:
        _C.learn_torch_stream(raw)
        return raw
    return lambda device: int(torch.cuda.current_stream(device).cuda_stream)


def _without_alias(stream: int) -> int:
    """1 is another name of the legacy default stream."""
    return 0 if stream == 1 else stream


def _handle(stream: Any) -> int:
    """The handle in a stream of torch, CuPy, Numba or cuda.core, or a number."""
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr", "handle"):
        value = getattr(stream, name, None)
        value = getattr(value, "value", value)  # Numba's is a ctypes pointer
        if isinstance(value, int):
            return value
    raise LaunchError(
        "E053",
        f"stream is {stream!r}",
        "pass a stream of torch, CuPy or Numba, or the integer that stands for one",
    )
