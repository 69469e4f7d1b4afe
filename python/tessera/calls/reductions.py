# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""@reduction: a function of elements that is summed up, or reduced otherwise, along some axes.

The walk has two parts, the dimensions that stay and those that are reduced. A program computes some of
the elements that stay, in a loop over those that are reduced. If few elements stay, the loop is
divided among programs, and a second launch reduces their results, always in the same order.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any, Callable, NamedTuple, Optional, Sequence, Union

from tessera import _C
from tessera.calls import pending, pointwise, recorded, recording
from tessera.calls.elements import make_text_function
from tessera.calls.iteration import (
    Ints,
    Walk,
    broadcast,
    dense_strides,
    expand,
    make_walk,
    memory_order,
)
from tessera.calls.libraries import LIBRARIES, Facts
from tessera.calls.plans import (
    check_devices,
    common_dtype,
    kinds_of,
    library_dtype,
    make_parameter,
    number_converter,
)
from tessera.calls.outputs import library_of
from tessera.calls.pointwise import MAX_PLANS, Pointwise, constant_key, keys, unified
from tessera.calls.promotion import compute_dtype
from tessera.errors import ArgumentError, CompilationError
from tessera.language import types
from tessera.locks import load
from tessera.runtime.arrays import find_dtype
from tessera.runtime.jit import JITFunction, jit
from tessera.settings import settings
from tessera.wording import counted, shown

_TILE = 2048
"""Elements of a tile."""

_CPU_LENGTHS, _CPU_WIDTH = (512, 1024, 2048), 1024
"""Elements of a tile on a CPU that lies along the dimensions to reduce, and of one that lies across them. A
tile that is partly behind the end is slow. One that is as wide as rows reads them as they lie in memory."""

_MIN_SHARED, _MIN_GPU_SHARED = 1 << 18, 1 << 14
"""Elements from which on the threads of a CPU, or the SMs of a GPU, divide a reduction, if there are not
programs enough."""

_GPU_PROGRAMS, _MIN_GPU_PART = 1024, 64
"""Programs that keep a GPU busy, and the least elements that one reduces for each that stays."""

_MIN_DIVIDED = 1 << 16
"""Elements to reduce for each element that stays, from which on programs of a CPU divide them, in the same
parts for any number of threads."""

_SHORT = 512
"""Elements to reduce that programs of a GPU do not divide, if enough elements stay."""

_MIN_GPU_WIDTH = 32
"""Neighbours that a tile of a GPU has at least, if they stay: 128 bytes of a cache."""

_MAX_PARTS = 64
_FEW = 64
"""So many elements that stay are few."""


class _Kind(NamedTuple):
    """How results are combined."""

    combine: str
    """The text of two combined values, `a` and `b`."""
    identity: str
    """The text of the value that changes nothing: a number, or `lowest` or `highest` of the type."""


_KINDS = {
    "sum": _Kind("a + b", "0"),
    "mean": _Kind("a + b", "0"),
    "prod": _Kind("a * b", "1"),
    "max": _Kind("tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)", "lowest"),
    "min": _Kind("tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)", "highest"),
    "any": _Kind("a | b", "0"),
    "all": _Kind("a & b", "1"),
}

_CPU_COMBINE = {
    "max": "tl.where(b != b, b, tl.where(b > a, b, a))",
    "min": "tl.where(b != b, b, tl.where(b < a, b, a))",
}
"""The same on CPUs, where zeros of two signs are equal. The inner select is one instruction, of which the
result is `a` if either is a NaN. A maximum that orders zeros takes six."""

_WITHOUT_NAN = {"max": "tl.where(b > a, b, a)", "min": "tl.where(b < a, b, a)"}
"""The same of numbers alone. A CPU looks for NaNs apart from it: its sums wait for one instruction then, not three."""

Axes = Union[None, int, Sequence[int]]


class _Step:
    """The launches of one kind of calls: a function of the arguments."""

    def __init__(
        self,
        run: Callable[[Sequence[Any]], Any],
        plan: Optional[Callable[..., _C.CallPlan]] = None,
        makes: Sequence[Callable[[], Any]] = (),
        parts: Sequence["_Step"] = (),
    ) -> None:
        self._run = run
        self.plan = plan
        """Makes a plan that does the same without Python, with options of CallPlan; None: none does."""
        self._makes = makes
        """Make the result of a plan, and the flags that it stores."""
        self._parts = parts or (self,)
        """The launches, each of which reduces what the one before made."""

    def __call__(self, args: Sequence[Any]) -> Any:
        return self._run(args)

    def record(self, recorder: recording.Recorder, args: Sequence[Any]) -> tuple[Any, ...]:
        """Records the launches. Returns the result, and the flags, if the first one stores some."""
        flags: tuple[Any, ...] = ()
        for part in self._parts:
            if part.plan is None:
                raise recording.NotRecorded
            made = tuple(make() for make in part._makes)
            examples = made if recorder.library == "torch" else ()
            recorder.add(part.plan(examples=examples), args, made)
            args, flags = made[:1], flags or made[1:]
        return (args[0], *flags)


