# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The puzzles: their solutions are right, and mistakes are reported with place, expected and got."""

from __future__ import annotations

import pathlib
import sys

import pytest

import tessera
import tessera.language as tl
from tessera.testing.puzzles import PUZZLES, check

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python/examples"))

from puzzle_solutions import SOLUTIONS  # noqa: E402


def test_every_puzzle_has_a_solution_and_a_task():
    assert [kernel.fn.__name__ for kernel in SOLUTIONS] == list(PUZZLES)
    page = (ROOT / "docs/Tutorial/Puzzles.md").read_text()
    assert all(f"\ncheck({name})\n```" in page for name in PUZZLES) and len(PUZZLES) == 10


@pytest.mark.parametrize("kernel", SOLUTIONS, ids=lambda kernel: kernel.fn.__name__)
def test_solution(kernel, capsys):
    assert check(kernel)
    assert capsys.readouterr().out.startswith(f"{kernel.fn.__name__}: right, in ")


@tessera.jit
def double(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.where(i == 2, x, 2 * x))


def test_a_wrong_element_is_reported(capsys):
    assert not check(double)
    shown = capsys.readouterr().out
    for line in (
        "launch    double[(1,)](x_ptr, out_ptr, BLOCK=4)",
        "element   out_ptr[2]\n  expected  10\n  got       5\n",
        "stored    by program 0, in line 5: tl.store(out_ptr + i, tl.where(i == 2, x, 2 * x))",
        "hint      ",
    ):
        assert line in shown


@tessera.jit
def reverse(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + n - 1 - i, tl.load(x_ptr + i, mask=i < n), mask=i < 6)


def test_an_element_that_is_missing_is_reported(capsys):
    assert not check(reverse)
    shown = capsys.readouterr().out
    assert "element   out_ptr[0]" in shown and "got       nothing is stored there" in shown
    assert "stored    by no program" in shown and "wrong     2 of 8 elements" in shown


@tessera.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)


def test_an_input_that_is_changed_is_reported(capsys):
    assert not check(add)
    assert "an input was changed" in capsys.readouterr().out


@tessera.jit
def row_max(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0), tl.max(tl.load(x_ptr + i + tl.program_id(0) * columns), 0))


def test_an_access_outside_is_reported_with_its_place(capsys):
    assert not check(row_max)
    shown = capsys.readouterr().out
    assert "stopped   error[E080]: " in shown and "test_puzzles.py:" in shown
    assert "program (1, 0, 0)" in shown or "program (2, 0, 0)" in shown


@tessera.jit
def histogram(x_ptr, counts_ptr, n, BLOCK: tl.constexpr):
    value = tl.arange(0, 16)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=-1)
    count = tl.sum((x[None, :] == value[:, None]).to(tl.int32), axis=1)
    before = tl.load(counts_ptr + value, mask=value < 10)
    tl.store(counts_ptr + value, before + count, mask=value < 10)


def test_a_race_is_reported(capsys):
    """In the interpreter, where programs run one after the other, this kernel is right."""
    assert not check(histogram)
    shown = capsys.readouterr().out
    assert "race" in shown or "only compiled code shows this" in shown


@tessera.jit
def matmul(x_ptr):
    tl.store(x_ptr, 0)


def test_a_name_that_is_none_is_an_error():
    with pytest.raises(ValueError, match="no puzzle is called `matmul`; did you mean matmul_relu"):
        check(matmul)
