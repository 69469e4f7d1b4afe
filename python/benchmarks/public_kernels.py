# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels after the kinds of public kernels: one source under Tessera and under Triton.

Usage: public_kernels.py [--set NAME] [--names] [--only WORDS] [--json FILE] [--rounds N]
       [--seconds N] [--processes N] [--device cpu]

The kernels are written for this program, in several spellings of each kind: matmuls with one flat
loop, cumsums in chunks, recurrences, split decoding, norms, quantisation and small ones. Both
compilers get the same text, launches and options; nothing is tuned. First, processes compile all
kernels in parallel into the caches of both compilers. Then each result is compared with torch, and
graphs of launches on buffers of three times the L2 cache are replayed alternately. The medians
count. `--only` selects cases whose kind or name has all of its words, or those of one of its parts
between commas. `--device cpu` checks Tessera alone, on small sizes, and measures nothing.

The last lines are the geometric means of Triton's time over Tessera's: of work above 10 us and
below, of each kind, and the worst cases.

`--set NAME` runs the kernels of NAME_PART_kernels.py, whose cases are in NAME_PART_cases.py. `unseen`,
`held_out`, `fresh`, `strange` and `foreign` have 60 other kernels each after the same kinds and their kin.
Each is held out at first: no rule is designed with it. The first three were held out until 2026-11-30,
`fresh` until 16:30 UTC, `strange` until 21:45 UTC. They have been used to design rules since. `foreign` is
held out now.

**Whoever designs a rule must not look at the results of a held-out set by row**, only at its mean and
its worst ratio. So that is all that is printed and written for such a set, unless `--names` is given.
HELD_OUT names the sets that are held out.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time
import traceback
from typing import Any

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import gpu  # noqa: E402
import tessera  # noqa: E402
from public_kernels_cases import FAMILIES, Case, Maker, cdiv, find_sets  # noqa: E402

SETS = find_sets()
HELD_OUT: tuple[str, ...] = ("foreign",)
"""The sets whose rows are shown only if `--names` is given."""
FILES = {
    "public": ("matmul", "row", "sequence"),
    **{name: case_set.parts for name, case_set in SETS.items()},
}
"""The files of kernels of each set."""
SHORT_US = 10.0


def steps(x: torch.Tensor) -> torch.Tensor:
    """Quantised numbers as integers, neighbours differing by 1."""
    if x.dtype == torch.float8_e4m3fn:
        bits = x.view(torch.uint8).int()
        return torch.where(bits < 128, bits, 128 - bits)
    return x.int()


def check(case: Case, kernels: Any) -> None:
    """Launches once on new buffers and compares with torch."""
    s = case.make()
    want = case.want(
        {name: x.clone() if isinstance(x, torch.Tensor) else x for name, x in s.items()}
    )
    case.launch(kernels, s)
    for name, expected in want.items():
        if name == "nibbles":
            q = s["q"]
            got = torch.stack([q & 15, q >> 4], -1).reshape(expected.shape)
            # A quotient at the middle between two numbers may be rounded either way.
            wrong = (got.int() - expected.int()).abs()
            assert int(wrong.max()) <= 1 and float((wrong > 0).float().mean()) < 1e-2
        elif name == "words":
            shifts = torch.arange(8, device=expected.device) * 4
            got = (s["words"][..., None] >> shifts) & 15
            wrong = (got - expected.int()).abs()
            assert int(wrong.max()) <= 1 and float((wrong > 0).float().mean()) < 1e-2
        elif name == "q":
            wrong = (steps(s["q"]) - steps(expected)).abs()
            assert int(wrong.max()) <= 1 and float((wrong > 0).float().mean()) < 1e-2
        elif name == "dropped":
            got = s["out"]
            kept = got != 0
            assert 0.4 < float(kept.float().mean()) < 0.6
            gpu.close(got, torch.where(kept, expected * 2, 0.0), case.tolerance)
        else:
            scale = max(1.0, float(expected[torch.isfinite(expected)].abs().max()))
            gpu.close(s[name].float() / scale, expected.float() / scale, case.tolerance)


