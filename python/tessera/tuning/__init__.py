# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Choosing among configurations of a kernel by measuring them (`tessera.autotune`).

    config.py one configuration autotuner.py the kernel that chooses: what `@autotune` makes, and
    its launches checks.py checks of the arguments of `@autotune` key.py what the choice depends on
    heuristics.py the kernel that computes some of its arguments: `@heuristics` automatic.py
    configurations for a kernel that comes without any (`configs="auto"`) search.py looking for a
    configuration in a space of them (`tessera.tune`) session.py one tuning from the list of
    configurations to the choice candidates.py a configuration on its way: specialised, compiled,
    launched race.py which candidate is the fastest, and how sure that is clocks.py how long a
    launch takes, on the CPU and on a GPU arrays.py what runs of a kernel change, and putting it
    back compare.py whether all candidates compute the same coverage.py whether all candidates write
    the same elements, where their grid is the same store.py results on disk progress.py what is
    told while it goes on command.py `python -m tessera tune`

Nothing here is known to the compiler: a candidate is compiled and launched as any kernel is.
"""

from tessera.tuning.autotuner import Autotuner, autotune
from tessera.tuning.config import Config
from tessera.tuning.heuristics import Heuristics, heuristics

__all__ = ["Autotuner", "Config", "Heuristics", "autotune", "heuristics"]
