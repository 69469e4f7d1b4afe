# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches that add to arrays, for each library alike: in place, or to a new array of JAX."""

from __future__ import annotations

import functools
import sys
from typing import Any, Sequence

from tessera.calls import recording
from tessera.calls.outputs import library_of, make_output, numpy_dtype
from tessera.calls.plans import library_dtype
from tessera.language import types
from tessera.locks import load
from tessera.ops.launching import launch
from tessera.runtime.arrays import dtype_name


def zeros(like: Any, shape: Sequence[int], dtype: types.dtype) -> Any:
    """An array of zeros, of the library and on the device of `like`. Each call of a program makes one."""
    library, shape = library_of(like), tuple(shape)
    if library == "jax":
        wanted = load("jax").dtypes.canonicalize_dtype(library_dtype("jax", dtype))
        return load("jax.numpy").zeros(shape, wanted)
    if library == "torch":
        torch = sys.modules["torch"]
        wanted = getattr(torch, dtype_name(dtype))
        return recording.create(
            functools.partial(torch.zeros, shape, dtype=wanted, device=like.device)
        )
    module = sys.modules[library]
    if library == "numpy":
        return recording.create(functools.partial(module.zeros, shape, numpy_dtype(dtype, "out")))
    kept = make_output(like, (0,), dtype, "out")  # a program holds it, not the argument

    def make() -> Any:
        made = make_output(kept, shape, dtype, "out")
        made[...] = 0
        return made

    return recording.create(make)


def steps(like: Any, start: int, count: int, step: int, dtype: types.dtype) -> Any:
    """start, start + step and so on, of the library and on the device of `like`."""
    if step == 0:
        return zeros(like, (count,), dtype)
    library, ends = library_of(like), (start, start + count * step, step)
    if library == "jax":
        wanted = load("jax").dtypes.canonicalize_dtype(library_dtype("jax", dtype))
        return load("jax.numpy").arange(*ends, dtype=wanted)
    if library == "torch":
        torch = sys.modules["torch"]
        wanted = getattr(torch, dtype_name(dtype))
        return recording.create(
            functools.partial(torch.arange, *ends, dtype=wanted, device=like.device)
        )
    arange = sys.modules[library].arange
    return recording.create(functools.partial(arange, *ends, dtype=numpy_dtype(dtype, "out")))


def empty(like: Any, shape: Sequence[int], dtype: types.dtype) -> Any:
    """An array whose elements are all stored later; zeros of JAX."""
    if library_of(like) == "jax":
        return zeros(like, shape, dtype)
    return make_output(like, tuple(shape), dtype, "out")


def with_part(array: Any, place: Any, part: Any) -> Any:
    """The array with other elements at a place: the array itself, or a new one of JAX."""
    if library_of(array) == "jax":
        return array.at[place].set(part)
    if recording.current() is not None:
        raise recording.NotRecorded  # a program has no step that writes like this
    array[place] = part
    return array


def launch_onto(
    kernel: Any,
    programs: int,
    inputs: Sequence[Any],
    started: Any,
    numbers: Sequence[Any],
    warps: int = 4,
) -> Any:
    """Launches a kernel whose parameters are the inputs, an array that has values, and the numbers.

    Returns the array with the kernel's changes: `started` itself, or a new array of JAX. Inputs are
    dense, and `started`, too. Without programs, nothing is launched.
    """
    if not programs or 0 in started.shape:
        return started
    if library_of(started) == "jax":
        jax: Any = load("jax")
        shape = jax.ShapeDtypeStruct(started.shape, started.dtype)
        args = (*inputs, started, *numbers)
        call = load("tessera.jax.calls").call
        return call(kernel, args, {}, shape, (programs,), {len(inputs): 0})
    launch(kernel, programs, (*inputs, started), [], numbers, warps)
    return started
