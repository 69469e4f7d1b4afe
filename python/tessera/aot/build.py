# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles kernels ahead of time and writes a library: objects or cubins, a header, a source, and
the runtime's sources (runtime/), which any C compiler builds with them.

A kernel is compiled once for each signature and each target. If only some signatures assume a
property of a parameter (divisible by 16, a constant), the property becomes a condition of the
dispatcher. The dispatcher calls the first specialisation whose conditions hold, so the one with the
most assumptions comes first.

A kernel is compiled for usual launches: indices do not wrap, arrays do not overlap, and TMA can
copy their boxes. If its code relies on any of that (limits.py), a second version without these
assumptions serves the launches that the first refuses.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple, Optional, Sequence, Union

from tessera.aot.limits import declare_limits
from tessera.aot.source import (
    C_TYPES,
    Function,
    Parameter,
    Variant,
    c_function,
    c_name,
    header,
    source,
)
from tessera.errors import ArgumentError
from tessera.frontend.signature import ConstSpec, KnownSpec, ValueSpec, spell
from tessera.machine.gpus import gpu_machines
from tessera.runtime.compiling import compile
from tessera.runtime.jit import JITFunction
from tessera.runtime.kernel import CompiledKernel
from tessera.runtime.signatures import parse_signature
from tessera.wording import shown

_HOST_ABI = 3
"""The attributes of compiled code for the CPU, as in runtime/tessera_aot.c."""

_RUNTIME = Path(__file__).parent / "runtime"
_CHECKOUT = Path(__file__).parents[3]
_OF_CORE = {
    "tessera_limits.h": _CHECKOUT / "include/tessera/Runtime/CUDA",
    "tessera_limits.c": _CHECKOUT / "lib/Runtime/CUDA",
}
"""Files of the runtime that the core is built of, too. A wheel has them beside the others."""

# The names for __builtin_cpu_supports of GCC and Clang.
_X86_FEATURES = (
    "sse4.2 popcnt avx avx2 fma bmi bmi2 avx512f avx512bw avx512cd avx512dq avx512vl avx512vnni "
    "avx512vbmi avx512vbmi2 avx512ifma avx512bitalg avx512vpopcntdq"
).split()
_X86_LEVELS = {
    "x86-64": 0,
    "x86-64-v2": 2,
    "x86-64-v3": 7,
    "x86-64-v4": 12,
}
"""How many of these a CPU of a level has."""

_AARCH64_FEATURES = {"dotprod": (16, 20), "sve": (16, 22), "i8mm": (26, 13), "bf16": (26, 14)}
"""The place where the kernel of Linux reports them."""


class Request(NamedTuple):
    """A kernel to be built."""

    kernel: JITFunction[Any, Any]
    signatures: tuple[str, ...]


class Library(NamedTuple):
    """The written files."""

    header: Path
    sources: tuple[Path, ...]
    """The compiler flags of a program."""
    objects: tuple[Path, ...]
    """Its linker flags."""
    cubins: tuple[Path, ...]


