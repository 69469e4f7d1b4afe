# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each mistake is reported with its id, at its place, in words that name what is wrong.

In a case's source `@@` stands right before the text that the caret must point to. The
groups are those of the catalogue of mistakes (E018 is group 18).
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, Iterator, NamedTuple, Sequence

import pytest

import tessera
import tessera.language as tl
from tessera import _C
from tessera.errors import CompilationError
from tessera.frontend import ConstSpec, ValueSpec, build_module
from tessera.language import types

HEADER = """\
import collections
import math
import numpy as np
import tessera
import tessera.language as tl

@tessera.jit
def add_one(x):
    return x + 1

@tessera.jit
def two(a, b):
    return a, b

def plain(x):
    return x

LIMIT = 8
NAMES = [1, 2]
SIZE = tl.constexpr(16)
"""

_numbers = itertools.count()


def pointer(dtype: Any = tl.float32, const: bool = False) -> ValueSpec:
    return ValueSpec(_C.Type(types.KIND_POINTER, dtype._core_id, const, ()), 16)


def number(dtype: Any = tl.int32) -> ValueSpec:
    return ValueSpec(_C.Type(types.KIND_NUMBER, dtype._core_id, False, ()), 0)


DEFAULTS = {
    "p": pointer(),
    "q": pointer(),
    "ip": pointer(tl.int32),
    "u8p": pointer(tl.uint8),
    "bp": pointer(tl.bfloat16),
    "cp": pointer(const=True),
    "n": number(),
    "m": number(),
    "f": number(tl.float32),
    "b": number(tl.int1),
    "B": ConstSpec(64),
}


class Case(NamedTuple):
    """A kernel with one mistake."""

    name: str
    id: str
    words: str
    """A part of the message or the fix."""
    source: str
    debug: bool = False


def case(name: str, id: str, words: str, *body: str, params: str = "p, q, n, m, f") -> Case:
    lines = "\n".join("    " + line for line in body)
    return Case(name, id, words, f"\n@tessera.jit\ndef kernel({params}):\n{lines}\n")


