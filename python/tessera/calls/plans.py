# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How an elementwise operator computes arguments of some types, shapes and strides.

A plan has the kernel, its grid and its arguments, and makes the results. It is made once for all calls
with such arguments, and knows no values.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional, Sequence

from tessera import _C
from tessera.calls import elements
from tessera.calls.elements import Kind, Parameter
from tessera.calls.iteration import (
    broadcast,
    dense_strides,
    expand,
    is_dense,
    make_walk,
    memory_order,
    overlaps_itself,
    span,
)
from tessera.calls.libraries import LIBRARIES, Facts
from tessera.calls.outputs import library_of, numpy_dtype
from tessera.calls.promotion import compute_dtype, result_dtype
from tessera.calls.scalars import Scalar, read_scalar
from tessera.errors import ArgumentError
from tessera.language import types
from tessera.locks import CachedProperty
from tessera.runtime.arrays import dtype_name, find_dtype
from tessera.runtime.jit import JITFunction
from tessera.wording import counted, with_article

Run = Callable[[Sequence[Any], Optional[Sequence[Any]]], Any]
"""A function of the arguments, and the arrays of `out=` or None."""

NUMBERS = (bool, int, float)


def make_prepare(op: Any, find_module: Callable[[], Any]) -> Callable[[], bool]:
    """A function that makes torch's operator of `op`, which Dynamo calls while it traces.

    Dynamo cannot trace how a function is read. It takes a function without arguments for a constant,
    and in torch 2.11 none that has an operator among them.
    """

    def prepare() -> bool:
        return bool(find_module().prepare_operator(op))

    # As torch._dynamo.assume_constant_result does, which takes a second to import.
    setattr(prepare, "_dynamo_marked_constant", True)
    return prepare


class Operator(_C.Entry):
    """An elementwise operator without its calls: a scalar function and its kernels."""

    prepare: Callable[[], bool]
    """See `make_prepare`."""

    def __init__(self, function: JITFunction[Any, Any], promotion: Optional[str]) -> None:
        self.function = function
        """The scalar function, which kernels may call, too."""
        self.__name__: str = function.__name__
        self.__qualname__: str = function.__qualname__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self._promotion = promotion
        self._kernels: dict[Kind, JITFunction[Any, Any]] = {}
        self.derivative: Optional[JITFunction[Any, Any]] = None
        """The function of `backward`, if one was given."""
        self.gradients: dict[tuple[bool, ...], Any] = {}
        """The operators that compute gradients, by the arguments that have one."""
        self.kept: dict[Any, Any] = {}
        """What calls keep for their gradient (torch/keeping.py)."""
        self.apply: Any = None
        """What torch calls for a known call with a gradient, once one is needed."""
        self.operator: Any = None
        """The operator of torch, once one is needed."""
        self.origin: Any = None
        """Of a derivative: the operator, and the arguments that it is by. Of a chain of calls: its
        recipe (torch/recipes.py)."""

    @CachedProperty
    def scalar(self) -> Scalar:
        """The parameters and results of the scalar function."""
        return read_scalar(self.function, self._promotion)

    @CachedProperty
    def can_join(self) -> bool:
        """True if a call may be a part of a chain: it has no types but those of its arguments."""
        scalar = self.scalar
        return not (
            any(each is not None for each in (*scalar.results, *scalar.fixed))
            or any(param.is_constexpr for param in scalar.params)
        )

    def kernel(self, kind: Kind) -> JITFunction[Any, Any]:
        """The kernel of that kind."""
        found = self._kernels.get(kind)
        if found is None:
            made = elements.make_kernel(self.__name__, self.function, kind)
            found = self._kernels.setdefault(kind, made)
        return found


