# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package of Triton's C++ library: the parts that have a meaning here."""
