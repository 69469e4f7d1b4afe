# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPU's rows under two builds of Tessera: which have other code, and which got slower.

    compare_gpu_builds.py BASE NEW [--suite bandwidth|matmul|backward|all] [--only TEXT]
                          [--rounds N] [--every-row] [--json FILE]

BASE and NEW are folders that hold the package `tessera`, such as a wheel that has been unpacked.
Each build has a process of its own. For each row both builds launch every configuration once,
check the results, and hash the cubins. A row whose cubins and launch conditions are equal needs
no measurement. The others are measured: each build takes its fastest configuration, and the
graphs of the two are replayed in turns, on buffers of three times the L2 cache. What counts is
the median over the turns. Exits with 1 if a row is slower by more than 2 % and the spread.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pathlib
import statistics
import sys
from collections.abc import Iterator
from typing import Any

from compare_builds import TOLERANCE, ask, start

SUITES = ("bandwidth", "matmul", "backward")


def suite_rows(suite: str) -> Iterator[Any]:
    """The rows of a suite, with Tessera as the only competitor that counts."""
    import gpu
    import tessera

    if suite == "bandwidth":
        yield from gpu.bandwidth_rows({"tessera": gpu.load_kernels(tessera)})
    elif suite == "matmul":
        import gpu_matmul as matmul

        kernels = {"tessera": gpu.load_kernels(tessera, matmul.KERNELS)}
        for family in (
            matmul.matmul_rows, matmul.linear_rows, matmul.gelu_rows, matmul.scaled_rows,
            matmul.int4_rows, matmul.attention_rows,
        ):  # fmt: skip
            for row, _ in family(kernels):
                yield row
    else:
        import attention_backward as backward

        kernels = {"tessera": gpu.load_kernels(tessera, backward.KERNELS)}
        for row, _ in backward.backward_rows(kernels):
            yield row


class Launches:
    """Notes the code of each kernel that is launched while it is entered."""

    def __init__(self) -> None:
        from tessera.runtime.jit import JITFunction

        self.owner: Any = JITFunction
        self.codes: list[str] = []

    def __enter__(self) -> "Launches":
        self.original = original = self.owner.__getitem__
        codes = self.codes

        def launch_and_note(kernel: Any, grid: Any) -> Any:
            launch = original(kernel, grid)

            def call(*arguments: Any, **options: Any) -> Any:
                compiled = launch(*arguments, **options)
                codes.append(hash_code(compiled))
                return compiled

            return call

        self.owner.__getitem__ = launch_and_note
        return self

    def __exit__(self, *error: Any) -> None:
        self.owner.__getitem__ = self.original


def hash_code(compiled: Any) -> str:
    """A hash of a kernel's cubin and of what its launch depends on."""
    conditions = {
        name: value
        for name, value in dict(compiled.metadata).items()
        if name not in ("hash", "key", "build")
    }
    text = json.dumps(conditions, sort_keys=True, default=str).encode()
    return hashlib.sha256(compiled.asm["cubin"] + text).hexdigest()[:16]


def work(suite: str) -> int:
    """The process of a build: hashes a row's code, or times it, for each line that it reads."""
    import gpu
    import torch

    torch.manual_seed(0)
    rows = suite_rows(suite)
    row: Any = None
    captured: Any = None
    launches = 1
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        if command == "row":
            captured = None
            row = next((row for row in rows if argument in row.work), None)
            if row is None:
                print(json.dumps(None), flush=True)
                continue
            answer: dict[str, Any] = {"work": row.work, "codes": [], "errors": []}
            variants = row.competitors["tessera"]
            row.variants = []
            for launch in variants if isinstance(variants, list) else [variants]:
                try:
                    buffers = row.make()
                    with Launches() as seen:
                        launch(buffers)
                    torch.cuda.synchronize()
                    row.check(buffers)
                    answer["codes"].append(seen.codes)
                    row.variants.append(launch)
                except Exception as error:
                    text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
                    answer["codes"].append([text])
                    answer["errors"].append(text)
            print(json.dumps(answer), flush=True)
        else:
            if captured is None:
                first = row.make()
                size = sum(x.nbytes for x in first.values() if isinstance(x, torch.Tensor))
                count = max(2, min(-(-3 * gpu.L2_BYTES // size), 64))
                launches = -(-20 // count) * count
                sets = [first] + [row.make() for _ in range(count - 1)]
                captured = (gpu.fastest(row.variants, sets, launches)[0], sets)
                gpu.replay(captured[0])
            print(json.dumps(gpu.replay(captured[0]) / launches), flush=True)
    return 0


def compare(suite: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The results of a suite's rows, each printed when it is known."""
    builds = {
        "base": start(options.base, __file__, suite),
        "new": start(options.new, __file__, suite),
    }
    results: list[dict[str, Any]] = []
    while True:
        for build in builds.values():
            assert build.stdin
            build.stdin.write(f"row {options.only}\n")
            build.stdin.flush()
        answers = {key: ask(build, "") for key, build in builds.items()}
        if answers["base"] is None:
            break
        result: dict[str, Any] = {"suite": suite, "work": answers["base"]["work"]}
        same = answers["base"]["codes"] == answers["new"]["codes"]
        result["same_code"] = same
        result["errors"] = {key: answer["errors"] for key, answer in answers.items()}
        if not same or options.every_row:
            times: dict[str, list[float]] = {key: [] for key in builds}
            for turn in range(options.rounds):
                for key in sorted(builds, reverse=turn % 2 == 1):
                    times[key].append(ask(builds[key], "time"))
            ms = {key: statistics.median(values) for key, values in times.items()}
            spread = max(
                statistics.quantiles(values, n=4)[2] / statistics.quantiles(values, n=4)[0] - 1
                for values in times.values()
            )
            result.update(ms=ms, ratio=ms["base"] / ms["new"], spread=spread)
            result["slower"] = ms["new"] > (TOLERANCE + spread) * ms["base"]
            print(
                f"{result['work']:44}  base {ms['base']:9.4f} ms  new {ms['new']:9.4f} ms"
                f"  {result['ratio']:6.3f}  spread {spread:.3f}"
                f"{'  SLOWER' if result['slower'] else ''}{'  same code' if same else ''}",
                flush=True,
            )
        new_errors = [
            text for text in answers["new"]["errors"] if text not in answers["base"]["errors"]
        ]
        if new_errors:
            print(f"{result['work']:44}  new errors: {new_errors}", flush=True)
        results.append(result)
        if options.json:
            kept = json.dumps({"rows": options.done + results}, indent=1)
            pathlib.Path(options.json).write_text(kept + "\n")
    for build in builds.values():
        assert build.stdin
        build.stdin.close()
        build.wait()
    return results


def main() -> int:
    if sys.argv[1:2] == ["--worker"]:
        return work(sys.argv[2])
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("base", help="folder with the package of one build")
    parser.add_argument("new", help="folder with the package of the other")
    parser.add_argument("--suite", choices=(*SUITES, "all"), default="all")
    parser.add_argument("--only", default="", help="only rows whose description holds this text")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each build for a row")
    parser.add_argument("--every-row", action="store_true", help="measure rows of equal code, too")
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    options.done = []
    for suite in SUITES if options.suite == "all" else (options.suite,):
        options.done += compare(suite, options)
    rows = options.done
    equal = sum(row["same_code"] for row in rows)
    slower = [row["work"] for row in rows if row.get("slower")]
    print(f"{len(rows)} rows: {equal} with equal code, {len(slower)} slower: {slower}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