CASES: Sequence[Case] = [
    # --- definition ---------------------------------------------------------------------
    Case("kwargs", "E005", "name each keyword", "\n@tessera.jit\n@@def kernel(p, **extra):\n    pass\n"),
    Case(
        "list default", "E006", "default of `x` is a list",
        "\n@tessera.jit\ndef kernel(p, @@x=[]):\n    pass\n",
    ),
    case("yield", "E007", "`yield`", "@@yield n"),
    case("await in a lambda's place", "E008", "a lambda", "g = @@lambda x: x"),
    case("nested function", "E008", "a nested function", "@@def inner(x):", "    return x"),
    Case(
        "direct recursion", "E009", "again -> again",
        "\n@tessera.jit\ndef again(x):\n    return @@again(x)\n"
        "\n@tessera.jit\ndef kernel(p, n):\n    again(n)\n",
    ),
    Case(
        "mutual recursion", "E009", "ping -> pong -> ping",
        "\n@tessera.jit\ndef ping(x):\n    return pong(x)\n"
        "\n@tessera.jit\ndef pong(x):\n    return @@ping(x)\n"
        "\n@tessera.jit\ndef kernel(p, n):\n    ping(n)\n",
    ),
    case("global int", "E010", "LIMIT = tl.constexpr(8)", "x = n + @@LIMIT"),
    case("global list", "E010", "`NAMES` is a plain list", "x = @@NAMES[0]"),
    case("misspelt operation", "E012", "did you mean `load`?", "x = @@tl.laod(p)"),
    case("name of torch", "E012", "write tl.maximum(x, 0)", "x = @@tl.relu(n)"),
    case("name of NumPy", "E012", "write tl.clamp(x, low, high)", "x = @@tl.clip(n, 0, 1)"),
    case("type of C", "E012", "write tl.float32", "x = n.to(@@tl.float)"),
    case("name of libdevice", "E012", "write tl.libdevice.log10(x)", "x = @@tl.log10(f)"),
    case("method of NumPy", "E012", "write x.to(dtype)", "x = @@tl.arange(0, 8).astype(tl.int64)"),
    case("method of torch", "E012", "write x.to(tl.float16)", "x = @@f.half()"),
    case("mean", "E012", "tl.sum(x, axis) / x.shape[axis]", "x = @@tl.arange(0, 8).mean()"),
    case("thread of CUDA", "E012", "write tl.arange(0, BLOCK)", "x = @@threadIdx.x"),
    case("barrier of CUDA", "E012", "write tl.debug_barrier()", "@@__syncthreads()"),
    case("other capitals", "E012", "write tl.atomic_add", "x = @@atomicAdd(p, 1)"),
    case("forgotten tl", "E012", "write tl.exp", "x = @@exp(f)"),
    case("function of another module", "E012", "did you mean `floor`?", "x = @@math.flor(f)"),
    case("shape of a pointer", "E012", "`p` is a pointer (*fp32)", "x = @@p.shape[0]"),
    case("stride of a pointer", "E012", "x.stride(0) at the launch", "x = @@p.stride(0)"),
    case("enumerate", "E015", "tl.static_range(len(t))", "x = @@enumerate((n, m))"),
    case("zip", "E015", "a[i], b[i]", "for a, b in @@zip((1, 2), (3, 4)):", "    pass"),
    case("sorted", "E015", "use tl.sort(x)", "x = @@sorted(tl.arange(0, 8))"),
    case("round", "E015", "use tl.libdevice.rint(x)", "x = @@round(f)"),
    case("any", "E015", "use tl.max((x != 0)", "x = @@any(tl.arange(0, 8))"),
    case("NumPy's log10", "E015", "use tl.libdevice.log10(x)", "x = @@np.log10(f)"),
    case("class of Python", "E034", "the class `float` of Python", "x = @@f.to(float)"),
    case("two operands of max", "E024", "tl.maximum(x, y)", "x = @@tl.max(tl.arange(0, 8), 0.5)"),
    case("offsets as a mask", "E045", "tl.load(x_ptr + i)", "x = @@tl.load(p, tl.arange(0, 8))"),
    case("index of a value", "E044", "tl.load(x_ptr + i)", "x = @@tl.load(f, n)"),
    case("swapped store", "E044", "swap the two", "@@tl.store(f, p)"),
    case("misspelt method", "E012", "did you mean `sum`?", "x = @@tl.arange(0, 8).sun()"),
    case("unknown method", "E012", "`dir(tl.tensor)` lists", "x = @@tl.arange(0, 8).qqqqqq()"),
    case("unknown operation", "E012", "`dir(tessera.language)` lists", "x = @@tl.qqqqqq(n)"),
    case("misspelt name", "E012", "did you mean `offsets`?", "offsets = n", "x = @@offset + 1"),
    case("undefined name", "E012", "`nothing_like_it` is not defined", "x = @@nothing_like_it"),
    case(
        "assigned in one branch", "E013", "assigned only in the `if` at line",
        "if n > 0:", "    acc = n", "tl.store(p, @@acc)",
    ),
    case(
        "assigned in a loop", "E013", "assigned only in the `for` at line",
        "for i in range(n):", "    last = i", "tl.store(p, @@last)",
    ),
    case(
        "loop variable after no iteration", "E013", "assigned only in the `for`",
        "for i in range(n):", "    pass", "tl.store(p, @@i)",
    ),
    case("used before assignment", "E013", "only assigned later", "x = @@y", "y = n"),
    case("import", "E014", "`import`", "@@import math"),
    case("try", "E014", "`try`", "@@try:", "    x = n", "except ValueError:", "    pass"),
    case("with", "E014", "`with`", "@@with p:", "    x = n"),
    case("global statement", "E014", "`global`", "@@global LIMIT"),
    case("del", "E014", "`del`", "x = n", "@@del x"),
    case("match", "E014", "`match`", "@@match n:", "    case 1:", "        pass"),
    case("class", "E014", "`class`", "@@class A:", "    pass"),
    case("raise", "E014", "`raise`", "@@raise ValueError"),
    case("dict", "E014", "a dict", "x = @@{}"),
    case("set", "E014", "a set", "x = @@{1, 2}"),
    case("generator", "E014", "a generator", "x = @@(i for i in (1, 2))"),
    case("matmul operator", "E014", "use tl.dot(a, b)", "x = @@n @ m"),
    case("store by subscript", "E014", "use tl.store", "@@p[0] = n"),
    case("too many to unpack", "E014", "too many values", "@@a, c = (1, 2, 3)"),
    case("unpack a scalar", "E014", "cannot unpack i", "@@a, c = n"),
    case("numpy", "E015", "`zeros` of numpy is a host function", "x = @@np.zeros(8)"),
    case("math", "E015", "use tl.sqrt", "x = @@math.sqrt(f)"),
    case("f-string of a tensor", "E015", "tl.device_print", 'x = f"{@@n}"'),
    case("int of a tensor", "E015", "x.to(tl.int32)", "x = @@int(f)"),
    case("plain function", "E016", "`plain` is not a @jit function", "x = @@plain(n)"),
    case("call of a number", "E016", "is not a function", "x = @@n(1)"),
    case("unknown annotation", "E017", "did you mean `tl.constexpr`?", "x: @@tl.constexp = 3"),
    Case(
        "unknown parameter annotation", "E017", "did you mean `tl.constexpr`?",
        '\n@tessera.jit\ndef kernel(p, B: @@"tl.constexp"):\n    pass\n',
    ),
    Case(
        "misspelt bare annotation", "E017", "did you mean `tl.constexpr`?",
        '\n@tessera.jit\ndef kernel(p, B: @@"constexp"):\n    pass\n',
    ),
    Case(
        "misspelt dtype as annotation", "E017", "did you mean `tl.int32`?",
        '\n@tessera.jit\ndef kernel(p, B: @@"int23"):\n    pass\n',
    ),
    # --- types, shapes, constants ---------------------------------------------------------
    case("bad extent", "E018", "100", "x = @@tl.arange(0, 100)"),
    case("run-time bound", "E019", "int32", "x = @@tl.arange(0, n)"),
    case("a class as bound", "E019", "integer constant", "x = @@tl.arange(0, tl.constexpr)"),
    case("run-time shape", "E019", "int32", "x = @@tl.zeros((n,), tl.float32)"),
    case("empty range", "E020", "", "x = @@tl.arange(5, 5)"),
    case("huge range", "E021", "1048576", "x = @@tl.arange(0, 2097152)"),
    case("huge tile", "E021", "1048576", "x = @@tl.zeros((1024, 2048), tl.float32)"),
    case("shapes", "E022", "32", "x = @@tl.arange(0, 64) + tl.arange(0, 32)"),
    case("too many indices", "E022", "too many indices", "x = @@tl.arange(0, 64)[:, :]"),
    case("reshape", "E023", "64", "x = @@tl.arange(0, 64).reshape(8, 16)"),
    case("permute twice", "E023", "permutation", "x = @@tl.zeros((8, 16), tl.int32).permute(0, 0)"),
    case("trans of a vector", "E023", "two dimensions", "x = @@tl.trans(tl.arange(0, 64))"),
    case("split", "E023", "", "a, c = @@tl.split(tl.zeros((8, 16), tl.int32))"),
    case("join of literals", "E023", "join needs a tensor", "x = @@tl.join(1, 2)"),
    case("cat", "E023", "", "x = @@tl.cat(tl.arange(0, 8), tl.arange(0, 16))"),
    case("expand twice", "E023", "twice", "x = @@tl.expand_dims(tl.arange(0, 8), (0, 0))"),
    case("item", "E023", "one element", "x = @@tl.arange(0, 8).item()"),
    case("axis too large", "E024", "[-2, 2)", "x = @@tl.sum(tl.zeros((8, 16), tl.int32), axis=3)"),
    case("axis too small", "E024", "-3", "x = @@tl.max(tl.zeros((8, 16), tl.int32), axis=-3)"),
    case("run-time axis", "E024", "int32", "x = @@tl.sum(tl.arange(0, 8), axis=n)"),
    case("reduce a scalar", "E024", "no axes", "x = @@tl.sum(n)"),
    case("grid axis", "E024", "axis must be 0, 1 or 2", "x = @@tl.program_id(3)"),
    case("dot of vectors", "E025", "the first operand", "x = tl.arange(0, 16)", "y = @@tl.dot(x, x)"),
    case(
        "dot inner", "E025", "32",
        "a = tl.zeros((64, 32), tl.float16)", "c = tl.zeros((64, 64), tl.float16)",
        "x = @@tl.dot(a, c)",
    ),
    case(
        "dot types", "E025", "bf16",
        "a = tl.zeros((64, 64), tl.float16)", "c = tl.zeros((64, 64), tl.bfloat16)",
        "x = @@tl.dot(a, c)",
    ),
    case(
        "dot precision", "E025", 'use one of tf32,',
        "a = tl.zeros((64, 64), tl.float32)", 'x = @@tl.dot(a, a, input_precision="tf33")',
    ),
    case(
        "dot accumulator", "E025", "32",
        "a = tl.zeros((64, 64), tl.float16)",
        "x = @@tl.dot(a, a, tl.zeros((64, 32), tl.float32))",
    ),
    case("where", "E026", "condition", "x = @@tl.where(f, n, m)"),
    case("where on floats", "E026", "compare it", "x = @@tl.where(tl.arange(0, 8) * 0.5, 1, 2)"),
    case("division by zero", "E027", "divides by zero", "x: tl.constexpr = @@1 // 0"),
    case("negative shift", "E027", "negative", "x: tl.constexpr = @@1 << -1"),
    case("huge literal", "E028", "does not fit", "x = @@n + 2**70"),
    case("literal in uint8", "E028", "300", "x = @@tl.load(u8p) + 300", params="u8p"),
    case("pointer plus pointer", "E029", "pointer", "x = @@p + q"),
    case("pointer times", "E029", "pointer", "x = @@p * 2"),
    case("invert a float", "E029", "fp32", "x = @@~f"),
    case("index a pointer", "E029", "adding offsets", "x = @@p[n]"),
    case("index a tensor", "E029", "None and `:`", "x = @@tl.arange(0, 8)[n]"),
    case("slice a tensor", "E029", "None and `:`", "x = @@tl.arange(0, 8)[0:4]"),
    case("power", "E029", "`**`", "x = @@n ** 2"),
    case("string plus int", "E029", "`+` does not work", 'x: tl.constexpr = @@"a" + 1'),
    case("tensor plus None", "E029", "None", "x = @@n + None"),
    case("exp of integers", "E030", "int32", "x = @@tl.exp(n)"),
    Case(
        "combined to another type", "E037",
        "combine_fn `mean` of reduce returns fp32 for operands of type int32",
        "\n@tessera.jit\ndef mean(a, b):\n    return (a + b) / 2\n"
        "\n@tessera.jit\ndef kernel(p, n):\n    x = @@tl.reduce(tl.arange(0, 8), 0, mean)\n",
    ),
    Case(
        "scanned to another type", "E037", "cast its result, `.to(tl.int8)`",
        "\n@tessera.jit\ndef wide(a, b):\n    return a.to(tl.int32) + b\n"
        "\n@tessera.jit\ndef kernel(p, n):\n"
        "    x = @@tl.associative_scan(tl.arange(0, 8).to(tl.int8), 0, wide)\n",
    ),
    Case(
        "a literal that does not fit", "E037", "returns int32 (= 300)",
        "\n@tessera.jit\ndef least(a, b):\n    return 300\n"
        "\n@tessera.jit\ndef kernel(p, n):\n"
        "    x = @@tl.reduce(tl.arange(0, 8).to(tl.int8), 0, least)\n",
    ),
    case(
        "mask without parentheses", "E083", "write (r < n) & (c < m)",
        "r = tl.arange(0, 16)", "c = tl.arange(0, 16)", "mask = @@r < n & c < m",
    ),
    case(
        "mask of floats without parentheses", "E083", "write (x > 0.5) | (x < f)",
        "x = tl.load(p + tl.arange(0, 16))", "mask = @@x > 0.5 | x < f",
    ),
    case("in", "E031", "`in`", "x = @@n in (1, 2)"),
    case("is", "E031", "use `==`", "x = @@n is 3"),
    case("if a tile", "E032", "ambiguous", "if @@tl.arange(0, 8) > 3:", "    x = n"),
    case("while a tile", "E032", "ambiguous", "while @@tl.arange(0, 8) > 3:", "    pass"),
    case("choose by a tile", "E032", "ambiguous", "x = 1 if @@tl.arange(0, 8) > 3 else 2"),
    case("tile or a number", "E032", "tl.where(x != 0, x, number)", "i = tl.arange(0, 8)", "x = @@i or 16"),
    case("constexpr of a tensor", "E033", "known at run time", "x = @@tl.constexpr(n)"),
    case("numpy dtype", "E034", "use tl.float32", "x = @@tl.zeros((8,), np.float32)"),
    case("no dtype", "E034", "must be a type", "x = @@tl.zeros((8,), 32)"),
    case("misspelt dtype", "E035", "float32", 'x = @@n.to("float31")'),
    case("bitcast widths", "E035", "", "x = @@n.to(tl.int64, bitcast=True)"),
    case("rounding", "E035", "rtz", 'x = @@f.to(tl.float16, fp_downcast_rounding="up")'),
    # --- control flow -----------------------------------------------------------------------
    case(
        "carried type", "E036", "`acc` is int32 before the loop, fp32[8] at its end",
        "acc = 0", "@@for i in range(n):", "    acc = acc + tl.zeros((8,), tl.float32)",
        "tl.store(p, acc)",
    ),
    case(
        "carried type of while", "E036", "initialise it",
        "x = n", "@@while x > 0:", "    x = x * 0.5",
    ),
    case(
        "carried None", "E036", "None",
        "x = None", "@@for i in range(n):", "    if x is None:", "        x = n", "tl.store(p, x)",
    ),
    case(
        "branch types", "E037", "on one path",
        "@@if n > 0:", "    x = tl.zeros((8,), tl.float32)", "else:",
        "    x = tl.zeros((16,), tl.float32)", "tl.store(p, x)",
    ),
    Case(
        "return types", "E037", "returns",
        "\n@tessera.jit\ndef pick(x):\n    @@if x > 0:\n        return x\n"
        "    return tl.zeros((8,), tl.int32)\n"
        "\n@tessera.jit\ndef kernel(p, n):\n    pick(n)\n",
    ),
    Case(
        "return or nothing", "E037", "nothing on another",
        "\n@tessera.jit\n@@def pick(x):\n    if x > 0:\n        return x\n"
        "\n@tessera.jit\ndef kernel(p, n):\n    tl.store(p, pick(n))\n",
    ),
    case("number or None", "E037", "no common type", "x = @@n or None"),
    case("pointer or number", "E037", "*fp32 or int32", "x = @@p or n"),
    case("number and text", "E037", "'a'", "x = @@n and 'a'"),
    case("zero step", "E039", "step", "for i in @@range(0, 10, 0):", "    pass"),
    case("keyword of no range", "E051", "stride", "for i in @@range(0, n, stride=2):", "    pass"),
    case("float bound", "E039", "fp32", "for i in @@range(0, f):", "    pass"),
    case("tile bound", "E039", "int32[8]", "for i in @@range(0, tl.arange(0, 8)):", "    pass"),
    case("iterate over a tensor", "E039", "cannot iterate", "for i in @@n:", "    pass"),
    case("static range at run time", "E040", "int32", "for i in @@tl.static_range(n):", "    pass"),
    case("static range too long", "E040", "limit", "for i in @@tl.static_range(10**9):", "    pass"),
    case("static range past 63 bits", "E040", "limit", "for i in @@tl.static_range(2**70):", "    pass"),
    case("endless while", "E041", "never ends", "@@while True:", "    x = n"),
    case(
        "endless constant while", "E041", "still true",
        "x: tl.constexpr = 1", "@@while x > 0:", "    x: tl.constexpr = x + 1",
    ),
    case("kernel returns", "E042", "returns int32", "@@return n"),
    # --- memory -----------------------------------------------------------------------------
    case("load an int", "E044", "needs a pointer, got int32", "x = @@tl.load(n)"),
    case("load a literal", "E044", "the constant 3", "x = @@tl.load(3)"),
    case("store to a float", "E044", "fp32", "@@tl.store(f, n)"),
    case(
        "mask shape", "E045", "int1[32]",
        "i = tl.arange(0, 64)", "x = @@tl.load(p + i, mask=tl.arange(0, 32) < n)",
    ),
    case(
        "mask type", "E045", "int32[64]", "i = tl.arange(0, 64)", "x = @@tl.load(p + i, mask=i)",
    ),
    case("other alone", "E045", "without a mask", "x = @@tl.load(p, other=0.0)"),
    case("store to const", "E046", "const", "@@tl.store(cp, f)", params="cp, f"),
    case(
        "store shape", "E045", "fp32[32]",
        "@@tl.store(p + tl.arange(0, 64), tl.zeros((32,), tl.float32))",
    ),
    case("atomic type", "E047", "", "@@tl.atomic_add(u8p, 1)", params="u8p"),
    case("atomic sem", "E047", 'did you mean "acquire"?', '@@tl.atomic_add(p, f, sem="acquir")'),
    case("cache modifier", "E048", '"ca"', 'x = @@tl.load(p, cache_modifier=".xx")'),
    case("eviction", "E048", "evict_first", 'x = @@tl.load(p, eviction_policy="evict")'),
    case("print prefix", "E048", "literal string", "@@tl.device_print(n)"),
    case(
        "boundary check", "E049", "rank 2",
        "b = tl.make_block_ptr(p, (n, m), (m, 1), (0, 0), (16, 16), (1, 0))",
        "x = @@tl.load(b, boundary_check=(2,))",
    ),
    case(
        "block pointer rank", "E049", "strides has 1",
        "b = @@tl.make_block_ptr(p, (n, m), (m,), (0, 0), (16, 16), (1, 0))",
    ),
    case(
        "block pointer order", "E049", "permutation",
        "b = @@tl.make_block_ptr(p, (n, m), (m, 1), (0, 0), (16, 16), (1, 1))",
    ),
    case("padding", "E048", "zero", 'x = @@tl.load(p, padding_option="one")'),
    case("mask of a block pointer", "E049", "takes no mask",
         "b = tl.make_block_ptr(p, (n,), (1,), (0,), (16,), (0,))",
         "x = @@tl.load(b, mask=n > 0)"),
    case("descriptor stride", "E049", "stride",
         "x = @@tl.make_tensor_descriptor(p, [n, n], [1, n], [16, 16])"),
    case("advance a pointer", "E049", "block pointer", "x = @@tl.advance(p, (1,))"),
    case("call a dtype", "E016", "", "x = @@tl.float32(n)"),
    case("launch inside", "E014", "call it", "@@add_one[(1,)](n)"),
    case("unpack too few", "E014", "not enough", "@@a, c = (n,)"),
    case("several targets in a loop", "E014", "use one name", "for @@i, j in range(n):", "    pass"),
    case("two fors in a comprehension", "E014", "one `for`", "x = @@[i for i in (1,) for j in (1,)]"),
    case("bytes", "E014", "a bytes literal", "x = @@b'abc'"),
    case("double star", "E014", "name each argument", "x = add_one(**@@n)"),
    case("sum of None", "E044", "got the constant None", "x = @@tl.sum(None)"),
    case("indices without an axis", "E024", "need an axis",
         "x = @@tl.max(tl.arange(0, 8), return_indices=True)"),
    case("k of topk", "E018", "k must be in [1, 8]", "x = @@tl.topk(tl.arange(0, 8), 16)"),
    case("combine function", "E016", "@jit", "x = @@tl.reduce(tl.arange(0, 8), 0, plain)"),
    case("arity of combine", "E037", "2 values for 1", "x = @@tl.reduce(tl.arange(0, 8), 0, two)"),
    case("asm constraints", "E050", "", 'x = @@tl.inline_asm_elementwise("nop", "=Z,,", [n], tl.int32, True, 1)'),
    # --- calls --------------------------------------------------------------------------------
    case("unknown keyword", "E051", "did you mean `mask`?", "x = @@tl.load(p, maks=None)"),
    case("missing argument", "E051", "`x`", "y = @@add_one()"),
    case("extra argument", "E051", "by place", "y = @@add_one(n, m)"),
    case("static assertion", "E067", "B is odd", '@@tl.static_assert(SIZE == 3, "B is odd")'),
    case("run-time static assertion", "E019", "device_assert", "@@tl.static_assert(n > 0)"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def modules() -> Iterator[list[str]]:
    names: list[str] = []
    yield names
    for name in names:
        sys.modules.pop(name, None)


def load(folder: Path, text: str, names: list[str]) -> ModuleType:
    name = f"mistaken_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    names.append(name)
    spec.loader.exec_module(module)
    return module


class Options:
    debug = True


def mistake(folder: Path, source: str, names: list[str]) -> tuple[CompilationError, int, int]:
    """The error of a source, and the line and column that `@@` marks."""
    text = HEADER + source
    before = text.split("@@")[0]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    with pytest.raises(CompilationError) as caught:
        kernel = load(folder, text.replace("@@", ""), names).kernel
        args = [DEFAULTS.get(one.name) or ConstSpec(one.default) for one in kernel.params]
        build_module(kernel, args, Options)
    return caught.value, line, column


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.id} {case.name}")
def test_mistake(case: Case, folder: Path, modules: list[str]) -> None:
    error, line, column = mistake(folder, case.source, modules)
    text = str(error)
    assert error.id == case.id, text
    assert (error.line, error.column) == (line, column), text
    assert case.words in text, text
    assert text.startswith(f"{error.file}:{line}:{column}: error[{case.id}]: "), text
    assert error.message == error.message.rstrip("."), text
    assert "python/tessera" not in text, "a frame of the compiler shows"
    shown = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    assert shown.count("Traceback") == 1, shown


def test_no_source() -> None:
    namespace: dict[str, Any] = {"__name__": "nowhere"}
    exec("def kernel(p):\n    pass", namespace)
    kernel = tessera.jit(namespace["kernel"])
    with pytest.raises(CompilationError) as caught:
        build_module(kernel, [pointer()], Options)
    assert caught.value.id == "E002" and "`kernel` is not available" in str(caught.value)
    assert (caught.value.file, caught.value.line) == ("<string>", 1)


def test_coroutine(folder: Path, modules: list[str]) -> None:
    error, line, column = mistake(
        folder, "\n@tessera.jit\n@@async def kernel(p):\n    pass\n", modules
    )
    assert (error.id, error.line, error.column) == ("E007", line, column)


def test_chain_of_calls(folder: Path, modules: list[str]) -> None:
    source = (
        "\n@tessera.jit\ndef inner(x, y):\n    return @@x + y\n"
        "\n@tessera.jit\ndef outer(x):\n    return inner(x, tl.arange(0, 32))\n"
        "\n@tessera.jit\ndef kernel(p):\n    outer(tl.arange(0, 64))\n"
    )
    error, line, column = mistake(folder, source, modules)
    assert (error.id, error.line, error.column) == ("E022", line, column)
    text = str(error).splitlines()
    assert [frame.function for frame in error.frames] == ["kernel", "outer", "inner"]
    assert text[1].endswith("return x + y") and text[2].endswith(" ^~~~~")
    assert text[1].index("x + y") == text[2].index("^")
    assert text[3].endswith(f"{line}:{column}: note: the left operand is int32[64]")
    assert text[4].endswith("note: the right operand is int32[32]")
    assert text[5].endswith(f":{line + 4}:12: note: `inner` called from `outer`")
    assert text[6].endswith(f":{line + 8}:5: note: `outer` called from `kernel`")
    assert text[7].startswith("fix: ")


def test_columns_count_characters(folder: Path, modules: list[str]) -> None:
    source = '\n@tessera.jit\ndef kernel(p, n):\n    größe = "äöü"; y = @@größer\n'
    error, line, column = mistake(folder, source, modules)
    assert (error.id, error.line, error.column) == ("E012", line, column)
    assert "did you mean `größe`?" in str(error)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_files_of_all_kinds(ending: str, start: str, folder: Path, modules: list[str]) -> None:
    lines = [
        "import tessera", "import tessera.language as tl", "", "class Kernels:",
        "\t@staticmethod  # a comment", "\t@tessera.jit", "\t# another", "\tdef kernel(p, # the pointer",
        "# at the margin", "\t\t\tn):", "\t\t'''doc", "string'''", "\t\tx = (n +", "1)",
        "\t\tx = tl.laod(p)", "", "\tafter = 1", "",
    ]  # fmt: skip
    name = f"mistaken_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_bytes((start + ending.join(lines)).encode())
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(CompilationError) as caught:
        build_module(module.Kernels.kernel, [pointer(), number()], Options)
    assert (caught.value.id, caught.value.line, caught.value.column) == ("E012", 15, 7)
    assert caught.value.source_line == "\t\tx = tl.laod(p)"


def test_errors_can_be_pickled(folder: Path, modules: list[str]) -> None:
    import pickle

    error, _, _ = mistake(folder, "\n@tessera.jit\ndef kernel(p):\n    x = @@nothing\n", modules)
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) and copy.id == error.id and copy.frames == error.frames


