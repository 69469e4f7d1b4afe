# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What specialisations take for granted of launches (tessera.aot.limits): libraries for C accept the
launches that a launch from Python accepts, and make the same launches of them."""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import tessera
import tessera.language as tl
from runtime.fake_driver import build_fake_driver
from tessera.aot.build import Library, Request, build_library, runtime_file
from tessera.aot.limits import declare_limits
from tessera.compiler.toolchain import find_ptxas

CC = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)

pytestmark = [
    pytest.mark.skipif(CC is None, reason="there is no C compiler"),
    pytest.mark.filterwarnings("ignore::tessera.ToolchainWarning"),
]
needs_ptxas = pytest.mark.skipif(not find_ptxas(), reason="there is no ptxas")


@tessera.jit
def matmul(
    a, b, c, M, N, K, am, bk, cm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    program = tl.program_id(0)
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = program // (8 * across) * 8
    height = min(down - first, 8)
    m = (first + program % (8 * across) % height) * BM + tl.arange(0, BM)
    n = program % (8 * across) // height * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        inside = at + k < K
        x = tl.load(
            a + m[:, None] * am + (at + k), mask=(m[:, None] < M) & inside[None, :], other=0.0
        )
        y = tl.load(
            b + (at + k)[:, None] * bk + n, mask=inside[:, None] & (n[None, :] < N), other=0.0
        )
        sums = tl.dot(x, y, sums)
    at = c + m[:, None] * cm + n[None, :]
    tl.store(at, sums.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


BLOCKED = ", ".join(["*fp16:16"] * 3 + ["i32:16"] * 6 + ["128", "128", "64"])
"""The signature of `matmul` for 128x128 tiles."""


@tessera.jit
def powers(w, x, y, N, count, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = (i[:, None] < N) & (i[None, :] < N)
    for _ in range(count):
        sums = tl.zeros((BLOCK, BLOCK), tl.float32)
        for k in range(0, N, BLOCK):
            ks = k + i
            left = tl.load(
                w + i[:, None] * N + ks[None, :], mask=(i[:, None] < N) & (ks[None, :] < N)
            )
            right = tl.load(
                x + ks[:, None] * N + i[None, :], mask=(ks[:, None] < N) & (i[None, :] < N)
            )
            sums = tl.dot(left, right, sums)
        tl.store(y + i[:, None] * N + i[None, :], sums.to(tl.float16), mask=inside)


POWERS = "*fp16:16, *fp16:16, *fp16:16, i32:16, i32, 64"


@tessera.jit
def repeated(x, out, size, N: tl.constexpr):
    places = (tl.program_id(0) // size * N + tl.arange(0, N)) // 4
    tl.store(out + tl.arange(0, N), tl.load(x + places) + 1.0)


REPEATED = "*fp32, *fp32, i32, 32"

KERNELS = [
    (matmul, BLOCKED, "sm_90a"),
    (powers, POWERS, "sm_90a"),
    (repeated, REPEATED, "x86-64-v3"),
]


def link(library: Library, folder: Path) -> Path:
    """A shared library of what was built."""
    shared = folder / "k.so"
    command = [CC, "-shared", "-fPIC", "-O1", "-std=gnu11", *library.sources, *library.objects]
    subprocess.run([*command, "-o", shared, "-ldl", "-lm", "-lpthread"], check=True)
    return shared


def load_limits(folder: Path, limits) -> ctypes.CDLL:
    lines = declare_limits("k", limits)
    (folder / "k.c").write_text(
        "\n".join(
            [
                '#include "tessera_limits.h"',
                "#include <stddef.h>",
                *lines,
                "int accepts(const int32_t *grid, const uint64_t *slots) {",
                "  tessera_shape shapes[16];",
                "  return tessera_accepts(&k_limits, grid, slots, shapes);",
                "}",
            ]
        )
    )
    library = folder / "k.so"
    options = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-O1"]
    header, source = map(runtime_file, ("tessera_limits.h", "tessera_limits.c"))
    command = [CC, *options, "-shared", "-fPIC", f"-I{header.parent}", folder / "k.c"]
    subprocess.run([*command, source, "-o", library], check=True)
    return ctypes.CDLL(str(library))


@needs_ptxas
@pytest.mark.parametrize(
    "kernel, signature, target", KERNELS, ids=lambda value: getattr(value, "__name__", None)
)
def test_the_same_launches_are_accepted(tmp_path, kernel, signature: str, target: str) -> None:
    """Random ones; a number is often near the end of its bits, and a pointer near that of memory."""
    where = {"target": target} if target.startswith("sm") else {"target": "cpu", "cpu": target}
    compiled = tessera.compile(kernel, signature, **where)
    metadata = compiled.metadata
    library = load_limits(tmp_path, compiled._kernel.limits())
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chosen = random.Random(seed)
    types = [argument["type"] for argument in metadata["arguments"]]

    def number(bits: int) -> int:
        size = chosen.choice([0, 1, 2, 4, 7, 10, 14, 20, 30, bits - 1])
        value = chosen.choice([1 << size, (1 << size) - 1, chosen.randrange((1 << size) + 1), 4096])
        value = chosen.choice([value, value, value, -value])
        return max(-(1 << bits - 1), min(value, (1 << bits - 1) - 1))

    answers = {False: 0, True: 0}
    for _ in range(20000):
        grid = tuple(max(0, number(32)) if chosen.random() < 0.3 else 1 for _ in range(3))
        slots = []
        for type in types:
            if type.startswith("*"):
                base = chosen.choice([1 << 20, 1 << 30, (1 << 63) - 64, 0, (1 << 64) - 16])
                slots.append((base + chosen.choice([0, 0, 0, 4, 16, 1 << 13])) % (1 << 64))
            elif chosen.random() < 0.6:
                slots.append(chosen.choice([16, 64, 128, 512, 1024, 2048]))
            else:
                slots.append(number(64 if type == "i64" else 32) % (1 << 64))
        signed = [
            slot - (1 << 64) if slot >> 63 and not type.startswith("*") else slot
            for slot, type in zip(slots, types)
        ]
        if 0 in grid:
            continue
        wanted = compiled._kernel.accepts(grid, signed)
        found = library.accepts((ctypes.c_int32 * 3)(*grid), (ctypes.c_uint64 * len(slots))(*slots))
        assert bool(found) == wanted, (grid, slots)
        answers[wanted] += 1
    assert min(answers.values()) > 100, answers


def test_tables() -> None:
    """Sums of arguments and what programs compute, as formulas of one kind."""
    step = ["ARGUMENT", 32, 3]
    array = {"argument": 0, "element_bytes": 4}
    dims = [{"extent": [step], "stride": [step], "box": 8, "first": None}]
    lines = declare_limits(
        "k",
        {
            "most_programs": 7,
            "counts_programs": True,
            "conditions": [[step, ["CONSTANT", 64, -(1 << 63)], ["ADD", 64, 0]], [step]],
            "apart": [],
            "maps": [{"array": {**array, "dims": dims}, "element": 7, "swizzle_bytes": 128}],
        },
    )
    assert lines == [
        "static const tessera_step k_formula_0[] = {{TESSERA_ARGUMENT, 32, INT64_C(3)}, "
        "{TESSERA_CONSTANT, 64, INT64_MIN}, {TESSERA_ADD, 64, INT64_C(0)}, {TESSERA_END, 0, 0}};",
        "static const tessera_step k_formula_1[] = {{TESSERA_ARGUMENT, 32, INT64_C(3)}, "
        "{TESSERA_END, 0, 0}};",
        "static const tessera_dim k_dims_1[] = {{k_formula_1, k_formula_1, 8, NULL}};",
        "static const tessera_step *const k_conditions[] = {k_formula_0, k_formula_1};",
        "static const tessera_tensor_map k_maps[] = {{{0, 4, 1, k_dims_1}, 7, 128}};",
        "static const tessera_limits k_limits = {.most_programs = 7, .counts_programs = 1, "
        ".num_conditions = 2, .num_apart = 0, .num_maps = 1, .conditions = k_conditions, "
        ".maps = k_maps};",
    ]


def test_there_is_code_for_launches_outside(tmp_path) -> None:
    names = ["repeated_v0.o", "repeated_v0_any.o"]
    for options in ({}, {"tensor_maps": False}):
        library = build_library(
            "k", [Request(repeated, (REPEATED,))], ["x86-64-v3"], tmp_path, **options
        )
        assert [path.name for path in library.objects] == names
        names = ["repeated_v0.o"]  # which is for any launch
    assert "limits" not in library.sources[0].read_text()


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="what is built is run")
def test_launches_outside_on_a_cpu(tmp_path) -> None:
    library = build_library("k", [Request(repeated, (REPEATED,))], ["native"], tmp_path)
    code = ctypes.CDLL(str(link(library, tmp_path)))
    x, out = np.arange(64, dtype=np.float32), np.empty(32, np.float32)
    for size in (64, (1 << 30) + 64, -1):
        out.fill(-1)
        launch = (ctypes.c_int32 * 6)(1, 1, 1)
        places = [ctypes.c_void_p(array.ctypes.data) for array in (x, out)]
        assert code.repeated(launch, *places, ctypes.c_int32(size)) == 0
        assert (out == np.arange(32) // 4 + 1).all(), size


SCRIPT = """
import ctypes, sys
import tessera
from aot.test_limits import BLOCKED, POWERS, matmul, powers
from runtime.fake_driver import Launch

