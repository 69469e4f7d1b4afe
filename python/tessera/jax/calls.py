# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of kernels as operations of JAX.

A call is one primitive, whose only parameter is a `Plan`: the kernel, what each of its parameters
is (an input, an output, a constant), and the grid. Shapes are known while JAX traces, so that the
grid and all numbers are constants. When JAX lowers the program for a platform, the kernel is
compiled for that, and its machine code becomes an attribute of a custom call (lib/CAPI/XLA.cpp).
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import math
from typing import Any, Callable, NamedTuple, Optional, Sequence

import jax
import numpy
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from tessera import _C
from tessera.calls.outputs import numpy_dtype
from tessera.compiler.options import CompileOptions
from tessera.errors import ArgumentError
from tessera.jax import derivatives
from tessera.jax.batches import Batch, batched_kernel, is_batchable
from tessera.jax.interface import TARGET, register_handlers
from tessera.runtime.arrays import MockTensor, find_dtype
from tessera.runtime.grid import Meta, normalize_grid
from tessera.runtime.interface import KernelInterface
from tessera.runtime.jit import JITFunction
from tessera.runtime.specialize import Bound, constant_key
from tessera.wording import counted, shown, with_article


class Input(NamedTuple):
    """A parameter that gets an input of the call."""

    number: int


class Output(NamedTuple):
    """A parameter that gets an output of the call."""

    number: int


class Constant:
    """A parameter that gets a number or another constant. Constants are equal if a kernel cannot
    distinguish them."""

    def __init__(self, value: Any) -> None:
        self.value = value
        try:
            self._key = constant_key(value)
        except TypeError:  # it is an error for the kernel, too, which has the words for it
            self._key = ("o", id(value))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and other._key == self._key

    def __repr__(self) -> str:
        return shown(self.value)


@dataclasses.dataclass(frozen=True)
class Plan:
    """All of a call but its inputs. Equal plans lead to equal programs."""

    kernel: JITFunction[Any, Any]
    parameters: tuple[Any, ...]
    """An Input, an Output or a Constant for each parameter."""
    outputs: tuple[tuple[tuple[int, ...], Any], ...]
    """Shape and NumPy's type of each, without batches."""
    aliases: tuple[tuple[int, int], ...]
    """Which output an input becomes."""
    grid: tuple[int, int, int]
    options: tuple[tuple[str, Any], ...]
    batches: tuple[Batch, ...] = ()
    """The batch sizes of jax.vmap, the innermost first."""


def call(
    kernel: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    out_shape: Any,
    grid: Any,
    aliases: dict[int, int],
) -> Any:
    """See `tessera.jax.call`."""
    if isinstance(kernel, KernelInterface):
        kernel = kernel._launched
    is_many = isinstance(out_shape, (tuple, list))
    shapes = list(out_shape) if is_many else [out_shape]
    outputs = [_shape_of(shape) for shape in shapes]
    if not outputs:
        raise ArgumentError(
            "E057",
            "out_shape is empty, and JAX removes calls without a result",
            "return what the kernel writes",
        )
    names = getattr(kernel, "arg_names", None)
    if names is None or not hasattr(kernel, "run"):
        raise ArgumentError(
            "E003",
            f"tessera.jax.call got {with_article(type(kernel).__name__)} for a kernel",
            "put @tessera.jit above the function",
        )
    named: dict[str, Any] = dict(zip(names, args))
    if len(args) > len(names):
        raise ArgumentError(
            "E051",
            f"kernel `{kernel.__name__}` takes {counted(len(names), 'argument')}, got {len(args)}",
            f"the parameters are {', '.join(names)}",
        )
    at = len(args)
    for index in range(len(outputs)):
        if index in aliases.values():
            continue
        if at >= len(names):
            raise ArgumentError(
                "E051",
                f"kernel `{kernel.__name__}` has no parameter for output {index}: outputs come "
                "after the arguments that are passed by place",
                "pass what comes after the outputs by name",
            )
        named[names[at]] = Output(index)
        at += 1
    for name, value in kwargs.items():
        if name in named:
            what = "an output" if isinstance(named[name], Output) else "passed by place"
            raise ArgumentError(
                "E051",
                f"kernel `{kernel.__name__}` got `{name}` by name, which is {what}",
                "pass it once; outputs come after the arguments that are passed by place",
            )
        named[name] = value
    by_name = {}
    for place, index in aliases.items():
        if not (0 <= place < len(args) and 0 <= index < len(outputs)):
            raise ArgumentError(
                "E051",
                f"input_output_aliases has {place}: {index}, and there are "
                f"{counted(len(args), 'argument')} and {counted(len(outputs), 'output')}",
                "write {place in the arguments: place in out_shape}",
            )
        by_name[names[place]] = index
    results = _call(kernel, named, outputs, by_name, grid)
    if not is_many:
        return results[0]
    return tuple(results) if isinstance(out_shape, tuple) else results


