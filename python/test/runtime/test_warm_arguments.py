# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments that are neither plain arrays nor plain numbers, launched warm: records, NumPy's numbers,
16-bit floats, arrays that say by protocols where they are. Each test also passes what differs by
little, which has to come out as it does by the whole way."""

from __future__ import annotations

import dataclasses
import enum
import gc
import math
import random
import struct
import weakref
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from runtime.test_warm_paths import count_calls

import tessera
import tessera.language as tl
from tessera import _C
from tessera.errors import ArgumentError
from tessera.runtime.jit import JITFunction


@tessera.jit
def scaled(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0) * factor)


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The launches that take the whole way."""
    return count_calls(monkeypatch, JITFunction, "_run")


# --- Records ----------------------------------------------------------------------------------


@dataclasses.dataclass
class Vector:
    data: Any
    size: Any
    scale: tl.constexpr = 3


@dataclasses.dataclass(frozen=True)
class Pair:
    first: Vector
    second: Any


@tessera.aggregate
class Offset:
    by: tl.tensor
    sign: tl.constexpr


@tessera.jit
def scaled_vector(v, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(v.data + i, mask=i < v.size, other=0) * v.scale)


@tessera.jit
def added(pair, offset, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(pair.first.data + i, mask=i < pair.first.size, other=0) * pair.first.scale
    if pair.second is not None:
        x += tl.load(pair.second + i)
    tl.store(out + i, x + offset.by * offset.sign)


def test_dataclasses(whole):
    out = np.zeros(16, np.float32)
    for k in range(6):
        x = np.arange(16, dtype=np.float32) + k
        scaled_vector[(1,)](Vector(x, 16), out, BLOCK=16)
        np.testing.assert_array_equal(out, x * 3)
    assert len(whole) == 2  # the first has the core learn the class
    # Its fields are looked at in each launch.
    x = np.arange(16, dtype=np.float32)
    vector = Vector(x, 16)
    for _ in range(3):
        for size, scale in ((16, 3), (5, 3), (5, 4), (1, 4), (16, 3.5), (16, True)):
            vector.size, vector.scale = size, scale
            scaled_vector[(1,)](vector, out, BLOCK=16)
            np.testing.assert_array_equal(out, np.where(np.arange(16) < size, x, 0) * scale)
        for data in (x + 1, x * 2):
            scaled_vector[(1,)](Vector(data, 14), out, BLOCK=16)
            np.testing.assert_array_equal(out, np.append(data[:14], [0, 0]) * 3)
    assert len(whole) <= 10
    del vector.size
    with pytest.raises(AttributeError):
        scaled_vector[(1,)](vector, out, BLOCK=16)
    with pytest.raises(ArgumentError, match="v"):
        scaled_vector[(1,)](Vector("no array", 3), out, BLOCK=16)


def test_records_in_records(whole):
    out = np.zeros(16, np.float32)
    x, y = np.arange(16, dtype=np.float32), np.ones(16, np.float32)
    for _ in range(3):
        for size, second, by, sign in ((16, y, 5.0, 1), (3, None, 5.0, 1), (3, y, 0.5, -1)):
            added[(1,)](Pair(Vector(x, size), second), Offset(by, sign), out, BLOCK=16)
            want = np.where(np.arange(16) < size, x, 0) * 3 + (0 if second is None else y)
            np.testing.assert_array_equal(out, want + by * sign)
    assert len(whole) <= 6
    # A tuple of the same parts is none of them.
    with pytest.raises(tessera.CompilationError):
        added[(1,)](((x, 16, 3), y), Offset(1.0, 1), out, BLOCK=16)


def test_two_classes_with_the_same_fields(whole):
    @dataclasses.dataclass
    class Other:
        data: Any
        scale: Any
        size: Any

    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    another = tessera.jit(scaled_vector.fn)
    for _ in range(2):
        scaled_vector[(1,)](Vector(x, 5), out, BLOCK=16)
        np.testing.assert_array_equal(out[:6], [0, 3, 6, 9, 12, 0])
        another[(1,)](Other(x, 5, 3), out, BLOCK=16)
        np.testing.assert_array_equal(out[:6], [0, 5, 10, 0, 0, 0])


def test_a_property_that_makes_an_array_each_time(whole):
    made = []

    @dataclasses.dataclass
    class Lazy:
        size: Any
        data: Any = None
        scale: tl.constexpr = 2

        def __getattribute__(self, name):
            if name != "data":
                return object.__getattribute__(self, name)
            array = np.full(16, 7, np.float32)
            made.append(weakref.ref(array))
            return array

    out = np.zeros(16, np.float32)
    for _ in range(4):
        out[:] = 0
        scaled_vector[(1,)](Lazy(16), out, BLOCK=16)
        assert (out == 7 * 2).all()
    gc.collect()
    # Another array for the core than for the whole way, so no launch is known for sure.
    assert not any(array() is not None for array in made[-2:])


def test_what_is_tuned_by_a_record_or_a_numpy_number():
    @tessera.autotune([tessera.Config({"BLOCK": 16})], key=["n"])
    @tessera.jit
    def tuned(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n, other=0))

    x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
    for _ in range(2):
        for n in (16, np.int64(5), np.int64(6), 5):
            tuned[(1,)](x, out, n)
            assert out.sum() == n


