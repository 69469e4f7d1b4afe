# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that repeat are compiled once, and compute what they would."""

from __future__ import annotations

import copy
import itertools
import random
import re

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F

import tessera.torch.deduplication as deduplication
import tessera.torch.outlining as outlining
from tessera.settings import settings

from .test_models import Block

pytestmark = pytest.mark.usefixtures("one_configuration")

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
devices = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=on_gpu)])


@pytest.fixture
def calls(monkeypatch):
    """Of each graph that is lowered how often it calls graphs of its own, and how many these are."""
    import tessera.torch.lowering as lowering  # which loads Inductor

    found = []
    original = lowering.deduplicate

    def deduplicate(graph_module):
        before = len(list(graph_module.graph.nodes))
        saved = original(graph_module)
        graph_module.graph.lint()
        hop = torch.ops.higher_order.invoke_subgraph
        names = [
            node.args[1]
            for node in graph_module.graph.find_nodes(op="call_function", target=hop)
            if str(node.args[1]).startswith("repeated_")
        ]
        assert bool(names) == bool(saved) and saved < before
        found.append((len(names), len(set(names))))
        return saved

    monkeypatch.setattr(lowering, "deduplicate", deduplicate)
    return found


def compare(function, *args, gradients=(), tolerance=1e-4):
    """Whether it gives compiled, twice, what it gives eagerly, with gradients of all results."""
    compiled = torch.compile(function, backend="tessera", fullgraph=True)

    def run(called):
        results = called(*args)
        several = results if isinstance(results, (tuple, list)) else [results]
        if not gradients:
            return several
        total = sum((n + 1) * result.square().mean() for n, result in enumerate(several))
        return [*several, *torch.autograd.grad(total, list(gradients), allow_unused=True)]

    with torch.set_grad_enabled(bool(gradients)):
        wanted = run(function)
        for _ in range(2):
            torch.testing.assert_close(run(compiled), wanted, rtol=tolerance, atol=tolerance)
    return compiled


class Layers(torch.nn.Module):
    """The same layer several times, with weights of its own each."""

    def __init__(self, make, count: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(make() for _ in range(count))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class MLP(torch.nn.Module):
    def __init__(self, width: int = 32, inner: int = 48) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, inner)
        self.down = torch.nn.Linear(inner, width)

    def forward(self, x):
        return x + self.down(F.silu(self.up(self.norm(x))) * 0.5)


@devices
def test_layers_are_one_function(calls, device) -> None:
    from torch._inductor.utils import run_and_get_code

    model = Layers(Block, 5).to(device)
    x = torch.randn(2, 9, 32, device=device)
    compiled = torch.compile(model, backend="tessera", fullgraph=True)
    with torch.no_grad():
        result, (code,) = run_and_get_code(compiled, x)
        torch.testing.assert_close(result, model(x), rtol=1e-4, atol=1e-4)
    assert calls == [(5, 1)] or calls == [(4, 1)]
    assert code.count("def repeated_0") == 1
    one = torch.compile(Layers(Block, 1).to(device), backend="tessera", fullgraph=True)
    with torch.no_grad():
        _, (code_of_one,) = run_and_get_code(one, x)
    more = code.count("async_compile.triton(") - code_of_one.count("async_compile.triton(")
    assert more <= 3, "kernels before the first repetition, and behind the last"


@devices
def test_gradients_of_layers(calls, device) -> None:
    model = Layers(Block, 4).to(device)
    x = torch.randn(2, 9, 32, device=device, requires_grad=True)
    compare(model, x, gradients=[x, *model.parameters()])
    assert len(calls) == 2 and all(times >= 3 for times, _ in calls)


def test_results_of_every_layer(calls) -> None:
    model = Layers(MLP, 4)

    def all_of_them(x):
        results = []
        for layer in model.layers:
            x = layer(x)
            results.append(x)
        # Views of some, and one of them twice.
        return (*results, results[1].transpose(0, 1), results[2][:, 1:], results[2])

    x = torch.randn(3, 8, 32, requires_grad=True)
    compare(all_of_them, x)
    compare(all_of_them, x, gradients=[x, *model.parameters()])
    assert all(times >= 3 for times, _ in calls[:2]), "the forward graphs"