def build_library(
    name: str,
    requests: Sequence[Request],
    targets: Sequence[str],
    folder: Path,
    **options: Any,
) -> Library:
    """Compiles kernels for targets ("native", "x86-64-v3", "sm_90a", ...) and writes the library
    `name` into a folder.

    Raises ArgumentError (E079) for what cannot be built ahead of time.
    """
    if c_name(name) != name:
        raise ArgumentError("E079", f"`{name}` is reserved in C", "pass another --name")
    folder.mkdir(parents=True, exist_ok=True)
    on_gpu = {target in gpu_machines() for target in targets}
    if len(on_gpu) > 1:
        raise ArgumentError(
            "E079", "the targets are CPUs and GPUs", "build a library for each, with another --name"
        )
    for target in targets:
        if target.partition("_")[0] == "sm" and target not in gpu_machines():
            raise ArgumentError(
                "E079",
                f"there is no code for {target}",
                f"the GPUs are {', '.join(gpu_machines())}",
            )
    if len({target.partition(":")[0] == "aarch64" for target in targets}) > 1:
        raise ArgumentError(
            "E079",
            f"one program cannot use code for {' and '.join(targets)}",
            "build a library for each architecture",
        )
    functions: list[Function] = []
    objects: list[Path] = []
    cubins: list[Path] = []
    for request in requests:
        built: list[_Specialisation] = []
        pairs = ((target, signature) for target in targets for signature in request.signatures)
        for number, (target, signature) in enumerate(pairs):
            built += _specialise(request.kernel, signature, target, number, options)
        functions.append(_function(request.kernel, built))
        for each in built:
            stage = "cubin" if each.is_gpu else "object"
            path = folder / f"{each.symbol}.{'cubin' if each.is_gpu else 'o'}"
            path.write_bytes(each.compiled.stages[stage])
            (cubins if each.is_gpu else objects).append(path)
    names = [function.name for function in functions]
    names += [variant.symbol for function in functions for variant in function.variants]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ArgumentError(
            "E079", f"two kernels have the same name in C, {twice}", "rename one of the functions"
        )
    written = folder / f"{name}.h"
    written.write_text(header(name, functions))
    own = folder / f"{name}.c"
    own.write_text(source(name, functions))
    runtime = [
        "tessera_aot.c",
        "tessera_limits.c",
        *(["tessera_aot_cuda.c"] if True in on_gpu else []),
    ]
    for file in ["tessera_aot.h", "tessera_limits.h", *runtime]:
        shutil.copyfile(runtime_file(file), folder / file)
    sources = (own, *(folder / file for file in runtime))
    return Library(written, sources, tuple(objects), tuple(cubins))


def runtime_file(name: str) -> Path:
    """The place of a file of the runtime in this installation or checkout."""
    path = _RUNTIME / name
    return path if path.exists() or name not in _OF_CORE else _OF_CORE[name] / name


def _specialise(
    kernel: JITFunction[Any, Any],
    signature: str,
    target: str,
    number: int,
    options: dict[str, Any],
) -> list[_Specialisation]:
    """A kernel for a signature and a target: the code for usual launches, and that for the others
    where it is not the same."""
    symbol = f"{c_name(kernel.__name__)}_v{number}"
    without = {**options, "tensor_maps": False}
    if not options.get("tensor_maps", True):
        return [_Specialisation(kernel, signature, target, symbol, without)]
    usual = _Specialisation(kernel, signature, target, symbol, options)
    if usual.limits is None:
        return [usual]
    return [usual, _Specialisation(kernel, signature, target, f"{symbol}_any", without)]


