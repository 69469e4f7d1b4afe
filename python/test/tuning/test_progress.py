# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is told while a kernel is tuned: on a terminal, on a pipe, and nothing."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import textwrap
import time

import pytest

from tessera import settings
from tessera.tuning.progress import WHY_NOT_FASTEST, Progress

SCRIPT = """
    import numpy as np, tessera, tessera.language as tl
    @tessera.autotune([tessera.Config({"BLOCK": b}) for b in (16, 33, 64, 256)], key=["n"])
    @tessera.jit
    def fill(x, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + i, 1.0, mask=i < n)
    x = np.zeros(1 << 18, np.float32)
    for _ in range(2):
        fill[lambda meta: (tessera.cdiv(meta["n"], meta["BLOCK"]),)](x, 1 << 18)
    assert x.all()
    """


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT))
    return str(path)


def environment(tmp_path, **more):
    return {**os.environ, "TESSERA_CACHE_DIR": str(tmp_path / "cache"), **more}


END = r"tessera: tuning fill \(n=262144\): BLOCK=\d+ \([\d.]+ [um]s\), found in [\d.]+ s"


def test_lines_on_a_pipe(script, tmp_path):
    env = environment(tmp_path)
    env.pop("TESSERA_TUNE_PROGRESS", None)
    done = subprocess.run(
        [sys.executable, script], env=env, capture_output=True, text=True, timeout=99
    )
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines[0] == "tessera: tuning fill (n=262144): 4 configurations"
    assert re.fullmatch(END, lines[1])
    if "took" in lines[2]:  # another one has a lower time
        assert WHY_NOT_FASTEST in lines.pop(2)
    assert lines[2].startswith("  BLOCK=33: ") and "E018" in lines[2] and len(lines) == 3


def test_a_choice_that_is_not_the_fastest_is_explained(capsys):
    from tessera import Config

    with settings.override(tune_progress="plain"):
        told = Progress("k", {})
        told.end(Config({"B": 64}), 2.0, {}, (Config({"B": 32}), 1.99))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("tessera: tuning k: B=64 (2 ms), found in")
    assert lines[1] == f"  B=32 took 1.99 ms; {WHY_NOT_FASTEST}"


def test_silence(script, tmp_path):
    env = environment(tmp_path, TESSERA_TUNE_PROGRESS="off")
    done = subprocess.run(
        [sys.executable, script], env=env, capture_output=True, text=True, timeout=99
    )
    assert done.returncode == 0 and done.stderr == ""


def test_a_live_line_on_a_terminal(script, tmp_path):
    env = environment(tmp_path, TESSERA_TUNE_PROGRESS="auto")
    leader, follower = pty.openpty()
    process = subprocess.Popen([sys.executable, script], env=env, stderr=follower)
    os.close(follower)
    text, end = b"", time.monotonic() + 99
    while time.monotonic() < end:
        if select.select([leader], [], [], 1)[0]:
            try:
                part = os.read(leader, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            text += part
    assert process.wait(timeout=99) == 0
    os.close(leader)
    shown = text.decode()
    assert re.search(
        r"\r\x1b\[Ktessera: tuning fill \(n=262144\): compiled 4 of 4, 1 failed", shown
    )
    assert "configurations" not in shown
    last = shown.replace("\r\n", "\n").rpartition("\x1b[K")[2].splitlines()
    if "took" in last[1]:
        assert WHY_NOT_FASTEST in last.pop(1)
    assert re.fullmatch(END, last[0]) and last[1].startswith("  BLOCK=33: ")


def test_a_closed_stream_is_no_error(script, tmp_path):
    env = environment(tmp_path)
    code = f"import sys; sys.stderr.close(); exec(compile(open({script!r}).read(), {script!r}, 'exec'))"
    path = tmp_path / "closed.py"
    path.write_text(code)
    done = subprocess.run([sys.executable, str(path)], env=env, timeout=99)
    assert done.returncode == 0
    path.write_text(code.replace("sys.stderr.close()", "sys.stderr = None"))
    assert subprocess.run([sys.executable, str(path)], env=env, timeout=99).returncode == 0


def test_a_wrong_setting():
    import tessera

    with pytest.raises(tessera.SettingError, match="TESSERA_TUNE_PROGRESS"):
        with tessera.settings.override(tune_progress="loud"):
            pass


def test_reasons_that_are_alike_are_one_line():
    from tessera import Config
    from tessera.tuning.progress import reasons

    alike, other = ValueError("too large\nfor this"), KeyError("x")
    failures = {Config({"BLOCK": size}): alike for size in (1, 2, 4)}
    failures[Config({"BLOCK": 8})] = other
    assert reasons(failures) == [
        "BLOCK=1 and 2 others: ValueError: too large",
        "BLOCK=8: KeyError: 'x'",
    ]
