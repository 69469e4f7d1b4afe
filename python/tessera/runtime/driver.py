# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of NVIDIA's driver for measuring: events, graphs, and memory for copies.

Launches go through the core (lib/Runtime/CUDA), which has the few functions that a launch
needs, and says what a GPU is (`_C.cuda_device_info`). These here are called between launches, where a microsecond does not count, and so
straight from Python: the library that the core has opened is opened once more. No framework
takes part, so that a kernel on arrays of CuPy or JAX is measured as one on torch's.
"""

from __future__ import annotations

import ctypes
import functools
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional

from tessera.errors import LaunchError

_OUT_OF_MEMORY = 2
_IMPLICIT_IN_CAPTURE = 906
_RELAXED_CAPTURE = 2

_Handle = ctypes.c_void_p
_Address = ctypes.c_uint64


class OutOfMemory(LaunchError):
    """The GPU has no memory left for a copy."""


@functools.lru_cache(maxsize=None)
def _library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise LaunchError(
            "E066", f"no CUDA driver is installed ({error})", "install the NVIDIA driver"
        ) from None


def _function(name: str) -> Callable[..., int]:
    library = _library()
    # Several functions are found under the name of their second version.
    found = getattr(library, name + "_v2", None) or getattr(library, name, None)
    if found is None:
        raise LaunchError("E066", f"the CUDA driver has no {name}", "install a newer driver")
    found.restype = ctypes.c_int
    return found  # type: ignore[no-any-return]


def _call(name: str, *arguments: Any) -> None:
    code = _function(name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        _function("cuGetErrorName")(code, ctypes.byref(text))
        kind = OutOfMemory if code == _OUT_OF_MEMORY else LaunchError
        raise kind("E066", f"{name} failed: {(text.value or b'?').decode()}")


@functools.lru_cache(maxsize=None)
def _context(device: int) -> Any:
    """The context that every framework of the process uses; kept for as long as it lives."""
    _call("cuInit", 0)
    ordinal, context = ctypes.c_int(), _Handle()
    _call("cuDeviceGet", ctypes.byref(ordinal), device)
    _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal)
    return context


@contextmanager
def on_device(device: int) -> Iterator[None]:
    """Has the driver's calls of this thread be about one GPU."""
    context, before = _context(device), _Handle()
    _call("cuCtxGetCurrent", ctypes.byref(before))
    _call("cuCtxSetCurrent", context)
    try:
        yield
    finally:
        if before.value:
            _call("cuCtxSetCurrent", before)


@contextmanager
def _apart_from_captures() -> Iterator[None]:
    """Lets this thread make and free memory while another one records a graph, which it would
    break otherwise."""
    mode = ctypes.c_int(_RELAXED_CAPTURE)
    _call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    try:
        yield
    finally:
        _call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))


def is_capturing(device: int, stream: int) -> bool:
    """True if launches on a stream are being recorded into a graph rather than run."""
    status = ctypes.c_int()
    with on_device(device):
        code = _function("cuStreamIsCapturing")(_Handle(stream), ctypes.byref(status))
    return code == _IMPLICIT_IN_CAPTURE or status.value != 0


class Event:
    """A place in a stream, at which the GPU notes the time."""

    def __init__(self, device: int) -> None:
        self._device = device
        self._handle = _Handle()
        with on_device(device):
            _call("cuEventCreate", ctypes.byref(self._handle), 0)

    def record(self, stream: int) -> None:
        """Puts the event on a stream. The device has to be the current one."""
        _call("cuEventRecord", self._handle, _Handle(stream))

    def milliseconds_since(self, start: "Event") -> float:
        """The time from another event to this one, once both have come to pass."""
        milliseconds = ctypes.c_float()
        _call("cuEventElapsedTime", ctypes.byref(milliseconds), start._handle, self._handle)
        return milliseconds.value

    def destroy(self) -> None:
        """Gives it back."""
        with on_device(self._device):
            _call("cuEventDestroy", self._handle)


class Buffer:
    """Memory of a GPU. Raises OutOfMemory if there is not enough."""

    def __init__(self, device: int, size: int) -> None:
        self.device, self.size = device, size
        address = _Address()
        with on_device(device), _apart_from_captures():
            _call("cuMemAlloc", ctypes.byref(address), ctypes.c_size_t(size))
        self.address = address.value

    def free(self) -> None:
        """Gives it back, once nothing uses it any more."""
        with on_device(self.device), _apart_from_captures():
            _call("cuMemFree", _Address(self.address))


def copy(device: int, stream: int, target: int, source: int, size: int) -> None:
    """Copies bytes on a stream, from and to memory of a GPU or of the host."""
    with on_device(device):
        _call(
            "cuMemcpyAsync",
            _Address(target),
            _Address(source),
            ctypes.c_size_t(size),
            _Handle(stream),
        )


def fill(device: int, stream: int, address: int, size: int, byte: int = 0) -> None:
    """Sets bytes on a stream."""
    with on_device(device):
        _call(
            "cuMemsetD8Async",
            _Address(address),
            ctypes.c_ubyte(byte),
            ctypes.c_size_t(size),
            _Handle(stream),
        )


class Stream:
    """A stream of our own, which waits for no other."""

    def __init__(self, device: int) -> None:
        self.device = device
        handle = _Handle()
        with on_device(device):
            _call("cuStreamCreate", ctypes.byref(handle), 1)
        self.handle = handle.value or 0

    def destroy(self) -> None:
        """Gives it back."""
        with on_device(self.device):
            _call("cuStreamDestroy", _Handle(self.handle))


class Graph:
    """The work that a function puts on a stream, recorded to run as a whole."""

    def __init__(self, device: int, stream: int, record: Callable[[], Any]) -> None:
        self._device, self._stream = device, stream
        self._graph, self._executable = _Handle(), _Handle()
        with on_device(device):
            _call("cuStreamBeginCapture", _Handle(stream), ctypes.c_int(_RELAXED_CAPTURE))
            error: Optional[BaseException] = None
            try:
                record()
            except BaseException as raised:
                error = raised
            try:
                _call("cuStreamEndCapture", _Handle(stream), ctypes.byref(self._graph))
            except LaunchError:
                if error is None:
                    raise
            if error is not None:
                raise error
            _call(
                "cuGraphInstantiateWithFlags",
                ctypes.byref(self._executable),
                self._graph,
                ctypes.c_ulonglong(0),
            )

    def launch(self) -> None:
        """Puts it on its stream."""
        with on_device(self._device):
            _call("cuGraphLaunch", self._executable, _Handle(self._stream))

    def destroy(self) -> None:
        """Gives it back."""
        with on_device(self._device):
            _call("cuGraphExecDestroy", self._executable)
            _call("cuGraphDestroy", self._graph)
