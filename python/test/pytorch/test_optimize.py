# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tessera.torch.optimize`: when CUDA graphs are chosen, and results that are the caller's."""

from __future__ import annotations

import threading

import pytest

torch = pytest.importorskip("torch")

import tessera

pytestmark = pytest.mark.usefixtures("fresh_compiler")

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


def fake(*shape, device="cuda", **kwargs):
    """A tensor of a device that need not be there."""
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        return torch.empty(*shape, device=device, **kwargs)


def test_inference_on_one_gpu_is_recorded() -> None:
    from tessera.torch import graphs

    x, w = fake(3), fake(3, requires_grad=True)
    assert graphs.fit([x, 5, fake(2, 2)])
    with torch.no_grad():
        assert graphs.fit([x, w])
    assert not graphs.fit([x, w]), "a backward pass may follow"


def test_what_is_not_recorded() -> None:
    from tessera.torch import graphs

    x = fake(3)
    assert not graphs.fit([])
    assert not graphs.fit([fake(3, device="cpu")])
    assert not graphs.fit([x, fake(3, device="cpu")])
    if torch.cuda.device_count() != 1:  # torch asks the driver even for a fake one
        assert not graphs.fit([x, fake(3, device="cuda:1")])


def test_shapes_left_open_are_not_recorded() -> None:
    from tessera.torch import graphs

    found = []

    def backend(graph, inputs):
        nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
        found.append(graphs.fit([moved(node.meta["example_value"]) for node in nodes]))
        return graph.forward

    def moved(x):
        """A tensor of the same shape on a GPU."""
        if not isinstance(x, torch.Tensor):
            return x
        with x.fake_mode:
            return torch.empty(x.shape, device="cuda")

    x = torch.ones(5, 7)
    torch.compile(lambda x: x + 1, backend=backend)(x)
    torch.compiler.reset()
    torch.compile(lambda x: x + 1, backend=backend, dynamic=True)(x)
    assert found == [True, False]


def options_chosen(monkeypatch, **arguments) -> list[dict]:
    """Those that `optimize` has a function compiled with, as if on a GPU."""
    from tessera.torch import backend, graphs

    chosen = []
    original = backend.compile_graph

    def compile_graph(graph, example_inputs, *, mode=None, options=None):
        chosen.append(dict(options or {}))
        return original(graph, example_inputs)

    monkeypatch.setattr(backend, "compile_graph", compile_graph)
    monkeypatch.setattr(graphs, "fit", lambda inputs: True)
    x = torch.randn(7)
    compiled = tessera.torch.optimize(lambda x: x * 2 + 1, **arguments)
    torch.testing.assert_close(compiled(x), x * 2 + 1)
    return chosen


def test_settings_that_are_chosen(monkeypatch) -> None:
    (options,) = options_chosen(monkeypatch)
    assert options["triton.cudagraphs"] and options["triton.cudagraph_trees"]
    assert "max_autotune" not in options


def test_settings_by_arguments(monkeypatch) -> None:
    assert options_chosen(monkeypatch, cuda_graphs=False) == [{}]
    torch.compiler.reset()
    (options,) = options_chosen(monkeypatch, tune=True)
    assert options["max_autotune"] and options["triton.cudagraphs"]


class Replays:
    """A back end whose results are in the same memory in each call, as those of CUDA graphs."""

    def __init__(self) -> None:
        self._memory: dict[int, torch.UntypedStorage] = {}

    def __call__(self, graph, inputs):
        from tessera.torch import graphs

        return graphs.lasting(graph, lambda: self._bind(graph))

    def _bind(self, graph):
        def call(*args):
            own = {x.untyped_storage()._cdata for x in args if isinstance(x, torch.Tensor)}
            moved: dict[int, torch.UntypedStorage] = {}
            results = []
            for index, x in enumerate(graph.forward(*args)):
                key = x.untyped_storage()._cdata
                if key not in own:
                    memory = moved.get(key) or self._memory.setdefault(
                        index, x.untyped_storage().clone()
                    )
                    moved[key] = memory
                    memory.copy_(x.untyped_storage())
                    x = x.new_empty(0).set_(memory, x.storage_offset(), x.size(), x.stride())
                results.append(x)
            return tuple(results)

        return call


def test_results_outlast_the_next_call() -> None:
    compiled = torch.compile(lambda x: (x + 1, x.sum()), backend=Replays())
    first = compiled(torch.ones(3))
    second = compiled(torch.full((3,), 2.0))
    torch.testing.assert_close(first, (torch.full((3,), 2.0), torch.tensor(3.0)))
    torch.testing.assert_close(second, (torch.full((3,), 3.0), torch.tensor(6.0)))


