# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of timm, torchvision and transformers under torch.compile: Tessera against Inductor's own.

Usage: torch_models.py [--device cuda|cpu] [--small] [--families timm torchvision transformers]
           [--only TEXT] [--modes inference training] [--backends tessera inductor]
           [--suite models|optimize] [--budget SECONDS] [--limit SECONDS] [--jobs N] [--json FILE]

Each model, with each back end (Inductor's own is C++ on a CPU, Triton on a GPU), runs in a process
of its own with empty caches. Weights are random, and nothing is downloaded. Results are a model's
logits; in training its loss and all gradients. They are compared with eager ones as torch's own
benchmark runner does (within a tolerance, or about as far from results in float64 as eager ones
are), but relative to each one's largest number.

    right     they are the same
    wrong     they are not
    failed    an exception, or a process that ended or took longer than --limit

`--suite optimize` has `tessera.torch.optimize` against eager calls and against Inductor's mode
"reduce-overhead", in float16 on a GPU.

--jobs N compiles and compares in N processes at a time, which then wait; what is timed is timed
alone, the back ends of a case in turns, since machines that others use are faster at one time than
at another. The time of compiling is that of a process that has compiled a small function before
(`start_s`), and includes what N processes take from each other: measure it with 1.
With --budget no case is begun that would not end in time; those left out are counted. Where
--json has results of an earlier call, what it has is not run again.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import pathlib
import queue
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, Optional

import torch
from torch_models_rows import (
    FAMILIES,
    OPTIMIZED,
    SHAPES,
    Model,
    make,
    make_whole,
    missing,
    names_of,
)

BACKENDS = ("tessera", "inductor")
MODES = ("inference", "training")
ROUNDS = 5
"""Of timing; the least of each process counts."""
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TESSERA_CACHE_DIR", "TRITON_CACHE_DIR")

# --- In the process of a case -------------------------------------------------------------


def finish(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def to(value: Any, device: str, dtype: Optional[torch.dtype]) -> Any:
    """Tensors elsewhere, those of floats in another type."""
    if isinstance(value, dict):
        return {name: to(item, device, dtype) for name, item in value.items()}
    return value.to(device, dtype if value.dtype.is_floating_point else None)


class Case:
    """A model ready to be called eagerly, in float64 and compiled."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        family, name, mode = options.case.split("/")
        self.mode = mode
        if family in OPTIMIZED:
            batch, length = map(int, name.split("x"))
            model = make_whole(family, options.small, batch, length)
        else:
            model = make(family, name, options.small)
        self.half: Optional[torch.dtype] = None
        if options.device == "cuda":
            self.half = torch.float16 if options.suite == "optimize" else torch.bfloat16
        self.model = model
        self.dtype = self.half if mode == "inference" else None
        model.module.train(mode == "training")

    def place(self, exact: bool) -> tuple[Any, Any, Any]:
        """A copy of the model, its inputs and its labels."""
        device, dtype = self.options.device, torch.float64 if exact else self.dtype
        module = copy.deepcopy(self.model.module).to(device, dtype)
        for part in module.modules():
            # A few models compute in a type that they keep by name.
            if exact and getattr(part, "dtype", None) in (torch.float32, self.dtype):
                try:
                    setattr(part, "dtype", torch.float64)
                except AttributeError:
                    pass
        return module, to(self.model.inputs, device, dtype), self.model.labels.to(device)

    def bind(self, function: Callable[..., Any], exact: bool = False) -> Callable[[], Any]:
        """A call that gives the results as a list."""
        module, inputs, labels = self.place(exact)
        if self.mode == "inference":

            def infer() -> Any:
                with torch.no_grad():
                    return [function(module, inputs)]

            return infer
        parameters = [x for x in module.parameters() if x.requires_grad]
        autocast = self.half is not None and not exact

        def train() -> Any:
            for parameter in parameters:
                parameter.grad = None
            with torch.autocast("cuda", self.half, enabled=autocast):
                loss = function(module, inputs, labels)
            loss.backward()
            return [loss.detach(), *(parameter.grad for parameter in parameters)]

        return train

    def function(self) -> Callable[..., Any]:
        return self.model.infer() if self.mode == "inference" else self.model.loss()


def compiled(function: Callable[..., Any], options: argparse.Namespace) -> Callable[..., Any]:
    if options.suite == "optimize":
        if options.backend == "tessera":
            import tessera.torch

            fast: Callable[..., Any] = tessera.torch.optimize(function)
            return fast
        return torch.compile(function, mode="reduce-overhead")
    return torch.compile(function, backend=options.backend)


def start_compiler(options: argparse.Namespace, mode: str) -> float:
    """Seconds of compiling a function of a line, and so of what a process does once: it imports most
    of Inductor, and starts what compiles kernels."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return (x.sin() + 1).sum()

    x = torch.ones(1000, device=options.device, requires_grad=mode == "training")
    start = time.perf_counter()
    result = compiled(function, options)(x)
    if mode == "training":
        result.backward()
    finish(options.device)
    return time.perf_counter() - start


def agreement(
    found: list[Any], eager: list[Any], exact: list[Any], tolerance: float
) -> tuple[bool, str, float]:
    """Whether results are the same by torch's own rule, what it said, and the largest difference,
    of the largest number there is in the same result.

    Gradients may be far below the rule's absolute tolerance, so each result is first divided by
    its largest number. One that is nothing but rounding beside the largest result is divided by
    what rounding that has.
    """
    from torch._dynamo.utils import same

    said: list[str] = []

    def note(text: str, *values: Any) -> None:
        said.append(text % values if values else text)

    def largest_of(x: Any) -> float:
        return float(x.abs().max()) if x is not None and x.numel() else 0.0

    worst, right = 0.0, len(found) == len(eager)
    largest = max(map(largest_of, eager))
    for index, (a, b, reference) in enumerate(zip(found, eager, exact)):
        if a is None or b is None:
            if a is not b:
                said.append(f"result {index}: there is a gradient on one side only")
                right = False
            continue
        scale = max(largest_of(b), 16 * torch.finfo(b.dtype).eps * largest, 1e-30)
        wide = torch.float32 if b.dtype != torch.float64 else b.dtype
        x, y = ((value.to(wide) / scale).to(b.dtype) for value in (a, b))
        difference = largest_of(x - y)
        worst = max(worst, difference) if math.isfinite(difference) else math.inf
        z = None if reference is None else reference / scale
        if a.dtype != b.dtype or not same(y, x, z, tol=tolerance, log_error=note):
            said.append(f"result {index}, {b.dtype} of {tuple(b.shape)}: off by {difference:.3g}")
            right = False
    return right, "\n".join(said), worst


def milliseconds(call: Callable[[], Any], device: str) -> float:
    """The median of some calls; fewer where they are long."""

    def once() -> float:
        start = time.perf_counter()
        call()
        finish(device)
        return (time.perf_counter() - start) * 1e3

    once()
    first = once()
    count = max(3, min(15, int(400 / first)))
    return statistics.median(once() for _ in range(count))


def say(**values: Any) -> None:
    print("CASE " + json.dumps(values), flush=True)


def run_case(options: argparse.Namespace) -> None:
    """Compiles and compares, and measures once for each line that comes."""
    torch.backends.cudnn.benchmark = False
    if options.backend == "tessera":
        import tessera.torch

        tessera.torch.activate()
    stage = "eager"
    try:
        case = Case(options)
        function = case.function()
        eager_call = case.bind(function)
        eager = [x if x is None else x.clone() for x in eager_call()]
        if not all(bool(x.isfinite().all()) for x in eager if x is not None):
            return say(verdict="skipped", error="eager results are not finite")
        exact: list[Any] = [None] * len(eager)
        reference = "float64"
        try:
            exact = case.bind(function, exact=True)()
        except Exception as error:
            reference = f"eager, for {type(error).__name__}: {str(error)[:200]}"
        finish(options.device)
        stage = "compiled"
        began = start_compiler(options, case.mode)
        before = phases()
        call = case.bind(compiled(function, options))
        start = time.perf_counter()
        found = [x if x is None else x.clone() for x in call()]
        finish(options.device)
        seconds = time.perf_counter() - start
        parts = {name: later - before.get(name, 0) for name, later in phases().items()}
        for _ in range(3 if options.suite == "optimize" else 1):  # graphs are recorded later
            again = [x if x is None else x.clone() for x in call()]
    except Exception as error:
        say(
            verdict="failed" if stage == "compiled" else "skipped",
            error=f"{type(error).__name__}: {error}",
            traceback=traceback.format_exc(),
            stage=stage,
        )
        return
    half = case.half is not None
    tolerance = (2e-2 if half else 1e-2) if case.mode == "training" else (1e-2 if half else 1e-3)
    right, said, difference = agreement(found, eager, exact, tolerance)
    right_again, said_again, _ = agreement(again, eager, exact, tolerance)
    if case.mode == "inference" and not right_again:
        right, said = False, "a later call: " + said_again
    say(
        verdict="right" if right else "wrong",
        error="" if right else said,
        difference=difference,
        compile_s=seconds,
        start_s=began,
        phases_s=parts,
        reference=reference,
        kernels=kernels_made(),
    )
    del exact, found, again
    # Inductor's workers may be starting still, beside what is timed.
    from torch._inductor.async_compile import shutdown_compile_workers

    shutdown_compile_workers()
    for _ in sys.stdin:
        eager_ms = milliseconds(eager_call, options.device)
        say(ms=milliseconds(call, options.device), eager_ms=eager_ms)


PHASES = (
    "bytecode_tracing",
    "create_aot_dispatcher_function",
    "compile_fx_inner",
    "GraphLowering.run",
    "Scheduler.codegen",
    "async_compile.precompile",
    "async_compile.wait",
    "CachingAutotuner.benchmark_all_configs",
    "CachingAutotuner.synchronize",
)
"""Of what torch notes the time while it compiles; what is inside of another one counts in both."""


def phases() -> dict[str, float]:
    """Seconds that torch spent on its parts of compiling in this process."""
    from torch._dynamo.utils import compilation_time_metrics as times

    return {name: sum(times[name]) for name in PHASES if name in times}


def kernels_made() -> Optional[int]:
    """How many kernels Inductor wrote, as far as it counts."""
    from torch._inductor import metrics

    return int(metrics.generated_kernel_count)


# --- In the first process -----------------------------------------------------------------


class Running:
    """A case in its process."""

    def __init__(self, name: str, backend: str, options: argparse.Namespace, patience: float):
        self.name, self.backend = name, backend
        self.result: dict[str, Any] = {}
        self.waits = False
        """Whether it has compiled and waits to be timed."""
        self._folder = tempfile.TemporaryDirectory(
            prefix="tessera-models-", ignore_cleanup_errors=True
        )
        environment = dict(os.environ)
        environment.update({cache: f"{self._folder.name}/{cache}" for cache in CACHES})
        threads = options.threads or max(1, (os.cpu_count() or 1) // options.jobs)
        environment.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(threads))
        command = [sys.executable, __file__, "--case", name, "--backend", backend]
        command += ["--device", options.device, "--suite", options.suite]
        command += ["--small"] if options.small else []
        self._log = open(f"{self._folder.name}/log", "w+", encoding="utf-8")
        self._lines: queue.Queue[Optional[str]] = queue.Queue()
        self._ends = time.monotonic() + patience
        self.begun = time.monotonic()
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("CASE "):
                self._lines.put(line[5:])
        self._lines.put(None)

    def poll(self) -> bool:
        """Whether it has ended or waits."""
        if self.result:
            return True
        try:
            line = self._lines.get(timeout=0.1)
        except queue.Empty:
            if time.monotonic() > self._ends:
                self._fail("it took too long")
                return True
            return False
        if line is None:
            self._fail(f"the process ended with {self._process.wait()}")
            return True
        self.result.update(json.loads(line))
        self.waits = "compile_s" in self.result
        return True

    def measure(self) -> None:
        """Has it timed once; nothing else of ours runs meanwhile. The least of all times counts."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("time\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=max(30.0, self._ends - time.monotonic()))
        except (queue.Empty, BrokenPipeError):
            line = None
        if line is None:
            self.result["timing_failed"] = "it ended or took too long: " + self._text()
            return
        for key, value in json.loads(line).items():
            self.result[key] = min(value, self.result.get(key, math.inf))

    def _text(self) -> str:
        self._log.flush()
        self._log.seek(0)
        return self._log.read()

    def _fail(self, why: str) -> None:
        if "verdict" not in self.result:
            self.result = {"verdict": "failed", "error": why}

    def close(self) -> dict[str, Any]:
        """Ends it, and gives the result."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        if self.result.get("verdict") in ("failed", "wrong"):
            self.result["log"] = self._text()
        self._log.close()
        self._folder.cleanup()
        self.result["took_s"] = round(time.monotonic() - self.begun, 1)
        return self.result


def cases_of(options: argparse.Namespace) -> Iterator[str]:
    """Names of cases, those of the families in turns so that a short budget sees each."""
    if options.suite == "optimize":
        for batch, length in SHAPES:
            for model in OPTIMIZED:
                yield f"{model}/{batch}x{length}/inference"
        return
    lists = [[f"{family}/{name}" for name in names_of(family)] for family in options.families]
    for place in range(max(map(len, lists), default=0)):
        for names in lists:
            for mode in options.modes:
                if place < len(names):
                    yield f"{names[place]}/{mode}"


def run_all(
    options: argparse.Namespace,
    results: dict[str, dict[str, Any]],
    keep: Callable[[], None],
) -> int:
    """Runs what there is no result of; how many cases the budget had no time for."""
    todo = []
    for name in cases_of(options):
        backends = [x for x in options.backends if x not in results.get(name, {})]
        if options.only in name and backends:
            todo.append((name, backends))
    start = time.monotonic()
    longest = 20.0  # what a case is thought to take until one has ended

    def left() -> float:
        return options.budget - (time.monotonic() - start) if options.budget else math.inf

    while todo and left() > longest:
        wave: list[Running] = []
        while todo and (not wave or len(wave) + len(todo[0][1]) <= options.jobs):
            name, backends = todo.pop(0)
            for backend in backends:
                while sum(not running.poll() for running in wave) >= options.jobs:
                    pass
                wave.append(Running(name, backend, options, min(options.limit, left())))
        while not all([running.poll() for running in wave]):
            pass
        for _ in range(0 if options.no_times else ROUNDS):
            for running in wave:
                if running.waits and "timing_failed" not in running.result:
                    running.measure()
        for running in wave:
            result = running.close()
            results.setdefault(running.name, {})[running.backend] = result
            longest = max(longest, min(result["took_s"], options.limit / 2))
            print(line_of(running.name, running.backend, result), flush=True)
        keep()
    return len(todo)


def line_of(name: str, backend: str, result: dict[str, Any]) -> str:
    text = f"{name:44} {backend:9} {result['verdict']:8}"
    if "ms" in result:
        text += f" {result['ms']:9.3f} ms, eager {result['eager_ms']:9.3f}"
    if "compile_s" in result:
        text += f", compiled in {result['compile_s']:6.1f} s"
    if result.get("error"):
        lines = [line for line in str(result["error"]).splitlines() if line.strip()]
        text += " | " + " / ".join(lines[:2])[:160]
    return text


def mean(ratios: list[float]) -> str:
    """The geometric mean."""
    if not ratios:
        return "    -"
    return f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):5.2f}"