def register() -> None:
    """See `tessera.jax.register`."""
    register_handlers(call)


def call_function(function: Any, given: dict[str, Any]) -> Any:
    """A plain call (`tessera.function`) on arrays of JAX."""
    like = next(value for value in given.values() if _is_array(value))
    planned, grid = function.plan(given)
    outputs = []
    for index, each in enumerate(planned):
        dtype = like.dtype if each.dtype is None else numpy_dtype(each.dtype, each.name)
        outputs.append((each.shape, jax.dtypes.canonicalize_dtype(dtype)))
        given[each.name] = Output(index)
    results = _call(function.fn, given, outputs, {}, grid)
    return results[0] if len(results) == 1 else tuple(results)


def elementwise_run(planned: Any) -> Any:
    """The calls of an elementwise operator (`tessera.pointwise`) on arrays of JAX."""
    outputs = [(each.shape, each.dtype) for each in planned.results]

    def launch(args: Sequence[Any]) -> Any:
        return run_kernel(
            planned.kernel, planned.converted(args), planned.rest, outputs, planned.grid
        )

    def run(args: Sequence[Any], outs: None) -> Any:
        if derivatives.is_traced(args):
            return derivatives.elementwise(planned.op, launch, args)
        return launch(args)

    return run


def run_kernel(
    kernel: Any,
    args: Sequence[Any],
    rest: Sequence[Any],
    outputs: Sequence[Optional[tuple[tuple[int, ...], Any]]],
    grid: tuple[int, ...],
    options: dict[str, Any] = {},
) -> Any:
    """A call of a kernel whose parameters are `args`, the outputs and `rest`, in this order. An output
    that is None is passed as None. `options` are those of a launch, such as num_warps."""
    typed = [(each[0], numpy.dtype(each[1])) for each in outputs if each is not None]
    if any(0 in shape for shape, _ in typed):
        results = [jax.numpy.zeros(shape, dtype) for shape, dtype in typed]
    else:
        numbers = itertools.count()
        made = [None if each is None else Output(next(numbers)) for each in outputs]
        named = dict(zip(kernel.arg_names, (*args, *made, *rest)))
        results = _call(kernel, {**named, **options}, typed, {}, grid)
    return results[0] if len(results) == 1 else tuple(results)


def _call(
    kernel: Any,
    named: dict[str, Any],
    outputs: Sequence[tuple[tuple[int, ...], Any]],
    aliases: dict[str, int],
    grid: Any,
) -> list[Any]:
    register()
    while not isinstance(kernel, JITFunction):  # tuned, or with heuristics
        seen = {
            name: _Like(*outputs[value.number]) if isinstance(value, Output) else value
            for name, value in named.items()
        }
        added = kernel._untuned((), seen)
        for name, value in added.items():
            if not isinstance(named.get(name), Output):
                named[name] = value
        kernel = kernel.fn
    values, given = kernel._bind((), named)
    if given.get("stream") is not None:
        raise ArgumentError("E057", "XLA decides on which stream a call runs", "drop `stream`")
    options = kernel._options(dict(given))
    inputs: list[Any] = []
    parameters: list[Any] = []
    pairs = []
    for param, value in zip(kernel.params, values):
        if isinstance(value, Output):
            parameters.append(value)
        elif _is_array(value) and not param.is_constexpr:
            if param.name in aliases:
                pairs.append((len(inputs), aliases[param.name]))
            parameters.append(Input(len(inputs)))
            inputs.append(value)
        else:
            if param.name in aliases or _holds_array(value):
                raise ArgumentError(
                    "E057",
                    f"argument `{param.name}` is {with_article(type(value).__name__)}: inside a "
                    "program of JAX each array is an argument of its own",
                    "pass the arrays one by one",
                )
            parameters.append(Constant(value))
    seen_values = [
        _Like(*outputs[value.number]) if isinstance(value, Output) else value for value in values
    ]
    for index, output in pairs:
        wanted = tuple(map(int, inputs[index].shape)), numpy.dtype(inputs[index].dtype)
        if wanted != outputs[output]:
            raise ArgumentError(
                "E057",
                f"output {output} aliases an argument of {wanted[1]}{list(wanted[0])}, and is "
                f"{outputs[output][1]}{list(outputs[output][0])}",
                "give both the same shape and type",
            )
    plan = Plan(
        kernel,
        tuple(parameters),
        tuple(outputs),
        tuple(pairs),
        normalize_grid(grid, Meta(kernel.params, seen_values, options)),
        tuple(sorted((name, value) for name, value in given.items())),
    )
    return list(_launch.bind(*inputs, plan=plan))


