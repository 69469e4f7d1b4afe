# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tools for tests and benchmarks of kernels: times (`do_bench`), tables and plots of times
(`perf_report`), comparison of results (`assert_close`), the limits of a GPU (`get_dram_gbps`, ...).
`fuzz` has generated kernels, and `puzzles` has puzzles for learners."""

from tessera.testing.bench import do_bench, do_bench_cudagraph
from tessera.testing.close import assert_close
from tessera.testing.limits import (
    get_dram_gbps,
    get_max_simd_tflops,
    get_max_tensorcore_tflops,
    nvsmi,
)
from tessera.testing.report import Benchmark, Mark, Table, perf_report

__all__ = [
    "Benchmark",
    "Mark",
    "Table",
    "assert_close",
    "do_bench",
    "do_bench_cudagraph",
    "get_dram_gbps",
    "get_max_simd_tflops",
    "get_max_tensorcore_tflops",
    "nvsmi",
    "perf_report",
]
