# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What launches are expected to cost beside what they take.

Usage: launch_cost.py [--set design|score|NAME] [--json FILE] [--seconds N] [--processes N]
       [--configs N] [--dry] [--list]

Each kernel runs in four configurations or more: tiles, warps and stages. The time is the median of
seven calls, each after a kernel that reads more than the second-level cache holds. The design set
is what the model was made with: the kernels of gpu.py, gpu_matmul.py and attention_backward.py, and
the public set. The score set is other shapes of these, and the set `fresh` of public_kernels.py. The
name of a set of public_kernels.py selects its kernels alone. `--configs` limits the configurations of
each kernel of such a set.

The score is Spearman's rank correlation over all configurations of all kernels, and the regret of each
kernel: how much longer the configuration takes that is expected to be the fastest.

With `--dry` nothing runs, and no GPU is needed: kernels are compiled for sm_90a. `--list` prints the
kernels.
"""

# mypy: ignore-errors

from __future__ import annotations

import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any

import attention_backward
import gpu
import gpu_matmul
import public_kernels
import torch
from public_kernels_cases import FAMILIES, Maker, cdiv

import tessera
import tessera.language as tl

ROUNDS = 7
FLUSHED_BYTES = 128 << 20
F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
CASES = {"design": "public", "score": "fresh"}
"""The sets of public_kernels.py beside the kernels that are listed here."""


class Work:
    """A launch in several configurations."""

    def __init__(self, family, name, make, configs):
        self.family, self.name = family, name
        self.make = make
        """Makes the arguments."""
        self.configs = configs
        """A kernel, a grid and options for each configuration, by its name."""


def own_work(at: Maker, is_score: bool):
    """The kernels whose tiles are chosen here."""
    rows = gpu.load_kernels(tessera)
    dots = gpu.load_kernels(tessera, gpu_matmul.KERNELS)
    backward = gpu.load_kernels(tessera, attention_backward.KERNELS)

    def options(warps, stages, **others):
        return dict(num_warps=warps, num_stages=stages, **others)

    # Matmuls: M, N, K, elements, configurations.
    few = [
        (16, 64, 128, 4, 5),
        (16, 32, 256, 4, 5),
        (16, 128, 64, 4, 6),
        (64, 64, 128, 4, 4),
        (64, 32, 128, 4, 6),
    ]
    middle = [
        (128, 256, 64, 8, 3),
        (256, 128, 64, 8, 4),
        (128, 128, 64, 4, 4),
        (128, 128, 64, 8, 3),
        (64, 128, 64, 4, 4),
        (128, 64, 64, 4, 4),
        (64, 64, 64, 4, 6),
        (64, 32, 128, 4, 6),
        (64, 64, 32, 4, 2),
    ]
    wide = [
        (128, 256, 32, 8, 3),
        (128, 128, 32, 8, 4),
        (128, 128, 32, 4, 3),
        (64, 128, 32, 4, 4),
        (64, 64, 32, 4, 4),
    ]
    shapes = [
        (4096, 4096, 4096, BF16, middle),
        (1024, 4096, 4096, F16, middle),
        (512, 2048, 8192, BF16, middle),
        (2048, 2048, 2048, F32, wide),
        (16, 8192, 8192, BF16, few),
        (8192, 8192, 512, F16, middle),
    ]
    if is_score:
        shapes = [
            (8192, 4096, 7168, F16, middle),
            (2048, 2048, 2048, BF16, middle),
            (256, 6144, 4096, BF16, middle),
            (4096, 2048, 4096, F32, wide),
            (64, 28672, 4096, F16, few),
            (1024, 1024, 1024, BF16, middle),
        ]
    for m, n, k, dtype, configs in shapes:

        def make(m=m, n=n, k=k, dtype=dtype):
            tensors = (
                at.random(m, k, dtype=dtype),
                at.random(k, n, dtype=dtype),
                at.random(m, n, dtype=dtype),
            )
            return (*tensors, m, n, k, k, n, 1, n)

        yield Work(
            "matmul",
            f"matmul {m}x{n}x{k} {str(dtype)[6:]}",
            make,
            {
                str(c): (
                    dots["matmul"],
                    (cdiv(m, c[0]) * cdiv(n, c[1]),),
                    options(c[3], c[4], ACC=tl.float32, BM=c[0], BN=c[1], BK=c[2], GROUP=8),
                )
                for c in configs
            },
        )
    tokens = 4096 if is_score else 2048
    for d, heads in ((64, 64), (128, 64)):
        for causal in (False, True):

            def make(d=d, heads=heads):
                return (
                    *(at.random(heads, tokens, d, dtype=BF16) for _ in range(4)),
                    tokens,
                    d**-0.5,
                )

            yield Work(
                "attention",
                f"attention d{d} {'causal ' if causal else ''}{tokens}",
                make,
                {
                    str(c): (
                        dots["attention"],
                        (tokens // c[0], heads),
                        options(c[2], c[3], D=d, CAUSAL=causal, BM=c[0], BN=c[1]),
                    )
                    for c in gpu_matmul.ATTENTION_CONFIGS
                    if not causal or c[0] % c[1] == 0
                },
            )
    tokens, heads = (2048, 32) if is_score else (4096, 16)
    for d in (64, 128):
        for name, number in (("of_keys", 0), ("of_rows", 1)):

            def make(d=d, number=number):
                big = [at.random(heads, tokens, d, dtype=BF16) for _ in range(6 - number)]
                sums = [at.random(heads, tokens, dtype=F32) for _ in range(2)]
                return (*big, *sums, tokens, d**-0.5 * 1.44, d**-0.5)

            configs = dict.fromkeys(pair[number] for pair in attention_backward.CONFIGS[d])
            yield Work(
                "attention backward",
                f"backward {name} d{d} {tokens}",
                make,
                {
                    str(c): (
                        backward[name],
                        (tokens // (c[1] if number == 0 else c[0]), heads),
                        options(c[2], c[3], GROUP=1, D=d, CAUSAL=False, BM=c[0], BN=c[1]),
                    )
                    for c in configs
                },
            )
    # Rows in one tile.
    for m, n, dtype in (
        [(8192, 4096, F16), (65536, 512, F32)]
        if is_score
        else [(16384, 2048, BF16), (2048, 16384, F32)]
    ):
        block = 1 << (n - 1).bit_length()
        size = f"{m}x{n} {str(dtype)[6:]}"
        warps = (1, 2, 4, 8, 16) if n < 8192 else (4, 8, 16, 32)

        def variants(kernel, grid):
            return {f"warps {w}": (rows[kernel], grid, options(w, 1, BLOCK=block)) for w in warps}

        yield Work(
            "softmax",
            f"softmax {size}",
            lambda m=m, n=n, dtype=dtype: (
                at.random(m, n, dtype=dtype),
                at.random(m, n, dtype=dtype),
                n,
            ),
            variants("softmax", (m,)),
        )
        yield Work(
            "norms",
            f"rms_norm {size}",
            lambda m=m, n=n, dtype=dtype: (
                at.random(m, n, dtype=dtype),
                at.random(n, dtype=dtype),
                at.random(m, n, dtype=dtype),
                n,
                1e-5,
            ),
            variants("rms_norm", (m,)),
        )
        yield Work(
            "norms",
            f"layer_norm {size}",
            lambda m=m, n=n, dtype=dtype: (
                at.random(m, n, dtype=dtype),
                at.random(n, dtype=dtype),
                at.random(n, dtype=dtype),
                at.random(m, n, dtype=dtype),
                at.random(m, dtype=F32),
                at.random(m, dtype=F32),
                n,
                1e-5,
            ),
            variants("layer_norm", (m,)),
        )
        yield Work(
            "reductions",
            f"sum_rows {size}",
            lambda m=m, n=n, dtype=dtype: (
                at.random(m, n, dtype=dtype),
                at.random(m, dtype=F32),
                n,
            ),
            variants("sum_rows", (m,)),
        )
        yield Work(
            "scans",
            f"cumsum {size}",
            lambda m=m, n=n, dtype=dtype: (
                at.random(m, n, dtype=dtype),
                at.random(m, n, dtype=dtype),
                n,
            ),
            variants("cumsum", (m,)),
        )
        yield Work(
            "reductions",
            f"argmax {size}",
            lambda m=m, n=n, dtype=dtype: (
                at.random(m, n, dtype=dtype),
                at.empty(m, dtype=torch.int32),
                n,
            ),
            variants("argmax", (m,)),
        )
        parts = 264
        yield Work(
            "norms",
            f"layer_norm_backward {size}",
            lambda m=m, n=n, dtype=dtype: (
                at.random(m, n, dtype=dtype),
                at.random(n, dtype=dtype),
                at.random(m, n, dtype=dtype),
                at.random(m, dtype=F32),
                at.random(m, dtype=F32),
                at.random(m, n, dtype=dtype),
                at.random(parts, n, dtype=F32),
                at.random(parts, n, dtype=F32),
                m,
                n,
            ),
            {
                f"{w} warps, {p} programs": (
                    rows["layer_norm_backward"],
                    (p,),
                    options(w, 1, BLOCK=block),
                )
                for w in warps[-3:]
                for p in (132, 264)
            },
        )
        yield Work(
            "reductions",
            f"sum_columns {size}",
            lambda m=m, n=n, dtype=dtype: (
                at.random(m, n, dtype=dtype),
                at.random(n, dtype=F32),
                m,
                n,
            ),
            {
                f"{r}x{b}, {w} warps": (
                    rows["sum_columns"],
                    (cdiv(n, b),),
                    options(w, 1, ROWS=r, BLOCK=b),
                )
                for r, b, w in (
                    (16, 64, 4),
                    (64, 32, 4),
                    (64, 32, 8),
                    (128, 16, 8),
                    (32, 32, 4),
                    (64, 64, 16),
                )
            },
        )
        yield Work(
            "streaming",
            f"transpose {size}",
            lambda m=m, n=n, dtype=dtype: (
                at.random(m, n, dtype=dtype),
                at.random(n, m, dtype=dtype),
                m,
                n,
            ),
            {
                f"{a}x{b}, {w} warps": (
                    rows["transpose"],
                    (cdiv(m, a), cdiv(n, b)),
                    options(w, 1, BLOCK_M=a, BLOCK_N=b),
                )
                for a, b, w in (
                    (64, 64, 4),
                    (32, 32, 4),
                    (128, 64, 8),
                    (16, 128, 4),
                    (128, 128, 8),
                    (64, 64, 8),
                )
            },
        )
    for n, dtype in (
        [(1 << 10, F32), (1 << 22, F32), (1 << 26, BF16)]
        if is_score
        else [(1 << 10, F32), (1 << 25, F32), (1 << 20, F16)]
    ):
        yield Work(
            "streaming",
            f"add {n} {str(dtype)[6:]}",
            lambda n=n, dtype=dtype: (
                at.random(n, dtype=dtype),
                at.random(n, dtype=dtype),
                at.random(n, dtype=dtype),
                n,
            ),
            {
                f"{b}, {w} warps": (rows["add"], (cdiv(n, b),), options(w, 1, BLOCK=b))
                for b, w in (
                    (256, 2),
                    (256, 8),
                    (1024, 4),
                    (1024, 8),
                    (4096, 4),
                    (4096, 8),
                    (16384, 8),
                    (65536, 16),
                )
            },
        )


class Recorder:
    """Stands for a kernel of a case and notes its launches, which do not run."""

    def __init__(self, name, kernel, launches):
        self.name, self.kernel, self.launches = name, kernel, launches

    def __getitem__(self, grid):
        def launch(*arguments, **options):
            self.launches.append((self.name, self.kernel, grid, arguments, options))

        return launch

    def __getattr__(self, name):
        return getattr(self.kernel, name)


def case_work(at: Maker, chosen: str, is_wanted, configs: int = 6):
    """The first size of each kernel of a set of public_kernels.py, with other warps and stages."""
    kernels = public_kernels.load(tessera, chosen)
    families = FAMILIES if chosen == "public" else public_kernels.SETS[chosen].families()
    seen = set()
    for case in itertools.chain.from_iterable(family(at) for family in families):
        name = case.name.split()[0]
        if name in seen:
            continue
        seen.add(name)
        if not is_wanted():
            continue
        launches = []
        recorders = {key: Recorder(key, kernel, launches) for key, kernel in kernels.items()}
        try:
            buffers = case.make()
            case.launch(recorders, buffers)
        except Exception:
            continue  # it needs what a launch returns or computes
        for number, (key, kernel, grid, arguments, options) in enumerate(launches):
            warps, stages = options.get("num_warps", 4), options.get("num_stages", 3)
            tried = {"as written": {}, f"{warps * 2} warps": {"num_warps": min(warps * 2, 32)}}
            if warps > 1:
                tried[f"{warps // 2} warps"] = {"num_warps": warps // 2}
            tried["1 stage"] = {"num_stages": 1}
            tried[f"{stages + 1} stages"] = {"num_stages": stages + 1 if stages < 4 else 2}
            if warps > 3:
                tried[f"{warps // 4} warps"] = {"num_warps": warps // 4}
            tried = dict(list(tried.items())[:configs])
            yield Work(
                f"public: {case.kind}" if chosen == "public" else chosen,
                f"{case.name} / {key} {number}",
                lambda arguments=arguments: arguments,
                {what: (kernel, grid, {**options, **change}) for what, change in tried.items()},
            )


def list_work(at: Maker, chosen: str, configs: int, part: int = 0, parts: int = 1):
    """The work of a set, or a part of it; kernels with tiles of their own first."""
    numbers = itertools.count()

    def is_wanted():
        return next(numbers) % parts == part

    if chosen in CASES:
        yield from (work for work in own_work(at, chosen == "score") if is_wanted())
    yield from case_work(at, CASES.get(chosen, chosen), is_wanted, configs)


def mock(value):
    """A tensor without memory for the compiler."""
    return (
        tessera.MockTensor(value.dtype, tuple(value.shape))
        if isinstance(value, torch.Tensor)
        else value
    )


def resolve(grid, options):
    grid = grid(options) if callable(grid) else grid
    return (grid,) if isinstance(grid, int) else tuple(int(x) for x in grid)


def measure(run, flushed) -> float:
    """The median of calls in microseconds, each with an L2 that has other data."""
    run()
    times = []
    for _ in range(ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flushed.sum()
        begin.record()
        run()
        end.record()
        times.append((begin, end))
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) for begin, end in times) * 1e3


def warm(chosen: str, configs: int, part: int, processes: int) -> None:
    """Compiles a part of the kernels into the cache."""
    for work in list_work(Maker("cuda"), chosen, configs, part, processes):
        arguments = work.make()
        for kernel, grid, options in work.configs.values():
            try:
                kernel.warmup(*arguments, grid=resolve(grid, options), **options)
            except Exception as error:
                print(f"{work.name} {options}: {error}"[:200], flush=True)
        del arguments
        torch.cuda.empty_cache()


def run_all(options, started: float):
    """Measures; a row for each configuration."""
    at, rows = Maker("meta" if options.dry else "cuda"), []
    flushed = None if options.dry else torch.ones(FLUSHED_BYTES // 4, device="cuda")
    for work in list_work(at, options.set, options.configs):
        if options.seconds and time.monotonic() - started > options.seconds:
            print("out of time before", work.name)
            break
        arguments = work.make()
        for config, (kernel, grid, meta) in work.configs.items():
            row = {"family": work.family, "work": work.name, "config": config}
            try:
                grid = resolve(grid, meta)
                if options.dry:
                    found = tessera.estimate(
                        kernel, grid, [*map(mock, arguments)], target="sm_90a", **meta
                    )
                else:
                    compiled = kernel[grid](*arguments, **meta)
                    row["us"] = measure(lambda: kernel[grid](*arguments, **meta), flushed)
                    for fact in (
                        "num_registers",
                        "spill_bytes",
                        "shared_bytes",
                        "num_warps",
                        "num_ctas",
                    ):
                        row[fact] = compiled.metadata[fact]
                    found = tessera.estimate(kernel, grid, arguments, **meta)
                row["expected_us"] = found.microseconds
                row |= found._asdict()
                del row["microseconds"]
            except Exception as error:
                row["error"] = f"{type(error).__name__}: {error}"[:200]
            row["grid"] = grid
            rows.append(row)
        del arguments
        if not options.dry:
            torch.cuda.empty_cache()
    return rows


# --- Scores -----------------------------------------------------------------------------------


def rank(values):
    """The places of numbers by size; equal ones share theirs."""
    order = sorted(values)
    places = {}
    for place, value in enumerate(order):
        places.setdefault(value, []).append(place)
    return [statistics.fmean(places[value]) for value in values]


def correlation(rows) -> float:
    """Spearman's rank correlation of what was expected and what was measured."""
    return statistics.correlation(
        *(rank([row[name] for row in rows]) for name in ("expected_us", "us"))
    )


