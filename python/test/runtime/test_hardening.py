# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the libraries are to the process that loads them: their symbols, their protection, the
mappings of kernels, and what is left where memory runs out."""

from __future__ import annotations

import gc
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import tessera
import tessera._C
import tessera.language as tl

EXTENSION = tessera._C.__file__
CORE = str(pathlib.Path(EXTENSION).resolve().parent / "libtessera.so")


def said_by(program: str, *arguments: str) -> str:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"there is no {program}")
    return subprocess.run([path, *arguments], capture_output=True, text=True, check=True).stdout


def test_the_extension_exports_one_symbol() -> None:
    lines = said_by("nm", "-D", "--defined-only", EXTENSION).splitlines()
    assert [line.split()[-1] for line in lines] == ["PyInit__C"]


def test_the_core_exports_its_interface_alone() -> None:
    lines = said_by("nm", "-D", "--defined-only", CORE).splitlines()
    assert lines and all(line.split()[-1].startswith("tsr_") for line in lines)


@pytest.mark.parametrize("library", [EXTENSION, CORE])
def test_what_is_linked_is_read_only(library: str) -> None:
    """Full RELRO, and no stack that can be executed."""
    dynamic = said_by("readelf", "-dW", library)
    segments = said_by("readelf", "-lW", library)
    assert "GNU_RELRO" in segments
    assert "BIND_NOW" in dynamic or "NOW" in dynamic.split("FLAGS_1")[-1].splitlines()[0]
    stack = next(line for line in segments.splitlines() if "GNU_STACK" in line)
    assert " RW " in stack and "RWE" not in stack


def test_the_stack_is_watched() -> None:
    assert "__stack_chk_fail" in said_by("nm", "-D", "--undefined-only", EXTENSION)


@tessera.jit
def scaled(x, B: tl.constexpr):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.load(x + i) * B + 0.37 * tl.exp(tl.load(x + i)))


def count_mappings() -> int:
    with open("/proc/self/maps") as file:
        return sum(1 for _ in file)


@pytest.mark.filterwarnings("ignore")
def test_many_kernels_take_few_mappings() -> None:
    """A process may have some 65,000."""
    x = np.zeros(64, np.float32)
    with tessera.settings.override(cache="off"):
        scaled[(1,)](x, B=0.5)
        before = count_mappings()
        for number in range(40):
            scaled[(1,)](x, B=number + 0.25)
        assert count_mappings() - before <= 25
    scaled._kernels.clear()
    scaled[(1,)]  # makes the dispatcher, whose table is cleared
    if scaled._dispatcher is not None:
        scaled._dispatcher.clear()
    gc.collect()
    assert count_mappings() - before <= 25


OUT_OF_MEMORY = """
import os, resource, signal, sys
import numpy as np
import tessera, tessera.language as tl

@tessera.jit
def kernel(x, N: tl.constexpr):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.sum(tl.load(x + i), axis=0) + tl.sort(tl.load(x + i)) * N)

def launch(number):
    x = np.zeros(64, np.float32)
    kernel[(1,)](x, N=number)

size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
hangs = 0
for megabytes in (1, 2, 4, 6, 8, 12, 16, 24):
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        limit = size + (megabytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        try:
            launch(1.0)
        except MemoryError:
            pass
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        signal.alarm(60)  # ends a child that waits for ever
        try:
            launch(2.0)
        except Exception:
            pass
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    hangs += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
print("hangs:", hangs)
"""


def test_a_compilation_after_one_without_memory_does_not_wait(tmp_path: pathlib.Path) -> None:
    """LLVM is compiled without exceptions: one leaves a variable behind as being initialised."""
    (tmp_path / "program.py").write_text(OUT_OF_MEMORY)
    ended = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")],
        env={**os.environ, "TESSERA_CACHE": "off"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert ended.stdout == "hangs: 0\n", ended.stdout + ended.stderr


def test_no_program_is_taken_from_the_working_directory(tmp_path: pathlib.Path) -> None:
    """Which `python -c` and `python -m` put on the path of modules."""
    for name in ("bin/ptxas", "nvvm/libdevice/libdevice.10.bc"):
        path = tmp_path / "nvidia/cu13" / name
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/sh\nexit 1\n")
        path.chmod(0o755)
    (tmp_path / "main.py").write_text(FIND)
    for arguments in (["-c", FIND], ["-m", "main"]):
        found = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        assert "found" in found and str(tmp_path) not in found, found


FIND = (
    "from tessera.compiler import toolchain as t\n"
    "print('found', t.os.path.abspath(t.find_ptxas()), t.find_libdevice())\n"
)
