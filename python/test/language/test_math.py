# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators and mathematics: promotion as in language.md 2.7: each operation builds, with the type it should have and the IR it should make."""

from __future__ import annotations

import pytest

from language.building import Build, check

# expression, type of its value, text in the IR
ARITHMETIC = [
    ("i + 1", "int32[8]", "arith.addi"),
    ("1 + i", "int32[8]", "arith.addi"),
    ("s + 1", "int8", "arith.addi"),
    ("s + n", "int32", "arith.addi"),
    ("n + m", "int64", "arith.addi"),
    ("n + u", "uint32", "arith.addi"),
    ("h + 1.5", "fp16", "arith.addf"),
    ("h + g", "fp16", "arith.addf"),
    ("h + f", "fp32", "arith.addf"),
    ("g + g", "bf16", "arith.addf"),
    ("f + d", "fp64", "arith.addf"),
    ("n + 0.5", "fp32", "arith.addf"),
    ("n - m", "int64", "arith.subi"),
    ("2 - x", "fp32[8]", "arith.subf"),
    ("x * x", "fp32[8]", "arith.mulf"),
    ("n / n", "fp32", "arith.divf"),
    ("h / h", "fp32", "arith.divf"),
    ("n // 3", "int32", "tile.div_int"),
    ("n % 3", "int32", "tile.rem_int"),
    ("f % 2.0", "fp32", "remf"),
    ("n << 3", "int32", "left"),
    ("n >> 3", "int32", "right_arithmetic"),
    ("u >> 3", "uint32", "right_logical"),
    ("n & 3", "int32", "arith.andi"),
    ("n | 3", "int32", "arith.ori"),
    ("n ^ 3", "int32", "arith.xori"),
    ("~n", "int32", "arith.xori"),
    ("-n", "int32", "arith.subi"),
    ("-f", "fp32", "arith.negf"),
    ("+n", "int32", ""),
    ("not b", "int1", "arith.xori"),
    ("n < 3", "int1", "slt"),
    ("u < 3", "int1", "ult"),
    ("x >= 0", "int1[8]", "oge"),
    ("x == x", "int1[8]", "oeq"),
    ("x != x", "int1[8]", "une"),
    ("n > 0 and m > 0", "int1", "arith.andi"),
    ("n > 0 or m > 0", "int1", "arith.ori"),
    ("c.logical_and(i > 2)", "int1[8]", "arith.andi"),
    ("c.logical_or(i > 2)", "int1[8]", "arith.ori"),
    ("0 <= n < 8", "int1", "arith.andi"),
    ("p + i", "*fp32[8]", "tile.addptr"),
    ("i + p", "*fp32[8]", "tile.addptr"),
    ("p - 1", "*fp32", "tile.addptr"),
    ("tl.add(n, 1)", "int32", "arith.addi"),
    ("tl.sub(n, m)", "int64", "arith.subi"),
    ("tl.mul(1, n, sanitize_overflow=False)", "int32", "arith.muli"),
    ("tl.maximum(n, 0)", "int32", "maxsi"),
    ("tl.maximum(u, 1)", "uint32", "maxui"),
    ("tl.maximum(x, 0.0)", "fp32[8]", "maxnumf"),
    ("tl.minimum(x, t)", "fp32[4, 8]", "minnumf"),
    ("tl.minimum(x, 0, propagate_nan=tl.PropagateNan.ALL)", "fp32[8]", "minimumf"),
    ("tl.maximum(g, g)", "bf16", ""),
    ("max(n, m, 3)", "int64", "maxsi"),
    ("tl.clamp(x, 0.0, 1.0)", "fp32[8]", "clamp"),
    ("tl.clamp(n, 0, 7)", "int32", ""),
    ("tl.where(c, x, 0)", "fp32[8]", "arith.select"),
    ("tl.where(c, 1, 2)", "int32[8]", "arith.select"),
    ("tl.where(c[None, :], t, i)", "fp32[4, 8]", "arith.select"),
    ("tl.cdiv(n, 4)", "int32", "tile.div_int"),
    ("tl.umulhi(u, u)", "uint32", "tile.mulhi"),
    ("tl.fdiv(x, 3.0)", "fp32[8]", "arith.divf"),
    ("tl.div_rn(x, x)", "fp32[8]", "tile.precise_div"),
    ("tl.math.pow(x, f)", "fp32[8]", "math.powf"),
    ("tl.math.pow(x, d)", "fp64[8]", "math.powf"),
    ("tl.math.pow(x, i)", "fp32[8]", "math.fpowi"),
    ("tl.math.pow(f, s)", "fp32", "math.fpowi"),
    ("tl.math.pow(x, 2)", "fp32[8]", "arith.mulf"),
    ("tl.sqrt_rn(x)", "fp32[8]", "tile.precise_sqrt"),
    ("tl.fma(x, x, 1.0)", "fp32[8]", "math.fma"),
    ("tl.abs(i)", "int32[8]", "absi"),
    ("x.abs()", "fp32[8]", "absf"),
    ("abs(f)", "fp32", "absf"),
    ("tl.sigmoid(x)", "fp32[8]", "math.exp"),
    ("tl.softmax(t)", "fp32[4, 8]", "math.exp"),
    ("tl.softmax(t, 1)", "fp32[4, 8]", "math.exp"),
] + [
    (f"tl.{name}(x)", "fp32[8]", "")
    for name in (
        "exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf", "floor", "ceil",
        "tan", "tanh", "log1p", "expm1", "math.exp", "math.sqrt",
    )
]  # fmt: skip


@pytest.mark.parametrize("expression, type, text", ARITHMETIC, ids=[row[0] for row in ARITHMETIC])
def test_operation(build: Build, expression: str, type: str, text: str) -> None:
    check(build, expression, type, text)


@pytest.mark.parametrize(
    "expression, words",
    [("n // 0", "all ones"), ("n % 0", "x itself"), ("n << 40", "shifts by 32"), ("n >> -1", "0")],
)
def test_warning(build: Build, expression: str, words: str) -> None:
    from tessera.errors import CompilationWarning

    with pytest.warns(CompilationWarning, match=words) as caught:
        build("x", "y = n", f"x = {expression}")
    assert caught[0].lineno == 7 and caught[0].filename.startswith("<expression")
