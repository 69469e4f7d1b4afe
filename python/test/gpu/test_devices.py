# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several GPUs in a process: each launch goes where its arrays are, whatever is current."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from gpu.test_launch import spin

import tessera
import tessera.language as tl

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are not two GPUs"),
]


@tessera.jit
def scale(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


@tessera.jit
def matmul(a_ptr, b_ptr, out_ptr, M, N, K, BLOCK: tl.constexpr):
    """By tensor maps and more shared memory than a program has without asking for it."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, 64)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for at in range(0, K, 64):
        a = tl.load(a_ptr + i[:, None] * K + (at + k)[None, :])
        b = tl.load(b_ptr + (at + k)[:, None] * N + j[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(out_ptr + i[:, None] * N + j[None, :], acc)


def launch(x: Any, out: Any, factor: float, block: int = 256) -> Any:
    return scale[(tessera.cdiv(x.numel(), block),)](x, out, x.numel(), factor, BLOCK=block)


@pytest.mark.parametrize("current", [0, 1])
@pytest.mark.parametrize("first", [0, 1])
def test_a_launch_goes_where_its_arrays_are(current: int, first: int) -> None:
    torch.cuda.set_device(current)
    try:
        kernels = []
        # The first launch, which compiles or loads, and warm ones, in turns. Another block in
        # each case, so that each is a kernel of its own.
        block = 64 << (2 * current + first)
        for repeat in range(3):
            for device in (first, 1 - first):
                x = torch.randn(1000, device=f"cuda:{device}")
                out = torch.full_like(x, float("nan"))
                kernels.append(launch(x, out, 2.0 + repeat, block))
                assert torch.equal(out, x * (2.0 + repeat))
                assert torch.cuda.current_device() == current, "a launch leaves what is current"
        names = {kernel.metadata["arch"] for kernel in kernels}
        assert len(names) == len(
            {torch.cuda.get_device_capability(device) for device in range(2)}
        ), "two GPUs of a kind need one compilation"
    finally:
        torch.cuda.set_device(0)


def test_streams_are_those_of_the_device() -> None:
    """A kernel comes behind what its own device's current stream holds, and waits for no other."""
    busy = torch.ones(1, dtype=torch.int32, device="cuda:0")
    x = torch.randn(1 << 20, device="cuda:1")
    spin[(1,)](busy, 1)  # compiled and loaded, as the other
    launch(x, torch.empty_like(x), 1.0)
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    streams = [torch.cuda.Stream(device=device) for device in range(2)]
    with torch.cuda.stream(streams[0]):
        spin[(1,)](busy, 200_000_000)  # of the first device, for a second or so
    with torch.cuda.stream(streams[1]):  # makes the second device current, too
        y = torch.zeros_like(x)
        y.copy_(x)
        out = torch.empty_like(x)
        launch(y, out, 3.0)
        done = torch.cuda.Event()
        done.record()
    done.synchronize()
    assert torch.equal(out, x * 3.0)
    assert not streams[0].query(), "the first device was not waited for"
    streams[0].synchronize()
    # A stream that is given is one of the arrays' device, whatever is current.
    third = torch.full_like(x, float("nan"))
    scale[(tessera.cdiv(x.numel(), 256),)](x, third, x.numel(), 5.0, BLOCK=256, stream=streams[1])
    streams[1].synchronize()
    assert torch.equal(third, x * 5.0)


def test_each_device_has_its_own_module_and_limits() -> None:
    outs = []
    for device in (1, 0, 1):
        torch.manual_seed(0)
        a = torch.randn(256, 512).half().to(f"cuda:{device}")
        b = torch.randn(512, 256).half().to(f"cuda:{device}")
        out = torch.full((256, 256), float("nan"), device=f"cuda:{device}")
        kernel = matmul[(2, 2)](a, b, out, 256, 256, 512, BLOCK=128)
        assert kernel.shared > 48 * 1024
        outs.append(out.cpu())
        exact = a.double().cpu() @ b.double().cpu()
        assert (outs[-1] - exact).abs().max() < 1e-2
    assert torch.equal(outs[0], outs[1]) and torch.equal(outs[0], outs[2])


def test_threads_with_a_device_each() -> None:
    failures: list[BaseException] = []

    def work(device: int) -> None:
        try:
            torch.cuda.set_device(device)
            for repeat in range(50):
                x = torch.randn(4096, device="cuda")
                out = torch.empty_like(x)
                launch(x, out, float(repeat), block=512)
                assert torch.equal(out, x * float(repeat))
                assert torch.cuda.current_device() == device
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(index % 2,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_arrays_of_two_devices_are_refused() -> None:
    x, out = torch.randn(16, device="cuda:1"), torch.empty(16, device="cuda:0")
    for repeat in range(2):
        with pytest.raises(
            tessera.ArgumentError, match="`out_ptr` is on GPU 0.*`x_ptr` is on GPU 1"
        ):
            launch(x, out, 2.0)
    with pytest.raises(tessera.ArgumentError, match="is on GPU"):
        spin[(1,)](torch.ones(1, dtype=torch.int32, device="cuda:1"), 1, target="cpu")


def test_a_compiled_kernel_goes_to_either() -> None:
    major, minor = torch.cuda.get_device_capability(0)
    if (major, minor) != torch.cuda.get_device_capability(1):
        pytest.skip("they are of two kinds")
    kernel = tessera.compile(scale, "*fp32, *fp32, i32, fp32, 128", target="cuda")
    for device in (1, 0):
        x = torch.randn(1000, device=f"cuda:{device}")
        out = torch.full_like(x, float("nan"))
        kernel[(8,)](x, out, 1000, 2.0)
        assert torch.equal(out, x * 2.0)
