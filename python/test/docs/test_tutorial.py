# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tutorial's scripts run as a reader runs them, and their kernels are right on a simulated GPU."""

from __future__ import annotations

import os
import pathlib
import re
import runpy
import subprocess
import sys

import numpy as np
import pytest

import tessera.gpu

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "tutorial"
LINES = {
    "01_vector_add": ["vector addition", "vector addition"],
    "02_softmax": ["softmax", "softmax of long rows"],
    "03_matmul": ["matmul", "matmul with ReLU"],
    "04_attention": ["attention", "causal attention"],
}
PLOTS = {
    "01_vector_add": ("vector-add", 6),
    "02_softmax": ("softmax", 5),
    "03_matmul": ("matmul", 4),
    "04_attention": ("attention", 3),
}


def test_no_script_is_left_out():
    assert sorted(LINES) == sorted(path.stem for path in FOLDER.glob("[0-9]*.py"))


def has_gpu() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


@pytest.mark.parametrize("name", LINES)
def test_it_runs_on_cpu_or_gpu(name, tmp_path):
    result = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py", "--plots", tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, "TESSERA_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    found = re.findall(r"^([\w ]+): right (?:on|in) ", result.stdout, re.MULTILINE)
    assert found == LINES[name]
    assert ("right on the CPU" in result.stdout) != has_gpu()
    plot, points = PLOTS[name]
    table = (tmp_path / f"{plot}.csv").read_text().splitlines()
    assert len(table) == 1 + points
    assert all(float(speed) > 0 for row in table[1:] for speed in row.split(",")[-2:])


@pytest.fixture(scope="module")
def step():
    """The names of a script, which is run once more for them."""

    def names(name):
        before = sys.argv, sys.path[:]
        sys.argv = [str(FOLDER / f"{name}.py")]
        sys.path.insert(0, str(FOLDER))
        try:
            return runpy.run_path(sys.argv[0])
        finally:
            sys.argv, sys.path[:] = before

    return names


def numbers(*shape, dtype=np.float32):
    return np.random.default_rng(1).standard_normal(shape, dtype=np.float32).astype(dtype)


def simulated(kernel, grid, *arguments, target, **parameters):
    tessera.gpu.simulate(kernel)[grid](*arguments, target=target, **parameters).check()


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
class TestOnASimulatedGPU:
    def test_vector_add(self, step, target):
        x, out = numbers(300), np.full(300, np.nan, np.float32)
        kernel = step("01_vector_add")["add_kernel"]
        simulated(kernel, (3,), x, x, out, 300, BLOCK=128, target=target)
        np.testing.assert_array_equal(out, x + x)

    def test_softmax(self, step, target):
        names = step("02_softmax")
        x = numbers(3, 200)
        for kernel, block in ((names["softmax_kernel"], 256), (names["long_softmax_kernel"], 64)):
            out = np.full_like(x, np.nan)
            simulated(kernel, (3,), x, out, 200, 200, BLOCK=block, target=target)
            np.testing.assert_allclose(out, names["reference"](x.astype(np.float64)), atol=1e-6)

    def test_matmul(self, step, target):
        a, b = numbers(70, 72, dtype=np.float16), numbers(72, 40, dtype=np.float16)
        c = np.full((70, 40), np.nan, np.float32)
        simulated(
            step("03_matmul")["matmul_kernel"], (2, 1), a, b, c, 70, 40, 72, 72, 40, 40,
            BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, RELU=True, target=target,
        )  # fmt: skip
        expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)
        np.testing.assert_allclose(c, expected, atol=1e-4)

    def test_attention(self, step, target):
        names = step("04_attention")
        q, k, v = numbers(3, 2, 100, 64, dtype=np.float16)
        for causal in (False, True):
            out = np.full(q.shape, np.nan, np.float32)
            simulated(
                names["attention_kernel"].fn, (2, 2), q, k, v, out, 100, 0.125,
                HEAD=64, CAUSAL=causal, BLOCK_M=64, BLOCK_N=64, target=target,
            )  # fmt: skip
            expected = names["reference"](*(x.astype(np.float64) for x in (q, k, v)), causal)
            np.testing.assert_allclose(out, expected, atol=2e-3)
