# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a kernel and the types of its arguments to machine code, and every stage in between."""