def test_results_that_are_parts_of_another(calls) -> None:
    class Parts(MLP):
        def forward(self, x):
            y = super().forward(x)
            left, right = y.split(16, -1)
            # Both halves are read in the next layer and, by the loop, at the end.
            self.parts = (left, right)
            return torch.cat([right * 2, left], -1)

    model = Layers(Parts, 4)

    def parts(x):
        x = model(x)
        return (x, *(part for layer in model.layers for part in layer.parts))

    compare(parts, torch.randn(3, 8, 32))
    assert calls[0][0] >= 3


def test_results_that_are_what_was_read(calls) -> None:
    class Converting(MLP):
        def forward(self, x, y):
            z = super().forward(x)
            # What Inductor lowers to its operand, twice.
            same = torch.ops.prims.convert_element_type(y, torch.float32)
            return z, same, torch.ops.prims.convert_element_type(z, torch.float32)

    layers = torch.nn.ModuleList(Converting() for _ in range(4))

    def run(x, y):
        results = []
        for layer in layers:
            x, y, z = layer(x, y)
            results += [x.relu(), y, z.sin()]
            y = y + 1
        return (x, y, *results)

    compare(run, torch.randn(3, 8, 32), torch.randn(3, 8, 32))


def test_the_same_weights_in_every_layer(calls) -> None:
    layer = MLP()

    def run(x):
        for _ in range(5):
            x = layer(x)
        return x

    x = torch.randn(4, 32, requires_grad=True)
    compare(run, x, gradients=[x, *layer.parameters()])
    assert calls[0][0] >= 4


@pytest.mark.parametrize("odd", [4, 8, None])
def test_the_same_tensor_for_two_operands_of_one_layer(calls, odd) -> None:
    layers = [MLP() for _ in range(9)]

    def run(x):
        first = x.sin()
        for number, layer in enumerate(layers):
            entered, x = x, layer(x)
            x = torch.tanh(x) * (entered if number == odd else first) + x
        return x

    compare(run, torch.randn(4, 32))
    assert calls[0][0] >= {4: 3, 8: 6, None: 7}[odd] and calls[0][1] == (2 if odd == 4 else 1)


def test_operands_in_another_order(calls) -> None:
    layers, weight = [MLP() for _ in range(9)], torch.randn(32, 32)

    def run(x):
        y = x.sin()
        for number, layer in enumerate(layers):
            z = layer(x)
            one, two = (y, z) if number == 4 else (z, y)
            x, y = torch.tanh(one) - two.sigmoid(), z @ weight
        return x, y

    compare(run, torch.randn(4, 32))
    assert calls[0][0] >= 3


def test_results_that_share_memory(calls, monkeypatch) -> None:
    """Were all that a layer computes results, and the views of what it reads, these would be copied."""
    from torch._inductor.utils import run_and_get_code

    def find_results(repetitions):
        values = [node.meta["val"] for node in repetitions[0]]
        return [place for place, value in enumerate(values) if isinstance(value, torch.Tensor)]

    monkeypatch.setattr(outlining, "find_results", find_results)
    model, x = Layers(MLP, 4), torch.randn(4, 32)
    compiled = torch.compile(model, backend="tessera", fullgraph=True)
    with torch.no_grad():
        result, (code,) = run_and_get_code(compiled, x)
        torch.testing.assert_close(result, model(x), rtol=1e-4, atol=1e-4)
    assert calls[0][0] >= 3
    body = code[code.index("def repeated_0") :]
    returned = re.findall(r"repeated_0_(\w+)", body[body.index("return (") :].split("\n")[0])
    assert len(returned) >= 8 and len(set(returned)) == len(returned)
    assert not any(name.startswith("input") for name in returned)


def test_two_kinds_of_layers(calls) -> None:
    model = torch.nn.Sequential(
        Layers(MLP, 4), torch.nn.Linear(32, 64), Layers(lambda: MLP(64, 80), 5)
    )
    x = torch.randn(5, 32, requires_grad=True)
    compare(model, x)
    assert calls[0][0] >= 7 and calls[0][1] == 2
    compare(model, x, gradients=[x, *model.parameters()])


def test_numbers_that_differ(calls) -> None:
    layers = [MLP() for _ in range(4)]

    def run(x):
        for number, layer in enumerate(layers):
            x = torch.tanh(layer(x) * (1.0 + number)) + float(number)
        return x

    compare(run, torch.randn(4, 32))


