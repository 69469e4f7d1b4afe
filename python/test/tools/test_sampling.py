# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sample of a product of parameters has what sampling.py promises of it."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from execution.running import CPU_TARGETS, TARGETS, host_has
from sampling import drop_combinations, sample


def pairs(rows) -> set:
    """Each pair of values of two columns."""
    columns = range(len(rows[0]))
    return {(i, j, row[i], row[j]) for row in rows for i, j in itertools.combinations(columns, 2)}


@pytest.mark.parametrize(
    "extents, most",
    [((4, 3), 12), ((2, 2, 3), 6), ((12, 6, 3), 72), ((5, 4, 2, 3, 3), 30)],
)
def test_each_pair_of_values_is_in_the_sample(extents, most) -> None:
    rows = list(itertools.product(*([f"{i}" for i in range(extent)] for extent in extents)))
    chosen = sample(rows)
    assert set(chosen) <= set(rows) and len(set(chosen)) == len(chosen) <= most
    assert pairs(chosen) == pairs(rows) and {row[0] for row in chosen} == {row[0] for row in rows}


def test_rows_that_are_no_product() -> None:
    rows = [("a", "b", "c"), ("a", "b", "d"), ("e", "b", "c")]
    assert pairs(sample(rows)) == pairs(rows)


def items_of(name: str, *parameters: list[str]) -> list[SimpleNamespace]:
    """As much of tests with these parameters and each target as is looked at."""
    return [
        SimpleNamespace(
            parent="file",
            originalname=name,
            callspec=SimpleNamespace(params={"run": target}, _idlist=[target, *ids]),
            get_closest_marker=lambda _: None,
        )
        for target in TARGETS
        for ids in itertools.product(*parameters)
    ]


def test_each_combination_of_the_sample_runs_on_all_kinds_of_targets() -> None:
    items = items_of("product", ["int8", "int16", "int32"], ["1", "2"], ["mask", "none"])
    dropped = drop_combinations(items)
    kept = [
        (*one.callspec._idlist[1:], one.callspec.params["run"])
        for one in items
        if one not in dropped
    ]
    cpus = [target for target in CPU_TARGETS if host_has(target)]
    combinations = {row[:-1] for row in kept}
    assert 6 <= len(combinations) < 12
    for target in set(TARGETS) - set(CPU_TARGETS):
        assert {row[:-1] for row in kept if row[-1] == target} == combinations
    on_cpus = [row for row in kept if row[-1] in cpus]
    assert pairs(on_cpus) == pairs(list(itertools.product(*map(sorted, map(set, zip(*on_cpus))))))
    assert {row[-1] for row in on_cpus} == set(cpus)


def test_values_of_one_parameter_take_turns_on_cpus() -> None:
    few = items_of("few", list("ab")) + items_of("none")
    assert drop_combinations([*few, SimpleNamespace()]) == []
    items = items_of("many", list("abcdefg"))
    dropped = drop_combinations(items)
    cpus = [target for target in CPU_TARGETS if host_has(target)]
    for number, value in enumerate("abcdefg"):
        kept = {
            one.callspec.params["run"]
            for one in items
            if value in one.callspec._idlist and one not in dropped
        }
        assert kept == set(TARGETS) - set(CPU_TARGETS) | {cpus[number % len(cpus)]}


def test_values_in_turn() -> None:
    mark = pytest.mark.in_turn("arch", "new").mark
    items = [
        SimpleNamespace(
            parent="file",
            originalname="name",
            callspec=SimpleNamespace(params={"arch": arch, "kernel": kernel}),
            get_closest_marker=lambda _: mark,
        )
        for arch in ("a", "b", "new")
        for kernel in (1, 2, 3)
    ]
    dropped = drop_combinations(items)
    kept = [tuple(one.callspec.params.values()) for one in items if one not in dropped]
    assert kept == [("a", 1), ("a", 3), ("b", 2), ("new", 1), ("new", 2), ("new", 3)]
