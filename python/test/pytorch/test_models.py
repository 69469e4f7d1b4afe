# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled modules and functions give what they give eagerly, gradients too."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F

import tessera

pytestmark = pytest.mark.usefixtures("fresh_compiler")


class Block(torch.nn.Module):
    """A block of a transformer with a gated MLP."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm = torch.nn.LayerNorm(width)
        self.inputs = torch.nn.Linear(width, 3 * width)
        self.gate = torch.nn.Linear(width, 2 * width)
        self.up = torch.nn.Linear(width, 2 * width)
        self.down = torch.nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.inputs(self.norm(x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (q, k, v))
        scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        x = x + (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return x + self.down(F.silu(self.gate(x)) * self.up(x))


def kernels_of(function, *args):
    """The names of the Triton kernels that Inductor makes of a function."""
    from torch._inductor.utils import run_and_get_code

    result, codes = run_and_get_code(function, *args)
    return result, [code.count("async_compile.triton(") for code in codes], codes


def test_a_transformer_block_and_its_gradients() -> None:
    model = Block()
    compiled = torch.compile(model, backend="tessera", fullgraph=True)
    x = torch.randn(2, 9, 32)
    with torch.no_grad():
        result, counts, codes = kernels_of(compiled, x)
    assert sum(counts) > 0 and "cpp_fused" not in codes[0]
    torch.testing.assert_close(result, model(x))

    wanted = torch.autograd.grad(model(x).square().sum(), list(model.parameters()))
    found = torch.autograd.grad(compiled(x).square().sum(), list(model.parameters()))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


def softmax_of_long_rows(x):
    return torch.softmax(x, -1), x.amax(-1), x.argmin(0)


def scans(x):
    return x.cumsum(0), x.cummax(-1), x.var(0)


def integers(x):
    n = (x * 50).to(torch.int32)
    return n // 7, n % -7, n << 2, n.bitwise_and(12), n.to(torch.int8), n.ne(0).any(0)


def indices(x):
    at = (x * 1000).long() % x.shape[0]
    return x[at[:, 0]], torch.zeros_like(x).scatter_add(0, at, x), x.flip(0).roll(3, 1)


def narrow(x):
    y = x.bfloat16()
    return F.gelu(y) * y.tanh(), y.half()


@pytest.mark.parametrize("function", [softmax_of_long_rows, scans, integers, indices, narrow])
def test_functions(function) -> None:
    x = torch.randn(70, 1100)
    compiled = torch.compile(function, backend="tessera", fullgraph=True)
    result, counts, _ = kernels_of(compiled, x)
    assert sum(counts) > 0
    tolerance = (
        {"rtol": 1.6e-2, "atol": 1e-3} if function is narrow else {"rtol": 1e-4, "atol": 1e-4}
    )
    torch.testing.assert_close(result, function(x), **tolerance)


def test_shapes_that_change_are_compiled_once() -> None:
    compiled = torch.compile(lambda x: (x.sin() + 1).sum(-1), backend="tessera", dynamic=True)
    from torch._dynamo.utils import counters

    for rows, columns in ((3, 17), (5, 64), (8, 130), (2, 1025)):
        x = torch.randn(rows, columns)
        torch.testing.assert_close(compiled(x), (x.sin() + 1).sum(-1), rtol=1e-4, atol=1e-4)
    assert counters["stats"]["unique_graphs"] == 1


def test_arguments_that_are_written() -> None:
    def update(x, y):
        x.mul_(2).add_(y)
        return y.relu_()

    compiled = torch.compile(update, backend="tessera", fullgraph=True)
    x, y = torch.randn(33), torch.randn(33)
    wanted_x, wanted_y = x.clone(), y.clone()
    update(wanted_x, wanted_y)
    result = compiled(x, y)
    torch.testing.assert_close((x, y, result), (wanted_x, wanted_y, wanted_y))


def test_views_at_odd_addresses() -> None:
    compiled = torch.compile(lambda x: x * 2 + 1, backend="tessera")
    whole = torch.randn(1001)
    for start in (0, 1, 3):
        part = whole[start : start + 900]
        torch.testing.assert_close(compiled(part), part * 2 + 1)


def test_nothing_and_one_element() -> None:
    compiled = torch.compile(lambda x: (x.exp().sum(), x + 1), backend="tessera")
    for shape in ((0,), (1,), (0, 3)):
        x = torch.randn(shape)
        torch.testing.assert_close(compiled(x), (x.exp().sum(), x + 1))


def test_a_tensor_of_no_dimension_that_is_written_in_place() -> None:
    # The memory of what the backward pass is given is used again.
    x, y = (torch.tensor(value, requires_grad=True) for value in (1.5, -2.0))
    compiled = torch.compile(torch.copysign, backend="tessera")
    wanted = torch.autograd.grad(torch.copysign(x, y), [x, y])
    torch.testing.assert_close(torch.autograd.grad(compiled(x, y), [x, y]), wanted)


def test_weights_are_transposed_in_registers(monkeypatch) -> None:
    from tessera.runtime.kernel import CompiledKernel

    kernels: list[CompiledKernel] = []
    extend = CompiledKernel._extend
    monkeypatch.setattr(
        CompiledKernel, "_extend", lambda self, other: kernels.append(self) or extend(self, other)
    )
    # More rows than a GPU's grid has programs along its second axis, where they would go on along
    # the third.
    weight = torch.randn(512, 160, 3, 3)
    compiled = torch.compile(
        lambda x: x.contiguous(memory_format=torch.channels_last), backend="tessera"
    )
    result, _, codes = kernels_of(compiled, weight)
    assert "ynumel = 81920" in codes[0] and "num_programs" not in codes[0]
    assert torch.equal(result, weight)
    assert result.is_contiguous(memory_format=torch.channels_last)
    # What is behind `//` is known to be neighbours, for all but very long grids.
    assert any("transposed in registers" in text for x in kernels for text in x.remarks)


def test_inductors_own_code_is_as_it_was(monkeypatch) -> None:
    from torch._inductor import config
    from torch._inductor.kernel.flex import flex_attention as module

    from tessera.torch import inductor_patches

    inductor_patches.patch_inductor()  # what the first compilation of a process does
    assert not inductor_patches._makes_kernels()
    asked = []
    monkeypatch.setattr(inductor_patches, "_makes_kernels", lambda: asked.append(1))
    # With what is for C++, its template looks at its arguments.
    with pytest.raises(TypeError, match="lower_cpu"):
        module.lower_cpu("no query")
    assert asked
    monkeypatch.undo()
    with config.patch(cpu_backend="triton"):
        assert inductor_patches._makes_kernels()
        with pytest.raises(TypeError, match="flex_attention"):
            module.lower_cpu("no query")


def test_an_index_out_of_bounds_is_told() -> None:
    compiled = torch.compile(lambda x, at: x[at] * 2, backend="tessera")
    x, at = torch.randn(10), torch.tensor([3, 9])
    torch.testing.assert_close(compiled(x, at), x[at] * 2)
    with pytest.raises(tessera.KernelAssertionError, match="index out of bounds"):
        compiled(x, torch.tensor([3, 10]))


class Fire(torch.nn.Module):
    """SqueezeNet's: convolutions of what convolutions have given, side by side."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.squeeze = torch.nn.Conv2d(channels, 6, 1)
        self.one = torch.nn.Conv2d(6, channels // 2, 1)
        self.three = torch.nn.Conv2d(6, channels // 2, 3, padding=1)

    def forward(self, x):
        x = self.squeeze(x).relu()
        return torch.cat([self.one(x).relu(), self.three(x).relu()], 1)


def test_results_of_convolutions_are_concatenated_channels_last() -> None:
    from torch._inductor import config, ir
    from torch._inductor.utils import get_code, run_and_get_code

    untouched = ir.FlexibleLayout.contiguous_strides
    model = torch.nn.Sequential(Fire(16), Fire(16), torch.nn.Conv2d(16, 8, 1))
    x = torch.randn(2, 16, 9, 11)
    with torch.no_grad():
        compiled = torch.compile(model, backend="tessera")
        found, (code,) = run_and_get_code(compiled, x)
        torch.testing.assert_close(found, model(x), rtol=1e-4, atol=1e-5)
        assert code.count("empty_strided_cpu((2, 16, 9, 11), (1584, 1, 176, 16)") >= 2
        # Channels first is nothing but the input.
        assert "empty_strided_cpu((2, 16, 9, 11), (1584, 99, 11, 1)" not in code
        # Inductor's C++ has it as it was. Compiling it takes ten seconds, and shows nothing more.
        torch._dynamo.reset()
        with config.patch({"cpp.vec_isa_ok": True}):
            codes = get_code(torch.compile(model), x)
        assert "empty_strided_cpu((2, 16, 9, 11), (1584, 99, 11, 1)" in "".join(codes)
    assert ir.FlexibleLayout.contiguous_strides is untouched


@pytest.mark.usefixtures("one_configuration")
def test_gradients_of_concatenated_convolutions() -> None:
    model = torch.nn.Sequential(Fire(16), torch.nn.MaxPool2d(2), Fire(16))

    def step(function, x):
        for parameter in model.parameters():
            parameter.grad = None
        function(x).square().mean().backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    compiled = torch.compile(model, backend="tessera", dynamic=True)
    for size in ((2, 16, 9, 11), (3, 16, 8, 8)):
        x = torch.randn(size)
        for found, wanted in zip(step(compiled, x), step(model, x)):
            torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-5)


CONVOLUTIONS = {
    "weights larger than images": (lambda: torch.nn.Conv2d(32, 32, 3), 6, False),
    "images larger than weights": (lambda: torch.nn.Conv2d(32, 32, 3), 24, True),
    "nothing to turn": (lambda: torch.nn.Conv2d(64, 64, 1), 4, True),
    "nothing to turn, by channel": (lambda: torch.nn.Conv2d(64, 64, 3, groups=64), 4, True),
    "turned already": (
        lambda: torch.nn.Conv2d(32, 32, 3).to(memory_format=torch.channels_last), 6, True
    ),
    "transposed": (lambda: torch.nn.ConvTranspose2d(32, 16, 3), 6, False),
    "in three dimensions": (lambda: torch.nn.Conv3d(8, 8, (1, 3, 3)), 6, True),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_weights_are_turned_where_it_pays(name, monkeypatch) -> None:
    from torch._inductor import config
    from torch._inductor.graph import GraphLowering

    make, extent, turned = CONVOLUTIONS[name]
    model = torch.nn.Sequential(make(), torch.nn.ReLU())
    extents = (extent,) * (len(model[0].weight.shape) - 2)
    x = torch.randn(1, model[0].in_channels, *extents)
    compiled = torch.compile(model, backend="tessera")
    decided: list[bool] = []
    lower = GraphLowering.run

    # A compiler of C++ takes ten seconds for what is decided before it is called.
    is_asked_alone = False

    def run(graph, *args):
        decided.append(graph.layout_opt)
        if is_asked_alone:
            raise NotImplementedError("what is decided is known")
        return lower(graph, *args)

    monkeypatch.setattr(GraphLowering, "run", run)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
        model[0].weight.mul_(2)  # weights may change: nothing was kept of them
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
        assert decided == [turned]
        # Who asks for it has it, and Inductor's C++ as it was.
        torch._dynamo.reset()
        with config.patch(force_layout_optimization=True):
            compiled = torch.compile(model, backend="tessera")
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
        torch._dynamo.reset()
        is_asked_alone = name != "weights larger than images"
        if is_asked_alone:
            with pytest.raises(Exception, match="what is decided is known"):
                torch.compile(model)(x)
        else:
            torch.testing.assert_close(torch.compile(model)(x), model(x), rtol=1e-4, atol=1e-5)
        assert decided[1:] == [True, True]


def test_gradients_where_weights_are_not_turned() -> None:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(16, 32, 3), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
        torch.nn.Conv2d(32, 32, 3), torch.nn.MaxPool2d(2), torch.nn.Conv2d(32, 8, 1),
    )  # fmt: skip
    x = torch.randn(2, 16, 8, 8)
    compiled = torch.compile(model, backend="tessera")
    # The mean of what batch norm has centred has gradients that are nothing but rounding.
    wanted = torch.autograd.grad(model(x).square().mean(), list(model.parameters()))
    found = torch.autograd.grad(compiled(x).square().mean(), list(model.parameters()))
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("size", [(2, 3, 8, 8), (1, 3, 6, 4)])
def test_concatenations_of_all_sorts(size) -> None:
    """Along other dimensions, of what no convolution has given, of itself, of slices."""
    conv = torch.nn.Conv2d(3, 4, 3, padding=1)
    other = torch.nn.Conv2d(8, 5, 1)

    def function(x):
        y = conv(x)
        rows = torch.cat([y, y * 2], 2)
        both = torch.cat([y.relu(), y[:, ::2], x[:, :2]], 1)
        twice = torch.cat([y, y], 1)
        last = torch.cat([twice.sum(1, keepdim=True), x.mean((2, 3), keepdim=True).expand_as(x)], 1)
        return (
            rows.flip(2),
            other(both),
            other(twice.tanh()),
            last,
            torch.cat([y.sum((2, 3)), y[:, :, 0, 0]], 1),
        )

    x = torch.randn(size)
    with torch.no_grad():
        found = torch.compile(function, backend="tessera")(x)
        for a, b in zip(found, function(x)):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
            assert a.stride() == b.stride()


def test_configurations_are_measured_briefly() -> None:
    import time

    from torch._inductor.runtime import benchmarking, triton_heuristics

    from tessera.torch.inductor_patches import BriefBenchmarker

    class Original:
        known = 3

        def benchmark(self, *args, **kwargs):
            self.told = kwargs
            return 7

        def benchmark_gpu(self, call, benchmark_iters=100, memory_warmup_iters=100, **kwargs):
            pass

    calls = []

    def call():
        calls.append(1)
        time.sleep(0.002)

    brief = BriefBenchmarker(Original())
    for measure in (
        lambda: brief.benchmark(fn=call, device="cpu"),
        lambda: brief.benchmark_cpu(call, rep=100),
    ):
        calls.clear()
        assert measure() >= 2 and 3 <= len(calls) <= 7
    calls.clear()
    brief.benchmark(fn=lambda: calls.append(time.sleep(0.06)), device="cpu")
    assert len(calls) == 2
    assert brief.benchmark(call, (1,), {}, device="cpu") == 7 and brief.known == 3
    assert brief.told == {"device": "cpu"}
    # Of versions whose benchmarker counts calls, unless they are told how many.
    assert brief.benchmark(fn=call, device="cuda", rep=40) == 7
    assert brief.told == {"fn": call, "device": "cuda", "rep": 40, **BriefBenchmarker.OF_GPUS}
    brief.benchmark(fn=call, device="cuda:1", benchmark_iters=3)
    assert brief.told["benchmark_iters"] == 3

    class Older(Original):
        def benchmark_gpu(self, call, rep=100):
            pass

    brief = BriefBenchmarker(Older())
    brief.benchmark(fn=call, device="cuda")
    assert brief.told == {"fn": call, "device": "cuda"}

    compiled = torch.compile(lambda x: x.sum(-1), backend="tessera")
    compiled(torch.randn(20, 3000))
    benchmarker = triton_heuristics.benchmarker
    assert type(benchmarker) is BriefBenchmarker
    assert type(benchmarker._original) is not BriefBenchmarker
    # This is Inductor's benchmarker for GPUs. Without CUDA, torch 2.11 uses another one.
    of_gpus = BriefBenchmarker(benchmarking.InductorBenchmarker())._of_gpus
    assert of_gpus, "Inductor's benchmarker takes other arguments than it did"


def test_max_autotune_chooses_among_kernels() -> None:
    def function(x):
        return (x * 2).sum(-1)

    compiled = torch.compile(function, backend="tessera", options={"max_autotune_pointwise": True})
    x = torch.randn(20, 3000)
    torch.testing.assert_close(compiled(x), function(x), rtol=1e-4, atol=1e-4)


def test_an_unknown_option_is_torchs_error() -> None:
    compiled = torch.compile(lambda x: x + 1, backend="tessera", options={"max_autotun": True})
    with pytest.raises(Exception, match="max_autotun"):
        compiled(torch.ones(3))


def test_optimize_gives_a_module() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU())
    fast = tessera.torch.optimize(model)
    assert isinstance(fast, torch.nn.Module)
    x = torch.randn(4, 8)
    torch.testing.assert_close(fast(x), model(x))
    torch.testing.assert_close(tessera.torch.optimize(torch.sin)(x), torch.sin(x))
