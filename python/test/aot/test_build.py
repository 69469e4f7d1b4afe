# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that are compiled ahead of time (tessera.aot), in programs of C and C++."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tessera
import tessera.language as tl
from runtime.fake_driver import build_fake_driver
from tessera import _C
from tessera.__main__ import main
from tessera.aot.build import Request, build_library, load_kernel

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "aot"
CC = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
CXX = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)

# Debian's gcc-aarch64-linux-gnu and qemu-user.
CROSS = shutil.which("aarch64-linux-gnu-gcc")
QEMU = shutil.which("qemu-aarch64")

RUNTIME = ["tessera_aot.c", "tessera_limits.c"]

needs_cc = pytest.mark.skipif(CC is None, reason="there is no C compiler")


@tessera.jit
def scale(x, factor, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, factor * tl.load(x + i, mask=i < n), mask=i < n)


@tessera.jit
def fill(out, value, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, value, mask=i < n)


@tessera.jit
def keywords(double, register, int, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(double + i, tl.load(register + i).to(tl.int64) + int)


@tessera.jit
def matmul(a, b, c, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision="ieee"))


@tessera.jit
def exponential(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.exp(tl.load(x + i)))


@tessera.jit
def counted(x, count, total, order, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    value = tl.load(x + at)
    tl.atomic_add(count + value, 1)
    tl.atomic_add(total, tl.sum(tl.exp(value.to(tl.float64)), axis=0))
    tl.store(order + at, tl.sort(value))


@tessera.jit
def bytes_kernel(a, b, c, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@tessera.jit
def brains_kernel(a, b, c, N: tl.constexpr):
    """Of bf16; and as it, rounded."""
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    product = tl.dot(tl.load(a + at), tl.load(b + at))
    tl.store(c + at, product)
    tl.store(b + at, (product * (1 / 3)).to(tl.bfloat16))


@tessera.jit
def halves(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, (tl.load(x + i).to(tl.float32) * 3).to(tl.float16))


@tessera.jit
def printed(x, N: tl.constexpr):
    tl.device_print("x: ", tl.load(x + tl.arange(0, N)))


@tessera.jit
def positive(x):
    tl.device_assert(tl.load(x + tl.program_id(0)) > 0, 'not "positive"')


@tessera.jit
def waiting(flag):
    while tl.atomic_add(flag, 0) == 0:
        pass


@tessera.jit
def scale_v0(x):
    tl.store(x, 1.0)


BODY = """
#include "{name}.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define EXPECT(what) if (!(what)) {{ printf("line %d: %s (%s)\\n", __LINE__, #what, tessera_error_text()); return 1; }}
int main(void) {{
{body}
  return 0;
}}
"""


def run(
    folder: Path,
    kernels,
    body: str,
    targets=("native",),
    name="kernels",
    compiler=(CC,),
    runner=(),
    **options,
) -> str:
    """Builds kernels, each with its signatures, and runs the body of a `main`."""
    requests = [Request(kernel, tuple(signatures)) for kernel, signatures in kernels]
    library = build_library(name, requests, targets, folder, **options)
    program = folder / "program.c"
    program.write_text(BODY.format(name=name, body=body))
    files = [program, *library.sources, *library.objects]
    options_of_cc = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-o", folder / "program"]
    subprocess.run([*compiler, *options_of_cc, *files, "-lm", "-lpthread"], check=True)
    found = subprocess.run([*runner, folder / "program"], capture_output=True, text=True)
    assert found.returncode == 0, (found.stdout, found.stderr)
    return found.stdout


def build_example(folder: Path) -> None:
    signatures = [
        "scale=*fp32:16, fp32, *fp32:16, i32:16, 1024",
        "scale=*fp32, fp32, *fp32, i32, 1024",
        "softmax=*fp32, *fp32, i32, 1024",
    ]
    kernels = [f"{EXAMPLE / 'kernels.py'}:{name}" for name in ("scale", "softmax")]
    options = [item for signature in signatures for item in ("-s", signature)]
    assert main(["build", *kernels, *options, "--name", "kernels", "-o", str(folder)]) == 0


@needs_cc
def test_the_example_in_c(tmp_path) -> None:
    build_example(tmp_path)
    files = [EXAMPLE / "main.c", *tmp_path.glob("*.c"), *tmp_path.glob("*.o")]
    program = tmp_path / "main"
    subprocess.run(
        [CC, "-O2", f"-I{tmp_path}", *files, "-lm", "-lpthread", "-o", program], check=True
    )
    assert subprocess.run([program], capture_output=True, text=True).stdout == "right\n"
    # What is promised of such a program: 1 MB, and 5 ms from its start to the first result.
    assert program.stat().st_size < 1 << 20
    assert b"libLLVM" not in program.read_bytes() and b"libpython" not in program.read_bytes()
    took = []
    for _ in range(10):
        start = time.perf_counter()
        subprocess.run([program], stdout=subprocess.DEVNULL, check=True)
        took.append(time.perf_counter() - start)
    assert min(took) < 0.1  # on a machine that is busy; some 2 ms on one that is not


@needs_cc
@pytest.mark.skipif(CXX is None, reason="there is no C++ compiler")
def test_the_example_in_cpp(tmp_path) -> None:
    build_example(tmp_path)
    objects = []
    for file in tmp_path.glob("*.c"):
        objects.append(file.with_suffix(".obj"))
        subprocess.run([CC, "-O2", "-c", file, "-o", objects[-1]], check=True)
    program = tmp_path / "main"
    files = [EXAMPLE / "main.cpp", *objects, *tmp_path.glob("*.o")]
    command = [CXX, "-std=c++17", "-O2", f"-I{tmp_path}", "-o", program]
    subprocess.run([*command, *files, "-lm", "-lpthread"], check=True)
    found = subprocess.run([program], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, "right\n")


@needs_cc
def test_arguments_of_all_kinds(tmp_path) -> None:
    numbers = {"i8": "-7", "u8": "200", "i16": "-3000", "i64": "-(1ll << 40)", "u64": "~0ull",
               "fp64": "1.0 / 3", "fp32": "0.1f", "i1": "1", "fp16": "0x3c01"}  # fmt: skip
    kernels, body = [], []
    c_types = {"i1": "uint8_t", "fp64": "double", "fp32": "float", "fp16": "uint16_t"}
    for kind, value in numbers.items():
        named = tessera.JITFunction(fill.fn)
        named.__name__ = f"fill_{kind}"
        kernels.append((named, [f"*{kind}, {kind}, i32, 64"]))
        sign = "u" if kind[0] == "u" else ""
        c_type = c_types.get(kind, f"{sign}int{kind[1:]}_t")
        body.append(
            f"  {{ {c_type} out[101]; memset(out, 0, sizeof(out));"
            "   tessera_launch launch = tessera_grid(2, 1, 1);"
            f"  EXPECT(fill_{kind}(&launch, out, {value}, 100) == TESSERA_OK);"
            f"  for (int i = 0; i < 100; ++i) EXPECT(out[i] == ({c_type})({value}));"
            "   EXPECT(out[100] == 0); }"
        )
    run(tmp_path, kernels, "\n".join(body))


@needs_cc
def test_names_that_c_reserves(tmp_path) -> None:
    body = """
  int64_t out[4]; uint8_t in[4] = {255, 1, 2, 3};
  tessera_launch launch = tessera_grid(1, 1, 1);
  EXPECT(keywords(&launch, out, in, -9) == TESSERA_OK);
  EXPECT(out[0] == 246 && out[3] == -6);"""
    run(tmp_path, [(keywords, ["*i64, *u8, i64, 4"])], body)


SCRATCH_AND_CONVERSIONS = """
  static float a[32 * 32], b[32 * 32], c[32 * 32];
  for (int i = 0; i < 32 * 32; ++i) { a[i] = (float)(i % 7); b[i] = (float)(i % 5); }
  tessera_launch one = tessera_grid(1, 1, 1);
  EXPECT(matmul(&one, a, b, c) == TESSERA_OK);
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 32; ++j) {
      float sum = 0;
      for (int k = 0; k < 32; ++k) sum += a[32 * i + k] * b[32 * k + j];
      EXPECT(c[32 * i + j] == sum);
    }
  uint16_t in[8] = {0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00, 0x3555, 0x8000, 0x0400}, out[8];
  uint16_t expected[8] = {0x4200, 0xc600, 0x0003, 0x7c00, 0x7c00, 0x3c00, 0x8000, 0x0a00};
  EXPECT(halves(&one, in, out) == TESSERA_OK);
  EXPECT(memcmp(out, expected, sizeof(out)) == 0);"""


@needs_cc
def test_scratch_and_conversions(tmp_path) -> None:
    body = SCRATCH_AND_CONVERSIONS
    kernels = [(matmul, ["*fp32, *fp32, *fp32, 32"]), (halves, ["*fp16, *fp16, 8"])]
    targets = ("x86-64-v3", "x86-64") if _C.host_info()["cpu"] != "generic" else ("native",)
    run(tmp_path, kernels, body, targets=targets)
    run(tmp_path, kernels, body, targets=targets[-1:])  # where conversions are calls


@needs_cc
def test_the_dispatcher(tmp_path) -> None:
    body = """
  float x[65], out[65] = {0};
  for (int i = 0; i < 65; ++i) x[i] = (float)i;
  tessera_launch two = tessera_grid(2, 1, 1), one = tessera_grid(1, 1, 1);
  EXPECT(scale(&two, x, 2, out, 64, 32) == TESSERA_OK && out[63] == 126);
  EXPECT(scale(&one, x, 3, out, 64, 64) == TESSERA_OK && out[63] == 189);
  EXPECT(scale(&one, x, 3, out, 64, 16) == TESSERA_NO_VARIANT);
  EXPECT(strstr(tessera_error_text(), "no specialisation takes these arguments"));
  EXPECT(scale(&one, x, 3, out, 1, 8) == TESSERA_OK);
  EXPECT(scale(&one, x, 3, out, 2, 8) == TESSERA_NO_VARIANT);"""
    signatures = ["*fp32, fp32, *fp32, i32, 32", "*fp32, fp32, *fp32, i32, 64",
                  "*fp32, fp32, *fp32, 1, 8"]  # fmt: skip
    run(tmp_path, [(scale, signatures)], body)
    assert "int32_t n, int64_t BLOCK" in (tmp_path / "kernels.h").read_text()
    # The row of the table of CPUs is in the library.
    row = f'.machine = "{_C.host_info()["machine"]}"'
    assert (tmp_path / "kernels.c").read_text().count(row) == len(signatures)


@needs_cc
def test_launches_that_cannot_be(tmp_path) -> None:
    body = """
  float x[4] = {1, 2, 0, 3};
  tessera_launch launch = tessera_grid(2, 1, 1);
  EXPECT(positive(&launch, x) == TESSERA_OK);
  launch.grid[0] = 4;
  EXPECT(positive(&launch, x) == TESSERA_ASSERTION);
  EXPECT(strstr(tessera_error_text(), "program (2, 0, 0)") && strstr(tessera_error_text(), "not \\"positive\\""));
  launch.grid[0] = 0;
  EXPECT(positive(&launch, x) == TESSERA_OK);
  launch.grid[1] = -1;
  EXPECT(positive(&launch, x) == TESSERA_BAD_LAUNCH);
  launch.grid[0] = launch.grid[1] = launch.grid[2] = 1 << 30;
  EXPECT(positive(&launch, x) == TESSERA_BAD_LAUNCH);
  EXPECT(positive(NULL, x) == TESSERA_BAD_LAUNCH);"""
    run(tmp_path, [(positive, ["*fp32"])], body, debug=True)


@needs_cc
def test_printing(tmp_path) -> None:
    body = """
  int32_t x[2] = {-5, 70};
  tessera_launch launch = tessera_grid(1, 1, 1);
  EXPECT(printed(&launch, x) == TESSERA_OK);"""
    text = run(tmp_path, [(printed, ["*i32, 2"])], body)
    assert text == "pid (0, 0, 0) idx (0)x: -5\npid (0, 0, 0) idx (1)x: 70\n".replace(")x", ") x")


@needs_cc
def test_forks(tmp_path) -> None:
    body = """
  enum { COUNT = 1 << 20 };
  static float x[COUNT], out[COUNT];
  tessera_launch launch = tessera_grid(COUNT / 64, 1, 1);
  launch.num_threads = 4;
  for (int round = 0; round < 3; ++round) {
    EXPECT(scale(&launch, x, 2, out, COUNT) == TESSERA_OK);
    pid_t child = fork();
    for (int i = 0; i < COUNT; ++i) x[i] = (float)i;
    EXPECT(scale(&launch, x, 2, out, COUNT) == TESSERA_OK && out[COUNT - 1] == 2.0f * (COUNT - 1));
    if (child == 0) return 0;
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
  }"""
    header = "#include <sys/types.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
    library = build_library(
        "k", [Request(scale, ("*fp32, fp32, *fp32, i32, 64",))], ["native"], tmp_path
    )
    program = tmp_path / "program.c"
    program.write_text(header + BODY.format(name="k", body=body))
    files = [program, *library.sources, *library.objects]
    subprocess.run([CC, "-O1", "-o", tmp_path / "run", *files, "-lm", "-lpthread"], check=True)
    subprocess.run([tmp_path / "run"], check=True, timeout=60)


@needs_cc
def test_another_convention_does_not_compile(tmp_path) -> None:
    library = build_library(
        "k", [Request(scale, ("*fp32, fp32, *fp32, i32, 64",))], ["native"], tmp_path
    )
    header = tmp_path / "tessera_aot.h"
    header.write_text(header.read_text().replace("CONVENTION 4", "CONVENTION 3"))
    found = subprocess.run(
        [CC, "-c", library.sources[0], "-o", os.devnull], capture_output=True, text=True
    )
    assert found.returncode and "was made for version 4 of the calling convention" in found.stderr


@pytest.mark.filterwarnings("ignore::tessera.ToolchainWarning")
def test_for_a_gpu(tmp_path) -> None:
    library = build_library(
        "kernels",
        [
            Request(
                scale, ("*fp32:16, fp32, *fp32:16, i32:16, 1024", "*fp32, fp32, *fp32, i32, 1024")
            )
        ],
        ["sm_90a", "sm_80"],
        tmp_path,
        num_warps=8,
    )
    assert [path.name for path in library.cubins] == [f"scale_v{i}.cubin" for i in range(4)]
    assert all(path.read_bytes()[:4] == b"\x7fELF" for path in library.cubins)
    text = library.sources[0].read_text()
    assert ".capability = 90, .is_specific = 1, .num_warps = 8" in text
    assert "tessera_gpu_fits(&scale_v2)" in text
    if CC is not None:
        for source in library.sources:
            command = [CC, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-c", source]
            subprocess.run([*command, "-o", os.devnull], check=True)


@tessera.jit
def pick(a, b, c, d, e, out, k):
    tl.store(out, tl.load((a, b, c, d, e)[k]))


@pytest.mark.filterwarnings("ignore::tessera.ToolchainWarning")
def test_a_table_of_arguments(tmp_path) -> None:
    signature = "*fp32, *fp32, *fp32, *fp32, *fp32, *fp32, i32"
    library = build_library("picks", [Request(pick, (signature,))], ["sm_90a"], tmp_path)
    assert ".num_tables = 1, .tables = (const int32_t[]){0}" in library.sources[0].read_text()
    if CC is not None:
        for source in library.sources:
            command = [CC, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-c", source]
            subprocess.run([*command, "-o", os.devnull], check=True)


@needs_cc
def test_a_list_on_a_cpu(tmp_path) -> None:
    body = """
  tessera_launch one = tessera_grid(1, 1, 1);
  float cells[5] = {1, 2, 3, 4, 5}, out = 0;
  for (int k = 0; k < 5; ++k) {
    EXPECT(pick(&one, cells, cells + 1, cells + 2, cells + 3, cells + 4, &out, k) == TESSERA_OK);
    EXPECT(out == cells[k]);
  }"""
    run(tmp_path, [(pick, ["*fp32, *fp32, *fp32, *fp32, *fp32, *fp32, i32"])], body)


@pytest.mark.skipif(not (CROSS and QEMU), reason="there is no compiler or no qemu for AArch64")
@pytest.mark.parametrize("target, features", [("aarch64", ""), ("aarch64:neoverse-v1", ""),
                                              ("aarch64", "+dotprod"),
                                              ("aarch64", "+dotprod,+bf16"),
                                              ("aarch64", "+i8mm")])  # fmt: skip
def test_aarch64(tmp_path, target: str, features: str) -> None:
    dot = "*i8, *i8, *i32, 32"
    body = SCRATCH_AND_CONVERSIONS + """
  static int8_t p[32 * 32], q[32 * 32];
  static int32_t r[32 * 32];
  for (int i = 0; i < 32 * 32; ++i) { p[i] = (int8_t)(i * 37); q[i] = (int8_t)(i * 91); }
  EXPECT(bytes_kernel(&one, p, q, r) == TESSERA_OK);
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 32; ++j) {
      int sum = 0;
      for (int k = 0; k < 32; ++k) sum += p[32 * i + k] * q[32 * k + j];
      EXPECT(r[32 * i + j] == sum);
    }
  static uint16_t s[32 * 32], t[32 * 32], rounded;
  static float u[32 * 32], factors[2][32 * 32], third;
  for (int i = 0; i < 32 * 32; ++i) {
    factors[0][i] = (float)(i * 37 % 31 - 15), factors[1][i] = (float)(i * 91 % 29 - 14) / 4;
    uint32_t bits[2];
    memcpy(&bits[0], &factors[0][i], 4), memcpy(&bits[1], &factors[1][i], 4);
    s[i] = (uint16_t)(bits[0] >> 16), t[i] = (uint16_t)(bits[1] >> 16);
  }
  EXPECT(brains_kernel(&one, s, t, u) == TESSERA_OK);
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 32; ++j) {
      float sum = 0;
      for (int k = 0; k < 32; ++k) sum += factors[0][32 * i + k] * factors[1][32 * k + j];
      EXPECT(u[32 * i + j] == sum);
      third = sum * (1.0f / 3);
      uint32_t bits;
      memcpy(&bits, &third, 4);
      rounded = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
      EXPECT(t[32 * i + j] == rounded);
    }
  tessera_launch many = tessera_grid(1000, 1, 1);
  many.num_threads = 3;
  static float x[128000], y[128000];
  for (int i = 0; i < 128000; ++i) x[i] = (float)i;
  EXPECT(scale(&many, x, 2, y, 127999) == TESSERA_OK && y[127998] == 255996 && y[127999] == 0);
  static int32_t digits[64 * 50], counts[10], sorted[64 * 50];
  double total = 0, expected_total = 0;
  for (int i = 0; i < 64 * 50; ++i) { digits[i] = i * 7 % 10; expected_total += exp(digits[i]); }
  many.grid[0] = 50;
  EXPECT(counted(&many, digits, counts, &total, sorted) == TESSERA_OK);
  for (int i = 0; i < 10; ++i) EXPECT(counts[i] == 320);
  EXPECT(fabs(total / expected_total - 1) < 1e-12);
  for (int i = 1; i < 64 * 50; ++i) EXPECT(i % 64 == 0 || sorted[i - 1] <= sorted[i]);
  int32_t numbers[2] = {-5, 70};
  EXPECT(printed(&one, numbers) == TESSERA_OK);
  many.grid[0] = 3;
  EXPECT(positive(&many, x) == TESSERA_ASSERTION && strstr(tessera_error_text(), "(0, 0, 0)"));"""
    kernels = [
        (matmul, ["*fp32, *fp32, *fp32, 32"]),
        (halves, ["*fp16, *fp16, 8"]),
        (bytes_kernel, [dot]),
        (brains_kernel, ["*bf16, *bf16, *fp32, 32"]),
        (counted, ["*i32, *i32, *fp64, *i32, 64"]),
        (scale, ["*fp32, fp32, *fp32, i32, 128"]),
        (printed, ["*i32, 2"]),
        (positive, ["*fp32"]),
    ]
    text = run(
        tmp_path, kernels, body, targets=(target,), debug=True, features=features,
        compiler=(CROSS, "-static"), runner=(QEMU, "-cpu", "max"),
    )  # fmt: skip
    assert text.startswith("pid (0, 0, 0) idx (0)")


def test_code_for_another_architecture_is_not_launched() -> None:
    compiled = tessera.compile(scale, "*fp32, fp32, *fp32, i32, 64", cpu="aarch64")
    assert "aarch64" in compiled.stages["llvmir"] and "ret" in compiled.stages["asm"]
    x = np.ones(4, np.float32)
    if os.uname().machine != "aarch64":
        with pytest.raises(tessera.LaunchError, match="E030.*another architecture"):
            compiled[(1,)](x, 1.0, x, 4)
    with pytest.raises(tessera.LaunchError, match="E062.*unknown CPU 'z80'"):
        tessera.compile(scale, "*fp32, fp32, *fp32, i32, 64", cpu="aarch64:z80")


GPU_PROGRAM = """
  typedef struct {
    unsigned grid[3], block[3], shared;
    void *stream;
    uint64_t arguments[8], maps[2][16];
    void *context;
    char name[64];
  } Launch;
  float x[2] __attribute__((aligned(16))), out[2] __attribute__((aligned(16)));
  tessera_launch launch = tessera_grid(3, 2, 1);
  launch.stream = x;
  int status = scale(&launch, x, 2.0f, out, 32);
  if (status != TESSERA_OK) { puts(tessera_error_text()); return 0; }
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  Launch *last = dlsym(library, "fake_last");
  int *fails = dlsym(library, "fake_fail");
  EXPECT(!strcmp(last->name, "scale_v2") && last->grid[0] == 3 && last->grid[1] == 2);
  EXPECT(last->block[0] == 256 && last->stream == x && last->context);
  EXPECT(last->arguments[0] == (uint64_t)x && last->arguments[2] == (uint64_t)out);
  EXPECT((uint32_t)last->arguments[1] == 0x40000000 && (uint32_t)last->arguments[3] == 32);
  EXPECT(scale(&launch, x, 2.0f, out, 31) == TESSERA_OK && !strcmp(last->name, "scale_v3"));
  EXPECT(scale(&launch, x, 2.0f, out, 48) == TESSERA_OK && !strcmp(last->name, "scale_v2"));
  EXPECT(*(int *)dlsym(library, "fake_loads") == 2);
  launch.grid[1] = 70000;
  EXPECT(scale(&launch, x, 2.0f, out, 31) == TESSERA_BAD_LAUNCH);
  launch.grid[1] = 1;
  *fails = 700;
  EXPECT(scale(&launch, x, 2.0f, out, 31) == TESSERA_DRIVER);
  EXPECT(strstr(tessera_error_text(), "the launch failed"));
  puts("right");"""


@needs_cc
def test_on_a_driver_that_notes_launches(tmp_path) -> None:
    signatures = ("*fp32:16, fp32, *fp32:16, i32:16, 1024", "*fp32, fp32, *fp32, i32, 1024")
    # The GPU of the driver has capability 9.0, so that the first two are for another one.
    targets = ["sm_100a", "sm_90a"]
    library = build_library("kernels", [Request(scale, signatures)], targets, tmp_path, num_warps=8)
    program = tmp_path / "program.c"
    program.write_text("#include <dlfcn.h>\n" + BODY.format(name="kernels", body=GPU_PROGRAM))
    driver = build_fake_driver(tmp_path / "driver", CC)
    command = [CC, "-std=gnu11", "-O1", "-o", tmp_path / "run", program, *library.sources]
    subprocess.run([*command, "-ldl", "-lm", "-lpthread"], check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": driver}
    found = subprocess.run([tmp_path / "run"], capture_output=True, text=True, env=environment)
    assert (found.returncode, found.stdout) == (0, "right\n")
    if not _C.cuda_is_available():
        found = subprocess.run([tmp_path / "run"], capture_output=True, text=True)
        assert "driver" in found.stdout  # there is none, or it finds no GPU


def refused(
    folder: Path, message: str, *requests, targets=("native",), name="k", **options
) -> None:
    with pytest.raises(tessera.ArgumentError, match=f"(?s)E079.*{message}"):
        build_library(name, [Request(*request) for request in requests], targets, folder, **options)


def test_what_cannot_be_built(tmp_path) -> None:
    plain = "*fp32, fp32, *fp32, i32, 64"
    refused(tmp_path, "`a-b` is not a valid name in C", (scale, (plain,)), name="a-b")
    refused(tmp_path, "`main` is reserved", (scale, (plain,)), name="main")
    refused(
        tmp_path, "the targets are CPUs and GPUs", (scale, (plain,)), targets=("native", "sm_80")
    )
    refused(tmp_path, "several types", (scale, (plain, "*fp64, fp32, *fp32, i32, 64")))
    refused(tmp_path, "compares integers only", (scale, (plain, "*fp32, 2.0, *fp32, i32, 64")))
    refused(tmp_path, "wait for others", (waiting, ("*i32",)))
    refused(tmp_path, "no code for sm_12", (scale, (plain,)), targets=("sm_12",))
    refused(tmp_path, "for each architecture", (scale, (plain,)), targets=("native", "aarch64"))
    refused(tmp_path, "the same name", (scale, (plain,)), (scale, (plain,)))
    refused(tmp_path, "the same name in C, scale_v0", (scale, (plain,)), (scale_v0, ("*fp32",)))


@needs_cc
def test_kernels_named_like_functions_of_c(tmp_path) -> None:
    # A kernel `exp` in the place of libm's would be called by code that means that.
    kernel = tessera.JITFunction(exponential.fn)
    kernel.__name__ = "exp"
    body = """
  double x[4] = {0, 1, 800, -3}, out[4];
  tessera_launch launch = tessera_grid(1, 1, 1);
  EXPECT(exp_(&launch, x, out) == TESSERA_OK);
  for (int i = 0; i < 4; ++i) EXPECT(out[i] == exp(x[i]) || fabs(out[i] / exp(x[i]) - 1) < 1e-14);"""
    run(tmp_path, [(kernel, ["*fp64, *fp64, 4"])], body)


def test_commands_that_cannot_be_done(tmp_path) -> None:
    place = f"{EXAMPLE / 'kernels.py'}:scale"
    for arguments, message in [
        ([place, "-s", "other=*fp32"], "no signature for `scale`"),
        ([place, "-s", "*fp32", "--option", "num_warps"], "has no value"),
        ([f"{EXAMPLE / 'kernels.py'}:none", "-s", "*fp32"], "has no kernel `none`"),
        (["nowhere.py:none", "-s", "*fp32"], "no file 'nowhere.py'"),
    ]:
        with pytest.raises(tessera.ArgumentError, match=f"(?s)E079.*{message}"):
            main(["build", *arguments, "-o", str(tmp_path)])
    assert load_kernel(place).__name__ == "scale"


def test_the_command(tmp_path) -> None:
    command = [sys.executable, "-m", "tessera", "build", f"{EXAMPLE / 'kernels.py'}:scale",
               "-s", "*fp32, fp32, *fp32, i32, 64", "-o", str(tmp_path)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    names = [Path(line).name for line in done.stdout.splitlines()]
    assert names == ["scale.h", "scale.c", *RUNTIME, "scale_v0.o"]
    assert all((tmp_path / name).is_file() for name in names)
