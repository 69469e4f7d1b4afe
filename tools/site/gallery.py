# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gallery: example kernels, what each becomes at every stage, and how fast it was.

The IR is made anew with each site, by the compiler as it is; the figures are those of
docs/benchmarks.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import json
import pathlib
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import charts
import markdown
import pictures

ROOT = markdown.ROOT
EXAMPLES = ROOT / "python" / "examples"
SHOWN_LINES = 160
CPU, GPU = "x86-64-v3", "sm_90a"

STAGES = {
    "tile": ("mlir", "What the front-end built: the kernel's statements in order, every type decided."),
    "tile-opt": ("mlir", "After the tile pipeline, which no target takes part in."),
    "strips": ("mlir", "Loops over vectors of the machine's width."),
    "tilegpu": ("mlir", "Tiles with layouts; copies to shared memory, tensor cores and barriers."),
    "llvmir": ("llvm", "LLVM IR after the optimiser."),
    "asm": ("asm", "The machine code, as assembly."),
    "ptx": ("ptx", "What ptxas, or the GPU's driver, assembles."),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Work:
    """One kernel of the gallery."""

    name: str
    title: str
    text: str
    file: str
    kernel: str
    signature: str
    constants: Mapping[str, Any]
    cpu_rows: Sequence[str]
    """Rows of docs/benchmarks/cpu.json, by the beginning of their names."""
    gpu_rows: Sequence[str]
    """Rows of gpu.json or gpu_matmul.json."""
    gpu_signature: str = ""
    """Of 16-bit arrays, where these are what tensor cores multiply."""
    gpu_constants: Mapping[str, Any] = dataclasses.field(default_factory=dict)


WORKS = [
    Work(
        "VectorAdd", "Vector addition",
        "One program adds one tile; a mask keeps the last one inside the arrays.",
        "vector_add.py", "add", "*fp32:16, *fp32:16, *fp32:16, i32", {"BLOCK": 1024},
        ["vector add"], ["add f32", "add f16", "add int8"],
    ),
    Work(
        "Softmax", "Softmax of rows",
        "A program takes a row: it is read once, reduced twice in registers and written once.",
        "softmax.py", "softmax_kernel", "*fp32:16, *fp32:16, i32:16, i32:16, i32:16", {"BLOCK": 4096},
        ["softmax"], ["softmax"],
    ),
    Work(
        "LayerNorm", "Layer normalisation",
        "Mean, variance and the result of a row, with weight and bias, in one pass over memory.",
        "layer_norm.py", "layer_norm_kernel",
        "*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32:16, i32:16, fp32", {"BLOCK": 4096},
        ["layer norm"], ["layer norm bf16", "layer norm f32"],
    ),
    Work(
        "Matmul", "Matmul with bias and GELU",
        "The usual loop over K with pointers and masks. On a CPU it becomes blocks of registers, on an H200 "
        "TMA copies and warp-specialised wgmma; nothing in the kernel says so.",
        "matmul.py", "matmul_kernel",
        "*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32:16, i32:16, i32:16, i32:16, i32:16, i32:16",
        {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 4, "ACTIVATION": "gelu"},
        ["matmul"], ["matmul bf16 8192x8192", "matmul bf16 4096x4096", "matmul bf16 2048", "matmul bf16 1024",
                     "matmul bias gelu", "matmul fp8 8192x8192x8192 along k", "matmul int8 4096x4096x4096 along k"],
        "*bf16:16, *bf16:16, *bf16:16, *bf16:16, i32:16, i32:16, i32:16, i32:16, i32:16, i32:16",
        {"num_warps": 8},
    ),
    Work(
        "Attention", "Flash attention, forward",
        "Scores are never stored: each program keeps the running maximum and sum of its rows.",
        "attention.py", "attention_kernel", "*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32:16, fp32",
        {"HEAD": 64, "BLOCK_M": 64, "BLOCK_N": 64, "CAUSAL": True},
        ["attention"], ["attention"],
        "*bf16:16, *bf16:16, *bf16:16, *bf16:16, i32:16, fp32",
        {"BLOCK_M": 128, "BLOCK_N": 128, "num_warps": 8},
    ),
    Work(
        "DeformableAttention", "Multi-scale deformable attention",
        "Each query reads a few places of several feature maps, between pixels, and weighs them. All of a "
        "query's places are computed at once, as a tile. On the CPU, torch's is the usual one with "
        "`grid_sample`, level by level.",
        "deformable_attention.py", "forward_kernel",
        "*fp32:16, *i64:16, *i64:16, *fp32:16, *fp32:16, *fp32:16, i32, i32, i32:16",
        {"PIXEL": 256, "HEADS": 8, "DIM": 32, "LEVELS": 4, "POINTS": 4, "ROWS": 16},
        ["deformable attention"], ["deformable attention"],
    ),
    Work(
        "Scatter", "Adding to places that the data choose",
        "Programs meet at the same addresses, so they add by atomics. Lanes that meet are combined first.",
        "scatter.py", "scatter_add_kernel", "*fp32:16, *i64:16, *fp32:16, i32", {"BLOCK": 1024},
        ["histogram", "scatter_add", "embedding backward"], [],
    ),
]  # fmt: skip


def raw(name: str) -> Any:
    """The figures of one file of docs/benchmarks."""
    return json.loads((ROOT / "docs/benchmarks" / f"{name}.json").read_text())


def compiled(work: Work, target: str) -> Any:
    """The kernel for a CPU or a GPU, none of which need be there."""
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    import tessera

    kernel = getattr(importlib.import_module(work.file.removesuffix(".py")), work.kernel)
    constants = dict(work.constants)
    # The gallery should not show warnings about this machine's ptxas.
    warnings.simplefilter("ignore", tessera.ToolchainWarning)
    if target == CPU:
        return tessera.compile(kernel, signature(kernel, work.signature, constants), cpu=CPU)
    options: dict[str, Any] = {}
    for name, value in work.gpu_constants.items():
        (constants if name in constants else options)[name] = value
    text = work.gpu_signature or work.signature
    return tessera.compile(kernel, signature(kernel, text, constants), target=GPU, **options)


def signature(kernel: Any, text: str, constants: Mapping[str, Any]) -> dict[str, Any]:
    """The types of parameters by name, and the values of constants."""
    types = iter(text.split(", "))
    return {
        name: constants[name] if name in constants else next(types) for name in kernel.arg_names
    }


def source(work: Work) -> str:
    """The kernel and the functions it calls, as they stand in the file."""
    text = (EXAMPLES / work.file).read_text()
    lines = text.splitlines()
    found: dict[str, str] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            first = node.decorator_list[0].lineno
            found[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
    kernel = found.pop(work.kernel)
    helpers = [helper for name, helper in found.items() if re.search(rf"\b{name}\(", kernel)]
    return re.sub(r"  # fmt: skip$", "", "\n\n\n".join([*helpers, kernel]), flags=re.MULTILINE)


def page(work: Work, out: pathlib.Path) -> str:
    """A kernel's page; the whole text of each stage is put beside it."""
    lines = [
        f"# {work.title}", "", work.text, "",
        f"The whole file, with the function that launches it: [`python/examples/{work.file}`]"
        f"(../../python/examples/{work.file}).", "",
        markdown.fenced(source(work), "python"), "",
    ]  # fmt: skip
    for heading, chart, note in plots(work):
        lines += [f"## {heading}", "", html(chart), "", note, ""]
    for target, heading in ((CPU, "On a CPU, stage by stage"), (GPU, "On a GPU, stage by stage")):
        kernel = compiled(work, target)
        lines += [f"## {heading}", "", facts(work, kernel, target), ""]
        lines += tabs(work, kernel, target, out)
    return "\n".join(lines) + "\n"


def facts(work: Work, kernel: Any, target: str) -> str:
    """The kernel's constants, and the facts that the compiler reports."""
    constants = {**work.constants, **(work.gpu_constants if target == GPU else {})}
    shown = ", ".join(f"`{name}={value!r}`" for name, value in constants.items())
    text = f"For `{target}`, with {shown}."
    if target == GPU:
        text += f" {kernel.num_warps} warps, {kernel.shared} bytes of shared memory"
        if kernel.n_regs:
            text += f", {kernel.n_regs} registers a thread, {kernel.n_spills} bytes spilled"
        text += "."
    remarks = [remark.replace(f"{ROOT}/", "") for remark in kernel.remarks]
    if remarks:
        text += "\n\nThe compiler's remarks:\n\n" + markdown.fenced("\n".join(remarks), "text")
    return text


def tabs(work: Work, kernel: Any, target: str, out: pathlib.Path) -> Iterator[str]:
    """A tab for each stage."""
    yield "::::{tab-set}"
    for stage, (language, says) in STAGES.items():
        if stage not in kernel.stages:
            continue
        text = kernel.stages[stage].strip()
        if stage == "llvmir":
            text = text[text.index("; Function Attrs") :] if "; Function Attrs" in text else text
        text = text.replace(f"{ROOT}/", "")
        lines = text.splitlines()
        yield f":::{{tab-item}} {stage}"
        yield ""
        yield says
        if len(lines) > SHOWN_LINES:
            name = f"{work.name}.{target}.{stage}.txt"
            (out / "docs/Gallery").mkdir(parents=True, exist_ok=True)
            (out / "docs/Gallery" / name).write_text(text + "\n")
            yield f"The first {SHOWN_LINES} of {len(lines):,} lines; {{download}}`all of them <{name}>`."
        yield ""
        yield markdown.fenced("\n".join(lines[:SHOWN_LINES]), language)
        yield ""
        yield ":::"
    yield "::::"
    yield ""


def html(text: str) -> str:
    """HTML as a block of a page."""
    return markdown.fenced(text, "{raw} html")


def plots(work: Work) -> Iterator[tuple[str, str, str]]:
    """Heading, chart and its note, for the CPU and for the GPU."""
    cpu = raw("cpu")
    rows = [row for row in cpu["rows"] if row["work"].startswith(tuple(work.cpu_rows))]
    if rows:
        machine = cpu["environment"]
        note = (
            "Speed as a multiple of the best other's on the same machine: above 1 Tessera is faster. "
            f"{machine['cpu']}, {machine['threads']} threads, {machine['date']}; all rows and how they are "
            "measured: [Benchmarks](../Benchmarks.md)."
        )
        yield "Speed on a CPU", cpu_chart(
            f"{work.title}, speed relative to the best other", rows
        ), note
    for name, unit in (("gpu", "GB/s"), ("gpu_matmul", "TFLOP/s")):
        figures = raw(name)
        rows = [
            row for row in figures["rows"] if row["work"].startswith(tuple(work.gpu_rows) or ("-",))
        ]
        if not rows:
            continue
        note = (
            f"{figures['environment']['gpu']}, Triton {figures['environment']['triton']}, torch "
            f"{figures['environment']['torch']}, {figures['environment']['date'][:10]}. The kernels of this "
            "chart are those of `python/benchmarks`, one source for both compilers: "
            "[Benchmarks](../Benchmarks.md)."
        )
        yield f"Speed on a GPU ({unit})", gpu_chart(work.title, unit, rows), note


_WHO = {"tessera": "Tessera", "triton": "Triton", "descriptors": "Triton, persistent",
        "library": "cuBLAS, cuDNN", "torch": "torch", "nvcc": "nvcc"}  # fmt: skip


def cpu_chart(title: str, rows: Sequence[Any], most: float | None = None) -> str:
    """Speeds relative to that of the best other."""
    groups = []
    for row in rows:
        best = row["best_other"]
        if not best:
            continue
        bars = [charts.Bar("Tessera", row["ms"][best] / next(iter(row["ms"].values())))]
        others = [who for who in row["ms"] if who[0] != "(" and who != next(iter(row["ms"]))]
        bars += [charts.Bar(who, row["ms"][best] / row["ms"][who]) for who in others]
        groups.append(charts.Group(row["work"], bars))
    return charts.bars(f"{title} (longer is faster)", groups, 1.0, most)


def gpu_chart(title: str, unit: str, rows: Sequence[Any]) -> str:
    """Speeds as they were measured."""
    groups = []
    for row in rows:
        results = row.get("results", row)
        groups.append(
            charts.Group(
                row["work"],
                [
                    charts.Bar(shown, results[who].get(unit))
                    for who, shown in _WHO.items()
                    if isinstance(results.get(who), dict)
                ],
            )
        )
    return charts.bars(f"{title}, {unit} (longer is faster)", groups)


def index() -> str:
    """The page that leads to the others."""
    lines = [
        "# Gallery", "",
        "Kernels as people write them, what each becomes on a CPU and on a GPU, and how fast it was. The IR "
        "on these pages was made by the compiler of this version; the figures are those of "
        "[Benchmarks](../Benchmarks.md).", "",
        "::::{grid} 1 1 2 2", ":gutter: 3", "",
    ]  # fmt: skip
    for work in WORKS:
        lines += [
            f":::{{grid-item-card}} {work.title}", f":link: {work.name}", ":link-type: doc", "",
            html(pictures.picture(work.name)), "", work.text, ":::", "",
        ]  # fmt: skip
    lines += [
        "::::", "",
        "The [gallery of operators](Operators.md) has every operator of `tessera.ops`.", "",
        "```{toctree}", ":hidden:", "", *(work.name for work in WORKS), "Operators", "```", "",
    ]  # fmt: skip
    return "\n".join(lines)


def pages(out: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Path and text of each page."""
    yield "docs/Gallery/index.md", index()
    for work in WORKS:
        yield f"docs/Gallery/{work.name}.md", page(work, out)
