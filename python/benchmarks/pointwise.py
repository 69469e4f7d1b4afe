# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an operator of `tessera.pointwise` costs, beside torch's own and a kernel written by hand.

    python python/benchmarks/pointwise.py [--device cuda] [--only calls operators shapes] [--json FILE]

`calls`: of 1,000 elements, in microseconds of the host: an addition, a product with gradient, and an
operator of a function that allocates and launches once, beside that of torch.library.custom_op and
the function itself (the kernel by hand). The operator with a gradient is beside torch.mul with one, and
beside a torch.autograd.Function (by hand).
`operators`: the same of operators of `tessera.ops` that have kernels of their own, without and with
gradient.
`shapes`: an addition of 2**24 elements in eight shapes of broadcasting and strides, in float32 and
bfloat16. All that is compared runs in turns on the same random data, in batches; figures are medians.
The kernel by hand is the best of a few tile sizes. Needs torch.
"""

# mypy: ignore-errors

from __future__ import annotations

import argparse
import functools
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

import tessera
import tessera.language as tl
import tessera.torch
from tessera import ops

from report import write_torch_rows

ELEMENTS = 1 << 24
SIDE = 1 << 12


@tessera.pointwise
def add(x, y):
    return x + y


@tessera.pointwise
def mul(x, y):
    return x * y


@tessera.jit
def by_hand(x, y, out, rows, columns, x_row, x_column, y_row, y_column, o_row,
            ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # fmt: skip
    across = tl.cdiv(columns, COLUMNS)
    i = ((tl.program_id(0) // across) * ROWS + tl.arange(0, ROWS))[:, None]
    j = ((tl.program_id(0) % across) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    mask = (i < rows) & (j < columns)
    left = tl.load(x + i * x_row + j * x_column, mask=mask).to(tl.float32)
    right = tl.load(y + i * y_row + j * y_column, mask=mask).to(tl.float32)
    tl.store(out + i * o_row + j, left + right, mask=mask)


@tessera.jit
def scale_kernel(x, factor, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    out = torch.empty_like(x)
    scale_kernel[(tessera.cdiv(x.numel(), 1024),)](x, factor, out, x.numel(), BLOCK=1024)
    return out


@tessera.jit
def product_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) * tl.load(y + i, mask=mask), mask=mask)


def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    product_kernel[(tessera.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out


def save_factor(ctx, inputs, output):
    ctx.save_for_backward(inputs[1])


def product_backward(ctx, gradient):
    return product(gradient, ctx.saved_tensors[0]), None


class ProductByHand(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(y)
        return product(x, y)

    backward = staticmethod(product_backward)


TILES = ((1, 1024), (1, 4096), (4, 1024), (32, 32), (16, 256))


def shapes(dtype: torch.dtype, device: str) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Two arrays of SIDE times SIDE elements, one of them perhaps broadcast, by a name."""

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device=device).to(dtype)

    square = random(SIDE, SIDE)
    return {
        "both dense": (square, random(SIDE, SIDE)),
        "a row": (square, random(SIDE)),
        "a column": (square, random(SIDE, 1)),
        "a column and a row": (random(SIDE, 1), random(SIDE)),
        "one transposed": (square.t(), random(SIDE, SIDE)),
        "both transposed": (square.t(), random(SIDE, SIDE).t()),
        "rows with gaps": (random(SIDE, SIDE + 64)[:, :SIDE], random(SIDE, SIDE)),
        "every other element": (random(SIDE, 2 * SIDE)[:, ::2], random(SIDE, SIDE)),
    }


def hand_written(x: torch.Tensor, y: torch.Tensor) -> Callable[[], Any]:
    """The fastest launch of the kernel by hand, on arrays whose rows are the longer runs."""
    expected = x + y
    if expected.stride(1) != 1:
        x, y = x.t(), y.expand_as(expected).t()
    shape = (SIDE, SIDE)
    x, y, out = x.expand(shape), y.expand(shape), torch.empty(shape, dtype=x.dtype, device=x.device)
    arguments = (x, y, out, *shape, *x.stride(), *y.stride(), SIDE)

    def launch(tile: tuple[int, int]) -> Any:
        grid = (tessera.cdiv(SIDE, tile[0]) * tessera.cdiv(SIDE, tile[1]),)
        return lambda: by_hand[grid](*arguments, ROWS=tile[0], COLUMNS=tile[1])

    candidates = {tile: launch(tile) for tile in TILES}
    times = in_turns(candidates, x.device.type, 3)
    return candidates[min(times, key=times.__getitem__)]