class _Like:
    """An output as a grid function, or a heuristic, gets it."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype = shape, dtype
        self.ndim, self.size = len(shape), math.prod(shape)


def _is_array(value: Any) -> bool:
    if isinstance(value, jax.Array):  # a tracer, too
        return True
    return isinstance(value, numpy.ndarray)


def _holds_array(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and any(
        _is_array(item) or _holds_array(item) for item in value
    )


def _shape_of(output: Any) -> tuple[tuple[int, ...], Any]:
    if not hasattr(output, "shape") or not hasattr(output, "dtype"):
        raise ArgumentError(
            "E057",
            f"out_shape has {with_article(type(output).__name__)}, which has no shape and dtype",
            "write jax.ShapeDtypeStruct(shape, dtype)",
        )
    dtype = jax.dtypes.canonicalize_dtype(output.dtype)
    return tuple(map(int, output.shape)), numpy.dtype(dtype)


# --- What becomes of a plan when JAX lowers it --------------------------------------------


class Compiled(NamedTuple):
    """A plan for one platform, as attributes of a custom call."""

    kernel: bytes
    key: str
    slots: list[int]
    grid: tuple[int, int, int]


def compile_plan(
    plan: Plan, shapes: Sequence[tuple[tuple[int, ...], Any]], device: Optional[int]
) -> Compiled:
    """The machine code of a plan for inputs of these shapes and types: for GPU `device`, or for
    the CPU (None)."""
    kernel, grid = plan.kernel, plan.grid
    if plan.batches:
        kernel = batched_kernel(plan.kernel, _offsets(plan, shapes), plan.batches)
        grid = (*grid[:2], math.prod(batch.size for batch in plan.batches))
    bound = _specialised(plan, shapes, kernel)
    options = kernel._options(dict(plan.options)).resolved(device)
    slots = list(bound.slots)
    filled: list[int] = []
    numbers = {item.slot: item.name for item in bound.pointers}
    by_name = dict(zip((param.name for param in kernel.params), plan.parameters))
    becomes = dict(plan.aliases)
    # Addresses as XLA may pass them: aligned, and apart from each other.
    address = 1 << 40
    for slot, value in enumerate(slots):
        if slot not in numbers:
            filled += [0, value if value < 1 << 63 else value - (1 << 64)]
            continue
        parameter = by_name[numbers[slot]]
        if isinstance(parameter, Output):
            filled += [2, parameter.number]
        elif parameter.number in becomes:
            filled += [2, becomes[parameter.number]]
        else:
            filled += [1, parameter.number]
        slots[slot] = address
        address += 1 << 36
    compiled = _compiled(kernel, bound, options, grid, slots)
    for item in bound.pointers:
        is_input = filled[2 * item.slot] == 1
        if is_input and item.slot in compiled._stored_arguments():
            raise ArgumentError(
                "E057",
                f"kernel `{plan.kernel.__name__}` writes to argument `{item.name}`, and arrays of "
                "JAX are immutable",
                "name it in input_output_aliases: that output is then the changed argument",
            )
    code = compiled._kernel.serialize()
    return Compiled(code, hashlib.sha256(code).hexdigest(), filled, grid)


def _compiled(
    kernel: JITFunction[Any, Any],
    bound: Bound,
    options: CompileOptions,
    grid: tuple[int, int, int],
    slots: Sequence[int],
) -> Any:
    """The kernel, without tensor maps and limits where the launch is outside of them. All that
    decides it is known now: XLA's arrays are aligned, and those that a kernel writes are apart."""
    variant = _C.Variant.USUAL
    while True:
        found = kernel._kernel(bound, options.for_variant(variant)).kernel
        following = variant.next(_C.Status.OUTSIDE_LIMITS)
        if following is None or found._kernel.accepts(grid, slots):
            return found
        variant = following


def _specialised(
    plan: Plan,
    shapes: Sequence[tuple[tuple[int, ...], Any]],
    kernel: Optional[JITFunction[Any, Any]] = None,
) -> Bound:
    """The arguments, as a kernel is compiled for them."""
    values: list[Any] = []
    for parameter in plan.parameters:
        if isinstance(parameter, Constant):
            values.append(parameter.value)
            continue
        source = plan.outputs if isinstance(parameter, Output) else shapes
        values.append(_stand_in(source[parameter.number][1]))
    return (kernel or plan.kernel)._specialise(values)


def _stand_in(dtype: Any) -> MockTensor:
    if find_dtype(dtype) is None:
        raise ArgumentError(
            "E054",
            f"no kernel takes an array of {dtype}",
            "convert it to a float, an integer of 8 to 64 bits, or bool",
        )
    return MockTensor(find_dtype(dtype))


