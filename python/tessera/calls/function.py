# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""@function: a kernel that is called like a function, and returns new arrays.

The call makes the outputs, works the grid out and launches. If an argument is an array of JAX, or
stands for one inside `jax.jit`, the call is one of `tessera.jax.call`.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence, Union

from tessera import _C
from tessera.calls import pending
from tessera.calls.libraries import LIBRARIES
from tessera.calls.plans import make_prepare
from tessera.calls.iteration import overlaps_itself
from tessera.calls.outputs import (
    assign,
    finished,
    is_dense,
    library_of,
    make_dense,
    make_output,
    refuse_unknown,
)
from tessera.calls.shapes import (
    BlockGrid,
    Extent,
    Shapes,
    ShapesError,
    Sizes,
    broadcast_shapes,
    parse_shapes,
)
from tessera.errors import ArgumentError, CompilationError, LaunchError, TesseraError
from tessera.language import types
from tessera.locks import load
from tessera.runtime.arrays import find_dtype, refuse_scattered
from tessera.runtime.grid import Grid
from tessera.runtime.interface import KernelInterface
from tessera.runtime.jit import JITFunction
from tessera.wording import closest, counted, shown, with_article

OutputFunction = Callable[[dict[str, Any]], Any]


class OutputShape(NamedTuple):
    """An output of one call, before it is made."""

    name: str
    shape: tuple[int, ...]
    dtype: Optional[types.dtype]
    """None: as the first array's."""


class _Plan(NamedTuple):
    """The values that follow from the shapes of a call's arguments."""

    outputs: Sequence[OutputShape]
    extents: Sequence[tuple[str, int]]
    """That the kernel has parameters for."""
    grid: BlockGrid


class _Blocks(dict[str, Any]):
    """The arguments of a grid function: those of the call, and the defaults of others."""

    def __init__(self, given: dict[str, Any], defaults: dict[str, Any]) -> None:
        super().__init__(given)
        self._defaults = defaults

    def __missing__(self, name: str) -> Any:
        if name not in self._defaults:
            raise ArgumentError(
                "E051", f"the call has no `{name}`, which its grid needs", f"pass {name}=..."
            )
        return types.unwrap(self._defaults[name])


_MOST_KNOWN = 256
"""Plans that a function keeps."""


def _is_never_tracing() -> bool:
    return False


is_tracing: Callable[[], bool] = _is_never_tracing
"""`torch.compiler.is_compiling`, once torch is loaded: Dynamo knows its value while it traces."""

in_torch: Any = None
"""The module tessera.torch.functions, once torch is loaded. Dynamo does not trace how it is found."""


def learn_torch() -> None:
    """Has functions tell when torch traces or differentiates. torch has been loaded."""
    global is_tracing, in_torch
    if is_tracing is _is_never_tracing:
        in_torch = load("tessera.torch.functions")
        is_tracing = sys.modules["torch"].compiler.is_compiling


