# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The held-out set of public_kernels.py: its list of kernels and their cases.

**Held out**: a person who designs a rule of the compiler must not look at the results of this set by
row. The mean and the worst ratio are for everybody.

The cases are in four files, one for each file of kernels.
"""

from __future__ import annotations

import importlib
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from public_kernels_cases import Buffers, Case, Maker  # noqa: E402

PARTS = ("matmul", "row", "sequence", "element")
PROGRAMS = 132
"""Programs of a persistent kernel, at most."""

Results = dict[str, torch.Tensor]
Parts = tuple[
    Callable[[], Buffers], Callable[[Any, Buffers], Any], Callable[[Buffers], Results], float
]
"""What makes buffers, launches a kernel on them and computes the results; and the tolerance."""
Builder = Callable[..., Parts]

KERNELS: dict[str, Callable[[Maker], Iterator[Case]]] = {}
"""The cases of each kernel."""


def cases(kind: str, full: list[tuple[Any, ...]], small: tuple[Any, ...]) -> Any:
    """Registers a function that builds the cases of the kernel with the function's name."""

    def register(build: Builder) -> Builder:
        name = build.__name__

        def family(at: Maker) -> Iterator[Case]:
            for size in at.size(full, [small]):
                make, launch, want, tolerance = build(at, *size)
                yield Case(
                    kind, f"{name} {'x'.join(map(str, size))}", make,
                    lambda own, s, launch=launch: launch(own[name], s), want, tolerance,
                )  # fmt: skip

        KERNELS[name] = family
        return build

    return register


def families() -> list[Callable[[Maker], Iterator[Case]]]:
    """The cases of all kernels, which the four files register."""
    for part in PARTS:
        importlib.import_module(f"unseen_{part}_cases")
    return list(KERNELS.values())


def words(at: Maker, *shape: int) -> torch.Tensor:
    """Random bits of an int32."""
    return torch.randint(
        -(1 << 31), (1 << 31) - 1, shape, device=at.device, dtype=torch.int64
    ).int()


def addresses(tensors: list[torch.Tensor]) -> torch.Tensor:
    """The addresses of tensors as a tensor."""
    return torch.tensor([x.data_ptr() for x in tensors], dtype=torch.int64).to(tensors[0].device)
