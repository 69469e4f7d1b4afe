#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the first pass after which a kernel computes something else.

The IR after each pass is run on the same arguments, and its arrays are compared with those that the
reference interpreter computes from the input. Tile IR is interpreted. IR of a GPU is lowered by the
required passes that it has not been through (layouts, shared memory, barriers, the code of a thread)
and simulated. IR of a CPU beyond tiles is not run.

Usage: tools/dev/bisect_passes.py add.tile-opt.mlir --pipeline tessera-gpu-pipeline=tensor-maps \\
           --grid 4 --arg f32:4096=random --arg f32:4096=random --arg f32:4096 --arg i32=4000
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "dev" / "bin"

# For each array its number and type (`arg 2 f32:1024`), with its values as text.
Arrays = dict[str, list[str]]


class NotRun(Exception):
    """Nothing runs this IR; the message says why."""


class Differs(Exception):
    """The IR ran, and what it did is wrong."""


@dataclasses.dataclass
class Launch:
    """The arguments of a kernel, as tessera-interpret takes them, and how far floats may differ."""

    options: Sequence[str]
    tolerance: float
    attributes: str = ""
    """The head of the module that was lowered last."""

    def interpret(self, text: str) -> Arrays:
        return arrays_of(run(["tessera-interpret", *self.options, "-"], text))

    def simulate(self, text: str) -> Arrays:
        return arrays_of(run(["tessera-simulate", *self.options, "-"], self.lower(text), (0, 1)))

    def lower(self, text: str) -> str:
        """The code of a thread, with what a launch needs on its module."""
        if "tile.func" in text:
            text = run(["tessera-opt", *missing_passes(text), "-"], text)
            arch = re.search(r'#tilegpu\.target<"(\w+)">', text)
            options = {"target": "cuda", "arch": arch[1] if arch else "sm_90a"}
            options |= {"start_stage": "tilegpu", "last_stage": "llvm"}
            compiled = ["tessera-compile", f"--options={json.dumps(options)}", "--stage=llvm", "-"]
            text = run(compiled, text)
            self.attributes = text.partition("{\n")[0]
            return text
        # MLIR prints `nvvm.barrier ... loc(#loc)` and cannot read it.
        text = re.sub(r" loc\((#\w+|unknown)\)|^#loc.*$", "", text, flags=re.MULTILINE)
        # Only the compiler sets the module's attributes of launches.
        head = re.compile(r"^module( attributes .*)? \{$", re.MULTILINE)
        text = (
            head.sub(lambda _: f"{self.attributes}{{", text, count=1) if self.attributes else text
        )
        return run(["tessera-opt", "--tile-end-loops", "--convert-control-flow-to-llvm", "-"], text)

    def run(self, text: str) -> tuple[str, Arrays]:
        """The tool that ran the IR, and the arrays afterwards."""
        if "tilegpu." in text or "nvvm." in text:
            return "simulator", self.simulate(text)
        if "tile.func" in text and "strips.group" not in text and "memref<" not in text:
            return "interpreter", self.interpret(text)
        raise NotRun("code for CPUs runs as a whole alone")

    def compare(self, found: Arrays, expected: Arrays) -> None:
        """Raises Differs at the first element that is not as expected."""
        for name, values in expected.items():
            others = found.get(name, [])
            if len(others) != len(values):
                raise Differs(f"{name} has {len(others)} elements printed, not {len(values)}")
            for index, (value, other) in enumerate(zip(values, others, strict=True)):
                if not self.is_same(value, other):
                    raise Differs(f"{name}: element {index} is {other}, not {value}")

    def is_same(self, value: str, other: str) -> bool:
        if value == other:
            return True
        try:
            a, b = float(value), float(other)
        except ValueError:
            return False
        return math.isclose(a, b, rel_tol=self.tolerance, abs_tol=self.tolerance)


def run(command: list[str], text: str, allowed: Iterable[int] = (0,)) -> str:
    """The output of a tool. Raises NotRun if it fails, and Differs if the simulator finds a
    mistake."""
    program = BUILT / command[0]
    known = str(program) if program.exists() else shutil.which(command[0])
    if known is None:
        raise SystemExit(f"error: there is no {program}\nfix: tools/check build")
    result = subprocess.run([known, *command[1:]], input=text, capture_output=True, text=True)
    lines = result.stdout.splitlines()
    if result.returncode not in allowed or (result.returncode and not arrays_of(result.stdout)):
        error = (result.stderr or result.stdout).strip().splitlines()
        raise NotRun(f"{command[0]}: {error[0] if error else f'status {result.returncode}'}")
    if result.returncode:
        raise Differs(next((line for line in lines if not line.startswith("arg ")), "a finding"))
    return result.stdout


