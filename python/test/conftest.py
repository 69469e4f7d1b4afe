# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What holds for all tests and the programs that they start: the same tessera, little overhead."""

from __future__ import annotations

import gc
import os
import random
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

_PYTHON = str(Path(__file__).resolve().parents[1])
if _PYTHON not in os.environ.get("PYTHONPATH", "").split(os.pathsep):
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [_PYTHON, os.environ.get("PYTHONPATH", "")])
    )

# Some machines have Python write no bytecode. Each process that a test starts would parse the compiler
# anew, for 0.25 s, and each process of pytest all tests.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# OpenBLAS starts threads as it is loaded, which spin for a while, in every process that a test starts;
# matmuls of tests are too small for more than one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Threads of OpenMP, which torch has, spin as well while they wait: for half the CPU time of some tests,
# if other processes have the cores.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# A schedule that the compiler plans and its verifier refuses is a mistake of the planner, though a
# simpler schedule would take its place.
os.environ.setdefault("TESSERA_STRICT_SCHEDULES", "1")

# The tests are some 700,000 objects that live to the end. To look at them for garbage again and again
# would take 2.4 s of the 6.3 that collecting them takes, in each process.
gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    """A test whose kernel leaves an array fails, also where nothing comes of that."""
    config.addinivalue_line("filterwarnings", "error::tessera.errors.MemoryAccessWarning")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--every-combination",
        action="store_true",
        help="run tests with whole products of parameters, not samples of them (sampling.py)",
    )


def _cpu_seconds() -> float:
    """Of this process, and of those that it started and that have ended."""
    return sum(os.times()[:4])


_STARTED = pytest.StashKey[float]()


def _seed(name: str) -> None:
    """Seeds the global generators by a test's name.

    A test draws the same values alone, in another order, or in another process: one that fails in a run
    of all fails by itself too. Fuzzers and random programs have seeds of their own.
    """
    seed = zlib.crc32(name.encode())
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed)
    torch = sys.modules.get("torch")
    if torch and hasattr(torch, "default_generator"):  # some tests have a torch of their own
        if torch.cuda.is_available():
            torch.manual_seed(seed)
        else:  # manual_seed would queue a trace of the stack for each kind of device, which takes a ms
            torch.default_generator.manual_seed(seed)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    item.stash[_STARTED] = _cpu_seconds()
    _seed(item.nodeid)
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Reports have the CPU seconds of each test (tools/dev/run_checks.py adds them up)."""
    if call.when == "teardown" and item.config.getoption("xmlpath", None):
        seconds = _cpu_seconds() - item.stash[_STARTED]
        item.user_properties.append(("cpu_seconds", f"{seconds:.3f}"))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of torch.compile come last. They make Tessera the `triton` of their process, for good, and
    then types show their names as programs that import triton know them. Behind them are those of
    torch's operators, whose `opcheck` has Inductor find out for good that there is no `triton`."""
    operators = ("test_torch_operators.py", "test_pointwise_torch.py", "test_reductions.py",
                 "test_opinfo.py", "test_known_calls.py", "test_function_torch.py", "test_recorded.py",
                 "test_fusion.py", "test_chains.py", "test_generated_calls.py")  # fmt: skip
    items.sort(key=lambda item: (item.path.name in operators, "pytorch" in item.path.parts))
    named = config.option.keyword or any("::" in argument for argument in config.args)
    if not config.option.every_combination and not named:
        from sampling import drop_combinations

        dropped = drop_combinations(items)
        if dropped:
            config.hook.pytest_deselected(items=dropped)
            gone = set(dropped)
            items[:] = [item for item in items if item not in gone]
