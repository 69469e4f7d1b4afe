# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of kernels need: generated kernels (`fuzz`)."""
