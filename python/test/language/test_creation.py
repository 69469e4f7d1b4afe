# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Making tensors and casting them: each operation builds, with the type it should have and the IR it should make."""

from __future__ import annotations

import pytest

from language.building import Build, check

# expression, type of its value, text in the IR
CREATION = [
    ("tl.arange(3, 11)", "int32[8]", "tile.range 3 to 11"),
    ("tl.arange(0, 192)", "int32[192]", "tile.range 0 to 192"),
    ("tl.full((4, 8), 2, tl.float16)", "fp16[4, 8]", "dense<2.000000e+00> : tensor<4x8xf16>"),
    ("tl.full((4,), f, tl.float64)", "fp64[4]", "tile.splat"),
    ("tl.full((), 1, tl.int64)", "int64", "i64"),
    ("tl.full((4,), 0.0, tl.int32)", "int32[4]", "dense<0> : tensor<4xi32>"),
    ("tl.full((4,), -3.0, tl.int8)", "int8[4]", "dense<-3> : tensor<4xi8>"),
    ("tl.zeros([4, 8], tl.int8)", "int8[4, 8]", "dense<0> : tensor<4x8xi8>"),
    ("tl.zeros_like(t)", "fp32[4, 8]", "dense<0.000000e+00> : tensor<4x8xf32>"),
    ("tl.zeros_like(h)", "fp16", "f16"),
    ("tl.to_tensor(True)", "int1 (= True)", ""),
    ("tl.to_tensor(7)", "int32 (= 7)", ""),
    ("tl.to_tensor(2**31)", "uint32 (= 2147483648)", ""),
    ("tl.to_tensor(2**32)", "int64 (= 4294967296)", ""),
    ("tl.to_tensor(2**63)", "uint64 (= 9223372036854775808)", ""),
    ("tl.to_tensor(0.5)", "fp32 (= 0.5)", ""),
    ("tl.to_tensor(1e300)", "fp64 (= 1e+300)", ""),
    ("tl.to_tensor(1e-40)", "fp64 (= 1e-40)", ""),
    ("tl.cast(x, tl.int32)", "int32[8]", "tensor<8xf32> -> tensor<8xi32>"),
    ("x.to(tl.bfloat16)", "bf16[8]", "tile.fp_to_fp"),
    ('x.to(tl.bfloat16, fp_downcast_rounding="rtz")', "bf16[8]", "rounding = 1"),
    ("x.to(tl.int32, bitcast=True)", "int32[8]", "tile.bitcast"),
    ("i.to(tl.uint32)", "uint32[8]", ""),
    ("m.to(tl.pointer_type(tl.float32))", "*fp32", "tile.int_to_ptr"),
    ("p.to(tl.int64)", "int64", "tile.ptr_to_int"),
    ("p.to(tl.pointer_type(tl.int8))", "*int8", "tile.bitcast"),
    ("tl.full((1,), 3, tl.int32).item()", "int32", ""),
]


@pytest.mark.parametrize("expression, type, text", CREATION, ids=[row[0] for row in CREATION])
def test_operation(build: Build, expression: str, type: str, text: str) -> None:
    check(build, expression, type, text)