def measure(case: Case, kernels: dict[str, Any], rounds: int, has_names: bool) -> None:
    """Checks all compilers, then replays their graphs alternately."""
    right = []
    for name, own in kernels.items():
        try:
            check(case, own)
            right.append(name)
        except Exception as error:  # a compiler that fails is a result, too
            text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            case.results[name] = {"error": text}
            if has_names:
                traceback.print_exc()
    if not right:
        return
    first = case.make()
    size = sum(x.nbytes for x in first.values() if isinstance(x, torch.Tensor))
    count = max(2, min(cdiv(3 * gpu.L2_BYTES, size), 256))
    launches = cdiv(20, count) * count
    sets = [first] + [case.make() for _ in range(count - 1)]
    graphs = {}
    for name in right:
        own = kernels[name]
        graphs[name] = gpu.capture(lambda s, own=own: case.launch(own, s), sets, launches)
        gpu.replay(graphs[name])
    times: dict[str, list[float]] = {name: [] for name in right}
    for number in range(rounds):
        for name in right if number % 2 == 0 else reversed(right):
            times[name].append(gpu.replay(graphs[name]) / launches * 1e3)
    for name, values in times.items():
        middle = statistics.median(values)
        spread = (max(values) - min(values)) / middle
        case.results[name] = {"us": middle, "spread": spread}
        compiled = case.launch(kernels[name], first)
        for fact in ("n_regs", "n_spills"):
            if getattr(compiled, fact, None) is not None:
                case.results[name][fact] = getattr(compiled, fact)
    del graphs, sets, first
    torch.cuda.empty_cache()


def select(at: Maker, only: str, chosen: str = "public") -> list[Case]:
    """The cases of a set whose kind or name has all words of one of the parts of `only`."""
    parts = [part.split() for part in only.split(",") if part.strip()]
    families = SETS[chosen].families() if chosen in SETS else FAMILIES
    cases = [case for family in families for case in family(at)]
    if chosen in SETS:
        # First sizes come first: if time runs out, each kernel has been measured.
        turns = itertools.zip_longest(*(family(at) for family in families))
        cases = [case for turn in turns for case in turn if case is not None]
    return [
        case
        for case in cases
        if not parts
        or any(all(word in f"{case.kind} {case.name}" for word in part) for part in parts)
    ]


def load(compiler: Any, chosen: str = "public") -> dict[str, Any]:
    """All kernels of a set for a compiler."""
    kernels: dict[str, Any] = {}
    for part in FILES[chosen]:
        file = pathlib.Path(__file__).with_name(f"{chosen}_{part}_kernels.py")
        kernels.update(gpu.load_kernels(compiler, file))
    if hasattr(compiler, "set_allocator"):
        # Descriptors that a kernel makes need memory.
        compiler.set_allocator(
            lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda")
        )
    return kernels


def warm(cases: list[Case], compiler: str, chosen: str, has_names: bool) -> None:
    """Compiles by launching once, so that the compiler's cache has the kernels."""
    own = load(gpu.compilers()[compiler], chosen)
    for case in cases:
        try:
            case.launch(own, case.make())
            torch.cuda.synchronize()
        except Exception as error:  # the check reports it
            if has_names:
                print(f"{compiler} {case.name}: {type(error).__name__}: {error}"[:300], flush=True)
        torch.cuda.empty_cache()


def warm_in_processes(options: argparse.Namespace) -> None:
    """Starts processes that compile a part of the kernels each."""
    start = time.monotonic()
    started = []
    for compiler in gpu.compilers():
        for part in range(options.processes):
            command = [sys.executable, __file__, "--warm", compiler, "--part", str(part)]
            command += ["--only", options.only, "--processes", str(options.processes)]
            command += ["--set", options.set, *(["--names"] if options.names else [])]
            started.append(subprocess.Popen(command, env=os.environ))
    for process in started:
        process.wait()
    print(f"compiled in {time.monotonic() - start:.0f} s", flush=True)


def ratio(case: Case) -> float | None:
    """Triton's time over Tessera's."""
    mine, theirs = case.results.get("tessera", {}), case.results.get("triton", {})
    return theirs["us"] / mine["us"] if "us" in mine and "us" in theirs else None


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(statistics.fmean(map(math.log, values)))


