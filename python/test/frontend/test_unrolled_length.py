# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The limit on what unrolling and inlining make of a kernel, and what is below it."""

import time

import pytest

import tessera
import tessera.language as tl


@tessera.jit
def nested(x):
    for i in tl.static_range(1000):
        for j in tl.static_range(1000):
            tl.store(x + i * 1000 + j, 1.0)


@tessera.jit
def nested_without_effect(x):
    for i in tl.static_range(10_000):
        for j in tl.static_range(10_000):
            pass


@tessera.jit
def twice(x, depth: tl.constexpr):
    if depth > 0:
        twice(x, depth - 1)
        twice(x, depth - 1)
    else:
        tl.store(x, 1.0)


@tessera.jit
def calls_itself(x):
    twice(x, 24)


@tessera.jit
def over_tuples(x):
    some: tl.constexpr = (1, 2, 3, 4) * 64
    for i in some:
        for j in some:
            for k in some:
                tl.store(x + i + j + k, 1.0)


@pytest.mark.parametrize("kernel", [nested, nested_without_effect, calls_itself, over_tuples])
def test_too_long(kernel):
    begin = time.process_time()
    with pytest.raises(tessera.CompilationError, match="statements and expressions") as caught:
        tessera.compile(kernel, signature={"x": "*fp32"})
    assert time.process_time() - begin < 20
    assert caught.value.id == "E040"
    text = str(caught.value)
    assert "test_unrolled_length.py:" in text and "^" in text and "tl.range" in text


@tessera.jit
def sums(x, o, count: tl.constexpr):
    s = 0
    for i in tl.static_range(count):
        s += i
    tl.store(o, s + tl.load(x))


def test_as_many_iterations_as_one_loop_may_have():
    tessera.compile(sums, signature={"x": "*i32", "o": "*i32"}, constexprs={"count": 10_000})
