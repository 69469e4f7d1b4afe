# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in the descriptions of operations, types, attributes and passes are what tessera-opt
reads, and the passes make of them what the descriptions say."""

from __future__ import annotations

import subprocess

import pytest

from docs.commands import environment
from docs.descriptions import (
    Module,
    complete,
    examples,
    free_values,
    is_shown,
    operations,
    register_layout,
    run,
    shared_layout,
)
from docs.pages import ROOT

EXAMPLES = examples("operations")


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    made = [Module(example, example.text) for example in EXAMPLES]
    complete(made)
    run(made)
    return {module.example.id: module for module in made}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_example_is_parsed(example, modules):
    module = modules[example.id]
    assert not module.error, f"{example.file}:{example.line}: {module.error}\n{module.print()}"


def test_every_family_has_examples():
    assert len(EXAMPLES) > 100
    assert len({example.file for example in EXAMPLES}) > 18


# What makes examples complete.


def test_values_are_found():
    text = "%x = arith.addi %a, %b : i32\nscf.for %i = %x to %n step %x : i32 {\n}"
    assert free_values(text) == ["%a", "%b", "%n"]


def test_layouts_are_valid():
    assert shared_layout([2, 4], False).endswith("offset = [[0, 1], [0, 2], [1, 0]]>")
    assert "lane = [1, 2, 4, 8, 16]" in register_layout([32], False)


def made(text: str) -> Module:
    module = Module(EXAMPLES[0], text)
    complete([module])
    run([module])
    return module


def test_types_are_found():
    module = made(
        "%y = tile.splat %s : i32 -> tensor<64xi32>\n%z = tile.addptr %p, %y : !tile.ptr<f32>, i32"
    )
    assert module.types["%s"] == "i32" and module.types["%p"] == "!tile.ptr<f32>"
    assert "expects different type" in module.error


def test_a_wrong_example_is_found():
    assert "expected" in made("%x = tile.load %p, tensor<64x!tile.ptr<f32>>").error


def test_results_are_matched():
    result = "%0 = arith.addi %arg0, %arg1 : i32\n%1 = arith.muli %0, %0 : i32"
    assert is_shown("%s = arith.addi %a, %b : i32\n%t = arith.muli %s, %s : i32", result)
    assert is_shown("%t = arith.muli ... : i32", result)
    assert not is_shown("%s = arith.addi %a, %b : i32\n%t = arith.muli %s, %a : i32", result)
    assert operations(result) == {"arith.addi", "arith.muli"}


# Passes: the first fence of a description is what comes in, the others are what goes out.

# What comes before a pass, and its options.
BEFORE = {
    "TileGPUInsertBarriersPass": ["--tilegpu-allocate-shared-memory"],
    "TileGPUInsertProxyFencesPass": [
        "--tilegpu-allocate-shared-memory",
        "--tilegpu-insert-barriers",
    ],
}
OPTIONS = {
    "StripsOutlineParts": "limit=2 part-size=2",
    "StripsLowerPrivateCopies": "machine=avx512",
    "TilePairIterationsPass": "least-bytes=1024",
}
# On kernels alone.
KERNELS = {"TileCheckAccessesPass"}
# Whose input is a page: the first module of the pass's lit test. The description shows what matters
# of it, with dots for the rest.
WHOLE = {
    "TilePairIterationsPass": "Dialect/Tile/pair-iterations",
    "TileVersionAddressesPass": "Dialect/Tile/version-addresses",
    "TileGPUPipelinePass": "Dialect/TileGPU/tilegpu-pipeline",
    "TileGPUExpandSchedulePass": "Dialect/TileGPU/tilegpu-expand-schedule",
    "TileGPUWarpSpecializePass": "Dialect/TileGPU/tilegpu-warp-specialize",
    "TileGPUStoreByTensorMapPass": "Dialect/TileGPU/tilegpu-store-by-tensor-map",
    "TileGPUOrderProgramsPass": "Dialect/TileGPU/tilegpu-order-programs",
    "TileGPUOrderTilesPass": "Dialect/TileGPU/tilegpu-order-tiles",
    "TileGPUDivideProgramsPass": "Dialect/TileGPU/tilegpu-divide-programs",
    "TileGPUSplitKPass": "Dialect/TileGPU/tilegpu-split-k",
    "TileGPUPrefetchNextRowPass": "Dialect/TileGPU/tilegpu-prefetch-next-row",
    "TileGPUStreamRowsPass": "Dialect/TileGPU/tilegpu-stream-rows",
    "TileGPUSpillInvariantsPass": "Dialect/TileGPU/tilegpu-spill-invariants",
    "TileGPULoadRowsAheadPass": "Dialect/TileGPU/tilegpu-load-rows-ahead",
    "TileGPUSliceTilesPass": "Dialect/TileGPU/tilegpu-slice-tiles",
    "TileGPUPlanAccesses": "Conversion/TileGPUToLLVM/plan-accesses",
    "TileGPUMarkNarrowResults": "Conversion/TileGPUToLLVM/mark-narrow-results",
    "TileGPUDeclareSharedMemory": "Conversion/TileGPUToLLVM/declare-shared-memory",
}
PASSES: dict[str, list] = {}
for found in examples("Passes.td"):
    PASSES.setdefault(found.name, []).append(found)


@pytest.mark.parametrize("name", PASSES)
def test_pass_does_what_its_description_shows(name):
    first, *others = PASSES[name]
    if name in WHOLE:
        check_whole(first, others, ROOT / f"test/{WHOLE[name]}.mlir")
        return
    module = Module(first, first.text, kernel=name in KERNELS, returned=name not in KERNELS)
    complete([module])
    run([module])
    assert not module.error, f"{first.file}:{first.line}: {module.error}\n{module.print()}"
    flag = f"--{first.mnemonic}" + (f"={OPTIONS[name]}" if name in OPTIONS else "")
    result = run([module], *BEFORE.get(name, []), flag)
    assert not module.error, f"{first.file}:{first.line}: {module.error}\n{module.print()}"
    assert others, f"{first.file}:{first.line}: what does the pass make of it?"
    for other in others:
        where = f"{other.file}:{other.line}: the pass does not give\n{other.text}\nbut\n{result}"
        assert is_shown(other.text, result), where
        if "..." not in other.text:
            left = operations(module.text) - operations(other.text)
            assert not left & operations(result), where


def check_whole(first, others, path):
    """The module has what the first fence shows, and the pass makes of it what the others show."""
    text = path.read_text().split("// -----")[0]
    flag = f"--{first.mnemonic}" + (f"={OPTIONS[first.name]}" if first.name in OPTIONS else "")
    for shown, flags in [([first], []), (others, [flag])]:
        command = ["tessera-opt", *flags, "-"]
        result = subprocess.run(
            command, input=text, capture_output=True, text=True, env=environment()
        )
        assert result.returncode == 0, result.stderr
        assert shown
        for one in shown:
            where = f"{one.file}:{one.line}: this is not in {path.name}:\n{one.text}"
            assert is_shown(one.text, result.stdout), f"{where}\n{result.stdout}"


def test_whole_examples_are_those_of_passes():
    assert WHOLE.keys() <= PASSES.keys()
