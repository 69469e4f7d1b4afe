# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/dev/bisect_passes.py names the first pass after which a kernel computes something else."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import shutil
import sys

import pytest

PATH = pathlib.Path(__file__).resolve().parents[3] / "tools" / "dev" / "bisect_passes.py"

# The sum of a row of 512 numbers, each plus one: four warps exchange their parts of it.
KERNEL = """\
tile.func @total(%x: !tile.ptr<f32>, %out: !tile.ptr<f32>) {
  %one = arith.constant dense<1.0> : tensor<512xf32>
  %zero = arith.constant 0 : i32
  %i = tile.range 0 to 512 : tensor<512xi32>
  %base = tile.splat %x : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>>
  %p = tile.addptr %base, %i : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  %v = tile.load %p : tensor<512x!tile.ptr<f32>>
  %w = arith.addf %v, %one : tensor<512xf32>
  %sum = tile.reduce (%w) {axis = 0 : i32} : (tensor<512xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.store %out, %sum : !tile.ptr<f32>
  tile.return
}
"""
ARGUMENTS = ["--grid=1", "--arg=f32:512=random", "--arg=f32:1"]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("bisect_passes", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def dumped(tool, tmp_path_factory):
    """The kernel, and its IR after each pass of the GPU's pipeline."""
    folder = tmp_path_factory.mktemp("bisect")
    kernel = folder / "total.mlir"
    kernel.write_text(KERNEL)
    tool.dump_passes(kernel, "tessera-gpu-pipeline=num-warps=4", folder / "passes")
    return folder / "passes"


def judge(tool, folder: pathlib.Path) -> list:
    launch = tool.Launch(ARGUMENTS, 1e-5)
    return list(tool.steps(folder, launch, launch.interpret(KERNEL)))


def with_mistake(dumped, folder, name: str, pattern: str, replacement: str) -> pathlib.Path:
    """The IR after a pass and all later ones, with a mistake in it."""
    shutil.copytree(dumped, folder)
    (file,) = (file for file in folder.iterdir() if file.stem.endswith(name))
    text, count = re.subn(pattern, replacement, file.read_text(), flags=re.MULTILINE)
    assert count, f"{pattern} is not in {file.name}"
    file.write_text(text)
    return folder


def test_every_pass_for_a_gpu_is_run_and_right(tool, dumped):
    found = judge(tool, dumped)
    assert len(found) > 8
    assert [step.verdict for step in found if step.problem] == []
    assert {step.runner for step in found} == {"interpreter", "simulator"}


@pytest.mark.parametrize(
    "name, pattern, replacement, runner",
    [
        ("-tile-allow-contraction", r"arith\.addf (.*tensor)", r"arith.subf \1", "interpreter"),
        ("-tilegpu-assign-layouts", r"arith\.addf (.*tensor)", r"arith.subf \1", "simulator"),
        ("-convert-tilegpu-to-llvm", r"^ *nvvm\.barrier.*\n", "", "simulator"),
    ],
    ids=["tile", "tilegpu", "race"],
)
def test_the_first_wrong_pass_is_named(tool, dumped, tmp_path, name, pattern, replacement, runner):
    folder = with_mistake(dumped, tmp_path / "passes", name, pattern, replacement)
    *right, wrong = judge(tool, folder)
    assert wrong.name.endswith(name) and wrong.runner == runner and wrong.problem
    assert right and not any(step.problem for step in right)


def test_code_for_cpus_is_not_run(tool, tmp_path):
    kernel = tmp_path / "total.mlir"
    kernel.write_text(KERNEL)
    tool.dump_passes(kernel, "tessera-host-pipeline", tmp_path / "passes")
    found = judge(tool, tmp_path / "passes")
    assert found[0].runner == "interpreter" and not found[0].problem
    assert not found[-1].runner and "as a whole" in found[-1].problem


@pytest.mark.parametrize(
    "options, status, text",
    [
        (ARGUMENTS, 0, "no pass changes the result\n"),
        ([*ARGUMENTS, "--arg=i32=1"], 2, "fix: give tile IR"),
        (
            [*ARGUMENTS, "--pipeline=tessera-host-pipeline"],
            0,
            "passes after 031-tile-allow-contraction did not run\n",
        ),
    ],
)
def test_command(tool, tmp_path, monkeypatch, capsys, options, status, text):
    kernel = tmp_path / "total.mlir"
    kernel.write_text(KERNEL)
    monkeypatch.setattr(sys, "argv", ["bisect_passes.py", str(kernel), *options])
    assert tool.main() == status
    assert text in capsys.readouterr().out


def test_numbers_are_compared(tool):
    launch = tool.Launch([], 1e-3)
    launch.compare({"arg 0 f32:2": ["1.0001", "2"]}, {"arg 0 f32:2": ["1", "2"]})
    with pytest.raises(tool.Differs, match="element 1 is 3, not 2"):
        launch.compare({"arg 0 f32:2": ["1", "3"]}, {"arg 0 f32:2": ["1", "2"]})
    with pytest.raises(tool.Differs, match="element 0 is NaN, not 1"):
        launch.compare({"arg 0 f32:1": ["NaN"]}, {"arg 0 f32:1": ["1"]})
