# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fixture of the language's tests."""

from __future__ import annotations

import pytest

from language.building import Build, builder


@pytest.fixture
def build() -> Build:
    """`build("x + 1", "x = tl.arange(0, 8)")`: the last expression, after some statements."""
    return builder()
