# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whatever is launched as `kernel[grid](*args)`: kernels, tuned kernels, kernels with heuristics."""

from __future__ import annotations

from typing import Any, Callable

from tessera.language.callables import ShownAsFunction
from tessera.runtime.grid import Grid


class KernelInterface(ShownAsFunction):
    """Whatever is launched as `kernel[grid](*args)`."""

    def __getitem__(self, grid: Grid) -> Callable[..., Any]:
        def launch(*args: Any, **kwargs: Any) -> Any:
            return self.run(*args, grid=grid, warmup=False, **kwargs)

        return launch

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launches the kernel, or only compiles it if `warmup`."""
        raise NotImplementedError(f"{type(self).__name__} has no `run`")

    def warmup(self, *args: Any, grid: Any = (1,), **kwargs: Any) -> Any:
        """Compiles the kernel for these arguments without running it."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    @property
    def _launched(self) -> "KernelInterface":
        """The target of a launch with a grid: the kernel itself, or the one within."""
        return self
