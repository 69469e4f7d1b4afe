# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assembles what every other lit test is about, for the oldest GPU and for the newest.

A test of one pass compares text. Whether ptxas takes what the text becomes is asked here, of
each test that is code for a GPU or can become such.
"""

import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(__file__))
from assembled_test import AssembledTest

# Of those that do not become code for a GPU, why.
ANYWHERE = {
    "Analysis/machine-view.mlir": "some of the texts that are put in are no PTX",
    "Analysis/call-graph.mlir": "a recursion is part of it, which is refused",
    "Conversion/TileGPUToLLVM/control-flow-to-llvm.mlir": "no function of it is a kernel",
    "Conversion/TileGPUToLLVM/inline-asm.mlir": "the text that is put in is no PTX",
    "Pipelines/extern-functions.mlir": "functions of a file that the test makes",
    "Dialect/TileGPU/launch-attr.mlir": "modules without code",
    "Dialect/Tile/program-ops.mlir": "a kernel takes a descriptor and does nothing with it",
    "Dialect/Tile/check-ops.mlir": "accesses are checked on the CPU alone",
    "Dialect/Tile/expand-access-checks.mlir": "accesses are checked on the CPU alone",
    "Dialect/Tile/end-loops.mlir": "functions of other dialects, which a GPU's pipeline leaves alone",
}
EXCEPTIONS = {
    "sm_80": {
        **ANYWHERE,
        "Conversion/TileGPUToLLVM/clusters.mlir": "clusters of blocks",
        "Dialect/TileGPU/warp-specialize-ops.mlir": "warps hand registers to others",
    },
    "sm_90a": {**ANYWHERE, "Dialect/TileGPU/target-attr.mlir": "names of targets, and no code"},
}

# Of those that do, why the simulator does not know all of their instructions.
NOT_SIMULATED = {
    "Dialect/Tile/canonicalize.mlir": "a function that nobody has",
    "Dialect/Tile/math-ops.mlir": "functions that nobody has",
    "Dialect/Tile/reorder-broadcasts.mlir": "a function that nobody has",
    "Dialect/TileGPU/assign-every-op.mlir": "a user's PTX",
    "Pipelines/gpu-code.mlir": "a user's PTX",
    "Tools/compile.mlir": "a function of the CPU's",
}

config.name = "Tessera-Assembled"
config.suffixes = [".mlir"]
# The folders of this suite, of the gtests and of passes for tests; and those of code for CPUs.
config.excludes = ["Assembled", "Unit", "lib", "Strips", "TileToStrips"]
config.test_source_root = os.path.dirname(os.path.dirname(__file__))
config.test_exec_root = os.path.join(config.tessera_build_dir, "test", "Assembled")
config.test_format = AssembledTest(
    os.path.join(config.tessera_build_dir, "bin", "tessera-opt"), EXCEPTIONS, NOT_SIMULATED
)
hasPtxas = shutil.which("ptxas") or os.path.exists("/usr/local/cuda/bin/ptxas")
config.unsupported = not hasPtxas
