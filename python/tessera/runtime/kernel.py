# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled kernel: what is known about it, and its launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence

from tessera import _C
from tessera.compiler.metadata import KernelMetadata
from tessera.compiler.remarks import Remark
from tessera.compiler.stages import Stages
from tessera.compiler.toolchain import warn_of_assembler
from tessera.errors import ArgumentError, LaunchError, raise_core_error
from tessera.frontend.signature import ConstSpec, KnownSpec, ValueSpec, spell
from tessera.locks import CachedProperty
from tessera.machine.devices import current_device, vector_registers
from tessera.runtime.cuda import StreamSource, consumer_of, find_place, find_stream, read_stream
from tessera.runtime.memory_ranges import memory_of_slots
from tessera.runtime.grid import normalize_grid
from tessera.runtime.hooks import LazyDict, hooks, tell_launch
from tessera.runtime.match import (
    Expected,
    Matched,
    Parameters,
    flatten,
    launchable_parameters,
    read_arguments,
)
from tessera.settings import settings

if TYPE_CHECKING:
    from tessera.runtime.estimates import Estimate
    from tessera.runtime.specialize import Bound
    from tessera.compiler.options import CompileOptions


def _show(kernel: _C.Kernel, tools: str) -> None:
    """Reports the names of a kernel's functions to perf or gdb, or all."""
    try:
        kernel.show(perf=tools in ("perf", "all"), gdb=tools in ("gdb", "all"))
    except _C.CoreError as error:
        raise_core_error(error)


