#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs torch's own samples of its operators under torch.compile with Tessera, and counts.

Each operator of torch's OpInfo database is called eagerly and compiled, with its first samples for
a dtype. Its gradients are computed, too, if it has them. The outcome is one of

    right      results and gradients are as exact as eager ones, and there is a kernel of Inductor's
    wrong      they are not
    failed     an exception of Tessera's, or a process that ended
    no kernel  Inductor makes no Triton kernel of it, or torch cannot compile it without one either
    skipped    there are no samples, eager results differ from call to call, or eager calls fail

Results are compared with those in float64 where torch can compute these. The error may be a few
units in the last place, or twice that of the eager result. The eager error is taken at the same
element, or the worst one, both absolutely and relatively, since rounding may differ elsewhere.

Operators run in a process of their own, a slice at a time. If an operator crashes it, another one
starts. torch's testing package needs the package expecttest.

Usage: tools/dev/torch_operators.py [--sample N] [--slice I/N] [--dtypes float32,bfloat16]
           [--samples K] [--device cpu] [--only NAME...] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from typing import Any, Iterator, Optional

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERDICTS = ("right", "wrong", "failed", "no kernel", "skipped")


def names_of_operators() -> list[str]:
    """All of the database, each overload under its own name."""
    from torch.testing._internal.common_methods_invocations import op_db

    return [f"{op.name}.{op.variant_test_name}".rstrip(".") for op in op_db]


# --- In the process of a slice ----------------------------------------------------------


