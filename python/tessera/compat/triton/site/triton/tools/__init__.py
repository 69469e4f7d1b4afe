# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What programs that launch kernels use besides."""
