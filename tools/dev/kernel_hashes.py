#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hashes the code of kernels, to show that a change of structure changes no code.

    tools/dev/kernel_hashes.py --json before.json              on the commit before
    tools/dev/kernel_hashes.py --compare before.json           on the commit after

There are four sets, of which `--sets` selects some:

- `fuzz`: the kernels of python/benchmarks/compile_time.py, and kernels of the fuzzer by kind and
  seed, 350 in all, for a CPU and two GPUs;
- `lit`: the output of tessera-opt for each RUN line of the lit tests of GPUs, such as schedules;
- `benchmarks`: each row and configuration that the GPU benchmarks measure, for sm_90a;
- `public`: the kernels of all sets of python/benchmarks/public_kernels.py, for sm_90a.

The hashes are of the IR behind the scheduling passes, of PTX with the conditions of a launch, and of
a CPU's object. A kernel whose source differs between the two commits is counted apart. Exits with 1
if the code of any other kernel differs. Files of hashes are not committed: they depend on the
versions of LLVM and ptxas.

Attributes and passes that were renamed are the same with `--rename OLD=NEW`. No part needs a GPU.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import importlib
import itertools
import json
import pathlib
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import Any, Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("python", "python/benchmarks", "python/examples")]

COUNT = 350
FIRST_SEED = 5000
# The last stage of IR, and machine code, of each target.
TARGETS = {
    "x86-64-v3": ({"cpu": "x86-64-v3"}, ("strips", "object")),
    "sm_80": ({"target": "sm_80"}, ("tilegpu", "ptx")),
    "sm_90a": ({"target": "sm_90a"}, ("tilegpu", "ptx")),
}
# Kinds whose kernels take arrays and numbers alone.
KINDS = ("values", "language", "hints", "loops", "memory", "reductions", "strides", "sums",
         "tiles", "views")  # fmt: skip


CODES = {"int1": "i1", "bfloat16": "bf16"}
CODES.update({f"float{bits}": f"fp{bits}" for bits in (16, 32, 64)})
CODES.update({f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)})
CODES.update({f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)})


def type_of(number: float) -> str:
    """The type of a number among a kernel's arguments, as a signature has it."""
    if isinstance(number, float):
        return "fp32"
    return "i32:16" if number % 16 == 0 else "i32"


def kernels() -> Iterator[tuple[str, tuple[Any, Any], str, dict[str, Any], str]]:
    """Names, functions (for CPUs, for GPUs), signatures, options and sources, in a fixed order."""
    from tessera.testing.fuzz.check import compile_source
    from tessera.testing.fuzz.generate import generate

    for name, (kernel, signature, constexprs) in importlib.import_module(
        "compile_time"
    ).KERNELS.items():
        types = [f"{type}:16" if type.startswith("*") else type for type in signature.values()]
        text = ", ".join([*types, *map(repr, constexprs.values())])
        yield name, (kernel, kernel), text, {}, kernel.src
    for seed in itertools.count(FIRST_SEED):
        for kind in KINDS:
            program = generate(seed, "simulator", kind)
            if program.parts:
                continue
            sources = [program.source(gpu) for gpu in (False, True)]
            on_cpu, on_gpu = (compile_source(source, f"<{kind} {seed}>") for source in sources)
            numbers = [value for _, value in program.scalars]
            types = [f"*{CODES.get(array.dtype, array.dtype)}:16" for array in program.arrays]
            text = ", ".join([*types, "i32", *map(type_of, numbers)])
            yield f"{kind} {seed}", (on_cpu, on_gpu), text, dict(program.options), "".join(sources)


def hash_of(text: Any, renames: dict[str, str]) -> str:
    """A short hash of text or of bytes."""
    if isinstance(text, str):
        for old, new in renames.items():
            text = text.replace(old, new)
        text = text.encode()
    return hashlib.sha256(text).hexdigest()[:16]


Hashes = dict[str, str]
"""The hashes of a kernel's source and of what is made of it, by stage."""


def fuzz_set(share: int, shares: int, renames: dict[str, str]) -> Iterator[tuple[str, Hashes]]:
    """The kernels of compile_time.py and of the fuzzer."""
    import tessera

    for name, (on_cpu, on_gpu), text, options, source in every(share, shares, kernels(), COUNT):
        hashes = {"source": hash_of(source + text, {})}
        for target, (more, stages) in TARGETS.items():
            given = {**options, **more}
            if target != "sm_90a":
                given.pop("num_ctas", None)
            kernel = on_gpu if "target" in more else on_cpu
            try:
                compiled = tessera.compile(kernel, text, **given)
                for stage in stages:
                    hashes[f"{target} {stage}"] = hash_of(compiled.asm[stage], renames)
            except tessera.TesseraError as error:
                hashes[target] = f"{type(error).__name__} {getattr(error, 'id', '')}"
        yield name, hashes


