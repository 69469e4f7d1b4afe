# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that runs of a kernel change: keep and restore it.

While candidates are measured, a kernel runs hundreds of times where its caller asked for
once. That is no harm to an array that it only writes: every run writes the same. An array
that it reads, too, such as one that it adds to, has to be as it was before each run. The
compiler knows which these are: which arguments a kernel may load from and store to. Two
arguments may be of the same memory, so what counts is whether memory that is stored to
overlaps any that is loaded from.

Bytes are kept and restored, so an array of any library can be restored. Memory that is reached
through pointers in memory is not protected, because its end is not known.
"""

from __future__ import annotations

import ctypes
import math
import random
from typing import Any, Callable, NamedTuple, Optional, Sequence

from tessera.errors import warn_of_machine
from tessera.language.records import items_of
from tessera.runtime.arrays import HOST, TensorWrapper, described, pointer_of
from tessera.runtime.memory_ranges import arrays_in, memory_of_slots
from tessera.runtime.specialize import PointerSlot
from tessera.tuning.candidates import Access


class Region(NamedTuple):
    """Memory behind an argument."""

    name: str
    device: int
    begin: int
    end: int

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.end - self.begin

    def overlaps(self, other: "Region") -> bool:
        """True if both have a byte."""
        return self.device == other.device and self.begin < other.end and other.begin < self.end


def find_region(name: str, value: Any) -> Optional[Region]:
    """The memory of an array; None if it is not known."""
    pointer = pointer_of(value, name)
    if pointer is None:
        return None
    known = memory_of_slots(1, [PointerSlot(0, name, pointer)], [value])[0]
    if known is not None:
        return Region(name, pointer.device, known[0], known[1])
    span = _span(value, pointer.dtype.itemsize)
    if span is None:
        return None
    begin, end = pointer.address + span[0], pointer.address + span[1]
    return Region(name, pointer.device, begin, end)


def _span(value: Any, itemsize: int) -> Optional[tuple[int, int]]:
    """The first byte and the byte after the last, counted from the first element."""
    found = _extents_and_strides(value, itemsize)
    if found is None:
        return None
    shape, strides = found
    if 0 in shape:
        return 0, 0
    reach = [(extent - 1) * stride for extent, stride in zip(shape, strides)]
    low = sum(step for step in reach if step < 0)
    return low, sum(step for step in reach if step > 0) + itemsize


def _extents_and_strides(
    value: Any, itemsize: int
) -> Optional[tuple[Sequence[int], Sequence[int]]]:
    """The shape of an array, and its strides in bytes; None if they are not known."""
    while isinstance(value, TensorWrapper):
        value = value.base
    own = getattr(value, "stride", None)
    if callable(own):  # torch, which counts elements
        return tuple(value.shape), [step * itemsize for step in own()]
    interface = getattr(value, "__cuda_array_interface__", None)
    source = interface if isinstance(interface, dict) else {}
    shape = source.get("shape", getattr(value, "shape", None))
    strides = source.get("strides") if source else getattr(value, "strides", None)
    if not isinstance(shape, (tuple, list)):
        return None
    if not isinstance(strides, (tuple, list)):
        strides = [math.prod(shape[axis + 1 :]) * itemsize for axis in range(len(shape))]
    return shape, strides


class Piece(NamedTuple):
    """Some bytes of an array, one after the other; of whole elements."""

    begin: int
    size: int


def find_pieces(
    pointer: PointerSlot, values: Sequence[Any], most_bytes: int, count: int
) -> list[Piece]:
    """Pieces of an array's memory. If the array has at most so many bytes in at most so many
    pieces, they are all its elements. Otherwise that many pieces are spread over it, and include
    the first and the last element.

    No piece has bytes between elements, since these may belong to other arrays. The list is empty
    if the addresses of the elements are not known.
    """
    itemsize = pointer.pointer.dtype.itemsize
    found: list[list[Piece]] = []
    for value in arrays_in(values):
        if isinstance(value, (int, float, str, tuple, type(None))):
            continue
        try:
            other = pointer_of(value, pointer.name)
        except Exception:
            continue
        if other is None or other.address != pointer.pointer.address:
            continue
        layout = _extents_and_strides(value, itemsize)
        if layout is not None:
            found.append(_pieces(other.address, *layout, itemsize, most_bytes, count))
    # If several begin there, it is not known which one it is.
    return min(found, key=lambda pieces: sum(piece.size for piece in pieces), default=[])


def _pieces(
    address: int,
    shape: Sequence[int],
    strides: Sequence[int],
    itemsize: int,
    most_bytes: int,
    count: int,
) -> list[Piece]:
    if 0 in shape:
        return []
    axes = []
    for extent, stride in zip(shape, strides):
        if stride < 0:
            address, stride = address + (extent - 1) * stride, -stride
        if extent > 1 and stride:
            axes.append((stride, extent))
    axes.sort()
    run = itemsize
    while axes and axes[0][0] == run:
        run *= axes.pop(0)[1]
    reach = run
    for stride, extent in axes:
        if stride < reach:  # elements that share memory
            return []
        reach = stride * (extent - 1) + reach
    rows = math.prod(extent for _, extent in axes)

    def row(index: int) -> int:
        begin = address
        for stride, extent in axes:
            index, at = divmod(index, extent)
            begin += at * stride
        return begin

    total = rows * run
    if total <= most_bytes and rows <= count:
        return [Piece(row(index), run) for index in range(rows)]
    # Not at equal distances, which may be those of the rows of a matrix.
    generator = random.Random(0)
    size = min(run, max(1, most_bytes // count // itemsize) * itemsize)
    slack = max(1, total // count)
    starts = [place * total // count + generator.randrange(slack) for place in range(count)]
    pieces = []
    for start in (0, *starts[1:-1], total - size):
        index, at = divmod(start, run)
        pieces.append(Piece(row(index) + min(at // itemsize * itemsize, run - size), size))
    return pieces


def find_changed(
    accesses: Sequence[Access], values: Sequence[Any], names: Sequence[str]
) -> list[Region]:
    """The memory to restore after each run: arrays that are loaded and stored, and the arrays
    `names`."""
    by_slot = {access.pointer.slot: access.pointer for access in accesses}
    regions: dict[int, Optional[Region]] = {}
    count = max(by_slot, default=-1) + 1
    extents = memory_of_slots(count, by_slot.values(), values)
    for slot, pointer in by_slot.items():
        extent = extents[slot]
        if extent is not None:
            found = Region(pointer.name, pointer.pointer.device, extent[0], extent[1])
        else:
            found = _region_of_address(pointer, values)  # type: ignore[assignment]
        regions[slot] = found
    loaded = [access for access in accesses if access.is_loaded]
    result: dict[tuple[int, int, int], Region] = {}
    for access in accesses:
        region = regions[access.pointer.slot]
        # An array in a tuple `pair` has a name such as `pair[1][0]`.
        is_named = access.pointer.name.partition("[")[0] in names
        if not access.is_stored and not is_named:
            continue
        if region is None:
            if access.is_loaded or is_named:
                warn_of_machine(
                    f"tessera: the length of the array `{access.pointer.name}` is unknown, so runs that "
                    "measure the kernel change it permanently"
                )
            continue
        others = (regions[other.pointer.slot] for other in loaded)
        if is_named or any(other is not None and region.overlaps(other) for other in others):
            if region.size:
                result[region[1:]] = region
    return list(result.values())


def _region_of_address(item: PointerSlot, values: Sequence[Any]) -> Optional[Region]:
    for value in values:
        base = described(value)
        if isinstance(base, (int, float, str, tuple, type(None))):
            continue
        try:
            pointer = pointer_of(base, item.name)
        except Exception:
            continue
        if pointer is not None and pointer.address == item.pointer.address:
            return find_region(item.name, base)
    return None


class Copies:
    """The bytes of some memory at one time."""

    def __init__(self, regions: Sequence[Region], stream: int = 0) -> None:
        self._stream = stream
        self._kept: list[tuple[Region, Any]] = []
        try:
            for region in regions:
                self._kept.append((region, _keep(region, stream)))
        except BaseException:
            self.free()
            raise

    def restore(self) -> None:
        """Restores the contents: immediately on the CPU, on the stream on a GPU."""
        for region, kept in self._kept:
            if region.device <= HOST:
                ctypes.memmove(region.begin, kept, region.size)
            else:
                from tessera.runtime import driver

                source = kept.address if isinstance(kept, driver.Buffer) else ctypes.addressof(kept)
                driver.copy(region.device, self._stream, region.begin, source, region.size)

    def bytes_of(self, index: int) -> bytes:
        """The bytes of one of the regions, which has to be the host's or kept there."""
        return bytes(self._kept[index][1])

    def free(self) -> None:
        """Gives back what they took."""
        for region, kept in self._kept:
            if region.device > HOST and hasattr(kept, "free"):
                from tessera.runtime.cuda import synchronize

                synchronize(region.device, self._stream)
                kept.free()
        self._kept = []


