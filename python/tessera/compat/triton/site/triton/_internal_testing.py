# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Queries of Triton's own tests about their machine, and arrays for these tests."""

from __future__ import annotations

import os
from typing import Any, Callable, Iterable, Optional

import numpy
import pytest
import torch

import triton
import triton.language as tl
from triton import knobs
from triton._utils import type_canonicalisation_dict
from triton.runtime.jit import TensorWrapper, reinterpret

int_dtypes = ["int8", "int16", "int32", "int64"]
uint_dtypes = ["uint8", "uint16", "uint32", "uint64"]
integral_dtypes = int_dtypes + uint_dtypes
float_dtypes = ["float16", "float32", "float64"]
float_dtypes_with_bfloat16 = float_dtypes + ["bfloat16"]
dtypes = integral_dtypes + float_dtypes
dtypes_with_bfloat16 = dtypes + ["bfloat16"]
torch_float8_dtypes = ["float8_e4m3fn", "float8_e5m2"]
torch_dtypes = ["bool", *int_dtypes, "uint8", *float_dtypes, "bfloat16"]
tma_dtypes = sorted(set(dtypes_with_bfloat16) - {"int64", "uint64", "float64"})


def is_interpreter() -> bool:
    """True if kernels run in the interpreter."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


def get_current_target() -> Any:
    """The GPUTarget that tests run on, None in the interpreter."""
    return None if is_interpreter() else triton.runtime.driver.active.get_current_target()


def is_cuda() -> bool:
    """True if that is an NVIDIA GPU."""
    target = get_current_target()
    return target is not None and target.backend == "cuda"


def _capability() -> int:
    return int(get_current_target().arch) if is_cuda() else 0


def is_ampere_or_newer() -> bool:
    """True for capability 8.0 or above."""
    return _capability() >= 80


def is_hopper_or_newer() -> bool:
    """True for capability 9.0 or above."""
    return _capability() >= 90


def is_hopper() -> bool:
    """True for capability 9.x."""
    return _capability() // 10 == 9


def is_blackwell() -> bool:
    """True for capability 10.x."""
    return _capability() // 10 == 10


def is_hopper_or_blackwell() -> bool:
    """True for capability 9.x or 10.x."""
    return _capability() // 10 in (9, 10)


def is_blackwell_ultra() -> bool:
    """True for capability 10.3."""
    return _capability() == 103


def is_sm12x() -> bool:
    """True for capability 12.x."""
    return _capability() // 10 == 12


def _never() -> bool:
    """True if it is that GPU of AMD's or Intel's: there are none here."""
    return False


is_hip = is_hip_cdna = is_hip_cdna2 = is_hip_cdna3 = is_hip_cdna4 = _never
is_hip_cdna3_or_newer = is_hip_rdna = is_rubin = is_compile_warmup = _never
is_hip_rdna3 = is_hip_rdna4 = is_hip_gfx11 = is_hip_gfx12 = is_hip_gfx1250 = is_xpu = _never


def get_hip_lds_size() -> int:
    """The shared memory of a GPU of AMD's."""
    return 1 << 16


def get_arch() -> str:
    """The architecture as text."""
    target = get_current_target()
    return "" if target is None else str(target.arch)


def numpy_random(
    shape: Any,
    dtype_str: str,
    rs: Optional[numpy.random.RandomState] = None,
    low: Optional[int] = None,
    high: Optional[int] = None,
) -> Any:
    """Random elements of a type, without zeros among integers, always the same unless `rs` is
    given. Elements of 8-bit floats come as bytes, of bfloat16 as rounded float32."""
    source = numpy.random.RandomState(17) if rs is None else rs
    if dtype_str in integral_dtypes:
        limits = numpy.iinfo(dtype_str)
        begin = limits.min if low is None else max(low, limits.min)
        end = limits.max if high is None else min(high, limits.max)
        values = source.randint(begin, end, shape, dtype=dtype_str)
        values[values == 0] = 1
        return values
    if "float8" in dtype_str:
        return source.randint(20, 40, shape, dtype="int8")
    if dtype_str in ("bool", "int1", "bool_"):
        return source.normal(0, 1, shape) > 0
    if dtype_str not in float_dtypes_with_bfloat16:
        raise RuntimeError(f"no such element type: {dtype_str}")
    values = source.normal(0, 1, shape)
    if dtype_str != "bfloat16":
        return values.astype(dtype_str)
    bits = values.astype("float32").view("uint32") & numpy.uint32(0xFFFF0000)
    return bits.view("float32")


