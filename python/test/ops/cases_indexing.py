# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of scans, sorting and indices."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tessera import ops

from .scheme import FLOATS, INTEGERS, Case, Maker

EVERYWHERE = ("torch", "numpy", "jax")


def scans(name: str, **bounds: float) -> list[Case]:
    return [
        Case(f"{name} {dim}", getattr(ops, name), lambda m, dim=dim: (m.array(3, 37, 4, **bounds), dim),
             getattr(torch, name), libraries=EVERYWHERE, tolerance=4)
        for dim in (1, -1)
    ] + [
        Case(f"{name} long", getattr(ops, name), lambda m: (m.array(2, 2500, **bounds), 1),
             getattr(torch, name), FLOATS[:2], tolerance=20)
    ]  # fmt: skip


def zeros_in(m: Maker) -> Any:
    x = m.array(4, 9, low=0.5, high=1.5)
    x[1, 3] = x[2, 0] = x[2, 7] = x[3, 8] = 0
    return x, 1


def extremes(name: str) -> list[Case]:
    return [
        Case(name, getattr(ops, name), lambda m: (m.distinct(3, 21, 4), 1), getattr(torch, name),
             libraries=EVERYWHERE),
        Case(f"{name} integers", getattr(ops, name), lambda m: (m.array(3, 300), 1), getattr(torch, name),
             INTEGERS, has_gradient=False),
    ]  # fmt: skip


def indexed(m: Maker, *shape: int, limit: int) -> Any:
    return m.indices(limit, *shape, dtype=torch.int64)


def in_order(x: Any, dim: int = -1, descending: bool = False) -> Any:
    return torch.sort(x, dim=dim, descending=descending, stable=True)


def bags(x: Any, weight: Any, offsets: Any = None, **named: Any) -> Any:
    return F.embedding_bag(x, weight, offsets, **named)


def segments(data: Any, reduce: str, offsets: Any) -> Any:
    return torch.segment_reduce(data, reduce, offsets=offsets, axis=0)


OFFSETS = torch.tensor([0, 3, 3, 9])

