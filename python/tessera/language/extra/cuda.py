# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of NVIDIA's GPUs. On other targets each is an error (E030) that names it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Optional, Union

from tessera.errors import UserMistake
from tessera.language.creation import cast
from tessera.language.program import inline_asm_elementwise
from tessera.language.target_info import capability
from tessera.language.tensor import Operand, active, builtin, tensor
from tessera.language.types import dtype, int32, int64
from tessera.machine.devices import WARP_SIZE

__all__ = [
    "convert_custom_float8_sm70",
    "convert_custom_float8_sm80",
    "gdc_launch_dependents",
    "gdc_wait",
    "globaltimer",
    "libdevice",
    "num_threads",
    "num_warps",
    "smid",
]


if TYPE_CHECKING:
    from tessera.language.extra import libdevice
else:

    def __getattr__(name: str) -> Any:
        if name == "libdevice":
            return importlib.import_module("tessera.language.extra.libdevice")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*__all__, *(name for name in globals() if name[:2] == "__")})


def _require(name: str, least: int = 0) -> None:
    """Raises UserMistake unless the kernel is compiled for a GPU of this capability."""
    options = active.session.options
    guard = f"cuda_capability_geq({least // 10}, {least % 10})" if least else "is_cuda()"
    if options.target != "cuda":
        raise UserMistake(
            "E030",
            f"`{name}` exists on NVIDIA GPUs only, and this kernel is compiled for the CPU",
            f"guard it: if tl.target_info.{guard}: ...",
        )
    if capability(options.arch) < least:
        raise UserMistake(
            "E030",
            f"`{name}` needs compute capability {least // 10}.{least % 10}, and this kernel is "
            f"compiled for {options.arch}",
            f"guard it: if tl.target_info.{guard}: ...",
        )


@builtin
def globaltimer() -> tensor:
    """The GPU's clock in nanoseconds, an int64 scalar. Source: Triton language 3.6/3.9.

    Example:
        start = tl.extra.cuda.globaltimer()  # on a GPU
        x = tl.sum(tl.arange(0, 128))
        nanoseconds = tl.extra.cuda.globaltimer() - start
        assert nanoseconds >= 0 and x == 8128
    """
    _require("globaltimer")
    return _read("mov.u64 $0, %globaltimer;", "=l", int64, False)


@builtin
def smid() -> tensor:
    """The number of the SM that the program runs on, an int32 scalar.

    Source: Triton language 3.6/3.9.

    Example:
        sm = tl.extra.cuda.smid()  # on a GPU
        assert sm >= 0 and sm.dtype == tl.int32
    """
    _require("smid")
    return _read("mov.u32 $0, %smid;", "=r", int32, True)


@builtin
def num_threads() -> int:
    """How many threads run the program, a constant. Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, tl.extra.cuda.num_threads())  # on a GPU: an element for each thread
        assert x.shape == (128,)  # 32 * num_warps, which is 4 unless the launch says otherwise
    """
    _require("num_threads")
    _keep_warps()
    return WARP_SIZE * int(active.session.options.num_warps)


@builtin
def num_warps() -> int:
    """How many warps run the program, a constant. Source: Triton language 3.6/3.9.

    Example:
        warps: tl.constexpr = tl.extra.cuda.num_warps()  # on a GPU
        assert warps == 4  # an option of the launch
        assert 32 * warps == tl.extra.cuda.num_threads()
    """
    _require("num_warps")
    _keep_warps()
    return int(active.session.options.num_warps)


@builtin
def gdc_wait() -> None:
    """Waits until the grids before this one are done and their stores can be seen (PDL).

    If the kernel was not launched as a dependent of another (`launch_pdl`), it returns at once.
    From compute capability 9.0 on. Source: Triton language 3.6/3.9.

    Example:
        i = tl.arange(0, 128)  # on a GPU: what needs nothing of the grids before
        tl.extra.cuda.gdc_wait()  # loads below see what these have stored
        assert tl.sum(i) == 8128
    """
    _require("gdc_wait", 90)
    _read("griddepcontrol.wait; mov.u32 $0, 0;", "=r", int32, False)


@builtin
def gdc_launch_dependents() -> None:
    """Lets the grid that depends on this one start (PDL).

    From compute capability 9.0 on. Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 128)  # on a GPU
        tl.extra.cuda.gdc_launch_dependents()  # the next grid may start with what needs no x
        assert tl.sum(x) == 8128
    """
    _require("gdc_launch_dependents", 90)
    _read("griddepcontrol.launch_dependents; mov.u32 $0, 0;", "=r", int32, False)


def _keep_warps() -> None:
    """A program with assembly gets no more warps than it is to have. This one is unused."""
    _read("mov.u32 $0, %ntid.x;", "=r", int32, True)


def _read(assembly: str, constraints: str, dtype: dtype, is_pure: bool) -> tensor:
    return inline_asm_elementwise(assembly, constraints, [], dtype, is_pure, 1)


@builtin
def convert_custom_float8_sm80(
    arg: Operand, dst_ty: Union[dtype, str], fp_downcast_rounding: Optional[str] = None
) -> tensor:
    """A cast from or to `float8e4b15`: the same as `cast`. Source: Triton language 3.6/3.9.

    Example:
        x = tl.full((128,), 1.5, tl.float16)  # on a GPU
        y = tl.extra.cuda.convert_custom_float8_sm80(x, tl.float8e4b15)
        assert y.dtype == tl.float8e4b15
        assert y.to(tl.float16) == 1.5
    """
    return cast(arg, dst_ty, fp_downcast_rounding)


@builtin
def convert_custom_float8_sm70(
    arg: Operand, dst_ty: Union[dtype, str], fp_downcast_rounding: Optional[str] = None
) -> tensor:
    """A cast from or to `float8e4b15`: the same as `cast`. Source: Triton language 3.6/3.9.

    Example:
        x = tl.full((128,), 1.5, tl.float16)  # on a GPU
        y = tl.extra.cuda.convert_custom_float8_sm70(x, tl.float8e4b15)
        assert tl.extra.cuda.convert_custom_float8_sm70(y, tl.float16) == 1.5
    """
    return cast(arg, dst_ty, fp_downcast_rounding)
