# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a generated kernel on both sides, and comparing."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import functools
import math
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Optional

import numpy as np

import tessera
import tessera.gpu
from tessera import _C
from tessera.machine import devices
from tessera.machine.gpus import gpu_machines
from tessera.settings import settings
from tessera.testing.fuzz.arrays import Memory, Overwritten, extremes
from tessera.testing.fuzz.definitions import record_of
from tessera.testing.fuzz.loops import count_transports, lower
from tessera.testing.fuzz.program import (
    IMPORTS,
    Array,
    Check,
    Part,
    Program,
    compile_source,
)
from tessera.tools.tensor_descriptor import TensorDescriptor

_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}

# The code paths of the CPU target, and what a machine must have to run them.
_CPUS = {"x86-64-v4": ("avx512f", "avx512vl"), "x86-64-v3": ("avx2", "fma"), "x86-64": ()}

# How a GPU kernel is compiled, by the seed.
_WARPS = (1, 2, 4, 8)
_BLOCKS = (1, 2, 4, 8)  # of a cluster, where there are clusters
_ARCHITECTURES = ("sm_80", "sm_89", "sm_90a")

# Arrays of more bytes than this are on the GPU for one process at a time.
_MANY_BYTES = 1 << 30


class Failure(Exception):
    """A kernel that two targets do not agree on, or that one of them refused."""

    target = ""
    """The one that was compared with the interpreter."""


def check(program: Program, target: str = "") -> None:
    """Runs `program` on the interpreter and on a target; raises Failure with the difference.

    `target` is "cuda", "simulator", "simulator:sm_80" (or another GPU), or the name of a CPU that
    the compiler knows. By default the seed chooses a CPU whose code this machine can run.
    """
    check_all(program, [target or choose_cpu(program.seed)])


def check_all(program: Program, targets: Sequence[str]) -> dict[str, float]:
    """Runs `program` on the interpreter and on several targets; gives the seconds each took.

    A target such as "schedule:sm_90a" runs nothing: the kernel is compiled as far as its schedule,
    and `program.counts` gets the transports of its loops (loops.py).
    """
    schedules = [target for target in targets if target.startswith("schedule:")]
    if schedules:
        targets = [target for target in targets if target not in schedules]
        kernel = compile_source(program.source(gpu=True), f"<kernel of seed {program.seed}>")
        values = [value for _, value in program.scalars]
        seconds = {}
        for target in schedules:
            if program.parts:  # which have no type that a signature could name
                program.counts[f"{target} not compiled: arguments that hold arrays"] += 1
                continue
            start = time.perf_counter()
            found = _schedule(kernel, program.arrays, values, program.options, target)
            seconds[target] = time.perf_counter() - start
            program.counts.update({f"{target} {name}": count for name, count in found.items()})
        return {**seconds, **check_all(program, targets)} if targets else seconds
    name = f"<kernel of seed {program.seed}"
    kernel = compile_source(program.source(), name + ">")
    gpu_text = program.source(gpu=True)
    gpu_kernel = kernel
    if any(map(_is_gpu, targets)) and gpu_text != program.source():
        gpu_kernel = compile_source(gpu_text, name + " for a GPU>")
    scalars = (program.iterations, *(value for _, value in program.scalars))
    start = time.perf_counter()
    parts = program.parts
    expected = _interpret(
        kernel, program.arrays, program.programs, program.seed, scalars, parts, program.grid
    )
    seconds = {"interpreter": time.perf_counter() - start}
    for target in targets:
        start = time.perf_counter()
        try:
            _compare(
                gpu_kernel if _is_gpu(target) else kernel, expected, program.arrays,
                program.checks, program.programs, scalars, program.seed, target, parts,
                program.launches, program.options, program.grid, program.counts,
            )  # fmt: skip
        except Failure as failure:
            failure.target = target
            raise
        seconds[target] = time.perf_counter() - start
    return seconds


