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
    nearest = "element 127 of `out_ptr`, whose memory holds elements 0 to 126; mask the lanes"
    assert nearest in finding.text and nearest in finding.message


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


@tessera.jit
def reverse_in_place(x_ptr, out_ptr, BLOCK: tl.constexpr, BARRIER: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, i)
    if BARRIER:
        tl.debug_barrier()
    tl.store(out_ptr + i, tl.load(x_ptr + BLOCK - 1 - i))


@pytest.mark.parametrize("num_warps", [1, 4])
def test_a_load_of_what_another_lane_has_stored_needs_a_barrier(num_warps):
    n = 32 * num_warps  # an element a thread, so that the compiler has no barrier to put there
    for seed in range(3):
        x, out = np.full(n, -1, np.int32), np.empty(n, np.int32)
        simulated = tessera.gpu.simulate(reverse_in_place, seed=seed)
        run = simulated[(1,)](x, out, BLOCK=n, BARRIER=False, num_warps=num_warps)
        # By the load, or by the store where that came last, or by both.
        assert run.findings
        for finding in run.findings:
            assert finding.kind == "race" and finding.array == "x_ptr"
            assert 0 <= finding.element < n and ": no barrier" in finding.message
        x.fill(-1)
        simulated[(1,)](x, out, BLOCK=n, BARRIER=True, num_warps=num_warps).check()
        np.testing.assert_array_equal(out, np.arange(n)[::-1])


def test_a_race_names_both_lines_and_the_element():
    x, out = np.full(32, -1, np.int32), np.empty(32, np.int32)
    simulated = tessera.gpu.simulate(reverse_in_place)
    (finding,) = simulated[(1,)](x, out, BLOCK=32, BARRIER=False, num_warps=1).findings
    lines = open(__file__).readlines()
    _, line, _ = finding.location.rsplit(":", 2)
    assert "tl.load(x_ptr + BLOCK - 1 - i)" in lines[int(line) - 1]
    assert finding.array == "x_ptr" and f"element {finding.element} of 'x_ptr'" in finding.message
    other = finding.message.split(f"{__file__}:")[1].split(":")[0]
    assert "tl.store(x_ptr + i, i)" in lines[int(other) - 1]


@tessera.jit
def count_and_spread(count_ptr, out_ptr):
    before = tl.load(count_ptr)
    tl.store(count_ptr, before + 1)
    after = tl.load(count_ptr)
    i = tl.arange(0, 128)
    tl.store(out_ptr + i, before * 1000 + after + i)


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_a_lane_is_kept_between_threads(seed):
    count, out = np.full(1, 5, np.int32), np.empty(128, np.int32)
    tessera.gpu.simulate(count_and_spread, seed=seed)[(1,)](count, out).check()
    np.testing.assert_array_equal(out, 5006 + np.arange(128))


@tessera.jit
def add_up(x_ptr, sum_ptr, ATOMIC: tl.constexpr):
    value = tl.load(x_ptr + tl.program_id(0))
    if ATOMIC:
        tl.atomic_add(sum_ptr, value)
    else:
        tl.store(sum_ptr, tl.load(sum_ptr) + value)


def test_programs_are_ordered_by_atomics_alone():
    x = np.arange(1, 9, dtype=np.int32)
    total = np.zeros(1, np.int32)
    run = tessera.gpu.simulate(add_up)[(8,)](x, total, ATOMIC=False, num_warps=1)
    assert {finding.kind for finding in run.findings} == {"race"}
    assert any("nothing orders the two programs" in finding.message for finding in run.findings)
    total[0] = 0
    tessera.gpu.simulate(add_up)[(8,)](x, total, ATOMIC=True, num_warps=1).check()
    assert total[0] == 36


@tessera.jit
def last_one_sums(x_ptr, parts_ptr, count_ptr, out_ptr, N: tl.constexpr, SEM: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(parts_ptr + pid, tl.sum(tl.load(x_ptr + pid * 32 + tl.arange(0, 32))))
    if tl.atomic_add(count_ptr, 1, sem=SEM) == N - 1:
        tl.store(out_ptr, tl.sum(tl.load(parts_ptr + tl.arange(0, N))))


@pytest.mark.parametrize("seed", range(4))
def test_the_last_program_reads_what_all_others_have_released(seed):
    x = np.arange(256, dtype=np.int32)
    parts, count, out = np.zeros(8, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    simulated = tessera.gpu.simulate(last_one_sums, seed=seed)
    simulated[(8,)](x, parts, count, out, N=8, SEM="acq_rel").check()
    assert out[0] == x.sum()
    count[0], parts[:] = 0, 0
    run = simulated[(8,)](x, parts, count, out, N=8, SEM="relaxed")
    assert [finding.array for finding in run.findings] == ["parts_ptr"]


def test_arrays_that_hold_nothing_yet():
    x, out = np.empty(128, np.float32), np.empty(128, np.float32)
    run = tessera.gpu.simulate(add_one_everywhere, unwritten=[x, out])[(1,)](x, out, BLOCK=128)
    (finding,) = run.findings
    assert finding.kind == "uninitialised" and finding.array == "x_ptr"
    assert 0 <= finding.element < 128 and finding.count == 128
    tessera.gpu.simulate(add_one_everywhere, unwritten=[out])[(1,)](x, out, BLOCK=128).check()


def test_views_of_one_array_are_named_by_argument():
    @tessera.jit
    def copy(from_ptr, to_ptr):
        i = tl.arange(0, 64)
        tl.store(to_ptr + i, tl.load(from_ptr + i))

    x = np.arange(80, dtype=np.int32)
    run = tessera.gpu.simulate(copy)[(1,)](x[:64], x[16:], num_warps=2)
    assert run.findings and all(item.kind == "race" for item in run.findings)
    assert {item.array for item in run.findings} <= {"from_ptr", "to_ptr"}


@tessera.jit
def double_in_place(x_ptr, out_ptr, at, BLOCK: tl.constexpr):
    chosen = tl.load(x_ptr + at)
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i) * 2)
    tl.store(out_ptr, chosen)


