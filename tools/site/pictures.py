# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures on cards. Those of the gallery show which part of its arrays one program of a kernel
reads and writes. They are SVG in the page and have its colours."""

from __future__ import annotations

from collections.abc import Callable, Iterator

_WIDTH, _HEIGHT, _CELL = 240, 112, 14

Parts = Iterator[str]


def picture(name: str) -> str:
    """A picture by its name, which is that of a work for the gallery."""
    draw, says = _PICTURES[name]
    return (
        f'<svg class="picture" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{says}">'
        f'{"".join(draw())}</svg>'
    )


def _cells(
    x: float, y: float, columns: int, rows: int, kind: Callable[[int, int], str], size: int = _CELL
) -> Parts:
    """A matrix of cells; `kind(column, row)` is the class of each."""
    for row in range(rows):
        for column in range(columns):
            yield (
                f'<rect class="{kind(column, row)}" x="{x + column * size}" y="{y + row * size}" '
                f'width="{size - 2}" height="{size - 2}" rx="2"/>'
            )


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'


def _sign(x: float, y: float, text: str) -> str:
    return f'<text x="{x:g}" y="{y:g}">{text}</text>'


def _vector_add() -> Parts:
    for row, sign in enumerate("+="):
        yield _sign(22, 41 + 34 * row, sign)
    for row in range(3):
        yield from _cells(
            50, 14 + 34 * row, 12, 1, lambda column, _: "hot" if 4 <= column < 8 else "cold"
        )


def _row(heights: list[int], level: int) -> Parts:
    """A matrix with one row of it chosen, and what becomes of that: bars from a line on."""
    yield from _cells(12, 14, 6, 6, lambda _, row: "hot" if row == 2 else "cold")
    yield _sign(112, 60, "→")
    for at, height in enumerate(heights):
        top = level - max(height, 0)
        yield f'<rect class="hot" x="{136 + 15 * at}" y="{top}" width="11" height="{abs(height)}" rx="2"/>'
    yield _line(132, level, 228, level)


def _softmax() -> Parts:
    return _row([8, 20, 70, 34, 12, 5], 96)


def _layer_norm() -> Parts:
    return _row([22, -30, 38, -12, -34, 16], 56)


def _matmul() -> Parts:
    yield from _cells(12, 20, 4, 5, lambda _, row: "hot" if row == 1 else "cold")
    yield _sign(79, 60, "×")
    yield from _cells(92, 20, 5, 4, lambda column, _: "warm" if column == 3 else "cold")
    yield _sign(173, 60, "=")
    yield from _cells(
        184, 20, 4, 5, lambda column, row: "hot" if (column, row) == (2, 1) else "cold", 13
    )


def _attention() -> Parts:
    def kind(column: int, row: int) -> str:
        return "cold" if column > row else "hot" if row == 4 else "warm"

    yield from _cells(24, 7, 1, 7, lambda _, row: "hot" if row == 4 else "cold")
    yield _sign(48, 60, "→")
    yield from _cells(78, 7, 7, 7, kind)
    yield _sign(184, 60, "→")
    yield from _cells(204, 7, 1, 7, lambda _, row: "hot" if row == 4 else "cold")


def _deformable() -> Parts:
    yield from _cells(86, 7, 10, 7, lambda column, row: "cold")
    yield '<rect class="hot" x="24" y="50" width="12" height="12" rx="2"/>'
    for x, y in ((108, 26), (151, 39), (121, 82), (196, 63)):
        yield _line(36, 56, x, y)
        yield f'<circle class="warm" cx="{x}" cy="{y}" r="6"/>'


def _scatter() -> Parts:
    yield from _cells(36, 12, 12, 1, lambda column, _: "hot" if column < 6 else "cold")
    places = [3, 0, 3, 6, 3, 4]
    for column, place in enumerate(places):
        yield _line(42 + 14 * column, 26, 75 + 14 * place, 84)
    yield from _cells(69, 84, 7, 1, lambda column, _: "warm" if column in places else "cold")


def _speed() -> Parts:
    for row, (cold, hot) in enumerate(((170, 62), (190, 110), (120, 48))):
        for y, kind, width in ((8 + 34 * row, "cold", cold), (20 + 34 * row, "hot", hot)):
            yield f'<rect class="{kind}" x="20" y="{y}" width="{width}" height="10" rx="2"/>'


def _stages() -> Parts:
    for stage, widths in enumerate(((40, 28, 36, 20), (34, 40, 24, 38), (40, 18, 40, 30))):
        for line, width in enumerate(widths):
            kind = "hot" if line == stage else "cold"
            yield f'<rect class="{kind}" x="{14 + 80 * stage}" y="{24 + 18 * line}" width="{width}" height="10" rx="2"/>'
        if stage:
            yield _sign(-1 + 80 * stage, 62, "→")


_PICTURES: dict[str, tuple[Callable[[], Parts], str]] = {
    "VectorAdd": (_vector_add, "One tile of each of three vectors"),
    "Softmax": (_softmax, "One row of a matrix, and its weights"),
    "LayerNorm": (_layer_norm, "One row of a matrix, and its distances from the mean"),
    "Matmul": (_matmul, "Rows of one matrix times columns of another are one tile of the result"),
    "Attention": (_attention, "A tile of queries, the keys before it, and a tile of the result"),
    "DeformableAttention": (_deformable, "A query and the places of a feature map that it reads"),
    "Speed": (_speed, "Bars in pairs, one of each shorter"),
    "Stages": (_stages, "Code that becomes other code"),
    "Scatter": (_scatter, "Elements of a tile and the places they are added to"),
}
