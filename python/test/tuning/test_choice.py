# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which configuration a tuned kernel is launched with, and that its result is right."""

from __future__ import annotations

import dataclasses
import gc
import multiprocessing
import pathlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import Config
from tessera.machine import devices
from tessera.runtime.hooks import hooks
from tessera.settings import settings
from tessera.tuning import Autotuner, session

from .kernels import accumulate, blocks, grid, increment, numbers, scale, steps, work


def count_tunings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    tuned: list[str] = []
    choose = session.choose
    monkeypatch.setattr(session, "choose", lambda *args: tuned.append(args[0]) or choose(*args))
    return tuned


def test_the_fastest_is_chosen():
    tuned = tessera.autotune(steps(400, 40, 4000, 100), key=["n"])(work)
    out = numbers(2)
    for _ in range(3):
        tuned[(1,)](out, 100)
        assert out[0] == 7
        assert tuned.best_config == Config({"STEPS": 40})
    medians = {config.kwargs["STEPS"]: times[0] for config, times in tuned.configs_timings.items()}
    assert medians[40] < medians[100] < medians[400] < medians[4000]
    assert tuned.bench_time > 0 and not tuned.failures


def test_twenty_tunings_choose_the_same():
    chosen = []
    for _ in range(20):
        tuned = tessera.autotune(steps(100, 110, 130), key=[], cache_results=False)(work)
        tuned[(1,)](numbers(2), 100)
        chosen.append(tuned.best_config.kwargs["STEPS"])
    # A machine that is busy with something else may mislead one or two.
    assert chosen.count(100) >= 17


def test_a_tie_goes_to_the_first_of_equal_ones():
    tuned = tessera.autotune([Config({"BLOCK": 64}, num_warps=w) for w in (8, 4, 2)], key=["n"])
    kernel = tuned(scale)
    kernel[grid](numbers(), numbers(), 1000)
    # On the CPU the three are one kernel, measured once.
    assert kernel.best_config.num_warps == 8
    assert len({tuple(times) for times in kernel.configs_timings.values()}) == 1


def test_each_value_of_the_key_has_its_choice(monkeypatch):
    tuned = count_tunings(monkeypatch)
    kernel = tessera.autotune(blocks(32, 128), key=["n"])(scale)
    for _ in range(3):
        for n in (100, 200, 1):
            x, out = numbers(n), np.zeros(n, np.float32)
            kernel[grid](x, out, n)
            assert (out == 2 * x).all()
    assert len(tuned) == 3 and len(kernel.cache) == 3


def test_what_is_not_in_the_key_changes_nothing(monkeypatch):
    tuned = count_tunings(monkeypatch)
    kernel = tessera.autotune(blocks(32, 128), key=[])(scale)
    for n in (100, 200, 1):
        kernel[grid](numbers(n), numbers(n), n)
    assert len(tuned) == 1


def test_an_array_in_the_key_is_told_from_others(monkeypatch):
    """Sizes may be in an array, which the key then names (as a tutorial of Triton's has it)."""
    tuned = count_tunings(monkeypatch)
    kernel = tessera.autotune(blocks(32, 128), key=["x_ptr", "n"])(scale)
    first, second, out = numbers(64), numbers(64), np.zeros(64, np.float32)
    for x in (first, second, first, second, second):
        kernel[grid](x, out, 64)
    assert len(tuned) == 2 and len(kernel.cache) == 2
    kernel[grid](first, out, 60)
    assert len(tuned) == 3
    kernel[grid](first, np.zeros(64, np.float32), 60)  # is not in the key
    assert len(tuned) == 3
    # What comes to lie where an array was is another one.
    x = first.copy()
    kernel[grid](x, out, 64)
    assert len(tuned) == 4
    kept = len(kernel.cache)
    del x
    gc.collect()
    assert len(kernel.cache) == kept - 1
    # Addresses mean nothing to another process.
    folder = pathlib.Path(settings.cache_dir) / "tuned"
    assert not [path for path in folder.rglob("*") if path.is_file() and path.name[0] != "."]


