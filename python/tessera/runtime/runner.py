# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches as generated launchers spell them, TorchInductor's among others:

    kernel.run(x, y, z, stream, kernel.function, metadata, launch_metadata, enter, exit, *args)

The grid's extents, a stream, what hooks are told, and a value for each parameter, constants
too. `function`, `metadata` and the hooks are the launcher's own; the kernel knows its.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from tessera.runtime.hooks import hooks

if TYPE_CHECKING:
    from tessera.runtime.kernel import CompiledKernel


def make_runner(kernel: "CompiledKernel") -> Callable[..., None]:
    """What `kernel.run` is."""
    dispatcher = None if kernel.metadata["target"] == "cuda" else kernel._dispatcher

    def launch(grid: tuple[int, int, int], stream: Any, args: tuple[Any, ...]) -> None:
        if dispatcher is not None:
            dispatcher.bind(grid)(*args)
        else:
            kernel.launch(grid, args, stream=stream)

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
        if not hooks.on_launch:
            launch((x, y, z), stream, args)
            return
        hooks.launch_enter(told)
        on_gpu = {} if dispatcher is not None else {"stream": stream}
        kernel._launch((x, y, z), args, is_told=True, **on_gpu)
        hooks.launch_exit(told)

    return run
