# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches by the reference interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from tessera import _C
from tessera.errors import ArgumentError, raise_core_error
from tessera.frontend.signature import kernel_name
from tessera.runtime.memory_ranges import memory_of_slots
from tessera.runtime.grid import Grid, Meta, normalize_grid
from tessera.runtime.interface import KernelInterface
from tessera.runtime.loading import load_launching
from tessera.runtime.specialize import Bound, check_memory

if TYPE_CHECKING:
    from tessera.compiler.options import CompileOptions
    from tessera.runtime.jit import JITFunction


def interpret_launch(
    fn: "JITFunction[Any, Any]",
    bound: Bound,
    values: Sequence[Any],
    options: "CompileOptions",
    grid: tuple[int, int, int],
) -> None:
    """Runs a launch by the reference interpreter."""
    on_gpu = next((item for item in bound.pointers if item.pointer.device >= 0), None)
    if on_gpu is not None:
        raise ArgumentError(
            "E054",
            f"argument `{on_gpu.name}` is on a GPU, and the interpreter runs on the CPU",
            "pass a copy in the CPU's memory",
        )
    key = (tuple(bound.key), options.key)
    name = kernel_name(fn, bound.specs)
    with fn._lock:
        found = fn._modules.get(key)
        if found is None or not _C.is_current(found[1]):
            from tessera.compiler.compile import build
            from tessera.runtime.explaining import explained_by_arguments

            with explained_by_arguments(fn.arg_names, values):
                built = build(fn, bound.specs, options, interpreted=True)
            built.module.check_accesses()
            found = fn._modules[key] = built.module, built.reads.full()
        try:
            if any(item.pointer.read_only for item in bound.pointers):
                from tessera.runtime.kernel import check_writeable

                check_writeable(found[0].stored_arguments(name), bound)
            memory = memory_of_slots(len(bound.slots), bound.pointers, values)
            wraps = bool(options.debug)
            _C.interpret(found[0], name, grid, bound.slots, memory, wraps)
        except _C.CoreError as error:
            raise_core_error(error)


class Interpreted:
    """A kernel that the reference interpreter runs; see `interpret`."""

    def __init__(self, fn: KernelInterface) -> None:
        self.fn = fn

    def __getitem__(self, grid: Grid) -> Callable[..., None]:
        load_launching()
        from tessera.runtime.frames import as_users_see

        def launch(*args: Any, **kwargs: Any) -> None:
            fn: Any = self.fn
            while hasattr(fn, "_untuned"):  # tuned, or with heuristics
                kwargs = fn._untuned(args, kwargs)
                fn = fn.fn
            values, given = fn._bind(args, kwargs)
            options = fn._options(given)
            bound = fn._specialise(values)
            check_memory(bound.pointers)
            extents = normalize_grid(grid, Meta(fn.params, values, options))
            interpret_launch(fn, bound, values, options, extents)

        return as_users_see(launch)


def interpret(fn: KernelInterface) -> Interpreted:
    """`interpret(kernel)[grid](...)` runs a kernel with the reference interpreter.

    That is slow, and right by definition: what it does is what the language says. A tuned kernel
    has its first configuration.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def root(x_ptr):
            i = tl.arange(0, 8)
            tl.store(x_ptr + i, tl.sqrt(tl.load(x_ptr + i)))

        x = np.arange(8, dtype=np.float32)
        want = x.copy()
        root[(1,)](x)
        tessera.interpret(root)[(1,)](want)  # slowly, and checking every access
        assert np.allclose(x, want)
    """
    return Interpreted(fn)
