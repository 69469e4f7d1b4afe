# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that are called around compilations and launches, for profilers and tests.

from tessera.runtime.hooks import hooks
hooks.launch_enter.add(lambda metadata: print(metadata.get()["name"]))
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence

from tessera import _C
from tessera.settings import note_change

__all__ = ["CompileTimes", "FunctionInfo", "HookChain", "Hooks", "LazyDict", "hooks"]

Hook = Callable[..., Any]


class HookChain:
    """Hooks that are called one after the other; the last one first if `reversed`."""

    def __init__(self, reversed: bool = False) -> None:
        self.calls: list[Hook] = []
        self.reversed = reversed

    def add(self, func: Hook) -> None:
        """Adds a hook that is not there yet."""
        if func not in self.calls:
            self.calls.append(func)
            note_change()

    def remove(self, func: Hook) -> None:
        """Removes a hook, if it is there."""
        if func in self.calls:
            self.calls.remove(func)
            note_change()

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        for call in self.calls[::-1] if self.reversed else list(self.calls):
            call(*args, **kwargs)


class LazyDict:
    """A dict parts of which are computed when it is asked for."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.extras: list[tuple[Hook, tuple[Any, ...]]] = []

    def get(self) -> dict[str, Any]:
        """All of it."""
        while self.extras:
            compute, args = self.extras.pop(0)
            self.data = {**self.data, **compute(*args)}
        return self.data

    def add(self, func: Hook, args: tuple[Any, ...]) -> None:
        """Has the dict that `func(*args)` returns added when it is asked for."""
        self.extras.append((func, args))


class FunctionInfo(NamedTuple):
    """A kernel, as hooks of compilations get it."""

    module: str
    name: str
    jit_function: Any


class CompileTimes(NamedTuple):
    """How long the parts of a compilation took, in microseconds."""

    ir_initialization: int
    """From the source to the first IR."""
    lowering_stages: list[tuple[str, int]]
    """From a stage to the next one, by the name of that."""
    store_results: int = 0

    @property
    def total_lowering(self) -> int:
        """All stages."""
        return sum(time for _, time in self.lowering_stages)

    @property
    def total(self) -> int:
        """All of it."""
        return self.ir_initialization + self.total_lowering + self.store_results


class Hooks:
    """All hooks of this process."""

    def __init__(self) -> None:
        self.launch_enter = HookChain()
        """Called with a LazyDict of `name`, `function`, `stream` and what the kernel's own
        `launch_metadata(grid, metadata, args)` adds, before each launch; `launch_exit` after."""
        self.launch_exit = HookChain(reversed=True)
        self.kernel_load_start = HookChain()
        """Called with (module, function, name, metadata_group, hash) around the loading of a
        kernel's machine code by `_init_handles`."""
        self.kernel_load_end = HookChain(reversed=True)
        self.jit_cache: Optional[Hook] = None
        """Called before a launch or a `warmup` compiles, with `key`, `repr`, `fn`, `compile`,
        `is_manual_warmup` and `already_compiled`. If it returns True, nothing is compiled."""
        self.jit_post_compile: Optional[Hook] = None
        """Called after that, with the same."""
        self.autotuning_listener: Optional[Hook] = None
        """Called after each tuning: listener(fn=, key=, best_config=, configs_timings=, duration=,
        cache_hit=). `fn` is the kernel; where the disk knew the choice `duration` is None."""
        self.compilation_listener: Optional[Hook] = None
        """Called after each compilation, and where the disk had the kernel (`cache_hit`), with
        `src`, `metadata`, `metadata_group` (which is empty), `times` and `cache_hit`."""

    @property
    def on_launch(self) -> bool:
        """True if something is to be called at launches."""
        return bool(self.launch_enter.calls or self.launch_exit.calls)

    @property
    def on_load(self) -> bool:
        """True if something is to be called when machine code is loaded."""
        return bool(self.kernel_load_start.calls or self.kernel_load_end.calls)

    def tell_of_compilation(
        self, kernel: Any, cache_hit: bool, looking_up: float = 0.0, storing: float = 0.0
    ) -> None:
        """Calls the listener of compilations, if there is one.

        `looking_up` and `storing` are the seconds that this took, in the disk cache.
        """
        if self.compilation_listener is None:
            return
        stages = [(name, int(1000 * time)) for name, time in kernel.metadata.get("stage_ms", ())]
        self.compilation_listener(
            src=kernel.src,
            metadata=kernel.metadata._asdict(),
            metadata_group={},
            times=(
                CompileTimes(int(1e6 * looking_up), [])
                if cache_hit
                else CompileTimes(stages[0][1], stages[1:], int(1e6 * storing))
            ),
            cache_hit=cache_hit,
        )

    @property
    def on_compile(self) -> bool:
        """True if something is to be called when a launch or a `warmup` compiles."""
        return self.jit_cache is not None or self.jit_post_compile is not None


hooks = Hooks()


def tell_launch(
    kernel: Any,
    grid: tuple[int, int, int],
    values: Sequence[Any],
    options: Mapping[str, Any],
    stream: int,
) -> LazyDict:
    """Calls the hooks of launches before one of `kernel`; what they get after it. The arguments are
    `values`, in order, and by name what `options` has in their place."""
    told = LazyDict({"name": kernel.name, "function": kernel.function, "stream": stream})
    fn = kernel.src.fn
    describe = getattr(fn, "launch_metadata", None)
    if describe is not None:
        args = {
            name: options.get(name) if value is None else value
            for name, value in zip(fn.arg_names, values)
        }
        told.add(describe, (grid, kernel.metadata, args))
    hooks.launch_enter(told)
    return told


def _tell_warm_launch(
    slow: Any,
    kernel: Any,
    grid: tuple[int, int, int],
    values: Sequence[Any],
    options: Mapping[str, Any],
    stream: int,
) -> LazyDict:
    # A compiled kernel has the launch itself.
    kernel = slow.__self__ if kernel is None else kernel
    return tell_launch(kernel, grid, values, options, stream)


_C.learn_launch_hooks(
    lambda: hooks.on_launch, _tell_warm_launch, lambda told: hooks.launch_exit(told)
)
