# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The expected time of a launch, from what the compiler knows of the kernel; nothing runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, NamedTuple, Sequence

from tessera import _C
from tessera.errors import raise_core_error
from tessera.runtime.memory_ranges import sizes_of_slots
from tessera.runtime.specialize import PointerSlot

if TYPE_CHECKING:
    from tessera.runtime.kernel import CompiledKernel

__all__ = ["Estimate", "estimate"]


class Estimate(NamedTuple):
    """The expected time of a launch, and what it consists of."""

    microseconds: float
    bound: str
    """What takes longest: a resource of `busy_cycles`, "latency", "memory" or "launch"."""
    memory_microseconds: float
    """The time of the arrays' way from and to the GPU's memory."""
    latency_cycles: float
    """The longest path through a program: its cycles if it is alone on a multiprocessor."""
    waves: float
    """How often the grid fills the multiprocessors."""
    programs_per_sm: int
    """The programs that a multiprocessor has at a time."""
    is_certain: bool
    """False if loops or branches depend on loaded values, and were guessed."""
    busy_cycles: dict[str, float]
    """The cycles in which a program keeps each resource of a multiprocessor busy: "tensor",
    "issue", "floats", "integers", "functions", "shared", "global" (lines that are looked up),
    "read" (the second-level cache), ..."""


def estimate_slots(
    kernel: _C.Kernel,
    device: int,
    grid: tuple[int, int, int],
    slots: Sequence[int],
    pointers: Iterable[PointerSlot],
    values: Iterable[Any],
) -> Estimate:
    """The estimate for arguments as a launch has them; device -1 is the GPU of the table."""
    sizes = sizes_of_slots(len(slots), pointers, values)
    try:
        return Estimate(**kernel.estimate(device, grid, slots, sizes))
    except _C.CoreError as error:
        raise_core_error(error)


def estimate(kernel: Any, grid: Any, args: Sequence[Any], **options: Any) -> Estimate:
    """The expected time of the launch `kernel[grid](*args, **options)` on a GPU. It is compiled,
    and does not run.

    The compiler counts what each part of the kernel takes of a multiprocessor, and finds from the
    arguments how often it runs. Give `target="sm_90a"` or the like where there is no GPU; arrays
    may be of the CPU, or a `tessera.MockTensor` with a shape. An autotuned kernel measures only the
    configurations with the least estimates if this function is its model:
    `prune_configs_by={"perf_model": tessera.estimate, "top_k": 3}`.

    Raises LaunchError (E054) for a kernel that is compiled for the CPU.

    Example:
        import tessera
        import tessera.language as tl

        @tessera.jit
        def add_one(x_ptr, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)

        n = 1 << 24
        x = tessera.MockTensor(tl.float32, (n,))
        grid = lambda args: (tessera.cdiv(n, args["BLOCK"]),)
        found = tessera.estimate(add_one, grid, (x, n), BLOCK=1024, target="sm_90a")
        assert found.bound == "memory" and 20 < found.microseconds < 200
    """
    from tessera.runtime.grid import normalize_grid

    compiled: CompiledKernel = kernel.warmup(*args, grid=grid, **options)
    named = {**dict(zip(kernel.arg_names, args)), **options}
    values = [
        named[param.name] if param.name in named else param.default for param in kernel.params
    ]
    meta = {**dict(zip(kernel.arg_names, values)), **options}
    return compiled.estimate(normalize_grid(grid, meta), *values)
