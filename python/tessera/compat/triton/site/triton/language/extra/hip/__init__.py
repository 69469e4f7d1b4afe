# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""AMD's GPUs."""

from tessera.compat.triton import refuse

refuse(__name__, "there is no code generator for GPUs of AMD's, only for NVIDIA's and for CPUs")
