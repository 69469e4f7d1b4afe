# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each test has results of its own on disk, and is not told of progress."""

from __future__ import annotations

import pathlib
from typing import Iterator

import pytest

from tessera.settings import settings


@pytest.fixture(autouse=True)
def own_results(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    folder = tmp_path / "cache"
    with settings.override(cache_dir=str(folder), tune_progress="off"):
        yield folder
