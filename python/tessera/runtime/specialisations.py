# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The specialisations of a kernel that this process has: what each was compiled for, what it depends
on, and its variants. A specialisation that is missing, or out of date, is compiled.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from tessera import _C
from tessera.errors import RecompilationWarning, warn_of_machine
from tessera.runtime.hooks import hooks
from tessera.runtime.specialize import Bound
from tessera.settings import settings

if TYPE_CHECKING:
    from tessera.compiler.options import CompileOptions
    from tessera.runtime.jit import JITFunction
    from tessera.runtime.kernel import CompiledKernel

# The reads of a compilation, as `_C.is_current` takes them (frontend/reads.py).
Checks = tuple[tuple[Any, ...], ...]


class KernelSpecialisation(NamedTuple):
    """A kernel, and what it depends on."""

    kernel: "CompiledKernel"
    checks: Checks
    """Those of a launch."""
    all_checks: Checks
    """Those and the ones that need a look after `settings.note_change` only."""

    families: dict[bool, _C.KernelFamily]
    """The kernel and its variants, by whether launches may divide it."""

    @property
    def variant(self) -> tuple[Any, ...]:
        """As the core launches it: what a launch returns, the core's kernel, what to check."""
        return self.kernel, self.kernel._kernel, self.checks

    def family(self, may_divide: bool) -> _C.KernelFamily:
        """The kernel, and what other variants of it launches have needed so far."""
        facts = self.kernel.metadata
        may_divide = may_divide and bool(facts.get("divisible_sum") or facts.get("short_loops"))
        if may_divide not in self.families:
            self.families[may_divide] = _C.KernelFamily(self.variant, may_divide)
        return self.families[may_divide]

    def is_current(self) -> bool:
        """True if all of that still is what it was."""
        return _C.is_current(self.all_checks)

    def describe_change(self) -> str:
        """The part of that which is not."""
        from tessera.runtime.recompilation import find_stale

        return find_stale(self.all_checks)


def is_held_back(
    fn: "JITFunction[Any, Any]", bound: Bound, options: "CompileOptions", warmup: bool
) -> bool:
    """Compiles a kernel that is not there yet between the hooks of compilations; whether one
    of them wants it not to be."""
    key = _kernel_key(fn, bound, options)
    found = fn._kernels.get(key)
    if found is not None and found.is_current():
        return False
    from tessera.runtime.observation import describe_compilation

    facts = describe_compilation(fn, bound, options, key, warmup)
    if hooks.jit_cache is not None and hooks.jit_cache(**facts):
        return True
    find_specialisation(fn, bound, options)
    if hooks.jit_post_compile is not None:
        hooks.jit_post_compile(**facts)
    return False


def find_specialisation(
    fn: "JITFunction[Any, Any]", bound: Bound, options: "CompileOptions"
) -> KernelSpecialisation:
    key = _kernel_key(fn, bound, options)
    found = fn._kernels.get(key)
    if found is None or not found.is_current():
        # Threads that want the same kernel wait for the first of them to compile it, and
        # for no other.
        with fn._lock:
            gate = fn._gates.setdefault(key, threading.RLock())
        with gate:
            found = fn._kernels.get(key)
            if found is None or not found.is_current():
                from tessera.runtime.compiling import compile_specialised
                from tessera.runtime.explaining import explained_by_arguments

                stale = "" if found is None else found.describe_change()
                with explained_by_arguments(fn.arg_names, bound.values):
                    kernel, reads = compile_specialised(fn, bound.key, bound.specs, options)
                found = KernelSpecialisation(kernel, reads.hot(), reads.full(), {})
                fn._kernels[key] = found
                fn._made.append((bound.specs, tuple(bound.slots), options, stale))
                _warn_of_many_variants(fn)
        fn._gates.pop(key, None)
    return found


def _kernel_key(fn: "JITFunction[Any, Any]", bound: Bound, options: "CompileOptions") -> Any:
    return (
        tuple(bound.key),
        options.key,
        _toolchain(options),
        settings.dump_dir,
        settings.override_dir,
        settings.symbols,
    )


def _toolchain(options: "CompileOptions") -> str:
    """The assembler of the code, where that can change within the process."""
    if options.target != "cuda":
        return ""
    from tessera.compiler.toolchain import toolchain_key

    return toolchain_key(options.extern_libs)


def _warn_of_many_variants(fn: "JITFunction[Any, Any]") -> None:
    limit = settings.recompile_warning
    if limit and len(fn._made) >= limit and not fn._is_warned and not fn._is_tuned:
        from tessera.runtime.recompilation import describe_recompilations

        fn._is_warned = True
        warn_of_machine(describe_recompilations(fn), RecompilationWarning)
