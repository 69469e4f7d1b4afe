# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuning on a CUDA driver that only notes launches down (runtime/fake_cuda.c), in whose time
each program of a grid takes a microsecond: larger blocks are faster there."""

from __future__ import annotations

import os
import sys
import textwrap

import pytest

from runtime.fake_gpu import driver, pytestmark, run  # noqa: F401
from runtime.test_compile_in_parallel import RENDEZVOUS
from tessera.compiler.toolchain import find_ptxas

TUNED = """
import os
from tessera.tuning import session
from tessera.testing import do_bench, do_bench_cudagraph

class Array(Tensor):
    def __init__(self, address, count, dtype=None):
        super().__init__(address)
        self.shape = (count,)
Array.__module__, Array.__name__ = "torch", "Tensor"

@tessera.jit
def increment(x_ptr, y_ptr, n, m, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)

x, y, out = (Array((1 << 40) + 4096 * k, 1000) for k in (1, 2, 3))
grid = lambda meta: (tessera.cdiv(meta["n"], meta["BLOCK"]),)

def configs(*sizes, **more):
    return [tessera.Config({"BLOCK": size}, **more) for size in sizes]
"""


def test_the_fastest_by_events(run):
    run(TUNED + """
kernel = tessera.autotune(configs(64, 256, 128), key=["n"])(add)
kernel[grid](x, y, out, 1 << 20)
assert kernel.best_config == configs(256)[0], kernel.best_config
times = {config.kwargs["BLOCK"]: timing for config, timing in kernel.configs_timings.items()}
assert abs(times[256][0] - 4.096) < 0.01 and abs(times[64][0] - 16.384) < 0.01, times
# The cache is overwritten before each run, outside of what is timed; nothing is left behind.
assert number("fills") > 6 and number("bytes") // number("fills") == 1 << 20
assert number("copies") == 0 and number("buffers") == 0
noted = number("launches")
for _ in range(10):
    kernel[grid](x, y, out, 1 << 20)
    assert list(last().grid) == [1 << 12, 1, 1]
assert number("launches") == noted + 10 and not slow[4:]
assert "H200" not in str(kernel.cache) and "fake GPU 0" in str(kernel.cache)
""")


def test_warm_launches_do_without_python(run):
    run(TUNED + """
kernel = tessera.autotune(configs(64, 256), key=["n"])(add)
kernel[grid](x, y, out, 1000)
from tessera.tuning.autotuner import Autotuner
ways = []
launch = Autotuner._launch
Autotuner._launch = lambda *args: ways.append(1) or launch(*args)
for step in range(10):
    current[0] = 0x1000 + step
    kernel[grid](x, y, out, 1000)
    assert last().stream == 0x1000 + step
assert len(ways) <= 1  # which learned what torch calls its types
kernel[grid](x, y, out, 2000)
assert len(ways) <= 2
""")


def test_ties_go_to_fewer_registers_and_warps(run):
    run(TUNED + """
kernel = tessera.autotune([*configs(256, num_warps=8), *configs(256, num_warps=2),
                           *configs(256, num_warps=4)], key=["n"])(add)
kernel[grid](x, y, out, 1 << 20)
facts = {w: add.warmup(x, y, out, 1 << 20, BLOCK=256, num_warps=w) for w in (2, 4, 8)}
least = min(facts, key=lambda w: (facts[w].n_regs * w, facts[w].shared))
assert kernel.best_config.num_warps == least, (kernel.best_config, least)
""")


def test_what_is_read_and_written_is_put_back(run):
    run(TUNED + """
kernel = tessera.autotune(configs(64, 256), key=["n"])(increment)
kernel[grid](x, y, 1000, 0)
runs = number("launches") - 1
# once to keep it, before each run, and at the end
assert number("copies") == runs + 2 and number("copied") == 4000, (runs, number("copies"))
assert number("buffers") == 0
""")


def test_without_memory_for_copies(run):
    run(TUNED + """
ctypes.c_int.in_dll(fake, "fake_full").value = 1
kernel = tessera.autotune(configs(64, 256), key=["n"])(increment)
kernel[grid](x, y, 1000, 0)
assert kernel.best_config == configs(256)[0]
assert number("fills") == 0 and number("copies") == number("launches") - 1 + 2
""")


def test_in_a_graph(run):
    run(TUNED + """
kernel = tessera.autotune(configs(64, 256, 128), key=["n"], use_cuda_graph=True)(add)
kernel[grid](x, y, out, 1 << 20)
assert kernel.best_config == configs(256)[0], kernel.best_config
times = {config.kwargs["BLOCK"]: timing for config, timing in kernel.configs_timings.items()}
assert abs(times[256][0] - 4.096) < 0.01, times
assert number("graphs") > 3 and number("captured") >= 10 * 3 and number("fills") == 0
""")


def test_while_a_graph_is_recorded(run):
    run(TUNED + """
kernel = tessera.autotune(configs(64, 256), key=["n"])(add)
current[0] = 0x1230
capturing = ctypes.c_void_p.in_dll(fake, "fake_capturing")
capturing.value = 0x1230
with expect(tessera.TuningError, "E059", "recorded into a CUDA graph", "launch it once before"):
    kernel[grid](x, y, out, 1 << 20)
assert number("launches") == number("captured") == 0
capturing.value = None
kernel[grid](x, y, out, 1 << 20)
capturing.value = 0x1230
kernel[grid](x, y, out, 1 << 20)
assert number("captured") == 1
# What another process has found is as good.
again = tessera.autotune(configs(64, 256), key=["n"])(add)
again[grid](x, y, out, 1 << 20)
assert number("captured") == 2
# One that is not to be chosen among others needs no tuning.
tessera.autotune(configs(64), key=["n"])(add)[grid](x, y, out, 1 << 20)
assert number("captured") == 3
""")


def test_candidates_that_a_gpu_has_no_room_for(run):
    run(TUNED + """
