# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulator: runs kernels, compiled for a GPU, on the CPU, and reports their mistakes.

It needs no GPU, and finds mistakes that no GPU reports: races, reads of unwritten words, accesses
outside the arguments, barriers that some threads do not reach. See docs/HowTo/Simulate.md.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterable, Iterator, Optional

from tessera import _C
from tessera.compiler.options import CompileOptions
from tessera.errors import ArgumentError, LaunchError, raise_core_error
from tessera.frontend.signature import kernel_name
from tessera.language.records import parts_of_argument
from tessera.runtime.arrays import TensorWrapper
from tessera.runtime.frames import as_users_see
from tessera.runtime.grid import Meta, normalize_grid
from tessera.runtime.jit import JITFunction
from tessera.tools.tensor_descriptor import TensorDescriptor

__all__ = ["Finding", "SharedAccess", "Simulated", "Simulation", "simulate"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """A mistake of a kernel, as first observed.

    Example:
        import numpy as np
        import tessera
        import tessera.gpu
        import tessera.language as tl

        @tessera.jit
        def clear(x_ptr):
            tl.store(x_ptr + tl.arange(0, 128), 0)

        simulation = tessera.gpu.simulate(clear)[(1,)](np.ones(100, np.float32))
        finding = simulation.findings[0]
        assert isinstance(finding, tessera.gpu.Finding) and finding.kind == "out of bounds"
        assert finding.count == 28 and "element 100 of `x_ptr`" in finding.message
    """

    kind: str
    """"out of bounds", "misaligned", "uninitialised", "race", "divergence", "deadlock",
    "unordered proxy", "reused barrier", "block not running" or "persistent kernel"."""
    kernel: str
    location: str
    """"file:line:column" of the line in the kernel."""
    program: tuple[int, int, int]
    block: int
    """The rank in the program's cluster; -1 if a program is one block."""
    thread: int
    """Of the block."""
    address: int
    """In shared memory from its start, in global memory the address."""
    message: str
    count: int
    """How many times this instruction did it."""
    array: str
    """The argument that it is about; empty if it is about none."""
    element: int
    """The index in that array, counted from the element at the lowest address; -1 if there is no
    array."""
    text: str
    """All of that in one line."""

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class SharedAccess:
    """How an instruction used the banks of shared memory.

    Example:
        import numpy as np
        import tessera
        import tessera.gpu
        import tessera.language as tl

        @tessera.jit
        def transpose(x_ptr):
            at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
            x = tl.trans(tl.load(x_ptr + at))  # goes through shared memory
            tl.store(x_ptr + at, x)

        simulation = tessera.gpu.simulate(transpose)[(1,)](np.ones((64, 64), np.float32))
        access = simulation.shared[0]
        assert isinstance(access, tessera.gpu.SharedAccess)
        assert access.wavefronts >= access.ideal  # more of them are conflicts of banks
    """

    location: str
    instruction: str
    executions: int
    """By a warp."""
    wavefronts: int
    """Wavefronts: accesses to the 32 banks that they took."""
    ideal: int
    """Wavefronts, had no two lanes met in a bank."""


@dataclasses.dataclass(frozen=True)
class Simulation:
    """The report of a simulated launch.

    Example:
        import numpy as np
        import tessera
        import tessera.gpu
        import tessera.language as tl

        @tessera.jit
        def double(x_ptr):
            i = tl.arange(0, 128)
            tl.store(x_ptr + i, 2 * tl.load(x_ptr + i))

        simulation = tessera.gpu.simulate(double)[(1,)](np.ones(128, np.float32))
        assert isinstance(simulation, tessera.gpu.Simulation) and simulation.instructions > 0
        simulation.check()  # raises if there are findings
    """

    findings: tuple[Finding, ...]
    shared: tuple[SharedAccess, ...]
    instructions: int
    """The number of instructions of warps."""
    lane_operations: int
    division: Optional[tuple[int, bool]] = None
    """`num_ctas` and `split_k` of the variant that a launch of few programs took, if it took one."""

    def check(self) -> None:
        """Raises AssertionError with all findings if there are any."""
        if self.findings:
            raise AssertionError("\n".join(finding.text for finding in self.findings))


class Simulated:
    """A kernel that the simulator runs; see `simulate`.

    Example:
        import numpy as np
        import tessera
        import tessera.gpu
        import tessera.language as tl

        @tessera.jit
        def double(x_ptr):
            i = tl.arange(0, 128)
            tl.store(x_ptr + i, 2 * tl.load(x_ptr + i))

        simulated = tessera.gpu.simulate(double, seed=1)
        assert isinstance(simulated, tessera.gpu.Simulated)
        x = np.ones(128, np.float32)
        simulated[(1,)](x, target="sm_80")  # launched as a kernel is, options and all
        assert (x == 2).all()
    """

    def __init__(
        self,
        fn: JITFunction,
        seed: int,
        memory: tuple[Any, ...],
        unwritten: tuple[Any, ...],
        copies: str,
        races: bool,
        multiprocessors: int,
    ) -> None:
        self.fn = fn
        self.seed = seed
        self.memory = memory
        self.unwritten = unwritten
        self.copies = copies
        self.races = races
        self.multiprocessors = multiprocessors
        self._modules: dict[Any, _C.Module] = {}

    def __getitem__(self, grid: Any) -> Callable[..., Simulation]:
        def launch(*args: Any, **kwargs: Any) -> Simulation:
            return self._launch(grid, args, kwargs)

        return as_users_see(launch)

    def _launch(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Simulation:
        from tessera.compiler.compile import build_module

        fn = self.fn
        kwargs.setdefault("target", "sm_90a")
        values, given = fn._bind(args, kwargs)
        options = fn._options(given)
        if options.target != "cuda" or not options.arch:
            raise LaunchError(
                "E053", f"a simulated target is {options.target!r}", "use one such as 'sm_90a'"
            )
        extents = normalize_grid(grid, Meta(fn.params, values, options))
        bound = fn._specialise(values)
        for item in bound.pointers:
            if item.pointer.device >= 0:
                raise ArgumentError(
                    "E054",
                    f"argument `{item.name}` is on a GPU, and the simulator runs on the CPU",
                    "pass a copy in the CPU's memory",
                )
        unwritten = {piece[:2] for value in _flatten(self.unwritten) for piece in _memory_of(value)}
        # An empty piece, so that a kernel without arrays is checked, too.
        memory = [(0, 0, False, False, 1, "")]
        named = [(param.name, value) for param, value in zip(fn.params, values)]
        for name, value in [*named, *(("", value) for value in self.memory)]:
            for item in _flatten([value]):
                for begin, end, read_only, itemsize in _memory_of(item):
                    is_unwritten = (begin, end) in unwritten
                    memory.append((begin, end, read_only, is_unwritten, itemsize, name))
        copies = _COPIES.index(self.copies)

        def compile(options: CompileOptions) -> _C.Module:
            key = (tuple(bound.key), options.key)
            module = self._modules.get(key)
            if module is None:
                module = build_module(fn, bound.specs, options)
                module.lower_cuda(options.core_json())
                self._modules[key] = module
            return module

        def run(options: CompileOptions) -> dict[str, Any]:
            return compile(options).simulate(
                kernel_name(fn, bound.specs),
                extents,
                bound.slots,
                memory,
                self.seed,
                copies,
                self.races,
                self.multiprocessors,
            )

        try:
            variant = self._choose_variant(options, compile, extents, bound.slots)
            while True:
                chosen = options.for_variant(variant)
                try:
                    report = run(chosen)
                    break
                except _C.CoreError as error:
                    following = variant.next(error.status)
                    if following is None:
                        raise
                    variant = following
        except _C.CoreError as error:
            raise_core_error(error)
        kinds = _C.Variant
        is_divided = variant not in (kinds.USUAL, kinds.UNLIMITED, kinds.SHORT_LOOPS)
        division = (chosen.num_ctas, bool(chosen.split_k)) if is_divided else None
        return Simulation(
            tuple(
                _near_an_array(Finding(**{**item, "program": tuple(item["program"])}), memory)
                for item in report["findings"]
            ),
            tuple(SharedAccess(**item) for item in report["shared"]),
            report["instructions"],
            report["lane_operations"],
            division,
        )

    def _choose_variant(
        self,
        options: CompileOptions,
        compile: Callable[[CompileOptions], _C.Module],
        extents: tuple[int, int, int],
        slots: Any,
    ) -> _C.Variant:
        """The variant that a launch would try first."""
        if not self.multiprocessors or not options.may_be_divided:
            return _C.Variant.USUAL
        variant = compile(options).choose_variant(self.multiprocessors, extents, slots)
        try:
            compile(options.for_variant(variant))
        except _C.CoreError:
            return _C.Variant.USUAL  # as in a launch: no one has requested the variant
        return variant


def _near_an_array(finding: Finding, memory: Iterable[tuple[Any, ...]]) -> Finding:
    """An access outside of all arrays, with the array that it is nearest to and what to do."""
    named = [piece for piece in memory if piece[5]]
    if "none of the launch's arrays" not in finding.message or not named:
        return finding
    address = finding.address

    def distance(piece: tuple[Any, ...]) -> int:
        return int(max(piece[0] - address, address - piece[1] + 1, 0))

    nearest = min(named, key=distance)
    begin, end, _, _, itemsize, name = nearest
    where = "; mask the lanes that are outside, or pass a larger array"
    # Further away, it may well be of another one.
    if distance(nearest) <= max(4096, end - begin):
        count, element = (end - begin) // itemsize, (address - begin) // itemsize
        where = (
            f": element {element} of `{name}`, whose memory holds elements 0 to {count - 1}" + where
        )
    return dataclasses.replace(
        finding,
        message=finding.message + where,
        text=finding.text.replace(finding.message, finding.message + where),
    )


def simulate(
    fn: JITFunction,
    *,
    seed: int = 0,
    memory: Iterable[Any] = (),
    unwritten: Iterable[Any] = (),
    copies: str = "random",
    races: bool = True,
    multiprocessors: int = 0,
) -> Simulated:
    """`simulate(kernel)[grid](*args)` runs a kernel with the simulator; returns a Simulation.

    The kernel is compiled to the code of single threads for the GPU architecture `target`, an
    option of the launch ("sm_90a" by default). The simulator runs it on the CPU, in an order of
    warps that `seed` decides. Arrays are in the CPU's memory.

    `memory` lists arrays whose addresses the kernel loads from memory. `unwritten` lists those of
    them that have no value until the kernel writes them. `copies` chooses when asynchronous copies
    arrive: "early", "late", or "random" by the seed. `races=False` turns off the check of global
    memory. `multiprocessors` simulates a GPU with that many SMs: a kernel of few programs runs as
    the variant for clusters that a launch chooses (`Simulation.division`). A persistent kernel then
    runs as that many blocks.

    Example:
        import numpy as np
        import tessera
        import tessera.gpu
        import tessera.language as tl

        @tessera.jit
        def shift(x_ptr):
            i = tl.arange(0, 128)
            x = tl.load(x_ptr + i)
            tl.store(x_ptr + (i + 1) % 128, x)  # another lane's element, without a barrier

        simulation = tessera.gpu.simulate(shift)[(1,)](np.arange(128, dtype=np.int32))
        assert {finding.kind for finding in simulation.findings} == {"race"}
    """
    if copies not in _COPIES:
        raise ValueError(f"copies is one of {', '.join(map(repr, _COPIES))}, not {copies!r}")
    return Simulated(fn, seed, tuple(memory), tuple(unwritten), copies, races, multiprocessors)


_COPIES = ("random", "early", "late")


def _flatten(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, TensorDescriptor):
            yield value.base
        elif (parts := parts_of_argument(value)) is not None:
            yield from _flatten(parts.items)
        else:
            yield value


def _memory_of(value: Any) -> Iterator[tuple[int, int, bool, int]]:
    """The memory of an array: the first byte and the end, whether it is read-only, and the size of
    elements."""
    while isinstance(value, TensorWrapper):
        value = value.base
    interface = getattr(value, "__array_interface__", None)
    if interface is not None and value.shape == ():
        return  # a scalar of NumPy
    if interface is not None:
        address, read_only = interface["data"]
        shape, itemsize = value.shape, value.dtype.itemsize
        strides = value.strides
    elif hasattr(value, "data_ptr") and hasattr(value, "element_size"):
        address, read_only, itemsize = value.data_ptr(), False, value.element_size()
        shape, strides = value.shape, [stride * itemsize for stride in value.stride()]
    elif hasattr(value, "__dlpack__"):
        import numpy

        yield from _memory_of(numpy.from_dlpack(value))
        return
    else:
        return
    low, high = address, address + itemsize
    for extent, stride in zip(shape, strides):
        if extent == 0:
            return
        low += min(0, (extent - 1) * stride)
        high += max(0, (extent - 1) * stride)
    yield low, high, read_only, itemsize
