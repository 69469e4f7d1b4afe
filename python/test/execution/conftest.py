# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fixtures of the tests that run kernels: a target, and random numbers."""

from __future__ import annotations

import importlib.util
import pathlib
from typing import Any

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


@pytest.fixture(scope="module")
def example(request: pytest.FixtureRequest) -> Any:
    """The file of python/examples that the test module's EXAMPLE names, as a module."""
    name = request.module.EXAMPLE
    path = pathlib.Path(__file__).parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
