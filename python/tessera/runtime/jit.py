# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""@jit: a Python function as a kernel that is compiled when it is launched.

A launch binds arguments to parameters, specialises on them (runtime/specialize.py), looks
the specialisation up, compiles it if it is new, and runs it over the grid.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from types import FunctionType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Generic,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Union,
    overload,
)

from tessera import _C
from tessera.errors import (
    ArgumentError,
    CompilationError,
    LaunchError,
    RecompilationWarning,
    TesseraError,
    raise_core_error,
    warn_of_access,
    warn_of_machine,
)
from tessera.frontend.signature import Specialisation, kernel_name
from tessera.language import types
from tessera.language.callables import JITCallable, P, Param, R, ShownAsFunction
from tessera.runtime.async_compile import active_mode
from tessera.runtime.cuda import StreamSource, find_place, find_stream, read_stream
from tessera.runtime.extents import memory_of_slots
from tessera.runtime.grid import Grid, normalize_grid
from tessera.runtime.hooks import hooks, tell_launch
from tessera.runtime.loading import load_launching
from tessera.runtime.specialize import Bound, ParamTraits, check_memory, is_array
from tessera.runtime.tracing import check_writes, is_skipped, is_watching
from tessera.settings import note_change, settings
from tessera.wording import closest, counted, with_article

if TYPE_CHECKING:
    from tessera.runtime.kernel import CompiledKernel
    from inspect import Signature

    from tessera.compiler.options import CompileOptions
    from tessera.runtime.recompilation import Compilation, Made
    from tessera.runtime.observation import DeviceCaches

# How parameters are passed (`Passing` in python/src/Signature.h).
_PASSING = {"positional": 0, "keyword": 1, "varargs": 2}


# The reads of a compilation, as `_C.is_current` takes them (frontend/reads.py).
Checks = tuple[tuple[Any, ...], ...]


class _Specialisation(NamedTuple):
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
        may_divide = may_divide and bool(self.kernel.metadata.get("divisible_sum"))
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


class KernelInterface(ShownAsFunction):
    """Whatever is launched as `kernel[grid](*args)`."""

    def __getitem__(self, grid: Grid) -> Callable[..., Any]:
        def launch(*args: Any, **kwargs: Any) -> Any:
            return self.run(*args, grid=grid, warmup=False, **kwargs)

        return launch

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launches the kernel, or only compiles it if `warmup`."""
        raise NotImplementedError(f"{type(self).__name__} has no `run`")

    def warmup(self, *args: Any, grid: Any = (1,), **kwargs: Any) -> Any:
        """Compiles the kernel for these arguments without running it."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    @property
    def _launched(self) -> "KernelInterface":
        """The target of a launch with a grid: the kernel itself, or the one within."""
        return self


