# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What perf and gdb are told of compiled CPU kernels (TESSERA_SYMBOLS)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tessera
from tessera import settings

GDB = shutil.which("gdb")

KERNELS = """
import numpy as np, os, tessera, tessera.language as tl

@tessera.jit
def add_up(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, v + v, mask=i < n)   # LINE

x, out = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)

def run(block=64):
    kernel = add_up[(16,)](x, out, 1000, BLOCK=block)
    assert out[10] == 20
    return kernel
"""


def program(folder: Path, text: str) -> str:
    file = folder / "program.py"
    file.write_text(KERNELS + textwrap.dedent(text))
    return str(file)


def environment(folder: Path, symbols: str) -> dict[str, str]:
    package = os.path.dirname(os.path.dirname(tessera.__file__))
    more = {"TESSERA_CACHE_DIR": str(folder / "cache"), "TESSERA_SYMBOLS": symbols}
    return {**os.environ, "PYTHONPATH": package, **more}


def output(folder: Path, symbols: str, text: str) -> str:
    done = subprocess.run(
        [sys.executable, program(folder, text)],
        env=environment(folder, symbols),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- perf ---------------------------------------------------------------------------

# Prints each line of the map, and the code that is there.
SHOW_MAP = """
    import ctypes
    def show_map():
        path = f"/tmp/perf-{os.getpid()}.map"
        if not os.path.exists(path):
            print("none", flush=True)
            return
        for line in open(path):
            begin, size, name = line.split(" ", 2)
            code = ctypes.string_at(int(begin, 16), int(size, 16)).hex() if int(size, 16) else "-"
            print(name.strip(), code, flush=True)
        os.remove(path)
"""


@pytest.mark.parametrize("symbols", ["perf", "all"])
def test_the_map_has_each_kernel_where_it_is(tmp_path: Path, symbols: str) -> None:
    text = f"""{SHOW_MAP}
    kernels = [run(64), run(128)]
    print(*[kernel._kernel.stage("object").hex() for kernel in kernels])
    show_map()
    """
    for _ in range(2):  # compiled, and read from the disk
        objects, *lines = output(tmp_path, symbols, text).splitlines()
        found = [line.split() for line in lines]
        assert [name for name, _ in found] == ["add_up", "add_up"]
        for object, (_, code) in zip(objects.split(), found):
            # The beginning has no addresses yet.
            assert len(code) > 64 and code[:32] in object


def test_nothing_is_written_unless_it_is_asked_for(tmp_path: Path) -> None:
    for symbols in ("off", "gdb"):
        assert output(tmp_path, symbols, SHOW_MAP + "\n    run(); show_map()\n") == "none\n"


def test_a_setting_that_comes_later_counts(tmp_path: Path) -> None:
    text = f"""{SHOW_MAP}
    run()
    with tessera.settings.override(symbols="perf"):
        run()
    show_map()
    """
    assert output(tmp_path, "off", text).startswith("add_up ")


def test_a_forked_child_has_a_map_of_its_own(tmp_path: Path) -> None:
    text = f"""{SHOW_MAP}
    run(64)
    if os.fork() == 0:
        run(64); run(128); show_map()
        os._exit(0)
    os.wait()
    print("parent")
    show_map()
    """
    child, parent = output(tmp_path, "perf", text).split("parent\n")
    assert [line.split()[0] for line in child.splitlines()] == ["add_up"] * 2
    assert child.startswith(parent) and len(parent.splitlines()) == 1


def test_what_another_process_left_is_dropped_and_a_link_is_not_followed(tmp_path: Path) -> None:
    text = f"""{SHOW_MAP}
    path = f"/tmp/perf-{{os.getpid()}}.map"
    if os.path.lexists(path):
        os.remove(path)
    open(path, "w").write("1000 10 old\\n")
    os.utime(path, (1, 1))
    run(64)
    show_map()
    if os.fork() == 0:
        precious = {str(tmp_path / "precious")!r}
        open(precious, "w").write("1000 10 old\\n")
        os.symlink(precious, f"/tmp/perf-{{os.getpid()}}.map")
        try:
            run(128)
        except tessera.TesseraError as error:
            print(error, flush=True)
        os.remove(f"/tmp/perf-{{os.getpid()}}.map")
        os._exit(0)
    os.wait()
    print(open({str(tmp_path / "precious")!r}).read())
    """
    first, *rest = output(tmp_path, "perf", text).splitlines()
    assert first.startswith("add_up ")
    assert "E062" in rest[0] and "TESSERA_SYMBOLS" in rest[0]
    assert rest[-2:] == ["1000 10 old", ""]


def test_lines_of_others_stay(tmp_path: Path) -> None:
    text = """
    path = f"/tmp/perf-{os.getpid()}.map"
    run(64)
    open(path, "a").write("1000 10 other\\n")
    for block in (128, 256):
        run(block)
        add_up.device_caches[0][0].clear()
    print(open(path).read())
    os.remove(path)
    """
    lines = output(tmp_path, "perf", text).split("\n")
    assert lines.count("1000 10 other") == 1
    assert sum(line.endswith(" add_up") for line in lines) >= 2


def test_perf_names_kernels(tmp_path: Path) -> None:
    perf = shutil.which("perf")
    if perf is None:
        pytest.skip("there is no perf")
    text = """
    import time
    end = time.monotonic() + 1
    while time.monotonic() < end:
        add_up[(1 << 16,)](x, out, 1000, BLOCK=64, num_threads=1)
    print(os.getpid())
    """
    data = str(tmp_path / "perf.data")
    recorded = subprocess.run(
        [perf, "record", "-e", "cpu-clock", "-o", data, sys.executable, program(tmp_path, text)],
        env=environment(tmp_path, "perf"),
        capture_output=True,
        text=True,
        timeout=300,
    )
    if recorded.returncode != 0 or not recorded.stdout.strip():
        pytest.skip("perf may not record here")
    reported = subprocess.run(
        [perf, "report", "-i", data, "--stdio"], capture_output=True, text=True, timeout=300
    )
    os.remove(f"/tmp/perf-{recorded.stdout.split()[-1]}.map")
    assert re.search(r"\[JIT\].* add_up$", reported.stdout, re.MULTILINE), reported.stdout[:3000]


def test_a_wrong_setting_is_told() -> None:
    with pytest.raises(tessera.SettingError, match="TESSERA_SYMBOLS"):
        settings.symbols = "lldb"


# --- gdb ----------------------------------------------------------------------------


def debug(folder: Path, text: str, *commands: str, symbols: str = "gdb") -> str:
    if GDB is None:
        pytest.skip("there is no gdb")
    arguments = [GDB, "-nx", "-batch", "-ex", "set breakpoint pending on"]
    for setting in ("debuginfod enabled off", "confirm off", "width 0"):
        arguments += ["-iex", f"set {setting}"]
    for command in commands:
        arguments += ["-ex", command]
    done = subprocess.run(
        [*arguments, "--args", sys.executable, program(folder, text)],
        env={**environment(folder, symbols), "TESSERA_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=500,
        stdin=subprocess.DEVNULL,
    )
    said = done.stdout + done.stderr
    if "Couldn't get registers" in said or "ptrace: Operation not permitted" in said:
        pytest.skip("gdb may not trace here")
    return said


def test_gdb_stops_in_a_kernel_by_its_name(tmp_path: Path) -> None:
    line = next(i for i, text in enumerate(KERNELS.split("\n"), 1) if "LINE" in text)
    for _ in range(2):  # compiled, and read from the disk
        said = debug(tmp_path, "\n    run()\n", "break add_up", "run", "bt", "info source")
        assert re.search(r"Breakpoint 1, .*add_up", said), said
        stopped = re.search(r"Breakpoint 1, .*program\.py:(\d+)", said)
        assert stopped and line - 4 <= int(stopped[1]) <= line, said
        # It can unwind: the launcher has called the kernel.
        assert re.search(r"#0 .*add_up.*\n#1 +0x", said), said
        assert re.search(r" in (_start|main|Py_BytesMain) \(", said), said


def test_lines_change_no_code(tmp_path: Path) -> None:
    text = """
    import struct
    def code():
        object = run()._kernel.stage("object")
        (table,) = struct.unpack_from("<Q", object, 0x28)
        size, number, _ = struct.unpack_from("<HHH", object, 0x3A)
        for index in range(number):
            _, kind, flags, _, offset, length = struct.unpack_from("<IIQQQQ", object, table + index * size)
            if kind == 1 and flags & 4:  # what can be executed
                yield object[offset : offset + length].hex(), len(object)

    ((plain, size),) = code()
    with tessera.settings.override(symbols="gdb"):
        ((with_lines, larger),) = code()
    assert plain == with_lines and larger > size
    """
    output(tmp_path, "off", text)


def test_gdb_stops_at_a_line(tmp_path: Path) -> None:
    line = next(i for i, text in enumerate(KERNELS.split("\n"), 1) if "LINE" in text)
    said = debug(tmp_path, "\n    run()\n", f"break program.py:{line}", "run", "bt 1")
    assert re.search(rf"add_up .*program\.py:{line}", said), said


def test_gdb_forgets_what_is_gone(tmp_path: Path) -> None:
    text = """
    import gc
    for block in (64, 128, 256):
        run(block)
        add_up.device_caches[0][0].clear()
        gc.collect()
    print("done", flush=True)
    os.abort()
    """
    said = debug(tmp_path, text, "run", "info functions ^add_up$", "p __jit_debug_descriptor")
    assert "done" in said and "SIGABRT" in said
    # The last one is known to the dispatcher at most.
    assert said.count("\nadd_up") + said.count(" add_up(") <= 1, said


def test_gdb_knows_nothing_unless_it_is_asked_for(tmp_path: Path) -> None:
    said = debug(tmp_path, "\n    run()\n", "break add_up", "run", symbols="off")
    assert "exited normally" in said and "Breakpoint 1, " not in said, said


def test_the_descriptor_is_exported() -> None:
    """So that gdb finds it in a library that was stripped, too."""
    nm = shutil.which("nm") or shutil.which("llvm-nm-22")
    if nm is None:
        pytest.skip("needs nm")
    core = os.path.join(os.path.dirname(tessera.__file__), "libtessera.so")
    names = subprocess.check_output([nm, "-D", "--defined-only", core], text=True)
    assert "__jit_debug_register_code" in names and "__jit_debug_descriptor" in names
