# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A CUDA driver without a GPU (fake_cuda.c), on which launches are noted down."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path


class Launch(ctypes.Structure):
    """What is noted of a launch: `fake_last` of the driver."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("arguments", ctypes.c_uint64 * 8),
        ("maps", ctypes.c_uint64 * 16 * 2),
        ("context", ctypes.c_void_p),
        ("name", ctypes.c_char * 64),
    ]


def build_fake_driver(folder: Path, compiler: str) -> str:
    """Builds libcuda.so.1 in a folder, which is then for LD_LIBRARY_PATH."""
    folder.mkdir(exist_ok=True)
    source = Path(__file__).with_name("fake_cuda.c")
    command = [compiler, "-shared", "-fPIC", "-w", source, "-o", folder / "libcuda.so.1"]
    subprocess.run(command, check=True)
    return str(folder)