class Reduction(_C.Entry):
    """The result of `@tessera.reduction`. `op(*args, axis=None, keepdims=False)` returns an array.

    Example:
        import numpy as np
        import tessera

        @tessera.reduction("sum")
        def dot(x, y):
            return x * y

        x = np.ones((3, 4), np.float32)
        assert isinstance(dot, tessera.Reduction)
        assert dot(x, x) == 12 and dot(x, 2.0, axis=1).tolist() == [8, 8, 8]
    """

    def __init__(
        self,
        function: JITFunction[Any, Any],
        kind: str,
        promotion: Optional[str],
        has_flags: bool = False,
    ) -> None:
        self.elements = Pointwise(function, promotion)
        """The operator without the reduction."""
        self.has_flags = has_flags
        """True if the function has a second result, which the launch stores for each element."""
        self.flagged: dict[Any, Any] = {}
        """The same with flags for the gradient, by kinds of calls."""
        self.kind = kind
        self.__name__: str = function.__name__
        self.__qualname__: str = function.__qualname__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self._kernels: dict[Any, JITFunction[Any, Any]] = {}
        self._plans: dict[Any, _Step] = {}
        self._constants = tuple(
            at for at, param in enumerate(function.params) if param.is_constexpr
        )
        """The places of constants, on whose values plans depend."""
        self._with_gradient: set[Any] = set()
        """Keys of calls with a gradient that were done once."""
        self._declare_options((("axis", None), ("keepdims", False)))
        self._declare_constants(self._constants)

    def __call__(self, *args: Any, axis: Axes = None, keepdims: bool = False, **named: Any) -> Any:
        if pending.current() is not None:
            return pending.call_opened(self, args, {**named, "axis": axis, "keepdims": keepdims})
        names = self.elements.names
        if len(args) > len(names):
            raise ArgumentError(
                "E051",
                f"`{self.__name__}` takes {counted(len(names), 'argument')}, got {len(args)}",
                f"they are {', '.join(names)}; pass axes and the like by name: axis=...",
            )
        args = self.elements.placed(args, named)
        if pointwise.is_tracing():
            return pointwise.in_torch.call_reduction(self, args, axis, keepdims)
        recorder = recording.current()
        if recorder is not None:
            return self._record(recorder, args, axis, keepdims)
        if any(library_of(arg) == "torch" for arg in args):
            pointwise.learn_torch()
            result = pointwise.in_torch.call_reduction(self, args, axis, keepdims)
            if getattr(result, "requires_grad", False):
                self._learn_gradient(args, axis, keepdims)
            return result
        if any(library_of(arg) == "jax" for arg in args):
            return load("tessera.jax.derivatives").reduction(self, args, axis, keepdims)
        return self.compute(args, axis, keepdims)

    def _learn_gradient(self, args: Sequence[Any], axis: Axes, keepdims: bool) -> None:
        """Has calls with such arguments be one node of autograd from the third on."""
        if not all(library_of(arg) for arg in args):
            return  # numbers would be constants
        key = self._key(args, axis, keepdims)
        try:
            is_first = key not in self._with_gradient
        except TypeError:
            return
        if len(self._with_gradient) >= MAX_PLANS:
            self._with_gradient.clear()
        if is_first:
            self._with_gradient.add(key)
            return

        def by_python(*each: Any) -> Any:
            """The call without its plan, whose second derivative this is for."""
            recorder = recording.current()
            if recorder is not None:
                return self._record(recorder, each, axis, keepdims)
            return pointwise.in_torch.call_reduction(self, each, axis, keepdims)

        by_python.__name__ = self.__name__
        plan = recorded.record(by_python, args)
        if plan is not None:
            self._learn(plan, *args, axis=axis, keepdims=keepdims)

    def _key(self, args: Sequence[Any], axis: Axes, keepdims: bool) -> tuple[Any, ...]:
        return (
            *[keys[type(arg)](arg) for arg in args],
            *[constant_key(args[at]) for at in self._constants],
            *(axis, keepdims, pointwise.default_dtype()),
        )

    def _record(
        self, recorder: recording.Recorder, args: Sequence[Any], axis: Axes, keepdims: bool
    ) -> Any:
        """A call that is recorded, and not done."""
        scalar = self.elements.scalar
        given, library = unified(self.__name__, scalar, args)
        flagged = pointwise.in_torch.flagged(self, given) if library == "torch" else None
        op = self
        if flagged is not None:
            op, given = flagged.reduction, (*given, 1.0)
        made = _Plan(op, library, given, axis, keepdims).step().record(recorder, given)
        if library == "torch":
            recorder.checks += pointwise.in_torch.reduction_checks()
            pointwise.in_torch.add_reduction_node(
                recorder, self, (axis, keepdims), args, made, flagged
            )
        return made[0]

    def compute(self, args: Sequence[Any], axis: Axes, keepdims: bool) -> Any:
        """The same on arrays with memory, or on those of JAX, without a derivative."""
        key = self._key(args, axis, keepdims)
        try:
            step = self._plans.get(key)
        except TypeError:  # a list of axes
            step = None
        if step is not None:
            return step(args)
        given = args
        scalar = self.elements.scalar
        args, library = unified(self.__name__, scalar, args)
        step = _Plan(self, library, args, axis, keepdims).step()
        is_known = args is given and all(type(args[at]) in keys for at in self._constants)
        if is_known and not isinstance(axis, list):
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            self._plans[key] = step
        result = step(args)
        if is_known and step.plan:  # the launch has learned how to read such arrays
            plan = step.plan
            if library == "torch":
                plan = pointwise.in_torch.reduction_plan(plan, args, result)
            self._learn(plan(), *args, axis=axis, keepdims=keepdims)
        return result

    def kernel(self, key: Any, make: Callable[[], str], is_on_cpu: bool) -> JITFunction[Any, Any]:
        """The kernel of a kind, with the text that `make` returns if it is new."""
        found = self._kernels.get(key)
        if found is None:
            scope = {"scalar_function": self.elements.function}
            name = f"{self.__name__}_reduction"
            function = make_text_function(name, make(), self.__module__, scope)
            text = _KINDS[self.kind].combine
            texts = {"combine": _CPU_COMBINE.get(self.kind, text) if is_on_cpu else text}
            if self.kind in _WITHOUT_NAN:
                texts["combine_numbers"] = _WITHOUT_NAN[self.kind]
            for each, text in texts.items():
                combined = f"def {each}(a, b):\n    return {text}\n"
                scope[each] = jit(make_text_function(each, combined, self.__module__, {}))
            kernel = jit(do_not_specialize=key[2])(function)
            kernel._is_tuned = True
            found = self._kernels.setdefault(key, kernel)
        return found

    def __reduce__(self) -> Any:
        return self.__qualname__  # by name, as functions are

    def __repr__(self) -> str:
        return f"<reduction {self.elements.function!r}>"


