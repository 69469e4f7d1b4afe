# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""@autotune: a kernel that launches with the best of several configurations.

The best one may depend on arguments, which `key` names. The first launch with new values of these
measures the configurations (session.py), or finds the result of another process on disk (store.py).
Every later launch uses the chosen configuration.

How a launch works. `kernel[grid]` is a launch of the core (python/src/Dispatcher.h), as for a plain
kernel. Its signature has the values of the arguments in `key`, but not the parameters that
configurations set. So the core finds the compiled kernel of the chosen configuration at once. Below
`@autotune`, heuristics and hooks of configurations are Python: for these, the core finds the
configuration, and then launches the kernel. Launches with a new signature call `_launch` or
`_slow_find`. All launches call `_launch` if the kernel has hooks to call before each, or `*args`,
or if the configurations do not all set the same constexprs.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from types import FunctionType
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Union, cast

from tessera import _C
from tessera.errors import (
    ArgumentError,
    CompilationError,
    TesseraError,
    TuningError,
    raise_core_error,
)
from tessera.log import info
from tessera.runtime.arrays import pointer_of
from tessera.runtime.estimates import estimate
from tessera.runtime.hooks import hooks
from tessera.runtime.interface import KernelInterface
from tessera.runtime.jit import JITFunction
from tessera.runtime.parameters import dispatched
from tessera.runtime.specialize import may_change
from tessera.runtime.tracing import is_skipped
from tessera.settings import settings
from tessera.tuning.checks import check_configs, check_values, checked_names
from tessera.tuning.config import Config, shortly
from tessera.tuning.heuristics import filled_names, inner_kernel, number_of, require_kernel
from tessera.tuning.key import Address, array_in, dtype_of, make_key
from tessera.tuning.loading import load_tuning
from tessera.wording import shown, with_article

if TYPE_CHECKING:
    from tessera.tuning.session import Hooks

Configs = Union[Sequence[Config], str]

# Attributes whose assignment changes nothing about later launches.
_OUTCOMES = ("nargs", "best_config", "configs_timings", "bench_time", "failures")


class _Choices(dict[Any, Config]):
    """Which configuration is best, by the values of the key. A change makes launches look up their
    configuration again."""

    def __init__(self, owner: "Autotuner") -> None:
        super().__init__()
        self._owner = weakref.ref(owner)

    def _changed(self) -> None:
        owner = self._owner()
        if owner is not None:
            owner._forget_launches()

    def note(self, key: Any, config: Config) -> None:
        """Adds what was not there, which concerns no launch before."""
        super().__setitem__(key, config)

    def __setitem__(self, key: Any, config: Config) -> None:
        super().__setitem__(key, config)
        self._changed()

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        self._changed()

    def clear(self) -> None:
        super().clear()
        self._changed()

    def pop(self, *args: Any) -> Any:
        found = super().pop(*args)
        self._changed()
        return found

    def popitem(self) -> Any:
        found = super().popitem()
        self._changed()
        return found

    def update(self, *args: Any, **kwargs: Any) -> None:
        super().update(*args, **kwargs)
        self._changed()


