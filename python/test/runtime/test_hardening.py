# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the libraries are to the process that loads them: their symbols, their protection, the
mappings of kernels, and what is left where memory runs out."""

from __future__ import annotations

import ast
import gc
import json
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
import tessera.locks
from tessera.compiler.toolchain import find_ptxas

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
    # gdb looks for two symbols by name (lib/Target/Host/ShownCode.cpp).
    for_gdb = {"__jit_debug_register_code", "__jit_debug_descriptor"}
    names = {line.split()[-1] for line in lines}
    assert names > for_gdb and all(name.startswith("tsr_") for name in names - for_gdb)


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
import json, os, resource, signal, sys
import numpy as np
import tessera, tessera.language as tl

target, state, size = sys.argv[1], sys.argv[2], int(sys.argv[3])

@tessera.jit
def kernel(x, N: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, 64)
    value = tl.sum(tl.load(x + i), axis=0) + tl.sort(tl.load(x + i)) * N
    for j in tl.static_range(SIZE):
        value += tl.exp(tl.load(x + i + j))
    tl.store(x + i, value)

def compile(number):
    if target != "cpu":
        options = dict(constexprs={"N": number, "SIZE": size}, target=target)
        assert tessera.compile(kernel, "*fp32", **options).asm["cubin"]
        return
    x = np.zeros(64 + size, np.float32)
    kernel[(1,)](x, N=number, SIZE=size)
    assert abs(x[0] - size) < 1e-3, x[0]

def attempt(number):
    try:
        compile(number)
    except MemoryError as error:
        # Python has none of its own, either.
        assert not str(error) or ("limited to" in str(error) and "ulimit -v" in str(error)), error
        return "no memory"
    return "fine"

if state == "warm":
    compile(3.0)
ends = []
for megabytes in map(float, sys.argv[4:]):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(100)  # ends a child that waits for ever
        if state == "warm":
            compile(4.0)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        limit = used + int(megabytes * (1 << 20))
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        try:
            said = attempt(1.0)
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
            said += ", then " + attempt(2.0)
        except BaseException as error:
            said = repr(error)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    said = open(reading).read()
    status = os.waitpid(child, 0)[1]
    signalled = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else ""
    ends.append((megabytes, signalled or said))
print(json.dumps(ends))
"""

# Up to where it is enough: the last one each time. Between, they are no multiples of anything.
LIMITS = "0 0.1 0.3 0.5 0.8 1.5 2.2 3 5 9 14 18.5 23 25 30 33 34.5 37 41 45.5 50 54 58.5 63 68 72.5 76 79.5 84 400"
FEW_LIMITS = "1 7 15 22 33 36 48 52 57 66 71 75 400"


