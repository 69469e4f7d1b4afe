# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small program, for a version of JAX that Tessera was not tested with."""

from __future__ import annotations

from typing import Any, Callable

import jax
import numpy

import tessera.language as tl
from tessera.runtime.jit import jit

_COUNT = 1000


@jit
def _add_number(x, number, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + number, mask=i < n)


def run_small_program(call: Callable[..., Any]) -> None:
    """Launches a kernel by `call` (calls.py) from a program that JAX compiles, and for a batch.
    Raises RuntimeError where the results are wrong, and whatever JAX raises."""

    def program(x: jax.Array) -> jax.Array:
        named = {"n": _COUNT, "BLOCK": 256}
        added: jax.Array = call(_add_number, (x, 2.0), named, x, (_COUNT // 256 + 1,), {})
        return 3 * added

    rows = numpy.arange(2 * _COUNT, dtype=numpy.float32).reshape(2, _COUNT)
    for compiled, x in ((jax.jit(program), rows[1]), (jax.jit(jax.vmap(program)), rows)):
        with jax.ensure_compile_time_eval():  # the caller may be in the middle of a trace
            result = numpy.asarray(compiled(x))
        if not numpy.array_equal(result, 3 * (x + 2)):
            raise RuntimeError("a kernel in a program of JAX computed a wrong result")
