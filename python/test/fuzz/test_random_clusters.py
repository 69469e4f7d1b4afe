# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Of random kernels of clusters, the simulator finds each wait that is missing, and no other."""

import os
import subprocess

import numpy as np
import pytest
from .random_clusters import make_kernel

import tessera

SEEDS = 6


def simulate(text: str, words: int) -> "tuple[np.ndarray, int, str]":
    """What the kernel stores, with how many seeds something was found, and what."""
    package = os.path.dirname(tessera.__file__)
    build = os.path.dirname(os.path.dirname(os.path.realpath(f"{package}/libtessera.so")))
    tool = os.path.join(build, "bin", "tessera-simulate")
    if not os.path.exists(tool):
        pytest.skip("tessera-simulate is not built")
    run = subprocess.run(
        [tool, "--seeds", str(SEEDS), "--arg", f"i32:{words}", "-"],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not run.stderr, run.stderr
    lines = run.stdout.strip().split("\n")
    stored = np.array([int(word) for word in lines[0].split("=")[1].split(",")], np.int32)
    return stored, int(lines[-1].split(" of ")[0]), "\n".join(lines[1:])


@pytest.mark.parametrize("seed", range(20))
def test_each_missing_wait_is_found(seed):
    kernel = make_kernel(seed)
    stored, found, findings = simulate(kernel.text, kernel.result.size)
    assert found == 0, f"{findings}\n{kernel.text}"
    np.testing.assert_array_equal(stored, kernel.result)
    for wait in kernel.waits:
        _, found, findings = simulate(kernel.without(wait), kernel.result.size)
        assert found == SEEDS, f"without {wait}:\n{findings}\n{kernel.text}"