# --- Numbers ----------------------------------------------------------------------------------


class Size(enum.IntEnum):
    SMALL = 5
    LARGE = 1 << 40


class Odd(int):
    def __index__(self):
        return 77

    __int__ = __index__


def test_numbers_of_other_classes(whole):
    x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
    numbers = [np.int32(5), np.int64(16), np.uint8(1), np.int64(1 << 40), np.uint64((1 << 64) - 1),
               np.int16(-3), Size.SMALL, Size.LARGE, Odd(7), np.intc(4)]  # fmt: skip
    for repeat in range(4):
        for number in numbers:
            known = len(whole)
            scaled[(1,)](x, out, number, np.float32(2.5), BLOCK=16)
            plain = int.__int__(number) if isinstance(number, int) else int(number)
            assert (out == np.where(np.arange(16) < plain, 2.5, 0)).all(), number
            # The first of a class teaches the core, the second what to do with it.
            assert repeat < 2 or len(whole) == known
        for factor in (np.float64(2.5), np.float16(2.5), np.bool_(True), np.bool_(False), 2.5):
            scaled[(1,)](x, out, 16, factor, BLOCK=16)
            assert (out == np.float32(factor)).all()
    # As plain ones, they are of the kind that their values say.
    assert scaled[(1,)](x, out, np.int64(16), 2.5, BLOCK=16) is scaled[(1,)](
        x, out, 16, 2.5, BLOCK=16
    )
    for wrong in (np.datetime64("2026-11-24"), np.complex64(1)):
        with pytest.raises(ArgumentError):
            scaled[(1,)](x, out, wrong, 2.5, BLOCK=16)


def test_numbers_of_sixteen_bits(whole):
    @tessera.jit
    def passed(out, half: tl.float16, brain: tl.bfloat16):
        tl.store(out, half.to(tl.float32))
        tl.store(out + 1, brain.to(tl.float32))

    numbers = [0.1, -0.0, 1e-7, 6e-8, 2.9e-8, 3e-8, 65519.9, 65520.0, -1e300, 1e-320, float("inf"),
               float("nan"), 3, True, np.float32(0.3), 2049.0, 2051.0, 6.1e-5, 6.097e-5]  # fmt: skip
    out = np.zeros(2, np.float32)
    for number in numbers:
        passed[(1,)](out, number, number)
        with np.errstate(over="ignore"):
            want = np.float32(np.float16(number))
        np.testing.assert_array_equal(out[0], want)
        want = rounded(number if isinstance(number, int) else float(number), tl.bfloat16)
        np.testing.assert_array_equal(out[1], want)
    assert len(whole) <= 2  # the first, and the first of NumPy's
    with pytest.raises(ArgumentError):
        passed[(1,)](out, "1", 1.0)
    with pytest.raises(ArgumentError, match="does not fit"):
        passed[(1,)](out, 10**400, 1.0)
    with pytest.raises(ArgumentError, match="is annotated fp16"):
        passed[(1,)](out, out, 1.0)


