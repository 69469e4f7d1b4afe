# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The whole path of a launch, for those that the core does not know (python/src/Dispatcher.h)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Optional, Sequence

from tessera import _C
from tessera.errors import TesseraError, raise_core_error, warn_of_access
from tessera.runtime.async_compile import active_mode
from tessera.runtime.cuda import StreamSource, consumer_of, find_place, find_stream, read_stream
from tessera.runtime.memory_ranges import memory_of_slots
from tessera.runtime.grid import Meta, normalize_grid
from tessera.runtime.hooks import hooks, tell_launch
from tessera.runtime.interpreting import interpret_launch
from tessera.runtime.loading import load_launching
from tessera.runtime.specialisations import find_specialisation, is_held_back
from tessera.runtime.specialize import Bound, check_memory, is_array
from tessera.runtime.tracing import check_writes, is_skipped, is_watching
from tessera.settings import settings

if TYPE_CHECKING:
    from tessera.compiler.options import CompileOptions
    from tessera.runtime.jit import JITFunction
    from tessera.runtime.kernel import CompiledKernel


def launch_wholly(
    fn: "JITFunction[Any, Any]",
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    grid: Any,
    warmup: bool,
    *,
    hooked: bool = False,
) -> tuple[Any, Optional[_C.LaunchRecord]]:
    """The whole path of a launch; `hooked` if the kernel's own hooks were called already. Also
    returns the record by which the warm path repeats it."""
    if is_skipped(args, kwargs):
        return None, None
    load_launching()
    for hook in () if hooked else fn.pre_run_hooks:
        hook(*args, **kwargs)
    values, given = fn._bind(args, kwargs)
    options = fn._options(given)
    bound = fn._specialise(values, consumer_of(values, options.stream))
    fn._changing = bound.changing = bound.changing or next(
        (name for name, value in given.items() if is_array(value)), ""
    )
    if warmup and options.target == "cuda" and options.arch:
        return _warm(fn, bound, options)  # there need be no GPU
    place = find_place(bound.pointers, options.target)
    options = options.resolved(None) if place is None else place.resolve(options)
    if warmup:
        return _warm(fn, bound, options)
    check_memory(bound.pointers)
    extents = normalize_grid(grid, Meta(fn.params, values, options))
    if settings.interpret:
        interpret_launch(fn, bound, values, options, extents)
        return None, None
    if hooks.on_compile and is_held_back(fn, bound, options, False):
        return None, None
    found = find_specialisation(fn, bound, options)
    kernel = found.kernel
    if any(item.pointer.read_only for item in bound.pointers):
        from tessera.runtime.kernel import check_writeable

        check_writeable(kernel._stored_arguments(), bound)
    if is_watching():
        check_writes(bound.pointers, kernel._stored_arguments())
    if hooks.on_load:
        kernel._init_handles()
    is_first, kernel._is_loaded = not kernel._is_loaded, True
    if not kernel._is_checked:
        kernel._is_checked = True
        _check_accesses(kernel, extents, bound, values)
    device = -1
    stream: StreamSource = 0
    told = None
    memory = None
    if place is None and options.checks_accesses:
        memory = memory_of_slots(len(bound.slots), bound.pointers, values)
    try:
        handle = 0
        if place is not None:
            device = place.device
            kernel._check_driver(device)
            stream = find_stream(bound.pointers, device, options.stream)
            handle = read_stream(stream, device)
        if hooks.on_launch:
            told = (
                lambda kernel: tell_launch(kernel, extents, values, {}, handle),
                hooks.launch_exit,
            )
        record = _C.LaunchRecord(
            found.family(options.may_be_divided),
            bound.slots,
            options.as_dict,
            options.num_threads,
            device,
            stream,
        )
        launched = record.launch(
            extents, handle, functools.partial(make_variant, fn, bound, options), told, memory
        )
    except _C.CoreError as error:
        raise_core_error(error)
    if is_first and settings.log == "info":
        from tessera.log import info

        where = "the CPU" if device < 0 else f"GPU {device}"
        info("launched `%s` as %s on %s, for the first time", kernel.name, extents, where)
    # The warm path knows no memory, and constants by identity.
    if bound.changing or (options.checks_accesses if place is None else not place.by_arrays):
        return launched, None
    return launched, record


def make_variant(
    fn: "JITFunction[Any, Any]", bound: Bound, options: "CompileOptions", variant: _C.Variant
) -> Optional[tuple[Any, ...]]:
    """A variant of the kernel that a launch needs; None where a division cannot be compiled."""
    try:
        return find_specialisation(fn, bound, options.for_variant(variant)).variant
    except TesseraError:
        if variant == _C.Variant.UNLIMITED:
            raise
        return None  # no one has requested it


def _warm(
    fn: "JITFunction[Any, Any]", bound: Bound, options: "CompileOptions"
) -> tuple[Any, Optional[_C.LaunchRecord]]:
    """The result of `warmup`: the kernel, or a future's kernel, or None if a hook asks for
    that. Also what the warm path needs to find the kernel again."""

    def compile() -> Any:
        if hooks.on_compile and is_held_back(fn, bound, options, True):
            return None
        return find_specialisation(fn, bound, options).kernel

    mode = active_mode.get()
    if mode is not None:
        return mode.submit((fn, tuple(bound.key), options.key), compile), None
    if hooks.on_compile:
        return compile(), None
    found = find_specialisation(fn, bound, options)
    if bound.changing:
        return found.kernel, None
    return found.kernel, _C.LaunchRecord(found.family(options.may_be_divided), bound.slots)


def _check_accesses(
    kernel: "CompiledKernel",
    grid: tuple[int, int, int],
    bound: Bound,
    values: Sequence[Any],
) -> None:
    """Warns if a launch leaves the memory of its arrays, as far as that is known without running it."""
    if not kernel.metadata["certain_accesses"]:
        return
    memory = memory_of_slots(len(bound.slots), bound.pointers, values, owned=True)
    try:
        kernel._kernel.check_accesses(grid, bound.slots, memory)
    except _C.CoreError as error:
        if error.info.get("id") == "E088":
            warn_of_access(error)