def test_element_types_belong_to_the_key(monkeypatch):
    tuned = count_tunings(monkeypatch)
    kernel = tessera.autotune(blocks(32, 128), key=["n"])(scale)
    for dtype in (np.float32, np.int32, np.float32):
        x, out = np.arange(64, dtype=dtype), np.zeros(64, dtype)
        kernel[grid](x, out, 64)
        assert (out == 2 * x).all()
    assert len(tuned) == 2


def test_keywords_in_any_order_are_one_key(monkeypatch):
    tuned = count_tunings(monkeypatch)
    kernel = tessera.autotune(blocks(32, 128), key=["n"])(scale)
    x = numbers(64)
    kernel[grid](x, x.copy(), 64)
    kernel[grid](n=64, out_ptr=x.copy(), x_ptr=x)
    assert len(tuned) == 1
    # An argument without its keyword's default is the same as with it.
    assert len(kernel.cache) == 1


def test_options_of_a_launch_belong_to_the_key(monkeypatch):
    tuned = count_tunings(monkeypatch)
    kernel = tessera.autotune(blocks(32, 128), key=["n"])(increment)
    x = numbers()
    for _ in range(2):
        kernel[grid](x, 1000)
        kernel[grid](x, 1000, num_threads=1)
    assert len(tuned) == 2 and (x == numbers() + 4).all()


