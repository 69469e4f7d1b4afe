# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests draw the same values in any order (conftest.py seeds the global generators)."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("order", range(2))
def test_draws_are_those_of_the_name(order: int, request: pytest.FixtureRequest) -> None:
    seed = zlib.crc32(request.node.nodeid.encode())
    assert random.random() == random.Random(seed).random()
    assert np.random.rand() == np.random.RandomState(seed).rand()
    assert torch.equal(torch.rand(3), torch.rand(3, generator=torch.Generator().manual_seed(seed)))
