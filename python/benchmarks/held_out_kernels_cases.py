# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The held-out set of public_kernels.py: its list of kernels and their cases.

**Held out**: a person who designs a rule of the compiler must not look at the results of this set by
row. The mean and the worst ratio are for everybody. It was written on 2026-11-30, when the set before
it, `unseen`, had been used for a design.

The cases are in four files, one for each file of kernels.
"""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from public_kernels_cases import CaseSet  # noqa: E402

PROGRAMS = 132
"""Programs of a persistent kernel, at most."""

HELD_OUT = CaseSet("held_out", ("matmul", "row", "sequence", "element"))
cases = HELD_OUT.cases
