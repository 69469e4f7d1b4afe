# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels written for the Triton language spell, and what it means here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from language.building import Build


def launch(kernel: Any, *args: Any, **options: Any) -> Any:
    """Runs a kernel on 16 floats that count up, compiled and interpreted."""
    results = []
    for run in (kernel, tessera.interpret(kernel)):
        x = np.arange(16, dtype=np.float32)
        run[(1,)](x, *args, **options)
        results.append(x)
    np.testing.assert_array_equal(*results)
    return results[0]


def test_types_and_values_of_constants(build: Build) -> None:
    for expression, value in {
        "B.type == tl.constexpr_type(64)": True,
        "isinstance(B.type, tl.constexpr_type)": True,
        "tl.float32.value": tl.float32, "None.type == tl.constexpr_type(None)": True,
        "(1, 2).value": (1, 2), "(1, (2, n)).type": None,
        "(1, 2).type == ((1, 2)).type": True, "(1, 2).type == (1, 3).type": False,
        "(n, 1).type == tl.tuple_type([tl.int32, tl.constexpr_type(1)])": True,
        "(1, (2, 3)).type == tl.constexpr_type((1, (2, 3)))": True,
        "tl.constexpr_type((1, 2)) == (1, 2.5).type": False,
        "tl.core.CONSTEXPR_0": 0, "tl.standard._log2(B)": 6,
        "tl.slice(1, 3).stop": 3, "(5, 6, 7)[tl.slice(1, None)]": (6, 7),
    }.items():  # fmt: skip
        found = build(expression, B=64).value
        assert value is None or found == value, expression


@tessera.jit
def choose(p, q):
    if q:
        tl.store(p, 7.0)
    if not q or p:
        tl.store(p + 1, 8.0)
    tl.store(p + 2, 9.0 if p and q else 10.0)


def test_a_pointer_is_true_unless_it_is_null() -> None:
    x = np.zeros(1, np.float32)
    assert list(launch(choose, x)[:3]) == [7, 8, 9]
    assert list(launch(choose, None)[:3]) == [0, 8, 10]


@tl.constexpr
def doubled(n):
    return tl.constexpr(n.value * 2)


@tl.constexpr
def wider(dtype):
    return tl.float32 if dtype.is_bf16() or dtype.value == tl.float16 else dtype


@tessera.jit
def constant_function(p):
    extent: tl.constexpr = doubled(4)
    T: tl.constexpr = wider(tl.float16)
    tl.static_assert(T == tl.float32 and wider(p.dtype.element_ty) == p.dtype.element_ty)
    tl.static_assert(
        tl.core.get_int_dtype(bitwidth=T.primitive_bitwidth, signed=False) == tl.uint32
    )
    tl.store(p + tl.arange(0, extent), 1.0)


def test_constexpr_on_a_function() -> None:
    assert launch(constant_function).sum() == 8 + sum(range(8, 16))


@tessera.jit
def annotated(p, n, N: tl.constexpr):
    end: tl.constexpr = N * n
    for i in range(end):
        tl.store(p + i, 100.0)


@tessera.jit
def needs_constant(p, n, N: tl.constexpr):
    end: tl.constexpr = N * n
    tl.store(p + tl.arange(0, end), 100.0)


def test_a_value_known_at_run_time_may_be_annotated() -> None:
    assert list(launch(annotated, 2, 3)) == [100] * 6 + list(range(6, 16))
    with pytest.raises(tessera.CompilationError) as caught:
        launch(needs_constant, 2, 4)
    assert caught.value.id == "E019"


@tessera.jit
def rounded(p, T: tl.constexpr):
    lanes = tl.arange(0, 16)
    x = tl.load(p + lanes).to(T.value, fp_downcast_rounding="rtz")
    tl.store(p + lanes, tl.cast(x, tl.float32, fp_downcast_rounding="rtne"))


def test_rounding_where_nothing_is_rounded(build: Build) -> None:
    assert list(launch(rounded, tl.float32)) == list(range(16))
    with pytest.raises(tessera.CompilationError, match="a rounding mode has no meaning"):
        build('f.to(tl.int32, fp_downcast_rounding="rtz")')


@tessera.jit
def declared(p):
    y: tl.constexpr
    x, y = 0, 1
    tl.static_assert(x.dtype == tl.int32)
    tl.static_assert(y.type == tl.constexpr_type(1))
    a: tl.constexpr
    a, b = ((0, 1), (2, 3)), 4
    assigned: tl.constexpr = ((0, 1), (2, 3))
    tl.static_assert(a == assigned and a.type == assigned.type)
    tl.static_assert(b.dtype == tl.int32)
    z: tl.constexpr
    if (z := next_one(10)) != 10:
        tl.static_assert(isinstance(z.type, tl.constexpr_type))
    tl.store(p, (w := 5) + w)


@tessera.constexpr_function
def next_one(n: int) -> int:
    return n + 1


def test_annotations_without_a_value() -> None:
    assert launch(declared)[0] == 10


@tessera.jit
def sign(x):
    if x < 0:
        return 1
    else:
        return 0


