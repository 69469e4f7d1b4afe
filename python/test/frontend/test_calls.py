# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls, tuples, constants and globals: what flows in and out of @jit functions."""

from __future__ import annotations

import collections
import gc
import linecache
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.frontend import ConstSpec, ValueSpec, build_module
from tessera.frontend.part import Part
from tessera.frontend.walker import FunctionWalker
from tessera import _C

Pair = collections.namedtuple("Pair", ["first", "second"])
FACTOR = tl.constexpr(5)
SHAPE = tl.constexpr((4, 8))
TABLE = tl.constexpr((2, 3, 5, 7))


@tessera.constexpr_function
def next_multiple(x, of):
    return (x + of - 1) // of * of


@tessera.jit
def add(a, b=10, *, scale=1):
    return (a + b) * scale


@tessera.jit
def total(*values):
    result = 0
    for value in values:
        result += value
    return result


@tessera.jit
def divmod_of(a, b):
    return a // b, a % b


@tessera.jit
def nothing(a):
    pass


@tessera.jit
def constant_of(a):
    if a.dtype.is_int():
        return 3
    return 4


@tessera.jit
def none_or_sum(a, b):
    if b is None:
        return a
    return a + b


@tessera.jit
def factorial(n: tl.constexpr):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@tessera.jit
def apply(fn: tl.constexpr, a):
    return fn(a)


@tessera.jit
def of_pair(pair):
    return pair.first * 10 + pair.second


@tessera.jit
def swap(pair):
    return Pair(pair.second, pair.first)


@tessera.jit
def nested(t):
    a, (b, c) = t
    return a * 100 + b * 10 + c


@tessera.jit(noinline=True)
def outlined(a, b, k: tl.constexpr):
    if a > b:
        return a - b, k
    return b - a, k


@tessera.jit
def typed(a, wanted: tl.constexpr):
    x: tl.constexpr = wanted
    return a.to(x)