def arrays_of(output: str) -> Arrays:
    found = re.findall(r"^(arg \d+ \S+) = (.*)$", output, re.MULTILINE)
    return {name: values.split(", ") for name, values in found}


def missing_passes(text: str) -> list[str]:
    """The passes that tiles need before they become the code of a thread, and have not been through."""
    passes = []
    if re.search(r"tilegpu\.(schedule|node|kernel_schedule) =", text):
        passes.append("--tilegpu-expand-schedule")
    if "tilegpu.unassigned" in text:
        passes += ["--tilegpu-coalesce", "--tilegpu-assign-layouts"]
    if "tilegpu.shared_bytes" not in text:
        passes.append("--tilegpu-allocate-shared-memory")
    return [*passes, "--tilegpu-insert-barriers", "--tilegpu-insert-proxy-fences"]


def dump_passes(kernel: pathlib.Path, pipeline: str, folder: pathlib.Path) -> None:
    """Writes the IR after each pass that changed it; after a pass that fails, up to there."""
    if pipeline.startswith("builtin.module("):
        flag = f"--pass-pipeline={pipeline}"
    else:
        flag = f"--{pipeline.removeprefix('--')}"
    try:
        run(["tessera-opt", flag, f"--dump-passes={folder}", str(kernel), "-o", os.devnull], "")
    except NotRun as error:
        print(f"the pipeline fails: {error}")


@dataclasses.dataclass
class Step:
    """The IR after a pass, and the outcome of running it."""

    file: pathlib.Path
    runner: str = ""
    problem: str = ""

    @property
    def name(self) -> str:
        """Number and flag of the pass, as the file has them."""
        return self.file.stem.split(".")[-1]

    @property
    def verdict(self) -> str:
        if not self.runner:
            return f"not run ({self.problem})"
        return f"{self.runner}: {self.problem or 'the same'}"


def steps(folder: pathlib.Path, launch: Launch, expected: Arrays) -> Iterator[Step]:
    """The IR after each pass, in order, up to the first that computes something else."""
    for file in sorted(folder.glob("*.mlir"), key=lambda file: file.stem.split(".")[-1]):
        step = Step(file)
        try:
            step.runner, found = launch.run(file.read_text())
            launch.compare(found, expected)
        except NotRun as error:
            step.runner, step.problem = "", str(error)
        except Differs as error:
            step.runner, step.problem = step.runner or "simulator", str(error)
        yield step
        if step.runner and step.problem:
            return


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kernel", type=pathlib.Path, help="a file of tile IR (TESSERA_DUMP_DIR)")
    parser.add_argument(
        "--pipeline",
        default="tessera-gpu-pipeline=tensor-maps",
        help="a pipeline of tessera-opt with its options, or builtin.module(...)",
    )
    parser.add_argument("--grid", default="1", help="programs along x, y, z")
    parser.add_argument("--arg", action="append", default=[], help="as of tessera-interpret")
    parser.add_argument(
        "--tolerance", type=float, default=1e-3, help="relative and absolute, of floats"
    )
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the IR after each pass")
    given = parser.parse_args()
    launch = Launch([f"--grid={given.grid}", *(f"--arg={a}" for a in given.arg)], given.tolerance)
    try:
        expected = launch.interpret(given.kernel.read_text())
    except NotRun as error:
        print(f"error: {error}\nfix: give tile IR, and an --arg for each argument of the kernel")
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or pathlib.Path(temporary)
        dump_passes(given.kernel, given.pipeline, folder)
        agrees, skipped = "the input", 0
        for step in steps(folder, launch, expected):
            print(f"{step.name:44} {step.verdict}")
            if not step.runner:
                skipped += 1
            elif step.problem:
                between = f", or one of {skipped} passes before it that did not run" * bool(skipped)
                print(f"first difference after {step.name}{between}; {agrees} is right")
                return 1
            else:
                agrees, skipped = step.name, 0
    if agrees == "the input" or skipped:
        print(f"no difference found; {skipped} passes after {agrees} did not run")
    else:
        print("no pass changes the result")
    return 0


if __name__ == "__main__":
    sys.exit(main())
