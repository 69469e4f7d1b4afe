# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names and defaults of parameters are those of Triton 3.6, so that keywords mean the same."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

import tessera.language as tl

SIGNATURES = r"""
to_tensor(x)
program_id(axis)
num_programs(axis)
arange(start, end)
full(shape, value, dtype)
broadcast(input, other)
broadcast_to(input, *shape)
trans(input, *dims)
permute(input, *dims)
cat(input, other, can_reorder=False)
join(a, b)
split(a)
view(input, *shape)
item(input)
reshape(input, *shape, can_reorder=False)
expand_dims(input, axis)
cast(input, dtype, fp_downcast_rounding=None, bitcast=False)
dot(input, other, acc=None, input_precision=None, allow_tf32=None, max_num_imprecise_acc=None, out_dtype=float32)
dot_scaled(lhs, lhs_scale, lhs_format, rhs, rhs_scale, rhs_format, acc=None, fast_math=False, lhs_k_pack=True, rhs_k_pack=True, out_dtype=float32)
load(pointer, mask=None, other=None, boundary_check=(), padding_option='', cache_modifier='', eviction_policy='', volatile=False)
load_tensor_descriptor(desc, offsets)
store_tensor_descriptor(desc, offsets, value)
store(pointer, value, mask=None, boundary_check=(), cache_modifier='', eviction_policy='')
make_block_ptr(base, shape, strides, offsets, block_shape, order)
advance(base, offsets)
make_tensor_descriptor(base, shape, strides, block_shape, padding_option='zero')
atomic_cas(pointer, cmp, val, sem=None, scope=None, mask=None)
atomic_xchg(pointer, val, mask=None, sem=None, scope=None)
atomic_add(pointer, val, mask=None, sem=None, scope=None)
atomic_max(pointer, val, mask=None, sem=None, scope=None)
atomic_min(pointer, val, mask=None, sem=None, scope=None)
atomic_and(pointer, val, mask=None, sem=None, scope=None)
atomic_or(pointer, val, mask=None, sem=None, scope=None)
atomic_xor(pointer, val, mask=None, sem=None, scope=None)
where(condition, x, y)
add(x, y, sanitize_overflow=True)
sub(x, y, sanitize_overflow=True)
mul(x, y, sanitize_overflow=True)
minimum(x, y, propagate_nan='none')
maximum(x, y, propagate_nan='none')
clamp(x, min, max, propagate_nan='none')
reduce(input, axis, combine_fn, keep_dims=False)
associative_scan(input, axis, combine_fn, reverse=False)
histogram(input, num_bins, mask=None)
gather(src, index, axis)
map_elementwise(scalar_fn, *args, pack=1)
debug_barrier()
multiple_of(input, values)
max_contiguous(input, values)
max_constancy(input, values)
assume(cond)
static_print(*values, sep=' ', end='\n', file=None, flush=False)
static_assert(cond, msg='')
device_print(prefix, *args, hex=False)
device_assert(cond, msg='', mask=None)
inline_asm_elementwise(asm, constraints, args, dtype, is_pure, pack)
extern_elementwise(lib_name, lib_path, args, arg_type_symbol_dict, is_pure)
cdiv(x, div)
sigmoid(x)
softmax(x, dim=None, keep_dims=False, ieee_rounding=False)
ravel(x, can_reorder=False)
swizzle2d(i, j, size_i, size_j, size_g)
zeros(shape, dtype)
zeros_like(input)
max(input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False)
argmax(input, axis, tie_break_left=True, keep_dims=False)
min(input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False)
argmin(input, axis, tie_break_left=True, keep_dims=False)
sum(input, axis=None, keep_dims=False, dtype=None)
xor_sum(input, axis=None, keep_dims=False)
reduce_or(input, axis, keep_dims=False)
cumsum(input, axis=0, reverse=False, dtype=None)
cumprod(input, axis=0, reverse=False)
sort(x, dim=None, descending=False)
topk(x, k, dim=None)
flip(x, dim=None)
interleave(a, b)
math.umulhi(x, y)
math.exp(x)
math.exp2(x)
math.log(x)
math.log2(x)
math.cos(x)
math.sin(x)
math.sqrt(x)
math.sqrt_rn(x)
math.rsqrt(x)
math.abs(x)
math.fdiv(x, y, ieee_rounding=False)
math.div_rn(x, y)
math.erf(x)
math.floor(x)
math.ceil(x)
math.fma(x, y, z)
philox_impl(c0, c1, c2, c3, k0, k1, n_rounds=10)
philox(seed, c0, c1, c2, c3, n_rounds=10)
randint(seed, offset, n_rounds=10)
randint4x(seed, offset, n_rounds=10)
uint_to_uniform_float(x)
rand(seed, offset, n_rounds=10)
rand4x(seed, offsets, n_rounds=10)
pair_uniform_to_normal(u1, u2)
randn(seed, offset, n_rounds=10)
randn4x(seed, offset, n_rounds=10)
"""

OURS = {
    ("dot", "out_dtype"): None,  # 3.9: the accumulator's
    ("softmax", "keep_dims"): None,  # without effect
}
"""Defaults that are others here."""


def parameters(text: str) -> list[tuple[str, Any]]:
    """Name and default (EMPTY where there is none) of each parameter of a signature's text."""
    function = ast.parse(f"def _{text.partition('(')[2]}: pass".replace("def _", "def _(", 1)).body[
        0
    ]
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    defaults: list[Any] = [None] * (len(given.args) - len(given.defaults)) + given.defaults
    found = [(one.arg, default) for one, default in zip(given.args, defaults)]
    if given.vararg is not None:
        found.append(("*" + given.vararg.arg, None))
    found += [(one.arg, default) for one, default in zip(given.kwonlyargs, given.kw_defaults)]
    return [
        (name, inspect.Parameter.empty if default is None else eval(ast.unparse(default), vars(tl)))
        for name, default in found
    ]


@pytest.mark.parametrize("text", SIGNATURES.strip().split("\n"))
def test_signature(text: str) -> None:
    name = text.partition("(")[0]
    function: Any = tl
    for part in name.split("."):
        function = getattr(function, part)
    actual = inspect.signature(getattr(function, "fn", function)).parameters.values()
    ours = [
        ("*" * (one.kind is one.VAR_POSITIONAL) + one.name, one.default)
        for one in actual
        if not one.name.startswith("_")
    ]
    wanted = [
        (parameter, OURS.get((name, parameter), default)) for parameter, default in parameters(text)
    ]
    assert ours[: len(wanted)] == wanted
    # What there is besides may be left out.
    assert all(default is not inspect.Parameter.empty for _, default in ours[len(wanted) :])


def test_every_public_function_is_in_the_list() -> None:
    known = {text.partition("(")[0].rpartition(".")[2] for text in SIGNATURES.strip().split("\n")}
    later = {
        "acc_type", "aggregate_replace", "argsort", "atomic_load", "atomic_store", "builtin", "constexpr_function",
        "expect_zero", "get_int_dtype", "expm1", "extern", "log1p", "must_use_result", "squeeze", "str_to_ty", "tan",
        "tanh", "unsqueeze", "atomic_poll", "bitonic_merge",
    }  # fmt: skip
    public = {
        name
        for name in tl.__all__
        if inspect.isfunction(getattr(getattr(tl, name), "fn", getattr(tl, name)))
    }
    assert public - known - later == set()
