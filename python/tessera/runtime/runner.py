# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches as generated launchers spell them, TorchInductor's among others:

    kernel.run(x, y, z, stream, kernel.function, metadata, launch_metadata, enter, exit, *args)

The grid's extents, a stream, what hooks are told, and a value for each parameter, constants
too. `function`, `metadata` and the hooks are the launcher's own; the kernel knows its.

On a CPU as many threads run a launch as run torch's operators, unless TESSERA_NUM_THREADS says how
many.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable

from tessera.runtime.hooks import hooks
from tessera.settings import settings

if TYPE_CHECKING:
    from tessera.runtime.kernel import CompiledKernel


def make_runner(kernel: "CompiledKernel") -> Callable[..., None]:
    """What `kernel.run` is."""
    dispatcher = None if kernel.metadata["target"] == "cuda" else kernel._dispatcher

    # Inductor's launchers come with torch.
    threads: Callable[[], int] = getattr(sys.modules.get("torch"), "get_num_threads", lambda: 0)

    # What is asked once until something changes that launches depend on.
    generation, has_hooks, fixed_threads = -1, False, 0

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
        nonlocal generation, has_hooks, fixed_threads
        if (now := settings.generation) != generation:
            has_hooks, fixed_threads = hooks.on_launch, settings.num_threads
            generation = now  # the last, for threads beside this one
        if has_hooks:
            hooks.launch_enter(told)
            on_gpu = {} if dispatcher is not None else {"stream": stream}
            kernel._launch((x, y, z), args, is_told=True, **on_gpu)
            hooks.launch_exit(told)
        elif dispatcher is not None:
            dispatcher.bind((x, y, z))(*args, num_threads=fixed_threads or threads())
        else:
            kernel.launch((x, y, z), args, stream=stream)

    return run