def test_layers_with_statistics(calls) -> None:
    class WithStatistics(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.mlp = torch.nn.BatchNorm1d(32), MLP()

        def forward(self, x):
            return self.mlp(self.norm(x))

    torch.manual_seed(1)
    model, other = Layers(WithStatistics, 4), Layers(WithStatistics, 4)
    other.load_state_dict(model.state_dict())
    compiled = torch.compile(other, backend="tessera", fullgraph=True)
    for _ in range(3):
        x = torch.randn(6, 32)
        wanted, found = model(x), compiled(x)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
        wanted = torch.autograd.grad(wanted.square().sum(), list(model.parameters()))
        found = torch.autograd.grad(found.square().sum(), list(other.parameters()))
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)
    for one, two in zip(model.buffers(), other.buffers()):
        torch.testing.assert_close(two, one, rtol=1e-4, atol=1e-4)


@devices
def test_dropout_is_that_of_layers_compiled_one_by_one(calls, device) -> None:
    class Dropping(MLP):
        def forward(self, x):
            x = F.dropout(super().forward(x), 0.25)
            return x + F.dropout(torch.sigmoid(self.down(self.up(x))), 0.5)

    model = Layers(Dropping, 4).to(device)
    x = torch.randn(16, 32, device=device, requires_grad=True)

    def run(deduplicate: bool):
        torch.compiler.reset()
        with settings.override(deduplicate=deduplicate):
            compiled = torch.compile(model, backend="tessera", fullgraph=True)
            torch.manual_seed(3)
            first, second = compiled(x), compiled(x)
            assert not torch.equal(first, second)
            total = first.square().sum() + 2 * second.square().sum()
            return [first, second, *torch.autograd.grad(total, [x, *model.parameters()])]

    found = run(True)
    assert len(calls) == 2 and all(times >= 3 for times, _ in calls)
    torch.testing.assert_close(found, run(False), rtol=1e-4, atol=1e-4)
    assert len(calls) == 2


def test_random_numbers_are_drawn_for_each_layer(calls) -> None:
    layers = torch.nn.ModuleList(MLP() for _ in range(4))

    def run(x):
        masks = []
        for layer in layers:
            x = layer(x)
            masks.append(F.dropout(torch.ones_like(x), 0.5))
            x = x * masks[-1]
        return x, masks

    compiled = torch.compile(run, backend="tessera", fullgraph=True)
    with torch.no_grad():
        x, masks = compiled(torch.randn(64, 32))
    assert calls[0][0] >= 2
    for n, mask in enumerate(masks):
        assert set(mask.unique().tolist()) == {0.0, 2.0}
        assert all(not torch.equal(mask, other) for other in masks[:n])


def test_shapes_that_change(calls) -> None:
    model = Layers(MLP, 4)
    compiled = torch.compile(model, backend="tessera", dynamic=True)
    with torch.no_grad():
        for rows in (3, 5, 8):
            x = torch.randn(rows, 32)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)
    assert calls[0] == (0, 0)


class Residual(torch.nn.Module):
    """Two convolutions, normalised, with statistics that are kept; an image goes round them."""

    def __init__(self, channels=8):
        super().__init__()
        self.one = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.two = torch.nn.Conv2d(channels, channels, 3, padding=1)
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x):
        y = F.silu(self.norms[0](self.one(x)))
        return F.silu(self.norms[1](self.two(y)) * 0.5 + x)


@devices
@pytest.mark.parametrize("memory_format", ["contiguous_format", "channels_last"])
def test_layers_with_convolutions(calls, device, memory_format) -> None:
    """With channels last, in whatever layout the image came, and nothing is turned in between."""
    from torch._inductor.utils import run_and_get_code

    model = Layers(Residual, 5).to(device).eval()
    x = torch.randn(2, 8, 20, 24, device=device)
    x = x.contiguous(memory_format=getattr(torch, memory_format))
    compiled = torch.compile(model, backend="tessera", fullgraph=True)
    with torch.no_grad():
        result, (code,) = run_and_get_code(compiled, x)
        expected = model(x)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)
    assert result.stride() == expected.stride()
    assert calls[0][0] >= 3 and calls[0][1] == 1
    with settings.override(deduplicate=False):
        torch.compiler.reset()
        with torch.no_grad():
            _, (whole,) = run_and_get_code(torch.compile(model, backend="tessera"), x)
    kernels, whole_kernels = (
        len(set(re.findall(r"^(triton_\w+) = async_compile", text, re.M))) for text in (code, whole)
    )
    assert kernels <= whole_kernels


