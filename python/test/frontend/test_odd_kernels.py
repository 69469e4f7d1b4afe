# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No kernel, however odd, ends in anything but tile IR or a CompilationError.

A Python exception of ours that gets through, or an InternalError, fails these tests; so does
a message without a place, an id or a fix.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tessera.errors import CompilationError
from tessera.frontend import build_module
from frontend.test_errors import DEFAULTS, HEADER, Options, load

SNIPPETS = """\
x = tl.load(p, mask)
---
x = tl.load()
---
x = tl.load(p, None, None, None, None, None, None, None, None, None)
---
for i, j in range(3): pass
---
for p in range(n): pass
---
for i in tl.range(0, n, num_stages=n): pass
---
x = tl.arange(0, "a")
---
x = tl.arange(0, 8.5)
---
x = tl.zeros("abc", tl.float32)
---
x = tl.zeros(None, tl.float32)
---
x = tl.zeros((8,), None)
---
x = tl.zeros((-8,), tl.float32)
---
x = tl.zeros((0,), tl.float32)
---
x = tl.full((8,), p, tl.float32)
---
x = tl.full((8,), "a", tl.float32)
---
x = tl.full((8,), None, tl.float32)
---
x = tl.full((8,), 300, tl.int8)
---
x = tl.full((8,), 1.5, tl.int8)
---
x = n.shape[0]
---
x = p.dtype.foo
---
x = tl.sum(None)
---
x = tl.sum("abc")
---
x = tl.sum(p)
---
x = tl.sum(tl.zeros((8,), tl.float32) , axis="a")
---
x = tl.reduce(tl.zeros((8,), tl.float32), 0, None)
---
x = tl.reduce(tl.zeros((8,), tl.float32), 0, add_one)
---
x = tl.reduce((), 0, add_one)
---
x = tl.max(tl.zeros((8,), tl.float32), return_indices=True)
---
x = tl.max(tl.zeros((8,), tl.float32), axis=n)
---
x = tl.softmax(n)
---
x = tl.where(p, 1, 2)
---
x = tl.where(None, 1, 2)
---
x = tl.where(True, None, 2)
---
x = tl.exp(None)
---
x = tl.exp("a")
---
x = tl.exp(p)
---
x = tl.exp(tl.float32)
---
x = tl.maximum(None, 1)
---
x = tl.maximum(1, 2)
---
x = tl.maximum(p, q)
---
x = tl.clamp(n, None, 1)
---
x = tl.fma(1, 2, 3)
---
x = tl.umulhi(f, f)
---
x = tl.umulhi(1, 2)
---
x = tl.dot(None, None)
---
x = tl.dot(tl.zeros((16,16),tl.float32), tl.zeros((16,16),tl.float32), acc=n)
---
x = tl.dot(tl.zeros((16,16),tl.float32), tl.zeros((16,16),tl.float32), out_dtype=5)
---
x = tl.dot(tl.zeros((16,16),tl.float32), tl.zeros((16,16),tl.float32), input_precision=3)
---
x = tl.reshape(n, (2,))
---
x = tl.reshape(tl.arange(0,8), (n, 4))
---
x = tl.broadcast_to(tl.arange(0,8), (16,))
---
x = tl.broadcast(1, 2)
---
x = tl.broadcast(p, n)
---
x = tl.permute(tl.arange(0,8), "a")
---
x = tl.cat(n, n)
---
x = tl.split(n)
---
x = tl.join(n, p)
---
x = tl.gather(tl.arange(0,8), n, 0)
---
x = tl.histogram(f, 8)
---
x = tl.histogram(tl.arange(0,8), n)
---
x = tl.program_id(n)
---
x = tl.program_id()
---
x = tl.program_id("x")
---
tl.store(p, None)
---
tl.store(p, p)
---
tl.store(p, "a")
---
tl.store(p)
---
tl.store(p + tl.arange(0,8), n, mask=f)
---
tl.atomic_add(p, "a")
---
tl.atomic_add(p, p)
---
tl.atomic_add(p + tl.arange(0,8), tl.arange(0,16))
---
tl.atomic_add(p, 1, scope="warp")
---
tl.atomic_add(p, 1, sem=3)
---
tl.atomic_cas(p, None, 1)
---
tl.atomic_and(p, 1)
---
tl.make_block_ptr(p, n, m, 0, 16, 0)
---
tl.make_block_ptr(n, (n,), (1,), (0,), (16,), (0,))
---
tl.advance(p, (1,))
---
x = tl.make_tensor_descriptor(p, [n], [1], [16]).load(0)
---
x = tl.make_tensor_descriptor(p, [n, n], [n, n], [16, 16])
---
tl.multiple_of(n, "a")
---
tl.multiple_of(p, 0)
---
tl.assume("a")
---
tl.assume(p)
---
tl.device_print("a", None)
---
tl.device_print("a", "b")
---
tl.device_print()
---
tl.device_assert(p, "x")
---
tl.device_assert(tl.arange(0,8) > 2, n)
---
tl.static_assert()
---
tl.static_print(n, p, 3, sep=n)
---
tl.inline_asm_elementwise(1, 2, 3, 4, 5, 6)
---
tl.inline_asm_elementwise("", "", [n], tl.int32, True, 1)
---
x = n.to()
---
x = n.to(p)
---
x = n.to(None)
---
x = n.to(tl.float32, "abc")
---
x = p.to(tl.float32)
---
x = f.to(tl.pointer_type(tl.float32))
---
x = n.foo.bar
---
x = n[0]
---
x = n[None]
---
x = n[:]
---
x = tl.arange(0,8)[None, None, None, None, None, None, None, None, None]
---
x = tl.arange(0,8)[...]
---
x = tl.arange(0,8)[..., ...]
---
x = tl
---
x = tl.load
y = x(p)
---
x = len(n)
---
x = len()
---
x = min()
---
x = min(p, n)
---
x = max("a", 1)
---
x = int("a")
---
x = int()
---
x = isinstance(n)
---
x = isinstance(n, 3)
---
x = getattr(n, 3)
---
x = getattr(n)
---
x = hasattr(n, n)
---
x = list(n)
---
x = tuple(n)
---
x = str(n)
---
x = abs("a")
---
x = abs(p)
---
x = sum((1, 2))
---
x = sorted((2, 1))
---
x = open("a")
---
x = eval("1")
---
x = collections.namedtuple("A", "a b")
---
x = Exception("a")
---
x = (1, 2).index(1)
---
x = (1, 2).index(5)
---
x = "a".join(n)
---
x = "{}".format(n)
---
x = "a" % n
---
x = 5 % 0
---
x = 5.0 / 0
---
x = 2 ** 100000
---
x = 1 << 10000
---
x = 1e308 * 10
---
x = -n ** 2
---
x = 1 if n else p
---
x = (1, 2) if n else (3, 4)
---
x = (1, 2) if n else 3
---
x = "a" if n else "b"
---
x = None if n else 1
---
x = tl.float32 if n else tl.float16
---
if "a": x = 1
---
if None: x = 1
---
if p: x = 1
---
while p: pass
---
while f: f = f - 1
---
if f: x = 1
---
if (x := n) > 3: y = x
---
[y := i for i in (1, 2)]
---
x = [i for i in range(n)]
---
x = [i for i in (1,2) for j in (1,2)]
---
x = [i for i in n]
---
x = (lambda: 3)()
---
x = add_one(*n)
---
x = add_one(*(n, n))
---
x = add_one(x=n, y=2)
---
x = add_one(n, x=n)
---
x = add_one(add_one)
---
x = add_one[(1,)](n)
---
x = add_one.foo
---
x = kernel(p, q, n, m, f)
---
a = b = n
---
a, *c = (1, 2, 3)
---
x, (y, z) = 1, (2, 3)
---
x = y = z
---
x += 1
---
n += "a"
---
p += q
---
p.x = 3
---
p[0] += 3
---
n: int = 3
---
n: "foo" = 3
---
x: tl.constexpr
---
assert n > 3, "x"
---
assert n > 3, n
---
assert False
---
assert tl.arange(0,8) > 2
---
return
---
return 3
---
return None
---
return n, m
---
pass
---
"docstring"
---
...
---
x = ...
---
x = b"abc"
---
x = 3j
---
x = not p
---
x = -p
---
x = ~True
---
x = n and p
---
x = n and "a"
---
x = n or None
---
x = None or n
---
x = n < "a"
---
x = n < None
---
x = p < 3
---
x = p == q
---
x = p is q
---
x = n == None
---
x = (1, n) == (1, 2)
---
x = n in (n, 2)
---
x = tl.float32 == tl.float32
---
x = np.float32(3)
---
x = np.pi
---
x = math.pi
---
x = np
---
x = math.nothing
---
x = tl.static_range(3)
---
x = range(3)
---
for i in tl.static_range(0, 3): x = i
tl.store(p, x + i)
---
for i in tl.static_range(n, 3): x = i
---
for i in range(0, 10, n): x = i
---
for i in range(0, 10, n):
    if i == 3: break
---
for i in range(): pass
---
for i in range(1, 2, 3, 4): pass
---
for i in range(0, 2**40): n += 1
---
for i in (n, p): x = i
---
for i in "ab": x = i
---
for i in None: pass
---
for tl in range(3): pass
---
tl = 3
x = tl.load(p)
---
x = n.T
---
x = tl.trans(tl.zeros((4,8),tl.float32), 0)
---
x = tl.static_assert
---
x = __name__
---
x = print
---
x = __import__("os")
---
global_thing = LIMIT2
---
x = tl.constexpr(n)
---
x = tl.constexpr()
---
x = tl.tensor(n)
---
x = tl.dtype("fp32")
---
x = tl.dtype(n)
---
x = tl.pointer_type(3)
---
x = n.to(tl.pointer_type(tl.pointer_type(tl.float32)))
---
x = n.to(tl.block_type(tl.float32, [8]))
---
x = tl.cast(1, tl.float32)
---
x = tl.interleave(1, 2)
---
x = tl.flip(n)
---
x = tl.flip(tl.arange(0,8), 3)
---
x = tl.swizzle2d(1, 2, 3, 4, 5)
---
x = tl.rand(n, p)
---
x = tl.rand(1.5, tl.arange(0,8))
---
x = tl.rand(n, 5)
---
x = tl.cdiv(n, 0)
---
x = tl.cdiv(5, 0)
---
x = tl.zeros((1,1,1,1,1,1,1,1,1), tl.float32)
---
x = tl.expand_dims(n, 0)
---
x = tl.expand_dims(n, 3)
---
x = tl.squeeze(tl.arange(0,8), 0)
---
x = tl.unsqueeze(tl.arange(0,8), 5)
---
x = tl.squeeze(tl.arange(0,8), n)
---
x = tl.cumsum(n)
---
x = tl.cumsum(tl.arange(0,8), axis=5)
---
x = tl.cumsum(tl.arange(0,8), axis=None)
---
x = tl.argmax(tl.arange(0,8), axis=None)
---
x = tl.sort(tl.arange(0,8))
---
while n > 0:
    n = n - 1
    x = n
y = x
---
while True:
    if n > 3:
        return
    n = n + 1
---
i = 0
while i < 5: i += 1
x = tl.arange(0, i)
---
t = (n, p)
for i in range(3):
    t = (t[0] + 1, t[1] + 1)
---
t = (n, p)
for i in range(3):
    t = (t[0] + 1, t[1] + 1, 3)
---
t = (n, None)
for i in range(3):
    t = (t[0] + 1, None)
---
t = (n, None)
for i in range(3):
    t = (t[0] + 1, 3)
---
s = "a"
for i in range(3):
    s = "b"
---
b = tl.make_block_ptr(p, (n,), (1,), (0,), (16,), (0,))
for i in range(3):
    b = tl.advance(b, (16,))
---
b = tl.make_block_ptr(p, (n,), (1,), (0,), (16,), (0,))
if n > 3:
    b = tl.advance(b, (16,))
x = tl.load(b)
---
if n > 3:
    b = tl.make_block_ptr(p, (n,), (1,), (0,), (16,), (0,))
else:
    return
x = tl.load(b)
---
if n > 3:
    return
b = tl.make_block_ptr(p, (n,), (1,), (0,), (16,), (0,))
x = tl.load(b)
---
if n > 3:
    x = tl.zeros((8,), tl.float32)
    if m > 3: return
    y = p + tl.arange(0, 8)
else:
    x = tl.zeros((8,), tl.float32)
    y = q + tl.arange(0, 8)
tl.store(y, x)
""".split("\n---\n")


