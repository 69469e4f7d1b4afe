# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of public_kernels.py: for each kernel its sizes, launches, and results by torch."""

from __future__ import annotations

import importlib
import math
import pathlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import gpu  # noqa: E402

Buffers = dict[str, Any]
Results = dict[str, torch.Tensor]


@dataclass
class Case:
    """A kernel at one size."""

    kind: str
    name: str
    make: Callable[[], Buffers]
    """Makes one set of buffers."""
    launch: Callable[[Any, Buffers], Any]
    """Launches a compiler's kernels on a set."""
    want: Callable[[Buffers], dict[str, torch.Tensor]]
    """The results that torch computes from the set before the launch."""
    tolerance: float = 1e-2
    results: dict[str, Any] = field(default_factory=dict)


class Maker:
    """Makes tensors on a device, small ones for the CPU."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.is_small = device == "cpu"

    def size(self, full: Any, small: Any) -> Any:
        """The size on a GPU, or the one for a check on the CPU."""
        return small if self.is_small else full

    def random(self, *shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
        """Normal numbers."""
        return torch.randn(shape, device=self.device, dtype=torch.float32).to(dtype)

    def integers(self, high: int, *shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
        """Integers from 0 on."""
        return torch.randint(0, high, shape, device=self.device, dtype=dtype)

    def empty(self, *shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
        """A result: NaN, or the byte 0x55, until it is written."""
        tensor = torch.empty(shape, device=self.device, dtype=dtype)
        gpu.poison(tensor)
        return tensor


def cdiv(a: int, b: int) -> int:
    """The quotient, rounded up."""
    return -(-a // b)


def words(at: Maker, *shape: int) -> torch.Tensor:
    """Random bits of an int32."""
    return torch.randint(
        -(1 << 31), (1 << 31) - 1, shape, device=at.device, dtype=torch.int64
    ).int()


def addresses(tensors: list[torch.Tensor]) -> torch.Tensor:
    """The addresses of tensors as a tensor."""
    return torch.tensor([x.data_ptr() for x in tensors], dtype=torch.int64).to(tensors[0].device)


Parts = tuple[
    Callable[[], Buffers], Callable[[Any, Buffers], Any], Callable[[Buffers], Results], float
]
"""What makes buffers, launches a kernel on them and computes the results; and the tolerance."""


Family = Callable[[Maker], Iterator[Case]]
"""The cases of a kernel at all sizes."""
PROGRAMS = 132
"""Programs of a persistent kernel, at most."""
REGISTERED: dict[str, dict[str, Family]] = {}
"""For each module of cases, the cases of each of its kernels."""


def cases(kind: str, full: list[tuple[Any, ...]], small: tuple[Any, ...]) -> Any:
    """Registers a function that builds the cases of the kernel with the function's name."""

    def register(build: Callable[..., Parts]) -> Callable[..., Parts]:
        name = build.__name__

        def family(at: Maker) -> Iterator[Case]:
            for size in at.size(full, [small]):
                make, launch, want, tolerance = build(at, *size)
                yield Case(
                    kind, f"{name} {'x'.join(map(str, size))}", make,
                    lambda own, s, launch=launch: launch(own[name], s), want, tolerance,
                )  # fmt: skip

        REGISTERED.setdefault(build.__module__, {})[name] = family
        return build

    return register


class CaseSet:
    """A set of kernels: the files NAME_PART_kernels.py, and NAME_PART_cases.py beside each."""

    def __init__(self, name: str, parts: tuple[str, ...]) -> None:
        self.name = name
        self.parts = parts

    def kernels(self) -> dict[str, Family]:
        """The cases of each kernel, which the files register when they are imported."""
        modules = [f"{self.name}_{part}_cases" for part in self.parts]
        for module in modules:
            importlib.import_module(module)
        return {name: family for module in modules for name, family in REGISTERED[module].items()}

    def families(self) -> list[Family]:
        """The cases of all kernels."""
        return list(self.kernels().values())


def find_sets() -> dict[str, CaseSet]:
    """All sets that have files of kernels and of cases in this directory."""
    parts: dict[str, list[str]] = {}
    here = pathlib.Path(__file__).parent
    for file in sorted(here.glob("*_*_kernels.py")):
        name, part, _ = file.stem.rsplit("_", 2)
        if (here / f"{name}_{part}_cases.py").exists():
            parts.setdefault(name, []).append(part)
    return {name: CaseSet(name, tuple(found)) for name, found in parts.items()}


# --- Matmuls ----------------------------------------------------------------------------------


