# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""@pointwise: an operator on arrays of one function of their elements.

A call looks a plan up (calls/plans.py) by the types, shapes and strides of its arguments. The plan
makes the results and launches a kernel. Kernels are made by the kind of the walk (calls/elements.py),
so that many plans share one. Derivatives and what torch's tracers need are in torch/elementwise.py.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional, Sequence, Union, overload

from tessera.calls import pending, recording
from tessera.calls.libraries import LIBRARIES
from tessera.calls.outputs import library_of, library_of_class
from tessera.calls.plans import NUMBERS, Operator, Planned, Run, make_prepare
from tessera.calls.scalars import Scalar
from tessera.errors import ArgumentError, CompilationError
from tessera.language import types
from tessera.locks import load
from tessera.runtime.jit import JITFunction, jit
from tessera.wording import counted, shown, with_article

MAX_PLANS = 1024
"""Plans that an operator keeps. There are more only if shapes change all the time."""


class _Keys(dict[type, Callable[[Any], Any]]):
    """By the type of an argument, a function that finds what plans depend on."""

    def __missing__(self, cls: type) -> Callable[[Any], Any]:
        library = library_of_class(cls)
        if library in LIBRARIES and (library != "torch" or _is_torchs_own(cls)):
            self[cls] = LIBRARIES[library].key
            return self[cls]
        return _Unknown


def _is_torchs_own(cls: type) -> bool:
    torch = sys.modules["torch"]
    return cls in (torch.Tensor, torch.nn.Parameter)


class _Unknown:
    """The key of an argument that no plan is for."""

    def __init__(self, value: Any) -> None:
        pass


keys = _Keys({bool: type, int: type, float: type, type(None): type, str: type, tuple: type})


def constant_key(value: Any) -> Any:
    """The part of a key that tells a constant apart: 0.0 equals -0.0, True 1, and so in tuples."""
    return repr(value) if type(value) in (float, tuple, bool) else value


def _is_never_tracing() -> bool:
    return False


is_tracing: Callable[[], bool] = _is_never_tracing
"""`torch.compiler.is_compiling`, once torch is loaded: Dynamo knows its value while it traces."""

in_torch: Any = None
"""The module tessera.torch.elementwise, once torch is loaded. Dynamo does not trace how it is found."""


def default_dtype() -> Any:
    """torch's type for what is made a float, once torch is loaded."""
    return None


def learn_torch() -> None:
    """Has operators tell when torch traces or differentiates. torch has been loaded."""
    global is_tracing, in_torch, default_dtype
    if is_tracing is _is_never_tracing:
        default_dtype = sys.modules["torch"].get_default_dtype
        in_torch = load("tessera.torch.elementwise")
        is_tracing = sys.modules["torch"].compiler.is_compiling