def _schedule(
    kernel: Any,
    arrays: Sequence[Array],
    scalars: Sequence[float],
    options: Mapping[str, Any],
    target: str,
) -> Counter[str]:
    """Compiles a kernel as far as its schedule; the transports of its loops."""
    try:
        with settings.override(strict_schedules=True):
            text = lower(kernel, arrays, scalars, options, target.partition(":")[2])
    except Exception as error:
        failure = Failure(f"{target} refused the kernel: {_describe(error)}")
        failure.target = target
        raise failure from error
    return count_transports(text)


def replay(
    kernel: Any,
    *,
    arrays: Sequence[tuple[Any, ...]],
    checks: Sequence[tuple[Any, ...]],
    programs: int,
    n: int,
    seed: int,
    target: str = "",
    scalars: Sequence[float] = (),
    gpu_kernel: Any = None,
    parts: Sequence[tuple[Any, ...]] = (),
    launches: str = "",
    options: Mapping[str, Any] = {},
    grid: str = "",
) -> None:
    """The function that a reproducer file calls: `check` for the kernel in the file."""
    compare(
        kernel, [Array(*item) for item in arrays], [Check(*item) for item in checks],
        programs, n, seed, target, scalars, gpu_kernel, [Part(*item) for item in parts], launches,
        options, grid,
    )  # fmt: skip
    print("the targets agree")


def write_reproducer(program: Program, target: str, message: str) -> str:
    """A Python file that runs `program` and shows what is wrong with it."""
    arrays = "".join(f"        {dataclasses.astuple(a)!r},\n" for a in program.arrays)
    checks = "".join(
        f"        {(c.function, c.operands, c.result, c.shapes, c.axis)!r},\n"
        for c in program.checks
    )
    gpu = program.source(gpu=True)
    gpu = gpu.replace("def kernel(", "def gpu_kernel(", 1) if gpu != program.source() else ""
    gpu = gpu.replace("asks(", "gpu_asks(")  # which the other kernel calls, too (machine.py)
    parts = "".join(f"        {dataclasses.astuple(part)!r},\n" for part in program.parts)
    note = "\n".join(f"# {line}" for line in message.splitlines()[:20])
    return (
        f"# Found by tessera.testing.fuzz, seed {program.seed}.\n{note}\n"
        f"{IMPORTS}from tessera.testing.fuzz import replay\n\n\n"
        f"{program.source()}\n\n{gpu}" + ("\n\n" if gpu else "") + 'if __name__ == "__main__":\n'
        f"    replay(\n        kernel,\n        arrays=[\n{_indent(arrays)}        ],\n"
        f"        checks=[\n{_indent(checks)}        ],\n"
        f"        programs={program.programs},\n        n={program.iterations},\n"
        f"        seed={program.seed},\n        target={target!r},\n"
        f"        scalars={[value for _, value in program.scalars]!r},\n"
        + ("        gpu_kernel=gpu_kernel,\n" if gpu else "")
        + (f"        parts=[\n{_indent(parts)}        ],\n" if parts else "")
        + (f"        launches={program.launches!r},\n" if program.launches else "")
        + (f"        options={program.options!r},\n" if program.options else "")
        + (f"        grid={program.grid!r},\n" if program.grid else "")
        + "    )\n"
    )


def _indent(lines: str) -> str:
    return "".join(f"    {line}\n" for line in lines.splitlines())


def list_cpus() -> list[str]:
    """The code paths of the CPU target that this machine can run."""
    features = _C.host_info()["features"].split(",")
    return [
        name for name, needed in _CPUS.items() if all(f"+{item}" in features for item in needed)
    ]


def choose_cpu(seed: int) -> str:
    """One of the code paths that this machine can run."""
    able = list_cpus()
    return able[seed % len(able)]


