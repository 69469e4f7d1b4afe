# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`preload` compiles what a hook of compilations was told of, in this process or another."""

from __future__ import annotations

import collections
import json
import math
import subprocess
import sys
from typing import Any, Iterator

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.runtime.hooks import hooks
from tessera.tools.tensor_descriptor import TensorDescriptor

Pair = collections.namedtuple("Pair", "first second")


@tessera.jit
def twice(x):
    return x * 2


@tessera.jit
def plus_one(x):
    return x + 1


@tessera.jit
def everything(x_ptr, pair, n, one, scale, desc, OP: tl.constexpr, TYPE: tl.constexpr,
               NUMBERS: tl.constexpr, NAME: tl.constexpr):  # fmt: skip
    i = tl.arange(0, 16)
    x = OP(tl.load(x_ptr + i)) * scale + pair.first + tl.load(pair.second[0]) + n * one
    x += desc.load([0]) + NUMBERS[1]
    tl.static_assert(NAME == "name" and NUMBERS[2] is None)
    tl.store(x_ptr + i, x.to(TYPE).to(tl.float32))


@tessera.jit
def other(x_ptr):
    tl.store(x_ptr, 1.0)


@pytest.fixture
def told() -> Iterator[list[str]]:
    """What the hooks were told; they are removed afterwards."""
    texts: list[str] = []
    hooks.jit_cache = lambda **facts: texts.append(facts["compile"]["specialization_data"])
    yield texts
    hooks.jit_cache = None


def arguments(op: Any = twice) -> tuple[Any, ...]:
    x = np.arange(16, dtype=np.float32)
    described = TensorDescriptor(np.full(16, 0.5, np.float32), [16], [1], [16])
    pair = Pair(3, (np.array([0.25], np.float32),))
    numbers = (1, -0.0, None, math.inf, True)
    return x, pair, 7, 1, 0.5, described, op, tl.float16, numbers, "name"


def test_a_kernel_compiled_again_from_its_text(told: list[str]) -> None:
    compiled = everything.warmup(*arguments(), grid=(1,))
    assert len(told) == 1
    everything.device_caches[0][0].clear()
    kernel = everything.preload(told[0])
    assert kernel.hash == compiled.hash
    assert len(everything.device_caches[0][0]) == 1
    # The launch finds it: no hook is called.
    args = arguments()
    everything[(1,)](*args)
    assert len(told) == 1
    want = (np.arange(16) * 2 * 0.5 + 3 + 0.25 + 7 + 0.5).astype(np.float16)
    assert np.array_equal(args[0], want.astype(np.float32))
    # Another constant is another kernel.
    everything[(1,)](*arguments(plus_one))
    assert len(told) == 2 and told[0] != told[1]


def test_the_options_are_in_it(told: list[str]) -> None:
    compiled = other.warmup(tl.float32, grid=(1,), target="sm_80", num_warps=8)
    other.device_caches[0][0].clear()
    kernel = other.preload(told[0])
    assert kernel.hash == compiled.hash
    assert kernel.metadata.num_warps == 8 and kernel.metadata.arch == "sm_80"


def test_what_is_no_data_of_the_kernel(told: list[str]) -> None:
    other.warmup(tl.float32, grid=(1,), deterministic=True)
    data = json.loads(told[0])

    def changed(**parts: Any) -> str:
        return json.dumps({**data, **parts})

    def refuse(kernel: Any, text: Any, *words: str) -> None:
        with pytest.raises(tessera.errors.PreloadError) as caught:
            kernel.preload(text)
        assert isinstance(caught.value, RuntimeError) and caught.value.id == "E062"
        for word in words:
            assert word in str(caught.value)

    refuse(everything, told[0], "specialization data is for", "test_preload.other")
    for text in ("", "{", "[]", "null", "3", None, b"\xff", 7, "[" * 100000):
        refuse(other, text, "no specialization data")
    refuse(other, changed(arguments=[]), "other parameters")
    refuse(other, changed(arguments={"x_ptr": 1}), "other parameters")
    for described in (None, 1, [], {}, {"pointer": "fp99"}, {"pointer": "fp32"}, {"tuple": 3}):
        refuse(other, changed(arguments=[described]), "`x_ptr` is not described")
    refuse(other, changed(arguments=[{"constant": {"object": ["no.such", "thing"]}}]), "no.such")
    refuse(other, changed(options={"num_wraps": 3}), "another release")
    refuse(other, changed(options={"num_warps": 3}), "another release")


def test_a_constant_that_has_no_text(told: list[str]) -> None:
    class Odd:
        pass

    @tessera.jit
    def kernel(x_ptr, odd: tl.constexpr):
        tl.store(x_ptr, 1.0)

    kernel.warmup(tl.float32, Odd(), grid=(1,))
    with pytest.raises(tessera.errors.PreloadError, match="`odd` is an Odd"):
        kernel.preload(told[0])


PROGRAM = """
import importlib.util, sys
import numpy as np
spec = importlib.util.spec_from_file_location("kernels_to_preload", sys.argv[1])
module = sys.modules["kernels_to_preload"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from tessera.runtime.hooks import hooks
if len(sys.argv) == 2:
    hooks.jit_cache = lambda **facts: print(facts["compile"]["specialization_data"])
    module.add.warmup(np.float32, 5, 16, grid=(1,))
else:
    module.add.preload(sys.argv[2])
    x = np.zeros(16, np.float32)
    hooks.jit_cache = lambda **facts: print("compiled")
    module.add[(1,)](x, 6, 16)
    print(x[0])
"""


def test_another_process(tmp_path: Any) -> None:
    source = tmp_path / "kernels.py"
    source.write_text(
        "import tessera\nimport tessera.language as tl\n\n\n@tessera.jit\n"
        "def add(x_ptr, n, B: tl.constexpr):\n    i = tl.arange(0, B)\n"
        "    tl.store(x_ptr + i, tl.load(x_ptr + i) + n)\n"
    )

    def run(*args: str) -> str:
        command = [sys.executable, "-c", PROGRAM, str(source), *args]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert run(run()) == "6.0"
