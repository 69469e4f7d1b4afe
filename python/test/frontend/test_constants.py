# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is known at compile time stays known, and decides branches and loops."""

from __future__ import annotations

import tessera.language as tl
from language.building import Build


def test_constants_stay_constants(build: Build) -> None:
    for expression, value in {
        "tl.cdiv(B, 3)": 22, "B // 3 * 2 - 1": 41, "-7 // 2": -4, "2 ** 5": 32, "min(B, 7)": 7,
        "max((3, 9, 4))": 9, "len((1, 2))": 2, "B if B > 8 else 0": 64, "B == 64 and True": True,
        "(1, 2)[1]": 2, "[x * 2 for x in (1, 2, 3) if x != 2]": (2, 6), "float('inf')": float("inf"),
        "int(3.9)": 3, "isinstance(B, tl.constexpr)": True, "isinstance(n, tl.tensor)": True,
        "isinstance(B, int)": True, "hasattr(n, 'shape')": True, "hasattr(n, 'nothing')": False,
        "getattr(tl, 'float32')": tl.float32, "n.dtype": tl.int32, "n.dtype.is_int()": True,
        "tl.arange(0, 8).shape": (8,), "tl.arange(0, 8).shape[0]": 8, "B.value": 64,
        "f'{B}-{n.dtype}'": "64-int32", "None is None": True, "n is None": False,
        "3 in (1, 2, 3)": True, "(1, 2) + (3,)": (1, 2, 3), "(0,) * 3": (0, 0, 0),
        "'ab'.upper()": "AB", "not B": False, "tl.float16.primitive_bitwidth": 16,
        "tl.constexpr(5)": 5, "1 < 2 < 3": True, "list(range(0, 3))": (0, 1, 2),
    }.items():  # fmt: skip
        assert build(expression, B=64).value == value, expression


def test_assigned_numbers_are_tensors_that_are_known(build: Build) -> None:
    built = build("x", "x = 3")
    assert built.type == "int32 (= 3)"
    # They promote as tensors: an i32 widens an int8.
    assert build("s + x", "x = 3").type == "int32"
    assert build("s + x", "x: tl.constexpr = 3").type == "int8"
    # And may still be extents.
    assert build("tl.arange(0, x * 2)", "x = 8").type == "int32[16]"
    assert "arith.constant" not in build("x", "x = 3").ir


def test_condition_on_a_known_number_takes_one_branch(build: Build) -> None:
    built = build("y", "x = 3", "if x > 2:\n    y = n\nelse:\n    y = p")
    assert built.type == "int32" and "scf.if" not in built.ir
