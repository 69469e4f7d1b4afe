# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel some of whose arguments are computed from the others at each launch."""

from __future__ import annotations

import math
from typing import Any, Callable, Mapping, NoReturn, Sequence

from tessera import _C
from tessera.errors import CompilationError, LaunchError, TesseraError, TuningError
from tessera.runtime.interface import KernelInterface
from tessera.wording import closest, shown, shown_place, with_article


class Heuristics(_C.Heuristics, KernelInterface):
    """A kernel made by `@heuristics`. `kernel[grid](...)` calls each function of `values` with a
    dict of the arguments by name, and launches `fn` with the results.

    The functions see what those before them returned, and arguments that are passed; not the
    defaults of others.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.heuristics({"EVEN": lambda args: args["n"] % 64 == 0})
        @tessera.jit
        def clear(x_ptr, n, EVEN: tl.constexpr):
            i = tl.program_id(0) * 64 + tl.arange(0, 64)
            tl.store(x_ptr + i, 0, mask=None if EVEN else i < n)

        assert isinstance(clear, tessera.tuning.Heuristics) and list(clear.values) == ["EVEN"]
        x = np.ones(100, np.float32)
        clear[(2,)](x, 100)
        assert not x.any()
    """

    def __init__(
        self,
        fn: Any,
        arg_names: Sequence[str],
        values: Mapping[str, Callable[[dict[str, Any]], Any]],
    ) -> None:
        self.fn = fn
        self.arg_names = list(arg_names)
        self.values = values
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(self, name, getattr(fn, name, None))

    _untuned = _C.Heuristics._evaluated
    """The arguments that the interpreter adds to a launch."""

    def _raise(self, name: str, function: Any, error: Exception) -> NoReturn:
        """Raises the error of a function that has raised one."""
        if isinstance(error, TesseraError):
            raise error
        raise LaunchError(
            "E060",
            f"{self._describe(name, function)} raised {type(error).__name__}: {error}",
            "it is called with a dict of the arguments that are passed, by name",
        ) from error

    def _check(self, name: str, function: Any, value: Any) -> None:
        """Refuses an array as the value of a constexpr."""
        is_array = hasattr(value, "data_ptr") or bool(getattr(value, "ndim", 0))
        if is_array and self._is_constexpr(name):
            raise LaunchError(
                "E060",
                f"{self._describe(name, function)} returned {with_article(type(value).__name__)}: "
                f"{shown(value)}",
                "return a number, a bool or another constant",
            )

    def _describe(self, name: str, function: Any) -> str:
        return f"the heuristic for `{name}` of kernel `{self._kernel_name}` ({_place(function)})"

    def _is_constexpr(self, name: str) -> bool:
        inner = self.fn
        while not hasattr(inner, "params") and hasattr(inner, "fn"):
            inner = inner.fn
        params = getattr(inner, "params", ())
        return any(param.name == name and param.is_constexpr for param in params)

    @property
    def _kernel_name(self) -> str:
        return str(getattr(self, "__name__", None) or "?")

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launches the kernel; the grid is an argument by the name of `grid`."""
        return self.fn.run(*args, **self._evaluated(args, kwargs))

    def warmup(self, *args: Any, **kwargs: Any) -> Any:
        """Compiles the kernel for these arguments without running it."""
        return self.fn.warmup(*args, **self._evaluated(args, kwargs))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)

    def __reduce__(self) -> str:
        return str(getattr(self, "__qualname__"))  # by name, as functions are

    def __repr__(self) -> str:
        return f"<heuristics for {self.fn!r}>"


def heuristics(
    values: Mapping[str, Callable[[dict[str, Any]], Any]],
) -> Callable[[Any], Heuristics]:
    """Computes arguments and options of a kernel, such as `num_warps`, at each launch.

    `values` has a function for each of them, which gets a dict of the arguments by name.

    Raises CompilationError (E060) for a name that is neither a parameter of the kernel nor an
    option. A launch raises LaunchError (E060) if a function raises, or returns an array.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.heuristics({"BLOCK": lambda args: tessera.next_power_of_2(args["n"])})
        @tessera.jit
        def negate(x_ptr, n, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            tl.store(x_ptr + i, -tl.load(x_ptr + i, mask=i < n), mask=i < n)

        x = np.arange(5)
        negate[(1,)](x, 5)  # with BLOCK=8
        assert x.tolist() == [0, -1, -2, -3, -4]
    """

    def decorate(fn: Any) -> Heuristics:
        names = require_kernel(fn, "heuristics")
        for name, function in values.items():
            if name not in names and not is_option(name):
                raise CompilationError.at_caller(
                    "E060",
                    f"@heuristics has a value for `{name}`, which is no parameter of "
                    f"`{fn.__name__}` and no option",
                    name_like(name, names),
                )
            if not callable(function):
                raise CompilationError.at_caller(
                    "E060",
                    f"the heuristic for `{name}` is {with_article(type(function).__name__)}",
                    f"write a function of the arguments: lambda args: {shown(function)}",
                )
        return Heuristics(fn, names, values)

    return decorate


def inner_kernel(fn: Any) -> Any:
    """The kernel below one or more `@heuristics`; `fn` itself if there are none."""
    while isinstance(fn, Heuristics):
        fn = fn.fn
    return fn


def filled_names(fn: Any) -> set[str]:
    """The names that the heuristics above a kernel have values for."""
    names: set[str] = set()
    while isinstance(fn, Heuristics):
        names.update(fn.values)
        fn = fn.fn
    return names


def require_kernel(fn: Any, decorator: str) -> list[str]:
    """The names of the parameters of a decorated function, which must be a kernel."""
    names = getattr(fn, "arg_names", None)
    if names is None or not hasattr(fn, "run"):
        raise CompilationError.at_caller(
            "E003",
            f"@{decorator} is put on something that is no kernel: {shown(fn)}",
            f"put @jit right above the `def`, and @{decorator} above that",
        )
    return list(names)


def is_option(name: Any) -> bool:
    """True if a launch takes it as one of the options."""
    from tessera.compiler.options import OPTION_NAMES

    return name in OPTION_NAMES


def name_like(name: Any, names: Sequence[str]) -> str:
    """The fix for a name that is none of a kernel's parameters."""
    near = closest(str(name), names)
    return f"did you mean `{near}`?" if near else f"the parameters are {', '.join(names)}"


def _place(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return shown_place(code.co_filename, code.co_firstlineno) if code else repr(function)


def number_of(value: Any, whose: str) -> float:
    """A time or a cost that a function of the user's returned; what is no number is worse than
    every number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TuningError(
            "E059", f"{whose} returned {shown(value)}", "return a number; less is better"
        ) from None
    return math.inf if math.isnan(number) else number
