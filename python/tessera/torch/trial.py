# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small program, for a version of torch that Tessera was not tested with.

It compiles the forward and the backward formula of a layer for the CPU: a graph through Inductor's
passes, lowering and code, kernels with reductions, and launches. It has no gradients of autograd's,
for which AOTAutograd compiles later, under locks and metrics that Dynamo has if it asks for this.
"""

from __future__ import annotations

from typing import Any, Callable

from tessera.torch import launching

_ROWS, _COLUMNS = 12, 40


def run_small_program(compile_graph: Callable[..., Any]) -> None:
    """Compiles a small program by the back end. Raises RuntimeError if its results differ from
    torch's, or if it has no kernel of Tessera's. Also raises Inductor's exceptions."""
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    # The caller may be in a trace of Dynamo or under modes, which must not see this program.
    with torch._guards.tracing(None), _disable_current_modes(), torch.no_grad():
        with torch.inference_mode(False), torch.autocast("cpu", enabled=False):
            _run(compile_graph)


def _run(compile_graph: Callable[..., Any]) -> None:
    import torch

    generator = torch.Generator().manual_seed(0)
    shapes = [(_ROWS, _COLUMNS), (_COLUMNS, _COLUMNS), (_COLUMNS,), (_ROWS, _COLUMNS)]
    arguments = [
        torch.randn(shape, generator=generator, dtype=torch.float32, device="cpu")
        for shape in shapes
    ]
    graph = torch.fx.symbolic_trace(_layer)
    launches = launching.first_launches
    # Not torch.compile: it may be Dynamo that has asked for this.
    compiled = compile_graph(graph, arguments, options={"compile_threads": 1})
    found = compiled(*arguments)
    if launching.first_launches == launches:
        raise RuntimeError("Inductor launched no kernel of Tessera's")
    for ours, theirs in zip(found, _layer(*arguments), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def _layer(x: Any, weight: Any, bias: Any, gradient: Any) -> Any:
    import torch

    y = torch.softmax(x @ weight + bias, -1)
    return y, y * (gradient - (y * gradient).sum(-1, keepdim=True))
