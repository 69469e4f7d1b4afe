# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A check that all candidates do the same work if all are launched with the same grid.

A grid that is no function is one for all configurations. If these differ in the extents of tiles,
and a program does one tile, the configuration with the smallest tiles does the least, and would
win. A kernel's code does not say whether a program does one tile or several. So the first of the
runs that measure candidates also checks which elements they write.

Arrays that a kernel only writes are filled with a pattern before that run: where it is still there
after it, nothing was written. It is an error if one candidate writes an element and another one
does not. An array that the kernel reads, too, cannot be filled, and partial results may be others
with other tiles, rightly, so values that differ beyond rounding are a warning.

In a large array, only some thousands of elements are checked, in pieces from all over it
(arrays.find_pieces).
"""

from __future__ import annotations

import ctypes
import random
import warnings
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence

from tessera.errors import TuningError, TuningWarning, _frames_of_ours
from tessera.runtime.arrays import HOST
from tessera.runtime.specialize import PointerSlot
from tessera.tuning.arrays import Piece, Region, find_pieces
from tessera.tuning.candidates import Access, Candidate
from tessera.tuning.compare import deviations_of, elements_of
from tessera.tuning.config import shortly

_MOST_BYTES = 1 << 17
"""The bytes of an array that are checked. More would take too much of the time of a tuning."""
_MOST_PIECES = 128
_MOST_COMPARED = 1 << 12
"""Elements of an array whose values are compared."""

_PATTERN = random.Random(0).randbytes(65521)
"""The pattern, indexed by addresses. So two neighbouring elements differ, and an array that is
passed as two arguments has one pattern. A value that a kernel stores equals the pattern of a few
elements at most."""
_OTHER = bytes(0xFF ^ byte for byte in _PATTERN)
"""A second pattern, for elements whose stored value equals `_PATTERN`."""


class _Array:
    """An array that the kernel writes, and the pieces of it that are checked."""

    def __init__(
        self, pointer: PointerSlot, pieces: Sequence[Piece], is_only_written: bool
    ) -> None:
        self.name = pointer.name
        self.dtype = pointer.pointer.dtype
        self.device = pointer.pointer.device
        self.pieces = pieces
        self.is_only_written = is_only_written
        self.size = sum(piece.size for piece in pieces)
        self.before: Any = None
        """Its bytes before the first run; None of an array that is not filled."""
        self._filled: dict[bytes, bytes] = {}

    def read(self, stream: int) -> Any:
        """The bytes of its pieces, once `stream` has come so far."""
        data = (ctypes.c_char * self.size)()
        self._copy(data, stream, False)
        if self.device > HOST:
            from tessera.runtime.cuda import synchronize

            synchronize(self.device, stream)
        return data

    def write(self, data: Any, stream: int) -> None:
        """Writes bytes to its pieces; immediately on the CPU, on the stream on a GPU."""
        self._copy(data, stream, True)

    def filled(self, pattern: bytes) -> bytes:
        """The bytes of a pattern for each piece."""
        if pattern in self._filled:
            return self._filled[pattern]
        parts = []
        for begin, size in self.pieces:
            at = begin % len(pattern)
            parts.append((pattern * (1 + (at + size) // len(pattern)))[at : at + size])
        self._filled[pattern] = b"".join(parts)
        return self._filled[pattern]

    def _copy(self, data: Any, stream: int, is_in: bool) -> None:
        at = ctypes.addressof(data)
        for piece in self.pieces:
            target, source = (piece.begin, at) if is_in else (at, piece.begin)
            if self.device <= HOST:
                ctypes.memmove(target, source, piece.size)
            else:
                from tessera.runtime import driver

                driver.copy(self.device, stream, target, source, piece.size)
            at += piece.size


class Fault(NamedTuple):
    """A candidate that leaves elements unwritten."""

    place: int
    other: int
    """A candidate that writes them."""
    array: _Array
    missed: int
    """How many elements."""


class Coverage:
    """The elements that each of some candidates writes.

    Before the first run of each, `fill` is called, and after it `note`; when all have run,
    `judge`; at the end, `undo`.
    """

    def __init__(
        self,
        kernel: str,
        candidates: Sequence[Candidate],
        accesses: Sequence[Access],
        kept: Sequence[Region],
    ) -> None:
        """`kept` is the memory that is put back before each run."""
        self._kernel = kernel
        self.candidates = list(candidates)
        self._stream = candidates[0].stream
        self._seen: dict[int, list[Any]] = {}
        self._arrays: list[_Array] = []
        stored = [access.pointer for access in accesses if access.is_stored]
        for pointer in stored:
            device = pointer.pointer.device
            pieces = find_pieces(pointer, candidates[0].values, _MOST_BYTES, _MOST_PIECES)
            if not pieces:
                continue
            whole = Region(
                pointer.name,
                device,
                min(piece.begin for piece in pieces),
                max(piece.begin + piece.size for piece in pieces),
            )
            is_only_written = not any(region.overlaps(whole) for region in kept)
            self._arrays.append(_Array(pointer, pieces, is_only_written))
        for array in self._arrays:
            if array.is_only_written:
                array.before = array.read(self._stream)
        self._patterns: list[Any] = []
        self._is_judged = False

    def waits_for(self, candidate: Optional[Candidate]) -> bool:
        """True if it is one of the candidates, and has not had its first run."""
        found = (place for place, item in enumerate(self.candidates) if item is candidate)
        return next(found, -1) not in {-1, *self._seen}

    def fill(self, pattern: bytes = _PATTERN) -> None:
        """Fills what is only written."""
        for array in self._arrays:
            if array.before is not None:
                data = (ctypes.c_char * array.size).from_buffer_copy(array.filled(pattern))
                self._patterns.append(data)
                array.write(self._patterns[-1], self._stream)

    def note(self, place: int) -> None:
        """Remembers what is there now, after a candidate's run."""
        self._seen[place] = [array.read(self._stream) for array in self._arrays]
        self._patterns = []  # which the stream has taken

    def undo(self) -> None:
        """Restores the previous contents; runs before the restoring that precedes each run."""
        for array in self._arrays:
            if array.before is not None:
                array.write(array.before, self._stream)
        if any(array.device > HOST for array in self._arrays):
            from tessera.runtime.cuda import synchronize

            synchronize(self.candidates[0].device, self._stream)

    def judge(self, run_again: Callable[[int, bytes], None], compares: bool) -> None:
        """Raises TuningError (E086) if a candidate leaves unwritten what another writes, and warns
        of values that differ, unless they are compared elsewhere. `run_again` has a candidate
        run, and noted, with another pattern. Once is enough."""
        if self._is_judged:
            return
        self._is_judged = True
        fault = self._find_fault(_PATTERN)
        if fault is not None:
            # It may have stored a value that is the pattern's.
            first = {place: self._seen[place] for place in (fault.place, fault.other)}
            for place in first:
                run_again(place, _OTHER)
            fault = self._find_fault(_OTHER, first)
            if fault is not None:
                raise self._error(fault)
            self._seen.update(first)
        if compares:
            self._compare()

    def _find_fault(
        self, pattern: bytes, first: Optional[Mapping[int, list[Any]]] = None
    ) -> Optional[Fault]:
        import numpy

        places = sorted(self._seen if first is None else first)
        worst: Optional[Fault] = None
        for index, array in enumerate(self._arrays):
            if array.before is None or len(places) < 2:
                continue

            def left(pattern: bytes, results: Sequence[Any]) -> list[Any]:
                kind = f"u{array.dtype.itemsize}"
                filled = numpy.frombuffer(array.filled(pattern), kind)
                return [numpy.frombuffer(result[index], kind) == filled for result in results]

            rows = left(pattern, [self._seen[place] for place in places])
            if first is not None:
                before = left(_PATTERN, [first[place] for place in places])
                rows = [row & other for row, other in zip(rows, before)]
            missed = numpy.stack(rows)
            missed &= ~missed.all(axis=0)
            counts = missed.sum(axis=1)
            at = int(counts.argmax())
            if counts[at] and (worst is None or counts[at] > worst.missed):
                # The one that writes the most of them.
                other = int((missed & missed[at]).sum(axis=1).argmin())
                worst = Fault(places[at], places[other], array, int(counts[at]))
        return worst

    def _compare(self) -> None:
        import numpy

        places = sorted(self._seen)
        if len(places) < 2:
            return
        for index, array in enumerate(self._arrays):
            rows = [self._seen[place][index] for place in places]
            first = bytes(rows[0])
            if all(bytes(row) == first for row in rows):
                continue
            kind = f"u{array.dtype.itemsize}"
            written = numpy.ones(array.size // array.dtype.itemsize, bool)
            if array.before is not None:  # what is left of the pattern is no value
                written = numpy.frombuffer(first, kind) != numpy.frombuffer(
                    array.filled(_PATTERN), kind
                )
            at = numpy.flatnonzero(written)
            at = at[:: -(-len(at) // _MOST_COMPARED) or 1]
            results = []
            for row in rows:
                elements, tolerance = elements_of(bytes(row), array.dtype)
                results.append((elements[at], tolerance))
            found = deviations_of(numpy, results, array.name)
            if found:
                self._warn(array.name, [places[at] for at in found])
                return

    def _error(self, fault: Fault) -> TuningError:
        places = [fault.place, fault.other]
        low, high = (shortly(self.candidates[place].config) for place in places)
        array = fault.array
        count = array.size // array.dtype.itemsize
        looked = " that were looked at" if len(array.pieces) >= _MOST_PIECES else ""
        return TuningError(
            "E086",
            f"the configuration {low} of kernel `{self._kernel}` leaves {fault.missed} of {count} "
            f"elements of `{array.name}`{looked} unwritten that {high} writes: "
            + self._reason(places),
            self._fix(places),
        )

    def _warn(self, array: str, places: Sequence[int]) -> None:
        others = ", ".join(shortly(self.candidates[place].config) for place in places[:3])
        which = f"the configuration {others} than with the rest"
        if len(places) == len(self._seen):
            which = "each configuration"
        text = (
            f"tessera: kernel `{self._kernel}` writes other values to `{array}` with {which} "
            f"(E086): {self._reason(list(self._seen))}; " + self._fix(list(self._seen))
        )
        warnings.warn(text, TuningWarning, stacklevel=_frames_of_ours())

    def _names(self, places: Sequence[int]) -> list[str]:
        """The extents that these candidates differ in; if that is in none, those that all do."""
        return differing([self.candidates[place] for place in places]) or differing(self.candidates)

    def _reason(self, places: Sequence[int]) -> str:
        names = self._names(places)
        grid = self.candidates[places[0]].fixed_grid
        what = " and ".join(f"`{name}`" for name in names)
        is_one = len(names) == 1
        return (
            f"the grid {grid} is the same for all, and {what} {'is' if is_one else 'are'} "
            f"{'the extent' if is_one else 'extents'} of a tile"
        )

    def _fix(self, places: Sequence[int]) -> str:
        name = self._names(places)[0]
        return (
            "pass a function of the configuration as the grid, such as "
            f'lambda meta: (tessera.cdiv(n, meta["{name}"]),), or leave out tiles that are too '
            "small for this one; where it is meant so, @autotune(check=False)"
        )


def differing(candidates: Sequence[Candidate]) -> list[str]:
    """The extents of tiles that some candidates differ in, though their grid is the same."""
    if any(candidate.fixed_grid is None for candidate in candidates):
        return []
    first, *others = [candidate.constants() for candidate in candidates]
    names = [name for name in first if any(other.get(name) != first[name] for other in others)]
    if not names:
        return []
    extents = candidates[0].tile_extents()
    return [name for name in names if name in extents]


def find_coverage(
    kernel: str,
    candidates: Sequence[Candidate],
    accesses: Sequence[Access],
    kept: Sequence[Region],
) -> Optional[Coverage]:
    """The checks to do while these candidates are measured; None if there are none."""
    if len(candidates) < 2 or not any(access.is_stored for access in accesses):
        return None
    if not differing(candidates):
        return None
    try:
        import numpy  # noqa: F401
    except ImportError:
        return None
    return Coverage(kernel, candidates, accesses, kept)