class Function(_C.Entry, KernelInterface):
    """The result of `@tessera.function` on a kernel. `f(*args, **options)` returns the outputs: one
    array, or a tuple of several. One that is passed by its name is written to, and returned.
    `f[grid](...)` still launches the kernel as it is."""

    def __init__(
        self,
        fn: Any,
        shapes: Optional[Shapes],
        outputs: Mapping[str, OutputFunction],
        grid: Optional[Grid],
        autocast: Optional[str] = None,
    ) -> None:
        self.fn = fn
        self.autocast = autocast
        """What torch.autocast does to arguments: None, or an option of `function`."""
        self.__name__: str = fn.__name__
        self.arg_names: list[str] = list(fn.arg_names)
        self._shapes = shapes
        self._outputs = dict(outputs)
        self._grid = grid
        made = [array.name for array in shapes.outputs] if shapes else list(outputs)
        self._made = made
        self._taken = (
            [array.name for array in shapes.inputs]
            if shapes
            else [name for name in self.arg_names if name not in made]
        )
        self._typed = [
            array.dtype
            for array in (shapes.outputs if shapes else ())
            if array.dtype in self._taken
        ]
        """The inputs that outputs have the type of."""
        arrays = (
            [array.name for array in shapes.inputs if array.extents is not None] if shapes else []
        )
        self._of_first = (
            [array.name for array in shapes.outputs if not array.dtype] if shapes else []
        )
        """The outputs that have the type of the first array, since nothing else is said."""
        if self._of_first and len(arrays) > 1:
            self._typed += arrays
        self._defaults = {
            param.name: param.default for param in getattr(fn, "params", ()) if param.has_default
        }
        self._known: dict[Any, _Plan] = {}
        self.outputs: Sequence[str] = tuple(made)
        """The names of the outputs."""
        self.constants = frozenset(
            param.name for param in getattr(fn, "params", ()) if param.is_constexpr
        )
        """The names of parameters that are constants of the kernel."""
        self.derivative: Any = None
        """The function of `backward`, if one was given."""
        self.derivative_names: Sequence[str] = ()
        """The names of its parameters."""
        self.forward_derivative: Any = None
        """The function of `forward`, if one was given."""
        self.forward_names: Sequence[str] = ()
        """The names of its parameters."""
        self.prepare = make_prepare(self, lambda: in_torch)
        self.operator: Any = None
        """The operator of torch, once one is needed."""
        if "torch" in sys.modules:
            learn_torch()
        for name in ("__qualname__", "__module__", "__doc__"):
            setattr(self, name, getattr(fn, name, None))

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return self.fn[grid]  # type: ignore[no-any-return]

    @property
    def _launched(self) -> KernelInterface:
        return self.fn  # type: ignore[no-any-return]

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launches the kernel; the grid is an argument by the name of `grid`."""
        return self.fn.run(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if pending.current() is not None:
            return pending.call_opened(self, args, kwargs)
        if pending.has_pending(args, kwargs):
            return self(*pending.opened(args), **pending.opened(kwargs))
        given = self._named(args, kwargs)
        if is_tracing():
            return in_torch.call(self, given)
        like, has_jax = None, False
        for name in self._taken:
            library = library_of(given.get(name))
            if library and like is None:
                like = given[name]
            has_jax = has_jax or library == "jax"
        if like is None:
            name = self._taken[0] if self._taken else ""
            raise ArgumentError(
                "E076",
                f"a call of `{self.__name__}` without an array cannot choose the library of its outputs",
                f"pass an array for `{name}`" if name else f"launch {self.__name__}[grid](...)",
            )
        given_outputs = [name for name in self._made if name in given]
        if has_jax:
            if given_outputs:
                raise ArgumentError(
                    "E076",
                    f"`{given_outputs[0]}` is an output of `{self.__name__}`, and arrays of JAX never "
                    "change",
                    "leave it out; tessera.jax.call has input_output_aliases",
                )
            call_function: Any = load("tessera.jax.calls").call_function
            return call_function(self, given)
        library = library_of(like)
        if library == "torch":
            learn_torch()
            given = in_torch.autocasted(self, given)
            like = self._first_array(given)
            if not in_torch.is_plain_call(given):
                return in_torch.call(self, given)
        passed = dict(given)
        result = self.launch(given, like)
        if not kwargs and library in ("numpy", "torch", "cupy"):
            is_cast = any(passed[name] is not arg for name, arg in zip(self._taken, args))
            if not is_cast and all(given[name] is value for name, value in passed.items()):
                self._learn_call(library, args, given, result)
        return result

    def _learn_call(
        self, library: str, args: tuple[Any, ...], given: dict[str, Any], result: Any
    ) -> None:
        """Has such calls run without Python if their grid depends on shapes alone, and the kernel takes
        the arguments in the order inputs, outputs, extents."""
        extents = [name for name in self.arg_names if name in given][len(args) + len(self._made) :]
        order = [*self._taken[: len(args)], *self._made, *extents]
        if (
            not isinstance(self.fn, JITFunction)
            or self._shapes is None
            or self._grid is not None
            or len(args) < len(self._taken)
            or not self.constants.isdisjoint(self._taken)
            or self.arg_names[: len(order)] != order
        ):
            return
        results = result if isinstance(result, tuple) else (result,)
        grid = self.plan({name: given[name] for name in self._taken})[1]
        rest = tuple(given[name] for name in extents)
        like = LIBRARIES[library]
        makers = tuple(
            like.maker(like.facts(each, name)) for each, name in zip(results, self._made)
        )
        has_gradient = any(getattr(arg, "requires_grad", False) for arg in args)
        apply = NotImplemented if has_gradient else None
        checks = in_torch.AUTOCAST_CHECKS if library == "torch" and self.autocast else ()
        plan = _C.CallPlan(self.fn, grid, rest, makers, results, apply=apply, checks=checks)
        self._learn(plan, *args)

    def launch(self, given: dict[str, Any], like: Any = None) -> Any:
        """A call with these arguments, which a launch takes. Outputs are of the library of `like`, by
        default of the first array."""
        if like is None:
            like = self._first_array(given)
        was = dict(given)
        given_outputs = [name for name in self._made if name in given]
        outputs, grid = self.plan(given)
        made = [
            (
                _checked_output(like, each, given[each.name])
                if each.name in given_outputs
                else make_output(like, each.shape, each.dtype, each.name)
            )
            for each in outputs
        ]
        passed = {
            name: (
                each
                if name not in given_outputs or is_dense(each)
                else make_dense(each, each.shape)
            )
            for name, each in zip(self._made, made)
        }
        given.update(passed)
        launched = self.fn[grid](**given)
        for name, each in zip(self._made, made):
            if passed[name] is not each:
                assign(each, passed[name])
        self._copy_back(was, given, launched)
        if library_of(like) == "tensorflow":
            made = [
                output if name in given_outputs else finished(like, output)
                for name, output in zip(self._made, made)
            ]
        return made[0] if len(made) == 1 else tuple(made)

    def _copy_back(self, was: Mapping[str, Any], given: Mapping[str, Any], launched: Any) -> None:
        """Has arguments of which the kernel got copies have what it wrote to these."""
        copied = [name for name in was if name in given and given[name] is not was[name]]
        copied = [name for name in copied if name in self._taken]
        if not copied:
            return
        written = self._written(given, launched)
        for name in copied:
            if written is not None and name not in written:
                continue
            if tuple(was[name].shape) == tuple(given[name].shape):
                assign(was[name], given[name])
            elif written is not None:
                raise ArgumentError(
                    "E076",
                    f"`{self.__name__}` writes to its argument `{name}`, which is broadcast",
                    f"pass an array of shape {tuple(given[name].shape)}",
                )

    def _written(self, given: Mapping[str, Any], launched: Any) -> Optional[Sequence[str]]:
        """The arguments that are arrays and that the kernel may write to; None: it is not known."""
        names = [name for name in self.arg_names if library_of(given.get(name))]
        metadata = getattr(launched, "metadata", None)
        if not metadata:
            return None
        pointers = [each for each in metadata["arguments"] if each["type"].startswith("ptr")]
        if len(pointers) != len(names):
            return names
        return [name for name, each in zip(names, pointers) if each.get("stored")]

    def backward(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Decorates the derivative, for torch: a function of tensors that returns a gradient, or None,
        for each array among the arguments, in order. Its parameters are named as what it needs:
        `grad_out` for the gradient of the output `out`, `out` itself, or an argument.

        Raises CompilationError (E076) for a parameter of another name.
        """
        self.derivative_names = self._checked_names(fn, "grad", self._made)
        self.derivative = fn
        return fn

    def forward(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Decorates the forward derivative, for torch: a function of tensors that returns a tangent, or
        None, for each output. Its parameters are named as what it needs: `tangent_x` for the tangent of
        the argument `x` (zeros if it has none), an output, or an argument.

        Raises CompilationError (E076) for a parameter of another name.
        """
        self.forward_names = self._checked_names(fn, "tangent", self._taken)
        self.forward_derivative = fn
        return fn

    def _checked_names(
        self, fn: Callable[..., Any], prefix: str, prefixed: Sequence[str]
    ) -> Sequence[str]:
        """The parameters of a derivative, each of which is known."""
        names = list(inspect.signature(fn).parameters)
        known = [
            *self._taken,
            *self.constants,
            *self._made,
            *(f"{prefix}_{name}" for name in prefixed),
        ]
        for name in names:
            if name not in known:
                raise _mistake(
                    f"the derivative of `{self.__name__}` has a parameter `{name}`, which is no "
                    "argument and no output",
                    _near(name, known),
                )
        return names

    def default(self, name: str) -> Any:
        """The value of a parameter that a call omits. Raises ArgumentError (E051) if it has none."""
        return _Blocks({}, self._defaults)[name]

    def is_broadcast(self, name: str) -> bool:
        """True for an argument whose extents may be broadcast."""
        return self._shapes is not None and any(
            array.name == name and any(extent.is_rest for extent in array.extents or ())
            for array in self._shapes.inputs
        )

    def make_outputs(self, given: dict[str, Any]) -> list[Any]:
        """The outputs of a call without their values."""
        like = self._first_array(given)
        outputs, _ = self.plan(given)
        return [make_output(like, each.shape, each.dtype, each.name) for each in outputs]

    def _first_array(self, given: Mapping[str, Any]) -> Any:
        return next(given[name] for name in self._taken if library_of(given.get(name)))

    def plan(self, given: dict[str, Any]) -> tuple[Sequence[OutputShape], Any]:
        """The outputs of a call with these arguments, and its grid. Adds to `given` the extents
        that the kernel has parameters for."""
        if self._shapes is None:
            return [self._ask(name, given) for name in self._made], self._grid
        shapes: Sequence[Any] = []
        arrays = [array for array in self._shapes.inputs if array.extents is not None]
        for array in arrays:
            value = given.get(array.name)
            library = library_of(value)
            if not library:
                raise refuse_unknown(value, array.name)
            if library == "torch":
                refuse_scattered(value, array.name)
            shapes = [*shapes, value.shape]  # type: ignore[union-attr]
        if any(shape != shapes[0] for shape in shapes):
            shapes = broadcast_shapes(arrays, [tuple(shape) for shape in shapes])
        key = (*shapes, *(given[name].dtype for name in self._typed))
        try:
            known = self._known.get(key)
        except TypeError:  # shapes that are symbols while torch traces
            known = None
        if known is None:
            known = self._plan(shapes, given)
            if len(self._known) < _MOST_KNOWN and all(type(n) is int for s in shapes for n in s):
                self._known[key] = known
        for array, shape in zip(arrays, shapes):
            value = given[array.name]
            if not is_dense(value) or tuple(value.shape) != tuple(shape):
                given[array.name] = make_dense(value, shape)
        for name, size in known.extents:
            if name in given:
                raise ArgumentError(
                    "E076",
                    f"`{name}` is an extent of `{self.__name__}`, which the call takes from the "
                    "shapes of arrays",
                    f"leave it out, or pass a part of the array; {self.__name__}[grid](...) "
                    f"takes any `{name}`",
                )
            given[name] = size
        if self._grid is not None:
            return known.outputs, self._grid
        if not isinstance(self.fn, JITFunction):  # what is tuned has its own blocks
            return known.outputs, known.grid
        # A grid that is known leads to a warm launch.
        return known.outputs, known.grid(_Blocks(given, self._defaults))

    def _plan(self, shapes: Sequence[Any], given: dict[str, Any]) -> "_Plan":
        assert self._shapes is not None
        sizes = Sizes()
        arrays = [array for array in self._shapes.inputs if array.extents is not None]
        for array, shape in zip(arrays, shapes):
            sizes.bind(array, tuple(shape))
        if self._of_first and len(arrays) > 1:
            _refuse_mixed_types([array.name for array in arrays], given, self._of_first[0])
        extents = [item for item in sizes.named().items() if item[0] in self.arg_names]
        outputs = []
        axes: list[tuple[int, Union[int, str]]] = []
        for array in self._shapes.outputs:
            dtype = None
            if array.dtype in given:
                dtype = find_dtype(given[array.dtype].dtype)
            elif array.dtype:
                dtype = find_dtype(array.dtype)
            outputs.append(OutputShape(array.name, sizes.shape(array), dtype))
            if not axes:
                axes = [
                    (sizes.count(extent), extent.block)
                    for extent in array.extents or ()
                    if extent.block is not None
                ]
        return _Plan(outputs, extents, BlockGrid(axes))

    def _ask(self, name: str, given: dict[str, Any]) -> OutputShape:
        function = self._outputs[name]
        try:
            answer = function(given)
            if isinstance(answer, tuple) and len(answer) == 2 and not hasattr(answer, "dtype"):
                shape, dtype = answer
            else:
                shape, dtype = answer.shape, answer.dtype
            extents = (shape,) if isinstance(shape, int) else shape
            result = OutputShape(name, tuple(map(int, extents)), find_dtype(dtype))
        except TesseraError:
            raise
        except Exception as error:
            raise LaunchError(
                "E076",
                f"the shape function of output `{name}` of `{self.__name__}` failed: "
                f"{type(error).__name__}: {error}",
                "it gets a dict of the arguments that are passed, and returns (shape, dtype), or "
                "an array to be like",
            ) from error
        if result.dtype is None or any(size < 0 for size in result.shape):
            raise LaunchError(
                "E076",
                f"the shape function of output `{name}` of `{self.__name__}` returned "
                f"{shown(answer)}",
                "return (shape, dtype), or an array to be like",
            )
        return result

    def _named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name."""
        if len(args) > len(self._taken):
            raise ArgumentError(
                "E051",
                f"`{self.__name__}` takes {counted(len(self._taken), 'argument')} by place, got "
                f"{len(args)}",
                f"they are {', '.join(self._taken) or 'none'}",
            )
        given = dict(zip(self._taken, args))
        for name, value in kwargs.items():
            if name in given:
                raise ArgumentError(
                    "E051",
                    f"`{self.__name__}` got two values for `{name}`",
                    "pass it once, by place or by name",
                )
            given[name] = value
        return given

    def __reduce__(self) -> str:
        return str(getattr(self, "__qualname__"))  # by name, as functions are

    def __repr__(self) -> str:
        return f"<function of {self.fn!r}>"


def function(
    shapes: Optional[str] = None,
    *,
    outputs: Optional[Mapping[str, OutputFunction]] = None,
    grid: Optional[Grid] = None,
    autocast: Optional[str] = None,
) -> Callable[[Any], Function]:
    """Wraps a kernel as a function that allocates its outputs and computes its grid.

    `shapes` gives the arguments, the outputs, and the elements of an output that a program
    computes. Instead, `outputs` may have a function for each output, and `grid` is the grid of a
    launch. Such a function gets a dict of the arguments by name, and returns (shape, dtype), or an
    array to copy both from. Outputs belong to the library of the first array.
      autocast: the type that tensors of 16 and 32 bits are converted to under torch.autocast:
        "float32", or "lower" for the type of autocast. The derivative then runs without autocast. By
        default they are passed as they are.

    Raises CompilationError (E076) if the names do not match the kernel's parameters.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.function("x[*n], y -> out[*n / BLOCK]")
        @tessera.jit
        def add(x, y, out, n, BLOCK: tl.constexpr = 256):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + i, tl.load(x + i, mask=i < n) + y, mask=i < n)

        out = add(np.ones((10, 100), np.float32), 2.5)
        assert out.shape == (10, 100) and (out == 3.5).all()
    """

    if autocast not in (None, "float32", "lower"):
        raise _mistake(f"@function got autocast={autocast!r}", 'write "float32" or "lower"')

    def decorate(fn: Any) -> Function:
        names = getattr(fn, "arg_names", None)
        if names is None or not hasattr(fn, "run"):
            raise CompilationError.at_caller(
                "E003",
                f"@function is put on something that is no kernel: {shown(fn)}",
                "put @jit right above the `def`, and @function above that",
            )
        parsed = None
        if shapes is not None and outputs is not None:
            raise _mistake("@function has both `shapes` and `outputs`", "give only one of them")
        if shapes is not None:
            try:
                parsed = parse_shapes(shapes)
            except ShapesError as error:
                raise _mistake(str(error), 'write "x[n], y -> out[n / BLOCK]"') from None
            _check_names(fn, names, parsed, grid)
        elif outputs is None:
            raise _mistake(
                "@function has neither `shapes` nor `outputs`",
                'write @function("x[n], y -> out[n / BLOCK]")',
            )
        elif grid is None:
            raise _mistake("@function has `outputs`, but no `grid`", "give both")
        for name, ask in (outputs or {}).items():
            if name not in names:
                raise _mistake(_no_parameter(name, fn), _near(name, names))
            if not callable(ask):
                raise _mistake(
                    f"the shape function of `{name}` is {with_article(type(ask).__name__)}",
                    "write a function of the arguments: lambda args: args['x']",
                )
        if outputs is not None and not outputs:
            raise _mistake("@function has no outputs", "launch the kernel instead")
        return Function(fn, parsed, outputs or {}, grid, autocast)

    return decorate


def _check_names(fn: Any, names: Sequence[str], shapes: Shapes, grid: Optional[Grid]) -> None:
    for array in (*shapes.inputs, *shapes.outputs):
        if array.name not in names:
            raise _mistake(_no_parameter(array.name, fn), _near(array.name, names))
        if array.name in shapes.extent_names:
            raise _mistake(
                f"`{array.name}` is the name of an extent and of an argument",
                "rename the extent",
            )
    blocked: list[Extent] = []
    for array in shapes.outputs:
        if array.dtype and find_dtype(array.dtype) is None:
            if array.dtype not in [each.name for each in shapes.inputs if each.extents is not None]:
                raise _mistake(
                    f"the type of the output `{array.name}`, {array.dtype}, is neither an element "
                    "type nor an array argument",
                    "write float32, ...",
                )
        extents = [extent for extent in array.extents or () if extent.block is not None]
        for extent in extents:
            if isinstance(extent.block, str) and extent.block not in names:
                raise _mistake(_no_parameter(extent.block, fn), _near(extent.block, names))
        if not blocked:
            blocked = extents
    if grid is not None and blocked:
        raise _mistake("@function has both blocks and `grid`", "give only one of them")
    if grid is None and not blocked:
        raise _mistake("the grid is undefined", 'write a block, as in "out[n / BLOCK]", or `grid=`')
    if len(blocked) > 3:
        raise _mistake(f"the grid would have {len(blocked)} axes", "a grid has up to three")


def _refuse_mixed_types(names: Sequence[str], given: Mapping[str, Any], output: str) -> None:
    """An output of the first array's type would silently lose what another array has more."""
    first = find_dtype(given[names[0]].dtype)
    for name in names[1:]:
        dtype = find_dtype(given[name].dtype)
        if dtype is None or first is None or dtype == first or _kind(dtype) < _kind(first):
            continue
        raise ArgumentError(
            "E076",
            f"argument `{name}` has elements of {dtype}, and `{names[0]}` of {first}; nothing says "
            f"which of them `{output}` has",
            f"write {output}[...]: {names[0]} or another type in the text of @tessera.function, or "
            "convert one",
        )


def _kind(dtype: types.dtype) -> int:
    """0 for bool, 1 for integers, 2 for floats."""
    return 2 if dtype.is_floating() or dtype.is_fp8() else int(not dtype.is_bool())


def _checked_output(like: Any, wanted: OutputShape, output: Any) -> Any:
    """An array that the caller wants an output in. Raises ArgumentError (E076) if it does not fit."""
    if library_of(output) != library_of(like) and library_of(like) != "tensorflow":
        raise refuse_unknown(output, wanted.name)
    dtype = find_dtype(like.dtype) if wanted.dtype is None else wanted.dtype
    wrong = ""
    if tuple(output.shape) != tuple(wanted.shape):
        wrong = f"has shape {tuple(output.shape)}, where {tuple(wanted.shape)} is expected"
    elif find_dtype(output.dtype) != dtype:
        wrong = f"has elements of {find_dtype(output.dtype)}, where {dtype} is expected"
    elif not is_dense(output) and overlaps_itself(
        tuple(output.shape), LIBRARIES[library_of(output)].facts(output, wanted.name).strides
    ):
        wrong = "has several elements at one place"
    if wrong:
        raise ArgumentError("E076", f"the output `{wanted.name}` {wrong}", "pass another array")
    return output


def _no_parameter(name: str, fn: Any) -> str:
    return f"`{name}` is no parameter of the kernel `{fn.__name__}`"


def _near(name: str, names: Sequence[str]) -> str:
    near = closest(name, tuple(names))
    return f"did you mean `{near}`?" if near else f"the parameters are {', '.join(names)}"


def _mistake(message: str, fix: str) -> CompilationError:
    return CompilationError.at_caller("E076", message, fix)
