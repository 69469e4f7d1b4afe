# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What happens when a kernel is launched: arguments, specialisation, caches, the launch."""
