# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPU's rows under two builds of Tessera: which have other code, and which got slower.

    compare_gpu_builds.py BASE NEW [--suite bandwidth|matmul|backward|all] [--only TEXT]
                          [--rounds N] [--every-row] [--compile-only] [--json FILE]

BASE and NEW are folders that hold the package `tessera`, such as a wheel that has been unpacked.
Each build has a process of its own. For each row both builds launch every configuration once,
check the results, and hash the PTX. A row whose PTX and launch conditions are equal needs no
measurement. The others are measured: each build takes its fastest configuration, and the
graphs of the two are replayed in turns, on buffers of three times the L2 cache. What counts is
the median over the turns. Exits with 1 if a row is slower by more than 2 % and the spread.

With --compile-only no GPU is needed: arrays are in the CPU's memory, without contents, kernels are
compiled for sm_90a and not launched, and rows of other PTX are named. Exits with 1 if there are any.
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
LAUNCH_FACTS = (
    "arrays_apart", "divisible_sum", "launch_conditions", "most_programs", "num_ctas", "num_warps",
    "persistent_programs", "program_bounds", "scratch_bytes", "shared_bytes", "tensor_maps",
    "waits_for_programs", "waits_for_stream",
)  # fmt: skip
"""The metadata on which a launch depends."""


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


def without_gpu() -> None:
    """Lets the rows be made on a machine without a GPU: tensors are the CPU's, and are not filled."""
    import types

    import attention_backward as backward
    import gpu
    import torch
    from torch.overrides import TorchFunctionMode

    unfilled = {torch.randn, torch.rand}

    class OnCPU(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = dict(kwargs or {})
            if str(kwargs.get("device", "")).startswith("cuda"):
                kwargs["device"] = "cpu"
            if function in unfilled:
                return torch.empty(*args, **kwargs)
            if function is torch.randint and "generator" not in kwargs:
                return torch.zeros(args[2], **{"dtype": torch.int64, **kwargs})
            if function is torch.Tensor.cuda:
                return args[0]
            if function is torch.Tensor.to and str(args[1]).startswith("cuda"):
                return args[0]
            return function(*args, **kwargs)

    OnCPU().__enter__()
    sm = types.SimpleNamespace(multi_processor_count=132)
    setattr(torch.cuda, "get_device_properties", lambda device=0: sm)
    setattr(torch.cuda, "synchronize", lambda: None)
    setattr(gpu, "poison", lambda *tensors: None)
    setattr(gpu, "deformable_by_cuda", lambda name, names: {})

    def forward(q: Any, k: Any, v: Any, causal: bool) -> Any:
        return torch.empty_like(q), torch.empty(q.shape[:3])

    setattr(backward, "forward", forward)


class Launches:
    """Notes the code of each kernel that is launched while it is entered."""

    def __init__(self, launching: bool) -> None:
        from tessera.runtime.jit import JITFunction

        self.owner: Any = JITFunction
        self.codes: list[str] = []
        self.launching = launching

    def __enter__(self) -> "Launches":
        self.original = original = self.owner.__getitem__
        codes, launching = self.codes, self.launching

        def launch_and_note(kernel: Any, grid: Any) -> Any:
            def call(*arguments: Any, **options: Any) -> Any:
                if launching:
                    compiled = original(kernel, grid)(*arguments, **options)
                else:
                    options["target"] = "sm_90a"
                    compiled = kernel.warmup(*arguments, grid=grid, **options)
                codes.append(hash_code(compiled))
                return compiled

            return call

        self.owner.__getitem__ = launch_and_note
        return self

    def __exit__(self, *error: Any) -> None:
        self.owner.__getitem__ = self.original


def hash_code(compiled: Any) -> str:
    """A hash of a kernel's PTX, without the places of its source, and of its launch conditions."""
    conditions = {name: compiled.metadata.get(name) for name in LAUNCH_FACTS}
    places = (".loc", ".file")
    lines = compiled.asm["ptx"].splitlines()
    code = [line for line in lines if not line.lstrip().startswith(places)]
    text = json.dumps([code, conditions], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def work(suite: str, launching: bool) -> int:
    """The process of a build: hashes a row's code, or times it, for each line that it reads."""
    import gpu
    import torch

    if not launching:
        without_gpu()
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
                    with Launches(launching) as seen:
                        launch(buffers)
                    torch.cuda.synchronize()
                    if launching:
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
    mode = "compile" if options.compile_only else "launch"
    builds = {
        "base": start(options.base, __file__, suite, mode),
        "new": start(options.new, __file__, suite, mode),
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
        if options.compile_only and not same:
            print(f"{result['work']:44}  other code", flush=True)
        elif not same or options.every_row:
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
        return work(sys.argv[2], sys.argv[3] == "launch")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("base", help="folder with the package of one build")
    parser.add_argument("new", help="folder with the package of the other")
    parser.add_argument("--suite", choices=(*SUITES, "all"), default="all")
    parser.add_argument("--only", default="", help="only rows whose description holds this text")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each build for a row")
    parser.add_argument("--every-row", action="store_true", help="measure rows of equal code, too")
    parser.add_argument("--compile-only", action="store_true", help="compare code, without a GPU")
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    options.done = []
    for suite in SUITES if options.suite == "all" else (options.suite,):
        options.done += compare(suite, options)
    rows = options.done
    equal = sum(row["same_code"] for row in rows)
    slower = [row["work"] for row in rows if row.get("slower")]
    print(f"{len(rows)} rows: {equal} with equal code, {len(slower)} slower: {slower}")
    return 1 if slower or (options.compile_only and equal < len(rows)) else 0


if __name__ == "__main__":
    sys.exit(main())
