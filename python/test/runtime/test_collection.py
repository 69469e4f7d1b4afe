# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the core's types hold, the garbage collector sees: a circle through each is collected."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import _C


class Mark:
    """An object of which one can tell whether it is there, and that can close a circle."""

    def __call__(self, *args):
        return (1,)


@tessera.jit
def fill(out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), 1.0)


@pytest.fixture(scope="module", autouse=True)
def frozen():
    """Each test collects: not what other tests have left, for which that takes 2 s."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def kernel():
    return tessera.compile(fill, "*fp32, 8")._kernel


def is_collected(make):
    """Whether what `make(mark)` returns goes with `mark`, which has a reference to it."""
    mark = Mark()
    gone = weakref.ref(mark)
    mark.circle = make(mark)
    assert gc.is_tracked(mark.circle)
    del mark
    # Who holds it now is in the circle, and the collector counts all of their references.
    assert gone() is not None
    gc.collect()
    return gone() is None


def dispatcher(slow=None, fail=print, defaults=()):
    return _C.Dispatcher((("x", defaults, True, True, True),), slow, fail)


@pytest.mark.parametrize(
    "make",
    [
        lambda mark: dispatcher(slow=mark),
        lambda mark: dispatcher(fail=mark),
        lambda mark: dispatcher(defaults=(mark,)),
        lambda mark: dispatcher().bind(mark),
        lambda mark: dispatcher(slow=mark).bind((1,)),
        lambda mark: dispatcher(slow=mark).bind((1,)).find,
    ],
    ids=["slow", "fail", "default", "grid", "dispatcher", "method"],
)
def test_what_a_launch_is_made_of(make):
    assert is_collected(make)


def test_the_last_choice():
    def make(mark):
        made = dispatcher()
        made.set_last_choice(mark)
        return made

    assert is_collected(make)


ENTRY = ("result", "checks", "variant", "options", "stream", "choice")


@pytest.mark.parametrize("member", ENTRY)
def test_what_a_signature_leads_to(member, kernel):
    """Each part of what `slow` returns is kept for the next launch of the signature."""

    def make(mark):
        def held(name):
            return mark if name == member else None

        # The object whose attribute is checked, the attribute, and its value.
        checks = ((mark, "value", 1),) if member == "checks" else ()
        family = _C.KernelFamily((held("result"), kernel, checks))
        if member == "variant":
            family.set(_C.Variant.UNLIMITED, (mark, kernel, ()))
        record = _C.LaunchRecord(
            family,
            options={"option": held("options")},
            stream=mark if member == "stream" else 0,
            choice=held("choice"),
        )
        records = [record]
        del record, family
        made = dispatcher(slow=lambda grid, args, kwargs: (None, records[0]))
        made.bind((1,)).find(5)
        records.clear()
        return made

    assert is_collected(make)


def test_the_constants_of_a_signature():
    def make(mark):
        made = dispatcher(slow=lambda *given: (None, _C.LaunchRecord(None, choice=0)))
        made.bind((1,)).find(mark)
        return made

    assert is_collected(make)


def test_entries_that_are_forgotten():
    made = dispatcher(slow=lambda *given: (None, _C.LaunchRecord(None, choice=Mark())))
    made.bind((1,)).find(1)
    first = weakref.ref(made.bind((1,)).find(1))
    assert first() is not None
    made.clear()
    made.set_last_choice(None)
    assert first() is None


def test_what_is_launched():
    class Kernel(_C.Launchable):
        pass

    def make(mark):
        made = Kernel()
        made._dispatcher = dispatcher(slow=mark)
        return made

    assert is_collected(make)
    # And its class, which every object of it has.
    gone = weakref.ref(Kernel)
    del Kernel, make
    gc.collect()
    assert gone() is None


def test_classes_of_arguments():
    """A launch remembers which classes are arrays, and keeps no other alive."""

    def launch():
        class Odd:
            pass

        made = _C.Dispatcher((("x", (), False, True, True),), lambda *given: (None, None), print)
        made.bind((1,))(Odd())
        return weakref.ref(Odd)

    gone = launch()
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("kind", ["record", "interface", "pointer", "number", "tensor"])
def test_classes_that_a_launch_has_learned(kind):
    """The core forgets a class when it is deleted, and learns the next one at its address."""
    torch = pytest.importorskip("torch") if kind == "tensor" else None

    @tessera.jit
    def first_of(x, out):
        tl.store(out, tl.load(x))

    @tessera.jit
    def field_of(x, out):
        tl.store(out, tl.load(x.data))

    @tessera.jit
    def number(x, out):
        tl.store(out, x)

    kernel = {"record": field_of, "number": number}.get(kind, first_of)

    def launch(value):
        data, out = np.full(4, value, np.float32), np.zeros(1, np.float32)
        if kind == "record":

            @dataclasses.dataclass
            class Odd:
                data: Any

            made = Odd(data)
        elif kind == "interface":

            class Odd:
                dtype = data.dtype
                __array_interface__ = data.__array_interface__

            made = Odd()
        elif kind == "pointer":

            class Odd:
                dtype = data.dtype
                data_ptr = staticmethod(lambda: int(data.ctypes.data))

            made = Odd()
        elif kind == "number":

            class Odd(int):
                pass

            made = Odd(value)
        else:

            class Odd(torch.Tensor):
                pass

            made = torch.from_numpy(data).as_subclass(Odd)
        for _ in range(3):
            out[:] = 0
            kernel[(1,)](made, out)
            assert out[0] == value
        # Kernels that were compiled for the class refer to it.
        kernel._kernels.clear()
        kernel._made.clear()
        kernel._modules.clear()
        kernel._dispatcher.clear()
        return weakref.ref(Odd)

    for value in (2, 3):
        gone = launch(value)
        gc.collect()
        assert gone() is None


def test_a_kernel_that_was_launched():
    def launch():
        kernel = tessera.jit(fill.fn)
        x = np.zeros(8, np.float32)
        for _ in range(3):
            kernel[(1,)](x, BLOCK=8)
            kernel[lambda meta: (1,)](x, BLOCK=8)
        kernel.warmup(x, BLOCK=8, grid=(1,))
        assert (x == 1).all()
        kernel.itself = kernel[(1,)]
        return weakref.ref(kernel), weakref.ref(x)

    kernel, array = launch()
    assert array() is None
    gc.collect()
    assert kernel() is None