def test_arrays_in_tuples(monkeypatch):
    @tessera.jit
    def double(pair, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(pair[1] + i, tl.load(pair[0] + i, mask=i < n) * 2, mask=i < n)

    tuned = count_tunings(monkeypatch)
    kernel = tessera.autotune(blocks(32, 128), key=["n"])(double)
    for dtype in (np.float32, np.int32):
        x = np.arange(100, dtype=dtype)
        kernel[grid]((x, x), 100)  # both the same
        assert (x == 2 * np.arange(100)).all()
    assert len(tuned) == 2


@dataclasses.dataclass
class Pair:
    x: Any
    out: Any


@tessera.aggregate
class Pointers:
    x: tl.tensor
    out: tl.tensor


@pytest.mark.parametrize("make", [Pair, Pointers, lambda x, out: [x, out]])
def test_arrays_in_other_parts(monkeypatch, make):
    @tessera.jit
    def double(pair, n, BLOCK: tl.constexpr):
        x, out = pair if isinstance(pair, tl.tuple) else (pair.x, pair.out)
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

    tuned = count_tunings(monkeypatch)
    kernel = tessera.autotune(blocks(32, 128), key=["n", "pair"])(double)
    for dtype in (np.float32, np.int32):
        for _ in range(2):
            x = np.arange(100, dtype=dtype)
            kernel[grid](make(x, x), 100)
            assert (x == 2 * np.arange(100)).all()
    assert len(tuned) == 2


@tessera.jit
def element_at(p):
    return tl.load(p)


@tessera.jit
def increment_by_map(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.map_elementwise(element_at, x_ptr + i) + 1)


def test_arrays_that_functions_of_elements_read_are_protected():
    x = numbers(1024)
    tessera.autotune(blocks(32, 128), key=["n"])(increment_by_map)[grid](x, 1024)
    assert (x == numbers(1024) + 1).all()


def test_arrays_that_are_read_and_written_are_protected():
    x = numbers()
    kernel = tessera.autotune(blocks(32, 128, 256), key=["n"])(increment)
    kernel[grid](x, 1000)
    assert (x == numbers() + 1).all()
    kernel[grid](x, 1000)
    assert (x == numbers() + 2).all()


def test_sums_by_atomics_are_protected():
    x, total = np.ones(1000, np.float32), np.full(1, 5, np.float32)
    kernel = tessera.autotune(blocks(32, 128, 256), key=["n"])(accumulate)
    kernel[grid](x, total, 1000)
    assert total[0] == 1005


def test_one_array_as_two_arguments_is_protected():
    x = numbers()
    kernel = tessera.autotune(blocks(32, 128, 256), key=["n"])(scale)
    kernel[grid](x, x, 1000)
    assert (x == 2 * numbers()).all()
    # and one that overlaps another
    y = numbers(1001)
    kernel.cache.clear()
    kernel[(1,)](y[:1], y[:1], 1)
    assert y[0] == 0 and (y[1:] == numbers(1001)[1:]).all()


def test_views_and_strides_are_put_back_exactly():
    whole = numbers(4096).reshape(64, 64)
    kernel = tessera.autotune(blocks(32, 128), key=["n"])(increment)
    kernel[grid](whole[2:, 3:], 64)
    expected = numbers(4096)
    expected[2 * 64 + 3 : 2 * 64 + 3 + 64] += 1
    assert (whole.ravel() == expected).all()


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    x = torch.arange(1000, dtype=torch.float32)
    kernel = tessera.autotune(blocks(32, 128, 256), key=["n"])(increment)
    for step in range(1, 4):
        kernel[grid](x, 1000)
        assert torch.equal(x, torch.arange(1000) + float(step))
    assert len(kernel.cache) == 1


def test_no_framework_is_imported(tmp_path):
    import subprocess
    import sys

    script = tmp_path / "script.py"
    script.write_text(
        "import sys, array, tessera, tessera.language as tl\n"
        "class Raw:\n"
        "    dtype, shape = 'float32', (64,)\n"
        "    def __init__(self): self.kept = array.array('f', range(64))\n"
        "    def data_ptr(self): return self.kept.buffer_info()[0]\n"
        "@tessera.autotune([tessera.Config({'B': b}) for b in (16, 64)], key=['n'])\n"
        "@tessera.jit\n"
        "def k(x, n, B: tl.constexpr):\n"
        "    i = tl.program_id(0) * B + tl.arange(0, B)\n"
        "    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)\n"
        "raw = Raw()\n"
        "k[lambda meta: (tessera.cdiv(64, meta['B']),)](raw, 64)\n"
        "assert list(raw.kept) == [i + 1.0 for i in range(64)], raw.kept\n"
        "assert not {'torch', 'numpy', 'jax'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, str(script)], check=True, timeout=120)


def test_one_configuration_is_not_measured(monkeypatch):
    tuned = count_tunings(monkeypatch)
    kernel = tessera.autotune(blocks(64), key=["n"])(scale)
    x, out = numbers(), np.zeros(1000, np.float32)
    kernel[grid](x, out, 1000)
    assert (out == 2 * x).all() and not tuned and kernel.best_config == blocks(64)[0]


def test_choices_may_be_forgotten(monkeypatch):
    tuned = count_tunings(monkeypatch)
    kernel = tessera.autotune(blocks(32, 128), key=["n"], cache_results=False)(scale)
    for _ in range(3):
        kernel[grid](numbers(), numbers(), 1000)
    assert len(tuned) == 1
    kernel.cache.clear()
    kernel[grid](numbers(), numbers(), 1000)
    assert len(tuned) == 2
    kernel.configs = kernel.configs[:1]
    kernel[grid](numbers(), numbers(), 1000)
    assert kernel.best_config == blocks(32)[0]


FACTOR = tl.constexpr(2)


@tessera.jit
def times_factor(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * FACTOR, mask=i < n)


def test_a_changed_global_is_noticed():
    global FACTOR
    kernel = tessera.autotune(blocks(32, 128), key=["n"])(times_factor)
    x = numbers(64)
    kernel[grid](x, 64)
    kernel[grid](x, 64)
    assert (x == 4 * numbers(64)).all()
    try:
        FACTOR = tl.constexpr(3)
        kernel[grid](x, 64)
        assert (x == 12 * numbers(64)).all()
    finally:
        FACTOR = tl.constexpr(2)


@tessera.jit
def with_defaults(x_ptr, n, BLOCK: tl.constexpr = 16, PLUS: tl.constexpr = 1):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + PLUS, mask=i < n)


def test_configurations_with_different_parameters():
    configs = [Config({"BLOCK": 32}), Config({"BLOCK": 64, "PLUS": 1})]
    kernel = tessera.autotune(configs, key=["n"])(with_defaults)
    x = numbers()
    for step in range(1, 4):
        kernel[grid](x, 1000)
        assert (x == numbers() + step).all()


def test_a_grid_function_has_all_arguments():
    seen = {}

    def count(meta: Any) -> tuple[int]:
        seen.update(meta)
        assert meta["num_warps"] == 4
        return (tessera.cdiv(meta["n"], meta["BLOCK"]),)

    kernel = tessera.autotune(blocks(32, 128), key=["n"])(with_defaults)
    for _ in range(3):
        seen.clear()
        kernel[count](numbers(), 1000)
        assert seen["n"] == 1000 and seen["BLOCK"] == kernel.best_config.kwargs["BLOCK"]
        assert seen["PLUS"] == 1


def test_threads_tune_a_key_once(monkeypatch):
    tuned = count_tunings(monkeypatch)
    kernel = tessera.autotune(blocks(32, 64, 128), key=["n"])(increment)

    def launch(index: int) -> bool:
        x = numbers()
        kernel[grid](x, 1000)
        return bool((x == numbers() + 1).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(launch, range(32)))
    assert len(tuned) == 1


def test_threads_tune_different_keys():
    kernel = tessera.autotune(blocks(32, 64), key=["n"])(increment)
    sizes = [100 * (1 + index) for index in range(8)]

    def launch(n: int) -> bool:
        x = numbers(n)
        kernel[grid](x, n)
        return bool((x == numbers(n) + 1).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(launch, sizes))
    assert len(kernel.cache) == len(sizes)


forked = tessera.autotune(blocks(32, 64), key=["n"], cache_results=False)(increment)


def _launch_in_child(queue: Any) -> None:
    x = numbers()
    forked[grid](x, 1000)
    y = numbers(77)
    forked[grid](y, 77)
    queue.put(bool((x == numbers() + 1).all() and (y == numbers(77) + 1).all()))


def test_a_forked_child_tunes(monkeypatch):
    forked[grid](numbers(), 1000)
    holding = threading.Event()
    release = threading.Event()

    def hold() -> None:
        with forked._lock, session._MEASURING:
            holding.set()
            release.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_launch_in_child, args=(queue,))
    child.start()
    try:
        assert queue.get(timeout=60)
    finally:
        release.set()
        thread.join()
        child.join(10)