def _offsets(
    plan: Plan, shapes: Sequence[tuple[tuple[int, ...], Any]]
) -> list[Optional[list[int]]]:
    """For each parameter that is an array: how many elements lie between two neighbours of each
    batch, the innermost first; None for the others."""
    found: list[Optional[list[int]]] = []
    for parameter in plan.parameters:
        if isinstance(parameter, Constant):
            found.append(None)
            continue
        if isinstance(parameter, Output):
            mapped = [True] * len(plan.batches)
            size = math.prod(plan.outputs[parameter.number][0])
        else:
            mapped = [batch.mapped[parameter.number] for batch in plan.batches]
            sizes = [batch.size for batch, is_here in zip(plan.batches, mapped) if is_here]
            # The extents of the batches stand in front of the array's own.
            size = math.prod(shapes[parameter.number][0][len(sizes) :])
        offsets = []
        for batch, is_here in zip(plan.batches, mapped):
            offsets.append(size if is_here else 0)
            size *= batch.size if is_here else 1
        found.append(offsets)
    return found


# --- The primitive ---------------------------------------------------------------------------

_launch = Primitive("tessera_launch")
_launch.multiple_results = True


@functools.lru_cache(maxsize=1024)
def _compiled_call(plan: Plan) -> Callable[..., Any]:
    call: Callable[..., Any] = jax.jit(lambda *inputs: _launch.bind(*inputs, plan=plan))
    return call


def _run(*inputs: Any, plan: Plan) -> Any:
    return _compiled_call(plan)(*inputs)


def _result_types(*inputs: Any, plan: Plan) -> Any:
    sizes = tuple(batch.size for batch in reversed(plan.batches))
    return [jax.core.ShapedArray((*sizes, *shape), dtype) for shape, dtype in plan.outputs]


def _lower_for(on_gpu: bool) -> Any:
    def lower(context: Any, *inputs: Any, plan: Plan) -> Any:
        shapes = [(tuple(aval.shape), aval.dtype) for aval in context.avals_in]
        compiled = compile_plan(plan, shapes, 0 if on_gpu else None)
        lowered = jax.ffi.ffi_lowering(TARGET, operand_output_aliases=dict(plan.aliases))
        return lowered(
            context,
            *inputs,
            kernel=numpy.frombuffer(compiled.kernel, numpy.uint8),
            key=compiled.key,
            slots=numpy.array(compiled.slots, numpy.int64),
            grid=numpy.array(compiled.grid, numpy.int64),
        )

    return lower


def _batch(inputs: Sequence[Any], axes: Sequence[Any], *, plan: Plan) -> Any:
    """jax.vmap: another extent in front of those of the arrays that have it."""
    is_mapped = tuple(axis is not None for axis in axes)
    moved = [
        jax.numpy.moveaxis(value, axis, 0) if here else value
        for value, axis, here in zip(inputs, axes, is_mapped)
    ]
    size = next(value.shape[0] for value, here in zip(moved, is_mapped) if here)
    for index, _ in plan.aliases:  # each of the batch changes one of its own
        if not is_mapped[index]:
            moved[index] = jax.numpy.broadcast_to(moved[index], (size, *moved[index].shape))
            is_mapped = (*is_mapped[:index], True, *is_mapped[index + 1 :])
    widened = dataclasses.replace(plan, batches=(*plan.batches, Batch(size, is_mapped)))
    bound = _specialised(plan, [(tuple(value.shape), value.dtype) for value in moved])
    if is_batchable(plan.kernel, bound, dict(plan.options), widened.batches, plan.grid):
        results = _launch.bind(*moved, plan=widened)
    else:
        mapped = [value for value, here in zip(moved, is_mapped) if here]

        def one(items: Sequence[Any]) -> Any:
            rest = iter(items)
            whole = [next(rest) if here else value for value, here in zip(moved, is_mapped)]
            return _launch.bind(*whole, plan=plan)

        results = jax.lax.map(one, mapped)
    return results, [0] * len(results)


def _differentiate(primals: Any, tangents: Any, *, plan: Plan) -> Any:
    raise ArgumentError(
        "E057",
        f"a call of kernel `{plan.kernel.__name__}` has no derivative",
        "give the function that calls it one, with jax.custom_vjp",
    )


_launch.def_impl(_run)
_launch.def_abstract_eval(_result_types)
mlir.register_lowering(_launch, _lower_for(False), platform="cpu")
mlir.register_lowering(_launch, _lower_for(True), platform="cuda")
batching.primitive_batchers[_launch] = _batch
ad.primitive_jvps[_launch] = _differentiate