@pytest.mark.parametrize(
    "entries, words",
    [
        ("None", "arg_type_symbol_dict is"),
        ("{}", "arg_type_symbol_dict is"),
        ('{tl.float32: ("f", tl.float32)}', "a key of arg_type_symbol_dict is"),
        ('{("fp32",): ("f", tl.float32)}', "a key of arg_type_symbol_dict is"),
        ('{(tl.float32,): "f"}', "arg_type_symbol_dict gives"),
        ('{(tl.float32,): ("f",)}', "arg_type_symbol_dict gives"),
        ('{(tl.float32,): (3, tl.float32)}', "arg_type_symbol_dict gives"),
        ('{(tl.float32,): ("", tl.float32)}', "arg_type_symbol_dict gives"),
        ('{(tl.int8,): ("f", tl.int8)}', "takes no (fp32)"),
        ('{(tl.float32,): ("f", 3)}', "gives the constant 3"),
    ],
)  # fmt: skip
def test_entries_of_an_external_function(
    entries: str, words: str, folder: Path, modules: list[str]
) -> None:
    source = f"""
ENTRIES = {entries}

@tl.core.extern
def soften(x):
    return tl.extern_elementwise("mine", "", [x], ENTRIES, is_pure=True)

@tessera.jit
def kernel(p, f):
    tl.store(p, @@soften(f))
"""
    error, line, column = mistake(folder, source, modules)
    assert (error.id, error.line, error.column) == ("E030", line, column), str(error)
    assert words in str(error), str(error)