class _Plan:
    """One call: its kernel, and the launches."""

    def __init__(
        self, op: Reduction, library: str, args: Sequence[Any], axis: Axes, keepdims: bool
    ) -> None:
        self.op, self.library = op, library
        scalar = op.elements.scalar
        if len(scalar.results) != 1 + op.has_flags:
            raise CompilationError.at_function(
                op.elements.function.fn,
                "E089",
                f"`{op.__name__}` returns {len(scalar.results)} values, and a reduction reduces one",
                "return one",
            )
        kinds = kinds_of(scalar, library, args)
        places = [at for at, kind in enumerate(kinds) if kind in "az"]
        facts = [LIBRARIES[library].facts(args[at], scalar.params[at].name) for at in places]
        shape, wrong = broadcast([each.shape for each in facts])
        if wrong is not None:
            raise ArgumentError(
                "E089",
                f"argument `{scalar.params[places[wrong]].name}` of shape {facts[wrong].shape} does "
                f"not fit the others of `{op.__name__}`",
                "extents are aligned at the last one, and have to be equal or 1",
            )
        check_devices(op.elements, scalar, places, facts)
        self.axes = normalized_axes(op.__name__, axis, len(shape))
        common, computed = common_dtype(op.elements, library, args, kinds)
        value = scalar.results[0] or compute_dtype(computed)
        self.dtype = _result_dtype(library, op.kind, common, scalar.results[0])
        wanted = find_dtype(self.dtype)
        assert wanted is not None
        self.accumulator = _accumulator(op.kind, value, wanted)
        self.shape = tuple(
            1 if at in self.axes else size
            for at, size in enumerate(shape)
            if keepdims or at not in self.axes
        )
        arrays = [expand(each.shape, each.strides, shape) for each in facts]
        order = memory_order(shape, arrays)
        self.flags: Optional[Facts] = None
        if op.has_flags:
            own = scalar.results[1]
            assert own is not None
            strides = dense_strides(shape, order)
            self.flags = Facts(shape, strides, library_dtype(library, own), facts[0].device)
            arrays.append(self.flags.strides)
        stays = tuple(size for at, size in enumerate(shape) if at not in self.axes)
        out = iter(dense_strides(stays, tuple(range(len(stays)))))
        out_strides = tuple(0 if at in self.axes else next(out) for at in range(len(shape)))
        kept = tuple(at for at in order if at not in self.axes)
        self.kept = make_walk(shape, kept, [*arrays, out_strides])
        reduced = tuple(at for at in order if at in self.axes)
        self.reduced = make_walk(shape, reduced, [*arrays, out_strides])
        self.count = math.prod(shape[at] for at in self.axes)
        if not self.count and op.kind in ("max", "min"):
            raise ArgumentError(
                "E089",
                f"`{op.__name__}` is the {op.kind} of no elements: the shape is {shape}",
                "pass arrays with elements",
            )
        self.device = facts[0].device
        self.is_on_cpu = library == "numpy" or getattr(self.device, "type", "") == "cpu"
        self.is_on_gpu = library == "cupy" or getattr(self.device, "type", "") == "cuda"
        both = [[*a, *b] for a, b in zip(self.kept.strides, self.reduced.strides)]
        whole = Walk(self.kept.sizes + self.reduced.sizes, tuple(map(tuple, both)))
        self.is_wide = whole.is_wide
        self.parameters = tuple(
            make_parameter(param.name, kind, args[at], fixed, compute_dtype(computed))
            for at, (param, kind, fixed) in enumerate(zip(scalar.params, kinds, scalar.fixed))
        )

    def step(self) -> "_Step":
        """The launches of calls with such arguments."""
        stay = math.prod(self.kept.sizes)
        parts = 1
        if self.library == "jax":
            pass
        elif self.is_on_cpu and stay <= _FEW and self.count >= _MIN_DIVIDED:
            parts = min(_MAX_PARTS, self.count // (_MIN_DIVIDED // 4))
        elif self.count <= _SHORT and self._groups(self._narrow()) >= self._least(1) > 0:
            pass
        elif stay * self.count >= (_MIN_SHARED if self.is_on_cpu else _MIN_GPU_SHARED):
            programs = self._groups(_choose_tile(self.kept, self.reduced, 1, self.is_on_cpu))
            wanted = _GPU_PROGRAMS
            most = min(self.count // _MIN_GPU_PART, stay * self.count // _TILE)
            if self.is_on_cpu:
                wanted, most = settings.num_threads or int(_C.host_info()["threads"]), self.count
            parts = max(1, min(most, -(-wanted // programs)))
        factor = 1.0
        if self.op.kind == "mean":
            factor = 1.0 / self.count if self.count else math.nan
        if parts == 1:
            return self._launch(1, self._facts(self.dtype, self.shape), factor)
        partial = self._facts(library_dtype(self.library, self.accumulator), (parts, *self.shape))
        first = self._launch(parts, partial, 1.0)
        made = Reduction(_identity, self.op.kind, "same")
        made._kernels = _second_kernels.setdefault(self.op.kind, {})
        like = LIBRARIES[self.library].maker(partial)()
        plan = _Plan(made, self.library, (like,), 0, False)
        plan.dtype = self.dtype
        second = plan._launch(1, self._facts(self.dtype, self.shape), factor)
        return _Step(lambda args: second((first(args),)), parts=(first, second))

    def _facts(self, dtype: Any, shape: Ints) -> Facts:
        return Facts(shape, dense_strides(shape, tuple(range(len(shape)))), dtype, self.device)

    def _narrow(self) -> "_Split":
        """The tiles of a launch with as many programs as a GPU needs, if it can."""
        return _choose_tile(self.kept, self.reduced, 1, self.is_on_cpu, self._least(1))

    def _least(self, parts: int) -> int:
        """The programs of a launch at least."""
        return _GPU_PROGRAMS // 8 if self.is_on_gpu and parts == 1 else 0

    def _groups(self, split: "_Split") -> int:
        """The programs that have different elements which stay."""
        stay = math.prod(self.kept.sizes)
        if not split.is_kept_nested:
            return -(-stay // split.kept)
        last = self.kept.sizes[-1]
        return -(-last // split.kept) * (stay // last if last else 0)

    def _launch(self, parts: int, out: Facts, factor: float) -> "_Step":
        """A launch whose programs divide the loop into parts."""
        stay = math.prod(self.kept.sizes)
        split = _choose_tile(self.kept, self.reduced, parts, self.is_on_cpu, self._least(parts))
        result = str(find_dtype(out.dtype))
        text = _Text(self, split, parts > 1, result, factor != 1.0)
        kernel = self.op.kernel(text.key, text.write, self.is_on_cpu)
        count = math.prod(self.reduced.sizes[:-1]) if split.is_reduced_nested else self.count
        length = -(-count // parts)
        rest = (stay, count, length, *self.kept.sizes, *self.reduced.sizes, *text.strides,
                factor, split.kept, split.reduced)  # fmt: skip
        grid = (self._groups(split) * parts,)
        numbers = [
            (at, number_converter(self.library, self.op, each))
            for at, each in enumerate(self.parameters)
            if each.kind == "number"
        ]
        outs = (out,) if self.flags is None else (out, self.flags)
        makes = tuple(LIBRARIES[self.library].maker(each) for each in outs)
        is_empty, is_jax = 0 in out.shape, False
        if self.library == "jax":
            run_kernel, is_jax = load("tessera.jax.calls").run_kernel, True

        def run(args: Sequence[Any]) -> Any:
            if numbers:
                args = list(args)
                for at, kind in numbers:
                    args[at] = kind(args[at])
            if is_jax:
                return run_kernel(kernel, args, rest, [(out.shape, out.dtype)], grid)
            made = [make() for make in makes]
            if not is_empty:
                kernel[grid](*args, *made, *rest)
            return made[0]

        if is_jax:
            return _Step(run)
        return _Step(
            run,
            functools.partial(
                _C.CallPlan,
                None if is_empty else kernel,
                grid,
                rest,
                makes,
                converted=tuple(numbers),
            ),
            makes,
        )


class _Text:
    """The kernel of a plan: the key of its kind, its text, and the strides that it takes."""

    def __init__(
        self, plan: _Plan, split: "_Split", is_divided: bool, result: str, has_factor: bool
    ) -> None:
        self._plan = plan
        self._split, self._is_divided = split, is_divided
        # A CPU reduces a tile as it reads it, and adds one number. A GPU has the elements of a tile in
        # registers of many threads, which are combined once, after the loop.
        self._is_reduced_in_loop = plan.is_on_cpu and not split.is_kept_inner
        self._has_factor = has_factor
        self._names = [each.name for each in plan.parameters if each.kind == "array"]
        self._names += ["out_"] if plan.flags is None else ["flags_", "out_"]
        self.strides: list[int] = []
        self._stride_names: list[str] = []
        self._terms: dict[tuple[str, str], str] = {}
        """The offset along the dimensions of a part that differs within a tile."""
        self._bases: dict[tuple[str, str], str] = {}
        """The offset along the others."""
        for part, walk in (("kept", plan.kept), ("reduced", plan.reduced)):
            outer = len(walk.sizes) - 1 if self._is_nested(part) else 0
            for name, strides in zip(self._names, walk.strides):
                self._bases[name, part] = self._term(name, part, strides, range(outer))
                inner = range(outer, len(strides))
                self._terms[name, part] = self._term(name, part, strides, inner)
        sizes = [
            f"{part}_size_{at}_" for part, walk in self._walks() for at in range(len(walk.sizes))
        ]
        self._counts = ["stay_", "count_", "length_", *sizes]
        unspecialised = [each.name for each in plan.parameters if each.kind == "number"]
        if not plan.is_on_gpu:
            # A load of several elements of a GPU needs to know that each line is aligned.
            unspecialised += [*self._counts, *self._stride_names]
        self.key = (
            (
                (plan.parameters, tuple(self._terms.values()), tuple(self._bases.values())),
                (result, split._replace(kept=0, reduced=0), is_divided, plan.is_on_cpu),
            ),
            (
                has_factor,
                plan.accumulator,
                len(plan.kept.sizes),
                len(plan.reduced.sizes),
                plan.is_wide,
            ),
            tuple([*unspecialised, "factor_"]),
        )

    def _is_nested(self, part: str) -> bool:
        return self._split.is_kept_nested if part == "kept" else self._split.is_reduced_nested

    def _walks(self) -> Sequence[tuple[str, Walk]]:
        return (("kept", self._plan.kept), ("reduced", self._plan.reduced))

    def _term(self, name: str, part: str, strides: Ints, dimensions: Sequence[int]) -> str:
        """The offset along some dimensions of a part."""
        terms = []
        for at in dimensions:
            stride = strides[at]
            if not stride:
                continue
            if stride == 1:
                terms.append(f"{part}_{at}_")
                continue
            stride_name = f"{name}_{part}_stride_{at}_"
            self.strides.append(stride)
            self._stride_names.append(stride_name)
            terms.append(f"{part}_{at}_ * {stride_name}")
        return " + ".join(terms)

    def write(self) -> str:
        plan, split = self._plan, self._split
        shape = "(REDUCED, KEPT)" if split.is_kept_inner else "(KEPT, REDUCED)"
        spread = {"kept": "[:, None]", "reduced": "[None, :]"}
        if split.is_kept_inner:
            spread = {"kept": "[None, :]", "reduced": "[:, None]"}
        parameters = [
            each.name
            + {"number": f": tl.{each.dtype}", "constant": ": tl.constexpr"}.get(each.kind, "")
            for each in plan.parameters
        ]
        factor = "float64" if plan.accumulator == types.float64 else "float32"
        parameters += [*reversed(self._names[-1 - plan.op.has_flags :])]
        parameters += [*self._counts, *self._stride_names, f"factor_: tl.{factor}"]
        parameters += ["KEPT: tl.constexpr", "REDUCED: tl.constexpr"]
        accumulator = f"tl.{_spelled(plan.accumulator)}"
        identity = _identity_text(_KINDS[plan.op.kind].identity, plan.accumulator)
        lines = [
            f"def {plan.op.__name__}_reduction({', '.join(parameters)}):",
            "program_ = tl.program_id(0)" + (".to(tl.int64)" if plan.is_wide else ""),
            *self._kept_lines(),
            "begin_ = part_ * length_",
            "end_ = tl.minimum(begin_ + length_, count_)",
            f"sum_ = tl.full({'(KEPT,)' if self._is_reduced_in_loop else shape}, {identity}, {accumulator})",
            *self._loop_lines(),
        ]
        indent = "        " if split.is_reduced_nested else "    "
        lines.append(
            f"{indent}mask_ = ({self._in_kept()}){spread['kept']} & "
            f"({self._in_reduced()}){spread['reduced']}"
        )
        values = []
        for each in plan.parameters:
            value = each.name
            if each.kind == "array":
                value = f"tl.load({self._place(each.name, spread)}, mask=mask_)"
            if each.kind != "constant" and each.dtype != each.compute:
                value += f".to(tl.{each.compute})"
            values.append(value)
        kind = plan.op.kind
        results, stored = "value_", []
        if plan.flags is not None:
            results = "value_, flags_value_"
            place = self._place("flags_", spread)
            stored = [f"{indent}tl.store({place}, flags_value_, mask=mask_)"]
        lines += [
            f"{indent}{results} = scalar_function({', '.join(values)})",
            *stored,
            f"{indent}value_ = "
            + ("(value_ != 0)" if kind in ("any", "all") else "value_")
            + f".to({accumulator})",
            f"{indent}value_ = tl.where(mask_, value_, {identity})",
        ]
        axis = 0 if split.is_kept_inner else 1
        reduced = "tl.sum({}, axis={})" if kind in ("sum", "mean") else "tl.reduce({}, {}, combine)"
        if self._is_reduced_in_loop and kind in _WITHOUT_NAN and plan.accumulator.is_floating():
            lines.insert(
                lines.index("begin_ = part_ * length_"), "nan_ = tl.zeros((KEPT,), tl.int32)"
            )
            lines += [
                f"{indent}found_ = tl.reduce(value_, {axis}, combine_numbers)",
                f"{indent}sum_ = combine_numbers(sum_, found_)",
                f"{indent}is_nan_ = (value_ != value_).to(tl.int32)",
                f"{indent}nan_ = tl.maximum(nan_, tl.max(is_nan_, axis={axis}))",
                'result_ = tl.where(nan_ > 0, float("nan"), sum_)',
            ]
        elif self._is_reduced_in_loop:
            lines.append(f"{indent}sum_ = combine(sum_, {reduced.format('value_', axis)})")
            lines.append("result_ = sum_")
        else:
            lines.append(f"{indent}sum_ = combine(sum_, value_)")
            lines.append(f"result_ = {reduced.format('sum_', axis)}")
        if self._has_factor:
            lines.append("result_ = result_ * factor_")
        if kind in ("any", "all") and not self._is_divided:
            lines.append("result_ = result_ != 0")
        pointer = "out_" + (" + part_ * stay_" if self._is_divided else "")
        base, out = self._bases["out_", "kept"], self._terms["out_", "kept"]
        pointer += f" + {base}" if base else ""
        last = f"kept_{len(plan.kept.sizes) - 1}_" if split.is_kept_nested else "kept_"
        pointer += f" + {out}" if out else f" + {last} * 0"
        lines.append(f"tl.store({pointer}, result_, mask={self._in_kept()})")
        return "\n    ".join(lines) + "\n"

    def _kept_lines(self) -> list[str]:
        """The part of the loop, and the indices of the elements that stay, of a program."""
        rank = len(self._plan.kept.sizes)
        if not self._split.is_kept_nested:
            return [
                "blocks_ = tl.cdiv(stay_, KEPT)",
                "part_ = program_ // blocks_",
                "kept_ = (program_ % blocks_) * KEPT + tl.arange(0, KEPT)",
                *_split("kept", rank, ""),
            ]
        last = f"kept_size_{rank - 1}_"
        return [
            f"blocks_ = tl.cdiv({last}, KEPT)",
            f"groups_ = blocks_ * (stay_ // {last})",
            "part_ = program_ // groups_",
            "group_ = program_ % groups_",
            f"kept_{rank - 1}_ = (group_ % blocks_) * KEPT + tl.arange(0, KEPT)",
            "kept_ = group_ // blocks_",
            *_split("kept", rank - 1, ""),
        ]

    def _loop_lines(self) -> list[str]:
        """The loops over the elements that are reduced, and their indices."""
        rank = len(self._plan.reduced.sizes)
        if not self._split.is_reduced_nested:
            return [
                "for start_ in range(begin_, end_, REDUCED):",
                "    reduced_ = start_ + tl.arange(0, REDUCED)",
                *_split("reduced", rank, "    "),
            ]
        wide = ".to(tl.int64)" if self._plan.is_wide else ""
        return [
            "for reduced_ in range(begin_, end_):",
            *_split("reduced", rank - 1, "    "),
            f"    for start_ in range(0, reduced_size_{rank - 1}_, REDUCED):",
            f"        reduced_{rank - 1}_ = start_ + tl.arange(0, REDUCED){wide}",
        ]

    def _in_kept(self) -> str:
        last = len(self._plan.kept.sizes) - 1
        if self._split.is_kept_nested:
            return f"kept_{last}_ < kept_size_{last}_"
        return "kept_ < stay_"

    def _in_reduced(self) -> str:
        last = len(self._plan.reduced.sizes) - 1
        if self._split.is_reduced_nested:
            return f"reduced_{last}_ < reduced_size_{last}_"
        return "reduced_ < end_"

    def _place(self, name: str, spread: dict[str, str]) -> str:
        """The pointers of a tile of an array."""
        bases = [base for part in spread if (base := self._bases[name, part])]
        offsets = [
            f"({term}){spread[part]}" for part in spread if (term := self._terms[name, part])
        ]
        if len(offsets) < 2:
            offsets.append("tl.zeros_like(mask_).to(tl.int32)")
        return " + ".join([name, *bases, *offsets])


def _split(part: str, rank: int, indent: str) -> list[str]:
    """The index of each dimension, of the number of an element."""
    lines = [f"{indent}{part}_rest_ = {part}_"]
    for at in range(rank - 1, 0, -1):
        lines.append(f"{indent}{part}_{at}_ = {part}_rest_ % {part}_size_{at}_")
        lines.append(f"{indent}{part}_rest_ = {part}_rest_ // {part}_size_{at}_")
    if rank:
        lines.append(f"{indent}{part}_0_ = {part}_rest_")
    return lines


class _Split(NamedTuple):
    """How the elements are divided among programs, and the loop of a program among tiles."""

    kept: int
    """Elements of a tile that stay."""
    reduced: int
    """Elements of a tile that are reduced."""
    is_kept_inner: bool
    """True if arrays are dense along those that stay."""
    is_kept_nested: bool
    """True if a tile is of one line of the last dimension. Otherwise it goes through all dimensions,
    with a division for each element and dimension."""
    is_reduced_nested: bool


_MIN_LINE = 16
"""Shorter lines are no tiles."""


def _choose_tile(kept: Walk, reduced: Walk, parts: int, is_on_cpu: bool, least: int = 0) -> _Split:
    """The tiles of a launch that divides the loop into parts.

    least: programs that there are at least, if enough elements stay.
    """
    stay, count = math.prod(kept.sizes), math.prod(reduced.sizes)
    is_reduced_nested = (
        len(reduced.sizes) > 1
        and reduced.sizes[-1] >= _MIN_LINE
        and count // reduced.sizes[-1] >= parts
    )
    line = reduced.sizes[-1] if is_reduced_nested else count
    # The array that has the most elements decides.
    votes = [0, 0]
    for at in range(len(kept.strides) - 1):
        steps = list(zip(kept.sizes, kept.strides[at])) + list(
            zip(reduced.sizes, reduced.strides[at])
        )
        elements = math.prod(size for size, stride in steps if stride)
        votes[0] += elements * (kept.strides[at][-1:] == (1,))
        votes[1] += elements * (reduced.strides[at][-1:] == (1,))
    is_kept_inner = votes[0] > votes[1]
    is_kept_nested = len(kept.sizes) > 1 and (
        kept.sizes[-1] >= _MIN_LINE if is_kept_inner else kept.sizes[-1] > 1
    )
    lane = kept.sizes[-1] if is_kept_nested else stay
    most = _CPU_WIDTH if is_on_cpu else _TILE
    if is_kept_inner:
        widest = _CPU_WIDTH if is_on_cpu else 512
        width = _fitting(lane, widest) if is_kept_nested else min(_power_of_2(lane), widest)
        lanes = stay // max(1, lane)
        while width > _MIN_GPU_WIDTH and -(-lane // width) * lanes < least:
            width //= 2
        rows = min(_power_of_2(line), max(1, most // width))
        return _Split(width, rows, True, is_kept_nested, is_reduced_nested)
    longest = 1024
    if is_on_cpu:
        few, more, many = _CPU_LENGTHS
        longest = many if line >= 4 * many else more if line % more == 0 else few
    length = _fitting(line, longest) if is_reduced_nested else min(_power_of_2(line), longest)
    width = min(_power_of_2(lane), max(1, most // length // 2))
    return _Split(width, length, False, is_kept_nested, is_reduced_nested)


def _fitting(size: int, most: int) -> int:
    """The largest power of 2 of whose multiples at most a quarter is beyond the size."""
    found = min(_power_of_2(size), most)
    while found > _MIN_LINE and -(-size // found) * found * 3 > size * 4:
        found //= 2
    return found


def _power_of_2(size: int) -> int:
    return 1 << max(0, size - 1).bit_length()


def _spelled(dtype: types.dtype) -> str:
    return repr(dtype).rpartition(".")[2]


def _identity_text(text: str, dtype: types.dtype) -> str:
    if text not in ("lowest", "highest"):
        return text
    if dtype.is_floating():
        return f'float("{"-" if text == "lowest" else ""}inf")'
    bits, is_signed = dtype.primitive_bitwidth, dtype.is_int_signed()
    lowest = -(1 << (bits - 1)) if is_signed else 0
    return str(lowest if text == "lowest" else lowest + (1 << bits) - 1)


def _accumulator(kind: str, value: types.dtype, result: types.dtype) -> types.dtype:
    """The type that values are combined in."""
    if kind in ("any", "all"):
        return types.int32
    if kind in ("max", "min"):
        return types.int32 if value.is_bool() else value
    wide = result if not value.is_floating() else value
    return compute_dtype(wide)


def _result_dtype(library: str, kind: str, common: Any, fixed: Optional[types.dtype]) -> Any:
    """The library's type for a reduction of elements of that type, as the library itself says."""
    if fixed is not None:
        common = library_dtype(library, fixed)
    if kind in ("max", "min"):
        return common
    module = sys.modules[library] if library != "jax" else sys.modules["jax"].numpy
    try:
        return getattr(module, kind)(module.ones((1,), dtype=common)).dtype
    except Exception as error:
        raise ArgumentError(
            "E089", f"{library} has no {kind} of {common}: {error}", "convert the arguments"
        ) from error


def normalized_axes(name: str, axis: Axes, rank: int) -> Ints:
    """The axes in order, from 0 on. Raises ArgumentError (E089) for those that there are not."""
    if axis is None:
        return tuple(range(rank))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    found = []
    for each in axes:
        if type(each) is not int or not -rank <= each < max(rank, 1):
            raise ArgumentError(
                "E089",
                f"`{name}` got axis={shown(axis)} for arrays of {rank} dimensions",
                "axes are integers from 0 on, or from -1 backwards",
            )
        found.append(each % rank if rank else 0)
    if len(set(found)) < len(found):
        raise ArgumentError("E089", f"`{name}` got axis={shown(axis)}", "name each axis once")
    return tuple(sorted(found)) if rank else ()


@jit
def _identity(x):  # type: ignore[no-untyped-def]
    return x


_second_kernels: dict[str, dict[Any, JITFunction[Any, Any]]] = {}
"""Of the launches that reduce the results of programs, by kind."""


def reduction(
    kind: str, /, *, promotion: Optional[str] = None
) -> Callable[[Callable[..., Any]], Reduction]:
    """Makes an operator that reduces a function of the elements of arrays along axes.

    `kind` is "sum", "mean", "prod", "max", "min", "any" or "all". The function, the arguments and
    `promotion` are as of `tessera.pointwise`. The call takes `axis` (None for all, a number or
    several) and `keepdims`. The type of the result is that of the library's own reduction of that
    name. Floats are summed in float32, or in float64 if they are such, always in the same order; the
    maximum with a NaN is NaN. With torch the operator has a derivative, as those of
    `tessera.pointwise` have.

    Raises CompilationError and ArgumentError (E089) for what does not fit.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.reduction("mean")
        def squared_error(x, y):
            return (x - y) * (x - y)

        x, y = np.ones((3, 4)), np.zeros(4)
        assert squared_error(x, y) == 1 and squared_error(x, y, axis=0).shape == (4,)
    """
    if kind not in _KINDS:
        raise CompilationError.at_caller(
            "E089", f"@reduction got {shown(kind)}", f"the kinds are {', '.join(_KINDS)}"
        )

    def decorate(fn: Callable[..., Any]) -> Reduction:
        function: Any = fn if isinstance(fn, JITFunction) else jit(fn)
        return Reduction(function, kind, promotion)

    return decorate