class Planned:
    """The kernel of some calls, its grid and arguments, and the results that they make.

    `args` and `outs` are those of one such call; `kinds` has a letter for each argument: `a` for an
    array, `z` for one of torch without dimensions, `n` for a number, `c` for a constant.
    """

    def __init__(
        self,
        op: Operator,
        library: str,
        args: Sequence[Any],
        outs: Optional[Sequence[Any]],
        kinds: str = "",
    ) -> None:
        self.op = op
        self.kinds = kinds or kinds_of(op.scalar, library, args)
        self._library = LIBRARIES[library]
        scalar = op.scalar
        places = [at for at, kind in enumerate(self.kinds) if kind in "az"]
        facts = [self._library.facts(args[at], scalar.params[at].name) for at in places]
        self.array_places = places
        common = common_dtype(op, library, args, self.kinds)
        computed = compute_dtype(common[1])
        dtypes = _dtypes(library, scalar, common[0])
        shape, wrong = broadcast([each.shape for each in facts])
        if wrong is not None:
            raise ArgumentError(
                "E089",
                f"argument `{scalar.params[places[wrong]].name}` of shape {facts[wrong].shape} does "
                f"not fit the others of `{op.__name__}`, whose shapes are "
                f"{', '.join(str(each.shape) for each in facts[:wrong])}",
                "extents are aligned at the last one, and have to be equal or 1",
            )
        check_devices(op, scalar, places, facts)
        arrays = [expand(each.shape, each.strides, shape) for each in facts]
        device = facts[0].device
        if outs is None:
            order = self._order(shape, facts, arrays)
            strides = dense_strides(shape, order)
            self.results = [Facts(shape, strides, dtype, device) for dtype in dtypes]
        else:
            self.results = _check_outs(op, library, shape, dtypes, device, outs)
            order = memory_order(shape, [each.strides for each in self.results] + arrays)
        walk = make_walk(shape, order, arrays + [each.strides for each in self.results])
        self.is_empty = 0 in shape
        self._layouts = [_layout(each) for each in (*facts, *self.results)]
        """Of each array, then of each result."""
        is_on_gpu = library == "cupy" or getattr(device, "type", "") == "cuda"
        most = elements.MAX_CPU_TILE
        if is_on_gpu:
            sizes = [int(each.dtype.itemsize) for each in (*facts, *self.results)]
            most = elements.choose_gpu_tile(walk, sizes)
        blocks = elements.choose_blocks(walk, most, is_on_gpu)
        classes = elements.classify(walk) if walk.sizes else ("1",) * len(walk.strides)
        tiled = tuple(block > 1 for block in blocks)
        if not any(tiled):
            tiled = (*tiled[:-1], True)
        kind = Kind(
            tuple(
                make_parameter(param.name, each, args[at], fixed, computed)
                for at, (param, each, fixed) in enumerate(
                    zip(scalar.params, self.kinds, scalar.fixed)
                )
            ),
            tuple(str(find_dtype(each.dtype)) for each in self.results),
            classes,
            tiled,
            walk.is_wide,
            is_on_gpu,
        )
        self.kernel = op.kernel(kind)
        self.grid = (elements.count_programs(walk, blocks),)
        self.rest = elements.kernel_arguments(walk, kind, blocks)
        self.convert = tuple(
            (at, convert)
            for at, each in enumerate(kind.parameters)
            if each.kind == "number"
            and (convert := number_converter(library, op, each)) is not type(args[at])
        )
        """The numbers that the kernel takes as another type, by place."""
        self.kept: Any = None
        """The plan of calls with a gradient, if it is another one."""

    def _order(self, shape: Any, facts: Sequence[Facts], arrays: Sequence[Any]) -> Any:
        if all(is_dense(each.shape, each.strides) for each in facts):
            return tuple(range(len(shape)))
        return memory_order(shape, arrays)

    def converted(self, args: Sequence[Any]) -> Sequence[Any]:
        """The arguments with numbers of the types that the kernel takes."""
        found = list(args)
        for at, kind in self.convert:
            found[at] = kind(found[at])
        return found

    def make_all(self) -> Sequence[Callable[[], Any]]:
        """A function for each result, that makes it."""
        return [self._library.maker(each) for each in self.results]

    def check_memory(self, args: Sequence[Any], outs: Sequence[Any]) -> None:
        """Raises ArgumentError where a result would overwrite what is still to be read."""
        address = self._library.address
        seen = []
        for at, layout in zip(self.array_places, self._layouts):
            begin = address(args[at])
            seen.append((begin, layout, self.op.scalar.params[at].name))
        for out, layout in zip(outs, self._layouts[len(self.array_places) :]):
            begin = address(out)
            for other, others, name in seen:
                if (
                    other + others[0] < begin + layout[1]
                    and begin + layout[0] < other + others[1]
                    and (other, others) != (begin, layout)
                ):
                    raise ArgumentError(
                        "E089",
                        f"`out` of `{self.op.__name__}` shares memory with `{name}`, at other "
                        "elements",
                        f"pass another array, or a copy of `{name}`",
                    )
            # Two results of one array would both be stored.
            seen.append((begin, (*layout[:2], None), "out"))

    def call_plan(self, **options: Any) -> _C.CallPlan:
        """The same as `run`, for calls without Python; the options are those of CallPlan."""
        return _C.CallPlan(
            None if self.is_empty else self.kernel,
            self.grid,
            self.rest,
            tuple(self.make_all()),
            converted=self.convert,
            **options,
        )

    def spans(self) -> tuple[tuple[int, int, int, bool], ...]:
        """The bytes of each array and of the only result, as CallPlan has them."""
        out = self._layouts[-1]
        places = (*self.array_places, len(self.kinds))
        return tuple(
            (place, low, high, (low, high, layout) == out)
            for place, (low, high, layout) in zip(places, self._layouts)
        )

    def run(self) -> Run:
        """A call by these, where nothing else has to be done."""
        makers = self.make_all()
        make_one = makers[0]
        is_one, is_empty = len(makers) == 1, self.is_empty
        kernel, grid, rest = self.kernel, self.grid, self.rest

        def run(args: Sequence[Any], outs: Optional[Sequence[Any]]) -> Any:
            if outs is not None:
                self.check_memory(args, outs)
            if self.convert:
                args = self.converted(args)
            if is_one:
                out = make_one() if outs is None else outs[0]
                if not is_empty:
                    kernel[grid](*args, out, *rest)
                return out
            made = tuple([make() for make in makers]) if outs is None else tuple(outs)
            if not is_empty:
                kernel[grid](*args, *made, *rest)
            return made

        return run