def test_results_that_share_memory_still_do() -> None:
    def function(x):
        y = x + 1
        return y, y[1:], y.t()

    compiled = torch.compile(function, backend=Replays())
    x = torch.randn(4, 5)
    compiled(x)
    y, part, turned = compiled(x)
    compiled(x + 5)
    torch.testing.assert_close((y, part, turned), function(x))
    y.zero_()
    assert not part.any() and not turned.any()


def test_results_that_are_arguments_still_are() -> None:
    def function(x, y):
        return x.add_(1), x.view(-1), y

    compiled = torch.compile(function, backend=Replays())
    x, y = torch.zeros(2, 2), torch.ones(2)
    first, flat, same = compiled(x, y)
    assert first.data_ptr() == flat.data_ptr() == x.data_ptr() and same is y
    first.fill_(7)
    assert bool((x == 7).all())


def test_strides_are_kept() -> None:
    def function(x):
        return (x + 1).t(), torch.ones(3).expand(4, 3) * 1, (x * 2)[:, ::2]

    compiled = torch.compile(function, backend=Replays())
    x = torch.randn(4, 6)
    results = compiled(x)
    compiled(x * 9)
    torch.testing.assert_close(results, function(x))
    assert [y.stride() for y in results] == [y.stride() for y in function(x)]


# --- On a GPU -----------------------------------------------------------------------------


def model_on_gpu():
    layers = [torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.LayerNorm(64)]
    return torch.nn.Sequential(*layers).cuda()


def skips() -> int:
    """How often torch chose not to record."""
    from torch._dynamo.utils import counters

    return int(counters["inductor"]["cudagraph_skips"])


@on_gpu
def test_a_model_is_a_cuda_graph_and_keeps_its_results() -> None:
    model = model_on_gpu()
    fast = tessera.torch.optimize(model)
    inputs = [torch.randn(8, 64, device="cuda") for _ in range(5)]
    with torch.no_grad():
        results = [fast(x) for x in inputs]
        for x, y in zip(inputs, results):
            torch.testing.assert_close(y, model(x), rtol=1e-3, atol=1e-3)
    assert skips() == 0
    from torch._inductor.cudagraph_trees import get_container

    assert get_container(torch.cuda.current_device()).tree_manager is not None


@on_gpu
def test_a_call_is_one_graph() -> None:
    from torch.profiler import ProfilerActivity, profile

    def model(x, w):
        for _ in range(3):
            x = torch.nn.functional.softmax(x @ w, -1) + x.mean(1, keepdim=True)
        return x

    fast = tessera.torch.optimize(model)
    x, w = (torch.randn(64, 64, device="cuda") for _ in range(2))
    with torch.no_grad():
        for _ in range(4):
            fast(x, w)
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
            fast(x, w)
            torch.cuda.synchronize()
    names = [event.name for event in profiled.events()]
    assert names.count("cudaGraphLaunch") == 1, names


@on_gpu
def test_training_is_as_without_graphs() -> None:
    model = model_on_gpu()
    fast = tessera.torch.optimize(model)
    x = torch.randn(8, 64, device="cuda")
    for _ in range(3):
        found = torch.autograd.grad(fast(x).square().sum(), list(model.parameters()))
        wanted = torch.autograd.grad(model(x).square().sum(), list(model.parameters()))
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)


@on_gpu
def test_weights_may_change() -> None:
    model = model_on_gpu()
    fast = tessera.torch.optimize(model)
    x = torch.randn(8, 64, device="cuda")
    with torch.no_grad():
        for step in range(4):
            torch.testing.assert_close(fast(x), model(x), rtol=1e-3, atol=1e-3)
            model[0].weight.add_(0.1 * step)
        model[0].weight = torch.nn.Parameter(torch.randn(64, 64, device="cuda"))
        torch.testing.assert_close(fast(x), model(x), rtol=1e-3, atol=1e-3)


@on_gpu
def test_threads_and_streams_take_turns() -> None:
    model = model_on_gpu()
    fast = tessera.torch.optimize(model)
    inputs = [torch.randn(8, 64, device="cuda") for _ in range(4)]
    with torch.no_grad():
        wanted = [model(x) for x in inputs]
        for x in inputs:
            fast(x)
    torch.cuda.synchronize()
    failures: list[str] = []

    def work(x, y) -> None:
        try:
            with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(50):
                    torch.testing.assert_close(fast(x), y, rtol=1e-3, atol=1e-3)
        except BaseException as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=pair) for pair in zip(inputs, wanted)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


@on_gpu
def test_shapes_that_change_go_on_without_graphs() -> None:
    model = model_on_gpu()
    fast = tessera.torch.optimize(model)
    with torch.no_grad():
        for rows in (8, 9, 30, 31):
            x = torch.randn(rows, 64, device="cuda")
            torch.testing.assert_close(fast(x), model(x), rtol=1e-3, atol=1e-3)
