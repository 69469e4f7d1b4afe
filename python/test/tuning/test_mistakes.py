# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes in autotuning: what is said, and that nothing is lost."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import CompilationError, Config, LaunchError, TuningError, TuningWarning

from .kernels import accumulate, blocks, grid, increment, numbers, scale


def refused(**arguments: Any) -> CompilationError:
    with pytest.raises(CompilationError) as error:
        tessera.autotune(**{"configs": blocks(32, 64), **arguments})(scale)
    assert error.value.id == "E059" and error.value.file == __file__ and error.value.line > 0
    return error.value


def test_names_that_are_no_parameters():
    error = refused(key=["typo"])
    assert error.message == "key names 'typo', which is no parameter of `scale`"
    assert error.fix == "the parameters are x_ptr, out_ptr, n, BLOCK"
    assert refused(key=["BLOK"]).fix == "did you mean `BLOCK`?"
    assert "reset_to_zero names 'y_ptr'" in refused(reset_to_zero=["y_ptr"]).message
    assert "restore_value names 'y_ptr'" in refused(restore_value=["y_ptr"]).message
    assert refused(key="n").fix == "pass a list: ['n']"


def test_configurations_that_are_none():
    assert "a configuration sets 'BLOK'" in refused(configs=[Config({"BLOK": 3})]).message
    assert "among the configurations is a dict" in refused(configs=[{"BLOCK": 3}]).message
    assert "cannot be hashed" in refused(configs=[Config({"BLOCK": [64]})]).message
    assert refused(configs="automatic").fix == 'pass a list of Config, or "auto"'
    assert refused(configs=Config({})).message == "configs is a Config"


def test_on_what_is_no_kernel():
    with pytest.raises(CompilationError, match="no kernel") as error:

        @tessera.autotune(blocks(32), key=[])
        def function(BLOCK):
            pass

    assert error.value.id == "E003" and "@jit right above the `def`" in error.value.fix


def test_the_other_way_round():
    with pytest.raises(CompilationError) as error:
        tessera.jit(tessera.autotune(blocks(32), key=[])(scale))
    assert error.value.id == "E003"


def test_twice():
    with pytest.raises(CompilationError, match="@autotune twice"):
        tessera.autotune(blocks(32), key=[])(tessera.autotune(blocks(32), key=[])(scale))


@tessera.jit
def plain(x_ptr, n):
    tl.store(x_ptr, n)


def test_an_empty_list():
    with pytest.warns(
        TuningWarning, match="list of configurations of kernel `plain` is empty"
    ) as told:
        kernel = tessera.autotune([], key=["n"])(plain)
    assert len(told) == 1 and told[0].filename == __file__
    x = numbers(1)
    kernel[(1,)](x, 7)
    assert x[0] == 7 and kernel.configs == [Config({})]


def test_a_parameter_in_the_call_and_in_the_configurations():
    for configs in (blocks(32), blocks(32, 64)):
        kernel = tessera.autotune(configs, key=["n"])(scale)
        for _ in range(2):
            with pytest.raises(ValueError, match="gets `BLOCK` from the call and from") as error:
                kernel[(1,)](numbers(), numbers(), 100, BLOCK=32)
            assert error.value.id == "E059"
            with pytest.raises(ValueError, match="gets `BLOCK` from the call and from"):
                kernel[(1,)](numbers(), numbers(), 100, 32)
            with pytest.raises(ValueError, match="gets `num_warps` from the call and from"):
                kernel[(1,)](numbers(), numbers(), 100, num_warps=8)
            kernel[grid](numbers(), numbers(), 100)  # the right call in between


@tessera.jit
def picky(x_ptr, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK != 64, "not 64")
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


def test_candidates_that_fail_stop_no_others():
    bad = [*blocks(64), *blocks(33), Config({"BLOCK": 32}, num_warps=3), *blocks(1 << 30)]
    seen = []

    def after(named: Any, exception: Any) -> None:
        if exception is not None:
            seen.append(exception)

    kernel = tessera.autotune([*bad, *blocks(32, 128)], key=["n"], post_hook=after)(picky)
    x = numbers()
    kernel[grid](x, 1000)
    assert (x == numbers() + 1).all()
    assert set(kernel.failures) == set(bad) and len(seen) == len(bad)
    reasons = {config: getattr(error, "id") for config, error in kernel.failures.items()}
    assert [reasons[config] for config in bad] == ["E067", "E018", "E053", "E021"]
    assert kernel.configs_timings[bad[0]] == [float("inf")] * 3


