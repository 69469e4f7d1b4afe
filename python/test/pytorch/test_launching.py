# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches of Inductor's kernels need no Python after the first, and notice what changes."""

from __future__ import annotations

import concurrent.futures
import gc
import pickle

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F

import tessera
from tessera import _C

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
devices = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=on_gpu)])
pytestmark = pytest.mark.usefixtures("fresh_compiler")


def autotuners():
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    gc.collect()
    return [one for one in gc.get_objects() if type(one) is CachingAutotuner and one.launchers]


def runs_of(*args, function) -> tuple:
    """The function compiled and called, and its autotuners' `run`."""
    before = {id(one) for one in autotuners()}
    compiled = torch.compile(function, backend="tessera")
    for _ in range(2):
        torch.testing.assert_close(compiled(*args), function(*args))
    found = [one for one in autotuners() if id(one) not in before]
    assert found
    return compiled, found


def make_softmax(number: float):
    """One that no other test compiles: Inductor would take what it has compiled."""

    def softmax(x, y):
        return torch.softmax(x * y * number, -1), (x + y * number).amax(0)

    return softmax


@devices
def test_kernels_are_launched_without_python(device) -> None:
    softmax = make_softmax(1.5)
    compiled, found = runs_of(
        torch.randn(40, 30, device=device), torch.randn(40, 30, device=device), function=softmax
    )
    assert {type(one.run) for one in found} == {_C.RepeatedRun}
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    called = []
    original = CachingAutotuner.run
    CachingAutotuner.run = lambda self, *args, **kwargs: called.append(1)
    try:
        x, y = torch.randn(40, 30, device=device), torch.randn(40, 30, device=device)
        torch.testing.assert_close(compiled(x, y), softmax(x, y))
    finally:
        CachingAutotuner.run = original
    assert not called


@devices
def test_shapes_that_vary(device) -> None:
    softmax = make_softmax(2.5)
    compiled = torch.compile(softmax, backend="tessera", dynamic=True)
    for rows in (5, 5, 64, 5, 300, 301, 301, 2, 5):
        x, y = torch.randn(rows, 70, device=device), torch.randn(rows, 70, device=device)
        torch.testing.assert_close(compiled(x, y), softmax(x, y))


@devices
def test_profilers_see_kernels(device) -> None:
    softmax = make_softmax(3.5)
    x, y = torch.randn(40, 30, device=device), torch.randn(40, 30, device=device)
    compiled, found = runs_of(x, y, function=softmax)
    for _ in range(2):
        with torch.profiler.profile() as profiler:
            compiled(x, y)
        names = {event.key for event in profiler.key_averages()}
        assert sum(name.startswith("triton_") for name in names) == len(found)
    # The debug mode of torch is told of each kernel, too.
    from torch.utils._debug_mode import DebugMode

    with DebugMode() as mode:
        compiled(x, y)
    assert mode.debug_string().count("triton_") >= len(found)
    torch.testing.assert_close(compiled(x, y), softmax(x, y))


def test_who_watches_the_first_launch_sees_it() -> None:
    """And later ones need no Python all the same."""
    softmax = make_softmax(6.5)
    x, y = torch.randn(40, 30), torch.randn(40, 30)
    before = {id(one) for one in autotuners()}
    compiled = torch.compile(softmax, backend="tessera")
    with torch.profiler.profile() as profiler:
        compiled(x, y)
    assert any(event.key.startswith("triton_") for event in profiler.key_averages())
    for _ in range(2):
        torch.testing.assert_close(compiled(x, y), softmax(x, y))
    found = [one for one in autotuners() if id(one) not in before]
    assert {type(one.run) for one in found} == {_C.RepeatedRun}


def test_an_error_is_that_of_any_launch() -> None:
    def look_up(x, at):
        return x[at] * 2

    x = torch.randn(10)
    compiled, found = runs_of(x, torch.tensor([3, 9]), function=look_up)
    assert type(found[0].run) is _C.RepeatedRun
    with pytest.raises(tessera.KernelAssertionError, match="index out of bounds"):
        compiled(x, torch.tensor([3, 10]))
    at = torch.tensor([9, 0])
    torch.testing.assert_close(compiled(x, at), look_up(x, at))


def test_what_is_sent_elsewhere_leaves_its_launches() -> None:
    softmax = make_softmax(4.5)
    x, y = torch.randn(40, 30), torch.randn(40, 30)
    compiled, (one, *_) = runs_of(x, y, function=softmax)
    assert "run" in vars(one)
    old = one.prepare_for_pickle()
    state = one.__getstate__()
    del state["compile_results"]  # machine code that was launched belongs to this process
    assert pickle.dumps(state)
    one.restore_after_unpickle(old)
    for _ in range(3):
        torch.testing.assert_close(compiled(x, y), softmax(x, y))


@devices
def test_threads_launch_at_once(device) -> None:
    """Each with other sizes, so that each finds another launch than its own to be the last."""
    softmax = make_softmax(5.5)
    compiled = torch.compile(softmax, backend="tessera", dynamic=True)
    inputs = [
        (torch.randn(rows, 33, device=device), torch.randn(rows, 33, device=device))
        for rows in (3, 50, 170, 400)
    ]
    wanted = [softmax(*args) for args in inputs]
    for args in inputs:
        compiled(*args)

    def work(args, results) -> None:
        for _ in range(150):
            torch.testing.assert_close(compiled(*args), results)

    # torch 2.11 sets this in each call and back, and threads leave it as another one has it.
    was_static = torch._dynamo.config.assume_static_by_default
    try:
        with concurrent.futures.ThreadPoolExecutor(len(inputs)) as pool:
            list(pool.map(work, inputs, wanted))  # raises what they raise
    finally:
        torch._dynamo.config.assume_static_by_default = was_static


@devices
def test_training(device) -> None:
    model = torch.nn.Sequential(
        torch.nn.Linear(20, 30), torch.nn.LayerNorm(30), torch.nn.GELU()
    ).to(device)
    compiled = torch.compile(model, backend="tessera")
    for rows in (7, 7, 9, 7):
        x = torch.randn(rows, 20, device=device)
        wanted = torch.autograd.grad(
            F.mse_loss(model(x), x[:, :1].expand(-1, 30)), model.parameters()
        )
        for _ in range(2):
            loss = F.mse_loss(compiled(x), x[:, :1].expand(-1, 30))
            found = torch.autograd.grad(loss, model.parameters())
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
