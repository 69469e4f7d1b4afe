# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generated kernels on an NVIDIA GPU: `python -m tessera.testing.fuzz --target cuda` runs more."""

from __future__ import annotations

import pytest

from tessera.testing.fuzz import check, generate

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("seed", range(40))
def test_targets_agree(seed):
    check(generate(seed, "cuda"), "cuda")