class Pointwise(Operator):
    """The result of `@tessera.pointwise`. `op(*args, out=None)` returns an array, or a tuple of
    several. Arguments are arrays of one library, and numbers. `op.function` is the scalar function,
    which kernels and other scalar functions may call.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.pointwise
        def hypotenuse(x, y):
            return tl.sqrt(x * x + y * y)

        x, y = np.full((3, 1), 3.0), np.full(4, 4.0)
        out = np.empty((3, 4))
        assert isinstance(hypotenuse, tessera.Pointwise)
        assert hypotenuse(x, y, out=out) is out and (out == 5).all()
    """

    def __init__(self, function: JITFunction[Any, Any], promotion: Optional[str] = None) -> None:
        super().__init__(function, promotion)
        self.names = tuple(param.name for param in function.params)
        """Of the arguments."""
        self._defaults = {
            param.name: types.unwrap(param.default)
            for param in function.params
            if param.has_default
        }
        self._plans: dict[Any, Run] = {}
        self._constants = tuple(
            at for at, param in enumerate(function.params) if param.is_constexpr
        )
        """The places of constants, on whose values plans depend."""
        self.prepare = make_prepare(self, lambda: load("tessera.torch.chains"))
        self._declare_constants(self._constants)
        self._declare_defaults(
            [
                (name, (self._defaults[name],) if name in self._defaults else ())
                for name in self.names
            ]
        )
        self._take_out()
        if "torch" in sys.modules:
            learn_torch()

    def __call__(self, *args: Any, out: Any = None, **named: Any) -> Any:
        if is_tracing():
            return in_torch.call(self, self.placed(args, named), out)
        if named or len(args) != len(self.names):
            args = self.placed(args, named)
        graph = pending.current()
        if graph is not None:
            return graph.call(self, args, out)
        recorder = recording.current()
        if recorder is not None and out is None:
            return self._record(recorder, args)
        outs = out if out is None or isinstance(out, (tuple, list)) else (out,)
        run = self._plans.get(self._key(args, outs))
        return self._call_new(args, outs) if run is None else run(args, outs)

    def _key(self, args: Sequence[Any], outs: Optional[Sequence[Any]]) -> Any:
        """The key of a call in the table of plans; equal to nothing else if no plan is for it."""
        key = [keys[type(arg)](arg) for arg in (args if outs is None else (*args, None, *outs))]
        for at in self._constants:
            key.append(constant_key(args[at]))
        try:
            hash(found := tuple(key))
        except TypeError:
            return object()
        return found

    def backward(self, fn: Any) -> Any:
        """Decorates the derivative: a scalar function of the gradients of the results, then of the
        arguments, that returns a gradient for each argument. Without one it is derived."""
        self.derivative = fn if isinstance(fn, JITFunction) else jit(fn)
        self._plans.clear()
        self._forget()
        self.gradients.clear()
        self.kept.clear()
        return self.derivative

    def __reduce__(self) -> Any:
        return self.__qualname__  # by name, as functions are

    def __repr__(self) -> str:
        return f"<pointwise {self.function!r}>"

    def placed(self, args: Sequence[Any], named: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments in the order of the parameters, with defaults."""
        if not named and len(args) == len(self.names):
            return tuple(args)
        if len(args) > len(self.names):
            raise ArgumentError(
                "E051",
                f"`{self.__name__}` takes {counted(len(self.names), 'argument')}, got {len(args)}",
                f"they are {', '.join(self.names)}",
            )
        for name in named:
            if name not in self.names[len(args) :]:
                raise ArgumentError(
                    "E051",
                    (
                        f"`{self.__name__}` got two values for `{name}`"
                        if name in self.names
                        else f"`{self.__name__}` has no parameter `{name}`"
                    ),
                    f"the parameters are {', '.join(self.names)}",
                )
        found = list(args)
        for name in self.names[len(args) :]:
            if name in named:
                found.append(named[name])
            elif name in self._defaults:
                found.append(self._defaults[name])
            else:
                raise ArgumentError(
                    "E051", f"`{self.__name__}` got no `{name}`", f"pass {name}=..."
                )
        return tuple(found)

    def _record(self, recorder: recording.Recorder, args: Sequence[Any]) -> Any:
        """A call that is recorded, and not done."""
        args, library = unified(self.__name__, self.scalar, args)
        made = Planned(self, library, args, None)
        results = tuple(make() for make in made.make_all())
        examples: tuple[Any, ...] = ()
        if library == "torch":
            examples = results
            recorder.checks += in_torch.checks_of(made, args)
        recorder.add(made.call_plan(examples=examples), args, results)
        if library == "torch":
            in_torch.add_node(recorder, self, made, args, results)
        return results[0] if len(results) == 1 else results

    def _call_new(self, args: Sequence[Any], outs: Optional[Sequence[Any]]) -> Any:
        """A call that no plan is known for."""
        given = args
        args, library = unified(self.__name__, self.scalar, args)
        if library == "torch":
            learn_torch()
            if not in_torch.is_plain(args):
                return in_torch.call(self, args, outs)
        made = Planned(self, library, args, outs)
        if library == "torch":
            run = in_torch.make_run(self, made, args, outs)
        elif library == "jax":
            run = load("tessera.jax.calls").elementwise_run(made)
        else:
            run = made.run()
        is_known = args is given and all(type(args[at]) in keys for at in self._constants)
        if is_known:
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            self._plans[self._key(args, outs)] = run
        result = run(args, outs)
        # The launch has learned how to read such arrays.
        if is_known and (outs is None or len(outs) == len(made.results) == 1):
            if library == "torch":
                in_torch.learn(self, made, args, outs)
            elif library == "cupy" and outs is None:
                self._learn(made.call_plan(), *args)
            elif library == "numpy":
                spans, named = ((), {}) if outs is None else (made.spans(), {"out": outs[0]})
                self._learn(made.call_plan(spans=spans), *args, **named)
        return result


def unified(name: str, scalar: Scalar, args: Sequence[Any]) -> tuple[Sequence[Any], str]:
    """The arguments with NumPy's numbers made plain, and the library of the arrays."""
    is_same = not pending.has_pending(args)
    args = args if is_same else pending.opened(tuple(args))
    found = list(args)
    library, first = "", ""
    for param, arg in zip(scalar.params, args):
        here = "" if param.is_constexpr else library_of(arg)
        if not here:
            continue
        if here not in LIBRARIES:
            raise ArgumentError(
                "E089",
                f"argument `{param.name}` of `{name}` is an array of {here}",
                "pass an array of NumPy, torch, CuPy or JAX",
            )
        if library and here != library:
            raise ArgumentError(
                "E089",
                f"argument `{param.name}` of `{name}` is an array of {here}, and `{first}` is one of "
                f"{library}",
                "pass arrays of one library",
            )
        library, first = here, first or param.name
    if not library and any(type(arg).__module__ == "numpy" for arg in args):
        library = "numpy"  # its numbers are arrays without dimensions
    if not library:
        raise ArgumentError(
            "E089", f"a call of `{name}` has no array", f"pass one for `{scalar.params[0].name}`"
        )
    for at, (param, arg) in enumerate(zip(scalar.params, args)):
        if param.is_constexpr or library_of(arg) or type(arg) in NUMBERS:
            continue
        if type(arg).__module__ == "numpy" and hasattr(arg, "item"):
            found[at] = sys.modules["numpy"].asarray(arg) if library == "numpy" else arg.item()
            is_same = False
            continue
        raise ArgumentError(
            "E089",
            f"argument `{param.name}` of `{name}` is {with_article(type(arg).__name__)}: {shown(arg)}",
            "pass an array or a number (bool, int or float)",
        )
    return args if is_same else found, library


@overload
def pointwise(fn: Callable[..., Any], /) -> Pointwise: ...
@overload
def pointwise(*, promotion: Optional[str] = None) -> Callable[[Callable[..., Any]], Pointwise]: ...
def pointwise(
    fn: Optional[Callable[..., Any]] = None, /, *, promotion: Optional[str] = None
) -> Union[Pointwise, Callable[[Callable[..., Any]], Pointwise]]:
    """Makes an operator on arrays of a function of one element of each.

    The function is written with `tl`, as a `@jit` function that others call is. It takes any number
    of scalars and returns one, or a tuple. The operator takes arrays of NumPy, torch, CuPy or JAX and
    numbers in their place, broadcasts them, and returns new arrays; `out=` has the results written
    to arrays instead. Arrays have any strides. `tl.constexpr` parameters are constants of the kernel.

    Types are promoted by the library's rules. Floats of 16 bits are computed in float32 and then
    rounded. A parameter with a type (`mask: tl.int1`) takes no part in that. A result has the
    promoted type; a truth value is a bool; `-> tl.int32` says another type.
      promotion: "float" makes integers floats before, "same" does not. By default they become
        floats if the function divides, has a float literal, or calls a function of floats.

    With torch the operator has a derivative: the one of `@op.backward`, or one that is derived from
    the text. Raises CompilationError (E089) for a function that does not fit, E090 for one that
    cannot be derived, and ArgumentError (E089) for arguments that do not fit.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.pointwise
        def silu(x):
            return x * tl.sigmoid(x)

        x = np.linspace(-4, 4, 12, dtype=np.float32).reshape(3, 4)
        assert np.allclose(silu(x.T), (x / (1 + np.exp(-x))).T)
    """
    if promotion not in (None, "same", "float"):
        raise CompilationError.at_caller(
            "E089",
            f"@pointwise got promotion={promotion!r}",
            'write "same" or "float", or leave it out',
        )

    def decorate(fn: Callable[..., Any]) -> Pointwise:
        function: Any = fn if isinstance(fn, JITFunction) else jit(fn)
        return Pointwise(function, promotion)

    return decorate if fn is None else decorate(fn)