def leaves(value: Any) -> Iterator[Any]:
    """The tensors in what an operator takes or gives."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)


def mapped(function: Any, value: Any) -> Any:
    """The same with other tensors."""
    import torch

    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, dict):
        return {name: mapped(function, item) for name, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(function, item) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(function, item) for item in value)
    return value


def run(function: Any, arguments: Any, with_gradients: bool) -> list[Any]:
    """The results, and behind them the gradients of a sum of them."""
    import torch

    fresh = mapped(
        lambda x: x.detach().clone().requires_grad_(x.requires_grad and with_gradients), arguments
    )
    results = list(leaves(function(*fresh[0], **fresh[1])))
    found = [result.detach().clone() for result in results]
    wanted = [x for x in leaves(fresh) if x.requires_grad]
    summed = [y for y in results if y.requires_grad and y.dtype.is_floating_point]
    if with_gradients and wanted and summed:
        total = sum((y * torch.linspace(0.5, 1.5, y.numel(), dtype=y.dtype, device=y.device).reshape(y.shape)).sum() for y in summed if y.numel())  # fmt: skip
        if isinstance(total, torch.Tensor):
            gradients = torch.autograd.grad(total, wanted, allow_unused=True)
            found += [gradient for gradient in gradients if gradient is not None]
    return found


def is_close(found: Any, eager: Any, exact: Optional[Any]) -> bool:
    """True if a result is as exact as the eager one."""
    import torch

    if found.shape != eager.shape or found.dtype != eager.dtype:
        return False
    if not eager.dtype.is_floating_point and not eager.dtype.is_complex:
        return bool(torch.equal(found, eager))
    wide = torch.complex128 if eager.dtype.is_complex else torch.float64
    a, b = found.to(wide), eager.to(wide)
    reference = b if exact is None or exact.shape != b.shape else exact.to(wide)
    same = (a == b) | (a.isnan() & b.isnan()) | (a.isnan() & reference.isnan()) | (a == reference)
    unit = torch.finfo(eager.dtype).eps
    scale = reference.abs().nan_to_num(0, 0, 0)
    largest = scale.max() if scale.numel() else 0
    error = (a - reference).abs()
    eager_error = (b - reference).abs().nan_to_num(0, 0, 0)
    allowed = 2 * eager_error + 16 * unit * scale + 4 * unit * largest + unit
    if eager_error.numel():
        relative = (eager_error / scale.clamp(min=torch.finfo(wide).tiny)).max().clamp(max=0.1)
        allowed = torch.maximum(allowed, 2 * torch.minimum(eager_error.max(), relative * scale))
    return bool((same | (error <= allowed)).all())


def check(op: Any, dtype: Any, device: str, count: int) -> tuple[str, str]:
    """The outcome of an operator, and its reason."""
    import torch
    import torch._inductor.async_compile as async_compile

    if dtype not in op.supported_dtypes(device):
        return "skipped", "not for this dtype"
    gradients = op.supports_autograd and dtype in op.supported_backward_dtypes(device)
    samples = []
    for sample in op.sample_inputs(device, dtype, requires_grad=gradients):
        samples.append(((sample.input, *sample.args), sample.kwargs))
        if len(samples) == count:
            break
    kernels = [0]
    original = async_compile.AsyncCompile.triton

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        kernels[0] += 1
        return original(self, *args, **kwargs)

    ran = 0
    for arguments in samples:
        try:
            torch.manual_seed(0)
            eager = run(op.op, arguments, gradients)
            torch.manual_seed(1)
            again = run(op.op, arguments, gradients)
        except Exception:
            continue
        if not all(x.equal(y) or bool(((x == y) | (x != x)).all()) for x, y in zip(eager, again)):
            continue
        if "empty" in op.name:
            continue  # memory as it is, which may be the same twice
        try:
            exact: list[Any] = run(op.op, mapped(_widened, arguments), gradients)
        except Exception:
            exact = []
        torch.compiler.reset()
        async_compile.AsyncCompile.triton = counted
        try:
            compiled = torch.compile(op.op, backend="tessera")
            found = run(compiled, arguments, gradients)
        except Exception as error:
            async_compile.AsyncCompile.triton = original
            torch.compiler.reset()
            text = f"{type(error).__name__}: {error}"
            if "error[E" not in text and "nternal error" not in text and not kernels[0]:
                try:
                    run(torch.compile(op.op, backend="aot_eager"), arguments, gradients)
                except Exception:
                    return "no kernel", "torch cannot compile it: " + text[:200]
            at = max(0, text.find("error["))
            return "failed", text[at : at + 400]
        finally:
            async_compile.AsyncCompile.triton = original
        ran += 1
        exact = exact if len(exact) == len(eager) else [None] * len(eager)
        if len(found) != len(eager):
            return "wrong", f"{len(found)} results and gradients, {len(eager)} eagerly"
        for index, parts in enumerate(zip(found, eager, exact)):
            if not is_close(*parts):
                worst = (parts[0].double() - parts[1].double()).abs().max().item()
                if not kernels[0]:
                    return "no kernel", f"differs without one, by {worst:.3g}"
                return "wrong", f"result or gradient {index} differs by {worst:.3g}"
    if not ran:
        return "skipped", "no samples that run eagerly and repeat"
    return ("right", f"{kernels[0]} kernels") if kernels[0] else ("no kernel", "")


def _widened(x: Any) -> Any:
    import torch

    if x.dtype.is_floating_point:
        return x.detach().double().requires_grad_(x.requires_grad)
    return x.to(torch.complex128) if x.dtype.is_complex else x


def work(device: str, count: int) -> None:
    """Reads operators to check as lines of JSON, and writes outcomes as lines."""
    import warnings

    warnings.simplefilter("ignore")
    import tessera.torch

    tessera.torch.activate()
    import torch
    import torch._inductor.config as config
    from torch.testing._internal.common_methods_invocations import op_db

    config.compile_threads = 1
    config.fallback_random = True
    torch._dynamo.config.recompile_limit = 64
    by_name = {f"{op.name}.{op.variant_test_name}".rstrip("."): op for op in op_db}
    print("ready", flush=True)
    for line in sys.stdin:
        name, dtype = json.loads(line)
        try:
            verdict, why = check(by_name[name], getattr(torch, dtype), device, count)
        except Exception as error:
            verdict, why = "skipped", f"{type(error).__name__}: {error}"[:300]
        print("VERDICT " + json.dumps([verdict, why]), flush=True)


# --- In the first process ----------------------------------------------------------------


class Worker:
    """A process that checks, started anew where it ended."""

    def __init__(self, arguments: list[str], patience: float) -> None:
        self._arguments = arguments
        self._patience = patience
        self._process: Optional[subprocess.Popen[str]] = None
        self._folder = tempfile.TemporaryDirectory(prefix="tessera-operators-")

    def ask(self, name: str, dtype: str) -> tuple[str, str]:
        """The outcome of an operator, from the process."""
        if self._process is None:
            environment = {
                **os.environ,
                "TORCHINDUCTOR_CACHE_DIR": self._folder.name,
                "TESSERA_SLOW_COMPILE": "0",
            }
            self._process = subprocess.Popen(
                [sys.executable, __file__, "--work", *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=environment,
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        timer = threading.Timer(self._patience, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps([name, dtype]) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                if line.startswith("VERDICT "):
                    verdict, why = json.loads(line[8:])
                    return verdict, why
        except BrokenPipeError:
            pass
        finally:
            is_late = not timer.is_alive()
            timer.cancel()
        code = process.wait()
        self._process = None
        return "failed", "it takes too long" if is_late else f"the process ended with {code}"

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()


def report(results: dict[str, tuple[str, str]]) -> list[str]:
    """A table of the verdicts by dtype, and what was not right."""
    lines = ["| dtype | " + " | ".join(VERDICTS) + " | right of those with a kernel |"]
    lines.append("|---" * (len(VERDICTS) + 2) + "|")
    for dtype in sorted({key.rpartition(" ")[2] for key in results}):
        counts = Counter(
            verdict for key, (verdict, _) in results.items() if key.endswith(" " + dtype)
        )
        tried = sum(counts[verdict] for verdict in ("right", "wrong", "failed"))
        share = f"{100 * counts['right'] / tried:.1f} %" if tried else "-"
        cells = " | ".join(str(counts[verdict]) for verdict in VERDICTS)
        lines.append(f"| {dtype} | {cells} | {share} |")
    for key, (verdict, why) in sorted(results.items()):
        if verdict in ("wrong", "failed"):
            lines.append(f"{verdict}: {key}: {' / '.join(why.splitlines()[:2])}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--samples", type=int, default=2, help="samples of each operator")
    parser.add_argument("--sample", type=int, default=0, help="so many operators, by chance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slice", default="1/1", help="the I-th of N parts of the operators")
    parser.add_argument("--only", nargs="*", default=[], help="operators by name")
    parser.add_argument("--patience", type=float, default=180, help="seconds for an operator")
    parser.add_argument("--json", type=pathlib.Path, help="keep the verdicts; go on where it ended")
    options = parser.parse_args()
    if options.work:
        work(options.device, options.samples)
        return 0
    names = options.only or names_of_operators()
    if options.sample:
        names = sorted(random.Random(options.seed).sample(names, min(options.sample, len(names))))
    part, parts = map(int, options.slice.split("/"))
    names = names[part - 1 :: parts]
    results: dict[str, tuple[str, str]] = {}
    if options.json and options.json.exists():
        results = {key: tuple(value) for key, value in json.loads(options.json.read_text()).items()}
    worker = Worker(
        ["--device", options.device, "--samples", str(options.samples)], options.patience
    )
    try:
        for name in names:
            for dtype in options.dtypes.split(","):
                key = f"{name} {dtype}"
                if key in results:
                    continue
                results[key] = worker.ask(name, dtype)
                print(key, *results[key][:1], results[key][1][:100].replace("\n", " "), flush=True)
                if options.json:
                    options.json.write_text(json.dumps(results, indent=0, sort_keys=True))
    except KeyboardInterrupt:
        pass
    finally:
        worker.close()
    print("\n".join(report(results)))
    return 1 if any(verdict == "wrong" for verdict, _ in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
