# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Skips the tests here where there is no GPU."""

from __future__ import annotations

import pytest

from execution.on_gpu import has_gpu


@pytest.fixture(autouse=True)
def gpu() -> None:
    if not has_gpu():
        pytest.skip("there is no GPU that torch can use")
