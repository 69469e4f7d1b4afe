# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NVIDIA's part of the road to a GPU: ptxas and libdevice.

Looked for in the settings, then in the Python packages nvidia-cuda-nvcc and nvidia-nvvm,
then in a CUDA toolkit. Without a ptxas kernels stay PTX, which the driver assembles. Two
compilations with different ones never share a cached kernel.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import Iterator, Sequence

from tessera.errors import ToolchainWarning, warn_of_machine
from tessera.machine.gpus import has_instruction
from tessera.settings import settings

# Its places in the packages for CUDA 13 and for CUDA 12, below site-packages/nvidia.
_PTXAS = ("cu13/bin/ptxas", "cuda_nvcc/bin/ptxas")
_LIBDEVICE = ("cu13/nvvm/libdevice/libdevice.10.bc", "cuda_nvcc/nvvm/libdevice/libdevice.10.bc")

_folders: dict[tuple[str, ...], tuple[str, ...]] = {}
"""The places of the package `nvidia`, for one search path."""


def find_ptxas() -> str:
    """The path of ptxas; empty if there is none, or "driver" if the setting is that."""
    if settings.ptxas:
        return settings.ptxas
    for path in _places(_PTXAS, "bin/ptxas"):
        if os.access(path, os.X_OK):
            return path
    return shutil.which("ptxas") or ""


def ptxas_version(path: str) -> str:
    """The version that the program reports, such as "13.0.88"; empty if none."""
    import subprocess

    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r", V([0-9.]+)", said.stdout)
    return found[1] if found else ""


def miscompiles(version: str) -> bool:
    """True if other projects found kernels that this release of ptxas miscompiles for sm_90a. These
    are the releases of CUDA 12.8 to 13.0 (causal attention, wgmma whose operands in registers
    change too early).
    """
    release = tuple(int(part) for part in version.split(".")[:2] if part)
    return (12, 8) <= release < (13, 1)


def warn_of_assembler(version: str, arch: str) -> None:
    """Warns, once a process, of a release of ptxas or of the driver's assembler that is known to
    miscompile, and of there being no ptxas. `version` is what `assembler` in a kernel's metadata
    says, or "driver 13.0" for the driver that assembles it.
    """
    known = version.removeprefix("driver ")
    if version == "driver":
        if settings.ptxas == "driver":
            return
        message = (
            f"there is no ptxas, so kernels for {arch} are left as PTX for the GPU's driver to "
            "assemble when they are loaded, by each process anew; pip install "
            "'nvidia-cuda-nvcc>=13.3', or set TESSERA_PTXAS"
        )
    # Public name: of the instruction that they miscompile.
    elif miscompiles(known) and has_instruction(arch, "wgmma"):
        what = f"ptxas {known}" if known == version else f"the assembler of CUDA {known}'s driver"
        message = (
            f"{what} is known to miscompile kernels for sm_90a (releases 12.8 to 13.0: causal "
            "attention, dots whose first operand is in registers); pip install "
            "'nvidia-cuda-nvcc>=13.3', or set TESSERA_PTXAS"
        )
    else:
        return
    if version not in _warned_of:
        _warned_of.add(version)
        warn_of_machine(f"tessera: {message}", ToolchainWarning)


_warned_of: set[str] = set()


def find_libdevice() -> str:
    """The path of libdevice; empty if there is none."""
    if settings.libdevice:
        return settings.libdevice
    beside = os.path.join(os.path.dirname(os.path.dirname(__file__)), "libdevice.10.bc")
    if os.path.exists(beside):
        return beside
    for path in _places(_LIBDEVICE, "nvvm/libdevice/libdevice.10.bc"):
        if os.path.exists(path):
            return path
    return ""


def _places(names: Sequence[str], name: str) -> Iterator[str]:
    """Possible places of a file, which packages have as `names` and toolkits as `name`. They are made
    one by one, since each compilation looks."""
    yield from _packaged(names)
    for home in _toolkits():
        yield os.path.join(home, name)


def _toolkits() -> Sequence[str]:
    """Possible places of CUDA toolkits."""
    homes = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
    return [home for home in homes if home]


def toolchain_key(libraries: Sequence[tuple[str, str]] = ()) -> str:
    """Equal for toolchains that give the same code; `libraries` are a launch's own, by name.

    A program is known by its path, size and time: asking it for its version takes longer
    than loading a kernel from the cache.
    """
    given = dict(libraries)
    files = (find_ptxas(), given.pop("libdevice", "") or find_libdevice(), *given.values())
    return " ".join(map(_identity, files))


def _packaged(names: Sequence[str]) -> Iterator[str]:
    # That there is none is not remembered, for it may be installed.
    path = tuple(sys.path)
    folders = _folders.get(path)
    if folders is None:
        all_folders = (os.path.join(at, "nvidia") for at in path)
        folders = tuple(at for at in all_folders if os.path.isdir(at) and _is_trusted(at))
        if folders:
            _folders.clear()
            _folders[path] = folders
    for folder in folders:
        for name in names:
            yield os.path.join(folder, name)


def _is_trusted(folder: str) -> bool:
    """True unless the folder is in the working directory, which Python adds to its search path:
    programs are not taken from the current folder."""
    path = os.path.dirname(folder)
    installed = os.path.basename(path) in ("site-packages", "dist-packages")
    return os.path.isabs(path) and (
        installed or os.path.realpath(path) != os.path.realpath(os.curdir)
    )


def _identity(path: str) -> str:
    if path == "driver":
        return path
    try:
        known = os.stat(path)
    except OSError:
        return "none"
    return f"{os.path.realpath(path)}:{known.st_size}:{known.st_mtime_ns}"
