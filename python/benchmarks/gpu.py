# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels on an NVIDIA GPU: the same source under Tessera and under the Triton installed.

Usage: gpu.py [--only TEXT] [--json FILE] [--rounds N] [--no-bandwidth] [--no-compile] [--no-launch]

Each row's work is captured in a CUDA graph of twenty launches or more, which go round buffers
of three times the L2 cache at least. The graphs of all competitors are replayed in turns,
forwards and backwards (ABBA), and the median of each is kept, with its spread. Inputs are
random, outputs poisoned before they are checked against float64. A copy is measured in the
same way before and after all else, and bandwidths are given as a part of it.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import torch

sys.path[:0] = [
    str(pathlib.Path(__file__).parent),
    str(pathlib.Path(__file__).parents[1] / "examples"),
]

import tessera  # noqa: E402
import tessera.language  # noqa: E402

try:
    import triton
    import triton.language
except ImportError:
    triton = None

KERNELS = pathlib.Path(__file__).with_name("gpu_kernels.py")
L2_BYTES = 60 << 20
SHAPES = [(32768, 1024), (16384, 4096), (8192, 16384), (4096, 32768)]
DTYPES = {
    "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "int8": torch.int8, "int32": torch.int32,
}  # fmt: skip


def load_kernels(compiler: Any, file: pathlib.Path = KERNELS) -> dict[str, Any]:
    """The kernels of a file for every compiler, decorated by one; new ones at each call."""
    names = {"jit": compiler.jit, "tl": compiler.language, "__name__": file.stem}
    exec(compile(file.read_text(), str(file), "exec"), names)
    return names


def compilers() -> dict[str, Any]:
    """Tessera and what it is compared with, by name."""
    return {"tessera": tessera, **({"triton": triton} if triton is not None else {})}


Launch = Callable[[Any], Any]
"""Does the work on a set of buffers; a kernel's launch gives the compiled kernel."""


@dataclass
class Row:
    """One piece of work."""

    work: str
    make: Callable[[], Any]
    """Makes one set of buffers: inputs filled, outputs poisoned."""
    competitors: Mapping[str, Union[Launch, list[Launch]]]
    """Name -> the work on a set of buffers, in variants of which the fastest counts."""
    check: Callable[[Any], None]
    """Raises if a set's outputs are wrong."""
    bytes: int
    """What has to be moved."""
    at_least: float = 1.0
    """Of the time of Triton, the ratio that is promised."""
    results: dict[str, Any] = field(default_factory=dict)


# --- Measuring ------------------------------------------------------------------------


def poison(*tensors: torch.Tensor) -> None:
    """NaN, or the byte 0x55 where there is none."""
    for tensor in tensors:
        if tensor.is_floating_point():
            tensor.fill_(float("nan"))
        else:
            tensor.view(torch.uint8).fill_(0x55)


def capture(launch: Launch, sets: list[Any], launches: int) -> torch.cuda.CUDAGraph:
    """A graph of launches on the sets in turn."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        launch(sets[0])  # compiles, and loads the kernel where it may
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for index in range(launches):
            launch(sets[index % len(sets)])
    return graph


def replay(graph: torch.cuda.CUDAGraph) -> float:
    """Milliseconds that a graph takes."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def fastest(
    variants: list[Launch], sets: list[Any], launches: int
) -> tuple[torch.cuda.CUDAGraph, Launch]:
    """The variant that takes the least time, and its graph."""
    graphs = [capture(launch, sets, launches) for launch in variants]
    if len(graphs) == 1:
        return graphs[0], variants[0]
    times = [min(replay(graph) for _ in range(4)) for graph in graphs]
    best = times.index(min(times))
    return graphs[best], variants[best]


def describe_variant(launch: Launch, buffers: Any) -> dict[str, Any]:
    """What there is to know of a variant: its configuration, and what its kernel takes."""
    facts: dict[str, Any] = {}
    if hasattr(launch, "config"):
        facts["config"] = launch.config
    compiled = launch(buffers)
    for name in ("n_regs", "n_spills"):
        if getattr(compiled, name, None) is not None:
            facts[name] = getattr(compiled, name)
    return facts


