# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the gtest programs of <build>/unittest, one lit test a test case."""

import os

import lit.formats

config.name = "Tessera-Unit"
config.test_exec_root = os.path.join(config.tessera_build_dir, "unittest")
config.test_source_root = config.test_exec_root
config.test_format = lit.formats.GoogleTest(".", "Tests")
