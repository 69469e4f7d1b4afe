# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs that are divided compute the same by the same kernels, whichever process made their code."""

from __future__ import annotations

import copy
import difflib
import itertools
import os
import re
import types

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F

import tessera.torch.division as division
from tessera.settings import settings
from tessera.torch.forked_tasks import ForkedTasks

from .test_deduplication import Layers, Residual, compare, devices, random_layer, random_weights
from .test_models import Block

pytestmark = pytest.mark.usefixtures("one_configuration")


@pytest.fixture(autouse=True)
def short_parts(fresh_compiler, monkeypatch):
    """Parts of small graphs, by three processes, and none out of a cache. Gives what these processes
    could not do; a test in which there is such takes it off this list."""
    import torch._functorch.config as functorch_config
    from torch._inductor import config

    monkeypatch.setattr(division, "_LEAST_OPS", 4)
    monkeypatch.setattr(division, "_ENOUGH_OPS", 8)
    failures = []
    note = ForkedTasks._note_failure

    def note_failure(self, text):
        failures.append(text)
        note(self, text)

    monkeypatch.setattr(ForkedTasks, "_note_failure", note_failure)
    with config.patch(fx_graph_cache=False), functorch_config.patch(enable_autograd_cache=False):
        with settings.override(codegen_processes=3, deduplicate=False):
            yield failures
    assert not failures, "\n".join(failures)


@pytest.fixture
def parts(monkeypatch):
    """How many each graph has."""
    import tessera.torch.lowering as lowering  # which loads Inductor

    found = []
    original = lowering.divide

    def divide(graph_module):
        count = original(graph_module)
        graph_module.graph.lint()
        found.append(count)
        return count

    monkeypatch.setattr(lowering, "divide", divide)
    return found


def get_code(function, *args):
    from torch._inductor.utils import run_and_get_code

    torch.compiler.reset()
    with torch.no_grad():
        result, (code,) = run_and_get_code(torch.compile(function, backend="tessera"), *args)
        torch.testing.assert_close(result, function(*args), rtol=1e-4, atol=1e-4)
    return code


def count_launches(code):
    return len(re.findall(r"\.run\(", code))


@devices
@pytest.mark.in_turn("layer")
@pytest.mark.parametrize("layer", [Residual, Block])
def test_the_kernels_are_those_of_the_whole_graph(parts, device, layer) -> None:
    model = Layers(layer, 3).to(device).eval()
    shape = (2, 9, 32) if layer is Block else (2, 8, 20, 24)
    x = torch.randn(*shape, device=device)
    code = get_code(model, x)
    assert parts[0] >= 3 and code.count("def part_") == parts[0]
    with settings.override(codegen_processes=1):
        whole = get_code(model, x)
    assert "def part_" not in whole
    assert count_launches(code) == count_launches(whole)


def test_code_does_not_depend_on_processes(monkeypatch) -> None:
    """So that Inductor's caches hold for each machine. What it is compiled for a fork cannot know."""
    import tessera.torch.lowering as lowering

    def target():
        return types.SimpleNamespace(hash=lambda: f"known to {os.getpid()}")

    if torch.cuda.is_available():
        torch.zeros(1, device="cuda")
    monkeypatch.setattr(torch.utils._triton, "triton_backend", target)

    model, x = Layers(Residual, 3).eval(), torch.randn(2, 8, 20, 24)
    codes = []
    for processes in (2, 7):
        torch.utils._triton.triton_hash_with_backend.cache_clear()
        with settings.override(codegen_processes=processes):
            codes.append(get_code(model, x))
    monkeypatch.setattr(lowering, "CodeTasks", lambda *args: None)  # all of it here
    codes.append(get_code(model, x))
    torch.utils._triton.triton_hash_with_backend.cache_clear()
    first, *others = (re.sub("# AOT ID: .*|# kernel path: .*", "", code) for code in codes)
    assert "def part_2" in first
    for other in others:
        assert list(difflib.unified_diff(first.split("\n"), other.split("\n"), n=0)) == []


