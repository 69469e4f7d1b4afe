# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators of tessera.ops beside torch's eager ones, forward and backward.

    python python/benchmarks/ops.py [--device cuda] [--only FAMILY ...] [--rows NAME ...]
        [--sizes small large] [--compiled [FAMILY ...]] [--threads N] [--workers N] [--json FILE]

Each row is a call of both on the same random data, in turns; figures are medians in microseconds.
`small` is 64 rows of 256 elements, `large` 4096 of 4096 (of 1024 on a CPU). A backward pass is that of
the third call, on weights. `--compiled` has torch.compile, too, and ratios are to the faster of torch's. With
`--threads 1` on a CPU, times are those of the thread, so that other processes disturb less. At the end
stand geometric means of torch's time by ours, by family. Needs torch.

A GPU has two times: of a call, in a series that ends when the GPU is idle, and, as "gpu", of the GPU alone.
For the latter the GPU spins while calls are enqueued, so that it never waits for the host. Calls that
wait for the GPU have no such time, and are listed as "waits". Calls that launch nothing have none, either. Ratios are of the GPU's time where
all have one. Nothing flushes the L2 cache: large arrays of 64 MiB do not fit in it, small ones do.

`--workers` processes compile at the same time, then measure one after the other.
"""

# mypy: ignore-errors

from __future__ import annotations

import argparse
import functools
import math
import multiprocessing
import os
import queue
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

import tessera
from report import write_torch_rows
import tessera.nn as nn
from tessera import ops


class Row(NamedTuple):
    """An operator and torch's, as functions of the arrays that `make` returns."""

    family: str
    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    make: Callable[["Shape"], tuple[Any, ...]]
    has_backward: bool = True


class Shape(NamedTuple):
    """How large arrays are, of which type, and where."""

    rows: int
    columns: int
    dtype: torch.dtype
    device: str

    def array(self, *shape: int) -> torch.Tensor:
        """Random floats."""
        return torch.randn(shape or (self.rows, self.columns), device=self.device).to(self.dtype)

    def indices(self, limit: int, *shape: int) -> torch.Tensor:
        """Random integers below the limit."""
        return torch.randint(limit, shape, device=self.device)


def one(s: Shape) -> tuple[Any, ...]:
    return (s.array(),)


def classes(s: Shape) -> tuple[Any, ...]:
    return s.array(), s.indices(s.columns, s.rows)


def two(s: Shape) -> tuple[Any, ...]:
    return s.array(), s.array()


ROWS = [
    *[
        Row("activations", name, getattr(ops, name), getattr(F, name), one)
        for name in ("relu", "hardtanh", "hardswish", "leaky_relu", "elu", "selu", "sigmoid", "tanh",
                     "silu", "gelu", "mish", "softplus", "logsigmoid", "softsign", "softshrink")
    ],
    Row("gated", "glu", ops.glu, F.glu, one),
    Row("gated", "swiglu", ops.swiglu, lambda a, b: F.silu(a) * b, two),
    Row("gated", "geglu", ops.geglu, lambda a, b: F.gelu(a) * b, two),
    Row("elementwise", "clamp", lambda x: ops.clamp(x, -1.0, 1.0), lambda x: x.clamp(-1.0, 1.0), one),
    Row("elementwise", "lerp", lambda x, y: ops.lerp(x, y, 0.3), lambda x, y: x.lerp(y, 0.3), two),
    Row("elementwise", "addcmul", ops.addcmul, torch.addcmul, lambda s: (*two(s), s.array())),
    Row("elementwise", "where", ops.where, torch.where, lambda s: (s.array() > 0, *two(s))),
    Row("elementwise", "dropout", ops.dropout, F.dropout, one),
    Row("softmax", "softmax", ops.softmax, lambda x: F.softmax(x, -1), one),
    Row("softmax", "log_softmax", ops.log_softmax, lambda x: F.log_softmax(x, -1), one),
    Row("softmax", "softmax dim 0", lambda x: ops.softmax(x, 0), lambda x: F.softmax(x, 0), one),
    Row("losses", "cross_entropy", ops.cross_entropy, F.cross_entropy, classes),
    Row("losses", "cross_entropy smoothing", lambda x, t: ops.cross_entropy(x, t, label_smoothing=0.1),
        lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), classes),
    Row("losses", "nll_loss", ops.nll_loss, F.nll_loss, classes),
    *[
        Row("losses", name, getattr(ops, name), getattr(F, name), two)
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div")
    ],
    Row("losses", "binary_cross_entropy_with_logits", ops.binary_cross_entropy_with_logits,
        F.binary_cross_entropy_with_logits, lambda s: (s.array(), s.array().sigmoid())),
]  # fmt: skip


