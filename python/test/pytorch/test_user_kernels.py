# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of users' own within compiled functions: what they give, and what torch is told that they
write to, for it copies whatever is written and read again."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import tessera
import tessera.language as tl

pytestmark = pytest.mark.usefixtures("fresh_compiler")

SCALE = tl.constexpr(3.0)


@tessera.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x + tl.load(y_ptr + at, mask=at < n), mask=at < n)


@tessera.constexpr_function
def half(n):
    return n // 2


@tessera.jit
def scaled(x):
    return x * SCALE + half(4)


@tessera.jit
def scale_in_place(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, scaled(tl.load(x_ptr + at, mask=at < n)), mask=at < n)


@tessera.jit
def count(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.atomic_add(bins_ptr + x, 1, mask=at < n)


@tessera.jit
def by_rows(x_ptr, out_ptr, rows, columns, FLAG: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    from_ptr, to_ptr = x_ptr, out_ptr
    for _ in range(rows):
        x = tl.load(from_ptr + at, mask=at < columns)
        if FLAG:
            tl.store(to_ptr + at, x + 1, mask=at < columns)
        from_ptr += columns
        to_ptr += columns


@tessera.jit
def either(x_ptr, y_ptr, which, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if which > 0:
        chosen = x_ptr
    else:
        chosen = y_ptr
    tl.store(chosen + at, 7.0)


@tessera.autotune([tessera.Config({"BLOCK": 64}), tessera.Config({"BLOCK": 256})], key=["n"])
@tessera.jit
def tuned(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) - 1, mask=at < n)


def written(kernel, **arguments) -> set[str]:
    """What torch takes a kernel to write to."""
    from torch._higher_order_ops import triton_kernel_wrap as wrap
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        given = {
            name: torch.empty(value) if isinstance(value, tuple) else value
            for name, value in arguments.items()
        }
    find = getattr(wrap, "identify_accessed_tensors", None)
    if find is None:  # torch 2.11
        return set(wrap.identify_mutated_tensors(kernel, given, {}))
    return {access.name for access in find(kernel, given, {}).read_writes.writes}


def test_what_is_written_is_found_in_the_ir(caplog) -> None:
    three = {"x_ptr": (8,), "y_ptr": (8,), "out_ptr": (8,), "n": 8, "BLOCK": 8}
    assert written(add, **three) == {"out_ptr"}
    assert written(scale_in_place, x_ptr=(8,), n=8, BLOCK=8) == {"x_ptr"}
    rows = {"x_ptr": (8,), "out_ptr": (8,), "rows": 2, "columns": 4, "BLOCK": 8}
    assert written(by_rows, **rows, FLAG=True) == {"out_ptr"}
    assert written(by_rows, **rows, FLAG=False) == set()
    assert written(either, x_ptr=(8,), y_ptr=(8,), which=1, BLOCK=8) == {"x_ptr", "y_ptr"}
    assert written(tuned, x_ptr=(8,), out_ptr=(8,), n=8) == {"out_ptr"}
    assert "assuming every input is mutated" not in caplog.text


def test_counts_are_written() -> None:
    def function(x):
        bins = torch.zeros(5, dtype=torch.int32)
        count[(tessera.cdiv(x.numel(), 64),)](x, bins, x.numel(), BLOCK=64)
        return bins * 2

    x = torch.randint(5, (300,), dtype=torch.int32)
    compiled = torch.compile(function, backend="tessera", fullgraph=True)
    assert compiled(x).equal(torch.bincount(x, minlength=5).int() * 2)


def sum_of_two(x, y):
    out = torch.empty_like(x)
    add[(tessera.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK=128)
    return out.relu() * 2


def sum_with_itself(x, y):
    add[(tessera.cdiv(x.numel(), 128),)](x, x, x, x.numel(), BLOCK=128)
    return x + y


def kept_and_scaled(x, y):
    scaled = x * 2
    kept = scaled + y
    scale_in_place[(tessera.cdiv(x.numel(), 64),)](scaled, x.numel(), BLOCK=64)
    return kept, scaled + kept


def with_a_grid_of_a_function(x, y):
    out = torch.zeros_like(x)
    tuned[lambda meta: (tessera.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out * y


FUNCTIONS = [sum_of_two, sum_with_itself, kept_and_scaled, with_a_grid_of_a_function]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_compiled_as_eagerly(function) -> None:
    x, y = torch.randn(1000), torch.randn(1000)
    compiled = torch.compile(function, backend="tessera", fullgraph=True)
    given, wanted = (x.clone(), y.clone()), (x.clone(), y.clone())
    torch.testing.assert_close(compiled(*given), function(*wanted))
    torch.testing.assert_close(given, wanted)


def test_operators_that_wrap_kernels_trace() -> None:
    @torch.library.triton_op("tessera_test::add", mutates_args={})
    def operator(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        torch.library.wrap_triton(add)[(tessera.cdiv(x.numel(), 64),)](
            x, y, out, x.numel(), BLOCK=64
        )
        return out

    x, y = torch.randn(200), torch.randn(200)
    compiled = torch.compile(lambda x, y: operator(x, y) + 1, backend="tessera", fullgraph=True)
    torch.testing.assert_close(compiled(x, y), x + y + 1)


def test_a_mistake_in_a_kernel_is_told() -> None:
    @tessera.jit
    def wrong(x_ptr, BLOCK: tl.constexpr):
        tl.store(x_ptr + tl.arange(0, BLOCK), undefined)  # noqa: F821

    def function(x):
        wrong[(1,)](x, BLOCK=16)
        return x + 1

    with pytest.raises(Exception, match=r"E012"):
        torch.compile(function, backend="tessera", fullgraph=True)(torch.zeros(16))