# expression of a and b, what Python's own arithmetic gives for a=7, b=3
EXPRESSIONS: list[tuple[str, Callable[[int, int], int]]] = [
    ("add(a)", lambda a, b: a + 10),
    ("add(a, b)", lambda a, b: a + b),
    ("add(b=b, a=a, scale=2)", lambda a, b: (a + b) * 2),
    ("add(a, scale=b)", lambda a, b: (a + 10) * b),
    ("total()", lambda a, b: 0),
    ("total(a, b, 1)", lambda a, b: a + b + 1),
    ("total(*(a, b), *(1, 2))", lambda a, b: a + b + 3),
    ("divmod_of(a, b)[0]", lambda a, b: a // b),
    ("divmod_of(a, b)[1] + 0 * a", lambda a, b: a % b),
    ("a if nothing(a) is None else b", lambda a, b: a),
    ("constant_of(a) + a", lambda a, b: a + 3),
    ("none_or_sum(a, None)", lambda a, b: a),
    ("none_or_sum(a, b)", lambda a, b: a + b),
    ("factorial(5) + a", lambda a, b: 120 + a),
    ("apply(constant_of, a) * a", lambda a, b: 3 * a),
    ("of_pair(Pair(a, b))", lambda a, b: a * 10 + b),
    ("of_pair(swap(Pair(a, b)))", lambda a, b: b * 10 + a),
    ("of_pair(Pair(first=a, second=b))", lambda a, b: a * 10 + b),
    ("nested((a, (b, 4)))", lambda a, b: a * 100 + b * 10 + 4),
    ("outlined(a, b, 9)[0] + outlined(b, a, 8)[1] * 100", lambda a, b: abs(a - b) + 800),
    ("typed(a, tl.int64).to(tl.int32)", lambda a, b: a),
    ("a * FACTOR", lambda a, b: a * 5),
    ("a + SHAPE[1]", lambda a, b: a + 8),
    ("a + len(SHAPE)", lambda a, b: a + 2),
    ("a + next_multiple(13, 8)", lambda a, b: a + 16),
    ("a + int(math.pi)", lambda a, b: a + 3),
    ("max(a, b) - min(a, b, 1)", lambda a, b: max(a, b) - 1),
    ("abs(b - a)", lambda a, b: abs(b - a)),
    ("total(*[x * a for x in TABLE if x != 3])", lambda a, b: 14 * a),
    ("(a, b)[0] + (a, b)[-1]", lambda a, b: a + b),
    ("(a, b, 1, 2)[1:3][0]", lambda a, b: b),
    ("((a,) + (b,))[1]", lambda a, b: b),
    ("((a, b) * 2)[3]", lambda a, b: b),
    ("(a == 7) and (b == 3)", lambda a, b: 1),
    ("a if a == 7 and b == 2 else b", lambda a, b: b),
    ("tl.cdiv(a, b)", lambda a, b: -(-a // b)),
    ("tl.sum(tl.where(tl.arange(0, 8) < b, a, 0))", lambda a, b: a * b),
    ("tl.argmax(tl.where(tl.arange(0, 8) == b, 1, 0), 0)", lambda a, b: b),
    ("tl.sort(7 - tl.arange(0, 8)).max() + a", lambda a, b: 7 + a),
]


@pytest.mark.parametrize("expression, python", EXPRESSIONS, ids=[e for e, _ in EXPRESSIONS])
def test_value(expression: str, python: Callable[[int, int], int]) -> None:
    out = run_expression(expression)
    assert out == python(7, 3)


def run_expression(expression: str) -> int:
    import linecache

    text = (
        "@tessera.jit\ndef kernel(a_ptr, b_ptr, out_ptr):\n"
        "    a, b = tl.load(a_ptr), tl.load(b_ptr)\n"
        f"    tl.store(out_ptr, {expression})\n"
    )
    file = f"<{expression}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace = dict(globals())
    exec(compile(text, file, "exec"), namespace)
    out = np.zeros(1, np.int32)
    a, b = np.array([7], np.int32), np.array([3], np.int32)
    tessera.interpret(namespace["kernel"])[(1,)](a, b, out)
    return int(out[0])


def test_tuples_as_arguments_of_a_kernel() -> None:
    @tessera.jit
    def kernel(pointers, pair, nested_pair, out):
        x = tl.load(pointers[0]) + tl.load(pointers[1])
        tl.store(out, x * pair.first + pair.second + nested_pair[0][1])

    x, y, out = np.array([2], np.int32), np.array([3], np.int32), np.zeros(1, np.int32)
    tessera.interpret(kernel)[(1,)]((x, y), Pair(10, 4), ((1, 1000), None), out)
    assert out[0] == 1054


def test_pointers_loaded_from_memory() -> None:
    @tessera.jit
    def kernel(table, out, n):
        for i in range(n):
            source = tl.load(table + i).to(tl.pointer_type(tl.int32))
            tl.store(out + i, tl.load(source))

    arrays = [np.array([10 * i], np.int32) for i in range(4)]
    table = np.array([array.ctypes.data for array in arrays], np.int64)
    out = np.zeros(4, np.int32)
    tessera.interpret(kernel)[(1,)](table, out, 4)
    assert out.tolist() == [0, 10, 20, 30]


def test_sorting() -> None:
    @tessera.jit
    def kernel(x_ptr, sorted_ptr, order_ptr, top_ptr, where_ptr):
        i = tl.arange(0, 16)
        x = tl.load(x_ptr + i)
        tl.store(sorted_ptr + i, tl.sort(x))
        tl.store(order_ptr + i, tl.argsort(x, descending=True))
        top, where = tl.topk(x, 4, return_indices=True)
        tl.store(top_ptr + tl.arange(0, 4), top)
        tl.store(where_ptr + tl.arange(0, 4), where)

    x = np.random.default_rng(3).permutation(16).astype(np.float32)
    x[5] = np.nan
    outs = [np.zeros(16, np.float32), np.zeros(16, np.int32)]
    outs += [np.zeros(4, np.float32), np.zeros(4, np.int32)]
    tessera.interpret(kernel)[(1,)](x, *outs)
    np.testing.assert_array_equal(outs[0], np.sort(x))
    np.testing.assert_array_equal(x[outs[1]], np.sort(x)[::-1])
    np.testing.assert_array_equal(outs[2], np.sort(x)[::-1][:4])
    np.testing.assert_array_equal(x[outs[3]], outs[2])


@tessera.jit
def collatz(x):
    steps = 0
    while x > 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    return steps


def test_map_of_a_function_with_control_flow() -> None:
    @tessera.jit
    def kernel(out):
        i = tl.arange(0, 32)
        tl.store(out + i, tl.map_elementwise(collatz, i))

    out = np.zeros(32, np.int32)
    tessera.interpret(kernel)[(1,)](out)

    def python(x: int) -> int:
        return 0 if x <= 1 else 1 + python(x // 2 if x % 2 == 0 else 3 * x + 1)

    assert out.tolist() == [python(i) for i in range(32)]


def test_random_numbers_are_philox() -> None:
    @tessera.jit
    def kernel(out, uniform, seed):
        i = tl.arange(0, 8)
        tl.store(out + i, tl.randint(seed, i))
        tl.store(uniform + i, tl.rand(seed, i))

    def philox(key: tuple[int, int], counter: tuple[int, int, int, int]) -> int:
        (k0, k1), (c0, c1, c2, c3) = key, counter
        for _ in range(10):
            high0, low0 = divmod(c0 * 0xD2511F53, 1 << 32)
            high1, low1 = divmod(c2 * 0xCD9E8D57, 1 << 32)
            c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
            k0, k1 = (k0 + 0x9E3779B9) % (1 << 32), (k1 + 0xBB67AE85) % (1 << 32)
        return c0

    seed = (5 << 32) + 7
    out, uniform = np.zeros(8, np.uint32), np.zeros(8, np.float32)
    tessera.interpret(kernel)[(1,)](out, uniform, seed)
    assert out.tolist() == [philox((7, 5), (i, 0, 0, 0)) for i in range(8)]
    assert ((0 <= uniform) & (uniform < 1)).all()


def test_static_print(capsys: pytest.CaptureFixture[str]) -> None:
    @tessera.jit
    def kernel(p, n):
        for i in range(n):
            # The loop is visited twice, since it may be left; it prints once.
            tl.static_print("inside", n, 3, sep="|")
            if i == 3:
                break

    specs = [
        ValueSpec(_C.Type(1, tl.float32._core_id, False, ()), 0),
        ValueSpec(_C.Type(0, tl.int32._core_id, False, ()), 0),
    ]
    build_module(kernel, specs, None)
    assert capsys.readouterr().out == "inside|a tensor of int32|3\n"


def test_used_globals_and_dependencies() -> None:
    @tessera.jit
    def kernel(out):
        tl.store(out, add(1) * FACTOR + int(math.pi))

    built = build_module(kernel, [ValueSpec(_C.Type(1, tl.int32._core_id, False, ()), 0)], None)
    names = {check[1] for check in built.reads.hot() if len(check) == 3}
    assert names >= {"FACTOR", "pi", "add"}
    assert [fn.__name__ for fn in built.dependencies] == ["kernel", "add"]


def test_one_noinline_function_a_signature() -> None:
    @tessera.jit
    def kernel(p, n, m):
        x = outlined(n, n, 1)[0] + outlined(n, n + 5, 1)[0] + outlined(n, n, 2)[0]
        tl.store(p, x + outlined(m, m, 1)[0])

    specs = [ValueSpec(_C.Type(1, tl.int32._core_id, False, ()), 0)]
    specs += [ValueSpec(_C.Type(0, t._core_id, False, ()), 0) for t in (tl.int32, tl.int64)]
    ir = str(build_module(kernel, specs, None).module)
    assert ir.count("tile.func") == 4 and ir.count("tile.call") == 4


def test_error_in_a_helper_shows_the_chain_of_calls() -> None:
    @tessera.jit
    def kernel(p, n):
        add(p, scale=p)

    specs: list[Any] = [
        ValueSpec(_C.Type(1, tl.float32._core_id, False, ()), 0),
        ConstSpec(3),
    ]
    with pytest.raises(tessera.CompilationError) as caught:
        build_module(kernel, specs, None)
    error = caught.value
    assert [frame.function for frame in error.frames] == ["kernel", "add"]
    text = str(error)
    assert "return (a + b) * scale" in text and "`add` called from `kernel`" in text
    assert error.__cause__ is None and error.__suppress_context__


@tessera.jit
def doubled(x, of: tl.constexpr):
    return x + of


def test_annotated_parameters_take_what_is_known_at_run_time() -> None:
    """Nobody need mean by `constexpr` more than that it stays what it is; what does need a
    constant says so."""

    @tessera.jit
    def kernel(out, n):
        i = tl.arange(0, 4)
        tl.store(out + i, doubled(i, n) + doubled(i, i))

    out = np.zeros(4, np.int32)
    tessera.interpret(kernel)[(1,)](out, 100)
    assert out.tolist() == [100, 103, 106, 109]

    @tessera.jit
    def shaped(n: tl.constexpr):
        return tl.arange(0, n)

    @tessera.jit
    def wrong(out, n):
        tl.store(out + shaped(n), 1)

    with pytest.raises(tessera.CompilationError, match="E019.*must be a constant"):
        tessera.interpret(wrong)[(1,)](out, 4)


@tessera.jit
def multiple_of(x, n):
    return x * n


def test_hints_that_stand_alone() -> None:
    @tessera.jit
    def kernel(p_ptr, out, n, BLOCK: tl.constexpr):
        tl.multiple_of(BLOCK, 16)
        multiple_of(n, 3)
        p = tl.load(p_ptr).to(tl.pointer_type(tl.float32))
        for _ in range(n):
            tl.multiple_of(p, 16)
            tl.store(out + tl.arange(0, BLOCK), tl.load(p + tl.arange(0, BLOCK)))
            p += BLOCK

    signature = "*i64, *fp32, i32, 64"
    ir = tessera.compile(kernel, signature).asm["tile"]
    assert ir.count("tile.hint") == 1
    # The loop goes on from what the hint is about.
    carried = ir[ir.index("tile.hint") :].split(" ")[1]
    assert re.search(rf"iter_args\({re.escape(carried)} =", ir)


def test_hints_that_stand_alone_where_they_are_not_always() -> None:
    @tessera.jit
    def kernel(x_ptr, out, n):
        i = tl.arange(0, 4) * n
        if n > 3:
            tl.multiple_of(i, 4)
        tl.store(out + tl.arange(0, 4), tl.load(x_ptr + i))

    x, out = np.arange(16, dtype=np.float32), np.zeros(4, np.float32)
    for n in (3, 4):
        tessera.interpret(kernel)[(1,)](x, out, n)
        assert out.tolist() == [0, n, 2 * n, 3 * n]


def test_annotations_for_readers_mean_nothing() -> None:
    """What is not misspelt is for people and type checkers, as an object or as text."""
    source = """
import typing
from typing import Optional
import numpy as np

class Held:
    pass

@tessera.jit
def helper(x: "np.ndarray", n: object, *rest: "Held") -> "Tensor":
    y: Held = x + n
    z: "Optional[int]" = y
    w: typing.Optional[np.ndarray] = z
    v: unknown.Name[3] = w
    u: list[NotThere] = v
    return u

@tessera.jit
def kernel(x: np.ndarray, n: Optional[int], m: "torch.Tensor", k: "int | None",
           b: typing.List[int], c: "Tensor", d: "list[int]", e: "Union[int, float]"):
    tl.store(x, helper(n, m, k, b) + c + d + e)
"""
    for future in ("", "from __future__ import annotations"):
        text = f"{future}\nimport tessera\nimport tessera.language as tl\n{source}"
        file = f"<annotated {len(future)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        namespace: dict[str, Any] = {"__name__": "annotated"}
        exec(compile(text, file, "exec"), namespace)
        out = np.zeros(1, np.int32)
        tessera.interpret(namespace["kernel"])[(1,)](out, 5, 6, 7, 1, 2, 3, 4)
        assert out[0] == 5 + 6 + 2 + 3 + 4


def test_a_helper_of_a_script(tmp_path: Path) -> None:
    """Python calls a script `__main__`; what it defines is no function of the host's."""
    script = tmp_path / "script.py"
    script.write_text("""
import numpy as np
import tessera
import tessera.language as tl

def helper(x):
    return x

@tessera.jit
def kernel(out):
    tl.store(out, helper(3))

try:
    tessera.interpret(kernel)[(1,)](np.zeros(1, np.int32))
except tessera.CompilationError as error:
    print(error.id, error.fix)
""")
    found = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert found.stdout.startswith("E016 decorate `helper` with @jit"), found.stdout + found.stderr


def test_functions_of_python_on_constants() -> None:
    @tessera.jit
    def kernel(out, n, BLOCK: tl.constexpr, SHAPE: tl.constexpr):
        log2e: tl.constexpr = math.log2(math.e)
        steps: tl.constexpr = int(math.log2(BLOCK))
        whole, rest = divmod(BLOCK, 3)
        tl.store(out, log2e)
        for i in tl.static_range(steps):
            tl.store(out + 1 + i, pow(2, i) + n)
        tl.store(out + 5, math.gcd(12, 18) + math.isqrt(BLOCK) * 10 + sum(SHAPE) * 100)
        tl.store(out + 6, whole * 100 + rest)
        tl.static_assert(math.frexp(8.0)[1] == 4 and math.inf > 1 and all(SHAPE))
        tl.store(out + 7, round(2.6) + math.prod(SHAPE))

    for run in (kernel, tessera.interpret(kernel)):
        out = np.zeros(8, np.float64)
        run[(1,)](out, 7, 16, (2, 3))
        want = [math.log2(math.e), 8, 9, 11, 15, 546, 501, 9]
        assert np.allclose(out, np.array(want, np.float64), rtol=1e-7)


def test_functions_of_numpy_on_constants() -> None:
    @tessera.jit
    def kernel(out, KIND: tl.constexpr):
        n: tl.constexpr = np.int64(2) ** 3
        x = tl.arange(0, n)
        tl.store(out, tl.max(tl.where(x < 3, x.to(tl.float32), np.finfo(np.float32).min)))
        tl.store(out + 1, np.iinfo("int16").max + np.iinfo(np.uint8).min)
        tl.store(out + 2, np.log2(n) + np.prod((2, 3)))
        tl.store(out + 3, np.finfo(tl.float16).eps)
        if np.result_type(KIND, np.int8) == np.int16:
            tl.store(out + 4, np.dtype(KIND).itemsize)
        for i in tl.static_range(int(np.ceil(2.5))):
            tl.store(out + 5 + i, np.maximum(i, 1))
        tl.store(out + 8, np.finfo(out.dtype.element_ty).max)
        tl.static_assert(np.finfo(np.float64).dtype == np.float64)

    for run in (kernel, tessera.interpret(kernel)):
        out = np.zeros(9, np.float64)
        run[(1,)](out, "uint8")
        want = [2, 32767, 9, 2.0**-10, 1, 1, 1, 2, np.finfo(np.float64).max]
        assert out.tolist() == want


def test_functions_of_torch_on_constants() -> None:
    torch = pytest.importorskip("torch")

    @tessera.jit
    def kernel(out, KIND: tl.constexpr):
        wide: tl.constexpr = torch.promote_types(torch.float16, torch.bfloat16)
        tl.store(out, torch.finfo(KIND).max - torch.finfo(wide).eps)
        tl.store(out + 1, torch.iinfo(torch.int8).min)
        if n_is_even(out):
            tl.store(out + 2, torch.finfo(tl.bfloat16).tiny)
        if torch.finfo(torch.float32).dtype == "float32" and torch.can_cast(torch.int8, KIND):
            tl.store(out + 3, torch.float64.itemsize)

    @tessera.jit
    def n_is_even(out):
        return tl.load(out + 3) == 0

    for run in (kernel, tessera.interpret(kernel)):
        out = np.zeros(4, np.float64)
        run[(1,)](out, torch.float16)
        assert out.tolist() == [65504 - 2.0**-23, -128, 2.0**-126, 8]


def test_what_gives_no_constant_is_refused() -> None:
    @tessera.jit
    def an_array(out):
        x = np.sqrt((1.0, 2.0))

    @tessera.jit
    def a_complex_number(out):
        x = np.complex64(1)

    @tessera.jit
    def with_state(out):
        x = np.random.rand()

    @tessera.jit
    def of_what_is_loaded(out):
        x = np.log2(tl.load(out))

    @tessera.jit
    def a_type_of_what_is_loaded(out):
        x = np.float32(tl.load(out))

    @tessera.jit
    def of_a_wrong_type(out):
        x = np.finfo("int8")

    for kernel, id, fix in [
        (an_array, "E016", "numbers, strings or types"),
        (a_complex_number, "E016", "numbers, strings or types"),
        (with_state, "E015", "use tl.rand"),
        (of_what_is_loaded, "E015", "use tl.log2"),
        (a_type_of_what_is_loaded, "E015", "use tl.float32"),
        (of_a_wrong_type, "E016", "correct its arguments"),
    ]:
        with pytest.raises(tessera.CompilationError) as caught:
            kernel[(1,)](np.zeros(1, np.float32))
        assert caught.value.id == id and fix in caught.value.fix


def test_another_function_of_numpy_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    @tessera.jit
    def kernel(out):
        tl.store(out, np.prod((2, 3)))

    out = np.zeros(1, np.int32)
    for _ in range(2):
        kernel[(1,)](out)
        assert out[0] == 6
    monkeypatch.setattr(np, "prod", np.max)
    kernel[(1,)](out)
    assert out[0] == 3
    monkeypatch.setattr(np, "prod", lambda numbers: 7)  # of which it is not known what it reads
    with pytest.raises(tessera.CompilationError, match="E016"):
        kernel[(1,)](out)
    monkeypatch.undo()
    kernel[(1,)](out)
    assert out[0] == 6


def test_functions_of_python_on_what_is_known_at_run_time(tmp_path: Path) -> None:
    @tessera.jit
    def one_of_two(out, n, B: tl.constexpr):
        tl.store(out, math.gcd(B, n))

    @tessera.jit
    def in_a_tuple(out, n, B: tl.constexpr):
        tl.store(out, sum((B, n)))

    @tessera.jit
    def specialised(out, n, B: tl.constexpr):
        tl.store(out, math.sqrt(n))

    @tessera.jit
    def out_of_its_domain(out, n, B: tl.constexpr):
        tl.store(out, math.log(B - 16))

    for kernel, id, fix in [
        (one_of_two, "E015", "use an operation"),
        (in_a_tuple, "E015", "use tl.sum"),
        (specialised, "E015", "use tl.sqrt"),
        (out_of_its_domain, "E016", "correct its arguments"),
    ]:
        with pytest.raises(tessera.CompilationError) as caught:
            kernel[(1,)](np.zeros(1, np.float32), 1, 16)
        assert caught.value.id == id and fix in caught.value.fix


@tessera.jit
def helped(out, n):
    for i in range(n):
        tl.store(out + i, add(i, scale=2) + divmod_of(i, 3)[1])


def test_what_has_visited_a_function_goes_with_the_visit():
    """Walkers and their parts hold each other, and what scopes have is not left to the collector."""

    def walkers() -> int:
        return sum(isinstance(one, (FunctionWalker, Part)) for one in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = walkers()
        kernel = tessera.compile(helped, "*i32, i32")
        assert kernel.name == "helped" and walkers() == before
    finally:
        gc.enable()