class JITFunction(JITCallable, _C.Launchable, KernelInterface, Generic[P, R]):
    """A kernel, or a function that kernels call.

    `kernel[grid](*args, **options)` launches it: `grid` is an integer, one to three in a
    tuple or list, or a function of a dict of the arguments that returns one; `options` are those of
    `tessera.compiler.options.CompileOptions`. The grid runs where the arrays are. On the CPU,
    the call returns when the grid is done; on a GPU, when it is put on the stream.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def fill(x_ptr, value, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(x_ptr + i, value, mask=i < n)

        x = np.zeros(100, np.float32)
        fill[lambda args: (tessera.cdiv(args["n"], args["BLOCK"]),)](x, 1.5, 100, BLOCK=16)
        assert (x == 1.5).all()
        assert isinstance(fill, tessera.JITFunction)
        assert fill.arg_names == ["x_ptr", "value", "n", "BLOCK"]
    """

    def __init__(
        self,
        fn: Callable[P, R],
        *,
        version: Optional[Any] = None,
        repr: Optional[Callable[[Any], str]] = None,
        launch_metadata: Optional[Callable[..., Any]] = None,
        do_not_specialize: Sequence[Union[str, int]] = (),
        do_not_specialize_on_alignment: Sequence[Union[str, int]] = (),
        debug: Optional[bool] = None,
        noinline: bool = False,
    ) -> None:
        _check_is_function(fn)
        assert isinstance(fn, FunctionType)
        _check_defaults(fn)
        super().__init__(fn, noinline=noinline)
        self.__module__ = fn.__module__ or ""  # code run by `exec` may have none
        self.__globals__ = fn.__globals__
        self.used_global_vals: dict[Any, Any] = {}
        """Triton's record of globals that must not change; here a kernel that reads a changed one
        is compiled anew."""
        self.version = version
        self.debug = debug
        self.launch_metadata = launch_metadata
        self.pre_run_hooks: list[Callable[..., Any]] = []
        self._is_tuned = False
        """True if configurations of it are tried, so that it may well have many variants."""
        self._repr = repr
        self._unspecialised = _listed(do_not_specialize)
        self._unaligned = _listed(do_not_specialize_on_alignment)
        self._marked: Optional[tuple[Sequence[Param], Sequence[Param]]] = None
        self._traits: Optional[tuple[Sequence[Param], tuple[ParamTraits, ...], bool]] = None
        self._kernels: dict[Any, _Specialisation] = {}
        self._made: "list[Made]" = []
        """The specialisation of each compilation."""
        self._is_warned = False
        """Of that being often."""
        self._changing = ""
        """The argument of the last whole launch that is a constant which may change in place."""
        self._modules: dict[Any, tuple[_C.Module, Checks]] = {}
        self._known_options: dict[Any, CompileOptions] = {}
        self._lock = threading.RLock()
        self._gates: dict[Any, threading.RLock] = {}
        """The futures of variants that are being compiled."""
        self._dispatcher_generation = -1
        self._finder: Optional[_C.Dispatcher] = None
        """Finds what `warmup` compiled before."""
        self._hooked: Optional[_C.Dispatcher] = None
        """Launches after `pre_run_hooks` were called."""
        _all_functions.add(self)

    @property
    def arg_names(self) -> list[str]:
        """The names of the parameters."""
        return [param.name for param in self.params]

    @property
    def params(self) -> Sequence[Param]:
        """Its parameters, in order."""
        declared = super().params
        if not self._unspecialised and not self._unaligned:
            return declared
        if self._marked is None or self._marked[0] is not declared:
            marked = tuple(
                param._replace(
                    do_not_specialize=self._names(self._unspecialised, param, declared),
                    do_not_specialize_on_alignment=self._names(self._unaligned, param, declared),
                )
                for param in declared
            )
            self._marked = declared, marked
        return self._marked[1]

    @staticmethod
    def _names(items: Sequence[Any], param: Param, params: Sequence[Param]) -> bool:
        return any(place in items for place in (param.name, param.num, param.num - len(params)))

    @property
    def src(self) -> str:
        """Its text from the `def` on, not indented."""
        load_launching()
        from tessera.frontend.source import text_of

        return text_of(self)

    def _unsafe_update_src(self, new_src: str) -> None:
        """Has `new_src`, which starts with a `def` of the same parameters, take the place of the
        function's text. Errors then name its lines, not those of the file."""
        load_launching()
        from tessera.frontend.source import replace_text

        replace_text(self, new_src)
        for fn in list(_all_functions):  # any of which may call this one
            fn._kernels.clear()
            fn._modules.clear()

    @property
    def cache_key(self) -> Optional[str]:
        """A hash of the source and of all it depends on, or None if that is not known."""
        load_launching()
        from tessera.compiler.dependencies import source_key

        key = source_key(self)
        return None if key is None else key.hex()

    def __reduce__(self) -> Any:
        if self.fn is None:  # taken out by TorchInductor, to send what it compiled to
            from tessera.compiler.sending import outline

            return outline(self)
        # As functions are: by module and name for pickle, the same object for copy.
        return self.__qualname__

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        raise LaunchError(
            "E004",
            f"kernel `{self.__name__}` is called without a launch grid",
            f"write {self.__name__}[grid](...); inside a kernel, just call it",
        )

    def _slow_getitem(self, grid: Any) -> Callable[..., Any]:
        """`self[grid]` the first time, and after what every launch depends on has changed."""
        generation = _C.generation()
        self._dispatcher_generation = -1
        if self._binds_plainly() and not settings.interpret:
            if self.pre_run_hooks:
                return functools.partial(self._launch_after_hooks, grid)
            if self._dispatcher is None:
                self._dispatcher = _make_dispatcher(self, self._slow_launch)
            self._dispatcher.clear()
            self._dispatcher_generation = generation
            return self._dispatcher.bind(grid)

        def launch(*args: Any, **kwargs: Any) -> Any:
            return self.run(*args, grid=grid, **kwargs)

        return launch

    def _slow_launch(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A launch that the warm path does not know, and the record to repeat it."""
        if "grid" in kwargs or "warmup" in kwargs:
            return self.run(*args, **{"grid": grid, **kwargs}), None
        return self._run(args, kwargs, grid, False)

    def _launch_after_hooks(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        """A launch before which this kernel's own hooks are called."""
        if "grid" in kwargs or "warmup" in kwargs:
            return self.run(*args, **{"grid": grid, **kwargs})
        if is_skipped(args, kwargs):
            return None
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        if self._hooked is None:

            def slow(grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
                return self._run(args, kwargs, grid, False, hooked=True)

            self._hooked = _make_dispatcher(self, slow)
        return self._hooked.bind(grid)(*args, **kwargs)

    def _binds_plainly(self) -> bool:
        """True if the core can bind arguments to the parameters."""
        self._all_traits()
        assert self._traits is not None
        return self._traits[2]

    def _is_plain(self) -> bool:
        """The same, and there are no hooks of this kernel's own to be called before a launch."""
        return self._binds_plainly() and not self.pre_run_hooks

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Has `hook(*args, **kwargs)` called before each launch."""
        self.pre_run_hooks.append(hook)
        note_change()  # to what tunes it, too

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launches the kernel, or only compiles it if `warmup`.

        Returns the CompiledKernel (None where the interpreter ran it). Raises LaunchError for
        a bad grid, argument or option, CompilationError for a mistake in the kernel,
        KernelAssertionError for a `device_assert` that does not hold.
        """
        return self._run(args, kwargs, grid, warmup)[0]

    def _run(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        grid: Any,
        warmup: bool,
        *,
        hooked: bool = False,
    ) -> tuple[Any, Optional[_C.LaunchRecord]]:
        """The whole way of a launch; `hooked` if the kernel's own hooks were called already. Also
        returns the record by which the warm path repeats it."""
        if is_skipped(args, kwargs):
            return None, None
        load_launching()
        for hook in () if hooked else self.pre_run_hooks:
            hook(*args, **kwargs)
        values, given = self._bind(args, kwargs)
        options = self._options(given)
        bound = self._specialise(values)
        self._changing = bound.changing = bound.changing or next(
            (name for name, value in given.items() if is_array(value)), ""
        )
        if warmup and options.target == "cuda" and options.arch:
            return self._warm(bound, options)  # there need be no GPU
        place = find_place(bound.pointers, options.target)
        options = options.resolved(None) if place is None else place.resolve(options)
        if warmup:
            return self._warm(bound, options)
        check_memory(bound.pointers)
        extents = normalize_grid(grid, _Meta(self.params, values, options))
        if settings.interpret:
            self._interpret(bound, values, options, extents)
            return None, None
        if hooks.on_compile and self._is_held_back(bound, options, False):
            return None, None
        found = self._kernel(bound, options)
        kernel = found.kernel
        if any(item.pointer.read_only for item in bound.pointers):
            _check_writeable(kernel._stored_arguments(), bound)
        if is_watching():
            check_writes(bound.pointers, kernel._stored_arguments())
        if hooks.on_load:
            kernel._init_handles()
        is_first, kernel._is_loaded = not kernel._is_loaded, True
        if not kernel._is_checked:
            kernel._is_checked = True
            _check_accesses(kernel, extents, bound, values)
        device = -1
        stream: StreamSource = 0
        told = None
        memory = None
        if place is None and options.checks_accesses:
            memory = memory_of_slots(len(bound.slots), bound.pointers, values)
        try:
            handle = 0
            if place is not None:
                device = place.device
                kernel._check_driver(device)
                stream = find_stream(bound.pointers, device, options.stream)
                handle = read_stream(stream, device)
            if hooks.on_launch:
                told = (
                    lambda kernel: tell_launch(kernel, extents, values, {}, handle),
                    hooks.launch_exit,
                )
            record = _C.LaunchRecord(
                found.family(options.may_be_divided),
                bound.slots,
                options.as_dict,
                options.num_threads,
                device,
                stream,
            )
            launched = record.launch(
                extents, handle, functools.partial(self._make_variant, bound, options), told, memory
            )
        except _C.CoreError as error:
            raise_core_error(error)
        if is_first and settings.log == "info":
            from tessera.log import info

            where = "the CPU" if device < 0 else f"GPU {device}"
            info("launched `%s` as %s on %s, for the first time", kernel.name, extents, where)
        # The warm path knows no memory, and constants by identity.
        if bound.changing or (options.checks_accesses if place is None else not place.by_arrays):
            return launched, None
        return launched, record

    def _make_variant(
        self, bound: Bound, options: "CompileOptions", variant: _C.Variant
    ) -> Optional[tuple[Any, ...]]:
        """A variant of the kernel that a launch needs; None where a division cannot be compiled."""
        try:
            return self._kernel(bound, options.for_variant(variant)).variant
        except TesseraError:
            if variant == _C.Variant.UNLIMITED:
                raise
            return None  # no one has requested it

    def _warm(
        self, bound: Bound, options: "CompileOptions"
    ) -> tuple[Any, Optional[_C.LaunchRecord]]:
        """The result of `warmup`: the kernel, or a future's kernel, or None if a hook asks for
        that. Also what the warm path needs to find the kernel again."""

        def compile() -> Any:
            if hooks.on_compile and self._is_held_back(bound, options, True):
                return None
            return self._kernel(bound, options).kernel

        mode = active_mode.get()
        if mode is not None:
            return mode.submit((self, tuple(bound.key), options.key), compile), None
        if hooks.on_compile:
            return compile(), None
        found = self._kernel(bound, options)
        if bound.changing:
            return found.kernel, None
        return found.kernel, _C.LaunchRecord(found.family(options.may_be_divided), bound.slots)

    def _is_held_back(self, bound: Bound, options: "CompileOptions", warmup: bool) -> bool:
        """Compiles a kernel that is not there yet between the hooks of compilations; whether one
        of them wants it not to be."""
        key = self._kernel_key(bound, options)
        found = self._kernels.get(key)
        if found is not None and found.is_current():
            return False
        from tessera.runtime.observation import describe_compilation

        facts = describe_compilation(self, bound, options, key, warmup)
        if hooks.jit_cache is not None and hooks.jit_cache(**facts):
            return True
        self._kernel(bound, options)
        if hooks.jit_post_compile is not None:
            hooks.jit_post_compile(**facts)
        return False

    @property
    def device_caches(self) -> "DeviceCaches":
        """`device_caches[device][0]` has the kernels compiled by now, by their keys."""
        from tessera.runtime.observation import DeviceCaches

        return DeviceCaches(self)

    @property
    def compilations(self) -> "list[Compilation]":
        """Each time that the kernel was compiled in this process, or read from the disk, and why
        what there was before did not do."""
        from tessera.runtime.recompilation import list_compilations

        return list_compilations(self)

    @property
    def constexprs(self) -> list[int]:
        """The places of the parameters that are constants."""
        return [param.num for param in self.params if param.is_constexpr]

    @property
    def signature(self) -> "Signature":
        """As of the function."""
        import inspect

        return inspect.signature(self.fn)

    def repr(self, specialisation: Specialisation) -> str:
        """The name of the kernel when it is compiled for `specialisation`."""
        return self.__name__ if self._repr is None else self._repr(specialisation)

    def warmup(self, *args: Any, grid: Any = (1,), **kwargs: Any) -> "CompiledKernel":
        """Compiles the kernel for these arguments without running it.

        For an array, a `tessera.MockTensor` or just a dtype will do.
        """
        if active_mode.get() is not None or not self._is_plain():
            return self._slow_warmup(grid, args, kwargs)[0]  # type: ignore[no-any-return]
        if self._finder is None:
            self._finder = _make_dispatcher(self, self._slow_warmup)
        return self._finder.bind(grid).find(*args, **kwargs)  # type: ignore[no-any-return]

    def _slow_warmup(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A `warmup` of what the core does not know, and what it needs to find it again."""
        from tessera.runtime.arrays import MockTensor, is_dtype

        def stand_in(value: Any, param: Optional[Param]) -> Any:
            if param is not None and param.is_constexpr:
                return value
            return MockTensor(value) if is_dtype(value) else value

        by_name = {param.name: param for param in self.params}
        params = [*self.params, *[None] * len(args)]
        positional = tuple(stand_in(value, param) for value, param in zip(args, params))
        named = {name: stand_in(value, by_name.get(name)) for name, value in kwargs.items()}
        return self._run(positional, named, grid, True)

    def preload(self, specialization_data: str) -> "CompiledKernel":
        """Compiles the kernel for the `specialization_data` that a hook of compilations received.

        Raises PreloadError (E062) for what is the data of another kernel, or none.
        """
        load_launching()
        from tessera.runtime.preload import read_specialization_data

        bound, options = read_specialization_data(self, specialization_data)
        return self._kernel(bound, options).kernel

    def _bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """A value for each parameter, and the rest: the options."""
        values: list[Any] = []
        rest = dict(kwargs)
        at = 0
        missing = []
        for param in self.params:
            if param.kind == "varargs":
                values.append(args[at:])
                at = len(args)
                continue
            if at < len(args) and param.kind == "positional":
                if param.name in rest:
                    raise ArgumentError(
                        "E051",
                        f"kernel `{self.__name__}` got two values for `{param.name}`",
                        "pass it once, by place or by name",
                    )
                values.append(args[at])
                at += 1
            elif param.name in rest:
                values.append(rest.pop(param.name))
            elif param.has_default:
                values.append(param.default)
            else:
                missing.append(param.name)
                values.append(None)
        if at < len(args):
            raise ArgumentError(
                "E051",
                f"kernel `{self.__name__}` takes {counted(at, 'argument')} by place, got {len(args)}",
                f"the parameters are {', '.join(self.arg_names)}",
            )
        if rest:
            from tessera.compiler.options import OPTION_NAMES, unknown_option

            for name in rest:
                if name not in OPTION_NAMES:
                    raise unknown_option(name, tuple(self.arg_names))
        if missing:
            raise ArgumentError(
                "E051",
                f"kernel `{self.__name__}` is launched without "
                + ", ".join(f"`{name}`" for name in missing),
                (
                    "write the kernel out of the class: one gets no `self`"
                    if self.arg_names[:1] == ["self"]
                    else "pass a value for each parameter that has no default"
                ),
            )
        return values, rest

    def _options(self, given: dict[str, Any]) -> "CompileOptions":
        if self.debug is not None:
            given.setdefault("debug", self.debug)
        key = (settings.generation, *given.items())
        try:
            return self._known_options[key]
        except (KeyError, TypeError):  # new, or not to be hashed
            pass
        from tessera.compiler.options import CompileOptions

        options = CompileOptions.of(given)
        try:
            self._known_options[key] = options
        except TypeError:
            pass
        return options

    def _specialise(self, values: Sequence[Any]) -> Bound:
        bound = Bound()
        bound.values = values
        for traits, value in zip(self._all_traits(), values):
            bound.add(traits, value)
        return bound

    def _all_traits(self) -> tuple[ParamTraits, ...]:
        params = self.params
        if self._traits is None or self._traits[0] is not params:
            for dispatcher in (self._dispatcher, self._finder, self._hooked):
                if dispatcher is not None:  # which binds arguments to the parameters before
                    dispatcher.retire()
            self._dispatcher = self._finder = self._hooked = None
            self._dispatcher_generation = -1
            traits = _read_traits(self)
            self._traits = params, traits, len(traits) <= _C.MAX_PARAMETERS
        return self._traits[1]

    def _kernel_key(self, bound: Bound, options: "CompileOptions") -> Any:
        return (
            tuple(bound.key),
            options.key,
            self._toolchain(options),
            settings.dump_dir,
            settings.override_dir,
            settings.symbols,
        )

    def _kernel(self, bound: Bound, options: "CompileOptions") -> "_Specialisation":
        key = self._kernel_key(bound, options)
        found = self._kernels.get(key)
        if found is None or not found.is_current():
            # Threads that want the same kernel wait for the first of them to compile it, and
            # for no other.
            with self._lock:
                gate = self._gates.setdefault(key, threading.RLock())
            with gate:
                found = self._kernels.get(key)
                if found is None or not found.is_current():
                    from tessera.runtime.compiling import compile_specialised
                    from tessera.runtime.explaining import explained_by_arguments

                    stale = "" if found is None else found.describe_change()
                    with explained_by_arguments(self.arg_names, bound.values):
                        kernel, reads = compile_specialised(self, bound.key, bound.specs, options)
                    found = _Specialisation(kernel, reads.hot(), reads.full(), {})
                    self._kernels[key] = found
                    self._made.append((bound.specs, tuple(bound.slots), options, stale))
                    self._warn_of_many_variants()
            self._gates.pop(key, None)
        return found

    @staticmethod
    def _toolchain(options: "CompileOptions") -> str:
        """The assembler of the code, where that can change within the process."""
        if options.target != "cuda":
            return ""
        from tessera.compiler.toolchain import toolchain_key

        return toolchain_key(options.extern_libs)

    def _interpret(
        self,
        bound: Bound,
        values: Sequence[Any],
        options: "CompileOptions",
        grid: tuple[int, int, int],
    ) -> None:
        on_gpu = next((item for item in bound.pointers if item.pointer.device >= 0), None)
        if on_gpu is not None:
            raise ArgumentError(
                "E054",
                f"argument `{on_gpu.name}` is on a GPU, and the interpreter runs on the CPU",
                "pass a copy in the CPU's memory",
            )
        key = (tuple(bound.key), options.key)
        name = kernel_name(self, bound.specs)
        with self._lock:
            found = self._modules.get(key)
            if found is None or not _C.is_current(found[1]):
                from tessera.compiler.compile import build
                from tessera.runtime.explaining import explained_by_arguments

                with explained_by_arguments(self.arg_names, values):
                    built = build(self, bound.specs, options, interpreted=True)
                built.module.check_accesses()
                found = self._modules[key] = built.module, built.reads.full()
            try:
                if any(item.pointer.read_only for item in bound.pointers):
                    _check_writeable(found[0].stored_arguments(name), bound)
                memory = memory_of_slots(len(bound.slots), bound.pointers, values)
                wraps = bool(options.debug)
                _C.interpret(found[0], name, grid, bound.slots, memory, wraps)
            except _C.CoreError as error:
                raise_core_error(error)

    def _warn_of_many_variants(self) -> None:
        limit = settings.recompile_warning
        if limit and len(self._made) >= limit and not self._is_warned and not self._is_tuned:
            from tessera.runtime.recompilation import describe_recompilations

            self._is_warned = True
            warn_of_machine(describe_recompilations(self), RecompilationWarning)


class Interpreted:
    """A kernel that the reference interpreter runs; see `interpret`."""

    def __init__(self, fn: KernelInterface) -> None:
        self.fn = fn

    def __getitem__(self, grid: Grid) -> Callable[..., None]:
        load_launching()
        from tessera.runtime.frames import as_users_see

        def launch(*args: Any, **kwargs: Any) -> None:
            fn: Any = self.fn
            while not isinstance(fn, JITFunction):  # tuned, or with heuristics
                kwargs = fn._untuned(args, kwargs)
                fn = fn.fn
            values, given = fn._bind(args, kwargs)
            options = fn._options(given)
            bound = fn._specialise(values)
            check_memory(bound.pointers)
            extents = normalize_grid(grid, _Meta(fn.params, values, options))
            fn._interpret(bound, values, options, extents)

        return as_users_see(launch)


def interpret(fn: KernelInterface) -> Interpreted:
    """`interpret(kernel)[grid](...)` runs a kernel with the reference interpreter.

    That is slow, and right by definition: what it does is what the language says. A tuned kernel
    has its first configuration.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def root(x_ptr):
            i = tl.arange(0, 8)
            tl.store(x_ptr + i, tl.sqrt(tl.load(x_ptr + i)))

        x = np.arange(8, dtype=np.float32)
        want = x.copy()
        root[(1,)](x)
        tessera.interpret(root)[(1,)](want)  # slowly, and checking every access
        assert np.allclose(x, want)
    """
    return Interpreted(fn)


@overload
def jit(fn: Callable[P, R], /) -> JITFunction[P, R]: ...
@overload
def jit(
    *,
    version: Optional[Any] = None,
    repr: Optional[Callable[[Any], str]] = None,
    launch_metadata: Optional[Callable[..., Any]] = None,
    do_not_specialize: Sequence[Union[str, int]] = (),
    do_not_specialize_on_alignment: Sequence[Union[str, int]] = (),
    debug: Optional[bool] = None,
    noinline: bool = False,
) -> Callable[[Callable[P, R]], JITFunction[P, R]]: ...
def jit(
    fn: Optional[Callable[..., Any]] = None,
    /,
    *,
    version: Optional[Any] = None,
    repr: Optional[Callable[[Any], str]] = None,
    launch_metadata: Optional[Callable[..., Any]] = None,
    do_not_specialize: Sequence[Union[str, int]] = (),
    do_not_specialize_on_alignment: Sequence[Union[str, int]] = (),
    debug: Optional[bool] = None,
    noinline: bool = False,
    **unknown: Any,
) -> Any:
    """Makes a kernel of a Python function: `@jit` or `@jit(noinline=True)`.

    The result is launched as `kernel[grid](*args, **options)`, and called by other kernels as
    `kernel(*args)`. Options:
      do_not_specialize: names or places of parameters that are never assumed to be 1 or
        aligned, so that the kernel is not compiled anew for them.
      do_not_specialize_on_alignment: the same for alignment alone.
      debug: whether `device_assert` and checks of accesses are compiled in; None leaves it to
        the launch and to TESSERA_DEBUG.
      noinline: calls from other kernels stay calls.
      repr: a function that names the compiled kernel; it gets the `Specialisation`, which has
        `constants` and `signature`.
      launch_metadata: a function of (grid, metadata, arguments) whose dict hooks of launches get.
      version: anything; kept as `kernel.version`.

    Raises CompilationError (E001) unless `fn` is a plain function, and for an unknown option.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + i, mask=i < n)
            y = tl.load(y_ptr + i, mask=i < n)
            tl.store(out_ptr + i, x + y, mask=i < n)

        x, y, out = np.arange(1000.0), np.ones(1000), np.zeros(1000)
        add[(tessera.cdiv(1000, 256),)](x, y, out, 1000, BLOCK=256)
        assert (out == x + 1).all()
    """
    options: dict[str, Any] = {
        "version": version,
        "repr": repr,
        "launch_metadata": launch_metadata,
        "do_not_specialize": do_not_specialize,
        "do_not_specialize_on_alignment": do_not_specialize_on_alignment,
        "debug": debug,
        "noinline": noinline,
    }
    for name in unknown:
        near = closest(name, tuple(options))
        fix = f"did you mean `{near}`?" if near else f"the options are {', '.join(options)}"
        if _is_launch_option(name):
            fix = f"give it to the launch, kernel[grid](..., {name}=...), or to a tessera.Config"
        raise CompilationError.at_caller("E001", f"@jit has no option `{name}`", fix)
    if fn is None:
        return lambda function: JITFunction(function, **options)
    return JITFunction(fn, **options)


def _is_launch_option(name: str) -> bool:
    from tessera.compiler.options import OPTION_NAMES

    return name in OPTION_NAMES


class _Meta(Mapping[str, Any]):
    """The argument of a grid function: arguments and options by name."""

    def __init__(
        self, params: Sequence[Param], values: Sequence[Any], options: "CompileOptions"
    ) -> None:
        self._values = {param.name: types.unwrap(value) for param, value in zip(params, values)}
        self._options = options

    def __getitem__(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        if isinstance(name, str) and not name.startswith("_") and hasattr(self._options, name):
            return getattr(self._options, name)
        raise KeyError(name)

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _check_accesses(
    kernel: "CompiledKernel",
    grid: tuple[int, int, int],
    bound: Bound,
    values: Sequence[Any],
) -> None:
    """Warns if a launch leaves the memory of its arrays, as can be told without running it."""
    if not kernel.metadata["certain_accesses"]:
        return
    memory = memory_of_slots(len(bound.slots), bound.pointers, values, owned=True)
    try:
        kernel._kernel.check_accesses(grid, bound.slots, memory)
    except _C.CoreError as error:
        if error.info.get("id") == "E088":
            warn_of_access(error)


def _make_dispatcher(fn: JITFunction, slow: Callable[..., Any]) -> _C.Dispatcher:
    parameters = tuple(
        dispatched(param, trait) for param, trait in zip(fn.params, fn._all_traits())
    )
    return _C.Dispatcher(parameters, slow, raise_core_error)


def dispatched(
    param: Param, trait: ParamTraits, is_tuned: bool = False, is_key: bool = False
) -> tuple[Any, ...]:
    """A parameter as the core's launches take it."""
    fixed = trait.annotation
    return (
        param.name,
        (param.default,) if param.has_default and not is_tuned else (),
        # Such a default is no plain value, so it counts as what it wraps.
        trait.is_constexpr or isinstance(param.given_default, types.constexpr),
        trait.on_value,
        trait.on_alignment,
        is_tuned,
        is_key,
        0,
        # Annotated pointers take only arrays, which their types distinguish.
        0 if fixed is None or fixed.is_ptr() else fixed._core_id,
        _PASSING[param.kind],
    )


def _check_writeable(stored: Sequence[int], bound: Bound) -> None:
    """Raises ArgumentError if one of the arguments `stored` is a read-only array."""
    for item in bound.pointers:
        if item.pointer.read_only and item.slot in stored:
            from tessera.runtime.kernel import read_only_error

            raise read_only_error(item.name)


def _listed(names: Any) -> tuple[Any, ...]:
    """Names and places of parameters; a single one needs no list."""
    return (names,) if isinstance(names, (str, int)) else tuple(names or ())


def _check_is_function(fn: Any) -> None:
    if isinstance(fn, JITFunction):
        raise CompilationError.at_caller(
            "E001", f"`{fn.__name__}` is decorated with @jit twice", "drop one"
        )
    if isinstance(fn, FunctionType) and fn.__name__ != "<lambda>":
        return
    if hasattr(fn, "fn") and hasattr(fn, "run"):
        raise CompilationError.at_caller(
            "E003",
            f"@jit is put on top of @{type(fn).__name__.lower()}",
            "put @jit next to the `def`, the other decorator above it",
        )
    if isinstance(fn, FunctionType):
        raise CompilationError.at_function(
            fn, "E001", "@jit needs a plain `def` function, got a lambda", "write a `def`"
        )
    what = f"the class `{fn.__name__}`" if isinstance(fn, type) else with_article(type(fn).__name__)
    raise CompilationError.at_caller(
        "E001", f"@jit needs a plain `def` function, got {what}", "write a `def`"
    )


def _check_defaults(fn: FunctionType) -> None:
    """Raises CompilationError (E006) for an array, which would be one for all launches."""
    if not fn.__defaults__:
        return
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    for name, default in zip(reversed(names), reversed(fn.__defaults__)):
        if hasattr(default, "__array_interface__") and getattr(default, "shape", ()) != ():
            raise CompilationError.at_function(
                fn,
                "E006",
                f"the default of `{name}` is {with_article(type(default).__name__)}",
                "a default must be a constant: pass the array with each launch",
            )


def _read_traits(fn: JITFunction) -> tuple[ParamTraits, ...]:
    result = []
    for param in fn.params:
        if param.has_default and type(param.default) in (list, dict, set):
            raise CompilationError.at_function(
                fn.fn,
                "E006",
                f"the default of `{param.name}` is {with_article(type(param.default).__name__)}",
                "a default must be a constant: a number, a string, None or a tuple of these",
            )
        if param.is_constexpr and param.do_not_specialize:
            raise CompilationError.at_function(
                fn.fn,
                "E051",
                f"do_not_specialize names `{param.name}`, which is a constexpr",
                "drop one of the two",
            )
        annotation, is_const = _read_annotation(param)
        result.append(
            ParamTraits(
                name=param.name,
                is_constexpr=param.is_constexpr,
                annotation=annotation,
                is_const=is_const,
                on_value=not param.do_not_specialize,
                on_alignment=not param.do_not_specialize_on_alignment,
            )
        )
    return tuple(result)


def _read_annotation(param: Param) -> tuple[Optional[types.dtype], bool]:
    """The type that an annotation fixes, and whether it says `tl.const`."""
    annotation = param.annotation
    if isinstance(annotation, types.dtype):
        return annotation, annotation.is_const()
    if annotation is types.const:
        return None, True
    if isinstance(annotation, str):
        # Under `from __future__ import annotations`, only "tl.int64" remains of it.
        name = annotation.strip("\"'")
        last = name.rpartition(".")[2]
        if last == "const":
            return None, True
        try:
            dtype = types.str_to_ty(name if name.startswith("*") else last)
        except ValueError:
            return None, False
        # Python's own int, float and bool are hints for people.
        return (None, False) if last in ("int", "float", "bool") else (dtype, dtype.is_const())
    return None, False


_all_functions: "weakref.WeakSet[JITFunction]" = weakref.WeakSet()


def _renew_locks() -> None:
    # A thread that does not exist in the child may have held them.
    for fn in _all_functions:
        fn._lock = threading.RLock()
        fn._gates = {}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
