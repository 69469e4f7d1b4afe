# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling: a kernel and the types of its arguments, or the file of a stage, to machine code.

`compile` is what users call ahead of time; `compile_specialised` is what a launch calls, and
the one that knows the disk cache. The cache has two levels. The first key stands for the
source and leads to the second; the second stands for the IR and leads to machine code. So a
new process skips the front-end, and an edit that leaves the IR as it was (a comment, a
moved function) still finds the machine code.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import time
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union

from tessera import _C
from tessera.compiler.artifacts import CUDA_STAGES, STAGES, CompiledKernel
from tessera.compiler.dependencies import pack_reads, replay, source_key
from tessera.compiler.options import CompileOptions
from tessera.compiler.toolchain import toolchain_key
from tessera.errors import (
    ArgumentError,
    LaunchError,
    SlowCompilationWarning,
    raise_core_error,
    warn_of_machine,
)
from tessera.frontend.signature import (
    ArgSpec,
    ConstSpec,
    JITCallable,
    Param,
    ValueSpec,
    kernel_name,
)
from tessera.language import types
from tessera.locks import load_front_end
from tessera.runtime.arrays import is_dtype, to_dtype
from tessera.runtime.cache import default_cache, digest
from tessera.runtime.hooks import hooks
from tessera.runtime.match import Parameters
from tessera.settings import settings
from tessera.wording import counted

if TYPE_CHECKING:
    from tessera.frontend.build import BuiltModule
    from tessera.frontend.reads import Reads

Signature = Union[str, Mapping[str, Any], Sequence[Any]]


def compile(
    source: Union[JITCallable, str, "os.PathLike[str]"],
    signature: Optional[Signature] = None,
    *,
    constexprs: Optional[Mapping[str, Any]] = None,
    **options: Any,
) -> CompiledKernel:
    """Compiles a kernel without launching it.

    `source` is a @jit function, or the path of a stage's file as TESSERA_DUMP_DIR writes it
    (`softmax.strips.mlir`), perhaps edited: compiling then goes on from that stage.

    `signature` has a type for each parameter, by name or in order: "*fp32", "i32", "fp32",
    a `tl` dtype, with ":16" behind it if the address or the integer is divisible by 16; for a
    constant, its value. A string lists them, as in "*fp32:16, *fp32:16, i32, 1024".
    `constexprs` has values of constants, too. `options` are those of a launch, and `target`:
    "cpu" (the default); "sm_90a" or another GPU architecture, for which no GPU is needed;
    "cuda" for the GPU that is there.

    Raises CompilationError for a mistake in the kernel, LaunchError for one in the options.
    """
    parsed = CompileOptions.of(options)
    parsed = parsed.resolved(0 if parsed.target == "cuda" else None)
    if isinstance(source, JITCallable):
        specs = parse_signature(source, signature or {}, constexprs or {})
        return compile_specs(source, specs, parsed)
    if signature is not None or constexprs is not None:
        raise ArgumentError("E051", "the file of a stage has its signature", "pass the file alone")
    return compile_file(os.fspath(source), parsed)


def compile_specs(
    fn: JITCallable, specs: Sequence[ArgSpec], options: CompileOptions
) -> CompiledKernel:
    """The kernel for arguments as `specs` describes them, with all of its stages."""
    check_traits = getattr(fn, "_all_traits", None)
    if check_traits is not None:  # of a kernel, and no function of the language
        check_traits()
    compiled = _compile(fn, specs, options, keep_stages=True)
    kernel = CompiledKernel(compiled, parameters=_named(fn, specs), fn=fn, options=options)
    hooks.tell_of_compilation(kernel, False)
    return kernel


