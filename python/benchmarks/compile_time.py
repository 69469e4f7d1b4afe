# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a kernel takes from its decorator to machine code, by stage; and importing.

Cold: the disk cache is off, each compilation is of a new `@jit` function. The first compile
of the process, which pays
for loading the core, is shown apart. Usage: compile_time.py [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any

sys.path[:0] = [
    str(pathlib.Path(__file__).parents[1] / "examples"),
    str(pathlib.Path(__file__).parent),
]

import attention  # noqa: E402
import layer_norm  # noqa: E402
import matmul  # noqa: E402
import report  # noqa: E402
import softmax  # noqa: E402
import vector_add  # noqa: E402

import tessera  # noqa: E402
import tessera.language as tl  # noqa: E402

F = "*fp32"
KERNELS: dict[str, tuple[Any, dict[str, str], dict[str, Any]]] = {
    "vector add": (
        vector_add.add, {"x_ptr": F, "y_ptr": F, "out_ptr": F, "n": "i32"}, {"BLOCK": 4096},
    ),
    "softmax 4096": (
        softmax.softmax_kernel,
        {"x_ptr": F, "out_ptr": F, "x_stride": "i32", "out_stride": "i32", "columns": "i32"},
        {"BLOCK": 4096},
    ),
    "layer norm 4096": (
        layer_norm.layer_norm_kernel,
        {"x_ptr": F, "weight_ptr": F, "bias_ptr": F, "out_ptr": F, "stride": "i32",
         "columns": "i32", "eps": "fp32"},
        {"BLOCK": 4096},
    ),
    "matmul + bias + gelu": (
        matmul.matmul_kernel,
        {"a_ptr": F, "b_ptr": F, "bias_ptr": F, "c_ptr": F, "M": "i32", "N": "i32", "K": "i32",
         "stride_am": "i32", "stride_bk": "i32", "stride_cm": "i32"},
        {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 4, "ACTIVATION": "gelu"},
    ),
    "attention, causal": (
        attention.attention_kernel,
        {"q_ptr": F, "k_ptr": F, "v_ptr": F, "out_ptr": F, "length": "i32", "scale": "fp32"},
        {"HEAD": 64, "BLOCK_M": 64, "BLOCK_N": 64, "CAUSAL": True},
    ),
    "vector add, tile of 256": (
        vector_add.add, {"x_ptr": F, "y_ptr": F, "out_ptr": F, "n": "i32"}, {"BLOCK": 256},
    ),
    "vector add, tile of 16384": (
        vector_add.add, {"x_ptr": F, "y_ptr": F, "out_ptr": F, "n": "i32"}, {"BLOCK": 16384},
    ),
}  # fmt: skip


def compile_ms(name: str) -> tuple[float, dict[str, float]]:
    """Milliseconds of a launch's compilation, which keeps no text of the stages."""
    kernel, signature, constexprs = KERNELS[name]
    types = {"*fp32": tl.float32, "i32": 7, "fp32": 0.5}
    arguments = {parameter: types[type] for parameter, type in signature.items()}
    fresh = tessera.jit(kernel.fn)
    start = time.perf_counter()
    compiled = fresh.warmup(**arguments, **constexprs)
    total = (time.perf_counter() - start) * 1e3
    stages = dict(compiled.metadata["stage_ms"])
    # What the core does not see: the walk over the Python syntax tree.
    stages = {"front-end": total - sum(stages.values()), **stages}
    return total, stages


def import_ms() -> tuple[float, bool]:
    """Milliseconds of `import tessera` in a new process, and whether it kept to itself."""
    code = (
        "import time; s = time.perf_counter(); import tessera; e = time.perf_counter();"
        "import sys; print((e - s) * 1e3, 'numpy' in sys.modules or 'torch' in sys.modules)"
    )
    samples = []
    foreign = False
    for _ in range(7):
        out = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
        samples.append(float(out[0]))
        foreign |= out[1] == "True"
    return statistics.median(samples), foreign


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--repeat", type=int, default=7)
    arguments = parser.parse_args()
    tessera.settings.cache = "off"
    first, _ = compile_ms("vector add")
    print(f"first compile of the process: {first:.1f} ms")
    rows = []
    for name in KERNELS:
        samples = [compile_ms(name) for _ in range(arguments.repeat)]
        total = statistics.median(sample[0] for sample in samples)
        stages = {
            stage: statistics.median(sample[1][stage] for sample in samples)
            for stage in samples[0][1]
        }
        rows.append({"kernel": name, "ms": total, "stages": stages})
        breakdown = "  ".join(f"{stage} {ms:.1f}" for stage, ms in stages.items())
        print(f"{name:28} {total:7.1f} ms   {breakdown}")
    imported, foreign = import_ms()
    print(f"{'import tessera':28} {imported:7.1f} ms   loads NumPy or torch: {foreign}")
    if arguments.json:
        figures = {
            "benchmark": "compile_time", "environment": report.environment(), "first_ms": first,
            "rows": rows, "import_ms": imported, "import_loads_numpy_or_torch": foreign,
        }  # fmt: skip
        with open(arguments.json, "w") as file:
            json.dump(figures, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