@tessera.jit
def sign_and(x):
    if x < 0:
        return 1, x
    return 0, x


@tessera.jit
def returned(p):
    a: tl.constexpr = sign(-1)
    tl.static_assert(a == 1 and a.type == tl.constexpr_type(1))
    b: tl.constexpr = sign_and(-1)
    tl.static_assert(b[0] == 1 and b[1] == -1)
    variable = -1
    tl.static_assert(sign(variable).type == tl.int32)
    c = sign_and(variable)
    tl.static_assert(c.type == tl.tuple_type([tl.int32, tl.int32]))
    tl.store(p, c[0] + c[1])


def test_constants_that_helpers_return() -> None:
    assert launch(returned)[0] == 0


@tessera.jit
def mixed(*args, scale=2, other: tl.constexpr):
    return args[0] * scale + args[1] + other


@tessera.jit
def spread(p, *rest, n, m: tl.constexpr = 3):
    values: tl.constexpr = [a * b for a, b in ((1, 2), (3, 4), (5, 6)) if a > 1 if b < 6]
    tl.static_assert(values == (12,))
    if 0 <= n < 100 <= rest[1]:
        tl.store(p, mixed(rest[0], rest[1], other=1) + n + m)


def test_star_arguments_and_keywords() -> None:
    assert launch(spread, 5, 600, n=10)[0] == 5 * 2 + 600 + 1 + 10 + 3
    assert launch(spread, 5, 6, n=10)[0] == 0


def test_string_annotations() -> None:
    @tessera.jit
    def kernel(p: "*fp32", n: "i64", m: "u8", f: "fp64", t: "tl.int16", B: "tl.constexpr"):  # noqa
        tl.static_assert(n.dtype == tl.int64 and m.dtype == tl.uint8)
        tl.static_assert(f.dtype == tl.float64 and t.dtype == tl.int16)
        tl.store(p + tl.arange(0, B), (n + m + f + t).to(tl.float32))

    assert launch(kernel, 1, 2, 3.5, 4, 8)[7] == 10.5


@tessera.jit
def unused_helper(x):
    return x + 1


@tessera.must_use_result("it changes nothing")
@tessera.jit
def pure(x):
    return x + 1


@tessera.must_use_result
@tessera.constexpr_function
def pure_constant():
    return 1


@tessera.aggregate
class Holder:
    x: tl.tensor

    @tessera.must_use_result
    @tessera.jit
    def plus(self, n):
        return self.x + n


def test_results_that_must_be_used(build: Build) -> None:
    ok = "unused_helper(n)", "x = pure(n)", "tl.store(p, pure(n) + pure_constant())"
    names = dict(unused_helper=unused_helper, pure=pure, pure_constant=pure_constant, Holder=Holder)

    def run(statement: str) -> None:
        build("n", statement, **names)

    for statement in ok:
        run(statement)
    block = "b = tl.make_block_ptr(p, (n,), (1,), (0,), (16,), (0,))\n"
    for statement, words in {
        "pure(n)": "The result of pure is not being used: it changes nothing",
        "pure_constant()": "The result of pure_constant is not being used",
        "h = Holder(n)\nh.plus(1)": "The result of h.plus is not being used",
        f"{block}tl.advance(b, (16,))": "The result of tl.advance is not being used",
        f"{block}b.advance((16,))": "The result of b.advance is not being used",
    }.items():
        with pytest.raises(tessera.CompilationError, match=words) as caught:
            run(statement)
        assert caught.value.id == "E073"


@tessera.jit
def extremes(p, a: tl.constexpr, b: tl.constexpr):
    tl.store(p, min(a, b))
    tl.store(p + 1, max(a, b))


def test_min_and_max_of_constants() -> None:
    assert list(launch(extremes, 3.0, -2.0)[:2]) == [-2, 3]
    for other in (float("nan"), -0.0):
        with pytest.raises(tessera.CompilationError, match="depends on their order") as caught:
            launch(extremes, 1.0, other)
        assert caught.value.id == "E029"


def test_tiles_of_many_dimensions() -> None:
    @tessera.jit
    def kernel(p):
        x = tl.load(p + tl.arange(0, 16))
        many = x.reshape((1, 2, 1, 2, 1, 2, 1, 2, 1, 1, 1, 1))
        folded = tl.sum(many.trans((7, 1, 2, 3, 4, 5, 6, 0, 8, 9, 10, 11)), 0)
        tl.store(p + tl.arange(0, 8), folded.reshape(8))

    x = np.arange(16, dtype=np.float32)
    assert list(launch(kernel)[:8]) == list(x.reshape(8, 2).sum(1))


def test_what_libraries_read_of_functions() -> None:
    assert sign.__globals__ is globals()
    param = spread.params[2]
    assert (param.name, param.num, param.do_not_specialize) == ("n", 2, False)


def test_identity_of_tensors(build: Build) -> None:
    assert build("(y is x, x is not y, n is n, n is m)", "x = 3", "y = x").value == (
        True, False, True, False,
    )  # fmt: skip