def flat_matmuls(at: Maker) -> Iterator[Case]:
    """One loop over the K tiles of all tiles, in five spellings, and two loops beside them."""
    sizes = at.size([(2816, 2816, 2816), (4096, 4096, 4096)], [(96, 80, 64)])
    bm, bn, bk = at.size((128, 256, 64), (32, 32, 32))
    programs = at.size(132, 3)
    for name in ("flat_where", "flat_if", "flat_while", "flat_remainder", "nested"):
        for m, n, k in sizes:

            def make(m: int = m, n: int = n, k: int = k) -> Buffers:
                return {"a": at.random(m, k), "b": at.random(k, n), "c": at.empty(m, n)}

            def launch(own: Any, s: Buffers, name: str = name) -> Any:
                (m, k), n = s["a"].shape, s["b"].shape[1]
                grid = min(programs, cdiv(m, bm) * cdiv(n, bn))
                return own[name][(grid,)](
                    s["a"], s["b"], s["c"], m, n, k, k, n, n, BM=bm, BN=bn, BK=bk, GROUP=8,
                    PROGRAMS=grid, num_warps=8, num_stages=3,
                )  # fmt: skip

            def want(s: Buffers) -> dict[str, torch.Tensor]:
                return {"c": s["a"].float() @ s["b"].float()}

            yield Case("flat matmul", f"{name} {m}x{n}x{k}", make, launch, want, 6e-2)
    for batch, m, n, k in at.size([(16, 1024, 1024, 1024), (64, 512, 512, 256)], [(3, 40, 64, 64)]):

        def make_batch(batch: int = batch, m: int = m, n: int = n, k: int = k) -> Buffers:
            return {
                "a": at.random(batch, m, k), "b": at.random(batch, k, n), "bias": at.random(n),
                "c": at.empty(batch, m, n),
            }  # fmt: skip

        def launch_batch(own: Any, s: Buffers) -> Any:
            (batch, m, k), n = s["a"].shape, s["b"].shape[2]
            block_m, block_n = at.size((128, 128), (32, 32))
            grid = min(programs, batch * cdiv(m, block_m) * cdiv(n, block_n))
            return own["flat_batch"][(grid,)](
                s["a"], s["b"], s["c"], s["bias"], m, n, k, batch, BM=block_m, BN=block_n, BK=bk,
                GROUP=8, PROGRAMS=grid, num_warps=at.size(4, 4), num_stages=4,
            )  # fmt: skip

        def want_batch(s: Buffers) -> dict[str, torch.Tensor]:
            return {"c": s["a"].float() @ s["b"].float() + s["bias"].float()}

        yield Case(
            "flat matmul", f"flat_batch {batch}x{m}x{n}x{k}", make_batch, launch_batch, want_batch, 6e-2
        )  # fmt: skip


def lora(at: Maker) -> Iterator[Case]:
    """Products with the adapter that each token chooses."""
    for tokens, hidden, rank in at.size([(512, 4096, 16), (2048, 4096, 64)], [(5, 96, 16)]):
        adapters = 8

        def make(tokens: int = tokens, hidden: int = hidden, rank: int = rank) -> Buffers:
            return {
                "x": at.random(tokens, hidden), "w": at.random(adapters, rank, hidden),
                "index": at.integers(adapters, tokens) - (at.integers(9, tokens) == 0).int() * adapters,
                "out": torch.zeros((tokens, rank), device=at.device),
            }  # fmt: skip

        def launch(own: Any, s: Buffers, split: int = 8) -> Any:
            tokens, hidden = s["x"].shape
            return own["lora_shrink"][(tokens, split)](
                s["x"], s["w"], s["index"], s["out"], hidden, 0.5, R=s["w"].shape[1],
                BK=at.size(256, 32), SPLIT=split, num_warps=4,
            )  # fmt: skip

        def want(s: Buffers) -> dict[str, torch.Tensor]:
            chosen = s["w"].float()[s["index"].clamp(min=0).long()]
            result = torch.einsum("tk,trk->tr", s["x"].float(), chosen) * 0.5
            return {"out": torch.where(s["index"][:, None] >= 0, result, 0.0)}

        yield Case("lora", f"lora_shrink {tokens}x{hidden} rank {rank}", make, launch, want)

        def make_expand(tokens: int = tokens, hidden: int = hidden, rank: int = rank) -> Buffers:
            return {
                "x": at.random(tokens, rank), "w": at.random(adapters, hidden, rank),
                "index": at.integers(adapters, tokens), "out": at.random(tokens, hidden),
            }  # fmt: skip

        def launch_expand(own: Any, s: Buffers, split: int = 8) -> Any:
            tokens, hidden = s["out"].shape
            return own["lora_expand"][(tokens, split)](
                s["x"], s["w"], s["index"], s["out"], hidden, R=s["x"].shape[1],
                BN=at.size(128, 16), SPLIT=split, num_warps=4,
            )  # fmt: skip

        def want_expand(s: Buffers) -> dict[str, torch.Tensor]:
            chosen = s["w"].float()[s["index"].long()]
            added = torch.einsum("tr,tnr->tn", s["x"].float(), chosen)
            return {"out": s["out"].float() + added}

        yield Case(
            "lora", f"lora_expand {tokens}x{hidden} rank {rank}", make_expand, launch_expand,
            want_expand,
        )  # fmt: skip

        def make_segments(tokens: int = tokens, hidden: int = hidden, rank: int = rank) -> Buffers:
            count = min(16, tokens)
            cuts, _ = torch.sort(torch.randperm(tokens - 1)[: count - 1] + 1)
            edges = torch.cat([torch.tensor([0]), cuts, torch.tensor([tokens])])
            return {
                "x": at.random(tokens, hidden), "w": at.random(adapters, rank, hidden),
                "starts": edges.int().to(at.device), "index": at.integers(adapters, count),
                "out": at.empty(tokens, rank),
            }  # fmt: skip

        def launch_segments(own: Any, s: Buffers) -> Any:
            tokens, hidden = s["x"].shape
            bm = at.size(32, 16)
            return own["lora_segments"][(len(s["index"]), cdiv(tokens, bm))](
                s["x"], s["w"], s["starts"], s["index"], s["out"], hidden, R=s["w"].shape[1], BM=bm,
                BK=at.size(64, 32), num_warps=4, num_stages=3,
            )  # fmt: skip

        def want_segments(s: Buffers) -> dict[str, torch.Tensor]:
            lengths = s["starts"].diff().long()
            chosen = s["w"].float()[torch.repeat_interleave(s["index"].long(), lengths)]
            return {"out": torch.einsum("tk,trk->tr", s["x"].float(), chosen)}

        yield Case(
            "lora", f"lora_segments {tokens}x{hidden} rank {rank}", make_segments, launch_segments,
            want_segments, 6e-2,
        )  # fmt: skip