def find_mistake(target: str) -> str:
    """Why there is no such target; empty if there is."""
    kind, _, machine = target.partition(":")
    if kind in ("simulator", "schedule"):
        known = (not machine and kind == "simulator") or machine in gpu_machines()
        return "" if known else f"no such GPU; there are {', '.join(gpu_machines())}"
    if target == "cuda":
        return ""
    try:
        kernel = compile_source("@tessera.jit\ndef kernel():\n    pass\n", "<kernel of no seed>")
        tessera.compile(kernel, "", cpu=target)
    except tessera.LaunchError as error:
        return f"{error.message}; other targets are cuda, simulator and simulator:sm_80"
    return ""


def compare(
    kernel: Any,
    arrays: Sequence[Array],
    checks: Sequence[Check],
    programs: int,
    n: int,
    seed: int,
    target: str,
    scalars: Sequence[float] = (),
    gpu_kernel: Any = None,
    parts: Sequence[Part] = (),
    launches: str = "",
    options: Mapping[str, Any] = {},
    grid: str = "",
) -> None:
    """Runs the kernel on the interpreter and as code for `target`; raises Failure.

    Half the seeds compile with `deterministic`, which makes sums and products of arbitrary floats
    equal on all targets, too. On a GPU the seed also chooses the number of warps, and a finding of
    the simulator is a failure.
    """
    target = target or choose_cpu(seed)
    if target.startswith("schedule:"):
        _schedule(gpu_kernel or kernel, arrays, scalars, options, target)
        return
    values = (n, *scalars)
    expected = _interpret(kernel, arrays, programs, seed, values, parts, grid)
    if _is_gpu(target) and gpu_kernel is not None:
        kernel = gpu_kernel
    _compare(
        kernel, expected, arrays, checks, programs, values, seed, target, parts, launches, options,
        grid,
    )  # fmt: skip


def _is_gpu(target: str) -> bool:
    return target.split(":")[0] in ("cuda", "simulator")


def pack(
    kernel: Any,
    arrays: Sequence[Array],
    views: Sequence[Any],
    scalars: Sequence[float],
    parts: Sequence[Part],
) -> list[Any]:
    """The arguments of the kernel: arrays, numbers, and objects that hold arrays."""
    by_name = {array.name: view for array, view in zip(arrays, views)}
    inside = {name for part in parts for name in part.members}
    arguments = [view for name, view in by_name.items() if name not in inside]
    arguments += scalars
    for part in parts:
        members = [by_name[name] for name in part.members]
        if part.kind == "descriptor":
            arguments.append(
                TensorDescriptor(
                    members[0], part.extents, (part.stride, 1), part.block, part.padding, part.tf32
                )
            )
        elif part.kind == "nested":
            arguments.append((tuple([member] for member in members), len(members)))
        elif part.kind in ("list", "tuple"):
            arguments.append(members if part.kind == "list" else tuple(members))
        else:
            name = record_of(len(members), part.kind == "aggregate")[0]
            arguments.append(kernel.__globals__[name](*members))
    return arguments


def _interpret(
    kernel: Any,
    arrays: Sequence[Array],
    programs: int,
    seed: int,
    scalars: Sequence[float],
    parts: Sequence[Part] = (),
    grid: str = "",
) -> Memory:
    memory = Memory(arrays, programs, seed)
    try:
        arguments = pack(kernel, arrays, memory.views, scalars, parts)
        tessera.interpret(kernel)[_grid(grid, programs)](*arguments)
    except Exception as error:
        raise Failure(f"the interpreter refused the kernel: {_describe(error)}") from error
    return memory


def _grid(text: str, programs: int) -> Any:
    """The grid of a launch: the value of `text`, or a tuple of one extent."""
    return eval(text, {"np": np}) if text else (programs,)


