# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which regions loops and branches become."""

from __future__ import annotations

from language.building import Build


def test_constant_loops_are_unrolled(build: Build) -> None:
    built = build("x", "x = n", "for k in tl.static_range(0, 6, 2):\n    x += k * 100")
    assert "scf" not in built.ir and built.ir.count("arith.addi") == 3
    built = build("x", "k: tl.constexpr = 8", "x = n",
                  "while k > 1:\n    k: tl.constexpr = k // 2\n    x += k")  # fmt: skip
    assert "scf" not in built.ir and built.ir.count("arith.addi") == 3


def test_a_loop_that_is_never_left_stays_a_for(build: Build) -> None:
    body = "    if LEAVES and k > 3:\n        break\n    x += k"
    ir = build("x", "x = n", f"for k in range(n):\n{body}", LEAVES=False).ir
    assert "scf.for" in ir and "scf.while" not in ir
    ir = build("x", "x = n", f"for k in range(n):\n{body}", LEAVES=True).ir
    assert "scf.while" in ir and "scf.for" not in ir


def test_early_return_is_one_if(build: Build) -> None:
    ir = build("n", "if n > 3:\n    return", "tl.store(ip, n)", "if n < 0:\n    return").ir
    assert ir.count("scf.if") == 2 and "scf.yield" not in ir


def test_dead_names_are_not_merged(build: Build) -> None:
    # x has two types in the two branches; that matters to nobody.
    ir = build("y", "if n > 3:\n    x = f\n    y = 1\nelse:\n    x = n\n    y = 2").ir
    assert ir.count("scf.yield") == 2


def test_condition_of_one_element(build: Build) -> None:
    ir = build("y", "y = n", "if (tl.arange(0, 1) + n) > 3:\n    y = 1").ir
    assert "scf.if" in ir
