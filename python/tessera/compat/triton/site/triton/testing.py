# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Timing and comparing, by Triton's names. A function without a meaning in Tessera raises an error
when it is called."""

from typing import Any, NoReturn

from tessera.errors import UnsupportedError
from tessera.testing import *  # noqa: F401,F403


def cuda_memcheck(**target_kwargs: Any) -> NoReturn:
    """Refused: the program is no longer part of CUDA."""
    raise UnsupportedError(
        "E074",
        "triton.testing.cuda_memcheck calls cuda-memcheck, which is no part of CUDA since release 12",
        "run the tests under compute-sanitizer, or the kernel in tessera.gpu.simulate",
    )


def set_gpu_clock(ref_sm_clock: int = 1350, ref_mem_clock: int = 1215) -> NoReturn:
    """Refused: it would change the GPU for everybody."""
    raise UnsupportedError(
        "E074",
        "triton.testing.set_gpu_clock changes the clocks of the GPU for all that use it",
        f"nvidia-smi --lock-gpu-clocks={ref_sm_clock} --lock-memory-clocks={ref_mem_clock}, as root",
    )


def do_bench_proton(fn: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: there is no Proton."""
    raise UnsupportedError(
        "E074",
        "triton.testing.do_bench_proton takes the times of kernels from Proton's records, and "
        "Tessera's profiler has none",
        "use do_bench_cudagraph, which leaves out what launches cost, or do_bench",
    )


def do_bench_cudagraph_proton(fn: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: there is no Proton."""
    do_bench_proton(fn)
