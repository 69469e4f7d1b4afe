# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that are called like functions: `y = add(x, 2.0)`."""
