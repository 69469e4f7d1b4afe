# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of a launch or a compilation, besides the kernel's own arguments."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from typing import TYPE_CHECKING, Any, Mapping, Optional

from tessera.errors import LaunchError
from tessera.locks import CachedProperty
from tessera.machine.devices import MAX_REGISTERS, MAX_WARPS, architecture
from tessera.settings import settings
from tessera.wording import closest, shown

if TYPE_CHECKING:
    from tessera import _C

# Options of GPU launches which have nothing to act on here (kernels that pass them still run),
# and those that a launch alone looks at.
_WITHOUT_EFFECT_ON_CODE = (
    "num_threads",
    "stream",
    "launch_cooperative_grid",
    "launch_pdl",
    "ptx_options",
    "ptx_version",
    "instrumentation_mode",
    "waves_per_eu",
    "matrix_instr_nonkdim",
    "kpack",
)

# The checks of `debug`, unless one of these is False.
_SANITIZERS = ("sanitize_overflow", "sanitize_accesses", "sanitize_promises")

# Those that only one target looks at.
_OF_CPU = ("cpu", "features", "cpu_row")
_OF_CUDA = (
    "arch",
    "num_warps",
    "num_ctas",
    "num_stages",
    "short_loops",
    "maxnreg",
    "enable_reflect_ftz",
    "extern_libs",
)