def test_a_race_names_the_read_of_other_lanes():
    x, out = np.arange(1, 65, dtype=np.float32), np.zeros(1, np.float32)
    run = tessera.gpu.simulate(double_in_place)[(1,)](x, out, 37, BLOCK=64, num_warps=1)
    (finding,) = run.findings
    # The lane that writes has read the element itself, after all lanes had.
    lines = open(__file__).read().splitlines()
    (line,) = [
        number for number, text in enumerate(lines, 1) if text.endswith("tl.load(x_ptr + at)")
    ]
    assert finding.kind == "race" and f"warp 0 read at {__file__}:{line}:" in finding.text


def test_global_memory_may_go_unwatched():
    x, out = np.full(32, -1, np.int32), np.empty(32, np.int32)
    simulated = tessera.gpu.simulate(reverse_in_place, races=False)
    simulated[(1,)](x, out, BLOCK=32, BARRIER=False, num_warps=1).check()


@pytest.mark.parametrize("copies", ["early", "late", "random"])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_when_copies_arrive_makes_no_difference(copies, target):
    @tessera.jit
    def matmul(a_ptr, b_ptr, c_ptr, K):
        m, n, k = tl.arange(0, 64), tl.arange(0, 64), tl.arange(0, 32)
        total = tl.zeros((64, 64), tl.float32)
        for at in range(0, K, 32):
            a = tl.load(a_ptr + m[:, None] * K + (at + k)[None, :])
            b = tl.load(b_ptr + (at + k)[:, None] * 64 + n[None, :])
            total = tl.dot(a, b, total)
        tl.store(c_ptr + m[:, None] * 64 + n[None, :], total)

    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (64, 128)).astype(np.float16)
    b = rng.integers(-3, 4, (128, 64)).astype(np.float16)
    c = np.empty((64, 64), np.float32)
    run = tessera.gpu.simulate(matmul, copies=copies, unwritten=[c])[(1,)](
        a, b, c, 128, target=target, num_stages=3
    )
    run.check()
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_times_of_copies_are_three():
    with pytest.raises(ValueError, match="'random', 'early', 'late', not 'never'"):
        tessera.gpu.simulate(add_one, copies="never")


def test_inline_assembly_may_ask_for_the_block():
    @tessera.jit
    def blocks(out_ptr):
        pid = tl.inline_asm_elementwise(
            "mov.u32 $0, %ctaid.x;", "=r,r", [0], dtype=tl.int32, is_pure=False, pack=1
        )
        tl.store(out_ptr + tl.program_id(0), pid)

    out = np.full(4, -1, np.int32)
    tessera.gpu.simulate(blocks)[(4,)](out, num_warps=1).check()
    np.testing.assert_array_equal(out, np.arange(4))


@tessera.jit
def long_product(a_ptr, b_ptr, out_ptr, n):
    i, k = tl.arange(0, 16), tl.arange(0, 32)
    total = tl.zeros((16, 16), tl.float32)
    for at in range(0, n):
        a = tl.load(a_ptr + i[:, None] * 32 * n + (at * 32 + k)[None, :])
        b = tl.load(b_ptr + (at * 32 + k)[:, None] * 16 + i[None, :])
        total = tl.dot(a, b, total)
    out_ptr += tl.program_id(0) * 256
    tl.store(out_ptr + i[:, None] * 16 + i[None, :], total)


@pytest.mark.parametrize("multiprocessors, blocks", ((0, 1), (3, 1), (4, 2), (132, 4)))
def test_a_launch_divides_what_leaves_multiprocessors_idle(multiprocessors, blocks):
    n = 64
    a, b = np.ones((16, 32 * n), np.float16), np.ones((32 * n, 16), np.float16)
    out = np.zeros((2, 16, 16), np.float32)
    simulated = tessera.gpu.simulate(long_product, multiprocessors=multiprocessors)
    run = simulated[(2,)](a, b, out, n)
    run.check()
    assert run.division == ((blocks, True) if blocks > 1 else None)
    assert (out == 32 * n).all()
    # Not where the launch asks for something.
    assert simulated[(2,)](a, b, out, n, split_k=False).division is None
