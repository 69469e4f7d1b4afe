# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs, hints, assertions, printing, random numbers: each operation builds, with the type it should have and the IR it should make."""

from __future__ import annotations

import pytest

from language.building import Build, check

# expression, type of its value, text in the IR
PROGRAM = [
    ("tl.program_id(0)", "int32", "tile.program_id 0"),
    ("tl.num_programs(axis=2)", "int32", "tile.num_programs 2"),
    ("tl.multiple_of(n, 16)", "int32", "16"),
    ("tl.max_contiguous(tl.multiple_of(i, 8), 8)", "int32[8]", ""),
    ("tl.max_constancy(k, (4, 8))", "int32[4, 8]", ""),
    ("tl.assume(n > 0)", "the constant None", "tile.assume"),
    ("tl.expect_zero(i, c)", "int32[8]", "tile.assert"),
    ("tl.sort(x)", "fp32[8]", "tile.sort"),
    ("t.sort(0, descending=True)", "fp32[4, 8]", "tile.sort"),
    ("tl.argsort(x)", "int32[8]", "tile.sort"),
    ("tl.topk(t, 4)", "fp32[4, 4]", "tile.gather"),
    ("tl.topk(i, 1, return_indices=True)", "int32[1], int32[1]", "tile.gather"),
    ("tl.debug_barrier()", "the constant None", "tile.barrier"),
    ('tl.device_print("x", x, n)', "the constant None", "tile.print"),
    ('print("x", x)', "the constant None", "tile.print"),
    ('tl.device_assert(n > 0, "n")', "the constant None", "tile.assert"),
    ("tl.swizzle2d(n, n, 8, 8, 2)", "int32, int32", "tile.div_int"),
    (
        'tl.inline_asm_elementwise("mov $0, $1;", "=r,r", [i], tl.int32, True, 1)',
        "int32[8]",
        "asm",
    ),
    ("tl.rand(n, i)", "fp32[8]", "tile.mulhi"),
    ("tl.randn(n, i)", "fp32[8]", "math.cos"),
    ("tl.randint(n, i)", "uint32[8]", "tile.mulhi"),
    ("tl.randint(m, i.to(tl.int64))", "uint32[8]", "tile.mulhi"),
    ("tl.rand4x(n, i)", "fp32[8], fp32[8], fp32[8], fp32[8]", ""),
    ("tl.randn4x(n, i)", "fp32[8], fp32[8], fp32[8], fp32[8]", ""),
]


@pytest.mark.parametrize("expression, type, text", PROGRAM, ids=[row[0] for row in PROGRAM])
def test_operation(build: Build, expression: str, type: str, text: str) -> None:
    check(build, expression, type, text)


def test_loop_hints(build: Build) -> None:
    loop = "for k in tl.range(0, n, 2, num_stages=3, loop_unroll_factor=4, flatten=True):"
    ir = build("x", "x = 0", f"{loop}\n    x += k").ir
    for text in ("tile.num_stages = 3", "tile.loop_unroll_factor = 4", "tile.flatten"):
        assert text in ir
    ir = build(
        "x",
        "x = 0",
        "for k in tl.range(0, n, warp_specialize=True, disallow_acc_multi_buffer=True, "
        "disable_licm=True):\n    x += k",
    ).ir
    assert "scf.for" in ir


def test_while_condition_wrapper(build: Build) -> None:
    ir = build("n", "while tl.condition(n > 0, disable_licm=True):\n    n -= 1").ir
    assert "scf.while" in ir
