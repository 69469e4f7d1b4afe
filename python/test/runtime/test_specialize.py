# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Specialisation: declarations of parameters, annotations, and the bits of numbers. Rules that
distinguish kernels are in launch_rules."""

import enum
import http
import math
import struct
import time

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import _C
from tessera.frontend.signature import ConstSpec
from tessera.language import types
from tessera.runtime.specialize import float_bits


@tessera.jit
def kernel(x, n, BLOCK: tl.constexpr = 64):
    pass


def bound(fn, *args, **kwargs):
    values, options = fn._bind(args, kwargs)
    assert not options
    return fn._specialise(values)


def key(fn, *args, **kwargs):
    return tuple(bound(fn, *args, **kwargs).key)


def test_alignment_classes():
    assert [_C.alignment_class(value) for value in (0, 16, 48, 8, 24, 4, 12, 2, 7, 2**64 - 16)] == [
        16, 16, 16, 8, 8, 4, 4, 0, 0, 16,
    ]  # fmt: skip


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 10**30])
def test_integers_that_fit_nothing(value):
    with pytest.raises(tessera.ArgumentError, match=f"`n` is {value}") as caught:
        bound(kernel, None, value)
    assert caught.value.id == "E055"


def test_do_not_specialize():
    @tessera.jit(do_not_specialize=["n", 2], do_not_specialize_on_alignment=["x"])
    def fn(x, n, m, k):
        pass

    x = np.zeros(64, np.float32)
    assert key(fn, x, 1, 1, 16) == key(fn, x[1:], 16, 7, 32)


def test_do_not_specialize_one():
    @tessera.jit(do_not_specialize="number", do_not_specialize_on_alignment=0)
    def fn(x, number, m):
        pass

    assert [param.do_not_specialize for param in fn.params] == [False, True, False]
    assert [param.do_not_specialize_on_alignment for param in fn.params] == [True, False, False]


def test_do_not_specialize_may_name_what_is_no_parameter():
    @tessera.jit(do_not_specialize=["y", 7, "x"], do_not_specialize_on_alignment=[-1])
    def fn(x, z):
        pass

    assert [param.num for param in fn.params] == [0, 1]
    assert [param.do_not_specialize for param in fn.params] == [True, False]
    assert [param.do_not_specialize_on_alignment for param in fn.params] == [False, True]
    assert key(fn, 1, 16) == key(fn, 16, 17)


def test_annotations_fix_types():
    @tessera.jit
    def fn(a: tl.int64, b: "*fp16", c: tl.const, d: "tl.float64", e: tl.uint8):
        pass

    x, h = np.zeros(4, np.int16), np.zeros(4, np.float16)
    specs = bound(fn, 1, h, x, 2, 255).specs
    assert [spec.type.dtype for spec in specs] == [
        dtype._core_id for dtype in (tl.int64, tl.float16, tl.int16, tl.float64, tl.uint8)
    ]
    assert [spec.type.is_const for spec in specs] == [False, False, True, False, False]
    with pytest.raises(tessera.ArgumentError, match="annotated int64, got the float 1.5"):
        bound(fn, 1.5, h, x, 2, 255)


@pytest.mark.parametrize("owner", ["tl", "triton.language"])
def test_an_annotation_reinterprets_no_memory(owner, monkeypatch):
    # What kernels call the type, also where programs that import triton see its name differently.
    monkeypatch.setattr(types, "owner", owner)

    @tessera.jit
    def fn(x: "*fp32", y: tl.pointer_type(tl.int8)):
        pass

    x, y = np.zeros(4, np.float32), np.zeros(4, np.int8)
    assert len(bound(fn, x, y).pointers) == 2
    assert bound(fn, None, y).specs[0] == ConstSpec(None)
    for wrong in (x.view(np.int32), x.astype(np.float64), y):
        with pytest.raises(
            tessera.ArgumentError, match="`x` is annotated .*fp32.*array of"
        ) as caught:
            bound(fn, wrong, y)
        assert caught.value.id == "E054" and "tessera.reinterpret(x, tl.float32)" in str(
            caught.value
        )
    with pytest.raises(tessera.ArgumentError, match="annotated .*int8.*array of uint8"):
        bound(fn, x, y.view(np.uint8))
    for number in (0, 5, 1.5, True, np.int64(4), Height.LOW):
        with pytest.raises(tessera.ArgumentError, match="`x` is annotated .*, got the number"):
            bound(fn, number, y)


class Height(enum.IntEnum):
    LOW, HIGH, ONE = 2000, 1 << 40, 1


class Metres(float):
    pass


def test_subclasses_of_numbers_count_as_what_they_are_worth():
    for value, plain in [
        (Height.LOW, 2000),
        (Height.HIGH, 1 << 40),
        (Height.ONE, 1),
        (http.HTTPStatus.OK, 200),
        (Metres(2.5), 2.5),
    ]:
        start = time.perf_counter()
        found = bound(kernel, None, value)
        assert time.perf_counter() - start < 1  # minutes where a range looks at each number
        wanted = bound(kernel, None, plain)
        assert found.key == wanted.key and found.slots == wanted.slots
        assert all(type(slot) is int for slot in found.slots)

    @tessera.jit
    def fn(n: tl.int64, m: tl.float32):
        pass

    assert bound(fn, Height.HIGH, Height.LOW).slots == bound(fn, 1 << 40, 2000).slots


@pytest.mark.parametrize("value", [0.1, 1e300, -1e300, 1e-320, math.inf, -math.inf, 65520.0, -0.0])
def test_bits_of_floats(value):
    with np.errstate(over="ignore"):
        assert float_bits(tl.float32, value) == int(np.float32(value).view(np.uint32))
        assert float_bits(tl.float16, value) == int(np.float16(value).view(np.uint16))
    assert float_bits(tl.float64, value) == struct.unpack("<Q", struct.pack("<d", value))[0]


@pytest.mark.parametrize("value", [0.1, 1.00390625, 1.01171875, 3.4e38, -2.5, math.nan, math.inf])
def test_bits_of_bfloat16(value):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    bits = float_bits(tl.bfloat16, value)
    wanted = np.array(value, ml_dtypes.bfloat16).view(np.uint16)
    assert bits == int(wanted) or (math.isnan(value) and bits & 0x7FFF > 0x7F80)


@tessera.jit
def by_name(out_ptr, kind: tl.constexpr, n):
    if kind == "gelu, exact":
        tl.store(out_ptr, 1.0 * n)
    elif kind == "gelu":
        tl.store(out_ptr, 2.0 * n)
    else:
        tl.store(out_ptr, 3.0 * n)


@pytest.mark.parametrize(
    "signature, factor",
    [
        ("*fp32, gelu, i32", 2), ("*fp32, 'gelu', i32", 2), ('*fp32:16, "gelu, exact",i32', 1),
        ("*fp32, \"'gelu'\", i32", 3), (["*fp32", "gelu", "i32"], 2), (["*fp32", "'gelu'", "i32"], 3),
    ],
)  # fmt: skip
def test_strings_in_a_signature(signature, factor):
    """Quotes in one text say where a string ends, and are no part of it."""
    kernel = tessera.compile(by_name, signature)
    assert f"{factor}.0" in kernel.asm["tile"] or f"{factor}.000000e+00" in kernel.asm["tile"]


def test_integers_that_fit_no_type():
    @tessera.jit
    def fn(n):
        pass

    for value in (2**64, -(2**63) - 1):
        with pytest.raises(OverflowError, match="fits no 64-bit integer") as caught:
            fn[(1,)](value)
        assert isinstance(caught.value, tessera.ArgumentError) and caught.value.id == "E055"
