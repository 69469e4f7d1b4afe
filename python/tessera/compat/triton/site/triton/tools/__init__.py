# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Other tools of programs that launch kernels."""
