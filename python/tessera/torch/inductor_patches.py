# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patches functions of Inductor that fail for Triton kernels on CPUs, and shortens its measurements.

Inductor calls them while it generates code, so they are replaced once it is loaded. Kernels of its
own C++ back end, in the same process, are generated as before.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import time
import types
from collections.abc import Callable
from typing import Any

from tessera.torch.launching import repeat_launches

_UNWRAPPING = ("triton_utils", "triton", "wrapper", "cpp_wrapper_gpu")
"""The modules of `torch._inductor.codegen` that have the function by its name."""


@functools.cache
def patch_inductor() -> None:
    """Mends them all, once, has launches need no Python (launching.py), and has layers that repeat
    compiled once and the rest in parts (lowering.py)."""
    from tessera.torch import lowering
    from tessera.torch.workers import end_workers_at_once
    from tessera.torch.written_views import mend_written_views

    _load_tensors_without_dimensions()
    _have_grids_as_long_as_they_are()
    _add_biases_after_convolutions()
    _use_the_template_of_flex_attention()
    _concatenate_channels_last()
    _leave_large_weights_alone()
    _measure_configurations_briefly()
    mend_written_views(_makes_kernels)
    _put_back_what_measuring_changes()
    repeat_launches()
    end_workers_at_once()
    lowering.outline_before_lowering()


def _makes_kernels() -> bool:
    """True if Inductor generates kernels of Tessera for CPUs."""
    import torch._inductor.config as config

    return bool(config.cpu_backend == "triton")


def _load_tensors_without_dimensions() -> None:
    """There they are memory like any other. Inductor passes the value of one that nothing writes to,
    and may make a kernel's body and its signature on two sides of finding out that something does.
    """
    from torch._inductor.codegen import triton_utils
    from torch._inductor.virtualized import V

    original = triton_utils.should_unwrap_unspec_arg

    def should_unwrap(name: str) -> bool:
        if V.graph.get_current_device_or_throw().type == "cpu":
            return False
        return bool(original(name))

    for module_name in _UNWRAPPING:
        module = importlib.import_module(f"torch._inductor.codegen.{module_name}")
        if getattr(module, "should_unwrap_unspec_arg", None) is original:
            setattr(module, "should_unwrap_unspec_arg", should_unwrap)


def _have_grids_as_long_as_they_are() -> None:
    """A GPU's grid has 65,535 programs at most along its second axis. Inductor continues a longer
    one along the third axis, with arithmetic that hides which programs are neighbours. A CPU's grid
    has no such limit."""
    from torch._inductor.codegen import triton
    from torch._inductor.virtualized import V

    of_gpus = triton.get_max_y_grid

    def get_max_y_grid() -> int:
        device = getattr(V.graph, "current_device", None)
        return 2**31 - 1 if getattr(device, "type", "") == "cpu" else int(of_gpus())

    triton.get_max_y_grid = get_max_y_grid


def _add_biases_after_convolutions() -> None:
    """Inductor does so for GPUs. For CPUs it measures templates, which take no bias, with one
    argument too many."""
    from torch._inductor import config, utils
    from torch._inductor.kernel import conv
    from torch._inductor.lowering import aten, lowerings

    original = lowerings[aten.convolution.default]

    def convolution(x: Any, weight: Any, bias: Any, *args: Any, **kwargs: Any) -> Any:
        is_measured = config.max_autotune or config.max_autotune_gemm
        if (
            bias is None
            or x.get_device().type != "cpu"
            or not (_makes_kernels() and is_measured)
            or not utils._use_conv_autotune_backend("TRITON")
        ):
            return original(x, weight, bias, *args, **kwargs)
        result = original(x, weight, None, *args, **kwargs)
        extents = [*bias.get_size(), *[1] * (len(weight.get_size()) - 2)]
        return lowerings[aten.add](result, lowerings[aten.view](bias, extents))

    for name, lowering in list(lowerings.items()):
        if lowering is original:
            lowerings[name] = convolution
    conv.convolution = convolution


