# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention's backward pass on an NVIDIA GPU: one source under Tessera and Triton, and cuDNN.

Usage: attention_backward.py [--only TEXT] [--json FILE] [--rounds N]

Three kernels do it: sums of the gradient's rows, the gradients of keys and values, the gradient
of queries. Speeds count its five dots (half of them where it is causal), though two of them are
done twice. Every compiler gets the same pairs of configurations; the best pair counts. Measured
as in gpu.py.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import gpu  # noqa: E402

KERNELS = pathlib.Path(__file__).with_name("attention_backward_kernels.py")
TOKENS = 16384
WIDTH = 2048
"""Tokens of all sequences, and elements of all heads."""

# Rows, keys, warps, stages: of the kernel for keys and values, and of that for queries.
CONFIGS = {
    64: [
        ((64, 64, 4, 3), (64, 64, 4, 3)), ((64, 64, 4, 3), (128, 64, 4, 3)),
        ((64, 64, 4, 2), (64, 64, 4, 3)), ((64, 64, 4, 2), (64, 64, 4, 2)),
        ((64, 128, 8, 3), (128, 64, 8, 3)),
        ((64, 128, 8, 3), (64, 64, 4, 3)), ((128, 128, 8, 2), (128, 128, 8, 2)),
    ],
    128: [
        ((64, 64, 4, 2), (64, 64, 4, 2)), ((64, 64, 4, 2), (128, 64, 8, 3)),
        ((64, 64, 4, 2), (128, 64, 8, 2)), ((64, 128, 8, 2), (128, 128, 8, 2)), ((64, 128, 8, 3), (128, 64, 8, 3)),
        ((32, 128, 8, 3), (128, 64, 8, 2)),
    ],
}  # fmt: skip


@dataclass
class Variant:
    """The launches of one pair of configurations; gives the kernel that spills most."""

    config: Sequence[Any]
    own: dict[str, Any]
    causal: bool

    def __call__(self, s: Any) -> Any:
        (bm, bn, warps, stages), (rows_bm, rows_bn, rows_warps, rows_stages) = self.config
        batch, heads, tokens, d = s["q"].shape
        scale = d**-0.5
        sums = (s["lse2"], s["delta"], tokens, scale * 1.4426950408889634, scale)
        self.own["row_sums"][(tokens // 64, batch * heads)](
            s["o"], s["do"], s["delta"], tokens, D=d, BM=64, num_warps=4
        )
        kernels = [
            self.own["of_keys"][(tokens // bn, batch * heads)](
                s["q"], s["k"], s["v"], s["do"], s["dk"], s["dv"], *sums,
                GROUP=1, D=d, CAUSAL=self.causal, BM=bm, BN=bn, num_warps=warps, num_stages=stages,
            ),
            self.own["of_rows"][(tokens // rows_bm, batch * heads)](
                s["q"], s["k"], s["v"], s["do"], s["dq"], *sums,
                GROUP=1, D=d, CAUSAL=self.causal, BM=rows_bm, BN=rows_bn, num_warps=rows_warps,
                num_stages=rows_stages,
            ),
        ]  # fmt: skip
        return max(kernels, key=lambda kernel: getattr(kernel, "n_spills", 0) or 0)


def forward(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """cuDNN's forward pass: the output, and what its backward pass wants besides."""
    return torch.ops.aten._scaled_dot_product_cudnn_attention(
        q, k, v, None, True, 0.0, causal, False
    )


def backward(s: Any, causal: bool) -> None:
    out, lse, sequences, others, most, most_keys, seed, offset, _ = s["forward"]
    # Its results are new tensors; where they are copied to is not part of the time.
    s["library"] = torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
        s["do"], s["q"], s["k"], s["v"], out, lse, seed, offset, None,
        sequences, others, most, most_keys, 0.0, causal,
    )  # fmt: skip


def want(s: Any, causal: bool) -> list[torch.Tensor]:
    """The gradients of the first head, in float32."""
    q, k, v, do = (s[name][0, 0].float() for name in ("q", "k", "v", "do"))
    scale = q.shape[-1] ** -0.5
    p = q @ k.T * scale
    if causal:
        p.masked_fill_(torch.ones_like(p, dtype=torch.bool).triu_(1), float("-inf"))
    p = torch.softmax(p, 1)
    dp = do @ v.T
    g = p * (dp - (p * dp).sum(1, keepdim=True))
    return [g @ k * scale, g.T @ q * scale, p.T @ do]


def check(s: Any, causal: bool) -> None:
    results = s.pop("library", None) or [s[name] for name in ("dq", "dk", "dv")]
    for name, got, right in zip(("dq", "dk", "dv"), results, want(s, causal)):
        error = float((got[0, 0].float() - right).abs().max())
        limit = 0.02 * float(right.abs().max()) + 0.01
        assert error <= limit, f"{name} is off by {error}"
        assert bool(torch.isfinite(got).all()), name


def backward_rows(kernels: dict[str, dict[str, Any]]) -> Iterator[tuple[gpu.Row, float]]:
    for d in (64, 128):
        for tokens in (4096, 16384):
            for causal in (False, True):
                shape = (TOKENS // tokens, WIDTH // d, tokens, d)

                def make(shape: Any = shape, causal: bool = causal) -> Any:
                    s = {x: gpu.random(shape, torch.bfloat16) for x in ("q", "k", "v", "do")}
                    s["forward"] = forward(s["q"], s["k"], s["v"], causal)
                    s["o"] = s["forward"][0].contiguous()
                    s["lse2"] = s["forward"][1].reshape(shape[:3]) * 1.4426950408889634
                    s["delta"] = torch.empty_like(s["lse2"])
                    for name in ("dq", "dk", "dv"):
                        s[name] = torch.empty_like(s["q"])
                        gpu.poison(s[name])
                    return s

                competitors: dict[str, Any] = {
                    name: [Variant(config, own, causal) for config in CONFIGS[d]]
                    for name, own in kernels.items()
                }
                competitors["library"] = functools.partial(backward, causal=causal)
                flops = 10.0 * TOKENS * WIDTH * tokens / (2 if causal else 1)
                yield gpu.Row(
                    f"attention backward bf16 d{d} T{tokens} {'causal' if causal else 'full'}",
                    make,
                    competitors,
                    functools.partial(check, causal=causal),
                    0,
                ), flops


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    kernels = {
        name: gpu.load_kernels(compiler, KERNELS) for name, compiler in gpu.compilers().items()
    }
    results: list[Any] = []
    report: dict[str, Any] = {"environment": gpu.environment(), "rows": results}
    for row, flops in backward_rows(kernels):
        if arguments.only not in row.work:
            continue
        gpu.measure(row, arguments.rounds)
        speeds = {}
        for who, result in row.results.items():
            if "ms" in result:
                speeds[who] = result["TFLOP/s"] = flops / result["ms"] / 1e9
        results.append({"work": row.work, "results": row.results})
        cells = [f"{who} {speed:.0f}" for who, speed in speeds.items()]
        mine, library = speeds.get("tessera"), speeds.get("library")
        if mine and library:
            facts = row.results["tessera"]
            cells.append(f"of library {mine / library:.2f} {facts['config']}")
            cells.append(f"{facts.get('n_regs')} registers, {facts.get('n_spills')} spilled")
        errors = [who for who, result in row.results.items() if "ms" not in result]
        cells += [f"{who}: {row.results[who]['error'][:80]}" for who in errors]
        print(f"{row.work:42}", "  ".join(cells), flush=True)
        if arguments.json:
            pathlib.Path(arguments.json).write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