def every(share: int, shares: int, items: Iterable[Any], most: int | None = None) -> Iterator[Any]:
    """Every `shares`-th of at most `most` items, from number `share` on."""
    return itertools.islice(items, share, most, shares)


LIT_FOLDERS = (
    "Analysis", "Conversion/TileGPUToLLVM", "Conversion/TileToTileGPU", "Dialect/TileGPU", "Pipelines",
)  # fmt: skip


def lit_commands() -> Iterator[tuple[str, str]]:
    """The lit tests of GPUs, each with one of its commands of tessera-opt, in a fixed order."""
    for folder in LIT_FOLDERS:
        for file in sorted((ROOT / "test" / folder).glob("*.mlir")):
            lines = re.findall(r"// RUN: (.*)", file.read_text())
            for line in "\n".join(lines).replace("\\\n", " ").splitlines():
                command = line.split("|")[0].removeprefix("not ").strip()
                # A command of several parts, or with files of its own, does not count.
                if command.startswith("tessera-opt ") and "%" not in command.replace("%s", ""):
                    yield file.relative_to(ROOT).as_posix(), command


def lit_set(share: int, shares: int, renames: dict[str, str]) -> Iterator[tuple[str, Hashes]]:
    """The output of tessera-opt."""
    program = str(ROOT / "build/dev/bin/tessera-opt")
    for file, command in every(share, shares, lit_commands()):
        arguments = shlex.split(command.replace("%s", file).split(">")[0].split("<")[0])[1:]
        if "<" in command:
            arguments.append(file)
        done = subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True)
        text = (ROOT / file).read_text() + command
        # Crashes print addresses. None is expected: the status would be another one.
        printed = hash_of(f"{done.returncode}\n{done.stdout}\n{done.stderr}", renames)
        yield f"{file}: {command}", {"source": hash_of(text, {}), "printed": printed}


class CompiledKernels:
    """Compiles each kernel that is launched while it is entered, for sm_90a, and launches none."""

    def __init__(self, renames: dict[str, str]) -> None:
        from tessera.runtime.jit import JITFunction

        self.owner: Any = JITFunction
        self.renames = renames
        self.hashes: Hashes = {}

    def __enter__(self) -> CompiledKernels:
        import tessera

        builds = importlib.import_module("compare_gpu_builds")
        self.original = self.owner.__getitem__

        def compile_and_note(kernel: Any, grid: Any) -> Any:
            def call(*arguments: Any, **options: Any) -> None:
                at = f"{len(self.hashes)} {kernel.__name__}"
                try:
                    compiled = kernel.warmup(
                        *arguments, grid=grid, **{**options, "target": "sm_90a"}
                    )
                except tessera.TesseraError as error:
                    self.hashes[at] = f"{type(error).__name__} {getattr(error, 'id', '')}"
                else:
                    self.hashes[f"{at} tilegpu"] = hash_of(compiled.asm["tilegpu"], self.renames)
                    self.hashes[f"{at} ptx"] = builds.hash_code(compiled)

            return call

        self.owner.__getitem__ = compile_and_note
        return self

    def __exit__(self, *error: Any) -> None:
        self.owner.__getitem__ = self.original


def hash_launches(
    launches: Iterable[tuple[str, Any, Any]], source: str, renames: dict[str, str]
) -> Iterator[tuple[str, Hashes]]:
    """The kernels of launches: their names, how to make the buffers, and the launches of these."""
    for name, make, launch in launches:
        with CompiledKernels(renames) as seen:
            launch(make())
        yield name, {"source": source, **seen.hashes}


def benchmarks_set(
    share: int, shares: int, renames: dict[str, str]
) -> Iterator[tuple[str, Hashes]]:
    """The rows of the GPU benchmarks."""
    builds = importlib.import_module("compare_gpu_builds")
    builds.without_gpu()
    files = sorted((ROOT / "python/benchmarks").glob("*kernels.py"))
    source = hash_of("".join(file.read_text() for file in files), {})

    def launches() -> Iterator[tuple[str, Any, Any]]:
        for suite in builds.SUITES:
            for row in builds.suite_rows(suite):
                variants = row.competitors["tessera"]
                for number, launch in enumerate(
                    variants if isinstance(variants, list) else [variants]
                ):
                    yield f"{suite}: {row.work} #{number}", row.make, launch

    yield from hash_launches(every(share, shares, launches()), source, renames)


