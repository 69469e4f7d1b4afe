# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Control flow means what it means in Python.

Each function below is called twice with the same integers: as it stands, by Python, and as a
@jit helper of a kernel that the reference interpreter runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.settings import settings


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    old = settings.interpret
    settings.interpret = True
    yield
    settings.interpret = old


def early_return(a, b):
    if a > b:
        return a - b
    c = a * 2
    if c > b:
        return c
    return b


def return_in_nested_if(a, b):
    x = 0
    if a > 0:
        if b > 0:
            return a
        x = 1
    else:
        x = 2
    return x + b


def all_branches_return(a, b):
    if a > 0:
        return 1 + a
    elif b > 0:
        return 2 + b
    else:
        return 3 + a * 0


def break_in_while(a, b):
    i = 0
    total = 0
    while i < a:
        if total > b:
            break
        total += i
        i += 1
    return total * 100 + i


def while_true(a, b):
    i = 0
    while True:
        i += 3
        if i > a:
            break
        if i > 20:
            break
    return i


def continue_in_for(a, b):
    total = 0
    for i in range(0, a):
        if i % 3 == 1:
            continue
        total += i
    return total


def continue_then_more(a, b):
    total = 0
    odd = 0
    for i in range(0, a):
        total += 1
        if i % 2 == 0:
            total += 10
            if i % 4 == 0:
                continue
            total += 100
        odd += i
    return total * 1000 + odd


def break_in_for(a, b):
    total = 0
    for i in range(0, a):
        if i == b:
            break
        total += i
    return total


def break_and_continue(a, b):
    total = 0
    for i in range(1, a, 2):
        if i % 3 == 0:
            continue
        if total > b * 3:
            break
        total += i * i
    return total


def return_in_for(a, b):
    for i in range(0, a):
        if i * i > b:
            return i
    return -1


def return_in_nested_for(a, b):
    total = 0
    for i in range(0, a):
        for j in range(0, i):
            if i * j > b:
                return 1000 + i * 10 + j
            total += j
        total += 1
    return total


def break_of_inner_only(a, b):
    total = 0
    for i in range(0, a):
        for j in range(0, 10):
            if j > i:
                break
            total += 1
        total += 100
    return total


def break_of_both(a, b):
    total = 0
    found = 0
    for i in range(0, a):
        for j in range(0, 5):
            if i * j == b:
                found = 1
                break
            total += 1
        if found == 1:
            break
    return total


def return_in_while(a, b):
    i = 0
    while i < a:
        j = 0
        while j < b:
            if i * j == 6:
                return i * 10 + j
            j += 1
        i += 1
    return -i


def descending(a, b):
    total = 0
    for i in range(a, 0, -2):
        total = total * 3 + i
    return total


def descending_with_break(a, b):
    total = 0
    for i in range(a, 0, -2):
        if i < b:
            break
        total = total * 3 + i
    return total


def comprehension_beside_a_variable_of_its_name(a, b):
    i = 0
    for k in range(0, a):
        if k < 8:
            pair = [i for i in (1, 2)]
            i = i + pair[0] * b
    return i


def variable_after_loop(a, b):
    i = 77
    for i in range(0, a):
        b += i
    return i * 1000 + b


def variable_after_broken_loop(a, b):
    i = 77
    for i in range(0, a):
        if i == b:
            break
    return i


def variable_after_constant_loop(a, b):
    for i in range(2, 9, 3):
        a += i
    return a + i


def variable_changed_in_body(a, b):
    total = 0
    i = 0
    for i in range(0, a):
        i = i * 2
        total += i
    return total + i


def unrolled_with_break(a, b):
    total = 0
    for i in tl.static_range(0, 6):
        if i == a:
            break
        total += i + b
    return total


def unrolled_with_continue(a, b):
    total = 0
    for i in tl.static_range(0, 6):
        if i == a:
            continue
        total += i + b
    return total


def unrolled_with_return(a, b):
    total = 0
    for i in tl.static_range(0, 6):
        total += i
        if total > a:
            return total
    return b


def unrolled_tuple(a, b):
    total = 0
    for factor in (1, 10, 100):
        total += factor * a
    return total + b


def condition_in_loop(a, b):
    x = 5
    for i in range(0, a):
        if i > b:
            x = x + i
        else:
            x = x - 1
    return x


def conditional_expression(a, b):
    return a if a > b else 2 * b


def nested_conditional(a, b):
    return 1 if a > b else (2 if a == b else 3)


def chained_comparison(a, b):
    x = 0
    if 0 <= a < b:
        x = 1
    if 3 < a <= b < 9:
        x += 2
    return x


def boolean_operators(a, b):
    x = 0
    if a > 2 and b > 2:
        x += 1
    if a > 2 or b > 2:
        x += 10
    if not a > 2:
        x += 100
    return x


def swapped(a, b):
    for i in range(0, 5):
        a, b = b, a + b
    return a


def swapped_tuple(a, b):
    pair = (a, b)
    for i in range(0, 5):
        pair = (pair[1], pair[0] + pair[1])
    return pair[0]


def assigned_in_both(a, b):
    if a > b:
        x = a
        y = 1
    else:
        y = 2
        x = b
    return x * 10 + y


def assigned_where_alive(a, b):
    if a > b:
        if a > 5:
            return -1
        x = a
    else:
        x = b
    return x


def return_after_loop_in_branch(a, b):
    if a > 3:
        for i in range(0, b):
            if i == a:
                return i
        a += 1
    return a + b


def walrus(a, b):
    total = 0
    while (c := a - total) > b:
        total += 1
    return total * 10 + c


def augmented(a, b):
    x = a
    x += b
    x -= 1
    x *= 3
    x |= 8
    x ^= 5
    x &= 1023
    x <<= 2
    x >>= 1
    return x


def both_leave_loop(a, b):
    total = 0
    for i in range(0, 10):
        total += i
        if total > a:
            break
        else:
            continue
    return total


def return_at_end_of_loop(a, b):
    for i in range(3, 8):
        return i + a
    return b


def break_under_two_ifs(a, b):
    n = 0
    for i in range(0, 10):
        if a > 2:
            if i > b:
                break
        n += 1
    return n


def dead_code(a, b):
    return a
    b = undefined_name  # noqa: F821
    return b


CASES: list[Callable[..., Any]] = [
    value
    for value in list(globals().values())
    if callable(value)
    and getattr(value, "__module__", None) == __name__
    and getattr(value, "__code__", None) is not None
    and value.__code__.co_varnames[:2] == ("a", "b")
]

PAIRS = [(0, 0), (1, 5), (5, 1), (4, 4), (7, 6), (9, 3), (3, 12), (6, 0)]


@pytest.mark.parametrize("noinline", [False, True], ids=["inline", "noinline"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_as_python(case: Callable[..., Any], noinline: bool) -> None:
    helper = tessera.jit(case, noinline=noinline)

    @tessera.jit
    def kernel(a_ptr, b_ptr, out_ptr):
        i = tl.program_id(0)
        tl.store(out_ptr + i, helper(tl.load(a_ptr + i), tl.load(b_ptr + i)))

    a, b = (np.array(column, np.int32) for column in zip(*PAIRS))
    out = np.zeros(len(PAIRS), np.int32)
    kernel[(len(PAIRS),)](a, b, out)
    fake = dict(case.__globals__)
    fake["tl"] = type("tl", (), {"static_range": range})
    python = type(case)(case.__code__, fake)
    expected = [python(int(x), int(y)) for x, y in zip(a, b)]
    assert out.tolist() == expected