_FORMATS = {tl.float16: (11, -14, 15), tl.bfloat16: (8, -126, 127), tl.float32: (24, -126, 127)}
"""The bits of the significand, the smallest exponent of a normal number, and the largest one."""


def rounded(number: float, dtype: Any) -> float:
    """The nearest number of a type, ties to even, by rational arithmetic."""
    precision, lowest, highest = _FORMATS[dtype]
    if number == 0 or number != number or number in (math.inf, -math.inf):
        return float(number)
    magnitude = abs(Fraction(number))
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > magnitude
    place = Fraction(2) ** (max(exponent, lowest) - precision + 1)
    nearest = round(magnitude / place) * place
    result = math.inf if nearest >= Fraction(2) ** (highest + 1) else float(nearest)
    return math.copysign(result, number)


def decode(bits: int, dtype: Any) -> float:
    if dtype == tl.float16:
        return float(np.uint16(bits).view(np.float16))
    return float(np.uint32(bits << 16 if dtype == tl.bfloat16 else bits).view(np.float32))


@pytest.mark.parametrize("dtype", _FORMATS, ids=str)
def test_numbers_are_rounded_once(dtype: Any) -> None:
    """Ties, what lies beside them by one place of a double, and integers of any length."""
    rng = random.Random(0)
    precision, lowest, highest = _FORMATS[dtype]
    numbers: list[Any] = [math.inf, -math.inf, 1e300, -1e300, 1e-320, -0.0, 2**1023]
    for _ in range(4000):
        exponent = rng.randint(lowest - precision - 2, highest + 1)
        tie = math.ldexp(rng.getrandbits(precision + 1) | 1, exponent - precision)
        beside = tie * (1 + rng.choice((-1, 1)) * 2.0 ** -rng.randint(20, 52))
        length = rng.randint(54, 200)
        whole = (rng.getrandbits(precision + 1) | 1) << length - precision
        numbers += [tie, -beside, math.nextafter(tie, math.inf), math.nextafter(tie, 0.0)]
        numbers += [whole + rng.choice((-1, 0, 1)), -rng.getrandbits(length)]
    for number in numbers:
        found = decode(_C.float_bits(number, dtype._core_id), dtype)
        want = rounded(number, dtype)
        assert struct.pack("<d", found) == struct.pack("<d", want), (number, found, want)
    assert math.isnan(decode(_C.float_bits(math.nan, dtype._core_id), dtype))
    with pytest.raises(OverflowError):
        _C.float_bits(2**1024, dtype._core_id)


def test_a_number_is_rounded_as_a_cast_in_the_kernel_rounds_it(whole) -> None:
    """By the interpreter, by the whole way of a launch, warm, and by a kernel that was compiled
    before."""

    @tessera.jit
    def passed(out, half: tl.float16, brain: tl.bfloat16, exact: tl.float64):
        tl.store(out, half)
        tl.store(out + 1, exact.to(tl.float16))
        tl.store(out + 2, brain)
        tl.store(out + 3, exact.to(tl.bfloat16))

    ahead = tessera.compile(passed, "*fp64, fp16, bf16, fp64", target="cpu")
    for number in (
        1 + 2**-8 + 2**-40,
        1 + 2**-11 + 2**-50,
        -(3 + 2**-7 - 2**-50),
        1 - 2**-9 - 2**-45,
    ):
        want = [rounded(number, dtype) for dtype in (tl.float16, tl.bfloat16) for _ in range(2)]
        for launch in (tessera.interpret(passed)[(1,)], passed[(1,)], passed[(1,)], ahead[(1,)]):
            out = np.zeros(4)
            launch(out, number, number, number)
            assert out.tolist() == want, number
    assert len(whole) == 1


