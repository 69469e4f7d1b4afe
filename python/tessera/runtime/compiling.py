# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling to kernels that can be launched.

`compile` is what users call ahead of time; `compile_specialised` is what a launch calls.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Mapping, Optional, Sequence, Union

from tessera import _C
from tessera.compiler.compile import compile_stage, compile_whole, find_or_compile
from tessera.compiler.options import CompileOptions
from tessera.errors import ArgumentError, LaunchError
from tessera.frontend.reads import Reads
from tessera.frontend.signature import ArgSpec
from tessera.language.callables import JITCallable
from tessera.log import info
from tessera.runtime.frames import as_users_see
from tessera.runtime.hooks import hooks
from tessera.runtime.kernel import CompiledKernel
from tessera.runtime.match import Parameters
from tessera.runtime.signatures import Signature, parse_signature


@as_users_see
def compile(
    source: Union[JITCallable, str, "os.PathLike[str]"],
    signature: Optional[Signature] = None,
    *,
    constexprs: Optional[Mapping[str, Any]] = None,
    **options: Any,
) -> CompiledKernel:
    """Compiles a kernel without launching it.

    `source` is a @jit function, or the path of a stage's file that TESSERA_DUMP_DIR wrote
    (`softmax.strips.mlir`), perhaps edited. Compiling then continues from that stage.

    `signature` has a type for each parameter, by name or in order. A type is "*fp32", "i32", "fp32"
    or a `tl` dtype; a ":16" behind it means that the address or the integer is divisible by 16. A
    constant has its value instead of a type. A string lists them, as in "*fp32:16, *fp32:16, i32,
    1024". `constexprs` has values of constants, too. `options` are those of a launch. `target` is
    "cpu" (the default), "cuda" for this machine's GPU, or a GPU architecture such as "sm_90a",
    which needs no GPU.

    Raises CompilationError for a mistake in the kernel, LaunchError for one in the options.

    Example:
        import tessera
        import tessera.language as tl

        @tessera.jit
        def scale(x_ptr, factor, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            tl.store(x_ptr + i, factor * tl.load(x_ptr + i))

        for_avx2 = tessera.compile(scale, "*fp32:16, fp32, 64", cpu="x86-64-v3")
        assert "ymm" in for_avx2.asm["asm"]
        types = {"x_ptr": "*bf16", "factor": "fp32"}
        for_arm = tessera.compile(scale, types, constexprs={"BLOCK": 64}, cpu="aarch64")
        assert "aarch64" in for_arm.asm["llvmir"]
    """
    parsed = CompileOptions.of(options)
    try:
        parsed = parsed.resolved(0 if parsed.target == "cuda" else None)
    except LaunchError as error:
        if error.id != "E066":
            raise
        raise LaunchError(
            "E066",
            f'target="cuda" is the GPU that is there, and {error.message}',
            'name an architecture, for which no GPU is needed: target="sm_90a"',
        ) from None
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
    compiled = compile_whole(fn, specs, options)
    kernel = CompiledKernel(compiled, parameters=_named(fn, specs), fn=fn, options=options)
    hooks.tell_of_compilation(kernel, False)
    return kernel


def compile_specialised(
    fn: JITCallable, key: Sequence[Any], specs: Sequence[ArgSpec], options: CompileOptions
) -> tuple[CompiledKernel, Reads]:
    """The kernel for one specialisation, from the disk cache, or compiled and stored there; and the
    reads that it depends on."""
    # Threads and stream are chosen by each launch, so a kernel must not store those of one.
    options = dataclasses.replace(options, num_threads=0, stream=None)

    def rebuild() -> _C.Kernel:
        return compile_whole(fn, specs, options)

    found = find_or_compile(fn, key, specs, options)
    again = None if found.has_stages else rebuild
    kernel = CompiledKernel(found.kernel, again, _named(fn, specs), fn, options)
    how = "found in the cache" if found.was_cached else "compiled"
    info(
        "%s `%s` for %s in %.3f s", how, kernel.name, options.arch or options.target, found.seconds
    )
    hooks.tell_of_compilation(kernel, found.was_cached, found.seconds, found.storing)
    return kernel, found.reads


def compile_file(path: str, options: CompileOptions) -> CompiledKernel:
    """The kernel that the file of a stage gives, compiled from there on."""
    return CompiledKernel(compile_stage(path, options), options=options)


def _named(fn: JITCallable, specs: Sequence[ArgSpec]) -> Parameters:
    return tuple((param.name, spec) for param, spec in zip(fn.params, specs))
