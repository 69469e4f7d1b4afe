# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fixtures of the tests that run kernels: a target, and random numbers."""

from __future__ import annotations

import numpy as np
import pytest

from execution.running import TARGETS, Runner, host_has


@pytest.fixture(params=TARGETS)
def run(request: pytest.FixtureRequest) -> Runner:
    if request.param != "interpreter" and not host_has(request.param):
        pytest.skip(f"this machine has no {request.param}")
    return Runner(request.param)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