@pytest.mark.parametrize("snippet", SNIPPETS)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_odd(snippet: str, tmp_path: Path) -> None:
    body = textwrap.indent(snippet.rstrip("\n"), "    ")
    text = f"{HEADER}\n@tessera.jit\ndef kernel(p, q, n, m, f):\n{body}\n"
    kernel = load(tmp_path, text, [])
    try:
        built = build_module(
            kernel.kernel, [DEFAULTS[param.name] for param in kernel.kernel.params], Options
        )
    except CompilationError as error:
        assert error.id.startswith("E0") and error.line > 0 and error.column > 0
        assert error.fix or error.id == "E067", str(error)
        assert error.file == str(tmp_path / Path(error.file).name)
    else:
        assert "tile.func @kernel" in str(built.module)


def test_deep_expression(tmp_path: Path) -> None:
    text = f"x = {'(' * 80}n{' + 1)' * 80}\ntl.store(p, x)"
    test_odd(text, tmp_path)


def test_many_statements(tmp_path: Path) -> None:
    test_odd("\n".join(["x = n"] + ["x = x + 1"] * 2000 + ["tl.store(p, x)"]), tmp_path)


def test_deeply_nested_control_flow(tmp_path: Path) -> None:
    lines = ["x = n"]
    for depth in range(15):
        lines.append("    " * depth + ("if x > 3:" if depth % 2 else "for i in range(n):"))
    lines.append("    " * 15 + "x += 1")
    lines.append("    " * 15 + "if x > 100: return")
    lines.append("tl.store(p, x)")
    test_odd("\n".join(lines), tmp_path)


def test_fifty_nested_calls(tmp_path: Path) -> None:
    helpers = "".join(
        f"\n@tessera.jit\ndef f{i}(x):\n    return {f'f{i - 1}(x) + 1' if i else 'x'}\n"
        for i in range(51)
    )
    text = f"{HEADER}{helpers}\n@tessera.jit\ndef kernel(p, n):\n    tl.store(p, f50(n))\n"
    kernel = load(tmp_path, text, []).kernel
    module = build_module(kernel, [DEFAULTS["p"], DEFAULTS["n"]], Options).module
    assert str(module).count("arith.addi") == 50


def test_recursion_too_deep(tmp_path: Path) -> None:
    text = (
        f"{HEADER}\n@tessera.jit\ndef down(x, k: tl.constexpr):\n    if k > 0:\n"
        "        x = down(x, k - 1)\n    return x\n"
        "\n@tessera.jit\ndef kernel(p, n):\n    tl.store(p, down(n, 1000))\n"
    )
    kernel = load(tmp_path, text, []).kernel
    with pytest.raises(CompilationError) as caught:
        build_module(kernel, [DEFAULTS["p"], DEFAULTS["n"]], Options)
    assert caught.value.id == "E043"
