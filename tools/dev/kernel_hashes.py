#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hashes the code of 350 kernels, to show that a change of structure changes no code.

    tools/dev/kernel_hashes.py --json before.json              on the commit before
    tools/dev/kernel_hashes.py --compare before.json           on the commit after

The kernels are those of python/benchmarks/compile_time.py, and kernels of the fuzzer by kind and
seed. Each is compiled for a CPU and for two GPUs. The hashes are of the IR behind the scheduling
passes, of PTX, and of a CPU's object. A kernel whose source differs between the two commits, because
a generator changed, is counted apart. Exits with 1 if the code of any other kernel differs.

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
import sys
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


def hash_kernels(share: int, shares: int, renames: dict[str, str]) -> dict[str, dict[str, str]]:
    """The hashes of every `shares`-th kernel, from number `share` on."""
    import tessera
    from tessera.settings import settings

    settings.cache = "off"
    settings.slow_compile = 0
    found: dict[str, dict[str, str]] = {}
    for number, (name, (on_cpu, on_gpu), text, options, source) in enumerate(kernels()):
        if number == COUNT:
            return found
        if number % shares != share:
            continue
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
        found[name] = hashes
    return found


def compare(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> int:
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
        f"{len(after) - len(same_source)} kernels with other sources"
    )
    return len(different)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=pathlib.Path, help="write the hashes to this file")
    parser.add_argument("--compare", type=pathlib.Path, help="compare with the hashes of this file")
    parser.add_argument("--rename", action="append", default=[], metavar="OLD=NEW")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    renames = dict(item.split("=", 1) for item in arguments.rename)
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        shares = [
            pool.submit(hash_kernels, share, arguments.jobs, renames)
            for share in range(arguments.jobs)
        ]
        found = {name: hashes for share in shares for name, hashes in share.result().items()}
    found = dict(sorted(found.items()))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{len(found)} kernels hashed")
    if arguments.compare:
        before = json.loads(arguments.compare.read_text(encoding="utf-8"))
        return 1 if compare(before, found) else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
