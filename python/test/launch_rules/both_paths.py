# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the two paths of a launch take arguments for, side by side.

The whole path has a key of the arguments. The warm path knows a launch or not. Each test file here
has the rules about one kind of arguments, and pairs of arguments that one rule distinguishes.
"""

from __future__ import annotations

import functools
import random
from typing import Any, Callable

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import _C
from tessera.runtime.parameters import make_dispatcher


@tessera.jit
def plain(a, b=2, c: tl.constexpr = 0):
    pass


@tessera.jit(do_not_specialize=["a"], do_not_specialize_on_alignment=["b"])
def marked(a, b=2, c: tl.constexpr = 0):
    pass


@functools.cache
def any_kernel() -> Any:
    """A core's kernel, for records whose slots are compared."""

    @tessera.jit
    def nothing():
        pass

    return tessera.compile(nothing, "")._kernel


def bound_of(fn: Any, given: dict[str, Any]) -> Any:
    """The arguments as the whole path specialises them."""
    values, options = fn._bind((), dict(given))
    assert not options
    return fn._specialise(values)


def told_apart(bound: Any) -> Any:
    """What the warm path tells apart beside the key: where arrays are, and whether they are
    read-only."""
    return [(item.slot, item.pointer.read_only, item.pointer.device) for item in bound.pointers]


class Warm:
    """The warm path for a function, and how often it has gone the whole way."""

    def __init__(self, fn: Any) -> None:
        self.fn, self.count = fn, 0
        self.dispatcher = make_dispatcher(fn, self._slow)

    def _slow(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.count += 1
        bound = bound_of(self.fn, kwargs)
        if bound.changing:
            return None, None
        # With a kernel the slots must be those that the core has found.
        family = _C.KernelFamily((None, any_kernel(), ()))
        return None, _C.LaunchRecord(family, tuple(bound.slots))

    def knows(self, given: dict[str, Any]) -> bool:
        """True if a launch with these arguments is of a kind that was launched before."""
        before = self.count
        self.dispatcher.bind((1,)).find(**given)
        return self.count == before


def distinguish(fn: Any, first: Any, second: Any) -> tuple[bool, bool]:
    """Whether the whole path distinguishes two arguments `a`, or sets of arguments, and whether the
    warm path does."""
    one, other = ({"a": a} if not isinstance(a, dict) else a for a in (first, second))
    warm = Warm(fn)
    warm.knows(one)
    warm.knows(one)  # the first launch may have learned a class
    assert warm.knows(one), one
    return bound_of(fn, one).key != bound_of(fn, other).key, not warm.knows(other)


BOTH, NEITHER = (True, True), (False, False)


def compare_paths(
    fn: Any, make: Callable[[random.Random], dict[str, Any]], count: int, seed: int
) -> tuple[int, int]:
    """Launches random arguments after one another. Where the warm path takes the second for one of
    the first's kind, the keys have to be equal, and the other way round. How many were of one kind,
    and how many were not."""
    choose = random.Random(seed)
    same = different = 0
    for _ in range(count):
        first, other = make(choose), make(choose)
        second = dict(first)
        if choose.random() < 0.8:
            name = choose.choice(sorted(other))
            second[name] = other[name]
        try:
            bounds = bound_of(fn, first), bound_of(fn, second)
        except tessera.ArgumentError:
            continue
        warm = Warm(fn)
        assert not warm.knows(first)
        assert warm.knows(first), first
        keys = [(bound.key, told_apart(bound)) for bound in bounds]
        assert warm.knows(second) == (keys[0] == keys[1]), (first, second)
        same, different = same + (keys[0] == keys[1]), different + (keys[0] != keys[1])
    return same, different


@tessera.jit
def mixed(x_ptr, out_ptr, n, f, flag, SHIFT: tl.constexpr):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, tl.where(flag, x * f + SHIFT, x))


def check_compiled_refuses(place: int, wrong: Any) -> None:
    """A kernel that was compiled for other arguments refuses one, also after launches with these."""
    kernel = tessera.compile(mixed, "*fp32:16, *fp32:16, i32:16, fp32, i1, 3")
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    right = [x, out, 16, 0.0, False, 3]
    args = [wrong if number == place else one for number, one in enumerate(right)]
    for _ in range(3):
        with pytest.raises(tessera.ArgumentError):
            kernel[(1,)](*args)
        for n in (16, 0, 16):
            kernel[(1,)](x, out, n, 0.0, False, 3)
        np.testing.assert_array_equal(out, x)
        out[:] = 0
