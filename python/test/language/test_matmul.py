# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dots: each operation builds, with the type it should have and the IR it should make."""

from __future__ import annotations

import pytest

from language.building import Build, check

# expression, type of its value, text in the IR
MATMUL = [
    (
        "tl.dot(tl.zeros((16, 32), tl.float16), tl.zeros((32, 64), tl.float16))",
        "fp32[16, 64]",
        "tile.dot",
    ),
    (
        "tl.dot(tl.zeros((16, 32), tl.float16), tl.zeros((32, 64), tl.float16), "
        "out_dtype=tl.float16)",
        "fp16[16, 64]",
        "tile.dot",
    ),
    (
        "tl.dot(tl.zeros((16, 32), tl.float32), tl.zeros((32, 64), tl.float32), "
        "tl.zeros((16, 64), tl.float32), allow_tf32=False)",
        "fp32[16, 64]",
        "tile.dot",
    ),
    (
        "tl.dot(tl.zeros((16, 32), tl.int8), tl.zeros((32, 64), tl.int8))",
        "int32[16, 64]",
        "tile.dot",
    ),
    (
        "tl.dot(tl.zeros((2, 16, 32), tl.float64), tl.zeros((2, 32, 64), tl.float64))",
        "fp64[2, 16, 64]",
        "tile.dot",
    ),
]


@pytest.mark.parametrize("expression, type, text", MATMUL, ids=[row[0] for row in MATMUL])
def test_operation(build: Build, expression: str, type: str, text: str) -> None:
    check(build, expression, type, text)
