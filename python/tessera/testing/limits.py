# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The limits of a GPU, as a measure for kernels.

The operations of a quarter of an SM in a cycle are NVIDIA's figures for each
generation; a multiply-add counts as two.
"""

from __future__ import annotations

import subprocess
from typing import Any, Optional, Sequence

from tessera import _C
from tessera.errors import LaunchError
from tessera.machine.devices import current_device
from tessera.machine.gpus import GPUMachine, find_for_capability
from tessera.runtime.arrays import to_dtype


def get_dram_gbps(device: Optional[int] = None) -> float:
    """The bandwidth of a GPU's memory in GB/s.

    Example:
        import tessera.testing

        gbps = tessera.testing.get_dram_gbps()  # needs a GPU
        seconds = 2**30 / (gbps * 1e9)  # at least, to read 1 GiB
        assert 10 < gbps < 100_000
    """
    info = _C.cuda_device_info(_device(device))
    return float(info["memory_clock_khz"] * info["memory_bus_bits"] * 2 / 1e6 / 8)


def get_max_tensorcore_tflops(dtype: Any, clock_rate: float, device: Optional[int] = None) -> float:
    """The most that a GPU's tensor cores can do with operands of a type, in 10^12 operations a
    second, at `clock_rate` kHz.

    Example:
        import torch
        import tessera.testing

        (mhz,) = tessera.testing.nvsmi(["clocks.max.sm"])  # needs a GPU
        tflops = tessera.testing.get_max_tensorcore_tflops(torch.float16, clock_rate=mhz * 1000)
        assert tflops > tessera.testing.get_max_simd_tflops(torch.float16, clock_rate=mhz * 1000)
    """
    name = str(to_dtype(dtype))
    ordinal = _device(device)
    per_cycle = _machine(ordinal).mma_rate
    if name in ("fp32", "int32"):
        per_cycle //= 2
    elif name in ("int8", "uint8") or name.startswith("fp8"):
        per_cycle *= 2
    elif name not in ("fp16", "bf16", "int16"):
        raise LaunchError("E054", f"tensor cores do not multiply {name}", "use fp16")
    return _tflops(per_cycle, clock_rate, ordinal)


def get_max_simd_tflops(dtype: Any, clock_rate: float, device: Optional[int] = None) -> float:
    """The same for what is computed without tensor cores.

    Example:
        import torch
        import tessera.testing

        (mhz,) = tessera.testing.nvsmi(["clocks.max.sm"])  # needs a GPU
        tflops = tessera.testing.get_max_simd_tflops(torch.float32, clock_rate=mhz * 1000)
        assert tflops > 1
    """
    name = str(to_dtype(dtype))
    ordinal = _device(device)
    if name == "fp32":
        per_cycle = _machine(ordinal).f32_rate
    elif name in ("fp16", "bf16"):
        per_cycle = _machine(ordinal).f16_rate
    else:
        raise LaunchError("E054", f"there is no figure for {name}", "use fp32, fp16 or bf16")
    return _tflops(per_cycle, clock_rate, ordinal)


def nvsmi(attrs: Sequence[str]) -> list[int]:
    """The values that the program nvidia-smi prints for the first GPU, such as ["clocks.max.sm"].

    Example:
        import tessera.testing

        sm_mhz, memory_mhz = tessera.testing.nvsmi(["clocks.max.sm", "clocks.max.memory"])  # needs a GPU
        assert sm_mhz > 100 and memory_mhz > 100
    """
    query = "--query-gpu=" + ",".join(attrs)
    command = ["nvidia-smi", "-i", "0", query, "--format=csv,noheader,nounits"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [int(word) for word in text.split(",")]


def _tflops(per_cycle: int, clock_khz: float, device: int) -> float:
    multiprocessors = int(_C.cuda_device_info(device)["multiprocessors"])
    return 2 * multiprocessors * clock_khz * per_cycle * 1e-9


def _machine(device: int) -> GPUMachine:
    major, minor = _C.cuda_device_info(device)["capability"]
    machine = find_for_capability(major, minor)
    # Tessera does not use the fastest instructions of these tensor cores, so their limit is not
    # known here.
    if machine is None or "tcgen05" in machine.instructions:
        raise LaunchError(
            "E030", f"there are no figures for GPUs of capability {major}.{minor}", ""
        )
    return machine


def _device(device: Optional[int]) -> int:
    return current_device() if device is None else device
