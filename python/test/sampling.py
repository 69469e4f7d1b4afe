# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which combinations of its parameters a test runs with.

A test of every dtype, shape and option at once is a product of thousands of kernels. By default, a test
of `execution` runs with a pairwise sample of them: any two values of two parameters come together at
least once, and so do a value and a code path of the CPU. Each combination of the sample runs on the
interpreter, on the simulated GPU and on one code path of the CPU (on a GPU, if there is one). The values
of a test with a single parameter take turns on the code paths of the CPU, if they are three or more.

`@pytest.mark.in_turn("arch", "sm_120a")` gives each combination of the other parameters one value of
`arch`, in turn, and "sm_120a" to all.

Samples are the same in each run. `--every-combination` runs whole products. So do `-k` and names of
tests on the command line, to which a sample would be in the way.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

import pytest

from execution.running import CPU_TARGETS, TARGETS, host_has

FEW = 2
"""So many values of a single parameter run on all targets."""
OTHER_TARGETS = [target for target in TARGETS if target not in CPU_TARGETS]


def sample(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Some of the rows, in which each pair of values is that is in any row.

    Rows with many pairs that are new come first, so that there need not be many rows.
    """
    columns = list(itertools.combinations(range(len(rows[0])), 2))
    pairs = [[(i, j, row[i], row[j]) for i, j in columns] for row in rows]
    seen: set[tuple[int, int, str, str]] = set()
    chosen = []
    left = range(len(rows))
    for wanted in range(len(columns), 0, -1):
        rest = []
        for at in left:
            new = sum(pair not in seen for pair in pairs[at])
            if new >= wanted:
                seen.update(pairs[at])
                chosen.append(rows[at])
            elif new:
                rest.append(at)
        left = rest
    return chosen


def drop_combinations(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests that are not in a sample."""
    tests: defaultdict[Hashable, list[Any]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec"):
            tests[item.parent, item.originalname].append(item)
    dropped = []
    for cases in tests.values():
        if mark := cases[0].get_closest_marker("in_turn"):
            dropped += _drop_turns(cases, *mark.args)
        elif "run" in cases[0].callspec.params:
            dropped += _drop_pairs(cases)
    return dropped


def _drop_pairs(cases: list[Any]) -> list[pytest.Item]:
    targets = tuple(item.callspec.params["run"] for item in cases)
    # An identifier for each `parametrize`, also where that has several names.
    identifiers = [item.callspec._idlist for item in cases]
    columns = [column for column in zip(*identifiers) if column != targets]
    rows = list(zip(*columns))
    combinations = list(dict.fromkeys(rows))
    cpus = [target for target in CPU_TARGETS if host_has(target)]
    if len(columns) > 1:
        wanted = sample([(*row, cpu) for row in combinations for cpu in cpus])
    elif len(combinations) > FEW:
        wanted = [(*row, cpu) for row, cpu in zip(combinations, itertools.cycle(cpus))]
    else:
        return []
    kept = {(*row, target) for *row, cpu in wanted for target in (cpu, *OTHER_TARGETS)}
    return [item for item, row, target in zip(cases, rows, targets) if (*row, target) not in kept]


def _drop_turns(cases: list[Any], name: str, *always: object) -> list[pytest.Item]:
    values: defaultdict[Hashable, list[pytest.Item]] = defaultdict(list)
    for item in cases:
        if item.callspec.params[name] not in always:
            others = [value for key, value in item.callspec.params.items() if key != name]
            values[repr(others)].append(item)
    return [
        item
        for turn, choices in enumerate(values.values())
        for at, item in enumerate(choices)
        if at != turn % len(choices)
    ]