@devices
def test_statistics_of_layers_with_convolutions(calls, device) -> None:
    model = Layers(Residual, 5).to(device)
    compiled_model = copy.deepcopy(model)
    x = torch.randn(4, 8, 20, 24, device=device)
    compiled = torch.compile(compiled_model, backend="tessera", fullgraph=True)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-3, atol=1e-3)
    for (name, one), other in zip(model.named_buffers(), compiled_model.buffers(), strict=True):
        torch.testing.assert_close(other, one, rtol=1e-3, atol=1e-4, msg=name)
    model.zero_grad()
    compiled_model.zero_grad()
    for called in (model, compiled):
        called(x).square().mean().backward()
    for one, other in zip(model.parameters(), compiled_model.parameters(), strict=True):
        torch.testing.assert_close(other.grad, one.grad, rtol=2e-3, atol=2e-4)
    assert all(times >= 3 for times, _ in calls)


def test_what_would_be_one_kernel_stays_one(calls) -> None:
    def run(x):
        for _ in range(12):
            y = torch.sin(x) * 1.5 + torch.cos(x).relu()
            x = (y.tanh() - x.sigmoid().neg()).abs() * y.sigmoid()
        return x

    compare(run, torch.randn(100))
    assert calls[0] == (0, 0)


def test_the_setting(calls) -> None:
    """What was compiled with another one does not come out of Inductor's cache."""
    model, x = Layers(lambda: MLP(32, 52), 4), torch.randn(4, 32)  # as in no other test
    for deduplicate, hits in ((True, 0), (False, 0), (True, 1), (False, 1)):
        torch.compiler.reset()
        torch._dynamo.utils.counters.clear()
        with settings.override(deduplicate=deduplicate):
            compare(model, x)
        found = torch._dynamo.utils.counters["inductor"]
        assert (found["fxgraph_cache_hit"], found["fxgraph_cache_miss"]) == (hits, 1 - hits)
    assert len(calls) == 1


@devices
def test_graphs_that_are_recorded(calls, device) -> None:
    """Recorded, and run again with other inputs and weights; on a CPU nothing is recorded."""
    model = Layers(Block, 4).to(device)
    options = {"triton.cudagraphs": True}
    compiled = torch.compile(model, backend="tessera", fullgraph=True, options=options)
    torch._dynamo.utils.counters.clear()
    for _ in range(5):
        x = torch.randn(2, 9, 32, device=device, requires_grad=True)
        inputs = [x, *model.parameters()]
        torch.compiler.cudagraph_mark_step_begin()
        found = compiled(x)
        gradients = torch.autograd.grad(found.square().mean(), inputs)
        wanted = model(x)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
        expected = torch.autograd.grad(wanted.square().mean(), inputs)
        torch.testing.assert_close(gradients, expected, rtol=1e-3, atol=1e-3)
        with torch.no_grad():
            for weight, gradient in zip(inputs[1:], expected[1:]):
                weight -= 0.1 * gradient
    assert len(calls) == 2 and all(times >= 3 for times, _ in calls)
    if device == "cuda":
        assert torch._dynamo.utils.counters["inductor"]["cudagraph_skips"] == 0
        manager = torch._inductor.cudagraph_trees.get_container(0).tree_manager
        assert manager is not None and manager.current_node is not None


def test_writes_to_an_argument(calls) -> None:
    layers = torch.nn.ModuleList(MLP() for _ in range(4))

    def run(x, kept):
        for n, layer in enumerate(layers):
            x = layer(x)
            kept[n] = x
        return x + kept.sum(0)

    compiled = torch.compile(run, backend="tessera", fullgraph=True)
    x = torch.randn(4, 32)
    one, two = torch.zeros(4, 4, 32), torch.zeros(4, 4, 32)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x, one), run(x, two), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-4)


@devices
def test_arrays_on_two_devices(calls, device) -> None:
    layers = torch.nn.ModuleList(MLP() for _ in range(4)).to(device)
    factor = torch.tensor(1.5)  # without dimensions, and on the CPU

    def run(x, factor):
        for layer in layers:
            x = layer(x) * factor
        return x

    compare(run, torch.randn(4, 32, device=device), factor)