def test_the_interpreter_takes_the_first():
    with settings.override(interpret=True):
        kernel = tessera.autotune(blocks(32, 64), key=["n"])(scale)
        x, out = numbers(100), np.zeros(100, np.float32)
        kernel[grid](x, out, 100)
        assert (out == 2 * x).all() and kernel.best_config == blocks(32)[0]


def test_the_interpreter_is_asked_for():
    kernel = tessera.autotune(blocks(32, 64), key=["n"])(
        tessera.heuristics({"PLUS": lambda args: args["BLOCK"]})(with_defaults)
    )
    x = numbers(100)
    tessera.interpret(kernel)[grid](x, 100)
    assert (x == numbers(100) + 32).all() and not kernel.cache


def test_warmup_compiles_each():
    kernel = tessera.autotune(blocks(32, 64, 128), key=["n"])(scale)
    found = kernel.warmup(tl.float32, tl.float32, 1000, grid=grid)
    assert [item.name for item in found] == ["scale"] * 3
    pruned = tessera.autotune(
        blocks(32, 64, 128),
        ["n"],
        {"early_config_prune": lambda configs, named, **more: configs[:2]},
    )(scale)
    assert len(pruned.warmup(tl.float32, tl.float32, 1000, grid=grid)) == 2


def test_listeners_are_told():
    told: list[Any] = []
    hooks.autotuning_listener = lambda **what: told.append(what)
    try:
        for _ in range(2):
            kernel = tessera.autotune(blocks(32, 64), key=["n"])(scale)
            kernel[grid](numbers(), numbers(), 1000)
            kernel[grid](numbers(), numbers(), 1000)
    finally:
        hooks.autotuning_listener = None
    assert [what["cache_hit"] for what in told] == [False, True]
    assert told[0]["best_config"] == told[1]["best_config"]
    assert all(what["fn"] is scale for what in told)
    assert told[0]["duration"] > 0 and told[1]["duration"] is None