@dataclasses.dataclass(frozen=True)
class CompileOptions:
    """The options of one compilation. Unknown names and values out of range are errors."""

    num_warps: int = 4
    """How many warps a block of a GPU has: 1, 2, 4, 8, 16 or 32; where much would be spilled there
    are more. Without effect on a CPU."""
    num_stages: int = 3
    """How many tiles a loop with dots may load ahead on a GPU. Without effect on a CPU."""
    num_ctas: int = 1
    """How many blocks, a cluster, compute a program together on a GPU: 1, 2, 4 or 8; more than 1
    from sm_90 on. Tiles of dots are divided among them, and what all of them multiply is copied to
    all of them at once; where tiles are too small for that, a loop that sums up dots is divided along K. With
    1 there are more where far too much would be spilled, and in launches of few programs (`split_k`). Without
    effect on a CPU."""
    split_k: Optional[bool] = None
    """Split a loop that accumulates dots along K among the blocks of a cluster. With `num_ctas`
    above 1, True prefers this to partitioning tiles, and False forbids it. With 1, unless it is
    False, a launch of few programs may have clusters that split sums, or two blocks that partition
    tiles. That depends on the grid and the GPU, and so do the last bits of the sums. Without effect
    on a CPU and with `deterministic`."""
    short_loops: bool = False
    """Compile for loops of one or two iterations on a GPU: loops that load have fewer loads in flight, and
    more programs share a multiprocessor. A launch chooses such a variant itself, unless `split_k` is False.
    Any launch is right. Without effect on a CPU."""
    maxnreg: Optional[int] = None
    """How many registers a thread may have on a GPU, up to 255; None leaves it to the compiler."""
    launch_cooperative_grid: bool = False
    """Accepted for kernels written for Triton, without effect."""
    launch_pdl: bool = False
    """Accepted for kernels written for Triton, without effect: where it pays, launches begin before
    the kernel ahead of them has ended anyway."""
    extern_libs: Any = None
    """Files of LLVM IR by the name that `extern_elementwise` has for them, as {name: path}; of
    "libdevice" too. Held as pairs."""
    ptx_options: Optional[str] = None
    """This and `ptx_version` are accepted, without effect."""
    ptx_version: Optional[int] = None
    """See `ptx_options`."""
    enable_reflect_ftz: bool = True
    """Allow `exp` and `exp2` of float32 to give 0 for results below 2^-126, on GPUs."""
    instrumentation_mode: str = ""
    """Accepted, without effect."""
    waves_per_eu: int = 0
    """This, `matrix_instr_nonkdim` and `kpack` are for AMD's GPUs. They are accepted, without effect,
    since lists of configurations for machines of several kinds have them."""
    matrix_instr_nonkdim: int = 0
    """See `waves_per_eu`."""
    kpack: int = 1
    """See `waves_per_eu`."""
    enable_fp_fusion: bool = True
    """Allow one fused multiply-add for `a * b + c`, which rounds once."""
    sanitize_overflow: bool = True
    """Make overflow of `+`, `-` and `*` of integers an error, if `debug` is on."""
    sanitize_accesses: bool = True
    """Make accesses outside of arrays an error, on a CPU, if `debug` is on."""
    sanitize_promises: bool = True
    """Make a broken `multiple_of`, `max_contiguous` or `max_constancy` an error, if `debug` is on."""
    debug: bool = False
    """Compile `device_assert` and checks of integers in and, on a CPU, checks of every access and
    offset. The default is `TESSERA_DEBUG`."""
    deterministic: bool = False
    """Compute the same bits on every target, as far as docs/Status.md says. The default is
    `TESSERA_DETERMINISTIC`."""
    num_threads: int = 0
    """How many threads run a launch on a CPU; 0 for one a core. `TESSERA_NUM_THREADS` says it where
    the option is not given."""
    tune: str = "lite"
    """How long LLVM optimises code for a CPU: "lite", or "max", which compiles more slowly."""
    target: str = "auto"
    """"cpu", "cuda", or "auto": where the arrays are, and the CPU where there are none."""
    cpu: str = "host"
    """The CPU to compile for, by LLVM's name, such as "x86-64-v3"; "host" for this one. On any
    machine, "aarch64" or "aarch64:neoverse-n1" for one of that architecture. `TESSERA_CPU` says it
    where the option is not given."""
    features: str = ""
    """Changes to that CPU's features, such as "-avx512f"."""
    cpu_row: str = ""
    """Figures in the place of those in the CPU's row, as `tools/bench machine --store` writes them:
    "znver4:bits=256". `TESSERA_CPU_ROW` names a file of them for this CPU. They change the speed of
    code, so `deterministic` ignores them."""
    arch: str = ""
    """The GPU to compile for, such as "sm_90a"; empty for the one of the launch."""
    tensor_maps: bool = True
    """Allow conditions on launches: tensor maps of arrays, for GPUs with TMA, and sizes and grids small
    enough for indices not to wrap. A kernel compiled without it accepts any arguments."""
    stream: Any = None
    """The stream of a launch on a GPU; None for the current one of the arrays' framework."""

    def __post_init__(self) -> None:
        warps = self.num_warps
        if not _is_integer(warps) or warps not in (1, 2, 4, 8, 16, 32):
            raise LaunchError(
                "E053", f"num_warps is {shown(warps)}", f"use a power of two from 1 to {MAX_WARPS}"
            )
        if not _is_integer(self.num_stages) or self.num_stages < 0:
            raise LaunchError("E053", f"num_stages is {shown(self.num_stages)}", "use 0 or more")
        if not _is_integer(self.num_ctas) or self.num_ctas not in (1, 2, 4, 8):
            larger = self.num_ctas == 16
            raise LaunchError(
                "E053",
                f"num_ctas is {shown(self.num_ctas)}"
                + (", and not every GPU has clusters of that size" if larger else ""),
                "use 1, 2, 4 or 8",
            )
        if not _is_integer(self.num_threads) or not 0 <= self.num_threads < 1 << 16:
            raise LaunchError(
                "E053", f"num_threads is {shown(self.num_threads)}", "use 0 (all cores) to 65535"
            )
        if self.target not in ("auto", "cpu", "cuda"):
            raise LaunchError(
                "E053",
                f"there is no target {shown(self.target)}",
                "use 'cpu', 'cuda' or the name of a GPU architecture such as 'sm_90a'",
            )
        registers = self.maxnreg
        if registers is not None and not (
            _is_integer(registers) and 1 <= registers <= MAX_REGISTERS
        ):
            raise LaunchError(
                "E053", f"maxnreg is {shown(registers)}", f"use 1 to {MAX_REGISTERS}, or None"
            )
        if self.tune not in ("lite", "max"):
            raise LaunchError("E053", f"tune is {shown(self.tune)}", "use 'lite' or 'max'")
        for name in ("cpu", "features", "cpu_row", "arch"):
            if not isinstance(getattr(self, name), str):
                raise LaunchError("E053", f"{name} is {shown(getattr(self, name))}", "use a string")
        object.__setattr__(self, "extern_libs", _library_pairs(self.extern_libs))
        flags = ("debug", "deterministic", "enable_fp_fusion", "tensor_maps", "enable_reflect_ftz")
        for name in flags + _SANITIZERS + ("short_loops", "split_k"):
            if name == "split_k" and self.split_k is None:
                continue
            if not isinstance(getattr(self, name), (bool, int)):
                raise LaunchError(
                    "E053", f"{name} is {shown(getattr(self, name))}", "use True or False"
                )

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "CompileOptions":
        """The options `given`, the rest from the settings or their defaults."""
        for name in given:
            if name not in OPTION_NAMES:
                raise unknown_option(name, ())
        values: dict[str, Any] = {
            "debug": settings.debug,
            "deterministic": settings.deterministic,
            "num_threads": settings.num_threads,
            "cpu": settings.cpu,
            "features": settings.features,
        }
        values.update(given)
        # The file describes this machine.
        if values["cpu"] == "host" and "cpu_row" not in values:
            values["cpu_row"] = settings.cpu_row
        # The name of an architecture is that of a target too: "sm_90a" or "cuda:90a".
        target = values.get("target")
        if isinstance(target, str) and target.startswith(("sm_", "cuda:")):
            version = target.removeprefix("cuda:").removeprefix("sm_")
            values.update(target="cuda", arch=f"sm_{version}")
        elif target is None:
            values["target"] = "cuda" if values.get("arch") else "auto"
        arch = values.get("arch")
        # Triton's tests spell it without the underscore.
        if isinstance(arch, str) and re.fullmatch(r"sm\d+[af]?", arch):
            values["arch"] = arch.replace("sm", "sm_")
        return cls(**values)

    def resolved(self, device: Optional[int]) -> "CompileOptions":
        """These options for one target: GPU `device`, or the CPU (None)."""
        known = self._resolved
        if device not in known:
            if device is None:
                known[device] = dataclasses.replace(self, target="cpu", arch="")
            else:
                arch = self.arch or architecture(device)
                known[device] = dataclasses.replace(self, target="cuda", arch=arch)
        return known[device]

    @CachedProperty
    def _resolved(self) -> "dict[Optional[int], CompileOptions]":
        return {}

    def core_json(self, **more: Any) -> str:
        """The options of tsr_compile, which need a definite target. `more` is added to them."""
        core: dict[str, Any] = {
            "target": self.target,
            "deterministic": bool(self.deterministic),
            "debug": self.checks_accesses,
            "fp_fusion": bool(self.enable_fp_fusion),
            "tune": self.tune,
            "tensor_maps": bool(self.tensor_maps),
        }
        if self.target == "cuda":
            from tessera.compiler.toolchain import find_libdevice, find_ptxas

            core.update(
                arch=self.arch,
                num_warps=self.num_warps,
                num_ctas=self.num_ctas,
                num_stages=self.num_stages,
                max_registers=self.maxnreg,
                flush_results=bool(self.enable_reflect_ftz),
                ptxas=find_ptxas(),
                libdevice=self.libdevice or find_libdevice(),
                ptxas_timeout=settings.ptxas_timeout,
            )
            if settings.strict_schedules:
                core["strict_schedules"] = True
            if self.short_loops:
                core["short_loops"] = True
            if self.num_ctas > 1 and self.split_k is not None:
                core["split_k"] = bool(self.split_k)
        else:
            core.update(cpu=self.cpu, features=self.features, num_threads=self.num_threads)
            if self.cpu_row:
                core["cpu_row"] = self.cpu_row
        core.update(more)
        return json.dumps(core, sort_keys=True)

    @property
    def may_be_divided(self) -> bool:
        """True if a launch may choose how many blocks a program has."""
        return self.split_k is None or bool(self.split_k)

    def for_variant(self, variant: "_C.Variant") -> CompileOptions:
        """The options of a variant of the kernel (include/tessera/Compiler/KernelFamily.h)."""
        return dataclasses.replace(self, **_VARIANTS[variant.name])

    @property
    def checks_accesses(self) -> bool:
        """True if launches on a CPU pass the arrays' memory, to check accesses against."""
        return bool(self.debug and self.sanitize_accesses)

    @property
    def libdevice(self) -> str:
        """The libdevice that `extern_libs` has; empty for the one installed."""
        return str(dict(self.extern_libs).get("libdevice", ""))

    @CachedProperty
    def key(self) -> tuple[Any, ...]:
        """Equal for options that give the same code."""
        unseen = _WITHOUT_EFFECT_ON_CODE + (_OF_CPU if self.target == "cuda" else _OF_CUDA)
        if self.deterministic:
            unseen += ("cpu_row",)
        if not self.debug:
            unseen += _SANITIZERS
        if self.target != "cuda" or self.num_ctas == 1:
            # Then a launch alone looks at it.
            unseen += ("split_k",)
        return tuple((name, value) for name, value in self.as_dict.items() if name not in unseen)

    @CachedProperty
    def as_dict(self) -> dict[str, Any]:
        """The options by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


_VARIANTS: dict[str, dict[str, Any]] = {
    "USUAL": {},
    "UNLIMITED": {"tensor_maps": False},
    "SPLIT_2": {"num_ctas": 2, "split_k": True},
    "SPLIT_4": {"num_ctas": 4, "split_k": True},
    "SPLIT_8": {"num_ctas": 8, "split_k": True},
    "PAIR_OF_TILES": {"num_ctas": 2, "split_k": False},
    "SHORT_LOOPS": {"short_loops": True},
}
"""What the options of a variant have in the place of the kernel's own, by `_C.Variant`."""

OPTION_NAMES = tuple(field.name for field in dataclasses.fields(CompileOptions))


def unknown_option(name: str, parameters: tuple[str, ...]) -> LaunchError:
    """The error for a keyword that is neither an option nor one of a kernel's parameters."""
    near = closest(name, OPTION_NAMES + parameters)
    if near:
        fix = f"did you mean `{near}`?"
    elif parameters:
        fix = f"the parameters are {', '.join(parameters)}"
    else:
        fix = f"the options are {', '.join(OPTION_NAMES)}"
    return LaunchError("E051", f"unknown keyword argument `{name}`", fix)


def _library_pairs(given: Any) -> tuple[tuple[str, str], ...]:
    """{name: path}, or such pairs, in the order of the names."""
    try:
        pairs = dict(given or ()).items()
        return tuple(sorted((name, os.fspath(path)) for name, path in pairs))
    except (TypeError, ValueError):
        raise LaunchError(
            "E053", f"extern_libs is {given!r}", "use a dict of names and paths of files"
        ) from None


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