def _keep(region: Region, stream: int) -> Any:
    if region.device > HOST:
        from tessera.runtime import driver

        try:
            kept = driver.Buffer(region.device, region.size)
            driver.copy(region.device, stream, kept.address, region.begin, region.size)
            return kept
        except driver.OutOfMemory:
            return read(region, stream)
    return read(region, stream)


def read(region: Region, stream: int = 0) -> Any:
    """A copy of the bytes of some memory, on the host."""
    kept = (ctypes.c_char * region.size)()
    if region.device <= HOST:
        ctypes.memmove(kept, region.begin, region.size)
    else:
        from tessera.runtime import driver
        from tessera.runtime.cuda import synchronize

        driver.copy(region.device, stream, ctypes.addressof(kept), region.begin, region.size)
        synchronize(region.device, stream)
    return kept


def zero(name: str, value: Any, stream: int = 0) -> Callable[[], None]:
    """A function that sets the elements of an array, or of those in a tuple and the like, to zero."""
    items = items_of(value)
    if items is not None:
        each = [zero(name, item, stream) for item in items]

        def clear_all() -> None:
            for clear in each:
                clear()

        return clear_all
    value = described(value)
    while isinstance(value, TensorWrapper):
        value = value.base
    if callable(getattr(value, "zero_", None)):
        return lambda: value.zero_()
    if callable(getattr(value, "fill", None)):
        return lambda: value.fill(0)
    region = find_region(name, value)

    def clear() -> None:
        if region is None:
            return
        if region.device <= HOST:
            ctypes.memset(region.begin, 0, region.size)
        else:
            from tessera.runtime import driver

            driver.fill(region.device, stream, region.begin, region.size)

    return clear
