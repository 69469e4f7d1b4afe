# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The second half of docs/Pipeline.md: a matmul on its way to a GPU, in excerpts.

The IR between passes is written by tessera-opt. An excerpt has the lines that a pattern finds; dots
stand for the lines between them.
"""

from __future__ import annotations

import importlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPTIONS = "num-warps=8 tensor-maps"
WIDTH = 150


class Stage(NamedTuple):
    """Part of the page: IR after a pass, or a stage of the compiler, and the lines to show."""

    source: str
    meaning: str
    shown: str
    most: int = 24
    """Lines at most."""
    language: str = "mlir"


STAGES = [
    Stage(
        "tile-opt",
        "The tile pipeline is the same for all targets. This is the loop: two loads with masks, and a dot.",
        r"= scf\.for|tile\.load .*64|tile\.dot|scf\.yield",
    ),
    Stage(
        "tilegpu-accelerate-matmul",
        "Tiles now have an encoding, `#tilegpu.unassigned`. The dot has become wgmma for two warpgroups, "
        "and its operands are buffers in shared memory. `#shared` is a swizzled layout.",
        r"^#shared|= scf\.for|tile\.load .*64x|local_alloc|warpgroup_dot|scf\.yield",
    ),
    Stage(
        "tilegpu-warp-specialize",
        "The planner for TMA has added a schedule, and nothing else. The loads belong to a producer warp and "
        "fill a ring of five slots. The dot is in flight while the next iteration begins. The kernel is persistent.",
        r"kernel_schedule|= scf\.for|tilegpu\.node|scf\.yield|tilegpu\.schedule =",
    ),
    Stage(
        "tilegpu-expand-schedule",
        "The schedule is expanded. There are two regions, which run at the same time. The warps of the "
        "program wait for a slot, multiply and release the slot of the iteration before.",
        r"local_alloc :|memdesc_index|mbarrier_init|warp_specialize|= scf\.for .*(%\w+ = %0|tensor)|mbarrier_wait|"
        r"warpgroup_dot|warpgroup_wait|mbarrier_arrive|mbarrier_expect|tma_load|partition",
        40,
    ),
    Stage(
        "tilegpu-assign-layouts",
        "Every tile has a layout. `#layout` is the one that wgmma prescribes for its result: which register, "
        "lane and warp hold which element. A conversion moves the bias to the threads that add it.",
        r"^#layout|warpgroup_dot|convert_layout|arith\.addf|local_store|tma_store ",
    ),
    Stage(
        "tilegpu-insert-proxy-fences",
        "Buffers have offsets in shared memory. Barriers and fences order the result's way through shared "
        "memory to TMA. This is the stage `tilegpu`.",
        r"shared_offset|tma_store|local_store|tilegpu\.barrier|proxy_fence",
    ),
    Stage(
        "convert-tilegpu-to-llvm",
        "This is the code of one thread, in the LLVM dialect: tiles have become registers.",
        r"llvm\.func @matmul|mbarrier\.try_wait|wgmma\.mma_async|wgmma\.commit|"
        r"wgmma\.wait_group|cp\.async\.bulk\.tensor",
    ),
    Stage(
        "ptx",
        "PTX of the loop of the producer warp. LLVM makes it, and ptxas assembles it (`cubin`).",
        r"expect_tx|bulk\.tensor.*global\.tile\.mbarrier",
        language="ptx",
    ),
]  # fmt: skip


def section() -> list[str]:
    """The lines of the page."""
    compiled = compile_matmul()
    with tempfile.TemporaryDirectory() as folder:
        passes = dump(str(compiled.stages["tile-opt"]), pathlib.Path(folder))
    lines = [
        "## A matmul on a GPU",
        "",
        "The kernel is the matmul of `python/examples/matmul.py`, with tiles of 128x128 and 64 along K, for an",
        "H100 (`sm_90a`) and 8 warps. These are excerpts: `...` stands for lines that are not shown, and long",
        "lines are cut. `tessera-opt --tessera-gpu-pipeline --dump-passes=FOLDER` writes the whole IR after",
        "each pass, and [Architecture](Architecture.md#schedules) explains schedules.",
        "",
    ]
    for stage in STAGES:
        text = passes.get(stage.source) or str(compiled.stages[stage.source])
        kind = "Stage" if stage.source in compiled.stages else "After"
        lines += [
            *(f"### {kind} `{stage.source}`", "", stage.meaning, ""),
            "<!-- run: no, excerpts; generate_docs.py compares them with what is compiled -->",
            *(f"```{stage.language}", *excerpt(text, stage), "```", ""),
        ]
    return lines


def compile_matmul() -> Any:
    import tessera

    sys.path.insert(0, str(ROOT / "python" / "examples"))
    kernel = importlib.import_module("matmul").matmul_kernel
    types = {}
    for parameter in kernel.params:
        if parameter.name.endswith("_ptr"):
            types[parameter.name] = "*fp16:16"
        elif not parameter.is_constexpr:
            types[parameter.name] = "i32:16"
    constants = dict(BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=4, ACTIVATION=None)
    return tessera.compile(
        kernel, signature=types, constexprs=constants, target="sm_90a", num_warps=8
    )


def dump(text: str, folder: pathlib.Path) -> dict[str, str]:
    """The IR after each pass that changes it, by the pass; of one that runs twice, the first."""
    program = ROOT / "build" / "dev" / "bin" / "tessera-opt"
    found = str(program) if program.exists() else shutil.which("tessera-opt")
    if found is None:
        raise SystemExit(f"error: there is no {program}\nfix: tools/check build")
    pipeline = f"--tessera-gpu-pipeline={OPTIONS}"
    command = [found, pipeline, f"--dump-passes={folder}", "-", "-o", str(folder / "all")]
    subprocess.run(command, input=text, check=True, capture_output=True, text=True)
    passes: dict[str, str] = {}
    for file in sorted(folder.glob("*.mlir")):
        name = re.sub(r"^.*\.\d+-", "", file.stem)
        passes.setdefault(name, without_locations(file.read_text()))
    return passes


def without_locations(text: str) -> str:
    """The text without what names the file that it was read from."""
    text = re.sub(r"^#loc.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r' loc\((#\w+|unknown|"[^"]*":\d+:\d+)\)', "", text)


def excerpt(text: str, stage: Stage) -> list[str]:
    """The lines that a stage shows, with dots for those between them."""
    lines: list[str] = []
    shown = 0
    for line in text.splitlines():
        found = re.search(stage.shown, line)
        if not found:
            if lines and lines[-1] != "...":
                lines.append("...")
            continue
        if shown == stage.most:
            break
        shown += 1
        if found.end() > WIDTH:
            line = f"{line[:40]} ... {line[found.start() :]}"
        line = line.replace("\t", "  ")
        lines.append(line if len(line) <= WIDTH else f"{line[: WIDTH - 4]} ...")
    if not shown:
        raise ValueError(f"nothing in {stage.source} is like {stage.shown}")
    return lines
