# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches as generated launchers spell them, TorchInductor's among others:

    kernel.run(x, y, z, stream, kernel.function, metadata, launch_metadata, enter, exit, *args)

The arguments are the grid's extents, a stream, the argument of hooks, and a value for each
parameter, constants too. `function`, `metadata` and the hooks belong to the launcher; the kernel
has its own.

On a CPU, a launch uses as many threads as torch's operators, unless TESSERA_NUM_THREADS sets the
number. If there are no hooks, the core runs the launch without Python (python/src/Runner.cpp).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable

from tessera import _C
from tessera.runtime.hooks import hooks
from tessera.settings import settings

if TYPE_CHECKING:
    from tessera.runtime.kernel import CompiledKernel


def make_runner(kernel: "CompiledKernel") -> Callable[..., None]:
    """The type of `kernel.run`."""
    is_on_gpu = kernel.metadata["target"] == "cuda"

    def run(
        x: int,
        y: int,
        z: int,
        stream: Any,
        function: Any,
        metadata: Any,
        told: Any,
        enter: Any,
        leave: Any,
        *args: Any,
    ) -> None:
        options = {"stream": stream} if is_on_gpu else {"num_threads": find_threads()}
        if not hooks.on_launch:
            kernel.launch((x, y, z), args, **options)
            return
        hooks.launch_enter(told)
        kernel._launch((x, y, z), args, is_told=True, **options)
        hooks.launch_exit(told)

    # Inductor's launchers come with torch.
    ask_threads: Callable[[], int] = getattr(sys.modules.get("torch"), "get_num_threads", lambda: 0)

    def find_threads() -> int:
        return settings.num_threads or ask_threads()

    if is_on_gpu or kernel._dispatcher is None:
        return run
    return _C.Runner(kernel._dispatcher, run, lambda: settings.num_threads, ask_threads)