@devices
def test_training(parts, device) -> None:
    """Gradients, and statistics, which the parts write where they are kept."""
    model = Layers(Residual, 3).to(device)
    other = copy.deepcopy(model)
    compiled = torch.compile(other, backend="tessera", fullgraph=True)
    x = torch.randn(4, 8, 20, 24, device=device)
    for _ in range(2):
        for called in (model, compiled):
            called(x).square().mean().backward()
    for (name, one), two in zip(model.named_parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(two.grad, one.grad, rtol=2e-3, atol=2e-4, msg=name)
    for (name, one), two in zip(model.named_buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(two, one, rtol=1e-3, atol=1e-4, msg=name)
    assert len(parts) == 2 and min(parts) >= 3


def test_views_from_part_to_part(parts) -> None:
    """Halves of images, turned, and heads of rows: memory of what another part gives."""
    weights = [torch.randn(8, 8, 1, 1) / 3 for _ in range(4)]
    matrix = torch.randn(24, 24) / 5

    def run(x):
        for weight in weights:
            left, right = x.chunk(2, 1)
            y = F.conv2d(torch.cat([right.sigmoid(), left * 2], 1), weight).tanh()
            x = y.view(2, 2, 4, 6, 4).transpose(1, 2).reshape(2, 8, 6, 4) + x.flip(1) * 0.5
            x = (x.permute(0, 2, 3, 1).reshape(2, 192) @ torch.ones(192, 192).div(192)).cos().view(
                2, 8, 6, 4
            ) + x
        rows = x.reshape(16, 24) @ matrix
        return x[:, 1:], rows.t(), rows[2:].sigmoid() @ matrix

    compare(run, torch.randn(2, 8, 6, 4))
    assert parts[0] >= 3


def test_strides_that_are_asked_for(parts) -> None:
    """By number, which is that of memory, so an image must not have been turned."""
    convolution = torch.nn.Conv2d(8, 8, 3, padding=1)

    def run(x):
        for _ in range(4):
            x = F.gelu(convolution(x)) * 0.5 + x.sin()
            x = torch.as_strided(x, (2, 8, 6, 4), (192, 1, 8, 48)).cos() + x
        return x

    with torch.no_grad():
        compare(run, torch.randn(2, 8, 6, 4))


def test_tensors_that_lowering_makes(parts, short_parts, monkeypatch) -> None:
    """Are where the code looks for them, and of the process that runs it."""
    from torch._inductor import lowering
    from torch._inductor.virtualized import V

    sin = torch.ops.aten.sin.default
    original = lowering.lowerings[sin]

    def lower_sin(x):
        name = f"number_{len(V.graph.constants)}"
        constant = V.graph.add_tensor_constant(torch.full((32,), 7.0), name)
        return lowering.lowerings[torch.ops.aten.add.Tensor](original(x), constant)

    monkeypatch.setitem(lowering.lowerings, sin, lower_sin)
    weight = torch.randn(32, 32) / 6

    def run(x):
        for _ in range(4):
            x = torch.tanh(x @ weight) * 0.5 + x.sigmoid()
        x = (x @ weight).sin()
        for _ in range(4):
            x = torch.tanh(x @ weight) * 0.5 + x.sigmoid()
        return x

    x = torch.randn(8, 32)
    with torch.no_grad():
        result = torch.compile(run, backend="tessera")(x)
        for _ in range(4):
            x = torch.tanh(x @ weight) * 0.5 + x.sigmoid()
        x = (x @ weight).sin() + 7
        for _ in range(4):
            x = torch.tanh(x @ weight) * 0.5 + x.sigmoid()
    torch.testing.assert_close(result, x, rtol=1e-4, atol=1e-4)
    assert parts[0] >= 2
    assert all("tensors cannot be sent" in failure for failure in short_parts)
    short_parts.clear()


def test_writes_to_arguments(parts) -> None:
    """That are read before, by others than the part that writes, as they are, and as views."""
    weight = torch.randn(16, 16) / 4

    def run(x, a, b, c, d):
        for _ in range(5):
            x = torch.tanh(x @ weight) * (a + 1) + c.view(4, 64)[:, :16].repeat(4, 1).cos()
        kept = a.clone()
        a.copy_(b + 1)  # not b: torch loses what is swapped
        b.copy_(kept.sin())
        for _ in range(5):
            x = torch.tanh(x @ weight) * b + a.sin()
        c.copy_(x * 2)
        d.add_(x.sum(0))
        for _ in range(4):
            x = (x @ weight).sigmoid() + d
        return x, d * 2

    torch.manual_seed(1)
    given = [torch.randn(16, 16) for _ in range(4)] + [torch.randn(16)]
    for repetition in range(2):
        ours, eager = [x.clone() for x in given], [x.clone() for x in given]
        compiled = torch.compile(run, backend="tessera", fullgraph=True)
        torch.testing.assert_close(compiled(*ours), run(*eager), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-4)
    assert parts[0] >= 1


def test_dropout_is_that_of_the_whole_graph(parts) -> None:
    def run(x):
        for _ in range(6):
            x = F.dropout(torch.tanh(x @ weight), 0.4) + x
        return x

    weight, x = torch.randn(16, 16) / 4, torch.randn(64, 16)
    results = []
    for processes in (3, 1):
        with settings.override(codegen_processes=processes):
            torch.compiler.reset()
            torch.manual_seed(3)
            results.append(torch.compile(run, backend="tessera")(x))
    torch.testing.assert_close(*results)
    assert len(parts) == 1 and parts[0] >= 2


def test_shapes_that_change(parts) -> None:
    model = Layers(Block, 2)
    compiled = torch.compile(model, backend="tessera", dynamic=True)
    with torch.no_grad():
        for rows in (3, 5, 8):
            x = torch.randn(2, rows, 32)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)
    assert parts[0] == 0


@devices
def test_graphs_that_are_recorded(parts, device) -> None:
    model = Layers(Block, 3).to(device)
    options = {"triton.cudagraphs": True}
    compiled = torch.compile(model, backend="tessera", options=options)
    with torch.no_grad():
        for _ in range(4):
            x = torch.randn(2, 9, 32, device=device)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)
    assert parts[0] >= 3