def score(rows):
    """Prints a line for each family; returns the figures of all."""
    known = [row for row in rows if "us" in row and "expected_us" in row]
    regrets = {}
    for name in dict.fromkeys(row["work"] for row in known):
        own = [row for row in known if row["work"] == name]
        if len(own) > 2:
            chosen = min(own, key=lambda row: row["expected_us"])
            family = regrets.setdefault(own[0]["family"], [])
            family.append((chosen["us"] / min(row["us"] for row in own) - 1, name))
    print(f"{'family':28} kernels  regret: mean  worst   correlation")
    for family, found in regrets.items():
        own = [row for row in known if row["family"] == family]
        print(
            f"{family:28} {len(found):7} {statistics.fmean(r for r, _ in found):13.3f} {max(found)[0]:6.3f}"
            f" {correlation(own):13.3f}"
        )
    all_of_them = [r for found in regrets.values() for r, _ in found]
    ratios = sorted(row["expected_us"] / row["us"] for row in known)
    figures = {
        "configurations": len(known), "kernels": len(all_of_them), "correlation": correlation(known),
        "mean_regret": statistics.fmean(all_of_them), "worst_regret": max(all_of_them),
        "expected_of_measured": [ratios[len(ratios) * part // 10] for part in (1, 5, 9)],
    }  # fmt: skip
    print(figures)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--set", choices=(*CASES, *public_kernels.SETS), default="design")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--configs", type=int, default=6)
    parser.add_argument("--part", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    if options.part >= 0:
        warm(options.set, options.configs, options.part, options.processes)
        return
    started = time.monotonic()
    if options.list:
        for work in list_work(Maker("meta"), options.set, options.configs):
            print(work.family, "|", work.name, "|", *work.configs)
        return
    if not options.dry:
        command = [
            sys.executable,
            __file__,
            "--set",
            options.set,
            "--processes",
            str(options.processes),
            "--configs",
            str(options.configs),
        ]
        parts = [[*command, "--part", str(part)] for part in range(options.processes)]
        for process in [subprocess.Popen(part, env=os.environ) for part in parts]:
            process.wait()
        print(f"compiled in {time.monotonic() - started:.0f} s", flush=True)
    rows = run_all(options, started)
    report = {"rows": rows}
    if not options.dry:
        report["environment"] = gpu.environment()
        if any("expected_us" in row for row in rows):
            report["score"] = score(rows)
    if options.json:
        options.json.write_text(json.dumps(report) + "\n")
    errors = [row for row in rows if "error" in row]
    print(f"{len(rows)} configurations, {len(errors)} failed, {time.monotonic() - started:.0f} s")
    for row in errors[:10]:
        print(row["work"], row["config"], row["error"][:150])


if __name__ == "__main__":
    main()
