# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in the descriptions of operations, types, attributes and passes are what tessera-opt
reads, and the passes make of them what the descriptions say."""

from __future__ import annotations

import pytest

from docs.descriptions import (
    Module,
    complete,
    examples,
    free_values,
    operations,
    pattern_of,
    register_layout,
    run,
    shared_layout,
)

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
    assert pattern_of("%s = arith.addi %a, %b : i32\n%t = arith.muli %s, %s : i32").search(result)
    assert pattern_of("%t = arith.muli ... : i32").search(result)
    assert not pattern_of("%s = arith.addi %a, %b : i32\n%t = arith.muli %s, %a : i32").search(
        result
    )
    assert operations(result) == {"arith.addi", "arith.muli"}