fake = ctypes.CDLL("libcuda.so.1")
last = Launch.in_dll(fake, "fake_last")
ours = ctypes.CDLL(sys.argv[1])
options = {options}

class Described(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_int32 * 3), ("threads", ctypes.c_int32), ("stream", ctypes.c_void_p)]

def noted():
    parts = [bytes(last.grid), bytes(last.block), last.shared, bytes(last.maps)]
    return parts, last.name.decode()

def launch(kernel, signature, grid, *arguments):
    compiled = tessera.compile(kernel, signature, target="sm_90a", **options)
    metadata = compiled.metadata
    maps = len(metadata["tensor_maps"])
    hidden = 3 if metadata["persistent_programs"] else 0
    ctypes.c_int.in_dll(fake, "fake_arguments").value = len(arguments) + hidden
    ctypes.c_int.in_dll(fake, "fake_maps").value = min(maps, 2)
    if not compiled._kernel.accepts(grid, arguments):
        without = tessera.compile(kernel, signature, target="sm_90a", tensor_maps=False, **options)
        ctypes.c_int.in_dll(fake, "fake_maps").value = 0
        without._kernel.launch_cuda(0, 0, grid, arguments)
    else:
        compiled._kernel.launch_cuda(0, 0, grid, arguments)
    wanted, _ = noted()
    given = [ctypes.c_void_p(a) if a > 1 << 32 else ctypes.c_int32(a) for a in arguments]
    status = getattr(ours, kernel.__name__)(ctypes.byref(Described(grid)), *given)
    assert status == 0, ctypes.string_at(ours.tessera_error_text())
    found, name = noted()
    assert found == wanted, (name, found, wanted)
    return name, tuple(last.grid)