def test_attributes_that_libraries_read():
    configs = blocks(32, 64)
    kernel = tessera.autotune(
        configs,
        key=["n"],
        prune_configs_by={"perf_model": lambda **named: 1, "top_k": 2},
        restore_value=["x_ptr"],
        reset_to_zero=["out_ptr"],
        warmup=1,
        rep=2,
    )(scale)
    assert kernel.fn is scale and kernel.base_fn is scale.fn and kernel.configs == configs
    assert kernel.arg_names == ["x_ptr", "out_ptr", "n", "BLOCK"] and kernel.keys == ["n"]
    assert kernel.perf_model is not None and kernel.configs_top_k == 2
    assert kernel.early_config_prune is None and not kernel.user_defined_pre_hook
    assert (kernel.num_warmups, kernel.num_reps, kernel.use_cuda_graph) == (1, 2, False)
    assert kernel.restore_value == ["x_ptr"] and kernel.reset_to_zero == ["out_ptr"]
    assert kernel.cache == {} and kernel.best_config is None and kernel.configs_timings == {}
    assert kernel.__name__ == "scale"


def test_configurations_are_values():
    config = Config({"BLOCK": 64}, num_warps=8)
    assert config == Config({"BLOCK": 64}, num_warps=8) != Config({"BLOCK": 64})
    assert hash(config) == hash(Config({"BLOCK": 64}, num_warps=8))
    assert config.all_kwargs() == {"BLOCK": 64, "num_warps": 8, "num_ctas": 1, "num_stages": 3}
    assert config != Config({"BLOCK": 64}, num_warps=8, pre_hook=print)
    assert str(config) == "BLOCK: 64, num_warps: 8, num_ctas: 1, num_stages: 3, maxnreg: None"
    assert str(config) != str(Config({"BLOCK": 64}, num_warps=8, ir_override="a.ttir"))
    import pickle

    assert pickle.loads(pickle.dumps(config)) == config
    assert eval(repr(config)) == config


def test_a_configuration_keeps_what_others_set_on_it():
    """As Inductor does with one from its cache, which it then sends to another process."""
    config = Config({"BLOCK": 64}, num_warps=8)
    config.extra_options = None
    config.found_by_coordesc = True
    import pickle

    found = pickle.loads(pickle.dumps(config))
    assert found == config
    assert (found.extra_options, found.found_by_coordesc) == (None, True)
    older = Config.__new__(Config)
    older.__setstate__({"kwargs": {"BLOCK": 64}, "num_warps": 8})
    assert older == Config({"BLOCK": 64}, num_warps=8)


def test_a_derived_class_that_chooses_in_another_way():
    """As libraries derive from Triton's Autotuner: with a `run` of their own, around `_bench`."""

    class Slowest(Autotuner):
        def run(self, *args: Any, **kwargs: Any) -> Any:
            self.nargs = dict(zip(self.arg_names, args))
            timings = {
                config: self._bench(*args, config=config, **kwargs)
                for config in self.prune_configs(kwargs)
            }
            self.measured = list(timings.values())
            self.best_config = max(timings, key=timings.__getitem__)
            return self.fn.run(*args, **kwargs, **self.best_config.all_kwargs())

    @tessera.jit
    def count(x_ptr, n, STEPS: tl.constexpr):
        tl.static_assert(STEPS < 10000)
        value = tl.load(x_ptr + 1)
        for _ in range(STEPS * n):
            value = value * 0.5 + 1.0
        tl.store(x_ptr, tl.load(x_ptr) + 1 + value * 0)

    configs = steps(10, 1000, 10000)
    kernel = Slowest(count, count.arg_names, configs[:2], [])
    x = np.zeros(2, np.float32)
    kernel[(1,)](x, n=10)
    assert x[0] == 1  # measuring leaves no trace
    fast, slow = kernel.measured
    assert kernel.best_config is configs[1]
    assert len(fast) == len(slow) == 3 and 0 < fast[0] < slow[0] < np.inf

    kernel.configs = configs[1:]
    with pytest.raises(tessera.CompilationError, match="static_assert"):
        kernel[(1,)](x, n=10)  # the slowest is the one that cannot be
    assert kernel.measured[1] == [np.inf] * 3 and x[0] == 1


def test_processes_that_compile_at_once_share_the_cpus(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "usable_cpus", lambda: 16)
    load = tmp_path / "loadavg"
    for running, threads in {1: 16, 17: 8, 65: 3, 10_000: 1}.items():
        load.write_text(f"0.1 0.2 0.3 {running}/900 4711\n")
        assert devices.free_cpus(str(load)) == threads
    assert devices.free_cpus(str(tmp_path / "nothing")) == 16
