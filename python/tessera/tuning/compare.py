# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A check that all candidates compute the same, up to rounding.

Each candidate runs once on the same arrays. The arrays that it stored to are compared, element by
element, with the median of all candidates. Each shape of tiles adds in another order. So floats may
differ by some roundings of the array's larger elements, but integers may not differ. If two
candidates differ, it is not known which one is wrong. If there are more, those are wrong that do
not agree with the majority.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from tessera.errors import LaunchError
from tessera.language import types
from tessera.tuning.arrays import Copies, Region, find_changed, read
from tessera.tuning.candidates import Access, Candidate

# How many units in the last place of the result count as rounding.
_ROUNDINGS = {"fp64": 4096, "fp32": 4096, "fp16": 16, "bf16": 8}


class Differing(NamedTuple):
    """Which of some candidates differ from the others."""

    deviations: dict[int, str]
    """By a candidate's place, in what its result differs."""
    is_majority: bool
    """True if there are more that agree than that do not."""


def find_differing(
    candidates: Sequence[Candidate], accesses: Sequence[Access], values: Sequence[Any]
) -> Differing:
    """Runs each of them and compares what they store."""
    try:
        import numpy
    except ImportError:
        raise LaunchError(
            "E059", "check=True compares results with NumPy, which is not there", "install it"
        ) from None
    stored = [access for access in accesses if access.is_stored]
    names = [access.pointer.name for access in stored]
    if len(candidates) < 2:
        return Differing({}, True)
    stream = candidates[0].stream
    everything = Copies(find_changed(stored, values, names), stream)
    deviations: dict[int, str] = {}
    try:
        for access in stored:
            regions = find_changed([access], values, [access.pointer.name])
            if not regions:
                continue
            results = [_result(item, everything, regions[0], access) for item in candidates]
            for place, why in deviations_of(numpy, results, access.pointer.name).items():
                deviations.setdefault(place, why)
    finally:
        everything.restore()
        everything.free()
    return Differing(deviations, 2 * len(deviations) < len(candidates))


def _result(candidate: Candidate, copies: Copies, region: Region, access: Access) -> Any:
    copies.restore()
    if candidate.config.pre_hook is not None:
        candidate.config.pre_hook(candidate.named)
    candidate.launch()
    return elements_of(bytes(read(region, candidate.stream)), access.pointer.pointer.dtype)


def elements_of(data: bytes, dtype: types.dtype) -> tuple[Any, float]:
    """Elements as float64 or integers, and how far those that are equal may lie apart, as a part
    of their magnitude."""
    import numpy

    name = str(dtype)
    count = len(data) // dtype.itemsize * dtype.itemsize
    data = data[:count]
    if name in ("fp64", "fp32", "fp16"):
        floats = numpy.frombuffer(data, {"fp64": "f8", "fp32": "f4", "fp16": "f2"}[name])
        epsilon = float(numpy.finfo(floats.dtype).eps)
        return floats.astype("f8"), _ROUNDINGS[name] * epsilon
    if name == "bf16":
        wide = numpy.frombuffer(data, "u2").astype("u4") << 16
        return wide.view("f4").astype("f8"), _ROUNDINGS[name] * 2.0**-7
    if dtype.is_floating():  # eight bits, in the order of their values for each sign
        return numpy.frombuffer(data, "u1").astype("i8"), -1.0
    return numpy.frombuffer(data, f"i{dtype.itemsize}"), 0.0


def deviations_of(numpy: Any, results: Sequence[tuple[Any, float]], name: str) -> dict[int, str]:
    """The results that differ from the others: their indices, with the deviation. A result is its
    elements and their tolerance, from `elements_of`."""
    tolerance = results[0][1]
    table = numpy.stack([elements for elements, _ in results])
    if table.shape[1] == 0:
        return {}
    # The middle one of the values in order; of two, the smaller: then both differ from it or none.
    middle = numpy.sort(table, axis=0)[(len(table) - 1) // 2]
    with numpy.errstate(all="ignore"):
        if tolerance > 0:
            finite = numpy.abs(middle[numpy.isfinite(middle)])
            scale = numpy.abs(middle) + (float(finite.mean()) if finite.size else 0.0)
            same = numpy.abs(table - middle) <= tolerance * scale
            same |= (table == middle) | (numpy.isnan(table) & numpy.isnan(middle))
        elif tolerance < 0:
            same = numpy.abs(table - middle) <= 1
        else:
            same = table == middle  # the difference of two integers may wrap
    found = {}
    for place, row in enumerate(same):
        if not row.all():
            at = int(numpy.argmin(row))
            found[place] = (
                f"differs from the others in {int((~row).sum())} of {row.size} elements of "
                f"`{name}`; the first is element {at}, {table[place][at]} instead of {middle[at]}"
            )
    if len(table) == 2 and found:
        other = 1 - next(iter(found))
        found.setdefault(other, f"differs from the only other one in `{name}`")
    return found
