# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Other projects' names for what is here; see `tessera.compat.triton`."""