def compile_specialised(
    fn: JITCallable, key: Sequence[Any], specs: Sequence[ArgSpec], options: CompileOptions
) -> tuple[CompiledKernel, Reads]:
    """The kernel for one specialisation, from the disk cache, or compiled and put there; and what
    it depends on."""
    # Each launch says how many threads and which stream it wants; a kernel must not remember
    # those of one.
    options = dataclasses.replace(options, num_threads=0, stream=None)

    parameters = _named(fn, specs)

    def rebuild() -> _C.Kernel:
        return _compile(fn, specs, options, keep_stages=True)

    start, storing = time.monotonic(), 0.0

    def made(kernel: _C.Kernel, cache_hit: bool, again: Any = rebuild) -> CompiledKernel:
        result = CompiledKernel(kernel, again, parameters, fn, options)
        hooks.tell_of_compilation(result, cache_hit, time.monotonic() - start, storing)
        return result

    if settings.dump_dir or settings.override_dir:
        # What is wanted is the compiling itself.
        built = build(fn, specs, options)
        kernel = _compile(fn, specs, options, built.module, keep_stages=True)
        return made(kernel, False, None), built.reads
    cache = default_cache()
    if cache.mode == "off":
        built = build(fn, specs, options)
        kernel = _compile(fn, specs, options, built.module)
        return made(kernel, False), built.reads

    common: tuple[Any, ...] = (cache.build_id, machine_key(options), options.key)
    if _has_lines(options):
        common += ("line_info",)
    name = kernel_name(fn, specs)  # which `repr` may have computed from anything
    source = source_key(fn, tuple(key), repr((common, name)))
    if source is not None and (link := cache.read(source)) is not None:
        reads = replay(fn, specs, link.get("reads", b""))
        if reads is not None and (found := _load(link.get("ir", b""))):
            return made(found, True), reads
    built = build(fn, specs, options)
    ir = digest("ir", repr(common), _canonical_text(built.module))
    found = _load(ir)
    was_there = found is not None
    if found is None:
        found = _compile(fn, specs, options, built.module)
        compiled = time.monotonic()
        cache.write(ir, {"kernel": found.serialize()})
        storing = time.monotonic() - compiled
    packed = pack_reads(built.reads) if source is not None else None
    if source is not None and packed is not None:
        cache.write(source, {"ir": ir, "reads": packed})
    return made(found, was_there), built.reads


def _named(fn: JITCallable, specs: Sequence[ArgSpec]) -> Parameters:
    return tuple((param.name, spec) for param, spec in zip(fn.params, specs))


def machine_key(options: CompileOptions) -> str:
    """Equal where the same options give the same machine code."""
    return toolchain_key(options.extern_libs) if options.target == "cuda" else _host_key()


def build(
    fn: JITCallable, specs: Sequence[ArgSpec], options: CompileOptions, interpreted: bool = False
) -> BuiltModule:
    """The tile IR of a kernel for arguments as `specs` describes them, and what it depends on.

    What is `interpreted` finds mistakes that compiled code finds with `debug` alone.
    """
    load_front_end()
    from tessera.frontend.build import build_module as front_end

    try:
        return front_end(fn, specs, options, interpreted)
    except _C.CoreError as error:
        raise_core_error(error)


def build_module(fn: JITCallable, specs: Sequence[ArgSpec], options: CompileOptions) -> _C.Module:
    """The tile IR of a kernel for arguments as `specs` describes them."""
    return build(fn, specs, options).module  # type: ignore[no-any-return]


def _load(key: bytes) -> Optional[_C.Kernel]:
    cache = default_cache()
    sections = cache.read(key) if len(key) == 32 else None
    if sections is None:
        return None
    try:
        return _C.Kernel.deserialize(sections["kernel"])
    except (KeyError, _C.CoreError):
        # Whole by its checksum, yet of no use to this compiler.
        cache.bad += 1
        cache.forget(key)
        return None


def _compile(
    fn: JITCallable,
    specs: Sequence[ArgSpec],
    options: CompileOptions,
    module: Optional[_C.Module] = None,
    *,
    keep_stages: bool = False,
) -> _C.Kernel:
    """The kernel of `module`, or where that is None, of the one that is built first."""
    start = time.monotonic()
    if module is None:
        module = build_module(fn, specs, options)
    limit = settings.slow_compile
    seconds = max(0.001, limit - (time.monotonic() - start)) if limit else 0.0
    core = _core_options(options, keep_stages)
    try:
        return _C.compile(module, core, seconds, lambda: _say_slow(fn.__name__, limit))
    except _C.CoreError as error:
        raise_core_error(error)


def _say_slow(name: str, seconds: int) -> None:
    text = (
        f"tessera: kernel `{name}` has been compiled for {seconds} s (E072); what takes so long is "
        "code that is unrolled: use `range` for `tl.static_range`, or smaller tiles. "
        "TESSERA_SLOW_COMPILE says when this is told, 0 never"
    )
    warn_of_machine(text, SlowCompilationWarning)


def _has_lines(options: CompileOptions) -> bool:
    """Whether code is made for debuggers to find the lines of."""
    return options.target == "cpu" and settings.symbols in ("gdb", "all")


def _core_options(options: CompileOptions, keep_stages: bool, **more: Any) -> str:
    if _has_lines(options):
        more["line_info"] = True
    return options.core_json(
        keep_stages=keep_stages,
        dump_dir=settings.dump_dir,
        override_dir=settings.override_dir,
        reproducer_dir=settings.reproducer_dir,
        **more,
    )


