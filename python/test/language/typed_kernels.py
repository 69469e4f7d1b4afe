# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels with annotations, in the ways that people write them; test_static_types.py has type
checkers read this file, and runs the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tessera
import tessera.language as tl
from tessera.language.extra import libdevice

if TYPE_CHECKING:
    from typing_extensions import assert_type

SCALE = tl.constexpr(2)


@tessera.jit
def largest_of_rows(
    x_ptr: tl.const, value_ptr: tl.tensor, index_ptr: tl.tensor, stride: tl.int64, columns: int,
    BLOCK: tl.constexpr = 64, KIND: tl.constexpr = "plain",
) -> None:  # fmt: skip
    """Constants with defaults, types of arguments, tuples of results, a constant variable."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    other: tl.constexpr = -float("inf") if KIND == "plain" else 0.0
    x = tl.load(x_ptr + row * stride + offsets, mask=offsets < columns, other=other)
    value, index = tl.max(x, axis=0, return_indices=True)
    tl.store(value_ptr + row, SCALE * value.to(tl.float32))
    tl.store(index_ptr + row, index)


@tessera.jit
def add_squares(total: tl.tensor, x: tl.tensor, N: tl.constexpr) -> tl.tensor:
    """A helper that takes numbers and constants where it says tensors."""
    for _ in tl.static_range(N):
        total += x * x
    return total


@tessera.jit
def sum_of_squares(x_ptr: tl.tensor, out_ptr: tl.tensor, n: tl.tensor, BLOCK: tl.constexpr) -> None:
    """Run-time loops, shapes, comparisons that are joined, calls of @jit functions."""
    total = tl.zeros((BLOCK,), tl.float32)
    for start in tl.range(0, n, BLOCK, num_stages=2):
        offsets = start + tl.arange(0, BLOCK)
        inside = (offsets >= 0) & (offsets < n)
        x = tl.load(x_ptr + offsets, mask=inside, other=0)
        total = add_squares(total, x, 1)
    for step in range(0, tl.cdiv(n, BLOCK)):
        total += tl.minimum(step, 0)
    pairs = total.reshape(2, BLOCK // 2)
    both = tl.sum(pairs, axis=0)[None, :]
    if not (BLOCK == 3):
        both = both.trans()
    tl.store(out_ptr, both.sum())


@tessera.jit
def copy_by_descriptor(x_ptr: tl.tensor, out_ptr: tl.tensor, ROWS: tl.constexpr) -> None:
    """Descriptors, their methods, and an atomic."""
    x = tl.make_tensor_descriptor(x_ptr, [ROWS, 16], [16, 1], [ROWS, 16])
    out = tl.make_tensor_descriptor(out_ptr, [ROWS, 16], [16, 1], [ROWS, 16])
    block = x.load([0, 0])
    out.store([0, 0], block.to(x.dtype))
    tl.atomic_add(out_ptr + tl.arange(0, 16), 1.0, sem="relaxed")


@tessera.aggregate
class Complex:
    """A number with two parts."""

    re: tl.tensor
    im: tl.tensor

    @tessera.jit
    def __mul__(self, other: Complex) -> Complex:
        return Complex(
            self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re
        )


@tessera.jit
def square_complex(re_ptr: tl.tensor, im_ptr: tl.tensor, N: tl.constexpr) -> None:
    """Aggregates and their operators."""
    offsets = tl.arange(0, N)
    z = Complex(tl.load(re_ptr + offsets), tl.load(im_ptr + offsets))
    z = z * z
    tl.store(re_ptr + offsets, z.re)
    tl.store(im_ptr + offsets, libdevice.copysign(tl.abs(z.im), z.im))


@tessera.autotune([tessera.Config({"BLOCK": 32}), tessera.Config({"BLOCK": 64})], key=["n"])
@tessera.heuristics({"EVEN": lambda args: args["n"] % 2 == 0})
@tessera.jit
def negate(x_ptr: tl.tensor, n: int, BLOCK: tl.constexpr, EVEN: tl.constexpr) -> None:
    """A tuned kernel."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, -tl.load(x_ptr + offsets, offsets < n), offsets < n)


@tessera.constexpr_function
def half(n: int) -> int:
    return n // 2


def launch(x: Any, out: Any) -> None:
    """Launches: arrays for tensors, numbers for constants, options, what comes back."""
    kernel = sum_of_squares[(1,)](x, out, x.shape[0], BLOCK=half(128), num_warps=4)
    assert "tile" in kernel.asm and kernel.n_spills >= 0
    assert isinstance(tessera.cdiv(x.shape[0], 64), int)


def what_checkers_say(x: tl.tensor, n: int, B: tl.constexpr) -> None:
    """Never run."""
    assert_type(x + 1, tl.tensor)
    assert_type(2.0 * x, tl.tensor)
    assert_type(x < 3, tl.tensor)
    assert_type(x == 3, tl.tensor)
    assert_type(x[:, None], tl.tensor)
    assert_type(tl.exp(x), tl.tensor)
    assert_type(x.exp(), tl.tensor)
    assert_type(tl.sum(x), tl.tensor)
    assert_type(x.sum(0), tl.tensor)
    assert_type(tl.max(x, 0, return_indices=True), tuple[tl.tensor, tl.tensor])
    assert_type(tl.split(x), tuple[tl.tensor, tl.tensor])
    assert_type(tl.cdiv(x, n), tl.tensor)
    assert_type(tl.cdiv(n, 3), int)
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.dtype, tl.dtype)
    assert_type(tl.float32.itemsize, int)
    assert_type(add_squares(x, 3, 2), tl.tensor)
    assert_type(half(3), int)
    assert_type(libdevice.acos(x), tl.tensor)
    assert_type(tl.reduce((x, x), 0, add_squares), tuple[tl.tensor, ...])
    assert_type(tl.load(x, mask=B), tl.tensor)
