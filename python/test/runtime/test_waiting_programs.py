# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs on the CPU that wait for others: spin locks, and what a later program writes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tessera
import tessera.language as tl

SCRIPT = """
import sys, time
import numpy as np, tessera, tessera.language as tl

@tessera.jit
def by_atomic(flags, out):
    pid = tl.program_id(0)
    last = tl.num_programs(0) - 1
    if pid < last:
        while tl.atomic_add(flags + pid + 1, 0) == 0:
            pass
    tl.store(out + pid, pid + 1)
    tl.atomic_xchg(flags + pid, 1)

@tessera.jit
def by_volatile_load(flags, out):
    pid = tl.program_id(0)
    last = tl.num_programs(0) - 1
    if pid < last:
        seen = tl.load(flags + pid + 1, volatile=True)
        while seen == 0:
            seen = tl.load(flags + pid + 1, volatile=True)
    tl.store(out + pid, pid + 1)
    tl.atomic_xchg(flags + pid, 1)

@tessera.jit
def by_poll(flags, out):
    pid = tl.program_id(0)
    if pid < tl.num_programs(0) - 1:
        tl.atomic_poll(flags + pid + 1, 1)
    tl.store(out + pid, pid + 1)
    tl.atomic_xchg(flags + pid, 1)

@tessera.jit
def by_poll_with_time(flags, out):
    pid = tl.program_id(0)
    if pid < tl.num_programs(0) - 1:
        there = tl.atomic_poll(flags + pid + 1 + tl.arange(0, 1), 1, timeout_ns=60_000_000_000)
        tl.device_assert(there)
    tl.store(out + pid, pid + 1)
    tl.atomic_xchg(flags + pid, 1)

@tessera.jit
def wait(flag):
    while tl.atomic_cas(flag, 1, 1) == 0:
        pass

@tessera.jit
def in_a_function(flags, out):
    pid = tl.program_id(0)
    if pid < tl.num_programs(0) - 1:
        wait(flags + pid + 1)
    tl.store(out + pid, pid + 1)
    tl.atomic_xchg(flags + pid, 1)

count, threads = int(sys.argv[1]), int(sys.argv[2])
for kernel in (by_atomic, by_volatile_load, by_poll, by_poll_with_time, in_a_function):
    print(kernel.__name__, flush=True)
    for _ in range(2):
        flags, out = np.zeros(count, np.int32), np.zeros(count, np.int32)
        launched = kernel[(count,)](flags, out, num_threads=threads)
        assert launched is None or launched.metadata["waits_for_programs"]
        assert np.array_equal(out, np.arange(count) + 1) and flags.all()
print("done")
"""


# Each waits for the next one, and spins: on two cores, n of them take n * n turns of the scheduler.
@pytest.mark.parametrize("count, threads", [(2, 1), (8, 2), (13, 1)])
def test_programs_that_wait_for_later_ones(tmp_path, count, threads):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT))
    ended = subprocess.run(
        [sys.executable, str(path), str(count), str(threads)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "TESSERA_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    assert ended.stdout.endswith("in_a_function\ndone\n")


@tessera.jit
def locked_sum(lock, total, x, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    part = tl.sum(tl.load(x + offsets), 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + part)
    tl.atomic_xchg(lock, 0)


@tessera.jit
def counted(x, n):
    done = 0
    while done < n:
        done += 1
    tl.atomic_add(x, done)


def test_a_spin_lock():
    x = np.arange(64 * 200, dtype=np.int64)
    for _ in range(3):
        lock, total = np.zeros(1, np.int32), np.zeros(1, np.int64)
        kernel = locked_sum[(200,)](lock, total, x, 64)
        assert total[0] == x.sum() and lock[0] == 0
    assert kernel.metadata["waits_for_programs"]


def test_other_kernels_do_not_wait():
    x = np.zeros(1, np.int32)
    kernel = counted[(10,)](x, 3)
    assert x[0] == 30 and not kernel.metadata["waits_for_programs"]
