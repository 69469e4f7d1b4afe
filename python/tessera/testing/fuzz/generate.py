# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a seed to a kernel."""

from __future__ import annotations

import random

from tessera.testing.fuzz.language import generate_language
from tessera.testing.fuzz.memory import generate_memory
from tessera.testing.fuzz.program import Program
from tessera.testing.fuzz.sums import generate_sums
from tessera.testing.fuzz.values import generate_values

KINDS = ("values", "memory", "language", "sums")
_SETS = {"both": ("values", "memory"), "all": KINDS}


def generate(seed: int, target: str = "", kind: str = "values") -> Program:
    """The kernel of a seed; the same one on every machine.

    Its `kind` is "values" (expressions of all operations), "memory" (places, masks, order; see
    memory.py), "language" (classes, descriptors, tuples, maps, libdevice; see language.py), "sums"
    (sums of dots, and who does them; see sums.py), "both" (one of the first two, by the seed) or
    "all" (one of all kinds). For "cuda" and "simulator"
    float32 quotients are asked to be rounded, which `/` is not on a GPU.
    """
    if kind in _SETS:
        kind = random.Random(f"kind {seed}").choice(_SETS[kind])
    if kind == "memory":
        return generate_memory(seed)
    if kind == "sums":
        return generate_sums(seed)
    rounded = any(name in target for name in ("cuda", "simulator"))
    return (generate_language if kind == "language" else generate_values)(seed, rounded)
