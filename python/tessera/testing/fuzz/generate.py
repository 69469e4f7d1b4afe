# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a seed to a kernel."""

from __future__ import annotations

import random
from typing import Callable

from tessera.testing.fuzz.branches import generate_branches
from tessera.testing.fuzz.flat import generate_flat
from tessera.testing.fuzz.grids import generate_grids
from tessera.testing.fuzz.hints import generate_hints
from tessera.testing.fuzz.language import generate_language
from tessera.testing.fuzz.loops import generate_loops
from tessera.testing.fuzz.machine import generate_machine
from tessera.testing.fuzz.memory import generate_memory
from tessera.testing.fuzz.program import Program
from tessera.testing.fuzz.reductions import generate_reductions
from tessera.testing.fuzz.strides import generate_strides
from tessera.testing.fuzz.sums import generate_sums
from tessera.testing.fuzz.tiles import generate_tiles
from tessera.testing.fuzz.values import generate_values
from tessera.testing.fuzz.views import generate_views

_BY_SEED: dict[str, Callable[[int], Program]] = {
    "branches": generate_branches,
    "flat": generate_flat,
    "grids": generate_grids,
    "hints": generate_hints,
    "loops": generate_loops,
    "machine": generate_machine,
    "memory": generate_memory,
    "reductions": generate_reductions,
    "strides": generate_strides,
    "sums": generate_sums,
    "tiles": generate_tiles,
    "views": generate_views,
}
KINDS = ("values", "language", *_BY_SEED)
_SETS = {"both": ("values", "memory"), "all": KINDS}


def choose_kind(seed: int, kind: str) -> str:
    """The one of `KINDS` that a seed has: `kind` itself, unless that is a set of them."""
    return random.Random(f"kind {seed}").choice(_SETS[kind]) if kind in _SETS else kind


def generate(seed: int, target: str = "", kind: str = "values") -> Program:
    """The kernel of a seed; the same one on every machine.

    `kind` is one of `KINDS`, "both" ("values" or "memory", by the seed) or "all". The module of
    its name says what kernels of a kind are about. For "cuda" and "simulator" float32 quotients
    are asked to be rounded, which `/` is not on a GPU.
    """
    kind = choose_kind(seed, kind)
    if kind in _BY_SEED:
        return _BY_SEED[kind](seed)
    rounded = any(name in target for name in ("cuda", "simulator"))
    return (generate_language if kind == "language" else generate_values)(seed, rounded)
