# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The set `unseen` of public_kernels.py: its list of kernels and their cases.

It was held out until 2026-11-30, and has been used to design rules of the compiler since. The set
held out now is that of held_out_kernels_cases.py.

The cases are in four files, one for each file of kernels.
"""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from public_kernels_cases import CaseSet  # noqa: E402

PROGRAMS = 132
"""Programs of a persistent kernel, at most."""

UNSEEN = CaseSet("unseen", ("matmul", "row", "sequence", "element"))
cases = UNSEEN.cases