def _layout(facts: Facts) -> tuple[int, int, Any]:
    """The first byte of an array and the one after the last, from its address on; and where the
    elements lie between."""
    if 0 in facts.shape:
        return 0, 0, None
    low, high = span(facts.shape, facts.strides)
    size = int(facts.dtype.itemsize)
    return low * size, high * size, (facts.shape, facts.strides)


def kinds_of(scalar: Scalar, library: str, args: Sequence[Any]) -> str:
    """The letters of `Planned.kinds` for these arguments."""
    found = ""
    for param, arg in zip(scalar.params, args):
        if param.is_constexpr:
            found += "c"
        elif type(arg) in NUMBERS:
            found += "n"
        else:
            found += "z" if library == "torch" and not arg.ndim else "a"
    return found


def common_dtype(op: Operator, library: str, args: Sequence[Any], kinds: str) -> Any:
    """The type that arguments are promoted to: the library's, and ours."""
    scalar = op.scalar
    operands: list[Any] = []
    for arg, kind, fixed in zip(args, kinds, scalar.fixed):
        if kind == "c" or fixed is not None:
            continue
        if kind == "n":
            operands.append(type(arg))
        elif library == "jax":
            operands.append(arg)
        else:
            operands.append((arg.dtype, None) if kind == "z" else arg.dtype)
    if not operands:  # every type is fixed
        operands = [args[kinds.index("a" if "a" in kinds else "z")].dtype]
    try:
        found = result_dtype(library, operands, scalar.to_float)
    except Exception as error:
        raise ArgumentError(
            "E089",
            f"{library} has no type for the arguments of `{op.__name__}`: {error}",
            "convert the arguments to one type",
        ) from error
    known = find_dtype(found)
    if known is None:
        raise ArgumentError(
            "E089",
            f"the arguments of `{op.__name__}` are promoted to {found}, which kernels do not have",
            "pass floats of 8 to 64 bits, integers or bools",
        )
    return found, known


def result_dtypes(op: Operator, library: str, args: Sequence[Any], kinds: str) -> list[Any]:
    """The library's types of the results of a call."""
    return _dtypes(library, op.scalar, common_dtype(op, library, args, kinds)[0])


def _dtypes(library: str, scalar: Scalar, common: Any) -> list[Any]:
    return [common if each is None else library_dtype(library, each) for each in scalar.results]


