# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The warm path tells arguments apart as the whole way of a launch does.

What is assumed of numbers has one source, but each of the two looks at arrays, constants and
descriptors by itself. So here random arguments are launched after one another: where the warm path
takes the second launch for one of the first's kind, the keys of the two must be equal; and the other
way round, but for what it tells apart on purpose.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import _C
from tessera.runtime.parameters import make_dispatcher
from tessera.tools.tensor_descriptor import TensorDescriptor

MEMORY = np.zeros(4096, np.uint8)
START = -MEMORY.ctypes.data % 16
DTYPES = (np.int8, np.uint8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64)
NAMED = ("a", "b", "c", "d")


@tessera.jit
def plain(a, b, c: tl.constexpr, d=1):
    pass


@tessera.jit(do_not_specialize=["a"], do_not_specialize_on_alignment=["b"])
def marked(a, b, c: tl.constexpr, d=1):
    pass


@tessera.jit
def annotated(a: tl.int16, b: tl.float64, c: tl.constexpr, d: "u64" = 1):
    pass


@pytest.fixture(scope="module")
def kernel():
    @tessera.jit
    def nothing():
        pass

    return tessera.compile(nothing, "")._kernel


def near(choose):
    """Integers at the ends of what types hold, and at what divides."""
    bits = choose.choice((0, 1, 2, 3, 4, 5, 8, 16, 30, 31, 32, 62, 63, 64, 65))
    return choose.choice((-1, 1)) * (1 << bits) + choose.randint(-17, 17)


def real(choose):
    return choose.choice(
        (0.0, -0.0, 1.0, 2.5, float("nan"), float("inf"), 1e300, -1e300, choose.random())
    )


def array(choose, dtype=None):
    dtype = np.dtype(dtype or choose.choice(DTYPES))
    offset = START + dtype.itemsize * choose.choice((0, 1, 2, 3, 4, 8, 16))
    found = MEMORY[offset : offset + 64 * dtype.itemsize].view(dtype)
    if choose.random() < 0.2:
        found = found[:]
        found.flags.writeable = False
    return found


def descriptor(choose):
    base = MEMORY[START : START + 2048].view(choose.choice((np.float32, np.float16)))
    rows, columns = choose.choice(((8, 16), (4, 32), (1, 16)))
    block = [choose.choice((1, 4)), choose.choice((8, 16))]
    padding = choose.choice(("zero", "nan"))
    return TensorDescriptor(base, [rows, columns], [choose.choice((32, 48)), 1], block, padding)


KINDS = ("int", "int", "float", "bool", "none", "array", "array", "descriptor", "tuple")


def argument(choose, kinds=KINDS):
    kind = choose.choice(kinds)
    if kind == "tuple":
        return tuple(argument(choose, kinds[:-1]) for _ in range(choose.randint(0, 3)))
    makers = {"int": near, "float": real, "array": array, "descriptor": descriptor}
    if kind in makers:
        return makers[kind](choose)
    return choose.random() < 0.5 if kind == "bool" else None


def constant(choose):
    return choose.choice((0, 1, True, False, 1.0, 0.0, -0.0, "a", "b", 1 << 70, None, tl.float32))


def arguments(choose, kinds):
    given = {"a": argument(choose, kinds), "b": argument(choose, kinds), "c": constant(choose)}
    if choose.random() < 0.5:
        given["d"] = argument(choose, kinds)
    return given


def changed(choose, given, kinds):
    """The same arguments, or all of the same but one."""
    given = dict(given)
    if choose.random() < 0.8:
        name = choose.choice(list(given))
        given[name] = constant(choose) if name == "c" else argument(choose, kinds)
    return given


def bound_of(fn, given):
    values, options = fn._bind((), dict(given))
    assert not options
    return fn._specialise(values)


def told_apart(bound):
    """What the warm path tells apart beside the key: where arrays are, and whether they are
    read-only."""
    return [(item.slot, item.pointer.read_only, item.pointer.device) for item in bound.pointers]


class Warm:
    """The warm path for a function, and how often it has gone the whole way."""

    def __init__(self, fn, kernel):
        self.fn, self.kernel, self.count = fn, kernel, 0
        self.dispatcher = make_dispatcher(fn, self._slow)

    def _slow(self, grid, args, kwargs):
        self.count += 1
        slots = tuple(bound_of(self.fn, kwargs).slots)
        # With a kernel the slots must be those that the core has found.
        return None, _C.LaunchRecord(_C.KernelFamily((None, self.kernel, ())), slots)

    def knows(self, given):
        """Whether a launch with these arguments is of a kind that was launched before."""
        before = self.count
        self.dispatcher.bind((1,)).find(**given)
        return self.count == before


@pytest.mark.parametrize(
    "fn, kinds, most",
    [(plain, KINDS, 1500), (marked, KINDS, 1500), (annotated, ("int", "float", "bool"), 12000)],
    ids=["plain", "marked", "annotated"],
)
@pytest.mark.parametrize("seed", range(4))
def test_random_arguments(fn, kinds, most, seed, kernel):
    choose = random.Random(seed)
    same = different = 0
    for _ in range(most):
        first = arguments(choose, kinds)
        second = changed(choose, first, kinds)
        try:
            one, other = bound_of(fn, first), bound_of(fn, second)
        except tessera.ArgumentError:
            continue
        warm = Warm(fn, kernel)
        assert not warm.knows(first)
        assert warm.knows(first), first
        expected = one.key == other.key and told_apart(one) == told_apart(other)
        assert warm.knows(second) == expected, (first, second)
        same, different = same + expected, different + (not expected)
    assert same > 200 and different > 200


def test_arguments_that_fit_nothing(kernel):
    for value in (1 << 64, -(1 << 63) - 1):
        with pytest.raises(tessera.ArgumentError, match="fits no 64-bit integer"):
            bound_of(plain, {"a": value, "b": 2, "c": 1})
        assert _C.specialise_number(value, True, True) is None


@pytest.mark.parametrize("value", [None, "1", np.int32(1), [1]])
def test_what_is_no_plain_number(value):
    with pytest.raises(TypeError):
        _C.specialise_number(value, True, True)


@pytest.mark.parametrize(
    "value, wanted",
    [
        (1, (0, 0, 1)),
        (True, (tl.int1._core_id, 0, 1)),
        (-1, (tl.int32._core_id, 0, -1)),
        (-(2**31), (tl.int32._core_id, 16, -(2**31))),
        (-(2**31) - 4, (tl.int64._core_id, 4, -(2**31) - 4)),
        (2**63 + 8, (tl.uint64._core_id, 8, 2**63 + 8)),
        (1.0, (tl.float32._core_id, 0, 0x3F800000)),
        (1e300, (tl.float32._core_id, 0, 0x7F800000)),
    ],
)
def test_what_numbers_are_taken_for(value, wanted):
    assert _C.specialise_number(value, True, True) == wanted


def test_what_is_asked_not_to_be_assumed():
    assert _C.specialise_number(1, False, True) == (tl.int32._core_id, 0, 1)
    assert _C.specialise_number(16, False, True) == (tl.int32._core_id, 0, 16)
    assert _C.specialise_number(16, True, False) == (tl.int32._core_id, 0, 16)
    assert _C.specialise_number(1, True, False) == (0, 0, 1)
