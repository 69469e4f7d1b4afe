# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ten puzzles for those who learn the language: `check(kernel)` says what is wrong with a solution.

docs/Tutorial/Puzzles.md has the tasks. A kernel has the name and the parameters of its puzzle. It runs
in the interpreter, which checks every access, then compiled on the CPU and on a simulated GPU. The
first wrong element is reported with its launch, the expected value, and the program that stored it.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence

import numpy as np

from tessera.errors import TesseraError
from tessera.runtime.interpreting import interpret

__all__ = ["PUZZLES", "check"]

Array = np.ndarray[Any, Any]

_MAX_SHOWN = 16
"""So many elements of an input are shown."""


class Case(NamedTuple):
    """A launch of a solution, and the arrays that it has to make."""

    inputs: Mapping[str, Array]
    expected: Mapping[str, Array]
    """A NaN stands for an element that no program may store."""
    numbers: Mapping[str, int]
    grid: tuple[int, ...]


class Puzzle(NamedTuple):
    """A task: launches from small to large, and a hint."""

    hint: str
    cases: Sequence[Case]


def _floats(*shape: int) -> Array:
    """Small whole numbers, so that results are exact and easy to read."""
    made: Array = np.random.default_rng(len(shape)).integers(-9, 10, shape).astype(np.float32)
    return made


