# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The machines: those that there is code for, and the one that this is."""
