# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generated kernels on an NVIDIA GPU: `python -m tessera.testing.fuzz --target cuda` runs more."""

from __future__ import annotations

import pytest

from tessera.testing.fuzz import check, generate

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("seed", range(40))
def test_targets_agree(seed):
    check(generate(seed, "cuda"), "cuda")


@pytest.mark.parametrize("seed", [*range(1000, 1020), 6001831, 5004959, 6002793])
def test_targets_agree_on_memory(seed):
    """The last ones were taken wrongly by ptxas and by LLVM, which the simulator does not run."""
    check(generate(seed, "cuda", "both"), "cuda")
