# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""With debug=True, `+`, `-` and `*` of integers that overflow are a KernelAssertionError."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from execution.running import TARGETS, Runner, host_has

ADD, SUB, MUL = "+", "-", "*"

# A failed assertion makes a GPU unusable for the rest of the process.
TARGETS_THAT_GO_ON = [target for target in TARGETS if target != "cuda"]


@pytest.fixture(params=TARGETS_THAT_GO_ON)
def run(request: pytest.FixtureRequest) -> Runner:
    if request.param != "interpreter" and not host_has(request.param):
        pytest.skip(f"this machine has no {request.param}")
    return Runner(request.param)


@tessera.jit
def operate(x_ptr, y_ptr, z_ptr, KIND: tl.constexpr, WIDTH: tl.constexpr):
    i = tl.arange(0, WIDTH)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    if KIND == "+":
        z = x + y
    elif KIND == "-":
        z = x - y
    else:
        z = x * y
    tl.store(z_ptr + i, z)


def ends(dtype: type) -> tuple[int, int]:
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def cases() -> list[Any]:
    found = []
    for dtype in (np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32, np.int64, np.uint64):
        low, high = ends(dtype)
        root = 1 << (np.iinfo(dtype).bits // 2)
        numbers = {low, low + 1, -1, 0, 1, 2, root - 1, root, high // 2, high - 1, high}
        numbers |= {-root, 1 - root, low // 2, low // 2 - 1, high // 2 + 1, high // 3}
        numbers = sorted(n for n in numbers if low <= n <= high)
        for kind in (ADD, SUB, MUL):
            found.append(pytest.param(dtype, kind, numbers, id=f"{np.dtype(dtype)}{kind}"))
    return found


@pytest.mark.parametrize("dtype, kind, numbers", cases())
def test_what_overflows_is_found_and_nothing_else(run, dtype, kind, numbers) -> None:
    low, high = ends(dtype)
    exact = {ADD: lambda a, b: a + b, SUB: lambda a, b: a - b, MUL: lambda a, b: a * b}[kind]
    fitting = [(a, b) for a in numbers for b in numbers if low <= exact(a, b) <= high]
    others = [(a, b) for a in numbers for b in numbers if not low <= exact(a, b) <= high]
    assert fitting and others
    width = 1 << (len(fitting) - 1).bit_length()
    fitting += [(0, 0)] * (width - len(fitting))
    x, y = (np.array(column, dtype) for column in zip(*fitting))
    z = np.zeros_like(x)
    run(operate, (1,), x, y, z, kind, width, debug=True)
    assert z.tolist() == [exact(a, b) for a, b in fitting]
    for a, b in others:
        x, y = np.array([a], dtype), np.array([b], dtype)
        with pytest.raises(tessera.KernelAssertionError, match="overflow in `[-+*]`"):
            run(operate, (1,), x, y, z, kind, 1, debug=True)
    # Without `debug`, or by request, it wraps.
    width = 1 << (len(others) - 1).bit_length()
    others += others[:1] * (width - len(others))
    x, y = (np.array(column, dtype) for column in zip(*others))
    for options in ({}, {"debug": True, "sanitize_overflow": False}):
        z = np.zeros_like(x)
        run(operate, (1,), x, y, z, kind, width, **options)
        assert z.tolist() == [int(np.uint64(exact(a, b) % 2**64).astype(dtype)) for a, b in others]


def test_the_place_is_the_operators(run: Runner) -> None:
    @tessera.jit
    def kernel(x_ptr, n):
        x = n + 1
        x = tl.load(x_ptr) * x
        tl.store(x_ptr, x)

    first = kernel.fn.__code__.co_firstlineno  # of the decorator
    x = np.array([1 << 16], np.int32)
    with pytest.raises(tessera.KernelAssertionError) as caught:
        run(kernel, (1,), x, (1 << 16) - 1, debug=True)
    assert f"test_overflow.py:{first + 3}" in str(caught.value)
    assert "int32 overflow in `*`" in str(caught.value)


def test_operators_in_every_guise(run: Runner) -> None:
    @tessera.jit
    def helper(x, n):
        x -= n
        return x

    @tessera.jit
    def kernel(x_ptr, n, KIND: tl.constexpr):
        x = tl.load(x_ptr)
        if KIND == "helper":
            x = helper(x, n)
        elif KIND == "negated":
            x = -(x - 3)
        elif KIND == "function":
            x = tl.sub(x, n)
        elif KIND == "allowed":
            x = tl.sub(x, n, sanitize_overflow=False)
        elif KIND == "literal":
            x = -4 + x
        elif KIND == "tile":
            x = tl.max(tl.arange(0, 8)[:, None] * -n + (x + 10 * tl.arange(0, 4))[None, :])
        elif KIND == "wide":
            x = (x.to(tl.int64) - n).to(tl.int32)
        tl.store(x_ptr, x)

    low = -(1 << 31)
    for kind, start, n in [
        ("helper", low + 3, 4),
        ("negated", low + 3, 0),
        ("function", low + 3, 4),
        ("literal", low + 3, 0),
        ("tile", low + 3, 1),
    ]:
        with pytest.raises(tessera.KernelAssertionError, match="overflow"):
            run(kernel, (1,), np.array([start], np.int32), n, kind, debug=True)
        run(kernel, (1,), np.array([start + 1 + n * 8], np.int32), n, kind, debug=True)
    for kind in ("allowed", "wide"):
        x = np.array([low], np.int32)
        run(kernel, (1,), x, 1, kind, debug=True)
        assert x[0] == 2**31 - 1


def test_the_language_itself_may_wrap(run: Runner) -> None:
    @tessera.jit
    def add(a, b):
        return a + b

    @tessera.jit
    def kernel(x_ptr, out_ptr):
        i = tl.arange(0, 16)
        word = tl.randint(0xFFFFFFFF, i * 0x3FFFFFF)
        tl.store(out_ptr + i, word.to(tl.int32, bitcast=True))
        x = tl.load(x_ptr + i)
        # What a function of a reduction is given besides its elements is not the user's matter.
        tl.store(out_ptr + 16, tl.reduce(x, 0, add) ^ tl.sum(x) ^ tl.max(tl.cumsum(x)))

    x = np.full(16, 1 << 30, np.int32)
    run(kernel, (1,), x, np.zeros(17, np.int32), debug=True)


def test_code_for_gpus_has_the_assertion() -> None:
    def ptx(**options: Any) -> str:
        kernel = tessera.compile(
            operate,
            signature={"x_ptr": "*i16", "y_ptr": "*i16", "z_ptr": "*i16"},
            constexprs={"KIND": "*", "WIDTH": 64},
            target="sm_80",
            **options,
        )
        return str(kernel.asm["ptx"])

    assert "__assertfail" in ptx(debug=True)
    assert "__assertfail" not in ptx(debug=True, sanitize_overflow=False)
    assert "__assertfail" not in ptx()
