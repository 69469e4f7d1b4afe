# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""dtypes, pointers, blocks, and constexpr as an object."""

from __future__ import annotations

import pickle

import pytest

import tessera.language as tl

SCALARS = [
    (tl.int1, 1, 1, "uint", 0), (tl.int8, 8, 1, "int", 1), (tl.int16, 16, 2, "int", 1),
    (tl.int32, 32, 4, "int", 1), (tl.int64, 64, 8, "int", 1), (tl.uint8, 8, 1, "uint", 1),
    (tl.uint16, 16, 2, "uint", 1), (tl.uint32, 32, 4, "uint", 1), (tl.uint64, 64, 8, "uint", 1),
    (tl.float16, 16, 2, "float", 2), (tl.bfloat16, 16, 2, "float", 2),
    (tl.float32, 32, 4, "float", 2), (tl.float64, 64, 8, "float", 2),
]  # fmt: skip


@pytest.mark.parametrize("dtype, bits, size, family, kind", SCALARS, ids=lambda x: str(x))
def test_scalar(dtype: tl.dtype, bits: int, size: int, family: str, kind: int) -> None:
    assert (dtype.primitive_bitwidth, dtype.itemsize, dtype.kind()) == (bits, size, kind)
    assert dtype.is_floating() == (family == "float")
    assert dtype.is_int() == (family != "float")
    assert dtype.is_int_signed() == (family == "int")
    assert dtype.is_int_unsigned() == (family == "uint")
    assert dtype.scalar is dtype and not dtype.is_ptr() and not dtype.is_block()
    assert pickle.loads(pickle.dumps(dtype)) == dtype
    assert tl.str_to_ty(dtype.name) == dtype
    assert eval(repr(dtype)) == dtype


def test_integer_limits() -> None:
    assert (tl.int8.get_int_min_value(), tl.int8.get_int_max_value()) == (-128, 127)
    assert (tl.uint16.get_int_min_value(), tl.uint16.get_int_max_value()) == (0, 65535)
    assert tl.int1.get_int_max_value() == 1


def test_float_parameters() -> None:
    assert (tl.float16.fp_mantissa_width, tl.float16.exponent_bias) == (10, 15)
    assert (tl.bfloat16.fp_mantissa_width, tl.bfloat16.exponent_bias) == (7, 127)
    assert (tl.float64.fp_mantissa_width, tl.float64.exponent_bias) == (52, 1023)


def test_dtypes_are_unequal() -> None:
    dtypes = [row[0] for row in SCALARS] + [tl.void, tl.float8e5, tl.float8e4nv]
    assert len(set(dtypes)) == len(dtypes)
    assert tl.int32 != 32 and tl.int32 != "int32"


def test_pointer() -> None:
    pointer = tl.pointer_type(tl.float16)
    assert pointer.is_ptr() and pointer.element_ty == tl.float16 and not pointer.is_const()
    assert pointer == tl.pointer_type(tl.float16)
    assert pointer != tl.pointer_type(tl.float16, const=True)
    assert pointer != tl.pointer_type(tl.float32)
    assert pickle.loads(pickle.dumps(pointer)) == pointer
    with pytest.raises(TypeError, match="not a dtype"):
        tl.pointer_type("fp32")  # type: ignore[arg-type]


def test_block() -> None:
    block = tl.block_type(tl.float32, [4, 8])
    assert block.is_block() and block.shape == (4, 8) and block.numel == 32
    assert block.scalar == tl.float32
    assert block == tl.block_type(tl.float32, (4, 8)) != tl.block_type(tl.float32, [8, 4])


@pytest.mark.parametrize(
    "text, expected",
    [
        ("fp32", tl.float32), ("bf16", tl.bfloat16), ("i32", tl.int32), ("u8", tl.uint8),
        ("i1", tl.int1), ("*fp32", tl.pointer_type(tl.float32)),
        ("*i64", tl.pointer_type(tl.int64)), ("*kfp16", tl.pointer_type(tl.float16, const=True)),
        ("*const fp16", tl.pointer_type(tl.float16, const=True)),
    ],
)  # fmt: skip
def test_types_by_name(text: str, expected: tl.dtype) -> None:
    assert tl.str_to_ty(text) == expected


def test_unknown_name() -> None:
    with pytest.raises(ValueError, match="no dtype 'float31'"):
        tl.str_to_ty("float31")


def test_constexpr_operators() -> None:
    three = tl.constexpr(3)
    assert (three + 4).value == 7 and (4 - three).value == 1
    assert (three**2).value == 9 and (7 // three).value == 2 and (-7 // three).value == -3
    assert (three == 3) and (three < 4) and not (three > 4)
    assert (-three).value == -3 and (~three).value == -4 and (1 << three).value == 8
    assert int(three) == 3 and [10, 20, 30, 40][three] == 40
    assert tl.constexpr(three).value == 3
    assert len(tl.constexpr((1, 2))) == 2 and list(tl.constexpr((1, 2))) == [1, 2]


def test_operations_outside_of_kernels() -> None:
    with pytest.raises(ValueError, match="only be called inside a @jit function"):
        tl.arange(0, 8)
    with pytest.raises(ValueError, match="only be called inside a @jit function"):
        tl.sum(1)
    with pytest.raises(ValueError, match="@jit function"):
        for _ in tl.range(0, 3):
            pass
