# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops, branches, early exits, calls: run, against the same function in Python."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from execution.running import draw, make_kernel

import tessera
import tessera.language as tl
from tessera.compiler.toolchain import find_ptxas


def scalar_program(body: str) -> object:
    """A kernel that computes `result` from integers `a` and `b`."""
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    return make_kernel(f"""
@tessera.jit
def kernel(out_ptr, a, b):
    result = 0
{lines}
    tl.store(out_ptr, result)
""")


PROGRAMS = {
    "sum of a range": "for i in range(a, b):\n    result += i",
    "step": "for i in range(a, b, 3):\n    result += i",
    "descending": "for i in range(b, a, -2):\n    result = result * 3 + i",
    "last value": "i = 100\nfor i in range(a, b):\n    result += 1\nresult += i * 1000",
    "break": "for i in range(a, b):\n    if i * i > 50:\n        break\n    result += i",
    "continue": "for i in range(a, b):\n    if i % 3 == 0:\n        continue\n    result += i",
    "break and continue": (
        "for i in range(a, b):\n    if i % 2 == 0:\n        continue\n"
        "    if i > 12:\n        break\n    result += i\nresult *= 2"
    ),
    "while": "x = b\nwhile x > a:\n    x = x - 4\n    result += x",
    "while up": "x = a\nwhile x < b:\n    result = result * 3 + x\n    x += 4\nresult += x",
    "while above 0": "x = b\nwhile x > 0:\n    result = result * 3 + x\n    x -= 3\nresult += x",
    "while from 0": "x = b\nwhile x >= 0:\n    result = result * 3 + x\n    x = x - 2\nresult += x",
    "while to 9": "x = a\nwhile 9 >= x:\n    result = result * 3 + x\n    x += 1\nresult += x",
    "while with break": "x = a\nwhile x < 1000:\n    x = x * 2 + 1\n    if x % 7 == 3:\n        break\nresult = x",
    "nested": (
        "for i in range(a, b):\n    for j in range(0, i):\n        if j > 5:\n            break\n"
        "        result += i * j\n    if result > 200:\n        break"
    ),
    "if else": "if a > b:\n    result = a - b\nelif a == b:\n    result = 7\nelse:\n    result = b - a",
    "conditional expression": "result = a if a > b else b * 2",
    "chained comparison": "if 0 <= a < b:\n    result = 1\nelse:\n    result = 2",
    "and or not": "if a > 2 and not b < 5 or a == b:\n    result = 1\nelse:\n    result = 2",
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("a, b", [(0, 10), (3, 20), (5, 5), (7, 2)])
def test_program(run, name, a, b):
    kernel = scalar_program(PROGRAMS[name])
    namespace: dict[str, int] = {"a": a, "b": b, "result": 0}
    exec(PROGRAMS[name], {}, namespace)
    out = np.full(1, 99, np.int32)
    run(kernel, (1,), out, a, b)
    assert out[0] == namespace["result"]


@tessera.jit
def count_narrow(out, first, bound, step: tl.constexpr, kind: tl.constexpr):
    x, last, count = first.to(kind), bound.to(kind), 0
    while x < last:
        x += step
        count += 1
    tl.store(out, count)
    tl.store(out + 1, x.to(tl.int32))


@pytest.mark.parametrize("bound, step, kind", [(100, 33, tl.int8), (32000, 1000, tl.int16)])
def test_a_narrow_counter_wraps(run, bound, step, kind):
    """The loop goes on then, as in the interpreter."""
    out = np.zeros(2, np.int32)
    run(count_narrow, (1,), out, 0, bound, step, kind)
    bits, x, count = 8 if kind is tl.int8 else 16, 0, 0
    while x < bound:
        x, count = (x + step + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1), count + 1
    assert out.tolist() == [count, x]


ENDS = {
    "int32": [(2**31 - 6, 2**31 - 1), (-(2**31), -(2**31) + 1), (2**31 - 1, 2**31 - 1)],
    "int64": [(2**63 - 6, 2**63 - 1), (-(2**63), -(2**63) + 1)],
    "uint32": [(2**32 - 6, 2**32 - 1), (0, 1)],
}


@pytest.mark.parametrize("early_exit", [False, True])
@pytest.mark.parametrize("step", [1, 2, 7, 2**30])
@pytest.mark.parametrize("dtype", ENDS)
def test_a_range_ends_at_the_end_of_its_type(run, dtype, step, early_exit):
    kernel = make_kernel(f"""
@tessera.jit
def kernel(out_ptr, bounds_ptr, step_ptr, STEP: tl.constexpr):
    lower, upper = tl.load(bounds_ptr), tl.load(bounds_ptr + 1)
    count = 0
    last = lower
    for i in range(lower, upper, STEP if STEP > 0 else tl.load(step_ptr)):
        {"if count == 5: break" if early_exit else "pass"}
        count += 1
        last = i
    tl.store(out_ptr, count)
    tl.store(out_ptr + 1, (last - lower).to(tl.int32))
""")
    for lower, upper in ENDS[dtype]:
        for constant in (step, 0):
            out = np.full(2, 99, np.int32)
            run(kernel, (1,), out, np.array([lower, upper], dtype), np.array([step], dtype), STEP=constant)  # fmt: skip
            iterations = range(lower, upper, step)[: 5 if early_exit else None]
            assert out.tolist() == [len(iterations), iterations[-1] - lower if iterations else 0]


STARTS = {
    "int32": [(-(2**31) + 6, -(2**31)), (2**31 - 1, 2**31 - 6), (-(2**31), -(2**31) + 5)],
    "int64": [(-(2**63) + 6, -(2**63)), (2**63 - 1, 2**63 - 6), (-(2**63), -(2**63) + 5)],
    "uint32": [(6, 0), (2**32 - 1, 2**32 - 6), (0, 5)],
}


@pytest.mark.parametrize("early_exit", [False, True])
@pytest.mark.parametrize("step", [-1, -2, -7, -(2**30)])
@pytest.mark.parametrize("dtype", STARTS)
def test_a_range_descends_to_the_start_of_its_type(run, dtype, step, early_exit):
    kernel = make_kernel(f"""
@tessera.jit
def kernel(out_ptr, bounds_ptr, STEP: tl.constexpr):
    upper, lower = tl.load(bounds_ptr), tl.load(bounds_ptr + 1)
    count = 0
    last = upper.to(tl.int64)
    for i in range(upper, lower, STEP):
        {"if count == 5: break" if early_exit else "pass"}
        count += 1
        last = i.to(tl.int64)
    tl.store(out_ptr, count)
    tl.store(out_ptr + 1, (upper.to(tl.int64) - last).to(tl.int32))
""")
    for upper, lower in STARTS[dtype]:
        out = np.full(2, 99, np.int32)
        run(kernel, (1,), out, np.array([upper, lower], dtype), STEP=step)
        iterations = range(upper, lower, step)[: 5 if early_exit else None]
        assert out.tolist() == [len(iterations), upper - iterations[-1] if iterations else 0]


@tessera.jit
def early(out_ptr, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    for i in range(10):
        if i == pid:
            return
        tl.store(out_ptr + pid * 10 + i, i + 1)
    tl.store(out_ptr + pid * 10, 99)


def test_return_from_a_kernel_and_from_a_loop(run):
    out = np.zeros((16, 10), np.int32)
    run(early, (16,), out, 12)
    want = np.zeros((16, 10), np.int32)
    for pid in range(12):
        for i in range(min(pid, 10)):
            want[pid, i] = i + 1
        if pid >= 10:
            want[pid, 0] = 99
    np.testing.assert_array_equal(out, want)


LOOPS = {
    "for": "for i in range(n):",
    "static": "for i in tl.static_range(7):",
    "while": "while i < n:\n        i += 1",
}
LEAVING = {
    "never": ("x += i", lambda i, n: False),
    "at run time": ("if x + i > 9: break\n        x += i", lambda x, i: x + i > 9),
    "after continue": (
        "if i == 2: continue\n        if x > 8: break\n        x += i",
        lambda x, i: i != 2 and x > 8,
    ),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("leaving", LEAVING)
def test_else_of_a_loop(run, loop: str, leaving: str) -> None:
    kernel_text = f"""
def body(n):
    x = 0
    i = -1
    {LOOPS[loop]}
        {LEAVING[leaving][0]}
    else:
        x += 100
    return x
"""
    kernel = make_kernel(f"""
@tessera.jit
{kernel_text.strip()}

@tessera.jit
def kernel(out_ptr):
    n = tl.program_id(0)
    tl.store(out_ptr + n, body(n))
""")
    import tessera.language as tl

    scope: dict = {"tl": SimpleNamespace(static_range=range)}
    exec(kernel_text, scope)
    out = np.full(8, 99, np.int32)
    run(kernel, (8,), out)
    assert out.tolist() == [scope["body"](n) for n in range(8)]


NESTED = """
def body(n):
    x = 0
    for i in range(4):
        for j in range(i):
            if j == n:
                break
            x += 1
        else:
            if i == n:
                break
            x += 10
            continue
        x += 100
    else:
        return x
    while True:
        x += 1000
        if x > 2500:
            break
    else:
        x = 0
    return -x
"""


def test_else_of_nested_loops(run) -> None:
    kernel = make_kernel(f"""
@tessera.jit
{NESTED.strip()}

@tessera.jit
def kernel(out_ptr):
    n = tl.program_id(0)
    tl.store(out_ptr + n, body(n))
""")
    scope: dict = {}
    exec(NESTED, scope)
    out = np.full(8, 99, np.int32)
    run(kernel, (8,), out)
    assert out.tolist() == [scope["body"](n) for n in range(8)]


@tessera.jit
def first_multiple(start, divisor):
    for i in range(start, start + 100):
        if i % divisor == 0:
            return i
    return -1


@tessera.jit
def sign(x):
    if x > 0:
        return 1
    elif x < 0:
        return -1
    return 0


@tessera.jit
def call_helpers(out_ptr, a, b):
    tl.store(out_ptr, first_multiple(a, b))
    tl.store(out_ptr + 1, first_multiple(a, 1000))
    tl.store(out_ptr + 2, sign(a - b) * 10)


def test_helpers_that_return_early(run):
    for a, b in ((5, 7), (14, 7), (3, 3)):
        out = np.full(3, 99, np.int32)
        run(call_helpers, (1,), out, a, b)
        first = next((i for i in range(a, a + 100) if i % b == 0), -1)
        assert out.tolist() == [first, -1, int(np.sign(a - b)) * 10]


@tessera.jit(noinline=True)
def scale_and_shift(x, factor, SHIFT: tl.constexpr):
    return x * factor + SHIFT


@tessera.jit
def call_noinline(x_ptr, out_ptr):
    offsets = tl.arange(0, 64)
    x = tl.load(x_ptr + offsets)
    y = scale_and_shift(x, 2.0, 3)
    tl.store(out_ptr + offsets, scale_and_shift(y, 0.5, 1))


def test_noinline_functions(run, rng):
    x, out = draw(rng, 64, "float32"), np.full(64, 99, np.float32)
    run(call_noinline, (1,), x, out)
    np.testing.assert_allclose(out, (x * 2 + 3) * 0.5 + 1, rtol=1e-6)


@tessera.jit(noinline=True)
def without_mean(x):
    return x - (tl.sum(x, axis=0) / 16)[None, :]


@tessera.jit(noinline=True)
def run_down(x, SHIFT: tl.constexpr):
    return tl.cumsum(without_mean(x), axis=0) + tl.max(x, axis=1)[:, None] * SHIFT


@tessera.jit
def call_what_calls(x_ptr, out_ptr, n):
    i = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]
    x = tl.load(x_ptr + i)
    for _ in range(n):
        x = run_down(x, 2) + without_mean(x * 0.5)
    tl.store(out_ptr + i, x)


@pytest.mark.parametrize("warps", [1, 4, 8])
def test_noinline_functions_that_need_shared_memory(run, rng, warps):
    """A frame of each function in shared memory, whoever calls it; a callee with a callee."""
    x, out = draw(rng, (16, 64), "float32"), np.full((16, 64), 99, np.float32)
    run(call_what_calls, (1,), x, out, 3, num_warps=warps)
    exact = x.astype(np.float64)
    for _ in range(3):
        flat, half = exact - exact.sum(0) / 16, exact * 0.5
        exact = np.cumsum(flat, 0) + exact.max(1)[:, None] * 2 + half - half.sum(0) / 16
    np.testing.assert_allclose(out, exact, atol=2e-6 * np.abs(exact).max())


@pytest.mark.skipif(not find_ptxas(), reason="there is no ptxas")
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_noinline_functions_are_called_on_a_gpu(target):
    kernel = tessera.compile(call_what_calls, "*fp32, *fp32, i32", target=target)
    called = re.findall(r"\bcall(?:\.uni)? \(\w+\), *\n?\s*(\w+)", kernel.asm["ptx"])
    assert sorted(called) == ["run_down_", "without_mean_", "without_mean_"]
    assert kernel.shared > 0


@tessera.jit
def carried_tiles(x_ptr, out_ptr, steps):
    offsets = tl.arange(0, 128)
    a = tl.load(x_ptr + offsets)
    b = tl.zeros((128,), tl.float32)
    for i in range(steps):
        a, b = b + a * 0.5, a
        if i % 2 == 1:
            a = a + 1.0
        else:
            b = b - 1.0
    tl.store(out_ptr + offsets, a - b)


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_tiles_carried_and_swapped(run, rng, steps):
    x, out = draw(rng, 128, "float32"), np.full(128, 99, np.float32)
    run(carried_tiles, (1,), x, out, steps)
    a, b = x, np.zeros_like(x)
    for i in range(steps):
        a, b = b + a * np.float32(0.5), a
        if i % 2 == 1:
            a = a + np.float32(1)
        else:
            b = b - np.float32(1)
    np.testing.assert_allclose(out, a - b, rtol=1e-5, atol=1e-5)


class Pair(NamedTuple):
    first: object
    second: object


@tessera.jit
def tuples(arguments, out_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    total = tl.load(arguments.first + offsets)
    for pointer in arguments.second:
        total += tl.load(pointer + offsets)
    tl.store(out_ptr + offsets, total)


def test_tuples_and_named_tuples_as_arguments(run, rng):
    x, y, z = (draw(rng, 32, "float32") for _ in range(3))
    out = np.full(32, 99, np.float32)
    run(tuples, (1,), Pair(x, (y, z)), out, N=32)
    np.testing.assert_allclose(out, x + y + z, rtol=1e-6, atol=1e-6)


@tessera.jit
def unrolled(out_ptr, N: tl.constexpr):
    total = 0
    for i in tl.static_range(N):
        if i % 2 == 0:
            total += i
    tl.static_assert(N > 1)
    tl.store(out_ptr, total)


def test_static_range(run):
    out = np.full(1, 99, np.int32)
    run(unrolled, (1,), out, N=7)
    assert out[0] == 12


@tessera.jit
def range_with_keywords(out_ptr, n, step):
    total = 0
    for i in range(1, n, step=step, num_stages=2):
        total += i
    tl.store(out_ptr, total)


def test_range_takes_the_keywords_of_tl_range(run):
    out = np.full(1, 99, np.int32)
    run(range_with_keywords, (1,), out, 10, 4)
    assert out[0] == 1 + 5 + 9


@tessera.jit
def three_dimensional_grid(out_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny = tl.num_programs(0), tl.num_programs(1)
    tl.store(out_ptr + (z * ny + y) * nx + x, x + 10 * y + 100 * z)


def test_grids_of_three_dimensions(run):
    out = np.zeros((4, 3, 5), np.int32)
    run(three_dimensional_grid, (5, 3, 4), out)
    z, y, x = np.indices((4, 3, 5))
    np.testing.assert_array_equal(out, x + 10 * y + 100 * z)


RANGES = """
@tessera.jit
def kernel(out_ptr, count_ptr, bounds_ptr):
    start, end = tl.load(bounds_ptr), tl.load(bounds_ptr + 1)
    {step}
    count = 0
    last = start
    for last in range({bounds}):
        if count < 16:
            tl.store(out_ptr + count, last)
        count += 1
        {leave}
    tl.store(count_ptr, count)
    tl.store(count_ptr + 1, last)
"""

BOUNDS = [
    (0, 10, 3), (0, 9, 3), (10, 0, -3), (9, 0, -3), (9, -1, -1), (0, 10, -1), (10, 0, 1), (5, 5, 1),
    (5, 5, -1), (-7, 8, 5), (8, -7, -5), (0, 1, 127), (1, 0, -128), (3, 4, 100), (0, 10, 0),
    (10, 0, 0), ("low", "high", "quarter"), ("high", "low", "-quarter"), ("high-3", "high", 2),
    ("low+3", "low", -2), ("low", "high", "high"), ("high", "low", "low"), ("low", 0, "half"),
]  # fmt: skip


def in_type(bound: object, dtype: str) -> int:
    info = np.iinfo(dtype)
    names = {"low": info.min, "high": info.max, "quarter": (info.max + 1) // 4,
             "half": (info.max + 1) // 2}  # fmt: skip
    return int(eval(str(bound), names))


@pytest.mark.parametrize("leaves", [False, True], ids=["for", "while"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"])
def test_steps_known_at_run_time(run, dtype, leaves):
    """Any step counts as in Python; from end to end of the type, too; 0 makes no iteration."""
    source = RANGES.format(step="step = tl.load(bounds_ptr + 2)", bounds="start, end, step",
                           leave="if count > 999: break" if leaves else "")  # fmt: skip
    kernel = make_kernel(source)
    for written in BOUNDS:
        start, end, step = (in_type(bound, dtype) for bound in written)
        info = np.iinfo(dtype)
        if not all(info.min <= bound <= info.max for bound in (start, end, step)):
            continue
        if step == 0 and run.target == "interpreter":
            continue
        expected = list(range(start, end, step)) if step else []
        out, count = np.zeros(16, dtype), np.full(2, -1, np.int64)
        want = np.array((expected + [0] * 16)[:16], dtype)
        run(kernel, (1,), out, count, np.array([start, end, step], dtype))
        np.testing.assert_array_equal(out, want, str(written))
        last = np.array([(expected or [start])[-1]], dtype).astype(np.int64)[0]
        assert count.tolist() == [len(expected), last], written


@pytest.mark.parametrize("leaves", [False, True], ids=["for", "while"])
@pytest.mark.parametrize(
    "bounds",
    ["-2**31, 2**31 - 1, 2**30", "2**31 - 1, -2**31, -2**30", "2**31 - 4, 2**31 - 1, 2",
     "-2**31 + 3, -2**31, -2"],
)  # fmt: skip
def test_constant_bounds_at_the_ends(run, bounds, leaves):
    source = RANGES.format(step="", bounds=bounds, leave="if count > 999: break" if leaves else "")
    expected = list(eval(f"range({bounds})"))
    out, count = np.zeros(16, np.int32), np.full(2, -1, np.int64)
    run(make_kernel(source), (1,), out, count, np.zeros(2, np.int32))
    assert out[: len(expected)].tolist() == expected
    assert count.tolist() == [len(expected), expected[-1]]


def test_a_step_of_zero_is_found():
    source = RANGES.format(
        step="step = tl.load(bounds_ptr + 2)", bounds="start, end, step", leave=""
    )
    kernel = make_kernel(source)
    arguments = [np.zeros(16, np.int32), np.zeros(2, np.int64), np.array([0, 5, 0], np.int32)]
    with pytest.raises(tessera.TesseraError, match="the step of the range is 0") as caught:
        tessera.interpret(kernel)[(1,)](*arguments)
    assert caught.value.id == "E065"
    with pytest.raises(tessera.TesseraError, match="the step of the range is 0"):
        kernel[(1,)](*arguments, debug=True)
    kernel[(1,)](*arguments)
    assert arguments[1][0] == 0


def test_loops_of_positive_steps_are_kept():
    """What a constant, or the number of programs, counts up by needs no count of iterations."""
    for step in ("64", "tl.num_programs(0)", "STEP"):
        kernel = make_kernel(f"""
@tessera.jit
def kernel(out_ptr, n, STEP: tl.constexpr):
    for i in range(tl.program_id(0), n, {step}):
        tl.store(out_ptr + i, i)
""")
        out = np.zeros(256, np.int32)
        compiled = kernel[(1,)](out, 200, STEP=32)
        assert "tile.div_int" not in compiled.asm["tile"]
