# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names that generated kernels may use: classes and functions that stand before them in the
file."""

from __future__ import annotations

import re

_TEXTS = {
    "load_at": """@tessera.jit(noinline=True)
def load_at(array, place):
    return tl.load(array + place)
""",
    "store_at": """@tessera.jit(noinline=True)
def store_at(array, place, value):
    tl.store(array + place, value)
""",
    # --- Classes --------------------------------------------------------------------------
    "Pair": """@tessera.aggregate
class Pair:
    a: tl.tensor
    b: "tl.tensor"
    k: tl.constexpr = 3

    @tessera.jit
    def __add__(self, other):
        return Pair(self.a + other.a, self.b - other.b)

    @tessera.jit
    def __mul__(self, tile: "tl.tensor") -> "Pair":
        return Pair(self.a * tile, self.b)

    @tessera.jit
    def __getitem__(self, part):
        return self.a if part == 0 else self.b

    @tessera.jit
    def turned(self):
        return Pair(self.b, self.a, self.k)

    @tessera.jit
    def repeated(self, tile):
        made = self
        for _ in tl.static_range(self.k):
            made = made + Pair(tile, made.a)
        return made

    @property
    @tessera.jit
    def total(self):
        return self.a + self.b

    @tessera.constexpr_function
    def odd(self):
        return self.k.value * 2 + 1

    @tessera.jit
    def with_odd(self):
        return (self.b + self.odd()).to(self.b.dtype)

    @tessera.jit
    def scaled(self):
        return (self.a * self.k).to(self.a.dtype)

    def chosen(self, part, _semantic=None):
        return (self.a, self.b)[part.value]
""",
    "State": """@tessera.aggregate
class State:
    pair: Pair
    parts: tl.tuple
    count: tl.constexpr = 2

    @staticmethod
    def of(a, b, step):
        return State(Pair(a, b), (a, step))

    @tessera.jit
    def counted(self):
        return (self.pair.b + self.count).to(self.pair.b.dtype)

    @tessera.jit
    def next(self, tile):
        if self.parts[1] > 2:
            return State(self.pair + Pair(tile, self.parts[0]), (self.pair.b, self.parts[1] - 1))
        return State(self.pair.turned(), (self.parts[0], self.parts[1] + self.count))

    @tessera.jit
    def after(self, n):
        for i in range(n):
            if i == 3:
                return self
            self = self.next(self.pair.a)
        return self
""",
    "Named": """class Named(typing.NamedTuple):
    x: typing.Any
    y: typing.Any
""",
    "Record": """@dataclasses.dataclass
class Record:
    x: typing.Any
    y: typing.Any
    offset: "tl.constexpr" = 2
""",
    # --- Functions of them ---------------------------------------------------------------
    "first_of": """@tessera.jit
def first_of(pair: "Pair", weight: "tl.tensor"):
    return pair.a + weight
""",
    "apart": """@tessera.jit(noinline=True)
def apart(pair, n: "tl.int32"):
    if n % 2 == 0:
        return pair.turned()
    return pair
""",
    "carried": """@tessera.jit
def carried(pair, n):
    other = pair.turned()
    i = 0
    while i < n:
        pair, other = other + pair, pair
        i += 1
    return pair
""",
    "picked": """@tessera.jit
def picked(tiles, which: "tl.constexpr"):
    return tiles[which]
""",
    "all_of": """@tessera.jit
def all_of(*tiles):
    made = tiles[0]
    for i in tl.static_range(1, len(tiles)):
        made = made ^ tiles[i]
    return made
""",
    "both_of": """@tessera.jit
def both_of(tiles):
    return all_of(tiles[1], *tiles)
""",
    "offset_of": """@tessera.jit
def offset_of(record):
    return (record.y * record.offset).to(record.y.dtype)
""",
    "swapped": """@tessera.jit
def swapped(tiles, n):
    a, b = tiles
    for _ in range(n):
        a, b = b, a
    return a, b
""",
    "loaded_by": """@tessera.jit
def loaded_by(array, place: "tl.int32"):
    return array.load([place, 1])
""",
    # --- Functions of elements ------------------------------------------------------------
    "one": """@tessera.jit
def one(x, y):
    if x > y:
        x -= y
    return x
""",
    "two": """@tessera.jit
def two(x0, x1, y0, y1):
    if x0 > y1:
        return x1, x0 + y0
    return y1, x0 - x1
""",
    "two_of_each": """@tessera.jit
def two_of_each(x0, x1, y0, y1):
    i = 0
    while (x0 < y0) & (i < 3):
        x0 += x1
        i += 1
    return x0, x1, y1, x0 - y0
""",
    "four": """@tessera.jit
def four(x0, x1, x2, x3, y0, y1, y2, y3):
    if x0 + x3 > y2:
        return x1, x0 + y0, x3, y1
    return y1, x0 - x1, x2 + y3, x3
""",
    "pointed": """@tessera.jit
def pointed(p, n):
    value = tl.load(p)
    if n % 2 == 0:
        value = load_at(p, 0)
    return value
""",
    "pointed_to": """@tessera.jit
def pointed_to(p, q):
    return q, p
""",
    "combined": """@tessera.jit
def combined(a, b):
    return a ^ b ^ (a & b)
""",
    "combined_pairs": """@tessera.jit
def combined_pairs(a, i, b, j):
    keep = (a > b) | ((a == b) & (i < j))
    return tl.where(keep, a, b), tl.where(keep, i, j)
""",
}


def record_of(fields: int, aggregate: bool) -> tuple[str, str]:
    """The name of a class that holds so many arrays, and its text."""
    name = f"{'Aggregate' if aggregate else 'Record'}Of{fields}"
    kind = "tl.tensor" if aggregate else "typing.Any"
    lines = [f"    m{i}: {kind}" for i in range(fields)]
    head = "@tessera.aggregate" if aggregate else "@dataclasses.dataclass"
    return name, "\n".join([head, f"class {name}:", *lines, "    extra: tl.constexpr = 5"]) + "\n"


def write_definitions(body: str) -> str:
    """The texts of the functions that a kernel's body names, and of those that these name."""
    wanted: set[str] = set()
    pending = [body]
    while pending:
        text = pending.pop()
        for name, definition in _TEXTS.items():
            if name not in wanted and re.search(rf"\b{name}\b", text):
                wanted.add(name)
                pending.append(definition)
    texts = [text for name, text in _TEXTS.items() if name in wanted]
    for number, aggregate in sorted(
        (int(digits), kind == "Aggregate")
        for kind, digits in set(re.findall(r"\b(Aggregate|Record)Of(\d+)\b", body))
    ):
        texts.append(record_of(number, aggregate)[1])
    return "".join(f"{text}\n\n" for text in texts)
