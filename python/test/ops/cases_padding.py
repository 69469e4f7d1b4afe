# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of padding, rolling and joining."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tessera import ops

from .scheme import FLOATS, INTEGERS, Case

EVERYWHERE = ("torch", "numpy", "jax")


def padded(
    shape: tuple[int, ...], pad: tuple[int, ...], mode: str = "constant", **settings: Any
) -> Case:
    return Case(f"pad {mode} {pad}", ops.pad, lambda m: (m.array(*shape), pad, mode), F.pad,
                settings=settings, libraries=EVERYWHERE)  # fmt: skip


def joined(name: str, sizes: tuple[int, ...], dim: int, dtypes: Any = FLOATS) -> Case:
    join = getattr(ops, name)
    shapes = [(3, size, 5) if dim else (size, 3, 5) for size in sizes]
    return Case(
        f"{name} {dim}", lambda *each: join(each, dim), lambda m: [m.array(*shape) for shape in shapes],
        lambda *each: getattr(torch, name)(each, dim), dtypes, libraries=EVERYWHERE,
        has_gradient=dtypes is FLOATS,
    )  # fmt: skip


CASES = [
    padded((3, 5), (2, 3), value=1.5), padded((3, 5), (-1, 2, 1, -2)),
    padded((2, 1, 3, 1, 4), (1, 0, 2, 1, 0, 1, 1, 1, 2, 0)),
    padded((2, 4, 5), (3, 4), "reflect"), padded((2, 4, 5), (2, 4, 3, 1), "reflect"),
    padded((1, 2, 4, 3, 5), (1, 4, 2, 0, 3, 3), "reflect"),
    padded((2, 4, 5), (0, 7, 9, 1), "replicate"), padded((2, 1, 3, 4, 5), (1, 2, 3, 4, 5, 6), "replicate"),
    padded((2, 4, 5), (5, 4, 1, 4), "circular"), padded((2, 3, 3, 4, 5), (1, 2, 3, 0, 3, 1), "circular"),
    Case("pad empty", ops.pad, lambda m: (m.array(0, 3), (1, 1, 2, 0)), F.pad),
    Case("pad integers", ops.pad, lambda m: (m.array(3, 4), (1, 2)), F.pad, INTEGERS,
         {"value": 7}, has_gradient=False),
    Case("roll", ops.roll, lambda m: (m.array(3, 4, 5), (2, -7), (0, 2)), torch.roll, libraries=EVERYWHERE),
    Case("roll twice", ops.roll, lambda m: (m.array(3, 9), (2, 1), (1, 1)), torch.roll),
    Case("roll flat", ops.roll, lambda m: (m.array(3, 9), 4), torch.roll),
    Case("roll five", ops.roll, lambda m: (m.array(2, 3, 2, 3, 2), (1, 2, 1, 2, 1), (0, 1, 2, 3, 4)), torch.roll),
    joined("cat", (2, 0, 7), 1), joined("cat", (2, 1), 0, INTEGERS), joined("stack", (4, 4, 4), 0),
    Case("permute_copy", ops.permute_copy, lambda m: (m.array(3, 4, 5, 2), (2, 0, -1, 1)), torch.permute_copy,
         libraries=EVERYWHERE),
    Case("transpose_copy", ops.transpose_copy, lambda m: (m.array(3, 4, 5), 0, -1), torch.transpose_copy, INTEGERS,
         has_gradient=False),
    Case("cat types", lambda x, i: ops.cat([x, i]), lambda m: (m.array(3), m.indices(9, 4)),
         lambda x, i: torch.cat([x, i]), libraries=("torch",)),
    joined("stack", (4, 4), -1),
    Case("cat five", lambda *each: ops.cat(each, 1), lambda m: [m.array(3, size) for size in (2, 5, 1, 0, 3, 4)],
         lambda *each: torch.cat(each, 1), libraries=EVERYWHERE),
    Case("permute five", ops.permute_copy, lambda m: (m.array(2, 3, 2, 3, 2), (4, 2, 0, 3, 1)), torch.permute_copy,
         libraries=EVERYWHERE),
]  # fmt: skip