def test_all_fail():
    kernel = tessera.autotune([*blocks(64, 33), Config({"BLOCK": 32}, num_warps=3)], ["n"])(picky)
    x = numbers()
    for _ in range(2):
        with pytest.raises(TuningError) as error:
            kernel[grid](x, 1000)
        text = str(error.value)
        assert error.value.id == "E059" and "none of the 3 configurations of kernel `picky`" in text
        assert "BLOCK=64: " in text and "not 64" in text and "E018" in text and "E053" in text
        assert len(error.value.failures) == 3 and (x == numbers()).all()


def test_a_grid_that_suits_not_all():
    def check(meta: Any) -> tuple[int]:
        assert meta["BLOCK"] < 100, "too large"
        return grid(meta)

    kernel = tessera.autotune(blocks(32, 64, 128), ["n"])(increment)
    x = numbers()
    kernel[check](x, 1000)
    assert (x == numbers() + 1).all() and list(kernel.failures) == blocks(128)


def test_pruning_that_leaves_nothing():
    tuned = tessera.autotune(blocks(32, 64), ["n"], {"early_config_prune": lambda *a, **k: []})
    with pytest.raises(TuningError, match="early_config_prune of kernel `scale` left no config"):
        tuned(scale)[grid](numbers(), numbers(), 1000)


@pytest.mark.parametrize("top_k", ["2", 0, -1, 1.5])
def test_a_bad_top_k(top_k):
    prune = {"perf_model": lambda **named: 1, "top_k": top_k}
    with pytest.raises(TuningError, match="top_k is"):
        tessera.autotune(blocks(32, 64), ["n"], prune)(scale)[grid](numbers(), numbers(), 1000)


def test_a_key_that_cannot_be_hashed():
    kernel = tessera.autotune(blocks(32, 64), ["n"])(scale)
    with pytest.raises(LaunchError, match="cannot be hashed") as error:
        kernel[(1,)](numbers(), numbers(), [1])
    assert error.value.id == "E059"


def launched(**arguments):
    kernel = tessera.autotune(blocks(32, 64, 128), key=["n"], **arguments)(increment)
    x = numbers()
    kernel[grid](x, 1000)
    assert (x == numbers() + 1).all()
    return kernel


@pytest.mark.parametrize(
    "arguments, words",
    [
        (
            {"prune_configs_by": {"early_config_prune": lambda configs, named, **more: [1, 2]}},
            "early_config_prune of kernel `increment` returned an int among the configurations: 1",
        ),
        (
            {"prune_configs_by": {"perf_model": lambda **named: None, "top_k": 1}},
            "the perf_model of kernel `increment` returned None",
        ),
        ({"do_bench": lambda run, quantiles: run()}, "the do_bench of kernel `increment` returned None"),
    ],
)  # fmt: skip
def test_functions_that_return_no_number(arguments, words):
    with pytest.raises(TuningError, match=words) as error:
        launched(**arguments)
    assert error.value.id == "E059"


def test_what_is_no_number_is_never_the_best():
    for low in (32, 64, 128):

        def model(BLOCK, **others):
            return 5.0 if BLOCK == low else float("nan")

        kernel = launched(prune_configs_by={"perf_model": model, "top_k": 1})
        assert kernel.best_config.kwargs == {"BLOCK": low}

        times = iter([5.0 if block == low else float("nan") for block in (32, 64, 128)])
        kernel = launched(do_bench=lambda run, quantiles: run() or next(times))
        assert kernel.best_config.kwargs == {"BLOCK": low}