def _programs(size: int, block: int) -> int:
    return -(-size // block)


def _double(block: int) -> Case:
    x = _floats(block)
    return Case({"x_ptr": x}, {"out_ptr": 2 * x}, {"BLOCK": block}, (1,))


def _vectors(n: int, block: int, names: Sequence[str], function: Callable[..., Array]) -> Case:
    """A case with inputs and an output of `n` elements."""
    inputs = dict(zip(names, _floats(len(names), n)))
    expected = {"out_ptr": function(*inputs.values())}
    return Case(inputs, expected, {"n": n, "BLOCK": block}, (_programs(n, block),))


def _neighbours(x: Array) -> Array:
    padded: Array = np.pad(x, 1)
    total: Array = padded[:-2] + padded[1:-1] + padded[2:]
    return total


def _outer(rows: int, columns: int) -> Case:
    x, y = _floats(rows), _floats(columns + 1)[1:].copy()
    return Case(
        {"x_ptr": x, "y_ptr": y},
        {"out_ptr": np.outer(x, y)},
        {"rows": rows, "columns": columns, "ROWS": 4, "COLUMNS": 8},
        (_programs(rows, 4), _programs(columns, 8)),
    )


def _rows(rows: int, columns: int, block: int, function: Callable[..., Array]) -> Case:
    """A case with one number for each row. All inputs are negative."""
    x = -np.abs(_floats(rows, columns)) - 1
    numbers = {"columns": columns, "BLOCK": block}
    return Case({"x_ptr": x}, {"out_ptr": function(x, axis=1)}, numbers, (rows,))


def _histogram(n: int, block: int) -> Case:
    x = np.abs(_floats(n)).astype(np.int32)
    counts = np.bincount(x, minlength=10).astype(np.int32)
    return Case(
        {"x_ptr": x}, {"counts_ptr": counts}, {"n": n, "BLOCK": block}, (_programs(n, block),)
    )


def _compress(n: int, block: int) -> Case:
    x = _floats(n)
    out = np.full(n, np.nan, np.float32)
    out[: (x > 0).sum()] = x[x > 0]
    count = np.array([(x > 0).sum()], np.int32)
    return Case({"x_ptr": x}, {"out_ptr": out, "count_ptr": count}, {"n": n, "BLOCK": block}, (1,))


def _matmul(m: int, n: int, k: int) -> Case:
    a, b = _floats(m, k), _floats(k, n)
    grid = (_programs(m, 16), _programs(n, 16))
    numbers = {"M": m, "N": n, "K": k, "BLOCK": 16}
    return Case({"a_ptr": a, "b_ptr": b}, {"out_ptr": np.maximum(a @ b, 0)}, numbers, grid)


def _make_puzzles() -> dict[str, Puzzle]:
    add: Callable[..., Array] = lambda x, y: x + y
    reverse: Callable[..., Array] = lambda x: x[::-1].copy()
    return {
        "double": Puzzle(
            "tl.arange(0, BLOCK) has the places of all elements",
            [_double(4), _double(16)],
        ),
        "add": Puzzle(
            "program p has the places from p * BLOCK on; a mask hides those that are not below n",
            [_vectors(n, block, ["x_ptr", "y_ptr"], add) for n, block in ((8, 4), (10, 4), (100, 16))],
        ),
        "reverse": Puzzle(
            "element i of the output is element n - 1 - i of the input",
            [_vectors(n, block, ["x_ptr"], reverse) for n, block in ((8, 4), (10, 4), (100, 16))],
        ),
        "neighbours": Puzzle(
            "each of the three loads has its own mask, and other=0.0",
            [_vectors(n, block, ["x_ptr"], _neighbours) for n, block in ((4, 4), (10, 4), (100, 16))],
        ),
        "outer": Puzzle(
            "x[:, None] * y[None, :] has two dimensions; a row of the output has `columns` elements",
            [_outer(4, 8), _outer(6, 11)],
        ),
        "row_max": Puzzle(
            "masked-off lanes take part in tl.max: which `other` never is the maximum?",
            [_rows(2, 8, 8, np.max), _rows(3, 5, 8, np.max)],
        ),
        "sum_long_rows": Puzzle(
            "a loop over range(0, columns, BLOCK) carries the sum from tile to tile",
            [_rows(2, 8, 4, np.sum), _rows(3, 21, 8, np.sum)],
        ),
        "histogram": Puzzle(
            "two lanes may have the same value: tl.atomic_add counts both",
            [_histogram(8, 8), _histogram(100, 16)],
        ),
        "compress": Puzzle(
            "tl.cumsum of the mask, less 1, is the place of each element that is kept",
            [_compress(8, 8), _compress(13, 16)],
        ),
        "matmul_relu": Puzzle(
            "tl.dot(a, b, acc) in a loop over K, then tl.maximum; mask rows, columns and K",
            [_matmul(16, 16, 16), _matmul(20, 35, 50)],
        ),
    }  # fmt: skip


PUZZLES = _make_puzzles()
"""The puzzles by the names of their kernels."""


def check(kernel: Any) -> bool:
    """Checks a solution of the puzzle that has the kernel's name, and prints the first mistake.

    Example:
        import tessera
        import tessera.language as tl
        from tessera.testing.puzzles import check

        @tessera.jit
        def double(x_ptr, out_ptr, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            tl.store(out_ptr + i, 2 * tl.load(x_ptr + i))

        assert check(double)  # prints: double: right
    """
    name = kernel.fn.__name__
    if name not in PUZZLES:
        near = difflib.get_close_matches(name, PUZZLES, 1) or list(PUZZLES)
        raise ValueError(f"no puzzle is called `{name}`; did you mean {' or '.join(near)}?")
    puzzle = PUZZLES[name]
    for case in puzzle.cases:
        for run in (_interpreted, _compiled, _simulated):
            mistake = run(kernel, case)
            if mistake:
                print(f"{name}: not right yet", *mistake, f"hint      {puzzle.hint}", sep="\n  ")
                return False
    print(f"{name}: right, in {len(puzzle.cases)} launches")
    return True


def _arrays(case: Case) -> dict[str, Array]:
    """Copies of the inputs, and outputs in which nothing is stored yet."""
    arrays = {name: array.copy() for name, array in case.inputs.items()}
    for name, array in case.expected.items():
        empty = np.nan if array.dtype.kind == "f" else 0
        arrays[name] = np.full_like(array, empty)
    return arrays


def _interpreted(kernel: Any, case: Case) -> list[str]:
    """The mistake that a run of the interpreter shows; empty if there is none."""
    arrays = _arrays(case)
    try:
        interpret(kernel)[case.grid](**arrays, **case.numbers)
    except TesseraError as error:
        return [_launch(kernel, case), *_lines("stopped", str(error))]
    return _difference(kernel, case, arrays)


def _compiled(kernel: Any, case: Case) -> list[str]:
    """The mistake that compiled code shows, where the interpreter found none."""
    arrays = _arrays(case)
    try:
        kernel[case.grid](**arrays, **case.numbers)
    except TesseraError as error:
        return [_launch(kernel, case), *_lines("stopped", str(error))]
    found = _difference(kernel, case, arrays)
    return (
        [*found, "note      only compiled code shows this: programs ran in another order"]
        if found
        else []
    )


def _simulated(kernel: Any, case: Case) -> list[str]:
    """The races that the simulator of GPUs finds, and accesses that no CPU objects to."""
    from tessera.gpu import simulate

    arrays = _arrays(case)
    try:
        run = simulate(kernel, seed=0)[case.grid](**arrays, **case.numbers)
    except TesseraError as error:
        return [_launch(kernel, case), *_lines("stopped", str(error))]
    if run.findings:
        return [_launch(kernel, case), *_lines("found", str(run.findings[0]))]
    return _difference(kernel, case, arrays)


def _difference(kernel: Any, case: Case, arrays: Mapping[str, Array]) -> list[str]:
    """The first element that is not as expected, with all that is known of it."""
    for name, array in case.inputs.items():
        if not np.array_equal(array, arrays[name]):
            at = _first(array != arrays[name])
            return [
                _launch(kernel, case),
                f"element   {name}{list(at)}",
                "mistake   an input was changed",
            ]
    for name, expected in case.expected.items():
        wrong = ~np.isclose(arrays[name], expected, rtol=1e-5, equal_nan=True)
        if wrong.any():
            at = _first(wrong)
            found = [_launch(kernel, case), *_shown_inputs(case), f"element   {name}{list(at)}"]
            found.append(f"expected  {_value(expected[at])}")
            found.append(f"got       {_value(arrays[name][at])}")
            found.append(f"stored    {_stored_by(kernel, case, name, at)}")
            if wrong.sum() > 1:
                found.append(
                    f"wrong     {wrong.sum()} of {wrong.size} elements, of which this is the first"
                )
            return found
    return []


def _first(wrong: Array) -> tuple[int, ...]:
    return tuple(int(axis[0]) for axis in np.nonzero(wrong))


def _value(value: Any) -> str:
    return "nothing is stored there" if value != value else f"{value:g}"


def _launch(kernel: Any, case: Case) -> str:
    numbers = [f"{name}={value}" for name, value in case.numbers.items()]
    arguments = ", ".join([*case.inputs, *case.expected, *numbers])
    return f"launch    {kernel.fn.__name__}[{case.grid}]({arguments})"


def _lines(title: str, text: str) -> list[str]:
    """A text of several lines, below a title of ten columns."""
    first, *rest = text.splitlines()
    return [f"{title:10}{first}", *(" " * 10 + line for line in rest)]


def _shown_inputs(case: Case) -> list[str]:
    """The inputs, if they are small enough to be read."""
    return [
        line
        for name, array in case.inputs.items()
        if array.size <= _MAX_SHOWN
        for line in _lines(name, np.array2string(array, precision=4))
    ]


def _stored_by(kernel: Any, case: Case, name: str, at: tuple[int, ...]) -> str:
    """The program that first stores an element, and the line if the kernel has one store alone.

    Looks for the smallest grid that stores it, axis by axis.
    """
    grid = list(case.grid)
    if not _stores(kernel, case, grid, name, at):
        return "by no program"
    for axis, extent in enumerate(case.grid):
        for programs in range(1, extent + 1):
            grid[axis] = programs
            if _stores(kernel, case, grid, name, at):
                break
    program = tuple(extent - 1 for extent in grid)
    where = f"by program {program[0] if len(program) == 1 else program}"
    line = _store_line(kernel)
    return f"{where}, in line {line[0]}: {line[1]}" if line else where


def _stores(kernel: Any, case: Case, grid: Sequence[int], name: str, at: tuple[int, ...]) -> bool:
    """Returns True if a launch of these programs changes the element."""
    arrays = _arrays(case)
    before = arrays[name][at]
    interpret(kernel)[tuple(grid)](**arrays, **case.numbers)
    return bool(arrays[name][at].tobytes() != before.tobytes())


def _store_line(kernel: Any) -> Optional[tuple[int, str]]:
    """The line of the only store or atomic of a kernel, from its first line on, and its text."""
    try:
        lines, _ = inspect.getsourcelines(kernel.fn)
    except OSError:
        return None
    tree = ast.parse(textwrap.dedent("".join(lines)))
    found = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.startswith(("store", "atomic_"))
    ]
    return (found[0], lines[found[0] - 1].strip()) if len(found) == 1 else None