CASES = [
    *scans("cumsum"), *scans("cumprod", low=0.9, high=1.1), *scans("logcumsumexp"),
    Case("cumsum integers", ops.cumsum, lambda m: (m.array(3, 9), 1), torch.cumsum, INTEGERS,
         has_gradient=False),
    Case("cumprod zeros", ops.cumprod, zeros_in, torch.cumprod),
    Case("cumsum empty", ops.cumsum, lambda m: (m.array(0, 9), 1), torch.cumsum),
    *extremes("cummax"), *extremes("cummin"),
    Case("sort", ops.sort, lambda m: (m.distinct(3, 21, 4), 1), in_order, libraries=EVERYWHERE),
    Case("sort down", ops.sort, lambda m: (m.array(5, 100), -1), in_order,
         settings={"descending": True}),
    Case("sort integers", ops.sort, lambda m: (m.array(3, 100),), in_order, INTEGERS,
         has_gradient=False),
    Case("argsort", ops.argsort, lambda m: (m.array(3, 33),),
         lambda x: torch.argsort(x, stable=True), has_gradient=False),
    Case("topk", ops.topk, lambda m: (m.distinct(3, 50), 5), torch.topk, libraries=EVERYWHERE),
    Case("topk least", ops.topk, lambda m: (m.distinct(3, 9, 4), 4, 1), torch.topk,
         settings={"largest": False}),
    Case("gather", ops.gather, lambda m: (m.array(3, 9, 4), 1, indexed(m, 3, 5, 4, limit=9)), torch.gather,
         libraries=EVERYWHERE),
    Case("gather part", ops.gather, lambda m: (m.array(3, 9, 4), -1, indexed(m, 2, 5, 7, limit=4)),
         torch.gather),
    Case("gather integers", ops.gather, lambda m: (m.array(9), 0, indexed(m, 20, limit=9)), torch.gather,
         INTEGERS, has_gradient=False),
    Case("scatter_add", ops.scatter_add,
         lambda m: (m.array(3, 9, 4), 1, indexed(m, 3, 5, 4, limit=9), m.array(3, 5, 4)), torch.scatter_add),
    Case("scatter_add part", ops.scatter_add,
         lambda m: (m.array(3, 9, 4), 0, indexed(m, 5, 7, 2, limit=3), m.array(6, 8, 3)), torch.scatter_add,
         has_gradient=False),
    Case("scatter_add integers", ops.scatter_add,
         lambda m: (m.array(3, 9), 1, indexed(m, 3, 5, limit=9), m.array(3, 5)), torch.scatter_add,
         INTEGERS[:2], has_gradient=False),
    *[
        Case(f"scatter {kind} {own}", ops.scatter_reduce,
             lambda m, k=kind: (m.distinct(3, 9), 1, indexed(m, 3, 20, limit=6), m.array(3, 20), k),
             torch.scatter_reduce, settings={"include_self": own}, has_gradient=kind in ("sum", "mean"))
        for kind in ("sum", "mean", "amax", "amin") for own in (True, False)
    ],
    Case("index_select", ops.index_select, lambda m: (m.array(3, 9, 4), 1, indexed(m, 20, limit=9)),
         torch.index_select, libraries=EVERYWHERE),
    Case("index_select last", ops.index_select, lambda m: (m.array(3, 9), -1, indexed(m, 20, limit=9)),
         torch.index_select),
    Case("index_add", ops.index_add,
         lambda m: (m.array(3, 9, 4), 1, indexed(m, 5, limit=9), m.array(3, 5, 4)), torch.index_add,
         settings={"alpha": 0.5}),
    Case("index_add integers", ops.index_add,
         lambda m: (m.array(3, 9), 0, indexed(m, 5, limit=3), m.array(5, 9)), torch.index_add,
         INTEGERS[:2], has_gradient=False),
    Case("embedding", ops.embedding, lambda m: (indexed(m, 2, 5, limit=7), m.array(7, 33)), F.embedding,
         libraries=EVERYWHERE),
    Case("embedding padding", ops.embedding, lambda m: (indexed(m, 40, limit=7), m.array(7, 3)), F.embedding,
         settings={"padding_idx": -2}),
    *[
        Case(f"embedding_bag {mode}", ops.embedding_bag,
             lambda m, end=end: (indexed(m, 9, limit=7), m.array(7, 33), OFFSETS[:end]), bags,
             settings={"mode": mode, "include_last_offset": end is None}, libraries=EVERYWHERE)
        for mode, end in (("sum", None), ("mean", -1), ("max", None))
    ],
    Case("embedding_bag weights",
         lambda x, w, scales, **named: ops.embedding_bag(x, w, per_sample_weights=scales, **named),
         lambda m: (indexed(m, 4, 3, limit=7), m.array(7, 33), m.array(4, 3)),
         lambda x, w, scales, **named: bags(x, w, per_sample_weights=scales, **named),
         settings={"mode": "sum", "padding_idx": -2}, libraries=EVERYWHERE),
    Case("embedding_bag padding", ops.embedding_bag,
         lambda m: (indexed(m, 4, 5, limit=3), m.array(3, 9)), bags, settings={"padding_idx": 1}),
    Case("embedding_bag lines", ops.embedding_bag,
         lambda m: (indexed(m, 4, 3, limit=7), m.array(7, 33)), bags, libraries=EVERYWHERE),
    *[
        Case(f"segments {kind}", ops.segment_reduce, lambda m, k=kind: (m.array(9, 3), k), segments,
             settings={"offsets": OFFSETS}, has_gradient=kind in ("sum", "mean"), libraries=EVERYWHERE)
        for kind in ("sum", "mean", "max", "min")
    ],
    Case("one_hot of the largest", ops.one_hot, lambda m: (indexed(m, 3, 4, limit=5),), F.one_hot, FLOATS[:1],
         has_gradient=False, libraries=EVERYWHERE),
    Case("one_hot", ops.one_hot, lambda m: (indexed(m, 3, 4, limit=5), 5), F.one_hot, FLOATS[:1],
         has_gradient=False, libraries=EVERYWHERE),
]  # fmt: skip
