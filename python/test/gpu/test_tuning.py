# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuning on a GPU: the choice, what is put back, graphs, streams, launches, do_bench."""

from __future__ import annotations

import time
from typing import Any, Callable

import pytest

import tessera
import tessera.language as tl
from tessera.settings import settings
from tessera.testing import assert_close, do_bench, do_bench_cudagraph

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def own_results(tmp_path: Any) -> Any:
    with settings.override(cache_dir=str(tmp_path / "cache"), tune_progress="off"):
        yield


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@tessera.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    columns = tl.cdiv(N, BN)
    rm = pid // columns * BM + tl.arange(0, BM)
    rn = pid % columns * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rm[:, None] * K + (k + rk)[None, :])
        b = tl.load(b_ptr + (k + rk)[:, None] * N + rn[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], total.to(tl.float16))


@tessera.jit
def increment(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


@tessera.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


def tiles(meta: Any) -> tuple[int]:
    return (tessera.cdiv(meta["M"], meta["BM"]) * tessera.cdiv(meta["N"], meta["BN"]),)


def grid(meta: Any) -> tuple[int]:
    return (tessera.cdiv(meta["n"], meta["BLOCK"]),)


def blocks(*sizes: int, **more: Any) -> list[tessera.Config]:
    return [tessera.Config({"BLOCK": size}, **more) for size in sizes]


MATMULS = [
    tessera.Config({"BM": m, "BN": n, "BK": k}, num_warps=w, num_stages=s)
    for m, n, k, w in (
        (128, 256, 64, 8),
        (128, 128, 64, 4),
        (64, 64, 32, 4),
        (64, 128, 64, 4),
        (32, 32, 32, 2),
    )
    for s in (2, 3, 4)
]


def matrices(torch: Any, size: int) -> tuple[Any, Any, Any]:
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
    return a, b, torch.empty_like(a)


def test_a_matmul(torch):
    kernel = tessera.autotune(MATMULS, key=["M", "N", "K"])(matmul)
    a, b, c = matrices(torch, 2048)
    start = time.monotonic()
    kernel[tiles](a, b, c, 2048, 2048, 2048)
    torch.cuda.synchronize()
    print(f"15 configurations in {time.monotonic() - start:.2f} s: {kernel.best_config}")
    assert_close(c.float(), (a.float() @ b.float()), atol=0.5, rtol=0.02)
    best = kernel.configs_timings[kernel.best_config][0]
    working = [times[0] for times in kernel.configs_timings.values()]
    assert best <= 1.02 * min(working)
    alone = do_bench(lambda: kernel[tiles](a, b, c, 2048, 2048, 2048), return_mode="median")
    assert 0.7 * best < alone < 1.4 * best


def test_twenty_tunings_choose_as_well(torch):
    a, b, c = matrices(torch, 2048)
    chosen = []
    for _ in range(20):
        kernel = tessera.autotune(MATMULS, key=["M"], cache_results=False)(matmul)
        kernel[tiles](a, b, c, 2048, 2048, 2048)
        chosen.append(kernel.best_config)
    options = {config: config.all_kwargs() for config in MATMULS}
    times = {
        config: min(
            do_bench(
                lambda: matmul[tiles](a, b, c, 2048, 2048, 2048, **options[config]),
                return_mode="median",
            )
            for _ in range(3)
        )
        for config in MATMULS
    }
    losses = [times[config] / min(times.values()) - 1 for config in chosen]
    print("losses:", sorted(round(100 * loss, 2) for loss in losses), "%")
    # The times that decide are of a GPU that other tests use, too: 3.5 % was seen there.
    assert max(losses) < 0.05


def test_what_is_read_and_written_is_put_back(torch):
    x = torch.arange(100_000, device="cuda", dtype=torch.float32)
    kernel = tessera.autotune(blocks(64, 256, 1024), key=["n"])(increment)
    for step in range(1, 4):
        kernel[grid](x, 100_000)
        assert torch.equal(x, torch.arange(100_000, device="cuda") + float(step))


def test_views_and_other_streams(torch):
    whole = torch.zeros(64, 1024, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        kernel = tessera.autotune(blocks(64, 256), key=["n"])(increment)
        kernel[grid](whole[3, 8:], 512)
    side.synchronize()
    expected = torch.zeros(64, 1024)
    expected[3, 8 : 8 + 512] = 1
    assert torch.equal(whole.cpu(), expected)


def test_reset_to_zero(torch):
    @tessera.jit
    def total(x_ptr, sum_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.atomic_add(sum_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))

    x, out = torch.ones(4096, device="cuda"), torch.zeros(1, device="cuda")
    seen = []
    tuned = tessera.autotune(
        blocks(64, 256),
        key=["n"],
        reset_to_zero=["sum_ptr"],
        post_hook=lambda named, exception: seen.append(named["sum_ptr"].item()),
    )
    tuned(total)[grid](x, out, 4096)
    assert set(seen) == {4096.0} and out.item() == 4096


def test_in_graphs(torch):
    x, out = torch.ones(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
    kernel = tessera.autotune(blocks(64, 256, 1024), key=["n"], use_cuda_graph=True)(scale)
    kernel[grid](x, out, 1 << 20)
    assert torch.equal(out, 2 * x) and all(
        0.0005 < times[0] < 1 for times in kernel.configs_timings.values()
    )


def test_a_launch_in_a_graph(torch):
    x, out = torch.ones(4096, device="cuda"), torch.zeros(4096, device="cuda")
    kernel = tessera.autotune(blocks(64, 256), key=["n"])(scale)
    with pytest.raises(tessera.TuningError, match="recorded into a CUDA graph"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            kernel[grid](x, out, 4096)
    torch.cuda.synchronize()
    kernel[grid](x, out, 4096)
    out.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel[grid](x, out, 4096)
    out.zero_()
    graph.replay()
    assert torch.equal(out, 2 * x)


def test_what_does_not_fit_is_left_out(torch):
    configs = [*MATMULS[3:6], tessera.Config({"BM": 256, "BN": 256, "BK": 256}, num_warps=8)]
    kernel = tessera.autotune(configs, key=["M"])(matmul)
    a, b, c = matrices(torch, 512)
    kernel[tiles](a, b, c, 512, 512, 512)
    assert kernel.best_config in MATMULS and set(kernel.failures) <= {configs[-1]}
    assert_close(c.float(), (a.float() @ b.float()), atol=0.5, rtol=0.02)


def test_results_are_compared(torch):
    kernel = tessera.autotune(MATMULS, key=["M"], check=True)(matmul)
    a, b, c = matrices(torch, 512)
    kernel[tiles](a, b, c, 512, 512, 512)
    assert not kernel.failures


def test_automatic(torch):
    kernel = tessera.autotune("auto", key=["M", "N", "K"])(matmul)
    a, b, c = matrices(torch, 1024)
    kernel[tiles](a, b, c, 1024, 1024, 1024)
    assert_close(c.float(), (a.float() @ b.float()), atol=0.5, rtol=0.02)
    space = {"BM": [64, 128], "BN": [64, 128, 256], "BK": [32, 64], "num_warps": [4, 8]}
    args = (a, b, c, 1024, 1024, 1024)
    found = tessera.tune(matmul, tiles, args, space, seconds=20)
    assert found.milliseconds < 2 * kernel.configs_timings[kernel.best_config][0]


def test_cupy():
    cupy = pytest.importorskip("cupy")
    x = cupy.arange(10_000, dtype=cupy.float32)
    kernel = tessera.autotune(blocks(64, 256), key=["n"])(increment)
    for step in range(1, 4):
        kernel[grid](x, 10_000)
        assert bool((x == cupy.arange(10_000) + step).all())


def test_do_bench(torch):
    a, b, _ = matrices(torch, 4096)
    # Other processes may use the GPU meanwhile: some of many agree, and are the fastest.
    times = sorted(do_bench(lambda: a @ b, return_mode="median") for _ in range(8))
    assert times[2] < 1.25 * times[0]
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(50)]
    for before, after in events:
        before.record()
        a @ b
        after.record()
    torch.cuda.synchronize()
    fastest = min(before.elapsed_time(after) for before, after in events)
    assert abs(fastest / min(times) - 1) < 0.25
    # Graphs that are shorter than the time that a process has: the least is what none disturbed.
    graph = min(do_bench_cudagraph(lambda: a @ b, rep=0.3, return_mode="min") for _ in range(20))
    assert 0.8 < graph / min(times) < 3


def test_do_bench_has_the_cache_overwritten(torch):
    x = torch.ones(1 << 20, device="cuda")  # 4 MB, which fit
    out = torch.empty_like(x)

    def call():
        scale[grid](x, out, 1 << 20, BLOCK=1024)

    # Other processes may use the GPU meanwhile: the least is what none disturbed, of graphs that are
    # shorter than the time that a process has.
    cold = min(do_bench(call, return_mode="min") for _ in range(5))
    warm = min(do_bench_cudagraph(call, rep=0.3, return_mode="min") for _ in range(20))
    assert warm < cold


def measure(launch: Callable[[], Any], synchronize: Callable[[], None]) -> float:
    """The ns of this thread for a launch: what other processes take of its core does not count."""
    synchronize()
    start = time.thread_time_ns()
    for _ in range(100):
        launch()
    took = time.thread_time_ns() - start
    synchronize()
    return took / 100


def test_a_warm_launch_costs_hardly_more(torch):
    x, out = torch.ones(64, device="cuda"), torch.empty(64, device="cuda")
    # One program does a block, so configurations do different work, on purpose.
    kernel = tessera.autotune(blocks(32, 64), key=["n"], check=False)(scale)
    kernel[(1,)](x, out, 64)
    block = kernel.best_config.kwargs["BLOCK"]
    plain, tuned = [], []
    # The least of each is what nothing disturbed. Beside many processes that takes more series.
    for series in range(2000):
        plain.append(measure(lambda: scale[(1,)](x, out, 64, BLOCK=block), torch.cuda.synchronize))
        tuned.append(measure(lambda: kernel[(1,)](x, out, 64), torch.cuda.synchronize))
        if series >= 100 and min(tuned) < min(plain) + 300:
            break
    print(f"plain {min(plain):.0f} ns, tuned {min(tuned):.0f} ns")
    assert min(tuned) < min(plain) + 300