def _use_the_template_of_flex_attention() -> None:
    """For CPUs Inductor takes its template in C++, which the code that makes kernels cannot call."""
    from torch._inductor.kernel.flex import flex_attention as module

    in_cpp, lowering = module.lower_cpu, module.flex_attention
    while hasattr(lowering, "__wrapped__"):
        lowering = lowering.__wrapped__
    code = lowering.__code__
    if code.co_consts.count("cpu") != 1:  # not where it asks what it is to generate code for
        return
    constants = tuple("no device" if value == "cpu" else value for value in code.co_consts)
    as_for_gpus = types.FunctionType(
        code.replace(co_consts=constants),
        lowering.__globals__,
        lowering.__name__,
        lowering.__defaults__,
        lowering.__closure__,
    )

    def lower_cpu(*args: Any, **kwargs: Any) -> Any:
        return (as_for_gpus if _makes_kernels() else in_cpp)(*args, **kwargs)

    use_decoding = module._use_flex_decoding

    def use_flex_decoding(query: Any, *args: Any, **kwargs: Any) -> bool:
        # It asks how many multiprocessors the GPU has.
        return query.get_device().type != "cpu" and bool(use_decoding(query, *args, **kwargs))

    module.lower_cpu, module._use_flex_decoding = lower_cpu, use_flex_decoding


def _concatenate_channels_last() -> None:
    """A CPU's convolutions take and give images with channels last. Inductor concatenates their
    results with channels first, unless it finds a buffer that has them last. So kernels transpose
    the values they store to it, and another kernel transposes the whole for the next convolution.
    """
    from torch._inductor import ir
    from torch._inductor.virtualized import V

    original = ir.ConcatKernel.create.__func__

    def is_for_convolutions(inputs: Any, dim: int) -> bool:
        return (
            dim == 1
            and len(inputs[0].get_size()) == 4
            and inputs[0].get_device().type == "cpu"
            and V.graph.current_node in V.graph.nodes_prefer_channels_last
        )

    def create(cls: Any, inputs: Any, dim: int) -> Any:
        if not _makes_kernels() or not is_for_convolutions(inputs, dim):
            return original(cls, inputs, dim)
        contiguous_strides = ir.FlexibleLayout.contiguous_strides

        def channels_last(sizes: Any) -> Any:
            restore()  # of other calls the strides are others'
            if len(sizes) != 4:
                return contiguous_strides(sizes)
            return ir.make_channels_last_strides_for(sizes)

        def restore() -> None:
            ir.FlexibleLayout.contiguous_strides = staticmethod(contiguous_strides)

        ir.FlexibleLayout.contiguous_strides = staticmethod(channels_last)
        try:
            return original(cls, inputs, dim)
        finally:
            restore()

    ir.ConcatKernel.create = classmethod(create)


def _leave_large_weights_alone() -> None:
    """On a CPU, convolutions are faster with channels last, so Inductor chooses that layout
    everywhere. It converts the weights in each call, since they may change in between. With small
    images and large weights (ResNet-18, an image of 224x224) that takes longer than the layout
    saves.
    """
    from torch._inductor import config, graph

    original = graph.GraphLowering.decide_layout_opt

    def decide_layout_opt(gm: Any, *, is_inference: bool) -> bool:
        if not original(gm, is_inference=is_inference):
            return False
        is_given = config.force_layout_optimization or config.freezing
        return is_given or not _makes_kernels() or not turns_more_than_images(gm.graph)

    graph.GraphLowering.decide_layout_opt = staticmethod(decide_layout_opt)


