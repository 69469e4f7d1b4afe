# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tessera.language.target_info`."""

from tessera.language.target_info import *  # noqa: F401,F403