def test_functions_that_users_marked(calls) -> None:
    layers = torch.nn.ModuleList(Layers(MLP, 3) for _ in range(2))

    @torch.compiler.nested_compile_region
    def marked(layer, x):
        return layer(x)

    def run(x):
        for layer in layers:
            x = marked(layer, x) + 1
        return x

    compare(run, torch.randn(4, 32))


def random_layer(seed: int):
    """A function of x and some weights and what a layer keeps, of one shape all."""
    choices = random.Random(seed)
    steps = []
    for _ in range(choices.randint(9, 16)):
        steps.append((choices.randrange(11), choices.random(), choices.random()))

    def layer(x, kept, weights):
        values = [x, kept]

        def pick(number):
            return values[int(number * len(values))]

        for kind, a, b in steps:
            one, two = pick(a), pick(b)
            if kind <= 2:
                new = torch.tanh(one @ weights[int(b * len(weights))])
            elif kind == 3:
                new = one * two - one
            elif kind == 4:
                new = torch.softmax(one, -1) + two
            elif kind == 5:
                new = one.t()
            elif kind == 6:
                new = one.reshape(-1).view(16, 16).t().contiguous()
            elif kind == 7:
                left, right = two.split(8, 1)
                new = torch.cat([right, left], 1)
            elif kind == 8:
                new = one.roll(1, 0).relu() * 0.5
            elif kind == 9:
                # Not amax: its gradient asks where a number is the largest by computing it again,
                # and kernels that are cut elsewhere round otherwise.
                new = (one.sum(0, keepdim=True) + two.mean(1, keepdim=True)).tanh()
            else:
                new = one.clone()
            values.append(new)
        return values[-1] + values[-3] * 0.5, pick(steps[0][1]) * 0.5 + values[-2]

    return layer


def random_weights(seed: int, layers: int):
    """Those of so many such layers, and x."""
    generator = torch.Generator().manual_seed(seed)
    weights = [
        [torch.randn(16, 16, generator=generator).div(4).requires_grad_() for _ in range(3)]
        for _ in range(layers)
    ]
    return weights, torch.randn(16, 16, generator=generator).requires_grad_()


def test_layers_that_only_write(calls) -> None:
    """As the steps of an optimizer do: nothing is given, so there is nothing to call."""
    parameters, moments = ([torch.randn(16, 16) for _ in range(6)] for _ in range(2))

    def step(parameters, moments):
        for parameter, moment in zip(parameters, moments):
            gradient = (parameter.sin() * 0.5 + parameter.tanh()) @ parameter
            moment.mul_(0.9).add_(gradient.sigmoid() * gradient)
            parameter.sub_((moment.abs() + 1).sqrt().reciprocal() * moment)

    copies = [[x.clone() for x in group] for group in (parameters, moments)]
    torch.compile(step, backend="tessera", fullgraph=True)(*copies)
    step(parameters, moments)
    torch.testing.assert_close(copies, [parameters, moments], rtol=1e-4, atol=1e-4)
    assert len(calls) == 1


@pytest.mark.in_turn("seed")
@pytest.mark.parametrize("seed", range(6))
def test_random_layers(calls, monkeypatch, seed) -> None:
    """Begun anywhere: what would be one kernel is cut, or few of them would have repetitions."""
    monkeypatch.setattr(deduplication, "find_fusible", lambda nodes: iter(()))
    monkeypatch.setattr(deduplication, "begins_kernel", lambda nodes, place: True)
    monkeypatch.setattr(deduplication, "_LEAST_OPS", 3)
    monkeypatch.setattr(deduplication, "_LEAST_SAVED", 8)
    layer = random_layer(seed)
    weights, x = random_weights(seed, 5)

    def run(x):
        kept, results = x + 1, []
        for number, of_layer in enumerate(weights):
            x, kept = layer(x, kept, of_layer)
            if seed % 3 == number % 3:
                results.append(x)
        return (x, kept, *results)

    compare(run, x, tolerance=1e-3)
    compare(run, x, gradients=[x, *itertools.chain(*weights)], tolerance=1e-3)
    assert any(times >= 2 for times, _ in calls)
