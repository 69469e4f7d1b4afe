# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of operators and functions on an NVIDIA GPU: graphs, streams, memory, devices."""

from __future__ import annotations

import pytest

import tessera
import tessera.language as tl

pytestmark = pytest.mark.gpu


@tessera.pointwise
def scaled(x, y):
    return x * y + 1


@tessera.reduction("sum")
def dot(x, y):
    return x * y


@tessera.function("x[*n], y[*n] -> out[*n / BLOCK]")
@tessera.jit
def product(x, y, out, n, BLOCK: tl.constexpr = 1024):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * tl.load(y + i, mask=i < n), mask=i < n)


CALLS = {
    "pointwise": (scaled, lambda x, y: x * y + 1),
    "reduction": (dot, lambda x, y: (x * y).sum()),
    "function": (product, lambda x, y: x * y),
}


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(params=[*CALLS, "operator"])
def call(request, torch):
    if request.param != "operator":
        return CALLS[request.param]
    import tessera.torch

    def run(x, y):
        return product(x, y)

    run.__annotations__ = {"x": torch.Tensor, "y": torch.Tensor, "return": torch.Tensor}
    name = f"tessera_gpu::product_{request.node.name.partition('[')[0]}"
    return tessera.torch.op(name)(run), lambda x, y: x * y


def test_graphs_capture_calls(torch, call):
    ours, theirs = call
    x, y = (torch.randint(0, 9, (3, 1000), device="cuda").float() for _ in range(2))
    for _ in range(3):  # known calls run without Python
        ours(x, y)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = ours(ours(x, y).expand(x.shape), y)
    for _ in range(2):
        x.copy_(torch.randint(0, 9, x.shape, device="cuda"))
        graph.replay()
        torch.testing.assert_close(captured, theirs(theirs(x, y).expand(x.shape), y))


def test_calls_on_streams(torch, call):
    ours, theirs = call
    x, y = (torch.randint(0, 9, (3, 1000), device="cuda").float() for _ in range(2))
    expected = theirs(x, y)
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in range(3)]
    found = []
    for at in range(9):
        with torch.cuda.stream(streams[at % 3]):
            found.append(ours(x, y))
    torch.cuda.synchronize()
    assert all(torch.equal(each, expected) for each in found)


def test_results_are_released_and_memory_may_run_out(torch):
    x = torch.ones(1 << 28, device="cuda")  # 1 GiB
    for _ in range(3):
        result = scaled(x, x)
    del result
    used = torch.cuda.memory_allocated()
    for _ in range(100):
        scaled(x, x)
    assert torch.cuda.memory_allocated() == used
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((used + (3 << 29)) / total)
    try:
        kept = [scaled(x, x)]
        for _ in range(2):
            with pytest.raises(torch.cuda.OutOfMemoryError):
                kept.append(scaled(x, x))
        kept.clear()
        assert bool((scaled(x, x)[:8] == 2).all())
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_writes_are_counted_and_modes_are_seen(torch):
    x, y = (torch.randn(100, device="cuda") for _ in range(2))
    out = torch.empty_like(x)
    for _ in range(3):
        version = out._version
        assert scaled(x, y, out=out) is out and out._version == version + 1
        torch.testing.assert_close(torch.func.vmap(scaled)(x, y), x * y + 1)
        with torch.inference_mode():
            assert scaled(x, y).is_inference()
    leaf = x.clone().requires_grad_()
    for _ in range(3):
        leaf.grad = None
        scaled(leaf, y).sum().backward()
        assert torch.equal(leaf.grad, y)


def test_calls_on_devices_in_turn(torch, call):
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one GPU")
    ours, theirs = call
    for at in (0, 1, 1, 0, 1):
        x, y = (torch.randint(0, 9, (3, 1000), device=f"cuda:{at}").float() for _ in range(2))
        found = ours(x, y)
        assert found.device == x.device and torch.equal(found, theirs(x, y))