def gathered_sums(at: Maker) -> Iterator[Case]:
    """Weighted sums over the rows that each token chooses."""
    for tokens, d, top in at.size([(4096, 4096, 8), (16384, 2048, 4)], [(7, 96, 4)]):
        for name in ("gathered_sum", "gathered_sum_blocks"):

            def make(tokens: int = tokens, d: int = d, top: int = top) -> Buffers:
                return {
                    "x": at.random(tokens * 2, d, dtype=torch.bfloat16),
                    "place": at.integers(tokens * 2, tokens, top),
                    "weight": at.random(tokens, top, dtype=torch.float32),
                    "out": at.empty(tokens, d, dtype=torch.bfloat16),
                }  # fmt: skip

            def launch(own: Any, s: Buffers, name: str = name) -> Any:
                (tokens, top), d = s["place"].shape, s["x"].shape[1]
                block = at.size(1024, 64)
                grid = (tokens,) if name == "gathered_sum" else (tokens, cdiv(d, block))
                return own[name][grid](
                    s["x"], s["place"], s["weight"], s["out"], d, TOP=top, BD=block, num_warps=4
                )  # fmt: skip

            def want(s: Buffers) -> dict[str, torch.Tensor]:
                # A part at a time: all chosen rows in float32 would take too much memory.
                parts = [
                    (s["x"][p.long()].float() * w[..., None]).sum(1)
                    for p, w in zip(s["place"].split(2048), s["weight"].split(2048))
                ]
                return {"out": torch.cat(parts)}

            yield Case("gathered sum", f"{name} {tokens}x{d} top {top}", make, launch, want, 3e-2)


# --- Rows -------------------------------------------------------------------------------------


def softmaxes(at: Maker) -> Iterator[Case]:
    """Softmax in two and three loops over a row."""
    for m, n in at.size([(4096, 4096), (1024, 32768), (8192, 12000)], [(5, 300)]):
        for name in ("online_softmax", "online_softmax_lanes", "log_softmax_loops"):

            def make(m: int = m, n: int = n) -> Buffers:
                return {"x": at.random(m, n), "out": at.empty(m, n)}

            def launch(own: Any, s: Buffers, name: str = name) -> Any:
                m, n = s["x"].shape
                strides = (n,) if name == "online_softmax" else ()
                block = at.size(2048, 64)
                return own[name][(m,)](s["x"], s["out"], n, *strides, BLOCK=block, num_warps=8)

            def want(s: Buffers, name: str = name) -> dict[str, torch.Tensor]:
                function = torch.log_softmax if name.startswith("log") else torch.softmax
                return {"out": function(s["x"].float(), -1)}

            yield Case("softmax in loops", f"{name} {m}x{n}", make, launch, want)


def cross_entropies(at: Maker) -> Iterator[Case]:
    """Cross entropy of large vocabularies, and of small ones at once."""
    for m, v in at.size([(4096, 32000), (2048, 128256)], [(5, 300)]):
        for name in ("cross_entropy", "cross_entropy_in_place"):

            def make(m: int = m, v: int = v) -> Buffers:
                f32 = torch.float32
                return {
                    "x": at.random(m, v, dtype=torch.bfloat16), "loss": at.empty(m, dtype=f32),
                    "label": at.integers(v, m, dtype=torch.int64), "lse": at.empty(m, dtype=f32),
                }  # fmt: skip

            def launch(own: Any, s: Buffers, name: str = name) -> Any:
                m, v = s["x"].shape
                block = at.size(8192, 64)
                if name == "cross_entropy":
                    return own[name][(m,)](
                        s["x"], s["label"], s["loss"], s["lse"], v, v, BLOCK=block, num_warps=16
                    )
                return own[name][(m,)](s["x"], s["label"], s["loss"], v, BLOCK=block, num_warps=16)

            def want(s: Buffers, name: str = name) -> dict[str, torch.Tensor]:
                x = s["x"].float()
                if name == "cross_entropy":
                    loss = torch.nn.functional.cross_entropy(x, s["label"], reduction="none")
                    return {"loss": loss, "lse": torch.logsumexp(x, -1)}
                loss = torch.nn.functional.cross_entropy(x, s["label"], reduction="none")
                grad = torch.softmax(x, -1)
                grad[torch.arange(len(grad), device=grad.device), s["label"]] -= 1
                return {"loss": loss, "x": grad}

            yield Case("cross entropy", f"{name} {m}x{v}", make, launch, want)
    for m, v in at.size([(8192, 4096), (256, 2048)], [(5, 60)]):

        def make_block(m: int = m, v: int = v) -> Buffers:
            return {
                "x": at.random(m, v), "loss": at.empty(m, dtype=torch.float32),
                "label": at.integers(v, m, dtype=torch.int64),
            }  # fmt: skip

        def launch_block(own: Any, s: Buffers) -> Any:
            m, v = s["x"].shape
            return own["cross_entropy_block"][(m,)](
                s["x"], s["label"], s["loss"], v, BLOCK=at.size(v, 64), num_warps=8
            )

        def want_block(s: Buffers) -> dict[str, torch.Tensor]:
            x = s["x"].float()
            return {"loss": torch.nn.functional.cross_entropy(x, s["label"], reduction="none")}

        yield Case(
            "cross entropy", f"cross_entropy_block {m}x{v}", make_block, launch_block, want_block
        )