def in_turns(
    work: dict[Any, Callable[[], Any]], device: str, rounds: int, repeat: int = 1
) -> dict[Any, float]:
    """The median microseconds of a call of each, `repeat` of them at a time. Where one thread of a CPU
    does them, as it does small calls, other work of the machine does not count. Caches hold the end
    of the arrays of the call before, so each round has an order of its own."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    has_one_thread = device == "cpu" and (repeat > 1 or torch.get_num_threads() == 1)
    clock = time.process_time if has_one_thread else time.perf_counter
    times: dict[Any, list[float]] = {name: [] for name in work}
    order = random.Random(0)
    for at in range(rounds + 1):
        for name in order.sample(list(work), len(work)):
            call = work[name]
            wait()
            start = clock()
            for _ in range(repeat):
                call()
            wait()
            if at:  # the first round compiles
                times[name].append((clock() - start) / repeat * 1e6)
    return {name: statistics.median(found) for name, found in times.items()}


def measure_calls(device: str) -> list[dict[str, Any]]:
    x, y = torch.randn(1000, device=device), torch.randn(1000, device=device)
    leaf, weights = x.clone().requires_grad_(), torch.randn(1000, device=device)
    out = torch.empty_like(x)

    def with_gradient(product: Any) -> Callable[[], Any]:
        def call() -> None:
            product(leaf, y).backward(weights)
            leaf.grad = None

        return call

    rows = []
    for name, ours, theirs in (
        ("add", lambda: add(x, y), lambda: torch.add(x, y)),
        ("add to out", lambda: add(x, y, out=out), lambda: torch.add(x, y, out=out)),
        ("mul with gradient", with_gradient(mul), with_gradient(torch.mul)),
    ):
        # Short batches, most of which the scheduler does not interrupt.
        found = in_turns({"tessera": ours, "torch": theirs}, device, 100, 20)
        rows.append({"part": "calls", "name": name, **found})
    ours = tessera.torch.op("tessera_benchmark::scale")(scale)
    theirs = torch.library.custom_op("torch_benchmark::scale", mutates_args=())(scale)
    work = {"tessera": ours, "torch": theirs, "by hand": scale}
    calls = {name: functools.partial(call, x, 2.0) for name, call in work.items()}
    rows.append({"part": "calls", "name": "operator", **in_turns(calls, device, 60, 100)})
    ours = tessera.torch.op(
        "tessera_benchmark::product", backward=product_backward, setup_context=save_factor
    )(product)
    work = {"tessera": ours, "torch": torch.mul, "by hand": ProductByHand.apply}
    calls = {name: with_gradient(call) for name, call in work.items()}
    name = "operator with gradient"
    rows.append({"part": "calls", "name": name, **in_turns(calls, device, 100, 20)})
    return rows


def measure_operators(device: str) -> list[dict[str, Any]]:
    """Operators of 10 lines of 100 elements."""
    from torch.nn import functional as F

    x, weight, bias = (torch.randn(*each, device=device) for each in ((10, 100), (100,), (100,)))
    classes = torch.randint(0, 100, (10,), device=device)
    rows = []
    for name, ours, theirs, args in (
        ("softmax", ops.softmax, torch.softmax, (x, -1)),
        ("layer_norm", ops.layer_norm, F.layer_norm, (x, (100,), weight, bias)),
        ("rms_norm", ops.rms_norm, F.rms_norm, (x, (100,), weight)),
        ("sum", ops.sum, torch.sum, (x,)),
        ("mean of lines", ops.mean, torch.mean, (x, 1)),
        ("var", ops.var, torch.var, (x, 1)),
        ("logsumexp", ops.logsumexp, torch.logsumexp, (x, 1)),
        ("cumsum", ops.cumsum, torch.cumsum, (x, 1)),
        ("cross_entropy", ops.cross_entropy, F.cross_entropy, (x, classes)),
        ("mse_loss", ops.mse_loss, F.mse_loss, (x, x.flip(0))),
    ):
        torch.testing.assert_close(ours(*args), theirs(*args), rtol=1e-4, atol=1e-4)
        work = {"tessera": ours, "torch": theirs}
        calls = {each: functools.partial(call, *args) for each, call in work.items()}
        rows.append({"part": "operators", "name": name, **in_turns(calls, device, 60, 100)})
        leaf, weights = x.clone().requires_grad_(), torch.randn_like(theirs(*args))

        def call_back(call: Any) -> None:
            call(leaf, *args[1:]).backward(weights)
            leaf.grad = None

        calls = {each: functools.partial(call_back, call) for each, call in work.items()}
        title = f"{name} with gradient"
        rows.append({"part": "operators", "name": title, **in_turns(calls, device, 100, 20)})
    return rows


def measure_shapes(device: str, rounds: int) -> list[dict[str, Any]]:
    rows = []
    for dtype in (torch.float32, torch.bfloat16):
        for name, (x, y) in shapes(dtype, device).items():
            torch.testing.assert_close(add(x, y), x + y)
            out = torch.empty_like(x + y)
            work = {
                "tessera": lambda: add(x, y, out=out),
                "torch": lambda: torch.add(x, y, out=out),
                "by hand": hand_written(x, y),
            }
            found = in_turns(work, device, rounds, 5 if device == "cuda" else 1)
            rows.append({"part": "shapes", "name": name, "dtype": str(dtype)[6:], **found})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--only", nargs="*", default=("calls", "operators", "shapes"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.manual_seed(0)
    rows = measure_calls(options.device) if "calls" in options.only else []
    rows += measure_operators(options.device) if "operators" in options.only else []
    rows += measure_shapes(options.device, options.rounds) if "shapes" in options.only else []
    for row in rows:
        against = f"  {row['torch'] / row['tessera']:5.2f} of torch"
        if "by hand" in row:
            against += f"  {row['by hand'] / row['tessera']:5.2f} of the kernel by hand"
        title = f"{row['name']} {row.get('dtype', '')}"
        print(f"{title:32} {row['tessera']:10.2f} us  torch {row['torch']:10.2f} us{against}")
    if options.json:
        write_torch_rows(options.json, options.device, rows)


if __name__ == "__main__":
    main()
