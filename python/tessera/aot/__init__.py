# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for programs without Python: `python -m tessera build`."""