def measure(row: Row, rounds: int) -> None:
    """Fills in `row.results`: name -> milliseconds, spread, error."""
    first = row.make()
    tensors = [value for value in first.values() if isinstance(value, torch.Tensor)]
    size = sum(tensor.nbytes for tensor in tensors)
    count = max(2, min(-(-3 * L2_BYTES // size), 64))
    launches = -(-20 // count) * count
    right: dict[str, list[Launch]] = {}
    for name, variants in row.competitors.items():
        for launch in variants if isinstance(variants, list) else [variants]:
            try:
                fresh = row.make()
                launch(fresh)
                torch.cuda.synchronize()
                row.check(fresh)
                del fresh
                right.setdefault(name, []).append(launch)
            except Exception as error:  # one competitor that fails is a result, too
                lines = f"{type(error).__name__}: {error}".strip().splitlines()
                text = " ".join(lines)[:300]
                result = row.results.setdefault(name, {"error": text, "failed": []})
                result["failed"].append([getattr(launch, "config", None), text])
                traceback.print_exc()
    sets = [first] + [row.make() for _ in range(count - 1)]
    captured, facts = {}, {}
    for name, variants in right.items():
        captured[name], best = fastest(variants, sets, launches)
        facts[name] = describe_variant(best, first)
    times: dict[str, list[float]] = {name: [] for name in captured}
    names = list(captured)
    for name in names:
        replay(captured[name])
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            times[name].append(replay(captured[name]) / launches)
    for name, values in times.items():
        middle = statistics.median(values)
        spread = (max(values) - min(values)) / middle
        speed = {"ms": middle, "spread": spread, "GB/s": row.bytes / middle / 1e6}
        failed = row.results.get(name, {}).get("failed", [])
        row.results[name] = {**speed, **facts[name], **({"failed": failed} if failed else {})}
    del captured, sets, first
    torch.cuda.empty_cache()


def copy_row() -> Row:
    """What the memory can do. In a graph, copy_ goes to an engine that is slower than a kernel,
    so that the fastest of it and of kernels that read and write as much is what counts."""
    size = 1 << 28

    def make() -> Any:
        x = torch.randn(size, device="cuda")
        return {"x": x, "out": torch.empty_like(x)}

    variants: list[Launch] = [
        lambda s: s["out"].copy_(s["x"]),
        lambda s: torch.neg(s["x"], out=s["out"]),
        lambda s: torch.abs(s["x"].view(torch.int32), out=s["out"].view(torch.int32)),
    ]
    return Row("copy 2^30 bytes", make, {"torch": variants}, lambda s: None, 8 * size)


# --- The rows ---------------------------------------------------------------------------


def random(shape: Any, dtype: torch.dtype) -> torch.Tensor:
    if dtype in (torch.int8, torch.int32):
        size = (shape,) if isinstance(shape, int) else shape
        return torch.randint(-60, 60, size, dtype=dtype, device="cuda")
    return torch.randn(shape, dtype=dtype, device="cuda")


def close(got: torch.Tensor, want: torch.Tensor, tolerance: float) -> None:
    """Compares in float64, a piece at a time: the largest would not fit several times over."""
    got, want = got.reshape(-1), want.reshape(-1)
    for low in range(0, got.numel(), 1 << 26):
        torch.testing.assert_close(
            got[low : low + (1 << 26)].double(), want[low : low + (1 << 26)].double(),
            rtol=tolerance, atol=tolerance,
        )  # fmt: skip


def sampled(rows: int) -> torch.Tensor:
    """Some rows to check: the first, the last, and others between."""
    return torch.unique(torch.linspace(0, rows - 1, 257, device="cuda").long())


def each(
    kernels: dict[str, dict[str, Any]],
    use: Callable[[Any, Any, int], Any],
    warps: Sequence[int] = (4, 8),
    more: Sequence[dict[str, Any]] = ({},),
) -> dict[str, list[Launch]]:
    """`use(kernels of a compiler, set, warps, **more)` for every compiler: all get the same choice,
    each number of warps with each of the other arguments."""

    def configure(own: Any, count: int, others: dict[str, Any]) -> Launch:
        def launch(s: Any) -> Any:
            return use(own, s, count, **others)

        setattr(launch, "config", {"num_warps": count, **others})
        return launch

    return {
        name: [configure(own, count, others) for others in more for count in warps]
        for name, own in kernels.items()
    }


ROW_WARPS = {1024: (2, 4, 8), 4096: (4, 8, 16), 16384: (4, 8, 16, 32), 32768: (8, 16, 32)}


def row_config(columns: int) -> dict[str, int]:
    """A block that holds a row, and warps that are about right for it."""
    return {"BLOCK": columns, "num_warps": {1024: 4, 4096: 8, 16384: 16, 32768: 32}[columns]}


def add_rows(kernels: Any) -> Iterator[Row]:
    n = 1 << 28
    for name, block in (("f32", 1024), ("f16", 2048), ("int8", 4096)):
        dtype = DTYPES[name]

        def make(dtype: torch.dtype = dtype) -> Any:
            s = {"x": random(n, dtype), "y": random(n, dtype), "out": torch.empty(n, dtype=dtype, device="cuda")}  # fmt: skip
            poison(s["out"])
            return s

        def use(own: Any, s: Any, warps: int, block: int = block) -> None:
            own["add"][(n // block,)](s["x"], s["y"], s["out"], n, BLOCK=block, num_warps=warps)

        yield Row(
            f"add {name} 2^28", make,
            {**each(kernels, use), "torch": lambda s: torch.add(s["x"], s["y"], out=s["out"])},
            lambda s: close(s["out"], s["x"] + s["y"], 0), 3 * n * dtype.itemsize,
        )  # fmt: skip


def softmax_rows(kernels: Any) -> Iterator[Row]:
    for m, n in SHAPES:

        def make(m: int = m, n: int = n) -> Any:
            s = {"x": random((m, n), torch.bfloat16)}
            s["out"] = torch.empty_like(s["x"])
            poison(s["out"])
            return s

        def use(own: Any, s: Any, warps: int, m: int = m, n: int = n) -> Any:
            return own["softmax"][(m,)](s["x"], s["out"], n, BLOCK=n, num_warps=warps)

        def check(s: Any, m: int = m) -> None:
            some = sampled(m)
            close(s["out"][some], torch.softmax(s["x"][some].double(), -1), 1e-2)
            assert bool(torch.isfinite(s["out"]).all())

        yield Row(
            f"softmax bf16 {m}x{n}", make,
            {**each(kernels, use, ROW_WARPS[n]), "torch": lambda s: torch.softmax(s["x"], -1, out=s["out"])},
            check, 4 * m * n,
        )  # fmt: skip


def rms_norm_rows(kernels: Any) -> Iterator[Row]:
    for m, n in SHAPES:

        def make(m: int = m, n: int = n) -> Any:
            s = {"x": random((m, n), torch.bfloat16), "w": random(n, torch.bfloat16)}
            s["out"] = torch.empty_like(s["x"])
            poison(s["out"])
            return s

        def use(own: Any, s: Any, warps: int, m: int = m, n: int = n) -> Any:
            return own["rms_norm"][(m,)](
                s["x"], s["w"], s["out"], n, 1e-6, BLOCK=n, num_warps=warps
            )

        def check(s: Any, m: int = m, n: int = n) -> None:
            some = sampled(m)
            x = s["x"][some].double()
            want = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * s["w"].double()
            close(s["out"][some], want, 2e-2)
            assert bool(torch.isfinite(s["out"]).all())

        yield Row(
            f"rms norm bf16 {m}x{n}", make, each(kernels, use, ROW_WARPS[n]), check, 4 * m * n
        )


def layer_norm_rows(kernels: Any) -> Iterator[Row]:
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    # Each adds up the gradients of its rows' weights.
    programs_of_backward = (2 * sms, sms, sms // 2)
    for dtype_name in ("bf16", "f32"):
        dtype = DTYPES[dtype_name]
        for m, n in SHAPES:

            def make(m: int = m, n: int = n, dtype: torch.dtype = dtype) -> Any:
                s = {
                    "x": random((m, n), dtype), "w": random(n, dtype), "b": random(n, dtype),
                    "mean": torch.empty(m, device="cuda"), "rstd": torch.empty(m, device="cuda"),
                }  # fmt: skip
                s["out"] = torch.empty_like(s["x"])
                poison(s["out"], s["mean"], s["rstd"])
                return s

            def use(own: Any, s: Any, warps: int, m: int = m, n: int = n) -> Any:
                return own["layer_norm"][(m,)](
                    s["x"], s["w"], s["b"], s["out"], s["mean"], s["rstd"], n, 1e-5,
                    BLOCK=n, num_warps=warps,
                )  # fmt: skip

            def check(s: Any, m: int = m, n: int = n) -> None:
                some = sampled(m)
                x = s["x"][some].double()
                want = torch.nn.functional.layer_norm(x, (n,), s["w"].double(), s["b"].double())
                close(s["out"][some], want, 4e-2 if s["x"].dtype == torch.bfloat16 else 1e-4)
                close(s["mean"][some], x.mean(-1), 1e-3)

            size = dtype.itemsize
            yield Row(
                f"layer norm {dtype_name} {m}x{n}",
                make,
                each(kernels, use, ROW_WARPS[n]),
                check,
                2 * size * m * n,
            )

            def make_backward(m: int = m, n: int = n, dtype: torch.dtype = dtype) -> Any:
                x = random((m, n), dtype)
                wide = x.float()
                s = {
                    "x": x, "w": random(n, dtype), "grad": random((m, n), dtype),
                    "mean": wide.mean(-1), "rstd": torch.rsqrt(wide.var(-1, correction=0) + 1e-5),
                    "grad_x": torch.empty_like(x),
                    "partial_w": torch.empty(2 * sms, n, device="cuda"),
                    "partial_b": torch.empty(2 * sms, n, device="cuda"),
                    "grad_w": torch.empty(n, device="cuda"), "grad_b": torch.empty(n, device="cuda"),
                }  # fmt: skip
                del wide
                poison(*(s[k] for k in ("grad_x", "partial_w", "partial_b", "grad_w", "grad_b")))
                return s

            def backward(
                own: Any, s: Any, warps: int, programs: int, m: int = m, n: int = n
            ) -> Any:
                compiled = own["layer_norm_backward"][(programs,)](
                    s["x"], s["w"], s["grad"], s["mean"], s["rstd"], s["grad_x"],
                    s["partial_w"], s["partial_b"], m, n, BLOCK=n, num_warps=warps,
                )  # fmt: skip
                for name in "wb":
                    own["sum_columns"][(-(-n // 32),)](
                        s["partial_" + name], s["grad_" + name], programs, n, ROWS=32, BLOCK=32,
                        num_warps=4,
                    )  # fmt: skip
                return compiled

            def check_backward(s: Any, m: int = m, n: int = n) -> None:
                some = sampled(m)
                x, grad = s["x"][some].double().requires_grad_(), s["grad"][some].double()
                torch.nn.functional.layer_norm(x, (n,), s["w"].double()).backward(grad)
                coarse = s["x"].dtype == torch.bfloat16
                close(s["grad_x"][some], x.grad, 6e-2 if coarse else 1e-4)
                normal = (s["x"].float() - s["mean"][:, None]) * s["rstd"][:, None]
                want = torch.einsum("ij,ij->j", s["grad"].float(), normal)
                close(s["grad_w"], want, 5e-2)
                close(s["grad_b"], s["grad"].double().sum(0), 5e-2)

            yield Row(
                f"layer norm backward {dtype_name} {m}x{n}", make_backward,
                each(
                    kernels, backward, ROW_WARPS[n],
                    [{"programs": count} for count in programs_of_backward],
                ),
                check_backward, 3 * size * m * n,
            )  # fmt: skip


def transpose_rows(kernels: Any) -> Iterator[Row]:
    n = 8192
    for name in ("f32", "f16"):
        dtype = DTYPES[name]

        def make(dtype: torch.dtype = dtype) -> Any:
            s = {"x": random((n, n), dtype)}
            s["out"] = torch.empty_like(s["x"])
            poison(s["out"])
            return s

        def use(own: Any, s: Any, warps: int) -> None:
            own["transpose"][(n // 64, n // 64)](
                s["x"], s["out"], n, n, BLOCK_M=64, BLOCK_N=64, num_warps=warps
            )

        yield Row(
            f"transpose {name} 8192x8192", make,
            {**each(kernels, use), "torch": lambda s: s["out"].copy_(s["x"].T)},
            lambda s: close(s["out"], s["x"].T.contiguous(), 0), 2 * n * n * dtype.itemsize,
        )  # fmt: skip


def reduction_rows(kernels: Any) -> Iterator[Row]:
    m, n = 65536, 4096
    for name in ("f32", "f16", "int32"):
        dtype = DTYPES[name]
        wide = torch.int32 if name == "int32" else torch.float32

        def make(axis: int, dtype: torch.dtype = dtype, wide: torch.dtype = wide) -> Any:
            s = {"x": random((m, n), dtype)}
            s["out"] = torch.empty((m, n)[axis], dtype=wide, device="cuda")
            poison(s["out"])
            return s

        def along_rows(own: Any, s: Any, warps: int) -> None:
            own["sum_rows"][(m,)](s["x"], s["out"], n, BLOCK=n, num_warps=warps)

        def along_columns(own: Any, s: Any, warps: int) -> None:
            # 8 columns of a row are a whole sector, and make a program for each SM.
            own["sum_columns"][(n // 16,)](
                s["x"], s["out"], m, n, ROWS=128, BLOCK=16, num_warps=warps
            )

        for axis, use, what in ((0, along_rows, "rows"), (1, along_columns, "columns")):
            yield Row(
                f"sum over {what} {name} {m}x{n}", lambda axis=axis, make=make: make(axis),
                {
                    **each(kernels, use, ROW_WARPS[n] if axis == 0 else (4, 8)),
                    "torch": lambda s, axis=axis, wide=wide: torch.sum(
                        s["x"], 1 - axis, dtype=wide, out=s["out"]
                    ),
                },
                lambda s, axis=axis: close(s["out"], s["x"].sum(1 - axis, dtype=torch.float64), 2e-2),
                m * n * dtype.itemsize,
            )  # fmt: skip


def scan_rows(kernels: Any) -> Iterator[Row]:
    m, n = 32768, 4096

    def make(dtype: torch.dtype, length: int) -> Any:
        s = {"x": random((m, n), torch.float32)}
        s["out"] = torch.empty((m, length) if length > 1 else m, dtype=dtype, device="cuda")
        poison(s["out"])
        return s

    def running(own: Any, s: Any, warps: int) -> None:
        own["cumsum"][(m,)](s["x"], s["out"], n, BLOCK=n, num_warps=warps)

    def largest(own: Any, s: Any, warps: int) -> None:
        own["argmax"][(m,)](s["x"], s["out"], n, BLOCK=n, num_warps=warps)

    def top(own: Any, s: Any, warps: int) -> None:
        own["topk"][(m,)](s["x"], s["out"], n, K=8, BLOCK=n, num_warps=warps)

    def make_argmax() -> Any:
        s = make(torch.int32, 1)
        s["long"] = torch.empty(m, dtype=torch.int64, device="cuda")
        poison(s["long"])
        return s

    def check_argmax(s: Any) -> None:
        got = s["long"] if int(s["out"][0]) == 0x55555555 else s["out"].long()
        assert torch.equal(got, s["x"].argmax(-1))

    def torch_topk(s: Any) -> None:
        s["out"].copy_(torch.topk(s["x"], 8, -1).values)

    yield Row(
        f"cumsum f32 {m}x{n}", lambda: make(torch.float32, n),
        {**each(kernels, running, ROW_WARPS[n]), "torch": lambda s: torch.cumsum(s["x"], -1, out=s["out"])},
        lambda s: close(s["out"], s["x"].double().cumsum(-1), 2e-3), 8 * m * n,
    )  # fmt: skip
    yield Row(
        f"argmax f32 {m}x{n}", make_argmax,
        {**each(kernels, largest, ROW_WARPS[n]), "torch": lambda s: torch.argmax(s["x"], -1, out=s["long"])},
        check_argmax, 4 * m * n,
    )  # fmt: skip
    yield Row(
        f"top-8 f32 {m}x{n}", lambda: make(torch.float32, 8),
        {**each(kernels, top, ROW_WARPS[n]), "torch": torch_topk},
        lambda s: close(s["out"], s["x"].topk(8, -1).values, 0), 4 * m * n,
    )  # fmt: skip


def deformable_by_cuda(pass_name: str, names: Sequence[str]) -> dict[str, Launch]:
    """The kernel of deformable_attention.cu for a pass, on tensors of these names; none where nvcc
    makes none."""
    try:
        library = compile_cuda("deformable_attention.cu")
    except Exception as error:
        print(f"no kernel of nvcc: {type(error).__name__}: {error}", file=sys.stderr)
        return {}

    def launch(s: Any) -> None:
        pointers = [ctypes.c_void_p(s[name].data_ptr()) for name in names]
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        n, positions, heads, dim = s["value"].shape
        _, queries, _, levels, points, _ = s["loc"].shape
        error = getattr(library, f"deformable_{pass_name}")(
            stream, *pointers, n, positions, queries, heads, dim, levels, points
        )
        assert error == 0, f"CUDA error {error}"

    return {"nvcc": launch}


def deformable_rows(kernels: Any) -> Iterator[Row]:
    """The kernel of the CPU's case study, unchanged, beside one of CUDA's."""
    import deformable_attention as example

    names = ("value", "shapes", "starts", "loc", "attn")
    n, queries, dim = 8, 100, 256

    def make() -> Any:
        values = example.inputs(n, queries, dim, example.CASE_STUDY)
        s = {name: value.cuda() for name, value in zip(names, values)}
        s["out"] = torch.empty(n, queries, 8 * dim, device="cuda")
        poison(s["out"])
        return s

    def check(s: Any) -> None:
        wide = {
            name: s[name].double() if s[name].is_floating_point() else s[name] for name in names
        }
        want = example.plain_torch(wide["value"], wide["shapes"], wide["loc"], wide["attn"])
        torch.testing.assert_close(s["out"].double(), want, rtol=1e-4, atol=1e-6)

    def tessera_way(s: Any) -> None:
        example.forward(*(s[name] for name in names), s["out"])

    competitors = {"tessera": tessera_way, **deformable_by_cuda("forward", (*names, "out"))}
    read = n * queries * 8 * 16 * (4 * dim + 3) * 4
    work = f"deformable attention N={n} D={dim}"
    yield Row(work, make, competitors, check, read + n * queries * 8 * dim * 4)


def deformable_backward_rows(kernels: Any) -> Iterator[Row]:
    """Its gradients. Both kernels add to those of the maps by atomics; these are zero at first, and
    what is timed goes on adding to them."""
    import deformable_attention as example

    inputs = ("value", "shapes", "starts", "loc", "attn", "grad_out")
    outputs = ("grad_value", "grad_loc", "grad_attn")
    n, queries, dim = 8, 100, 256

    def make() -> Any:
        values = example.inputs(n, queries, dim, example.CASE_STUDY)
        s = {name: value.cuda() for name, value in zip(inputs, values)}
        # The derivative by a place jumps between pixels; there rounding would decide which it is.
        sizes = s["shapes"].flip(1)[:, None].float()  # (levels, 1, width and height)
        place = s["loc"] * sizes - 0.5
        pixel = place.floor()
        s["loc"] = (pixel + (place - pixel).clamp(0.01, 0.99) + 0.5) / sizes
        s["grad_out"] = random((n, queries, 8 * dim), torch.float32)
        s["grad_value"] = torch.zeros_like(s["value"])
        s["grad_loc"], s["grad_attn"] = torch.empty_like(s["loc"]), torch.empty_like(s["attn"])
        poison(s["grad_loc"], s["grad_attn"])
        return s

    def check(s: Any) -> None:
        leaves = [s[name].double().requires_grad_() for name in ("value", "loc", "attn")]
        out = example.plain_torch(leaves[0], s["shapes"], leaves[1], leaves[2])
        wanted = torch.autograd.grad(out, leaves, s["grad_out"].double())
        for name, want in zip(outputs, wanted):
            torch.testing.assert_close(s[name].double(), want, rtol=1e-3, atol=1e-4)

    def tessera_way(_: Any, s: Any, num_warps: int) -> None:
        example.backward(*(s[name] for name in (*inputs, *outputs)), num_warps)

    competitors: dict[str, Any] = each({"tessera": {}}, tessera_way, (1, 2, 4))
    competitors.update(deformable_by_cuda("backward", (*inputs, *outputs)))
    read = n * queries * 8 * 16 * (4 * dim + 3) * 4
    work = f"deformable attention backward N={n} D={dim}"
    # What is added to is read and written.
    yield Row(work, make, competitors, check, 3 * read)


def compile_cuda(name: str, *arguments: str) -> ctypes.CDLL:
    """A .cu file of this folder, compiled by nvcc for the GPU that is here."""
    major, minor = torch.cuda.get_device_capability()
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, name + ".so")
        command = ["nvcc", "-O3", f"-arch=sm_{major}{minor}", "-shared", "-Xcompiler", "-fPIC"]
        source = str(pathlib.Path(__file__).with_name(name))
        run = subprocess.run([*command, source, *arguments, "-o", output], capture_output=True)
        if run.returncode:
            raise RuntimeError(run.stderr.decode()[-300:])
        return ctypes.CDLL(output)


def bandwidth_rows(kernels: Any) -> Iterator[Row]:
    for family in (
        add_rows, softmax_rows, rms_norm_rows, transpose_rows, reduction_rows, scan_rows,
        deformable_rows, deformable_backward_rows, layer_norm_rows,
    ):  # fmt: skip
        yield from family(kernels)


def table_line(row: Row, copy: float) -> str:
    cells = [f"{row.work:36}"]
    for name, result in row.results.items():
        if "error" in result:
            cells.append(f"{name} {result['error'][:60]}")
        else:
            part = result["GB/s"] / copy
            cells.append(f"{name} {result['ms'] * 1e3:8.1f} us {part:5.3f} of copy")
    mine, other = row.results.get("tessera", {}), row.results.get("triton", {})
    if "ms" in mine and "ms" in other:
        ratio = other["ms"] / mine["ms"]
        noise = max(0.01, 2 * max(mine["spread"], other["spread"]))
        verdict = "ahead" if ratio > 1 + noise else "BEHIND" if ratio < 1 - noise else "level"
        cells.append(f"{ratio:5.2f}x {verdict}")
    return "  ".join(cells)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--only", default="", help="only rows whose description holds this text")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--no-bandwidth", action="store_true")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--no-launch", action="store_true")
    parser.add_argument("--resume", action="store_true", help="skip what --json has already")
    options = parser.parse_args()
    torch.manual_seed(0)
    report: dict[str, Any] = {"environment": environment(), "rows": []}

    if options.resume:
        report = json.loads(pathlib.Path(options.json).read_text())
    done = [row["work"] for row in report["rows"]]

    def save() -> None:
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(report, indent=1) + "\n")

    if not options.no_bandwidth:
        copy = copy_row()
        measure(copy, options.rounds)
        report["copy_before"] = copy.results["torch"]
        best = copy.results["torch"]["GB/s"]
        kernels = {name: load_kernels(compiler) for name, compiler in compilers().items()}
        for row in bandwidth_rows(kernels):
            if options.only not in row.work or row.work in done:
                continue
            try:
                measure(row, options.rounds)
            except Exception as error:
                row.results["error"] = {"error": f"{type(error).__name__}: {error}"[:300]}
                traceback.print_exc()
            report["rows"].append({"work": row.work, "bytes": row.bytes, **row.results})
            print(table_line(row, best), flush=True)
            save()
            if is_gpu_lost():
                if not options.json:
                    return 1
                again = [arg for arg in sys.argv if arg != "--resume"]
                os.execv(sys.executable, [sys.executable, *again, "--resume"])
        measure(copy, options.rounds)
        report["copy_after"] = copy.results["torch"]
        print(f"copy {best:.0f} GB/s before, {copy.results['torch']['GB/s']:.0f} after")
    import gpu_host

    for name, wanted, function in (
        ("compile", not options.no_compile, gpu_host.compile_times),
        ("launch", not options.no_launch, gpu_host.launch_times),
    ):
        if not wanted:
            continue
        try:
            report[name] = function()
        except Exception as error:
            traceback.print_exc()
            report[name] = {"error": f"{type(error).__name__}: {error}"}
        print(gpu_host.format_times(name, report[name]), flush=True)
        save()
    report["environment"]["clocks_after"] = clocks()
    save()
    return 0


def is_gpu_lost() -> bool:
    """Whether a kernel's fault has ended all use of the GPU by this process."""
    try:
        torch.cuda.synchronize()
        return False
    except Exception:
        return True


def clocks() -> str:
    query = "clocks.sm,clocks.mem,power.draw,temperature.gpu"
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def environment() -> dict[str, Any]:
    from tessera import _C
    from tessera.compiler.toolchain import find_ptxas

    version = subprocess.run([find_ptxas(), "--version"], capture_output=True, text=True).stdout
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": " ".join(sys.argv),
        "gpu": torch.cuda.get_device_name(),
        "driver": _C.cuda_device_info(0)["driver_version"],
        "torch": torch.__version__,
        "triton": triton.__version__ if triton is not None else None,
        "tessera": tessera.__version__,
        "build": _C.build_id(),
        "ptxas": version.strip().splitlines()[-1] if version else "",
        "clocks": clocks(),
        "python": sys.version.split()[0],
    }


if __name__ == "__main__":
    sys.exit(main())