class Autotuner(_C.Launchable, KernelInterface):
    """A kernel and its configurations; see `autotune`.

    Attributes: `configs`; `cache`, the choices by values of the key; `best_config` of the last
    launch. The last tuning sets `configs_timings`, `failures` and `bench_time`. `configs_timings`
    has the milliseconds of each configuration: the median, a fast and a slow run. `failures` has
    the errors of the others, and `bench_time` is in seconds.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.autotune([tessera.Config({"BLOCK": 64}), tessera.Config({"BLOCK": 256})], key=["n"])
        @tessera.jit
        def clear(x_ptr, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(x_ptr + i, 0, mask=i < n)

        assert isinstance(clear, tessera.tuning.Autotuner)
        clear[lambda args: (tessera.cdiv(1000, args["BLOCK"]),)](np.ones(1000), 1000)
        assert clear.best_config in clear.configs and len(clear.configs_timings) == 2
    """

    def __init__(
        self,
        fn: Any,
        arg_names: Sequence[str],
        configs: Configs,
        key: Sequence[str],
        reset_to_zero: Optional[Sequence[str]] = None,
        restore_value: Optional[Sequence[str]] = None,
        pre_hook: Optional[Callable[..., Any]] = None,
        post_hook: Optional[Callable[..., Any]] = None,
        prune_configs_by: Optional[Mapping[str, Any]] = None,
        warmup: Optional[float] = None,
        rep: Optional[float] = None,
        use_cuda_graph: bool = False,
        do_bench: Optional[Callable[..., Any]] = None,
        cache_results: Optional[bool] = None,
        check: Optional[bool] = None,
    ) -> None:
        self.fn = fn
        self.arg_names = list(arg_names)
        self.keys = list(key or ())
        self._is_automatic = isinstance(configs, str)
        """True if the configurations are made from the kernel (automatic.py)."""
        self.configs: list[Config] = [] if isinstance(configs, str) else list(configs or ())
        if not self.configs and not self._is_automatic:
            self.configs = [Config({})]
        self.cache: dict[Any, Config] = _Choices(self)
        self.reset_to_zero = list(reset_to_zero or ())
        self.restore_value = list(restore_value or ())
        self.pre_hook: Callable[..., Any] = pre_hook or _do_nothing
        self.post_hook: Callable[..., Any] = post_hook or _do_nothing
        self.user_defined_pre_hook = pre_hook is not None
        self.user_defined_post_hook = post_hook is not None
        prune = prune_configs_by or {}
        self.perf_model = prune.get("perf_model")
        self.configs_top_k = prune.get("top_k", 1.0)
        self.early_config_prune = prune.get("early_config_prune")
        self.num_warmups = warmup
        self.num_reps = rep
        self.use_cuda_graph = use_cuda_graph
        self.do_bench = do_bench
        # A user's function may measure something else the next time.
        self.cache_results = do_bench is None if cache_results is None else cache_results
        self._check = check
        self.base_fn = fn
        while not isinstance(self.base_fn, FunctionType):
            self.base_fn = self.base_fn.fn
        self._name = str(getattr(self.base_fn, "__name__", "?"))
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(self, name, getattr(self.base_fn, name, None))
        self.nargs: Optional[dict[str, Any]] = None
        self.configs_timings: dict[Config, list[float]] = {}
        self.failures: dict[Config, Exception] = {}
        self.bench_time = 0.0
        self._last: Optional[Config] = None
        self._dispatcher = None
        self._dispatcher_traits: Any = None
        self._dispatcher_slow: Any = None
        self._finder_generation = -1
        """The generation for which the dispatcher only finds configurations."""
        self._python_generation = -1
        """The generation for which the core cannot do these launches."""
        self._dispatcher_generation = -1
        self._lock = threading.RLock()
        self._gates: dict[Any, threading.RLock] = {}
        """The locks of the keys that are being tuned."""
        self._at_work: set[Any] = set()
        """These keys."""
        _all_tuners.add(self)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if not name.startswith("_") and name not in _OUTCOMES:
            self._forget_launches()

    def _forget_launches(self) -> None:
        """Makes the next launch repeat all checks."""
        self._dispatcher_generation = self._finder_generation = self._python_generation = -1
        if self._dispatcher is not None:
            self._dispatcher.clear()

    @property
    def best_config(self) -> Optional[Config]:
        """The configuration of the last launch; None before the first."""
        if self._dispatcher is not None:
            found = self._dispatcher.last_choice()
            if found is not None:
                return cast(Config, found)
        return self._last

    @best_config.setter
    def best_config(self, config: Optional[Config]) -> None:
        self._last = config
        if self._dispatcher is not None:
            self._dispatcher.set_last_choice(config)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)  # which says that the grid is missing

    def __reduce__(self) -> str:
        return str(getattr(self, "__qualname__"))  # by name, as functions are

    def __repr__(self) -> str:
        return f"<autotuned {self.fn!r}>"

    def _repr_html_(self) -> str:
        """How a notebook shows it: its choices, and the times of the last tuning."""
        from tessera.tuning.notebook import tuner_html

        return tuner_html(self)

    # --- Launching ----------------------------------------------------------------

    def _slow_getitem(self, grid: Any) -> Callable[..., Any]:
        """`self[grid]` the first time, and after what every launch depends on has changed."""
        generation = _C.generation()
        if generation not in (self._finder_generation, self._python_generation):
            parameters = self._parameters()
            if parameters is None:
                self._dispatcher_generation = -1
                self._python_generation = generation
            else:
                has_hooks = any(config.pre_hook for config in self.configs)
                only_finds = has_hooks or not isinstance(self.fn, JITFunction)
                self._renew_dispatcher(parameters, only_finds)
                if not has_hooks:
                    self._below = self.fn if only_finds else None
                    self._dispatcher_generation = generation
                    return self[grid]
                self._finder_generation = generation
        if generation == self._finder_generation and self._dispatcher is not None:
            return functools.partial(self._find_and_launch, self._dispatcher, grid)

        def launch(*args: Any, **kwargs: Any) -> Any:
            return self.run(*args, grid=grid, **kwargs)

        return launch

    def _renew_dispatcher(self, parameters: tuple[tuple[Any, ...], ...], only_finds: bool) -> None:
        """Has an empty dispatcher: of launches, or of configurations."""
        traits = inner_kernel(self.fn)._all_traits()
        slow = self._slow_find if only_finds else self._slow
        is_other = self._dispatcher_traits is not traits or self._dispatcher_slow != slow
        if self._dispatcher is None or is_other:
            if self._dispatcher is not None:
                self._last = self.best_config
                self._dispatcher.retire()
            self._dispatcher = _C.Dispatcher(parameters, slow, raise_core_error)
            self._dispatcher_traits, self._dispatcher_slow = traits, slow
        self._dispatcher.clear()

    def _find_and_launch(
        self, finder: _C.Dispatcher, grid: Any, /, *args: Any, **kwargs: Any
    ) -> Any:
        """A launch with a configuration whose hook is called first, or of a kernel below
        heuristics. Both may change the arguments, so the kernel is looked up after them."""
        if "grid" in kwargs or "warmup" in kwargs:
            return self.run(*args, **{"grid": grid, **kwargs})
        if is_skipped(args, kwargs):
            return None
        config = finder.bind(grid).find(*args, **kwargs)
        merged = {**kwargs, **config.all_kwargs()}
        if config.pre_hook is not None:
            config.pre_hook({**dict(zip(self.arg_names, args)), **merged})
        return self.fn[grid](*args, **merged)

    def _slow_find(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The configuration for these arguments, and what the core needs to find it again."""
        self.nargs = dict(zip(self.arg_names, args))
        try:
            config = self._choose(args, kwargs, grid)
            self._refuse_conflicts(args, kwargs, config.all_kwargs())
            self.best_config = config
        finally:
            self.nargs = None
        # The core knows such values of the key by identity.
        constants = {param.name for param in inner_kernel(self.fn).params if param.is_constexpr}
        named = {**dict(zip(self.arg_names, args)), **kwargs}
        for name, value in named.items():
            is_option = name not in self.arg_names
            if (is_option or (name in constants and name in self.keys)) and may_change(value):
                return config, None
        return config, _C.LaunchRecord(None, options=config.all_kwargs(), choice=config)

    def _parameters(self) -> Optional[tuple[tuple[Any, ...], ...]]:
        """The parameters as the core's launches take them; None if it cannot do these launches."""
        if type(self).run is not Autotuner.run:
            return None  # a derived class launches in its own way
        fn = inner_kernel(self.fn)
        if not isinstance(fn, JITFunction) or settings.interpret:
            return None
        if not fn._is_plain() or not self.configs:
            return None
        traits = fn._all_traits()
        names = set(self.configs[0].kwargs)
        if any(set(config.kwargs) != names for config in self.configs):
            return None
        constants = {trait.name for trait in traits if trait.is_constexpr}
        if not names <= constants:  # the options are of one configuration alone
            return None
        if any(param.kind == "varargs" for param in fn.params):
            return None
        filled = names | filled_names(self.fn)
        return tuple(
            dispatched(param, trait, param.name in filled, param.name in self.keys)
            for param, trait in zip(fn.params, traits)
        )

    def _slow(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if "grid" in kwargs or "warmup" in kwargs:
            return self.run(*args, **{"grid": grid, **kwargs}), None
        return self._launch(args, kwargs, grid, True)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launches the kernel; the grid is an argument by the name of `grid`."""
        grid = kwargs.pop("grid", None)
        if kwargs.pop("warmup", False):
            return self.warmup(*args, grid=grid, **kwargs)
        return self._launch(args, kwargs, grid, False)[0]

    def _launch(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any, is_to_repeat: bool
    ) -> tuple[Any, Optional[_C.LaunchRecord]]:
        """Launches with the best configuration. If that `is_to_repeat`, also returns the record by
        which the core does so."""
        if is_skipped(args, kwargs):
            return None, None
        self.nargs = dict(zip(self.arg_names, args))
        try:
            config = self._choose(args, kwargs, grid)
            self.best_config = config
            added = config.all_kwargs()
            self._refuse_conflicts(args, kwargs, added)
            merged = {**kwargs, **added}
            if config.pre_hook is not None:
                config.pre_hook({**dict(zip(self.arg_names, args)), **merged})
            fn = self.fn
            if not is_to_repeat or not isinstance(fn, JITFunction):
                if grid is None or not hasattr(fn, "__getitem__"):
                    more = {} if grid is None else {"grid": grid}
                    return fn.run(*args, **more, **merged), None
                return fn[grid](*args, **merged), None
            traits = fn._all_traits()
            result, record = fn._run(args, merged, grid, False)
            if record is None or self._dispatcher_traits is not traits:
                if self._dispatcher_traits is not traits:
                    self._dispatcher_generation = -1
                return result, None
            return result, _C.LaunchRecord(
                record.family,
                record.slots,
                {**record.options, **config.kwargs},
                record.num_threads,
                record.device,
                record.stream,
                config,
            )
        finally:
            self.nargs = None

    def warmup(self, *args: Any, grid: Any = (1,), **kwargs: Any) -> list[Any]:
        """Compiles the kernel for these arguments with each configuration that pruning keeps.
        Returns the kernels that could be compiled, in order.

        Raises what is wrong with the first one if none could be.
        """
        load_tuning()
        from tessera.tuning.candidates import compiling_threads

        configs = self._configurations(args, kwargs)
        by_place = dict(zip(self.arg_names, args))
        configs = self.prune_configs({**kwargs, "grid": grid, "warmup": True}, configs, by_place)
        jobs = []
        for config in configs:
            self._refuse_conflicts(args, kwargs, config.all_kwargs())
            jobs.append({**kwargs, **config.all_kwargs()})

        def compile(more: dict[str, Any]) -> Any:
            try:
                return self.fn.warmup(*args, grid=grid, **more)
            except TesseraError as error:
                return error

        with compiling_threads(len(jobs)) as pool:
            found = list(pool.map(compile, jobs))
        kernels = [kernel for kernel in found if not isinstance(kernel, TesseraError)]
        if not kernels:
            raise next(error for error in found)
        return kernels

    def _untuned(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """`kwargs` with the first configuration that pruning keeps: for the interpreter, whose time
        is no measure."""
        configs = self._configurations(args, kwargs)
        configs = self.prune_configs(kwargs, configs, dict(zip(self.arg_names, args)))
        added = configs[0].all_kwargs()
        self._refuse_conflicts(args, kwargs, added)
        return {**kwargs, **added}

    def _refuse_conflicts(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], added: Mapping[str, Any]
    ) -> None:
        by_place = self.arg_names[: len(args)]
        for name in added:
            if name in kwargs or name in by_place:
                raise ArgumentError(
                    "E059",
                    f"kernel `{self._name}` gets `{name}` from the call and from its "
                    "configurations",
                    f"drop it from the call, or from the configurations of @autotune",
                )

    # --- Choosing -----------------------------------------------------------------

    def _configurations(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Config]:
        if self._is_automatic and not self.configs:
            load_tuning()
            from tessera.tuning.automatic import make_configs

            self.configs = make_configs(self.fn, self.arg_names, args, kwargs)
        return self.configs

    def _choose(self, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any) -> Config:
        configs = self._configurations(args, kwargs)
        if len(configs) == 1 and not self._is_automatic:
            return configs[0]  # nothing to choose
        key = self._key(args, kwargs)
        try:
            found = self.cache.get(key)
        except TypeError:
            raise ArgumentError(
                "E059",
                f"an argument in the key of kernel `{self._name}` cannot be hashed: "
                f"{shown(key)}",
                "name arguments in `key` that are numbers, strings or dtypes",
            ) from None
        if found is not None:
            return found
        # Threads that want the same wait for the first of them, and for no other.
        with self._lock:
            gate = self._gates.setdefault(key, threading.RLock())
        try:
            with gate:
                found = self.cache.get(key)
                if found is not None:
                    return found
                if key in self._at_work:  # in this thread, which alone comes through the gate
                    raise TuningError(
                        "E059",
                        f"kernel `{self._name}` is launched by a function that runs while it is "
                        "tuned for the same values of the key",
                        "launch the kernel below @autotune there, or after the tuning",
                    )
                self._at_work.add(key)
                try:
                    best = self._tune(key, configs, args, kwargs, grid)
                    self._forget_with_arrays(key, args, kwargs)
                    return best
                finally:
                    self._at_work.discard(key)
        finally:
            with self._lock:
                if key not in self._at_work:
                    self._gates.pop(key, None)

    def _forget_with_arrays(
        self, key: tuple[Any, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """Drops a choice when the arrays of its key are freed, since other arrays may get their
        addresses."""
        owner, named = weakref.ref(self), self._named(args, kwargs)

        def forget() -> None:
            tuner = owner()
            if tuner is not None:
                tuner.cache.pop(key, None)

        for name, part in zip(self.keys, key):
            if isinstance(part, Address):
                try:
                    weakref.finalize(array_in(named[name]), forget).atexit = False
                except TypeError:  # such an array cannot be watched
                    pass

    def _named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that are passed, in the order of the parameters."""
        given = {**dict(zip(self.arg_names, args)), **kwargs}
        return {name: given[name] for name in self.arg_names if name in given}

    def _key(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The key of the choice: the values of the key arguments, element types and the device."""
        options = {name: kwargs[name] for name in kwargs if name not in self.arg_names}
        return make_key(self.fn, self.keys, self._named(args, kwargs), options)

    def _tune(
        self,
        key: tuple[Any, ...],
        configs: list[Config],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        grid: Any,
    ) -> Config:
        load_tuning()
        more = {**kwargs, **({} if grid is None else {"grid": grid, "warmup": False})}
        configs = self.prune_configs(more, configs, dict(zip(self.arg_names, args)))
        if len(configs) == 1 or settings.interpret:
            # The interpreter's time is no measure.
            self._note(key, configs[0])
            return configs[0]
        for config in configs:
            self._refuse_conflicts(args, kwargs, config.all_kwargs())
        question = self._question(key, configs, grid)
        found = question.find() if question is not None else None
        if found is not None:
            best = configs[int(found.best)]
            self.configs_timings = {
                config: list(timing) if timing else [float("inf")] * 3
                for config, timing in zip(configs, found.timings)
            }
            self._note(key, best)
            self._tell(key, best, 0.0, True)
            return best
        return self._measure(key, configs, args, kwargs, grid, question)

    def _measure(
        self,
        key: tuple[Any, ...],
        configs: list[Config],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        grid: Any,
        question: Any,
    ) -> Config:
        from tessera.compiler.compile import load_front_end
        from tessera.tuning.candidates import make_candidate
        from tessera.tuning.progress import Progress
        from tessera.tuning.session import choose

        load_front_end()
        candidates = [
            make_candidate(config, self.fn, self.arg_names, grid, args, kwargs)
            for config in configs
        ]
        self._refuse_capture(args, kwargs)
        told = Progress(self._name, dict(zip(self.keys, key)))
        around = self._around()
        if self.perf_model is estimate:
            around = around._replace(most_measured=self._count_top(len(configs)))
        choice = choose(self._name, candidates, around, told)
        best = configs[choice.best]
        info("tuned `%s` in %.1f s: %s", self._name, choice.seconds, shortly(best))
        self.bench_time = choice.seconds
        self.failures = choice.failures
        self.configs_timings = {
            config: list(timing) if timing is not None else [float("inf")] * 3
            for config, timing in zip(configs, choice.timings)
        }
        if self.user_defined_pre_hook:
            self.pre_hook(candidates[choice.best].named, reset_only=True)
        self._note(key, best)
        if question is not None and choice.is_certain:
            question.keep(choice.best, choice.timings, choice.seconds)
        self._tell(key, best, choice.seconds, False)
        return best

    def _around(self) -> "Hooks":
        """The hooks of launches that are measured, and how long these launches run."""
        from tessera.tuning.automatic import MOST_MEASURED
        from tessera.tuning.session import FINAL_MS, Hooks, REP_MS, WARMUP_MS

        warmup = WARMUP_MS if self.num_warmups is None else self.num_warmups
        rep = REP_MS if self.num_reps is None else self.num_reps
        return Hooks(
            self.pre_hook if self.user_defined_pre_hook else None,
            self.post_hook if self.user_defined_post_hook else None,
            self.reset_to_zero,
            self.restore_value,
            self.do_bench,
            self.use_cuda_graph,
            float(warmup) + float(rep),
            FINAL_MS if self.num_warmups is None and self.num_reps is None else 0.0,
            self._check,
            MOST_MEASURED if self._is_automatic else None,
        )

    def _bench(self, *args: Any, config: Config, **kwargs: Any) -> list[float]:
        """The milliseconds of launches with one configuration, as `configs_timings` has them;
        infinity where it does not work.

        Nothing here calls it. Classes that derive from Triton's Autotuner to choose in another way
        measure by it.
        """
        load_tuning()
        from tessera.compiler.compile import load_front_end
        from tessera.tuning.candidates import make_candidate
        from tessera.tuning.progress import Progress
        from tessera.tuning.session import HookError, choose

        grid = kwargs.pop("grid", None)
        kwargs.pop("warmup", None)
        self._refuse_conflicts(args, kwargs, config.all_kwargs())
        self._refuse_capture(args, kwargs)
        load_front_end()
        candidate = make_candidate(config, self.fn, self.arg_names, grid, args, kwargs)
        around = self._around()._replace(check=False, measures_one=True)
        try:
            choice = choose(self._name, [candidate], around, Progress(self._name, {}, True))
        except HookError:
            raise
        except TesseraError:
            return [float("inf")] * 3
        timing = choice.timings[0]
        return [float("inf")] * 3 if timing is None else list(timing)

    def _question(self, key: tuple[Any, ...], configs: list[Config], grid: Any) -> Any:
        """The key of a result on disk; None if results are not kept on disk."""
        inner = inner_kernel(self.fn)
        if not self.cache_results or not isinstance(inner, JITFunction) or self._check:
            return None
        if any(isinstance(part, Address) for part in key):
            return None  # which in another process is another array's
        from tessera.tuning.store import Question

        names = f"{inner.__module__}.{inner.__qualname__}"
        # With another grid of its own kind it would have to be compared (coverage.py).
        fixed = () if callable(grid) or self._check is False else (("grid", str(grid)),)
        if self.perf_model is estimate:
            fixed = (*fixed, ("estimated", str(self.configs_top_k)))
        return Question(names, inner.cache_key, (*key[:-1], *fixed), key[-1], configs)

    def _refuse_capture(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Nothing can be measured while launches are recorded into a graph."""
        from tessera.runtime.cuda import find_stream, read_stream
        from tessera.runtime.specialize import PointerSlot

        pointers = []
        for name, value in self._named(args, kwargs).items():
            pointer = pointer_of(array_in(value), name) if dtype_of(value) is not None else None
            if pointer is not None and pointer.device >= 0:
                pointers.append(PointerSlot(0, name, pointer))
        if not pointers:
            return
        from tessera.runtime.driver import is_capturing

        device = pointers[0].pointer.device
        stream = read_stream(find_stream(pointers, device, kwargs.get("stream")), device)
        if is_capturing(device, stream):
            raise TuningError(
                "E059",
                f"kernel `{self._name}` is to be tuned while its stream is recorded into a "
                "CUDA graph",
                "launch it once before, with the same values of the key",
            )

    def _note(self, key: Any, config: Config) -> None:
        if isinstance(self.cache, _Choices):
            self.cache.note(key, config)
        else:  # somebody has put another dict there
            self.cache[key] = config

    def _tell(self, key: Any, best: Config, seconds: float, is_known: bool) -> None:
        if hooks.autotuning_listener is not None:
            hooks.autotuning_listener(
                fn=inner_kernel(self.fn),
                key=key,
                best_config=best,
                configs_timings=self.configs_timings,
                duration=None if is_known else seconds,
                cache_hit=is_known,
            )

    def _count_top(self, configs: int) -> int:
        """How many of so many configurations `top_k` keeps."""
        top_k = self.configs_top_k
        if isinstance(top_k, float) and top_k <= 1.0:
            return max(1, int(configs * top_k))
        if not isinstance(top_k, int) or top_k < 1:
            raise TuningError(
                "E059", f"top_k is {shown(top_k)}", "use 0.0 to 1.0, or a number from 1 on"
            )
        return top_k

    def prune_configs(
        self,
        kwargs: Mapping[str, Any],
        configs: Optional[list[Config]] = None,
        named: Optional[Mapping[str, Any]] = None,
    ) -> list[Config]:
        """The configurations that the functions in `prune_configs_by` leave, for the arguments
        `named` by place (those of the launch that is going on) and `kwargs`."""
        pruned = list(self.configs if configs is None else configs)
        named = dict((self.nargs or {}) if named is None else named)
        if self.early_config_prune is not None:
            pruned = list(self.early_config_prune(pruned, named, **kwargs) or ())
            for config in pruned:
                if not isinstance(config, Config):
                    raise TuningError(
                        "E059",
                        f"the early_config_prune of kernel `{self._name}` returned "
                        f"{with_article(type(config).__name__)} among the configurations: "
                        f"{shown(config)}",
                        "return some of those that it is given",
                    )
            if not pruned:
                raise TuningError(
                    "E059",
                    f"the early_config_prune of kernel `{self._name}` left no configuration",
                    "return at least one of those that it is given",
                )
        if self.perf_model is not None and self.perf_model is not estimate:
            top_k = self._count_top(len(pruned))
            if len(pruned) > top_k:
                model = self.perf_model
                costs = [
                    number_of(
                        model(**{**named, **kwargs, **item.all_kwargs()}),
                        f"the perf_model of kernel `{self._name}`",
                    )
                    for item in pruned
                ]
                order = sorted(range(len(pruned)), key=lambda place: costs[place])
                pruned = [pruned[place] for place in order[:top_k]]
        return pruned


def autotune(
    configs: Configs,
    key: Sequence[str] = (),
    prune_configs_by: Optional[Mapping[str, Any]] = None,
    reset_to_zero: Optional[Sequence[str]] = None,
    restore_value: Optional[Sequence[str]] = None,
    pre_hook: Optional[Callable[..., Any]] = None,
    post_hook: Optional[Callable[..., Any]] = None,
    warmup: Optional[float] = None,
    rep: Optional[float] = None,
    use_cuda_graph: bool = False,
    do_bench: Optional[Callable[..., Any]] = None,
    cache_results: Optional[bool] = None,
    check: Optional[bool] = None,
) -> Callable[[Any], Autotuner]:
    """Has a kernel launched with the fastest of several configurations.

    Arguments:
      configs: a list of Config, or "auto" to have one made from the kernel.
      key: names of the arguments whose values the choice depends on. It also depends on the
        element types of arrays and on the device. An array that is named has a choice of its own,
        for as long as it lives; it is not kept on disk.
      prune_configs_by: a dict with `early_config_prune`, a function (configs, arguments by place,
        **others) that returns some of them; `perf_model`, a function of all arguments that returns
        an estimate of the time, or `tessera.estimate`, the compiler's own; `top_k`, how many with
        the least estimates are measured, or which part of them.
      reset_to_zero: names of arrays that are set to zero before each run that measures.
      restore_value: names of arrays that are as they were before each such run. Arrays that a
        kernel both reads and writes are, without being named.
      pre_hook, post_hook: called around each such run as pre_hook(arguments) and
        post_hook(arguments, exception=...); after the last, pre_hook(arguments, reset_only=True).
      warmup, rep: how many milliseconds a configuration runs at most, together; 25 and 100.
      use_cuda_graph: whether launches are measured in a CUDA graph.
      do_bench: a function (launch, quantiles) that measures, instead of ours.
      cache_results: whether results are kept on disk: they are, unless there is a `do_bench`.
      check: whether the configurations' results are compared: what differs beyond rounding is
        warned of, and not chosen. By default, what they write is compared where the grid is no
        function and they differ in the extent of a tile; False compares nothing.

    Raises CompilationError (E059) for a name that is no parameter of the kernel. A launch raises
    TuningError: E059 if no configuration works, E086 if one leaves unwritten what others write
    with the same grid.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.autotune([tessera.Config({"BLOCK": 64}), tessera.Config({"BLOCK": 256})], key=["n"])
        @tessera.jit
        def add_one(x_ptr, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)

        x = np.zeros(1000, np.float32)
        add_one[lambda args: (tessera.cdiv(args["n"], args["BLOCK"]),)](x, 1000)
        assert (x == 1).all()  # the runs that measure leave nothing behind
        assert add_one.best_config.kwargs["BLOCK"] in (64, 256)
    """

    def decorate(fn: Any) -> Autotuner:
        names = require_kernel(fn, "autotune")
        if isinstance(fn, Autotuner):
            raise CompilationError.at_caller(
                "E059", f"kernel `{fn._name}` is decorated with @autotune twice", "drop one"
            )
        check_configs(fn, configs)
        check_values(fn, names, configs)
        return Autotuner(
            fn,
            names,
            configs,
            checked_names(fn, names, "key", key),
            checked_names(fn, names, "reset_to_zero", reset_to_zero),
            checked_names(fn, names, "restore_value", restore_value),
            pre_hook=pre_hook,
            post_hook=post_hook,
            prune_configs_by=prune_configs_by,
            warmup=warmup,
            rep=rep,
            use_cuda_graph=use_cuda_graph,
            do_bench=do_bench,
            cache_results=cache_results,
            check=check,
        )

    return decorate


def _do_nothing(*args: Any, **kwargs: Any) -> None:
    """The hook of who gave none."""


_all_tuners: "weakref.WeakSet[Autotuner]" = weakref.WeakSet()


def _renew_locks() -> None:
    # A thread that does not exist in the child may have held them.
    for tuner in _all_tuners:
        tuner._lock = threading.RLock()
        tuner._gates = {}
        tuner._at_work = set()
    session = sys.modules.get("tessera.tuning.session")
    if session is not None:
        session._MEASURING = threading.RLock()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
