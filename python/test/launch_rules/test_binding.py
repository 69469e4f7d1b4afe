# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules about which value each parameter has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.errors import ArgumentError


@tessera.jit
def store(out, n, *, m=3):
    tl.store(out, n + m)


@pytest.mark.parametrize(
    "args, named, says",
    [
        ((4,), {"n": 5}, "two values for `n`"),
        ((4, 5), {}, "by place"),
        ((4, 5), {"m": 6}, "by place"),
        ((), {}, "without `n`"),
        ((4,), {"unknown": 5}, "unknown keyword argument `unknown`"),
    ],
)
def test_mistakes(args: Any, named: dict[str, Any], says: str) -> None:
    fresh = tessera.jit(store.fn)
    out = np.zeros(1, np.int32)
    for _ in range(3):
        out[:] = 0
        with pytest.raises((ArgumentError, tessera.LaunchError), match=says):
            fresh[(1,)](out, *args, **named)
        assert out[0] == 0
        fresh[(1,)](out, 4)
        fresh[(1,)](out, 4, m=5)
        assert out[0] == 9


def test_a_value_that_a_heuristic_has_too() -> None:
    kernel = tessera.heuristics({"m": lambda args: 3, "n": lambda args: 4})(store)
    out = np.zeros(1, np.int32)
    for _ in range(3):
        with pytest.raises(ArgumentError, match="two values for `n`"):
            kernel[(1,)](out, 5)
        kernel[(1,)](out)
        assert out[0] == 7
