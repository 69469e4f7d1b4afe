# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generated kernels, run on the interpreter and as code for the CPU or a GPU.

A seed gives a typed, shape-correct kernel (`generate`), its arrays, and what must hold
afterwards (`check`):

- every array that holds exact results is the same, bit for bit, on the interpreter and in
  compiled code: all integers, and floats of single operations, which round once;
- floats are only summed where every sum is exact, because the terms are small integers;
- the rest (elementary functions, sums and products of arbitrary floats) is stored together
  with its operands, and both results are compared with float64 NumPy under a stated bound;
- half the kernels are compiled with `deterministic`: their sums and products of arbitrary
  floats must have the interpreter's bits, too.

A failing kernel is shrunk (`shrink`) and written as a Python file that replays it.

    python -m tessera.testing.fuzz --count 5000 --seed 1 --target cuda --jobs 8
"""

from tessera.testing.fuzz.check import Failure, check, replay
from tessera.testing.fuzz.generate import generate
from tessera.testing.fuzz.program import Program
from tessera.testing.fuzz.shrink import shrink

__all__ = ["Failure", "Program", "check", "generate", "replay", "shrink"]
