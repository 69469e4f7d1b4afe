# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of bad inputs: each is one error, with its id, at its place, with a fix.

Groups are those of the catalogue of bad inputs. 1 to 50 are mistakes in kernels, where `@@`
stands right before the text that the caret must point to; 51 to 58 are launches, in which the
message names the argument; 61 to 64 are about what is around a kernel. Autotuning (59) and
heuristics (60) are not there yet.
"""

from __future__ import annotations

import decimal
import functools
from pathlib import Path
from typing import Any, Callable, NamedTuple, Sequence

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import settings
from tessera.compiler.toolchain import find_ptxas

from .test_errors import Options, load, mistake, modules, number, pointer  # noqa: F401


class Entry(NamedTuple):
    group: int
    id: str
    words: str
    """A part of the message."""
    fix: str
    """A part of the fix."""
    source: str


def entry(
    group: int, id: str, words: str, fix: str, *body: str, params: str = "p, q, n, m, f"
) -> Entry:
    lines = "\n".join("    " + line for line in body)
    return Entry(group, id, words, fix, f"\n@tessera.jit\ndef kernel({params}):\n{lines}\n")


X = "x = tl.arange(0, 64)"
TILE = "x = tl.zeros((8, 16), tl.int32)"
HALVES = "a = tl.zeros((64, 32), tl.float16)"
BLOCK = "b = tl.make_block_ptr(p, (n, m), (m, 1), (0, 0), (16, 16), (1, 0))"
DESCRIPTOR = "d = tl.make_tensor_descriptor(p, [n, m], [m, 1], [16, 16])"
ASM = "y = @@tl.inline_asm_elementwise"


def helper(body: str) -> str:
    """A kernel that reduces by a function with this body."""
    return (
        f"\n@tessera.jit\ndef pick(a, b):\n    {body}\n"
        "\n@tessera.jit\ndef kernel(ip):\n    tl.store(ip, tl.reduce(tl.arange(0, 64), 0, pick))\n"
    )


def mapped(body: str) -> str:
    """A kernel that maps a function of pointers with this body."""
    return (
        f"\n@tessera.jit\ndef of_each(p):\n    {body}\n"
        "\n@tessera.jit\ndef kernel(ip):\n    tl.map_elementwise(of_each, ip + tl.arange(0, 64))\n"
    )


ENTRIES: Sequence[Entry] = [
    Entry(5, "E005", "takes `**extra`", "name each keyword", "\n@tessera.jit\n@@def kernel(p, **extra):\n    pass\n"),
    Entry(6, "E006", "default of `x` is a list", "a number, a string", "\n@tessera.jit\ndef kernel(p, @@x=[1]):\n    pass\n"),
    Entry(6, "E006", "default of `x` is a dict", "a tuple of these", "\n@tessera.jit\ndef kernel(p, @@x={}):\n    pass\n"),
    entry(7, "E007", "`yield`", "store the values", "@@yield n"),
    entry(7, "E007", "`yield from`", "store the values", "@@yield from n"),
    entry(8, "E008", "a nested function", "with @jit at module level", "@@def g(x):", "    return x"),
    entry(8, "E008", "a lambda", "with @jit at module level", "y = (@@lambda x: x)(n)"),
    Entry(9, "E009", "kernel -> kernel", "write a loop", "\n@tessera.jit\ndef kernel(p, n):\n    @@kernel(p, n)\n"),
    Entry(
        9, "E009", "a -> b -> a", "a constexpr that gets smaller",
        "\n@tessera.jit\ndef a(x):\n    return b(x)\n\n@tessera.jit\ndef b(x):\n    return @@a(x)\n"
        "\n@tessera.jit\ndef kernel(p, n):\n    a(n)\n",
    ),
    entry(10, "E010", "`LIMIT` is a plain int", "LIMIT = tl.constexpr(8)", "x = n + @@LIMIT"),
    entry(10, "E010", "`NAMES` is a plain list", "pass it to the kernel", "x = @@NAMES[0]"),
    entry(12, "E012", "no attribute `laod`", "did you mean `load`?", "x = @@tl.laod(p)"),
    entry(12, "E012", "`tll` is not defined", "did you mean `tl`?", "x = @@tll.load(p)"),
    entry(12, "E012", "no attribute `too`", "did you mean `to`?", "x = @@n.too(tl.int32)"),
    entry(13, "E013", "assigned only in the `if` at line", "before the `if`", "if n > 0:", "    acc = n", "tl.store(p, @@acc)"),
    entry(13, "E013", "assigned only in the `while` at line", "before the `while`", "while n > 0:", "    acc = n", "    n -= 1", "tl.store(p, @@acc)"),
    entry(13, "E013", "only assigned later", "assign `acc` first", "@@acc += n"),
    entry(14, "E014", "`import`", "outside of the kernel", "@@import math"),
    entry(14, "E014", "`try`", "check conditions", "@@try:", "    x = n", "finally:", "    pass"),
    entry(14, "E014", "`with`", "leave it out", "@@with open('x'):", "    pass"),
    entry(14, "E014", "`global`", "as a parameter", "@@global LIMIT"),
    entry(14, "E014", "`del`", "leave it out", "@@del n"),
    entry(14, "E014", "`match`", "`if` and `elif`", "@@match n:", "    case 1:", "        pass"),
    entry(14, "E014", "`class`", "", "@@class A:", "    pass"),
    entry(14, "E014", "`raise`", "tl.static_assert", "@@raise ValueError('x')"),
    entry(14, "E014", "a dict", "a tuple", "x = @@{1: 2}"),
    entry(14, "E014", "cannot be assigned", "use tl.store", "@@p[0] += n"),
    entry(15, "E015", "`zeros` of numpy", "use tl.zeros", "x = @@np.zeros(3)"),
    entry(15, "E015", "`exp` of math", "use tl.exp", "x = @@math.exp(f)"),
    entry(15, "E015", "`sorted` of builtins", "use tl.sort", "x = @@sorted((2, 1))"),
    entry(15, "E015", "known at run time", "tl.device_print", 'x = f"{@@n}"'),
    entry(16, "E016", "`plain` is not a @jit function", "decorate `plain` with @jit", "x = @@plain(n)"),
    entry(16, "E016", "int32 is not a function", "call a @jit function", "x = @@n(1)"),
    entry(17, "E017", "unknown annotation `tl.constexp`", "`tl.constexpr`", "x: @@tl.constexp = 3"),
    Entry(17, "E017", "parameter `B`", "`tl.constexpr`", '\n@tessera.jit\ndef kernel(p, B: @@"tl.constexp"):\n    pass\n'),
    entry(18, "E018", "length 100", "use 104 and", "x = @@tl.arange(0, 100)"),
    entry(18, "E018", "3 in shape [3, 4]", "use 4 and", "x = @@tl.zeros((3, 4), tl.float32)"),
    entry(19, "E019", "the end of arange", "annotate the parameter", "x = @@tl.arange(0, n)"),
    entry(19, "E019", "the shape must be a constant", "tl.constexpr", "x = @@tl.zeros((n,), tl.float32)"),
    entry(37, "E037", "the constant 'a' is indexed", "with a constant", 'x = @@(1, "a")[n]'),
    entry(37, "E037", "item 0 is *fp32, item 1 is int32", "tl.static_range", "x = @@(p, n)[n]"),
    entry(29, "E029", "a list is indexed by", "a scalar integer", "x = @@(p, p + 1)[f]"),
    entry(20, "E020", "arange(5, 5) is empty", "above the start", "x = @@tl.arange(5, 5)"),
    entry(20, "E020", "arange(-8, -16) is empty", "above the start", "x = @@tl.arange(-8, -16)"),
    entry(20, "E020", "extent 0", "at least 1", "x = @@tl.zeros((0,), tl.float32)"),
    entry(21, "E021", "more than 1048576", "smaller tiles", "x = @@tl.arange(0, 2**21)"),
    entry(21, "E021", "[128, 128, 128]", "smaller tiles", "x = @@tl.zeros((128, 128, 128), tl.int8)"),
    entry(22, "E022", "int32[64] with int32[32]", "x[:, None]", X, "y = @@x + tl.arange(0, 32)"),
    entry(22, "E022", "int32[2, 64] with int32[32]", "", "y = @@tl.zeros((2, 64), tl.int32) + tl.arange(0, 32)"),
    entry(23, "E023", "64 elements to [8, 16] of 128", "number of elements", X, "y = @@tl.reshape(x, (8, 16))"),
    entry(23, "E023", "no permutation", "each of 0..1 once", TILE, "y = @@tl.permute(x, (0, 0))"),
    entry(23, "E023", "two dimensions", "x[:, None]", X, "y = @@tl.trans(x)"),
    entry(23, "E023", "last extent is not 2", "reshape", X, "y = @@tl.split(x)"),
    entry(23, "E023", "cat of", "one shape", X, "y = @@tl.cat(x, tl.zeros((8, 8), tl.int32))"),
    entry(24, "E024", "axis 3", "[-2, 2)", TILE, "y = @@tl.sum(x, axis=3)"),
    entry(24, "E024", "axis -3", "[-2, 2)", TILE, "y = @@tl.sum(x, axis=-3)"),
    entry(24, "E024", "axis must be a constant", "tl.constexpr", TILE, "y = @@tl.sum(x, axis=n)"),
    entry(25, "E025", "the first operand of dot is int32[16]", "rank 2 or more", "y = @@tl.dot(tl.arange(0, 16), tl.arange(0, 16))"),
    entry(25, "E025", "inner extents 32 and 64 differ", "", HALVES, "y = @@tl.dot(a, tl.zeros((64, 64), tl.float16))"),
    entry(25, "E025", "element types differ", "cast one", HALVES, "y = @@tl.dot(a, tl.zeros((32, 64), tl.bfloat16))"),
    entry(25, "E025", "other than int8", "cast to int8", TILE, "y = @@tl.dot(x, x.T)"),
    entry(25, "E025", "tf33", "tf32", HALVES, "y = @@tl.dot(a, a.T, input_precision='tf33')"),
    entry(26, "E026", "condition of where is fp32", "compare it", "y = @@tl.where(f, n, m)"),
    entry(27, "E027", "1 // 0 divides by zero", "guard the division", "x: tl.constexpr = @@1 // 0"),
    entry(27, "E027", "1 % 0 divides by zero", "guard the division", "x: tl.constexpr = @@1 % 0"),
    entry(27, "E027", "negative shift", "other numbers", "x: tl.constexpr = @@1 << -1"),
    entry(28, "E028", "does not fit any type", "smaller constant", "x = @@n + 2**70"),
    entry(28, "E028", "300 is out of range for type int8", "x.to", "x = @@tl.full((8,), 300, tl.int8)"),
    entry(28, "E028", "-1 is out of range for type uint32", "x.to", "x = @@tl.full((8,), -1, tl.uint32)"),
    entry(29, "E029", "+ of *fp32 and *fp32", "an integer offset", "x = @@p + q"),
    entry(29, "E029", "* of *fp32 and 2", "tl.load(pointer)", "x = @@p * 2"),
    entry(29, "E029", "+ of *fp32 and fp32", "divide with //", "x = @@p + n / 2"),
    entry(29, "E029", "indexed by int1[64]", "tl.where(mask, x, other)", X, "y = @@x[x > 3]"),
    entry(14, "E014", "cannot unpack int32[64]", "tl.split(x)", X, "@@a, b = x"),
    entry(51, "E051", "missing a required argument: 'end'", "write arange(start, end)", "x = @@tl.arange(8)"),
    entry(29, "E029", "fp32", "", "x = @@~f"),
    entry(29, "E029", "", "adding offsets", "x = @@p[n]"),
    entry(30, "E030", "int32", "", "x = @@tl.exp(n)"),
    Entry(30, "E030", "function of reduce makes int32[8]", "outside", helper("return a + tl.sum(@@tl.arange(0, 8))")),
    Entry(30, "E030", "function of reduce makes int32[1]", "outside", helper("return @@tl.sum(a + tl.zeros((1,), tl.int32))")),
    Entry(30, "E030", "function of reduce calls device_print", "before or after", helper("@@tl.device_print('x', a)\n    return a")),
    Entry(30, "E030", "function of reduce calls load", "before or after", helper("p = b.to(tl.int64).to(tl.pointer_type(tl.int32))\n    return a + @@tl.load(p)")),
    Entry(30, "E030", "function of map_elementwise calls store", "before or after", mapped("@@tl.store(p, 3)\n    return 1")),
    Entry(30, "E030", "map_elementwise calls an atomic operation", "before or after", mapped("return @@tl.atomic_add(p, 3)")),
    Entry(30, "E030", "map_elementwise calls a volatile load", "before or after", mapped("return @@tl.load(p, volatile=True)")),
    Entry(30, "E030", "map_elementwise calls debug_barrier", "before or after", mapped("@@tl.debug_barrier()\n    return 1")),
    entry(31, "E031", "`in`", "", "x = @@n in (1, 2)"),
    entry(31, "E031", "`is`", "`==`", "x = @@n is 3"),
    entry(32, "E032", "ambiguous", "tl.where", X, "if @@x > 3:", "    pass"),
    entry(32, "E032", "ambiguous", "tl.where", X, "while @@x > 3:", "    pass"),
    entry(33, "E033", "known at run time", "", "x = @@tl.constexpr(n)"),
    entry(34, "E034", "", "use tl.float32", "x = @@tl.zeros((8,), np.float32)"),
    entry(34, "E034", "must be a type", "", "x = @@tl.zeros((8,), 32)"),
    entry(35, "E035", "float31", "", 'x = @@n.to("float31")'),
    entry(35, "E035", "", "", "x = @@n.to(tl.int64, bitcast=True)"),
    entry(36, "E036", "`acc` is int32 before the loop", "initialise", "acc = 0", "@@for i in range(n):", "    acc = acc + tl.zeros((8,), tl.float32)", "tl.store(p, acc)"),
    entry(37, "E037", "on one path", "", "@@if n > 0:", "    x = tl.zeros((8,), tl.float32)", "else:", "    x = tl.zeros((16,), tl.float32)", "tl.store(p, tl.sum(x))"),
    entry(39, "E039", "step of the range is 0", "another step", "for i in @@range(0, 10, 0):", "    pass"),
    entry(39, "E039", "end of the range is fp32", "integer scalar", "for i in @@range(0, f):", "    pass"),
    entry(39, "E039", "int32[8]", "integer scalar", "for i in @@range(0, tl.arange(0, 8)):", "    pass"),
    entry(40, "E040", "known at run time", "tl.range", "for i in @@tl.static_range(n):", "    pass"),
    entry(40, "E040", "1000000000 iterations", "tl.range", "for i in @@tl.static_range(10**9):", "    pass"),
    entry(41, "E041", "never ends", "", "@@while True:", "    x = n"),
    entry(42, "E042", "returns int32", "store", "@@return n"),
    entry(44, "E044", "needs a pointer, got int32", "", "x = @@tl.load(n)"),
    entry(44, "E044", "the constant 3", "", "x = @@tl.load(3)"),
    entry(45, "E045", "int1[32]", "", X, "y = @@tl.load(p + x, mask=tl.arange(0, 32) < n)"),
    entry(45, "E045", "int32[64]", "", X, "y = @@tl.load(p + x, mask=x)"),
    entry(45, "E045", "without a mask", "", "y = @@tl.load(p, other=0.0)"),
    entry(45, "E045", "fp32[32]", "", X, "@@tl.store(p + x, tl.zeros((32,), tl.float32))"),
    entry(46, "E046", "const", "", "@@tl.store(cp, f)", params="cp, f"),
    entry(47, "E047", "", "", "@@tl.atomic_add(u8p, 1)", params="u8p"),
    entry(47, "E047", "", "", "@@tl.atomic_add(p, f, sem='acq')"),
    entry(48, "E048", ".xx", "", "x = @@tl.load(p, cache_modifier='.xx')"),
    entry(48, "E048", "evict", "", "x = @@tl.load(p, eviction_policy='evict')"),
    entry(48, "E048", "one", "", "x = @@tl.load(p, padding_option='one')"),
    entry(49, "E049", "rank 2", "", BLOCK, "x = @@tl.load(b, boundary_check=(2,))"),
    entry(49, "E049", "strides has 1", "", "b = @@tl.make_block_ptr(p, (n, m), (m,), (0, 0), (16, 16), (1, 0))"),
    entry(49, "E049", "stride", "", "d = @@tl.make_tensor_descriptor(p, [n, n], [1, n], [16, 16])"),
    entry(50, "E050", "cannot be parsed", '"=r,r"', ASM + '("mov.b32 $0, $1;", "=Z,,", [n], tl.int32, True, 1)'),
    entry(50, "E050", "name 1 outputs and 2 inputs, the values take 1 and 1", "one constraint for each", ASM + '("mov.b32 $0, $1;", "=r,r,r", [n], tl.int32, True, 1)'),
    entry(50, "E050", "name 0 outputs and 2 inputs", "results as", ASM + '("mov.b32 $0, $1;", "r,r", [n], tl.int32, True, 1)'),
    entry(50, "E050", "name 2 outputs and 1 inputs", "results as", ASM + '("mov.b32 $0, $2;", "=r,=r,r", [n], tl.int32, True, 1)'),
    entry(50, "E050", "name 0 outputs and 0 inputs", "results as", ASM + '("mov.u32 $0, 0;", "", [], tl.int32, True, 1)'),
    entry(50, "E050", "the values take 2 and 2", "results as", X, ASM + '("mov.b32 $0, $1;", "=r,r", [x], tl.int32, True, 2)'),
    entry(50, "E050", "name memory", "in registers", ASM + '("mov.b32 $0, $1;", "=*r,r", [n], tl.int32, True, 1)'),
    entry(50, "E050", "`$5;`", "counted from $0", ASM + '("mov.b32 $0, $5;", "=r,r", [n], tl.int32, True, 1)'),
    entry(50, "E050", "`${`", "a dollar sign is $$", ASM + '("mov.b32 ${", "=r,r", [n], tl.int32, True, 1)'),
    entry(50, "E050", "`${1:`", "", ASM + '("mov.b32 $0, ${1:", "=r,r", [n], tl.int32, True, 1)'),
    entry(50, "E050", "packs 3 of 64", "divide", X, ASM + '("mov.b32 $0, $1;", "=r,r", [x], tl.int32, True, 3)'),
    entry(50, "E050", "args is int32", "a list of tensors", ASM + '("mov.b32 $0, $1;", "=r,r", n, tl.int32, True, 1)'),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.mark.parametrize("at", range(len(ENTRIES)), ids=lambda at: f"{ENTRIES[at].group}-{at}")
def test_kernel(at: int, folder: Path, modules: list[str]) -> None:  # noqa: F811
    entry = ENTRIES[at]
    error, line, column = mistake(folder, entry.source, modules)
    text = str(error)
    assert error.id == entry.id and (error.line, error.column) == (line, column), text
    assert entry.words in error.message and entry.fix in error.fix and error.fix, text


ACCEPTED = [
    # 38: what Python's loops have.
    ("for i in range(n):", "    if i > m:", "        break", "else:", "    tl.store(p, f)"),
    ("for i in range(n):", "    if i > m:", "        continue", "    tl.store(p, f)"),
    ("for i in range(n):", "    return", "tl.store(p, f)"),
    ("while n > 0:", "    n -= 1", "else:", "    tl.store(p, f)"),
    # 31: chains of comparisons.
    ("y = 0 < n < m", "tl.store(p, y)"),
    # 50: what assembly may have.
    ('y = tl.inline_asm_elementwise("mov.b32 $0, ${1};// $$", "=r,r", [n], tl.int32, True, 1)',),
    ('y = tl.inline_asm_elementwise("{ mov.b32 $0, $1; }", "=&r,0", [n], tl.int32, True, 1)',),
    ('y = tl.inline_asm_elementwise("mov.u32 $0, 0;", "=r,~{memory}", [], tl.int32, False, 1)',),
]


@pytest.mark.parametrize("body", ACCEPTED)
def test_what_is_no_mistake(
    body: Sequence[str], folder: Path, modules: list[str]
) -> None:  # noqa: F811
    from tessera.frontend import build_module

    from .test_errors import DEFAULTS, HEADER

    kernel = load(folder, HEADER + entry(0, "", "", "", *body).source, modules).kernel
    build_module(kernel, [DEFAULTS[one.name] for one in kernel.params], Options)


# --- Definitions and launches -------------------------------------------------------------


def plain(x: Any) -> None:
    pass


@tessera.jit
def fill(x, n, B: tl.constexpr = 16):  # type: ignore[no-untyped-def]
    tl.store(x + tl.arange(0, B), n)


@tessera.jit
def typed(n: tl.int8):  # type: ignore[no-untyped-def]
    pass


Y = np.zeros(64, np.float32)


class NoAddress:
    dtype = "float32"
    shape = (3,)

    def data_ptr(self) -> int:
        raise OSError("gone")


class NoExport:
    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("not exported")


def from_exec() -> Any:
    names: dict[str, Any] = {"__name__": "nowhere"}
    exec("def unseen(p):\n    pass", names)
    return tessera.jit(names["unseen"])[(1,)](Y)


def launch(*args: Any, grid: Any = (1,), kernel: Any = fill, **options: Any) -> Callable[[], Any]:
    return lambda: kernel[grid](*args, **options)


def autotuned() -> Any:
    return tessera.jit(type("Autotuner", (), {"fn": fill, "run": None})())


CALLS: Sequence[tuple[int, str, str, Callable[[], Any]]] = [
    (1, "E001", "a lambda", lambda: tessera.jit(lambda p: None)),
    (1, "E001", "the class `NoAddress`", lambda: tessera.jit(NoAddress)),
    (1, "E001", "builtin_function", lambda: tessera.jit(print)),
    (1, "E001", " int", lambda: tessera.jit(3)),
    (1, "E001", "a partial", lambda: tessera.jit(functools.partial(plain, 1))),
    (1, "E001", "@jit twice", lambda: tessera.jit(fill)),
    (2, "E002", "`unseen` is not available", from_exec),
    (3, "E003", "on top of @autotuner", autotuned),
    (4, "E004", "grid", lambda: fill(Y, 1)),
    (33, "E033", "hashable, got a list", launch(Y, 1, [16])),
    (51, "E051", "without `n`", launch(Y)),
    (51, "E051", "by place, got 4", launch(Y, 1, 16, 4)),
    (51, "E051", "two values for `n`", launch(Y, 1, n=2)),
    (51, "E051", "`num_warps`", launch(Y, 1, num_wraps=4)),
    (52, "E052", "extents", launch(Y, 1, grid=())),
    (52, "E052", "4 extents", launch(Y, 1, grid=(1, 1, 1, 1))),
    (52, "E052", "1.0", launch(Y, 1, grid=(1.0,))),
    (52, "E052", "-1", launch(Y, 1, grid=(-1,))),
    (52, "E052", "returned None", launch(Y, 1, grid=lambda meta: None)),
    (53, "E053", "num_warps", launch(Y, 1, num_warps=3)),
    (53, "E053", "num_warps", launch(Y, 1, num_warps=0)),
    (53, "E053", "num_stages", launch(Y, 1, num_stages=-1)),
    (54, "E054", "`x` is a set", launch({1.0}, 1)),
    (54, "E054", "`x` is a str", launch("x", 1)),
    (54, "E054", "`x` is a Decimal", launch(decimal.Decimal(1), 1)),
    (54, "E054", "Python objects", launch(np.array([1, "a"], object), 1)),
    (54, "E054", "byte order", launch(np.zeros(3, ">f4"), 1)),
    (54, "E054", "complex128", launch(np.zeros(3, np.complex128), 1)),
    (55, "E055", "18446744073709551616", launch(Y, 2**64)),
    (55, "E055", "-9223372036854775809", launch(Y, -(2**63) - 1)),
    (55, "E055", "128 does not fit", launch(128, kernel=typed)),
    (57, "E058", "storage", lambda: in_vmap()),
    (58, "E058", "OSError: gone", launch(NoAddress(), 1)),
    (58, "E058", "BufferError: not exported", launch(NoExport(), 1)),
]


def in_vmap() -> None:
    torch = pytest.importorskip("torch")

    def inside(row: Any) -> Any:
        fill[(1,)](row, 3)
        return row

    torch.func.vmap(inside)(torch.zeros(3, 16))


@pytest.mark.parametrize("at", range(len(CALLS)), ids=lambda at: f"{CALLS[at][0]}-{at}")
def test_call(at: int, tmp_path: Path) -> None:
    _, id, words, call = CALLS[at]
    with settings.override(cache_dir=str(tmp_path / "cache")):
        with pytest.raises(tessera.TesseraError) as caught:
            call()
    text = str(caught.value)
    assert caught.value.id == id and words in text, text  # type: ignore[attr-defined]
    assert "fix: " in text or id in ("E055", "E058"), text
    # What the user's own code raised is shown beside the error, and nothing else.
    cause = caught.value.__cause__
    assert (cause is not None) == (id == "E058" or "ZeroDivisionError" in text)
    assert caught.value.__context__ is None or caught.value.__suppress_context__, "two tracebacks"


# --- What is around a kernel ----------------------------------------------------------------


def test_changed_global_is_seen(folder: Path, modules: list[str]) -> None:  # noqa: F811
    """11: the kernel is compiled again."""
    text = (
        "import tessera\nimport tessera.language as tl\nSIZE = tl.constexpr(1)\n"
        "@tessera.jit\ndef kernel(p):\n    tl.store(p, SIZE)\n"
    )
    module = load(folder, text, modules)
    out = np.zeros(1, np.int32)
    module.kernel[(1,)](out)
    module.SIZE = tl.constexpr(2)
    module.kernel[(1,)](out)
    assert out[0] == 2


def test_many_calls_deep(folder: Path, modules: list[str]) -> None:  # noqa: F811
    """43: a chain of functions has a limit, which the message names."""
    text = "\n@tessera.jit\ndef f0(x):\n    return x\n"
    for i in range(1, 300):
        text += f"\n@tessera.jit\ndef f{i}(x):\n    return f{i - 1}(x)\n"
    text = text.replace("return f100(x)", "return @@f100(x)")
    text += "\n@tessera.jit\ndef kernel(p, n):\n    f299(n)\n"
    error, line, column = mistake(folder, text, modules)
    assert (error.id, error.line, error.column) == ("E043", line, column)
    assert "deep" in error.message and "write a loop" in error.fix


def test_kernel_compiled_again_and_again() -> None:
    """56: a warning says so."""

    @tessera.jit
    def sized(x, n: tl.constexpr):  # type: ignore[no-untyped-def]
        tl.store(x, n)

    with pytest.warns(UserWarning, match="constexpr `n`, of 64 values"):
        for n in range(200):
            sized[(1,)](Y, n)


def test_cache_folder_that_is_a_file(tmp_path: Path) -> None:
    """61: the kernel runs all the same."""
    import warnings

    (tmp_path / "file").write_text("")
    out = np.zeros(16, np.float32)
    with settings.override(cache_dir=str(tmp_path / "file")), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fill[(1,)](out, 5)
    assert np.all(out == 5)


@pytest.mark.parametrize("name, value", [("cache", "maybe"), ("num_threads", "-1"), ("debug", "x")])
def test_setting_of_no_sense(name: str, value: str) -> None:
    """62: the variable, its value and what it may be."""
    with pytest.raises(tessera.SettingError) as caught:
        with settings.override(**{name: value}):
            pass
    text = str(caught.value)
    assert caught.value.id == "E062" and f"TESSERA_{name.upper()} is {value!r}" in text


def test_missing_ptxas(tmp_path: Path) -> None:
    """63: the program that was named."""
    with settings.override(ptxas=str(tmp_path / "none"), cache_dir=str(tmp_path / "cache")):
        with pytest.raises(tessera.TesseraError) as caught:
            compiled = tessera.compile(fill, "*fp32, i32", target="cuda:sm_80")
            compiled.stages["cubin"]
    assert caught.value.id == "E063" and str(tmp_path / "none") in str(caught.value)  # type: ignore[attr-defined]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_odd_files(ending: str, folder: Path, modules: list[str]) -> None:  # noqa: F811
    """64: a mark at the start, tabs, Unicode names, and lines that end in CRLF."""
    from tessera.errors import CompilationError
    from tessera.frontend import build_module

    lines = ["import tessera", "import tessera.language as tl", "@tessera.jit  # größe"]
    lines += ["def kernel(p, n):", "\tgröße = n", "\tx = tl.laod(größe)", ""]
    module = load(folder, "\ufeff" + ending.join(lines), modules)
    with pytest.raises(CompilationError) as caught:
        build_module(module.kernel, [pointer(), number()], Options)
    assert (caught.value.id, caught.value.line, caught.value.column) == ("E012", 6, 6)


@tessera.jit
def stores(p, V: tl.constexpr):
    tl.store(p, V)


@tessera.jit
def adds(p, V: tl.constexpr):
    tl.atomic_add(p, V)


@tessera.jit
def unrolls(p, V: tl.constexpr):
    for i in tl.range(0, 4, loop_unroll_factor=V):
        tl.store(p + i, i)


@tessera.jit
def pipelines(p, V: tl.constexpr):
    for i in tl.range(0, 4, num_stages=V):
        tl.store(p + i, i)


@tessera.jit
def calls_a_module(p, V: tl.constexpr):
    tl.store(p, functools(V))


@pytest.mark.parametrize(
    ("kernel", "type", "value", "id", "words"),
    [
        (stores, "*i32", 1 << 40, "E028", "does not fit the 32 bits of int32"),
        (stores, "*i32", 1 << 32, "E028", "does not fit the 32 bits of int32"),
        (stores, "*i32", -(1 << 31) - 1, "E028", "does not fit the 32 bits of int32"),
        (stores, "*u8", 256, "E028", "does not fit the 8 bits of uint8"),
        (adds, "*i32", 1 << 40, "E028", "does not fit the 32 bits of int32"),
        (unrolls, "*i32", 10**9, "E039", "loop_unroll_factor is 1000000000"),
        (unrolls, "*i32", -1, "E039", "loop_unroll_factor is -1"),
        (pipelines, "*i32", -1, "E039", "num_stages is -1"),
        (pipelines, "*i32", 10**9, "E039", "num_stages is 1000000000"),
        (calls_a_module, "*i32", 1, "E016", "the module functools is not a function"),
    ],
)
def test_constants_out_of_range(kernel: Any, type: str, value: int, id: str, words: str) -> None:
    with pytest.raises(tessera.CompilationError) as caught:
        tessera.compile(kernel, type, constexprs={"V": value})
    assert (caught.value.id, caught.value.file) == (id, __file__)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("type", "value", "stored"),
    [
        ("int32", (1 << 32) - 1, -1),
        ("uint8", -1, 255),
        ("int8", -128, -128),
        ("int64", 1 << 40, 1 << 40),
        ("int32", 1, 1),
    ],
)
def test_constants_whose_bits_fit(type: str, value: int, stored: int) -> None:
    x = np.zeros(1, type)
    stores[(1,)](x, V=value)
    assert x[0] == stored


@pytest.mark.parametrize(
    ("decorate", "words"),
    [
        (lambda: tessera.jit(nonline=True), "`noinline`"),
        (lambda: tessera.jit(len), "got a builtin_function_or_method"),
        (lambda: tessera.jit(dict), "got the class `dict`"),
        (lambda: tessera.jit(functools.partial(print)), "got a partial"),
    ],
)
def test_what_jit_is_given(decorate: Callable[[], Any], words: str) -> None:
    with pytest.raises(tessera.CompilationError) as caught:
        decorate()
    assert caught.value.id == "E001" and words in str(caught.value)
    assert caught.value.file == __file__ and "tessera.jit(" in str(caught.value)


@tessera.jit
def assembles(p, ASM: tl.constexpr):
    i = tl.arange(0, 128)
    x = tl.load(p + i)
    y = tl.inline_asm_elementwise(ASM, "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(p + i, y)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("foo.bar.s32 $0, $1;", "foo"),
        ("mov.b32 $0, $1;\nadd.s64 $0, $0, $1;", "add.s64"),
        ("{ .reg .b32 t; mov.b32 t, $1; mov.b32 $0, u; }", "u"),
    ],
)
def test_assembly_that_ptxas_rejects(text: str, words: str) -> None:
    if not find_ptxas():
        pytest.skip("there is no ptxas")
    with pytest.raises(tessera.CompilationError) as caught:
        tessera.compile(assembles, "*i32", constexprs={"ASM": text}, target="sm_80")
    assert (caught.value.id, caught.value.file) == ("E050", __file__)
    assert "y = tl.inline_asm" in str(caught.value) and words in str(caught.value)


def test_a_misspelt_option_of_a_launch() -> None:
    with pytest.raises(tessera.LaunchError) as caught:
        stores[(1,)](np.zeros(1, np.int32), V=1, num_warp=4)
    assert caught.value.id == "E051" and "`num_warps`" in str(caught.value)


def test_the_table_is_complete() -> None:
    groups = {entry.group for entry in ENTRIES} | {group for group, *_ in CALLS}
    tested_alone = {11, 38, 43, 56, 61, 62, 63, 64}
    not_there_yet = {59, 60}
    assert groups | tested_alone == set(range(1, 65)) - not_there_yet
