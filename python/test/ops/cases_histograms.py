# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of counts, of places in sorted lines, and of runs."""

from __future__ import annotations

from typing import Any

import torch

from tessera import ops

from .scheme import FLOATS, INTEGERS, Case, Maker

EVERYWHERE = ("torch", "numpy", "jax")


def counted(m: Maker, limit: int, size: int) -> torch.Tensor:
    return m.indices(limit, size, dtype=m.dtype)


def between(m: Maker, *shape: int) -> torch.Tensor:
    """Numbers in the middle of eighths, so that no rounding moves one to another bin."""
    return ((m.indices(48, *shape).double() - 24) / 8 + 1 / 16).to(m.dtype)


def runs(m: Maker, *shape: int) -> torch.Tensor:
    """Numbers most of which are equal to the one before."""
    return (m.indices(9, *shape) // 4).to(m.dtype)


def sorted_line(m: Maker, *shape: int) -> torch.Tensor:
    return m.array(*shape).detach().sort(-1)[0]


def plain(
    name: str, op: Any, make: Any, reference: Any, dtypes: Any = FLOATS, **settings: Any
) -> Case:
    return Case(name, op, make, reference, dtypes, settings, EVERYWHERE, has_gradient=False)


def by_value(x: Any, **settings: Any) -> Any:
    return torch.unique_consecutive(
        x, return_inverse=True, return_counts=True, dim=settings.get("dim")
    )


def ordered(x: Any, **settings: Any) -> Any:
    return torch.unique(x, return_inverse=True, return_counts=True, dim=settings.get("dim"))


CASES = [
    plain("bincount", ops.bincount, lambda m: (counted(m, 40, 3000),), torch.bincount, INTEGERS),
    plain("bincount more", ops.bincount, lambda m: (counted(m, 9, 50),), torch.bincount, INTEGERS, minlength=20),
    plain("bincount of integers", lambda x, w: ops.bincount(x, w), lambda m: (m.indices(7, 300), m.indices(9, 300)),
          torch.bincount, FLOATS[:1]),
    plain("bincount none", ops.bincount, lambda m: (counted(m, 9, 0),), torch.bincount, INTEGERS, minlength=3),
    plain("bincount weights", ops.bincount, lambda m: (m.indices(7, 300), m.array(300)), torch.bincount),
    plain("histc", ops.histc, lambda m: (between(m, 30, 41),), torch.histc, bins=16, min=-2, max=2),
    plain("histc all", ops.histc, lambda m: (between(m, 30, 41),), torch.histc, bins=13),
    plain("histogram", ops.histogram, lambda m: (between(m, 30, 41), 16), torch.histogram, range=(-2.0, 2.0)),
    plain("histogram all", ops.histogram, lambda m: (between(m, 30, 41), 13), torch.histogram, FLOATS[:2], density=True),
    plain("histogram edges", lambda x, e, w: ops.histogram(x, e, weight=w),
          lambda m: (between(m, 30, 41), torch.tensor([-2.0, -1.5, 0.0, 0.25, 2.0]).to(m.dtype), between(m, 30, 41)),
          lambda x, e, w: torch.histogram(x.contiguous(), e, weight=w.contiguous())),
    plain("searchsorted", ops.searchsorted, lambda m: (sorted_line(m, 100), m.array(30, 41)),
          torch.searchsorted, (*FLOATS, *INTEGERS)),
    plain("searchsorted lines", ops.searchsorted, lambda m: (sorted_line(m, 3, 9), m.array(3, 50)),
          torch.searchsorted, INTEGERS, right=True),
    plain("bucketize", ops.bucketize, lambda m: (m.array(30, 41), sorted_line(m, 64)), torch.bucketize,
          (*FLOATS, *INTEGERS), right=True),
    plain("unique_consecutive", ops.unique_consecutive, lambda m: (runs(m, 30, 41),), by_value,
          (*FLOATS, *INTEGERS), return_inverse=True, return_counts=True),
    plain("unique", ops.unique, lambda m: (runs(m, 30, 41),), ordered, (*FLOATS, *INTEGERS),
          return_inverse=True, return_counts=True),
    plain("unique none", ops.unique, lambda m: (runs(m, 0, 4),), ordered, FLOATS, return_inverse=True,
          return_counts=True),
    plain("unique_consecutive none", ops.unique_consecutive, lambda m: (runs(m, 0, 4),), by_value,
          FLOATS, return_inverse=True, return_counts=True),
    plain("unique slices", ops.unique, lambda m: (m.array(40, 3, 2, low=0, high=1),), ordered, INTEGERS,
          return_inverse=True, return_counts=True, dim=0),
    plain("unique_consecutive slices", ops.unique_consecutive, lambda m: (runs(m, 3, 41),), by_value,
          (*FLOATS, *INTEGERS), return_inverse=True, return_counts=True, dim=-1),
]  # fmt: skip