def test_nothing_is_divided_while_inductor_measures(parts, monkeypatch) -> None:
    from torch._inductor import config

    from tessera.torch.lowering import count_processes

    assert count_processes() == 3
    with config.patch(max_autotune=True):
        assert count_processes() == 1
    with settings.override(codegen_processes=0):
        with config.patch(compile_threads=1):
            assert count_processes() == 1
        with config.patch(compile_threads=1000):
            assert count_processes() == min(len(os.sched_getaffinity(0)), 12)
            monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")
            assert count_processes() == 1


def test_what_another_process_cannot_do(parts, short_parts, monkeypatch) -> None:
    """Is done here: no process may end or fail for another's sake. That it is so is counted."""
    import tessera.torch.lowering as lowering
    from torch._dynamo.utils import counters

    def prepare(*args):
        raise RuntimeError("not here")

    monkeypatch.setattr(lowering, "_prepare_fork", prepare)
    before = counters["tessera"]["codegen_failed_in_fork"]
    compare(Layers(Block, 3), torch.randn(2, 9, 32))
    assert parts[0] >= 3
    assert counters["tessera"]["codegen_failed_in_fork"] - before == len(short_parts) == 2
    assert all("not here" in failure for failure in short_parts)
    short_parts.clear()


class Images(torch.nn.Module):
    """Convolutions of many kinds, of which torch chooses the implementation by asking CUDA."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = Residual()
        self.by_channel = torch.nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=8)
        self.narrow = torch.nn.Conv2d(8, 16, 1, bias=False)
        self.up = torch.nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.line = torch.nn.Conv1d(8, 8, 5, padding=2)
        self.wide = torch.nn.Conv3d(8, 8, 3, padding=1)

    def forward(self, x):
        x = self.up(torch.relu(self.narrow(self.by_channel(self.layers(x))))) + x.sin()
        x = torch.relu(self.line(x.mean(2))).unsqueeze(2) + x
        return torch.relu(self.wide(x.unsqueeze(2)).squeeze(2)).cos()


@devices
@pytest.mark.parametrize(
    "dtype, memory_format",
    [(torch.float32, "channels_last"), (torch.bfloat16, "contiguous_format")],
    ids=str,
)
def test_forks_need_not_ask_which_convolution(
    parts, monkeypatch, device, dtype, memory_format
) -> None:
    """As they cannot on a GPU. On a CPU what would ask raises there."""
    import tessera.torch.lowering as lowering
    from tessera.torch.cuda_in_forks import select_backends

    here, select = os.getpid(), torch._C._select_conv_backend
    asked = []

    def ask(*args, **kwargs):
        if os.getpid() != here:
            strides = [kwargs[x].stride() for x in ("input", "weight")]
            raise RuntimeError(f"asked in a fork: {kwargs} {strides}")
        asked.append(kwargs)
        return select(*args, **kwargs)

    if device == "cpu":
        monkeypatch.setattr(torch._C, "_select_conv_backend", ask)
        monkeypatch.setattr(
            lowering,
            "ask_cuda",
            lambda *args: {"_C._select_conv_backend": select_backends(*args)},
        )
    model = Images().to(device, dtype)
    x = torch.randn(2, 8, 8, 12, device=device, dtype=dtype)
    x = x.contiguous(memory_format=getattr(torch, memory_format))
    tolerance = 1e-3 if dtype == torch.float32 else 0.1
    weights = list(model.parameters())
    compare(model, x, gradients=weights, tolerance=tolerance)
    assert len(parts) == 2 and min(parts) >= 2
    assert asked or device != "cpu"


@pytest.mark.in_turn("seed")
@pytest.mark.parametrize("seed, deduplicate", [(seed, seed % 4 > 1) for seed in range(8)])
def test_random_layers(parts, monkeypatch, seed, deduplicate) -> None:
    """Cut anywhere: what would be one kernel is cut, too."""
    if seed % 2:
        monkeypatch.setattr(division, "find_fusible", lambda nodes: iter(()))
        monkeypatch.setattr(division, "begins_kernel", lambda nodes, place: True)
    layer = random_layer(100 + seed)
    weights, x = random_weights(seed, 4)

    def run(x):
        kept, results = x + 1, []
        for of_layer in weights:
            x, kept = layer(x, kept, of_layer)
            results.append(kept)
        return (x, *results[::2])

    with settings.override(deduplicate=deduplicate):
        compare(run, x, gradients=[x, *itertools.chain(*weights)], tolerance=1e-3)
    assert deduplicate or max(parts) >= 1
