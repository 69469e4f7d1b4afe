# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles a kernel for the types of its arguments, or the file of a stage, to machine code.

`find_or_compile` reads the disk cache, which has two levels. A key of the source leads to a key of
the IR, and that leads to machine code. So a new process skips the front-end, and an edit that does
not change the IR (a comment, a moved function) still finds the machine code.
"""

from __future__ import annotations

import functools
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Sequence

from tessera import _C
from tessera.compiler.cache import default_cache
from tessera.compiler.dependencies import is_as_written, pack_reads, replay, source_key
from tessera.compiler.options import CompileOptions
from tessera.compiler.stages import CUDA_STAGES, STAGES
from tessera.compiler.toolchain import toolchain_key
from tessera.digests import digest
from tessera.errors import (
    LaunchError,
    SlowCompilationWarning,
    raise_core_error,
    warn_of_machine,
)
from tessera.frontend.signature import ArgSpec, kernel_name
from tessera.language.callables import JITCallable
from tessera.locks import load_all
from tessera.settings import settings
from tessera.wording import shown_place

if TYPE_CHECKING:
    from tessera.frontend.build import BuiltModule
    from tessera.frontend.reads import Reads

_MANY_ITERATIONS = 16
"""So many that are unrolled may well be why a kernel takes long to compile."""

_FRONT_END = ("linecache", "tessera.frontend.build")


class Found(NamedTuple):
    """The machine code for one specialisation of a kernel."""

    kernel: _C.Kernel
    reads: Reads
    """Its dependencies."""
    was_cached: bool
    seconds: float
    """That it took to find or to compile it."""
    storing: float = 0.0
    """Those of them that it took to put it into the cache."""
    has_stages: bool = False
    """True if the IR of each stage is there, too."""


def find_or_compile(
    fn: JITCallable, key: Sequence[Any], specs: Sequence[ArgSpec], options: CompileOptions
) -> Found:
    """The kernel for one specialisation, from the disk cache, or compiled and put there."""
    start = time.monotonic()

    def elapsed() -> float:
        return time.monotonic() - start

    if settings.dump_dir or settings.override_dir:
        # The caller wants the compilation itself.
        built = build(fn, specs, options)
        kernel = _compile(fn, specs, options, built, keep_stages=True)
        return Found(kernel, built.reads, False, elapsed(), has_stages=True)
    cache = default_cache()
    if cache.mode == "off":
        built = build(fn, specs, options)
        kernel = _compile(fn, specs, options, built)
        return Found(kernel, built.reads, False, elapsed())

    common: tuple[Any, ...] = (cache.build_id, machine_key(options), options.key)
    if _has_lines(options):
        common += ("line_info",)
    name = kernel_name(fn, specs)  # which `repr` may have computed from anything
    source = source_key(fn, tuple(key), repr((common, name)))
    if source is not None and (link := cache.read(source)) is not None:
        reads = replay(fn, specs, link.get("reads", b""))
        if reads is not None and (found := _load(link.get("ir", b""))):
            return Found(found, reads, True, elapsed())
    if source is not None and not is_as_written(fn):
        source = None
    built = build(fn, specs, options)
    ir = digest("ir", repr(common), _canonical_text(built.module, options))
    found = _load(ir)
    was_there, storing = found is not None, 0.0
    if found is None:
        found = _compile(fn, specs, options, built)
        compiled = time.monotonic()
        cache.write(ir, {"kernel": found.serialize()})
        storing = time.monotonic() - compiled
    # A process that finds the link skips the front-end, and would not warn.
    packed = pack_reads(built.reads) if source is not None and not built.has_warned else None
    if source is not None and packed is not None:
        cache.write(source, {"ir": ir, "reads": packed})
    return Found(found, built.reads, was_there, elapsed(), storing)


def compile_whole(fn: JITCallable, specs: Sequence[ArgSpec], options: CompileOptions) -> _C.Kernel:
    """The kernel with all of its stages, whatever the cache has."""
    return _compile(fn, specs, options, keep_stages=True)


def machine_key(options: CompileOptions) -> str:
    """Equal where the same options give the same machine code."""
    return toolchain_key(options.extern_libs) if options.target == "cuda" else _host_key()


def load_front_end() -> None:
    """Loads what makes IR of a kernel's source."""
    load_all(_FRONT_END)


