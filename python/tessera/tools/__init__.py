# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tools for programs that launch kernels: see the modules."""