def public_cases() -> Iterator[tuple[str, str, Any]]:
    """The sets of kernels after the kinds of public kernels, with names and cases. Names begin with
    the set's, but for those of the first set, which is called `public` itself."""
    public_kernels = importlib.import_module("public_kernels")
    for chosen in public_kernels.FILES:
        for case in public_kernels.select(public_kernels.Maker("cuda"), "", chosen):
            yield chosen, case.name if chosen == "public" else f"{chosen}: {case.name}", case


def public_set(share: int, shares: int, renames: dict[str, str]) -> Iterator[tuple[str, Hashes]]:
    """The kernels after the kinds of public kernels."""
    import tessera

    importlib.import_module("compare_gpu_builds").without_gpu()
    public_kernels = importlib.import_module("public_kernels")
    folder = ROOT / "python/benchmarks"
    every_case = every(share, shares, public_cases())
    for chosen, cases in itertools.groupby(every_case, lambda case: case[0]):
        own = public_kernels.load(tessera, chosen)
        files = [folder / f"{chosen}_{part}_kernels.py" for part in public_kernels.FILES[chosen]]
        source = hash_of("".join(file.read_text() for file in files), {})
        launches = (
            (name, case.make, lambda s, case=case, own=own: case.launch(own, s))
            for _, name, case in cases
        )
        yield from hash_launches(launches, source, renames)


SETS = {"fuzz": fuzz_set, "lit": lit_set, "benchmarks": benchmarks_set, "public": public_set}


def hash_kernels(
    sets: list[str], share: int, shares: int, renames: dict[str, str]
) -> dict[str, Hashes]:
    """The hashes of every `shares`-th kernel of the sets, from number `share` on."""
    from tessera.settings import settings

    settings.cache = "off"
    settings.slow_compile = 0
    found: dict[str, Hashes] = {}
    for name in sets:
        start = time.monotonic()
        before = len(found)
        hashes = SETS[name](share, shares, renames)
        found.update((f"{name} / {kernel}", own) for kernel, own in hashes)
        seconds = time.monotonic() - start
        print(f"{name}: {len(found) - before} in {seconds:.0f} s", file=sys.stderr, flush=True)
    return found


def compare(before: dict[str, Hashes], after: dict[str, Hashes]) -> int:
    """Prints what differs; gives how many kernels have other code."""
    common = [name for name in after if name in before]
    same_source = [name for name in common if before[name]["source"] == after[name]["source"]]
    different = [name for name in same_source if before[name] != after[name]]
    for name in different:
        stages = sorted(
            stage
            for stage in before[name].keys() | after[name].keys()
            if before[name].get(stage) != after[name].get(stage)
        )
        print(f"{name}: {', '.join(stages)}")
    print(
        f"{len(same_source)} kernels compared, {len(different)} with other code; "
        f"{len(after) - len(same_source)} with other sources, "
        f"{len(before.keys() - after.keys())} not there any more"
    )
    return len(different)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=pathlib.Path, help="write the hashes to this file")
    parser.add_argument("--compare", type=pathlib.Path, help="compare with the hashes of this file")
    parser.add_argument("--rename", action="append", default=[], metavar="OLD=NEW")
    parser.add_argument("--sets", default=",".join(SETS), help="of these: " + ", ".join(SETS))
    parser.add_argument("--sample", type=int, default=1, help="hash one kernel of so many")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    sets = arguments.sets.split(",")
    if unknown := [name for name in sets if name not in SETS]:
        parser.error(f"no set {', '.join(unknown)}; there are {', '.join(SETS)}")
    renames = dict(item.split("=", 1) for item in arguments.rename)
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        shares = [
            pool.submit(hash_kernels, sets, share, arguments.jobs * arguments.sample, renames)
            for share in range(arguments.jobs)
        ]
        found = {name: hashes for share in shares for name, hashes in share.result().items()}
    found = dict(sorted(found.items()))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{len(found)} kernels hashed")
    if arguments.compare:
        before = json.loads(arguments.compare.read_text(encoding="utf-8"))
        before = {name: own for name, own in before.items() if name.split(" / ")[0] in sets}
        if arguments.sample > 1:
            before = {name: own for name, own in before.items() if name in found}
        return 1 if compare(before, found) else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
