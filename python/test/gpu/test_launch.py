# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launching on an NVIDIA GPU: arrays of each framework, streams, graphs, faults."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import _C

pytestmark = pytest.mark.gpu


@tessera.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@tessera.jit
def spin(out_ptr, n):
    """Takes a while: a chain of steps that each need the one before."""
    value = tl.load(out_ptr)
    for _ in range(n):
        value = value * 3 + 1
    tl.store(out_ptr, value)


@tessera.jit
def copy_one(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr))


@tessera.jit
def write_far(out_ptr, offset):
    tl.store(out_ptr + offset, 1.0)


def grid(meta: Any) -> tuple[int]:
    return (tessera.cdiv(meta["n"], meta["BLOCK"]),)


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def test_torch_tensors_cold_and_warm(torch):
    for n in (1, 7, 1000, 1000, 65536, 1000):
        x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
        out = torch.full_like(x, float("nan"))
        for _ in range(3):
            kernel = add[grid](x, y, out, n, BLOCK=256)
        assert torch.equal(out, x + y)
    assert kernel.metadata["target"] == "cuda" and kernel.n_regs > 0


@pytest.mark.parametrize("n", [1000, 1 << 20, 1 << 24])
def test_launches_that_begin_early_wait_for_those_before_them(torch, n):
    # Each needs what the one before wrote, and writes what the one before read.
    x, y = (torch.zeros(n, dtype=torch.int32, device="cuda") for _ in range(2))
    one = torch.ones_like(x)
    stream = torch.cuda.Stream()

    def there_and_back() -> None:
        add[grid](x, one, y, n, BLOCK=1024)
        add[grid](y, one, x, n, BLOCK=1024)

    with torch.cuda.stream(stream):
        there_and_back()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(200):
                there_and_back()
        x.zero_()
        graph.replay()
        graph.replay()
        for _ in range(50):
            add[grid](x, one, y, n, BLOCK=1024)
            y.add_(1)
            add[grid](y, one, x, n, BLOCK=1024)
    torch.cuda.synchronize()
    assert bool((x == 2 * 400 + 50 * 3).all())


@pytest.mark.parametrize("offset", range(0, 17))
def test_views_at_every_alignment(torch, offset):
    base = torch.randn(4096 + 32, device="cuda")
    x, y = base[offset : offset + 4000], base[offset // 2 : offset // 2 + 4000]
    out = torch.full((4096,), float("nan"), device="cuda")
    add[grid](x, y, out[offset:], 4000, BLOCK=1024)
    assert torch.equal(out[offset : offset + 4000], x + y)
    assert bool(out[:offset].isnan().all()) and bool(out[offset + 4000 :].isnan().all())


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8, 16, 32])
def test_warps(torch, num_warps):
    x, y = torch.randn(5000, device="cuda"), torch.randn(5000, device="cuda")
    out = torch.empty_like(x)
    kernel = add[grid](x, y, out, 5000, BLOCK=1024, num_warps=num_warps)
    assert torch.equal(out, x + y) and kernel.num_warps == num_warps


def test_cupy_arrays():
    cupy = pytest.importorskip("cupy")
    x, y = cupy.random.randn(1000).astype("f4"), cupy.random.randn(1000).astype("f4")
    out = cupy.zeros_like(x)
    add[grid](x, y, out, 1000, BLOCK=256)
    cupy.testing.assert_array_equal(out, x + y)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        x += 1
        add[grid](x, y, out, 1000, BLOCK=256)
        stream.synchronize()
    cupy.testing.assert_array_equal(out, x + y)


def test_jax_arrays_are_inputs(torch):
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(1000, dtype="float32")
    if x.devices().pop().platform != "gpu":
        pytest.skip("jax sees no GPU")
    y, out = torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")
    add[grid](x, y, out, 1000, BLOCK=256)
    assert np.array_equal(out.cpu().numpy(), np.asarray(x) + 1)
    with pytest.raises(tessera.ArgumentError, match="`out_ptr` is a read-only array"):
        add[grid](out, y, x, 1000, BLOCK=256)


def test_numba_arrays():
    cuda = pytest.importorskip("numba.cuda")
    x = cuda.to_device(np.arange(1000, dtype=np.float32))
    out = cuda.device_array_like(x)
    add[grid](x, x, out, 1000, BLOCK=256)
    cuda.synchronize()
    assert np.array_equal(out.copy_to_host(), 2 * np.arange(1000, dtype=np.float32))


