# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where Triton has its C++ library: what of it has a meaning here."""