# --- Constants that change ---------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Frozen:
    number: int


@tessera.jit
def stored(out, number: tl.constexpr):
    tl.store(out, number)


@tessera.jit
def stored_member(out, of: tl.constexpr):
    tl.store(out, of.number)


def test_constants_that_do_not_change_stay_warm(whole) -> None:
    out = np.zeros(1, np.int32)
    for number in (np.int32(4), 4, np.dtype("int32"), Kind.WIDE, (1, (2, "x")), None, tl.float32):
        for _ in range(3):
            known = len(whole)
            stored_or_zero[(1,)](out, number)
        assert len(whole) == known, number
    frozen = Frozen(5)
    for _ in range(3):
        known = len(whole)
        stored_member[(1,)](out, frozen)
    assert len(whole) == known and out[0] == 5


class Kind(enum.Enum):
    WIDE = 3


@tessera.jit
def stored_or_zero(out, number: tl.constexpr):
    tl.store(out, 0)


def test_other_arrays_are_no_constants() -> None:
    torch = pytest.importorskip("torch")
    out = np.zeros(1, np.int32)
    with pytest.raises(ArgumentError, match=r"(?s)E033.*x\.item\(\)"):
        stored[(1,)](out, torch.tensor(3))
    with pytest.raises(ArgumentError, match="E033"):
        stored[(1,)](out, np.zeros(1))


# --- Arrays with protocols --------------------------------------------------------------------