@pytest.mark.parametrize("which", ["pre_hook", "do_bench", "early_config_prune"])
def test_a_function_that_launches_what_is_being_tuned(which):
    """For the same key that would tune for ever; for another it is a tuning like any."""
    x, y = numbers(), numbers(500)
    count = 500

    def launch(*args, **others):
        kernel[grid](y[:count], count)
        return args[0] if which == "early_config_prune" else 1.0

    more = {"prune_configs_by": {which: launch}} if "prune" in which else {which: launch}
    kernel = tessera.autotune(blocks(32, 64), key=["n"], cache_results=False, **more)(increment)
    with pytest.raises(TuningError, match="launched by a function that runs while it is tuned"):
        kernel[grid](x, 500)
    assert (x == numbers()).all() and (y == numbers(500)).all()
    if which == "pre_hook":
        kernel.pre_hook = lambda *args, **others: other[grid](y, 500)
        other = tessera.autotune(blocks(32, 64), key=["n"], cache_results=False)(increment)
        kernel[grid](x, 500)
        assert (x[:500] == numbers(500) + 1).all() and (y == y[0] + numbers(500)).all()


def test_options_among_the_values():
    """An option in the dict would be replaced by the one beside it, without a word."""
    error = refused(configs=[Config({"BLOCK": 32, "num_warps": 8})])
    assert "has num_warps=8 among its values and num_warps=4 of its own" in error.message
    assert error.fix == "write Config({...}, num_warps=8)"
    for config in (Config({"num_warps": 2, "BLOCK": 32}, num_warps=2), Config({"maxnreg": 99})):
        tessera.autotune([config], key=[])(scale)


def stand_in_for(name: str) -> Any:
    module = types.ModuleType(name)
    module.__tessera__ = True
    return module


def test_a_key_that_heuristics_fill_in():
    """A configuration is chosen before the heuristics below run: all keys would be alike."""
    below = tessera.heuristics({"n": lambda args: 64})(scale)
    with pytest.raises(CompilationError) as error:
        tessera.autotune(blocks(32, 64), key=["n"])(below)
    assert error.value.id == "E059" and error.value.file == __file__
    assert error.value.message == "key names 'n', which the heuristics of `scale` compute"
    assert error.value.fix == "name the arguments that the heuristic reads"
    tuned = tessera.autotune(blocks(32, 64), key=["n"])(scale)
    assert tessera.heuristics({"n": lambda args: 64})(tuned).fn is tuned


def test_beside_programs_written_for_triton(monkeypatch):
    """torch.compile has `triton` loaded; that is no reason to say less of this file's kernels."""
    monkeypatch.setitem(sys.modules, "triton", stand_in_for("triton"))
    refused(key=["typo"])
    refused(configs=[Config({"BLOK": 3})])


def test_in_programs_written_for_triton(monkeypatch):
    """Triton does not look at names, and there are kernels that live by that."""
    monkeypatch.setitem(sys.modules, "triton", stand_in_for("triton"))
    monkeypatch.setitem(globals(), "triton", sys.modules["triton"])
    with pytest.warns(TuningWarning, match="key names 'typo', which is no parameter") as told:
        tessera.autotune(blocks(32, 64), key=["typo"])(tessera.jit(written_here))
    assert told[0].filename == __file__


def written_here(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 0.0)


def test_a_bad_argument_is_told_as_ever():
    kernel = tessera.autotune(blocks(32, 64), ["n"])(scale)
    for arguments, id in (
        ((numbers(), numbers()), "E051"),
        (("text", numbers(), 100), "E054"),
        ((numbers(), numbers(), 100, 32, 7), "E051"),
    ):
        with pytest.raises(LaunchError) as error:
            kernel[(1,)](*arguments)
        assert error.value.id in (id, "E059") and "none of the" not in str(error.value)
    with pytest.raises(LaunchError, match="unknown keyword argument `num_thread`"):
        kernel[(1,)](numbers(), numbers(), 100, num_thread=1)
    with pytest.raises(LaunchError, match="the grid") as error:
        kernel[(-1,)](numbers(), numbers(), 100)
    assert error.value.id == "E052"


def test_a_read_only_array_is_not_written():
    x = np.broadcast_to(np.float32(3), (1000,))
    kernel = tessera.autotune(blocks(32, 64), ["n"])(increment)
    with pytest.raises(LaunchError, match="`x_ptr` is a read-only array") as error:
        kernel[grid](x, 1000)
    assert error.value.id == "E054" and (x == 3).all()
    out = numbers()
    tessera.autotune(blocks(32, 64), ["n"])(scale)[grid](np.full(1000, 3, np.float32), out, 1000)
    assert (out == 6).all()