@tessera.jit
def matmul(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr):
    i, k = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * K + i[None, :])
    tl.store(c_ptr + i[:, None] * K + i[None, :], tl.dot(a, b))

a, b = array(1 << 40), array((1 << 40) + (1 << 20))
kernel = tessera.autotune(configs(64, 256, 32, num_warps=8), key=["K"])(matmul)
kernel[(1,)](a, b, out, 4096)
assert [config.kwargs["BLOCK"] for config in kernel.failures] == [256], kernel.failures
(error,) = kernel.failures.values()
assert error.id == "E069", error
""")


def test_configurations_for_a_gpu(run):
    run(TUNED + """
kernel = tessera.autotune("auto", key=["n"])(add)
kernel[grid](x, y, out, 1 << 20)
assert {config.num_warps for config in kernel.configs} == {2, 4, 8}
assert kernel.best_config.kwargs["BLOCK"] == max(c.kwargs["BLOCK"] for c in kernel.configs)
found = tessera.tune(add, grid, (x, y, out, 1 << 20), {"BLOCK": [64, 128, 512], "num_warps": [2, 4]},
                     seconds=30)
assert found.config.kwargs == {"BLOCK": 512} and len(found.timings) == 6
""")


def test_the_time_of_any_function(run):
    run(TUNED + """
torch.cuda.current_stream = lambda device=None: SimpleNamespace(cuda_stream=0)
torch.cuda.current_device = lambda: 0
add[(500,)](x, y, out, 1000, BLOCK=256)
time = do_bench(lambda: add[(500,)](x, y, out, 1000, BLOCK=256))
assert abs(time - 0.5) < 1e-3, time
times = do_bench(lambda: add[(500,)](x, y, out, 1000, BLOCK=256), return_mode="all", rep=10)
assert len(times) == 20, times
# and without torch, once a kernel of ours has been launched on a GPU
torch.cuda.is_initialized = lambda: False
assert abs(do_bench(lambda: add[(500,)](x, y, out, 1000, BLOCK=256)) - 0.5) < 1e-3
assert do_bench(lambda: None, device="cpu", rep=1) < 1
assert number("buffers") == 0
""")


def test_the_time_in_a_graph_of_torchs(run):
    run(TUNED + """
class Stream:
    cuda_stream = 0x4560
    def __enter__(self): current[0] = self.cuda_stream
    def __exit__(self, *error): current[0] = 0

capturing = ctypes.c_void_p.in_dll(fake, "fake_capturing")

class Graph:
    def __enter__(self): capturing.value = 0x4560; self.before = number("captured")
    def __exit__(self, *error): capturing.value = None; self.count = number("captured") - self.before
    def replay(self):
        for _ in range(self.count): add[(500,)](x, y, out, 1000, BLOCK=256)

torch.cuda.is_available = lambda: True
torch.cuda.current_device = lambda: 0
torch.cuda.Stream = Stream
torch.cuda.stream = lambda stream: stream
torch.cuda.current_stream = lambda device=None: Stream
torch.cuda.CUDAGraph = Graph
torch.cuda.graph = lambda graph: graph
time = do_bench_cudagraph(lambda: add[(500,)](x, y, out, 1000, BLOCK=256))
assert abs(time - 0.5) < 1e-3 and number("captured") == 40, (time, number("captured"))
""")


def test_what_a_gpu_could_do(run):
    run(TUNED + """
from tessera.testing import get_dram_gbps, get_max_simd_tflops, get_max_tensorcore_tflops
assert get_dram_gbps(0) == 2619000 * 5120 * 2 / 1e6 / 8
whole = get_max_tensorcore_tflops(tl.float16, 1_000_000, 0)
assert abs(whole - 4 * 132 * 1024 * 1e6 * 1e-9) < 1e-6
assert get_max_tensorcore_tflops("int8", 1_000_000, 0) == 2 * whole
assert get_max_tensorcore_tflops("float32", 1_000_000, 0) == whole / 2
assert get_max_simd_tflops(tl.float32, 1_000_000, 0) == whole / 16
with expect(tessera.LaunchError, "E054", "fp64"):
    get_max_tensorcore_tflops(tl.float64, 1_000_000, 0)
""")


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core")
def test_candidates_are_in_ptxas_at_once(run, tmp_path):
    # None of the first two goes on before the other is there, too.
    script = tmp_path / "ptxas"
    text = textwrap.dedent(RENDEZVOUS).format(count=2, ptxas=find_ptxas())
    script.write_text(f"#!{sys.executable}\n{text}")
    script.chmod(0o755)
    run(TUNED + f"""
import tessera.tuning.candidates
tessera.tuning.candidates.free_cpus = lambda: 4  # however busy the machine is
tessera.settings.ptxas = {str(script)!r}
kernel = tessera.autotune(configs(64, 256, 128, 512), key=["n"])(add)
kernel[grid](x, y, out, 1 << 20)
assert kernel.best_config == configs(512)[0]
kernel.warmup(x, y, out, 1 << 20, grid=grid, num_threads=1)
""")
    assert len(list(tmp_path.glob("came-*"))) >= 4 and not (tmp_path / "late").exists()


def test_what_is_the_same_code_is_measured_once(run):
    run(TUNED + """
several = [tessera.Config({"BLOCK": 256}, num_stages=stages) for stages in (1, 2, 3, 4)]
kernel = tessera.autotune([*several, *configs(64)], key=["n"])(add)
kernel[grid](x, y, out, 1 << 20)
assert kernel.best_config == several[0]
assert len({tuple(kernel.configs_timings[config]) for config in several}) == 1
""")
