# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""@jit: a Python function as a kernel that is compiled when it is launched.

A launch binds arguments to parameters (parameters.py), specialises on them (specialize.py), looks the
specialisation up and compiles it if it is new (specialisations.py), and runs it over the grid
(launching.py).
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from types import FunctionType
from typing import TYPE_CHECKING, Any, Callable, Generic, Optional, Sequence, Union, overload

from tessera import _C
from tessera.errors import CompilationError, LaunchError
from tessera.frontend.signature import Specialisation
from tessera.language.callables import JITCallable, P, Param, R
from tessera.runtime.arrays import Consumer
from tessera.runtime.async_compile import active_mode
from tessera.runtime.interface import KernelInterface
from tessera.runtime.launching import launch_wholly
from tessera.runtime.loading import load_launching
from tessera.runtime.parameters import (
    bind_arguments,
    check_defaults,
    check_is_function,
    find_options,
    listed,
    make_dispatcher,
    read_traits,
    with_stand_ins,
)
from tessera.runtime.specialisations import Checks, KernelSpecialisation, find_specialisation
from tessera.runtime.specialize import Bound, ParamTraits
from tessera.runtime.tracing import is_skipped
from tessera.settings import note_change, settings
from tessera.wording import closest

if TYPE_CHECKING:
    from inspect import Signature

    from tessera.compiler.options import CompileOptions
    from tessera.runtime.kernel import CompiledKernel
    from tessera.runtime.observation import DeviceCaches
    from tessera.runtime.recompilation import Compilation, Made


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
        check_is_function(fn, JITFunction)
        assert isinstance(fn, FunctionType)
        check_defaults(fn)
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
        self._unspecialised = listed(do_not_specialize)
        self._unaligned = listed(do_not_specialize_on_alignment)
        self._marked: Optional[tuple[Sequence[Param], Sequence[Param]]] = None
        self._traits: Optional[tuple[Sequence[Param], tuple[ParamTraits, ...], bool]] = None
        self._kernels: dict[Any, KernelSpecialisation] = {}
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
                self._dispatcher = make_dispatcher(self, self._slow_launch)
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

            self._hooked = make_dispatcher(self, slow)
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

    _run = launch_wholly

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
            self._finder = make_dispatcher(self, self._slow_warmup)
        return self._finder.bind(grid).find(*args, **kwargs)  # type: ignore[no-any-return]

    def _slow_warmup(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A `warmup` of what the core does not know, and what it needs to find it again."""
        return self._run(*with_stand_ins(self.params, args, kwargs), grid, True)

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
        return bind_arguments(self, args, kwargs)

    def _kernel(self, bound: Bound, options: "CompileOptions") -> KernelSpecialisation:
        return find_specialisation(self, bound, options)

    def _options(self, given: dict[str, Any]) -> "CompileOptions":
        return find_options(self, given)

    def _specialise(self, values: Sequence[Any], consumer: Optional[Consumer] = None) -> Bound:
        bound = Bound(consumer)
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
            traits = read_traits(self)
            self._traits = params, traits, len(traits) <= _C.MAX_PARAMETERS
        return self._traits[1]


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
        from tessera.compiler.options import OPTION_NAMES

        if name in OPTION_NAMES:
            fix = f"give it to the launch, kernel[grid](..., {name}=...), or to a tessera.Config"
        raise CompilationError.at_caller("E001", f"@jit has no option `{name}`", fix)
    if fn is None:
        return lambda function: JITFunction(function, **options)
    return JITFunction(fn, **options)


_all_functions: "weakref.WeakSet[JITFunction]" = weakref.WeakSet()


def _renew_locks() -> None:
    # A thread that does not exist in the child may have held them.
    for fn in _all_functions:
        fn._lock = threading.RLock()
        fn._gates = {}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