def turns_more_than_images(graph: Any) -> bool:
    """True if the weights that a graph's convolutions convert to channels last have more elements
    than their images and results. Found by measurement (notes/Notebook.md)."""
    import torch

    weights = images = 0
    for node in graph.nodes:
        if node.target is not torch.ops.aten.convolution.default:
            continue
        tensors = [x.meta["val"] for x in (*node.args[:2], node)]
        known = all(isinstance(extent, int) for x in tensors for extent in x.shape)
        if not known or any(x.device.type != "cpu" or x.dim() != 4 for x in tensors):
            return False
        image, weight, result = tensors
        images += image.numel() + result.numel()
        # A computed weight is written in the layout that is needed.
        is_argument = node.args[1].op == "placeholder"
        if is_argument and not weight.is_contiguous(memory_format=torch.channels_last):
            weights += weight.numel()
    return bool(weights > images)


class BriefBenchmarker:
    """Inductor's benchmarker with fewer calls. It takes 120 milliseconds for each of a kernel's
    configurations on a CPU, a third of the time of compiling a model for training. On a GPU it
    takes 40, a tenth. Here the minimum of 20 calls on a GPU replaces that of 100."""

    OF_GPUS = {"benchmark_iters": 20, "memory_warmup_iters": 10}
    """Calls of the kernel, and how often the cache is emptied before them."""

    def __init__(self, original: Any) -> None:
        self._original = original
        parameters = inspect.signature(original.benchmark_gpu).parameters
        self._of_gpus = self.OF_GPUS if self.OF_GPUS.keys() <= parameters.keys() else {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def benchmark(self, *args: Any, **kwargs: Any) -> float:
        """As Inductor calls it: milliseconds of a function without arguments, `fn` or the first."""
        function = args[0] if args else kwargs.get("fn")
        device = str(kwargs.get("device")).partition(":")[0]
        if device == "cpu" and not args[1:] and callable(function):
            return self.benchmark_cpu(function)
        fewer = self._of_gpus if device == "cuda" else {}
        return float(self._original.benchmark(*args, **{**fewer, **kwargs}))

    def benchmark_cpu(self, function: Callable[[], Any], *args: Any, **kwargs: Any) -> float:
        """Milliseconds of the fastest call there was in 10 of them: what else the machine does only
        makes calls longer. One call comes before that, and two are timed, unless one is longer than
        50 milliseconds."""
        function()
        times: list[float] = []
        while (spent := sum(times)) < 0.01 or (len(times) < 2 and spent < 0.05):
            start = time.perf_counter()
            function()
            times.append(time.perf_counter() - start)
        return min(times) * 1e3


def _measure_configurations_briefly() -> None:
    """A kernel's configurations, that is; templates are measured elsewhere."""
    from torch._inductor.runtime import triton_heuristics

    triton_heuristics.benchmarker = BriefBenchmarker(triton_heuristics.benchmarker)


def _put_back_what_measuring_changes() -> None:
    """If a user's kernel has several configurations, Inductor restores the arrays that the kernel
    names, as Triton does. Tessera does so with all that are read and written (tuning/arrays.py).
    """
    from torch._inductor import ir

    original = ir.UserDefinedTritonKernel.get_kernel_and_metadata

    def get_kernel_and_metadata(self: Any) -> Any:
        kernel, configs, restored, zeroed = original(self)
        if _makes_kernels() and len(configs) > 1 and hasattr(self, "mutable_args"):
            restored = [*restored, *_read_and_written(self, {*restored, *zeroed})]
        return kernel, configs, restored, zeroed

    ir.UserDefinedTritonKernel.get_kernel_and_metadata = get_kernel_and_metadata


def _read_and_written(call: Any, known: set[str]) -> list[str]:
    """The arguments of a call, but for those `known`, whose memory it both reads and writes."""
    buffers = {
        name: value.get_name() for name, value in call.kwargs.items() if hasattr(value, "get_name")
    }
    written = {value.get_name() for value in call.mutable_args}
    accesses = getattr(call, "arg_accesses", None)
    if accesses is None:  # torch 2.11, which does not say what is read
        read = set(buffers.values())
    else:
        read = {buffers.get(access.name) for access in accesses.read_writes.reads}
    return [name for name in buffers if buffers[name] in written & read and name not in known]
