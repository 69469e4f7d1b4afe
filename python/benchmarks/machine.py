# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the table of CPUs could say about this one: caches, the width of vectors, dot instructions.

It compares kernels for this CPU with those for narrower vectors, and with those without an
instruction, in turns and by the process's time. It proposes; lib/Machine/HostMachine.cpp is changed
by hand (docs/HowTo/AddACPU.md). With --store, the proposal becomes a file, whose figures kernels
have in the place of the row's if TESSERA_CPU_ROW names it.
Usage: machine.py [--seconds S] [--json FILE] [--store FILE]
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, Optional

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
sys.path[:0] = [str(EXAMPLES), str(pathlib.Path(__file__).parent)]

import elementwise  # noqa: E402
import matmul  # noqa: E402
import numpy as np  # noqa: E402
import report  # noqa: E402
import softmax  # noqa: E402
import torch  # noqa: E402

import tessera  # noqa: E402

CACHES = pathlib.Path("/sys/devices/system/cpu/cpu0/cache")
GAIN = 1.03
"""What counts as faster: the rest is the machine's noise."""


def read_caches(folder: pathlib.Path = CACHES) -> dict[str, dict[str, int]]:
    """Bytes and ways of the first two levels of one core's data caches, as Linux knows them."""
    found = {}
    for index in sorted(folder.glob("index*")):
        entry = {name: (index / name).read_text().strip() for name in ("level", "type", "size")}
        if entry["level"] in "12" and entry["type"] != "Instruction":
            ways = int((index / "ways_of_associativity").read_text())
            size = int(entry["size"].rstrip("K")) << 10
            found[f"l{entry['level']}"] = {"bytes": size, "ways": ways}
    return found


def time_in_turns(variants: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Median milliseconds of each."""
    for run in variants.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in variants}
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(next(iter(times.values()))) < 3:
        for name, run in variants.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(values) * 1e3 for name, values in times.items()}


def launches(options: dict[str, str]) -> dict[str, Callable[[], Any]]:
    """Kernels of the classes that differ in what width and instructions suit them."""
    n = 512
    rng = np.random.default_rng(0)
    f32 = [rng.standard_normal((n, n), np.float32) for _ in range(3)]
    bf16 = [torch.from_numpy(x).bfloat16() for x in f32]
    i8 = [rng.integers(-128, 128, (n, n)).astype(np.int8) for _ in range(2)]
    sums = np.empty((n, n), np.int32)
    rows, out = rng.standard_normal((256, 8192), np.float32), np.empty((256, 8192), np.float32)
    blocks = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128}

    def dot(a: Any, b: Any, c: Any) -> Callable[[], Any]:
        bias = c[0] * 0
        return lambda: matmul.matmul_kernel[(16,)](
            a, b, bias, c, n, n, n, n, n, n, **blocks, GROUP_M=4, ACTIVATION="", **options
        )

    return {
        "f32 dot": dot(*f32),
        "bf16 dot": dot(*bf16),
        "int8 dot": lambda: elementwise.matmul_int8_kernel[(4, 4)](
            *i8, sums, n, n, n, **blocks, **options
        ),
        "softmax": lambda: softmax.softmax_kernel[(256,)](
            rows, out, 8192, 8192, 8192, BLOCK=8192, **options
        ),
    }


def propose(ms: dict[str, dict[str, float]]) -> list[str]:
    """What the times say about the row."""
    said = []
    for work, times in ms.items():
        for other, slower in times.items():
            if other == "as the row says":
                continue
            ratio = slower / times["as the row says"]
            verdict = "keep" if ratio > GAIN else "change" if ratio < 1 / GAIN else "no matter"
            said.append(f"{work}: {ratio:.2f} times as fast as {other} ({verdict})")
    return said


def figures(ms: dict[str, dict[str, float]], caches: dict[str, dict[str, int]]) -> str:
    """The proposal as the option `cpu_row` takes it: what Linux says about caches, and each width or
    instruction that another was faster than, in all work that it was compared in."""
    ratios: dict[str, list[float]] = {}
    for times in ms.values():
        for other, slower in times.items():
            if other != "as the row says":
                ratios.setdefault(other, []).append(slower / times["as the row says"])
    known = {"with 256 bits": "bits=256"}
    said = [
        known.get(other, f"{other.removeprefix('without ')}=no")
        for other, found in ratios.items()
        if max(found) < 1 / GAIN
    ]
    said += [f"{name}={level['bytes']}/{level['ways']}" for name, level in caches.items()]
    return "+".join(said)


def variants_of(info: dict[str, Any]) -> dict[str, dict[str, dict[str, str]]]:
    """For each kind of work, the options of what it is compared with."""
    narrow = {"with 256 bits": {"cpu": "x86-64-v3"}} if info["vector_bits"] > 256 else {}
    found = {"f32 dot": dict(narrow), "softmax": dict(narrow), "bf16 dot": {}, "int8 dot": {}}
    for work, addition, features in (
        ("int8 dot", "int8-dot", "-avx512vnni,-avxvnni"),
        ("bf16 dot", "bf16-dot", "-avx512bf16"),
    ):
        if addition in info["machine"].split("+"):
            found[work][f"without {addition}"] = {"features": features}
    return found


def measure(info: dict[str, Any], seconds: float) -> dict[str, dict[str, float]]:
    plain = launches({})
    found = {}
    for work, others in variants_of(info).items():
        runs = {"as the row says": plain[work]}
        runs.update({name: launches(options)[work] for name, options in others.items()})
        found[work] = time_in_turns(runs, seconds)
    return found


def main(given: Optional[list[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="time for each kind of work")
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--store", help="write the proposed row to this file")
    arguments = parser.parse_args(given)
    info = tessera.host_info()
    print(
        f"row: {info['machine']}, {info['vector_bits']} bits, measured on {info['measured'] or 'no CPU'}; cpu: {info['cpu']}"
    )
    caches = read_caches()
    for name, level in caches.items():
        print(f"{name}: {level['bytes'] >> 10} KiB, {level['ways']} ways")
    ms = measure(info, arguments.seconds)
    print("\n".join(propose(ms)))
    made = {"environment": report.environment(), "caches": caches, "ms": ms}
    if arguments.json:
        text = json.dumps(made | {"row": info["machine"]}, indent=1)
        pathlib.Path(arguments.json).write_text(text + "\n")
    if arguments.store:
        made |= {"row": info["machine"].partition("+")[0], "figures": figures(ms, caches)}
        pathlib.Path(arguments.store).write_text(json.dumps(made, indent=1) + "\n")
        print(f"TESSERA_CPU_ROW={arguments.store} takes {made['figures'] or 'nothing'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
