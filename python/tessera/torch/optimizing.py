# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`model = tessera.torch.optimize(model)`."""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional, Sequence

from tessera.torch.activation import activate


def optimize(
    model: Any, *, dynamic: Optional[bool] = None, cuda_graphs: bool = True, tune: bool = False
) -> Any:
    """A model, or a function of tensors, compiled by Tessera, with settings chosen.

    `activate` and torch.compile in one. On a GPU, what runs without gradients (within
    `torch.no_grad()` or `torch.inference_mode()`) and for known shapes is a CUDA graph. Its results
    are the caller's to keep, unlike those of torch's mode "reduce-overhead". Options:
      dynamic: shapes that change are found out after the second one, and then have no CUDA graph;
        True takes all shapes for changing, False compiles, and records, for each.
      cuda_graphs: False for none. A CUDA graph keeps memory for all that is computed in it.
      tune: whether matmuls and convolutions are measured, Tessera's kernels against those of
        torch's libraries, in the first call, which takes minutes then.

    Raises SettingError (E062, E075, E077) where torch does not fit.
    """
    activate()
    import torch

    return torch.compile(model, backend=_backend(bool(cuda_graphs), bool(tune)), dynamic=dynamic)


@functools.cache  # torch compiles anew for a back end that is another object
def _backend(cuda_graphs: bool, tune: bool) -> Callable[..., Any]:
    def tessera_optimized(graph: Any, example_inputs: Sequence[Any]) -> Any:
        from tessera.torch import graphs
        from tessera.torch.backend import compile_graph

        options = {"max_autotune": True} if tune else {}
        if not (cuda_graphs and graphs.fit(example_inputs)):
            return compile_graph(graph, example_inputs, options=options)
        options.update(graphs.SETTINGS)
        return graphs.lasting(graph, lambda: compile_graph(graph, example_inputs, options=options))

    return tessera_optimized