@pytest.mark.parametrize(
    ("target", "state", "size", "limits"),
    [
        ("cpu", "cold", 0, LIMITS),
        ("cpu", "warm", 0, FEW_LIMITS),
        ("cpu", "cold", 40, FEW_LIMITS + " 1200"),
        ("sm_80", "cold", 0, FEW_LIMITS),
        ("sm_80", "warm", 0, FEW_LIMITS),
    ],
    ids=lambda value: str(value) if len(str(value)) < 8 else "limits",
)
def test_an_address_space_too_small_for_a_compilation(
    tmp_path: pathlib.Path, target: str, state: str, size: int, limits: str
) -> None:
    """It works, or is a MemoryError, and the next one works: LLVM aborts where it gets no memory,
    and what an exception leaves behind that has gone through LLVM has to be waited for for ever."""
    if target != "cpu" and not find_ptxas():
        pytest.skip("there is no ptxas")
    (tmp_path / "program.py").write_text(OUT_OF_MEMORY)
    ended = subprocess.run(
        [sys.executable, str(tmp_path / "program.py"), target, state, str(size), *limits.split()],
        env={**os.environ, "TESSERA_CACHE": "off"},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert ended.returncode == 0, ended.stderr
    ends = json.loads(ended.stdout)
    expected = ("fine, then fine", "no memory, then fine")
    assert [end for end in ends if end[1] not in expected] == []
    assert ends[-1][1] == expected[0]
    assert state == "warm" or ends[0][1] == expected[1]


# In what CPython's parser and compiler disguise a lack of memory. Python has compiled the text of a
# kernel before, so that its failures are about nothing else.
DISGUISES = [
    SystemError("<built-in function compile> returned NULL without setting an exception"),
    ValueError("field 'target' is required for AnnAssign"),
    TypeError('required field "lineno" missing from expr'),
    IndexError("pop from empty list"),
    MemoryError(),
]


@pytest.mark.parametrize("disguise", DISGUISES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("name", ["parse", "compile"])
def test_compilers_of_python_that_do_not_say_what_they_lack(monkeypatch, name, disguise) -> None:
    def fail(*_, **__):
        raise disguise

    def kernel(x, N: tl.constexpr):
        tl.store(x + tl.arange(0, N), 1.0)

    if name == "compile" and isinstance(disguise, IndexError):
        return  # which is no error of a compiler that has a tree
    # `compile` is asked whether the file still has the text of the function.
    where = (tessera.locks.ast, name) if name == "parse" else (tessera.locks, name)
    with monkeypatch.context() as patch:
        patch.setattr(*where, fail, raising=False)
        with pytest.raises(MemoryError):
            tessera.compile(tessera.jit(kernel), "*fp32, 16", target="cpu")
    tessera.compile(tessera.jit(kernel), "*fp32, 16", target="cpu")


def test_a_syntax_error_that_does_not_come_twice(monkeypatch) -> None:
    """CPython's parser also takes a lack of memory for a mistake in the text."""

    def kernel(x, N: tl.constexpr):
        tl.store(x + tl.arange(0, N), 1.0)

    parse, calls = ast.parse, []

    def fail_once(text):
        calls.append(text)
        if len(calls) == 1:
            raise SyntaxError("invalid syntax")
        return parse(text)

    monkeypatch.setattr(tessera.locks.ast, "parse", fail_once)
    tessera.compile(tessera.jit(kernel), "*fp32, 16", target="cpu")
    assert calls[0] == calls[1]
    for text in ("x = = 3", "x = '\0'", "x = '\udc80'"):
        with pytest.raises(SyntaxError):
            tessera.locks.parse(text)


FAIL_EACH_ALLOCATION = """
import _testcapi, os
import tessera.locks

text = "\\n".join([
    "def kernel(x, N: int):",
    "    i: int = x[0](3)",
    "    return lambda q: f'{q}'",
    "",
])
tessera.locks.parse(text)
ends = set()
for start in range(1, 400, 2):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = "fine"
        _testcapi.set_nomemory(start, start + 1)
        try:
            tessera.locks.parse(text)
            _testcapi.remove_mem_hooks()
        except BaseException as error:
            _testcapi.remove_mem_hooks()
            said = repr(error)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)  # CPython may end of it, too
    ends.add(said)
print(sorted(ends))
"""


def test_each_allocation_of_the_parser_may_fail(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("_testcapi")
    (tmp_path / "program.py").write_text(FAIL_EACH_ALLOCATION)
    ended = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr
    assert set(ast.literal_eval(ended.stdout)) <= {"", "fine", "MemoryError()"}


@pytest.mark.skipif(sys.platform != "linux", reason="limits address space")
def test_memory_is_asked_for_before_python_compiles() -> None:
    """Where it lacks in the middle, some versions of CPython crash."""
    program = (
        "import resource, tessera.locks as locks\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), resource.RLIM_INFINITY))\n"
        "locks.ast.parse = None\n"
        "try: locks.parse('x = 3')\n"
        "except MemoryError: print('asked')\n"
    )
    assert said_by(sys.executable, "-c", program).strip() == "asked"


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


LONG_CHAIN = """
import threading
import numpy as np
import tessera, tessera.language as tl

@tessera.jit
def kernel(x):
    i = tl.arange(0, 64)
    v = tl.load(x + i)
STATEMENTS
    tl.store(x + i, v)

def run():
    x = np.zeros(64, np.float32)
    kernel[(1,)](x)
    print("done" if (x == 3000).all() else x)

threading.stack_size(8 << 20)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


def test_a_long_chain_of_operations_fits_the_stack_of_a_thread(tmp_path: pathlib.Path) -> None:
    statements = "    v = v * 0.5\n    v = v + v + 1.0\n" * 3000
    program = tmp_path / "program.py"
    program.write_text(LONG_CHAIN.replace("STATEMENTS\n", statements))
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        env={**os.environ, "TESSERA_CACHE": "off"},
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-2000:]
