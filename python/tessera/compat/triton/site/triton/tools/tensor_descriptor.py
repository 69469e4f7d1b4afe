# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tessera.tools.tensor_descriptor`."""

from tessera.tools.tensor_descriptor import TensorDescriptor

__all__ = ["TensorDescriptor"]