def test_a_launch_comes_after_what_torchs_stream_holds(torch):
    streams = [torch.cuda.Stream() for _ in range(4)]
    values = [torch.zeros(1, dtype=torch.int32, device="cuda") for _ in streams]
    outs = [torch.zeros(1, dtype=torch.int32, device="cuda") for _ in streams]
    torch.cuda.synchronize()
    for repeat in range(20):
        for stream, value, out in zip(streams, values, outs):
            with torch.cuda.stream(stream):
                value.fill_(repeat)
                spin[(1,)](value, 20000)
                copy_one[(1,)](value, out)
    torch.cuda.synchronize()
    want = 19
    for _ in range(20000):
        want = (want * 3 + 1) & 0xFFFFFFFF
    want -= (want >> 31) << 32
    assert [int(out) for out in outs] == [want] * len(streams)


class Exported:
    """What has DLPack alone, and is computed on a stream of its own."""

    def __init__(self, tensor: Any, stream: Any, torch: Any) -> None:
        self.tensor, self.stream, self.torch = tensor, stream, torch

    def __dlpack__(self, **asked: Any) -> Any:
        with self.torch.cuda.stream(self.stream):
            return self.tensor.__dlpack__(**asked)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


class Named:
    """What has CUDA's interface alone, and names the stream that it is computed on."""

    def __init__(self, tensor: Any, stream: Any, torch: Any) -> None:
        handle = stream.cuda_stream or 1
        self.interface = {**tensor.__cuda_array_interface__, "version": 3, "stream": handle}

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.interface