def compile_file(path: str, options: CompileOptions) -> CompiledKernel:
    """The kernel that the file of a stage gives, compiled from there on."""
    parts = os.path.basename(path).split(".")
    stage = parts[-2] if len(parts) > 2 else ""
    stages = (CUDA_STAGES if options.target == "cuda" else STAGES)[:-2]
    if stage not in stages:
        raise LaunchError(
            "E062",
            f"{path!r} is not named like the file of a stage that can be compiled from",
            "name it <kernel>.<stage>.<suffix>, the stage one of " + ", ".join(stages),
        )
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise LaunchError("E062", f"cannot read {path!r}: {why}", "name a file of IR") from None
    core = _core_options(options, True, start_stage=stage)
    try:
        kernel = _C.compile_text(text, path, core)
    except _C.CoreError as error:
        raise_core_error(error)
    return CompiledKernel(kernel, options=options)


def _canonical_text(module: _C.Module) -> str:
    """The IR, with places in the source only where compiled code can tell them."""
    text = str(module)
    if "tile.assert" in text or "tile.print" in text:
        return module.print(locations=True)
    return text


@functools.lru_cache(maxsize=None)
def _host_key() -> str:
    """The CPU that "host" stands for."""
    info = _C.host_info()
    return f"{info.get('cpu')} {info.get('features')}"


def parse_signature(
    fn: JITCallable, signature: Signature, constexprs: Mapping[str, Any]
) -> list[ArgSpec]:
    """What `compile` takes for the parameters of a kernel."""
    if isinstance(signature, str):
        signature = _split(signature)
    names = [param.name for param in fn.params]
    if not isinstance(signature, Mapping):
        if len(signature) > len(names):
            raise ArgumentError(
                "E051",
                f"the signature has {counted(len(signature), 'type')}, `{fn.__name__}` takes {len(names)}",
            )
        signature = dict(zip(names, map(_literal, signature)))
    for name in (*signature, *constexprs):
        if name not in names:
            raise ArgumentError(
                "E051",
                f"`{fn.__name__}` has no parameter `{name}`",
                f"the parameters are {', '.join(names)}",
            )
    return [_parse_param(fn, param, signature, constexprs) for param in fn.params]


def _split(text: str) -> list[Any]:
    """The items of a signature that is one text. Strings are in quotes, or spelled as they are
    where that is nothing else and has no comma."""
    items: list[Any] = []
    for part in re.findall(r"""(?:'[^']*'|"[^"]*"|[^,])+""", text):
        part = part.strip()
        quoted = len(part) >= 2 and part[0] in "'\"" and part.find(part[0], 1) == len(part) - 1
        if part:
            items.append(types.constexpr(part[1:-1]) if quoted else part)
    return items


def _literal(text: Any) -> Any:
    """A number in the text form of a signature."""
    if isinstance(text, str):
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
        return {"None": None, "True": True, "False": False}.get(text, text)
    return text


def _parse_param(
    fn: JITCallable, param: Param, signature: Mapping[str, Any], constexprs: Mapping[str, Any]
) -> ArgSpec:
    name = param.name
    if name in constexprs:
        return ConstSpec(constexprs[name])
    if name not in signature or (param.is_constexpr and signature[name] == "constexpr"):
        if param.has_default:
            return ConstSpec(types.unwrap(param.default))
        kind = "value of the constexpr" if param.is_constexpr else "type of the parameter"
        raise ArgumentError("E051", f"the signature of `{fn.__name__}` lacks the {kind} `{name}`")
    value = signature[name]
    if isinstance(value, types.constexpr):
        return ConstSpec(value.value)
    if param.is_constexpr or not isinstance(value, (str, types.dtype)):
        if not is_dtype(value):
            return ConstSpec(value)
        dtype = to_dtype(value)
        return ConstSpec(dtype) if param.is_constexpr else value_spec(dtype)
    text, _, divisibility = value.partition(":") if isinstance(value, str) else (value, "", "")
    try:
        dtype = types.str_to_ty(text) if isinstance(text, str) else text
        return value_spec(dtype, int(divisibility or 0))
    except ValueError as error:
        raise ArgumentError(
            "E051", f"the type of `{name}` is {value!r}: {error}", 'write "*fp32", "i32", "fp32:16"'
        ) from None


def value_spec(dtype: types.dtype, divisibility: int = 0) -> ValueSpec:
    """The spec of an argument of a type, for what is known to divide it."""
    if isinstance(dtype, types.pointer_type):
        type = _C.Type(types.KIND_POINTER, dtype.element_ty._core_id, dtype.is_const(), ())
    else:
        type = _C.Type(types.KIND_NUMBER, dtype._core_id, False, ())
    return ValueSpec(type, divisibility)
