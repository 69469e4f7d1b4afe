# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stages of a kernel for a GPU: dumped, edited and gone on from, or put in place of one.

Without a GPU: a number in the kernel's source is changed in a stage, and looked for in the
machine code. test_launch.py does the same for the CPU, and runs what comes of it.
"""

from __future__ import annotations

import pathlib
import re
import struct

import pytest

import tessera
import tessera.language as tl
from tessera import settings
from tessera.compiler import toolchain

from .usual_kernels import load

pytestmark = pytest.mark.skipif(not toolchain.find_ptxas(), reason="there is no ptxas")

# In MLIR and LLVM IR, and in PTX (the bits of a float).
BEFORE = {"mlir": "1.234000e+03", "ll": "1.234000e+03", "ptx": "0f449A4000"}
AFTER = {"mlir": "4.321000e+03", "ll": "4.321000e+03", "ptx": "0f45870800"}
STAGES = ["tile", "tile-opt", "tilegpu", "llvm", "llvmir", "ptx", "cubin"]


@tessera.jit
def shift(x_ptr, out_ptr):
    offsets = tl.arange(0, 128)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) + 1234.0)


def build(**options: object) -> tessera.CompiledKernel:
    return tessera.compile(shift, "*fp32:16, *fp32:16", target="sm_90a", **options)


def has_number(cubin: bytes, number: float) -> bool:
    return struct.pack("<f", number) in cubin


def suffix(stage: str) -> str:
    return {"llvmir": "ll", "ptx": "ptx", "cubin": "cubin"}.get(stage, "mlir")


def dump(folder: pathlib.Path) -> None:
    with settings.override(dump_dir=str(folder)):
        build()


def edit(folder: pathlib.Path, stage: str) -> pathlib.Path:
    """Changes the number in a stage's file; the other stages' files are gone."""
    path = folder / f"shift.{stage}.{suffix(stage)}"
    text = path.read_text()
    assert BEFORE[suffix(stage)] in text
    for other in folder.iterdir():
        other.unlink()
    path.write_text(text.replace(BEFORE[suffix(stage)], AFTER[suffix(stage)]))
    return path


def test_every_stage_is_kept_and_dumped(tmp_path):
    dump(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"shift.{stage}.{suffix(stage)}" for stage in STAGES}
    kernel = build()
    for stage in STAGES:
        written = (tmp_path / f"shift.{stage}.{suffix(stage)}").read_bytes().splitlines()
        kept = kernel.asm[stage]
        kept = (kept if isinstance(kept, bytes) else kept.encode()).splitlines()
        # How long the stages before took is noted, too.
        assert [line for line in written if b"stage_ms" not in line] == [
            line for line in kept if b"stage_ms" not in line
        ]
    assert has_number(kernel.asm["cubin"], 1234.0) and not has_number(kernel.asm["cubin"], 4321.0)


def test_lines_of_the_source_are_in_ptx_and_cubin():
    """A profiler finds the line of each instruction."""
    kernel = build()
    lines = pathlib.Path(__file__).read_text().splitlines()
    stored = next(number for number, text in enumerate(lines, 1) if "1234.0)" in text)
    ptx = kernel.asm["ptx"]
    files = dict(re.findall(r'\.file\s+(\d+) "([^"]+)"', ptx))
    own = [number for number, name in files.items() if name.endswith("test_gpu_stages.py")]
    assert len(own) == 1, files
    places = re.findall(r"\.loc\s+(\d+) (\d+) \d+[^\n]*\n\s*(\S+)", ptx)
    by_line = {(file, int(line)): instruction for file, line, instruction in places}
    assert any(
        where == (own[0], stored) and instruction.startswith(("ld.", "st.", "add."))
        for where, instruction in by_line.items()
    ), by_line
    # Tables of lines, and not the sections for debuggers, with which ptxas does not optimise.
    cubin = kernel.asm["cubin"]
    assert b".debug_line" in cubin and b".debug_info" not in cubin
    assert ".target sm_90a" in ptx and "debug" not in ptx.split(".target")[1].splitlines()[0]


@pytest.mark.parametrize("stage", STAGES[:5])
def test_going_on_from_an_edited_stage(tmp_path, stage):
    dump(tmp_path)
    path = edit(tmp_path, stage)
    kernel = tessera.compile(path, target="sm_90a")
    assert kernel.metadata["arch"] == "sm_90a" and kernel.n_regs > 0
    assert AFTER["ptx"] in kernel.asm["ptx"]
    assert has_number(kernel.asm["cubin"], 4321.0) and not has_number(kernel.asm["cubin"], 1234.0)


@pytest.mark.parametrize("stage", STAGES[:6])
def test_an_edited_stage_replaces_the_compilers(tmp_path, stage):
    dump(tmp_path)
    edit(tmp_path, stage)
    with settings.override(override_dir=str(tmp_path)):
        kernel = build()
    assert AFTER["ptx"] in kernel.asm["ptx"]
    assert has_number(kernel.asm["cubin"], 4321.0) and not has_number(kernel.asm["cubin"], 1234.0)
    # The cache has not heard of it.
    assert has_number(build().asm["cubin"], 1234.0)


def test_mistakes_in_a_stage_are_the_users(tmp_path):
    (tmp_path / "shift.llvm.mlir").write_text("module {\n  llvm.func @shift(%x: i32\n}")
    with settings.override(override_dir=str(tmp_path)):
        with pytest.raises(tessera.TesseraError, match=r"E062(.|\n)*shift\.llvm\.mlir|shift\.llvm\.mlir(.|\n)*E062"):  # fmt: skip
            build()


def test_a_truncated_cubin_is_neither_used_nor_kept(tmp_path: pathlib.Path) -> None:
    """As of a ptxas whose disk is full: it reports success all the same."""
    full = tmp_path / "full"
    full.touch()
    script = tmp_path / "ptxas"
    script.write_text(
        f'#!/bin/sh\n{toolchain.find_ptxas()} "$1" "$2" "$3" -o whole || exit 1\n'
        f'if [ -e {full} ]; then head -c 1500 whole > "$5"; else cat whole > "$5"; fi\n'
    )
    script.chmod(0o755)
    types = (tl.float32, tl.float32)
    with settings.override(ptxas=str(script), cache_dir=str(tmp_path / "cache")):
        for _ in range(2):
            with pytest.raises(tessera.LaunchError, match="disk of the temporary") as caught:
                shift.warmup(*types, target="sm_90a")
            assert caught.value.id == "E063" and str(script) in str(caught.value)
        full.unlink()
        assert has_number(shift.warmup(*types, target="sm_90a").asm["cubin"], 1234.0)


def test_stages_that_do_not_fit_leave_a_kernel_persistent():
    """Two slots have room, with and without a loop over programs, whose masks are computed anew."""
    kernel = tessera.compile(
        load("benchmarks/gpu_matmul_kernels.py")["attention"],
        "*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32:16, fp32, 128, True, 128, 128",
        target="sm_90a",
        num_warps=8,
        num_stages=3,
    )
    assert any("in 2 stages, not 3" in remark for remark in kernel.remarks)
    assert kernel.metadata["persistent_programs"]
    assert not any(": schedule is dropped" in remark for remark in kernel.remarks)


def test_limits_are_those_of_arguments_that_a_launch_has():
    """The extents of the grid that persistent kernels are passed are none of them."""
    kernel = tessera.compile(
        load("benchmarks/gpu_matmul_kernels.py")["matmul"],
        "*fp16:16, *fp16:16, *fp16:16, i32:8, i32:8, i32:8, i32:8, i32:8, 1, i32:8",
        constexprs={"ACC": tl.float32, "BM": 128, "BN": 128, "BK": 64, "GROUP": 8},
        target="sm_90a",
        num_warps=8,
    )
    assert kernel.metadata["persistent_programs"]
    count = len(kernel.metadata["arguments"])
    for condition in kernel.metadata["launch_conditions"]:
        for term in condition:
            assert all(argument < count for argument, _ in term[1:])
    # The height of a group of tiles, which no such condition is about.
    bounds = kernel.metadata["program_bounds"]
    assert bounds
    for bound in bounds:
        assert bound.startswith("(min32 (sub32 (div32 (add32 i32:3 127) 128)")