@pytest.mark.parametrize("wrap", [Exported, Named])
def test_a_launch_comes_after_the_stream_of_another_array(torch, wrap):
    steps = 2_000_000
    default, other = torch.cuda.default_stream(), torch.cuda.Stream()
    value = torch.zeros(1, dtype=torch.int32, device="cuda")
    out = torch.zeros_like(value)
    for owner, current in ((other, default), (torch.cuda.Stream(), other), (default, other)):
        array = wrap(value, owner, torch)
        for repeat in range(4):  # the whole path, and the warm one
            torch.cuda.synchronize()
            with torch.cuda.stream(owner):
                value.fill_(repeat)
                spin[(1,)](value, steps)
            with torch.cuda.stream(current):
                copy_one[(1,)](array, out)
            assert repeat < 3 or not owner.query(), "the host has waited"
            torch.cuda.synchronize()
            power = pow(3, steps, 1 << 33)
            want = (repeat * power + (power - 1) // 2) % (1 << 32)
            assert int(out) % (1 << 32) == want


@pytest.mark.parametrize("wrap", [Exported, Named])
def test_another_array_of_a_stream_that_is_recorded(torch, wrap):
    value = torch.arange(4, dtype=torch.int32, device="cuda")
    out, stream = torch.zeros_like(value), torch.cuda.Stream()
    array = wrap(value, stream, torch)
    with torch.cuda.stream(stream):
        for _ in range(3):
            copy_one[(1,)](array, out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        copy_one[(1,)](array, out)
    value.fill_(7)
    graph.replay()
    torch.cuda.synchronize()
    assert out.tolist() == [7, 0, 0, 0]


def test_a_stream_may_be_given(torch):
    stream = torch.cuda.Stream()
    x, y = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
    out = torch.zeros_like(x)
    torch.cuda.synchronize()
    for given in (stream, stream.cuda_stream, 0):
        out.zero_()
        torch.cuda.synchronize()
        add[grid](x, y, out, 1000, BLOCK=256, stream=given)
        torch.cuda.synchronize()
        assert torch.equal(out, x + y)


def test_a_graph_captures_launches_even_the_first(torch):
    @tessera.jit
    def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + offsets, 2 * tl.load(x_ptr + offsets), mask=offsets < n)

    x, out = torch.ones(512, device="cuda"), torch.zeros(512, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        double[(1,)](x, out, 512, BLOCK=512)
    assert not out.any()
    x.fill_(21)
    graph.replay()
    torch.cuda.synchronize()
    assert bool((out == 42).all())


def test_threads_launch_at_once(torch):
    failures = []

    def work(seed: int) -> None:
        try:
            for n in range(100 + seed, 130 + seed):
                x = torch.full((n,), float(seed), device="cuda")
                out = torch.zeros_like(x)
                add[grid](x, x, out, n, BLOCK=128)
                assert bool((out == 2 * seed).all())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_what_is_wrong_with_a_grid_is_said(torch):
    x = torch.ones(4, device="cuda")
    with pytest.raises(tessera.LaunchError, match="axis 1 has 70000 programs") as caught:
        copy_one[(1, 70000)](x, x)
    assert caught.value.id == "E066" and "copy_one" in str(caught.value)
    copy_one[(0,)](x, x)
    torch.cuda.synchronize()


def test_mixed_places_are_refused(torch):
    x, host = torch.ones(8, device="cuda"), torch.ones(8)
    with pytest.raises(tessera.ArgumentError, match="`y_ptr` is in the CPU's memory") as caught:
        add[grid](x, host, x, 8, BLOCK=8)
    assert caught.value.id == "E054"
    if torch.cuda.device_count() > 1:
        other = torch.ones(8, device="cuda:1")
        with pytest.raises(tessera.ArgumentError, match="on GPU 1, and `x_ptr` is on GPU 0"):
            add[grid](x, other, x, 8, BLOCK=8)


@pytest.mark.parametrize("where", ["input", "output", "both"])
def test_pinned_memory_of_the_host(torch, where):
    n = 1 << 20
    x = torch.randn(n)
    x = x.pin_memory() if where != "output" else x.cuda()
    out = torch.zeros(n, pin_memory=True) if where != "input" else torch.zeros(n, device="cuda")
    y = torch.randn(n, device="cuda")
    for _ in range(3):
        out.zero_()
        torch.cuda.synchronize()
        add[grid](x, y, out, n, BLOCK=1024)
        torch.cuda.synchronize()
        assert torch.equal(out.cpu(), x.cpu() + y.cpu())
    # A tensor of the same kind that is not pinned is refused by a warm launch, too.
    with pytest.raises(tessera.ArgumentError, match="(?s)E054.*pin_memory"):
        add[grid](torch.randn(n), y, out, n, BLOCK=1024)


@tessera.jit
def multiply(a_ptr, b_ptr, c_ptr, N, K, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j, k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, 64)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for at in range(0, K, 64):
        a = tl.load(a_ptr + i[:, None] * K + (at + k)[None, :])
        b = tl.load(b_ptr + (at + k)[:, None] * N + j[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + i[:, None] * N + j[None, :], acc)


def test_pinned_operands_of_a_matmul(torch):
    a = torch.randint(-3, 4, (512, 512)).half()
    b = torch.randint(-3, 4, (512, 512)).half()
    wanted = a.float() @ b.float()
    c = torch.zeros(512, 512, device="cuda")
    on_gpu = multiply[(4, 4)](a.cuda(), b.cuda(), c, 512, 512, BLOCK=128)
    assert torch.equal(c.cpu(), wanted)
    for _ in range(2):
        c.zero_()
        pinned = multiply[(4, 4)](a.pin_memory(), b.cuda(), c, 512, 512, BLOCK=128)
        assert torch.equal(c.cpu(), wanted)
    assert pinned.metadata["tensor_maps"] == []
    if on_gpu.metadata["tensor_maps"]:
        with pytest.raises(tessera.LaunchError, match="E070"):
            on_gpu[(4, 4)](a.pin_memory(), b.cuda(), c, 512, 512, 128)


def test_every_device_is_used(torch):
    for device in range(torch.cuda.device_count()):
        x = torch.randn(1000, device=f"cuda:{device}")
        out = torch.zeros_like(x)
        add[grid](x, x, out, 1000, BLOCK=256)
        assert torch.equal(out, x + x)


def test_a_compiled_kernel_is_launched(torch):
    kernel = tessera.compile(add, "*fp32, *fp32, *fp32, i32, 256", target="cuda")
    x, out = torch.randn(1000, device="cuda"), torch.zeros(1000, device="cuda")
    kernel[(4,)](x, x, out, 1000)
    assert torch.equal(out, x + x)


def test_the_cache_serves_another_process(torch, tmp_path):
    code = (
        "import torch, tessera\n"
        "from tessera.compiler import compile as compiling\n"
        "from gpu.test_launch import add, grid\n"
        "x = torch.ones(1000, device='cuda'); out = torch.zeros_like(x)\n"
        "made = []\n"
        "before = compiling._compile\n"
        "compiling._compile = lambda *a, **k: made.append(1) or before(*a, **k)\n"
        "add[grid](x, x, out, 1000, BLOCK=512)\n"
        "assert bool((out == 2).all())\n"
        "print(len(made))\n"
    )
    folders = [os.path.dirname(os.path.dirname(__file__)), *sys.path]
    env = {**os.environ, "TESSERA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(folders)}
    outputs = []
    for _ in range(2):
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
        outputs.append(run.stdout.strip() or run.stderr)
    assert outputs == ["1", "0"]


def _fault(connection: Any) -> None:
    import torch

    x = torch.zeros(16, device="cuda")
    messages = []
    for _ in range(2):
        try:
            write_far[(1,)](x, 1 << 45)
            torch.cuda.synchronize()
        except Exception as error:
            messages.append(f"{type(error).__name__}: {error}")
    connection.send(messages)


def test_after_a_fault_launches_say_what_happened(torch):
    # In a process of its own, which cannot use the GPU any more afterwards.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_fault, args=(theirs,))
    process.start()
    assert ours.poll(120)
    messages = ours.recv()
    process.join()
    assert len(messages) == 2
    assert "write_far" in messages[1] and "ILLEGAL_ADDRESS" in messages[1]


def test_device_info():
    info = _C.cuda_device_info(0)
    assert info["capability"][0] >= 8 and info["multiprocessors"] > 0
    assert _C.cuda_pointer_device(0) == -1