def _compare(
    kernel: Any,
    expected: Memory,
    arrays: Sequence[Array],
    checks: Sequence[Check],
    programs: int,
    scalars: Sequence[float],
    seed: int,
    target: str,
    parts: Sequence[Part] = (),
    launches: str = "",
    given: Mapping[str, Any] = {},
    grid: str = "",
    counts: Optional[Counter[str]] = None,
) -> None:
    """Each launch that a kernel may have by its `launches`."""
    compare_launch = functools.partial(
        _compare_launch, kernel, expected, arrays, checks, programs, scalars, seed, target, parts,
        given, grid,
    )  # fmt: skip
    if launches == "chosen" and _has_clusters(target, seed):
        counts = Counter() if counts is None else counts
        _compare_chosen(kernel, compare_launch, programs, target, seed, counts)
        return
    variants: list[dict[str, Any]] = [{}]
    if launches and target == "cuda":
        # There, a launch chooses. Sums of one order are not divided.
        variants = [{"num_ctas": 1, "deterministic": False}]
    elif launches and launches != "chosen" and _is_gpu(target):
        variants = _launches(kernel, arrays, programs, scalars, seed, target, parts, launches)
    for variant in variants:
        try:
            compare_launch(variant)
        except Failure as failure:
            if not variant:
                raise
            raise Failure(f"{failure} (launched with {variant})") from failure


def _has_clusters(target: str, seed: int) -> bool:
    """True if a simulated GPU has clusters."""
    architecture = target.partition(":")[2] or _ARCHITECTURES[seed % 3]
    return target.startswith("simulator") and gpu_machines()[architecture].max_cluster_size > 1


