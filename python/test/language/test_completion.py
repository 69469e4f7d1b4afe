# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What completes on tensors, types, kernels and compiled kernels: what users may use, and names
that programs written for Triton read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.language.types import block_pointer_type, descriptor_type

TENSOR = """
    T abs advance argmax argmin argsort associative_scan atomic_add atomic_and atomic_cas atomic_load
    atomic_max atomic_min atomic_or atomic_poll atomic_store atomic_xchg atomic_xor broadcast_to cast
    cdiv ceil cos cumprod cumsum dtype erf exp exp2 expand_dims expm1 flip floor gather histogram item
    load log log1p log2 logical_and logical_or max min numel permute ravel reduce reduce_or reshape
    rsqrt scatter shape sigmoid sin softmax sort split sqrt sqrt_rn store sum tan tanh to topk trans
    type view xor_sum
"""

TYPE = """
    FP_TYPES OTHER_TYPES SINT_TYPES STANDARD_FP_TYPES UINT_TYPES exponent_bias fp_mantissa_width
    get_int_max_value get_int_min_value int_bitwidth int_signedness is_bf16 is_block is_bool is_const
    is_dtype is_floating is_fp16 is_fp32 is_fp64 is_fp8 is_fp8e4b15 is_fp8e4b8 is_fp8e4nv is_fp8e5
    is_fp8e5b16 is_int is_int1 is_int16 is_int32 is_int64 is_int8 is_int_signed is_int_unsigned is_ptr
    is_standard_floating is_tuple is_uint16 is_uint32 is_uint64 is_uint8 is_void itemsize kind name
    primitive_bitwidth scalar shape value with_element_ty
"""

KERNEL = """
    add_pre_run_hook arg_names cache_key compilations constexprs debug device_caches fn launch_metadata noinline
    params pre_run_hooks preload repr run signature src used_global_vals version warmup
"""

COMPILED = """
    asm estimate function hash launch launch_metadata metadata n_regs n_spills name num_stages num_warps remarks run shared src stages
"""

TUNED = """
    arg_names base_fn bench_time best_config cache cache_results configs configs_timings configs_top_k
    do_bench early_config_prune failures fn keys nargs num_reps num_warmups perf_model post_hook
    pre_hook prune_configs reset_to_zero restore_value run use_cuda_graph user_defined_post_hook
    user_defined_pre_hook warmup
"""


@tessera.jit
def fill(x_ptr: tl.tensor, BLOCK: tl.constexpr) -> None:
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)


CASES: list[tuple[Any, str]] = [
    (tl.tensor, TENSOR),
    (tl.float32, TYPE),
    (tl.pointer_type(tl.float32), TYPE + "element_ty address_space const"),
    (tl.block_type(tl.float32, [64]), TYPE + "element_ty get_block_shapes nbytes numel"),
    (block_pointer_type(tl.float32, [64]), TYPE + "element_ty block_shape"),
    (descriptor_type(tl.float32, [64]), TYPE + "element_ty block_shape"),
    (tl.constexpr(3), "type value"),
    (fill, KERNEL),
    (tessera.compile(fill, "*fp32, 16"), COMPILED),
    (tessera.autotune([tessera.Config({"BLOCK": 16})], key=[])(fill), TUNED),
    (tessera.heuristics({"BLOCK": lambda given: 16})(fill), "arg_names fn run values warmup"),
    (tl.math, " ".join(tl.math.__all__)),
]


@pytest.mark.parametrize("value, names", CASES, ids=lambda value: type(value).__name__)
def test_what_completes(value: Any, names: str) -> None:
    listed = [name for name in dir(value) if not name.startswith("_")]
    assert listed == sorted(names.split())


def test_a_tensor_in_a_kernel() -> None:
    seen: list[Any] = []

    @tl.builtin
    def look(x: Any) -> None:
        seen.append(([name for name in dir(x) if not name.startswith("_")], x.handle))

    @tessera.jit
    def kernel(x_ptr, LOOK: tl.constexpr):  # type: ignore[no-untyped-def]
        LOOK(x_ptr)

    x = np.zeros(4, np.float32)
    kernel[(1,)](x, LOOK=look)
    ((listed, handle),) = seen
    assert listed == sorted(TENSOR.split())
    # What code that was written for Triton reads is there all the same.
    assert type(handle).__name__ == "Value"


def test_an_editor_completes_the_same() -> None:
    """Of the text alone, without running it."""
    jedi = pytest.importorskip("jedi", reason="jedi is not installed")
    source = """
import tessera.language as tl

def kernel(x: tl.tensor):
    x.
"""
    names = {one.name for one in jedi.Script(source).complete(5, 6)}
    public = {name for name in names if not name.startswith("_")}
    assert public - {"mro"} == set(TENSOR.split())