def summarize(cases: list[Case], has_names: bool) -> dict[str, Any]:
    """Prints the table and returns its figures; without names, only those of all cases."""
    measured = [(case, r) for case in cases if (r := ratio(case)) is not None]
    failed = [case for case in cases if any("error" in x for x in case.results.values())]
    figures: dict[str, Any] = {"cases": len(measured), "failed": [case.name for case in failed]}
    if has_names:
        print("\nkind                 cases   mean  worst")
        for kind in dict.fromkeys(case.kind for case, _ in measured):
            rs = [r for case, r in measured if case.kind == kind]
            print(f"{kind:20} {len(rs):5}  {mean(rs):5.2f}  {min(rs):5.2f}")
    else:
        figures["failed"] = len(failed)
    for name, isin in (("above", lambda us: us >= SHORT_US), ("below", lambda us: us < SHORT_US)):
        rs = [r for case, r in measured if isin(case.results["triton"]["us"])]
        if rs:
            slow = sum(r < 0.95 for r in rs)
            figures[name] = {"mean": mean(rs), "worst": min(rs), "cases": len(rs), "slower": slow}
            print(
                f"{name} {SHORT_US:.0f} us: {len(rs)} cases, geometric mean {mean(rs):.3f}, worst "
                f"{min(rs):.2f}, {slow} slower by more than 5 %"
            )
    missing = sum(not case.results for case in cases)
    if missing:
        figures["missing"] = missing
        print(f"{missing} of {len(cases)} cases were not measured in the time")
    if not has_names:
        print(f"{len(failed)} of {len(cases)} cases failed (--names lists them)")
        return figures
    for case, r in sorted(measured, key=lambda pair: pair[1])[:12]:
        mine, theirs = case.results["tessera"], case.results["triton"]
        print(f"{r:5.2f}  {case.name:44} {mine['us']:9.1f} us, Triton {theirs['us']:9.1f}")
    for case in failed:
        errors = {who: x["error"][:150] for who, x in case.results.items() if "error" in x}
        print(f"FAILED {case.name}: {errors}")
    return figures


def check_on_cpu(cases: list[Case], chosen: str) -> int:
    """Checks the kernels of a set at small sizes by code for the CPU."""
    kernels, failed = load(tessera, chosen), 0
    for case in cases:
        try:
            check(case, kernels)
            print(f"right  {case.name}")
        except Exception as error:
            failed += 1
            print(
                f"FAILED {case.name}: {' '.join(f'{type(error).__name__}: {error}'.split())[:300]}"
            )
    print(f"{len(cases)} cases, {failed} failed")
    return 1 if failed else 0


def show(case: Case) -> dict[str, Any]:
    """Prints a case's row and returns it."""
    r = ratio(case)
    times = "  ".join(f"{who} {x['us']:9.1f}" for who, x in case.results.items() if "us" in x)
    print(f"{case.kind:18} {case.name:44} {times}  {f'{r:5.2f}' if r else 'no ratio'}", flush=True)
    return {"kind": case.kind, "work": case.name, "ratio": r, **case.results}


def main() -> int:
    """Compiles, checks and measures; 0 if all results of Tessera are right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--set", choices=tuple(FILES), default="public")
    parser.add_argument("--names", action="store_true", help="show rows of held-out sets, too")
    parser.add_argument("--only", default="", help="kinds and names to select")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--seconds", type=float, default=0, help="measure no more cases after these"
    )
    parser.add_argument("--processes", type=int, default=6, help="for each compiler, to compile in")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--warm", default="", help=argparse.SUPPRESS)
    parser.add_argument("--part", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.manual_seed(0)
    at = Maker(options.device)
    cases = select(at, options.only, options.set)
    if options.device == "cpu":
        return check_on_cpu(cases, options.set)
    has_names = options.set not in HELD_OUT or options.names
    if options.warm:
        warm(cases[options.part :: options.processes], options.warm, options.set, has_names)
        return 0
    start = time.monotonic()
    warm_in_processes(options)
    kernels = {name: load(own, options.set) for name, own in gpu.compilers().items()}
    report: dict[str, Any] = {"environment": gpu.environment(), "rows": []}
    for case in cases:
        if options.seconds and time.monotonic() - start > options.seconds:
            break
        try:
            measure(case, kernels, options.rounds, has_names)
        except Exception as error:
            case.results["both"] = {"error": f"{type(error).__name__}: {error}"[:300]}
            if has_names:
                traceback.print_exc()
        if has_names:
            report["rows"].append(show(case))
            if options.json:
                pathlib.Path(options.json).write_text(json.dumps(report, indent=1) + "\n")
    report["summary"] = summarize(cases, has_names)
    report["summary"]["seconds"] = time.monotonic() - start
    print(f"{report['summary']['seconds']:.0f} s in all")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(report, indent=1) + "\n")
    return 1 if any("error" in case.results.get("tessera", {}) for case in cases) else 0


if __name__ == "__main__":
    sys.exit(main())
