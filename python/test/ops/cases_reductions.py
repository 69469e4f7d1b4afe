# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of reductions, scans and sorting."""

from __future__ import annotations

from typing import Any

import torch

from tessera import ops

from .scheme import FLOATS, INTEGERS, Case, Maker

EVERYWHERE = ("torch", "numpy", "jax")
DIMS: Any = (None, 1, (0, 2), -1)


def along(name: str, make: Any, reference: Any = None, dims: Any = DIMS, **more: Any) -> list[Case]:
    """A case for each choice of dimensions."""
    found = []
    for number, dim in enumerate(dims):
        settings = {"keepdim": bool(number % 2), **more.get("settings", {})}
        rest = {key: value for key, value in more.items() if key != "settings"}
        found.append(
            Case(f"{name} {dim}", lambda x, dim=dim, **s: getattr(ops, name)(x, dim, **s), make,
                 lambda x, dim=dim, **s: (reference or getattr(torch, name))(x, dim, **s),
                 settings=settings, **rest)
        )  # fmt: skip
    return found


def cube(m: Maker) -> Any:
    return (m.array(3, 17, 5),)


CASES = [
    *along("sum", cube, libraries=EVERYWHERE),
    *along("mean", cube, libraries=EVERYWHERE),
    *along("sum", cube, dtypes=(torch.int64, torch.uint8), has_gradient=False, dims=(1,)),
    *along("amax", lambda m: (m.distinct(3, 17, 5),), torch.amax, dims=(1, (0, 2)), libraries=EVERYWHERE),
    *along("amin", lambda m: (m.distinct(3, 17, 5),), torch.amin, dims=(1, (0, 2))),
    *along("amax", cube, torch.amax, dims=((0, 1, 2),), dtypes=INTEGERS, has_gradient=False),
    *along("any", lambda m: (m.array(3, 2, 5, low=-0.5, high=1.0),), dims=(1, (0, 2)), dtypes=INTEGERS,
           has_gradient=False),
    *along("all", lambda m: (m.array(3, 2, 5, low=0.0, high=2.0),), dims=(1, (0, 2)), dtypes=INTEGERS,
           has_gradient=False),
    *along("var", cube, libraries=EVERYWHERE),
    *along("std", cube, dims=(1, (0, 2)), settings={"correction": 0}),
    *along("var_mean", cube, dims=(1, (0, 2))),
    *along("logsumexp", cube, dims=(1, (0, 2), -1), libraries=EVERYWHERE),
    *[
        Case(f"norm {p}", lambda x, p=p, **s: ops.vector_norm(x, p, **s), cube,
             lambda x, p=p, **s: torch.linalg.vector_norm(x, p, **s), settings={"dim": (0, 2)},
             has_gradient=p not in (0, float("-inf"), float("inf")))
        for p in (2, 1, 0, 3, float("inf"), float("-inf"), 0.5)
    ],
    Case("prod", ops.prod, lambda m: (m.array(3, 7, 5, low=0.5, high=1.5), 1), torch.prod, tolerance=3),
    Case("sum of one", ops.sum, lambda m: (m.array(),), torch.sum, libraries=("torch", "numpy")),
    Case("sum of none", ops.sum, lambda m: (m.array(0, 3), 0), torch.sum, has_gradient=False),
    Case("logsumexp of none", ops.logsumexp, lambda m: (m.array(3, 0), 1), torch.logsumexp,
         has_gradient=False, libraries=EVERYWHERE),
    Case("mean far", ops.var, lambda m: (m.array(7, 99) + 64, 1), torch.var, FLOATS[:2], tolerance=8),
    Case("argmax", ops.argmax, lambda m: (m.distinct(5, 33), 1), torch.argmax, libraries=EVERYWHERE,
         has_gradient=False),
    Case("argmax all", ops.argmax, lambda m: (m.distinct(3, 5, 7),), torch.argmax, has_gradient=False),
    Case("argmax integers", ops.argmax, lambda m: (m.array(3, 50, 7), 1), torch.argmax, INTEGERS,
         has_gradient=False),
    Case("argmin", ops.argmin, lambda m: (m.distinct(3, 50, 7), 1), torch.argmin, has_gradient=False,
         settings={"keepdim": True}),
    Case("argmin long", ops.argmin, lambda m: (m.distinct(2, 1000), -1), torch.argmin, FLOATS[:2],
         has_gradient=False),
]  # fmt: skip
