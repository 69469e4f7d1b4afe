# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lit suite: one folder a folder of include/tessera, one file a pass or op family."""

import os
import shutil
import platform

import lit.formats
import lit.util

config.name = "Tessera"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["lib", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.tessera_build_dir, "test")

config.environment["PATH"] = os.pathsep.join(
    [
        os.path.join(config.tessera_build_dir, "bin"),
        config.llvm_tools_dir,
        config.environment["PATH"],
    ]
)

# Tests of code generation name the CPUs that they are about.
if platform.machine() == "x86_64":
    config.available_features.add("x86_64")

# --debug-only is there only where our own code has its assertions.
if config.tessera_assertions in ("ON", "1", "TRUE"):
    config.available_features.add("assertions")

# Tests that go on to a cubin.
if shutil.which("ptxas") or os.path.exists("/usr/local/cuda/bin/ptxas"):
    config.available_features.add("ptxas")

# The whole suite runs a second time with every file printed and parsed again between
# passes (tools/check sets this).
opt = "tessera-opt"
if os.environ.get("TESSERA_CHECK_ROUNDTRIP") == "1":
    opt += " --verify-roundtrip"
    config.available_features.add("roundtrip")
config.substitutions.append((r"\btessera-opt\b", opt))
