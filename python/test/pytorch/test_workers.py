# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inductor's worker processes end with the program, which does not wait for them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

PROGRAM = """
import os, sys, time
import torch
import tessera.torch
from torch._inductor import async_compile
from tessera.torch.workers import descendants

tessera.torch.activate()
x = torch.randn(64, 256)
compiled = torch.compile(lambda x: torch.softmax(x, -1), backend="tessera")
torch.testing.assert_close(compiled(x), torch.softmax(x, -1))
workers = async_compile.AsyncCompile
process = workers.process_pool().process
if sys.argv[1] == "with workers":
    workers.wait_pool_ready(timeout=600)  # On a busy machine, torch's 120 seconds are too few.
    assert len(descendants(process.pid)) >= 2
started = [process.pid, *descendants(process.pid)]
kill, killed = os.kill, []
os.kill = lambda pid, number: (killed.append(pid), kill(pid, number))
async_compile.shutdown_compile_workers()
os.kill = kill

def is_running(pid):
    try:
        state = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"

# A process that was killed still runs while its memory is released.
last = time.monotonic() + 60
while any(map(is_running, started)) and time.monotonic() < last:
    time.sleep(0.01)
print(process.returncode, [pid for pid in started if pid not in killed or is_running(pid)])
torch.testing.assert_close(torch.compile(lambda x: x + 1, backend="tessera")(x), x + 1)
"""


@pytest.mark.parametrize("when", ["while they load torch", "with workers"])
def test_the_end_waits_for_no_worker(tmp_path, when):
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    ended = subprocess.run(
        [sys.executable, str(script), when],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
            "TORCHINDUCTOR_COMPILE_THREADS": "2",
        },
    )
    assert ended.returncode == 0, ended.stderr
    # A process that was waited for has ended by itself, with 0.
    assert ended.stdout.splitlines() == ["-9 []"], ended.stdout + ended.stderr
