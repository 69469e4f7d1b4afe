# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the host spends on kernels for the GPU: compiling them cold, launching them warm."""

from __future__ import annotations

import ctypes
import functools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import gpu
import torch

import tessera
from tessera.settings import settings

REPEATS = 7


def workload(name: str) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """A kernel of gpu_kernels.py, its arguments and options."""
    if name == "add":
        x, y, out = (torch.randn(4096, device="cuda") for _ in range(3))
        return "add", (x, y, out, 4096), {"BLOCK": 1024, "num_warps": 4}
    n = 4096
    x = torch.randn(4, n, device="cuda", dtype=torch.bfloat16)
    out, w = torch.empty_like(x), torch.randn(n, device="cuda", dtype=torch.bfloat16)
    if name == "softmax 4096":
        return "softmax", (x, out, n), gpu.row_config(n)
    return "rms_norm", (x, w, out, n, 1e-6), gpu.row_config(n)


def compile_times(
    names: Sequence[str] = ("add", "softmax 4096", "rms norm 4096"),
    workload: Callable[[str], tuple[str, tuple[Any, ...], dict[str, Any]]] = workload,
    load: Callable[[Any], dict[str, Any]] = gpu.load_kernels,
) -> dict[str, Any]:
    """Milliseconds from the first launch to machine code, nothing cached, medians.

    Tessera's are also given without the part of ptxas. `load` makes new kernels of a
    compiler, `workload` says which of them to build for which arguments.
    """
    result: dict[str, Any] = {}
    for name in names:
        kernel, arguments, options = workload(name)
        mine, without, theirs = [], [], []
        for _ in range(REPEATS):
            with settings.override(cache="off"):
                fresh = load(tessera)[kernel]
                start = time.perf_counter()
                compiled = fresh.warmup(*arguments, grid=(1,), **options)
                mine.append((time.perf_counter() - start) * 1e3)
            stages = dict(compiled.metadata["stage_ms"])
            without.append(mine[-1] - stages.get("cubin", 0.0))
            if gpu.triton is not None:
                with tempfile.TemporaryDirectory() as folder:
                    os.environ["TRITON_CACHE_DIR"] = folder
                    fresh = load(gpu.triton)[kernel]
                    start = time.perf_counter()
                    fresh.warmup(*arguments, grid=(1,), **options)
                    theirs.append((time.perf_counter() - start) * 1e3)
        # The first of each also sets the compiler up.
        row = {
            "tessera_ms": statistics.median(mine[1:]),
            "without_ptxas_ms": statistics.median(without[1:]),
            "registers": compiled.n_regs,
            "spills": compiled.n_spills,
            "stage_ms": compiled.metadata["stage_ms"],
        }
        if theirs:
            row["triton_ms"] = statistics.median(theirs[1:])
            row["ratio"] = row["tessera_ms"] / row["triton_ms"]
        result[name] = row
    return result


def launch_times() -> dict[str, Any]:
    """Microseconds of host time for a warm launch with four arguments and with twenty, and for the
    same by the driver alone, in a loop of C and in the same loop of Python; medians and the least.
    What is compared takes turns."""
    arrays = [torch.randn(1024, device="cuda") for _ in range(15)]
    n = 1000
    few: tuple[Any, ...] = (*arrays[:3], n)
    many: tuple[Any, ...] = (*arrays, n, 3, 5, 7, 9)
    batch = 200  # fewer than what the driver queues before it blocks
    calls: dict[str, Callable[[], float]] = {}
    errors: dict[str, Any] = {}

    def timed(launch: Callable[[Any], Any], kernel: Any) -> Callable[[], float]:
        def measure() -> float:
            launch(kernel)
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(batch):
                launch(kernel)
            return (time.perf_counter() - start) / batch

        return measure

    a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14 = arrays

    # As people write calls: a tuple that is unpacked and a dict of keywords cost more.
    def add(kernel: Any) -> Any:
        return kernel[(1,)](a0, a1, a2, n, BLOCK=1024, num_warps=4)

    def add_many(kernel: Any) -> Any:
        return kernel[(1,)](
            a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, n, 3, 5, 7, 9,
            BLOCK=1024, num_warps=4,
        )  # fmt: skip

    for suffix, call_kernel, arguments in (("", add, few), ("_of_20", add_many, many)):
        compiled: dict[str, Any] = {}
        for name, compiler in gpu.compilers().items():
            kernel = gpu.load_kernels(compiler)[call_kernel.__name__]
            compiled[name] = call_kernel(kernel)
            calls[f"{name}{suffix}"] = timed(call_kernel, kernel)
        try:
            driver = RawLaunches(compiled["tessera"], arguments)
            calls[f"raw{suffix}"] = functools.partial(driver.measure, batch)
            calls[f"raw_in_python{suffix}"] = timed(lambda launch: launch(), driver.launch)
            calls[f"raw{suffix}"]()
        except Exception as error:
            calls.pop(f"raw{suffix}", None)
            calls.pop(f"raw_in_python{suffix}", None)
            errors[f"raw{suffix}_error"] = f"{type(error).__name__}: {error}"[:300]
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(60):
        for name, call in calls.items():
            times[name].append(call() * 1e6)
    torch.cuda.synchronize()
    return {
        **{f"{name}_us": statistics.median(t) for name, t in times.items()},
        **{f"{name}_least_us": min(t) for name, t in times.items()},
        **errors,
    }


