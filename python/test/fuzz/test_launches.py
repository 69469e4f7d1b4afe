# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random launches: the warm path does what the whole path does. More of them:
`python -m tessera.testing.fuzz.launches --count 100000 --seed N`."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tessera import _C
from tessera.runtime import specialize
from tessera.testing.fuzz.launches import Counts, run

LAUNCHES = 1500


def check(counts: Counts, seed: int) -> None:
    assert not counts.findings, f"seed {seed}\n" + "\n".join(counts.findings[:3])
    # Most launches that nothing is wrong with are warm, or this would compare a path with itself.
    assert counts.warm > 0.4 * (counts.launches - counts.errors)
    assert 0.1 * counts.launches < counts.errors < 0.6 * counts.launches


def test_paths_agree():
    seed = random.randrange(10**6)
    check(run(LAUNCHES, seed), seed)


def test_paths_agree_in_threads():
    seed = random.randrange(10**6)
    check(run(LAUNCHES // 2, seed, threads=2), seed)


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch):
    """The whole path distinguishes the number 7, which the signature of the warm path does not."""

    def specialise(value: Any, on_value: bool, on_alignment: bool) -> Any:
        dtype, alignment, slot = _C.specialise_number(value, on_value, on_alignment)
        return dtype, 4 if value == 7 else alignment, slot

    class Core:
        specialise_number = staticmethod(specialise)

        def __getattr__(self, name: str) -> Any:
            return getattr(_C, name)

    monkeypatch.setattr(specialize, "_C", Core())
    # The addresses of arrays decide which launches are drawn.
    assert any(run(600, seed).findings for seed in range(1, 9))
