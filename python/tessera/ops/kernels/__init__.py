# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of tessera.ops. Parameters are the inputs, then the outputs, then numbers."""
