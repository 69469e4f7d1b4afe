# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of `libdevice` on CPUs and in the interpreter.

Each is written in the operations of the language, so that it is computed a vector at a time
and means the same wherever it runs. Arguments are tensors (or numbers) of the types that the
function's signature has; results in float32 are computed in float64 and rounded once, unless a
function is exact in float32.
"""
