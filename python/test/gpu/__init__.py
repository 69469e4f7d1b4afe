# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that need an NVIDIA GPU."""
