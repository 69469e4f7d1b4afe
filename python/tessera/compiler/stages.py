# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stages from a kernel's source to its machine code."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping, Optional

from tessera import _C
from tessera.errors import LaunchError

STAGES = ("tile", "tile-opt", "strips", "llvm", "llvmir", "asm", "object")
"""The named stages for the CPU, in order. Each but the last two can be compiled from."""

CUDA_STAGES = ("tile", "tile-opt", "tilegpu", "llvm", "llvmir", "ptx", "cubin")
"""Those for an NVIDIA GPU, of which the same is true."""


_OTHER_NAMES = {
    "source": {"cpu": "tile", "cuda": "tile"},
    "ttir": {"cpu": "tile-opt", "cuda": "tile-opt"},
    "ttgir": {"cpu": "strips", "cuda": "tilegpu"},
    "llir": {"cpu": "llvmir", "cuda": "llvmir"},
}
"""Triton's name of a stage, and the stage here."""


class NoCubin(LaunchError, KeyError):
    """A kernel was compiled without ptxas, and its machine code is asked for."""


class Stages(Mapping[str, Any]):
    """The text of each stage by name; machine code (`object`, `cubin`) is bytes.

    A kernel that was launched has kept its machine code alone: the others are then made by
    compiling it once more, when the first of them is read. Triton's names `source`, `ttir`,
    `ttgir` and `llir` stand for `tile`, `tile-opt`, `strips` or `tilegpu`, and `llvmir`.
    """

    def __init__(self, kernel: _C.Kernel, rebuild: Optional[Callable[[], _C.Kernel]]) -> None:
        self._kernel = kernel
        self._rebuild = rebuild
        self._target = "cuda" if kernel.metadata().get("target") == "cuda" else "cpu"
        self._names = CUDA_STAGES if self._target == "cuda" else STAGES

    def __getitem__(self, name: str) -> Any:  # str, but bytes of machine code
        if name in _OTHER_NAMES:
            name = _OTHER_NAMES[name][self._target]
        if name not in self._names:
            raise KeyError(f"no stage {name!r}; the stages are {', '.join(self._names)}")
        text = self._kernel.stage(name)
        if text is None and self._rebuild is not None:
            self._kernel, self._rebuild = self._rebuild(), None
            text = self._kernel.stage(name)
        if text is None and name == "cubin":
            raise NoCubin(
                "E063",
                f"kernel `{self._kernel.metadata()['name']}` has no cubin: there is no ptxas, and "
                "the GPU's driver assembles the PTX when the kernel is loaded",
                "pip install 'nvidia-cuda-nvcc>=13.3', or set TESSERA_PTXAS",
            )
        if text is None:
            raise KeyError(f"stage {name!r} precedes the stage that this kernel was compiled from")
        return text

    def __getstate__(self) -> dict[str, Any]:
        # Another process has the machine code, and nothing to compile the rest from.
        return {**self.__dict__, "_rebuild": None}

    def __iter__(self) -> Iterator[str]:
        if self._rebuild is not None:
            self._kernel, self._rebuild = self._rebuild(), None
        return iter([name for name in self._names if self._kernel.stage(name) is not None])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        # For a launched kernel, reading the stages takes a compilation, but reading their names
        # does not.
        names = self._names if self._rebuild is not None else tuple(self)
        return f"<stages {', '.join(names)}>"