class _Specialisation:
    """A kernel, compiled for a signature and a target."""

    def __init__(
        self,
        kernel: JITFunction[Any, Any],
        signature: str,
        target: str,
        symbol: str,
        options: dict[str, Any],
    ) -> None:
        self.target = target
        self.is_gpu = target in gpu_machines()
        self.symbol = symbol
        where: dict[str, Any] = (
            {"target": target}
            if self.is_gpu
            else {"target": "cpu", "cpu": "host" if target == "native" else target}
        )
        # The function by another name: symbols of all specialisations are linked together.
        named = JITFunction(kernel.fn, repr=lambda _: self.symbol, debug=kernel.debug)
        specs = parse_signature(named, signature, {})
        self.specs = dict(zip((param.name for param in named.params), specs))
        for parameter, spec in self.specs.items():
            if not isinstance(spec, (ValueSpec, ConstSpec, KnownSpec)):
                raise ArgumentError(
                    "E079",
                    f"parameter `{parameter}` of `{kernel.__name__}` is a tuple or a descriptor",
                    "pass its parts as separate parameters",
                )
        self.compiled: CompiledKernel = compile(named, signature, **{**options, **where})
        self.limits = self.compiled._kernel.limits()
        self._check(kernel.__name__)

    def _check(self, name: str) -> None:
        metadata = self.compiled.metadata
        reason = ""
        if not self.is_gpu and metadata["abi_version"] != _HOST_ABI:
            reason = f"has version {metadata['abi_version']} of the interface of compiled code"
        elif not self.is_gpu and metadata["waits_for_programs"]:
            reason = "has programs that wait for others, which take more threads than there may be"
        if len(metadata["arguments"]) > 256:
            reason = "has more than 256 arguments"
        if reason:
            raise ArgumentError(
                "E079", f"kernel `{name}` {reason}", "build it without, or launch it from Python"
            )

    def variant(self, parameters: Sequence[Parameter], first: str) -> Variant:
        """As the dispatcher sees it; `first` is the symbol of the first one for its target."""
        metadata = self.compiled.metadata
        conditions = []
        for parameter in parameters:
            spec, name = self.specs[parameter.name], c_name(parameter.name)
            if isinstance(spec, (ConstSpec, KnownSpec)):
                conditions.append(f"{name} == {int(spec.value)}")
            elif isinstance(spec, ValueSpec) and spec.divisibility:
                number = f"(uintptr_t){name}" if parameter.type.startswith("*") else name
                conditions.append(f"{number} % {spec.divisibility} == 0")
        slots = tuple(
            parameter.name
            for parameter in parameters
            if isinstance(self.specs[parameter.name], ValueSpec)
        )
        limits = () if self.limits is None else declare_limits(self.symbol, self.limits)
        if self.is_gpu:
            machine = gpu_machines()[self.target]
            facts = (
                ("capability", machine.capability),
                ("is_specific", int(machine.is_specific)),
                ("num_warps", int(metadata["num_warps"])),
                ("num_ctas", int(metadata["num_ctas"])),
                ("shared_bytes", int(metadata["shared_bytes"])),
                ("num_arguments", len(slots)),
                ("persistent_programs", int(metadata["persistent_programs"])),
                *_table_facts(metadata["argument_tables"]),
            )
            return Variant(
                self.symbol,
                tuple(conditions),
                f"tessera_gpu_fits(&{first})",
                self.target,
                slots,
                cubin=self.compiled.stages["cubin"],
                facts=facts,
                limits=tuple(limits),
            )
        return Variant(
            self.symbol,
            tuple(conditions),
            _cpu_test(
                metadata["cpu"], metadata["features"], "ldtilecfg" in self.compiled.stages["asm"]
            ),
            metadata["cpu"],
            slots,
            int(metadata["scratch_bytes"]),
            tuple(map(_site_text, metadata["sites"])),
            row=str(metadata["machine"]),
            limits=tuple(limits),
        )

    def stored(self) -> set[str]:
        """The parameters that are written through."""
        passed = [name for name, spec in self.specs.items() if isinstance(spec, ValueSpec)]
        return {passed[index] for index in self.compiled._stored_arguments()}


