# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How wide texts are in DejaVu Sans, one of the two widest fonts that browsers take for a page."""

from __future__ import annotations

_WIDTHS = {
    275: "'", 278: "ijl", 295: "IJ", 318: " ,.", 337: "/:;|\\", 352: "f", 361: "-", 390: "()[]", 392: "t",
    401: "!²⁸⁴⁰", 411: "r", 460: '"', 500: "*_`–", 521: "s", 525: "z", 531: "?", 550: "c", 557: "L", 575: "F",
    579: "k", 592: "vxy", 603: "P", 611: "TY", 612: "o»", 613: "a", 615: "e", 632: "E", 634: "hnu",
    635: "bdgpqS", 636: "0123456789$µ{}", 656: "K", 684: "AV", 685: "XZ", 686: "B", 695: "R", 698: "C", 732: "U",
    748: "N", 752: "H", 770: "D", 775: "G", 780: "&", 787: "OQ", 818: "w", 838: "#+<=>^~×", 863: "M", 950: "%",
    974: "m", 989: "W", 1000: "@—",
}  # fmt: skip
"""Thousandths of the size, by which letters have that width. Bold ones are 1.1 to 1.26 times as wide."""

WIDTHS = {letter: width for width, letters in _WIDTHS.items() for letter in letters}


def width(text: str, size: float, bold: bool = False) -> float:
    """The pixels that a text takes; of a bold one, about."""
    return sum(WIDTHS[letter] * (1.18 if bold else 1) for letter in text) * size / 1000