def to_triton(x: Any, device: Any, dst_type: Optional[str] = None) -> Any:
    """The array as a tensor on `device`, seen as elements of `dst_type` if that is given."""
    name = x.dtype.name
    if name in uint_dtypes:
        # torch had no unsigned types but uint8.
        return reinterpret(torch.tensor(x.view(name[1:]), device=device), getattr(tl, name))
    tensor = torch.tensor(x, device=device)
    if dst_type and "float8" in dst_type:
        return reinterpret(tensor, getattr(tl, dst_type))
    if name == "float32" and dst_type == "bfloat16":
        return tensor.bfloat16()
    return tensor


def str_to_triton_dtype(x: str) -> Any:
    """The element type of a name."""
    return tl.str_to_ty(type_canonicalisation_dict[x])


def torch_dtype_name(dtype: Any) -> str:
    """The name that NumPy has for an element type."""
    if isinstance(dtype, tl.dtype):
        names = {short: name for name, short in type_canonicalisation_dict.items()}
        found = [
            name
            for name in dtypes_with_bfloat16
            if type_canonicalisation_dict[name] == type_canonicalisation_dict[dtype.name]
        ]
        return found[0] if found else names.get(dtype.name, dtype.name)
    if isinstance(dtype, torch.dtype):
        return str(dtype).removeprefix("torch.")
    raise TypeError(f"no element type of triton or torch: {type(dtype)}")


def to_numpy(x: Any) -> Any:
    """The elements as an array of NumPy; bfloat16 as float32."""
    if isinstance(x, TensorWrapper):
        return x.base.cpu().numpy().astype(torch_dtype_name(x.dtype))
    if not isinstance(x, torch.Tensor):
        raise ValueError(f"no tensor: {x}")
    return (x.float() if x.dtype is torch.bfloat16 else x).cpu().numpy()


def supports_tma(byval_only: bool = False) -> bool:
    """True if descriptors are at home there: on every target of Tessera's."""
    return True


def supports_ws() -> bool:
    """True if `warp_specialize` may be asked for: everywhere."""
    return True


def supports_block_scaling() -> bool:
    """True if the GPU multiplies scaled operands as they are."""
    return is_blackwell()


def supports_clc() -> bool:
    """True if the GPU cancels launches of clusters, which nothing here asks for."""
    return False


def tma_skip_msg(byval_only: bool = False) -> str:
    """Why a test of descriptors is skipped."""
    return "needs descriptors"


requires_clc = pytest.mark.skipif(not supports_clc(), reason="needs cancelled launches")
requires_tma = pytest.mark.skipif(not supports_tma(), reason=tma_skip_msg())


def default_alloc_fn(size: int, align: int, _: Any) -> Any:
    """Memory for a launch."""
    device = triton.runtime.driver.active.get_active_torch_device()
    return torch.empty(size, dtype=torch.int8, device=device)


def unwrap_tensor(t: Any) -> Any:
    """The tensor under a `TensorWrapper`."""
    return t.base if isinstance(t, TensorWrapper) else t


def _fresh_knobs_impl(
    skipped_attr: Optional[Iterable[str]] = None,
) -> "tuple[Callable[[], Any], Callable[[], None]]":
    """A function that has all knobs as without an environment, and one that puts them back."""
    skipped = set(skipped_attr or ())
    groups = {
        name: group
        for name, group in vars(knobs).items()
        if isinstance(group, knobs.base_knobs) and name not in skipped
    }
    keys = [knob.key for group in groups.values() for knob in group.knob_descriptors.values()]
    before = {key: os.environ.get(key) for key in keys}
    propagated = knobs.propagate_env

    def fresh() -> Any:
        for key in keys:
            os.environ.pop(key, None)
        for name, group in groups.items():
            setattr(knobs, name, group.copy().reset())
        knobs.propagate_env = True
        return knobs

    def put_back() -> None:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
        for name, group in groups.items():
            setattr(knobs, name, group)
        knobs.propagate_env = propagated

    return fresh, put_back


def __getattr__(name: str) -> Any:
    if name.startswith("is_hip_"):
        return _never
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