def norm(s: Shape) -> tuple[Any, ...]:
    return s.array(), (s.columns,), s.array(s.columns), s.array(s.columns)


def images(s: Shape) -> tuple[Any, ...]:
    """As many elements in 32 channels."""
    pixels = max(1, s.rows * s.columns // 32 // 8)
    return s.array(8, 32, pixels), s.array(32), s.array(32)


def sum_and_norm(x: Any, residual: Any, shape: Any, weight: Any) -> Any:
    total = x + residual
    return F.rms_norm(total, shape, weight), total


def heads(s: Shape) -> tuple[Any, ...]:
    """Queries of 8 heads of 64, and angles."""
    tokens = max(1, s.rows * s.columns // 512)
    angle = torch.arange(tokens, device=s.device)[:, None] * torch.linspace(
        1, 0.01, 32, device=s.device
    )
    return s.array(1, 8, tokens, 64), angle.cos().to(s.dtype), angle.sin().to(s.dtype)


def rotate(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


ROWS += [
    Row("norms", "layer_norm", ops.layer_norm, F.layer_norm, norm),
    Row("norms", "rms_norm", ops.rms_norm, F.rms_norm, lambda s: norm(s)[:3]),
    Row("norms", "add_rms_norm", lambda x, r, n, w: ops.add_rms_norm(x, r, n, w),
        sum_and_norm, lambda s: (s.array(), *norm(s)[:3])),
    Row("norms", "group_norm", lambda x, w, b: ops.group_norm(x, 8, w, b),
        lambda x, w, b: F.group_norm(x, 8, w, b), images),
    Row("norms", "instance_norm", lambda x, w, b: ops.instance_norm(x, weight=w, bias=b),
        lambda x, w, b: F.instance_norm(x, weight=w, bias=b), images),
    Row("norms", "batch_norm", lambda x, w, b: ops.batch_norm(x, None, None, w, b, True),
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True), images),
    *[
        Row("reductions", f"{name} {dim}", lambda x, name=name, dim=dim: getattr(ops, name)(x, dim),
            lambda x, name=name, dim=dim: getattr(torch, name)(x, dim), one, name[:3] != "arg")
        for name in ("sum", "amax", "var", "logsumexp", "argmax") for dim in (1, 0)
    ],
    *[
        Row("scans", f"{name} {dim}", lambda x, name=name, dim=dim: getattr(ops, name)(x, dim),
            lambda x, name=name, dim=dim: getattr(torch, name)(x, dim), one)
        for name in ("cumsum", "cummax", "logcumsumexp") for dim in (1, 0)
    ],
    Row("sorting", "sort", ops.sort, torch.sort, one),
    Row("sorting", "topk", lambda x: ops.topk(x, 8), lambda x: torch.topk(x, 8), one),
    Row("indices", "embedding", lambda i, w: ops.embedding(i, w), lambda i, w: F.embedding(i, w),
        lambda s: (s.indices(s.rows, s.rows), s.array())),
    Row("indices", "gather", lambda x, i: ops.gather(x, 1, i), lambda x, i: torch.gather(x, 1, i),
        lambda s: (s.array(), s.indices(s.columns, s.rows, s.columns))),
    Row("indices", "index_add", lambda x, i, y: ops.index_add(x, 0, i, y),
        lambda x, i, y: torch.index_add(x, 0, i, y), lambda s: (s.array(), s.indices(s.rows, s.rows), s.array())),
    Row("reductions", "vector_norm", ops.vector_norm, torch.linalg.vector_norm, one),
    Row("rotary", "rotary halves", lambda x, c, s: ops.apply_rotary_emb(x, c.detach(), s.detach()),
        lambda x, c, s: rotate(x, c.detach(), s.detach()), heads),
]  # fmt: skip


def linear(s: Shape) -> tuple[Any, ...]:
    """Lines, a matrix and targets of eight times as many classes as there are features."""
    return (
        s.array() / s.columns**0.5,
        s.array(8 * s.columns, s.columns),
        s.indices(8 * s.columns, s.rows),
    )


def sparse(s: Shape) -> tuple[Any, ...]:
    """A square matrix with 32 elements in each row, and lines of 64 for its columns."""
    crow = torch.arange(0, 32 * s.rows + 1, 32, device=s.device)
    part = s.rows // 32
    col = torch.arange(0, 32 * part, part, device=s.device) + s.indices(part, s.rows, 32)
    return crow, col.reshape(-1), s.array(32 * s.rows), s.array(s.rows, 64)


def csr(crow: Any, col: Any, values: Any, x: Any) -> Any:
    return torch.sparse_csr_tensor(crow, col, values, (len(crow) - 1, x.shape[0]))


def steps(make: Callable[..., Any]) -> Callable[..., Any]:
    """Steps of an optimiser that begins with the arrays of the row."""
    made: dict[int, Any] = {}

    def step(param: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
        if param.data_ptr() not in made:
            own = param.clone().requires_grad_()
            own.grad = grad
            made.clear()
            made[param.data_ptr()] = make([own], lr=1e-3)
        made[param.data_ptr()].step()
        return param

    return step


def tokens(s: Shape) -> tuple[Any, ...]:
    """Logits of few rows and a whole vocabulary."""
    return (s.array(max(1, s.rows // 64), 64 * s.columns),)


def nucleus(x: Any, p: float) -> Any:
    """Top-p by a sort."""
    values, order = x.sort(-1, descending=True)
    shares = values.softmax(-1)
    values = values.masked_fill(shares.cumsum(-1) - shares >= p, float("-inf"))
    return values.scatter(-1, order, values)


ROWS += [
    *[
        Row("padding", f"pad {mode}", lambda x, mode=mode: ops.pad(x[None], (3, 2, 1, 4), mode),
            lambda x, mode=mode: F.pad(x[None], (3, 2, 1, 4), mode), one)
        for mode in ("constant", "reflect", "replicate", "circular")
    ],
    Row("padding", "roll", lambda x: ops.roll(x, (3, 5), (0, 1)), lambda x: torch.roll(x, (3, 5), (0, 1)), one),
    Row("padding", "cat 1", lambda x, y: ops.cat([x, y], 1), lambda x, y: torch.cat([x, y], 1), two),
    Row("padding", "cat 0", lambda x, y: ops.cat([x, y]), lambda x, y: torch.cat([x, y]), two),
    Row("padding", "transpose_copy", lambda x: ops.transpose_copy(x, 0, 1), lambda x: torch.transpose_copy(x, 0, 1), one),
    Row("losses", "linear_cross_entropy", ops.linear_cross_entropy,
        lambda x, w, t: F.cross_entropy(F.linear(x, w), t), linear),
    Row("sparse", "spmm", ops.spmm, lambda crow, col, v, x: csr(crow, col, v, x) @ x, sparse),
    Row("sparse", "sddmm", lambda crow, col, v, x: ops.sddmm(crow, col, x, x.T),
        lambda crow, col, v, x: torch.sparse.sampled_addmm(csr(crow, col, v, x), x, x.T, beta=0.0), sparse, False),
    *[
        Row("optimisers", ours, steps(getattr(nn, ours)), steps(getattr(torch.optim, theirs)), two, False)
        for ours, theirs in (("SGD", "SGD"), ("AdamW", "AdamW"), ("Adafactor", "Adafactor"), ("AdamW8bit", "AdamW"),
                             ("Lion8bit", "AdamW"))
    ],
    Row("counts", "bincount", ops.bincount, torch.bincount, lambda s: (s.indices(s.columns, s.rows * s.columns),), False),
    Row("counts", "histc", lambda x: ops.histc(x, 64, -3, 3), lambda x: torch.histc(x, 64, -3, 3), one, False),
    Row("counts", "searchsorted", ops.searchsorted, torch.searchsorted,
        lambda s: (s.array(s.columns).sort()[0], s.array()), False),
    Row("counts", "unique_consecutive", ops.unique_consecutive, torch.unique_consecutive,
        lambda s: (s.indices(s.columns, s.rows * s.columns).sort()[0],), False),
    Row("dropouts", "alpha_dropout", lambda x: ops.alpha_dropout(x, 0.5, True), lambda x: F.alpha_dropout(x, 0.5, True), one),
    Row("dropouts", "dropout1d", lambda x: ops.dropout1d(x[None]), lambda x: F.dropout1d(x[None]), one),
    Row("sampling", "multinomial", lambda x: ops.multinomial(x, 64, True), lambda x: torch.multinomial(x, 64, True),
        lambda s: (s.array().abs(),), False),
    Row("sampling", "sample", lambda x: ops.sample(x), lambda x: torch.multinomial(x.softmax(-1), 1), tokens, False),
    Row("sampling", "top-k", lambda x: ops.filter_logits(x, top_k=50),
        lambda x: x.masked_fill(x < x.topk(50)[0][..., -1:], float("-inf")), tokens, False),
    Row("sampling", "top-p", lambda x: ops.filter_logits(x, top_p=0.9), lambda x: nucleus(x, 0.9), tokens, False),
]  # fmt: skip


def first(value: Any) -> torch.Tensor:
    return value[0] if isinstance(value, tuple) else value


SLOW, SLOW_ROUNDS = 20, 3
"""So many times as long as the fastest takes a call that is measured after the others, in few rounds. torch.compile's
steps of optimisers take 0.25 s of the host, in which a GPU lowers its clock for whatever comes next."""


def in_turns(work: list[Callable[[], Any]], device: str, rounds: int) -> list[float]:
    """The median microseconds of each."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    is_alone = device == "cpu" and torch.get_num_threads() == 1
    clock = time.thread_time if is_alone else time.perf_counter
    # Short work is repeated, since clocks are not that fine.
    counts, lengths = [], []
    for call in work:
        call()
        wait()
        start = time.perf_counter()
        call()
        wait()
        lengths.append(time.perf_counter() - start)
        counts.append(max(1, min(100, int(1e-3 / max(1e-7, lengths[-1])))))
    times: list[list[float]] = [[] for _ in work]
    slow = [at for at in range(len(work)) if lengths[at] > SLOW * min(lengths)]
    others = [at for at in range(len(work)) if at not in slow]
    for places, turns in ((others, rounds), (slow, SLOW_ROUNDS)):
        for turn in range(turns + 2):
            for at in places:
                wait()
                start = clock()
                for _ in range(counts[at]):
                    work[at]()
                wait()
                if turn > 1:  # the first rounds compile
                    times[at].append((clock() - start) / counts[at] * 1e6)
    return [statistics.median(found) for found in times]


def enqueued(call: Callable[[], Any], count: int, cycles: int) -> tuple[float, bool]:
    """The GPU's microseconds for a call behind a spin of `cycles`, and whether the host was ahead of it."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    torch.cuda._sleep(cycles)
    start.record()
    for _ in range(count):
        call()
    is_ahead = not start.query()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / count * 1e3, is_ahead


def on_gpu(work: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The median microseconds of the GPU for each; NaN where the host cannot be ahead."""
    plans: list[tuple[int, int] | None] = []
    for call in work:
        time_of_one = enqueued(call, 1, 1000)[0]
        count = max(1, min(10, int(2000 / max(time_of_one, 1.0))))
        # From 2 to 64 ms. At last a single call, since a queue of launches has an end.
        tries = [(count, 1 << shift) for shift in range(22, 28)] + [(1, 1 << 27)]
        plans.append(next((plan for plan in tries if enqueued(call, *plan)[1]), None))
    times: list[list[float]] = [[] for _ in work]
    for _ in range(rounds):
        for call, plan, found in zip(work, plans, times):
            took, is_ahead = enqueued(call, *plan) if plan else (math.nan, False)
            if is_ahead:
                found.append(took)
    return [statistics.median(found) if found else math.nan for found in times]


COMPETITORS = ("tessera", "torch", "compiled")
NOTHING = 1.0
"""Microseconds of the GPU for calls that launch nothing, as those whose results are views."""


def functions_of(row: Row, is_compiled: bool) -> list[Callable[..., Any]]:
    """Ours, torch's, and torch's under torch.compile."""
    compiled = [torch.compile(row.theirs, dynamic=False)] if is_compiled else []
    return [row.ours, row.theirs, *compiled]


def passes(
    row: Row, functions: list[Callable[..., Any]], shape: Shape
) -> Iterator[tuple[str, Any]]:
    """The calls of a row: forward, and backward if it has one."""
    args = row.make(shape)
    with torch.no_grad():
        yield "forward", [functools.partial(function, *args) for function in functions]
    if not row.has_backward:
        return
    leaves = [
        each.detach().requires_grad_() if torch.is_tensor(each) and each.is_floating_point()
        else each for each in args
    ]  # fmt: skip
    wanted = [each for each in leaves if torch.is_tensor(each) and each.requires_grad]
    # A call like others before it: the first ones are those of Python, and so are their gradients.
    results = [[first(function(*leaves)) for _ in range(3)][-1] for function in functions]
    weights = torch.randn_like(results[1])

    def backward(result: torch.Tensor) -> Callable[[], Any]:
        return lambda: torch.autograd.grad(
            result, wanted, weights, retain_graph=True, allow_unused=True
        )

    yield "backward", list(map(backward, results))


def measure(
    row: Row, functions: list[Callable[..., Any]], shape: Shape, rounds: int
) -> list[dict[str, Any]]:
    """The figures of a row: forward, and backward if it has one."""
    found = []
    for direction, work in passes(row, functions, shape):
        found.append(
            {"family": row.family, "name": row.name, "pass": direction, "rows": shape.rows,
             "columns": shape.columns, "dtype": str(shape.dtype)[6:],
             **dict(zip(COMPETITORS, in_turns(work, shape.device, rounds)))}
        )  # fmt: skip
        if shape.device != "cuda":
            continue
        times = dict(zip(COMPETITORS, on_gpu(work, rounds)))
        if all(each < NOTHING for each in times.values()):
            continue
        waits = [name for name, each in times.items() if math.isnan(each)]
        found[-1]["gpu"] = {name: each for name, each in times.items() if name not in waits}
        if waits:
            found[-1]["waits"] = waits
    return found


def ratio(found: dict[str, Any]) -> float:
    """The time of the faster of torch's by ours: the GPU's where all have it, or a call's."""
    times = found if found.get("waits") else found.get("gpu", found)
    return min(times["torch"], times.get("compiled", math.inf)) / times["tessera"]


def lines_of(found: dict[str, Any]) -> Iterator[str]:
    """What the benchmark prints of a figure."""
    title = f"{found['family']:14} {found['name']:24} {found['pass']:8} {found['columns']}"
    for what, times in (("", found), ("of the GPU", found.get("gpu", {}))):
        cells = [f"{name} {times[name]:10.1f} us" for name in COMPETITORS if name in times]
        if cells:
            yield f"{title:60} {'  '.join(cells)}  {what}"
    yield f"{title:60} {ratio(found):10.2f} of torch"


def selected(options: argparse.Namespace) -> list[tuple[int, Shape, bool]]:
    """The index of each row in ROWS, its shape, and whether torch.compile has it."""
    large = 4096 if options.device == "cuda" else 1024
    sizes = {"small": (64, 256), "large": (4096, large)}
    dtype = getattr(torch, options.dtype)
    families = options.compiled
    return [
        (at, Shape(*sizes[size], dtype, options.device),
         families is not None and (not families or row.family in families))
        for at, row in enumerate(ROWS)
        if not options.only or row.family in options.only
        if not options.rows or row.name in options.rows
        for size in options.sizes
    ]  # fmt: skip


def prepare(options: argparse.Namespace) -> None:
    """What each process sets before its first call."""
    torch.manual_seed(0)
    # Rows share lambdas, and each keeps what was compiled for it.
    torch._dynamo.config.recompile_limit = 1000
    # A gradient is computed many times, of the same saved arrays.
    torch._functorch.config.donated_buffer = False
    if options.threads:
        torch.set_num_threads(options.threads)
        tessera.settings.num_threads = options.threads


def runnable(
    row: Row, functions: list[Callable[..., Any]], shape: Shape
) -> list[Callable[..., Any]]:
    """The functions of a row after a call of each. torch.compile is left out if it cannot compile it."""
    try:
        for _, work in passes(row, functions, shape):
            for call in work:
                call()
    except Exception as error:
        if len(functions) < 3:
            raise
        print(f"{row.name}: torch.compile raised {type(error).__name__}", flush=True)
        return runnable(row, functions[:2], shape)
    return functions


def work_in_turn(
    options: argparse.Namespace, number: int, compiled: Any, turn: Any, results: Any
) -> None:
    """A process: compiles its rows, waits until all have done so, and measures when it is its turn."""
    prepare(options)
    mine = []
    for at, shape, is_compiled in selected(options)[number :: options.workers]:
        mine.append((at, runnable(ROWS[at], functions_of(ROWS[at], is_compiled), shape), shape))
    if options.device == "cuda":
        torch.cuda.empty_cache()
    compiled.wait()
    with turn:
        rows = [each for at, *rest in mine for each in measure(ROWS[at], *rest, options.rounds)]
        if options.device == "cuda":
            torch.cuda.empty_cache()
    results.put(rows)


def by_workers(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The figures of all rows, from processes that compile at the same time."""
    # Otherwise inductor has as many processes again in each.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    spawn = multiprocessing.get_context("spawn")
    compiled, turn, results = spawn.Barrier(options.workers), spawn.Lock(), spawn.Queue()
    workers = [
        spawn.Process(target=work_in_turn, args=(options, number, compiled, turn, results))
        for number in range(options.workers)
    ]
    for worker in workers:
        worker.start()
    for _ in workers:
        while True:
            try:
                yield from results.get(timeout=1)
                break
            except queue.Empty:
                if any(worker.exitcode for worker in workers):
                    for worker in workers:
                        worker.terminate()
                    raise RuntimeError("a worker ended with an error, which stands above") from None
    for worker in workers:
        worker.join()


def in_this_process(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The figures of all rows, each of which is compiled before it is measured."""
    prepare(options)
    for at, shape, is_compiled in selected(options):
        functions = runnable(ROWS[at], functions_of(ROWS[at], is_compiled), shape)
        yield from measure(ROWS[at], functions, shape, options.rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--only", nargs="*", help="families")
    parser.add_argument("--rows", nargs="*", help="names of rows")
    parser.add_argument("--sizes", nargs="*", default=("small", "large"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--compiled", nargs="*", help="families; all, if none is named")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--json")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    order = {row.name: at for at, row in enumerate(ROWS)}
    for found in by_workers(options) if options.workers else in_this_process(options):
        rows.append(found)
        print("\n".join(lines_of(found)), flush=True)
        if options.json:
            rows.sort(key=lambda each: order[each["name"]])  # workers end in any order
            write_torch_rows(options.json, options.device, rows)
    ratios = defaultdict(list)
    for found in rows:
        ratios[found["family"], found["columns"]].append(ratio(found))
    for (family, columns), each in ratios.items():
        print(
            f"{family:14} columns {columns:5}: {math.exp(statistics.fmean(map(math.log, each))):.2f}"
        )


if __name__ == "__main__":
    main()