def _compare_chosen(
    kernel: Any,
    compare_launch: Callable[..., Optional[tessera.gpu.Simulation]],
    programs: int,
    target: str,
    seed: int,
    counts: Counter[str],
) -> None:
    """Launches on GPUs with fewer SMs than programs, and with more: each division that a launch may
    choose, and persistent kernels whose blocks do one program or several."""
    simulated = tessera.gpu.simulate(kernel, seed=seed)
    variant = {"num_ctas": 1, "deterministic": False}
    multiprocessors = max(1, programs // 2)
    while multiprocessors:
        simulated.multiprocessors = multiprocessors
        try:
            simulation = compare_launch(variant, simulated)
        except Failure as failure:
            raise Failure(f"{failure} (on {multiprocessors} SMs)") from failure
        assert simulation is not None
        if multiprocessors < max(programs, 2):
            module = next(iter(simulated._modules.values()))
            counts[f"{target} persistent"] += "persistent_programs" in str(module)
            multiprocessors = 8 * programs
            continue
        # Fewer SMs leave fewer divisions to choose from.
        blocks, of_sum = simulation.division or (1, False)
        what = f"the sum by {blocks}" if of_sum else "the tiles"
        counts[f"{target} divides {what}" if blocks > 1 else f"{target} divides nothing"] += 1
        multiprocessors = blocks // 2 * programs if blocks > 2 else 0


def _launches(
    kernel: Any,
    arrays: Sequence[Array],
    programs: int,
    scalars: Sequence[float],
    seed: int,
    target: str,
    parts: Sequence[Part],
    launches: str,
) -> list[dict[str, Any]]:
    """The options in addition to those of the seed: of a launch without clusters, of one that may
    choose clusters, and of one with given clusters."""
    architecture = target.partition(":")[2] or _ARCHITECTURES[seed % 3]
    if gpu_machines()[architecture].max_cluster_size == 1:
        return [{}]
    variants: list[dict[str, Any]] = [{"num_ctas": 1}]
    try:
        views = Memory(arrays, programs, seed).views
        arguments = pack(kernel, arrays, views, scalars, parts)
        options = {"num_warps": _WARPS[seed // 2 % 4], "target": architecture}
        plain = kernel.warmup(*arguments, grid=(programs,), **options)
    except Exception as error:
        raise Failure(f"{target} refused the kernel: {_describe(error)}") from error
    blocks = _BLOCKS[1 + seed // 8 % 3]
    division = plain.metadata["divisible_sum"]
    if division:
        variants.append({"num_ctas": blocks, "split_k": True})
        if division["pair_cycles"]:
            variants.append({"num_ctas": 2, "split_k": False})
    elif launches == "clusters":
        variants.append({"num_ctas": blocks, "split_k": True})
    if launches == "clusters":
        variants.append({"num_ctas": blocks})
    return [{**variant, "deterministic": False} for variant in variants]


def _compare_launch(
    kernel: Any,
    expected: Memory,
    arrays: Sequence[Array],
    checks: Sequence[Check],
    programs: int,
    scalars: Sequence[float],
    seed: int,
    target: str,
    parts: Sequence[Part],
    given: Mapping[str, Any],
    grid_text: str,
    variant: Mapping[str, Any],
    simulated: Optional[tessera.gpu.Simulated] = None,
) -> Optional[tessera.gpu.Simulation]:
    got = Memory(arrays, programs, seed, pages=target != "cuda")
    grid = _grid(grid_text, programs)
    simulation = None
    deterministic = seed % 2 == 1
    fusion = given.get("enable_fp_fusion", False)
    options: dict[str, Any] = {"enable_fp_fusion": fusion, "deterministic": deterministic}
    on_gpu = _is_gpu(target)
    name = target if on_gpu else f"cpu {target}"
    if on_gpu:
        options["num_warps"] = _WARPS[seed // 2 % 4]
        architecture = target.partition(":")[2] or _ARCHITECTURES[seed % 3]
        if target == "cuda":
            architecture = devices.architecture(0)
        if gpu_machines()[architecture].max_cluster_size > 1:
            options["num_ctas"] = _BLOCKS[seed // 8 % 4]
        if given.keys() - {"enable_fp_fusion"}:
            options.pop("num_ctas", None)
            options.update(_options_for(given, architecture))
        options |= variant
    try:
        arguments = pack(kernel, arrays, got.views, scalars, parts)
        with settings.override(strict_schedules=True):
            if target == "cuda":
                _run_on_gpu(kernel, grid, arrays, got, scalars, parts, **options)
            elif on_gpu:
                options["target"] = architecture
                simulated = simulated or tessera.gpu.simulate(kernel, seed=seed)
                simulation = simulated[grid](*arguments, **options)
                simulation.check()
            else:
                kernel[grid](*arguments, cpu=target, **options)
    except Exception as error:
        raise Failure(f"{name} refused the kernel: {_describe(error)}") from error
    near = {
        item.result for item in checks if not (deterministic and item.function in ("sum", "dot"))
    }
    for memory, where in ((expected, "the interpreter"), (got, name)):
        try:
            memory.check_guards(where)
        except Overwritten as error:
            raise Failure(str(error)) from error
        for item in checks:
            _check_near(item, memory.by_name, programs, where, on_gpu and memory is got)
    for array in arrays:
        if array.name not in near and array.data != "scratch":
            _check_equal(array, expected.read(array), got.read(array), name)
    return simulation


def _options_for(given: Mapping[str, Any], architecture: str) -> dict[str, Any]:
    """The options of a program that a GPU has a use for."""
    options = dict(given)
    if gpu_machines()[architecture].max_cluster_size == 1:
        options.pop("num_ctas", None)
    return options


def _run_on_gpu(
    kernel: Any,
    grid: Any,
    arrays: Sequence[Array],
    memory: Memory,
    scalars: Sequence[float],
    parts: Sequence[Part],
    **options: Any,
) -> None:
    """Runs a kernel on copies in the GPU's memory, guard bands and all.

    A fault there ends all use of the GPU by this process, and so this process.
    """
    with _room_on_gpu(sum(view.nbytes for view in memory.views)):
        _run_in_gpu_memory(kernel, grid, arrays, memory, scalars, parts, options)


@contextlib.contextmanager
def _room_on_gpu(size: int) -> Iterator[None]:
    """Lets one process at a time have arrays of many bytes, which several could not."""
    if size <= _MANY_BYTES:
        yield
        return
    import torch

    with open(os.path.join(tempfile.gettempdir(), "tessera-fuzz-gpu.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            torch.cuda.empty_cache()


def _run_in_gpu_memory(
    kernel: Any,
    grid: Any,
    arrays: Sequence[Array],
    memory: Memory,
    scalars: Sequence[float],
    parts: Sequence[Part],
    options: Mapping[str, Any],
) -> None:
    import torch

    copies = {}
    for name, whole, _ in memory.guarded:
        copies[name] = torch.from_numpy(whole.view(np.uint8)).cuda()
    views = []
    for array, view in zip(arrays, memory.views):
        if array.places:
            copies[array.name] = torch.empty(view.nbytes, dtype=torch.uint8, device="cuda")
            views.append(copies[array.name].view(getattr(torch, view.dtype.name)))
            for piece, part in _pieces(array, view, copies[array.name]):
                part.copy_(torch.from_numpy(piece))
            continue
        # An array that is another's memory has that one's copy. An empty one shares none.
        for name, whole, _ in memory.guarded:
            first = view.ctypes.data - whole.ctypes.data
            if 0 <= first and first + view.nbytes <= whole.nbytes:
                part = copies[name][first : first + view.nbytes]
                views.append(part.view(getattr(torch, whole.dtype.name)))
                break
    try:
        kernel[grid](*pack(kernel, arrays, views, scalars, parts), **options)
    finally:
        _wait_for_gpu()
    for name, whole, _ in memory.guarded:
        whole.view(np.uint8)[:] = copies[name].cpu().numpy()
    for array, view in zip(arrays, memory.views):
        if array.places:
            for piece, part in _pieces(array, view, copies[array.name]):
                piece[:] = part.cpu().numpy()


def _pieces(array: Array, view: np.ndarray, copy: Any) -> Iterator[tuple[np.ndarray, Any]]:
    """The bytes of each place of an array, here and in the GPU's memory."""
    size = view.dtype.itemsize
    for start, length in array.places:
        piece = slice(start * size, (start + length) * size)
        yield view.view(np.uint8)[piece], copy[piece]


def _wait_for_gpu() -> None:
    """Ends this process if the GPU has faulted, or is not done after a while."""
    import torch

    try:
        cuda: Any = torch.cuda  # not typed throughout
        done = cuda.Event()
        done.record()
        deadline = time.monotonic() + 20
        while not done.query():
            if time.monotonic() > deadline:
                raise TimeoutError("the kernel does not end")
            time.sleep(1e-4)
    except Exception as error:
        print(f"the GPU is lost: {_describe(error)}", flush=True)
        os.abort()


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


# --- Comparison ----------------------------------------------------------------------


def _check_equal(array: Array, expected: np.ndarray, got: np.ndarray, where: str) -> None:
    """The same bits; one NaN is as good as another, but for arrays that are `exact`."""
    unsigned = np.dtype(f"uint{8 * expected.dtype.itemsize}")
    same = expected.view(unsigned) == got.view(unsigned)
    if expected.dtype.kind not in "biu" and not array.exact:
        same |= np.isnan(expected.astype(np.float64)) & np.isnan(got.astype(np.float64))
    if same.all():
        return
    at = int(np.argmin(same))
    raise Failure(
        f"array {array.name} ({array.dtype}, {array.size} elements a program) differs in "
        f"{int((~same).sum())} of {same.size} elements; first at {at}: the interpreter has "
        f"{expected[at]!r}, {where} has {got[at]!r}"
        + (f" ({expected.view(unsigned)[at]:#x}, {got.view(unsigned)[at]:#x})" * array.exact)
    )


def _check_near(
    item: Check, arrays: Mapping[str, np.ndarray], programs: int, where: str, flushes: bool
) -> None:
    """The stated bounds. A function may differ by 4 ulps; by 4 ulps of 1 for sine and cosine. The
    least bound is 4 denormals. It is 2^-126 for sigmoid, and for powers if a GPU may flush them.
    For sums and products, the bound is `terms * eps * sum |terms|`, and a denormal more for each
    product."""
    dtype = arrays[item.result].dtype
    eps = _EPSILON[dtype.name]
    operands = [arrays[name].astype(np.float64) for name in item.operands]
    shapes = [(programs, *shape) for shape in item.shapes]
    result = arrays[item.result].astype(np.float64).reshape(shapes[-1])
    tiles: list[Any] = [operand.reshape(shape) for operand, shape in zip(operands, shapes)]
    with np.errstate(all="ignore"):
        if item.function == "sum":
            along = 1 + item.axis
            want = tiles[0].sum(axis=along)
            bound = item.shapes[0][item.axis] * eps * np.abs(tiles[0]).sum(axis=along)
        elif item.function == "dot":
            want = tiles[0] @ tiles[1]
            # A product may be a denormal, and is rounded to one.
            terms = item.shapes[0][-1]
            bound = terms * (eps * (np.abs(tiles[0]) @ np.abs(tiles[1])) + extremes(dtype.name)[0])
        else:
            want = _FUNCTIONS[item.function](*tiles)
            size = np.abs(want)
            if item.function in ("sin", "cos"):
                size = np.maximum(size, 1.0)
            ulps = _ULPS.get(item.function, (4.0, 4.0))[dtype.name == "float64"]
            bound = ulps * eps * size + 4 * extremes(dtype.name)[0]
            if item.function == "sigmoid":
                # 1 / (1 + exp(-x)) is 0 from where exp(-x) of float32 overflows.
                bound += 2.0**-126
            elif flushes and item.function in ("exp", "exp2") and dtype.itemsize <= 4:
                bound += 2.0**-126
        want_rounded = want.astype(dtype).astype(np.float64)
        good = (result == want_rounded) | (np.isnan(result) & np.isnan(want))
        good |= np.abs(result - want) <= bound
        if item.function in _ULPS:
            # Next to the largest number, infinity is its neighbour.
            end = np.isinf(result) & (np.sign(result) == np.sign(want))
            good |= end & (np.abs(want) >= extremes(dtype.name)[1] * (1 - ulps * eps))
    if good.all():
        return
    at = tuple(int(i) for i in np.argwhere(~good)[0])
    inputs = [repr(tile[at]) for tile in tiles] if result.shape == tiles[0].shape else ["..."]
    raise Failure(
        f"{where}: {item.function}({', '.join(inputs)}) at {at} is {result[at]!r}, in float64 "
        f"{want[at]!r}; {int((~good).sum())} of {good.size} elements are off"
    )


_FUNCTIONS: dict[str, Any] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "sin": np.sin,
    "cos": np.cos,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "hypot": np.hypot,
    "cbrt": np.cbrt,
    "exp10": lambda x: np.power(10.0, x),
    "log10": np.log10,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "asin": np.arcsin,
    "acos": np.arccos,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "expm1": np.expm1,
    "log1p": np.log1p,
    # Python's results for scalars.
    "or": lambda x, y: np.where(x != 0, x, y),
    "and": lambda x, y: np.where(x != 0, y, x),
    "or 16": lambda x: np.where(x != 0, x, 16),
    "and 3": lambda x: np.where(x != 0, 3, x),
    "chain": lambda x, y: (-1 <= x) & (x < y),
    "same": lambda x: x,
}

# The largest error of a function of libdevice in ulps of float32 and float64, here or on a GPU. Two
# more ulps are for the error of NumPy's float64.
_ULPS: dict[str, tuple[float, float]] = {
    "hypot": (3.5, 4.5),
    "cbrt": (1.5, 3.5),
    "exp10": (2.5, 3.5),
    "log10": (2.5, 3.5),
    "atan": (2.5, 4.5),
    "atan2": (3.5, 4.5),
    "asin": (2.5, 4.5),
    "acos": (2.5, 4.5),
    "sinh": (3.5, 4.5),
    "cosh": (2.5, 3.5),
    "asinh": (3.5, 5.5),
    "acosh": (4.5, 5.5),
    "atanh": (3.5, 4.5),
    "erfc": (4.5, 7.5),
    "expm1": (2.5, 4.0),
    "log1p": (2.5, 4.0),
}

__all__ = [
    "Failure",
    "check",
    "check_all",
    "choose_cpu",
    "compile_source",
    "list_cpus",
    "pack",
    "replay",
    "write_reproducer",
]