def _function(kernel: JITFunction[Any, Any], built: Sequence[_Specialisation]) -> Function:
    names = [param.name for param in kernel.params]
    parameters = []
    constants = []
    stored = set().union(*(each.stored() for each in built))
    for name in names:
        specs = [each.specs[name] for each in built]
        types = {spell(spec) for spec in specs if isinstance(spec, ValueSpec)}
        values = [spec.value for spec in specs if isinstance(spec, (ConstSpec, KnownSpec))]
        if not types and all(type(v) is type(values[0]) and v == values[0] for v in values):
            constants.append(f"{name} = {shown(values[0])}")
            continue
        if any(type(value) not in (int, bool) for value in values):
            raise ArgumentError(
                "E079",
                f"parameter `{name}` of `{kernel.__name__}` is {shown(values[0])} in one signature "
                "and not in another, and the dispatcher compares integers only",
                "build two libraries",
            )
        if len(types) > 1:
            raise ArgumentError(
                "E079",
                f"parameter `{name}` of `{kernel.__name__}` has several types: "
                f"{', '.join(sorted(types))}",
                "a C function has one type for each parameter: build two libraries",
            )
        type_name = types.pop() if types else "i64"
        if type_name.lstrip("*").removeprefix("k") not in C_TYPES or type_name.startswith("**"):
            raise ArgumentError(
                "E079",
                f"parameter `{name}` of `{kernel.__name__}` is of type {type_name}",
                "pass a number, or a pointer to numbers",
            )
        parameters.append(Parameter(name, type_name.replace("*k", "*"), name in stored))
    first: dict[str, str] = {}
    for each in built:
        first.setdefault(each.target, each.symbol)
    described = f"{kernel.__name__}, for {', '.join(dict.fromkeys(e.target for e in built))}"
    if constants:
        described += f"; {', '.join(constants)}"
    return Function(
        c_function(kernel.__name__),
        tuple(parameters),
        tuple(each.variant(parameters, first[each.target]) for each in built),
        described.replace("*/", "* /"),
    )


def _table_facts(tables: Sequence[int]) -> tuple[tuple[str, Union[int, str]], ...]:
    """The fields of tessera_gpu_kernel for tables of arguments."""
    if not tables:
        return ()
    listed = ", ".join(map(str, tables))
    return ("num_tables", len(tables)), ("tables", f"(const int32_t[]){{{listed}}}")


def _site_text(site: dict[str, Any]) -> str:
    """The message for a failing place of the source."""
    text = site["message"] or "assertion"
    if site["access"]:  # the extents of arrays are unknown, so it is the offset
        text = f"the offset of a {site['access']} does not fit its integers"
    return f"{site['file']}:{site['line']}: {text}" if site["file"] else text


def _cpu_test(cpu: str, features: str, uses_amx: bool) -> str:
    """A C expression that is true if the CPU has the features that the code needs, as far as C can
    query them. AMX also needs the system's permission."""
    if cpu.startswith("aarch64"):
        # By the bits that Linux passes to every program (AT_HWCAP, AT_HWCAP2).
        changes = features.split(",")
        return " && ".join(
            f"(tessera_hardware({which}) >> {bit} & 1)"
            for feature, (which, bit) in _AARCH64_FEATURES.items()
            if f"+{feature}" in changes
        )
    if cpu in _X86_LEVELS:
        wanted = _X86_FEATURES[: _X86_LEVELS[cpu]]
    else:
        on = {feature[1:] for feature in features.split(",") if feature.startswith("+")}
        wanted = [feature for feature in _X86_FEATURES if feature in on]
    tests = [f'__builtin_cpu_supports("{feature}")' for feature in wanted]
    return " && ".join(tests + ["tessera_may_use_amx()"] * uses_amx)


def load_kernel(place: str) -> JITFunction[Any, Any]:
    """The kernel of "file.py:name". Raises ArgumentError (E079) if there is none."""
    import runpy
    import sys

    file, colon, name = place.rpartition(":")
    path = Path(file)
    if not path.is_file() and Path(place).is_file():
        raise ArgumentError(
            "E079",
            f"{place!r} names no kernel of the file",
            f"write {place}:kernel, with the name of a function that has @tessera.jit",
        )
    if not colon or not path.is_file():
        raise ArgumentError("E079", f"there is no file {file or place!r}", "write file.py:kernel")
    sys.path.insert(0, str(path.resolve().parent))
    try:
        found: Optional[Any] = runpy.run_path(str(path), run_name=path.stem).get(name)
    finally:
        sys.path.pop(0)
    while found is not None and not isinstance(found, JITFunction) and hasattr(found, "fn"):
        found = found.fn  # what @autotune, @heuristics and @function are above
    if not isinstance(found, JITFunction):
        raise ArgumentError(
            "E079", f"{file} has no kernel `{name}`", "name a function with @tessera.jit"
        )
    return found