class RawLaunches:
    """The same launches by the driver alone: `measure` has a loop of C++ and gives the seconds of one,
    `launch` is a function of C for Python, without arguments."""

    def __init__(self, compiled: Any, arguments: tuple[Any, ...]) -> None:
        driver = next(line.split()[-1] for line in open("/proc/self/maps") if "libcuda.so" in line)
        library = gpu.compile_cuda("raw_launch.cu", "-Xlinker", driver)
        library.raw_load.restype = library.raw_prepare.restype = ctypes.c_void_p
        library.raw_launch.restype = ctypes.c_double
        function = library.raw_load(ctypes.c_char_p(compiled.asm["cubin"]), compiled.name.encode())
        if not function:
            raise RuntimeError("the driver does not load the kernel")
        slots = (ctypes.c_uint64 * len(arguments))(
            *(x.data_ptr() if isinstance(x, torch.Tensor) else x for x in arguments)
        )
        self._library = library
        self._of_both = (
            ctypes.c_void_p(function),
            ctypes.c_uint(32 * compiled.num_warps),
            ctypes.c_uint(1),
            ctypes.c_void_p(torch.cuda.current_stream().cuda_stream),
            slots,
            ctypes.c_int(len(arguments)),
        )
        self.launch = self._make_function()

    def measure(self, count: int) -> float:
        seconds = self._library.raw_launch(*self._of_both, ctypes.c_int(count))
        if seconds < 0:
            raise RuntimeError(f"the driver refuses the kernel ({seconds})")
        return float(seconds)

    def _make_function(self) -> Callable[[], Any]:
        class Method(ctypes.Structure):
            """CPython's PyMethodDef."""

            _fields_ = [
                ("name", ctypes.c_char_p),
                ("function", ctypes.c_void_p),
                ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p),
            ]

        without_arguments = 4  # METH_NOARGS
        prepared = self._library.raw_prepare(*self._of_both)
        if not prepared:
            raise RuntimeError("the driver refuses the kernel")
        address = ctypes.cast(self._library.raw_launch_from_python, ctypes.c_void_p)
        self._method = Method(b"launch", address, without_arguments, None)
        make_capsule, make = ctypes.pythonapi.PyCapsule_New, ctypes.pythonapi.PyCFunction_NewEx
        make_capsule.restype = make.restype = ctypes.py_object
        make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        capsule = make_capsule(ctypes.c_void_p(prepared), None, None)
        function: Callable[[], Any] = make(ctypes.addressof(self._method), capsule, None)
        return function


def format_times(name: str, times: dict[str, Any]) -> str:
    """A line a kernel."""
    if "error" in times:
        return f"{name}: {times['error']}"
    if name == "launch":
        texts = []
        for suffix, count in (("", 4), ("_of_20", 20)):
            cells = [
                f"{who} {times[f'{who}{suffix}_us']:.2f} us"
                f" ({times[f'{who}{suffix}_least_us']:.2f} at best)"
                for who in ("tessera", "triton", "raw", "raw_in_python")
                if f"{who}{suffix}_us" in times
            ]
            texts.append(f"warm launch, {count} arguments: " + ", ".join(cells))
        return "; ".join(texts + [text for key, text in times.items() if key.endswith("_error")])
    lines = []
    for kernel, row in times.items():
        theirs = (
            f", triton {row['triton_ms']:.1f} ms, ratio {row['ratio']:.2f}"
            if "triton_ms" in row
            else ""
        )
        lines.append(
            f"cold compile {kernel}: {row['tessera_ms']:.1f} ms, "
            f"{row['without_ptxas_ms']:.1f} without ptxas{theirs}"
        )
    return "\n".join(lines)