def norms(at: Maker) -> Iterator[Case]:
    """Layer, RMS and group norms, of many short rows and of few."""
    for m, n in at.size([(65536, 256), (16384, 128), (256, 1024)], [(9, 60)]):
        for name in ("layer_norm_short", "layer_norm_rows"):

            def make(m: int = m, n: int = n) -> Buffers:
                return {
                    "x": at.random(m, n), "w": at.random(n), "b": at.random(n), "out": at.empty(m, n),
                    "mean": at.empty(m, dtype=torch.float32), "rstd": at.empty(m, dtype=torch.float32),
                }  # fmt: skip

            def launch(own: Any, s: Buffers, name: str = name) -> Any:
                m, n = s["x"].shape
                block = at.size(n, 64)
                if name == "layer_norm_short":
                    return own[name][(m,)](
                        s["x"], s["w"], s["b"], s["out"], s["mean"], s["rstd"], n, 1e-5, BLOCK=block,
                        num_warps=at.size(max(1, n // 256), 4),
                    )  # fmt: skip
                return own[name][(cdiv(m, 8),)](
                    s["x"], s["w"], s["b"], s["out"], m, n, 1e-5, ROWS=8, BLOCK=block, num_warps=4
                )

            def want(s: Buffers) -> dict[str, torch.Tensor]:
                x = s["x"].float()
                w, b = s["w"].float(), s["b"].float()
                return {"out": torch.nn.functional.layer_norm(x, w.shape, w, b, 1e-5)}

            yield Case("norms", f"{name} {m}x{n}", make, launch, want)
    for m, n in at.size([(8192, 4096), (16, 4096)], [(5, 60)]):

        def make_rms(m: int = m, n: int = n) -> Buffers:
            bf16 = torch.bfloat16
            return {
                "x": at.random(m, n, dtype=bf16), "r": at.random(m, n, dtype=bf16),
                "w": at.random(n, dtype=bf16), "out": at.empty(m, n, dtype=bf16),
                "sum": at.empty(m, n, dtype=bf16),
            }  # fmt: skip

        def launch_rms(own: Any, s: Buffers) -> Any:
            m, n = s["x"].shape
            return own["rms_norm_residual"][(m,)](
                s["x"], s["r"], s["w"], s["out"], s["sum"], n, 1e-6, BLOCK=at.size(n, 64),
                num_warps=8,
            )  # fmt: skip

        def want_rms(s: Buffers) -> dict[str, torch.Tensor]:
            x = s["x"].float() + s["r"].float()
            scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
            return {"out": x * scale * s["w"].float(), "sum": x}

        yield Case("norms", f"rms_norm_residual {m}x{n}", make_rms, launch_rms, want_rms, 3e-2)
    for batch, channels, places in at.size([(32, 320, 4096), (8, 1280, 256)], [(2, 32, 20)]):
        groups = at.size(32, 4)

        def make_group(
            batch: int = batch, channels: int = channels, places: int = places
        ) -> Buffers:
            return {
                "x": at.random(batch, channels, places), "w": at.random(channels),
                "b": at.random(channels), "out": at.empty(batch, channels, places),
            }  # fmt: skip

        def launch_group(own: Any, s: Buffers, groups: int = groups) -> Any:
            batch, channels, places = s["x"].shape
            return own["group_norm_loop"][(batch * groups,)](
                s["x"], s["w"], s["b"], s["out"], channels, places, 1e-5, GROUPS=groups,
                BLOCK=at.size(4096, 64), num_warps=8,
            )  # fmt: skip

        def want_group(s: Buffers, groups: int = groups) -> dict[str, torch.Tensor]:
            x, w, b = s["x"].float(), s["w"].float(), s["b"].float()
            return {"out": torch.nn.functional.group_norm(x, groups, w, b, 1e-5)}

        yield Case(
            "norms", f"group_norm_loop {batch}x{channels}x{places}", make_group, launch_group,
            want_group,
        )  # fmt: skip


def quantised(x: torch.Tensor, dim: int, most: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The quotients by a scale for each row, and the scales."""
    scale = x.abs().amax(dim, keepdim=True).clamp(min=1e-10) / most
    return x / scale, scale.squeeze(dim)


def quantisations(at: Maker) -> Iterator[Case]:
    """Rows to int8, groups to int8, and pairs to 4 bits."""
    for m, n in at.size([(4096, 4096), (2048, 14336), (64, 4096)], [(5, 64)]):
        for name in ("quantize_rows", "quantize_rows_loop", "quantize_groups", "quantize_pairs"):
            group = at.size(128, 16)
            scales = {"quantize_groups": (m, n // group)}.get(name, (m,))
            kind = torch.uint8 if name == "quantize_pairs" else torch.int8
            width = n // 2 if name == "quantize_pairs" else n

            def make(
                m: int = m,
                n: int = n,
                scales: tuple[int, ...] = scales,
                kind: torch.dtype = kind,
                width: int = width,
            ) -> Buffers:
                return {
                    "x": at.random(m, n), "q": at.empty(m, width, dtype=kind),
                    "scale": at.empty(*scales, dtype=torch.float32),
                }  # fmt: skip

            def launch(own: Any, s: Buffers, name: str = name, group: int = group) -> Any:
                m, n = s["x"].shape
                arguments = (s["x"], s["q"], s["scale"], n)
                power = 1 << (n - 1).bit_length()
                if name == "quantize_groups":
                    block = at.size(2048, 64)
                    return own[name][(m, n // block)](
                        *arguments, GROUP=group, BLOCK=block, num_warps=4
                    )
                block = {"quantize_rows": power, "quantize_pairs": power // 2}.get(
                    name, at.size(1024, 16)
                )
                return own[name][(m,)](*arguments, BLOCK=block, num_warps=8)

            def want(s: Buffers, name: str = name, group: int = group) -> dict[str, torch.Tensor]:
                x = s["x"].float()
                if name == "quantize_pairs":
                    y, scale = quantised(x, 1, 7.0)
                    q = torch.floor(y + 8.5).to(torch.uint8)
                    return {"scale": scale, "nibbles": q}
                if name == "quantize_groups":
                    y, scale = quantised(x.reshape(len(x), -1, group), 2, 127.0)
                    return {"scale": scale, "q": torch.trunc(y + 0.5 * y.sign()).reshape(x.shape)}
                y, scale = quantised(x, 1, 127.0)
                return {"scale": scale, "q": torch.trunc(y + 0.5 * y.sign())}

            yield Case("quantisation", f"{name} {m}x{n}", make, launch, want, 1e-3)


def elementwise(at: Maker) -> Iterator[Case]:
    """Kernels of a few microseconds, and larger ones of the same text."""
    for n in at.size([1 << 20, 1 << 26], [5000]):
        for name, function in (("relu", torch.relu), ("sine", torch.sin)):

            def make(n: int = n) -> Buffers:
                f32 = torch.float32
                return {"x": at.random(n, dtype=f32), "out": at.empty(n, dtype=f32)}

            def launch(own: Any, s: Buffers, name: str = name) -> Any:
                n = s["x"].numel()
                return own[name][(cdiv(n, 1024),)](s["x"], s["out"], n, BLOCK=1024, num_warps=4)

            def want(s: Buffers, function: Any = function) -> dict[str, torch.Tensor]:
                return {"out": function(s["x"])}

            yield Case("elementwise", f"{name} {n}", make, launch, want, 1e-5)

        def launch_dropout(own: Any, s: Buffers) -> Any:
            n = s["x"].numel()
            return own["seeded_dropout"][(cdiv(n, 1024),)](
                s["x"], s["out"], n, 0.5, 123, BLOCK=1024, num_warps=4
            )

        def want_dropout(s: Buffers) -> dict[str, torch.Tensor]:
            return {"dropped": s["x"]}

        yield Case("elementwise", f"seeded_dropout {n}", make, launch_dropout, want_dropout, 1e-5)

        def make_adam(n: int = n) -> Buffers:
            f32 = torch.float32
            made = {name: at.random(n, dtype=f32) for name in ("p", "g", "m")}
            return {**made, "v": at.random(n, dtype=f32).abs()}

        def launch_adam(own: Any, s: Buffers) -> Any:
            n = s["p"].numel()
            return own["adam"][(cdiv(n, 1024),)](
                s["p"], s["g"], s["m"], s["v"], n, 1e-3, 0.9, 0.99, 1e-8, BLOCK=1024, num_warps=4
            )

        def want_adam(s: Buffers) -> dict[str, torch.Tensor]:
            m, v = 0.9 * s["m"] + 0.1 * s["g"], 0.99 * s["v"] + 0.01 * s["g"] ** 2
            return {"m": m, "v": v, "p": s["p"] - 1e-3 * m / (v.sqrt() + 1e-8)}

        yield Case("elementwise", f"adam {n}", make_adam, launch_adam, want_adam, 1e-3)
    for m, n in at.size([(128, 4096), (8192, 11008)], [(5, 60)]):

        def make_gate(m: int = m, n: int = n) -> Buffers:
            return {"gate": at.random(m, n), "up": at.random(m, n), "out": at.empty(m, n)}

        def launch_gate(own: Any, s: Buffers) -> Any:
            m, n = s["gate"].shape
            block = 1 << (n - 1).bit_length()
            return own["swiglu"][(m,)](s["gate"], s["up"], s["out"], n, n, BLOCK=block, num_warps=8)

        def want_gate(s: Buffers) -> dict[str, torch.Tensor]:
            return {"out": torch.nn.functional.silu(s["gate"].float()) * s["up"].float()}

        yield Case("elementwise", f"swiglu {m}x{n}", make_gate, launch_gate, want_gate, 2e-2)
    for tokens, heads, d in at.size([(512, 32, 128), (16384, 32, 128)], [(6, 3, 16)]):

        def make_rotary(tokens: int = tokens, heads: int = heads, d: int = d) -> Buffers:
            length = at.size(512, 3)
            return {
                "q": at.random(tokens, heads, d), "cos": at.random(length, d // 2),
                "sin": at.random(length, d // 2), "out": at.empty(tokens, heads, d),
            }  # fmt: skip

        def launch_rotary(own: Any, s: Buffers) -> Any:
            tokens, heads, d = s["q"].shape
            return own["rotary"][(tokens,)](
                s["q"], s["cos"], s["sin"], s["out"], len(s["cos"]), heads, D=d,
                HEADS=1 << (heads - 1).bit_length(), num_warps=4,
            )  # fmt: skip

        def want_rotary(s: Buffers) -> dict[str, torch.Tensor]:
            tokens, _, d = s["q"].shape
            at_token = torch.arange(tokens, device=s["q"].device) % len(s["cos"])
            cos, sin = s["cos"].float()[at_token, None], s["sin"].float()[at_token, None]
            x, y = s["q"].float().split(d // 2, -1)
            return {"out": torch.cat([x * cos - y * sin, y * cos + x * sin], -1)}

        yield Case(
            "elementwise", f"rotary {tokens}x{heads}x{d}", make_rotary, launch_rotary, want_rotary, 2e-2
        )  # fmt: skip
    for m, n in at.size([(64, 8192), (4096, 8192)], [(5, 60)]):

        def make_norm(m: int = m, n: int = n) -> Buffers:
            return {"x": at.random(m, n), "out": at.empty(m, dtype=torch.float32)}

        def launch_norm(own: Any, s: Buffers) -> Any:
            m, n = s["x"].shape
            return own["row_sum_of_squares"][(m,)](
                s["x"], s["out"], n, BLOCK=at.size(n, 64), num_warps=8
            )

        def want_norm(s: Buffers) -> dict[str, torch.Tensor]:
            return {"out": s["x"].float().norm(dim=-1)}

        yield Case("norms", f"row_sum_of_squares {m}x{n}", make_norm, launch_norm, want_norm)


# --- Sequences --------------------------------------------------------------------------------


def cumsums(at: Maker) -> Iterator[Case]:
    """Cumsums over chunks that are stored in the loop."""
    for heads, tokens, s_ in at.size([(64, 4096, 128), (16, 16384, 64)], [(2, 70, 32)]):
        for name in ("reversed_cumsum_blocks", "cumsum_pointers", "cumsum_scan"):

            def make(heads: int = heads, tokens: int = tokens, s_: int = s_) -> Buffers:
                f32 = torch.float32
                x = at.random(heads, tokens, s_, dtype=f32)
                return {"x": x, "out": at.empty(heads, tokens, s_, dtype=f32)}

            def launch(own: Any, s: Buffers, name: str = name) -> Any:
                heads, tokens, width = s["x"].shape
                bs = at.size(32, 16)
                return own[name][(cdiv(width, bs), heads)](
                    s["x"], s["out"], tokens, S=width, BT=at.size(64, 16), BS=bs, num_warps=4
                )

            def want(s: Buffers, name: str = name) -> dict[str, torch.Tensor]:
                x = s["x"].double()
                if name.startswith("reversed"):
                    return {"out": x.flip(1).cumsum(1).flip(1)}
                return {"out": x.cumsum(1)}

            yield Case("cumsum in chunks", f"{name} {heads}x{tokens}x{s_}", make, launch, want)
    for tokens, heads in at.size([(16384, 128), (131072, 64)], [(40, 5)]):

        def make_softplus(tokens: int = tokens, heads: int = heads) -> Buffers:
            f32 = torch.float32
            return {
                "x": at.random(tokens, heads), "bias": at.random(heads), "a": -at.random(heads).abs(),
                "dt": at.empty(heads, tokens, dtype=f32), "out": at.empty(heads, tokens, dtype=f32),
            }  # fmt: skip

        def launch_softplus(own: Any, s: Buffers) -> Any:
            tokens, heads = s["x"].shape
            chunk, bh = at.size((256, 16), (16, 4))
            return own["softplus_cumsum"][(cdiv(tokens, chunk), cdiv(heads, bh))](
                s["x"], s["bias"], s["a"], s["dt"], s["out"], tokens, heads, CHUNK=chunk, BH=bh,
                num_warps=4,
            )  # fmt: skip

        def want_softplus(s: Buffers) -> dict[str, torch.Tensor]:
            x = s["x"].float() + s["bias"].float()
            dt = torch.nn.functional.softplus(x).T
            chunk = at.size(256, 16)
            scaled = dt * s["a"].float()[:, None]
            parts = [part.cumsum(1) for part in scaled.split(chunk, 1)]
            return {"dt": dt, "out": torch.cat(parts, 1)}

        yield Case(
            "cumsum in chunks", f"softplus_cumsum {tokens}x{heads}", make_softplus, launch_softplus,
            want_softplus,
        )  # fmt: skip


def token_recurrences(at: Maker) -> Iterator[Case]:
    """A state that each token changes."""
    for heads, tokens, k in at.size([(64, 2048, 128), (256, 1024, 64)], [(2, 9, 16)]):
        for name in ("recurrence", "gated_recurrence", "delta_recurrence"):

            def make(heads: int = heads, tokens: int = tokens, k: int = k) -> Buffers:
                keys = [torch.nn.functional.normalize(at.random(heads, tokens, k).float(), dim=-1).half() for _ in "qk"]  # fmt: skip
                return {
                    "q": keys[0], "k": keys[1], "v": at.random(heads, tokens, k),
                    "g": -at.random(heads, tokens, k).abs() * 0.1,
                    "beta": torch.sigmoid(at.random(heads, tokens)), "o": at.empty(heads, tokens, k),
                }  # fmt: skip

            def launch(own: Any, s: Buffers, name: str = name) -> Any:
                heads, tokens, k = s["q"].shape
                more = {"gated_recurrence": (s["g"],), "delta_recurrence": (s["beta"],)}
                bv = at.size(16, 8)
                return own[name][(k // bv, heads)](
                    s["q"], s["k"], s["v"], *more.get(name, ()), s["o"], tokens, k**-0.5, K=k, V=k,
                    BV=bv, num_warps=1, num_stages=3,
                )  # fmt: skip

            def want(s: Buffers, name: str = name) -> dict[str, torch.Tensor]:
                q, k, v, g, beta = (s[key].float() for key in ("q", "k", "v", "g", "beta"))
                state = torch.zeros(len(q), k.shape[2], v.shape[2], device=q.device)
                outs = []
                for t in range(q.shape[1]):
                    value = v[:, t]
                    if name == "gated_recurrence":
                        state = state * torch.exp(g[:, t])[:, :, None]
                    if name == "delta_recurrence":
                        seen = torch.einsum("hkv,hk->hv", state, k[:, t])
                        value = (value - seen) * beta[:, t, None]
                    state = state + k[:, t, :, None] * value[:, None, :]
                    outs.append(torch.einsum("hkv,hk->hv", state, q[:, t]) * q.shape[2] ** -0.5)
                return {"o": torch.stack(outs, 1)}

            yield Case("recurrence", f"{name} {heads}x{tokens}x{k}", make, launch, want)
    for heads, tokens, k in at.size([(64, 4096, 128), (128, 2048, 64)], [(2, 32, 16)]):

        def make_chunks(heads: int = heads, tokens: int = tokens, k: int = k) -> Buffers:
            shape = (heads, tokens, k)
            made = {name: at.random(*shape, dtype=torch.bfloat16) * 0.3 for name in "qkv"}
            return {**made, "o": at.empty(*shape, dtype=torch.bfloat16)}

        def launch_chunks(own: Any, s: Buffers) -> Any:
            heads, tokens, k = s["q"].shape
            bv = at.size(64, 16)
            return own["linear_chunks"][(k // bv, heads)](
                s["q"], s["k"], s["v"], s["o"], tokens, k**-0.5, K=k, V=k, BT=at.size(64, 16), BV=bv,
                num_warps=4, num_stages=2,
            )  # fmt: skip

        def want_chunks(s: Buffers) -> dict[str, torch.Tensor]:
            q, k, v = (s[name].float() for name in "qkv")
            outs, state = [], torch.zeros(len(q), k.shape[2], v.shape[2], device=q.device)
            for part in range(0, q.shape[1], 256):
                qs, ks, vs = (x[:, part : part + 256] for x in (q, k, v))
                inner = torch.tril(qs @ ks.transpose(1, 2)) @ vs
                outs.append((inner + qs @ state) * q.shape[2] ** -0.5)
                state = state + ks.transpose(1, 2) @ vs
            return {"o": torch.cat(outs, 1)}

        yield Case(
            "recurrence", f"linear_chunks {heads}x{tokens}x{k}", make_chunks, launch_chunks, want_chunks, 6e-2
        )  # fmt: skip


def decoding(at: Maker) -> Iterator[Case]:
    """Both stages of split decoding."""
    group, d, bn = at.size((8, 128, 64), (2, 16, 16))
    for heads, tokens, splits in at.size([(256, 4096, 8), (64, 16384, 32)], [(3, 50, 4)]):

        def make(heads: int = heads, tokens: int = tokens, splits: int = splits) -> Buffers:
            f32 = torch.float32
            return {
                "q": at.random(heads, group, d), "k": at.random(heads, tokens, d),
                "v": at.random(heads, tokens, d),
                "length": at.integers(tokens // 2, heads) + tokens // 2,
                "part": torch.zeros((heads, group, splits, d), device=at.device, dtype=f32),
                "lse": torch.full((heads, group, splits), -math.inf, device=at.device, dtype=f32),
            }  # fmt: skip

        def launch(own: Any, s: Buffers, splits: int = splits) -> Any:
            heads, tokens, _ = s["k"].shape
            return own["decode_first"][(heads, splits)](
                s["q"], s["k"], s["v"], s["length"], s["part"], s["lse"], d**-0.5, tokens, G=group,
                D=d, BN=bn, SPLITS=splits, GB=16, num_warps=4, num_stages=3,
            )  # fmt: skip

        def want(s: Buffers, splits: int = splits) -> dict[str, torch.Tensor]:
            heads, tokens, _ = s["k"].shape
            scores = torch.einsum("hgd,htd->hgt", s["q"].float(), s["k"].float()) * d**-0.5
            place = torch.arange(tokens, device=scores.device)
            scores = scores.masked_fill(place >= s["length"][:, None, None], -math.inf)
            each = (s["length"].add(splits - 1) // splits).add(bn - 1) // bn * bn
            lse = torch.full_like(s["lse"], -math.inf)
            for split in range(splits):
                inside = (place // each[:, None] == split)[:, None]
                lse[:, :, split] = torch.logsumexp(scores.masked_fill(~inside, -math.inf), -1)
            return {"lse": lse}

        name = f"decode_first {heads}x{tokens}, {splits} splits"
        yield Case("decoding", name, make, launch, want)
    for rows, splits in at.size([(4096, 8), (4096, 32), (512, 16)], [(6, 4)]):
        for name in ("decode_second", "decode_second_plain", "decode_second_tile"):

            def make_second(rows: int = rows, splits: int = splits) -> Buffers:
                f32 = torch.float32
                return {
                    "part": at.random(rows, splits, d, dtype=f32),
                    "lse": at.random(rows, splits, dtype=f32), "out": at.empty(rows, d),
                    "length": torch.full(
                        (rows // group,), splits * bn * 2 - 3, device=at.device, dtype=torch.int32
                    ),
                }  # fmt: skip

            def launch_second(own: Any, s: Buffers, name: str = name) -> Any:
                rows, splits, _ = s["part"].shape
                if name == "decode_second":
                    return own[name][(rows,)](
                        s["part"], s["lse"], s["length"], s["out"], G=group, D=d, BN=bn,
                        SPLITS=splits, num_warps=4,
                    )  # fmt: skip
                more = {"BLOCK": 1} if name == "decode_second_plain" else {}
                return own[name][(rows,)](
                    s["part"], s["lse"], s["out"], D=d, SPLITS=splits, num_warps=4, **more
                )

            def want_second(s: Buffers) -> dict[str, torch.Tensor]:
                weight = torch.softmax(s["lse"], -1)
                return {"out": (s["part"] * weight[..., None]).sum(1)}

            yield Case(
                "decoding", f"{name} {rows}, {splits} splits", make_second, launch_second, want_second
            )  # fmt: skip


def attentions(at: Maker) -> Iterator[Case]:
    """Attention by plain pointers, of short and of packed sequences."""
    d = at.size(64, 16)
    bm, bn = at.size((64, 64), (16, 16))
    heads = at.size(16, 2)
    for batch, tokens, causal in at.size(
        [(64, 197, False), (32, 512, True), (128, 128, False)], [(2, 37, True), (1, 20, False)]
    ):

        def make(batch: int = batch, tokens: int = tokens) -> Buffers:
            made = {name: at.random(batch, tokens, heads, d) for name in "qkv"}
            return {**made, "o": at.empty(batch, tokens, heads, d)}

        def launch(own: Any, s: Buffers, causal: bool = causal) -> Any:
            batch, tokens = s["q"].shape[:2]
            return own["short_attention"][(cdiv(tokens, bm), batch * heads)](
                s["q"], s["k"], s["v"], s["o"], tokens, heads, d**-0.5, D=d, BM=bm, BN=bn,
                CAUSAL=causal, num_warps=4, num_stages=2,
            )  # fmt: skip

        def want(s: Buffers, causal: bool = causal) -> dict[str, torch.Tensor]:
            q, k, v = (s[name].float().transpose(1, 2) for name in "qkv")
            o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            return {"o": o.transpose(1, 2)}

        name = f"short_attention {batch}x{tokens}{' causal' if causal else ''}"
        yield Case("short attention", name, make, launch, want)
    for sequences, longest in at.size([(64, 512), (16, 2048)], [(3, 40)]):

        def make_packed(sequences: int = sequences, longest: int = longest) -> Buffers:
            generator = torch.Generator().manual_seed(sequences)
            lengths = torch.randint(longest // 4, longest + 1, (sequences,), generator=generator)
            starts = torch.cat([torch.tensor([0]), lengths.cumsum(0)])
            made = {name: at.random(int(starts[-1]), heads, d) for name in "qkv"}
            return {
                **made, "o": at.empty(int(starts[-1]), heads, d), "starts": starts.int().to(at.device),
                "longest": longest,
            }  # fmt: skip

        def launch_packed(own: Any, s: Buffers) -> Any:
            grid = (cdiv(s["longest"], bm), heads, len(s["starts"]) - 1)
            return own["packed_attention"][grid](
                s["q"], s["k"], s["v"], s["o"], s["starts"], heads, d**-0.5, D=d, BM=bm, BN=bn,
                num_warps=4, num_stages=2,
            )  # fmt: skip

        def want_packed(s: Buffers) -> dict[str, torch.Tensor]:
            outs = []
            edges = s["starts"].tolist()
            for first, end in zip(edges, edges[1:]):
                q, k, v = (s[name][first:end].float().transpose(0, 1) for name in "qkv")
                o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                outs.append(o.transpose(0, 1))
            return {"o": torch.cat(outs)}

        name = f"packed_attention {sequences} to {longest}"
        yield Case("short attention", name, make_packed, launch_packed, want_packed)


FAMILIES: tuple[Callable[[Maker], Iterator[Case]], ...] = (
    flat_matmuls, lora, gathered_sums, softmaxes, cross_entropies, norms, quantisations, elementwise,
    cumsums, token_recurrences, decoding, attentions,
)  # fmt: skip