def test_ctrl_c_loses_nothing():
    calls = []

    def interrupt(named: Any, **more: Any) -> None:
        calls.append(1)
        if len(calls) == 7:
            raise KeyboardInterrupt

    kernel = tessera.autotune(blocks(32, 64), ["n"], pre_hook=interrupt)(increment)
    x = numbers()
    with pytest.raises(KeyboardInterrupt):
        kernel[grid](x, 1000)
    assert (x == numbers()).all()
    kernel[grid](x, 1000)
    assert (x == numbers() + 1).all()


@pytest.mark.parametrize("count", [0, 1])
def test_next_to_nothing(count):
    x = numbers(count)
    kernel = tessera.autotune(blocks(32, 64), ["n"])(increment)
    for _ in range(2):
        kernel[grid](x, count)
    assert (x == numbers(count) + 2).all()


@tessera.jit
def wrong_at_128(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, value + (1 if BLOCK == 128 else 0), mask=i < n)


def test_a_result_that_differs_is_reported_by_name():
    kernel = tessera.autotune(blocks(32, 128, 64, 256), ["n"], check=True)(wrong_at_128)
    out = np.zeros(1000, np.float32)
    with pytest.warns(TuningWarning, match="BLOCK=128 of kernel `wrong_at_128` differs") as told:
        kernel[grid](numbers(), out, 1000)
    assert len(told) == 1 and "1000 elements of `out_ptr`" in str(told[0].message)
    assert list(kernel.failures) == blocks(128) and (out == numbers()).all()


def test_two_that_differ_are_both_reported():
    kernel = tessera.autotune(blocks(32, 128), ["n"], check=True)(wrong_at_128)
    with pytest.warns(TuningWarning) as told:
        kernel[grid](numbers(), numbers(), 1000)
    assert len(told) == 2 and not kernel.failures


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int32, np.int8])
def test_rounding_is_no_difference(dtype):
    @tessera.jit
    def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        value = tl.zeros([BLOCK], x_ptr.dtype.element_ty)
        for start in range(0, n, BLOCK):
            value += tl.load(x_ptr + start + tl.arange(0, BLOCK))
        tl.store(out_ptr, tl.sum(value))

    values = np.random.default_rng(0).standard_normal(4096) * (1 if dtype != np.int8 else 20)
    kernel = tessera.autotune(blocks(16, 64, 256, 1024), ["n"], check=True)(total)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error", TuningWarning)
        kernel[(1,)](values.astype(dtype), np.zeros(1, dtype), 4096)
    assert not kernel.failures


def test_comparing_changes_nothing():
    kernel = tessera.autotune(blocks(32, 128, 64), ["n"], check=True)(accumulate)
    total = np.full(1, 3, np.float32)
    kernel[grid](np.ones(1000, np.float32), total, 1000)
    assert total[0] == 1003 and not kernel.failures


def test_programs_for_triton_may_name_anything(tmp_path):
    import os
    import subprocess
    import sys

    script = tmp_path / "script.py"
    script.write_text(
        "import warnings, triton, triton.language as tl, numpy as np\n"
        "with warnings.catch_warnings(record=True) as told:\n"
        "    warnings.simplefilter('always')\n"
        "    @triton.autotune([triton.Config({'B': b}) for b in (16, 32)], key=['n', 'typo'])\n"
        "    @triton.jit\n"
        "    def k(x, n, B: tl.constexpr):\n"
        "        tl.store(x + tl.arange(0, B), 1.0)\n"
        "assert len(told) == 1 and 'typo' in str(told[0].message) and told[0].filename == __file__\n"
        "x = np.zeros(32, np.float32)\n"
        "k[lambda meta: (32 // meta['B'],)](x, 32)\n"
        "assert k.keys == ['n'] and x[0] == 1\n"
    )
    command = [sys.executable, "-m", "tessera", "run", "--as-triton", str(script)]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