A, B, C = (1 << 40), (1 << 40) + (1 << 30), (1 << 40) + (1 << 31)
WHOLE = (A, B, C, 4096, 4096, 4096, 4096, 4096, 4096)
{body}
print("right")
"""


def run_on_fake_driver(folder: Path, body: str, requests, **options) -> None:
    library = build_library("k", requests, ["sm_90a"], folder, **options)
    driver = build_fake_driver(folder / "driver", CC)
    shared = link(library, folder)
    script = folder / "script.py"
    script.write_text(
        SCRIPT.replace("{options}", repr(options)).replace("{body}", textwrap.dedent(body))
    )
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": driver,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "TESSERA_CACHE_DIR": str(folder / "cache"),
    }
    found = subprocess.run(
        [sys.executable, "-W", "ignore", script, shared],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert (found.returncode, found.stdout) == (0, "right\n"), found.stderr


@needs_ptxas
def test_a_matmul_by_tensor_maps(tmp_path) -> None:
    run_on_fake_driver(
        tmp_path,
        """
        # As many programs as the GPU has SMs, for 1,024 tiles.
        assert launch(matmul, BLOCKED, (1024, 1, 1), *WHOLE) == ("matmul_v0", (132, 1, 1))
        assert launch(matmul, BLOCKED, (4, 1, 1), A, B, C, 256, 256, 512, 512, 256, 256) == (
            "matmul_v0", (4, 1, 1))
        # More programs than tiles: an index might be divided by a negative number.
        assert launch(matmul, BLOCKED, (2048, 1, 1), *WHOLE) == ("matmul_v0_any", (2048, 1, 1))
        # Nothing to add: there is no array that TMA might copy from.
        assert launch(matmul, BLOCKED, (4, 1, 1), A, B, C, 256, 256, 0, 512, 256, 256)[0] == (
            "matmul_v0_any")
        """,
        [Request(matmul, (BLOCKED,))],
        num_warps=8,
        num_stages=4,
    )


@needs_ptxas
def test_arrays_that_overlap(tmp_path) -> None:
    run_on_fake_driver(
        tmp_path,
        """
        size = 64 * 64 * 2
        def name_of(y): return launch(powers, POWERS, (1, 1, 1), A, B, y, 64, 3)[0]
        assert name_of(C) == name_of(B + size) == name_of(B - size) == "powers_v0"
        assert name_of(B) == name_of(B + size - 16) == name_of(A + 16) == "powers_v0_any"
        # Of an array of nothing there is no tensor map.
        assert launch(powers, POWERS, (1, 1, 1), A, B, C, 0, 3)[0] == "powers_v0_any"
        """,
        [Request(powers, (POWERS,))],
        num_stages=3,
    )


@needs_ptxas
def test_clusters(tmp_path) -> None:
    run_on_fake_driver(
        tmp_path,
        """
        ctypes.c_int.in_dll(fake, "fake_fitting").value = 16
        assert launch(matmul, BLOCKED, (1024, 1, 1), *WHOLE)[1] == (32, 1, 1)
        """,
        [Request(matmul, (BLOCKED,))],
        num_warps=8,
        num_ctas=2,
    )