def build(
    fn: JITCallable, specs: Sequence[ArgSpec], options: CompileOptions, interpreted: bool = False
) -> BuiltModule:
    """The tile IR of a kernel for arguments as `specs` describes them, and what it depends on.

    `interpreted` code finds mistakes that compiled code finds only with `debug`.
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
    built: Optional[BuiltModule] = None,
    *,
    keep_stages: bool = False,
) -> _C.Kernel:
    """The kernel of the module that was built, or where that is None, of one that is built first."""
    built = built or build(fn, specs, options)
    limit = settings.slow_compile
    seconds = max(0.001, limit - built.seconds) if limit else 0.0
    core = _core_options(options, keep_stages)
    try:
        return _C.compile(
            built.module, core, seconds, lambda spent: _say_slow(fn.__name__, limit, built, spent)
        )
    except _C.CoreError as error:
        raise_core_error(error)


def _say_slow(name: str, limit: int, built: BuiltModule, spent: dict[str, Any]) -> None:
    """Warns that a kernel has been compiling for `limit` seconds, and names the slowest parts."""
    parts = [("the front end", built.seconds), *map(tuple, spent["parts"])]
    total = max(limit, int(sum(seconds for _, seconds in parts)))
    longest = sorted(parts, key=lambda part: -part[1])[:2]
    text = f"tessera: kernel `{name}` has been compiled for {total} s (E072): "
    text += ", ".join(f"{seconds:.1f} s by {_shown_part(part)}" for part, seconds in longest)
    advice = []
    if spent["schedules"] > 1:
        text += f"; this is schedule {spent['schedules']}, as those before lack registers or shared memory"
        advice.append("smaller tiles or more warps (num_warps)")
    if built.unrolled is not None and built.unrolled[2] >= _MANY_ITERATIONS:
        file, line, count = built.unrolled
        text += f"; {count} iterations of the loop at {shown_place(file, line)} are unrolled"
        advice.append("`range` for that loop")
    if not advice:
        advice.append(
            "fewer calls of helper functions"
            if longest[0][0] == "the front end"
            else "smaller tiles"
        )
    text += f". Use {' or '.join(advice)}. TESSERA_SLOW_COMPILE says when this is told, 0 never"
    warn_of_machine(text, SlowCompilationWarning)


def _shown_part(part: str) -> str:
    """The part that took the time: a pass, unless the text says otherwise."""
    if part == "":
        return "steps between the passes"
    return part if " " in part or part == "ptxas" else f"the pass `{part}`"


def _has_lines(options: CompileOptions) -> bool:
    """True if code is made for debuggers to find the lines of."""
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


def compile_stage(path: str, options: CompileOptions) -> _C.Kernel:
    """The kernel that the file of a stage gives, compiled from there on."""
    parts = os.path.basename(path).split(".")
    stage = parts[-2] if len(parts) > 2 else ""
    stages = (CUDA_STAGES if options.target == "cuda" else STAGES)[:-2]
    if stage not in stages:
        raise LaunchError(
            "E062",
            f"{path!r} is not the name of a stage's file",
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
        return _C.compile_text(text, path, core)
    except _C.CoreError as error:
        raise_core_error(error)


def _canonical_text(module: _C.Module, options: CompileOptions) -> str:
    """The IR, with places in the source only where compiled code can report them.

    With `debug`, any access can, and any promise.
    """
    text = str(module)
    if options.debug or "tile.assert" in text or "tile.print" in text:
        return module.print(locations=True)
    return text


@functools.lru_cache(maxsize=None)
def _host_key() -> str:
    """The CPU that "host" stands for."""
    info = _C.host_info()
    return f"{info.get('cpu')} {info.get('features')}"
