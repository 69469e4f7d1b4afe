# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of GPUs against ptxas, and code for every row of it.

What a row says of its instructions is what ptxas takes; what the compiler makes of the usual
kernels assembles. That is all that is known of most rows: such GPUs are not at hand, and
docs/Status.md says so.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from usual_kernels import list_work

import tessera
from tessera.compiler.toolchain import find_ptxas
from tessera.machine.gpus import find_for_capability, gpu_machines

PTXAS = find_ptxas() or shutil.which("ptxas")
needs_ptxas = pytest.mark.skipif(not PTXAS, reason="there is no ptxas")

# An instruction of the table, and a line that uses it.
LINES = {
    "stmatrix": "stmatrix.sync.aligned.m8n8.x4.shared.b16 [r4], {r0, r1, r2, r3};",
    "cp.async.bulk.tensor": (
        "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes"
        " [r0], [l0, {r1, r2}], [r3];"
    ),
    "tensormap.replace": "tensormap.replace.tile.global_address.global.b1024.b64 [l0], l1;",
    "tcgen05": "tcgen05.wait::ld.sync.aligned;",
    "setmaxnreg": "setmaxnreg.inc.sync.aligned.u32 128;",
    "griddepcontrol": "griddepcontrol.wait;",
    "elect": "elect.sync r0|p0, 0xffffffff;",
    "add.bf16": "add.rn.bf16 h0, h1, h2;",
    "atom.add.bf16": "atom.global.add.noftz.bf16 h0, [l0], h1;",
    "atom.add.v4.f32": "atom.global.add.v4.f32 {f0, f1, f2, f3}, [l0], {f0, f1, f2, f3};",
    "cvt.e4m3x2": "cvt.rn.satfinite.e4m3x2.f32 h0, f0, f1;",
    "redux.f32": "redux.sync.max.f32 f0, f1, 0xffffffff;",
    "barrier.cluster": "barrier.cluster.arrive.aligned;",
    "wgmma": "wgmma.fence.sync.aligned;",
    "mma.e4m3": (
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"
        " {f0, f1, f2, f3}, {r0, r1, r2, r3}, {r4, r5}, {f0, f1, f2, f3};"
    ),
}
# What ptxas takes, and makes other instructions of, by capability: notes/Notebook.md, "8-bit floats by
# mma.sync".
EXPANDED = {"mma.e4m3": (90, 100, 103)}
ON_ALL = {
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r0, r1, r2, r3}, [r4];",
    "cp.async": "cp.async.cg.shared.global [r4], [l0], 16;",
    "redux": "redux.sync.add.s32 r0, r1, 0xffffffff;",
    "mma.bf16": (
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
        " {f0, f1, f2, f3}, {r0, r1, r2, r3}, {r4, r5}, {f0, f1, f2, f3};"
    ),
    "mma.tf32": (
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
        " {f0, f1, f2, f3}, {r0, r1, r2, r3}, {r4, r5}, {f0, f1, f2, f3};"
    ),
    "mma.s8": (
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
        " {r0, r1, r2, r3}, {r0, r1, r2, r3}, {r4, r5}, {r0, r1, r2, r3};"
    ),
    "mma.f64": "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {d0, d1}, {d2}, {d3}, {d0, d1};",
}
KERNEL = """.version 9.0
.target {arch}
.address_size 64
.visible .entry kernel(.param .u64 p) {{
.reg .b16 h<4>; .reg .b32 r<8>; .reg .b64 l<4>; .reg .f32 f<8>; .reg .f64 d<8>; .reg .pred p<2>;
ld.param.u64 l0, [p];
{line}
ret;
}}
"""


def assembles(arch: str, line: str, folder: pathlib.Path) -> bool:
    assert PTXAS
    source = folder / "kernel.ptx"
    source.write_text(KERNEL.format(arch=arch, line=line))
    command = [PTXAS, f"-arch={arch}", str(source), "-o", str(folder / "kernel.cubin")]
    return subprocess.run(command, capture_output=True).returncode == 0


@needs_ptxas
@pytest.mark.parametrize("arch", gpu_machines())
def test_the_table_says_what_ptxas_takes(arch, tmp_path):
    taken = {name for name, line in LINES.items() if assembles(arch, line, tmp_path)}
    row = gpu_machines()[arch]
    expanded = {name for name, rows in EXPANDED.items() if row.capability in rows}
    assert taken == set(row.instructions) | expanded
    assert not expanded & set(row.instructions)
    for name, line in ON_ALL.items():
        assert assembles(arch, line, tmp_path), name


def test_all_instructions_of_the_table_are_asked_for():
    assert set(LINES) == {name for row in gpu_machines().values() for name in row.instructions}


def test_rows_of_capabilities():
    for row in gpu_machines().values():
        found = find_for_capability(row.capability // 10, row.capability % 10)
        assert found and found.capability == row.capability and found.name.startswith(row.name)
    assert find_for_capability(7, 5) is None


# The larger tile of two takes ptxas 6 s.
WORK = {work.name: work for work in list_work() if not work.name.endswith("matmul_scaled-256")}
# Oldest, newest, and one of each generation between; the rest differ from these in limits alone.
ARCHES = ["sm_87", "sm_89", "sm_100a", "sm_103a", "sm_120a"]


@needs_ptxas
@pytest.mark.in_turn("arch")
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("name", WORK)
def test_usual_kernels_assemble(arch, name):
    kernel = WORK[name].compile(arch)
    ptx = kernel.asm["ptx"]
    assert f".target {arch}" in ptx
    machine = gpu_machines()[arch]
    if "wgmma" not in machine.instructions:
        assert "wgmma" not in ptx
    if "cp.async.bulk.tensor" not in machine.instructions:
        assert "cp.async.bulk" not in ptx and "mbarrier" not in ptx
    assert kernel.metadata["shared_bytes"] <= machine.shared_bytes


@needs_ptxas
@pytest.mark.parametrize(
    "arch, copies", [("sm_89", "cp.async.cg"), ("sm_100a", "cp.async.cg"), ("sm_120a", "cp.async")]
)
def test_dots_without_wgmma_are_pipelined_mma(arch, copies):
    name = next(name for name in WORK if "matmul-fp16-64-64-64" in name)
    ptx = WORK[name].compile(arch).asm["ptx"]
    assert "mma.sync" in ptx and copies in ptx


def test_an_unknown_name_is_told_the_known_ones():
    work = WORK["vector_add-add"]
    with pytest.raises(tessera.LaunchError, match="there is no GPU architecture 'sm_91'") as caught:
        work.compile("sm_91")
    assert caught.value.id == "E030"
    for arch in gpu_machines():
        assert arch in str(caught.value)