def library_dtype(library: str, dtype: types.dtype) -> Any:
    name = dtype_name(dtype)
    if library == "torch":
        return getattr(sys.modules["torch"], name)
    return numpy_dtype(dtype, "out")


def make_parameter(
    name: str, kind: str, value: Any, fixed: Optional[types.dtype], computed: types.dtype
) -> Parameter:
    if kind == "c":
        return Parameter(name, "constant", "", "")
    wanted = _spelled(compute_dtype(fixed) if fixed is not None else computed)
    if kind == "n":
        is_float = wanted.startswith("float")
        number = ("float64" if wanted == "float64" else "float32") if is_float else "int64"
        return Parameter(name, "number", number, wanted)
    return Parameter(name, "array", _spelled(find_dtype(value.dtype)), wanted)


def number_converter(library: str, op: Any, parameter: Parameter) -> Callable[[Any], Any]:
    """A function that makes a number what a kernel takes for the parameter.

    It raises ArgumentError (E089) for an integer that is too large for the type it is computed in.
    torch alone wraps those.
    """
    if parameter.dtype.startswith("float"):
        return float
    if library == "torch" or parameter.compute in ("int64", "int1"):
        return int
    bits = int(parameter.compute.lstrip("uint"))
    lowest = 0 if parameter.compute.startswith("u") else -(1 << (bits - 1))
    highest = lowest + (1 << bits) - 1

    def checked(number: int) -> int:
        if not lowest <= number <= highest:
            raise ArgumentError(
                "E089",
                f"argument `{parameter.name}` of `{op.__name__}` is {number}, which does not fit "
                f"{parameter.compute}, the type of the arrays",
                "pass an array of a wider type",
            )
        return int(number)

    return checked


def _spelled(dtype: Any) -> str:
    """The name of a type in `tl`."""
    return repr(dtype).rpartition(".")[2]


def check_devices(
    op: Operator, scalar: Scalar, places: Sequence[int], facts: Sequence[Facts]
) -> None:
    for at, each in zip(places, facts):
        if each.device != facts[0].device:
            raise ArgumentError(
                "E089",
                f"argument `{scalar.params[at].name}` of `{op.__name__}` is on {each.device}, and "
                f"`{scalar.params[places[0]].name}` on {facts[0].device}",
                "pass arrays of one device",
            )


def _check_outs(
    op: Operator, library: str, shape: Any, dtypes: Sequence[Any], device: Any, outs: Sequence[Any]
) -> list[Facts]:
    if library == "jax":
        raise ArgumentError("E089", "arrays of JAX never change, so there is no `out`", "drop it")
    if len(outs) != len(dtypes):
        raise ArgumentError(
            "E089",
            f"`{op.__name__}` has {counted(len(dtypes), 'result')}, and `out` {len(outs)}",
            "pass an array for each result",
        )
    found = []
    for out, dtype in zip(outs, dtypes):
        if library_of(out) != library:
            raise ArgumentError(
                "E089",
                f"`out` of `{op.__name__}` is {with_article(type(out).__name__)}, where an array of "
                f"{library} is expected",
                "pass an array of the library of the arguments",
            )
        facts = LIBRARIES[library].facts(out, "out")
        wrong = ""
        if facts.shape != shape:
            wrong = f"has shape {facts.shape}, and the result {shape}"
        elif facts.device != device:
            wrong = f"is on {facts.device}, and the arguments on {device}"
        elif facts.dtype != dtype and not _may_cast(dtype, facts.dtype):
            wrong = f"has elements of {facts.dtype}, and the result of {dtype}"
        elif overlaps_itself(facts.shape, facts.strides):
            wrong = "has several elements at one place"
        if wrong:
            raise ArgumentError("E089", f"`out` of `{op.__name__}` {wrong}", "pass another array")
        found.append(facts)
    return found


def _may_cast(dtype: Any, wanted: Any) -> bool:
    """True if a kernel may store values of the first type as ones of the second."""
    first, second = find_dtype(dtype), find_dtype(wanted)
    if first is None or second is None:
        return False
    return first.is_floating() == second.is_floating() and first.is_bool() == second.is_bool()