class CompiledKernel:
    """Machine code for one specialisation of a kernel.

    Attributes: `name`; `metadata`, a dict of the compiler's decisions; `stages`, the IR at each
    stage. `kernel[grid](*args)` launches it on arguments of the types that it was compiled for. It
    takes a value for each parameter, for each that is no constant, or for each that is not declared
    `tl.constexpr`.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def double(x_ptr, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            tl.store(x_ptr + i, 2 * tl.load(x_ptr + i))

        x = np.ones(8, np.float32)
        compiled = double[(1,)](x, BLOCK=8)  # a launch returns one, and so does tessera.compile
        assert isinstance(compiled, tessera.CompiledKernel)
        compiled[(1,)](x)
        assert (x == 4).all() and "tile.load" in compiled.asm["tile"]
    """

    def __init__(
        self,
        kernel: _C.Kernel,
        rebuild: Optional[Callable[[], _C.Kernel]] = None,
        parameters: Optional[Parameters] = None,
        fn: Any = None,
        options: Optional[CompileOptions] = None,
    ) -> None:
        self._kernel = kernel
        self._unlimited: Optional[_C.Kernel] = None
        """The same kernel without limits, which does the launches outside of this one's."""
        self._variants: Optional[_C.KernelFamily] = None
        self._parameters = parameters
        self._expected: Optional[list[Expected]] = None
        self.metadata = KernelMetadata(kernel, options)
        self.src = KernelSource(fn, parameters)
        self._is_loaded = False
        """True if it has been launched, or loaded for a launch."""
        self._is_checked = False
        """True once its first launch has been checked for accesses outside of arrays."""
        self.stages = Stages(kernel, rebuild)
        warn_of_assembler(self._assembler, self.metadata.get("arch", ""))
        if settings.symbols != "off" and self.metadata["target"] == "cpu":
            _show(kernel, settings.symbols)

    @property
    def _has_limits(self) -> bool:
        """True if it relies on grids and integers being no larger than they mostly are; a launch
        outside is an error, E070."""
        found = self.metadata
        return bool(found.get("most_programs") or found.get("launch_conditions"))

    def _extend(self, unlimited: "CompiledKernel") -> None:
        """Has `unlimited`, the same without limits, do the launches that are outside this one's."""
        self._unlimited, self._variants = unlimited._kernel, None

    @property
    def _family(self) -> _C.KernelFamily:
        """The kernel and its variant without limits; a launch of a compiled kernel returns None.

        It is made when it is first needed, and anew in a process that the kernel is sent to.
        """
        if self._variants is None:
            self._variants = _C.KernelFamily((None, self._kernel, ()))
            if self._unlimited is not None:
                self._variants.set(_C.Variant.UNLIMITED, (None, self._unlimited, ()))
        return self._variants

    @property
    def _assembler(self) -> str:
        return str(self.metadata.get("assembler", ""))

    def _check_driver(self, device: int) -> None:
        """Warns if the driver assembles this kernel and is known to make mistakes."""
        if self._assembler == "driver":
            version = _C.cuda_device_info(device)["driver_version"]
            name = f"driver {version // 1000}.{version % 1000 // 10}"
            warn_of_assembler(name, self.metadata["arch"])

    def _facts(self) -> dict[str, Any]:
        """Registers and spills by the driver, if that alone knows them."""
        if self._assembler != "driver" or not _C.cuda_is_available():
            return {}
        try:
            return self._kernel.device_facts(0)
        except _C.CoreError as error:
            raise_core_error(error)

    @property
    def name(self) -> str:
        """The kernel's name."""
        return str(self.metadata["name"])

    @property
    def hash(self) -> str:
        """In hexadecimal; equal for the same machine code."""
        return self.metadata.hash

    @property
    def n_regs(self) -> int:
        """The registers of a thread; on a CPU its vector registers. 0 for a kernel that the driver
        is to assemble where there is no GPU."""
        if self.metadata["target"] != "cuda":
            return vector_registers(self.metadata["features"])
        return int(self._facts().get("num_registers", self.metadata.get("num_registers", 0)))

    @property
    def n_spills(self) -> int:
        """The bytes that a thread spills; 0 for a kernel on the CPU. For a kernel that the driver
        assembles, all of a thread's local memory."""
        return int(self._facts().get("local_bytes", self.metadata.get("spill_bytes", 0)))

    @property
    def shared(self) -> int:
        """The bytes of shared memory of a program; 0 for a kernel on the CPU."""
        return int(self.metadata.get("shared_bytes", 0))

    @property
    def num_stages(self) -> int:
        """The number of tiles in the longest ring that the kernel's loops prefetch to. It is the
        number of stages of the loop, plus one if dots overlap the copies. It is 0 if the kernel
        prefetches nothing.
        """
        return int(self.metadata.get("num_stages", 0))

    @property
    def remarks(self) -> Sequence[Remark]:
        """The remarks of the compiler and the assembler, each with its line in the source: a text
        that has its kind, place and values as attributes, too."""
        return tuple(self.metadata["remarks"])

    @property
    def num_warps(self) -> int:
        """The warps of a program; 0 for a kernel on the CPU."""
        return int(self.metadata.get("num_warps", 0))

    @property
    def asm(self) -> Stages:
        """Another name for `stages`."""
        return self.stages

    def _stored_arguments(self) -> Sequence[int]:
        """The arguments through which the kernel may write."""
        return [
            index
            for index, argument in enumerate(self.metadata["arguments"])
            if argument.get("stored")
        ]

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        if isinstance(grid, tuple) and self._dispatcher is not None:
            return self._dispatcher.bind(grid)

        def launch(*args: Any, **options: Any) -> None:
            self._slow_launch(grid, args, options)

        return launch

    @CachedProperty
    def _dispatcher(self) -> Optional[_C.Dispatcher]:
        """The warm path of launches; None where it cannot do them."""
        taken = launchable_parameters(self._parameters)
        return None if taken is None else _C.Dispatcher(taken, self._slow_launch, raise_core_error)

    @CachedProperty
    def _shorter_dispatchers(self) -> dict[int, _C.Dispatcher]:
        """The same for launches that leave constants out, by how many arguments these have."""
        found: dict[int, _C.Dispatcher] = {}
        if self._dispatcher is None or self._parameters is None or self.src.fn is None:
            return found
        constant = [isinstance(spec, (ConstSpec, KnownSpec)) for _, spec in self._parameters]
        declared = [param.is_constexpr for param in self.src.fn.params]
        for left_out in (declared, constant):
            given = [item for item, is_out in zip(self._parameters, left_out) if not is_out]
            taken = launchable_parameters(given)
            if taken is not None and len(given) < len(self._parameters):
                found[len(given)] = _C.Dispatcher(
                    taken, self._slow_shorter_launch, raise_core_error
                )
        return found

    def _slow_shorter_launch(self, grid: Any, args: tuple[Any, ...], options: Any) -> Any:
        return None, self._launch(grid, args)

    def _slow_launch(self, grid: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """A launch that the warm path does not know, and what it needs to repeat it."""
        if not options and not hooks.on_launch and isinstance(grid, tuple):
            shorter = self._shorter_dispatchers.get(len(args))
            if shorter is not None:
                shorter.bind(grid)(*args)
                return None, None
        for name in options:
            if name not in ("num_threads", "stream"):
                raise ArgumentError(
                    "E051",
                    f"a launch of the compiled kernel `{self.name}` has no option `{name}`",
                    "pass arguments by place; the options are num_threads and stream",
                )
        return None, self._launch(grid, args, **options)

    def launch(
        self, grid: Any, args: Sequence[Any], num_threads: int = 0, stream: Any = None
    ) -> None:
        """Runs the kernel over `grid`. Returns when it is done on the CPU, and when it is put
        on a stream of a GPU.

        Raises LaunchError for a bad grid or argument, KernelAssertionError for a
        `device_assert` that does not hold.
        """
        self._launch(grid, args, num_threads, stream)

    def _launch(
        self,
        grid: Any,
        args: Sequence[Any],
        num_threads: int = 0,
        stream: Any = None,
        is_told: bool = False,
    ) -> Optional[_C.LaunchRecord]:
        """The same; `is_told` if hooks are called by the caller. Returns the record by which the
        warm path repeats it, if it can."""
        extents = normalize_grid(grid, {})
        expected = self._flattened
        args = self._with_constants(args)
        consumer = consumer_of(args, stream)
        matched = Matched(self.name, expected, self._parameters, args, consumer)
        slots, pointers = matched.slots, matched.pointers
        stored = self._stored_arguments()
        for item in pointers:
            if item.pointer.read_only and item.slot in stored:
                raise read_only_error(item.name)
        place = find_place(pointers, self.metadata["target"])
        if place is not None and place.has_host_arrays and self.metadata["tensor_maps"]:
            raise LaunchError(
                "E070",
                f"kernel '{self.name}' was compiled to move boxes of arrays by tensor maps, and some "
                "are in pinned memory of the CPU",
                "compile it with tensor_maps=False",
            )
        device, handle = -1, 0
        found: StreamSource = 0
        try:
            if place is not None:
                device = place.device
                found = find_stream(pointers, device, stream)
                handle = read_stream(found, device)
                self._check_driver(device)
            told = None
            if hooks.on_launch and not is_told:
                told = (lambda _: self._tell_launch(extents, args, handle), hooks.launch_exit)
            memory = None
            if place is None and self._checks_accesses:
                memory = memory_of_slots(len(slots), pointers, args)
            record = _C.LaunchRecord(self._family, slots, {}, num_threads, device, found)
            record.launch(extents, handle, None, told, memory)
        except _C.CoreError as error:
            raise_core_error(error)
        if self._checks_accesses if place is None else not place.by_arrays:
            return None
        return record

    def estimate(self, grid: Any, *args: Any) -> "Estimate":
        """The expected time of a launch `kernel[grid](*args)`, which does not run.

        Without a GPU it is that of the GPU that the compiler's table has for the architecture.
        Raises LaunchError (E054) for a kernel for the CPU. `tessera.estimate` compiles, too.
        """
        from tessera.runtime.estimates import estimate_slots

        extents = normalize_grid(grid, {})
        given = self._with_constants(args)
        matched = Matched(
            self.name, self._flattened, self._parameters, given, consumer_of(given, None), False
        )
        found = [item.pointer.device for item in matched.pointers if item.pointer.device >= 0]
        device = found[0] if found else -1
        if not found and self.metadata["target"] == "cuda" and _C.cuda_is_available():
            major, minor = _C.cuda_device_info(current_device())["capability"]
            if _C.gpu_machine_for_capability(major, minor) == self.metadata["arch"]:
                device = current_device()
        return estimate_slots(self._kernel, device, extents, matched.slots, matched.pointers, given)

    @property
    def _flattened(self) -> list[Expected]:
        """The parameters without constants, tuples item by item."""
        if self._expected is None:
            self._expected = (
                read_arguments(self.metadata["arguments"])
                if self._parameters is None
                else flatten(self._parameters)
            )
        return self._expected

    def _with_constants(self, args: Sequence[Any]) -> Sequence[Any]:
        """`args` with the constants put in, if exactly the parameters that are declared so lack.

        Libraries that keep compiled kernels leave those out as Triton did before 3.3, but pass 1 for
        an integer that became a constant by being 1.
        """
        if (
            self._parameters is None
            or self.src.fn is None
            or len(args) == len(self._expected or ())
        ):
            return args
        declared = [param.is_constexpr for param in self.src.fn.params]
        if True not in declared or len(args) != declared.count(False):
            return args
        given = iter(args)
        return [
            spec.value if is_constant and isinstance(spec, ConstSpec) else next(given)
            for (_, spec), is_constant in zip(self._parameters, declared)
        ]

    def _tell_launch(
        self, grid: tuple[int, int, int], args: Sequence[Any], stream: int
    ) -> LazyDict:
        """Calls hooks before a launch; what they get after it."""
        values: Sequence[Any] = args
        if self._parameters is not None and len(args) != len(self._parameters):
            # Those that did not become constants.
            given = iter(args)
            values = [
                (
                    getattr(spec, "value", None)
                    if isinstance(spec, (ConstSpec, KnownSpec))
                    else next(given, None)
                )
                for _, spec in self._parameters
            ]
        return tell_launch(self, grid, values, {}, stream)

    @property
    def _checks_accesses(self) -> bool:
        """True if it was compiled with `debug` for the CPU, and has accesses to check."""
        return any(site["access"] for site in self.metadata["sites"])

    def _init_handles(self) -> None:
        """Loads the machine code onto the current GPU, as a first launch does."""
        if self._is_loaded:
            return
        self._is_loaded = True
        hooks.kernel_load_start(None, None, self.name, {}, self.hash)
        self._load()
        hooks.kernel_load_end(self, self, self.name, {}, self.hash)

    def _load(self) -> None:
        if self.metadata["target"] == "cuda" and _C.cuda_is_available():
            try:
                self._kernel.device_facts(current_device())
            except _C.CoreError as error:
                raise_core_error(error)

    @property
    def function(self) -> None:
        """Ignored as the kernel's handle by `run`, which has its own."""
        return None

    @property
    def run(self) -> Callable[..., None]:
        """A launch as generated launchers spell it (runtime/runner.py)."""
        from tessera.runtime.runner import make_runner

        return make_runner(self)

    def launch_metadata(self, grid: Any, stream: Any, *args: Any) -> Optional[LazyDict]:
        """The arguments of launch hooks, for `run`; None if there are none."""
        if not hooks.on_launch:
            return None
        told = LazyDict({"name": self.name, "function": None, "stream": stream})
        compute = getattr(self.src.fn, "launch_metadata", None)
        if compute is not None:
            told.add(compute, (grid, self.metadata, dict(zip(self.src.fn.arg_names, args))))
        return told

    def __copy__(self) -> "CompiledKernel":
        return self

    def __deepcopy__(self, memo: Any) -> "CompiledKernel":
        return self

    def __reduce__(self) -> Any:
        # It is machine code for one machine, and for arguments that lie in one process.
        raise TypeError(
            f"the compiled kernel `{self.name}` cannot be pickled: pickle its @jit function, "
            "which finds the machine code in the disk cache"
        )

    def __repr__(self) -> str:
        machine = self.metadata.get("arch") or self.metadata.get("cpu", "?")
        text = f"compiled kernel {self.name} for {machine}"
        if self.metadata["target"] == "cuda":
            registers, spilled = (self.metadata[name] for name in ("num_registers", "spill_bytes"))
            if self._assembler != "driver":  # which knows them when it has loaded the kernel
                text += f": {registers} registers, {spilled} bytes spilled"
            text += f", {self.shared} bytes of shared memory"
        return f"<{text}>"

    def _repr_html_(self) -> str:
        """How a notebook shows it: registers and memory, remarks, and each stage's IR."""
        from tessera.runtime.notebook import kernel_html

        return kernel_html(self)


class KernelSource:
    """The source of a kernel: its function, and the types and constants of its parameters."""

    def __init__(self, fn: Any, parameters: Optional[Parameters]) -> None:
        self.fn = fn
        self._parameters = parameters or ()

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.fn, "__name__", ""))

    @property
    def signature(self) -> dict[str, Any]:
        """The type of each parameter by name, as "*fp32"; "constexpr" of a constant."""
        return {name: spell(spec) for name, spec in self._parameters}

    @property
    def constants(self) -> dict[tuple[int, ...], Any]:
        """The values of constants, by the places of their parameters."""
        return {
            (index,): spec.value
            for index, (_, spec) in enumerate(self._parameters)
            if isinstance(spec, (ConstSpec, KnownSpec))
        }

    @property
    def attrs(self) -> dict[tuple[int, ...], list[list[Any]]]:
        """The divisors of arguments, by the places of their parameters."""
        return {
            (index,): [["tt.divisibility", spec.divisibility]]
            for index, (_, spec) in enumerate(self._parameters)
            if isinstance(spec, ValueSpec) and spec.divisibility
        }


def check_writeable(stored: Sequence[int], bound: Bound) -> None:
    """Raises ArgumentError if one of the arguments `stored` is a read-only array."""
    for item in bound.pointers:
        if item.pointer.read_only and item.slot in stored:
            raise read_only_error(item.name)


def read_only_error(name: str) -> ArgumentError:
    """The error for an array that must not change and would."""
    return ArgumentError(
        "E054",
        f"argument `{name}` is a read-only array, and the kernel writes to it",
        "pass a writeable copy",
    )
