# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""do_bench and assert_close, on the CPU."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import LaunchError
from tessera.testing import assert_close, do_bench, do_bench_cudagraph


def test_the_time_of_a_function():
    found = do_bench(lambda: time.sleep(0.002), warmup=1, rep=30)
    assert 2 <= found < 20


def test_what_is_returned():
    def sleep() -> None:
        time.sleep(0.0005)

    more = dict(warmup=1, rep=20, device="cpu")
    least, middle, most = (
        do_bench(sleep, return_mode=mode, **more) for mode in ("min", "median", "max")
    )
    assert 0.5 <= least and 0.5 <= middle and 0.5 <= most
    times = do_bench(sleep, return_mode="all", **more)
    assert isinstance(times, list) and len(times) >= 5 and min(times) >= 0.5
    quantiles = do_bench(sleep, quantiles=[0.5, 0.2, 0.8], **more)
    assert quantiles[1] <= quantiles[0] <= quantiles[2]
    assert isinstance(do_bench(sleep, quantiles=[0.5], **more), float)


def test_calls_are_as_many_as_the_time_allows():
    calls = []
    do_bench(lambda: calls.append(time.sleep(0.01)), warmup=50, rep=100)
    assert 1 + 5 + 2 + 5 <= len(calls) <= 1 + 5 + 5 + 10
    calls.clear()
    do_bench(lambda: calls.append(time.sleep(0.05)), warmup=1, rep=1)
    assert len(calls) == 1 + 5 + 1 + 1


def test_gradients_are_dropped():
    class Tensor:
        grad: Any = "old"

    tensor, seen = Tensor(), []

    def step() -> None:
        seen.append(tensor.grad)
        tensor.grad = "new"

    do_bench(step, warmup=0, rep=0.01, grad_to_none=[tensor])
    assert seen[0] == "old" and set(seen[1:]) == {None}


@tessera.jit
def fill(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 1.0, mask=i < n)


def test_the_time_of_a_kernel_grows_with_its_work():
    out = np.zeros(1 << 20, np.float32)

    def launch(n: int) -> Any:
        return lambda: fill[(n // 1024,)](out, n, BLOCK=1024)

    small, large = (
        do_bench(launch(n), warmup=5, rep=20, return_mode="min") for n in (1 << 12, 1 << 20)
    )
    assert 0 < small < large


def test_what_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        do_bench(lambda: 1 // 0)


@pytest.mark.parametrize(
    "bad",
    [dict(return_mode="mode"), dict(quantiles=[2]), dict(device="tpu"), dict(quantiles=[-0.1])],
)
def test_bad_arguments(bad):
    with pytest.raises(LaunchError) as error:
        do_bench(lambda: None, **bad)
    assert error.value.id == "E053"


def test_a_graph_needs_a_gpu():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(LaunchError, match="CUDA graph") as error:
        do_bench_cudagraph(lambda: None)
    assert error.value.id == "E066"


def test_close():
    x = np.linspace(0, 1, 100, dtype=np.float32)
    assert_close(x, x + 0.009)
    assert_close(x, list(x), atol=0)
    assert_close(1.0, 1.005)
    assert_close(np.float32("nan"), float("nan"))
    assert_close([float("nan"), 1], [float("nan"), 1])
    assert_close(x, x * 1.01, atol=1e-6, rtol=0.02)
    assert_close(x, x, atol=lambda dtype: 1e-3 if dtype == np.float32 else 0)
    for wrong in (dict(), dict(atol=0.01), dict(atol=lambda dtype: 0, rtol=lambda dtype: 0.01)):
        with pytest.raises(AssertionError, match="the sum"):
            assert_close(x, x + 0.02, err_msg="the sum", **wrong)
    with pytest.raises(AssertionError, match="the sum: 1.0 is not close to 2.0"):
        assert_close(1.0, 2.0, err_msg="the sum")
    with pytest.raises(AssertionError):
        assert_close([1.0, 2.0], [1.0, float("nan")])


def test_close_tensors():
    torch = pytest.importorskip("torch")
    x = torch.arange(8, dtype=torch.bfloat16, requires_grad=True)
    assert_close(x, x.detach().float().numpy())
    assert_close(torch.ones(3, dtype=torch.float16), np.ones(3))
    with pytest.raises(AssertionError):
        assert_close(x, x + 1)
