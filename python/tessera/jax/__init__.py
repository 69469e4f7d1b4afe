# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in programs of JAX: `tessera.jax.call`, inside `jax.jit` and outside.

JAX is loaded by the first call, never by importing this.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from tessera.locks import load
from tessera.runtime.grid import Grid

__all__ = ["call", "register"]


def call(
    kernel: Any,
    *args: Any,
    out_shape: Any,
    grid: Grid,
    input_output_aliases: Optional[Mapping[int, int]] = None,
    **kwargs: Any,
) -> Any:
    """Launches a kernel on arrays of JAX and returns new ones, like `out_shape`.

    The kernel gets `args`, then a pointer for each output, and `kwargs` by name: parameters and
    options of a launch. `out_shape` has a shape and a dtype, as jax.ShapeDtypeStruct, or is a tuple
    or a list of such. Arrays among the arguments may be tracers; numbers are constants of the
    program that JAX compiles. If a kernel changes an argument, `input_output_aliases` names it:
    {place in args: place in out_shape}. That output is then the changed argument, and has no
    pointer of its own.

    `jax.vmap` runs the grid once for all, with the batch as its last axis. There is no
    derivative: write one with jax.custom_vjp.

        jax.jit(lambda x: tessera.jax.call(
            scale, x, 2.0, out_shape=x, grid=(tessera.cdiv(x.size, 1024),), n=x.size, BLOCK=1024))

    Raises ArgumentError (E057) for arguments and options that JAX does not support, and the
    exceptions of a launch.
    """
    return load("tessera.jax.calls").call(
        kernel, args, kwargs, out_shape, grid, dict(input_output_aliases or {})
    )


def register() -> None:
    """Makes programs with kernels runnable that another process has compiled or exported.

    `call` does so itself. Raises UnsupportedError (E077) for a version of JAX that is not known.
    """
    load("tessera.jax.calls").register()
