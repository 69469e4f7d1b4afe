# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tessera.gpu.simulate: what it says of kernels, and what it takes."""

from __future__ import annotations

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl
from tessera.errors import KernelAssertionError, LaunchError


@tessera.jit
def add_one(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


@tessera.jit
def add_one_everywhere(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + 1)


@tessera.jit
def total(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK))))


@tessera.jit
def checks(x_ptr):
    tl.device_assert(tl.load(x_ptr) == 1, "not one")


def test_values_and_statistics():
    x, out = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    run = tessera.gpu.simulate(add_one)[(4,)](x, out, 1000, BLOCK=256, num_warps=2)
    np.testing.assert_array_equal(out, x + 1)
    assert run.findings == () and run.shared == ()
    assert run.lane_operations > 32 * run.instructions / 2
    run.check()


def test_an_access_out_of_bounds_names_line_and_thread():
    x, out = np.zeros(128, np.float32), np.zeros(127, np.float32)
    run = tessera.gpu.simulate(add_one_everywhere)[(1,)](x, out, BLOCK=128)
    (finding,) = run.findings
    assert finding.kind == "out of bounds" and finding.kernel == "add_one_everywhere"
    assert finding.thread == 127 and finding.program == (0, 0, 0) and finding.count == 1
    assert finding.address == out.ctypes.data + 4 * 127
    file, line, _ = finding.location.rsplit(":", 2)
    assert file == __file__
    assert "tl.store(out_ptr + i, tl.load(x_ptr + i) + 1)" in open(file).readlines()[int(line) - 1]
    with pytest.raises(AssertionError, match="writes 4 bytes at .* in none of the launch's arrays"):
        run.check()


def test_shared_memory_is_reported_by_instruction():
    x, out = np.ones(1024, np.float32), np.zeros(1, np.float32)
    run = tessera.gpu.simulate(total)[(1,)](x, out, BLOCK=1024, num_warps=4)
    assert out[0] == 1024
    assert {access.instruction for access in run.shared} == {"store", "load"}
    assert all(access.wavefronts >= access.ideal > 0 for access in run.shared)
    assert run.findings == ()


def test_a_failed_assertion_is_an_error():
    with pytest.raises(KernelAssertionError, match="not one"):
        tessera.gpu.simulate(checks)[(1,)](np.zeros(1, np.int32), debug=True)


def test_only_gpus_are_simulated():
    x = np.zeros(128, np.float32)
    with pytest.raises(LaunchError, match="E053|simulated target"):
        tessera.gpu.simulate(add_one_everywhere)[(1,)](x, x, BLOCK=128, target="cpu")


def test_memory_that_no_argument_names():
    @tessera.jit
    def follow(addresses_ptr, out_ptr):
        pointer = tl.load(addresses_ptr).to(tl.pointer_type(tl.float32))
        tl.store(out_ptr, tl.load(pointer))

    data, out = np.full(4, 2.5, np.float32), np.zeros(1, np.float32)
    addresses = np.array([data.ctypes.data], np.int64)
    run = tessera.gpu.simulate(follow)[(1,)](addresses, out)
    assert [finding.kind for finding in run.findings] == ["out of bounds"]
    run = tessera.gpu.simulate(follow, memory=[data])[(1,)](addresses, out)
    assert run.findings == () and out[0] == 2.5