def summary(results: dict[str, dict[str, Any]], options: argparse.Namespace) -> list[str]:
    """A table by family and mode."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for name, row in results.items():
        family, _, mode = name.split("/")
        groups.setdefault(f"{family} {mode}", []).append(row)
        groups.setdefault("all", []).append(row)
    groups["all"] = groups.pop("all", [])
    lines = [
        f"{'':24} {'':9} right wrong failed skipped | times faster than eager | than inductor's | "
        "its compile time / ours"
    ]
    for group, rows in groups.items():
        for backend in options.backends:
            mine = [row[backend] for row in rows if backend in row]
            counts = [sum(x["verdict"] == verdict for x in mine) for verdict in VERDICTS]
            eager = [x["eager_ms"] / x["ms"] for x in mine if "ms" in x]
            other: list[float] = []
            compile_times: list[float] = []
            if backend == "tessera":
                for row in rows:
                    a, b = row.get("tessera", {}), row.get("inductor", {})
                    if a.get("verdict") == b.get("verdict") == "right":
                        compile_times.append(b["compile_s"] / a["compile_s"])
                        if "ms" in a and "ms" in b:
                            other.append(b["ms"] / a["ms"])
            lines.append(
                f"{group:24} {backend:9} {counts[0]:5} {counts[1]:5} {counts[2]:6} {counts[3]:7} | "
                f"{mean(eager)} | {mean(other)} of {len(other)} | {mean(compile_times)}"
            )
    return lines


VERDICTS = ("right", "wrong", "failed", "skipped")


def versions() -> dict[str, str]:
    from importlib import metadata

    found = {}
    for name in ("torch", "triton", "timm", "torchvision", "transformers", "tessera"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--small", action="store_true", help="models that a CPU can run")
    parser.add_argument("--suite", choices=("models", "optimize"), default="models")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=list(BACKENDS))
    parser.add_argument("--only", default="", help="cases whose names have this in them")
    parser.add_argument("--budget", type=float, default=0, help="seconds for all; 0: no limit")
    parser.add_argument("--limit", type=float, default=300, help="seconds for a case")
    parser.add_argument("--jobs", type=int, default=1, help="processes that compile at a time")
    parser.add_argument("--threads", type=int, default=0, help="Inductor's workers of a process")
    parser.add_argument("--no-times", action="store_true", help="compile and compare only")
    parser.add_argument("--json", type=pathlib.Path, help="keep results; go on where it ended")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--backend", choices=BACKENDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        return run_case(options)
    needed = ["transformers"] if options.suite == "optimize" else list(options.families)
    absent = {family: why for family in needed if (why := missing(family))}
    for family, why in absent.items():
        print(f"skipped: {family}: {why.splitlines()[0]}")
    options.families = [family for family in options.families if family not in absent]
    if len(absent) == len(needed):
        sys.exit("none of the libraries is there")
    report: dict[str, Any] = {"rows": {}}
    if options.json and options.json.exists():
        report = json.loads(options.json.read_text())
    report.update(
        benchmark="torch_models",
        suite=options.suite,
        device=torch.cuda.get_device_name() if options.device == "cuda" else "cpu",
        small=options.small,
        jobs=options.jobs,
        versions=versions(),
    )

    def keep() -> None:
        if options.json:
            options.json.write_text(json.dumps(report, indent=1) + "\n")

    left_out = run_all(options, report["rows"], keep)
    report["left_out"] = left_out
    keep()
    print("\n".join(summary(report["rows"], options)))
    if left_out:
        print(f"{left_out} cases were not run for want of time")


if __name__ == "__main__":
    main()
