# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector addition, three times: the kernels that every introduction begins with.

`add_1024` is one program over exactly 1024 elements. `add_masked` takes any length: each
program adds one tile and a mask keeps the last one inside the arrays. `add` leaves the
tile's size to the caller as a compile-time parameter.
"""

from __future__ import annotations

from typing import Any

import tessera
import tessera.language as tl


@tessera.jit
def add_1024(x_ptr: tl.tensor, y_ptr: tl.tensor, out_ptr: tl.tensor) -> None:
    offsets = tl.arange(0, 1024)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) + tl.load(y_ptr + offsets))


@tessera.jit
def add_masked(x_ptr: tl.tensor, y_ptr: tl.tensor, out_ptr: tl.tensor, n: int) -> None:
    offsets = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@tessera.jit
def add(
    x_ptr: tl.tensor, y_ptr: tl.tensor, out_ptr: tl.tensor, n: int, BLOCK: tl.constexpr
) -> None:
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x: Any, y: Any, out: Any, block: int = 4096) -> None:
    """out = x + y, for arrays of one length."""
    n = x.shape[0]
    add[(tessera.cdiv(n, block),)](x, y, out, n, BLOCK=block)
