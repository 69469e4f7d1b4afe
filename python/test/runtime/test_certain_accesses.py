# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""First launches that leave an array for certain warn before they run (E088), others do not."""

from __future__ import annotations

import warnings
from typing import Any, Callable

import numpy as np
import pytest

import tessera
import tessera.language as tl

Launch = Callable[..., Any]


@pytest.fixture
def launch() -> Launch:
    """Launches a kernel, compiled anew; returns the texts of warnings. What would leave an array
    is not run."""

    def run(fn: Any, grid: Any, *args: Any, **options: Any) -> list[str]:
        kernel = tessera.jit(fn)
        with warnings.catch_warnings():
            warnings.simplefilter("error", tessera.MemoryAccessWarning)
            try:
                kernel[grid](*args, **options)
            except tessera.MemoryAccessWarning as warning:
                return [str(warning)]
        return []

    return run


def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i))


def copy_with_mask(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def store_rows(x_ptr, rows, columns, stride, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    tl.store(x_ptr + i[:, None] * stride + j[None, :], 1, mask=(j < columns)[None, :])


def add_up(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, n, BLOCK):
        acc += tl.load(x_ptr + k + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.program_id(0), tl.sum(acc))


def add_up_by_pointer(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    p = x_ptr + tl.arange(0, BLOCK)
    for _ in range(tl.cdiv(n, BLOCK)):
        acc += tl.load(p)
        p += BLOCK
    tl.store(out_ptr + tl.program_id(0), tl.sum(acc))


def in_groups(x_ptr, rows, columns, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    first = pid // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    row = first + pid % (GROUP * columns) % height
    column = pid % (GROUP * columns) // height
    tl.store(x_ptr + (row * columns + column) * BLOCK + tl.arange(0, BLOCK), 1)


def backwards(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + 99 - (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), 1)


def counted(x_ptr, BLOCK: tl.constexpr):
    tl.atomic_add(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 1)


def zeros(count: int, dtype: str = "f4") -> np.ndarray:
    return np.zeros(count, dtype)


def test_a_missing_mask(launch):
    (text,) = launch(copy, (8,), zeros(1000), zeros(1000), 1000, BLOCK=128)
    assert text.startswith(
        "E088: load of element 1023 of `x_ptr`, whose memory holds elements 0 to 999, in program "
        "(7, 0, 0) of kernel 'copy': the load has no mask\nfix: give it a mask, as `mask=i < n`"
    )
    (text,) = launch(copy, (8,), zeros(1024), zeros(1000), 1000, BLOCK=128)
    assert "store of element 1023 of `out_ptr`" in text


@pytest.mark.parametrize(
    "kernel, grid, arguments, options, what",
    [
        (copy_with_mask, (8,), (zeros(1000), zeros(1024), 1024), {"BLOCK": 128}, "load of element 1023"),
        (store_rows, (2, 2), (zeros(100 * 32), 100, 32, 32), {"BM": 64, "BN": 16}, "element 4095"),
        (add_up, (1,), (zeros(1000), zeros(1), 1000), {"BLOCK": 64}, "load of element 1023"),
        (add_up_by_pointer, (1,), (zeros(1000), zeros(1), 1000), {"BLOCK": 64}, "element 1023"),
        (add_up, (3,), (zeros(1024), zeros(2), 1024), {"BLOCK": 64}, "store of element 2"),
        (in_groups, (15,), (zeros(14 * 16), 5, 3), {"GROUP": 2, "BLOCK": 16}, "element 239"),
        (backwards, (4,), (zeros(100),), {"BLOCK": 32}, "element -28"),
        (counted, (2,), (zeros(100, "i4"),), {"BLOCK": 64}, "atomic of element 127"),
        (copy, (1,), (zeros(0), zeros(64), 0), {"BLOCK": 64}, "which has none"),
    ],
)  # fmt: skip
def test_what_leaves_an_array(launch, kernel, grid, arguments, options, what):
    (text,) = launch(kernel, grid, *arguments, **options)
    assert what in text
    assert ("does not exclude it" in text) == (kernel in (copy_with_mask, store_rows))


@pytest.mark.parametrize(
    "kernel, grid, arguments, options",
    [
        (copy, (8,), (zeros(1024), zeros(1024), 1000), {"BLOCK": 128}),
        (copy_with_mask, (8,), (zeros(1000), zeros(1000), 1000), {"BLOCK": 128}),
        (store_rows, (2, 2), (zeros(128 * 32), 128, 32, 32), {"BM": 64, "BN": 16}),
        (add_up, (1,), (zeros(1024), zeros(1), 1024), {"BLOCK": 64}),
        (add_up, (1,), (zeros(1), zeros(1), 0), {"BLOCK": 64}),  # a loop that does not run
        (add_up_by_pointer, (1,), (zeros(1), zeros(1), 0), {"BLOCK": 64}),
        (in_groups, (15,), (zeros(15 * 16), 5, 3), {"GROUP": 2, "BLOCK": 16}),
        (backwards, (2,), (zeros(100),), {"BLOCK": 32}),
        (copy, (0,), (zeros(10), zeros(10), 10), {"BLOCK": 128}),
    ],
)
def test_what_stays_inside(launch, kernel, grid, arguments, options):
    assert launch(kernel, grid, *arguments, **options) == []


def test_a_view_has_the_memory_of_its_array(launch):
    whole = zeros(1024)
    assert launch(copy, (7,), whole[128:900], zeros(1024), 0, BLOCK=128) == []
    (text,) = launch(copy, (8,), whole[128:], zeros(1024), 0, BLOCK=128)
    assert "element 1023 of `x_ptr`, whose memory holds elements -128 to 895" in text


def test_memory_that_may_be_larger_is_not_judged(launch):
    buffer = bytearray(4 * 1024)
    part = np.frombuffer(memoryview(buffer)[: 4 * 1000], "f4")
    assert launch(copy, (8,), part, zeros(1024), 0, BLOCK=128) == []


def test_what_may_not_be_accessed_is_not_judged(launch):
    def under_a_condition(x_ptr, n, BLOCK: tl.constexpr):
        if tl.program_id(0) < n:
            tl.store(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 1)

    def after_a_return(x_ptr, n, BLOCK: tl.constexpr):
        if tl.program_id(0) >= n:
            return
        tl.store(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 1)

    def in_a_loop(x_ptr, n, BLOCK: tl.constexpr):
        k = 0
        while k < n:
            tl.store(x_ptr + k * BLOCK + tl.arange(0, BLOCK), 1)
            k += 1

    def by_another_mask(x_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x_ptr + i, 1, mask=(i < n * BLOCK) & (i % 2 == 0))

    for kernel in (under_a_condition, after_a_return, in_a_loop, by_another_mask):
        assert launch(kernel, (3,), zeros(128), 2, BLOCK=64) == [], kernel.__name__


def test_where_memory_says_is_not_judged(launch):
    def there(x_ptr, where_ptr, BLOCK: tl.constexpr):
        first = tl.load(where_ptr + tl.program_id(0))
        tl.store(x_ptr + first + tl.arange(0, BLOCK), 1)

    assert launch(there, (3,), zeros(64), zeros(3, "i4"), BLOCK=64) == []


def test_indices_that_wrap_are_not_judged(launch):
    def far(x_ptr, a, b):
        tl.store(x_ptr + tl.program_id(0) * (a * b), 1)  # in 32 bits, this is element 0

    def narrow(x_ptr):
        i = (tl.arange(0, 8).to(tl.int8) * 64).to(tl.int32)  # 0, 64, -128, -64, and again
        tl.store(x_ptr + i + 128, 1)

    assert launch(far, (2,), zeros(1), 1 << 16, 1 << 16) == []
    x = zeros(193)
    assert launch(narrow, (1,), x) == []
    assert x.sum() == 4


def test_the_first_launch_alone_is_looked_at(monkeypatch):
    from tessera.runtime import launching

    looked: list[Any] = []
    check = launching._check_accesses
    monkeypatch.setattr(
        launching, "_check_accesses", lambda *args: (looked.append(args), check(*args))
    )
    kernel, x = tessera.jit(copy), zeros(1024)
    for count in (1000, 1000, 1008):
        kernel[(8,)](x, zeros(1024), count, BLOCK=128)
    assert len(looked) == 2  # 1008 is divisible by 16, and has a kernel of its own


def test_the_place_is_the_kernels():
    # What is read beyond the end is what malloc has rounded up to.
    with pytest.warns(tessera.MemoryAccessWarning) as shown:
        tessera.jit(copy)[(1,)](zeros(127), zeros(128), 0, BLOCK=128)
    (item,) = shown
    assert (item.filename, item.lineno) == (__file__, copy.__code__.co_firstlineno + 2)


def test_checked_kernels_say_it_themselves(launch):
    with pytest.raises(tessera.MemoryAccessError):
        launch(copy, (8,), zeros(1000), zeros(1000), 1000, BLOCK=128, debug=True)


def test_tensors_of_torch(launch):
    torch = pytest.importorskip("torch")
    (text,) = launch(copy, (8,), torch.zeros(1000), torch.zeros(1024), 1000, BLOCK=128)
    assert "element 1023 of `x_ptr`, whose memory holds elements 0 to 999" in text
    matrix = torch.zeros(2, 1024)
    assert launch(copy, (8,), matrix[0], matrix[1], 1000, BLOCK=128) == []
    shared = torch.from_numpy(zeros(1024)[:1000])
    assert launch(copy, (8,), shared, torch.zeros(1024), 1000, BLOCK=128) == []


def test_kernels_for_gpus_have_the_same(launch):
    found = []
    for target in ("cpu", "sm_90a"):
        compiled = tessera.compile(
            tessera.jit(copy_with_mask), "*fp32, *fp32, i32, 128", target=target
        )
        found.append(compiled.metadata["certain_accesses"])
    assert len(found[0]) == 2 and found[0] == found[1]
