# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.compile(model, backend="tessera")`."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

from tessera.torch.attention_masks import simplify_masks
from tessera.torch.garbage import collected_rarely
from tessera.torch.installation import install
from tessera.torch.inductor_patches import patch_inductor
from tessera.torch.progress import told

PATCHES: Mapping[str, Any] = {"cpu_backend": "triton"}
"""The settings of Inductor's by which it makes kernels for Tessera."""


def compile_graph(
    graph: Any,
    example_inputs: Sequence[Any],
    *,
    mode: Optional[str] = None,
    options: Optional[Mapping[str, Any]] = None,
) -> Any:
    """Compiles a graph of torch's operators; the function behind `backend="tessera"`.

    `mode` and `options` are those of Inductor, as torch.compile takes them. Raises SettingError
    (E062, E075, E077) if torch, or a module that it has loaded, is incompatible.
    """
    install(compile_graph)
    import torch

    patch_inductor()
    simplify_masks(graph)
    settings = torch._TorchCompileInductorWrapper(mode, options, None).config
    from torch._inductor.compile_fx import compile_fx

    if not any(getattr(getattr(x, "device", None), "type", "") == "cuda" for x in example_inputs):
        # Inductor has no code to measure a CPU's fused kernels with.
        settings = {"benchmark_epilogue_fusion": False, **settings}

    with collected_rarely(), told(graph):
        return compile_fx(graph, example_inputs, config_patches={**settings, **PATCHES})