class Exporter:
    """An array that has DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.kind: Any = (1, 0)
        self.fails = False

    def __dlpack__(self, **asked: Any) -> Any:
        if self.fails:
            raise RuntimeError("not now")
        return self.array.__dlpack__(**asked)

    def __dlpack_device__(self) -> Any:
        return self.kind


def test_dlpack(whole):
    out = np.zeros(16, np.float32)
    kernels = {dtype: tessera.jit(scaled.fn) for dtype in (np.float32, np.int32, np.float64)}
    for repeat in range(3):
        for dtype, kernel in kernels.items():
            x = np.arange(16).astype(dtype) + repeat
            known = len(whole)
            kernel[(1,)](Exporter(x), Exporter(out), 16, 2.0, BLOCK=16)
            np.testing.assert_array_equal(out, x * 2)
            assert repeat < 2 or len(whole) == known
    # One that lies elsewhere, is empty, or fails.
    x = np.arange(17, dtype=np.float32)
    scaled[(1,)](Exporter(np.zeros(0, np.float32)), out, 0, 2.0, BLOCK=16)
    assert not out.any()
    away, failing = Exporter(x), Exporter(x)
    away.kind, failing.fails = (8, 0), True
    x.flags.writeable = False
    for _ in range(2):
        with pytest.raises(ArgumentError, match="Apple Metal"):
            scaled[(1,)](away, out, 16, 2.0, BLOCK=16)
        with pytest.raises(ArgumentError, match="not now"):
            scaled[(1,)](failing, out, 16, 2.0, BLOCK=16)
        scaled[(1,)](Exporter(x), out, 16, 1.0, BLOCK=16)
        np.testing.assert_array_equal(out, x[:16])


def test_what_is_exported_lives_as_long_as_the_launch(whole):
    class Copies(Exporter):
        def __dlpack__(self, **asked: Any) -> Any:
            made = np.array(self.array)
            alive.append(weakref.ref(made))
            return made.__dlpack__(**asked)

    alive: list[Any] = []
    x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
    for k in range(4):
        scaled[(1,)](Copies(x * k), out, 16, 2.0, BLOCK=16)
        assert (out == 2 * k).all()
    gc.collect()
    assert alive[-1]() is None


class Pointed:
    """An array that has `data_ptr` and `dtype`, and whatever a test adds."""

    def __init__(self, array: np.ndarray, **more: Any) -> None:
        self.array = array
        self.dtype: Any = array.dtype
        vars(self).update(more)

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)


def test_objects_with_data_ptr(whole):
    out = np.zeros(16, np.float32)
    kernels = {dtype: tessera.jit(scaled.fn) for dtype in (np.float32, np.int32, np.float64)}
    for repeat in range(3):
        for dtype, kernel in kernels.items():
            x = np.arange(16).astype(dtype) + repeat
            known = len(whole)
            kernel[(1,)](Pointed(x), Pointed(out), 16, 2.0, BLOCK=16)
            np.testing.assert_array_equal(out, x * 2)
            assert repeat < 2 or len(whole) == known
    # A dtype of another spelling, and one that is empty.
    x = np.arange(16, dtype=np.float32)
    for spelled in (tl.float32, np.float32, "float32"):
        scaled[(1,)](Pointed(x, dtype=spelled), out, 16, 3.0, BLOCK=16)
        np.testing.assert_array_equal(out, x * 3)
    scaled[(1,)](Pointed(np.zeros(0, np.float32)), out, 0, 2.0, BLOCK=16)
    assert not out.any()


class Device(NamedTuple):
    type: str
    index: Any = None


def _fail() -> Any:
    raise RuntimeError("not now")


@pytest.mark.parametrize(
    "more, says",
    [
        ({"data_ptr": _fail}, r"data_ptr\(\) failed: RuntimeError: not now"),
        ({"data_ptr": lambda: "0"}, "has a data_ptr"),
        ({"data_ptr": lambda: -1}, "says that it lies at -1"),
        ({"dtype": "complex64"}, "has elements of complex64"),
        ({"device": Device("meta")}, "is a meta tensor"),
        ({"device": Device("xpu")}, "where no kernel runs"),
        ({"layout": "torch.sparse_coo"}, "is sparse_coo"),
        ({"is_nested": True}, "is nested"),
        ({"is_neg": _fail}, "not now"),
    ],
)
def test_objects_with_data_ptr_that_no_kernel_takes(whole, more: dict[str, Any], says: str):
    x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
    for _ in range(3):
        scaled[(1,)](Pointed(x, device=Device("cpu")), out, 16, 2.0, BLOCK=16)
        assert (out == 2).all()
        with pytest.raises(ArgumentError, match=says):
            scaled[(1,)](Pointed(x, **more), out, 16, 2.0, BLOCK=16)
    absent = Pointed(x, layout="torch.strided", is_nested=False, is_neg=None, is_conj=lambda: False)
    known = len(whole)
    scaled[(1,)](absent, out, 16, 4.0, BLOCK=16)
    assert (out == 4).all() and len(whole) == known


def test_arrays_of_jax(whole):
    numpy = pytest.importorskip("jax.numpy")
    out = np.zeros(16, np.float32)
    integers, halves = tessera.jit(scaled.fn), tessera.jit(scaled.fn)
    for repeat in range(3):
        for x, kernel in (
            (numpy.arange(16.0) + repeat, scaled),
            (numpy.arange(16) + repeat, integers),
        ):
            known = len(whole)
            kernel[(1,)](x, out, 16, 2.0, BLOCK=16)
            np.testing.assert_array_equal(out, np.asarray(x) * 2)
            assert repeat < 2 or len(whole) == known
    # What Python's buffers have no format for, what is empty, and what is gone.
    for repeat in range(3):
        x = numpy.arange(16.0, dtype=numpy.bfloat16) + repeat
        halves[(1,)](x, out, 16, 2.0, BLOCK=16)
        np.testing.assert_array_equal(out, np.asarray(x, np.float32) * 2)
        scaled[(1,)](numpy.zeros(0), out, 0, 2.0, BLOCK=16)
        assert not out.any()
    gone = numpy.arange(16.0) * 3
    gone.delete()
    with pytest.raises(ArgumentError, match="failed"):
        scaled[(1,)](gone, out, 16, 2.0, BLOCK=16)
